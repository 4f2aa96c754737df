"""Publishers over real DDS."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import PointStamped
from recorder_support import PATIENCE, RecorderProcess, counts_of, message_of, ticks_in, wait_for
from ros_support import RosWorld

from bipedsim.recording.bag.reader import Bag
from bipedsim_ros import wire
from bipedsim_ros.live.newest import Newest
from bipedsim_ros.wire import topics
from bipedsim_ros.wire.endpoints import PatientPublisher

pytestmark = pytest.mark.ros

SENT = 8000  # more than a history holds


@pytest.mark.long
def test_a_simulator_whose_time_is_its_own_does_not_outrun_its_recorder(ros: RosWorld, tmp_path: Path) -> None:
    """A recorder that gets no processor, as on a busy machine, stops the publisher and costs no message."""
    waited: list[str] = []
    with RecorderProcess(ros.env, tmp_path / "bag", "topics:=['/left_foot/cop']") as recorder:
        publisher = PatientPublisher(ros.node, topics.SOLE_COP, "left", lambda topic: not waited.append(topic))
        wait_for(lambda: publisher.get_subscription_count() == 1, "the subscription")
        recorder.process.send_signal(signal.SIGSTOP)

        def publish() -> None:
            for tick in range(SENT):
                publisher.publish(message_of(PointStamped, tick))

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            wait_for(lambda: len(waited) > 0, "a full history")
        finally:
            recorder.process.send_signal(signal.SIGCONT)
        thread.join(PATIENCE)
        path = tmp_path / "bag"
        wait_for(lambda: len(Bag(path).messages.get("/left_foot/cop", ())) == SENT, "messages in the bag")
        code, out, err = recorder.finish(signal.SIGINT)
    assert (code, err) == (0, "")
    assert counts_of(out)["lost"] == counts_of(out)["missed"] == 0
    assert ticks_in(Bag(path), "/left_foot/cop") == list(range(SENT))
    assert set(waited) == {"/left_foot/cop"}


def test_who_asks_for_less_than_is_offered_is_no_listener(ros: RosWorld) -> None:
    """A viewer must not count as the recorder that a simulator waits for."""
    publisher = wire.publisher(ros.node, topics.SOLE_COP, "left")
    assert wire.listeners(ros.node, publisher) == 0
    viewer = Newest(ros.node, topics.SOLE_COP, "left")
    wait_for(lambda: publisher.get_subscription_count() == 1, "the viewer")
    assert wire.listeners(ros.node, publisher) == 0
    ros.collect(PointStamped, "left_foot/cop")
    wait_for(lambda: wire.listeners(ros.node, publisher) == 1, "a listener")
    viewer.close()


def test_a_patient_publisher_stops_waiting_when_it_is_told_to(ros: RosWorld, tmp_path: Path) -> None:
    asked: list[str] = []
    with RecorderProcess(ros.env, tmp_path / "bag", "topics:=['/left_foot/cop']") as recorder:
        publisher = PatientPublisher(ros.node, topics.SOLE_COP, "left", lambda topic: asked.append(topic) is not None)
        wait_for(lambda: publisher.get_subscription_count() == 1, "the subscription")
        recorder.process.send_signal(signal.SIGSTOP)
        message = PointStamped()
        for _ in range(SENT):
            publisher.publish(message)
            if asked:
                break
    assert asked == ["/left_foot/cop"]
