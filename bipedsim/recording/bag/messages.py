"""Convert serialised ROS messages to arrays and back, one topic at a time and without ROS.

Most messages of a topic differ only in their numbers. :func:`_layout_of` parses one message with the definition of its
type. The resulting byte offsets are valid for all messages with the same structure.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array, Flags, Integers
from bipedsim.recording.bag.kernels import PADDING, read_alike, words

# These types are the same in every ROS distribution.
_STORE = get_typestore(Stores.ROS2_JAZZY)

_COLUMNS: dict[str, dict[str, str]] = {
    "sensor_msgs/msg/JointState": {name: name for name in ("position", "velocity", "effort")},
    "geometry_msgs/msg/WrenchStamped": {"wrench": "wrench"},
    "geometry_msgs/msg/PointStamped": {"point": "point"},
    "sensor_msgs/msg/Imu": {
        name: name for name in ("orientation", "angular_velocity", "linear_acceleration", "orientation_covariance")
    },
    "nav_msgs/msg/Odometry": {"pose": "pose.pose", "twist": "twist.twist"},
    "std_msgs/msg/Float64MultiArray": {"data": "data"},
    "std_msgs/msg/Float64": {"data": "data"},
    "std_msgs/msg/Bool": {"data": "data"},
}
"""Type to its columns: name, and the field that contains the numbers in order."""
_LABELS = {"sensor_msgs/msg/JointState": "name", "std_msgs/msg/Float64MultiArray": "layout.dim.label"}
_TYPES = (
    {"bool": "u1", "byte": "u1", "char": "u1", "octet": "u1"}
    | {f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {"float32": "f4", "float64": "f8"}
)
_LAYOUTS = 16
"""Maximum number of cached layouts per topic. Messages with further layouts are parsed one by one."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Numbers of all messages of a topic.

    Attributes:
        stamp: (n,) header stamps [ns]; zeros for a type without header.
        values: Field name to (n, k) array, in the order of the labels. NaN if a message has other labels or another
            number of values.
        labels: Joint names of a JointState or labels of a Float64MultiArray, from a message of the most frequent size
            in the first block.
        frames: All different ``frame_id`` in order of appearance.
    """

    stamp: Integers
    values: dict[str, Array]
    labels: tuple[str, ...]
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _MessageLayout:
    """Byte offsets of the numbers in messages of one size and with equal other bytes.

    Attributes:
        same: (m, 3) offset, word that all these messages have there, and mask of its relevant bits.
        stamp: Offset of the stamp; None if there is none.
        columns: Name to offset, type and count of its numbers.
        swapped: Whether the numbers have the other byte order.
    """

    size: int
    same: Integers
    stamp: int | None
    columns: dict[str, tuple[int, str, int]]
    labels: tuple[str, ...]
    frame: str | None
    swapped: bool


@dataclass
class _CdrWalker:
    """Walks through a message with the definition of its type (XCDR1)."""

    raw: bytes
    order: str = "<"
    at: int = 4
    empty: int = 0
    same: list[tuple[int, int]] = field(default_factory=list)
    numbers: list[tuple[str, int, str, int]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)

    def begin(self) -> None:
        if len(self.raw) < 4 or self.raw[0] != 0 or self.raw[1] > 1:
            raise ValueError(f"unknown encapsulation {self.raw[:2].hex()}")
        self.order = "<" if self.raw[1] else ">"
        self.same.append((0, 2))

    def message(self, msgtype: str, path: str) -> None:
        for name, (node, details) in _STORE.get_msgdef(msgtype).fields:
            self._field(node, details, f"{path}.{name}" if path else name)

    def _field(self, node: Any, details: Any, path: str) -> None:
        if node == Nodetype.BASE:
            self._base(details[0], path, 1)
        elif node == Nodetype.NAME:
            self.message(details, path)
        else:
            (inner, inner_details), count = details
            if node == Nodetype.SEQUENCE:
                count = self._count()
            if inner == Nodetype.BASE and inner_details[0] != "string":
                self._base(inner_details[0], path, count)
                return
            for _ in range(count):
                self._field(inner, inner_details, path)

    def _count(self) -> int:
        self._align(4)
        begin = self._forward(4)
        self.same.append((begin, self.at))
        return int(struct.unpack_from(f"{self.order}I", self.raw, begin)[0])

    def _base(self, kind: str, path: str, count: int) -> None:
        if kind == "string":
            size = self._count()
            begin = self._forward(size)
            self.same.append((begin, self.at))
            self.texts.append((path, self.raw[begin : self.at].removesuffix(b"\0").decode()))
            return
        code = _TYPES[kind]
        width = int(code[1:])
        if count:
            self._align(width)
        else:
            self.empty += 1
        self.numbers.append((path, self._forward(count * width), code, count))

    def _align(self, width: int) -> None:
        self.at += -(self.at - 4) % width

    def _forward(self, size: int) -> int:
        begin = self.at
        self.at += size
        if self.at > len(self.raw):
            raise ValueError("it is cut short")
        return begin


def _layout_of(raw: bytes, msgtype: str) -> _MessageLayout:
    """Parse a message and return its layout.

    Raises:
        ValueError: The message is truncated or damaged.
    """
    walk = _CdrWalker(raw)
    walk.begin()
    walk.message(msgtype, "")
    # Fast DDS reserves bytes for the alignment of empty sequences and leaves them at the end of the message.
    if len(raw) - walk.at > 3 + 8 * walk.empty:
        raise ValueError(f"{len(raw) - walk.at} bytes too many")
    columns = {}
    stamped = [entry for entry in walk.numbers if entry[0].startswith("header.stamp.")]
    for name, path in _COLUMNS[msgtype].items():
        matches = [entry for entry in walk.numbers if entry[0] == path or entry[0].startswith(f"{path}.")]
        columns[name] = (matches[0][1], matches[0][2], sum(entry[3] for entry in matches))
    label = _LABELS.get(msgtype)
    return _MessageLayout(
        size=len(raw),
        same=np.array([_word(raw, at, min(at + 8, b)) for a, b in walk.same for at in range(a, b, 8)], dtype=np.int64),
        stamp=stamped[0][1] if stamped else None,
        columns=columns,
        labels=tuple(part for path, text in walk.texts if path == label for part in _parts(text, msgtype)),
        frame=next((text for path, text in walk.texts if path == "header.frame_id"), None),
        swapped=walk.order == ">" and any(entry[2] != "u1" for entry in walk.numbers),
    )


def _word(raw: bytes, begin: int, end: int) -> tuple[int, int, int]:
    """Return the offset of up to eight bytes, the bytes as a number, and their bit mask in this number."""
    known = int.from_bytes(raw[begin:end], "little").to_bytes(8, "little")
    mask = (b"\xff" * (end - begin)).ljust(8, b"\0")
    return begin, int.from_bytes(known, "little", signed=True), int.from_bytes(mask, "little", signed=True)


def _parts(text: str, msgtype: str) -> list[str]:
    return text.split(",") if msgtype == "std_msgs/msg/Float64MultiArray" else [text]


class Decoder:
    """Decode the messages of one topic block by block.

    Args:
        msgtype: JointState, WrenchStamped, PointStamped, Imu, Odometry, Float64MultiArray, Float64 or Bool.
        fields: Columns to decode; all by default.

    Attributes:
        labels: Labels of a message of the most frequent size in the first block; None before the first block.
        frames: All different ``frame_id`` so far.
        failed: Number of truncated or damaged messages.
        error: Description of the last of these.
        strangers: Number of messages with other labels or another number of values. They are left out.
        strange: Labels of the last of these.

    Raises:
        RecordingError: The type is not supported.
    """

    def __init__(self, msgtype: str, fields: Collection[str] | None = None) -> None:
        if msgtype not in _COLUMNS:
            raise RecordingError(f"messages of type {msgtype} are not decoded; known: {', '.join(sorted(_COLUMNS))}")
        self._msgtype = msgtype
        self._fields = [name for name in _COLUMNS[msgtype] if fields is None or name in fields]
        self._layouts: list[_MessageLayout] = []
        self._first: _MessageLayout | None = None
        self._width = 0
        self.frames: dict[str, None] = {}
        self.failed = self.strangers = 0
        self.error = self.strange = ""

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Labels of the first layout. Other messages are compared with them."""
        return None if self._first is None else self._first.labels

    def take(self, data: NDArray[np.uint8], start: Integers, size: Integers) -> tuple[Columns, Any]:
        """Decode messages and return their numbers, and which (n,) of them could be decoded.

        Args:
            data: The messages, followed by at least ``PADDING`` bytes.
            start, size: (n,) offset and size of each message.
        """
        n, word = len(start), words(data)
        decoded, sound = np.zeros(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
        table = np.empty((n, self._width), dtype=np.int64)
        known_layouts = iter(tuple(self._layouts))
        while not decoded.all():
            layout = next(known_layouts, None)
            selection = slice(None)
            if layout is None:
                at = int(np.argmin(decoded)) if self._first is not None else _usual(size, decoded)
                raw = data[start[at] : start[at] + size[at]].tobytes()
                try:
                    layout = _layout_of(raw, self._msgtype)
                except (ValueError, struct.error) as error:
                    self.failed += 1
                    self.error = f"a message of {len(raw)} bytes is cut short or damaged ({error})"
                    decoded[at], sound[at] = True, False
                    continue
                if self._first is None:
                    self._first = layout
                    self._width = 1 + sum(layout.columns[name][2] for name in self._fields)
                    table = np.empty((n, self._width), dtype=np.int64)
                if len(self._layouts) < _LAYOUTS:
                    self._layouts.append(layout)
                else:
                    selection = slice(at, at + 1)
            pattern = layout.size, layout.same, self._offsets(layout), layout.swapped
            n_read = read_alike(word, start[selection], size[selection], *pattern, decoded[selection], table[selection])
            if n_read and layout.frame is not None:
                self.frames.setdefault(layout.frame)
            if n_read and (mismatch := self._mismatch(layout)):
                self.strangers += n_read
                self.strange = mismatch
        return self._columns(table, sound), sound

    def _offsets(self, layout: _MessageLayout) -> Integers:
        """Return the byte offset of each number of a table row in this layout; -1 for missing numbers."""
        assert self._first is not None
        offsets = [-1 if layout.stamp is None else layout.stamp]
        order = self._order(layout)
        for name in self._fields:
            width = self._first.columns[name][2]
            at, kind, count = layout.columns[name]
            positions = order if order is not None and len(order) == width else range(width)
            usable = order is not None and count == width
            offsets += [at + np.dtype(kind).itemsize * i if usable else -1 for i in positions]
        return np.array(offsets, dtype=np.int64)

    def _order(self, layout: _MessageLayout) -> Sequence[int] | None:
        """Return the position of each label's number in messages of a layout; None if the labels differ."""
        assert self._first is not None
        wanted, labels = self._first.labels, layout.labels
        if labels == wanted:
            return range(len(wanted))
        if len(set(wanted)) < len(wanted) or sorted(labels) != sorted(wanted):
            return None
        return [labels.index(label) for label in wanted]

    def _mismatch(self, layout: _MessageLayout) -> str:
        """Return the labels of a layout with unusable numbers; empty if the numbers are usable."""
        assert self._first is not None
        names = ", ".join(layout.labels) or "nothing"
        if self._order(layout) is None:
            return names
        # Joint states may lack velocities or efforts, so only the size of labelled arrays is compared.
        count, usual = (one.columns.get("data", (0, "", 0))[2] for one in (layout, self._first))
        return f"{names} with {count} numbers" if count != usual else ""

    def _columns(self, table: Integers, sound: Flags) -> Columns:
        """Convert the table of raw words to stamps and numbers."""
        if self._first is None:
            return Columns(np.zeros(len(table), dtype=np.int64), {}, (), ())
        if self._first.stamp is None:
            stamp = np.zeros(len(table), dtype=np.int64)
        else:
            stamp = table[:, 0].astype(np.int32) * np.int64(1_000_000_000) + (table[:, 0] >> 32 & 0xFFFFFFFF)
        numbers = table.view(np.float64)
        numbers[~sound] = np.nan
        values, at = {}, 1
        for name in self._fields:
            _at, kind, width = self._first.columns[name]
            part = slice(at, at + width)
            # The only type of other than 8 bytes is a boolean of one byte.
            values[name] = numbers[:, part] if kind == "f8" else (table[:, part] & 0xFF).astype(np.float64)
            at += width
        return Columns(stamp, values, self._first.labels, tuple(self.frames))


def _usual(size: Integers, decoded: Flags) -> int:
    """Return the index of the first undecoded message of the most frequent size."""
    remaining = np.flatnonzero(~decoded)
    _, first, count = np.unique(size[remaining], return_index=True, return_counts=True)
    return int(remaining[first[np.argmax(count)]])


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
    """Encode messages of one topic that differ only in their stamps and in 8-byte numbers.

    Args:
        msgtype: Any type that is the same in every ROS distribution.
        fixed: Values that all messages share, see :func:`blank`.
        fields: Fields with variable numbers: all numbers in or below each field, in order.
    """

    def __init__(self, msgtype: str, fixed: Mapping[str, Any], fields: Sequence[str] = ()) -> None:
        raw = bytes(_STORE.serialize_cdr(blank(msgtype, fixed), msgtype))
        self._raw = np.frombuffer(raw, dtype=np.uint8)
        walk = _CdrWalker(raw)
        walk.begin()
        walk.message(msgtype, "")
        self._seconds = [at for path, at, _, _ in walk.numbers if path.endswith(("stamp.sec", "clock.sec"))]
        self._offsets = [
            [at + 8 * i for path, at, _, n in walk.numbers if f"{path}.".startswith(f"{field}.") for i in range(n)]
            for field in fields
        ]

    def write(self, stamp: Integers, *values: Array) -> list[bytes]:
        """Return n serialised messages.

        Args:
            stamp: (n,) stamp of all headers in each message [ns].
            values: (n, k) numbers of each variable field.
        """
        out = np.tile(self._raw, (len(stamp), 1))
        clock = np.stack([stamp // 1_000_000_000, stamp % 1_000_000_000], axis=1).astype("<i4").view(np.uint8)
        for at in self._seconds:
            out[:, at : at + 8] = clock
        for offsets, numbers in zip(self._offsets, values, strict=True):
            cells = np.ascontiguousarray(numbers, dtype="<f8").reshape(len(stamp), len(offsets)).view(np.uint8)
            for k, at in enumerate(offsets):
                out[:, at : at + 8] = cells[:, 8 * k : 8 * k + 8]
        raw, size = out.tobytes(), len(self._raw)
        return [raw[at : at + size] for at in range(0, len(raw), size)]


def definition(msgtype: str) -> tuple[str, str]:
    """Return the definition of a message type, as rosbag2 stores it, and its RIHS01 hash."""
    return str(_STORE.generate_msgdef(msgtype, ros_version=2)[0]), str(_STORE.hash_rihs01(msgtype))


def columns(messages: Sequence[bytes], msgtype: str) -> Columns:
    """Decode the messages of one topic.

    Args:
        messages: Serialised messages, encapsulation included; at least one.
        msgtype: See :class:`Decoder`.

    Raises:
        RecordingError: The type is not supported, or a message is damaged.
    """
    decoder = Decoder(msgtype)
    size = np.array([len(raw) for raw in messages], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(size)[:-1]])
    raw = b"".join([*messages, bytes(PADDING)])
    table, sound = decoder.take(np.frombuffer(raw, dtype=np.uint8), start, size)
    if not sound.all():
        raise RecordingError(decoder.error)
    return table


def text(message: bytes) -> str:
    """Decode a std_msgs/String.

    Raises:
        RecordingError: The message is damaged.
    """
    return _texts_of(message, "std_msgs/msg/String")[0][1]


def diagnostic_values(message: bytes) -> dict[str, str]:
    """Return the values of all statuses of a diagnostic_msgs/DiagnosticArray, by their keys.

    Raises:
        RecordingError: The message is damaged.
    """
    texts = _texts_of(message, "diagnostic_msgs/msg/DiagnosticArray")
    keys, values = ([text for path, text in texts if path == f"status.values.{name}"] for name in ("key", "value"))
    return dict(zip(keys, values, strict=True))


def _texts_of(message: bytes, msgtype: str) -> list[tuple[str, str]]:
    """Return path and content of all strings in a message."""
    walk = _CdrWalker(message)
    try:
        walk.begin()
        walk.message(msgtype, "")
    except (ValueError, struct.error) as error:
        raise RecordingError(f"a message of {len(message)} bytes is cut short or damaged ({error})") from error
    return walk.texts
