"""Steer a walking robot with the keyboard, on /cmd_vel (``teleop_node`` and ``bipedsim teleop``).

Some keys are buttons of a vendor's remote control, on /remote.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence

from rclpy.duration import Duration
from std_msgs.msg import String

from bipedsim.runs import PERIOD_NS, PlanarVelocity
from bipedsim_ros.live import HELP, Steering, TeleopParams
from bipedsim_ros.nodes.duplicate_nodes import DISCOVERY_S
from bipedsim_ros.nodes.key_terminal import KeyTerminal
from bipedsim_ros.nodes.node_main import NodeProgram, run_node
from bipedsim_ros.wire import TwistWriter, publisher, topics

_GOODBYE = Duration(seconds=1)


class TeleopNode(NodeProgram):
    """Publishes the velocity from the keyboard ten times per second.

    Raises:
        ConfigError: A parameter is invalid, or standard input is not a terminal.
    """

    def __init__(self) -> None:
        super().__init__("teleop_node")
        node, parameters = self._node, self._parameters
        self._steering = Steering(parameters.declare(TeleopParams))
        parameters.refuse_unknown()
        self._terminal = KeyTerminal(sys.stdin.fileno())
        self._publisher = publisher(node, topics.VELOCITY)
        self._remote = publisher(node, topics.REMOTE)
        self._writer = TwistWriter()
        self._knows_at = time.monotonic() + DISCOVERY_S

    def run(self) -> int:
        """Steer until a key, a signal or the end of the terminal; then stop the robot. Return the exit code."""
        for number in (signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda _number, _frame: self.stop())
        print(f"{self._publisher.topic_name}: {HELP}")
        due = time.monotonic()
        try:
            with self._terminal as terminal:
                while not (self._stop or self._steering.ended):
                    self._publish(self._steering.velocity)
                    due = max(due + 1e-9 * PERIOD_NS, time.monotonic())
                    while not self._stop and (remaining := due - time.monotonic()) > 0.0:
                        self._steering.press(terminal.read(remaining))
                        while self._steering.buttons:
                            self._remote.publish(String(data=self._steering.buttons.pop(0)))
                    self._show()
        except EOFError:
            pass
        finally:
            self._publish((0.0, 0.0, 0.0))
            self._publisher.wait_for_all_acked(_GOODBYE)
            print()
        return 0

    def _publish(self, velocity: PlanarVelocity) -> None:
        self._publisher.publish(self._writer.write(velocity))

    def _show(self) -> None:
        note = ""
        if not self._publisher.get_subscription_count():
            finding = time.monotonic() < self._knows_at
            note = "   (looking for listeners)" if finding else "   (no listener)"
        print(f"\r{self._steering.text()}{note:26}", end="", flush=True)


def main(args: Sequence[str] | None = None) -> int:
    """Run teleop_node; return 0, or 2 after bad parameters or without a terminal."""
    return run_node(TeleopNode, args)


if __name__ == "__main__":
    sys.exit(main())
