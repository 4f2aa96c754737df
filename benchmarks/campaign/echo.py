"""Print every message of some topics of a robot until a signal, as `ros2 topic echo` does in three terminals."""

from __future__ import annotations

import signal
import sys

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

TOPICS = {"joint_states": JointState, "left_foot/wrench": WrenchStamped, "diagnostics": DiagnosticArray}


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
        node.create_subscription(kind, topic, print, qos_profile_sensor_data)
    while running:
        rclpy.spin_once(node, timeout_sec=0.5)
    node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
