"""recorder_node when it ends: stopped, killed, out of disk, or refusing to begin."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import PointStamped
from lifecycle_msgs.msg import State
from rclpy.serialization import serialize_message
from recorder_support import (
    PATIENCE,
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
from std_msgs.msg import String

from bipedsim.recording import schema
from bipedsim.recording.bag.reader import Bag, BagWriter, Pending
from bipedsim_ros.nodes import recorder_node
from bipedsim_ros.nodes.recorder_node import Counts, _DiskThread
from bipedsim_ros.wire import parse

pytestmark = pytest.mark.ros


def test_sigkill_costs_what_was_not_flushed_yet_alone(ros: RosWorld, tmp_path: Path) -> None:
    """The time triggers the flush. The data is too little for a writer that flushes by size."""
    with RecorderProcess(ros.env, tmp_path / "bag") as recorder:
        publishers = publishers_of(ros.node, TOPICS)
        publish(publishers, range(500))

        def on_disk() -> bool:
            there = Bag(tmp_path / "bag")
            return all(len(ticks_in(there, name)) == 500 for name in TOPICS)

        wait_for(on_disk, "all that was published, on the disk")
        publish(publishers, range(500, 700))
        recorder.finish(signal.SIGKILL)
    bag = Bag(tmp_path / "bag")
    assert "recovered" in bag.recovered
    for name in TOPICS:
        ticks = ticks_in(bag, name)
        assert len(ticks) >= 500, name
        assert ticks == list(range(len(ticks))), name

    from rosbags.rosbag2 import Reader

    with Reader(tmp_path / "bag") as reader:
        assert {c.topic for c in reader.connections} >= set(TOPICS)
        assert (
            sum(1 for _ in reader.messages(reader.connections)) >= len(TOPICS) * len(ticks_in(bag, "/joint_states")) - 6
        )


def test_what_arrived_just_before_the_end_is_kept(ros: RosWorld, tmp_path: Path) -> None:
    slow = ("poll_period:=0.1", "flush_period:=10.0")
    with RecorderProcess(ros.env, tmp_path / "bag", "topics:=['/left_foot/cop']", *slow) as recorder:
        publishers = publishers_of(ros.node, {"/left_foot/cop": PointStamped})
        publish(publishers, range(100), period=0.0)
        assert publishers["/left_foot/cop"].wait_for_all_acked()
        assert recorder.finish(signal.SIGTERM)[0] == 0
    assert ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop") == list(range(100))


def test_what_is_held_back_for_its_order_is_not_lost_at_the_end(
    ros: RosWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder writes the messages that it delays for their order."""
    monkeypatch.setattr(recorder_node, "HOLD_BACK_NS", 3_600_000_000_000)
    params = recorder_node.RecorderParams(output=str(tmp_path / "bag"), topics=["/left_foot/cop"])
    recorder = recorder_node.Recorder(ros.node, params)
    publishers = publishers_of(ros.node, {"/left_foot/cop": PointStamped})
    publish(publishers, range(20), period=0.0)
    assert publishers["/left_foot/cop"].wait_for_all_acked()
    assert recorder.step()
    assert not Bag(tmp_path / "bag").messages.get("/left_foot/cop")
    recorder.close()
    assert ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop") == list(range(20))


def test_log_times_do_not_fall_where_the_clock_is_set_back(ros: RosWorld, tmp_path: Path) -> None:
    """A player cannot play a bag whose log times decrease."""
    params = recorder_node.RecorderParams(output=str(tmp_path / "bag"), topics=["/left_foot/cop"])
    recorder = recorder_node.Recorder(ros.node, params)
    (source,) = recorder._subscriptions.values()
    now = time.time_ns()
    for tick, ms in enumerate((50, 20, 90)):
        at, data = now + ms * 1_000_000, bytes(serialize_message(message_of(PointStamped, tick)))
        recorder._held_back.append((at, tick, source, at, tick + 1, data))
        recorder._move_to_bag(at)
    recorder.close()
    bag = Bag(tmp_path / "bag")
    assert [m.log_time - now for m in bag.messages["/left_foot/cop"]] == [50_000_000, 50_000_000, 90_000_000]
    assert ticks_in(bag, "/left_foot/cop") == [0, 1, 2]


@pytest.mark.long
def test_interrupted_with_the_simulator_it_keeps_what_that_says_last(ros: RosWorld, tmp_path: Path) -> None:
    """As `ros2 launch` and a terminal do it: all nodes at once, the recorder first of them."""
    sim = ros.start("sim_node", start="immediately", rate=500.0)
    with RecorderProcess(ros.env, tmp_path / "bag", "robot:=biped14", "await_end:=3600.0") as recorder:
        wait_for(lambda: "/sim_node/run" in Bag(tmp_path / "bag").messages, "a simulator that says what it runs")
        states = ros.collect(PointStamped, "/cop")
        recorder.process.send_signal(signal.SIGINT)
        # A simulator that takes its time to end.
        ros.until(lambda: len(states) > 1000, "two seconds of simulation")
        assert sim.stop() == 0
        assert recorder.finish()[0] == 0
    said = [parse(message.data, String).data for message in Bag(tmp_path / "bag").messages["/sim_node/run"]]
    assert json.loads(said[-1])[schema.STATISTICS]["verdict"]


def test_told_to_end_where_nothing_is_simulated_it_ends(ros: RosWorld, tmp_path: Path) -> None:
    with RecorderProcess(ros.env, tmp_path / "bag", "topics:=['/left_foot/cop']", "await_end:=3600.0") as recorder:
        publish(publishers_of(ros.node, {"/left_foot/cop": PointStamped}), range(10))
        assert recorder.finish(signal.SIGINT)[0] == 0


def test_max_duration_ends_the_recording(ros: RosWorld, tmp_path: Path) -> None:
    wanted = "topics:=['/left_foot/cop']"
    with RecorderProcess(ros.env, tmp_path / "bag", wanted, "max_duration:=0.3") as recorder:
        publish(publishers_of(ros.node, {"/left_foot/cop": PointStamped}), range(10))
        code, out, _err = recorder.finish()
    assert code == 0
    # It counts from the first message on: of a test that is slow it may not wait for the last.
    assert 0 < counts_of(out)["written"] <= 10


def test_an_existing_output_is_refused(ros: RosWorld, tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with RecorderProcess(ros.env, tmp_path / "bag", ready=False) as recorder:
        code, _out, err = recorder.finish()
    assert code == 2
    assert "exists already" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("parameter", "complaint"),
    [
        ("topics:=['chatter']", "'chatter' must be '/topic'"),
        ("topics:=['/x no_such/msg/Thing']", "message type no_such/msg/Thing"),
        ("flush_periods:=0.1", "did you mean 'flush_period'"),
        ("robot:=marvin", "unknown robot 'marvin'"),
    ],
)
def test_wrong_parameters_are_explained(ros: RosWorld, tmp_path: Path, parameter: str, complaint: str) -> None:
    with RecorderProcess(ros.env, tmp_path / "bag", parameter, ready=False) as recorder:
        code, _out, err = recorder.finish()
    assert code == 2
    assert complaint in err
    assert "Traceback" not in err
    assert not (tmp_path / "bag").exists()


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit (util-linux) to make the disk full")
def test_a_full_disk_ends_the_recording_and_leaves_it_readable(ros: RosWorld, tmp_path: Path) -> None:
    with RecorderProcess(ros.env, tmp_path / "bag", "topics:=['/left_foot/cop']") as recorder:
        publishers = publishers_of(ros.node, {"/left_foot/cop": PointStamped})
        publish(publishers, range(10))
        wait_for(lambda: len(Bag(tmp_path / "bag").messages.get("/left_foot/cop", [])) == 10, "messages in the bag")
        subprocess.run(["prlimit", f"--pid={recorder.process.pid}", "--fsize=0"], check=True)
        publish(publishers, range(10, 20))
        code, _out, err = recorder.finish()
    assert code == 1
    assert "the bag cannot be written any more (File too large). The data written so far are readable" in err
    assert "Traceback" not in err
    assert ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop") == list(range(10))


@pytest.mark.long
def test_a_topic_whose_type_is_not_installed_is_told_and_ends_no_recording(ros: RosWorld, tmp_path: Path) -> None:
    """Controllers may publish any type under /controller/, from workspaces that the recorder does not know."""
    (tmp_path / "path" / "lifecycle_msgs").mkdir(parents=True)
    (tmp_path / "path" / "lifecycle_msgs" / "__init__.py").write_text("")
    env = {**ros.env, "PYTHONPATH": f"{tmp_path / 'path'}:{ros.env['PYTHONPATH']}"}
    odd = ros.node.create_publisher(State, "/controller/odd", 1)
    with RecorderProcess(env, tmp_path / "bag", program=True) as recorder:
        publishers = publishers_of(ros.node, {"/left_foot/cop": PointStamped})
        # The recorder has then read the graph, as its subscription to the new topic shows.
        plain = publishers_of(ros.node, {"/controller/plain": PointStamped})
        publish(publishers, range(10))
        code, _out, err = recorder.finish(signal.SIGINT)
    assert odd.topic_name == "/controller/odd"
    assert plain
    assert (code, "Traceback" in err) == (0, False)
    assert err.count("/controller/odd is not recorded: message type lifecycle_msgs/msg/State") == 1
    assert ticks_in(Bag(tmp_path / "bag"), "/left_foot/cop") == list(range(10))


def test_whatever_stops_the_writing_thread_is_told_and_hangs_nothing(tmp_path: Path) -> None:
    """A message on an unknown topic is not a disk error."""
    bag, counts = BagWriter(tmp_path / "bag"), Counts()
    disk = _DiskThread(bag, counts)
    disk.start()
    for _ in range(3 * disk.chunks.maxsize):
        disk.chunks.put(Pending(messages=[(7, 0, 0, 0, b"")]), timeout=PATIENCE)
    disk.chunks.put(None, timeout=PATIENCE)
    disk.join(timeout=PATIENCE)
    assert not disk.is_alive()
    assert isinstance(disk.error, KeyError)
    assert counts.written == 0
    bag.release()
