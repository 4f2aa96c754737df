"""robot.yaml + URDF -> Robot: pinocchio model, soles, actuated joints, limits, and a posture that stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.robot_config import (
    RobotConfig,
    number,
    numbers_per_joint,
    per_joint,
    placement,
    read_foot,
    read_robot_config,
    urdf_path,
)
from bipedsim.robots import ROBOTS
from bipedsim.settle import place_base, stand
from bipedsim.sole import Sole, checked_polygon
from bipedsim.urdf import inertia_problem, read_urdf

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

GRAVITY = 9.81
"""pinocchio's default [m/s^2]."""


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot: what the physics and every controller need to know of it.

    Attributes:
        name, description: From robot.yaml.
        urdf_path, urdf_xml: The URDF file and its text.
        source: The robot.yaml.
        model: pinocchio model with reflected inertia in ``model.armature``; locked joints are welded. Free-flyer root, or none.
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
        controllers: Controller name to this robot's parameters.
        sources: Where the numbers of robot.yaml were published.
        warnings: What was odd but usable.
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
    controllers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def nu(self) -> int:
        """Number of actuated joints."""
        return len(self.joint_names)

    @property
    def free_flyer(self) -> bool:
        """Whether the root link floats."""
        return has_free_flyer(self.model)

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return float(sum(inertia.mass for inertia in self.model.inertias))

    @property
    def weight(self) -> float:
        """Total weight [N]."""
        return self.mass * float(np.linalg.norm(self.model.gravity.linear))

    def settle(self, posture: ArrayLike) -> Array:
        """Return q (nq,) with the joints at ``posture`` (nu,) and the soles on z = 0, in the least-squares sense over all vertices."""
        q = pin.neutral(self.model)
        q[self.idx_q] = np.asarray(posture, dtype=np.float64)
        return place_base(self.model, self.soles, q) if self.free_flyer and self.soles else q


def robot_names() -> tuple[str, ...]:
    """Return the names that :func:`load_robot` knows."""
    return ROBOTS


def has_free_flyer(model: pin.Model) -> bool:
    """Whether the first joint of ``model`` is a free flyer."""
    return model.njoints > 1 and model.joints[1].nq == 7


def stability_ratio(robot: Robot, kd: ArrayLike, h: float) -> Array:
    """Return kd h / I_eff (nu,) of an explicit damping gain ``kd`` [N.m.s/rad] held over ``h`` [s].

    I_eff = 1 / (M^-1)_ii at the nominal posture with the base free, which is the least inertia the joint can show. Above 1 the joint
    overshoots within a step, above 2 it diverges.
    """
    data = robot.model.createData()
    pin.crba(robot.model, data, robot.q_nominal)
    mass_matrix = np.triu(data.M) + np.triu(data.M, 1).T
    inverse = np.linalg.inv(mass_matrix)
    return np.asarray(kd, dtype=np.float64) * h * np.diag(inverse)[robot.idx_v]


def load_robot(name_or_path: str | Path) -> Robot:
    """Load a robot by its name in the table, or from a robot.yaml (or the folder of one).

    Raises:
        UnknownNameError: No such robot, joint or frame; the message lists the choices.
        ConfigError: Anything else that is wrong with robot.yaml or its URDF, with file, key and value.
    """
    text = str(name_or_path)
    if text in ROBOTS:
        source = Path(__file__).parent / "robots" / text / "robot.yaml"
    elif isinstance(name_or_path, Path) or "/" in text or text.endswith((".yaml", ".yml")):
        source = Path(name_or_path)
        if source.is_dir():
            source = source / "robot.yaml"
    else:
        raise UnknownNameError("robot", text, ROBOTS, "a robot is one of the table or the path of a robot.yaml")
    return _Loader(source).load()


class _Loader:
    """The steps from a robot.yaml to a Robot; they share the file that messages name."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.config: RobotConfig = read_robot_config(source)
        self.warnings: list[str] = []

    def load(self) -> Robot:
        """Run the steps."""
        config = self.config
        path = urdf_path(config.urdf, self.source)
        overrides = {key: self._covers(key) for key in ("effort_limit", "velocity_limit", "position_limit")}
        model, xml, odd = read_urdf(path, config.root == "free_flyer", overrides)
        self.warnings += odd
        model, joints = self._reduced(model)
        ids = [model.getJointId(n) for n in joints]
        idx_q = np.array([model.joints[i].idx_q for i in ids], dtype=np.intp)
        idx_v = np.array([model.joints[i].idx_v for i in ids], dtype=np.intp)
        self._check_bodies(model)
        self._set_limits(model, joints, idx_q, idx_v)
        damping = self._damping(model, joints, idx_v)
        soles = tuple(self._sole(model, n, v) for n, v in (config.feet or {}).items())
        ankles = tuple(self._ankle(model, s) for s in soles)
        imu_frame, imu_joint, imu_placement = self._imu(model)
        q_nominal = self._nominal(model, soles, joints, idx_q)
        self._check_mass_matrix(model, q_nominal)
        return Robot(
            name=config.name,
            description=config.description,
            urdf_path=path,
            urdf_xml=xml,
            source=self.source,
            model=model,
            joint_names=joints,
            idx_q=idx_q,
            idx_v=idx_v,
            effort_limit=model.upperEffortLimit[idx_v].copy(),
            velocity_limit=model.upperVelocityLimit[idx_v].copy(),
            position_lower=model.lowerPositionLimit[idx_q].copy(),
            position_upper=model.upperPositionLimit[idx_q].copy(),
            joint_damping=damping,
            soles=soles,
            ankle_joint_ids=tuple(s.joint_id for s in soles),
            placement_joint_ankle=ankles,
            imu_joint_id=imu_joint,
            placement_joint_imu=imu_placement,
            imu_frame=imu_frame,
            q_nominal=q_nominal,
            posture=q_nominal[idx_q].copy(),
            controllers={str(k): dict(v or {}) for k, v in (config.controllers or {}).items()},
            sources={str(k): str(v) for k, v in (config.sources or {}).items()},
            warnings=tuple(self.warnings),
        )

    def _covers(self, key: str) -> Any:
        values = getattr(self.config, key)

        def covers(joint: str) -> bool:
            if isinstance(values, Mapping):
                return any(per_joint({p: 0}, [joint], "") for p in values if _matches(p, joint))
            return values is not None

        return covers

    def _reduced(self, model: pin.Model) -> tuple[pin.Model, tuple[str, ...]]:
        """Weld the locked joints and return the actuated ones in their order."""
        config, source = self.config, self.source
        first = 2 if has_free_flyer(model) else 1
        movable = list(model.names)[first:]
        locked = dict(config.locked or {})
        others = locked.pop("others", None)
        angles = numbers_per_joint(locked, movable, f"{source}: locked")
        joints = config.joints
        if joints is None:
            joints = [n for n in movable if n not in angles] if others is None else []
        if not isinstance(joints, list):
            raise ConfigError(f"{source}: joints = {joints!r} must be a list of joint names")
        for joint in joints:
            if joint not in movable:
                raise UnknownNameError("joint", str(joint), movable, f"{source}: joints")
            if joints.count(joint) > 1:
                raise ConfigError(f"{source}: joints: {joint!r} appears {joints.count(joint)} times")
            if joint in angles:
                raise ConfigError(f"{source}: joint {joint!r} is both in joints and in locked")
        left = [n for n in movable if n not in joints and n not in angles]
        if left and others is None:
            raise ConfigError(
                f"{source}: joints {', '.join(left)} are neither in joints nor in locked; name them, or add `others: 0.0` to locked"
            )
        angles |= dict.fromkeys(left, number(others, f"{source}: locked.others") if left else 0.0)
        q = pin.neutral(model)
        for name in movable:
            joint = model.joints[model.getJointId(name)]
            if joint.nq != 1:
                raise ConfigError(
                    f"{source}: joint {name!r} has {joint.nq} position variables ({joint.shortname()}); "
                    "make it revolute with limits, or split it into revolute and prismatic joints"
                )
            q[joint.idx_q] = angles.get(name, 0.0)
        if angles:
            model = pin.buildReducedModel(model, [model.getJointId(n) for n in angles], q)
        return model, tuple(joints)

    def _check_bodies(self, model: pin.Model) -> None:
        for i in range(1, model.njoints):
            body = model.inertias[i]
            links = [f.name for f in model.frames if f.parentJoint == i and f.type == pin.BODY]
            where = f"{self.source}: the body that joint {model.names[i]!r} carries (links {', '.join(links) or 'none'})"
            if body.mass <= 0.0:
                raise ConfigError(f"{where} has no mass; give a link an <inertial> with mass above 0")
            problem = inertia_problem(body.mass, body.inertia)
            if problem:
                raise ConfigError(f"{where}: {problem}")

    def _set_limits(self, model: pin.Model, joints: tuple[str, ...], idx_q: Indices, idx_v: Indices) -> None:
        config, source = self.config, self.source
        effort, velocity = model.upperEffortLimit.copy(), model.upperVelocityLimit.copy()
        for key, limits in (("effort_limit", effort), ("velocity_limit", velocity)):
            given = numbers_per_joint(getattr(config, key), joints, f"{source}: {key}", low=0.0)
            for joint, i in zip(joints, idx_v, strict=True):
                limits[i] = given.get(joint, limits[i])
                if not 0.0 < limits[i] < 1e300:
                    raise ConfigError(
                        f"{source}: joint {joint!r} has {key} {limits[i]:g}; a positive one is needed: write `{key}: {{{joint}: ...}}`"
                    )
        model.upperEffortLimit, model.lowerEffortLimit = effort, -effort
        model.upperVelocityLimit, model.lowerVelocityLimit = velocity, -velocity
        lower, upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
        given_ranges = per_joint(config.position_limit, joints, f"{source}: position_limit")
        for joint, i in zip(joints, idx_q, strict=True):
            if joint in given_ranges:
                where, values = f"{source}: position_limit.{joint}", given_ranges[joint]
                if not isinstance(values, list) or len(values) != 2:
                    raise ConfigError(f"{where} = {values!r} must be [lower, upper]")
                lower[i], upper[i] = (number(v, where) for v in values)
            if not lower[i] < upper[i]:
                raise ConfigError(f"{source}: joint {joint!r} has position limits [{lower[i]:g}, {upper[i]:g}]; lower must be below upper")
        model.lowerPositionLimit, model.upperPositionLimit = lower, upper
        armature = np.zeros(model.nv)
        for joint, value in numbers_per_joint(config.armature, joints, f"{source}: armature", low=0.0).items():
            armature[idx_v[joints.index(joint)]] = value
        model.armature = armature
        if joints and not armature[idx_v].all():
            none = [j for j, i in zip(joints, idx_v, strict=True) if armature[i] == 0.0]
            self.warnings.append(f"{source}: no reflected rotor inertia (key armature) for {', '.join(none)}")

    def _damping(self, model: pin.Model, joints: tuple[str, ...], idx_v: Indices) -> Array:
        damping = np.zeros(model.nv)
        damping[idx_v] = np.asarray(model.damping)[idx_v]
        for joint, value in numbers_per_joint(self.config.joint_damping, joints, f"{self.source}: joint_damping", low=0.0).items():
            damping[idx_v[joints.index(joint)]] = value
        return damping

    def _frame(self, model: pin.Model, name: Any, where: str) -> pin.Frame:
        names = [f.name for f in model.frames if f.type in (pin.BODY, pin.FIXED_JOINT, pin.OP_FRAME)]
        bodies = [f.name for f in model.frames if f.type == pin.BODY]
        if name not in names:
            raise UnknownNameError("frame", str(name), bodies, f"{self.source}: {where}")
        return next(f for f in model.frames if f.name == name and f.type != pin.JOINT)

    def _sole(self, model: pin.Model, name: Any, values: Any) -> Sole:
        foot = read_foot(name, values, str(self.source))
        where = f"feet.{name}"
        frame = self._frame(model, foot.frame, f"{where}.frame")
        return Sole(
            name=name,
            frame=foot.frame,
            joint_id=int(frame.parentJoint),
            placement_joint_sole=frame.placement * placement(foot.placement, f"{self.source}: {where}.placement"),
            vertices=checked_polygon(foot.vertices, f"{self.source}: {where}.vertices"),
            friction_static=foot.friction_static,
            friction_dynamic=foot.friction_dynamic,
        )

    def _ankle(self, model: pin.Model, sole: Sole) -> pin.SE3:
        name = (self.config.feet or {})[sole.name].get("ankle_frame", "")
        if not name:
            return pin.SE3.Identity()
        frame = self._frame(model, name, f"feet.{sole.name}.ankle_frame")
        if frame.parentJoint != sole.joint_id:
            raise ConfigError(
                f"{self.source}: feet.{sole.name}.ankle_frame = {name!r} moves with joint {model.names[frame.parentJoint]!r}, "
                f"the sole with {model.names[sole.joint_id]!r}; they must be on the same side of every joint"
            )
        return frame.placement

    def _imu(self, model: pin.Model) -> tuple[str, int, pin.SE3]:
        config = self.config
        if config.imu is None:
            root = next(f for f in model.frames if f.type == pin.BODY)
            return root.name, int(root.parentJoint), root.placement
        if set(config.imu) != {"frame"}:
            raise ConfigError(f"{self.source}: imu = {dict(config.imu)!r} must be {{frame: <URDF frame>}}")
        frame = self._frame(model, config.imu["frame"], "imu.frame")
        return frame.name, int(frame.parentJoint), frame.placement

    def _nominal(self, model: pin.Model, soles: tuple[Sole, ...], joints: tuple[str, ...], idx_q: Indices) -> Array:
        q = pin.neutral(model)
        lower, upper = model.lowerPositionLimit, model.upperPositionLimit
        given = numbers_per_joint(self.config.posture, joints, f"{self.source}: posture")
        for joint, i in zip(joints, idx_q, strict=True):
            q[i] = given.get(joint, min(max(0.0, lower[i]), upper[i]))
            if not lower[i] <= q[i] <= upper[i]:
                raise ConfigError(f"{self.source}: posture.{joint} = {q[i]:g} rad is outside the limits [{lower[i]:g}, {upper[i]:g}]")
        if not has_free_flyer(model) or not soles:
            return q
        if not joints or max(s.n_vertices for s in soles) < 3:
            return place_base(model, soles, q)
        standing = stand(model, soles, q)
        if standing is None:
            raise ConfigError(
                f"{self.source}: posture: no posture near it has flat soles and the centre of mass over the support; "
                "bend the knees, and check the sole placements"
            )
        moved = np.abs(standing[idx_q] - q[idx_q])
        if moved.max() > 0.3:
            worst = int(np.argmax(moved))
            self.warnings.append(
                f"{self.source}: posture: standing needs {joints[worst]} = {standing[idx_q[worst]]:.3f} rad instead of {q[idx_q[worst]]:.3f}"
            )
        return standing

    def _check_mass_matrix(self, model: pin.Model, q: Array) -> None:
        data = model.createData()
        pin.crba(model, data, q)
        if model.nv and np.linalg.eigvalsh(data.M, UPLO="U")[0] <= 0.0:
            worst = int(np.argmin(np.diag(data.M)))
            raise ConfigError(
                f"{self.source}: the mass matrix is not positive definite (least inertia {data.M[worst, worst]:.3g} at velocity index {worst}); "
                "give the links inertia, or the joint an armature"
            )


def _matches(pattern: Any, joint: str) -> bool:
    try:
        return bool(per_joint({pattern: 0}, [joint], ""))
    except ConfigError:
        return False
