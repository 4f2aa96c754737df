"""Messages of several topics in one: what belongs together comes together, and one topic costs less than ten."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from rclpy.serialization import serialize_message
from std_msgs.msg import MultiArrayDimension, UInt8MultiArray

from bipedsim_ros.wire.wire import MessageError, parse

MOST_BUNDLED = 1 << 20
"""Bytes of a bundle: a robot of 500 joints with 200 objects has some 200 kB."""


class BundleWriter:
    """Writes std_msgs/UInt8MultiArray messages that hold others.

    The layout has a dimension for each part: its label is the topic, its size the number of bytes.
    """

    def __init__(self) -> None:
        self._shape: list[tuple[str, int]] | None = None
        self._head = b""

    def write(self, parts: Iterable[tuple[str, bytes]]) -> bytes:
        """Return the message, serialised, of ``parts``: each the name of a topic, and a serialised message of it."""
        parts = list(parts)
        shape = [(name, len(data)) for name, data in parts]
        if shape != self._shape:
            message = UInt8MultiArray()
            message.layout.dim = [MultiArrayDimension(label=name, size=size, stride=size) for name, size in shape]
            # All but the number of bytes at its end.
            self._head, self._shape = serialize_message(message)[:-4], shape
        whole = b"".join(data for _, data in parts)
        return b"".join((self._head, struct.pack("=I", len(whole)), whole))


class BundleReader:
    """Reads what :class:`BundleWriter` has written, serialised; where the parts lie is found once."""

    def __init__(self) -> None:
        self._head, self._size = b"", -1
        self._places: list[tuple[str, slice]] = []

    def read(self, data: bytes) -> list[tuple[str, bytes]]:
        """Return name of the topic and serialised message of each part.

        Raises:
            MessageError: It is no bundle.
        """
        if len(data) != self._size or not data.startswith(self._head):
            data = self._look(data)
        return [(name, data[place]) for name, place in self._places]

    def _look(self, data: bytes) -> bytes:
        """Learn where the parts of ``data`` lie; return the bytes in which they do."""
        message = parse(data, UInt8MultiArray, MOST_BUNDLED)
        whole = bytes(message.data)
        named = sum(dim.size for dim in message.layout.dim)
        if named != len(whole):
            raise MessageError(f"it holds {len(whole)} bytes, and its layout says {named}")
        begin = len(data) - named
        known = data[begin:] == whole
        # Another sender may have bytes behind the last part.
        self._head, self._size = (data[:begin], len(data)) if known else (b"", -1)
        at = begin if known else 0
        self._places = []
        for dim in message.layout.dim:
            self._places.append((dim.label, slice(at, at + dim.size)))
            at += dim.size
        return data if known else whole
