"""Define the controller for all engines, which holds the nominal posture."""

from __future__ import annotations

import numpy as np

from bipedsim.model import Robot, inverse_inertia, standing_torque
from bipedsim.numerics import Array

DAMPING = 0.5
"""Largest eigenvalue of dt M^-1 Kd. An explicit damper diverges at 2."""
STIFFNESS = 100.0
"""Ratio kp / kd [1/s]."""


class Hold:
    """Static torques of the nominal posture plus PD feedback, computed outside the engine.

    Args:
        robot: The robot.
        dt: Control period [s].
    """

    def __init__(self, robot: Robot, dt: float) -> None:
        inverse = inverse_inertia(robot)
        coupling = float(np.abs(np.linalg.eigvals(inverse / np.diag(inverse))).max())
        self._kd = DAMPING / (np.diag(inverse) * dt * coupling)
        self._kp = STIFFNESS * self._kd
        self._robot = robot
        self._static = standing_torque(robot)

    def torque(self, q: Array, v: Array) -> Array:
        """Return the joint torques (nu,) [N.m] at q (nq,), v (nv,)."""
        robot = self._robot
        error = robot.posture - q[robot.idx_q]
        return np.asarray(self._static + self._kp * error - self._kd * v[robot.idx_v])
