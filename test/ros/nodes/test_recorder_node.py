"""recorder_node over real DDS: no losses, publishers of every kind, and status reports."""

from __future__ import annotations

import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from additional_sensors_support import write_robot
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped
from rcl_interfaces.srv import GetParameters
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from recorder_support import (
    DEPTH,
    TOPICS,
    RecorderProcess,
    counts_of,
    message_of,
    publish,
    publishers_of,
    ticks_in,
    wait_for,
)
from ros_support import RosWorld
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, String

from bipedsim.recording.bag.reader import Bag
from bipedsim_ros.wire import topics

pytestmark = pytest.mark.ros


@pytest.mark.long
def test_nothing_is_lost_at_a_kilohertz_and_others_can_read_it(ros: RosWorld, tmp_path: Path) -> None:
    n = 2000
    with RecorderProcess(ros.env, tmp_path / "bag", program=True) as recorder:
        rows = [row for row in topics.TOPICS.values() if row.recorded and not row.is_prefix]
        known = sum(len(list(row.names(("left", "right")))) for row in rows)
        assert recorder.first_line == f"recording {known} topics into {tmp_path / 'bag'}\n"
        publishers = publishers_of(ros.node, TOPICS)
        publish(publishers, range(n))
        assert all(p.wait_for_all_acked() for p in publishers.values())
        # A terminal, a launch file and an impatient user all send signals: they must not wait for one another.
        code, out, err = recorder.finish(*(signal.SIGINT, signal.SIGTERM) * 200)
    assert (code, err) == (0, "")
    counts = counts_of(out)
    assert counts["received"] == counts["written"] >= n * len(TOPICS)
    assert counts["lost"] == counts["dropped"] == counts["missed"] == 0
    bag = Bag(tmp_path / "bag")
    assert bag.recovered == ""
    for name in TOPICS:
        assert ticks_in(bag, name) == list(range(n)), name
    assert bag.custom_data["lost"] == "0"

    from mcap_ros2.reader import read_ros2_messages
    from rosbags.rosbag2 import Reader

    with Reader(tmp_path / "bag") as reader:
        connections = {c.topic: c for c in reader.connections}
        times = [t for _, t, _ in reader.messages(reader.connections)]
        assert times == sorted(times)
        for info in ros.node.get_publishers_info_by_topic("/joint_states"):
            assert connections["/joint_states"].digest == str(info.topic_type_hash)
        (profile,) = connections["/joint_states"].ext.offered_qos_profiles
        assert (profile.reliability.name, profile.durability.name) == ("RELIABLE", "VOLATILE")
    decoded = read_ros2_messages(str(tmp_path / "bag" / "bag_0.mcap"), topics=["/joint_states"])
    assert [m.ros_msg.position[25] for m in decoded] == [float(i) for i in range(n)]


@pytest.mark.long
def test_log_times_are_those_of_arrival(ros: RosWorld, tmp_path: Path) -> None:
    topics = {"/left_foot/cop": PointStamped, "/imu/data": Imu}
    wanted = ("topics:=['/left_foot/cop', '/imu/data']", "poll_period:=0.1")
    with RecorderProcess(ros.env, tmp_path / "bag", *wanted) as recorder:
        publishers = publishers_of(ros.node, topics)
        before = time.time_ns()
        publish(publishers, range(20))
        after = time.time_ns()
        assert all(p.wait_for_all_acked() for p in publishers.values())
        assert recorder.finish(signal.SIGTERM)[0] == 0
    bag = Bag(tmp_path / "bag")
    messages = [message for name in topics for message in bag.messages[name]]
    assert [before <= m.publish_time <= after for m in messages] == [True] * 40
    # It came after it went; wall clock stamps have no order finer than their resolution.
    assert all(m.log_time >= m.publish_time for m in messages)
    assert len({m.log_time for m in messages}) == 40, "topics that are taken one after the other came in turn"


def test_latched_and_best_effort_topics_and_types_from_the_graph(ros: RosWorld, tmp_path: Path) -> None:
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    loose = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    description = ros.node.create_publisher(String, "/robot_description", latched)
    description.publish(String(data="<robot/>"))
    chatter = ros.node.create_publisher(String, "/chatter", loose)
    wanted = "topics:=['/robot_description', '/chatter', '/imu/data']"
    with RecorderProcess(ros.env, tmp_path / "bag", wanted) as recorder:
        imu = ros.node.create_publisher(Imu, "/imu/data", loose)  # expected reliable, found best effort
        wait_for(lambda: bool(chatter.get_subscription_count() and imu.get_subscription_count()), "subscriptions")
        for _ in range(20):
            chatter.publish(String(data="hello"))
            imu.publish(Imu())
            time.sleep(0.01)
        path = tmp_path / "bag"
        wait_for(
            lambda: {"/robot_description", "/chatter", "/imu/data"} <= set(Bag(path).messages), "messages in the bag"
        )
        code, _out, err = recorder.finish(signal.SIGINT)
    assert (code, err) == (0, "")
    bag = Bag(tmp_path / "bag")
    assert len(bag.messages["/robot_description"]) == 1
    assert bag.types["/chatter"] == "std_msgs/msg/String"
    topics = yaml.safe_load((tmp_path / "bag" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    offered = {
        t["topic_metadata"]["name"]: t["topic_metadata"]["offered_qos_profiles"][0]
        for t in topics["topics_with_message_count"]
    }
    assert offered["/robot_description"]["durability"] == "transient_local"
    assert offered["/chatter"]["reliability"] == "best_effort"


@pytest.mark.long
def test_what_was_published_too_early_is_counted(ros: RosWorld, tmp_path: Path) -> None:
    publisher = ros.node.create_publisher(PointStamped, "/left_foot/cop", DEPTH)
    for tick in range(7):
        publisher.publish(message_of(PointStamped, tick))
    with RecorderProcess(ros.env, tmp_path / "bag", "topics:=['/left_foot/cop']") as recorder:
        wait_for(lambda: bool(publisher.get_subscription_count()), "the subscription")
        for tick in range(7, 10):
            publisher.publish(message_of(PointStamped, tick))
        assert publisher.wait_for_all_acked()
        _code, out, _err = recorder.finish(signal.SIGINT)
    counts = counts_of(out)
    assert (counts["missed"], counts["received"], counts["lost"]) == (7, 3, 0)


@pytest.mark.long
def test_what_a_machine_had_no_time_for_is_counted_and_told(ros: RosWorld, tmp_path: Path) -> None:
    wanted, n = "topics:=['/left_foot/cop']", 3000
    with RecorderProcess(ros.env, tmp_path / "bag", wanted) as recorder:
        publishers = publishers_of(ros.node, {"/left_foot/cop": PointStamped}, qos=10)
        publish(publishers, range(10))
        wait_for(lambda: len(ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop")) == 10, "messages in the bag")
        recorder.process.send_signal(signal.SIGSTOP)
        threads = Path(f"/proc/{recorder.process.pid}/task")
        wait_for(lambda: all(" T " in (t / "stat").read_text() for t in threads.iterdir()), "all threads to stop")
        publish(publishers, range(10, n), period=0.0)
        recorder.process.send_signal(signal.SIGCONT)
        # On a busy machine, DDS may drop the recorder until it is discovered again. Acknowledgements do not show this;
        # only a later message does.
        sent = n
        while ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop")[-1] < n:
            assert sent < n + 3000, "nothing came any more"
            publish(publishers, range(sent, sent + 1), period=0.0)
            sent += 1
            time.sleep(0.02)
        assert publishers["/left_foot/cop"].wait_for_all_acked()
        code, out, err = recorder.finish(signal.SIGINT)
    counts = counts_of(out)
    assert code == 0
    assert counts["lost"] > 0
    assert counts["received"] + counts["lost"] == sent
    assert ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop")[-1] == sent - 1
    assert f"({counts['lost']} on /left_foot/cop)" in err


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for the clock of the test")
def test_a_wall_clock_that_is_set_back_stops_no_writing(ros: RosWorld, tmp_path: Path) -> None:
    """The clock is set back by an hour in the process of the recorder. The data is on disk before the process ends."""
    library, clock, bag = tmp_path / "set_back.so", tmp_path / "behind", tmp_path / "bag"
    source = Path(__file__).parents[2] / "support" / "set_back.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    env = ros.env | {"LD_PRELOAD": str(library), "SET_BACK": str(clock)}
    name, n = "/left_foot/cop", 20
    with RecorderProcess(env, bag, f"topics:=['{name}']", program=True) as recorder:
        publishers = publishers_of(ros.node, {name: PointStamped})
        for k, behind in enumerate((0, 3600, -3600)):
            clock.write_text(str(behind))
            publish(publishers, range(k * n, (k + 1) * n))
            wait_for(lambda k=k: len(ticks_in(Bag(bag), name)) == (k + 1) * n, f"messages while {behind} s behind")
        recorder.process.kill()
    assert ticks_in(Bag(bag), name) == list(range(3 * n))
    times = [message.log_time for message in Bag(bag).messages[name]]
    assert times == sorted(times)
    assert times[-1] - times[0] < 3600 * 10**9 / 2


@pytest.mark.long
def test_it_says_when_it_has_found_every_publisher(ros: RosWorld, tmp_path: Path) -> None:
    wanted = "topics:=['/left_foot/cop', '/imu/data', '/push']"
    told = ros.collect(DiagnosticArray, "/diagnostics")

    def matched(array: DiagnosticArray) -> str:
        return next(v.value for v in array.status[0].values if v.key == "matched_topics")

    with RecorderProcess(ros.env, tmp_path / "bag", wanted) as recorder:
        publishers_of(ros.node, {"/left_foot/cop": PointStamped})
        # It has looked at the graph with this one in it, more than once.
        ros.until(lambda: sum(matched(one) == "1" for one in told) > 1, "diagnostics that know of one publisher")
        pipe = recorder.stdout
        assert select.select([pipe], [], [], 0.0)[0] == []
        publishers_of(ros.node, {"/imu/data": Imu})
        assert pipe.readline() == "matched all publishers\n"


def test_diagnostics_tell_the_counts(ros: RosWorld, tmp_path: Path) -> None:
    got = ros.collect(DiagnosticArray, "/diagnostics")

    def counted() -> dict[str, str]:
        return {v.key: v.value for v in got[-1].status[0].values} if got else {}

    with RecorderProcess(ros.env, tmp_path / "bag", "topics:=['/left_foot/cop']"):
        publish(publishers_of(ros.node, {"/left_foot/cop": PointStamped}), range(10))
        ros.until(lambda: counted().get("written") == "10", "diagnostics")
    values = counted()
    assert values["received"] == "10"
    assert values["matched_topics"] == "1"
    assert values["lost"] == "0"
    assert got[-1].status[0].message == "recording"


def test_parameters_can_be_read_while_it_records(ros: RosWorld, tmp_path: Path) -> None:
    """The services of the node answer although the node takes its messages by itself."""
    recorder = ros.start("recorder_node", output=str(tmp_path / "bag"))
    ros.until(lambda: "recording" in recorder.output, "the recorder")
    answer = ros.call(GetParameters, "/recorder_node/get_parameters", names=["output", "flush_period"])
    assert answer.values[0].string_value == str(tmp_path / "bag")
    assert answer.values[1].double_value > 0.0


@pytest.mark.long
def test_a_second_publisher_is_named_and_not_taken_for_losses(ros: RosWorld, tmp_path: Path) -> None:
    """Each publisher numbers its messages by itself.

    A gap between the numbers of two publishers is no loss, even after one has gone.
    """
    wanted = "topics:=['/joint_states', '/diagnostics']"
    with RecorderProcess(ros.env, tmp_path / "bag", wanted) as recorder:
        publishers = publishers_of(ros.node, {"/joint_states": JointState})
        publish(publishers, range(50))
        other = publishers_of(ros.node, {"/joint_states": JointState})
        publish(other, range(100, 103))
        path, name = tmp_path / "bag", "/joint_states"
        wait_for(lambda: path.exists() and len(ticks_in(Bag(path), name)) == 53, "messages of both")
        ros.node.destroy_publisher(other[name])
        publish(publishers, range(50, 60))
        assert publishers[name].wait_for_all_acked()
        code, out, err = recorder.finish(signal.SIGINT)
    assert code == 0
    assert (len(ticks_in(Bag(path), name)), counts_of(out)["lost"]) == (63, 0)
    assert "several nodes published /joint_states at a time" in err
    assert "missing" not in err


def test_a_second_publisher_of_an_additional_sensor_is_named(ros: RosWorld, tmp_path: Path) -> None:
    robot, name = write_robot(tmp_path), "/left_switch/closed"
    with RecorderProcess(ros.env, tmp_path / "bag", f"robot:={robot}", f"topics:=['{name}']") as recorder:
        first = publishers_of(ros.node, {name: Bool})[name]
        second = publishers_of(ros.node, {name: Bool})[name]
        for publisher in (first, second, first):
            publisher.publish(Bool(data=True))
            assert publisher.wait_for_all_acked()
        code, _, err = recorder.finish(signal.SIGINT)
    assert code == 0
    assert name in err


def test_a_robot_that_cannot_be_loaded_is_named_although_its_feet_are_given(ros: RosWorld, tmp_path: Path) -> None:
    robot = tmp_path / "robot.yaml"
    robot.write_text("urdf: none.urdf\nfeat: {}\n", encoding="utf-8")
    parameters = f"robot:={robot}", "feet:=['left', 'right']", "topics:=['/left_foot/cop']"
    with RecorderProcess(ros.env, tmp_path / "bag", *parameters) as recorder:
        code, _, err = recorder.finish(signal.SIGINT)
    assert code == 0
    assert str(robot) in err
    assert "feat" in err
