"""One projection of the dynamics per step: M, nle, J and the Delassus matrix of the feet."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.contact import kernels
from bipedsim.contact.base import Projection, padded_vertices
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground
from bipedsim.robot import Robot

Array = NDArray[np.float64]


class Dynamics:
    """Projects the dynamics of one robot on its feet, and brings contact impulses back to joint space.

    pinocchio's data matrices are live views: they are handed to the kernels once and refilled in place by every call.

    Args:
        robot: The robot; its model carries the reflected inertia.
        ground: The plane that the feet meet.
        physics_dt: Step h [s].
    """

    def __init__(self, robot: Robot, ground: Ground, physics_dt: float) -> None:
        self._model = robot.model
        self._data = robot.model.createData()
        self._h = physics_dt
        nv = robot.model.nv
        soles = robot.soles
        if not soles:
            raise ConfigError(f"{robot.source}: the robot has no feet; give at least one under `feet`")
        feet = len(soles)
        vertices, counts = padded_vertices(soles)
        pin.crba(self._model, self._data, pin.neutral(self._model), pin.Convention.WORLD)
        data = self._data
        chains = [self._model.joints[sole.joint_id] for sole in soles]
        leaf = np.array([joint.idx_v + joint.nv - 1 for joint in chains], dtype=np.int64)
        self._parent = np.array(list(data.parents_fromRow), dtype=np.int64)
        self._L = np.zeros((nv, nv))
        self._Y = np.zeros((6 * feet, nv))
        self._z = np.zeros(nv)
        self._x = np.zeros(nv)
        self._leaf = leaf
        self._v_next = np.zeros(nv)
        self.projection = Projection(
            G=np.zeros((6 * feet, 6 * feet)),
            w_free=np.zeros(6 * feet),
            rotation=np.zeros((feet, 3, 3)),
            offsets=np.zeros((feet, vertices.shape[1], 3)),
            position=np.zeros((feet, 3)),
        )
        self._M_rows = np.asarray(data.M).T
        self._nle = np.asarray(data.nle)
        self._J_rows = np.asarray(data.J).T
        self._constant = (
            tuple(np.asarray(data.oMi[sole.joint_id].rotation).T for sole in soles),
            tuple(np.asarray(data.oMi[sole.joint_id].translation) for sole in soles),
            np.array([sole.placement_joint_sole.rotation for sole in soles]),
            np.array([sole.placement_joint_sole.translation for sole in soles]),
            leaf,
            vertices,
            counts,
            np.ascontiguousarray(ground.rotation_world_ground),
            np.ascontiguousarray(ground.point_world),
            self._parent,
            np.ascontiguousarray(robot.joint_damping),
            physics_dt,
        )
        p = self.projection
        self._outputs = (
            self._L,
            self._Y,
            self._z,
            np.zeros((6 * feet, nv)),
            p.G,
            p.w_free,
            p.rotation,
            p.offsets,
            p.position,
        )

    def project(self, q: Array, v: Array, tau: Array) -> Projection:
        """Return the projection of the step from (q, v) under the force ``tau`` (nv,); the next call overwrites it."""
        pin.crba(self._model, self._data, q, pin.Convention.WORLD)
        pin.nonLinearEffects(self._model, self._data, q, v)
        kernels.project(self._M_rows, self._nle, self._J_rows, *self._constant, v, tau, *self._outputs)
        return self.projection

    def advance(self, v: Array, impulse: Array) -> tuple[Array, float]:
        """Return v+ (nv,) after the contact ``impulse`` (K, 6) [N.s], and its largest magnitude (NaN if not finite).

        The velocity is overwritten by the next call.
        """
        largest = kernels.advance(
            self._L, self._Y, self._z, self._parent, self._leaf, v, impulse.reshape(-1), self._x, self._v_next
        )
        return self._v_next, largest
