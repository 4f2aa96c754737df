"""Write the files of ros2_control for a robot: ``bipedsim ros2-control``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli.waiting import waiting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("robot", help="name of a robot, its robot.yaml, or a URDF, xacro or MJCF file")
    parser.add_argument("folder", type=Path, help="folder for the URDF and controllers.yaml; old ones are replaced")


def main(args: argparse.Namespace) -> int:
    """Write the URDF with its ``<ros2_control>`` element, and controllers.yaml."""
    from bipedsim.descriptions import write_ros2_control
    from bipedsim.model import load_robot

    with waiting(f"reading {args.robot}"):
        robot = load_robot(args.robot)
    urdf, yaml = write_ros2_control(robot, args.folder)
    print(f"wrote {urdf}: {robot.nu} joints with position, velocity and effort")
    print(f"wrote {yaml}")
    print(f"start the simulator: bipedsim up --robot {args.robot} --controller topic_based (docs/ros2_control.md)")
    return 0
