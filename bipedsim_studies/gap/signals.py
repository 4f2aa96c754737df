"""The quantities that are predicted, and the errors of a prediction."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Observation
from bipedsim_studies.gap.recorded import RobotRun

QUANTITIES = {
    "joint position": "rad",
    "joint velocity": "rad/s",
    "attitude": "rad",
    "gyro": "rad/s",
    "accelerometer": "m/s^2",
    "ankle force": "N",
    "ankle torque": "N.m",
}
"""Predicted quantities and their units."""
SHAKEN = ("accelerometer", "ankle force", "ankle torque")
"""Quantities that show how torques shake the robot. A velocity is their integral, and shakes much less."""


def channel_names(robot: Robot) -> dict[str, tuple[str, ...]]:
    """Return the names of the channels of each quantity."""
    axes = ("x", "y", "z")
    of_feet = tuple(f"{sole.name} {axis}" for sole in robot.soles for axis in axes)
    joints = tuple(robot.joint_names)
    return dict(zip(QUANTITIES, (joints, joints, axes, axes, axes, of_feet, of_feet), strict=True))


def errors_at(run: RobotRun, row: int, predicted: Observation) -> dict[str, Array]:
    """Return predicted minus measured values (m,) of each quantity in ``row``; NaN where nothing was measured."""
    wrench = predicted.foot_wrench - run.wrench[row]
    return {
        "joint position": predicted.joint_position - run.position[row],
        "joint velocity": predicted.joint_velocity - run.velocity[row],
        "attitude": rotation(run.orientation[row], predicted.imu_orientation),
        "gyro": predicted.imu_angular_velocity - run.gyro[row],
        "accelerometer": predicted.imu_linear_acceleration - run.accelerometer[row],
        "ankle force": wrench[:, :3].ravel(),
        "ankle torque": wrench[:, 3:].ravel(),
    }


def channels(run: RobotRun) -> dict[str, Array]:
    """Return the measured channels (n, m) of each quantity; those of the attitude are sums of small rotations."""
    attitude = np.full((len(run), 3), np.nan)
    measured = np.flatnonzero(np.isfinite(run.orientation).all(axis=1))
    turned = [rotation(run.orientation[a], run.orientation[b]) for a, b in pairwise(measured)]
    attitude[measured[1:]] = np.cumsum(np.reshape(turned, (-1, 3)), axis=0)
    return {
        "joint position": run.position,
        "joint velocity": run.velocity,
        "attitude": attitude,
        "gyro": run.gyro,
        "accelerometer": run.accelerometer,
        "ankle force": run.wrench[:, :, :3].reshape(len(run), -1),
        "ankle torque": run.wrench[:, :, 3:].reshape(len(run), -1),
    }


def matrix_of(orientation: Array) -> Array:
    """Return the rotation matrix of a quaternion x y z w of any length."""
    rotation_matrix: Array = pin.Quaternion(orientation / np.linalg.norm(orientation)).matrix()
    return rotation_matrix


def rotation(start: Array, end: Array) -> Array:
    """Return the rotation vector (3,) between two orientations, in the axes of ``start``; NaN if one is missing."""
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        return np.full(3, np.nan)
    vector: Array = pin.log3(matrix_of(start).T @ matrix_of(end))
    return vector
