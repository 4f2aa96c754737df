"""Define the robot for the physics and all controllers, and quantities that follow from it."""

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
from bipedsim.model.sensors import ContactSwitch, Imu
from bipedsim.model.shapes import Shapes, read_shapes
from bipedsim.model.sole import Sole
from bipedsim.numerics import Array, Indices

ROUNDED = 1e-6
"""Tolerated error of a loop in the initial configuration [m or rad], because postures are rounded."""


def has_free_flyer(model: pin.Model) -> bool:
    """Return whether the first joint of ``model`` is a free flyer."""
    return model.njoints > 1 and model.joints[1].nq == 7


def passive_columns(model: pin.Model, idx_v: Indices) -> Indices:
    """Return the velocity indices of the joints without a drive, except for a free flyer."""
    return np.setdiff1d(np.arange(6 if has_free_flyer(model) else 0, model.nv), idx_v)


def drivers(model: pin.Model, joint_names: Sequence[str]) -> Indices:
    """Return, for each joint of ``model``, the number (from 1) of the joint in ``joint_names`` that moves it, or 0."""
    driver_of = np.zeros(model.njoints, dtype=np.intp)
    numbers = {model.getJointId(name): j + 1 for j, name in enumerate(joint_names)}
    for i in range(1, model.njoints):
        driver_of[i] = numbers.get(i, driver_of[model.parents[i]])
    return driver_of


@dataclass(frozen=True, eq=False)
class Robot:
    """Robot with all data that the physics and the controllers need.

    Attributes:
        name, description: From robot.yaml.
        urdf_path, urdf_xml: The URDF file and its text.
        source: The robot.yaml.
        model: pinocchio model with reflected inertia in ``model.armature`` and welded locked joints. The root is a free
            flyer or fixed.
        joint_names: Actuated joints, in the order of commands.
        idx_q, idx_v: (nu,) indices of the actuated joints in q and v.
        effort_limit, velocity_limit, position_lower, position_upper: (nu,) [N.m], [rad/s], [rad].
        joint_damping: (nv,) viscous friction [N.m.s/rad]; 0 for the base.
        soles: One per foot.
        ankle_joint_ids: pinocchio joint that moves each foot.
        placement_joint_ankle: Frame of each ankle force-torque sensor in the frame of that joint.
        imu_joint_id, placement_joint_imu, imu_frame: Joint, placement and frame of the IMU.
        q_nominal: (nq,) standing configuration: soles flat on z = 0, CoM above the centre of the support.
        posture: (nu,) the actuated joints of ``q_nominal`` [rad].
        postures: Name of another posture to angles [rad] by joint name or regular expression.
        controllers: Controller name to this robot's parameters.
        hardware: Hardware preset to this robot's parameters.
        bodies: Link to its shapes, for links that do not use those of the URDF.
        self_collision: Pairs of links that can touch each other.
        drive_stiffness, drive_damping: Joint to a gain of its drive [N.m/rad], [N.m.s/rad], if robot.yaml defines it;
            see :func:`bipedsim.model.drive_gains`.
        sources: Publications of the numbers in robot.yaml.
        warnings: Warnings from loading.
        loops: Closed kinematic chains, which the tree of joints does not contain.
        imus: IMUs in addition to the main one.
        contact_switches: Switches in the soles.
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
    imus: tuple[Imu, ...] = ()
    contact_switches: tuple[ContactSwitch, ...] = ()

    def _repr_html_(self) -> str:
        """Return the HTML table that notebooks display."""
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
        """Whether the root link has a floating base."""
        return has_free_flyer(self.model)

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of the links, loaded on first access."""
        return read_shapes(self.model, self.urdf_xml, self.urdf_path, self.bodies)

    @cached_property
    def content(self) -> Mapping[str, str]:
        """Digests of the source files by name; empty for a robot that was created without files."""
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
        """Height of the CoM above the ground in the standing configuration [m]."""
        return float(pin.centerOfMass(self.model, self.model.createData(), self.q_nominal)[2])

    def with_inertia(self, joint_id: int, inertia: pin.Inertia) -> Robot:
        """Return a copy with another inertia for the body of a joint; ``q_nominal`` is unchanged."""
        model = pin.Model(self.model)
        model.inertias[joint_id] = inertia
        return replace(self, model=model)

    def with_armature(self, armature: ArrayLike) -> Robot:
        """Return a copy with the reflected inertia ``armature`` (nu,) [kg.m^2] of the actuated joints."""
        model = pin.Model(self.model)
        values = model.armature.copy()
        values[self.idx_v] = armature
        model.armature = values
        return replace(self, model=model)

    def with_mass_scale(self, scale: float) -> Robot:
        """Return a copy with scaled masses and inertias, except for rotors; ``q_nominal`` is unchanged."""
        model = pin.Model(self.model)
        # The constructor refuses the inertia of a point mass whose zeros are rounded to negative numbers.
        for body in model.inertias:
            body.mass *= scale
            body.inertia = scale * body.inertia
        return replace(self, model=model)

    def with_com_shift(self, shift: ArrayLike) -> Robot:
        """Return a copy with the total CoM shifted by ``shift`` (3,) [m] along the axes of the trunk.

        Only the CoM of the trunk, the first body with a mass, moves. Its shift is ``shift`` times the ratio of total
        mass to trunk mass. ``q_nominal`` is unchanged.
        """
        inertias = self.model.inertias
        trunk = next(i for i in range(1, self.model.njoints) if inertias[i].mass > 0.0)
        body = inertias[trunk]
        shifted = pin.Inertia(body)
        shifted.lever = body.lever + np.asarray(shift, dtype=np.float64) * self.mass / body.mass
        return self.with_inertia(trunk, shifted)

    def settle(self, posture: ArrayLike) -> Array:
        """Return q (nq,) for joints at ``posture`` (nu,), with all sole vertices at z = 0 by least squares.

        Joints without a drive follow from the loops, or are at 0.

        Raises:
            ConfigError: A loop cannot be closed with these joint angles.
        """
        q = self.q_nominal.copy() if self.loops else pin.neutral(self.model)
        q[self.idx_q] = np.asarray(posture, dtype=np.float64)
        if self.loops:
            q = self.closed(q)
        return place_base(self.model, self.soles, q) if self.free_flyer and self.soles else q

    def closed(self, q: ArrayLike) -> Array:
        """Return ``q`` (nq,) with the undriven joints moved so that all loops are closed.

        Raises:
            ConfigError: Newton's method does not converge from ``q``; the message names the loops.
        """
        start = np.asarray(q, dtype=np.float64)
        if not self.loops:
            return start.copy()
        equations = LoopEquations(self.model, self.loops)
        closed_q, converged = close(equations, self.model, start, passive_columns(self.model, self.idx_v))
        if not converged:
            raise ConfigError(
                f"{open_loops(equations, self.loops, closed_q)} with the joints where they are", self.name
            )
        return closed_q

    def check_closed(self, q: Array) -> None:
        """Raise ConfigError if a loop is open at ``q`` (nq,) by more than the rounding of a posture."""
        if not self.loops:
            return
        gaps = LoopEquations(self.model, self.loops).gaps(q)
        worst = int(np.argmax(gaps))
        if not gaps[worst] <= ROUNDED:
            raise ConfigError(
                f"open by {gaps[worst]:.3g} m or rad; Robot.closed(q) closes it by the joints without a drive",
                f"loop {self.loops[worst].name!r}",
            )


def open_loops(equations: LoopEquations, loops: Sequence[Loop], q: Array) -> str:
    """Return a message with the loops that are open at ``q`` (nq,) and their errors."""
    gaps = equations.gaps(q)
    open_by = [f"{loop.name} by {gap:.3g} m or rad" for loop, gap in zip(loops, gaps, strict=True) if gap > CLOSED]
    return f"loop {', '.join(open_by)} cannot be closed"


def constrained_inverse(model: pin.Model, loops: Sequence[Loop], q: Array) -> Array:
    """Return the inverse (nv, nv) of the mass matrix at ``q`` for motions that keep the loops closed."""
    data = model.createData()
    pin.crba(model, data, q)
    inverse: Array = np.linalg.inv(np.triu(data.M) + np.triu(data.M, 1).T)
    if loops:
        rows = LoopEquations(model, loops).at(q)[1]
        projected = rows @ inverse
        inverse -= projected.T @ np.linalg.pinv(projected @ rows.T, 1e-12, hermitian=True) @ projected
    return inverse


def inverse_inertia(robot: Robot) -> Array:
    """Return the actuated part (nu, nu) of M^-1 [1/(kg.m^2)] in the nominal configuration with a free base."""
    inverse = constrained_inverse(robot.model, robot.loops, robot.q_nominal)
    return inverse[np.ix_(robot.idx_v, robot.idx_v)]


def stability_ratio(robot: Robot, kd: ArrayLike, h: float) -> Array:
    """Return kd h / I_eff (nu,) for an explicit damping gain ``kd`` [N.m.s/rad] held for ``h`` [s].

    I_eff = 1 / (M^-1)_ii in the nominal configuration with a free base is the smallest inertia of the joint. Above 1
    the joint overshoots within a step; above 2 it diverges.
    """
    return np.asarray(kd, dtype=np.float64) * h * np.diag(inverse_inertia(robot))


def standing_torque(robot: Robot) -> Array:
    """Return the joint torques (nu,) [N.m] that hold the nominal configuration with the smallest contact wrenches.

    The wrenches support the undriven coordinates (base and passive joints), as far as ground and loops act on them.
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
