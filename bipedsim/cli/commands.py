"""Define the table of commands, and the parser that imports a command on demand."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from bipedsim import __version__
from bipedsim.cli.command import CliCommand
from bipedsim.config import Table
from bipedsim.errors import EXIT_USAGE, ConfigError, closest, number_in, shown

COMMANDS = Table(
    "command",
    "bipedsim.commands",
    {
        "run": CliCommand(
            "simulate without ROS, as fast as it goes",
            "Simulate a robot under a controller, without ROS, and report the ground reaction forces.",
            "bipedsim.cli.run",
        ),
        "plot": CliCommand(
            "plot a bag or a run: forces, CoP, contact modes, torques",
            "Plot the signals of a bag or a run over time, and the CoP in the soles, as a PNG. Example: bipedsim "
            "plot runs/first --panels forces cop",
            "bipedsim.cli.plot",
        ),
        "plates": CliCommand(
            "plot the force plates of a run and print their statistics, or test a plate on a grid",
            "Plot the force plates of a run: forces, CoP on the plate, free moment and butterfly diagram. Print the "
            "statistics of every contact. With --grid, apply known loads on a grid over a plate, as laboratories do. "
            "Example: bipedsim plates runs/first",
            "bipedsim.cli.plates",
        ),
        "summary": CliCommand(
            "print the metrics of a bag or a run",
            "Print the outcome and the metrics of a bag or a run of any length: ground reaction forces, CoP, torques, "
            "and the readouts of the controller. Example: bipedsim summary runs/first",
            "bipedsim.cli.summary",
        ),
        "report": CliCommand(
            "write an HTML report of a bag or a run, for example for a colleague",
            "Write one HTML file with the outcome, metrics, steps and plots of a run, and the command that repeats it. "
            "With several runs, the report compares them. The file needs no network. Examples: bipedsim report "
            "runs/first --view, bipedsim report runs/first runs/second",
            "bipedsim.cli.report",
        ),
        "animate": CliCommand(
            "animate the robot of a bag or a run: .gif, .mp4, or a strip of postures as .png",
            "Draw the robot of a run as links, with soles, ground, CoM and contact forces. docs/animation.md explains "
            "the symbols.",
            "bipedsim.cli.animate",
        ),
        "view": CliCommand(
            "show a bag or a run in the browser, or write it as one .html that plays without a server",
            "Show a run on a local web page with a time slider: robot meshes, contact points of the feet, forces and "
            "metrics. Example: bipedsim view runs/first",
            "bipedsim.cli.view",
        ),
        "export": CliCommand(
            "export a bag or a run as CSV, C3D, .mot, .trc, Parquet or for MATLAB",
            "Write a bag or a run as a table, or in a file format of movement laboratories (docs/lab_formats.md). A "
            "table has one row per tick and one column with a unit per signal. Example: bipedsim export runs/first "
            "-o first.csv",
            "bipedsim.cli.export",
        ),
        "compare-gait": CliCommand(
            "compare a simulated walk with a person's walk over force plates",
            "Compare walks of robots and persons over force plates, as a table and a figure: forces in body weights "
            "over the stance, CoP path, timing, impulses. Example: bipedsim compare-gait runs/first walking.c3d",
            "bipedsim.cli.compare_gait",
        ),
        "replay": CliCommand(
            "simulate a recorded run again, or a saved physics step",
            "Simulate a run again from its recorded commands, or the run of a real robot from its measured torques, "
            "and compare. The result is equal to the bit, unless you select another contact model, hardware or ground. "
            "With the file of a step that a physics monitor saved, repeat that step under every contact model. "
            "Example: bipedsim replay runs/demo",
            "bipedsim.cli.replay",
        ),
        "robots": CliCommand(
            "list the available robots",
            "List the robots of the package with joints and mass. For an unavailable robot, print the reason. Example: "
            "bipedsim robots, then bipedsim run --robot talos",
            "bipedsim.cli.robots",
        ),
        "import": CliCommand(
            "write robot.yaml from a URDF, xacro or MJCF file",
            "Read a URDF, xacro or MJCF file, or the folder of a description package. Write a folder with robot.yaml, "
            "a figure, and a report of properties that were found, inferred, fixed or dropped. Example: bipedsim "
            "import g1.urdf, then bipedsim run --robot g1/robot.yaml",
            "bipedsim.cli.import_robot",
        ),
        "describe": CliCommand(
            "print the properties of a robot: masses, joints, gains, soles, and warnings",
            "Print the properties of a robot: masses, CoM height, joint limits and signs, effective inertia, highest "
            "stable gains, and soles. Also print errors and warnings. Example: bipedsim describe g1 --plot g1.png",
            "bipedsim.cli.describe",
        ),
        "scenarios": CliCommand(
            "list the available scenarios",
            "List the scenarios of the package with controller and description. Example: bipedsim scenarios, then "
            "bipedsim run --scenario push",
            "bipedsim.cli.scenarios",
        ),
        "warmup": CliCommand(
            "compile the kernels into the cache, so that later starts are fast",
            "Compile the kernels of all contact models and controllers into the cache, on all cores. Run it once after "
            "the installation. Example: bipedsim warmup",
            "bipedsim.cli.warmup",
        ),
    },
)
"""Name to :class:`CliCommand`; other packages add commands by entry points."""


class Parser(argparse.ArgumentParser):
    """Parser of the command line and of each command; suggests the choice that was probably intended.

    For an invalid number, it suggests a valid one and does not print the usage of all options.
    """

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and exit."""
        number = re.fullmatch(r"argument (\S+): invalid (float|int) value: '(.*)'", message, re.DOTALL)
        if number:
            option, kind, text = number[1].rpartition("/")[2], number[2], number[3]
            example = number_in(text)
            example = example.partition(".")[0] if kind == "int" else example
            example_usage = f"{option} {example}" if option.startswith("-") else example
            kind_name = "whole number" if kind == "int" else "number"
            self.exit(
                EXIT_USAGE,
                f"{self.prog}: error: {option}: {shown(text)} is no {kind_name}; give it without a unit, for example "
                f"{example_usage} (what it means: {self.prog} --help)\n",
            )
        invalid = re.search(r"invalid choice: '([^']*)'(?= \(choose from (.*)\))", message)
        suggestion = invalid and closest(invalid[1], re.findall(r"[\w.-]+", invalid[2]))
        if invalid and suggestion:
            message = f"{message[: invalid.end()]}; did you mean {suggestion!r}?{message[invalid.end() :]}"
        super().error(message)


class CommandParser(Parser):
    """Parser of one command, which imports the command when it parses arguments.

    Args:
        command: The command, or the error of its entry point.
        options: Options of :class:`argparse.ArgumentParser`.
    """

    def __init__(self, *, command: CliCommand | ConfigError, **options: Any) -> None:
        super().__init__(**options)
        self._command: CliCommand | ConfigError | None = command
        self._instead: Mapping[str, str] = {}

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Import the command and parse its arguments."""
        command, self._command = self._command, None
        if isinstance(command, ConfigError):
            self.error(str(command))
        if command is not None:
            module = importlib.import_module(command.module)
            module.add_arguments(self)
            self.set_defaults(function=module.main)
            self._instead = getattr(module, "INSTEAD", {})
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # Errors are reported here, where usage and options are those of the command.
            option = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
            message, hint = f"unrecognized arguments: {' '.join(unknown)}", self._hint(option) if option else ""
            if not hint:
                self.error(message)
            self.exit(EXIT_USAGE, f"{self.prog}: error: {message}; {hint} (all options: {self.prog} --help)\n")
        return parsed, unknown

    def _hint(self, option: str) -> str:
        """Return a hint for an option that the command does not have, or an empty string."""
        if option in self._instead:
            return self._instead[option]
        commands = [f"`bipedsim {name}`" for name, parser in _parsers() if option in parser._option_string_actions]
        if commands:
            more = f" and {len(commands) - _NAMED} more commands" if len(commands) > _NAMED else ""
            return f"{option} is an option of {', '.join(commands[:_NAMED])}{more}"
        suggestion = closest(option, self._option_string_actions)
        return f"did you mean {suggestion}?" if suggestion else ""


_NAMED = 4
"""Maximum number of commands that a hint lists for an option."""


def _parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each importable command with a parser of its options."""
    for name in COMMANDS:
        parser = argparse.ArgumentParser(add_help=False)
        with suppress(ConfigError, ImportError):
            importlib.import_module(COMMANDS[name].module).add_arguments(parser)
            yield name, parser


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Raises:
        ConfigError: Two packages have a command with the same name.
    """
    parser = Parser(
        prog="bipedsim",
        description="Simulate two-legged robots with feet that stick, with your controller in the loop.",
    )
    parser.add_argument("--version", action="version", version=f"bipedsim {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=CommandParser)
    for name in COMMANDS:
        try:
            command = COMMANDS[name]
        except ConfigError as error:
            # A broken package must not disable the other commands.
            commands.add_parser(name, command=error, help="not available: its package cannot be imported")
        else:
            commands.add_parser(name, command=command, help=command.help, description=command.description)
    return parser
