"""Read the numbers of serialised messages in place.

Conversion of a JointState of 14 joints between Python and DDS takes 40 to 50 us. Nearly all of this time is spent on
names that never change. Copying its bytes takes 5 to 9 us (docs/ros_interface.md). The readers therefore compute the
offsets of the numbers once (:mod:`bipedsim.recording.bag.cdr`), and numpy reads them in place. rclpy's public interface
publishes and receives serialised messages.

Tests compare the readers with rclpy's own parser for valid and invalid messages. The padding bytes after strings are
arbitrary memory of the sender and are ignored. The size of a message is checked before it is parsed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message, serialize_message

from bipedsim.errors import BipedSimError
from bipedsim.numerics import Array
from bipedsim.recording.bag import FIELDS, NS_PER_S, Walk, is_plain
from bipedsim_ros.wire.endpoints import message_class

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
        raise MessageError(f"its {len(data)} bytes are more than the maximum, {max_size}", kind.__name__)
    try:
        return deserialize_message(data, kind)
    except (RuntimeError, ValueError, MemoryError) as error:
        raise MessageError(f"its {len(data)} bytes cannot be decoded", kind.__name__) from error


class Layout:
    """Offsets of the numbers and texts in a serialised message.

    Args:
        data: The message, in plain CDR.
        msgtype: Its type.
        fields: Paths of the fields with the requested numbers, such as ``"pose.pose"``.

    Attributes:
        groups: Data type in the byte order of the message, count and offset of the numbers of each field.
        stamp: Offset and format of the first time in the message, or None.
        texts: Path and bytes of all strings.
        gaps: Bytes between numbers. A message with equal gaps and length has the same layout.
        matter: Indices of the bytes in the gaps that are not padding.

    Raises:
        MessageError: The message is not of this type, or has too many texts.
    """

    def __init__(self, data: bytes, msgtype: str, fields: Sequence[str]) -> None:
        try:
            walk = Walk(data, msgtype, MOST_TEXT)
        except ValueError as error:
            raise MessageError(error, msgtype) from error
        self.texts = walk.texts
        self.stamp = (walk.stamps[0], struct.Struct(f"{walk.order}iI")) if walk.stamps else None
        found = map(walk.group, fields)
        self.groups = [(np.dtype(f"{walk.order}{kind}"), count, at) for at, kind, count in found]
        known = [(part.at, part.at + part.n * int(part.kind[1:])) for part in walk.numbers if part.n]
        edges = [0, *chain.from_iterable(known), walk.end]
        self.gaps = [slice(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if end > begin]
        self.matter = np.fromiter(chain.from_iterable(range(*part) for part in walk.structure), np.intp)


class WireReader:
    """Reads the numbers of messages of one type; texts and lengths are parsed only when they change.

    Args:
        msgtype: Message type, whose fields with numbers are in ``FIELDS``.

    Attributes:
        layout: Layout of the last readable message; it remains the same object while only numbers change.
    """

    def __init__(self, msgtype: str) -> None:
        self._msgtype = msgtype
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
            raise ValueError(f"no stamp in {self._msgtype}")
        return self._t_ns

    def read(self, data: bytes) -> list[Array]:
        """Return the numbers of a serialised message, one array for each field; they are views of ``data``.

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
                raise MessageError(f"nanoseconds are more than a second has, {NS_PER_S}", "stamp", nanosec)
            self._t_ns = sec * NS_PER_S + nanosec
        return [_view(data, *group) for group in layout.groups]

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
            plain = is_plain(data)
            if not plain:
                data = bytes(serialize_message(parse(data, message_class(self._msgtype))))
            self.layout = layout = Layout(data, self._msgtype, tuple(FIELDS[self._msgtype].values()))
            if not plain:
                self._last = b""
                return data
        self._last = data
        self._gaps = [(gap, data[gap]) for gap in layout.gaps]
        return data


def _view(data: bytes, kind: np.dtype[Any], count: int, offset: int) -> Array:
    return np.frombuffer(data, kind, count, offset) if count else np.empty(0)


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
