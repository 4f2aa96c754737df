"""recorder_node over real DDS: its own process, killed and stopped in every way."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

# A domain of this test's own, on this machine only, without shared memory that outlives a SIGKILL.
ENVIRONMENT = {
    "ROS_DOMAIN_ID": str(100 + os.getpid() % 100),
    "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
    "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
}
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
rclpy = pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import PointStamped, WrenchStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rcl_interfaces.srv import GetParameters  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402
from ros_support import RosWorld  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray, String  # noqa: E402

from bipedsim.bag import Bag  # noqa: E402
from bipedsim.errors import ConfigError  # noqa: E402
from bipedsim_ros.message_definitions import definition_of, type_hash_of  # noqa: E402

pytestmark = pytest.mark.ros

TOPICS: dict[str, Any] = {
    "/joint_states": JointState,
    "/imu/data": Imu,
    "/left_foot/wrench": WrenchStamped,
    "/right_foot/wrench": WrenchStamped,
    "/left_foot/cop": PointStamped,
    "/ground_truth/odom": Odometry,
}
# Longer than any test publishes: what a reader misses on a busy machine is sent again.
DEPTH = 5000
PATIENCE = 20.0


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for key, value in ENVIRONMENT.items():
        monkeypatch.setenv(key, value)
    context = rclpy.Context()
    context.init()
    node = rclpy.create_node("source", context=context, enable_rosout=False, start_parameter_services=False)
    yield node
    node.destroy_node()
    context.try_shutdown()


class RecorderProcess:
    """recorder_node as a child; ``with`` ends it."""

    def __init__(self, output: Path, *parameters: str, ready: bool = True) -> None:
        command = [sys.executable, "-m", "bipedsim_ros.recorder_node", "--ros-args", "-p", f"output:={output}"]
        for parameter in parameters:
            command += ["-p", parameter]
        root = str(Path(__file__).resolve().parents[1])
        environment = os.environ | ENVIRONMENT
        environment["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)
        self.first_line = ""
        if ready:
            assert self.process.stdout is not None
            self.first_line = self.process.stdout.readline()

    def __enter__(self) -> RecorderProcess:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def finish(self, *signals: int) -> tuple[int, str, str]:
        for number in signals:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.005)


def publishers_of(node: Any, topics: dict[str, Any], qos: Any = DEPTH) -> dict[str, Any]:
    """Return publishers that a recorder has matched."""
    result = {name: node.create_publisher(cls, name, qos) for name, cls in topics.items()}
    wait_for(lambda: all(p.get_subscription_count() for p in result.values()), "the recorder's subscriptions")
    return result


def message_of(cls: Any, tick: int) -> Any:
    message = cls()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(tick * 1_000_000, 1_000_000_000)
    if cls is JointState:
        message.name = [f"joint_{i}" for i in range(26)]
        message.position = [float(tick)] * 26
    return message


def publish(publishers: dict[str, Any], ticks: range, period: float = 1e-3) -> None:
    """Publish a message a tick on every topic, about every ``period`` seconds."""
    start = time.monotonic()
    for i, tick in enumerate(ticks):
        for name, publisher in publishers.items():
            publisher.publish(message_of(TOPICS[name], tick))
        time.sleep(max(0.0, start + i * period - time.monotonic()))


def ticks_in(bag: Bag, topic: str) -> list[int]:
    stamps = (struct.unpack_from("<iI", message.data, 4) for message in bag.messages.get(topic, []))
    return [round(sec * 1000 + nanosec / 1e6) for sec, nanosec in stamps]


def counts_of(line: str) -> dict[str, int]:
    return {key: int(value) for key, _, value in (word.partition("=") for word in line.split() if "=" in word)}


def test_nothing_is_lost_at_a_kilohertz_and_others_can_read_it(node: Any, tmp_path: Path) -> None:
    n = 2000
    with RecorderProcess(tmp_path / "bag") as recorder:
        assert recorder.first_line == f"recording 19 topics into {tmp_path / 'bag'}\n"
        publishers = publishers_of(node, TOPICS)
        publish(publishers, range(n))
        assert all(p.wait_for_all_acked() for p in publishers.values())
        code, out, err = recorder.finish(signal.SIGINT, signal.SIGINT)
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
        for info in node.get_publishers_info_by_topic("/joint_states"):
            assert connections["/joint_states"].digest == str(info.topic_type_hash)
        (profile,) = connections["/joint_states"].ext.offered_qos_profiles
        assert (profile.reliability.name, profile.durability.name) == ("RELIABLE", "VOLATILE")
    decoded = read_ros2_messages(str(tmp_path / "bag" / "bag_0.mcap"), topics=["/joint_states"])
    assert [m.ros_msg.position[25] for m in decoded] == [float(i) for i in range(n)]


def test_log_times_are_those_of_arrival(node: Any, tmp_path: Path) -> None:
    topics = {"/left_foot/cop": PointStamped}
    with RecorderProcess(tmp_path / "bag", "topics:=['/left_foot/cop']") as recorder:
        publishers = publishers_of(node, topics)
        before = time.time_ns()
        publish(publishers, range(5))
        after = time.time_ns()
        assert publishers["/left_foot/cop"].wait_for_all_acked()
        assert recorder.finish(signal.SIGTERM)[0] == 0
    messages = Bag(tmp_path / "bag").messages["/left_foot/cop"]
    assert [before <= m.publish_time <= after for m in messages] == [True] * 5
    # It came after it went; wall clock stamps have no order finer than their resolution.
    assert all(m.log_time >= m.publish_time for m in messages)


def test_sigkill_costs_at_most_the_last_second(node: Any, tmp_path: Path) -> None:
    with RecorderProcess(tmp_path / "bag") as recorder:
        publishers = publishers_of(node, TOPICS)
        sent: list[float] = []
        start = time.monotonic()
        while time.monotonic() - start < 2.5:
            publish(publishers, range(len(sent), len(sent) + 1))
            sent.append(time.monotonic())
            time.sleep(1e-3)
        recorder.finish(signal.SIGKILL)
    bag = Bag(tmp_path / "bag")
    assert "recovered" in bag.recovered
    for name in TOPICS:
        ticks = ticks_in(bag, name)
        assert ticks == list(range(len(ticks))), name
        assert sent[-1] - sent[len(ticks) - 1] < 1.0, name

    from rosbags.rosbag2 import Reader

    with Reader(tmp_path / "bag") as reader:
        assert {c.topic for c in reader.connections} >= set(TOPICS)
        assert (
            sum(1 for _ in reader.messages(reader.connections)) >= len(TOPICS) * len(ticks_in(bag, "/joint_states")) - 6
        )


def test_latched_and_best_effort_topics_and_types_from_the_graph(node: Any, tmp_path: Path) -> None:
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    loose = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    description = node.create_publisher(String, "/robot_description", latched)
    description.publish(String(data="<robot/>"))
    chatter = node.create_publisher(String, "/chatter", loose)
    wanted = "topics:=['/robot_description', '/chatter', '/imu/data']"
    with RecorderProcess(tmp_path / "bag", wanted) as recorder:
        imu = node.create_publisher(Imu, "/imu/data", loose)  # expected reliable, found best effort
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


def test_what_was_published_too_early_is_counted(node: Any, tmp_path: Path) -> None:
    publisher = node.create_publisher(PointStamped, "/left_foot/cop", DEPTH)
    for tick in range(7):
        publisher.publish(message_of(PointStamped, tick))
    with RecorderProcess(tmp_path / "bag", "topics:=['/left_foot/cop']") as recorder:
        wait_for(lambda: bool(publisher.get_subscription_count()), "the subscription")
        for tick in range(7, 10):
            publisher.publish(message_of(PointStamped, tick))
        assert publisher.wait_for_all_acked()
        _code, out, _err = recorder.finish(signal.SIGINT)
    counts = counts_of(out)
    assert (counts["missed"], counts["received"], counts["lost"]) == (7, 3, 0)


def test_it_says_when_it_has_found_every_publisher(node: Any, tmp_path: Path) -> None:
    wanted = "topics:=['/left_foot/cop', '/imu/data', '/push']"
    with RecorderProcess(tmp_path / "bag", wanted) as recorder:
        publishers_of(node, {"/left_foot/cop": PointStamped})
        time.sleep(0.1)  # time enough to say it too early
        pipe = recorder.process.stdout
        assert pipe is not None
        assert select.select([pipe], [], [], 0.0)[0] == []
        publishers_of(node, {"/imu/data": Imu})
        assert pipe.readline() == "matched all publishers\n"


def test_what_arrived_just_before_the_end_is_kept(node: Any, tmp_path: Path) -> None:
    slow = ("poll_period:=0.1", "flush_period:=10.0")
    with RecorderProcess(tmp_path / "bag", "topics:=['/left_foot/cop']", *slow) as recorder:
        publishers = publishers_of(node, {"/left_foot/cop": PointStamped})
        publish(publishers, range(100), period=0.0)
        assert publishers["/left_foot/cop"].wait_for_all_acked()
        assert recorder.finish(signal.SIGTERM)[0] == 0
    assert ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop") == list(range(100))


def test_max_duration_ends_the_recording(node: Any, tmp_path: Path) -> None:
    wanted = "topics:=['/left_foot/cop']"
    with RecorderProcess(tmp_path / "bag", wanted, "max_duration:=0.3") as recorder:
        publish(publishers_of(node, {"/left_foot/cop": PointStamped}), range(10))
        code, out, _err = recorder.finish()
    assert code == 0
    assert counts_of(out)["written"] == 10


def test_diagnostics_tell_the_counts(node: Any, tmp_path: Path) -> None:
    from diagnostic_msgs.msg import DiagnosticArray

    got: list[Any] = []
    subscription = node.create_subscription(DiagnosticArray, "/diagnostics", got.append, 10)
    with RecorderProcess(tmp_path / "bag", "topics:=['/left_foot/cop']"):
        publish(publishers_of(node, {"/left_foot/cop": PointStamped}), range(10))

        def complete() -> bool:
            taken = subscription.handle.take_message(DiagnosticArray, False)
            if taken is not None:
                got.append(taken[0])
            return bool(got) and {v.key: v.value for v in got[-1].status[0].values}.get("written") == "10"

        wait_for(complete, "diagnostics")
    values = {v.key: v.value for v in got[-1].status[0].values}
    assert values["received"] == "10"
    assert values["matched_topics"] == "1"
    assert values["lost"] == "0"
    assert got[-1].status[0].message == "recording"


def test_an_existing_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with RecorderProcess(tmp_path / "bag", ready=False) as recorder:
        code, _out, err = recorder.finish()
    assert code == 2
    assert "never overwritten: remove it, or name another directory" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("parameter", "complaint"),
    [
        ("topics:=['chatter']", "'chatter' must be '/topic'"),
        ("topics:=['/x no_such/msg/Thing']", "no definition of no_such/msg/Thing"),
        ("storage:=sqlite3", "unknown storage 'sqlite3'"),
        ("flush_periods:=0.1", "did you mean 'flush_period'"),
        ("robot:=marvin", "unknown robot 'marvin'"),
    ],
)
def test_wrong_parameters_are_explained(tmp_path: Path, parameter: str, complaint: str) -> None:
    with RecorderProcess(tmp_path / "bag", parameter, ready=False) as recorder:
        code, _out, err = recorder.finish()
    assert code == 2
    assert complaint in err
    assert "Traceback" not in err
    assert not (tmp_path / "bag").exists()


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit (util-linux) to make the disk full")
def test_a_full_disk_ends_the_recording_and_leaves_it_readable(node: Any, tmp_path: Path) -> None:
    with RecorderProcess(tmp_path / "bag", "topics:=['/left_foot/cop']") as recorder:
        publishers = publishers_of(node, {"/left_foot/cop": PointStamped})
        publish(publishers, range(10))
        wait_for(lambda: len(Bag(tmp_path / "bag").messages.get("/left_foot/cop", [])) == 10, "messages in the bag")
        subprocess.run(["prlimit", f"--pid={recorder.process.pid}", "--fsize=0"], check=True)
        publish(publishers, range(10, 20))
        code, _out, err = recorder.finish()
    assert code == 1
    assert "the bag cannot be written further (File too large); what is there is readable" in err
    assert "Traceback" not in err
    assert ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop") == list(range(10))


@pytest.mark.parametrize("cls", [JointState, Imu, Odometry, Float64MultiArray, String, WrenchStamped])
def test_definitions_and_hashes_are_those_of_the_installed_messages(cls: Any) -> None:
    from ament_index_python import get_package_share_directory
    from rosbags.typesys import get_types_from_msg

    package = cls.__module__.partition(".")[0]
    msgtype = f"{package}/msg/{cls.__name__}"
    folder = Path(get_package_share_directory(package), "msg")
    ours = get_types_from_msg(definition_of(msgtype), msgtype)
    (installed,) = get_types_from_msg((folder / f"{cls.__name__}.msg").read_text(), msgtype).values()
    assert [field[:2] for field in ours[msgtype][1]] == [field[:2] for field in installed[1]]
    hashes = json.loads((folder / f"{cls.__name__}.json").read_text())["type_hashes"]
    assert type_hash_of(msgtype) == {entry["type_name"]: entry["hash_string"] for entry in hashes}[msgtype]


def install(prefix: Path, package: str, **messages: str) -> None:
    """Install messages as ament does: a marker in the index, and the definitions."""
    marker = prefix / "share" / "ament_index" / "resource_index" / "packages" / package
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    folder = prefix / "share" / package / "msg"
    folder.mkdir(parents=True)
    for name, text in messages.items():
        (folder / f"{name}.msg").write_text(text)


def test_own_messages_are_described_with_all_that_is_nested_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "their_parts", Toe="float64[3] force  # newtons\nstring label\n")
    install(
        tmp_path,
        "their_robot",
        Feet="uint8 MAX=2\nHeader header\ntheir_parts/Toe[<=5] toes\nLimit limit\n",
        Limit="float64 effort\n",
        Lost="no_such/Thing thing\n",
        Wide="wstring label\n",
    )
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join([str(tmp_path), sys.prefix]))
    parts = definition_of("their_robot/msg/Feet").split("=" * 80 + "\n")
    assert {part.splitlines()[0] for part in parts[1:]} == {
        "MSG: std_msgs/Header",
        "MSG: builtin_interfaces/Time",
        "MSG: their_parts/Toe",
        "MSG: their_robot/Limit",
    }
    assert parts[0].splitlines() == [
        "uint8 MAX=2",
        "std_msgs/Header header",
        "their_parts/Toe[<=5] toes",
        "their_robot/Limit limit",
    ]
    assert type_hash_of("their_robot/msg/Feet").startswith("RIHS01_")
    with pytest.raises(ConfigError, match="no definition of no_such/msg/Thing: install no_such"):
        definition_of("their_robot/msg/Lost")
    with pytest.raises(ConfigError, match="no definition of their_robot/msg/wstring"):
        definition_of("their_robot/msg/Wide")
    with pytest.raises(ConfigError, match="'chatter' is no ROS message type"):
        definition_of("chatter")


def test_parameters_can_be_read_while_it_records(ros: RosWorld, tmp_path: Path) -> None:
    """The services of the node answer although the node takes its messages by itself."""
    recorder = ros.start("recorder_node", output=str(tmp_path / "bag"))
    ros.until(lambda: "recording" in recorder.output, "the recorder")
    answer = ros.call(GetParameters, "/recorder_node/get_parameters", names=["output", "flush_period"])
    assert answer.values[0].string_value == str(tmp_path / "bag")
    assert answer.values[1].double_value > 0.0
