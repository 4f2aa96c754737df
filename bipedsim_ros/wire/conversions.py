"""Convert observations to serialised messages and back; :mod:`bipedsim_ros.wire.wire` explains the format."""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PointStamped, Twist, WrenchStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64, Float64MultiArray, MultiArrayDimension

from bipedsim.model import Chains
from bipedsim.numerics import Array, Indices
from bipedsim.recording import CONTACT_FIELDS
from bipedsim.sim import Observation
from bipedsim_ros.wire.topics import CONTACT, Topic
from bipedsim_ros.wire.wire import NS_PER_S, Layout, WireReader, WireWriter

if TYPE_CHECKING:
    from bipedsim.contact import ContactResult


def _zeros(n: int) -> array.array[float]:
    return array.array("d", bytes(8 * n))


_JOINTS = ("position", "velocity", "effort")
_IMU = (
    "orientation",
    "orientation_covariance",
    "angular_velocity",
    "angular_velocity_covariance",
    "linear_acceleration",
)


class JointStateWriter:
    """Writes JointState messages from observations: positions [rad], velocities [rad/s], efforts [N.m].

    Args:
        joint_names: Measured joints.
        frame_id: Frame of the header.
        chains: Computes the dependent joints of closed kinematic chains. They come last, with an effort of 0.
    """

    def __init__(self, joint_names: Sequence[str], frame_id: str, chains: Chains | None = None) -> None:
        self._chains = chains
        self._measured = len(joint_names)
        names = [*joint_names, *(chains.joint_names if chains is not None else ())]
        n = len(names)
        message = JointState(name=names, position=_zeros(n), velocity=_zeros(n), effort=_zeros(n))
        message.header.frame_id = frame_id
        self._wire = WireWriter(message, _JOINTS)

    def write(self, observation: Observation, t_ns: int) -> bytes:
        """Return the message for the joint measurements of ``observation``, stamped ``t_ns`` [ns]."""
        for field, values in zip(
            self._wire.groups,
            (observation.joint_position, observation.joint_velocity, observation.joint_effort),
            strict=True,
        ):
            field[: self._measured] = values
        if self._chains is not None:
            self._chains.follow(observation.joint_position, observation.joint_velocity)
            for field, followed in zip(self._wire.groups[:2], (self._chains.angles, self._chains.rates), strict=True):
                field[self._measured :] = followed
        return self._wire.data(t_ns)


class EffortWriter:
    """Writes JointState messages that contain only torques [N.m]."""

    def __init__(self, joint_names: Sequence[str], frame_id: str) -> None:
        message = JointState(name=list(joint_names), effort=_zeros(len(joint_names)))
        message.header.frame_id = frame_id
        self._wire = WireWriter(message, ("effort",))

    def write(self, effort: Array, t_ns: int) -> bytes:
        """Return the message for ``effort`` (nu,), stamped ``t_ns`` [ns]."""
        self._wire.groups[0][:] = effort
        return self._wire.data(t_ns)


class JointStateReader:
    """Reads JointState messages into an observation and matches the joints by name.

    ros2_control does not guarantee an order of the joints. Values that a message lacks become NaN.

    Attributes:
        missing: Joints that the last message did not name.
        t_ns: Stamp of the last message [ns].
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._joint_names = tuple(joint_names)
        self._wire = WireReader(JointState, _JOINTS)
        self._matched: Layout | None = None
        self._names = 0
        self._source: Indices = np.zeros(0, dtype=np.intp)
        self._target: Indices = np.zeros(0, dtype=np.intp)
        self.missing: tuple[str, ...] = self._joint_names
        self.t_ns = 0

    def _match(self, layout: Layout) -> None:
        names = [name.partition(b"\0")[0].decode("utf-8", "replace") for name in layout.texts["name"]]
        index = {name: i for i, name in enumerate(names)}
        matches = [(i, index[name]) for i, name in enumerate(self._joint_names) if name in index]
        self._matched = layout
        self._names = len(names)
        self._target = np.array([target for target, _ in matches], dtype=np.intp)
        self._source = np.array([source for _, source in matches], dtype=np.intp)
        self.missing = tuple(name for name in self._joint_names if name not in index)

    def read(self, data: bytes, observation: Observation) -> None:
        """Copy the joints of a serialised message into ``observation``; every other entry becomes NaN.

        Raises:
            MessageError: The message cannot be read; the observation is unchanged.
        """
        fields = self._wire.read(data)
        layout = self._wire.layout
        if layout is not None and layout is not self._matched:
            self._match(layout)
        targets = (observation.joint_position, observation.joint_velocity, observation.joint_effort)
        for field, target in zip(fields, targets, strict=True):
            has_values = len(field) == self._names
            if not has_values or len(self._target) < len(target):
                target.fill(np.nan)
            if has_values:
                target[self._target] = field[self._source]
        self.t_ns = self._wire.t_ns
        observation.t = self.t_ns / NS_PER_S


class WrenchWriter:
    """Writes WrenchStamped messages, times ``sign``; -1 gives the wrench of the foot on the ground."""

    def __init__(self, frame_id: str, sign: float = 1.0) -> None:
        message = WrenchStamped()
        message.header.frame_id = frame_id
        self._wire = WireWriter(message, ("wrench",))
        self._sign = sign

    def write(self, wrench: Array, t_ns: int) -> bytes:
        """Return the message for a wrench (6,): force [N], torque [N.m], in the frame of the header."""
        np.multiply(wrench, self._sign, out=self._wire.groups[0])
        return self._wire.data(t_ns)


class WrenchReader:
    """Reads WrenchStamped messages and multiplies them by ``sign``."""

    def __init__(self, sign: float = 1.0) -> None:
        self._wire = WireReader(WrenchStamped, ("wrench",))
        self._sign = sign

    def read(self, data: bytes, wrench: Array) -> None:
        """Copy force [N] and torque [N.m] of a serialised message into ``wrench`` (6,)."""
        np.multiply(self._wire.read(data)[0], self._sign, out=wrench)


class ImuWriter:
    """Writes Imu messages (REP-145: specific force, +g along the upward axis at rest)."""

    def __init__(self, frame_id: str) -> None:
        message = Imu()
        message.header.frame_id = frame_id
        self._wire = WireWriter(message, _IMU)

    def write(self, observation: Observation, t_ns: int) -> bytes:
        """Return orientation, angular velocity [rad/s] and specific force [m/s^2], all in the IMU frame."""
        orientation, _, rate, _, acceleration = self._wire.groups
        orientation[:] = observation.imu_orientation
        rate[:] = observation.imu_angular_velocity
        acceleration[:] = observation.imu_linear_acceleration
        return self._wire.data(t_ns)


class ImuReader:
    """Reads Imu messages.

    The orientation becomes NaN if ``orientation_covariance[0]`` is -1, which means no orientation (sensor_msgs/Imu).
    """

    def __init__(self) -> None:
        self._wire = WireReader(Imu, _IMU)

    def read(self, data: bytes, observation: Observation) -> None:
        """Copy a serialised message into the IMU fields of ``observation``."""
        orientation, covariance, rate, _, acceleration = self._wire.read(data)
        observation.imu_orientation[:] = orientation if covariance[0] != -1.0 else np.nan
        observation.imu_angular_velocity[:] = rate
        observation.imu_linear_acceleration[:] = acceleration


class PointWriter:
    """Writes PointStamped messages; NaN coordinates mean that the point does not exist, as for a foot in the air."""

    def __init__(self, frame_id: str) -> None:
        message = PointStamped()
        message.header.frame_id = frame_id
        self._wire = WireWriter(message, ("point",))

    def write(self, point: Array, t_ns: int) -> bytes:
        """Return the message for (x, y) or (x, y, z) [m] in the frame of the header; a planar point has z = 0."""
        self._wire.groups[0][: len(point)] = point
        return self._wire.data(t_ns)


class OdometryWriter:
    """Writes Odometry messages with the true or estimated pose and twist of the base."""

    def __init__(self, frame_id: str, child_frame_id: str) -> None:
        message = Odometry(child_frame_id=child_frame_id)
        message.header.frame_id = frame_id
        self._wire = WireWriter(message, ("pose.pose", "twist.twist"))

    def write(self, pose: Array, twist: Array, t_ns: int) -> bytes:
        """Return the message for a pose (7,) and a twist (6,).

        Args:
            pose: Position [m], then quaternion x y z w.
            twist: Linear [m/s], then angular velocity [rad/s], in the child frame.
            t_ns: Stamp [ns].
        """
        self._wire.groups[0][:] = pose
        self._wire.groups[1][:] = twist
        return self._wire.data(t_ns)


def _array_writer(labels: Sequence[str]) -> WireWriter:
    """Return a writer of Float64MultiArray messages whose layout names the values."""
    n = len(labels)
    message = Float64MultiArray(data=_zeros(n))
    message.layout.dim = [MultiArrayDimension(label=",".join(labels), size=n, stride=n)]
    return WireWriter(message, ("data",))


class ContactWriter:
    """Writes Float64MultiArray messages with the columns of the contact topic; the layout's label names the values."""

    def __init__(self) -> None:
        self._wire = _array_writer(CONTACT_FIELDS)
        numbers = self._wire.groups[0]
        at = {label: i for i, label in enumerate(CONTACT_FIELDS)}
        self._t = numbers[at["t"] : at["t"] + 1]
        # The values of one column are contiguous.
        self._places = [
            (column.source.partition(".")[2], numbers[at[column.labels[0]] : at[column.labels[-1]] + 1])
            for column in CONTACT.columns
        ]

    def write(self, contact: ContactResult, k: int, t: float) -> bytes:
        """Return the message for foot ``k`` at the time ``t`` [s]."""
        self._t[0] = t
        for attribute, numbers in self._places:
            numbers[:] = getattr(contact, attribute)[k]
        return self._wire.data(0)


class ColumnsWriter:
    """Writes Float64MultiArray messages with the time and the columns of a topic; the layout's label names the values.

    Args:
        topic: The topic.
        joint_names: Joints of the robot.
    """

    def __init__(self, topic: Topic, joint_names: Sequence[str]) -> None:
        labels = ["t", *(label for column in topic.columns for label in column.labels_of(joint_names))]
        self._wire = _array_writer(labels)
        self._sources = [column.source.partition(".")[2] for column in topic.columns]

    def has_values(self, source: Any) -> bool:
        """Return whether ``source``, which has the columns as attributes, contains values and not only NaN."""
        first = getattr(source, self._sources[0])
        return bool(first.size and not np.isnan(first.flat[0]))

    def write(self, source: Any, t: float) -> bytes:
        """Return the message for the time ``t`` [s]; ``source`` has the columns as attributes."""
        numbers = self._wire.groups[0]
        numbers[0] = t
        numbers[1:] = np.concatenate([getattr(source, name).ravel() for name in self._sources])
        return self._wire.data(0)


class NumbersWriter:
    """Writes Float64MultiArray messages of values that the layout's label names."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._wire = _array_writer(labels)

    def write(self, numbers: Array) -> bytes:
        """Return the message for ``numbers``, one for each label."""
        self._wire.groups[0][:] = numbers
        return self._wire.data(0)


class ClockWriter:
    """Writes Clock messages."""

    def __init__(self) -> None:
        self._wire = WireWriter(Clock(), ())

    def write(self, t_ns: int) -> bytes:
        """Return the message for the time ``t_ns`` [ns]."""
        return self._wire.data(t_ns)


class NumberWriter:
    """Writes Float64 messages."""

    def __init__(self) -> None:
        self._wire = WireWriter(Float64(), ("data",))

    def write(self, value: float) -> bytes:
        """Return the message for a number."""
        self._wire.groups[0][0] = value
        return self._wire.data(0)


class TwistWriter:
    """Writes Twist messages with the planar velocity of a robot on the ground."""

    def __init__(self) -> None:
        self._wire = WireWriter(Twist(), ("",))

    def write(self, velocity: tuple[float, float, float]) -> bytes:
        """Return the message for forward and leftward velocity [m/s] and yaw rate [rad/s]."""
        self._wire.groups[0][[0, 1, 5]] = velocity
        return self._wire.data(0)


class TwistReader:
    """Reads the planar velocity of a robot on the ground from Twist messages."""

    def __init__(self) -> None:
        self._wire = WireReader(Twist, ("",))

    def read(self, data: bytes) -> tuple[float, float, float]:
        """Return forward and leftward velocity [m/s] and yaw rate [rad/s] of a serialised message."""
        vx, vy, _, _, _, wz = self._wire.read(data)[0].tolist()
        return vx, vy, wz
