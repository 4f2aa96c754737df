"""Find the numbers in serialised ROS messages, and serialise messages that differ only in their numbers. Without ROS.

The offsets follow from the definition of the message type and the rules of plain CDR (OMG DDS-XTypes 1.3, 7.4.1), in
either byte order. The nodes use this module for the messages on their topics, and the recordings for those in a bag.
Tests compare it with the parsers of rclpy and rosbags, for valid and invalid messages.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array, Integers

NS_PER_S = 1_000_000_000
JOINT_STATE, NUMBERS, TWIST = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray", "geometry_msgs/msg/Twist"
FIELDS: dict[str, dict[str, str]] = {
    JOINT_STATE: {name: name for name in ("position", "velocity", "effort")},
    "geometry_msgs/msg/WrenchStamped": {"wrench": "wrench"},
    "geometry_msgs/msg/PointStamped": {"point": "point"},
    TWIST: {"linear": "linear", "angular": "angular"},
    "sensor_msgs/msg/Imu": {
        name: name for name in ("orientation", "angular_velocity", "linear_acceleration", "orientation_covariance")
    },
    "nav_msgs/msg/Odometry": {"pose": "pose.pose", "twist": "twist.twist"},
    NUMBERS: {"data": "data"},
    "std_msgs/msg/Float64": {"data": "data"},
    "std_msgs/msg/Bool": {"data": "data"},
}
"""Message type to its numbers: name, and the field that contains them in order."""

# These types are the same in every ROS distribution.
_STORE = get_typestore(Stores.ROS2_JAZZY)
_TYPES = (
    {"bool": "u1", "byte": "u1", "char": "u1", "octet": "u1"}
    | {f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {"float32": "f4", "float64": "f8"}
)
_HEADER = 4  # bytes before the first field; alignment is relative to their end
_ORDERS = {b"\0\0": ">", b"\0\1": "<"}
_pack_time = struct.Struct("<iI").pack_into


def is_plain(data: bytes) -> bool:
    """Return whether a serialised message is in plain CDR, as its header says."""
    return data[:2] in _ORDERS


_NOT_SIGNALS = ("header", "layout", "covariance")
"""Ends of the names of fields that make no columns."""


def signal_paths(msgtype: str, path: str = "") -> list[str]:
    """Return the fields of a message type that contain numbers, without headers, layouts and covariances.

    Raises:
        RecordingError: The type is unknown, has no numbers, or contains lists of messages.
    """
    if msgtype not in _STORE.fielddefs:
        known = "only types of ROS 2 itself, such as std_msgs, geometry_msgs and sensor_msgs, become columns"
        raise RecordingError(known, msgtype)
    paths: list[str] = []
    fields: Any = _STORE.get_msgdef(msgtype).fields
    for name, (node, details) in fields:
        field_path = f"{path}.{name}" if path else name
        if name.endswith(_NOT_SIGNALS):
            continue
        kind, content = (node, details) if node in (Nodetype.BASE, Nodetype.NAME) else details[0]
        if kind == Nodetype.BASE:
            paths += [field_path] * (content[0] in _TYPES)
        elif node != Nodetype.NAME:
            raise RecordingError(f"its field {field_path} is a list of messages", msgtype)
        else:
            paths += signal_paths(content, field_path)
    if not paths and not path:
        raise RecordingError("it has no numbers", msgtype)
    return paths


class Numbers(NamedTuple):
    """Contiguous numbers of one field: path of the field, byte offset, type as in numpy (``"f8"``), and count."""

    path: str
    at: int
    kind: str
    n: int


class Walk:
    """Positions of all numbers and texts in a serialised message.

    Args:
        data: The message, in plain CDR.
        msgtype: Its type, such as ``sensor_msgs/msg/Imu``.
        most_text: Maximum size of its texts and lengths [bytes]; None for no limit.

    Attributes:
        order: Byte order, ``"<"`` or ``">"``.
        numbers: All numbers, in order.
        texts: Path and bytes of all strings, with the terminating zero.
        structure: Begin and end of all bytes that are neither numbers nor padding.
        end: Offset after the last field.
        empty: Number of sequences without numbers.

    Raises:
        ValueError: The message is not in plain CDR, is truncated, or has too many texts.
    """

    def __init__(self, data: bytes, msgtype: str, most_text: int | None = None) -> None:
        if not is_plain(data) or len(data) < _HEADER:
            raise ValueError(f"unknown encapsulation {data[:2].hex()}")
        self._data, self._most_text = data, most_text
        self.order = _ORDERS[data[:2]]
        self._length = struct.Struct(f"{self.order}I")
        self._text_size = 0
        self.numbers: list[Numbers] = []
        self.texts: list[tuple[str, bytes]] = []
        self.structure: list[tuple[int, int]] = [(0, 2)]
        self.end = _HEADER
        self.empty = 0
        self._message(msgtype, "")
        del self._data

    def inside(self, field: str) -> list[Numbers]:
        """Return the numbers in or below a field, such as ``"pose.pose"``."""
        return [numbers for numbers in self.numbers if f"{numbers.path}.".startswith(f"{field}.")]

    def group(self, field: str) -> tuple[int, str, int]:
        """Return offset, type and count of the numbers in or below a field.

        Raises:
            ValueError: They are not contiguous.
        """
        parts = self.inside(field)
        at, kind = parts[0].at, parts[0].kind
        end = at
        for part in parts:
            if part.at != end or part.kind != kind:
                raise ValueError(f"the numbers of {field!r} are not contiguous")
            end += part.n * int(kind[1:])
        return at, kind, sum(part.n for part in parts)

    @property
    def stamps(self) -> list[int]:
        """Offsets of the stamps in headers, and of the time on /clock."""
        return [numbers.at for numbers in self.numbers if numbers.path.endswith(("stamp.sec", "clock.sec"))]

    def _message(self, msgtype: str, path: str) -> None:
        for name, (node, details) in _STORE.get_msgdef(msgtype).fields:
            self._field(node, details, f"{path}.{name}" if path else name)

    def _field(self, node: Any, details: Any, path: str) -> None:
        if node == Nodetype.BASE:
            self._base(details[0], path, 1)
        elif node == Nodetype.NAME:
            self._message(details, path)
        else:
            (inner, inner_details), count = details
            if node == Nodetype.SEQUENCE:
                count = self._count(path)
            if inner == Nodetype.BASE and inner_details[0] != "string":
                self._base(inner_details[0], path, count)
                return
            for _ in range(count):
                self._field(inner, inner_details, path)

    def _base(self, kind: str, path: str, count: int) -> None:
        if kind == "string":
            size = self._count(path)
            self.texts.append((path, self._data[self._structure(size, 1, path) : self.end]))
            return
        code = _TYPES[kind]
        width = int(code[1:])
        self.empty += not count
        # An empty sequence has no alignment padding.
        self.numbers.append(Numbers(path, self._take(count * width, width if count else 1, path), code, count))

    def _count(self, path: str) -> int:
        return int(self._length.unpack_from(self._data, self._structure(4, 4, path))[0])

    def _structure(self, size: int, align: int, path: str) -> int:
        """Advance by a length or a text; return the offset at which it begins."""
        self._text_size += size
        if self._most_text is not None and self._text_size > self._most_text:
            raise ValueError(f"it has more than {self._most_text} bytes of names and texts")
        begin = self._take(size, align, path)
        self.structure.append((begin, self.end))
        return begin

    def _take(self, size: int, align: int, path: str) -> int:
        """Advance by ``size`` aligned bytes; return the offset at which they begin."""
        begin = self.end + (_HEADER - self.end) % align
        if begin + size > len(self._data):
            raise ValueError(f"it is cut short: it ends within {path}, after {len(self._data)} bytes")
        self.end = begin + size
        return begin


def blank(msgtype: str, fixed: Mapping[str, Any], path: str = "") -> Any:
    """Return a message of zeros, empty strings and empty lists, except for the fields in ``fixed`` (path to value).

    A list is replaced as a whole, by strings, an array of numbers, or messages.
    """
    values: dict[str, Any] = {}
    fields: Any = _STORE.get_msgdef(msgtype).fields
    for name, (node, details) in fields:
        field_path = f"{path}.{name}" if path else name
        if field_path in fixed:
            values[name] = fixed[field_path]
        elif node == Nodetype.BASE:
            values[name] = "" if details[0] == "string" else 0
        elif node == Nodetype.NAME:
            values[name] = blank(details, fixed, field_path)
        else:
            (inner, inner_details), count = details
            numbers = inner == Nodetype.BASE and inner_details[0] != "string"
            size = count if node == Nodetype.ARRAY else 0
            values[name] = np.zeros(size, dtype=_TYPES[inner_details[0]]) if numbers else []
    return _STORE.types[msgtype](**values)


class Encoder:
    """Serialise messages of one topic that differ only in their stamps and in numbers.

    Conversion of a message object takes 40 to 50 us, nearly all of it for names that never change. This class
    serialises the message once, and then writes the numbers into its bytes.

    Args:
        msgtype: Any type that is the same in every ROS distribution.
        fixed: Values that all messages share, see :func:`blank`.
        fields: Fields with variable numbers: all numbers in or below each field, in order. By default those of
            :data:`FIELDS`.
    """

    def __init__(self, msgtype: str, fixed: Mapping[str, Any], fields: Sequence[str] | None = None) -> None:
        raw = bytes(_STORE.serialize_cdr(blank(msgtype, fixed), msgtype))
        self._fields = tuple(FIELDS.get(msgtype, {}).values()) if fields is None else fields
        self._message = bytearray(raw)
        self._walk = Walk(raw, msgtype)
        self._stamps = self._walk.stamps

    @cached_property
    def groups(self) -> list[Array]:
        """Views of the numbers of each field in the next message of :meth:`data`. Write into them."""
        return [
            np.frombuffer(self._message, f"<{kind}", count, at) if count else np.empty(0)
            for at, kind, count in map(self._walk.group, self._fields)
        ]

    def data(self, t_ns: int) -> bytes:
        """Return the message with the numbers in :attr:`groups`, stamped ``t_ns`` [ns]."""
        for at in self._stamps:
            _pack_time(self._message, at, *divmod(t_ns, NS_PER_S))
        return bytes(self._message)

    def write(self, t_ns: int, *values: Any) -> bytes:
        """Return the message with these numbers of each field, stamped ``t_ns`` [ns]."""
        for group, numbers in zip(self.groups, values, strict=True):
            group[:] = numbers
        return self.data(t_ns)

    def write_all(self, stamp: Integers, *values: Array) -> list[bytes]:
        """Return n serialised messages.

        Args:
            stamp: (n,) stamp of all headers in each message [ns].
            values: (n, k) numbers of each variable field, which need not be contiguous.
        """
        out = np.tile(np.frombuffer(self._message, np.uint8), (len(stamp), 1))
        clock = np.stack([stamp // NS_PER_S, stamp % NS_PER_S], axis=1).astype("<i4").view(np.uint8)
        for at in self._stamps:
            out[:, at : at + 8] = clock
        for field, numbers in zip(self._fields, values, strict=True):
            offsets = [part.at + 8 * i for part in self._walk.inside(field) for i in range(part.n)]
            cells = np.ascontiguousarray(numbers, dtype="<f8").reshape(len(stamp), len(offsets)).view(np.uint8)
            for k, at in enumerate(offsets):
                out[:, at : at + 8] = cells[:, 8 * k : 8 * k + 8]
        raw, size = out.tobytes(), len(self._message)
        return [raw[at : at + size] for at in range(0, len(raw), size)]


def labelled(labels: Sequence[str]) -> Encoder:
    """Return an encoder of Float64MultiArray messages whose layout names the values."""
    n = len(labels)
    dim = blank("std_msgs/msg/MultiArrayDimension", {"label": ",".join(labels), "size": n, "stride": n})
    return Encoder(NUMBERS, {"layout.dim": [dim], "data": np.zeros(n)})
