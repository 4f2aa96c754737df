"""The terms of a policy's observation: their meaning and size, and the terms that no robot measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array, Indices
from bipedsim.sim import Observation


@dataclass(slots=True, eq=False)
class TermInputs:
    """Data from which the terms of one update are computed.

    Attributes:
        seen: Measurements of the robot.
        base_angular_velocity: (3,) of the root link, in its axes [rad/s].
        gravity: (3,) unit vector downwards in the axes of the root link.
        command: (3,) velocity command [m/s, m/s, rad/s].
        action: Last output of the network.
        phase: Phase of the clock, from 0 to 1.
        still: Whether the clock terms are zero because the velocity command is small.
        weight: Weight of the robot [N].
    """

    seen: Observation
    base_angular_velocity: Array
    gravity: Array
    command: Array
    action: Array
    phase: float
    still: bool
    weight: float


class TermJoints(NamedTuple):
    """Joints and constants of one term.

    Attributes:
        places: (n,) indices of its joints among the robot's.
        default: (n,) their default pose [rad].
        constants: Constant values of the term.
    """

    places: Indices
    default: Array
    constants: Array


JOINTS, ACTIONS, FEET, CONSTANTS = "joints", "actions", "feet", "constants"


class Term(NamedTuple):
    """One entry of the table.

    Attributes:
        size: Number of values, or the kind of item that has one value each.
        meaning: Description in one line, with the unit.
        values: Function from the data of an update and the joints of the term to the values.
    """

    size: int | str
    meaning: str
    values: Callable[[TermInputs, TermJoints], Array]


def _clock(view: TermInputs, _: TermJoints) -> Array:
    if view.still:
        return np.zeros(2)
    angle = 2.0 * np.pi * view.phase
    return np.array([np.sin(angle), np.cos(angle)])


TERMS: dict[str, Term] = {
    "base_ang_vel": Term(
        3, "angular velocity of the root link in its axes [rad/s]", lambda view, _: view.base_angular_velocity
    ),
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
    "constant": Term(CONSTANTS, "constant `values`, such as commands of the training", lambda _, own: own.constants),
}
"""Terms by name; the names are Isaac Lab's where it has the term."""

ALIASES = {
    "joint_vel_rel": "joint_vel",
    "generated_commands": "velocity_commands",
    "gait_phase": "clock",
}
"""Other names of terms of the table; default velocities are zero, so joint_vel_rel equals joint_vel."""

_BASE_VELOCITY = "the linear velocity of the base, which no sensor of a robot measures"
_PLACE = "the position of the base in the world, which no sensor of a robot measures"
_GROUND = "the ground around the robot, for which it would need a depth camera"

UNMEASURED = {
    "base_lin_vel": _BASE_VELOCITY,
    "root_lin_vel_w": _BASE_VELOCITY,
    "base_pos_z": _PLACE,
    "root_pos_w": _PLACE,
    "height_scan": _GROUND,
    "height_scanner": _GROUND,
    "image": "a camera image",
    "image_features": "a camera image",
    "body_pose_w": _PLACE,
    "motion_anchor_pos_b": _PLACE,
}
"""Terms that are available only in training, and the measurement that each would need."""


def size_of(term: Term, joints: int, actions: int, feet: int, constants: int) -> int:
    """Return the number of values of a term for these numbers of joints, actions, feet and constants."""
    if isinstance(term.size, int):
        return term.size
    return {JOINTS: joints, ACTIONS: actions, FEET: feet, CONSTANTS: constants}[term.size]


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

    def read(self, observation: Observation, angular_velocity: Array, gravity: Array) -> bool:
        """Fill the angular velocity (3,) [rad/s] and the direction of gravity (3,), both in the root link's axes.

        Returns:
            False if the IMU gives no attitude; gravity is not filled then.
        """
        if self._moves:
            self._follow(observation)
        angular_velocity[:] = self._turn @ observation.imu_angular_velocity - self._spin
        x, y, z, w = observation.imu_orientation.tolist()
        square = x * x + y * y + z * z + w * w
        if not square > 0.5:
            return False
        down = np.array([2.0 * (w * y - x * z), -2.0 * (y * z + w * x), -(w * w - x * x - y * y + z * z)])
        gravity[:] = self._turn @ (down / square)
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
