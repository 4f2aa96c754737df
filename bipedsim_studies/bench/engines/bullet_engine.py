"""Provide Bullet's multibody simulation (pybullet) as an engine of the benchmark."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pybullet
from pybullet_utils.bullet_client import BulletClient

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines.base import Engine
from bipedsim_studies.bench.urdf_export import urdf


class BulletEngine(Engine):
    """pybullet in this process, with box soles on a plane.

    Bullet has no reflected inertia, so it is added to the links; see :func:`urdf`.

    Args:
        robot, dt: See :class:`Engine`.
        solver: Arguments of ``setPhysicsEngineParameter``.
    """

    def __init__(self, robot: Robot, dt: float, solver: Mapping[str, float] | None = None) -> None:
        super().__init__(robot, dt)
        self._client: Any = BulletClient(pybullet.DIRECT)
        client = self._client
        client.setTimeStep(dt)
        client.setGravity(*robot.model.gravity.linear)
        client.setPhysicsEngineParameter(**(solver or {}))
        # Bullet multiplies the friction coefficients of two bodies.
        ground = client.createMultiBody(0.0, client.createCollisionShape(pybullet.GEOM_PLANE))
        client.changeDynamics(ground, -1, lateralFriction=1.0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.urdf"
            path.write_text(urdf(robot, soles=True, reflected_inertia=True), encoding="utf-8")
            body = client.loadURDF(str(path), flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
        self._body, self._ground = body, ground
        index = {client.getJointInfo(body, i)[1].decode(): i for i in range(client.getNumJoints(body))}
        self._all = [index[name] for name in self._joints]
        self._actuated = [index[name] for name in robot.joint_names]
        self._feet = [index[robot.model.names[sole.joint_id]] for sole in robot.soles]
        client.changeDynamics(body, -1, linearDamping=0.0, angularDamping=0.0, maxJointVelocity=1e3)
        for i, v in zip(self._all, self._ours_v, strict=True):
            client.changeDynamics(
                body, i, linearDamping=0.0, angularDamping=0.0, jointDamping=float(robot.joint_damping[v])
            )
        for sole, i in zip(robot.soles, self._feet, strict=True):
            client.changeDynamics(body, i, lateralFriction=sole.friction_static)
        # Each joint initially has a motor that brakes it.
        client.setJointMotorControlArray(
            body, self._all, pybullet.VELOCITY_CONTROL, forces=np.zeros(len(self._all)).tolist()
        )
        self._inertial = np.array(client.getDynamicsInfo(body, -1)[3])
        self._inertial_quaternion = np.array(client.getDynamicsInfo(body, -1)[4])
        self.step = self._step

    def reset(self, q: Array, v: Array) -> None:
        client, body = self._client, self._body
        base = pin.XYZQUATToSE3(q[:7])
        centre = base * self._base_inertial()
        # Bullet's pose and velocity of the base refer to its centre of mass.
        client.resetBasePositionAndOrientation(body, centre.translation, pin.Quaternion(centre.rotation).coeffs())
        angular = base.rotation @ v[3:6]
        linear = base.rotation @ v[:3] + np.cross(angular, base.rotation @ self._inertial)
        client.resetBaseVelocity(body, linear, angular)
        for i, iq, iv in zip(self._all, self._ours_q, self._ours_v, strict=True):
            client.resetJointState(body, i, q[iq], v[iv])
        self._push[:] = 0.0

    def _base_inertial(self) -> pin.SE3:
        return pin.XYZQUATToSE3(np.concatenate([self._inertial, self._inertial_quaternion]))

    def _step(self, tau_joint: Array) -> None:
        client, body = self._client, self._body
        client.setJointMotorControlArray(body, self._actuated, pybullet.TORQUE_CONTROL, forces=tau_joint)
        if self._push.any():
            # Bullet applies an external force for one step only.
            origin = self.state()[0][:3]
            client.applyExternalForce(body, -1, self._push, origin, pybullet.WORLD_FRAME)
        client.stepSimulation()
        self._contacts = client.getContactPoints(bodyA=body, bodyB=self._ground)

    def state(self) -> tuple[Array, Array]:
        client, body = self._client, self._body
        position, quaternion = client.getBasePositionAndOrientation(body)
        linear, angular = client.getBaseVelocity(body)
        base = pin.XYZQUATToSE3(np.array([*position, *quaternion])) * self._base_inertial().inverse()
        root_velocity = np.array(linear) - np.cross(angular, base.rotation @ self._inertial)
        states = client.getJointStates(body, self._all)
        return self._state_of(
            base, root_velocity, angular, [state[0] for state in states], [state[1] for state in states]
        )

    def wrenches(self) -> Array:
        contacts = []
        for contact in self._contacts:
            force = sum(contact[i] * np.array(contact[j]) for i, j in ((9, 7), (10, 11), (12, 13)))
            contacts.append((self._feet.index(contact[3]), contact[6], force))
        return self._wrenches_of(contacts)

    def close(self) -> None:
        self._client.disconnect()
