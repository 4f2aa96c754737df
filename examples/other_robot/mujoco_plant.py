"""A robot that MuJoCo simulates: kinematics and masses by its own URDF reader, contact and sensors by its own laws.

Nothing here computes with bipedsim's physics. robot.yaml (:func:`bipedsim.load_robot`) adds the data
that a URDF lacks. These are the order of the driven joints, reflected inertia, the placement of soles, ankle sensors
and IMU, and a standing posture.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.config import numbers_per_joint, param
from bipedsim.errors import ConfigError, DivergenceError
from bipedsim.model import Robot, read_robot_config
from bipedsim.sim import Observation

Array = NDArray[np.float64]

SPHERE = 0.01
"""Radius [m] of the balls at the vertices of a sole: its rounded rubber edge."""
# Depth and torque of MuJoCo's contacts: stiff enough that a foot sinks by less than a millimetre, and a friction cone
# ten times as stiff along the ground, against creep.
_SOLREF = (0.005, 1.0)
_IMPRATIO = 10.0
_GROUND = "ground"


@dataclass(frozen=True)
class PlantParams:
    """Settings of the engine."""

    timestep: float = param(5e-4, "MuJoCo's step; 1/rate must be a whole multiple of it", unit="s", low=1e-5, high=1e-2)
    friction: float = param(0.0, "Coulomb friction of the ground; 0 takes the soles' of robot.yaml", low=0.0, high=10.0)
    hidden: int = param(0, "seed of masses and drives that differ from the description; 0 is none", low=0)


class Plant:
    """One robot on a plane, standing in its nominal posture at first.

    Args:
        robot: Its description.
        dt: Control period [s].
        params: Of the engine.

    Attributes:
        robot: As given.
        t: Time [s].
        observation: What the robot measures; every call of :meth:`reset` and :meth:`step` overwrites it.

    Raises:
        ConfigError: MuJoCo refuses the URDF, or the step does not divide the control period.
    """

    def __init__(self, robot: Robot, dt: float, params: PlantParams) -> None:
        substeps = round(dt / params.timestep)
        if substeps < 1 or abs(substeps * params.timestep - dt) > 1e-9 * dt:
            raise ConfigError(f"timestep = {params.timestep} s must divide the control period {dt:g} s")
        self.robot = robot
        self._dt = dt
        self._substeps = substeps
        self._ticks = 0
        self.model = _model(robot, params)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_setConst(self.model, self.data)
        driven = [self.model.joint(name) for name in robot.joint_names]
        self._q = np.array([joint.qposadr[0] for joint in driven])
        self._v = np.array([joint.dofadr[0] for joint in driven])
        self._tau = np.zeros(robot.nu)
        self._root = int(self.model.jnt_bodyid[0])
        self._foot_of_geom = np.zeros(self.model.ngeom, dtype=np.intp)
        for k, sole in enumerate(robot.soles):
            for i in range(len(sole.vertices)):
                self._foot_of_geom[self.model.geom(_vertex(sole.name, i)).id] = k
        self.observation = Observation.zeros(robot.nu, len(robot.soles))
        self.reset()

    @property
    def t(self) -> float:
        """Time [s]: whole ticks, so that no rounding adds up."""
        return self._ticks * self._dt

    def reset(self) -> Observation:
        """Put the robot into its stand: nominal posture, soles on the ground, at rest, its weight held by the stand."""
        model, data, robot = self.model, self.data, self.robot
        mujoco.mj_resetData(model, data)
        x, y, z, qx, qy, qz, qw = robot.q_nominal[:7]
        data.qpos[:7] = x, y, z, qw, qx, qy, qz
        for joint in range(1, model.njnt):
            known = robot.model.joints[robot.model.getJointId(model.joint(joint).name)]
            data.qpos[model.jnt_qposadr[joint]] = robot.q_nominal[known.idx_q]
        self._ticks = 0
        self._tau[:] = 0.0
        self._push, self._push_end = np.zeros(3), 0.0
        mujoco.mj_step1(model, data)
        self._foot, self._normal, self._where = np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros((0, 2))
        self._measure()
        # The stand holds the robot: the feet bear no weight yet, and the IMU measures the reaction of the stand.
        self.observation.foot_wrench[:] = 0.0
        up = data.site("imu").xmat.reshape(3, 3)[2]
        self.observation.imu_linear_acceleration[:] = -model.opt.gravity[2] * up
        return self.observation

    def push(self, force: Array, duration: float) -> None:
        """Push the origin of the root link with a force (3,) [N] in world axes from now on, for ``duration`` [s]."""
        self._push, self._push_end = np.array(force), self.t + duration

    def step(self, tau_joint: Array) -> Observation:
        """Hold torques (nu,) [N.m] for one control period and return what the robot measures then.

        Raises:
            DivergenceError: MuJoCo gave up.
        """
        model, data = self.model, self.data
        np.clip(tau_joint, -self.robot.effort_limit, self.robot.effort_limit, out=self._tau)
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[self._v] = self._tau
        # Times are sums: half a period of slack.
        if self.t < self._push_end - 0.5 * self._dt:
            origin = data.xpos[self._root]
            mujoco.mj_applyFT(model, data, self._push, np.zeros(3), origin, self._root, data.qfrc_applied)
        for left in reversed(range(self._substeps)):
            # A step ends with the first half of the next one: positions, orientation and rates are then measured where
            # the step has led, forces and accelerations over it.
            mujoco.mj_step2(model, data)
            if not left:
                self._take_contacts()
            mujoco.mj_step1(model, data)
        self._ticks += 1
        if any(data.warning[kind].number for kind in _GAVE_UP):
            raise DivergenceError("MuJoCo's state is not finite", self.t, data.qpos.copy(), data.qvel.copy())
        self._measure()
        return self.observation

    def _measure(self) -> None:
        data, out = self.data, self.observation
        out.t = self.t
        out.joint_position[:] = data.qpos[self._q]
        out.joint_velocity[:] = data.qvel[self._v]
        out.joint_effort[:] = self._tau
        w, x, y, z = data.sensor("imu orientation").data
        out.imu_orientation[:] = x, y, z, w
        out.imu_angular_velocity[:] = data.sensor("imu rate").data
        out.imu_linear_acceleration[:] = data.sensor("imu acceleration").data
        for k, sole in enumerate(self.robot.soles):
            # MuJoCo's sensors give what the leg does to the foot. A robot's give the reverse: the ground on the foot,
            # less what the foot itself needs.
            out.foot_wrench[k, :3] = -data.sensor(f"{sole.name} force").data
            out.foot_wrench[k, 3:] = -data.sensor(f"{sole.name} torque").data

    # Ground truth, which a real robot does not measure, for the report.

    def base_pose(self) -> tuple[Array, Array]:
        """Return position (3,) [m] and rotation (3, 3) of the root link in the world."""
        return self.data.xpos[self._root].copy(), self.data.xmat[self._root].reshape(3, 3).copy()

    def base_configuration(self) -> Array:
        """Return the first entries (7,) of pinocchio's q: position [m] and quaternion x y z w."""
        q: Array = self.data.qpos[[0, 1, 2, 4, 5, 6, 3]]
        return q

    def _take_contacts(self) -> None:
        """Keep the normal forces of the step that has just ended; the next one's contacts are others."""
        contact = self.data.contact
        active = contact.efc_address >= 0
        # Of an elliptic cone the first force is the normal one. One geom of each pair is the ground, which counts as 0.
        self._normal = self.data.efc_force[contact.efc_address[active]]
        self._foot = self._foot_of_geom[contact.geom[active]].max(axis=1)
        self._where = contact.pos[active, :2]

    def ground_forces(self) -> tuple[Array, Array]:
        """Return the vertical force under each foot (K,) [N] and the CoP of all of them (2,) in the world [m].

        They are those of the last step of MuJoCo.
        """
        vertical = np.zeros(len(self.robot.soles))
        np.add.at(vertical, self._foot, self._normal)
        total = float(vertical.sum())
        cop: Array = self._normal @ self._where / total if total > 0.0 else np.full(2, np.nan)
        return vertical, cop


_GAVE_UP = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)


def _vertex(foot: str, i: int) -> str:
    return f"{foot} sole {i}"


def _model(robot: Robot, params: PlantParams) -> Any:
    """Return the compiled model: the URDF's tree on a plane, with soles, sensors, reflected inertia and damping."""
    if not robot.free_flyer or not robot.soles:
        raise ConfigError(f"{robot.name} is no legged robot: it needs a floating base and feet")
    spec = _read_urdf(robot)
    _weld_locked(spec, robot)
    spec.option.timestep = params.timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = _IMPRATIO
    spec.worldbody.add_geom(name=_GROUND, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], contype=1, conaffinity=0)
    root = spec.worldbody.bodies[0]
    # The first joint of all, so that the base comes first in qpos and qvel.
    root.add_freejoint(name="base")
    for k, sole in enumerate(robot.soles):
        foot = _body_of(spec, robot, sole.joint_id)
        for i, (x, y) in enumerate(sole.vertices):
            radius = sole.radius or SPHERE
            centre = sole.placement_joint_sole.act(np.array([x, y, 0.0 if sole.radius else radius]))
            foot.add_geom(
                name=_vertex(sole.name, i),
                type=mujoco.mjtGeom.mjGEOM_SPHERE,
                size=[radius, 0, 0],
                pos=centre,
                contype=0,
                conaffinity=1,
                condim=3,
                friction=[params.friction or sole.friction_static, 0.005, 0.0001],
                solref=_SOLREF,
            )
        _add_site(_body_of(spec, robot, robot.ankle_joint_ids[k]), f"{sole.name} ankle", robot.placement_joint_ankle[k])
        _add_sensor(spec, f"{sole.name} force", mujoco.mjtSensor.mjSENS_FORCE, f"{sole.name} ankle")
        _add_sensor(spec, f"{sole.name} torque", mujoco.mjtSensor.mjSENS_TORQUE, f"{sole.name} ankle")
    _add_site(_body_of(spec, robot, robot.imu_joint_id), "imu", robot.placement_joint_imu)
    _add_sensor(spec, "imu orientation", mujoco.mjtSensor.mjSENS_FRAMEQUAT, "imu")
    _add_sensor(spec, "imu rate", mujoco.mjtSensor.mjSENS_GYRO, "imu")
    _add_sensor(spec, "imu acceleration", mujoco.mjtSensor.mjSENS_ACCELEROMETER, "imu")
    try:
        model = spec.compile()
    except ValueError as error:
        raise ConfigError(f"MuJoCo refuses {robot.urdf_path}: {str(error).splitlines()[0]}") from error
    for name, i in zip(robot.joint_names, robot.idx_v, strict=True):
        dof = model.joint(name).dofadr[0]
        model.dof_armature[dof] = robot.model.armature[i]
        model.dof_damping[dof] = robot.joint_damping[i]
    if params.hidden:
        _hide(model, robot, np.random.default_rng(params.hidden))
    return model


def _hide(model: Any, robot: Robot, rng: np.random.Generator) -> None:
    """Change masses by 10 %, rotor inertia by 30 %, and add friction in each joint, for `bipedsim identify` to find."""
    scale = rng.uniform(0.9, 1.1, model.nbody)
    model.body_mass[:] *= scale
    model.body_inertia[:] *= scale[:, None]
    for name in robot.joint_names:
        dof = model.joint(name).dofadr[0]
        model.dof_armature[dof] *= rng.uniform(0.7, 1.3)
        model.dof_damping[dof] += rng.uniform(0.0, 1.0)
        model.dof_frictionloss[dof] = rng.uniform(0.5, 1.5)
    mujoco.mj_setConst(model, mujoco.MjData(model))


def _read_urdf(robot: Robot) -> Any:
    """Return MuJoCo's reading of the URDF, without the shapes of its links: only soles touch anything here."""
    root = ET.fromstring(robot.urdf_xml)
    for link in root.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    for other in root.findall("mujoco"):
        root.remove(other)
    # Links on fixed joints stay bodies of their own, so that locked joints can become such links.
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", fusestatic="false", inertiafromgeom="false")
    try:
        return mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    except ValueError as error:
        raise ConfigError(f"MuJoCo refuses {robot.urdf_path}: {str(error).splitlines()[0]}") from error


def _weld_locked(spec: Any, robot: Robot) -> None:
    """Turn every joint that robot.yaml locks into a weld at its angle."""
    locked = [joint for joint in spec.joints if not robot.model.existJointName(joint.name)]
    config = dict(read_robot_config(robot.source).locked)
    others = config.pop("others", 0.0)
    names = [str(joint.name) for joint in spec.joints]
    angles = numbers_per_joint(config, names, f"{robot.source}: locked")
    for joint in locked:
        angle = angles.get(joint.name, others)
        body = joint.parent
        turn, turned = np.empty(4), np.empty(4)
        mujoco.mju_axisAngle2Quat(turn, np.asarray(joint.axis, dtype=np.float64), angle)
        mujoco.mju_mulQuat(turned, body.quat, turn)
        body.quat = turned
        spec.delete(joint)


def _body_of(spec: Any, robot: Robot, joint_id: int) -> Any:
    """Return the body that a joint of the description carries; joint 1 is the floating base."""
    if joint_id == 1:
        return spec.worldbody.bodies[0]
    return spec.joint(robot.model.names[joint_id]).parent


def _add_site(body: Any, name: str, placement: pin.SE3) -> None:
    x, y, z, w = pin.Quaternion(placement.rotation).coeffs()
    body.add_site(name=name, pos=placement.translation, quat=[w, x, y, z])


def _add_sensor(spec: Any, name: str, kind: Any, site: str) -> None:
    spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)
