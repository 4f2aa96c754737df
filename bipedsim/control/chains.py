"""Joints without a drive in closed chains, for controllers: where the driven ones put them, and what they carry."""

from __future__ import annotations

import numpy as np

from bipedsim.model import LoopEquations, Robot, passive_columns
from bipedsim.numerics import Array

ACCURATE = 1e-9
"""Error of the loops [m or rad] at which the joints without a drive are known well enough."""
STEPS = 5
"""Most iterations of Newton's method in a tick; from one tick to the next, one or two are enough."""
DEPENDENT = 1e-10
"""Singular values below this share of the largest one belong to coordinates that loops hold more than once."""


class Chains:
    """Follows the joints that no encoder measures, from tick to tick.

    Args:
        robot: A robot with loops.
    """

    def __init__(self, robot: Robot) -> None:
        self._equations = LoopEquations(robot.model, robot.loops)
        self._nominal = robot.q_nominal
        self._columns = passive_columns(robot.model, robot.idx_v)
        self._positions = passive_columns(robot.model, robot.idx_v) + (robot.model.nq - robot.model.nv)
        self._driven = robot.idx_v
        self._angles = np.zeros(len(self._positions))
        self._inverse = np.zeros((len(self._columns), sum(loop.size for loop in robot.loops)))
        self._driven_rows = np.zeros((len(self._inverse.T), robot.nu))
        self.reset()

    def reset(self) -> None:
        """Begin anew, from the standing posture."""
        self._angles[:] = self._nominal[self._positions]

    def follow(self, q: Array, v: Array) -> None:
        """Fill what (q, v), (nq,) and (nv,), have of joints without a drive, from the driven ones, in place.

        Where the loops cannot be closed, as noise may have it, the joints are as near to it as they get.
        """
        q[self._positions] = self._angles
        for _ in range(STEPS):
            error, jacobian = self._equations.at(q)
            self._inverse[:] = np.linalg.pinv(jacobian[:, self._columns], DEPENDENT)
            if np.abs(error).max() < ACCURATE:
                break
            q[self._positions] -= self._inverse @ error
        self._driven_rows[:] = jacobian[:, self._driven]
        self._angles[:] = q[self._positions]
        v[self._columns] = -self._inverse @ (self._driven_rows @ v[self._driven])

    def carry(self, torque: Array) -> None:
        """Have the drives carry what ``torque`` (nv,) asks of joints without one, by the loops, in place."""
        forces = self._inverse.T @ torque[self._columns]
        torque[self._driven] -= self._driven_rows.T @ forces
        torque[self._columns] = 0.0
