"""Messages of several topics in one: what belongs together comes together, and one topic costs less than ten."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

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
        self._shape: list[tuple[str, int]] = []
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


def unbundle(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name of the topic and serialised message of each part of a bundle that is serialised.

    Raises:
        MessageError: It is no bundle.
    """
    message = parse(data, UInt8MultiArray, MOST_BUNDLED)
    whole, begin = bytes(message.data), 0
    named = sum(dim.size for dim in message.layout.dim)
    if named != len(whole):
        raise MessageError(f"it holds {len(whole)} bytes, and its layout says {named}")
    for dim in message.layout.dim:
        yield dim.label, whole[begin : begin + dim.size]
        begin += dim.size
