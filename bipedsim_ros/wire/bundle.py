"""Bundle messages of several topics into one message, which costs less than ten separate topics."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from rclpy.serialization import serialize_message
from std_msgs.msg import MultiArrayDimension, UInt8MultiArray

from bipedsim_ros.wire.wire import MessageError, parse

MOST_BUNDLED = 1 << 20
"""Maximum size of a bundle [bytes]; a robot of 500 joints with 200 objects needs about 200 kB."""


class BundleWriter:
    """Writes std_msgs/UInt8MultiArray messages that contain serialised messages of other topics.

    The layout has one dimension per contained message: its label is the topic, its size the number of bytes.
    """

    def __init__(self) -> None:
        self._shape: list[tuple[str, int]] | None = None
        self._head = b""

    def write(self, parts: Iterable[tuple[str, bytes]]) -> bytes:
        """Return a serialised bundle of ``parts``, each the name of a topic and a serialised message."""
        parts = list(parts)
        shape = [(name, len(data)) for name, data in parts]
        if shape != self._shape:
            message = UInt8MultiArray()
            message.layout.dim = [MultiArrayDimension(label=name, size=size, stride=size) for name, size in shape]
            # The last four bytes are the length of the data, which is written for each message.
            self._head, self._shape = serialize_message(message)[:-4], shape
        whole = b"".join(data for _, data in parts)
        return b"".join((self._head, struct.pack("=I", len(whole)), whole))


class BundleReader:
    """Reads the serialised messages of :class:`BundleWriter`; the offsets of the parts are computed once."""

    def __init__(self) -> None:
        self._head, self._size = b"", -1
        self._slices: list[tuple[str, slice]] = []

    def read(self, data: bytes) -> list[tuple[str, bytes]]:
        """Return the topic and the serialised message of each part.

        Raises:
            MessageError: The data are not a bundle.
        """
        if len(data) != self._size or not data.startswith(self._head):
            data = self._look(data)
        return [(name, data[part]) for name, part in self._slices]

    def _look(self, data: bytes) -> bytes:
        """Compute the offsets of the parts of ``data``; return the bytes to which the offsets refer."""
        message = parse(data, UInt8MultiArray, MOST_BUNDLED)
        content = bytes(message.data)
        size = sum(dim.size for dim in message.layout.dim)
        if size != len(content):
            raise MessageError(f"it holds {len(content)} bytes, and its layout says {size}")
        begin = len(data) - size
        known = data[begin:] == content
        # A third-party sender may append bytes after the last part; then the offsets are valid only once.
        self._head, self._size = (data[:begin], len(data)) if known else (b"", -1)
        at = begin if known else 0
        self._slices = []
        for dim in message.layout.dim:
            self._slices.append((dim.label, slice(at, at + dim.size)))
            at += dim.size
        return data if known else content
