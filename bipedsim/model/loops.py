"""Closed chains: places of two bodies that stay together, beside the tree of joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array, Indices

CONNECT, WELD = "connect", "weld"
"""Kinds of loops, in the words of MJCF: a ball joint holds three coordinates, a weld six."""
CLOSED = 1e-12
"""Largest error [m or rad] of a loop that is closed."""
MAX_ITERATIONS = 100
LONGEST_STEP = 0.3
"""Most that a joint turns in one iteration [rad]."""


@dataclass(frozen=True, eq=False)
class Loop:
    """Two frames, one on either of two bodies, whose origins are one point, and of a weld whose axes are the same.

    Attributes:
        name: From robot.yaml.
        kind: ``connect`` or ``weld``.
        joints: pinocchio joints that carry the bodies, 0 for the world.
        placements: Each frame in the frame of its joint. Forces and errors are along the axes of the first one.
    """

    name: str
    kind: str
    joints: tuple[int, int]
    placements: tuple[pin.SE3, pin.SE3]

    @property
    def size(self) -> int:
        """How many coordinates it holds."""
        return 6 if self.kind == WELD else 3


class LoopEquations:
    """Errors of the loops of a model, and their Jacobian by pinocchio's constraint models.

    Args:
        model: The model.
        loops: At least one.
    """

    def __init__(self, model: pin.Model, loops: Sequence[Loop]) -> None:
        self._model = model
        self._data = model.createData()
        self._loops = tuple(loops)
        self._models, self._datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in loops:
            kind = pin.ContactType.CONTACT_6D if loop.kind == WELD else pin.ContactType.CONTACT_3D
            (first, second), (place, other) = loop.joints, loop.placements
            constraint = pin.RigidConstraintModel(kind, model, first, place, second, other, pin.LOCAL)
            self._models.append(constraint)
            self._datas.append(constraint.createData())

    def at(self, q: Array) -> tuple[Array, Array]:
        """Return the errors (m,) [m, rad] at ``q`` (nq,) and their Jacobian (m, nv), exact where they are zero.

        Of each loop the second frame as the first one sees it: its place, and of a weld its turn.
        """
        pin.computeJointJacobians(self._model, self._data, q)
        errors = []
        for loop, constraint, data in zip(self._loops, self._models, self._datas, strict=True):
            constraint.calc(self._model, self._data, data)
            place, other = (self._data.oMi[j] * m for j, m in zip(loop.joints, loop.placements, strict=True))
            apart = place.actInv(other)
            errors += [apart.translation] if loop.kind == CONNECT else [apart.translation, pin.log3(apart.rotation)]
        # pinocchio's is that of the first frame against the second one.
        return np.concatenate(errors), -pin.getConstraintsJacobian(self._model, self._data, self._models, self._datas)

    def gaps(self, q: Array) -> Array:
        """Return the largest error of each loop (L,) [m or rad] at ``q`` (nq,)."""
        errors = np.abs(self.at(q)[0])
        ends = np.cumsum([loop.size for loop in self._loops])[:-1]
        return np.array([part.max() for part in np.split(errors, ends)])


def close(equations: LoopEquations, model: pin.Model, q: Array, columns: Indices) -> tuple[Array, bool]:
    """Return the configuration near ``q`` (nq,) whose loops are closed, or nearly so, and whether they are.

    By Newton's method, with the least change in each iteration; coordinates that are held more than once are met once.

    Args:
        equations: Of the loops.
        model: The model.
        q: (nq,) where the search starts.
        columns: Indices of the velocities that may change.
    """
    step = np.zeros(model.nv)
    for _ in range(MAX_ITERATIONS):
        error, jacobian = equations.at(q)
        if np.abs(error).max() < CLOSED:
            return q, True
        step[columns] = np.linalg.lstsq(jacobian[:, columns], -error, rcond=1e-10)[0]
        longest = float(np.abs(step).max())
        q = pin.integrate(model, q, step * min(1.0, LONGEST_STEP / max(longest, CLOSED)))
    return q, False
