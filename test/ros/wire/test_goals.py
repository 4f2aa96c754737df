"""Goals of FollowJointTrajectory: those that fit the robot, the limits that their tolerances mean, and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from builtin_interfaces.msg import Duration
from hypothesis import given, strategies
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint, MultiDOFJointTrajectory

from bipedsim_ros.wire import CommandFault, Goal, read_goal

NAMES = ("a", "b", "c")


def tolerance(name: str, position: float = 0.0, velocity: float = 0.0, acceleration: float = 0.0) -> Any:
    """Return the fields of control_msgs/msg/JointTolerance, which pip does not bring."""
    return SimpleNamespace(name=name, position=position, velocity=velocity, acceleration=acceleration)


def goal(**fields: Any) -> Any:
    """Return the fields of a goal that moves joint b within 1 s."""
    point = JointTrajectoryPoint(positions=[0.5], time_from_start=Duration(sec=1))
    return SimpleNamespace(
        **{
            "trajectory": JointTrajectory(joint_names=["b"], points=[point]),
            "multi_dof_trajectory": MultiDOFJointTrajectory(),
            "path_tolerance": [],
            "component_path_tolerance": [],
            "goal_tolerance": [],
            "component_goal_tolerance": [],
            "goal_time_tolerance": Duration(),
        }
        | fields
    )


def read(**fields: Any) -> Goal:
    result = read_goal(goal(**fields), NAMES)
    assert isinstance(result, Goal), result
    return result


def test_without_tolerances_nothing_is_limited() -> None:
    tolerances = read().tolerances
    assert np.isinf(tolerances.path).all()
    assert np.isinf(tolerances.goal).all()
    assert tolerances.time == math.inf


@pytest.mark.parametrize(
    ("value", "limit"), [(0.1, 0.1), (0.0, math.inf), (-1.0, math.inf), (-0.5, math.inf), (1e-12, 1e-12)]
)
def test_zero_is_the_default_and_a_negative_tolerance_removes_the_limit(value: float, limit: float) -> None:
    path, end, _ = read(path_tolerance=[tolerance("c", value)], goal_tolerance=[tolerance("a", 0.0, value)]).tolerances
    assert (path[0, 2], end[1, 0]) == (limit, limit)
    path[0, 2] = end[1, 0] = math.inf
    assert np.isinf(path).all(), "no other joint and no other quantity"
    assert np.isinf(end).all()


@given(strategies.integers(-3, 3), strategies.integers(0, 999_999_999))
def test_the_time_tolerance_counts_if_it_is_positive(sec: int, nanosec: int) -> None:
    limit = read(goal_time_tolerance=Duration(sec=sec, nanosec=nanosec)).tolerances.time
    nanoseconds = 10**9 * sec + nanosec
    assert limit == (pytest.approx(nanoseconds * 1e-9, rel=1e-12) if nanoseconds > 0 else math.inf)


def test_of_two_tolerances_of_a_joint_the_last_one_counts() -> None:
    path = read(path_tolerance=[tolerance("a", 0.1, 0.2), tolerance("a", 0.3)]).tolerances.path
    assert path[:, 0].tolist() == [0.3, math.inf]


def test_the_end_follows_from_the_stamp_or_from_the_arrival() -> None:
    assert read().end(5.0) == 6.0
    stamped = goal()
    stamped.trajectory.header.stamp.sec = 3
    assert read(trajectory=stamped.trajectory).end(5.0) == 4.0


def change(act: Callable[[Any], object]) -> Any:
    changed = goal()
    act(changed)
    return changed


REFUSED = {
    "unknown": (goal(path_tolerance=[tolerance("tail", 0.1)]), "path_tolerance: no joint is called 'tail'"),
    "nan": (goal(goal_tolerance=[tolerance("a", math.nan)]), "goal_tolerance of 'a' is not finite"),
    "inf": (goal(goal_tolerance=[tolerance("a", 0.0, math.inf)]), "goal_tolerance of 'a' is not finite"),
    "acceleration": (goal(path_tolerance=[tolerance("a", 0.0, 0.0, 1.0)]), "limits the acceleration"),
    "component": (goal(component_goal_tolerance=[object()]), "several degrees of freedom"),
    "multi_dof": (goal(multi_dof_trajectory=MultiDOFJointTrajectory(joint_names=["a"])), "several degrees"),
    "no_points": (change(lambda one: one.trajectory.points.clear()), "no points"),
    "velocity": (change(lambda one: setattr(one.trajectory.points[0], "velocities", [0.1])), "last point are not zero"),
    "effort": (change(lambda one: setattr(one.trajectory.points[0], "effort", [1.0])), "point 0 has effort"),
    "joint": (change(lambda one: setattr(one.trajectory, "joint_names", ["tail"])), "no joint is called 'tail'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_goal_that_does_not_fit_is_refused_with_its_reason(name: str) -> None:
    wrong, reason = REFUSED[name]
    fault = read_goal(wrong, NAMES)
    assert isinstance(fault, CommandFault)
    assert reason in fault.text


def test_a_refusal_names_all_errors() -> None:
    wrong = goal(path_tolerance=[tolerance("tail", 0.1)], goal_tolerance=[tolerance("a", math.nan)])
    wrong.trajectory.joint_names = ["nose"]
    fault = read_goal(wrong, NAMES)
    assert isinstance(fault, CommandFault)
    assert all(word in fault.text for word in ("tail", "nose", "'a'"))
