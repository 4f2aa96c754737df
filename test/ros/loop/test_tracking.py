"""Goals of FollowJointTrajectory in the loop: when they end, why, and what the drives hold afterwards."""

from __future__ import annotations

import math
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from drives_support import ROBOT, Drives, knee_goal
from hypothesis import given, settings, strategies

from bipedsim_ros.loop import ErrorCode, Tracking
from bipedsim_ros.wire import CommandWriter, topics

KNEE = ROBOT.joint_names.index("l_knee")
HIP = ROBOT.joint_names.index("l_hip_pitch")


def resting() -> Drives:
    """Return drives whose joints are measured at rest at 0 rad."""
    drives = Drives()
    drives.state.joint_velocity[:] = 0.0
    return drives


def run_to_the_end(drives: Drives, goal: Tracking, limit: int = 1000) -> float:
    """Run until the goal ends and return the time of that tick."""
    for _ in range(limit):
        t = drives.t
        drives.run(1)
        if goal.end is not None:
            return t
    return math.inf


def ending(goal: Tracking) -> tuple[ErrorCode, bool]:
    assert goal.end is not None
    return goal.end.code, goal.end.cancelled


def test_a_goal_without_tolerances_succeeds_when_its_time_is_over() -> None:
    drives, goal = resting(), knee_goal()
    drives.commands.follow(goal, 0.0)
    assert run_to_the_end(drives, goal) == 1.0
    assert ending(goal) == (ErrorCode.SUCCESSFUL, False)
    assert drives.run(50)[0, KNEE] == 1.0, "the last point is held"


@pytest.mark.parametrize(
    ("path", "when"),
    [
        ({KNEE: (0.255, 0.0)}, 0.26),  # The knee stays at 0 rad, and the trajectory moves at 1 rad/s.
        ({KNEE: (2.0, 0.0)}, 1.0),
        ({KNEE: (-1.0, -1.0)}, 1.0),
        ({KNEE: (0.0, 0.99)}, 0.0),
        ({KNEE: (0.0, 1.01)}, 1.0),
        ({HIP: (1e-9, 1e-9)}, 1.0),
    ],
)
def test_the_path_is_violated_at_the_first_tick_beyond_its_tolerance(path: Any, when: float) -> None:
    drives, goal = resting(), knee_goal(path=path)
    drives.commands.follow(goal, 0.0)
    assert run_to_the_end(drives, goal) == when
    violated = when < 1.0
    assert ending(goal)[0] == (ErrorCode.PATH_TOLERANCE_VIOLATED if violated else ErrorCode.SUCCESSFUL)


def test_after_the_end_of_the_trajectory_its_path_tolerance_counts_no_more() -> None:
    drives, goal = resting(), knee_goal(path={KNEE: (0.1, 0.0)}, end={KNEE: (0.05, 0.0)})
    drives.commands.follow(goal, 0.0)
    for _ in range(100):
        drives.state.joint_position[KNEE] = drives.t
        drives.run(1)
    drives.state.joint_position[KNEE] = 0.5
    drives.run(50)
    assert goal.end is None, "it may still come within its goal tolerance"
    drives.state.joint_position[KNEE] = 0.96
    drives.run(1)
    assert ending(goal)[0] == ErrorCode.SUCCESSFUL


def test_a_goal_whose_end_comes_before_its_first_tick_must_be_on_its_path_there() -> None:
    for position, code in ((0.8, ErrorCode.PATH_TOLERANCE_VIOLATED), (0.95, ErrorCode.SUCCESSFUL)):
        drives, goal = resting(), knee_goal(path={KNEE: (0.1, 0.0)}, start=1)
        drives.ticks = 200
        drives.state.joint_position[KNEE] = position
        drives.commands.follow(goal, drives.t)
        drives.run(1)
        assert ending(goal)[0] == code


def test_a_joint_that_the_goal_does_not_move_can_violate_it() -> None:
    drives, goal = resting(), knee_goal(path={HIP: (0.1, 0.0)})
    drives.commands.follow(goal, 0.0)
    drives.run(10)
    drives.state.joint_position[HIP] = -0.2
    assert run_to_the_end(drives, goal) == 0.1
    assert "l_hip_pitch" in str(goal.end)


def test_after_a_violation_the_joints_are_held_where_they_are_measured() -> None:
    drives, goal = resting(), knee_goal(path={KNEE: (0.255, 0.0)})
    drives.commands.follow(goal, 0.0)
    drives.state.joint_position[:] = np.linspace(-0.01, 0.01, ROBOT.nu)
    held = drives.state.joint_position.copy()
    drives.run(100)
    assert goal.end is not None
    drives.state.joint_position[:] = 9.0
    rows = drives.run(50)
    np.testing.assert_array_equal(rows[0], held)
    assert not rows[1].any()


@pytest.mark.parametrize(("time", "when"), [(0.5, 1.51), (0.0, math.inf)])
def test_joints_have_the_goal_time_to_come_within_the_goal_tolerance(time: float, when: float) -> None:
    drives, goal = resting(), knee_goal(end={KNEE: (0.05, 0.0)}, time=time)
    drives.commands.follow(goal, 0.0)
    drives.state.joint_position[KNEE] = 0.9
    assert run_to_the_end(drives, goal) == when
    if math.isfinite(when):
        assert ending(goal)[0] == ErrorCode.GOAL_TOLERANCE_VIOLATED
        assert drives.run(1)[0, KNEE] == 0.9
        return
    drives.state.joint_position[KNEE] = 0.96
    assert run_to_the_end(drives, goal, 1) == 10.0
    assert ending(goal)[0] == ErrorCode.SUCCESSFUL


def test_a_goal_tolerance_of_velocity_waits_for_the_joints_to_stop() -> None:
    drives, goal = resting(), knee_goal(end={KNEE: (0.0, 0.1)})
    drives.commands.follow(goal, 0.0)
    drives.state.joint_velocity[KNEE] = -0.2
    assert run_to_the_end(drives, goal) == math.inf
    drives.state.joint_velocity[KNEE] = -0.1
    assert run_to_the_end(drives, goal, 1) < math.inf


@given(
    strategies.lists(
        strategies.tuples(*[strategies.sampled_from([-1.0, 0.0, 0.1, 0.2, 0.3])] * 4), min_size=2, max_size=2
    )
)
@settings(max_examples=50, deadline=None)
def test_a_goal_succeeds_exactly_if_no_joint_and_quantity_is_beyond_a_positive_limit(cases: Any) -> None:
    drives = resting()
    joints, fits = (KNEE, HIP), True
    limits = {}
    for joint, (position, velocity, limit, speed_limit) in zip(joints, cases, strict=True):
        drives.state.joint_position[joint] = (1.0 if joint == KNEE else 0.0) - position
        drives.state.joint_velocity[joint] = velocity
        limits[joint] = (limit, speed_limit)
        for error, most in ((position, limit), (velocity, speed_limit)):
            fits = fits and (most <= 0.0 or abs(error) <= most + 1e-12)
    begin = resting().state.joint_position
    goal = knee_goal(end={joint: tuple(x + 1e-9 if x > 0 else x for x in pair) for joint, pair in limits.items()})
    measured, drives.state.joint_position = drives.state.joint_position, begin
    drives.commands.follow(goal, 0.0)
    drives.run(1)
    drives.state.joint_position = measured
    drives.run(150)
    assert (goal.end is not None) == fits


def test_a_stamp_shifts_the_trajectory_and_its_end() -> None:
    drives, goal = resting(), knee_goal(start=2, end={KNEE: (5.0, 0.0)})
    drives.commands.follow(goal, 0.0)
    assert run_to_the_end(drives, goal) == 3.0
    state = goal.state()
    assert state is not None
    assert (state.t, state.elapsed) == (3.0, 1.0)


def test_the_state_has_time_setpoint_and_measurement_of_the_last_tick() -> None:
    drives, goal = resting(), knee_goal()
    drives.commands.follow(goal, 0.0)
    assert goal.state() is None
    drives.state.joint_position[:] = 0.0
    drives.run(1)
    drives.state.joint_position[:] = np.arange(ROBOT.nu)
    drives.state.joint_velocity[:] = -np.arange(ROBOT.nu)
    drives.run(30)
    state = goal.state()
    assert state is not None
    assert state.t == state.elapsed == 0.3
    np.testing.assert_allclose(state.desired[:, KNEE], [0.3, 1.0], atol=1e-12)
    np.testing.assert_array_equal(state.actual, [np.arange(ROBOT.nu), -np.arange(ROBOT.nu)])


def test_a_cancelled_goal_holds_its_setpoint() -> None:
    drives, goal = resting(), knee_goal()
    drives.commands.follow(goal, 0.0)
    drives.run(51)
    drives.commands.cancel(goal)
    assert ending(goal) == (ErrorCode.SUCCESSFUL, True)
    rows = drives.run(100)
    assert rows[0, KNEE] == pytest.approx(0.5)
    assert not rows[1].any()


def test_a_goal_that_is_cancelled_before_its_first_tick_holds_the_measured_positions() -> None:
    drives, goal = resting(), knee_goal()
    drives.state.joint_position[:] = 0.3
    drives.commands.follow(goal, 0.0)
    drives.commands.cancel(goal)
    np.testing.assert_array_equal(drives.run(10)[0], np.full(ROBOT.nu, 0.3))


def test_cancelling_a_goal_that_has_ended_changes_nothing() -> None:
    drives, first, second = resting(), knee_goal(), knee_goal()
    drives.commands.follow(first, 0.0)
    drives.run(10)
    drives.commands.follow(second, drives.t)
    drives.commands.cancel(first)
    assert ending(first) == (ErrorCode.INVALID_GOAL, False)
    assert second.end is None
    assert run_to_the_end(drives, second) == pytest.approx(1.1)


def test_a_valid_command_or_a_reset_ends_a_goal_and_a_dropped_command_does_not() -> None:
    for topic in (topics.COMMANDS, topics.POSITIONS, topics.TRAJECTORY):
        drives, goal = resting(), knee_goal()
        drives.commands.follow(goal, 0.0)
        drives.run(10)
        assert not drives.commands.accept(b"\0\1\0\0abc", drives.t, topic)
        assert goal.end is None
        assert drives.commands.follows_goal
        data = goal.goal.data if topic is topics.TRAJECTORY else CommandWriter(ROBOT.nu).write(np.zeros(ROBOT.nu))
        assert drives.commands.accept(data, drives.t, topic)
        assert ending(goal) == (ErrorCode.INVALID_GOAL, False)
        assert topic.name in str(goal.end)
    drives, goal = resting(), knee_goal()
    drives.commands.follow(goal, 0.0)
    drives.commands.clear()
    assert ending(goal)[0] == ErrorCode.INVALID_GOAL
    assert not drives.commands.follows_goal


def test_a_goal_gives_the_drives_the_bits_of_the_same_message_on_the_topic() -> None:
    by_topic, by_goal, goal = resting(), resting(), knee_goal()
    by_topic.commands.accept(goal.goal.data, 0.0, topics.TRAJECTORY)
    by_goal.commands.follow(goal, 0.0)
    for _ in range(120):
        assert by_topic.run(1).tobytes() == by_goal.run(1).tobytes()


def test_a_reader_in_another_thread_never_sees_half_a_tick() -> None:
    goal = knee_goal()
    trajectory: Any = SimpleNamespace(start=0.0, end=math.inf, position=np.zeros(ROBOT.nu), velocity=np.zeros(ROBOT.nu))
    done = threading.Event()

    def write() -> None:
        for tick in range(20_000):
            trajectory.position[:] = trajectory.velocity[:] = tick
            goal.check(float(tick), trajectory, trajectory.position, trajectory.velocity)
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writer = threading.Thread(target=write)
        writer.start()
        while not done.is_set():
            state = goal.state()
            if state is not None:
                assert (state.desired == state.t).all()
                assert (state.actual == state.t).all()
                assert state.elapsed == state.t
        writer.join()
    finally:
        sys.setswitchinterval(interval)
