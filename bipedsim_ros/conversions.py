"""Messages to arrays and back, with messages that are built once and refilled every tick.

A new JointState costs 4 to 8 us, refilling one under 1 us: the arrays of the messages are ``array.array`` objects that numpy writes
through ``frombuffer``. Assigning numpy arrays to message fields would be as quick, but raises with ROS_PYTHON_CHECK_FIELDS=1.
All messages of one tick share one stamp object.
"""

from __future__ import annotations

import array
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from bipedsim.robot_io import Observation

Array = NDArray[np.float64]

NS_PER_S = 1_000_000_000
CONTACT_FIELDS = ("t", "mode", "clamped", "sliding", "cop_margin", "friction_used")


def set_stamp(stamp: Time, t_ns: int) -> None:
    """Write the time ``t_ns`` [ns] into a message's stamp."""
    stamp.sec, stamp.nanosec = divmod(t_ns, NS_PER_S)


def stamp_ns(stamp: Time) -> int:
    """Return a message's stamp [ns]."""
    return int(stamp.sec) * NS_PER_S + int(stamp.nanosec)


def float_field(message: object, name: str, n: int) -> Array:
    """Give the field ``name`` of a message ``n`` doubles and return the numpy view that writes them.

    The view is taken from the message and not from what was assigned: the setter copies, or not, as ROS_PYTHON_CHECK_FIELDS has it.
    """
    setattr(message, name, array.array("d", bytes(8 * n)))
    return np.frombuffer(getattr(message, name), dtype=np.float64)


class JointStateWriter:
    """Fills one JointState from observations; positions [rad], velocities [rad/s], efforts [N.m]."""

    def __init__(self, joint_names: Sequence[str], stamp: Time, frame_id: str) -> None:
        n = len(joint_names)
        self.message = JointState()
        self.message.header.stamp = stamp
        self.message.header.frame_id = frame_id
        self.message.name = list(joint_names)
        self._position = float_field(self.message, "position", n)
        self._velocity = float_field(self.message, "velocity", n)
        self._effort = float_field(self.message, "effort", n)

    def write(self, observation: Observation) -> None:
        """Copy the joint measurements of ``observation`` into the message."""
        self._position[:] = observation.joint_position
        self._velocity[:] = observation.joint_velocity
        self._effort[:] = observation.joint_effort


class JointStateReader:
    """Reads JointState messages by joint name into an observation, as ros2_control's users must.

    The order of the message is looked up once and again only when its names change. What the message does not carry is NaN.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._joint_names = tuple(joint_names)
        self._names: list[str] = []
        self._source: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._target: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.missing: tuple[str, ...] = self._joint_names

    def _match(self, names: Sequence[str]) -> None:
        index = {name: i for i, name in enumerate(names)}
        found = [(i, index[name]) for i, name in enumerate(self._joint_names) if name in index]
        self._names = list(names)
        self._target = np.array([target for target, _ in found], dtype=np.intp)
        self._source = np.array([source for _, source in found], dtype=np.intp)
        self.missing = tuple(name for name in self._joint_names if name not in index)

    def read(self, message: JointState, observation: Observation) -> None:
        """Copy the joints that the message names into ``observation``; every other entry becomes NaN.

        After the call :attr:`missing` names the joints that the message did not hold at all.
        """
        if message.name != self._names:
            self._match(message.name)
        for field, target in (
            (message.position, observation.joint_position),
            (message.velocity, observation.joint_velocity),
            (message.effort, observation.joint_effort),
        ):
            if len(field) == len(self._names) and len(field) > 0:
                if len(self._target) < len(target):
                    target.fill(np.nan)
                target[self._target] = np.frombuffer(field, dtype=np.float64)[self._source]
            else:
                target.fill(np.nan)
        observation.t = stamp_ns(message.header.stamp) / NS_PER_S


class WrenchWriter:
    """Fills one WrenchStamped; ``sign`` = -1 turns the wrench of the ground on the foot into the foot's on the ground."""

    def __init__(self, stamp: Time, frame_id: str, sign: float = 1.0) -> None:
        self.message = WrenchStamped()
        self.message.header.stamp = stamp
        self.message.header.frame_id = frame_id
        self._sign = sign

    def write(self, wrench: Array) -> None:
        """Copy a wrench (6,), force [N] then torque [N.m] in the frame of the header."""
        force, torque = self.message.wrench.force, self.message.wrench.torque
        force.x, force.y, force.z, torque.x, torque.y, torque.z = (self._sign * wrench).tolist()


def read_wrench(message: WrenchStamped, wrench: Array, sign: float = 1.0) -> None:
    """Copy force [N] and torque [N.m] of a message into ``wrench`` (6,), times ``sign``."""
    force, torque = message.wrench.force, message.wrench.torque
    wrench[:] = (force.x, force.y, force.z, torque.x, torque.y, torque.z)
    wrench *= sign


class ImuWriter:
    """Fills one Imu (REP-145: specific force, +g along the upward axis at rest)."""

    def __init__(self, stamp: Time, frame_id: str) -> None:
        self.message = Imu()
        self.message.header.stamp = stamp
        self.message.header.frame_id = frame_id

    def write(self, observation: Observation) -> None:
        """Copy orientation, angular velocity [rad/s] and specific force [m/s^2], all in the IMU frame."""
        orientation = self.message.orientation
        rate, acceleration = self.message.angular_velocity, self.message.linear_acceleration
        orientation.x, orientation.y, orientation.z, orientation.w = observation.imu_orientation.tolist()
        rate.x, rate.y, rate.z = observation.imu_angular_velocity.tolist()
        acceleration.x, acceleration.y, acceleration.z = observation.imu_linear_acceleration.tolist()


def read_imu(message: Imu, observation: Observation) -> None:
    """Copy an Imu message into the IMU fields of ``observation``.

    A message whose ``orientation_covariance[0]`` is -1 carries no orientation (sensor_msgs/Imu): it becomes NaN.
    """
    if message.orientation_covariance[0] == -1.0:
        observation.imu_orientation.fill(np.nan)
    else:
        orientation = message.orientation
        observation.imu_orientation[:] = (orientation.x, orientation.y, orientation.z, orientation.w)
    rate, acceleration = message.angular_velocity, message.linear_acceleration
    observation.imu_angular_velocity[:] = (rate.x, rate.y, rate.z)
    observation.imu_linear_acceleration[:] = (acceleration.x, acceleration.y, acceleration.z)


class PointWriter:
    """Fills one PointStamped; NaN coordinates say that there is no such point, as for a foot in the air."""

    def __init__(self, stamp: Time, frame_id: str) -> None:
        self.message = PointStamped()
        self.message.header.stamp = stamp
        self.message.header.frame_id = frame_id

    def write(self, point: Sequence[float]) -> None:
        """Copy (x, y) or (x, y, z) [m] in the frame of the header; a planar point has z = 0."""
        self.message.point.x, self.message.point.y = point[0], point[1]
        self.message.point.z = point[2] if len(point) > 2 else 0.0


class OdometryWriter:
    """Fills one Odometry with the true base pose and twist."""

    def __init__(self, stamp: Time, frame_id: str, child_frame_id: str) -> None:
        self.message = Odometry()
        self.message.header.stamp = stamp
        self.message.header.frame_id = frame_id
        self.message.child_frame_id = child_frame_id

    def write(self, pose: Array, twist: Array) -> None:
        """Copy a pose (7,), position [m] then quaternion x y z w, and a twist (6,), linear [m/s] then angular in the child frame."""
        position, orientation = self.message.pose.pose.position, self.message.pose.pose.orientation
        linear, angular = self.message.twist.twist.linear, self.message.twist.twist.angular
        values = pose.tolist()
        position.x, position.y, position.z = values[:3]
        orientation.x, orientation.y, orientation.z, orientation.w = values[3:]
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = twist.tolist()


class ContactWriter:
    """Fills one Float64MultiArray with :data:`CONTACT_FIELDS` of one foot; the layout's label names them."""

    def __init__(self) -> None:
        n = len(CONTACT_FIELDS)
        self.message = Float64MultiArray()
        self.message.layout.dim = [MultiArrayDimension(label=",".join(CONTACT_FIELDS), size=n, stride=n)]
        self._data = float_field(self.message, "data", n)

    def write(self, values: Sequence[float]) -> None:
        """Copy the values in the order of :data:`CONTACT_FIELDS`."""
        self._data[:] = values


class ClockWriter:
    """Fills one Clock message with the shared stamp."""

    def __init__(self, stamp: Time) -> None:
        self.message = Clock()
        self.message.clock = stamp


class CommandWriter:
    """Fills one Float64MultiArray of joint torques [N.m], as ros2_control's effort controller takes them."""

    def __init__(self, n: int) -> None:
        self.message = Float64MultiArray()
        self._data = float_field(self.message, "data", n)

    def write(self, tau_joint: Array) -> None:
        """Copy the torques (nu,) into the message."""
        self._data[:] = tau_joint


def read_command(message: Float64MultiArray, tau_joint: Array, joint_names: Sequence[str]) -> str:
    """Copy a command into ``tau_joint`` (nu,) [N.m] if it is sound.

    Returns:
        An empty string, or what is wrong with the message; then ``tau_joint`` is left as it was.
    """
    data = message.data
    if len(data) != len(tau_joint):
        return f"it has {len(data)} values, expected {len(tau_joint)} ({', '.join(joint_names)})"
    values = np.frombuffer(data, dtype=np.float64)
    if not np.isfinite(values).all():
        wrong = [f"{joint_names[i]} = {values[i]}" for i in np.flatnonzero(~np.isfinite(values))]
        return f"it is not finite: {', '.join(wrong)}"
    tau_joint[:] = values
    return ""
