"""Model closed kinematic chains: frames of two bodies that coincide, in addition to the tree of joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.numerics import Array, Indices

CONNECT, WELD = "connect", "weld"
"""Kinds of loops as in MJCF: ``connect`` constrains three coordinates, ``weld`` six."""
CLOSED = 1e-12
"""Largest error of a closed loop [m or rad]."""
MAX_ITERATIONS = 100
LONGEST_STEP = 0.3
"""Maximum joint rotation per iteration [rad]."""


@dataclass(frozen=True, eq=False)
class Loop:
    """Two frames on different bodies with coinciding origins; for a weld, their axes also coincide.

    Attributes:
        name: From robot.yaml.
        kind: ``connect`` or ``weld``.
        joints: pinocchio joints that move the bodies, 0 for the world.
        placements: Each frame in the frame of its joint. Forces and errors are along the axes of the first frame.
    """

    name: str
    kind: str
    joints: tuple[int, int]
    placements: tuple[pin.SE3, pin.SE3]

    @property
    def size(self) -> int:
        """Number of constrained coordinates."""
        return 6 if self.kind == WELD else 3


class LoopEquations:
    """Errors of the loops of a model and their Jacobian, with pinocchio's constraint models.

    Args:
        model: The model.
        loops: One or more loops.
    """

    def __init__(self, model: pin.Model, loops: Sequence[Loop]) -> None:
        self._model = model
        self._data = model.createData()
        self._loops = tuple(loops)
        self._models, self._datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in loops:
            kind = pin.ContactType.CONTACT_6D if loop.kind == WELD else pin.ContactType.CONTACT_3D
            (first, second), (first_placement, second_placement) = loop.joints, loop.placements
            constraint = pin.RigidConstraintModel(
                kind, model, first, first_placement, second, second_placement, pin.LOCAL
            )
            self._models.append(constraint)
            self._datas.append(constraint.createData())

    def at(self, q: Array) -> tuple[Array, Array]:
        """Return the errors (m,) [m, rad] at ``q`` (nq,) and their Jacobian (m, nv), which is exact at zero error.

        The error of a loop is the position of the second frame in the first one, and for a weld also its rotation.
        """
        pin.computeJointJacobians(self._model, self._data, q)
        errors = []
        for loop, constraint, data in zip(self._loops, self._models, self._datas, strict=True):
            constraint.calc(self._model, self._data, data)
            first_pose, second_pose = (self._data.oMi[j] * m for j, m in zip(loop.joints, loop.placements, strict=True))
            relative = first_pose.actInv(second_pose)
            errors += (
                [relative.translation] if loop.kind == CONNECT else [relative.translation, pin.log3(relative.rotation)]
            )
        # pinocchio's Jacobian is that of the first frame relative to the second one, hence the sign.
        return np.concatenate(errors), -pin.getConstraintsJacobian(self._model, self._data, self._models, self._datas)

    def gaps(self, q: Array) -> Array:
        """Return the largest error of each loop (L,) [m or rad] at ``q`` (nq,)."""
        errors = np.abs(self.at(q)[0])
        ends = np.cumsum([loop.size for loop in self._loops])[:-1]
        return np.array([part.max() for part in np.split(errors, ends)])


def close(equations: LoopEquations, model: pin.Model, q: Array, columns: Indices) -> tuple[Array, bool]:
    """Close the loops near ``q`` (nq,); return the configuration and whether the search has converged.

    Newton's method with the smallest change in each iteration. Redundant constraints are allowed.

    Args:
        equations: Equations of the loops.
        model: The model.
        q: (nq,) initial configuration.
        columns: Velocity indices that may change.
    """
    step = np.zeros(model.nv)
    for _ in range(MAX_ITERATIONS):
        error, jacobian = equations.at(q)
        if np.abs(error).max() < CLOSED:
            return q, True
        step[columns] = np.linalg.lstsq(jacobian[:, columns], -error, rcond=1e-10)[0]
        largest = float(np.abs(step).max())
        q = pin.integrate(model, q, step * min(1.0, LONGEST_STEP / max(largest, CLOSED)))
    return q, False
