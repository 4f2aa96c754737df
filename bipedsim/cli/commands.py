"""What the command ``bipedsim`` can do: its parser, and a function for each command."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from bipedsim import __version__
from bipedsim.errors import EXIT_FAILED, ConfigError, closest


def _add_run(commands: Any) -> None:
    from bipedsim.cli import run as run_command

    run = commands.add_parser(
        "run",
        help="simulate without ROS, as fast as it goes",
        description="Simulate a robot under a controller, without ROS, and report the ground reaction forces.",
    )
    run_command.add_arguments(run)


def _add_scenarios(commands: Any) -> None:
    scenarios = commands.add_parser(
        "scenarios",
        help="list the scenarios that can be named",
        description="List the scenarios that come with the package: name, controller, and what happens. "
        "Example: bipedsim scenarios, then bipedsim run --scenario push",
    )
    scenarios.set_defaults(function=_scenarios)


def _scenarios(args: argparse.Namespace) -> int:
    from bipedsim.runs import SCENARIOS

    for name, scenario in SCENARIOS.items():
        print(f"{name:12} {scenario.controller:10} {scenario.description}")
    print("your own: --scenario path/to/scenario.yaml (docs/scenarios.md)")
    return 0


def _add_up(commands: Any) -> None:
    from bipedsim_ros.bringup import bringup

    up = commands.add_parser(
        "up",
        help="start simulator, controller and recorder as ROS 2 nodes",
        description="Start the nodes of a bring-up as processes of their own: what `ros2 launch bipedsim` does, "
        "where the launch package is not installed.",
    )
    bringup.add_arguments(up)
    up.set_defaults(function=bringup.main)


def _add_teleop(commands: Any) -> None:
    from bipedsim_ros.bringup import teleop

    parser = commands.add_parser(
        "teleop",
        help="steer a walking robot by the keyboard",
        description="Publish velocity commands, ten times a second, as the keyboard asks for. " + teleop.HELP,
    )
    teleop.add_arguments(parser)
    parser.set_defaults(function=teleop.run_arguments)


def _add_control(commands: Any) -> None:
    from bipedsim_ros.bringup import robot_bringup

    control = commands.add_parser(
        "control",
        help="start the controller alone, for a robot that is already up",
        description="Start a controller, and a recorder if wanted, beside a robot that is already up: what `ros2 "
        "launch bipedsim robot.launch.py` does, where the launch package is not installed. It runs until Ctrl-C.",
    )
    robot_bringup.add_arguments(control)
    control.set_defaults(function=robot_bringup.main)


def _add_check_robot(commands: Any) -> None:
    from bipedsim_ros.contract import check_robot

    parser = commands.add_parser(
        "check-robot",
        help="compare a robot's topics, live or in a bag, with what a controller expects",
        description="Listen to a robot (or read a bag) and compare topics, types, QoS, joints, frames, signs, units, "
        "rates and delays with what a controller expects. Nothing is published. Returns 1 if something differs or is "
        "missing. docs/other_robot.md explains every check.",
    )
    check_robot.add_arguments(parser)
    parser.set_defaults(function=check_robot.main)


def _add_plot(commands: Any) -> None:
    from bipedsim.view import PANELS

    plot = commands.add_parser(
        "plot",
        help="draw a bag or a run: forces, CoP, contact modes, torques",
        description="Draw what happened in a bag or a run over time, and the CoP in the soles, as a PNG. "
        "Example: bipedsim plot runs/first --panels forces cop",
    )
    plot.add_argument("recording", type=Path, help="folder of a run or bag, .mcap or .npz")
    plot.add_argument(
        "-o", "--output", type=Path, metavar="PNG", help="picture to write (default: beside the recording)"
    )
    plot.add_argument(
        "--panels", nargs="+", metavar="PANEL", help=f"which panels to draw: {', '.join(PANELS)} (default: all)"
    )
    plot.set_defaults(function=_plot)


def _plot(args: argparse.Namespace) -> int:
    from bipedsim.analysis import load_run
    from bipedsim.cli.options import output_beside
    from bipedsim.view import plot

    output = output_beside(args.recording, args.output, ".png")
    plot(load_run(args.recording), output, **({"panels": args.panels} if args.panels else {}))
    print(f"wrote {output}")
    return 0


def _add_animate(commands: Any) -> None:
    from bipedsim.cli import animate as command

    animate = commands.add_parser(
        "animate",
        help="draw the moving robot of a bag or a run: .gif, .mp4, or a strip of postures as .png",
        description="Draw the robot of a run as links, with soles, ground, CoM and contact forces. docs/animation.md "
        "says what is what.",
    )
    command.add_arguments(animate)


def _add_modes(commands: Any) -> None:
    from bipedsim_studies.gait_modes import command

    modes = commands.add_parser(
        "modes",
        help="what each foot did in a bag or a run, and which gait that is: walking, hopping, running",
        description="Print the discrete states of a run (each foot sticks, slides, is detached, or meets the ground), "
        "the transitions between them, the gait, its cycle, and the invariant sets that the run was in. "
        "docs/stability.md says how they are defined.",
    )
    command.add_arguments(modes)


def _add_export(commands: Any) -> None:
    export = commands.add_parser(
        "export",
        help="write a bag or a run as CSV, one row per tick",
        description="Write a bag or a run as a table: one row per tick, one column per number, with its unit. "
        "Example: bipedsim export runs/first -o first.csv",
    )
    export.add_argument("recording", type=Path, help="folder of a run or bag, .mcap or .npz")
    export.add_argument(
        "-o", "--output", type=Path, metavar="CSV", help="table to write (default: beside the recording)"
    )
    export.set_defaults(function=_export)


def _export(args: argparse.Namespace) -> int:
    from bipedsim.analysis import load_run
    from bipedsim.cli.options import output_beside
    from bipedsim.recording import export_csv

    output = output_beside(args.recording, args.output, ".csv")
    export_csv(load_run(args.recording), output)
    print(f"wrote {output}")
    return 0


def _add_robots(commands: Any) -> None:
    robots = commands.add_parser(
        "robots",
        help="list the robots that can be named",
        description="List the robots that come with the package, with joints and mass, and those that are not "
        "available here and why. Example: bipedsim robots, then bipedsim run --robot talos",
    )
    robots.add_argument("--json", action="store_true", help="print as JSON")
    robots.set_defaults(function=_robots)


def _robots(args: argparse.Namespace) -> int:
    from bipedsim.model import ROBOTS, load_robot

    rows: list[dict[str, Any]] = []
    for name in ROBOTS:
        try:
            robot = load_robot(name)
        except ConfigError as error:
            rows.append({"name": name, "error": str(error)})
            continue
        rows.append(
            {
                "name": name,
                "joints": robot.nu,
                "mass_kg": round(robot.mass, 3),
                "feet": [f"{sole.name} ({len(sole.vertices)} vertices)" for sole in robot.soles],
                "description": robot.description,
                "file": str(robot.source),
            }
        )
    if args.json:
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        if "error" in row:
            print(f"{row['name']:12} not available: {row['error']}")
        else:
            print(f"{row['name']:12} {row['joints']:3} joints {row['mass_kg']:8.2f} kg  {row['description']}")
    print("your own: --robot path/to/robot.yaml (docs/robots.md)")
    return 0


def _add_reproduce(commands: Any) -> None:
    from bipedsim_studies.reproduce import PAPERS

    reproduce = commands.add_parser(
        "reproduce",
        help="repeat the experiments of a paper: figures it must meet, and pictures",
        description="Repeat the experiments of a paper and print what was measured beside what it must be. Returns 1 "
        "if a figure is missed. docs/reproduce.md says what each case shows.",
    )
    reproduce.add_argument("paper", help=", ".join(PAPERS))
    reproduce.add_argument("case", nargs="*", help="which cases, such as fig6 (default: all)")
    reproduce.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where pictures go (default: runs/reproduce/PAPER)"
    )
    reproduce.add_argument("--json", action="store_true", help="print the figures as JSON and nothing else")
    reproduce.set_defaults(function=_reproduce)


def _reproduce(args: argparse.Namespace) -> int:
    from bipedsim_studies.reproduce import get_paper, reproduce

    output = args.output or Path("runs", "reproduce", args.paper)
    progress = not args.json and sys.stderr.isatty()
    result = reproduce(get_paper(args.paper), args.case, output, progress, quiet=args.json)
    if args.json:
        print(json.dumps(result, indent=2))
    elif not result["ok"]:
        missed = ", ".join(name for name, case in result["cases"].items() if not case["ok"])
        print(f"bipedsim reproduce: figures missed in {missed}", file=sys.stderr)
    return 0 if result["ok"] else EXIT_FAILED


def _add_compare(commands: Any) -> None:
    from bipedsim_studies.compare import command

    compare = commands.add_parser(
        "compare",
        help="run the same under all contact models, figures side by side",
        description="Run the same robot, controller and scenario under several contact models and print forces, CoP, "
        "penetration, creep, energies and step times side by side. Returns 1 if a model fails; the others go on. "
        "docs/compare.md defines every figure.",
    )
    command.add_arguments(compare)


def _add_push_map(commands: Any) -> None:
    from bipedsim_studies.push_map import command

    push_map = commands.add_parser(
        "push-map",
        help="find the largest push that a robot recovers from, standing and walking",
        description="Bisect headless runs for the largest impulse after which the robot stays on its feet, in several "
        "directions, and draw it beside what the support allows in theory. docs/push_map.md says how.",
    )
    command.add_arguments(push_map)


def _add_margins(commands: Any) -> None:
    from bipedsim_studies.feasibility import command

    margins = commands.add_parser(
        "margins",
        help="how close each foot of a run was to slipping, tipping and lifting",
        description="Find the conditions on torques for the contacts of a run to stay as they are, and those on the "
        "velocity before every touch-down, and compare with what happened. docs/stability.md explains every figure.",
    )
    command.add_arguments(margins)


def _add_poincare(commands: Any) -> None:
    from bipedsim_studies.stability import command

    poincare = commands.add_parser(
        "poincare",
        help="find the gait of a walker, whether it is stable, from where it is reached, and over which slopes",
        description="Take one step as a map: its fixed point by Newton, its multipliers by differences, random starts "
        "around it, and the gait over slopes with its period doublings. docs/stability.md says how.",
    )
    command.add_arguments(poincare)


def _add_warmup(commands: Any) -> None:
    warmup = commands.add_parser(
        "warmup",
        help="compile the kernels into the cache, so that later starts are quick",
        description="Compile the kernels of all contact models and controllers into the cache of numba, on all cores. "
        "Once after installing is enough. Example: bipedsim warmup",
    )
    warmup.set_defaults(function=_warmup)


def _warmup(args: argparse.Namespace) -> int:
    from bipedsim.cli.warmup import warm_up

    for done, total, what in warm_up():
        print(f"[{done}/{total}] {what}: kernels ready", flush=True)
    return 0


def _add_bench(commands: Any) -> None:
    from bipedsim_studies.bench import command

    bench = commands.add_parser(
        "bench",
        help="compare step time, creep and rest forces with other engines",
        description="Measure step time, stiction and accuracy of our contact models and of the other engines that are "
        "installed, alternately, on one core.",
    )
    command.add_arguments(bench)


class Parser(argparse.ArgumentParser):
    """The parser of the command line and of each command; says which of the choices was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and exit."""
        wrong = re.search(r"invalid choice: '([^']*)'(?= \(choose from (.*)\))", message)
        meant = wrong and closest(wrong[1], re.findall(r"[\w.-]+", wrong[2]))
        if wrong and meant:
            message = f"{message[: wrong.end()]}; did you mean {meant!r}?{message[wrong.end() :]}"
        super().error(message)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = Parser(
        prog="bipedsim",
        description="Simulate two-legged robots with feet that stick, with your controller in the loop.",
    )
    parser.add_argument("--version", action="version", version=f"bipedsim {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (
        _add_run,
        _add_up,
        _add_teleop,
        _add_control,
        _add_check_robot,
        _add_plot,
        _add_animate,
        _add_modes,
        _add_export,
        _add_robots,
        _add_scenarios,
        _add_reproduce,
        _add_compare,
        _add_push_map,
        _add_margins,
        _add_poincare,
        _add_bench,
        _add_warmup,
    ):
        add(commands)
    return parser
