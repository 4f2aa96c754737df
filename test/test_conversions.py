"""Messages and arrays: both directions agree, by name and not by order, with and without ROS_PYTHON_CHECK_FIELDS."""

from __future__ import annotations

import array
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("rclpy", reason="rclpy is not installed")

from builtin_interfaces.msg import Time
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from bipedsim.robot_io import Observation
from bipedsim_ros import conversions

NAMES = ("hip", "knee", "ankle")


def observation(seed: int = 0) -> Observation:
    rng = np.random.default_rng(seed)
    result = Observation.zeros(len(NAMES), 2)
    for name in Observation.__dataclass_fields__:
        if name != "t":
            values = getattr(result, name)
            values[:] = rng.normal(size=values.shape)
    return result


@given(st.integers(min_value=0, max_value=2**31 * conversions.NS_PER_S - 1))
def test_stamp_survives(t_ns: int) -> None:
    stamp = Time()
    conversions.set_stamp(stamp, t_ns)
    assert conversions.stamp_ns(stamp) == t_ns


def test_joint_states_survive_in_any_order() -> None:
    before, after = observation(), Observation.zeros(len(NAMES), 2)
    writer = conversions.JointStateWriter(NAMES, Time(sec=3), "base_link")
    writer.write(before)
    reader = conversions.JointStateReader(NAMES[::-1])
    reader.read(writer.message, after)
    assert reader.missing == ()
    assert after.t == 3.0
    np.testing.assert_array_equal(after.joint_position, before.joint_position[::-1])
    np.testing.assert_array_equal(after.joint_velocity, before.joint_velocity[::-1])
    np.testing.assert_array_equal(after.joint_effort, before.joint_effort[::-1])


def test_missing_joints_and_fields_are_nan() -> None:
    result = observation()
    message = JointState(name=["other", "knee"], position=[9.0, 0.5])
    reader = conversions.JointStateReader(NAMES)
    reader.read(message, result)
    assert reader.missing == ("hip", "ankle")
    np.testing.assert_array_equal(result.joint_position, [np.nan, 0.5, np.nan])
    assert np.isnan(result.joint_velocity).all()
    assert np.isnan(result.joint_effort).all()


def test_reader_follows_a_change_of_names() -> None:
    result = observation()
    reader = conversions.JointStateReader(NAMES)
    for names in (NAMES, NAMES[::-1], ("ankle", "hip", "knee")):
        reader.read(JointState(name=list(names), position=[float(NAMES.index(name)) for name in names]), result)
        np.testing.assert_array_equal(result.joint_position, [0.0, 1.0, 2.0])


def test_empty_joint_state_is_all_nan() -> None:
    result = observation()
    reader = conversions.JointStateReader(NAMES)
    reader.read(JointState(), result)
    assert np.isnan(result.joint_position).all()
    assert reader.missing == NAMES


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_wrench_survives_and_the_sign_turns_it(sign: float) -> None:
    wrench = np.arange(6.0)
    writer = conversions.WrenchWriter(Time(), "l_ankle", sign)
    writer.write(wrench)
    assert writer.message.wrench.force.z == sign * 2.0
    back = np.zeros(6)
    conversions.read_wrench(writer.message, back, sign)
    np.testing.assert_array_equal(back, wrench)


def test_imu_survives() -> None:
    before, after = observation(), Observation.zeros(len(NAMES), 2)
    writer = conversions.ImuWriter(Time(), "imu_link")
    writer.write(before)
    conversions.read_imu(writer.message, after)
    np.testing.assert_array_equal(after.imu_orientation, before.imu_orientation)
    np.testing.assert_array_equal(after.imu_angular_velocity, before.imu_angular_velocity)
    np.testing.assert_array_equal(after.imu_linear_acceleration, before.imu_linear_acceleration)


def test_imu_without_orientation_is_nan() -> None:
    message = Imu()
    message.orientation_covariance[0] = -1.0
    result = observation()
    conversions.read_imu(message, result)
    assert np.isnan(result.imu_orientation).all()
    assert np.isfinite(result.imu_angular_velocity).all()


def test_point_in_the_air_is_nan() -> None:
    writer = conversions.PointWriter(Time(), "l_sole")
    writer.write([float("nan"), float("nan")])
    assert np.isnan([writer.message.point.x, writer.message.point.y]).all()
    assert writer.message.point.z == 0.0
    writer.write([1.0, 2.0, 3.0])
    assert writer.message.point.z == 3.0


def test_odometry_holds_pose_and_twist() -> None:
    writer = conversions.OdometryWriter(Time(), "odom", "base_link")
    writer.write(np.arange(7.0), np.arange(6.0) + 10.0)
    message = writer.message
    assert (message.header.frame_id, message.child_frame_id) == ("odom", "base_link")
    assert (message.pose.pose.position.z, message.pose.pose.orientation.w) == (2.0, 6.0)
    assert (message.twist.twist.linear.x, message.twist.twist.angular.z) == (10.0, 15.0)


def test_contact_labels_match_the_data() -> None:
    writer = conversions.ContactWriter()
    writer.write([1.0, 9.0, 0.0, 1.0, 0.02, 0.4])
    dim = writer.message.layout.dim[0]
    assert dim.label.split(",") == list(conversions.CONTACT_FIELDS)
    assert dim.size == len(writer.message.data) == 6
    assert writer.message.data[4] == 0.02


def test_sound_command_is_copied() -> None:
    writer = conversions.CommandWriter(3)
    writer.write(np.array([1.0, -2.0, 3.0]))
    tau = np.zeros(3)
    assert conversions.read_command(writer.message, tau, NAMES) == ""
    np.testing.assert_array_equal(tau, [1.0, -2.0, 3.0])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([1.0], "it has 1 values, expected 3 (hip, knee, ankle)"),
        ([], "it has 0 values"),
        ([1.0, 2.0, 3.0, 4.0], "it has 4 values"),
        ([1.0, float("nan"), 3.0], "knee = nan"),
        ([float("inf"), 2.0, float("-inf")], "hip = inf, ankle = -inf"),
    ],
)
def test_bad_command_is_named_and_not_applied(data: list[float], said: str) -> None:
    tau = np.full(3, 7.0)
    assert said in conversions.read_command(Float64MultiArray(data=array.array("d", data)), tau, NAMES)
    np.testing.assert_array_equal(tau, 7.0)


def test_messages_pass_the_field_checks_of_ros() -> None:
    """Checked in another process: the message modules read the variable when they are imported."""
    code = (
        "import numpy as np\n"
        "from builtin_interfaces.msg import Time\n"
        "from bipedsim.robot_io import Observation\n"
        "from bipedsim_ros import conversions as c\n"
        "o, stamp = Observation.zeros(3, 2), Time()\n"
        "c.set_stamp(stamp, 1_500_000_000)\n"
        "c.JointStateWriter(('a', 'b', 'c'), stamp, 'base_link').write(o)\n"
        "c.ImuWriter(stamp, 'imu').write(o)\n"
        "c.WrenchWriter(stamp, 'l_sole').write(np.ones(6))\n"
        "c.PointWriter(stamp, 'odom').write(np.ones(3).tolist())\n"
        "c.OdometryWriter(stamp, 'odom', 'base_link').write(np.ones(7), np.ones(6))\n"
        "c.ContactWriter().write([0.0] * 6)\n"
        "c.CommandWriter(3).write(np.ones(3))\n"
        "c.ClockWriter(stamp)\n"
    )
    environment = {**os.environ, "ROS_PYTHON_CHECK_FIELDS": "1"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
