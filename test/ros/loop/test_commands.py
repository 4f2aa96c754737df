"""Dropped, clipped and missing commands: effect on the drives, and reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticStatus
from drives_support import DT, ROBOT, Drives
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from bipedsim.errors import ConfigError
from bipedsim.model import drive_gains
from bipedsim.sim.io import Command
from bipedsim_ros.loop.drive_params import DriveParams
from bipedsim_ros.loop.sim_params import TIMEOUT_MODES, SimParams
from bipedsim_ros.wire import topics
from bipedsim_ros.wire.joint_commands import CommandWriter, ImpedanceWriter


def test_silence_is_told_when_it_begins_and_when_it_ends() -> None:
    drives = Drives()
    assert drives.diagnostics() == (DiagnosticStatus.STALE, "no command yet")
    drives.run(100)
    drives.send()
    drives.run(21)
    assert not drives.told
    assert drives.diagnostics() == (DiagnosticStatus.OK, "commands arrive")
    damped = drives.run(1)
    assert (damped < 0.0).all()
    assert drives.told == ["no command for 0.2 s, after t = 1.000 s: the joints are damped"]
    assert drives.diagnostics()[0] == DiagnosticStatus.WARN
    drives.run(600)
    assert drives.diagnostics()[0] == DiagnosticStatus.STALE
    drives.send()
    assert drives.told[1:] == ["commands again at t = 7.220 s, after 6.22 s"]
    assert (drives.run(1) == 1.0).all()
    (silence,) = drives.commands.silences
    assert (silence.begin, silence.end) == (1.0, 7.22)
    assert silence.wall == pytest.approx(6.22)
    assert silence.ticks == 20, "then the joints were damped"
    assert drives.commands.timeouts == 1
    assert drives.diagnostics()[0] == DiagnosticStatus.OK


def test_silence_in_lock_step_is_told_at_the_first_miss() -> None:
    drives = Drives(clock="lock_step")
    drives.commands.miss(1.0)
    assert not drives.told, "nobody has promised any yet"
    drives.send()
    drives.run(3)
    for _ in range(3):
        drives.commands.miss(1.0)
        drives.run(1, wall=1.0)
    said = "no command within 1 s for the state after t = 0.020 s: the last one is used again, and each further"
    assert len(drives.told) == 1
    assert drives.told[0].startswith(said)
    drives.send()
    assert drives.told[1] == "commands again at t = 0.060 s, after 0.06 s (3.03 s of wall time)"
    (silence,) = drives.commands.silences
    assert silence.wall == pytest.approx(3.03)
    assert silence.ticks == 5


def test_the_last_command_counts_as_long_as_it_is_held() -> None:
    """With ``hold`` it is executed in all ticks of a silence, the first of which answers it."""
    drives = Drives(timeout_mode="hold")
    drives.send()
    drives.run(51)
    silence = drives.commands.silence
    assert silence is not None
    assert silence[::3] == (0.0, 50)
    drives.send()
    assert drives.commands.silence is None
    drives.run(31)
    assert [one.ticks for one in drives.commands.silences] == [50]
    assert drives.commands.silence is not None
    assert drives.commands.silence.ticks == 30


def test_a_reset_ends_a_silence() -> None:
    drives = Drives()
    drives.send()
    drives.run(50)
    drives.commands.clear()
    assert [one[:2] for one in drives.commands.silences] == [(0.0, 0.49)]
    assert drives.commands.silence is None


def test_after_a_reset_the_drives_get_what_new_ones_get() -> None:
    """After a reset, the torque is zero until a command arrives.

    A silence without an earlier command is not reported.
    """
    for timeout_mode in TIMEOUT_MODES:
        used, new = Drives(timeout_mode=timeout_mode), Drives(timeout_mode=timeout_mode)
        for tau in (5.0, -7.0):
            used.send(tau)
            used.run(10)
        used.state.joint_position[:] = 0.3
        used.run(30)
        used.commands.clear()
        used.ticks, used.told = 0, used.told[:0]
        used.commands._warn = used.told.append
        for drives in (used, new):
            drives.state.joint_position[:] = 0.1
            assert not drives.commands.started
            drives.commands.miss(1.0)
            shown = [drives.run(1).copy() for _ in range(30)]
            drives.send(3.0)
            shown += [drives.run(1).copy() for _ in range(20)]
            drives.state.joint_position[:] = 0.2
            drives.seen = np.array([*shown, *(drives.run(1).copy() for _ in range(20))])
        np.testing.assert_array_equal(used.seen, new.seen)
        assert not used.seen[:30].any()
        assert used.told == new.told
        assert len(used.told) == 1


def test_a_command_that_is_dropped_ends_no_silence() -> None:
    drives = Drives(timeout_mode="zero")
    drives.send(2.0)
    for _ in range(30):
        drives.send(float("nan"))
        last = drives.run(1)
    assert not last.any()
    assert drives.commands.timed_out


def test_a_controller_on_and_off_does_not_fill_the_log() -> None:
    drives = Drives()
    for _ in range(30):
        drives.send()
        drives.run(30)
    assert len(drives.told) == 20
    assert drives.told[-1].endswith("further changes are only counted")
    assert len(drives.commands.silences) == 29


def test_what_is_dropped_or_clipped_is_counted_by_kind_and_told_at_once() -> None:
    drives = Drives()
    for _ in range(3):
        assert not drives.send(float("nan"))
        assert not drives.send(n=3)
        assert not drives.commands.accept(b"\0\1\0\0\7", drives.t)
    assert drives.commands.drops.by_kind == {"not_finite": 3, "size": 3, "unreadable": 3}
    assert len(drives.told) == 3
    faults = ("not finite: l_hip_yaw = nan", "it has 3 values, expected 14", "it ends")
    for text, said in zip(drives.told, faults, strict=True):
        assert text.startswith("command on /effort_controller/commands dropped: ")
        assert said in text
    said = "no sound command yet: 9 commands were dropped (3 not_finite, 3 size, 3 unreadable)"
    assert drives.diagnostics() == (DiagnosticStatus.STALE, said)
    assert drives.send(1e5)
    assert drives.send(1e5)
    assert drives.commands.clipped == 2
    assert len(drives.told) == 4
    limit = ROBOT.effort_limit.min()
    assert "clipped: 1e+05 N.m for " in drives.told[3]
    assert f"whose effort limit is {limit:.4g} N.m" in drives.told[3]
    np.testing.assert_array_equal(drives.run(1), ROBOT.effort_limit)


def impedance(drives: Drives, **blocks: Any) -> bool:
    values = {name: np.full(ROBOT.nu, float(value)) for name, value in blocks.items()}
    data = ImpedanceWriter(ROBOT.nu).write(Command(values.pop("effort", np.zeros(ROBOT.nu)), **values))
    return drives.commands.accept(data, drives.t, topics.IMPEDANCE)


def test_an_impedance_is_handed_to_the_drives_with_their_limits() -> None:
    drives = Drives()
    assert impedance(drives, position=0.1, velocity=0.2, effort=0.3, stiffness=40.0, damping=5.0)
    rows = drives.run(1)
    assert rows[:, 0].tolist() == [0.1, 0.2, 0.3, 40.0, 5.0, ROBOT.effort_limit[0]]
    assert drives.commands.kept
    assert not drives.told


def test_positions_are_kept_with_the_gains_of_the_drives() -> None:
    drives = Drives()
    data = CommandWriter(ROBOT.nu).write(np.arange(ROBOT.nu, dtype=float))
    assert drives.commands.accept(data, 0.0, topics.POSITIONS)
    rows = drives.run(1)
    kp, kd = drive_gains(ROBOT, SimParams().physics_dt)
    np.testing.assert_array_equal(rows[:5], [np.arange(ROBOT.nu), 0 * kp, 0 * kp, kp, kd])


def stiffer(drives: Drives, stiffness: float = 2.0, damping: float = 3.0) -> np.ndarray:
    """Multiply the gains of the drives, and return them (2, nu)."""
    gains = DriveParams.of_robot(ROBOT, SimParams().physics_dt)
    wanted = {f"drive_stiffness.{joint}": stiffness * value for joint, value in gains.drive_stiffness.items()}
    wanted |= {f"drive_damping.{joint}": damping * value for joint, value in gains.drive_damping.items()}
    changes = drives.commands.tuning.set(drives.t, wanted)
    assert {(change.name, change.value, change.at) for change in changes} == {
        (name, value, drives.t) for name, value in wanted.items()
    }
    return np.array(drive_gains(ROBOT, SimParams().physics_dt)) * [[stiffness], [damping]]


@pytest.mark.parametrize("kind", ["positions", "hold", "trajectory"])
def test_new_gains_of_the_drives_act_on_the_command_that_they_hold(kind: str) -> None:
    drives = Drives(start="hold_position")
    if kind == "positions":
        drives.commands.accept(CommandWriter(ROBOT.nu).write(np.full(ROBOT.nu, 0.1)), 0.0, topics.POSITIONS)
    elif kind == "trajectory":
        assert drives.commands.accept(waypoints((10.0, 0.5)), 0.0, topics.TRAJECTORY)
    before = drives.run(1).copy()
    gains = stiffer(drives)
    after = drives.run(1)
    np.testing.assert_array_equal(after[3:5], gains)
    if kind != "trajectory":
        np.testing.assert_array_equal(after[:3], before[:3])


def test_gains_of_a_command_are_those_of_the_command() -> None:
    drives = Drives()
    assert impedance(drives, position=0.1, stiffness=40.0, damping=5.0)
    stiffer(drives)
    assert drives.run(1)[3:5, 0].tolist() == [40.0, 5.0]
    # After positions, the impedance still has its own.
    drives.commands.accept(CommandWriter(ROBOT.nu).write(np.zeros(ROBOT.nu)), 0.0, topics.POSITIONS)
    impedance(drives, position=0.1, stiffness=40.0, damping=5.0)
    stiffer(drives, 4.0, 5.0)
    assert drives.run(1)[3:5, 0].tolist() == [40.0, 5.0]


def test_a_reset_keeps_new_gains_of_the_drives_and_lists_them() -> None:
    drives = Drives(start="hold_position")
    drives.run(1)
    gains = stiffer(drives)
    drives.commands.clear()
    assert len(drives.commands.tuning.restart(0.0)) == 2 * ROBOT.nu
    drives.state.joint_position[:] = 0.3
    rows = drives.run(1)
    np.testing.assert_array_equal(rows[3:5], gains)
    assert (rows[0] == 0.3).all()


@pytest.mark.parametrize(
    ("name", "value"), [("drive_stiffness.l_knee", -1.0), ("drive_stiffness.l_knee", float("nan")), ("drive.x", 1.0)]
)
def test_impossible_gains_of_the_drives_change_nothing(name: str, value: float) -> None:
    drives = Drives(start="hold_position")
    before = drives.run(1).copy()
    with pytest.raises(ConfigError):
        drives.commands.tuning.set(0.0, {"drive_damping.r_knee": 1.0, name: value})
    np.testing.assert_array_equal(drives.run(1), before)


def test_the_newest_kind_counts_and_every_change_is_told() -> None:
    drives = Drives()
    drives.send()
    assert drives.run(1).ndim == 1
    impedance(drives, position=0.0, stiffness=1.0)
    assert drives.told == [
        "the drives follow /impedance_controller/commands from t = 0.010 s on, and no more /effort_controller/commands"
    ]
    assert drives.run(1).ndim == 2
    drives.send()
    assert len(drives.told) == 2
    assert (drives.run(1) == 1.0).all()
    drives.commands.clear()
    assert (drives.run(1) == 0.0).all(), "a reset forgets it"


def test_an_impedance_that_stays_away_ends_in_damping_too() -> None:
    drives = Drives()
    impedance(drives, position=0.0, stiffness=1.0)
    assert drives.run(21).ndim == 2
    damped = drives.run(1)
    assert damped.shape == (ROBOT.nu,)
    assert (damped < 0.0).all()
    assert drives.told == ["no command for 0.2 s, after t = 0.000 s: the joints are damped"]
    impedance(drives, position=0.0, stiffness=1.0)
    assert drives.run(1).ndim == 2


def test_a_bad_one_is_named_with_its_topic_and_changes_nothing() -> None:
    drives = Drives()
    impedance(drives, position=0.5, stiffness=1.0)
    drives.run(1)
    assert not impedance(drives, position=0.6, stiffness=-1.0)
    assert drives.commands.drops.by_kind == {"negative": 1}
    assert drives.told[0].startswith("command on /impedance_controller/commands dropped: stiffness of l_")
    assert drives.run(1)[0, 0] == 0.5


def seconds(kind: Any, t: float) -> Any:
    return kind(sec=int(t), nanosec=round((t - int(t)) * 1e9))


def waypoints(*points: tuple[float, float], names: tuple[str, ...] = ("l_knee",), start: float = 0.0) -> bytes:
    """Times and positions, the same for all joints that are named."""
    message = JointTrajectory(joint_names=list(names))
    message.header.stamp = seconds(Time, start)
    for t, position in points:
        point = JointTrajectoryPoint(positions=[position] * len(names), time_from_start=seconds(Duration, t))
        message.points.append(point)
    return bytes(serialize_message(message))


KNEE = ROBOT.joint_names.index("l_knee")


def test_a_trajectory_is_gone_from_where_the_joints_are_and_then_kept() -> None:
    drives = Drives()
    drives.state.joint_position[:] = 0.2
    drives.state.joint_velocity[:] = 0.0
    assert drives.commands.accept(waypoints((0.1, 0.4), (0.3, 0.0)), 0.0, topics.TRAJECTORY)
    seen = [drives.run(1)[:2].copy() for _ in range(60)]
    angle, speed = (np.array([rows[i, KNEE] for rows in seen]) for i in (0, 1))
    t = DT * np.arange(60)
    np.testing.assert_allclose(angle, np.interp(t, [0.0, 0.1, 0.3], [0.2, 0.4, 0.0]), atol=1e-12)
    np.testing.assert_allclose(speed[[5, 20, 40]], [2.0, -2.0, 0.0], atol=1e-12)
    others = np.arange(ROBOT.nu) != KNEE
    assert all((rows[0, others] == 0.2).all() and not rows[1, others].any() for rows in seen)
    assert not drives.told, "it needs no further message"
    drives.state.joint_position[:] = 0.5
    drives.commands.accept(waypoints((0.1, 0.1), start=drives.t), drives.t, topics.TRAJECTORY)
    assert drives.run(1)[0, KNEE] == 0.0, "the next one begins where the drives were sent"
    drives.run(30)
    drives.send()
    assert drives.run(1).ndim == 1
    drives.commands.accept(waypoints((1.0, 0.1)), drives.t, topics.TRAJECTORY)
    assert drives.run(1)[0, KNEE] == 0.5, "after torques it begins where the joints are"
    drives.commands.accept(waypoints(names=()), drives.t, topics.TRAJECTORY)
    assert drives.run(10)[0, KNEE] == pytest.approx(0.5, abs=0.01), "none at all stops"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (waypoints((0.1, 0.0), names=("l_knee", "knee")), "no joint is called 'knee'"),
        (waypoints((0.1, 0.0), names=("l_knee", "l_knee")), "joint 'l_knee' is named twice"),
        (waypoints((0.2, 0.0), (0.1, 0.0)), "times of its points do not rise"),
        (waypoints((0.1, 0.0), names=()), "it names no joints"),
        (waypoints((0.1, float("nan"))), "point 0 has positions that are not finite"),
        (b"\0\1\0\0abc", "cannot be decoded"),
    ],
    ids=["unknown", "twice", "times", "nameless", "nan", "unreadable"],
)
def test_a_bad_trajectory_is_dropped_with_its_reason(data: bytes, said: str) -> None:
    drives = Drives()
    drives.commands.accept(waypoints((0.1, 0.4)), 0.0, topics.TRAJECTORY)
    before = drives.run(20).copy()
    assert not drives.commands.accept(data, drives.t, topics.TRAJECTORY)
    assert said in drives.told[-1]
    np.testing.assert_array_equal(drives.run(1), before)


def test_of_two_trajectories_before_the_first_tick_the_last_one_begins_where_the_joints_are() -> None:
    drives = Drives()
    drives.state.joint_position[:] = 0.2
    for _ in range(2):
        assert drives.commands.accept(waypoints((0.1, 0.4)), 0.0, topics.TRAJECTORY)
    rows = drives.run(1)
    np.testing.assert_array_equal(rows[0], np.full(ROBOT.nu, 0.2))


def test_after_positions_a_trajectory_begins_where_the_drives_were_sent() -> None:
    drives = Drives()
    drives.commands.accept(CommandWriter(ROBOT.nu).write(np.full(ROBOT.nu, 0.3)), 0.0, topics.POSITIONS)
    drives.run(1)
    drives.commands.accept(waypoints((0.1, 0.4)), drives.t, topics.TRAJECTORY)
    np.testing.assert_array_equal(drives.run(1)[0], np.full(ROBOT.nu, 0.3))
    drives.commands.accept(CommandWriter(ROBOT.nu).write(np.full(ROBOT.nu, 0.3)), drives.t, topics.POSITIONS)
    drives.run(30)
    assert drives.commands.timed_out
    drives.commands.accept(waypoints((0.1, 0.4)), drives.t, topics.TRAJECTORY)
    np.testing.assert_array_equal(drives.run(1)[0], np.zeros(ROBOT.nu), "the drives had let go")


def test_after_a_reset_a_trajectory_begins_where_the_joints_are() -> None:
    drives = Drives()
    drives.commands.accept(waypoints((0.1, 0.4), (9.0, 0.0)), 0.0, topics.TRAJECTORY)
    drives.run(20)
    drives.commands.clear()
    drives.ticks = 0
    drives.state.joint_position[:] = 0.2
    drives.commands.accept(waypoints((0.1, 0.4)), 0.0, topics.TRAJECTORY)
    np.testing.assert_array_equal(drives.run(1)[0], np.full(ROBOT.nu, 0.2))


KINDS = {
    topics.COMMANDS: CommandWriter(ROBOT.nu).write(np.full(ROBOT.nu, 5.0)),
    topics.IMPEDANCE: ImpedanceWriter(ROBOT.nu).write(
        Command(np.full(ROBOT.nu, 1.0), *(np.full(ROBOT.nu, value) for value in (0.3, 0.1, 50.0, 2.0)))
    ),
    topics.POSITIONS: CommandWriter(ROBOT.nu).write(np.full(ROBOT.nu, 0.3)),
    topics.TRAJECTORY: waypoints((0.1, 0.4), (0.3, 0.0)),
}


@pytest.mark.parametrize("before", KINDS, ids=lambda topic: topic.name)
@pytest.mark.parametrize("after", KINDS, ids=lambda topic: topic.name)
def test_after_a_reset_one_kind_of_command_knows_nothing_of_another(before: topics.Topic, after: topics.Topic) -> None:
    used, new = Drives(), Drives()
    used.commands.accept(KINDS[before], 0.0, before)
    used.state.joint_position[:] = 0.7
    used.run(30)
    used.commands.clear()
    used.ticks = 0
    used.told.clear()
    for drives in (used, new):
        assert not drives.commands.kept
        assert not drives.commands.timed_out
        drives.state.joint_position[:] = 0.1
        shown = [drives.run(1).tobytes() for _ in range(3)]
        drives.commands.accept(KINDS[after], drives.t, after)
        drives.told += [str(shown + [drives.run(1).tobytes() for _ in range(40)])]
    assert used.told == new.told
