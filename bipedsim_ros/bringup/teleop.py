"""Steer a walking robot with the keyboard of a terminal (``bipedsim teleop``)."""

from __future__ import annotations

import argparse
from dataclasses import fields

from bipedsim_ros.bringup.processes import ros_arguments
from bipedsim_ros.live import HELP, TeleopParams
from bipedsim_ros.wire import add_network_option, join_graph, topics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``bipedsim teleop`` to its parser."""
    parser.epilog = HELP
    for info in fields(TeleopParams):
        text = f"{info.metadata['doc']} (default: %(default)s)"
        option, unit = f"--{info.name.replace('_', '-')}", info.metadata["unit"].upper()
        parser.add_argument(option, type=float, default=info.default, metavar=unit, help=text)
    add_network_option(parser)
    parser.add_argument("--topic", default=topics.VELOCITY.name, help="where to publish (default: %(default)s)")


def main(args: argparse.Namespace) -> int:
    """Run ``bipedsim teleop`` with parsed arguments and return its exit code.

    Raises:
        ConfigError: rclpy is not installed.
    """
    join_graph(args.network)
    from bipedsim_ros.nodes import teleop_node

    parameters = {info.name: getattr(args, info.name) for info in fields(TeleopParams)}
    return teleop_node.main(ros_arguments("", [(topics.VELOCITY.name, args.topic)], parameters))
