"""Bytes of Unitree's messages against the vendor's own way to pack them, and against cyclonedds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bipedsim_ros.interfaces.unitree.layout import GO, HG, Cdr, crc


def test_the_checksum_of_zeros_is_that_of_the_vendors_program() -> None:
    assert crc(bytes(1004)) == 4262932383


@given(st.binary(min_size=4, max_size=64).map(lambda data: data[: len(data) // 4 * 4]))
def test_the_checksum_is_the_vendors_bit_by_bit(words: bytes) -> None:
    from unitree_support import vendors_crc

    assert crc(words) == vendors_crc(words)


def _random_command(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    cdr = Cdr(HG.low_cmd)
    _fill(cdr.values, rng)
    return _sample(idl_module().TYPES[HG.name][0], cdr.values)


def test_a_command_as_cyclonedds_serialises_it_is_read_and_its_checksum_is_right() -> None:
    from unitree_support import packed_command, vendors_crc

    message = _random_command(1)
    message.crc = vendors_crc(packed_command(message))
    data = type(message).__idl__.serialize(message)
    cdr = Cdr(HG.low_cmd)
    assert cdr.read(data) is None
    assert cdr.values["motor_cmd"]["kp"].tolist() == [m.kp for m in message.motor_cmd]
    assert cdr.serialized() == data


def test_bytes_that_pad_mean_nothing() -> None:
    cdr = Cdr(HG.low_cmd)
    cdr.values["motor_cmd"]["q"] = 1.5
    data = bytearray(cdr.serialized())
    data[4 + 29 : 4 + 32] = b"\xab\xcd\xef"  # behind the second motor's mode
    assert cdr.read(bytes(data)) is None
    assert (cdr.values["motor_cmd"]["q"] == 1.5).all()


def test_a_state_has_the_bytes_that_cyclonedds_would_write_and_the_vendors_checksum() -> None:
    from unitree_support import packed_state, vendors_crc

    rng = np.random.default_rng(2)
    cdr = Cdr(HG.low_state)
    values = cdr.values
    numbers = np.frombuffer(rng.bytes(HG.low_state.itemsize), "u1")
    for name in ("version", "mode_pr", "mode_machine", "tick", "wireless_remote", "reserve"):
        values[name] = np.frombuffer(numbers.tobytes(), HG.low_state, 1)[0][name]
    for part in ("imu_state", "motor_state"):
        for name in HG.low_state[part].base.names or ():
            field = values[part][name]
            field[...] = rng.normal(size=field.shape) if field.dtype.kind == "f" else rng.integers(99, size=field.shape)
    data = cdr.serialized()
    message = _sample(idl_module().TYPES[HG.name][1], values)
    assert data == type(message).__idl__.serialize(message)
    assert values["crc"] == vendors_crc(packed_state(message))


def _fill(value: Any, rng: np.random.Generator) -> None:
    """Fill the numbers of a structured array with random ones below 100."""
    for name in value.dtype.names:
        field = value[name]
        if field.dtype.names:
            _fill(field, rng)
        else:
            real = field.dtype.kind == "f"
            value[name] = rng.normal(size=field.shape) if real else rng.integers(99, size=field.shape)


def _sample(kind: Any, value: Any) -> Any:
    """Return the numbers of a structured array as a sample of cyclonedds."""
    parts = []
    for name, hint in kind.__annotations__.items():
        field = value[name]
        if field.dtype.names:
            element = hint.__metadata__[0].subtype if field.shape else hint
            many = [_sample(element, one) for one in np.atleast_1d(field)]
            parts.append(many if field.shape else many[0])
        else:
            parts.append(field.tolist())
    return kind(*parts)


def idl_module() -> Any:
    """Return the types of the topics."""
    pytest.importorskip("cyclonedds", reason="cyclonedds is not installed (pip install 'bipedsim[unitree]')")
    from bipedsim_ros.interfaces.unitree import idl

    return idl


@pytest.mark.parametrize("which", ["low_cmd", "low_state"])
def test_messages_of_the_other_family_have_the_bytes_of_cyclonedds_and_the_vendors_checksum(which: str) -> None:
    idl = idl_module()
    from unitree_support import packed_go_command, packed_go_state, vendors_crc

    cdr = Cdr(getattr(GO, which))
    assert cdr._buffer.__len__() == {"low_cmd": 812, "low_state": 1180}[which]
    _fill(cdr.values, np.random.default_rng(3))
    data = cdr.serialized()
    sample = _sample(idl.TYPES[GO.name][which == "low_state"], cdr.values)
    assert type(sample).__idl__.serialize(sample) == data
    packed = packed_go_command(sample) if which == "low_cmd" else packed_go_state(sample)
    assert cdr.values["crc"] == vendors_crc(packed)
    again = Cdr(getattr(GO, which))
    assert again.read(data) is None
    assert again.values == cdr.values


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
    cdr = Cdr(HG.low_cmd)
    wrong = cdr.read(damage(cdr.serialized()))  # type: ignore[operator]
    assert wrong is not None
    assert wrong[0] == kind
