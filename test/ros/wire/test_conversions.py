"""Observations and serialised messages: both directions agree with rclpy's own conversion, by name and not by order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recording_support
from hypothesis import given, strategies as st

pytest.importorskip("rclpy", reason="rclpy is not installed")

from geometry_msgs.msg import PointStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from bipedsim.contact.base import ContactResult
from bipedsim.model import Chains, load_robot
from bipedsim.recording import load_recording
from bipedsim.recording.schema import CONTACT_FIELDS
from bipedsim.sim import GroundTruth
from bipedsim.sim.io import Observation
from bipedsim_ros.wire import conversions, topics
from bipedsim_ros.wire.conversions import HeightScanReader, HeightScanWriter
from bipedsim_ros.wire.wire import NS_PER_S, MessageError, WireReader

NAMES = ("hip", "knee", "ankle")
T_NS = 3_000_000_007


def observation(seed: int = 0) -> Observation:
    rng = np.random.default_rng(seed)
    result = Observation.zeros(len(NAMES), 2)
    for name in Observation.__dataclass_fields__:
        if name != "t":
            values = getattr(result, name)
            values[:] = rng.normal(size=values.shape)
    return result


def joint_state(names: Any, **fields: list[float]) -> bytes:
    return bytes(serialize_message(JointState(name=list(names), **fields)))


@given(st.integers(min_value=0, max_value=2**31 * NS_PER_S - 1))
def test_stamp_survives(t_ns: int) -> None:
    message = deserialize_message(topics.CLOCK.encoder().data(t_ns), Clock)
    assert message.clock.sec * NS_PER_S + message.clock.nanosec == t_ns


@pytest.mark.parametrize("n", [1, 2, 3, 14, 29])
def test_joint_states_are_what_rclpy_reads(n: int) -> None:
    names = [f"joint_{'x' * i}" for i in range(n)]
    seen = Observation.zeros(n, 0)
    seen.joint_position[:], seen.joint_velocity[:], seen.joint_effort[:] = np.random.default_rng(n).normal(size=(3, n))
    message = deserialize_message(conversions.JointStateWriter(names, "base_link").write(seen, T_NS), JointState)
    assert message.name == names
    assert message.header.frame_id == "base_link"
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (3, 7)
    np.testing.assert_array_equal(message.position, seen.joint_position)
    np.testing.assert_array_equal(message.velocity, seen.joint_velocity)
    np.testing.assert_array_equal(message.effort, seen.joint_effort)


def test_joints_of_closed_chains_come_last_and_follow_the_measured_ones() -> None:
    robot = load_robot("parallel_ankles")
    writer = conversions.JointStateWriter(robot.joint_names, "base_link", Chains(robot))
    seen = Observation.zeros(robot.nu, 2)
    seen.joint_position[:] = robot.posture + 0.05 * np.sin(np.arange(robot.nu))
    seen.joint_velocity[:] = np.cos(np.arange(robot.nu))
    data = writer.write(seen, T_NS)
    message = deserialize_message(data, JointState)
    q = robot.settle(seen.joint_position)
    assert sorted(message.name) == sorted(list(robot.model.names)[2:])
    assert message.name[: robot.nu] == list(robot.joint_names)
    for name, angle in zip(message.name, message.position, strict=True):
        assert angle == pytest.approx(q[robot.model.joints[robot.model.getJointId(name)].idx_q], abs=1e-8)
    assert not any(message.effort[robot.nu :])
    assert len(message.velocity) == len(message.name)
    # A reader of the measured joints gets their values.
    got = Observation.zeros(robot.nu, 2)
    reader = conversions.JointStateReader(robot.joint_names)
    reader.read(data, got)
    assert reader.missing == ()
    np.testing.assert_array_equal(got.joint_position, seen.joint_position)


def test_joint_states_survive_in_any_order() -> None:
    before, after = observation(), Observation.zeros(len(NAMES), 2)
    reader = conversions.JointStateReader(NAMES[::-1])
    writer = conversions.JointStateWriter(NAMES, "base_link")
    for seed in range(3):
        before = observation(seed)
        reader.read(writer.write(before, T_NS + seed), after)
        assert reader.missing == ()
        assert reader.t_ns == T_NS + seed
        assert after.t == pytest.approx(3.0, abs=1e-7)
        np.testing.assert_array_equal(after.joint_position, before.joint_position[::-1])
        np.testing.assert_array_equal(after.joint_velocity, before.joint_velocity[::-1])
        np.testing.assert_array_equal(after.joint_effort, before.joint_effort[::-1])


def test_missing_joints_and_fields_are_nan() -> None:
    result = observation()
    reader = conversions.JointStateReader(NAMES)
    reader.read(joint_state(["other", "knee"], position=[9.0, 0.5]), result)
    assert reader.missing == ("hip", "ankle")
    np.testing.assert_array_equal(result.joint_position, [np.nan, 0.5, np.nan])
    assert np.isnan(result.joint_velocity).all()
    assert np.isnan(result.joint_effort).all()


def test_reader_follows_a_change_of_names() -> None:
    """The names all have the same length, so that only their bytes tell the messages apart."""
    names = ("hip_", "knee", "foot")
    result = Observation.zeros(3, 0)
    reader = conversions.JointStateReader(names)
    for order in (names, names[::-1], ("foot", "hip_", "knee"), names):
        reader.read(joint_state(order, position=[float(names.index(name)) for name in order]), result)
        np.testing.assert_array_equal(result.joint_position, [0.0, 1.0, 2.0])


def padded(data: bytes, names: Any, seed: int) -> bytes:
    """Return ``data`` with random bytes after its strings.

    CDR pads strings to multiples of four and does not clear the padding.
    """
    result, rng = bytearray(data), np.random.default_rng(seed)
    for name in ("base_link", *names):
        end = data.index(name.encode() + b"\0") + len(name) + 1
        result[end : end + -end % 4] = rng.bytes(-end % 4)
    return bytes(result)


@pytest.mark.parametrize("n", [2, 14, 29])
def test_what_pads_strings_is_neither_read_nor_learnt_again(n: int) -> None:
    names = [f"joint_{'x' * (i % 5)}_{i}" for i in range(n)]
    reader = WireReader(topics.JOINT_STATES.msgtype)
    seen, writer, learnt = Observation.zeros(n, 0), conversions.JointStateWriter(names, "base_link"), []
    for seed in range(300):
        seen.joint_position[:] = np.random.default_rng(seed).normal(size=n)
        data = padded(writer.write(seen, T_NS + seed), names, seed)
        np.testing.assert_array_equal(reader.read(data)[0], seen.joint_position)
        assert reader.t_ns == T_NS + seed
        if not learnt or learnt[-1] is not reader.layout:
            learnt.append(reader.layout)
    assert len(learnt) == 1
    renamed = [*names[:-1], names[-1][:-1] + "?"]
    reader.read(conversions.JointStateWriter(renamed, "base_link").write(seen, T_NS))
    assert reader.layout is not learnt[-1]
    assert reader.layout is not None
    assert reader.layout.texts[1:] == [("name", name.encode() + b"\0") for name in renamed]


def test_reader_tells_velocities_from_efforts() -> None:
    """Both messages have the same length and the same names; only the counts between the numbers differ."""
    result = Observation.zeros(3, 0)
    reader = conversions.JointStateReader(NAMES)
    for field, other in (("velocity", "effort"), ("effort", "velocity"), ("velocity", "effort")):
        reader.read(joint_state(NAMES, position=[0.0] * 3, **{field: [1.0, 2.0, 3.0]}), result)
        np.testing.assert_array_equal(getattr(result, f"joint_{field}"), [1.0, 2.0, 3.0])
        assert np.isnan(getattr(result, f"joint_{other}")).all()


def test_empty_joint_state_is_all_nan() -> None:
    result = observation()
    reader = conversions.JointStateReader(NAMES)
    reader.read(joint_state([]), result)
    assert np.isnan(result.joint_position).all()
    assert reader.missing == NAMES


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_wrench_survives_and_the_sign_turns_it(sign: float) -> None:
    wrench = np.arange(6.0)
    data = topics.ANKLE_WRENCH.encoder("l_ankle").write(T_NS, sign * wrench)
    message = deserialize_message(data, WrenchStamped)
    assert message.header.frame_id == "l_ankle"
    assert (message.wrench.force.z, message.wrench.torque.y) == (sign * 2.0, sign * 4.0)
    back = np.zeros(6)
    conversions.WrenchReader(sign).read(data, back)
    np.testing.assert_array_equal(back, wrench)


def test_wrench_reader_follows_a_longer_frame_id() -> None:
    reader, back = conversions.WrenchReader(), np.zeros(6)
    for frame in ("a", "a_much_longer_frame", "", "b"):
        reader.read(topics.ANKLE_WRENCH.encoder(frame).write(T_NS, np.arange(6.0)), back)
        np.testing.assert_array_equal(back, np.arange(6.0))


def test_imu_survives() -> None:
    before, after = observation(), Observation.zeros(len(NAMES), 2)
    data = conversions.ImuWriter("imu_link").write(before, T_NS)
    message = deserialize_message(data, Imu)
    assert message.header.frame_id == "imu_link"
    assert message.orientation.w == before.imu_orientation[3]
    assert message.angular_velocity.z == before.imu_angular_velocity[2]
    assert message.linear_acceleration.x == before.imu_linear_acceleration[0]
    conversions.ImuReader().read(data, after)
    np.testing.assert_array_equal(after.imu_orientation, before.imu_orientation)
    np.testing.assert_array_equal(after.imu_angular_velocity, before.imu_angular_velocity)
    np.testing.assert_array_equal(after.imu_linear_acceleration, before.imu_linear_acceleration)


def test_imu_without_orientation_is_nan() -> None:
    message = Imu()
    message.orientation_covariance[0] = -1.0
    result = observation()
    conversions.ImuReader().read(bytes(serialize_message(message)), result)
    assert np.isnan(result.imu_orientation).all()
    assert np.isfinite(result.imu_angular_velocity).all()


def test_point_in_the_air_is_nan() -> None:
    encoder = topics.SOLE_COP.encoder("l_sole")
    message = deserialize_message(encoder.write(T_NS, np.array([np.nan, np.nan, 0.0])), PointStamped)
    assert np.isnan([message.point.x, message.point.y]).all()
    assert message.point.z == 0.0
    message = deserialize_message(encoder.write(T_NS, np.array([1.0, 2.0, 3.0])), PointStamped)
    assert (message.point.x, message.point.z) == (1.0, 3.0)


def test_odometry_holds_pose_and_twist() -> None:
    encoder = topics.ODOMETRY.encoder(topics.ODOMETRY.frame)
    message = deserialize_message(encoder.write(T_NS, np.arange(7.0), np.arange(6.0) + 10.0), Odometry)
    assert (message.header.frame_id, message.child_frame_id) == ("odom", "base_link")
    assert (message.pose.pose.position.z, message.pose.pose.orientation.w) == (2.0, 6.0)
    assert (message.twist.twist.linear.x, message.twist.twist.angular.z) == (10.0, 15.0)


def test_contact_labels_match_the_data() -> None:
    contact = ContactResult.empty(2)
    contact.mode[1], contact.sliding[1], contact.cop_margin[1], contact.impact[1] = 9, True, 0.02, np.arange(6.0) + 10.0
    message = deserialize_message(conversions.ContactWriter().write(contact, 1, 1.0), Float64MultiArray)
    dim = message.layout.dim[0]
    labels = dim.label.split(",")
    assert labels == list(CONTACT_FIELDS)
    assert dim.size == len(message.data) == len(labels)
    for label, value in {"t": 1.0, "mode": 9.0, "sliding": 1.0, "cop_margin": 0.02, "impact_fz": 12.0}.items():
        assert message.data[labels.index(label)] == value


@pytest.mark.parametrize("topic", [topics.BODY_CONTACTS, topics.JOINT_STOPS], ids=lambda topic: str(topic.name))
def test_what_is_told_of_bodies_and_stops_is_read_by_joint(tmp_path: Path, topic: topics.Topic) -> None:
    """Joints that closed chains move are among the joint states but have no reports. Their columns stay empty."""
    rng = np.random.default_rng(0)
    truth = GroundTruth(*(np.zeros(n) for n in (7, 6, 3, 7)), *(rng.normal(size=n) for n in (3, (2, 3), 2)))
    told = conversions.ColumnsWriter(topic, ["hip", "knee"])
    assert told.has_values(truth)
    names, multi = ["knee", "turned", "hip"], "std_msgs/msg/Float64MultiArray"
    messages = []
    for i in range(3):
        state = recording_support.joint_state(i * 10**6, names, np.zeros(3), np.zeros(3), np.zeros(3))
        messages.append(("/joint_states", "sensor_msgs/msg/JointState", state))
        if i == 1:
            messages.append((topic.name, multi, bytes(told.write(truth, 1e-3))))
    recording_support.write_bag(tmp_path / "bag", messages).release()
    recording = load_recording(tmp_path / "bag")
    for column in topic.columns:
        values, expected = getattr(recording, column.name), getattr(truth, column.name)
        assert np.isnan(values[[0, 2]]).all()
        if column.per == "joint":
            np.testing.assert_array_equal(values[1][[2, 0]], expected)
            assert np.isnan(values[1][1]).all()
        else:
            np.testing.assert_array_equal(values[1], expected)


def test_messages_pass_the_field_checks_of_ros() -> None:
    """The check runs in another process, because the message modules read the variable when they are imported."""
    code = (
        "import numpy as np\n"
        "from bipedsim.sim.io import Observation\n"
        "from bipedsim.contact.base import ContactResult\n"
        "from bipedsim.sim import SETPOINT, Command\n"
        "from bipedsim_ros.wire import conversions as c, joint_commands as j\n"
        "from bipedsim_ros.wire.topics import ANKLE_WRENCH, IMU\n"
        "o = Observation.zeros(3, 2)\n"
        "w = c.JointStateWriter(('a', 'b', 'c'), 'base_link')\n"
        "c.JointStateReader(('c', 'a', 'b')).read(w.write(o, 5), o)\n"
        "c.ImuReader().read(IMU.encoder('imu').data(5), o)\n"
        "c.WrenchReader().read(ANKLE_WRENCH.encoder('l_sole').data(5), np.ones(6))\n"
        "c.ContactWriter().write(ContactResult.empty(2), 1, 0.5)\n"
        "assert j.CommandReader(('a', 'b')).read(j.CommandWriter(2).write(np.ones(2)), np.ones(2)) is None\n"
        "stiff = j.ImpedanceWriter(2).write(Command(*np.ones((5, 2))))\n"
        "assert j.ImpedanceReader(('a', 'b')).read(stiff, np.ones((len(SETPOINT), 2))) is None\n"
    )
    environment = {**os.environ, "ROS_PYTHON_CHECK_FIELDS": "1"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_heights_are_matched_by_their_points() -> None:
    """A controller gets the heights at its points in its own order, and no others."""
    points = np.array([[0.1, 0.0], [-0.1, 0.2], [0.0, 0.0]])
    sent, seen = Observation.zeros(0, 0), Observation.zeros(0, 0)
    sent.height_scan, seen.height_scan = np.zeros(3), np.full(2, np.nan)
    reader = HeightScanReader(points[[2, 0]])
    for heights in ([1.0, 2.0, 3.0], [4.0, 5.0, np.inf]):
        sent.height_scan[:] = heights
        reader.read(HeightScanWriter(points).write(sent), seen)
        np.testing.assert_array_equal(seen.height_scan, sent.height_scan[[2, 0]])
    sent.height_scan = np.zeros(2)
    with pytest.raises(MessageError):
        reader.read(HeightScanWriter(points[:2]).write(sent), seen)
