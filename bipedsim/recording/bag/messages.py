"""Convert serialised ROS messages to arrays and back, one topic at a time and without ROS.

Most messages of a topic differ only in their numbers. :func:`_layout_of` parses one message with the definition of its
type. The resulting byte offsets are valid for all messages with the same structure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array, Flags, Integers
from bipedsim.recording.bag.cdr import FIELDS, JOINT_STATE, NS_PER_S, NUMBERS, Walk
from bipedsim.recording.bag.kernels import NAN_WORD, PADDING, read_alike, words

_LABELS = {JOINT_STATE: "name", NUMBERS: "layout.dim.label"}
MOST = 256
"""Maximum number of columns of a topic of a user's node. An image has more numbers, and makes no columns."""
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


def _layout_of(raw: bytes, msgtype: str, paths: Mapping[str, str]) -> _MessageLayout:
    """Parse a message and return its layout.

    Args:
        raw: The message.
        msgtype: Its type.
        paths: Name of each column to the field that contains its numbers.

    Raises:
        ValueError: The message is truncated or damaged.
    """
    walk = Walk(raw, msgtype)
    # Fast DDS reserves bytes for the alignment of empty sequences and leaves them at the end of the message.
    if len(raw) - walk.end > 3 + 8 * walk.empty:
        raise ValueError(f"{len(raw) - walk.end} bytes too many")
    label, texts = _LABELS.get(msgtype), _texts_of(walk)
    columns = {name: walk.group(path) for name, path in paths.items()}
    swapped = walk.order == ">" and any(numbers.kind != "u1" for numbers in walk.numbers)
    if swapped and any(kind != "f8" for _, kind, _ in columns.values()):
        raise ValueError("its numbers of less than 8 bytes are big-endian")
    return _MessageLayout(
        size=len(raw),
        same=np.array(
            [_word(raw, at, min(at + 8, b)) for a, b in walk.structure for at in range(a, b, 8)], dtype=np.int64
        ),
        stamp=next((numbers.at for numbers in walk.inside("header.stamp")), None),
        columns=columns,
        labels=tuple(part for path, text in texts if path == label for part in _parts(text, msgtype)),
        frame=next((text for path, text in texts if path == "header.frame_id"), None),
        swapped=swapped,
    )


def _texts_of(walk: Walk) -> list[tuple[str, str]]:
    """Return path and content of all strings in a message."""
    return [(path, text.removesuffix(b"\0").decode()) for path, text in walk.texts]


def _word(raw: bytes, begin: int, end: int) -> tuple[int, int, int]:
    """Return the offset of up to eight bytes, the bytes as a number, and their bit mask in this number."""
    known = int.from_bytes(raw[begin:end], "little").to_bytes(8, "little")
    mask = (b"\xff" * (end - begin)).ljust(8, b"\0")
    return begin, int.from_bytes(known, "little", signed=True), int.from_bytes(mask, "little", signed=True)


def _parts(text: str, msgtype: str) -> list[str]:
    return text.split(",") if msgtype == NUMBERS else [text]


class Decoder:
    """Decode the messages of one topic block by block.

    Args:
        msgtype: JointState, WrenchStamped, PointStamped, Imu, Odometry, Float64MultiArray, Float64 or Bool.
        fields: Columns to decode; all by default.
        paths: Name of each column to the field that contains its numbers, for a topic of a user's node. By default
            those of ``FIELDS``, and only types with an entry there are supported.

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

    def __init__(
        self, msgtype: str, fields: Collection[str] | None = None, paths: Mapping[str, str] | None = None
    ) -> None:
        self._of_user = paths is not None
        paths = FIELDS.get(msgtype) if paths is None else paths
        if paths is None:
            raise RecordingError(f"not decoded; known: {', '.join(sorted(FIELDS))}", f"messages of type {msgtype}")
        self._msgtype, self._paths = msgtype, paths
        self._fields = [name for name in paths if fields is None or name in fields]
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

        Raises:
            RecordingError: The messages have more than ``MOST`` numbers.
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
                    layout = _layout_of(raw, self._msgtype, self._paths)
                except ValueError as error:
                    self.failed += 1
                    self.error = f"a message of {len(raw)} bytes is cut short or damaged ({error})"
                    decoded[at], sound[at] = True, False
                    continue
                if self._first is None:
                    self._width = 1 + sum(layout.columns[name][2] for name in self._fields)
                    if self._of_user and self._width > MOST:
                        problem = f"a message has {self._width - 1} numbers; at most {MOST} become columns"
                        raise RecordingError(problem, self._msgtype)
                    self._first = layout
                    table = np.empty((n, self._width), dtype=np.int64)
                if len(self._layouts) < _LAYOUTS:
                    self._layouts.append(layout)
                else:
                    selection = slice(at, at + 1)
            pattern = layout.size, layout.same, self._offsets(layout), layout.swapped
            n_read = read_alike(word, start[selection], size[selection], pattern, decoded[selection], table[selection])
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
        if self._msgtype == NUMBERS and layout.columns.get("data", (0, "", 0))[2] != len(labels):
            return None  # Labels of blocks, in another order: the place of each number is unknown.
        return [labels.index(label) for label in wanted]

    def _mismatch(self, layout: _MessageLayout) -> str:
        """Return the labels of a layout with unusable numbers; empty if the numbers are usable."""
        assert self._first is not None
        names = ", ".join(layout.labels) or "nothing"
        if self._order(layout) is None:
            return names
        # Joint states may lack velocities or efforts, so only the size of labelled arrays is compared.
        compared = self._fields if self._of_user else ["data"]
        count, usual = (sum(one.columns.get(name, (0, "", 0))[2] for name in compared) for one in (layout, self._first))
        return f"{names} with {count} numbers" if count != usual else ""

    def _columns(self, table: Integers, sound: Flags) -> Columns:
        """Convert the table of raw words to stamps and numbers."""
        if self._first is None:
            return Columns(np.zeros(len(table), dtype=np.int64), {}, (), ())
        if self._first.stamp is None:
            stamp = np.zeros(len(table), dtype=np.int64)
        else:
            stamp = table[:, 0].astype(np.int32) * np.int64(NS_PER_S) + (table[:, 0] >> 32 & 0xFFFFFFFF)
        numbers = table.view(np.float64)
        numbers[~sound] = np.nan
        values, at = {}, 1
        for name in self._fields:
            _at, kind, width = self._first.columns[name]
            part = slice(at, at + width)
            values[name] = numbers[:, part] if kind == "f8" else _converted(table[:, part], np.dtype(kind))
            at += width
        return Columns(stamp, values, self._first.labels, tuple(self.frames))


def _converted(word: Integers, kind: np.dtype[Any]) -> Array:
    """Return the numbers of a type that is not float64, which are at the beginning of 8-byte words."""
    cells = np.ascontiguousarray(word).view(np.uint8).reshape(*word.shape, 8)[:, :, : kind.itemsize]
    numbers = np.ascontiguousarray(cells).view(kind)[:, :, 0].astype(np.float64)
    return np.asarray(np.where(word == NAN_WORD, np.nan, numbers))


def _usual(size: Integers, decoded: Flags) -> int:
    """Return the index of the first undecoded message of the most frequent size."""
    remaining = np.flatnonzero(~decoded)
    _, first, count = np.unique(size[remaining], return_index=True, return_counts=True)
    return int(remaining[first[np.argmax(count)]])


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
        raise RecordingError(decoder.error, msgtype)
    return table


def text(message: bytes) -> str:
    """Decode a std_msgs/String.

    Raises:
        RecordingError: The message is damaged.
    """
    return _texts_in(message, "std_msgs/msg/String")[0][1]


def diagnostic_values(message: bytes) -> dict[str, str]:
    """Return the values of all statuses of a diagnostic_msgs/DiagnosticArray, by their keys.

    Raises:
        RecordingError: The message is damaged.
    """
    texts = _texts_in(message, "diagnostic_msgs/msg/DiagnosticArray")
    keys, values = ([text for path, text in texts if path == f"status.values.{name}"] for name in ("key", "value"))
    return dict(zip(keys, values, strict=True))


def _texts_in(message: bytes, msgtype: str) -> list[tuple[str, str]]:
    """Return path and content of all strings in a serialised message."""
    try:
        return _texts_of(Walk(message, msgtype))
    except ValueError as error:
        raise RecordingError(f"cut short or damaged ({error})", f"a message of {len(message)} bytes") from error
