"""Check for other robots in the ROS graph: two on one domain receive each other's commands and states.

As a program, this module prints the robots in the graph, for a launch that is about to start another one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import rclpy
from rclpy.node import Node

from bipedsim_ros.wire import NAMING_S, NO_NAME, UNNAMED, WHERE, participants, relative, topics

# Participants that miss each other's first announcements receive the next ones, which Fast DDS sends every 3 s.
DISCOVERY_S = 3.5
"""Time after which a node knows the other nodes [s]."""
COMING = (
    "sim_node is up, and begins when its kernels are loaded. A simulator that starts for the first time compiles them. "
    "This takes about a minute, and longer on a busy machine"
)
"""Text for a simulator that is about to begin."""


def duplicate_nodes(node: Node, names: Sequence[str]) -> str:
    """Return a warning with a remedy if several nodes publish one of these topics; else an empty text."""
    for topic in map(relative, names):
        if node.count_publishers(topic) > 1:
            nodes = sorted(info.node_name for info in node.get_publishers_info_by_topic(topic))
            return (
                f"{len(nodes)} nodes publish {node.resolve_topic_name(topic)} ({', '.join(nodes)}): another robot or "
                f"controller is on ROS domain {node.context.get_domain_id()}; give one of them a namespace or a "
                "ROS_DOMAIN_ID of its own, or stop it. One that was killed on another machine stays for 20 s"
            )
    return ""


def robots_beside(node: Node) -> list[str]:
    """Return the nodes that are, or are about to be, a robot in the namespace of ``node``.

    These are the publishers of joint states and nodes called sim_node.
    """
    publishers = node.get_publishers_info_by_topic(relative(topics.JOINT_STATES.name))
    here = ("sim_node", node.get_namespace())
    simulators = {here[0]} if here in node.get_node_names_and_namespaces() else set()
    return sorted(simulators | {info.node_name for info in publishers})


def is_simulator_coming(node: Node) -> bool:
    """Return whether a simulator in the namespace of ``node`` is about to begin, or has begun."""
    return "sim_node" in robots_beside(node)


def where_is_it(node: Node) -> str:
    """Return advice for missing joint states: how to find a robot, or that a simulator is about to begin."""
    if is_simulator_coming(node):
        return COMING
    own = node.resolve_topic_name(relative(topics.JOINT_STATES.name))
    elsewhere = []
    for name, _ in sorted(node.get_topic_names_and_types()):
        if name.endswith(topics.JOINT_STATES.name) and name != own and node.count_publishers(name):
            namespace = name.removesuffix(topics.JOINT_STATES.name)[1:]
            elsewhere.append(f"{name} ({f'--namespace {namespace}' if namespace else 'no --namespace'})")
    return f"there is one on {', '.join(elsewhere)}. Else {WHERE}" if elsewhere else WHERE


def main() -> int:
    """Print the robots in the ROS graph in one line, as soon as one is found; return 0."""
    rclpy.init(args=["", *sys.argv[1:], "--ros-args", "--disable-external-lib-logs"])
    node = Node("bipedsim_up", enable_rosout=False, start_parameter_services=False)
    start = time.monotonic()
    while not (robots := robots_beside(node)) or UNNAMED in robots:
        count = participants(node.context.get_domain_id())
        waited = time.monotonic() - start
        if waited > (NAMING_S if robots else DISCOVERY_S):
            break
        if count > 1 and len(node.get_node_names()) >= count and not robots:
            break
        time.sleep(0.02)
    print(", ".join(robots).replace(UNNAMED, NO_NAME))
    node.destroy_node()
    rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
