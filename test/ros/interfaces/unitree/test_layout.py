"""Bytes of Unitree's messages against the vendor's own way to pack them, and against cyclonedds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bipedsim_ros.interfaces.unitree.layout import LOW_CMD, LOW_STATE, N_MOTORS, Cdr, crc


def test_the_checksum_of_zeros_is_that_of_the_vendors_program() -> None:
    assert crc(bytes(1004)) == 4262932383


@given(st.binary(min_size=4, max_size=64).map(lambda data: data[: len(data) // 4 * 4]))
def test_the_checksum_is_the_vendors_bit_by_bit(words: bytes) -> None:
    from unitree_support import vendors_crc

    assert crc(words) == vendors_crc(words)


def _random_command(seed: int) -> object:
    from bipedsim_ros.interfaces.unitree import idl

    rng = np.random.default_rng(seed)
    motors = [
        idl.MotorCmd(int(rng.integers(256)), *np.float32(rng.normal(size=5)).tolist(), int(rng.integers(2**32)))
        for _ in range(N_MOTORS)
    ]
    return idl.LowCmd(0, 5, motors, rng.integers(2**32, size=4).tolist(), 0)


def test_a_command_as_cyclonedds_serialises_it_is_read_and_its_checksum_is_right() -> None:
    from unitree_support import packed_command, vendors_crc

    message = _random_command(1)
    message.crc = vendors_crc(packed_command(message))  # type: ignore[attr-defined]
    data = type(message).__idl__.serialize(message)  # type: ignore[attr-defined]
    cdr = Cdr(LOW_CMD, "motor_cmd")
    assert cdr.read(data) is None
    assert cdr.values["motor_cmd"]["kp"].tolist() == [m.kp for m in message.motor_cmd]  # type: ignore[attr-defined]
    assert cdr.serialized() == data


def test_bytes_that_pad_mean_nothing() -> None:
    cdr = Cdr(LOW_CMD, "motor_cmd")
    cdr.values["motor_cmd"]["q"] = 1.5
    data = bytearray(cdr.serialized())
    data[4 + 29 : 4 + 32] = b"\xab\xcd\xef"  # behind the second motor's mode
    assert cdr.read(bytes(data)) is None
    assert (cdr.values["motor_cmd"]["q"] == 1.5).all()


def test_a_state_has_the_bytes_that_cyclonedds_would_write_and_the_vendors_checksum() -> None:
    from unitree_support import packed_state, vendors_crc

    from bipedsim_ros.interfaces.unitree import idl

    rng = np.random.default_rng(2)
    cdr = Cdr(LOW_STATE, "motor_state")
    values = cdr.values
    numbers = np.frombuffer(rng.bytes(LOW_STATE.itemsize), "u1")
    for name in ("version", "mode_pr", "mode_machine", "tick", "wireless_remote", "reserve"):
        values[name] = np.frombuffer(numbers.tobytes(), LOW_STATE, 1)[0][name]
    for part in ("imu_state", "motor_state"):
        for name in LOW_STATE[part].base.names or ():
            field = values[part][name]
            field[...] = rng.normal(size=field.shape) if field.dtype.kind == "f" else rng.integers(99, size=field.shape)
    data = cdr.serialized()
    imu, motors = values["imu_state"], values["motor_state"]
    message = idl.LowState(
        *(values[name].tolist() for name in ("version", "mode_pr", "mode_machine", "tick")),
        idl.ImuState(*(imu[name].tolist() for name in imu.dtype.names)),
        [idl.MotorState(*(motor[name].tolist() for name in motors.dtype.names)) for motor in motors],
        *(values[name].tolist() for name in ("wireless_remote", "reserve", "crc")),
    )
    assert data == idl.LowState.__idl__.serialize(message)
    assert values["crc"] == vendors_crc(packed_state(message))


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda data: data[:-4], "size"),
        (lambda data: data + bytes(4), "size"),
        (lambda data: b"\0\0" + data[2:], "encoding"),
        (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], "crc"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "crc"),
        (lambda data: b"", "encoding"),
    ],
)
def test_what_is_damaged_is_refused_by_kind(damage: object, kind: str) -> None:
    cdr = Cdr(LOW_CMD, "motor_cmd")
    wrong = cdr.read(damage(cdr.serialized()))  # type: ignore[operator]
    assert wrong is not None
    assert wrong[0] == kind
