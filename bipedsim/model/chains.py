"""Joints without a drive in closed chains: where the driven ones put them, and what they pass on."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pinocchio as pin

from bipedsim.model.loops import LoopEquations
from bipedsim.model.robot import Robot, passive_columns
from bipedsim.numerics import Array

ACCURATE = 1e-9
"""Error of the loops [m or rad] at which the joints without a drive are known well enough."""
STEPS = 8
"""Most iterations of Newton's method in a tick; from one tick to the next, one is enough."""
AHEAD = 0.1
"""Largest change of a joint [rad] that is looked ahead; far from where they are known, rates say little."""
DEPENDENT = 1e-10
"""Singular values below this share of the largest one belong to coordinates that loops hold more than once."""


class Chains:
    """Follows the joints of a robot that no encoder measures, from tick to tick.

    Args:
        robot: A robot with loops.

    Attributes:
        joint_names: Joints without a drive.
        determined: Whether the loops say where all of them are.
        angles, rates: (p,) of these joints [rad], [rad/s], as :meth:`follow` has found them last.
    """

    def __init__(self, robot: Robot) -> None:
        model = robot.model
        self._equations = LoopEquations(model, robot.loops)
        self._columns = passive_columns(model, robot.idx_v)
        joints = [int(np.flatnonzero(np.asarray(model.idx_vs) == column)[-1]) for column in self._columns]
        self.joint_names = tuple(model.names[joint] for joint in joints)
        self._positions = np.array([model.idx_qs[joint] for joint in joints], dtype=np.intp)
        self._driven_q, self._driven = robot.idx_q, robot.idx_v
        self._q = pin.neutral(model)
        self._nominal = robot.q_nominal[self._positions]
        self.angles, self.rates = np.zeros((2, len(joints)))
        rows = self._equations.at(robot.q_nominal)[1][:, self._columns]
        self.determined = bool(np.linalg.matrix_rank(rows, tol=1e-6) == len(joints))
        self._square = self.determined and len(rows) == len(joints)
        self._inverse: Array = np.zeros(rows.T.shape)
        self._driven_rows: Array = np.zeros((len(rows), robot.nu))
        self.reset()

    def reset(self) -> None:
        """Begin anew, from the standing posture."""
        self.angles[:], self.rates[:] = self._nominal, 0.0
        self._driven_rows[:] = 0.0

    def follow(self, driven: Array, driven_rates: Array) -> None:
        """Fill :attr:`angles` and :attr:`rates` of the other joints from the driven ones, (nu,) each.

        Where the loops cannot be closed, as noise may have it, the joints are as near to it as they get; where a
        measurement is missing, all are NaN until the next one.
        """
        if not (np.isfinite(driven).all() and np.isfinite(driven_rates).all()):
            self.angles[:] = self.rates[:] = np.nan
            return
        q = self._q
        if np.isfinite(self.angles).all():
            # Where they were, and where what the drives have moved since takes them.
            moved = self._inverse @ (self._driven_rows @ (driven - q[self._driven_q]))
            q[self._positions] = self.angles - moved * (np.abs(moved).max() < AHEAD)
        else:
            q[self._positions] = self._nominal
        q[self._driven_q] = driven
        for _ in range(STEPS):
            error, jacobian = self._equations.at(q)
            self._inverse = self._inverted(jacobian[:, self._columns])
            if np.abs(error).max() < ACCURATE:
                break
            q[self._positions] -= self._inverse @ error
        self._driven_rows = jacobian[:, self._driven]
        self.angles[:] = q[self._positions]
        self.rates[:] = -self._inverse @ (self._driven_rows @ driven_rates)

    def fill(self, q: Array, v: Array) -> None:
        """Write what was found into (q, v), (nq,) and (nv,)."""
        q[self._positions], v[self._columns] = self.angles, self.rates

    def carry(self, torque: Array) -> None:
        """Have the drives carry what ``torque`` (nv,) asks of the other joints, by the loops, in place."""
        torque[self._driven] -= self._driven_rows.T @ (self._inverse.T @ torque[self._columns])
        torque[self._columns] = 0.0

    def _inverted(self, rows: Array) -> Array:
        # Where a chain is stretched, a matrix that is square has no inverse, either.
        if self._square:
            with suppress(np.linalg.LinAlgError):
                return np.asarray(np.linalg.inv(rows), dtype=np.float64)
        return np.asarray(np.linalg.pinv(rows, DEPENDENT), dtype=np.float64)
