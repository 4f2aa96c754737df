"""Read goals of control_msgs/action/FollowJointTrajectory, as ros2_control's joint_trajectory_controller accepts them.

This module does not import control_msgs, which only a ROS 2 installation contains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.serialization import serialize_message

from bipedsim.numerics import Array
from bipedsim_ros.wire.joint_commands import CommandFault
from bipedsim_ros.wire.trajectories import Waypoints, read_trajectory, seconds


class Tolerances(NamedTuple):
    """Largest errors that a goal allows; infinite without a limit.

    Attributes:
        path: (2, nu) position [rad] and velocity [rad/s], until the end of the trajectory.
        goal: (2, nu) position [rad] and velocity [rad/s], from then on.
        time: Time after the end in which all errors must come within ``goal`` [s].
    """

    path: Array
    goal: Array
    time: float


class Goal(NamedTuple):
    """A goal that fits the robot.

    Attributes:
        data: Its trajectory as a serialised JointTrajectory.
        waypoints: The same trajectory.
        tolerances: Its tolerances.
    """

    data: bytes
    waypoints: Waypoints
    tolerances: Tolerances

    def end(self, now: float) -> float:
        """Return the time at which the trajectory ends if it arrives at ``now`` [s]."""
        start = self.waypoints.start
        return float(self.waypoints.t[-1]) + (now if start is None else start)


def read_goal(goal: Any, joint_names: Sequence[str]) -> Goal | CommandFault:
    """Return a FollowJointTrajectory.Goal that fits the robot, or a fault that lists all errors in it.

    A tolerance of 0 selects the default, which is no limit, and a negative one removes the limit.

    Source: ros2_controllers (Jazzy), ``validate_trajectory_msg`` and ``get_segment_tolerances``.
    """
    data = serialize_message(goal.trajectory)
    waypoints = read_trajectory(data, joint_names)
    problems = list(_misfits(goal))
    limits = []
    for field in ("path_tolerance", "goal_tolerance"):
        limits.append(np.full((2, len(joint_names)), np.inf))
        problems += _read_limits(getattr(goal, field), field, joint_names, limits[-1])
    if isinstance(waypoints, CommandFault):
        return CommandFault(waypoints.kind, "; ".join([waypoints.text, *problems]))
    if problems:
        return CommandFault("trajectory", "; ".join(problems))
    path, end = limits
    return Goal(data, waypoints, Tolerances(path, end, _limit(seconds(goal.goal_time_tolerance))))


def _misfits(goal: Any) -> Iterator[str]:
    """Yield the errors that a goal must not have, although a message on the topic may."""
    trajectory = goal.trajectory
    if not trajectory.points:
        yield "it has no points; cancel the running goal to stop the motion"
    elif any(trajectory.points[-1].velocities):
        yield "the velocities of its last point are not zero, but the trajectory ends at rest"
    with_effort = [i for i, point in enumerate(trajectory.points) if len(point.effort)]
    if with_effort:
        yield f"point {with_effort[0]} has effort, but the drives follow positions; leave effort empty"
    multi_dof = goal.multi_dof_trajectory
    if multi_dof.joint_names or multi_dof.points or goal.component_path_tolerance or goal.component_goal_tolerance:
        yield "it has a trajectory or tolerances for joints of several degrees of freedom; the robot has no such joint"


def _read_limits(tolerances: Sequence[Any], field: str, joint_names: Sequence[str], limits: Array) -> Iterator[str]:
    """Copy tolerances of joints into ``limits`` (2, nu); yield the errors in them."""
    for tolerance in tolerances:
        name, values = tolerance.name, (tolerance.position, tolerance.velocity)
        if name not in joint_names:
            yield f"{field}: no joint is called {name!r}"
        elif not all(map(math.isfinite, values)):
            yield f"{field} of {name!r} is not finite; -1 removes the limit"
        elif tolerance.acceleration > 0.0:
            yield f"{field} of {name!r} limits the acceleration, which is not measured; set it to 0"
        else:
            limits[:, joint_names.index(name)] = [_limit(value) for value in values]


def _limit(tolerance: float) -> float:
    """Return the limit that a tolerance means; infinite for the default and for a removed limit."""
    return tolerance if tolerance > 0.0 else math.inf
