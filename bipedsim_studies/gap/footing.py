"""Correct a state so that its loaded feet rest on level ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags

GROUND, REST = 1e-6, 1e-5
"""Standard deviations of a resting sole from the ground [m], [rad], and from rest [m/s], [rad/s]."""
JOINT, JOINT_SPEED = 1e-4, 0.02
"""Standard deviations of a joint's measured position [rad] and velocity [rad/s]."""
BASE = (1e-2, 1e-2, 1e-2, 3e-3, 3e-3, 3e-3)
"""Standard deviations of the estimated pose of the base [m], [rad], in its own axes."""
BASE_SPEED = 3e-3
"""Standard deviation of its velocity [m/s], [rad/s]."""
FLAT, SLOW = 0.02, 0.3
"""Largest tilt [rad] and speed [m/s], [rad/s] of a sole that counts as resting; others roll, slip or land."""
ITERATIONS = 2
_HEIGHT_AND_TILT = [2, 3, 4]
_POLYGON = 3


class Footing:
    """Move states of a robot with a free base to the most probable ones whose feet rest on level ground.

    A gap between a loaded sole and the ground would be a fall and an impact in the simulator.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model = robot.model
        self._data = robot.model.createData()
        self._spread = np.full(robot.model.nv, JOINT)
        self._speed_spread = np.full(robot.model.nv, JOINT_SPEED)
        self._spread[:6], self._speed_spread[:6] = BASE, BASE_SPEED

    def settled(self, q: Array, v: Array, loaded: Flags) -> tuple[Array, Array]:
        """Return the state in which all soles that rest are flat on z = 0 and have no velocity.

        Args:
            q, v: (nq,), (nv,) estimated state.
            loaded: (K,) feet in contact.
        """
        feet = [k for k in range(len(loaded)) if loaded[k] and self._rests(q, v, k)]
        if not feet:
            return q, v
        for _ in range(ITERATIONS):
            rows, errors = self._rows(q, feet)
            q = pin.integrate(self._model, q, -_correction(rows, errors, self._spread, GROUND))
        jacobian = np.vstack([self._jacobian(q, k)[1] for k in feet])
        return q, v - _correction(jacobian, jacobian @ v, self._speed_spread, REST)

    def _rests(self, q: Array, v: Array, k: int) -> bool:
        sole = self._robot.soles[k]
        if sole.radius > 0.0 or sole.n_vertices < _POLYGON:
            return False
        pose, jacobian = self._jacobian(q, k)
        tilt = np.linalg.norm(pose.rotation[:2, 2])
        return bool(tilt < FLAT and np.abs(jacobian @ v).max() < SLOW)

    def _rows(self, q: Array, feet: Sequence[int]) -> tuple[Array, Array]:
        rows, errors = [], []
        for k in feet:
            pose, jacobian = self._jacobian(q, k)
            normal = pose.rotation[:, 2]
            rows.append(jacobian[_HEIGHT_AND_TILT])
            # A small rotation w turns the sole's normal by w x normal.
            errors.append([pose.translation[2], -normal[1], normal[0]])
        return np.vstack(rows), np.concatenate(errors)

    def _jacobian(self, q: Array, k: int) -> tuple[pin.SE3, Array]:
        """Return the pose of a sole, and its Jacobian (6, nv) at the sole's origin in the axes of the world."""
        sole = self._robot.soles[k]
        pin.computeJointJacobians(self._model, self._data, q)
        pose = self._data.oMi[sole.joint_id] * sole.placement_joint_sole
        local = pin.getJointJacobian(self._model, self._data, sole.joint_id, pin.LOCAL)
        at_sole = sole.placement_joint_sole.inverse().toActionMatrix() @ local
        axes = np.kron(np.eye(2), pose.rotation)
        return pose, axes @ at_sole


def _correction(rows: Array, errors: Array, spread: Array, tolerance: float) -> Array:
    """Return the most probable deviation (nv,) that explains ``errors`` of the constraints ``rows``."""
    gain = rows * spread**2
    result: Array = gain.T @ np.linalg.solve(gain @ rows.T + tolerance**2 * np.eye(len(rows)), errors)
    return result
