"""Steer a walking robot with the keyboard of a terminal (``bipedsim teleop``)."""

from __future__ import annotations

import argparse
from pathlib import Path

from bipedsim.cli import add_option
from bipedsim_ros.bringup.bringup import Arguments
from bipedsim_ros.bringup.processes import ros_arguments
from bipedsim_ros.live import HELP
from bipedsim_ros.wire import join_graph, topics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``bipedsim teleop`` to its parser."""
    parser.epilog = HELP
    add_option(parser, Arguments, "params_file")
    parser.add_argument("--topic", default=topics.VELOCITY.name, help="where to publish (default: %(default)s)")


def main(args: argparse.Namespace) -> int:
    """Run ``bipedsim teleop`` with parsed arguments and return its exit code.

    Raises:
        ConfigError: rclpy is not installed.
    """
    join_graph()
    from bipedsim_ros.nodes import teleop_node

    files = [Path(args.params_file)] if args.params_file else []
    return teleop_node.main(ros_arguments(remappings=[(topics.VELOCITY.name, args.topic)], params_files=files))
