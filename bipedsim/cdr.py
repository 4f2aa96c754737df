"""Serialised ROS messages (CDR) to arrays, a whole topic at a time and without ROS.

All messages of a topic usually have the same layout: the strings and lengths of the first one say where the numbers of
every other one are, so that a million messages become columns in a few array operations, not in a million decodings.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bipedsim.errors import RecordingError

Array = NDArray[np.float64]
STAMP_AT = 4


@dataclass
class _Layout:
    """Where the numbers of one message are."""

    columns: dict[str, tuple[int, int]] = field(default_factory=dict)  # name: byte offset, number of doubles
    fixed: list[tuple[int, int]] = field(default_factory=list)  # byte ranges that must be equal in all messages
    labels: tuple[str, ...] = ()


class _Cursor:
    """Walk through one little-endian CDR message; offsets are from its first byte."""

    def __init__(self, data: bytes) -> None:
        if data[:2] != b"\x00\x01":
            raise RecordingError(f"encapsulation {data[:2].hex()} is not plain little-endian CDR (0001)")
        self.data = data
        self.at = STAMP_AT
        self.layout = _Layout()

    def _align(self, size: int) -> None:
        # CDR aligns from the end of the four encapsulation bytes.
        self.at += -(self.at - 4) % size

    def length(self) -> int:
        self._align(4)
        (value,) = struct.unpack_from("<I", self.data, self.at)
        self.layout.fixed.append((self.at, self.at + 4))
        self.at += 4
        return int(value)

    def string(self) -> str:
        size = self.length()
        self.layout.fixed.append((self.at, self.at + size))
        self.at += size
        return self.data[self.at - size : self.at].rstrip(b"\0").decode()

    def header(self) -> None:
        self.at += 8  # the stamp, which every message has at STAMP_AT
        self.string()

    def doubles(self, name: str, count: int) -> None:
        if count:
            self._align(8)
        self.layout.columns[name] = (self.at, count)
        self.at += 8 * count
        if self.at > len(self.data):
            raise RecordingError(f"a message of {len(self.data)} bytes is too short for its {name}")

    def sequence(self, name: str) -> None:
        self.doubles(name, self.length())


def _joint_state(c: _Cursor) -> None:
    c.header()
    c.layout.labels = tuple(c.string() for _ in range(c.length()))
    for name in ("position", "velocity", "effort"):
        c.sequence(name)


def _stamped(**columns: int) -> Callable[[_Cursor], None]:
    def walk(c: _Cursor) -> None:
        c.header()
        for name, count in columns.items():
            c.doubles(name, count)

    return walk


def _odometry(c: _Cursor) -> None:
    c.header()
    c.string()
    for name, count in {"pose": 7, "pose_covariance": 36, "twist": 6, "twist_covariance": 36}.items():
        c.doubles(name, count)


def _multi_array(c: _Cursor) -> None:
    labels = []
    for _ in range(c.length()):
        labels += c.string().split(",")
        c.length()
        c.length()
    c.length()
    c.layout.labels = tuple(labels)
    c.sequence("data")


_WALKS: dict[str, Callable[[_Cursor], None]] = {
    "sensor_msgs/msg/JointState": _joint_state,
    "geometry_msgs/msg/WrenchStamped": _stamped(wrench=6),
    "geometry_msgs/msg/PointStamped": _stamped(point=3),
    "sensor_msgs/msg/Imu": _stamped(
        orientation=4,
        orientation_covariance=9,
        angular_velocity=3,
        angular_velocity_covariance=9,
        linear_acceleration=3,
        linear_acceleration_covariance=9,
    ),
    "nav_msgs/msg/Odometry": _odometry,
    "std_msgs/msg/Float64MultiArray": _multi_array,
}
STAMPED = frozenset(_WALKS) - {"std_msgs/msg/Float64MultiArray"}


@dataclass(frozen=True, eq=False)
class Columns:
    """The numbers of a topic.

    Attributes:
        stamp: (n,) header stamps [ns]; of a type without header, zeros.
        values: Field name to (n, k) array; NaN where a message has another number of values than the first.
        labels: Joint names of a JointState, labels of a Float64MultiArray, of the first message.
    """

    stamp: NDArray[np.int64]
    values: dict[str, Array]
    labels: tuple[str, ...]


def columns(messages: Sequence[bytes], msgtype: str) -> Columns:
    """Decode the messages of one topic.

    Args:
        messages: Serialised messages, encapsulation included; at least one.
        msgtype: One of JointState, WrenchStamped, PointStamped, Imu, Odometry, Float64MultiArray.

    Raises:
        RecordingError: The type is another one, or a message is no little-endian CDR or too short.
    """
    walk = _WALKS.get(msgtype)
    if walk is None:
        raise RecordingError(f"messages of type {msgtype} are not decoded; known: {', '.join(sorted(_WALKS))}")
    first = _layout(messages[0], walk)
    n = len(messages)
    stamp = np.zeros(n, dtype=np.int64)
    values = {name: np.full((n, count), np.nan) for name, (_, count) in first.columns.items()}
    sizes = np.fromiter(map(len, messages), dtype=np.int64, count=n)
    rest = np.arange(n)
    while rest.size:
        # The messages that share the layout of the first one left; usually all of them.
        layout = first if rest[0] == 0 else _layout(messages[rest[0]], walk)
        size = sizes[rest[0]]
        candidates = rest[sizes[rest] == size]
        block = np.frombuffer(b"".join([messages[i] for i in candidates]), dtype=np.uint8).reshape(-1, size)
        fixed = np.zeros(size, dtype=bool)
        for start, end in layout.fixed:
            fixed[start:end] = True
        same = (block[:, fixed] == block[0, fixed]).all(axis=1)
        block, rows = block[same], candidates[same]
        for name, (at, count) in layout.columns.items():
            if count and values[name].shape[1] == count and layout.labels == first.labels:
                values[name][rows] = np.ascontiguousarray(block[:, at : at + 8 * count]).view("<f8")
        if msgtype in STAMPED:
            seconds = np.ascontiguousarray(block[:, STAMP_AT : STAMP_AT + 4]).view("<i4")[:, 0].astype(np.int64)
            nanoseconds = np.ascontiguousarray(block[:, STAMP_AT + 4 : STAMP_AT + 8]).view("<u4")[:, 0]
            stamp[rows] = seconds * 1_000_000_000 + nanoseconds
        rest = np.setdiff1d(rest, rows, assume_unique=True)
    return Columns(stamp, values, first.labels)


def text(message: bytes) -> str:
    """Decode a std_msgs/String."""
    return _Cursor(message).string()


def _layout(message: bytes, walk: Callable[[_Cursor], None]) -> _Layout:
    try:
        cursor = _Cursor(message)
        walk(cursor)
    except (struct.error, UnicodeDecodeError) as error:
        raise RecordingError(f"a message of {len(message)} bytes is cut short or damaged ({error})") from error
    return cursor.layout
