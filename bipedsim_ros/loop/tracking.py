"""Compare the joint state with the trajectory of an action's goal at every tick, and decide how the goal ends."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from bipedsim.numerics import Array
from bipedsim_ros.loop.trajectory import Trajectory
from bipedsim_ros.wire import Goal

_QUANTITIES = (("position", "rad"), ("velocity", "rad/s"))


class ErrorCode(IntEnum):
    """Error codes of control_msgs/action/FollowJointTrajectory that this package uses."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class GoalEnd(NamedTuple):
    """End of a goal.

    Attributes:
        code: Its error code.
        text: The reason.
        cancelled: Whether a client cancelled it.
    """

    code: ErrorCode
    text: str
    cancelled: bool = False


class TrackingState(NamedTuple):
    """State of a goal at one tick.

    Attributes:
        t: Simulated time [s].
        elapsed: Time since the start of the trajectory [s].
        desired: (2, nu) position [rad] and velocity [rad/s] of the trajectory.
        actual: (2, nu) measured position [rad] and velocity [rad/s].
    """

    t: float
    elapsed: float
    desired: Array
    actual: Array


class Tracking:
    """Tracking of one goal: the loop calls :meth:`check`, other threads read :attr:`end` and :meth:`state`.

    Source: ros2_controllers (Jazzy), ``JointTrajectoryController::update``.

    Args:
        goal: The goal.
        joint_names: Joints of the robot.

    Attributes:
        goal: The goal.
        end: How the goal has ended; None while it runs.
    """

    def __init__(self, goal: Goal, joint_names: Sequence[str]) -> None:
        self.goal = goal
        self.end: GoalEnd | None = None
        self._joint_names = tuple(joint_names)
        # Time, elapsed time, then desired and actual values.
        self._times = np.zeros(2)
        self._values = np.zeros((2, 2, len(joint_names)))
        self._error = np.zeros((2, len(joint_names)))
        self._beyond = np.zeros((2, len(joint_names)), dtype=bool)
        # The loop must not wait for a reader. The count is uneven during a write, and a reader repeats such a read.
        self._writes = 0

    def finish(self, code: ErrorCode, text: str, cancelled: bool = False) -> None:
        """End the goal."""
        self.end = GoalEnd(code, text, cancelled)

    def state(self) -> TrackingState | None:
        """Return the state at the last tick, from any thread; None before the first tick."""
        while True:
            writes = self._writes
            times, values = self._times.copy(), self._values.copy()
            if writes == self._writes and writes % 2 == 0:
                return TrackingState(float(times[0]), float(times[1]), *values) if writes else None

    def check(self, t: float, trajectory: Trajectory, position: Array, velocity: Array) -> bool:
        """Compare a joint state with the trajectory at ``t`` [s], and end the goal if it is reached or violated.

        Args:
            t: Time of the joint state and of the trajectory.
            trajectory: The trajectory.
            position: (nu,) measured positions [rad].
            velocity: (nu,) measured velocities [rad/s].

        Returns:
            Whether the drives may follow the trajectory: False after a violation.
        """
        first = self._writes == 0
        self._writes += 1
        self._times[0], self._times[1] = t, t - trajectory.start
        desired, actual = self._values
        desired[0], desired[1] = trajectory.position, trajectory.velocity
        actual[0], actual[1] = position, velocity
        self._writes += 1
        np.subtract(desired, actual, out=self._error)
        np.abs(self._error, out=self._error)
        tolerances = self.goal.tolerances
        arrived = t >= trajectory.end
        # A goal whose end has passed at its first tick has no other tick at which its path is checked.
        if (first or not arrived) and self._violates(tolerances.path):
            self.finish(ErrorCode.PATH_TOLERANCE_VIOLATED, self._violation("path_tolerance", tolerances.path, t))
            return False
        if not arrived:
            return True
        if not self._violates(tolerances.goal):
            self.finish(ErrorCode.SUCCESSFUL, f"goal reached at t = {t:.3f} s")
        # Time is a sum of rounded steps.
        elif t - trajectory.end > tolerances.time + 1e-9:
            late = f", {t - trajectory.end:.3f} s after the end of the trajectory"
            text = self._violation("goal_tolerance", tolerances.goal, t)
            self.finish(ErrorCode.GOAL_TOLERANCE_VIOLATED, f"{text}{late}")
            return False
        return True

    def _violates(self, limits: Array) -> bool:
        np.greater(self._error, limits, out=self._beyond)
        return bool(self._beyond.any())

    def _violation(self, field: str, limits: Array, t: float) -> str:
        """Return a text that names each joint beyond ``limits`` (2, nu), its error and the limit."""
        parts = [
            f"{name} of {self._joint_names[j]} is off by {self._error[i, j]:.4g} {unit}, limit {limits[i, j]:.4g}"
            for i, (name, unit) in enumerate(_QUANTITIES)
            for j in np.flatnonzero(self._beyond[i])
        ]
        return f"{field} violated at t = {t:.3f} s: {'; '.join(parts)}"
