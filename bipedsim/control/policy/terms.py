"""The terms of a policy's observation: their meaning and size, and the terms that no robot measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.config import Table, import_own_module
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Indices
from bipedsim.sim import Observation


@dataclass(slots=True, eq=False)
class TermInputs:
    """Data from which the terms of one update are computed.

    Attributes:
        seen: Measurements of the robot.
        command: (3,) velocity command [m/s, m/s, rad/s].
        action: Last output of the network, after ``action.clip``.
        weight: Weight of the robot [N].
        base_angular_velocity: (3,) of the root link, in its axes [rad/s].
        base_linear_velocity: (3,) of the origin of the root link, in its axes [m/s]; only for the term `base_lin_vel`.
        true_velocity: (3,) the same from the simulator; NaN without one.
        gravity: (3,) unit vector downwards in the axes of the root link.
        euler: (3,) roll, pitch and yaw of the root link [rad].
        phase: Phase of the clock, from 0 to 1.
        rest: Sine and cosine of the clock at rest; None while it runs.
        encoded: Outputs of the encoders, by name.
    """

    seen: Observation
    command: Array
    action: Array
    weight: float
    base_angular_velocity: Array = field(default_factory=lambda: np.zeros(3))
    base_linear_velocity: Array = field(default_factory=lambda: np.zeros(3))
    true_velocity: Array = field(default_factory=lambda: np.full(3, np.nan))
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -1.0]))
    euler: Array = field(default_factory=lambda: np.zeros(3))
    phase: float = 0.0
    rest: tuple[float, float] | None = None
    encoded: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def at_rest(cls, robot: Robot, actions: int) -> TermInputs:
        """Return the inputs of a robot in its posture at rest, before the first of ``actions`` outputs."""
        seen = Observation.zeros(robot.nu, len(robot.soles))
        seen.joint_position[:] = robot.posture
        return cls(seen, np.zeros(3), np.zeros(actions), robot.weight)


class TermJoints(NamedTuple):
    """Joints and constants of one term.

    Attributes:
        places: (n,) indices of its joints among the robot's, or of its points in the height scan.
        default: (n,) their default pose [rad].
        constants: Constant values of the term; the offset of a height scan.
        phase: Added to the phase of the clock.
    """

    places: Indices
    default: Array
    constants: Array
    phase: float = 0.0


JOINTS, ACTIONS, FEET, CONSTANTS, POINTS, CALLED = "joints", "actions", "feet", "constants", "points", ""


class Term(NamedTuple):
    """One entry of the table.

    Attributes:
        size: Number of values, or the kind of item that has one value each; ``CALLED`` if a call shows it.
        meaning: Description in one line, with the unit.
        values: Function from the data of an update and the joints of the term to the values.
    """

    size: int | str
    meaning: str
    values: Callable[[TermInputs, TermJoints], Array]


FARTHEST = 5.0
"""Largest height in a height scan [m], also where there is no ground; the range of the sensor in mjlab's tasks."""


def _clock(view: TermInputs, own: TermJoints) -> Array:
    """Return sine and cosine of the phase."""
    if view.rest is not None:
        return np.array(view.rest)
    angle = 2.0 * np.pi * (view.phase + own.phase)
    return np.array([np.sin(angle), np.cos(angle)])


def _heights(view: TermInputs, own: TermJoints) -> Array:
    """Return finite heights: beyond the edge of the ground they are infinite, from which a network returns NaN."""
    return np.minimum(view.seen.height_scan[own.places], FARTHEST) - own.constants[0]


TRUE_VELOCITY = Term(3, "true velocity of the root link in its axes [m/s]", lambda view, _: view.true_velocity)
"""The term `base_lin_vel` with `ground_truth: true`."""
TERMS: Mapping[str, Term] = {
    "base_ang_vel": Term(
        3, "angular velocity of the root link in its axes [rad/s]", lambda view, _: view.base_angular_velocity
    ),
    "base_lin_vel": Term(
        3,
        "estimated velocity of the root link in its axes [m/s]",
        lambda view, _: view.base_linear_velocity,
    ),
    "base_euler": Term(3, "roll, pitch and yaw of the root link [rad]", lambda view, _: view.euler),
    "projected_gravity": Term(3, "unit vector downwards in the axes of the root link", lambda view, _: view.gravity),
    "velocity_commands": Term(3, "vx, vy [m/s], wz [rad/s] of /cmd_vel", lambda view, _: view.command),
    "joint_pos": Term(JOINTS, "positions [rad]", lambda view, joints: view.seen.joint_position[joints.places]),
    "joint_pos_rel": Term(
        JOINTS,
        "positions from the default pose [rad]",
        lambda view, joints: view.seen.joint_position[joints.places] - joints.default,
    ),
    "joint_vel": Term(JOINTS, "velocities [rad/s]", lambda view, joints: view.seen.joint_velocity[joints.places]),
    "joint_effort": Term(JOINTS, "torques [N.m]", lambda view, joints: view.seen.joint_effort[joints.places]),
    "last_action": Term(ACTIONS, "last output of the network, initially zeros", lambda view, _: view.action),
    "clock": Term(2, "sine and cosine of the phase", _clock),
    "clock_sin": Term(1, "sine of the phase", lambda view, own: _clock(view, own)[:1]),
    "clock_cos": Term(1, "cosine of the phase", lambda view, own: _clock(view, own)[1:]),
    "foot_force": Term(
        FEET, "along each foot's z axis over the weight", lambda view, _: view.seen.foot_wrench[:, 2] / view.weight
    ),
    "height_scan": Term(POINTS, "height of the base over points of the ground, less `offset` [m]; x first", _heights),
    "measured_heights": Term(POINTS, "the same in legged_gym's order; y first", _heights),
    "constant": Term(CONSTANTS, "constant `values`, such as commands of the training", lambda _, own: own.constants),
}
"""Terms by name; the names are Isaac Lab's where it has the term."""

ALIASES = {
    "joint_vel_rel": "joint_vel",
    "generated_commands": "velocity_commands",
    "gait_phase": "clock",
    "base_euler_xyz": "base_euler",
    "height_scanner": "height_scan",
}
"""Other names of terms of the table; default velocities are zero, so joint_vel_rel equals joint_vel."""

_BASE_VELOCITY = "the velocity of the base along the axes of the world, which no sensor of a robot measures"
_PLACE = "the position of the base in the world, which no sensor of a robot measures"

UNMEASURED = {
    "root_lin_vel_w": _BASE_VELOCITY,
    "base_pos_z": _PLACE,
    "root_pos_w": _PLACE,
    "image": "a camera image",
    "image_features": "a camera image",
    "body_pose_w": _PLACE,
    "motion_anchor_pos_b": _PLACE,
}
"""Terms that are available only in training, and the measurement that each would need."""


OWN_TERMS = Table("observation term", "bipedsim.policy_terms", {})
"""Functions of other packages from :class:`TermInputs` and :class:`TermJoints` to values, by the name of the term."""


def own_term(name: str) -> Term:
    """Return the term with the values of a user's function: ``package.module:function``, or a name of ``OWN_TERMS``.

    Raises:
        ConfigError: The module or the function is missing.
    """
    module, _, attribute = name.partition(":")
    own = OWN_TERMS[name] if name in OWN_TERMS else getattr(import_own_module(module, "term", name), attribute, None)
    if not callable(own):
        raise ConfigError("is no function", "term", name)
    return Term(CALLED, f"function {name}", own)


def encoder_term(name: str, size: int) -> Term:
    """Return the term with the ``size`` outputs of an encoder."""
    return Term(size, f"output of the encoder {name!r}", lambda view, _: view.encoded[name])


def call_term(term: Term, view: TermInputs, joints: TermJoints) -> int:
    """Return the number of values that the function of a user's term returns.

    Raises:
        ConfigError: The function fails, or returns no finite numbers in one dimension.
    """
    try:
        values = np.asarray(term.values(view, joints), dtype=np.float64)
    except Exception as error:  # the function is the user's
        raise ConfigError(f"the {term.meaning} fails at rest ({type(error).__name__}: {error})") from error
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ConfigError(f"the {term.meaning} must return finite numbers in one dimension, not {values!r}")
    return len(values)


def size_of(term: Term, joints: int, actions: int, feet: int, own: int) -> int:
    """Return the number of values of a term for these numbers of joints, actions, feet, and own constants or points."""
    if isinstance(term.size, int):
        return term.size
    return {JOINTS: joints, ACTIONS: actions, FEET: feet, CONSTANTS: own, POINTS: own, CALLED: 0}[term.size]


class BaseSensor:
    """Compute the motion of the root link from the IMU, including the joints between them.

    Args:
        robot: The robot, with a floating base.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._turn = np.array(robot.placement_joint_imu.rotation)
        self._spin = np.zeros(3)
        # The root link is attached to the first joint.
        self._moves = robot.imu_joint_id != 1
        self._data = robot.model.createData()
        self._q, self._v = robot.q_nominal.copy(), np.zeros(robot.model.nv)
        self._q[:7] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0

    def read(self, view: TermInputs) -> bool:
        """Fill angular velocity, direction of gravity and Euler angles of the root link from the measurements.

        Returns:
            False if the IMU gives no attitude; only the angular velocity is filled then.
        """
        seen = view.seen
        if self._moves:
            self._follow(seen)
        view.base_angular_velocity[:] = self._turn @ seen.imu_angular_velocity - self._spin
        x, y, z, w = seen.imu_orientation.tolist()
        square = x * x + y * y + z * z + w * w
        if not square > 0.5:
            return False
        down = np.array([2.0 * (w * y - x * z), -2.0 * (y * z + w * x), -(w * w - x * x - y * y + z * z)])
        view.gravity[:] = self._turn @ (down / square)
        along = np.array([w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)])
        across = np.array([2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)])
        # First column of the attitude of the root link: its x axis in the world.
        forward, left = float(self._turn[0] @ along), float(self._turn[0] @ across)
        gx, gy, gz = view.gravity.tolist()
        view.euler[:] = math.atan2(-gy, -gz), math.asin(min(max(gx, -1.0), 1.0)), math.atan2(left, forward)
        return True

    def _follow(self, observation: Observation) -> None:
        """Compute the orientation of the IMU in the root link and the angular velocity of the joints between them."""
        robot = self._robot
        self._q[robot.idx_q], self._v[robot.idx_v] = observation.joint_position, observation.joint_velocity
        pin.forwardKinematics(robot.model, self._data, self._q, self._v)
        joint = robot.imu_joint_id
        rotation = self._data.oMi[joint].rotation
        self._turn = rotation @ robot.placement_joint_imu.rotation
        self._spin = rotation @ self._data.v[joint].angular
