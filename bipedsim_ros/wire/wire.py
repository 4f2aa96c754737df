"""Serialised messages whose numbers are read and written in place.

Converting a JointState of 14 joints between Python and DDS costs 40 to 50 us a time, nearly all of it spent on names
that never change; moving its bytes costs 5 to 9 us (docs/ros_interface.md). So a message is serialised once, the places
of its numbers are found, and from then on numpy writes and reads them there. rclpy publishes bytes and hands out raw
messages by its public interface.

The places are found by experiment, not from the rules of CDR: distinct numbers are put into the fields and looked up in
the bytes. So are the bytes without a meaning: those that pad strings hold whatever was in the sender's memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message, serialize_message

from bipedsim.numerics import Array, Indices

Leaf = tuple[Any, Any]
"""A number of a message: the object or array that holds it, and its attribute name or index."""
Groups = Sequence[Sequence[Leaf]]
"""Numbers that lie side by side, as one array each."""

NS_PER_S = 1_000_000_000
_STAMP = struct.Struct("=iI")
_HEADER = 4  # bytes of encapsulation before the first field
_REPRESENTATION = 2  # those of them that name the encoding
_MARK_SEC, _MARK_NANOSEC = 0x5C3A_1B2D, 0x1A4D_7E93


def leaves(holder: Any, names: str) -> list[Leaf]:
    """Return the attributes of ``holder`` that ``names`` lists, separated by spaces."""
    return [(holder, name) for name in names.split()]


def items(values: Any) -> list[Leaf]:
    """Return the elements of an array field."""
    return [(values, i) for i in range(len(values))]


def _get(leaf: Leaf) -> float:
    holder, key = leaf
    return float(getattr(holder, key) if isinstance(key, str) else holder[key])


def _set(leaf: Leaf, value: float) -> None:
    holder, key = leaf
    if isinstance(key, str):
        setattr(holder, key, value)
    else:
        holder[key] = value


class Layout:
    """Where the numbers of a message are in its serialised form.

    Attributes:
        data: The serialised message.
        groups: Offset and count of each group of numbers.
        stamp: Offset of the stamp; None without one.
    """

    def __init__(self, message: Any, groups: Groups, stamp: Time | None) -> None:
        self.data: bytes = serialize_message(message)
        flat = [leaf for group in groups for leaf in group]
        before = [_get(leaf) for leaf in flat]
        marks = np.random.default_rng(0).uniform(1.0, 2.0, len(flat)).tolist()
        for leaf, mark in zip(flat, marks, strict=True):
            _set(leaf, mark)
        if stamp is not None:
            time = stamp.sec, stamp.nanosec
            stamp.sec, stamp.nanosec = _MARK_SEC, _MARK_NANOSEC
        marked: bytes = serialize_message(message)
        for leaf, value in zip(flat, before, strict=True):
            _set(leaf, value)
        places = iter([self._find(marked, struct.pack("=d", mark)) for mark in marks])
        self.groups: list[tuple[int, int]] = []
        for group in groups:
            offsets = [next(places) for _ in group]
            if offsets and offsets != list(range(offsets[0], offsets[0] + 8 * len(offsets), 8)):
                raise ValueError(f"the numbers of a {type(message).__name__} do not lie side by side")
            self.groups.append((offsets[0] if offsets else 0, len(offsets)))
        self.stamp: int | None = None
        if stamp is not None:
            stamp.sec, stamp.nanosec = time
            self.stamp = self._find(marked, _STAMP.pack(_MARK_SEC, _MARK_NANOSEC))

    @staticmethod
    def _find(data: bytes, mark: bytes) -> int:
        if data.count(mark) != 1:
            raise ValueError("a number could not be found in the serialised message")
        return data.index(mark)

    def numbers(self) -> list[slice]:
        """Return the bytes of the stamp and of each group."""
        stamp = [] if self.stamp is None else [slice(self.stamp, self.stamp + _STAMP.size)]
        return stamp + [slice(offset, offset + 8 * count) for offset, count in self.groups if count]

    def gaps(self) -> list[slice]:
        """Return the bytes between stamp and groups: if their meaning and the length agree, so does the layout."""
        begin = _HEADER if self.stamp is None else self.stamp + _STAMP.size
        result = []
        for offset, count in self.groups:
            if count:
                result.append(slice(begin, offset))
                begin = offset + 8 * count
        return result or [slice(begin, len(self.data))]


class WireWriter:
    """A message to be published again and again with other numbers.

    Args:
        message: Complete but for its numbers and stamp.
        groups: Its numbers.
        stamp: Its stamp; None without one.

    Attributes:
        groups: Views of the numbers, one for each group; write into them.
    """

    def __init__(self, message: Any, groups: Groups, stamp: Time | None) -> None:
        layout = Layout(message, groups, stamp)
        self._stamp = layout.stamp
        self._buffer = bytearray(layout.data)
        self.groups = [
            np.frombuffer(self._buffer, np.float64, count, offset) for offset, count in layout.groups if count
        ]

    def data(self, t_ns: int) -> bytes:
        """Return the serialised message with the stamp ``t_ns`` [ns]."""
        if self._stamp is not None:
            _STAMP.pack_into(self._buffer, self._stamp, *divmod(t_ns, NS_PER_S))
        return bytes(self._buffer)


class WireReader:
    """Reads the numbers of messages of one type; strings and array lengths are looked at only when they change.

    Args:
        message_type: The type.
        groups_of: Returns the numbers of a message.
        stamp_of: Returns the stamp of a message, for types that have one.

    Attributes:
        message: The last message whose layout was new; what is not a number is as in every message since.
    """

    def __init__(
        self,
        message_type: type,
        groups_of: Callable[[Any], Groups],
        stamp_of: Callable[[Any], Time] | None = None,
    ) -> None:
        self._type = message_type
        self._groups_of = groups_of
        self._stamp_of = stamp_of
        self._layout: Layout | None = None
        # Of the last message in the usual encoding: bytes, those of its gaps, and where in these a byte has a meaning.
        self._last = b""
        self._gaps: list[tuple[slice, bytes]] = []
        self._matter: Indices = np.zeros(0, dtype=np.intp)
        self._text: Any = None
        self.message: Any = None

    def read(self, data: bytes) -> list[Array]:
        """Return the numbers of a serialised message, one array for each group; they are views of ``data``."""
        if len(data) != len(self._last):
            data = self._learn(data)
        elif any(data[place] != known for place, known in self._gaps):
            data = self._look(data)
        layout = self._layout
        assert layout is not None
        return [
            np.frombuffer(data, np.float64, count, offset) if count else np.empty(0) for offset, count in layout.groups
        ]

    def stamp_ns(self, data: bytes) -> int:
        """Return the stamp [ns] of the message that was read last."""
        assert self._layout is not None
        assert self._layout.stamp is not None
        sec, nanosec = _STAMP.unpack_from(data, self._layout.stamp)
        return int(sec) * NS_PER_S + int(nanosec)

    def _look(self, data: bytes) -> bytes:
        """Learn the layout of ``data`` unless it differs from the last message in bytes without a meaning alone."""
        if not np.array_equal(_bytes(data)[self._matter], _bytes(self._last)[self._matter]):
            return self._learn(data)
        self._keep(data)
        return data

    def _keep(self, data: bytes) -> None:
        self._last = data
        self._gaps = [] if self._layout is None else [(gap, data[gap]) for gap in self._layout.gaps()]

    def _learn(self, data: bytes) -> bytes:
        """Learn the layout of ``data``; return the bytes to read, which are others if the sender encodes otherwise."""
        self.message = message = deserialize_message(data, self._type)
        stamp = None if self._stamp_of is None else self._stamp_of(message)
        self._layout = layout = Layout(message, self._groups_of(message), stamp)
        text = self._text_of(data)
        again, self._text = text == self._text, text
        own = layout.data
        usual = (
            len(own) == len(data)
            and own[:_REPRESENTATION] == data[:_REPRESENTATION]
            and all(own[place] == data[place] for place in layout.numbers())
        )
        if not usual:
            self._last, self._gaps = b"", []
            return own
        if again and len(data) == len(self._last):
            # The last message said the same: where the two differ, nothing is said.
            matter = self._matter[_bytes(data)[self._matter] == _bytes(self._last)[self._matter]]
        else:
            matter = np.concatenate([np.arange(gap.start, gap.stop) for gap in layout.gaps()])
        self._matter = matter
        self._keep(data)
        return data

    def _text_of(self, data: bytes) -> Any:
        """Return the message without its numbers and its stamp."""
        message = deserialize_message(data, self._type)
        for group in self._groups_of(message):
            for leaf in group:
                _set(leaf, 0.0)
        if self._stamp_of is not None:
            stamp = self._stamp_of(message)
            stamp.sec = stamp.nanosec = 0
        return message


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
