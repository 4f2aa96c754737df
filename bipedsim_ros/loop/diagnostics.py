"""A status on /diagnostics (REP-107), as every node tells one of itself once a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node


def publish_status(
    node: Node, publisher: Any, name: str, level: bytes, message: str, values: Mapping[str, Any], hardware_id: str = ""
) -> None:
    """Publish a status, stamped now, where somebody listens.

    Args:
        node: Whose clock stamps it.
        publisher: Of /diagnostics.
        name: What it is of.
        level, message: How it is, one of DiagnosticStatus' levels, and in words.
        values: What was counted.
        hardware_id: Robot that it is about.
    """
    if not publisher.get_subscription_count():
        return
    pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    status = DiagnosticStatus(name=name, level=level, message=message, hardware_id=hardware_id, values=pairs)
    array = DiagnosticArray(status=[status])
    array.header.stamp = node.get_clock().now().to_msg()
    publisher.publish(array)
