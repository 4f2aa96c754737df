"""Compute the undriven joints of closed chains from the driven ones, and transfer their torques."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pinocchio as pin

from bipedsim.model.loops import LoopEquations
from bipedsim.model.robot import Robot, passive_columns
from bipedsim.numerics import Array

ACCURATE = 1e-9
"""Loop error below which the undriven joints are known accurately enough [m or rad]."""
STEPS = 8
"""Maximum Newton iterations per tick; one is enough between consecutive ticks."""
AHEAD = 0.1
"""Largest joint change that is extrapolated [rad]; the rates are inaccurate for larger changes."""
DEPENDENT = 1e-10
"""Ratio to the largest singular value below which a constraint is redundant."""


class Chains:
    """Track the joints without an encoder from tick to tick.

    Args:
        robot: A robot with loops.

    Attributes:
        joint_names: Joints without a drive.
        determined: Whether the loops determine the positions of all of them.
        angles, rates: (p,) of these joints from the last call of :meth:`follow` [rad], [rad/s].
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
        """Restart from the standing posture."""
        self.angles[:], self.rates[:] = self._nominal, 0.0
        self._driven_rows[:] = 0.0

    def follow(self, driven: Array, driven_rates: Array) -> None:
        """Update :attr:`angles` and :attr:`rates` from the driven joints, (nu,) each.

        If noise prevents closing the loops, the joints come as close as possible. If a measurement is missing, all
        values are NaN until the next call.
        """
        if not (np.isfinite(driven).all() and np.isfinite(driven_rates).all()):
            self.angles[:] = self.rates[:] = np.nan
            return
        q = self._q
        if np.isfinite(self.angles).all():
            # The initial guess is the last position, extrapolated by the change of the driven joints since then.
            change = self._inverse @ (self._driven_rows @ (driven - q[self._driven_q]))
            q[self._positions] = self.angles - change * (np.abs(change).max() < AHEAD)
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
        """Write the undriven joints into (q, v), (nq,) and (nv,)."""
        q[self._positions], v[self._columns] = self.angles, self.rates

    def carry(self, torque: Array) -> None:
        """Transfer the torques of the undriven joints in ``torque`` (nv,) to the drives through the loops, in place."""
        torque[self._driven] -= self._driven_rows.T @ (self._inverse.T @ torque[self._columns])
        torque[self._columns] = 0.0

    def _inverted(self, rows: Array) -> Array:
        # The square matrix of a stretched chain is singular.
        if self._square:
            with suppress(np.linalg.LinAlgError):
                return np.asarray(np.linalg.inv(rows), dtype=np.float64)
        return np.asarray(np.linalg.pinv(rows, DEPENDENT), dtype=np.float64)
