"""What the command ``bipedsim`` can do: its parser, and a function for each command."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from bipedsim import __version__
from bipedsim.cli import EXIT_FAILED
from bipedsim.errors import ConfigError


def _add_run(commands: Any) -> None:
    from bipedsim.options import add_run_options

    run = commands.add_parser(
        "run",
        help="simulate without ROS, as fast as it goes",
        description="Simulate a robot under a controller, without ROS, and report the ground reaction forces.",
    )
    add_run_options(run)
    run.add_argument("--contact-model", default="one_step", help="contact model (default: %(default)s)")
    run.add_argument(
        "--contact-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of the contact model; repeatable",
    )
    run.add_argument(
        "--output", type=Path, metavar="FILE", help="write the run to this .npz, for `bipedsim plot` and `export`"
    )
    run.add_argument("--plot", type=Path, metavar="PNG", help="write the picture of the forces")
    run.add_argument("--json", action="store_true", help="print the summary as JSON and nothing else")
    run.set_defaults(function=_run)


def _run(args: argparse.Namespace) -> int:
    from bipedsim.analysis.feet import lifts
    from bipedsim.analysis.figures import summary_lines
    from bipedsim.options import key_values, run_settings
    from bipedsim.runner import SETTLE, run_headless

    if args.output and args.output.suffix != ".npz":
        raise ConfigError(f"--output {args.output}: a run is a .npz file; `bipedsim export` makes a table of it")
    settings = replace(
        run_settings(args),
        contact_model=args.contact_model,
        contact_params=key_values(args.contact_set, "--contact-set"),
    )
    recording, summary = run_headless(settings, progress=not args.json and sys.stderr.isatty())
    if args.output:
        recording.save(args.output)
    if args.plot:
        from bipedsim.plotting import plot

        plot(recording, args.plot)
    if args.json:
        print(json.dumps(summary))
        return 0
    # How far the feet of a robot that steps are from where they began says nothing.
    steps = lifts(recording, SETTLE)
    print("\n".join(summary_lines(summary, hidden=("foot_drift_m",) if steps else ())))
    for path in (args.output, args.plot):
        if path:
            print(f"wrote {path}")
    return 0


def _add_scenarios(commands: Any) -> None:
    scenarios = commands.add_parser("scenarios", help="list the scenarios that can be named")
    scenarios.set_defaults(function=_scenarios)


def _scenarios(args: argparse.Namespace) -> int:
    from bipedsim.scenarios import SCENARIOS

    for name, scenario in SCENARIOS.items():
        print(f"{name:12} {scenario.controller:10} {scenario.description}")
    print("your own: --scenario path/to/scenario.yaml (docs/scenarios.md)")
    return 0


def _add_up(commands: Any) -> None:
    from bipedsim_ros import bringup

    up = commands.add_parser(
        "up",
        help="start simulator, controller and recorder as ROS 2 nodes",
        description="Start the nodes of a bring-up as processes of their own: what `ros2 launch bipedsim` does, "
        "where the launch package is not installed.",
    )
    bringup.add_arguments(up)
    up.set_defaults(function=bringup.main)


def _add_teleop(commands: Any) -> None:
    from bipedsim_ros import teleop

    parser = commands.add_parser(
        "teleop",
        help="steer a walking robot by the keyboard",
        description="Publish velocity commands, ten times a second, as the keyboard asks for. " + teleop.HELP,
    )
    teleop.add_arguments(parser)
    parser.set_defaults(function=teleop.run_arguments)


def _add_control(commands: Any) -> None:
    from bipedsim_ros import robot_bringup

    control = commands.add_parser(
        "control",
        help="start the controller alone, for a robot that is already up",
        description="Start a controller, and a recorder if wanted, beside a robot that is already up: what `ros2 "
        "launch bipedsim robot.launch.py` does, where the launch package is not installed. It runs until Ctrl-C.",
    )
    robot_bringup.add_arguments(control)
    control.set_defaults(function=robot_bringup.main)


def _add_check_robot(commands: Any) -> None:
    from bipedsim_ros import check_robot

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
    plot = commands.add_parser("plot", help="draw a bag or a run: forces, CoP, contact modes, torques")
    plot.add_argument("recording", type=Path, help="bag folder, .mcap or .npz")
    plot.add_argument(
        "-o", "--output", type=Path, metavar="PNG", help="picture to write (default: beside the recording)"
    )
    plot.add_argument("--panels", nargs="+", metavar="PANEL", help="which panels to draw (default: all)")
    plot.set_defaults(function=_plot)


def _output(args: argparse.Namespace, suffix: str) -> Path:
    """Return where to write, which is beside the recording by default and never the recording itself.

    Raises:
        ConfigError: The output has the name of a recording.
    """
    recording: Path = args.recording
    output: Path = args.output or recording.with_name(recording.stem + suffix)
    if output.suffix in (".npz", ".mcap", ".yaml") or output.resolve() == recording.resolve():
        raise ConfigError(f"--output {output}: this would overwrite a recording; give a name that ends in {suffix}")
    return output


def _plot(args: argparse.Namespace) -> int:
    from bipedsim.plotting import plot
    from bipedsim.recording import Recording

    output = _output(args, ".png")
    plot(Recording.load(args.recording), output, **({"panels": args.panels} if args.panels else {}))
    print(f"wrote {output}")
    return 0


def _add_modes(commands: Any) -> None:
    from bipedsim.analysis.gait_modes import command

    modes = commands.add_parser(
        "modes",
        help="what each foot did in a bag or a run, and which gait that is: walking, hopping, running",
        description="Print the discrete states of a run (each foot sticks, slides, is detached, or meets the ground), "
        "the transitions between them, the gait, its cycle, and the invariant sets that the run was in. "
        "docs/stability.md says how they are defined.",
    )
    command.add_arguments(modes)


def _add_export(commands: Any) -> None:
    export = commands.add_parser("export", help="write a bag or a run as CSV, one row per tick")
    export.add_argument("recording", type=Path, help="bag folder, .mcap or .npz")
    export.add_argument(
        "-o", "--output", type=Path, metavar="CSV", help="table to write (default: beside the recording)"
    )
    export.set_defaults(function=_export)


def _export(args: argparse.Namespace) -> int:
    from bipedsim.recording import Recording
    from bipedsim.recording_csv import export_csv

    output = _output(args, ".csv")
    export_csv(Recording.load(args.recording), output)
    print(f"wrote {output}")
    return 0


def _add_robots(commands: Any) -> None:
    robots = commands.add_parser("robots", help="list the robots that can be named")
    robots.add_argument("--json", action="store_true", help="print as JSON")
    robots.set_defaults(function=_robots)


def _robots(args: argparse.Namespace) -> int:
    from bipedsim.robot import load_robot, robot_names
    from bipedsim.robots import WALKERS

    rows: list[dict[str, Any]] = []
    for name in (*robot_names(), *WALKERS):
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
    from bipedsim.reproduce import PAPERS

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
    from bipedsim.reproduce import get_paper
    from bipedsim.reproduce.common import reproduce

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
    from bipedsim.compare import command

    compare = commands.add_parser(
        "compare",
        help="run the same under all contact models, figures side by side",
        description="Run the same robot, controller and scenario under several contact models and print forces, CoP, "
        "penetration, creep, energies and step times side by side. Returns 1 if a model fails; the others go on. "
        "docs/compare.md defines every figure.",
    )
    command.add_arguments(compare)


def _add_push_map(commands: Any) -> None:
    from bipedsim.pushmap import command

    push_map = commands.add_parser(
        "push-map",
        help="find the largest push that a robot recovers from, standing and walking",
        description="Bisect headless runs for the largest impulse after which the robot stays on its feet, in several "
        "directions, and draw it beside what the support allows in theory. docs/push_map.md says how.",
    )
    command.add_arguments(push_map)


def _add_margins(commands: Any) -> None:
    from bipedsim.feasibility import command

    margins = commands.add_parser(
        "margins",
        help="how close each foot of a run was to slipping, tipping and lifting",
        description="Find the conditions on torques for the contacts of a run to stay as they are, and those on the "
        "velocity before every touch-down, and compare with what happened. docs/stability.md explains every figure.",
    )
    command.add_arguments(margins)


def _add_poincare(commands: Any) -> None:
    from bipedsim.stability import command

    poincare = commands.add_parser(
        "poincare",
        help="find the gait of a walker, whether it is stable, from where it is reached, and over which slopes",
        description="Take one step as a map: its fixed point by Newton, its multipliers by differences, random starts "
        "around it, and the gait over slopes with its period doublings. docs/stability.md says how.",
    )
    command.add_arguments(poincare)


def _add_warmup(commands: Any) -> None:
    warmup = commands.add_parser("warmup", help="compile the kernels into the cache, so that later starts are quick")
    warmup.set_defaults(function=_warmup)


def _warmup(args: argparse.Namespace) -> int:
    from bipedsim.warmup import warm_up

    for done, total, what in warm_up():
        print(f"[{done}/{total}] {what}: kernels ready", flush=True)
    return 0


def _add_bench(commands: Any) -> None:
    from bipedsim.bench import command

    bench = commands.add_parser(
        "bench",
        help="compare step time, creep and rest forces with other engines",
        description="Measure step time, stiction and accuracy of our contact models and of the other engines that are "
        "installed, alternately, on one core.",
    )
    command.add_arguments(bench)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
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
