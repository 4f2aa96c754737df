"""Provide MuJoCo as an engine; its model is built from pinocchio's instead of the URDF, so that both are identical."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines.base import Engine
from bipedsim_studies.bench.engines.mjcf_export import mjcf
from bipedsim_studies.bench.engines.scene import Scene


class MujocoEngine(Engine):
    """MuJoCo with its default settings, except for ``options``.

    Each foot has a contact sensor with ``reduce="netforce"``, so that a step yields the wrenches of both feet. Torques
    are applied as ``qfrc_applied``, which needs no actuator.

    Args:
        robot, dt: See :class:`Engine`.
        options: Attributes of ``<option>``.
        scene: Bodies, joint limits and objects that also make contact; only the soles without it.
    """

    def __init__(
        self, robot: Robot, dt: float, options: Mapping[str, str] | None = None, scene: Scene | None = None
    ) -> None:
        super().__init__(robot, dt)
        self.model: Any = mujoco.MjModel.from_xml_string(mjcf(robot, dt, options or {}, scene))
        self._objects = scene.objects if scene else ()
        self.data: Any = mujoco.MjData(self.model)
        ids = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, str(name)) for name in self._joints]
        self._v = np.empty(robot.model.nv, dtype=np.intp)
        self._q = np.empty(robot.model.nq, dtype=np.intp)
        self._v[:6] = np.arange(6)
        # MuJoCo's quaternions are w x y z instead of x y z w.
        self._q[:7] = [0, 1, 2, 4, 5, 6, 3]
        self._v[self._ours_v] = self.model.jnt_dofadr[ids]
        self._q[self._ours_q] = self.model.jnt_qposadr[ids]
        actuated = self._v[robot.idx_v]
        ordered = np.array_equal(actuated, np.arange(actuated[0], actuated[0] + robot.nu))
        torque_index = slice(int(actuated[0]), int(actuated[0]) + robot.nu) if ordered else actuated
        data, model, torque, mj_step = self.data, self.model, self.data.qfrc_applied, mujoco.mj_step

        def step(tau_joint: Array) -> None:
            torque[torque_index] = tau_joint
            mj_step(model, data)

        self.step = step

    def reset(self, q: Array, v: Array) -> None:
        mujoco.mj_resetData(self.model, self.data)
        for config in self._objects:
            i = self.model.joint(config.name).dofadr[0]
            rotation = pin.rpy.rpyToMatrix(*config.rpy)
            self.data.qvel[i : i + 3] = config.velocity
            self.data.qvel[i + 3 : i + 6] = rotation.T @ config.angular_velocity
        self.set_state(q, v)
        mujoco.mj_forward(self.model, self.data)

    def set_state(self, q: Array, v: Array) -> None:
        """Set q (nq,) and v (nv,). MuJoCo's base velocity is linear in the world and angular in the body frame."""
        self.data.qpos[self._q] = q
        self.data.qvel[self._v] = v
        self.data.qvel[:3] = pin.XYZQUATToSE3(q[:7]).rotation @ v[:3]

    def push(self, force_world: Array) -> None:
        self.data.qfrc_applied[:3] = force_world

    def state(self) -> tuple[Array, Array]:
        q, v = self.data.qpos[self._q], self.data.qvel[self._v]
        v[:3] = pin.XYZQUATToSE3(q[:7]).rotation.T @ v[:3]
        return q, v

    def load(self) -> Array:
        # The first three coordinates move the whole robot, so that only external forces act along them.
        return np.array(self.data.qfrc_constraint[:3])

    def wrenches(self) -> Array:
        result = np.zeros((len(self.robot.soles), 6))
        for k in range(len(result)):
            force, torque, position = self.data.sensordata[9 * k : 9 * k + 9].reshape(3, 3)
            origin = self.data.site_xpos[k]
            result[k, :3] = force
            result[k, 3:] = torque + np.cross(position - origin, force)
        return result
