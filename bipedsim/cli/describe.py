"""Describe a robot: ``bipedsim describe``."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from bipedsim.cli.waiting import waiting
from bipedsim.config import to_json
from bipedsim.errors import EXIT_FAILED, EXIT_OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("robot", help="name of a robot, its robot.yaml, or a URDF, xacro or MJCF file")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the robot and its soles under its feet")
    parser.add_argument(
        "--view", action="store_true", help="show the robot in the browser, with a slider for each joint, until Ctrl-C"
    )
    parser.add_argument("--json", action="store_true", help="print only the warnings, as JSON")


def main(args: argparse.Namespace) -> int:
    """Describe and draw a robot; the exit code is 0 if it loads."""
    from bipedsim.descriptions import describe

    with waiting(f"reading {args.robot}", not args.json):
        description = describe(args.robot)
    if args.json:
        print(
            to_json({"robot": args.robot, "loads": description.robot is not None, "doubts": list(description.doubts)})
        )
    elif description.robot is None:
        print(f"{args.robot} does not load:\n" + "\n".join(f"- {text}" for text in description.doubts))
    else:
        print(description.text, end="")
    if args.plot and description.robot is not None:
        from bipedsim.view import draw_robot

        draw_robot(description.robot, args.plot)
        if not args.json:
            print(f"\nwrote {args.plot}")
    if args.view and description.robot is not None:
        from bipedsim.view.page import PosturePage

        shown = PosturePage(description.robot)
        print(f"{description.robot.name}: {shown.page.address} (Ctrl-C ends)", flush=True)
        webbrowser.open(shown.page.address)
        shown.wait()
    return EXIT_OK if description.robot is not None else EXIT_FAILED
