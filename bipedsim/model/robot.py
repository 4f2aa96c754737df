"""robot.yaml + URDF -> Robot: pinocchio model, soles, actuated joints, limits, and a posture that stands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from bipedsim.config import Files
from bipedsim.errors import UnknownNameError
from bipedsim.model.hardware import check_presets
from bipedsim.model.load import RobotReader, has_free_flyer
from bipedsim.model.posture import place_base
from bipedsim.model.sole import Sole

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


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
        controllers: Controller name to this robot's parameters.
        hardware: Preset of the hardware to this robot's parameters.
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
    hardware: dict[str, dict[str, Any]] = field(default_factory=dict)
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
        """Return q (nq,) with the joints at ``posture`` (nu,) and all sole vertices at z = 0 by least squares."""
        q = pin.neutral(self.model)
        q[self.idx_q] = np.asarray(posture, dtype=np.float64)
        return place_base(self.model, self.soles, q) if self.free_flyer and self.soles else q


ROBOTS = Files(
    "robot", "bipedsim.robots", Path(__file__).parents[1] / "robots", "*/robot.yaml", lambda path: path.parent.name
)
"""Name to robot.yaml: a new robot is a new folder."""


def inverse_inertia(robot: Robot) -> Array:
    """Return the actuated part (nu, nu) of M^-1 [1/(kg.m^2)] at the nominal posture, the base free."""
    data = robot.model.createData()
    pin.crba(robot.model, data, robot.q_nominal)
    mass_matrix = np.triu(data.M) + np.triu(data.M, 1).T
    inverse: Array = np.linalg.inv(mass_matrix)[np.ix_(robot.idx_v, robot.idx_v)]
    return inverse


def stability_ratio(robot: Robot, kd: ArrayLike, h: float) -> Array:
    """Return kd h / I_eff (nu,) of an explicit damping gain ``kd`` [N.m.s/rad] held over ``h`` [s].

    I_eff = 1 / (M^-1)_ii at the nominal posture with the base free, which is the least inertia the joint can show.
    Above 1 the joint overshoots within a step, above 2 it diverges.
    """
    return np.asarray(kd, dtype=np.float64) * h * np.diag(inverse_inertia(robot))


def load_robot(name_or_path: str | Path) -> Robot:
    """Load a robot by its name in the table, or from a robot.yaml (or the folder of one).

    Raises:
        UnknownNameError: No such robot, joint or frame; the message lists the choices.
        ConfigError: Anything else that is wrong with robot.yaml or its URDF, with file, key and value.
    """
    text = str(name_or_path)
    if text in ROBOTS:
        source = ROBOTS[text]
    elif isinstance(name_or_path, Path) or "/" in text or text.endswith((".yaml", ".yml")) or Path(text).is_dir():
        source = Path(name_or_path)
        if source.is_dir():
            source = source / "robot.yaml"
    else:
        raise UnknownNameError("robot", text, ROBOTS, otherwise="the path of a robot.yaml")
    reader = RobotReader(source)
    config = reader.config
    model, joints, path, xml = reader.read_model()
    ids = [model.getJointId(n) for n in joints]
    idx_q = np.array([model.joints[i].idx_q for i in ids], dtype=np.intp)
    idx_v = np.array([model.joints[i].idx_v for i in ids], dtype=np.intp)
    reader.set_limits(model, joints, idx_q, idx_v)
    damping = reader.damping(model, joints)
    feet = [reader.read_foot(model, name, values) for name, values in (config.feet or {}).items()]
    soles = tuple(sole for sole, _ in feet)
    imu_frame, imu_joint, imu_placement = reader.imu(model)
    q_nominal = reader.nominal(model, soles, joints, idx_q)
    reader.check_mass_matrix(model, q_nominal)
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
        effort_limit=model.upperEffortLimit[idx_v].copy(),
        velocity_limit=model.upperVelocityLimit[idx_v].copy(),
        position_lower=model.lowerPositionLimit[idx_q].copy(),
        position_upper=model.upperPositionLimit[idx_q].copy(),
        joint_damping=damping,
        soles=soles,
        ankle_joint_ids=tuple(s.joint_id for s in soles),
        placement_joint_ankle=tuple(ankle for _, ankle in feet),
        imu_joint_id=imu_joint,
        placement_joint_imu=imu_placement,
        imu_frame=imu_frame,
        q_nominal=q_nominal,
        posture=q_nominal[idx_q].copy(),
        controllers={str(k): dict(v or {}) for k, v in (config.controllers or {}).items()},
        hardware=check_presets(config.hardware or {}, joints, f"{source}: hardware"),
        sources={str(k): str(v) for k, v in (config.sources or {}).items()},
        warnings=tuple(reader.warnings),
    )
