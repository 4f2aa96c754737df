"""Load a robot from robot.yaml and URDF: joints, limits, feet, IMU and standing posture, with checks."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
import pinocchio as pin

from bipedsim.config import numbers_per_joint, per_joint, together
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model.hardware import check_presets
from bipedsim.model.inertia import inertia_problem, mass_matrix_problem
from bipedsim.model.limits import effort_and_velocity_limits, set_effort_and_velocity_limits
from bipedsim.model.loops import Loop, LoopEquations, close
from bipedsim.model.mjcf import read_equality
from bipedsim.model.names import DESCRIPTIONS, robot_file
from bipedsim.model.planar import straighten
from bipedsim.model.posture import place_base, stand
from bipedsim.model.robot import ROUNDED, Robot, has_free_flyer, open_loops, passive_columns
from bipedsim.model.schema import MEND, FootConfig, RobotConfig, ShapeConfig, read_robot_config, urdf_path
from bipedsim.model.sensors import ContactSwitch, Imu, read_sensors
from bipedsim.model.sole import Sole, checked_polygon
from bipedsim.model.urdf import read_urdf, welded
from bipedsim.numerics import Array, Indices

T = TypeVar("T")


class RobotReader:
    """Reads the parts of a Robot from a robot.yaml, step by step.

    Args:
        source: The robot.yaml; all messages name it.

    Attributes:
        config: Its keys.
        warnings: Warnings of all steps.
        passive: Movable joints without a drive; set by :meth:`read_model`.
    """

    def __init__(self, source: Path) -> None:
        self.source = source
        self.config: RobotConfig = read_robot_config(source)
        self.warnings: list[str] = []
        self.passive: tuple[str, ...] = ()

    def read_model(self) -> tuple[pin.Model, tuple[str, ...], Path, str]:
        """Return the model without locked joints, the actuated joints in order, and the URDF's path and text."""
        path = urdf_path(self.config.urdf, self.source)
        overrides = {key: self._covers(key) for key in ("effort_limit", "velocity_limit", "position_limit")}
        inertias = {link: vars(inertia) for link, inertia in self.config.inertia.items()}
        mend = self.config.inertia_check == MEND
        model, xml, warnings = read_urdf(path, self.config.root == "free_flyer", overrides, inertias, mend)
        self.warnings += warnings
        model, joints = self._reduced(model)
        model.gravity.linear = np.array([0.0, 0.0, -self.config.gravity])
        self._check_bodies(model)
        return model, joints, path, xml

    def read_foot(self, model: pin.Model, name: str, foot: FootConfig) -> tuple[Sole, pin.SE3]:
        """Return the sole of a foot, and the frame of its ankle sensor relative to the joint that moves it."""
        sole = self._sole(model, name, foot)
        return sole, self._ankle(model, sole, foot.ankle_frame)

    def _covers(self, key: str) -> Callable[[str], bool]:
        """Return a function: whether a joint needs no limit in the URDF, since it is in robot.yaml or undriven."""
        values, locked, passive = getattr(self.config, key), self.config.locked, self.config.passive

        def covers(joint: str) -> bool:
            if any(_matches(pattern, joint) for pattern in locked) or joint in passive:
                return True
            if isinstance(values, Mapping):
                return any(_matches(pattern, joint) for pattern in values)
            return values is not None

        return covers

    def _reduced(self, model: pin.Model) -> tuple[pin.Model, tuple[str, ...]]:
        """Weld the locked joints; return the reduced model and the actuated joints in order."""
        config, source = self.config, self.source
        first = 2 if has_free_flyer(model) else 1
        movable = list(model.names)[first:]
        locked = dict(config.locked)
        others = locked.pop("others", None)
        angles = numbers_per_joint(locked, movable, f"{source}: locked")
        passive = self._listed("passive", config.passive, movable, {"locked": angles})
        joints = config.joints
        if joints is None:
            joints = [n for n in movable if n not in angles and n not in passive] if others is None else []
        joints = self._listed("joints", joints, movable, {"locked": angles, "passive": passive})
        remaining = [n for n in movable if n not in joints and n not in angles and n not in passive]
        if remaining and others is None:
            raise ConfigError(
                "neither here nor in passive nor in locked; name them, or add `others: 0.0` to locked",
                f"{source}: joints",
                ", ".join(remaining),
            )
        self.passive = tuple(passive)
        angles |= dict.fromkeys(remaining, others or 0.0)
        for name in movable:
            joint = model.joints[model.getJointId(name)]
            if joint.nq != 1:
                raise ConfigError(
                    f"{joint.shortname()} has {joint.nq} position variables; make it revolute with limits, or split it "
                    "into revolute and prismatic ones",
                    f"{source}: joint {name!r}",
                )
        model = welded(model, angles)
        return model, tuple(joints)

    def _listed(
        self, key: str, names: list[str], movable: list[str], other_keys: Mapping[str, Container[str]]
    ) -> list[str]:
        """Check the joints in ``key``: each is movable, listed once, and not in ``other_keys``."""
        for joint in names:
            if joint not in movable:
                raise UnknownNameError("joint", joint, movable, f"{self.source}: {key}")
            if names.count(joint) > 1:
                raise ConfigError(f"appears {names.count(joint)} times", f"{self.source}: {key}", joint)
            for other, members in other_keys.items():
                if joint in members:
                    raise ConfigError(f"is also in {other}", f"{self.source}: {key}", joint)
        return names

    def _check_bodies(self, model: pin.Model) -> None:
        faults: list[ConfigError] = []
        mass_beyond = [body.mass for body in model.inertias]
        for i in range(model.njoints - 1, 0, -1):
            mass_beyond[model.parents[i]] += mass_beyond[i]
        for i in range(1, model.njoints):
            body = model.inertias[i]
            # Bodies between crossing joints or of a planar base may be massless. The check of the mass matrix detects
            # motions without inertia.
            if body.mass == 0.0 and (model.names[i] in self.passive or mass_beyond[i] > 0.0):
                continue
            links = [f.name for f in model.frames if f.parentJoint == i and f.type == pin.BODY]
            where = (
                f"{self.source}: the body that joint {model.names[i]!r} carries (links {', '.join(links) or 'none'})"
            )
            if body.mass <= 0.0:
                faults.append(ConfigError("no mass; give a link an <inertial> with mass above 0", where))
                continue
            problem = inertia_problem(body.mass, body.inertia)
            if problem:
                faults.append(ConfigError(problem, where))
        together(faults)

    def set_limits(self, model: pin.Model, joints: tuple[str, ...], idx_q: Indices, idx_v: Indices) -> None:
        config, source = self.config, self.source
        faults: list[ConfigError] = []
        effort, velocity = effort_and_velocity_limits(model)
        for key, limits in (("effort_limit", effort), ("velocity_limit", velocity)):
            values = numbers_per_joint(getattr(config, key), joints, f"{source}: {key}", low=0.0)
            for joint, i in zip(joints, idx_v, strict=True):
                limits[i] = values.get(joint, limits[i])
                if not 0.0 < limits[i] < 1e300:
                    faults.append(ConfigError("must be positive", f"{source}: {key}.{joint}", limits[i]))
        set_effort_and_velocity_limits(model, effort, velocity)
        lower, upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
        ranges = per_joint(config.position_limit, joints, f"{source}: position_limit")
        for joint, i in zip(joints, idx_q, strict=True):
            if joint in ranges:
                lower[i], upper[i] = ranges[joint]
            if not lower[i] < upper[i]:
                where = f"{source}: position_limit.{joint}"
                faults.append(ConfigError("must be increasing", where, [float(lower[i]), float(upper[i])]))
        together(faults)
        for joint in self.passive:
            i = model.joints[model.getJointId(joint)].idx_q
            if not lower[i] < upper[i]:
                lower[i], upper[i] = -np.inf, np.inf
        model.lowerPositionLimit, model.upperPositionLimit = lower, upper
        armature = np.zeros(model.nv)
        for joint, value in numbers_per_joint(config.armature, joints, f"{source}: armature").items():
            armature[idx_v[joints.index(joint)]] = value
        model.armature = armature
        if joints and not armature[idx_v].all():
            without_armature = [j for j, i in zip(joints, idx_v, strict=True) if armature[i] == 0.0]
            self.warnings.append(
                f"{source}: no reflected rotor inertia (key armature) for {', '.join(without_armature)}"
            )

    def damping(self, model: pin.Model, joints: tuple[str, ...]) -> Array:
        movable = (*joints, *self.passive)
        index = {joint: model.joints[model.getJointId(joint)].idx_v for joint in movable}
        damping = np.zeros(model.nv)
        for i in index.values():
            damping[i] = model.damping[i]
        for joint, value in numbers_per_joint(
            self.config.joint_damping, movable, f"{self.source}: joint_damping"
        ).items():
            damping[index[joint]] = value
        return damping

    def _frame(self, model: pin.Model, name: Any, where: str) -> pin.Frame:
        names = [f.name for f in model.frames if f.type in (pin.BODY, pin.FIXED_JOINT, pin.OP_FRAME)]
        bodies = [f.name for f in model.frames if f.type == pin.BODY]
        if name not in names:
            raise UnknownNameError("frame", str(name), bodies, f"{self.source}: {where}")
        return next(f for f in model.frames if f.name == name and f.type != pin.JOINT)

    def _sole(self, model: pin.Model, name: str, foot: FootConfig) -> Sole:
        where = f"feet.{name}"
        frame = self._frame(model, foot.frame, f"{where}.frame")
        vertices = checked_polygon(foot.vertices, f"{self.source}: {where}.vertices")
        if foot.radius > 0.0 and len(vertices) > 1:
            raise ConfigError(
                f"m with {len(vertices)} vertices: a radius needs exactly one vertex (a ball foot). Keep one vertex, "
                "or omit the radius",
                f"{self.source}: {where}.radius",
                foot.radius,
            )
        return Sole(
            name=name,
            frame=foot.frame,
            joint_id=int(frame.parentJoint),
            placement_joint_sole=frame.placement * foot.placement.transform(),
            vertices=vertices,
            friction_static=foot.friction_static,
            friction_dynamic=foot.friction_dynamic,
            radius=foot.radius,
            passes_ground=foot.passes_ground,
            load_cell=foot.load_cell,
        )

    def _ankle(self, model: pin.Model, sole: Sole, name: str) -> pin.SE3:
        if sole.load_cell:
            if name:
                where = f"{self.source}: feet.{sole.name}.ankle_frame"
                raise ConfigError("is not for a load cell, which measures in the sole frame. Omit it", where, name)
            return sole.placement_joint_sole
        if not name:
            return pin.SE3.Identity()
        frame = self._frame(model, name, f"feet.{sole.name}.ankle_frame")
        if frame.parentJoint != sole.joint_id:
            raise ConfigError(
                f"moves with joint {model.names[frame.parentJoint]!r}, the sole with {model.names[sole.joint_id]!r}; "
                "they must be on the same side of every joint",
                f"{self.source}: feet.{sole.name}.ankle_frame",
                name,
            )
        return frame.placement

    def imu(self, model: pin.Model) -> tuple[str, int, pin.SE3]:
        name = self.config.imu.frame
        if not name:
            root = next(f for f in model.frames if f.type == pin.BODY)
            return root.name, int(root.parentJoint), root.placement
        frame = self._frame(model, name, "imu.frame")
        return frame.name, int(frame.parentJoint), frame.placement

    def sensors(self, model: pin.Model) -> tuple[tuple[Imu, ...], tuple[ContactSwitch, ...]]:
        """Return the sensors in addition to the main IMU and the ankle sensors."""
        config = self.config
        return read_sensors(config.sensors, partial(self._frame, model), config.feet, str(self.source))

    def loops(self, model: pin.Model) -> tuple[Loop, ...]:
        """Return the closed chains; a single error lists all problems."""
        loops, faults = [], []
        for name, loop in self.config.loops.items():
            frames = []
            for key in ("frame1", "frame2"):
                try:
                    frames.append(self._frame(model, getattr(loop, key), f"loops.{name}.{key}"))
                except ConfigError as error:
                    faults.append(error)
            if len(frames) < 2:
                continue
            first, second = frames
            if first.parentJoint == second.parentJoint:
                faults.append(
                    ConfigError(
                        f"{first.name!r} and {second.name!r} move with the same joint, "
                        f"{model.names[first.parentJoint]!r}; a loop is between two bodies",
                        f"{self.source}: loops.{name}",
                    )
                )
            placements = first.placement * loop.placement1.transform(), second.placement * loop.placement2.transform()
            loops.append(Loop(name, loop.type, (int(first.parentJoint), int(second.parentJoint)), placements))
        if self.config.loops_from:
            path = self.source.parent / self.config.loops_from
            try:
                mjcf_loops, left_out = read_equality(path, model, lambda body, where: self._frame(model, body, where))
            except ConfigError as error:
                faults.append(error)
            else:
                self.warnings += left_out
                duplicates = sorted({loop.name for loop in mjcf_loops} & set(self.config.loops))
                if duplicates:
                    faults.append(
                        ConfigError(f"{path} has them, too", f"{self.source}: loops: {', '.join(duplicates)}")
                    )
                loops += mjcf_loops
        together(faults)
        straight, notes = straighten(model, loops, str(self.source))
        self.warnings += notes
        return straight

    def _closed(self, model: pin.Model, loops: tuple[Loop, ...], q: Array, idx_v: Indices) -> Array:
        """Return ``q`` with its loops closed by the undriven joints."""
        equations = LoopEquations(model, loops)
        columns = passive_columns(model, idx_v)
        closed_q, converged = close(equations, model, q, columns)
        if not converged:
            raise ConfigError(
                f"{open_loops(equations, loops, closed_q)} by the passive joints "
                f"({', '.join(self.passive) or 'none'}) from there. Set angles that close them, or fix the frames",
                f"{self.source}: posture",
            )
        lower, upper = model.lowerPositionLimit, model.upperPositionLimit
        for joint in self.passive:
            i = model.joints[model.getJointId(joint)].idx_q
            if not lower[i] - ROUNDED <= closed_q[i] <= upper[i] + ROUNDED:
                raise ConfigError(
                    f"loops put {joint} at {closed_q[i]:g} rad, outside its limits [{lower[i]:g}, {upper[i]:g}]. Set "
                    "angles that keep it within",
                    f"{self.source}: posture",
                )
        return closed_q

    def nominal(
        self,
        model: pin.Model,
        soles: tuple[Sole, ...],
        joints: tuple[str, ...],
        idx_q: Indices,
        idx_v: Indices,
        loops: tuple[Loop, ...],
    ) -> Array:
        q = pin.neutral(model)
        lower, upper = model.lowerPositionLimit, model.upperPositionLimit
        movable = (*joints, *self.passive)
        angles = numbers_per_joint(self.config.posture, movable, f"{self.source}: posture")
        for joint in movable:
            i = model.joints[model.getJointId(joint)].idx_q
            q[i] = angles.get(joint, min(max(0.0, lower[i]), upper[i]))
            # The positions of passive joints in loops are checked after the loops are closed.
            if not lower[i] <= q[i] <= upper[i] and not (loops and joint in self.passive):
                raise ConfigError(
                    f"rad is outside the limits [{lower[i]:g}, {upper[i]:g}]", f"{self.source}: posture.{joint}", q[i]
                )
        if loops:
            q = self._closed(model, loops, q, idx_v)
        if not has_free_flyer(model) or not soles:
            return q
        placed = place_base(model, soles, q)
        if pin.centerOfMass(model, model.createData(), placed)[2] < 0.0:
            raise ConfigError(
                "the robot is below its soles. The z axis of a sole must point up into the foot", f"{self.source}: feet"
            )
        if not joints or max(s.n_vertices for s in soles) < 3:
            return placed
        standing = stand(model, soles, q, loops)
        if standing is None:
            raise ConfigError(
                "no posture near it has flat soles and the centre of mass over the support; bend the knees, and "
                "check the sole placements",
                f"{self.source}: posture",
            )
        difference = np.abs(standing[idx_q] - q[idx_q])
        if difference.max() > 0.3:
            worst = int(np.argmax(difference))
            self.warnings.append(
                f"{self.source}: posture: standing needs {joints[worst]} = {standing[idx_q[worst]]:.3f} rad "
                f"instead of {q[idx_q[worst]]:.3f}"
            )
        return standing

    def postures(self, joints: tuple[str, ...]) -> dict[str, dict[str, float]]:
        """Return name of a posture to joint angles [rad]; a single error lists all problems."""
        movable, faults, postures = (*joints, *self.passive), [], {}
        for name, angles in self.config.postures.items():
            try:
                postures[name] = numbers_per_joint(angles, movable, f"{self.source}: postures.{name}")
            except ConfigError as error:
                faults.append(error)
        together(faults)
        return postures

    def bodies(self, model: pin.Model) -> dict[str, list[ShapeConfig]]:
        """Return the shapes of links that do not use those of the URDF."""
        for link in self.config.bodies:
            self._check_link(model, link, "bodies")
        return {link: list(shapes) for link, shapes in self.config.bodies.items()}

    def self_collision(self, model: pin.Model) -> tuple[tuple[str, str], ...]:
        """Return the pairs of links that can touch each other."""
        pairs = []
        for pair in self.config.self_collision:
            if len(pair) != 2 or pair[0] == pair[1]:
                raise ConfigError("must be two links", f"{self.source}: self_collision", pair)
            joints = [self._check_link(model, link, "self_collision") for link in pair]
            if joints[0] == joints[1]:
                raise ConfigError(f"no joint moves {pair[0]!r} against {pair[1]!r}", f"{self.source}: self_collision")
            pairs.append((pair[0], pair[1]))
        return tuple(pairs)

    def _check_link(self, model: pin.Model, link: str, key: str) -> int:
        """Return the joint that moves a link."""
        if not model.existFrame(link, pin.FrameType.BODY):
            bodies = [f.name for f in model.frames if f.type == pin.BODY]
            raise UnknownNameError("link", link, bodies, f"{self.source}: {key}")
        return int(model.frames[model.getFrameId(link, pin.FrameType.BODY)].parentJoint)

    def check_mass_matrix(self, model: pin.Model, q: Array) -> None:
        problem = mass_matrix_problem(model, q)
        if problem:
            raise ConfigError(problem, f"{self.source}: mass matrix")


def _matches(pattern: Any, joint: str) -> bool:
    try:
        return bool(per_joint({pattern: 0}, [joint], ""))
    except ConfigError:
        return False


@dataclass
class StepResult(Generic[T]):
    """Result of a reading step, or nothing if the step failed."""

    result: T | None = None

    @property
    def value(self) -> T:
        """The result; valid only if no step has failed."""
        return cast(T, self.result)


class StepRunner:
    """Runs independent steps and collects their errors.

    Attributes:
        faults: Errors of the steps.
    """

    def __init__(self) -> None:
        self.faults: list[ConfigError] = []

    def run(self, step: Callable[[], T]) -> StepResult[T]:
        """Run a step and collect its error."""
        try:
            return StepResult(step())
        except ConfigError as fault:
            self.faults.append(fault)
            return StepResult()


def load_robot(name_or_path: str | Path) -> Robot:
    """Load a robot by its name, or from a robot.yaml or its folder.

    Raises:
        UnknownNameError: The robot, a joint or a frame does not exist; the message lists the choices.
        ConfigError: Anything else in robot.yaml or its URDF is wrong; the message has file, key and value.
    """
    if str(name_or_path).lower().endswith(DESCRIPTIONS):
        raise ConfigError(
            f"robot = {str(name_or_path)!r}: a robot description lacks feet and standing posture. "
            f"`bipedsim import {shlex.quote(str(name_or_path))}` writes a folder with a robot.yaml that has both"
        )
    source = robot_file(name_or_path)
    reader = RobotReader(source)
    config = reader.config
    model, joints, path, xml = reader.read_model()
    ids = [model.getJointId(n) for n in joints]
    idx_q = np.array([model.joints[i].idx_q for i in ids], dtype=np.intp)
    idx_v = np.array([model.joints[i].idx_v for i in ids], dtype=np.intp)
    # All steps run before an error is raised, so that the error lists all problems.
    steps = StepRunner()
    steps.run(lambda: reader.set_limits(model, joints, idx_q, idx_v))
    damping = steps.run(lambda: reader.damping(model, joints))
    feet = [steps.run(partial(reader.read_foot, model, name, foot)) for name, foot in config.feet.items()]
    imu = steps.run(lambda: reader.imu(model))
    sensors = steps.run(lambda: reader.sensors(model))
    loop_result = steps.run(lambda: reader.loops(model))
    bodies = steps.run(lambda: reader.bodies(model))
    pairs = steps.run(lambda: reader.self_collision(model))
    postures = steps.run(lambda: reader.postures(joints))
    presets = steps.run(lambda: check_presets(config.hardware, model, joints, config.feet, f"{source}: hardware"))
    stiffness, drive_damping = (
        steps.run(partial(numbers_per_joint, getattr(config, key), joints, f"{source}: {key}"))
        for key in ("drive_stiffness", "drive_damping")
    )
    together(steps.faults)
    soles = tuple(foot.value[0] for foot in feet)
    imu_frame, imu_joint, imu_placement = imu.value
    imus, contact_switches = sensors.value
    loops = loop_result.value
    q_nominal = reader.nominal(model, soles, joints, idx_q, idx_v, loops)
    reader.check_mass_matrix(model, q_nominal)
    effort, velocity = effort_and_velocity_limits(model)
    return Robot(
        name=config.name,
        description=config.description,
        urdf_path=path,
        urdf_xml=xml,
        source=source,
        model=model,
        joint_names=joints,
        idx_q=idx_q,
        idx_v=idx_v,
        effort_limit=effort[idx_v],
        velocity_limit=velocity[idx_v],
        position_lower=model.lowerPositionLimit[idx_q].copy(),
        position_upper=model.upperPositionLimit[idx_q].copy(),
        joint_damping=damping.value,
        soles=soles,
        ankle_joint_ids=tuple(s.joint_id for s in soles),
        placement_joint_ankle=tuple(foot.value[1] for foot in feet),
        imu_joint_id=imu_joint,
        placement_joint_imu=imu_placement,
        imu_frame=imu_frame,
        q_nominal=q_nominal,
        posture=q_nominal[idx_q].copy(),
        postures=postures.value,
        controllers={k: dict(v or {}) for k, v in config.controllers.items()},
        hardware=presets.value,
        bodies=bodies.value,
        self_collision=pairs.value,
        drive_stiffness=stiffness.value,
        drive_damping=drive_damping.value,
        sources={k: str(v) for k, v in config.sources.items()},
        warnings=tuple(reader.warnings),
        loops=loops,
        imus=imus,
        contact_switches=contact_switches,
    )
