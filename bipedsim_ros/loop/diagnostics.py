"""Publish a node's status on /diagnostics (REP-107), as every node does once a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node


def status_of(
    name: str, level: bytes, message: str, values: Mapping[str, Any], hardware_id: str = ""
) -> DiagnosticStatus:
    """Return a status; the values of a mapping become several values, such as ``round_trip_us.p50``."""
    pairs = []
    for key, value in values.items():
        entries = {f"{key}.{part}": entry for part, entry in value.items()} if isinstance(value, dict) else {key: value}
        pairs += [KeyValue(key=path, value=str(entry)) for path, entry in entries.items()]
    return DiagnosticStatus(name=name, level=level, message=message, hardware_id=hardware_id, values=pairs)


def publish_status(
    node: Node, publisher: Any, name: str, level: bytes, message: str, values: Mapping[str, Any], hardware_id: str = ""
) -> None:
    """Publish a status, stamped with the current time, if a node subscribes.

    Args:
        node: Node whose clock stamps the message.
        publisher: Publisher of /diagnostics.
        name: Name of the status.
        level, message: Level (a constant of DiagnosticStatus) and its explanation.
        values: Counted values.
        hardware_id: Robot that the status describes.
    """
    if not publisher.get_subscription_count():
        return
    array = DiagnosticArray(status=[status_of(name, level, message, values, hardware_id)])
    array.header.stamp = node.get_clock().now().to_msg()
    publisher.publish(array)
