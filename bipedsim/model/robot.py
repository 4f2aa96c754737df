"""What a robot is to the physics and to every controller, and what follows from it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.config import facts
from bipedsim.errors import ConfigError
from bipedsim.model.content import robot_content
from bipedsim.model.loops import CLOSED, Loop, LoopEquations, close
from bipedsim.model.posture import place_base
from bipedsim.model.schema import ShapeConfig
from bipedsim.model.shapes import Shapes, read_shapes
from bipedsim.model.sole import Sole
from bipedsim.numerics import Array, Indices

ROUNDED = 1e-6
"""How far open [m or rad] a loop may be where a robot begins: postures are rounded."""


def has_free_flyer(model: pin.Model) -> bool:
    """Whether the first joint of ``model`` is a free flyer."""
    return model.njoints > 1 and model.joints[1].nq == 7


def passive_columns(model: pin.Model, idx_v: Indices) -> Indices:
    """Return the velocity indices of the joints without a drive, a free flyer aside."""
    return np.setdiff1d(np.arange(6 if has_free_flyer(model) else 0, model.nv), idx_v)


def drivers(model: pin.Model, joint_names: Sequence[str]) -> Indices:
    """Return for each joint of ``model`` which of ``joint_names`` moves its body, counted from 1; 0 where none does."""
    found = np.zeros(model.njoints, dtype=np.intp)
    numbers = {model.getJointId(name): j + 1 for j, name in enumerate(joint_names)}
    for i in range(1, model.njoints):
        found[i] = numbers.get(i, found[model.parents[i]])
    return found


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot: what the physics and every controller need to know of it.

    Attributes:
        name, description: From robot.yaml.
        urdf_path, urdf_xml: The URDF file and its text.
        source: The robot.yaml.
        model: pinocchio model with reflected inertia in ``model.armature``; locked joints are welded. Free-flyer root,
            or none.
        joint_names: Actuated joints, in the order of commands.
        idx_q, idx_v: (nu,) indices of the actuated joints in q and v.
        effort_limit, velocity_limit, position_lower, position_upper: (nu,) [N.m], [rad/s], [rad].
        joint_damping: (nv,) viscous friction [N.m.s/rad]; 0 for the base.
        soles: One per foot.
        ankle_joint_ids: pinocchio joint that carries each foot.
        placement_joint_ankle: Frame of each ankle force-torque sensor in the frame of that joint.
        imu_joint_id, placement_joint_imu, imu_frame: The IMU.
        q_nominal: (nq,) standing: soles flat on z = 0, CoM over the centre of the support.
        posture: (nu,) the actuated joints of ``q_nominal`` [rad].
        postures: Other postures by name: joint, or a regular expression, to its angle [rad].
        controllers: Controller name to this robot's parameters.
        hardware: Preset of the hardware to this robot's parameters.
        bodies: Link to its shapes, where they are not those of the URDF. self_collision: Pairs of links that touch each
            other.
        drive_stiffness, drive_damping: Joint to a gain of its drive [N.m/rad], [N.m.s/rad], where robot.yaml has one;
            see :func:`bipedsim.model.drive_gains`.
        sources: Where the numbers of robot.yaml were published.
        warnings: What was odd but usable.
        loops: What closes chains of joints beside the tree.
    """

    name: str
    description: str
    urdf_path: Path
    urdf_xml: str
    source: Path
    model: pin.Model
    joint_names: tuple[str, ...]
    idx_q: Indices
    idx_v: Indices
    effort_limit: Array
    velocity_limit: Array
    position_lower: Array
    position_upper: Array
    joint_damping: Array
    soles: tuple[Sole, ...]
    ankle_joint_ids: tuple[int, ...]
    placement_joint_ankle: tuple[pin.SE3, ...]
    imu_joint_id: int
    placement_joint_imu: pin.SE3
    imu_frame: str
    q_nominal: Array
    posture: Array
    postures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    controllers: dict[str, dict[str, Any]] = field(default_factory=dict)
    hardware: dict[str, dict[str, Any]] = field(default_factory=dict)
    bodies: Mapping[str, Sequence[ShapeConfig]] = field(default_factory=dict)
    self_collision: tuple[tuple[str, str], ...] = ()
    drive_stiffness: Mapping[str, float] = field(default_factory=dict)
    drive_damping: Mapping[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    loops: tuple[Loop, ...] = ()

    def _repr_html_(self) -> str:
        """What notebooks show."""
        sides = [f"{sole.name} ({sole.n_vertices} corners)" for sole in self.soles]
        rows = {
            "mass": f"{self.mass:.4g} kg",
            "joints": f"{self.nu}: {', '.join(self.joint_names)}",
            "feet": ", ".join(sides),
            "base": "floating" if self.free_flyer else "fixed to the world",
            "controllers": ", ".join(self.controllers),
        }
        return facts(f"robot {self.name}", rows)

    @property
    def nu(self) -> int:
        """Number of actuated joints."""
        return len(self.joint_names)

    @property
    def free_flyer(self) -> bool:
        """Whether the root link floats."""
        return has_free_flyer(self.model)

    @cached_property
    def shapes(self) -> Shapes:
        """What its links are like from outside; read when it is first asked for."""
        return read_shapes(self.model, self.urdf_xml, self.urdf_path, self.bodies)

    @cached_property
    def content(self) -> Mapping[str, str]:
        """Digests of the files that it was read from, by name; empty for a robot that was made without files."""
        try:
            return robot_content(self.source)
        except (ConfigError, OSError):
            return {}

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return float(sum(inertia.mass for inertia in self.model.inertias))

    @property
    def weight(self) -> float:
        """Total weight [N]."""
        return self.mass * float(np.linalg.norm(self.model.gravity.linear))

    @cached_property
    def com_height(self) -> float:
        """Height of the CoM over the ground as the robot stands [m]."""
        return float(pin.centerOfMass(self.model, self.model.createData(), self.q_nominal)[2])

    def with_inertia(self, joint_id: int, inertia: pin.Inertia) -> Robot:
        """Return this robot with another inertia on the body of a joint; ``q_nominal`` stays as it is."""
        model = pin.Model(self.model)
        model.inertias[joint_id] = inertia
        return replace(self, model=model)

    def with_mass_scale(self, scale: float) -> Robot:
        """Return this robot with all masses and inertias times ``scale``, rotors aside; ``q_nominal`` stays."""
        model = pin.Model(self.model)
        for i, body in enumerate(self.model.inertias):
            model.inertias[i] = pin.Inertia(scale * body.mass, body.lever, scale * body.inertia)
        return replace(self, model=model)

    def with_com_shift(self, shift: ArrayLike) -> Robot:
        """Return this robot with its whole CoM shifted by ``shift`` (3,) [m] along the axes of its trunk.

        The trunk's own CoM takes all of it: it moves by ``shift`` times the robot's mass over the trunk's. The trunk is
        the first body with a mass; ``q_nominal`` stays as it is.
        """
        inertias = self.model.inertias
        trunk = next(i for i in range(1, self.model.njoints) if inertias[i].mass > 0.0)
        body = inertias[trunk]
        lever = body.lever + np.asarray(shift, dtype=np.float64) * self.mass / body.mass
        return self.with_inertia(trunk, pin.Inertia(body.mass, lever, body.inertia))

    def settle(self, posture: ArrayLike) -> Array:
        """Return q (nq,) with the joints at ``posture`` (nu,) and all sole vertices at z = 0 by least squares.

        Joints without a drive are where loops put them, else at 0.

        Raises:
            ConfigError: With the joints there, no loop can be closed.
        """
        q = self.q_nominal.copy() if self.loops else pin.neutral(self.model)
        q[self.idx_q] = np.asarray(posture, dtype=np.float64)
        if self.loops:
            q = self.closed(q)
        return place_base(self.model, self.soles, q) if self.free_flyer and self.soles else q

    def closed(self, q: ArrayLike) -> Array:
        """Return ``q`` (nq,) with the joints that have no drive turned so that all loops are closed.

        Raises:
            ConfigError: Newton's method finds no such place from there; the message names the loops.
        """
        start = np.asarray(q, dtype=np.float64)
        if not self.loops:
            return start.copy()
        equations = LoopEquations(self.model, self.loops)
        found, done = close(equations, self.model, start, passive_columns(self.model, self.idx_v))
        if not done:
            raise ConfigError(f"{self.name}: {open_loops(equations, self.loops, found)} with the joints where they are")
        return found

    def check_closed(self, q: Array) -> None:
        """Raise ConfigError where a loop is open at ``q`` (nq,) by more than rounding of a posture."""
        if not self.loops:
            return
        gaps = LoopEquations(self.model, self.loops).gaps(q)
        worst = int(np.argmax(gaps))
        if not gaps[worst] <= ROUNDED:
            raise ConfigError(
                f"loop {self.loops[worst].name!r} is open by {gaps[worst]:.3g} m or rad; Robot.closed(q) turns the "
                "joints without a drive so that all loops are closed"
            )


def open_loops(equations: LoopEquations, loops: Sequence[Loop], q: Array) -> str:
    """Return which loops are open at ``q`` (nq,), and by how much, in words."""
    gaps = equations.gaps(q)
    said = [f"{loop.name} by {gap:.3g} m or rad" for loop, gap in zip(loops, gaps, strict=True) if gap > CLOSED]
    return f"loop {', '.join(said)} cannot be closed"


def constrained_inverse(model: pin.Model, loops: Sequence[Loop], q: Array) -> Array:
    """Return the inverse (nv, nv) of the mass matrix at ``q`` for motions that keep the loops closed."""
    data = model.createData()
    pin.crba(model, data, q)
    inverse: Array = np.linalg.inv(np.triu(data.M) + np.triu(data.M, 1).T)
    if loops:
        rows = LoopEquations(model, loops).at(q)[1]
        across = rows @ inverse
        inverse -= across.T @ np.linalg.pinv(across @ rows.T, 1e-12, hermitian=True) @ across
    return inverse


def inverse_inertia(robot: Robot) -> Array:
    """Return the actuated part (nu, nu) of M^-1 [1/(kg.m^2)] at the nominal posture, the base free."""
    inverse = constrained_inverse(robot.model, robot.loops, robot.q_nominal)
    return inverse[np.ix_(robot.idx_v, robot.idx_v)]


def stability_ratio(robot: Robot, kd: ArrayLike, h: float) -> Array:
    """Return kd h / I_eff (nu,) of an explicit damping gain ``kd`` [N.m.s/rad] held over ``h`` [s].

    I_eff = 1 / (M^-1)_ii at the nominal posture with the base free, which is the least inertia the joint can show.
    Above 1 the joint overshoots within a step, above 2 it diverges.
    """
    return np.asarray(kd, dtype=np.float64) * h * np.diag(inverse_inertia(robot))


def standing_torque(robot: Robot) -> Array:
    """Return the joint torques (nu,) [N.m] that hold the nominal posture with the least contact wrenches.

    The wrenches carry what no drive can: the base, and passive joints, as far as ground and loops reach them.
    """
    model = robot.model
    data = model.createData()
    gravity = pin.computeGeneralizedGravity(model, data, robot.q_nominal)
    pin.computeJointJacobians(model, data, robot.q_nominal)
    rows = []
    for sole in robot.soles:
        local = pin.getJointJacobian(model, data, sole.joint_id, pin.ReferenceFrame.LOCAL)
        at_sole = sole.placement_joint_sole.inverse().action @ local
        rotation = (data.oMi[sole.joint_id] * sole.placement_joint_sole).rotation
        rows += [rotation @ at_sole[:3], rotation @ at_sole[3:]]
    if robot.loops:
        rows.append(LoopEquations(model, robot.loops).at(robot.q_nominal)[1])
    J = np.vstack(rows)
    passive = np.setdiff1d(np.arange(model.nv), robot.idx_v)
    wrench = np.linalg.lstsq(J.T[passive], gravity[passive], rcond=None)[0]
    return np.asarray((gravity - J.T @ wrench)[robot.idx_v])
