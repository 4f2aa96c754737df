"""A process that died: its participant leaves at once, over real DDS."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import PointStamped
from recorder_support import RecorderProcess, wait_for
from ros_domains import lasting_environment
from ros_support import RosWorld

from bipedsim_ros.wire import Departures, PatientPublisher, topics
from bipedsim_ros.wire.departures import machine_of

pytestmark = pytest.mark.ros

COP = topics.SOLE_COP.of("left")
SENT = 8000  # more than a history holds
MOST = 1000
"""How often a publisher that is held up asks before the test gives up."""


@pytest.fixture
def lasting(ros: RosWorld, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process whose participant never times out."""
    return lasting_environment(ros.env, tmp_path)


def test_endpoints_of_one_machine_have_the_same_name() -> None:
    """The layout is that of RTPS 9.3.1.5 as Fast DDS fills it: vendor, host, process, random, participant."""
    one = bytes([1, 15, 7, 8, 20, 21, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])
    process, host = bytearray(one), bytearray(one)
    process[4], host[2] = 99, 99
    assert machine_of(list(one)) == machine_of(list(process)) != machine_of(list(host))
    other_dds = bytearray(one)
    other_dds[1] = 16
    process[1] = 16
    assert machine_of(list(other_dds)) != machine_of(list(process)), "only the process is known"


@pytest.mark.long
def test_a_killed_subscriber_is_gone_whose_lease_never_ends(
    ros: RosWorld, lasting: dict[str, str], tmp_path: Path
) -> None:
    publisher = ros.node.create_publisher(PointStamped, COP, 10)
    departures = Departures(ros.node, [COP])
    with RecorderProcess(lasting, tmp_path / "bag", f"topics:=['{COP}']") as recorder:
        wait_for(lambda: publisher.get_subscription_count() == 1, "the subscription")
        assert departures.look() == 0
        recorder.process.send_signal(signal.SIGSTOP)
        assert (departures.look(), publisher.get_subscription_count()) == (0, 1), "it lives"
        recorder.process.kill()
        wait_for(lambda: departures.look() == 1, "the end of the process")
        wait_for(lambda: publisher.get_subscription_count() == 0, "the end of the subscription")
    departures.close()


def test_a_subscriber_that_takes_its_leave_or_is_new_is_no_departure(ros: RosWorld, tmp_path: Path) -> None:
    publisher = ros.node.create_publisher(PointStamped, COP, 10)
    departures = Departures(ros.node, [COP])
    for k in range(2):
        with RecorderProcess(ros.env, tmp_path / f"bag{k}", f"topics:=['{COP}']") as recorder:
            wait_for(lambda: publisher.get_subscription_count() == 1, "the subscription")
            assert departures.look() == 0, "it is new"
            assert recorder.finish(signal.SIGINT)[0] == 0
            wait_for(lambda: publisher.get_subscription_count() == 0, "the end of the subscription")
            assert departures.look() == 1, "its process has ended, which is nothing new to anybody"
    departures.close()


def test_a_dead_reader_does_not_hold_up_a_publisher_that_loses_nothing(
    ros: RosWorld, lasting: dict[str, str], tmp_path: Path
) -> None:
    waited: list[str] = []
    with RecorderProcess(lasting, tmp_path / "bag", f"topics:=['{COP}']") as recorder:

        def go_on(topic: str) -> bool:
            waited.append(topic)
            departures.look()
            return len(waited) < MOST

        publisher = PatientPublisher(ros.node, topics.SOLE_COP, "left", go_on)
        wait_for(lambda: publisher.get_subscription_count() == 1, "the subscription")
        departures = Departures(ros.node, [COP])
        assert departures.look() == 0
        recorder.process.kill()
        message = PointStamped()
        for _ in range(SENT):
            publisher.publish(message)
    assert 0 < len(waited) < MOST
    departures.close()
