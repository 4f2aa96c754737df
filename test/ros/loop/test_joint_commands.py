"""Joint commands with names, as the topic-based hardware interfaces of ros2_control send them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from drives_support import ROBOT, Drives
from hypothesis import given, settings, strategies as st
from numpy.typing import ArrayLike
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from bipedsim.model import drive_gains
from bipedsim_ros.loop.drive_params import DriveParams
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.wire import topics

NAMES = ROBOT.joint_names
KP, KD = drive_gains(ROBOT, SimParams().physics_dt)
NAN = float("nan")


def message(
    names: Sequence[str] = NAMES, position: ArrayLike = (), velocity: ArrayLike = (), effort: ArrayLike = ()
) -> bytes:
    fields = {"position": position, "velocity": velocity, "effort": effort}
    numbers = {name: np.asarray(values, dtype=float).tolist() for name, values in fields.items()}
    return bytes(serialize_message(JointState(name=list(names), **numbers)))


def topic_based(start: str = "wait_for_command") -> Drives:
    return Drives(command_interface="topic_based", start=start)


def send(drives: Drives, *args: ArrayLike, **fields: ArrayLike) -> bool:
    return drives.commands.accept(message(*args, **fields), drives.t, topics.JOINT_COMMANDS)


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_each_joint_follows_what_is_finite(random: Random) -> None:
    """Joints in any order; the judge is the rule for one joint, written out."""
    drives = topic_based()
    drives.state.joint_position[:] = rest = np.linspace(-0.2, 0.3, ROBOT.nu)
    names = random.sample(NAMES, random.randint(1, ROBOT.nu))
    fields = {
        name: [random.choice([NAN, random.uniform(-1.0, 1.0)]) for _ in names] if random.random() < 0.7 else []
        for name in ("position", "velocity", "effort")
    }
    assert send(drives, names, **fields)
    rows = drives.run(1)
    for j, name in enumerate(NAMES):
        i = names.index(name) if name in names else None
        p, v, e = (NAN if i is None or not values else values[i] for values in fields.values())
        if not np.isnan(p):
            expected = [p, np.nan_to_num(v), np.nan_to_num(e), KP[j], KD[j]]
        elif not np.isnan(v):
            expected = [0.0, v, np.nan_to_num(e), 0.0, KD[j]]
        elif not np.isnan(e):
            expected = [0.0, 0.0, e, 0.0, 0.0]
        else:
            expected = [rest[j], 0.0, 0.0, KP[j], KD[j]]
        assert rows[:5, j].tolist() == expected
    np.testing.assert_array_equal(rows[5], ROBOT.effort_limit)


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_new_gains_act_as_if_the_drives_had_had_them_from_the_start(random: Random) -> None:
    """Any sequence of messages; the judge is a second set of drives with the new gains before the first one."""
    new = DriveParams.of_robot(ROBOT, 5e-3)
    gains = {f"{name}.{joint}": value for name, values in vars(new).items() for joint, value in values.items()}
    changed, judge = topic_based("hold_position"), topic_based("hold_position")
    judge.commands.tuning.set(0.0, gains)
    for _ in range(random.randint(0, 3)):
        names = random.sample(NAMES, random.randint(1, ROBOT.nu))
        fields = {
            name: [random.choice([NAN, random.uniform(-1.0, 1.0)]) for _ in names] if random.random() < 0.7 else []
            for name in ("position", "velocity", "effort")
        }
        for drives in (changed, judge):
            assert send(drives, names, **fields)
            drives.run(1)
    changed.commands.tuning.set(changed.t, gains)
    np.testing.assert_array_equal(changed.run(1), judge.run(1))


def test_what_is_not_commanded_keeps_its_last_command() -> None:
    drives = topic_based()
    drives.state.joint_position[:] = 0.5
    assert send(drives, NAMES[:2], position=[0.1, 0.2])
    drives.run(1)
    drives.state.joint_position[:] = 0.7
    assert send(drives, NAMES[1:3], position=[NAN, 0.4])
    assert drives.run(1)[0, :4].tolist() == [0.1, 0.2, 0.4, 0.5]


def test_nothing_more_need_come() -> None:
    """The hardware interface sends nothing while its commands equal the states."""
    drives = topic_based()
    assert send(drives, position=np.full(ROBOT.nu, 0.1))
    first = drives.run(1).copy()
    np.testing.assert_array_equal(drives.run(1000), first)
    assert drives.commands.timeouts == 0
    assert not drives.told


@pytest.mark.parametrize("start", ["wait_for_command", "hold_position"])
def test_before_the_first_command(start: str) -> None:
    drives = topic_based(start)
    drives.state.joint_position[:] = 0.3
    rows = drives.run(1)
    if start == "wait_for_command":
        assert rows.tolist() == [0.0] * ROBOT.nu
        return
    np.testing.assert_array_equal(rows[:5], [np.full(ROBOT.nu, 0.3), 0 * KP, 0 * KP, KP, KD])
    drives.state.joint_position[:] = 0.4
    assert drives.run(1)[0].tolist() == [0.3] * ROBOT.nu
    assert send(drives, NAMES[:1], effort=[5.0])
    assert drives.run(1)[:4, :2].T.tolist() == [[0.0, 0.0, 5.0, 0.0], [0.3, 0.0, 0.0, KP[1]]]
    drives.commands.clear()
    assert drives.run(1)[0].tolist() == [0.4] * ROBOT.nu


def test_a_reset_forgets_which_joints_were_commanded() -> None:
    drives = topic_based()
    assert send(drives, position=np.full(ROBOT.nu, 0.1))
    drives.run(1)
    drives.commands.clear()
    drives.state.joint_position[:] = 0.5
    assert send(drives, NAMES[:1], position=[0.2])
    assert drives.run(1)[0].tolist() == [0.2] + [0.5] * (ROBOT.nu - 1)


BAD = {
    "a field of another length": ("size", {"position": [0.1]}),
    "an unknown name": ("names", {"names": ["l_knee", "no_joint"], "effort": [0.0, 0.0]}),
    "a name twice": ("names", {"names": ["l_knee", "l_knee"], "effort": [0.0, 0.0]}),
    "no name": ("names", {"names": []}),
    "infinity": ("not_finite", {"velocity": [float("inf")] * ROBOT.nu}),
}


@pytest.mark.parametrize("case", [*BAD, "other bytes"])
def test_what_does_not_fit_is_refused_and_nothing_changes(case: str) -> None:
    kind, fields = BAD.get(case, ("unreadable", None))
    data = b"\0\1\0\0abc" if fields is None else message(**fields)
    drives = topic_based()
    assert send(drives, position=np.full(ROBOT.nu, 0.1))
    before = drives.run(1).copy()
    assert not drives.commands.accept(data, drives.t, topics.JOINT_COMMANDS)
    assert drives.commands.drops.by_kind == {kind: 1}
    np.testing.assert_array_equal(drives.run(1), before)
    assert send(drives, position=np.full(ROBOT.nu, 0.2))
    assert drives.run(1)[0].tolist() == [0.2] * ROBOT.nu


def test_only_the_topics_of_the_interface_are_taken() -> None:
    """A controller manager's own controllers listen to the other topics."""
    assert topic_based().commands.kinds == (topics.JOINT_COMMANDS,)
    assert topics.JOINT_COMMANDS not in Drives().commands.kinds
