"""Whether a robot is alone in its ROS graph: two of them on one domain take each other's commands and states."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.node import Node


def duplicate_nodes(node: Node, topics: Sequence[str]) -> str:
    """Return what is wrong where several nodes publish one of ``topics``, and the way out; else an empty text."""
    for topic in topics:
        names = sorted(info.node_name for info in node.get_publishers_info_by_topic(topic))
        if len(names) > 1:
            return (
                f"{len(names)} nodes publish {topic} ({', '.join(names)}): another robot or controller is on ROS "
                f"domain {node.context.get_domain_id()}; give one of them a ROS_DOMAIN_ID of its own, or stop it"
            )
    return ""
