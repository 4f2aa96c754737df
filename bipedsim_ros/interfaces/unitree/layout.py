"""Convert Unitree's low-level messages for humanoids between numbers and bytes, and compute their checksum.

There are two families: ``unitree_hg`` (G1, H1_2) and ``unitree_go`` (H1, and robots with four legs). A message has two
layouts. Its checksum is that of the C struct. DDS transmits plain CDR, in which structs are not padded. Numpy reads and
writes the numbers in a buffer with the C layout, and the bytes are then copied to CDR. Creation of Python objects for a
state would take 0.5 ms, half of a core at 1 kHz.

This module does not need DDS. Names and order of the members are those of the vendor's public IDL (unitree_sdk2,
BSD-3-Clause).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.numerics import Indices


def _c(*fields: Any) -> np.dtype[Any]:
    return np.dtype(list(fields), align=True)


_TARGETS = (("mode", "u1"), ("q", "<f4"), ("dq", "<f4"), ("tau", "<f4"), ("kp", "<f4"), ("kd", "<f4"))
_MEASURED = (("mode", "u1"), ("q", "<f4"), ("dq", "<f4"), ("ddq", "<f4"), ("tau_est", "<f4"))
_IMU = (("quaternion", "<f4", 4), ("gyroscope", "<f4", 3), ("accelerometer", "<f4", 3), ("rpy", "<f4", 3))
_HEAD = (("head", "u1", 2), ("level_flag", "u1"), ("frame_reserve", "u1"), ("sn", "<u4", 2), ("version", "<u4", 2))
_HEAD_GO = (*_HEAD, ("bandwidth", "<u2"))
_BATTERY = _c(
    *(("version_high", "u1"), ("version_low", "u1"), ("status", "u1"), ("soc", "u1"), ("current", "<i4")),
    *(("cycle", "<u2"), ("bq_ntc", "u1", 2), ("mcu_ntc", "u1", 2), ("cell_vol", "<u2", 15)),
)
_MOTOR_STATE_HG = _c(
    *_MEASURED,
    *(("temperature", "<i2", 2), ("vol", "<f4"), ("sensor", "<u4", 2), ("motorstate", "<u4"), ("reserve", "<u4", 4)),
)
_MOTOR_STATE_GO = _c(
    *_MEASURED,
    *(("q_raw", "<f4"), ("dq_raw", "<f4"), ("ddq_raw", "<f4"), ("temperature", "u1"), ("lost", "<u4")),
    ("reserve", "<u4", 2),
)


@dataclass(frozen=True)
class Family:
    """A family of messages.

    Attributes:
        name: IDL module of the types.
        n: Number of motors in every message; the machine may have fewer.
        low_cmd, low_state: rt/lowcmd and rt/lowstate as C structs.
        on: Values of ``mode`` for an active motor; 0 is off.
        no_position, no_velocity: Magnitudes of a position [rad] and a velocity [rad/s] that mean "no target". The motor
            then has no stiffness or no damping, respectively.
    """

    name: str
    n: int
    low_cmd: np.dtype[Any]
    low_state: np.dtype[Any]
    on: tuple[int, ...] = (1,)
    no_position: float = np.inf
    no_velocity: float = np.inf


HG = Family(
    "unitree_hg",
    35,
    _c(
        *(("mode_pr", "u1"), ("mode_machine", "u1"), ("motor_cmd", _c(*_TARGETS, ("reserve", "<u4")), 35)),
        *(("reserve", "<u4", 4), ("crc", "<u4")),
    ),
    _c(
        *(("version", "<u4", 2), ("mode_pr", "u1"), ("mode_machine", "u1"), ("tick", "<u4")),
        *(("imu_state", _c(*_IMU, ("temperature", "<i2"))), ("motor_state", _MOTOR_STATE_HG, 35)),
        *(("wireless_remote", "u1", 40), ("reserve", "<u4", 4), ("crc", "<u4")),
    ),
)
GO = Family(
    "unitree_go",
    20,
    _c(
        *(*_HEAD_GO, ("motor_cmd", _c(*_TARGETS, ("reserve", "<u4", 3)), 20)),
        *(("bms_cmd", _c(("off", "u1"), ("reserve", "u1", 3))), ("wireless_remote", "u1", 40), ("led", "u1", 12)),
        *(("fan", "u1", 2), ("gpio", "u1"), ("reserve", "<u4"), ("crc", "<u4")),
    ),
    _c(
        *(*_HEAD_GO, ("imu_state", _c(*_IMU, ("temperature", "u1"))), ("motor_state", _MOTOR_STATE_GO, 20)),
        *(("bms_state", _BATTERY), ("foot_force", "<i2", 4), ("foot_force_est", "<i2", 4), ("tick", "<u4")),
        *(("wireless_remote", "u1", 40), ("bit_flag", "u1"), ("adc_reel", "<f4"), ("temperature_ntc1", "u1")),
        *(("temperature_ntc2", "u1"), ("power_v", "<f4"), ("power_a", "<f4"), ("fan_frequency", "<u2", 4)),
        *(("reserve", "<u4"), ("crc", "<u4")),
    ),
    # The strong motors of H1 use mode 10. The magnitudes are PosStopF and VelStopF in the vendor's examples.
    on=(1, 10),
    no_position=2.146e9,
    no_velocity=16000.0,
)
FAMILIES = {family.name: family for family in (HG, GO)}

HEADER = b"\0\1\0\0"
"""Header of plain CDR, little endian."""
_READABLE = (b"\0\1", b"\0\7")  # versions 1 and 2 of CDR, which are identical without numbers of more than 4 bytes
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc(words: bytes) -> int:
    """Return Unitree's checksum of a C struct, whose last word is the checksum itself.

    The checksum is CRC-32 with the polynomial 0x04c11db7 and an initial value of all ones. It processes little-endian
    words from their highest bit, without reflection. zlib's CRC uses the same polynomial with all bit orders reversed.
    """
    reversed_bits = np.frombuffer(words, "<u4")[:-1].byteswap().tobytes().translate(_REVERSED)
    return int(f"{zlib.crc32(reversed_bits) ^ 0xFFFFFFFF:032b}"[::-1], 2)


def _offsets(kind: np.dtype[Any], c: int, cdr: int) -> Iterator[tuple[int, int, int]]:
    """Yield offset in C, offset in CDR and size of every number, in bytes; CDR aligns only numbers."""
    if kind.subdtype is not None:
        base, shape = kind.subdtype
        for k in range(int(np.prod(shape))):
            for offset in _offsets(base, c + k * base.itemsize, cdr):
                yield offset
                cdr = offset[1] + offset[2]
    elif kind.fields is not None:
        for name in kind.names or ():
            part, start = kind.fields[name][:2]
            for offset in _offsets(part, c + start, cdr):
                yield offset
                cdr = offset[1] + offset[2]
    else:
        yield c, -(-cdr // kind.itemsize) * kind.itemsize, kind.itemsize


class Cdr:
    """A message in both layouts: numbers in ``values``, and bytes for DDS.

    Args:
        kind: The C struct, without numbers of more than 4 bytes, and with the checksum last.

    Attributes:
        values: Structured numpy array without dimensions; read and write its members.
        size: Size of the serialised message [bytes].
    """

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._buffer = bytearray(kind.itemsize)
        self.values = np.frombuffer(self._buffer, kind, 1).reshape(())
        self._c = np.frombuffer(self._buffer, "u1")
        offsets = list(_offsets(kind, 0, 0))
        self._from: Indices = np.array([c + i for c, _, size in offsets for i in range(size)], dtype=np.intp)
        self._to: Indices = np.array([cdr + i for _, cdr, size in offsets for i in range(size)], dtype=np.intp)
        self._out = np.zeros(len(HEADER) + int(self._to[-1]) + 1, dtype="u1")
        self._out[: len(HEADER)] = np.frombuffer(HEADER, "u1")
        self._to += len(HEADER)
        self.size = len(self._out)

    def serialized(self) -> bytes:
        """Return the serialised message with its checksum."""
        self.values["crc"] = crc(bytes(self._buffer))
        self._out[self._to] = self._c[self._from]
        return self._out.tobytes()

    def read(self, data: bytes) -> tuple[str, str] | None:
        """Read a serialised message into ``values``, which are invalid if the message is refused.

        Returns:
            None, or the fault of the message: the kind under which it is counted, and a text.
        """
        if data[:2] not in _READABLE:
            return "encoding", f"it begins with {data[:4].hex()}, not as little-endian plain CDR does"
        if len(data) != self.size:
            return "size", f"it has {len(data)} bytes, expected {self.size}: is the SDK for another robot?"
        # The padding of the structs remains 0, because the checksum includes it but CDR does not.
        self._c[self._from] = np.frombuffer(data, "u1")[self._to]
        expected, received = crc(bytes(self._buffer)), int(self.values["crc"])
        if received == expected:
            return None
        return (
            "crc",
            f"its crc is {received}, and that of its numbers {expected}: fill in msg.crc = CRC().Crc(msg) last",
        )
