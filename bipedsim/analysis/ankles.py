"""Sole wrenches from ankle sensors, for recordings of robots without force plates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bipedsim.analysis.loads import CARRIES
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.recording import Recording


def sole_wrench(robot: Robot, k: int, ankle_wrench: ArrayLike) -> Array:
    """Return the ground reaction wrench at the sole of foot ``k``, in the sole frame, from its ankle sensor.

    The weight of the foot below the sensor is added as for a level sole. Its inertial force is neglected. A load cell
    has no mass below it.

    Args:
        robot: The robot.
        k: Index of the foot.
        ankle_wrench: (..., 6) force [N] and torque [N.m] in the ankle frame, as in ``Observation.foot_wrench``.
    """
    placement = robot.soles[k].placement_joint_sole
    action = placement.actInv(robot.placement_joint_ankle[k]).toDualActionMatrix()
    foot = robot.model.inertias[robot.ankle_joint_ids[k]]
    mass = 0.0 if robot.soles[k].load_cell else foot.mass
    up = np.array([0.0, 0.0, mass * float(np.linalg.norm(robot.model.gravity.linear))])
    weight = np.concatenate([up, np.cross(placement.actInv(foot.lever), up)])
    wrench: Array = np.asarray(ankle_wrench, dtype=np.float64) @ action.T + weight
    return wrench


def centre_of_pressure(wrench: ArrayLike, least: float) -> Array:
    """Return the CoP (..., 2) [m] of sole wrenches (..., 6); NaN where the normal force is at most ``least`` [N]."""
    wrench = np.asarray(wrench, dtype=np.float64)
    force = np.where(wrench[..., 2] > least, wrench[..., 2], np.nan)
    return np.stack([-wrench[..., 4] / force, wrench[..., 3] / force], axis=-1)


def feet_with_ankles_only(recording: Recording) -> list[int]:
    """Return the feet with measurements of ankle sensors but without sole wrenches."""
    ankle, sole = (np.isfinite(values).any(axis=(0, 2)) for values in (recording.ankle_wrench, recording.wrench))
    return np.flatnonzero(ankle & ~sole).tolist()


def fill_from_ankles(recording: Recording, robot: Robot) -> bool:
    """Fill sole wrenches and CoP of a robot's recording from its ankle sensors; return whether any were missing.

    Feet that have sole wrenches, which only a simulator measures, are not changed. Neither is a recording whose feet
    are not those of the robot.
    """
    if list(recording.feet) != [sole.name for sole in robot.soles]:
        return False
    feet = feet_with_ankles_only(recording)
    for k in feet:
        recording.wrench[:, k] = sole_wrench(robot, k, recording.ankle_wrench[:, k])
        recording.cop[:, k] = centre_of_pressure(recording.wrench[:, k], CARRIES * robot.weight)
    return bool(feet)
