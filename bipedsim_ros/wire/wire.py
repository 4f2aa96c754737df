"""Read and write the numbers of serialised messages in place.

Conversion of a JointState of 14 joints between Python and DDS takes 40 to 50 us. Nearly all of this time is spent on
names that never change. Copying its bytes takes 5 to 9 us (docs/ros_interface.md). This module therefore computes the
offsets of the numbers once; then numpy writes and reads them in place. rclpy's public interface publishes and receives
serialised messages.

The offsets follow from the message type and the rules of plain CDR (OMG DDS-XTypes 1.3, 7.4.1), in either byte order.
Tests compare them with rclpy's own parser for valid and invalid messages. The padding bytes after strings are arbitrary
memory of the sender and are ignored. The size of a message is checked before it is parsed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message, serialize_message

from bipedsim.errors import BipedSimError
from bipedsim.numerics import Array
from bipedsim_ros.wire.endpoints import message_class

NS_PER_S = 1_000_000_000
_HEADER = 4  # bytes of encapsulation before the first field; alignment is relative to its end
_ORDERS = {b"\0\0": ">", b"\0\1": "<"}  # byte order of plain CDR, by the first two bytes
_SIZES = {"boolean": 1, "octet": 1, "char": 1} | {f"{sign}int{8 * n}": n for sign in ("", "u") for n in (1, 2, 4, 8)}
_SIZES |= {"float": 4}
MOST_TEXT = 65_536
"""Maximum size of all names and texts in a message [bytes]; a robot of 500 joints needs half of it."""


class MessageError(BipedSimError):
    """Error for a message that cannot be read; the text gives the reason."""


def parse(data: bytes, kind: type, max_size: int = MOST_TEXT) -> Any:
    """Return a serialised message of at most ``max_size`` bytes as an object.

    Raises:
        MessageError: The message is too large or not of this type.
    """
    if len(data) > max_size:
        raise MessageError(f"it has {len(data)} bytes, at most {max_size} are read")
    try:
        return deserialize_message(data, kind)
    except (RuntimeError, ValueError, MemoryError) as error:
        raise MessageError(f"its {len(data)} bytes are no {kind.__name__}") from error


@cache
def _fields(kind: type, path: str = "") -> tuple[tuple[str, str, Any], ...]:
    """Return the fields of a message type in order, with their paths; nested messages are expanded."""
    return tuple(chain.from_iterable(_steps(of, f"{path}.{name}".lstrip(".")) for name, of in _types(kind)))


def _types(kind: Any) -> Iterable[tuple[str, str]]:
    return kind.get_fields_and_field_types().items()


def _steps(kind: str, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the parse steps of a field: kind of step, path, and its size, count or nested steps."""
    fixed, listed = re.fullmatch(r"(.+)\[(\d+)\]", kind), re.fullmatch(r"sequence<(.+?)(, \d+)?>", kind)
    if listed and listed[1] == "double":
        yield "list of numbers", path, None
    elif listed:
        yield "list", path, tuple(_steps(listed[1], path))
    elif fixed and fixed[1] == "double":
        yield "numbers", path, int(fixed[2])
    elif fixed:
        yield from tuple(_steps(fixed[1], path)) * int(fixed[2])
    elif kind == "double":
        yield "numbers", path, 1
    elif kind.startswith("string"):
        yield "text", path, None
    elif kind == "builtin_interfaces/Time":
        yield "time", path, None
    elif "/" in kind:
        yield from _fields(message_class(kind.replace("/", "/msg/")), path)
    else:
        yield "other", path, _SIZES[kind]


class Layout:
    """Offsets of the numbers and texts in a serialised message.

    Args:
        kind: Message type.
        data: The message, in plain CDR.
        groups: Paths of fields, such as ``"pose.pose"``; the numbers below a path must be contiguous.

    Attributes:
        groups: Offset and count of the numbers of each group.
        numbers: Data type of the numbers: float64 in the byte order of the message.
        stamp: Offset and format of the first time in the message, or None.
        texts: Lists of texts by their path, as bytes.
        gaps: Bytes between numbers and times. A message with equal gaps and length has the same layout.
        matter: Indices of the bytes in the gaps that are not padding.

    Raises:
        MessageError: The message is not of this type, or has too many texts.
    """

    def __init__(self, kind: type, data: bytes, groups: Sequence[str]) -> None:
        order = _ORDERS[data[:2]]
        self._data, self._at, self._text_size = data, _HEADER, 0
        self._u32 = struct.Struct(f"{order}I")
        self._numbers: list[tuple[str, int, int]] = []
        self._meaning: list[range] = [range(2)]
        self._times: list[int] = []
        self.texts: dict[str, list[bytes]] = {}
        self.numbers = np.dtype(f"{order}f8")
        self._walk(_fields(kind))
        self.stamp = (self._times[0], struct.Struct(f"{order}iI")) if self._times else None
        self.groups = [self._group(path) for path in groups]
        known = [(at, at + 8 * count) for _, at, count in self._numbers if count]
        known += [(at, at + 8) for at in self._times]
        edges = [0, *chain.from_iterable(sorted(known)), self._at]
        self.gaps = [slice(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if end > begin]
        self.matter = np.fromiter(chain.from_iterable(self._meaning), np.intp)
        del self._data

    def _take(self, size: int, align: int, path: str) -> int:
        """Advance by ``size`` aligned bytes; return the offset at which they begin."""
        begin = self._at + (_HEADER - self._at) % align
        if begin + size > len(self._data):
            raise MessageError(f"it ends within {path or 'its first field'}, after {len(self._data)} bytes")
        self._at = begin + size
        return begin

    def _take_meaningful(self, size: int, align: int, path: str) -> int:
        """Advance by ``size`` bytes that are not padding; return the offset at which they begin."""
        self._text_size += size
        if self._text_size > MOST_TEXT:
            raise MessageError(f"it has more than {MOST_TEXT} bytes of names and texts")
        begin = self._take(size, align, path)
        self._meaning.append(range(begin, begin + size))
        return begin

    def _count(self, path: str) -> int:
        return int(self._u32.unpack_from(self._data, self._take_meaningful(4, 4, path))[0])

    def _walk(self, steps: Iterable[tuple[str, str, Any]]) -> None:
        for step, path, more in steps:
            if step == "time":
                self._times.append(self._take(4, 4, path))
                self._take(4, 4, path)
            elif step == "other":
                self._take_meaningful(more, more, path)
            elif step == "text":
                count = self._count(path)
                begin = self._take_meaningful(count, 1, path)
                if path in self.texts:
                    self.texts[path].append(self._data[begin : begin + count])
            elif step == "list":
                self.texts[path] = []
                for _ in range(self._count(path)):
                    self._walk(more)
            else:
                count = self._count(path) if step == "list of numbers" else more
                # An empty sequence has no alignment padding.
                self._numbers.append((path, self._take(8 * count, 8 if count else 1, path), count))

    def _group(self, path: str) -> tuple[int, int]:
        below = [(at, n) for name, at, n in self._numbers if name == path or not path or name.startswith(f"{path}.")]
        offset, count = below[0][0], sum(n for _, n in below)
        if any(at + 8 * n != after for (at, n), (after, _) in pairwise(below)):
            raise ValueError(f"the numbers of {path!r} do not lie side by side")
        return offset, count


class WireWriter:
    """Writes a message repeatedly with new numbers.

    Args:
        message: The message, complete except for its numbers and stamp.
        groups: Paths of the fields with the numbers.

    Attributes:
        groups: Views of the numbers, one for each group. Write into them.
    """

    def __init__(self, message: Any, groups: Sequence[str]) -> None:
        data: bytes = serialize_message(message)
        layout = Layout(type(message), data, groups)
        self._stamp = layout.stamp
        self._buffer = bytearray(data)
        self.groups = [_view(self._buffer, layout.numbers, *group) for group in layout.groups]

    def data(self, t_ns: int) -> bytes:
        """Return the serialised message with the stamp ``t_ns`` [ns]."""
        if self._stamp is not None:
            offset, form = self._stamp
            form.pack_into(self._buffer, offset, *divmod(t_ns, NS_PER_S))
        return bytes(self._buffer)


class WireReader:
    """Reads the numbers of messages of one type; texts and lengths are parsed only when they change.

    Args:
        kind: Message type.
        groups: Paths of the fields with the requested numbers.

    Attributes:
        layout: Layout of the last readable message; it remains the same object while only numbers change.
    """

    def __init__(self, kind: type, groups: Sequence[str]) -> None:
        self._kind = kind
        self._groups = groups
        self._last = b""
        self._gaps: list[tuple[slice, bytes]] = []
        self._t_ns = 0
        self.layout: Layout | None = None

    @property
    def t_ns(self) -> int:
        """Stamp of the last readable message [ns].

        Raises:
            ValueError: The type has no stamp, or nothing has been read.
        """
        if self.layout is None or self.layout.stamp is None:
            raise ValueError(f"no stamp in {self._kind.__name__}")
        return self._t_ns

    def read(self, data: bytes) -> list[Array]:
        """Return the numbers of a serialised message, one array for each group; they are views of ``data``.

        Raises:
            MessageError: The message cannot be read.
        """
        # A generator expression would take as long as the rest of this method.
        familiar = len(data) == len(self._last) and bool(self._last)
        for gap, known in self._gaps:
            familiar = familiar and data[gap] == known
        if not familiar:
            data = self._look(data)
        layout = self.layout
        assert layout is not None
        if layout.stamp is not None:
            offset, form = layout.stamp
            sec, nanosec = form.unpack_from(data, offset)
            if nanosec >= NS_PER_S:
                # Such a message could not be forwarded: the seconds may exceed the range of a stamp.
                raise MessageError(f"its stamp has {nanosec} nanoseconds, and no second has {NS_PER_S}")
            self._t_ns = sec * NS_PER_S + nanosec
        return [_view(data, layout.numbers, *group) for group in layout.groups]

    def _look(self, data: bytes) -> bytes:
        """Compute the layout of ``data``, unless it differs from the last message only in padding.

        Returns:
            The bytes to read. They differ from ``data`` if the sender does not encode in plain CDR.
        """
        layout, known = self.layout, self._last
        if (
            layout is None
            or not known
            or len(data) != len(known)
            or not np.array_equal(_bytes(data)[layout.matter], _bytes(known)[layout.matter])
        ):
            plain = data[:2] in _ORDERS
            if not plain:
                data = bytes(serialize_message(parse(data, self._kind)))
            self.layout = layout = Layout(self._kind, data, self._groups)
            if not plain:
                self._last = b""
                return data
        self._last = data
        self._gaps = [(gap, data[gap]) for gap in layout.gaps]
        return data


def _view(data: bytes | bytearray, kind: np.dtype[Any], offset: int, count: int) -> Array:
    return np.frombuffer(data, kind, count, offset) if count else np.empty(0)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
