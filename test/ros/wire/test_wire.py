"""For any bytes, the reader returns the same values as rclpy, and rejects the messages that rclpy rejects."""

from __future__ import annotations

import array
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from refusals import refusal

pytest.importorskip("rclpy", reason="rclpy is not installed")

from geometry_msgs.msg import Twist, WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from bipedsim.sim.io import Observation
from bipedsim_ros.wire.conversions import JointStateReader
from bipedsim_ros.wire.joint_commands import CommandReader
from bipedsim_ros.wire.wire import MOST_TEXT, NS_PER_S, MessageError, WireReader, parse

RNG = np.random.default_rng(0)


def joint_state(n: int, **lengths: int) -> JointState:
    fields = {name: array.array("d", RNG.normal(size=m)) for name, m in lengths.items()}
    message = JointState(name=[f"joint_{'x' * (i % 5)}{i}" for i in range(n)], **fields)
    message.header.frame_id = "base_link"
    message.header.stamp.sec, message.header.stamp.nanosec = 12, 345
    return message


def labelled() -> Float64MultiArray:
    message = Float64MultiArray(data=array.array("d", RNG.normal(size=3)))
    message.layout.dim = [MultiArrayDimension(label="torques", size=3, stride=3)]
    return message


def sensors() -> tuple[Imu, WrenchStamped, Twist]:
    imu, wrench, twist = Imu(), WrenchStamped(), Twist()
    imu.header.frame_id, wrench.header.frame_id = "imu_link", "l_ankle"
    imu.orientation.w, imu.linear_acceleration.z, wrench.wrench.force.z, twist.angular.z = 1.0, 9.8, 300.0, 0.5
    return imu, wrench, twist


def xyz(v: Any) -> list[float]:
    return [v.x, v.y, v.z]


def msgtype(kind: type) -> str:
    return f"{kind.__module__.partition('.')[0]}/msg/{kind.__name__}"


Numbers = Callable[[Any], list[list[float]]]
KINDS: dict[type, Numbers] = {
    JointState: lambda m: [list(m.position), list(m.velocity), list(m.effort)],
    Float64MultiArray: lambda m: [list(m.data)],
    Imu: lambda m: [
        [*xyz(m.orientation), m.orientation.w],
        xyz(m.angular_velocity),
        xyz(m.linear_acceleration),
        list(m.orientation_covariance),
    ],
    WrenchStamped: lambda m: [xyz(m.wrench.force) + xyz(m.wrench.torque)],
    Twist: lambda m: [xyz(m.linear), xyz(m.angular)],
}
SOUND = [
    *(joint_state(n, position=n, velocity=n, effort=n) for n in (1, 2, 3)),
    joint_state(2, position=2),
    joint_state(0),
    Float64MultiArray(data=array.array("d", RNG.normal(size=3))),
    labelled(),
    *sensors(),
]
BYTES = [(type(message), bytes(serialize_message(message))) for message in SOUND]
# One reader for all examples: its cache from one message must not affect the next.
READERS = {kind: WireReader(msgtype(kind)) for kind in KINDS}


def turned(kind: type, data: bytes) -> bytes:
    """Return a message of numbers alone with its bytes in the other order."""
    assert kind is Twist
    return b"\0\0\0\0" + struct.pack(">6d", *struct.unpack("<6d", data[4:52]))


def dimensions(data: bytes) -> int:
    """Return how many dimensions of its layout a Float64MultiArray claims to have."""
    return int.from_bytes(data[4:8], "big" if data[1] == 0 else "little")


def deserialized(kind: type, data: bytes) -> Any:
    """Return the message as read by rclpy.

    The header may state that up to three bytes at the end are padding. Fast DDS 3 leaves them out, and cannot read a
    message that ends before them. Version 2 and our reader check only the fields.
    """
    try:
        return deserialize_message(data, kind)
    except Exception:
        if len(data) > 3 and data[3] & 3:
            return deserialize_message(data[:3] + bytes([data[3] & ~3]) + data[4:], kind)
        raise


def judge(kind: type, data: bytes) -> None:
    """Read ``data`` in both ways and compare."""
    reader = READERS[kind]
    try:
        expected = deserialized(kind, data)
    except Exception:
        with pytest.raises(MessageError):
            reader.read(data)
        return
    if kind is Float64MultiArray and dimensions(data) > len(data) - 8:
        # rclpy complains of a list in a list that is longer than the message, then goes on as if it were empty.
        with pytest.raises(MessageError):
            reader.read(data)
        return
    if hasattr(expected, "header") and expected.header.stamp.nanosec >= NS_PER_S:
        with refusal(MessageError, place="stamp"):
            reader.read(data)
        return
    found = reader.read(data)
    for seen, wanted in zip(found, KINDS[kind](expected), strict=True):
        np.testing.assert_array_equal(seen, wanted)
    if hasattr(expected, "header"):
        stamp = expected.header.stamp
        assert reader.t_ns == stamp.sec * NS_PER_S + stamp.nanosec
    if kind is JointState:
        state = Observation.zeros(len(expected.name), 0)
        names = JointStateReader(expected.name)
        names.read(data, state)
        assert not names.missing


def test_a_stamp_that_is_none_is_refused() -> None:
    """Its time could be more than a stamp holds, and end a controller that stamps its odometry with it."""
    message = JointState(name=["a"], position=[0.0], velocity=[0.0], effort=[0.0])
    message.header.stamp.sec, message.header.stamp.nanosec = 2**31 - 1, 2**32 - 1
    state = Observation.zeros(1, 0)
    with refusal(MessageError, place="stamp", value=4294967295):
        JointStateReader(["a"]).read(serialize_message(message), state)
    assert state.t == 0.0


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[type, bytes]:
    """A valid message, cut, extended, with flipped bits or another length; or random bytes."""
    kind, sound = draw(st.sampled_from(BYTES))
    data = bytearray(sound)
    for _ in range(draw(st.integers(0, 3))):
        how = draw(st.sampled_from(["cut", "grow", "bit", "length", "random", "none"]))
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        if how == "cut":
            del data[at:]
        elif how == "grow":
            data[at:at] = draw(st.binary(max_size=9))
        elif how == "bit" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "length":
            length = draw(st.one_of(st.integers(0, 40), st.sampled_from([2**16, 2**29, 2**31, 2**32 - 1])))
            at &= ~3
            data[at : at + 4] = struct.pack("<I", length)
        elif how == "random":
            data = bytearray(draw(st.binary(max_size=80)))
    return kind, bytes(data)


# The bytes are no test names, because the padding between fields differs in every process.
@pytest.mark.parametrize(("kind", "data"), BYTES, ids=lambda part: part.__name__ if isinstance(part, type) else "")
def test_sound_messages_are_read_as_rclpy_reads_them(kind: type, data: bytes) -> None:
    judge(kind, data)
    # Bytes after the last field are not part of the message.
    judge(kind, data + b"\x07" * 8)
    for padding in (1, 2, 3):
        judge(kind, data[:3] + bytes([padding]) + data[4:])


@pytest.mark.long
@settings(max_examples=600)
@given(spoilt())
@example((JointState, b""))
@example((Twist, turned(*BYTES[-1])))
def test_spoilt_messages_are_read_as_rclpy_reads_them_or_refused(found: tuple[type, bytes]) -> None:
    judge(*found)
    # Valid messages after them are read as before.
    kind = found[0]
    judge(kind, next(data for one, data in BYTES if one is kind))


def test_either_byte_order_is_read_by_turns() -> None:
    kind, data = BYTES[-1]
    reader = WireReader(msgtype(kind))
    for one in (data, turned(kind, data), data):
        assert reader.read(one)[1][2] == 0.5


def test_places_are_right_whatever_follows_the_last_field() -> None:
    """The buffer of rclpy may end in stale bytes, such as a copy of its last number."""
    n = 500
    sound = joint_state(n, position=n)
    data = bytes(serialize_message(sound))
    reader, seen = JointStateReader(sound.name), Observation.zeros(n, 0)
    for tail in (b"", data[-16:-8], struct.pack("<d", sound.position[-1])):
        reader.read(data + tail, seen)
        np.testing.assert_array_equal(seen.joint_position, sound.position)
        assert np.isnan(seen.joint_velocity).all()


def test_size_is_judged_before_anything_is_parsed() -> None:
    """Too many numbers in a command, texts without end, and endless names are rejected at once."""
    reader, tau = CommandReader(("hip", "knee")), np.zeros(2)
    long = bytes(serialize_message(Float64MultiArray(data=array.array("d", bytes(8 * 200_000)))))
    fault = reader.read(long, tau)
    assert fault is not None
    assert fault.text.startswith("it has 200000 values, expected 2 (hip, knee)")
    label = Float64MultiArray()
    label.layout.dim = [MultiArrayDimension(label="x" * MOST_TEXT)]
    fault = reader.read(bytes(serialize_message(label)), tau)
    assert fault is not None
    assert fault.kind == "unreadable"
    assert "65536 bytes of names" in fault.text
    with refusal(MessageError, place="sensor_msgs/msg/JointState"):
        JointStateReader(("hip",)).read(
            bytes(serialize_message(JointState(name=["x"] * MOST_TEXT))), Observation.zeros(1, 0)
        )
    with refusal(MessageError, place="Float64MultiArray"):
        parse(long, Float64MultiArray)
    with refusal(MessageError, place="Twist"):
        parse(b"\0\1\0\0\0", Twist)
