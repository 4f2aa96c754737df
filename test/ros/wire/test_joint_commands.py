"""Joint commands as messages: rclpy reads ours, and invalid third-party messages are rejected."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from bipedsim.sim import LIMIT, SETPOINT, Command
from bipedsim_ros.wire.joint_commands import BLOCKS, CommandReader, CommandWriter, ImpedanceReader, ImpedanceWriter

NAMES = ("hip", "knee", "ankle")


def test_sound_command_is_copied() -> None:
    data = CommandWriter(3).write(np.array([1.0, -2.0, 3.0]))
    np.testing.assert_array_equal(deserialize_message(data, Float64MultiArray).data, [1.0, -2.0, 3.0])
    tau = np.zeros(3)
    assert CommandReader(NAMES).read(data, tau) is None
    np.testing.assert_array_equal(tau, [1.0, -2.0, 3.0])


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        ([1.0], "size", "it has 1 values, expected 3 (hip, knee, ankle)"),
        ([], "size", "it has 0 values"),
        ([1.0, 2.0, 3.0, 4.0], "size", "it has 4 values"),
        ([1.0, float("nan"), 3.0], "not_finite", "knee = nan"),
        ([float("inf"), 2.0, float("-inf")], "not_finite", "hip = inf, ankle = -inf"),
    ],
)
def test_bad_command_is_named_and_not_applied(data: list[float], kind: str, said: str) -> None:
    reader, tau = CommandReader(NAMES), np.full(3, 7.0)
    good = CommandWriter(3).write(np.full(3, 7.0))
    for _ in range(2):
        message = Float64MultiArray(data=array.array("d", data))
        fault = reader.read(bytes(serialize_message(message)), tau)
        assert fault is not None
        assert fault.kind == kind
        assert said in fault.text
        np.testing.assert_array_equal(tau, 7.0)
        assert reader.read(good, tau) is None


def impedance(label: str | None, data: Any) -> bytes:
    message = Float64MultiArray(data=array.array("d", np.asarray(data, dtype=float).ravel()))
    if label is not None:
        message.layout.dim = [MultiArrayDimension(label=label, size=1, stride=1)]
    return bytes(serialize_message(message))


def test_an_impedance_names_its_blocks_and_is_read_back() -> None:
    rng = np.random.default_rng(0)
    tau, q, v, kp, kd = rng.uniform(0.0, 9.0, (5, 3))
    data = ImpedanceWriter(3).write(Command(tau, q, v, kp, kd))
    message = deserialize_message(data, Float64MultiArray)
    assert message.layout.dim[0].label == "position,velocity,effort,stiffness,damping"
    assert [dim.size for dim in message.layout.dim] == [5, 3]
    np.testing.assert_array_equal(np.reshape(message.data, (5, 3)), [q, v, tau, kp, kd])
    rows = np.full((len(SETPOINT), 3), 7.0)
    assert ImpedanceReader(NAMES).read(data, rows) is None
    np.testing.assert_array_equal(rows, [q, v, tau, kp, kd, np.full(3, 7.0)])


def test_joints_of_an_impedance_may_have_another_order() -> None:
    data = ImpedanceWriter(3).write(Command(np.zeros(3), np.arange(3.0), None, np.ones(3)), np.array([2, 0, 1]))
    np.testing.assert_array_equal(deserialize_message(data, Float64MultiArray).data[:3], [2.0, 0.0, 1.0])


def test_blocks_may_come_in_any_order_and_be_few() -> None:
    reader, rows = ImpedanceReader(NAMES), np.full((len(SETPOINT), 3), 7.0)
    few = [[10.0, 20.0, 30.0], [1.0, 2.0, 3.0]]
    for _ in range(2):
        assert reader.read(impedance("stiffness, position", few), rows) is None
        np.testing.assert_array_equal(rows[BLOCKS.index("position")], few[1])
        np.testing.assert_array_equal(rows[BLOCKS.index("stiffness")], few[0])
        assert rows[[1, 2, 4]].max() == 0.0
        assert reader.read(impedance(None, np.arange(15.0)), rows) is None, "without names it holds all"
        np.testing.assert_array_equal(rows[:LIMIT].ravel(), np.arange(15.0))


@pytest.mark.parametrize(
    ("label", "data", "kind", "said"),
    [
        (None, np.zeros(14), "size", "it has 14 values, expected 5 blocks"),
        ("position", np.zeros(4), "size", "expected 1 blocks (position) of 3"),
        ("position,stifness", np.zeros(6), "layout", "no block is called 'stifness'"),
        ("effort,effort", np.zeros(6), "layout", "a block is there twice"),
        ("stiffness", np.zeros(3), "layout", "no position"),
        ("position,damping", [0.0, 1.0, np.nan, 0.0, 0.0, 0.0], "not_finite", "position of ankle = nan"),
        ("position,damping", [0.0, 1.0, 0.0, 0.0, -2.0, 0.0], "negative", "damping of knee = -2 N.m.s/rad"),
    ],
)
def test_a_bad_impedance_is_named_and_not_applied(label: str | None, data: Any, kind: str, said: str) -> None:
    reader, rows = ImpedanceReader(NAMES), np.full((len(SETPOINT), 3), 7.0)
    good = impedance("position,stiffness", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for _ in range(2):
        before = rows.copy()
        fault = reader.read(impedance(label, data), rows)
        assert fault is not None
        assert (fault.kind, said in fault.text) == (kind, True), fault
        np.testing.assert_array_equal(rows, before)
        assert reader.read(good, rows) is None
        np.testing.assert_array_equal(rows[0], [1.0, 2.0, 3.0])


def test_what_is_no_such_message_is_refused() -> None:
    fault = ImpedanceReader(NAMES).read(b"\0\1\0\0abc", np.zeros((len(SETPOINT), 3)))
    assert fault is not None
    assert fault.kind == "unreadable"
