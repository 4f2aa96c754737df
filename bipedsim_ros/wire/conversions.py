"""Convert observations to serialised messages and back; :mod:`bipedsim_ros.wire.wire` explains the format.

Messages whose numbers are those of one array need no class here: :meth:`bipedsim_ros.wire.Topic.encoder` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.model import Chains
from bipedsim.numerics import Array, Indices
from bipedsim.recording import CONTACT_FIELDS
from bipedsim.recording.bag import NS_PER_S, Encoder, blank, labelled
from bipedsim.sim import Observation, scan_points
from bipedsim_ros.wire.topics import (
    ANKLE_WRENCH,
    CONTACT,
    HEIGHT_POINTS,
    HEIGHT_SCAN,
    IMU,
    JOINT_STATES,
    SWITCH,
    VELOCITY,
    Topic,
)
from bipedsim_ros.wire.wire import Layout, MessageError, WireReader

FLOAT32 = np.dtype("<f4")
"""Type of the coordinates in a point cloud, ``sensor_msgs/msg/PointField.FLOAT32``."""

if TYPE_CHECKING:
    from bipedsim.contact import ContactResult


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
        zeros = dict.fromkeys(("position", "velocity", "effort"), np.zeros(len(names)))
        self._wire = Encoder(JOINT_STATES.msgtype, {"header.frame_id": frame_id, "name": names, **zeros})

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


def effort_encoder(joint_names: Sequence[str], frame_id: str) -> Encoder:
    """Return an encoder of JointState messages that contain only torques [N.m]."""
    fixed = {"header.frame_id": frame_id, "name": list(joint_names), "effort": np.zeros(len(joint_names))}
    return Encoder(JOINT_STATES.msgtype, fixed, ("effort",))


class JointStateReader:
    """Reads JointState messages into an observation and matches the joints by name.

    ros2_control does not guarantee an order of the joints. Values that a message lacks become NaN.

    Attributes:
        missing: Joints that the last message did not name.
        t_ns: Stamp of the last message [ns].
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._joint_names = tuple(joint_names)
        self._wire = WireReader(JOINT_STATES.msgtype)
        self._matched: Layout | None = None
        self._names = 0
        self._source: Indices = np.zeros(0, dtype=np.intp)
        self._target: Indices = np.zeros(0, dtype=np.intp)
        self.missing: tuple[str, ...] = self._joint_names
        self.t_ns = 0

    def _match(self, layout: Layout) -> None:
        names = [text.partition(b"\0")[0].decode("utf-8", "replace") for path, text in layout.texts if path == "name"]
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


class WrenchReader:
    """Reads WrenchStamped messages and multiplies them by ``sign``."""

    def __init__(self, sign: float = 1.0) -> None:
        self._wire = WireReader(ANKLE_WRENCH.msgtype)
        self._sign = sign

    def read(self, data: bytes, wrench: Array) -> None:
        """Copy force [N] and torque [N.m] of a serialised message into ``wrench`` (6,)."""
        np.multiply(self._wire.read(data)[0], self._sign, out=wrench)


class HeightScanWriter:
    """Writes the messages of the height scan: x, y and height for each point.

    Args:
        points: (S, 2) points in the heading frame of the base [m].
    """

    def __init__(self, points: Array) -> None:
        self._rows = np.column_stack([points, np.zeros(len(points))])
        dims = [
            blank("std_msgs/msg/MultiArrayDimension", {"label": label, "size": size, "stride": stride})
            for label, size, stride in (("point", len(points), self._rows.size), ("x,y,height", 3, 3))
        ]
        self._wire = Encoder(HEIGHT_SCAN.msgtype, {"layout.dim": dims, "data": np.zeros(self._rows.size)})

    def write(self, observation: Observation) -> bytes:
        """Return the message for the heights of ``observation`` [m]."""
        self._rows[:, 2] = observation.height_scan
        return self._wire.write(0, self._rows.ravel())


class HeightPointsWriter:
    """Writes the points of the height scan as point clouds, for elevation maps and RViz.

    Args:
        points: (S, 2) points in the heading frame of the base [m].
    """

    def __init__(self, points: Array) -> None:
        self._points = points
        size = 3 * FLOAT32.itemsize
        fields = [
            blank(
                "sensor_msgs/msg/PointField", {"name": name, "offset": i * FLOAT32.itemsize, "datatype": 7, "count": 1}
            )
            for i, name in enumerate("xyz")
        ]
        fixed = {
            "header.frame_id": HEIGHT_POINTS.frame,
            "height": 1,
            "width": len(points),
            "fields": fields,
            "point_step": size,
            "row_step": size * len(points),
            "data": np.zeros(size * len(points), dtype=np.uint8),
        }
        self._wire = Encoder(HEIGHT_POINTS.msgtype, fixed, ("data",))

    def write(self, observation: Observation, t_ns: int) -> bytes:
        """Return the message for the scan of ``observation``, stamped ``t_ns`` [ns]."""
        points = scan_points(self._points, observation.height_scan, observation.scan_up)
        return self._wire.write(t_ns, points.astype(FLOAT32).ravel().view(np.uint8))


class HeightScanReader:
    """Reads the messages of the height scan for a controller.

    Args:
        points: (S, 2) points that the controller needs, in the heading frame of the base [m].
    """

    def __init__(self, points: Array) -> None:
        self._wire = WireReader(HEIGHT_SCAN.msgtype)
        self._points = points
        self._sent = np.zeros((0, 2))
        self._order = np.zeros(0, dtype=np.int64)

    def read(self, data: bytes, observation: Observation) -> None:
        """Copy the heights at the points of the controller into ``observation``; its vertical becomes unknown (NaN).

        Raises:
            MessageError: A point is missing in the message.
        """
        rows = np.reshape(self._wire.read(data)[0], (-1, 3))
        if not np.array_equal(rows[:, :2], self._sent):
            apart = np.abs(rows[None, :, :2] - self._points[:, None]).max(axis=2)
            if not (len(rows) and apart.min(axis=1).max() < 1e-6):
                wanted = self._points[int(np.argmax(apart.min(axis=1)))] if len(rows) else self._points[0]
                raise MessageError(f"has no height at {wanted.round(3).tolist()}, where the controller needs one")
            self._sent, self._order = rows[:, :2].copy(), apart.argmin(axis=1)
        observation.height_scan[:] = rows[self._order, 2]
        observation.scan_up.fill(np.nan)


class ImuWriter:
    """Writes Imu messages (REP-145: specific force, +g along the upward axis at rest)."""

    def __init__(self, frame_id: str) -> None:
        self._wire = IMU.encoder(frame_id, ("orientation", "angular_velocity", "linear_acceleration"))

    def write(self, observation: Observation, t_ns: int) -> bytes:
        """Return orientation, angular velocity [rad/s] and specific force [m/s^2], all in the IMU frame."""
        o = observation
        return self._wire.write(t_ns, o.imu_orientation, o.imu_angular_velocity, o.imu_linear_acceleration)

    def write_row(self, row: Array, t_ns: int) -> bytes:
        """Return the message of an additional IMU; ``row`` (10,) is that of ``Observation.imus``."""
        return self._wire.write(t_ns, row[:4], row[4:7], row[7:])


class ImuReader:
    """Reads Imu messages.

    The orientation becomes NaN if ``orientation_covariance[0]`` is -1, which means no orientation (sensor_msgs/Imu).
    """

    def __init__(self) -> None:
        self._wire = WireReader(IMU.msgtype)

    def read(self, data: bytes, observation: Observation) -> None:
        """Copy a serialised message into the IMU fields of ``observation``."""
        o = observation
        self._fill(data, o.imu_orientation, o.imu_angular_velocity, o.imu_linear_acceleration)

    def read_row(self, data: bytes, row: Array) -> None:
        """Copy a serialised message into ``row`` (10,) of ``Observation.imus``."""
        self._fill(data, row[:4], row[4:7], row[7:])

    def _fill(self, data: bytes, orientation: Array, rate: Array, acceleration: Array) -> None:
        measured, rate[:], acceleration[:], covariance = self._wire.read(data)
        orientation[:] = measured if covariance[0] != -1.0 else np.nan


class SwitchWriter:
    """Writes the messages of a contact switch."""

    def __init__(self) -> None:
        self._open, self._closed = (Encoder(SWITCH.msgtype, {"data": closed}).data(0) for closed in (False, True))

    def write(self, closed: float) -> bytes:
        """Return the message of a switch that is closed (1) or open (0)."""
        return self._closed if closed else self._open


class SwitchReader:
    """Reads the messages of a contact switch."""

    def __init__(self) -> None:
        self._wire = WireReader(SWITCH.msgtype)

    def read(self, data: bytes, out: Array) -> None:
        """Copy a serialised message into ``out`` (1,): 1 for closed, 0 for open."""
        out[:] = self._wire.read(data)[0] != 0


class ContactWriter:
    """Writes Float64MultiArray messages with the columns of the contact topic; the layout's label names the values."""

    def __init__(self) -> None:
        self._wire = labelled(CONTACT_FIELDS)
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
        self._wire = labelled(labels)
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


class TwistWriter:
    """Writes Twist messages with the planar velocity of a robot on the ground."""

    def __init__(self) -> None:
        self._wire = VELOCITY.encoder(fields=("linear.x", "linear.y", "angular.z"))

    def write(self, velocity: tuple[float, float, float]) -> bytes:
        """Return the message for forward and leftward velocity [m/s] and yaw rate [rad/s]."""
        return self._wire.write(0, *velocity)


class TwistReader:
    """Reads the planar velocity of a robot on the ground from Twist messages."""

    def __init__(self) -> None:
        self._wire = WireReader(VELOCITY.msgtype)

    def read(self, data: bytes) -> tuple[float, float, float]:
        """Return forward and leftward velocity [m/s] and yaw rate [rad/s] of a serialised message."""
        linear, angular = self._wire.read(data)
        return float(linear[0]), float(linear[1]), float(angular[2])
