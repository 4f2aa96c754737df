"""Print every message of some topics of a robot until a signal, as `ros2 topic echo` does in three terminals.

Lines on stderr contain the times at which the reader was ready, and at which joint states came after a silence.
"""

from __future__ import annotations

import signal
import sys
import time

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

TOPICS = {"joint_states": JointState, "left_foot/wrench": WrenchStamped, "diagnostics": DiagnosticArray}

SILENCE_S = 1.0
"""Time without joint states that counts as a silence [s]."""


class Reader:
    """Prints joint states, and when they come after a silence."""

    def __init__(self) -> None:
        self._last = 0.0

    def read(self, message: JointState) -> None:
        """Print a message."""
        now = time.time()
        if now - self._last > SILENCE_S:
            print(f"data {now}", file=sys.stderr, flush=True)
        self._last = now
        print(message)


def main() -> int:
    """Echo the topics; return 0."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    running = True

    def end(_number: int, _frame: object) -> None:
        nonlocal running
        running = False

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    node = rclpy.create_node("echo")
    for topic, kind in TOPICS.items():
        act = Reader().read if kind is JointState else print
        node.create_subscription(kind, topic, act, qos_profile_sensor_data)
    print(f"ready {time.time()}", file=sys.stderr, flush=True)
    while running:
        rclpy.spin_once(node, timeout_sec=0.5)
    node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
