"""The bytes of Unitree's low-level messages of humanoids (IDL module ``unitree_hg``), and their checksum.

A message has two layouts. Its checksum is over the C struct; DDS carries plain CDR, in which structs are not padded.
The two differ only where the first motor begins, so that numpy writes and reads the numbers in one buffer with the
layout of C: making Python objects of a state costs 0.5 ms, half of a core at 1 kHz. Nothing here needs DDS. Names and
order of the members are those of the vendor's public IDL (unitree_sdk2, BSD-3-Clause).
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

N_MOTORS = 35
"""Motors of every message, whether the machine has them or not."""

_MOTOR_CMD: list[Any] = [("mode", "u1"), ("q", "<f4"), ("dq", "<f4"), ("tau", "<f4"), ("kp", "<f4"), ("kd", "<f4")]
_MOTOR_CMD += [("reserve", "<u4")]
_MOTOR_STATE: list[Any] = [("mode", "u1"), ("q", "<f4"), ("dq", "<f4"), ("ddq", "<f4"), ("tau_est", "<f4")]
_MOTOR_STATE += [("temperature", "<i2", 2), ("vol", "<f4"), ("sensor", "<u4", 2), ("motorstate", "<u4")]
_MOTOR_STATE += [("reserve", "<u4", 4)]
_IMU_STATE: list[Any] = [("quaternion", "<f4", 4), ("gyroscope", "<f4", 3), ("accelerometer", "<f4", 3)]
_IMU_STATE += [("rpy", "<f4", 3), ("temperature", "<i2")]


def _c(fields: list[Any]) -> np.dtype[Any]:
    return np.dtype(fields, align=True)


LOW_CMD = _c(
    [
        ("mode_pr", "u1"),
        ("mode_machine", "u1"),
        ("motor_cmd", _c(_MOTOR_CMD), N_MOTORS),
        ("reserve", "<u4", 4),
        ("crc", "<u4"),
    ]
)
"""rt/lowcmd as a C struct."""
LOW_STATE = _c(
    [
        ("version", "<u4", 2),
        ("mode_pr", "u1"),
        ("mode_machine", "u1"),
        ("tick", "<u4"),
        ("imu_state", _c(_IMU_STATE)),
        ("motor_state", _c(_MOTOR_STATE), N_MOTORS),
        ("wireless_remote", "u1", 40),
        ("reserve", "<u4", 4),
        ("crc", "<u4"),
    ]
)
"""rt/lowstate as a C struct."""

HEADER = b"\0\1\0\0"
"""Of plain CDR, little endian."""
_READABLE = (b"\0\1", b"\0\7")  # versions 1 and 2 of it, which are one where no number has more than 4 bytes
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc(words: bytes) -> int:
    """Return Unitree's checksum of a C struct whose last word is the place of that checksum.

    CRC-32 with the polynomial 0x04c11db7, begun with all ones, over little-endian words from their highest bit on, with
    nothing reflected: zlib's, of the same polynomial, with every bit order turned round.
    """
    turned = np.frombuffer(words, "<u4")[:-1].byteswap().tobytes().translate(_REVERSED)
    return int(f"{zlib.crc32(turned) ^ 0xFFFFFFFF:032b}"[::-1], 2)


class Cdr:
    """A message as both: numbers in ``values``, bytes as DDS carries them.

    Args:
        kind: ``LOW_CMD`` or ``LOW_STATE``.
        motors: Name of the member with the motors.

    Attributes:
        values: A structured array of numpy without dimensions, of which members are read and written.
        size: Bytes of the serialised message.
    """

    def __init__(self, kind: np.dtype[Any], motors: str) -> None:
        self._buffer = bytearray(kind.itemsize)
        self.values = np.frombuffer(self._buffer, kind, 1).reshape(())
        assert kind.fields is not None
        self._first = kind.fields[motors][1]
        # In either message the members before it end two bytes earlier, and there CDR has the first motor's mode.
        self._end = self._first - 2
        self.size = len(HEADER) + kind.itemsize - 4
        motor = kind[motors].base
        self._stride = motor.itemsize

    def serialized(self) -> bytes:
        """Return the message with its checksum, as DDS carries it."""
        self.values["crc"] = crc(bytes(self._buffer))
        first = self._first
        return b"".join(
            (HEADER, self._buffer[: self._end], self._buffer[first : first + 1], b"\0", self._buffer[first + 4 :])
        )

    def read(self, data: bytes) -> tuple[str, str] | None:
        """Take a serialised message into ``values``, which hold nothing of use where it is refused.

        Returns:
            None, or what is wrong with its form: a kind, by which it is counted, and a text.
        """
        if data[:2] not in _READABLE:
            return "encoding", f"it begins with {data[:4].hex()}, not as little-endian plain CDR does"
        if len(data) != self.size:
            return "size", f"it has {len(data)} bytes, expected {self.size}: is the SDK for another robot?"
        end, first = self._end, self._first
        at = len(HEADER) + end
        buffer = self._buffer
        buffer[:end] = data[len(HEADER) : at]
        buffer[first] = data[at]
        buffer[first + 4 :] = data[at + 2 : self.size]
        # What pads the structs has no meaning in CDR and none in the checksum's.
        pads = np.frombuffer(buffer, "u1", N_MOTORS * self._stride, first).reshape(N_MOTORS, self._stride)
        pads[:, 1:4] = 0
        expected, given = crc(bytes(buffer)), int(self.values["crc"])
        if given == expected:
            return None
        return "crc", f"its crc is {given}, and that of its numbers {expected}: fill in msg.crc = CRC().Crc(msg) last"
