"""The parameter ``topics`` of the recorder: what it adds, replaces and leaves out."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from recorder_support import RecorderProcess, wait_for
from ros_support import RosWorld
from std_msgs.msg import Float64, String

from bipedsim.errors import ConfigError
from bipedsim.recording.bag.reader import Bag
from bipedsim.recording.schema import USER_TOPICS
from bipedsim_ros.nodes.topic_selection import Selection
from bipedsim_ros.wire.topics import TOPICS, of_user

KNOWN = {row.name: row for row in TOPICS.values() if row.recorded and not row.is_prefix and not row.per_foot}
PREFIXES = ["/objects/", "/force_plates/"]


def select(*entries: str) -> Selection:
    return Selection.of(entries, KNOWN, PREFIXES)


def test_without_entries_all_default_topics_are_recorded() -> None:
    selection = select()
    assert list(selection.types) == list(KNOWN)
    assert selection.matches("/objects/ball")
    assert not selection.matches("/battery")


def test_a_plus_adds_to_the_default_topics() -> None:
    selection = select("+/battery", "+/load std_msgs/msg/Float64", "+/camera/*")
    assert list(selection.types) == [*KNOWN, "/load"]
    assert selection.types["/load"] == "std_msgs/msg/Float64"
    assert selection.waiting == ["/battery"]
    assert selection.matches("/camera/info")
    assert selection.matches("/objects/ball")


def test_a_minus_leaves_out() -> None:
    selection = select("-/diagnostics", "-/objects/*", "+/battery")
    assert set(KNOWN) - set(selection.types) == {"/diagnostics"}
    assert not selection.matches("/objects/ball")
    assert selection.matches("/force_plates/left/signals")


def test_entries_without_a_sign_replace_the_default_topics() -> None:
    selection = select("/joint_states", "/imu/*", "/battery")
    assert list(selection.types) == ["/joint_states", "/imu/data"]
    assert selection.waiting == ["/battery"]
    assert not selection.matches("/objects/ball")
    assert selection.matches("/imu/temperature")


@pytest.mark.parametrize(
    "entries",
    [
        ("/battery", "+/load"),
        ("battery",),
        ("+/battery a b",),
        ("-/joint_states sensor_msgs/msg/JointState",),
        ("-/no_such_topic",),
        ("+/camera/* std_msgs/msg/String",),
    ],
)
def test_what_makes_no_sense_is_refused(entries: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as refused:
        select(*entries)
    assert refused.value.place == "topics"


@pytest.mark.ros
def test_topics_of_the_user_are_in_the_bag_beside_those_of_the_robot(ros: RosWorld, tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    with RecorderProcess(ros.env, bag, "topics:=['+/arm/*', '-/diagnostics']") as recorder:
        load = ros.node.create_publisher(Float64, "/arm/load", 10)
        mode = ros.node.create_publisher(String, "/left_foot/contact_mode", 10)
        wait_for(lambda: bool(mode.get_subscription_count()), "a subscription to a default topic")
        wait_for(lambda: bool(load.get_subscription_count()), "a subscription of what appears later")
        until = time.monotonic() + 60.0
        while not bag.exists() or not Bag(bag).messages.get("/arm/load"):
            assert time.monotonic() < until
            load.publish(Float64(data=1.5))
            time.sleep(0.02)
        recorder.finish(signal.SIGINT)
    messages = Bag(bag).messages
    assert {name for name, received in messages.items() if received} == {"/arm/load"}
    assert Bag(bag).custom_data[USER_TOPICS] == "/arm/load"
    assert "/left_foot/contact_mode" in messages
    assert "/diagnostics" not in messages


@pytest.mark.parametrize(
    ("name", "is_users"),
    [
        ("/battery", True),
        ("/left_foot/load", True),
        ("/left_foot/wrench", False),
        ("/objects/ball", False),
        ("/force_plates/left/signals", False),
        ("/controller/margin", False),
        ("/sim_node/shown", False),
    ],
)
def test_topics_of_the_user_are_those_that_bipedsim_does_not_declare(name: str, is_users: bool) -> None:
    assert bool(of_user([name], ["left", "right"])) == is_users
