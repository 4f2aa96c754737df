"""Serialised ROS messages to arrays, a topic at a time and without ROS: ``rosbags`` decodes, this picks and stacks."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_typestore

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array, Integers

# The types below are the same in every distribution.
_STORE = get_typestore(Stores.ROS2_JAZZY)


def _components(*vectors: str, axes: str = "xyz") -> Callable[[Any], Any]:
    return attrgetter(*(f"{vector}.{axis}" for vector in vectors for axis in axes))


def _pose(message: Any) -> tuple[float, ...]:
    at, turn = message.pose.pose.position, message.pose.pose.orientation
    return at.x, at.y, at.z, turn.x, turn.y, turn.z, turn.w


def _single(message: Any) -> tuple[float]:
    return (float(message.data),)


_COLUMNS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "sensor_msgs/msg/JointState": {name: attrgetter(name) for name in ("position", "velocity", "effort")},
    "geometry_msgs/msg/WrenchStamped": {"wrench": _components("wrench.force", "wrench.torque")},
    "geometry_msgs/msg/PointStamped": {"point": _components("point")},
    "sensor_msgs/msg/Imu": {
        "orientation": _components("orientation", axes="xyzw"),
        "angular_velocity": _components("angular_velocity"),
        "linear_acceleration": _components("linear_acceleration"),
        "orientation_covariance": attrgetter("orientation_covariance"),
    },
    "nav_msgs/msg/Odometry": {"pose": _pose, "twist": _components("twist.twist.linear", "twist.twist.angular")},
    "std_msgs/msg/Float64MultiArray": {"data": attrgetter("data")},
    "std_msgs/msg/Float64": {"data": _single},
    "std_msgs/msg/Bool": {"data": _single},
}


def _dimension_labels(message: Any) -> list[str]:
    return [label for dimension in message.layout.dim for label in dimension.label.split(",")]


_LABELS: dict[str, Callable[[Any], list[str]]] = {
    "sensor_msgs/msg/JointState": attrgetter("name"),
    "std_msgs/msg/Float64MultiArray": _dimension_labels,
}


@dataclass(frozen=True, eq=False)
class Columns:
    """The numbers of a topic.

    Attributes:
        stamp: (n,) header stamps [ns]; of a type without header, zeros.
        values: Field name to (n, k) array; NaN where a message has other labels, or another number of values, than the
            first.
        labels: Joint names of a JointState, labels of a Float64MultiArray, of the first message.
        frames: Every ``frame_id`` that occurs, in the order in which they came.
    """

    stamp: Integers
    values: dict[str, Array]
    labels: tuple[str, ...]
    frames: tuple[str, ...] = ()


def columns(messages: Sequence[bytes], msgtype: str) -> Columns:
    """Decode the messages of one topic.

    Args:
        messages: Serialised messages, encapsulation included; at least one.
        msgtype: One of JointState, WrenchStamped, PointStamped, Imu, Odometry, Float64MultiArray, Float64, Bool.

    Raises:
        RecordingError: The type is another one, or a message is damaged.
    """
    fields = _COLUMNS.get(msgtype)
    if fields is None:
        raise RecordingError(f"messages of type {msgtype} are not decoded; known: {', '.join(sorted(_COLUMNS))}")
    decoded = [_decode(raw, msgtype) for raw in messages]
    stamp = np.zeros(len(decoded), dtype=np.int64)
    frames: dict[str, None] = {}
    if hasattr(decoded[0], "header"):
        stamps = [message.header.stamp for message in decoded]
        frames = dict.fromkeys(message.header.frame_id for message in decoded)
        stamp[:] = [s.sec * 1_000_000_000 + s.nanosec for s in stamps]
    labels_of = _LABELS.get(msgtype, lambda _message: [])
    labels = labels_of(decoded[0])
    same = [labels_of(message) == labels for message in decoded]
    values = {name: _column([get(message) for message in decoded], same) for name, get in fields.items()}
    return Columns(stamp, values, tuple(labels), tuple(frames))


def text(message: bytes) -> str:
    """Decode a std_msgs/String."""
    return str(_decode(message, "std_msgs/msg/String").data)


def _column(rows: list[Any], usable: list[bool]) -> Array:
    """Stack rows; those that are not usable, or not as long as the first, become NaN."""
    size = len(rows[0])
    unknown = np.full(size, np.nan)
    fitting = [row if ok and len(row) == size else unknown for row, ok in zip(rows, usable, strict=True)]
    return np.array(fitting, dtype=np.float64).reshape(len(rows), size)


def _decode(raw: bytes, msgtype: str) -> Any:
    try:
        return _STORE.deserialize_cdr(raw, msgtype)
    except (SerdeError, struct.error, IndexError, ValueError) as error:
        raise RecordingError(f"a message of {len(raw)} bytes is cut short or damaged ({error})") from error
