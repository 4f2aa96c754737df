"""Provide pinocchio's contact solvers (ADMM, projected Gauss-Seidel) with a time-stepping scheme in numpy."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.linalg import cho_factor, cho_solve

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines.base import Engine, wrench_about

TOLERANCE = 1e-9
MAX_ITERATIONS = 1000
CORRECTION = 0.2
"""Fraction of a penetration that one step removes."""


class PinocchioEngine(Engine):
    """Semi-implicit steps with one frictional point contact per sole vertex, as a cone complementarity problem.

    Args:
        robot, dt: See :class:`Engine`.
        solver: ``"ADMM"`` or ``"PGS"``.
    """

    def __init__(self, robot: Robot, dt: float, solver: str) -> None:
        super().__init__(robot, dt)
        model = robot.model
        self._model = model
        self._data = model.createData()
        self._solver = getattr(pin, f"{solver}ConstraintSolver")()
        self._settings = getattr(pin, f"{solver}SolverSettings")()
        self._settings.max_iterations = MAX_ITERATIONS
        for name in ("absolute_feasibility_tol", "absolute_complementarity_tol"):
            setattr(self._settings, name, TOLERANCE)
        for name in ("relative_feasibility_tol", "relative_complementarity_tol"):
            setattr(self._settings, name, 0.0)
        self._result = getattr(pin, f"{solver}SolverResult")()
        self._models = pin.StdVec_ConstraintModel()
        self._datas = pin.StdVec_ConstraintData()
        for sole in robot.soles:
            for vertex in sole.vertices_joint:
                contact = pin.PointContactConstraintModel(model, sole.joint_id, pin.SE3(np.eye(3), vertex))
                contact.setFriction(sole.friction_static)
                constraint = pin.ConstraintModel(contact)
                self._models.append(constraint)
                self._datas.append(constraint.createData())
        self._mass_damping = np.diag(dt * robot.joint_damping)
        self._force = np.zeros(model.nv)
        self.step = self._step

    def reset(self, q: Array, v: Array) -> None:
        self._q, self._v = q.copy(), v.copy()
        self._impulse = np.zeros(3 * len(self._models))
        self._push[:] = 0.0
        self._points = np.zeros((len(self._models), 3))

    def _step(self, tau_joint: Array) -> None:
        model, data, h, q = self._model, self._data, self.dt, self._q
        pin.crba(model, data, q, pin.Convention.WORLD)
        bias = pin.nonLinearEffects(model, data, q, self._v)
        mass = np.triu(data.M) + np.triu(data.M, 1).T + self._mass_damping
        self._force[self.robot.idx_v] = tau_joint
        self._force[:3] = data.oMi[1].rotation.T @ self._push
        J = self._jacobian()
        factor = cho_factor(mass, check_finite=False)
        right = np.column_stack([J.T, h * (self._force - bias) - self._mass_damping @ self._v])
        solved = cho_solve(factor, right, check_finite=False)
        v_free = self._v + solved[:, -1]
        G = J @ solved[:, :-1]
        g = J @ v_free
        gap = self._points[:, 2]
        g[2::3] += np.where(gap > 0.0, gap, CORRECTION * gap) / h
        self._result.setConstraintImpulseGuess(self._impulse)
        operator = pin.DelassusOperatorDense(G)
        self._solver.solve(operator, g, self._models, self._datas, self._settings, self._result)
        self._impulse = np.asarray(self._result.retrieveConstraintImpulses())
        self._v = v_free + solved[:, :-1] @ self._impulse
        self._q = pin.integrate(model, q, h * self._v)

    def _jacobian(self) -> Array:
        """Return the Jacobian (3n, nv) of the vertices' world velocities, and store the positions of the vertices."""
        rows, i = [], 0
        for sole in self.robot.soles:
            placement = self._data.oMi[sole.joint_id]
            J = pin.getJointJacobian(self._model, self._data, sole.joint_id, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            for offset in sole.vertices_joint @ placement.rotation.T:
                self._points[i] = placement.translation + offset
                rows.append(J[:3] - pin.skew(offset) @ J[3:])
                i += 1
        return np.vstack(rows)

    def state(self) -> tuple[Array, Array]:
        return self._q, self._v

    def wrenches(self) -> Array:
        forces = self._impulse.reshape(-1, 3) / self.dt
        rows, i = [], 0
        # Points and forces refer to the start of the step.
        origins = self._soles.positions(pin.integrate(self._model, self._q, -self.dt * self._v))
        for sole, origin in zip(self.robot.soles, origins, strict=True):
            vertices = slice(i, i + sole.n_vertices)
            rows.append(wrench_about(origin, self._points[vertices], forces[vertices]))
            i += sole.n_vertices
        return np.array(rows)
