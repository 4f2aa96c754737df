"""Provide MuJoCo as an engine; its model is built from pinocchio's instead of the URDF, so that both are identical."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

from bipedsim.model import Robot, Sole
from bipedsim.numerics import Array
from bipedsim_studies.bench.engines.base import (
    SOLE_THICKNESS,
    Engine,
    EngineUnavailableError,
    not_supported,
    sole_box,
)
from bipedsim_studies.bench.joints import single_axis


class MujocoEngine(Engine):
    """MuJoCo with its default settings, except for ``options``.

    Each foot has a contact sensor with ``reduce="netforce"``, so that a step yields the wrenches of both feet. Torques
    are applied as ``qfrc_applied``, which needs no actuator.

    Args:
        robot, dt: See :class:`Engine`.
        options: Attributes of ``<option>``.
    """

    def __init__(self, robot: Robot, dt: float, options: Mapping[str, str] | None = None) -> None:
        super().__init__(robot, dt)
        self.model: Any = mujoco.MjModel.from_xml_string(mjcf(robot, dt, options or {}))
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

    def wrenches(self) -> Array:
        result = np.zeros((len(self.robot.soles), 6))
        for k in range(len(result)):
            force, torque, position = self.data.sensordata[9 * k : 9 * k + 9].reshape(3, 3)
            origin = self.data.site_xpos[k]
            result[k, :3] = force
            result[k, 3:] = torque + np.cross(position - origin, force)
        return result


def mjcf(robot: Robot, dt: float, options: Mapping[str, str]) -> str:
    """Return the MJCF of the robot's reduced model on a plane, with reflected inertia, damping and soles.

    Raises:
        EngineUnavailableError: A joint has more than one axis, or a sole has fewer than three vertices.
    """
    model = robot.model
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", inertiafromgeom="false", angle="radian")
    ET.SubElement(root, "option", {"timestep": repr(dt), "gravity": _text(model.gravity.linear), **options})
    asset = ET.SubElement(root, "asset")
    world = ET.SubElement(root, "worldbody")
    ET.SubElement(world, "geom", name="ground", type="plane", size="0 0 1", contype="1", conaffinity="0")
    bodies = [world]
    for j in range(1, model.njoints):
        name, placement, inertia = model.names[j], model.jointPlacements[j], model.inertias[j]
        if inertia.mass <= 0.0 or np.linalg.eigvalsh(inertia.inertia)[0] <= 0.0:
            raise not_supported("not positive definite: MuJoCo refuses it", f"inertia of link {name!r}")
        body = ET.SubElement(bodies[model.parents[j]], "body", {"name": f"link {name}", **_pose(placement)})
        bodies.append(body)
        ET.SubElement(
            body,
            "inertial",
            pos=_text(inertia.lever),
            mass=repr(float(inertia.mass)),
            fullinertia=_text(inertia.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]),
        )
        if j == 1:
            ET.SubElement(body, "freejoint", name=name)
            continue
        kind, axis = single_axis(model, j)
        i = model.joints[j].idx_v
        ET.SubElement(
            body,
            "joint",
            name=name,
            type={"revolute": "hinge", "prismatic": "slide"}[kind],
            axis=_text(axis),
            armature=repr(float(model.armature[i])),
            damping=repr(float(robot.joint_damping[i])),
        )
    sensors = ET.SubElement(root, "sensor")
    for sole in robot.soles:
        _add_sole(bodies[sole.joint_id], asset, sole)
        ET.SubElement(
            sensors, "contact", geom1="ground", geom2=sole.name, data="force torque pos", reduce="netforce", num="1"
        )
    return ET.tostring(root, encoding="unicode")


def _add_sole(body: ET.Element, asset: ET.Element, sole: Sole) -> None:
    contact = {"contype": "0", "conaffinity": "1", "friction": f"{sole.friction_static!r} 0.005 0.0001"}
    ET.SubElement(body, "site", name=f"{sole.name} sole", pos=_text(sole.placement_joint_sole.translation))
    try:
        box = sole_box(sole)
    except EngineUnavailableError:
        if sole.n_vertices < 3:
            raise
        corners = np.vstack([np.insert(sole.vertices, 2, z, axis=1) for z in (0.0, SOLE_THICKNESS)])
        ET.SubElement(asset, "mesh", name=sole.name, vertex=_text(corners.ravel()))
        shape = {"type": "mesh", "mesh": sole.name, **_pose(sole.placement_joint_sole)}
    else:
        shape = {"type": "box", "size": _text(0.5 * box.size), **_pose(box.placement_joint_box)}
    ET.SubElement(body, "geom", {"name": sole.name, **shape, **contact})


def _pose(placement: pin.SE3) -> dict[str, str]:
    x, y, z, w = pin.Quaternion(placement.rotation).coeffs()
    return {"pos": _text(placement.translation), "quat": _text([w, x, y, z])}


def _text(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)
