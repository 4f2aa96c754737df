"""Shared code of the tests of sim_node: commands to it, and the content of its messages and statistics."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ros_support import RosWorld
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

COMMANDS = "/effort_controller/commands"


def time_of(message: Any) -> float:
    return float(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec)


def moving(states: list[JointState]) -> Callable[[], bool]:
    """Return whether the physics has begun, as a condition to wait for."""
    return lambda: bool(states) and time_of(states[-1]) > 0.0


def statistics(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


class Commander:
    """Publishes commands from the test."""

    def __init__(self, world: RosWorld, qos: Any = 1, topic: str = COMMANDS) -> None:
        self.world = world
        self.publisher = world.node.create_publisher(Float64MultiArray, topic, qos)

    def send(self, tau: list[float], taken: Callable[[], Any]) -> None:
        """Send a command until ``taken`` holds.

        The subscription is best effort. It discovers the publisher 0.1 s later than the publisher discovers it, or more
        on a busy machine, and loses earlier messages.
        """
        if not self.publisher.get_subscription_count():
            self.world.connected(self.publisher)
            self.world.spin(taken, 0.2)
        while not taken():
            self.publisher.publish(Float64MultiArray(data=tau))
            self.world.spin(taken, 5.0)
