"""Implement the command ``bipedsim margins``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli import add_recorded, add_span
from bipedsim_studies.study import add_output, output, shows_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("recording", type=Path, help="bag folder, .mcap, .npz or .csv of a simulated run")
    add_recorded(parser)
    parser.add_argument(
        "--every", type=int, default=10, metavar="N", help="evaluate every Nth row, and all touchdowns (default: 10)"
    )
    add_span(parser)
    add_output(parser)


def main(args: argparse.Namespace) -> int:
    """Compute the margins of a recording and print them."""
    from bipedsim.analysis import load_run, robot_of
    from bipedsim.ground import get_ground
    from bipedsim.model import load_robot
    from bipedsim.view.animation import ground_of
    from bipedsim_studies.feasibility.margins import run_margins
    from bipedsim_studies.feasibility.report import as_json, as_text, plot
    from bipedsim_studies.feasibility.states import recorded_states
    from bipedsim_studies.feasibility.touchdowns import touch_downs

    recording = load_run(args.recording, start=args.start, stop=args.stop)
    robot = load_robot(args.robot) if args.robot else robot_of(recording)
    ground_name = args.ground or recording.about.get("ground") or "flat"
    ground = get_ground(args.ground) if args.ground else ground_of(recording)
    progress = shows_progress(args)
    states = recorded_states(recording, robot, progress)
    margins = run_margins(recording, robot, ground, args.every, states=states, progress=progress)
    landings = touch_downs(recording, robot, ground, states)
    title = f"{robot.name} on {ground_name}: margins of the feet"
    output(
        args,
        lambda: as_json(margins, landings),
        lambda: as_text(margins, landings),
        lambda path: plot(margins, landings, title, path),
    )
    return 0
