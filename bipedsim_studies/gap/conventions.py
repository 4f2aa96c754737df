"""Find IMUs and ankle sensors whose numbers have another meaning than ours: another sign, or no gravity."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array

COMPARED = 200
"""Maximum number of rows that are compared, evenly distributed."""
NEAR = (0.5, 1.5)
"""Acceleration over gravity of the rows that are compared, and of the median row of a robot on its feet."""
LOADED = 0.2
"""Share of the weight from which a foot is compared."""
AGAINST = -0.5
"""Cosine of the angle to the expected direction below which a vector has the other sign."""
HOW = "(docs/other_bag.md#signs)"
"""Page that says how to change signs."""


def convention_fault(
    robot: Robot, position: Array, orientation: Array, acceleration: Array, wrench: Array
) -> str | None:
    """Return a text with the sensors of a recording whose numbers have another sign, or lack gravity; None without.

    Rows and sensors without measurements do not count.

    Args:
        robot: The robot; nothing is compared if its base is not free.
        position: (n, nu) of the joints [rad].
        orientation: (n, 4) quaternion x, y, z, w of the IMU in the world.
        acceleration: (n, 3) of the IMU [m/s^2], against gravity.
        wrench: (n, K, 6) of the ankle sensors, of the ground on the foot [N], [N.m].
    """
    gravity = robot.weight / robot.mass
    low, high = (share * gravity for share in NEAR)
    sizes = np.linalg.norm(acceleration, axis=1)
    if not robot.free_flyer or not np.isfinite(sizes).any():
        return None
    usual = float(np.nanmedian(sizes))
    if not low < usual < high:
        return (
            f"has accelerations of the IMU with a median of {usual:.3g} m/s^2. They must contain gravity: "
            f"{gravity:.3g} m/s^2 upwards at rest {HOW}"
        )
    rows = np.flatnonzero((sizes > low) & (sizes < high) & np.isfinite(position).all(axis=1))
    rows = rows[np.linspace(0, len(rows) - 1, min(COMPARED, len(rows))).astype(np.int64)]
    along = [_median(column) for column in _along(robot, position[rows], acceleration[rows], wrench[rows]).T]
    against = [sole.name for sole, each in zip(robot.soles, along, strict=True) if each < AGAINST]
    if _is_upside_down(orientation[rows], acceleration[rows]):
        # Orientation and feet are against the accelerometer, or the orientation is against both.
        instead = "They must point up"
        if not against:
            instead = "Change their sign and that of the ankle wrenches, or convert an orientation with z downwards"
        return f"has accelerations of the IMU that point down at rest, by its orientation. {instead} {HOW}"
    if against:
        doubt = "" if np.isfinite(orientation[rows]).any() or len(against) < len(along) else ", or the IMU is"
        return (
            f"has ankle wrenches of {', '.join(against)} that pull the robot down: they are those of the foot on the "
            f"ground, and must be those of the ground on the foot{doubt} {HOW}"
        )
    return None


def _median(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else 0.0


def _is_upside_down(orientation: Array, acceleration: Array) -> bool:
    """Return whether the IMU accelerates downwards (n, 3) in the world, by its orientation (n, 4)."""
    known = np.isfinite(orientation).all(axis=1)
    ups = [
        (pin.Quaternion(*quaternion[[3, 0, 1, 2]]).normalized().matrix() @ each)[2] / np.linalg.norm(each)
        for quaternion, each in zip(orientation[known], acceleration[known], strict=True)
        if np.linalg.norm(quaternion) > 0.5
    ]
    return bool(ups) and float(np.median(ups)) < AGAINST


def _along(robot: Robot, position: Array, acceleration: Array, wrench: Array) -> Array:
    """Return the cosine (n, K) of the angle from the measured acceleration to the force on each foot.

    It is NaN if the foot carries less than ``LOADED`` of the weight, or if its force is not measured.
    """
    model, data, q = robot.model, robot.model.createData(), pin.neutral(robot.model)
    result = np.full(wrench.shape[:2], np.nan)
    for k in range(len(position)):
        q[robot.idx_q] = position[k]
        pin.forwardKinematics(model, data, q)
        up = data.oMi[robot.imu_joint_id].rotation @ robot.placement_joint_imu.rotation @ acceleration[k]
        for foot, joint in enumerate(robot.ankle_joint_ids):
            force = data.oMi[joint].rotation @ robot.placement_joint_ankle[foot].rotation @ wrench[k, foot, :3]
            size = float(np.linalg.norm(force))
            if size > LOADED * robot.weight:
                result[k, foot] = float(force @ up) / (size * float(np.linalg.norm(up)))
    return result
