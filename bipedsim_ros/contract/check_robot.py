"""Check whether a robot, live or in a bag, fulfils the contract of a controller (``bipedsim check-robot``).

The command only subscribes. It publishes nothing and sends no commands.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bipedsim.cli import add_option, chosen, topic_pairs
from bipedsim.config import RunConfig, from_mapping, like, param, read_yaml, to_json
from bipedsim.errors import EXIT_FAILED, EXIT_INCOMPLETE, EXIT_OK, ConfigError
from bipedsim_ros.contract.check import check
from bipedsim_ros.contract.evidence import Evidence, evidence_of_bag
from bipedsim_ros.contract.finding import all_ok, as_dict, table
from bipedsim_ros.contract.measurements import STANDING, STATES
from bipedsim_ros.contract.robot_contract import TAKES, Contract, robot_contract
from bipedsim_ros.loop import SimParams, wrong_sign
from bipedsim_ros.wire import WHERE, join_graph, topics


@dataclass(frozen=True)
class ControllerTopics:
    """Parameters of controller_node that the topics of a robot must match."""

    rate: float = like(RunConfig, "rate")
    ft_sign: float = like(SimParams, "ft_sign")
    joints: tuple[str, ...] = param((), "order of the joints in the command; the robot's own by default")

    def problems(self) -> Iterator[ConfigError]:
        """Yield an error message for each invalid field."""
        yield from wrong_sign(self.ft_sign)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bipedsim check-robot`` to its parser."""
    parser.add_argument("robot", metavar="ROBOT", help="name of the robot (`bipedsim robots`) or path of a robot.yaml")
    parser.add_argument(
        "--bag", type=Path, help="check this bag (its folder, that of its run, or .mcap) and not the live graph"
    )
    parser.add_argument(
        "--state",
        default=STANDING,
        choices=STATES,
        help="what the robot does meanwhile; signs and units of IMU and wrenches show while it stands still on level "
        "ground (default: %(default)s)",
    )
    parser.add_argument(
        "--params-file",
        type=Path,
        metavar="FILE",
        help="YAML file with ROS parameters of controller_node: rate, ft_sign and joints (default: its own)",
    )
    add_option(parser, ControllerTopics, "rate", "of the controller; overrides the file")
    parser.add_argument(
        "--remap",
        action="append",
        default=[],
        metavar="TOPIC:=OTHER",
        help="where the robot has another name for a topic; repeatable",
    )
    parser.add_argument(
        "--takes", default="effort", choices=tuple(TAKES), help="kind of the robot's commands (default: %(default)s)"
    )
    parser.add_argument("--namespace", default="", metavar="NAME", help="of the robot's topics, such as r1")
    parser.add_argument(
        "--duration", type=float, default=5.0, metavar="S", help="how long to listen or read (default: %(default)g)"
    )
    parser.add_argument(
        "--begin", type=float, default=0.0, metavar="S", help="of a bag: where to begin to read (default: %(default)g)"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Check a robot and print the findings.

    Returns:
        0 if all is as expected, 1 if something differs or is missing, 3 for a damaged bag.

    Raises:
        BipedSimError: An argument is invalid, or the bag cannot be read.
    """
    from bipedsim.model import load_robot

    if not 0.0 < args.duration < math.inf:
        raise ConfigError(f"--duration {args.duration:g} must be positive and finite")
    if not math.isfinite(args.begin):
        raise ConfigError(f"--begin {args.begin:g} must be finite")
    own = _controller_topics(args.params_file, chosen(args, ControllerTopics))
    names = topic_pairs(args.remap, f"{topics.IMU.name}:=/torso_imu/imu")
    contract = robot_contract(
        load_robot(args.robot), own.rate, own.ft_sign, own.joints, names, args.takes, args.namespace
    )
    if args.bag is not None:
        evidence = evidence_of_bag(args.bag, contract, args.begin, args.duration)
    else:
        evidence = _live(contract, args.duration)
    findings = check(contract, evidence, args.state)
    if args.json:
        print(to_json(as_dict(findings, contract.robot.name, evidence.source)))
    elif evidence.no_robot(contract):
        listed = ", ".join(topic.found_as for topic in contract.sensors)
        print(f"{contract.robot.name}, {evidence.source}\n\nno robot is up: no node publishes {listed}\n  -> {WHERE}")
    elif (held := evidence.held_time(contract)) is not None:
        print(
            f"{contract.robot.name}, {evidence.source}\n\nno value can be compared: time stands at {held:g} s in all "
            "measurements\n  -> a simulator holds the robot there until the first command, or is paused: "
            "start a controller (bipedsim control), or end the pause, and check again"
        )
    else:
        print(table(findings, f"{contract.robot.name}, {evidence.source}"))
    if evidence.incomplete:
        return EXIT_INCOMPLETE
    return EXIT_OK if all_ok(findings) else EXIT_FAILED


def _controller_topics(path: Path | None, options: Mapping[str, Any]) -> ControllerTopics:
    """Return the parameters of controller_node in a file with ROS parameters; the options override them.

    Raises:
        ConfigError: The file is missing, or a value is invalid.
    """
    values: dict[str, Any] = {}
    for key, section in read_yaml(path).items() if path is not None else ():
        if str(key).rpartition("/")[2] in ("**", "controller_node") and isinstance(section, Mapping):
            values |= section.get("ros__parameters") or {}
    values |= options
    names = ControllerTopics.__dataclass_fields__
    return from_mapping(ControllerTopics, {name: values[name] for name in names if name in values}, "controller_node")


def _live(contract: Contract, duration: float) -> Evidence:
    join_graph("; --bag needs no ROS")
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    from bipedsim_ros.contract.robot_watch import watch

    context = rclpy.Context()
    # The command line handles Ctrl-C.
    rclpy.init(context=context, args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("check_robot", context=context, enable_rosout=False)
    try:
        return watch(node, contract, duration)
    finally:
        node.destroy_node()
        context.try_shutdown()
