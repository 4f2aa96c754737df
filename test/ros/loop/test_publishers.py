"""Publishing for viewers: content and times, on real topics with a clock that the test moves."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from ros_support import RosWorld
from std_msgs.msg import UInt8MultiArray

from bipedsim.ground import Ground
from bipedsim.model import load_robot
from bipedsim.sim import Simulator
from bipedsim_ros.loop import publishers
from bipedsim_ros.loop.publishers import Publishers
from bipedsim_ros.wire import profile, topics

pytestmark = pytest.mark.ros

READING_NS = 20_000
SHOWN_NS, LATE_NS, LAST_NS = 1_000_000_000 // 60, 200_000_000, 1_000_000_000


class Clock:
    """Replaces the module ``time``. Each read takes 20 us, so that a message seems to take as long."""

    def __init__(self) -> None:
        self.now = 0

    def monotonic_ns(self) -> int:
        self.now += READING_NS
        return self.now


def test_a_viewer_waits_for_time_that_no_command_needs(ros: RosWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(publishers, "time", clock)
    one = Publishers(ros.node, Simulator(load_robot("biped14"), Ground.flat()), 1.0, 0.0)
    one.show()
    heard = ros.collect(UInt8MultiArray, topics.SHOWN.name, profile(topics.NEWEST_OF_ANY))
    ros.until(lambda: one._viewer_publisher.get_subscription_count() == 1, "a viewer")

    sent: list[bytes] = []
    publish = one._viewer_publisher.publish
    monkeypatch.setattr(one._viewer_publisher, "publish", lambda data: [sent.append(data), publish(data)])

    def shows(left_ns: float) -> bool:
        """Whether a message is sent for it."""
        before = len(sent)
        one.show(left_ns)
        return len(sent) > before

    # The publisher learns the cost of a message.
    for _ in range(40):
        clock.now += SHOWN_NS
        one.show()
    ros.until(lambda: heard, "what is shown")
    assert not shows(float("inf")), "it has just been shown"
    clock.now += SHOWN_NS
    assert not shows(0.0)
    assert not shows(READING_NS)
    assert shows(3 * READING_NS), "there is time for it"
    for left, latest in ((1.5 * READING_NS, LATE_NS), (-1.0, LAST_NS)):
        clock.now += SHOWN_NS
        waited = clock.now
        while not shows(left):
            clock.now += 4 * SHOWN_NS
            assert clock.now < waited + 3 * latest, "it is never shown again"
        assert clock.now - waited == pytest.approx(latest, abs=5 * SHOWN_NS), left
