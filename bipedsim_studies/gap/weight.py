"""Compare the forces of the ankle sensors with the weight, to find sensors with the other sign."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array

COMPARED = 200
"""Maximum number of rows that are compared, evenly distributed."""
PULLS = -0.5
"""Share of the weight below which the ankle sensors have the other sign."""


def carried_share(robot: Robot, position: Array, acceleration: Array, wrench: Array) -> float:
    """Return the median share of the robot's weight that the ankle sensors carry, along the measured acceleration.

    Args:
        robot: The robot; its base is free.
        position: (n, nu) of the joints [rad].
        acceleration: (n, 3) of the IMU [m/s^2].
        wrench: (n, K, 6) of the ankle sensors [N], [N.m].

    Returns:
        1 if the robot stands, 0 if it hangs, -1 if it stands and the sensors have the other sign. NaN if no row has
        joint positions, acceleration and all forces.
    """
    forces = wrench[..., :3]
    present = [np.isfinite(each.reshape(len(position), -1)).all(axis=1) for each in (position, acceleration, forces)]
    rows = np.flatnonzero(np.all(present, axis=0))
    if not len(rows) or not robot.soles:
        return float("nan")
    model, data, q = robot.model, robot.model.createData(), pin.neutral(robot.model)
    of_imu, of_ankles = robot.placement_joint_imu.rotation, [each.rotation for each in robot.placement_joint_ankle]
    shares = []
    for row in rows[np.linspace(0, len(rows) - 1, min(COMPARED, len(rows))).astype(np.int64)]:
        q[robot.idx_q] = position[row]
        pin.forwardKinematics(model, data, q)
        weight = robot.mass * (data.oMi[robot.imu_joint_id].rotation @ of_imu @ acceleration[row])
        feet = zip(robot.ankle_joint_ids, of_ankles, forces[row], strict=True)
        force = np.sum([data.oMi[joint].rotation @ of_ankle @ each for joint, of_ankle, each in feet], axis=0)
        shares.append(float(force @ weight / max(weight @ weight, 1e-12)))
    return float(np.median(shares))


def sign_fault(robot: Robot, position: Array, acceleration: Array, wrench: Array) -> str | None:
    """Return the fault of ankle sensors that measure the foot on the ground, else None; see :func:`carried_share`."""
    share = carried_share(robot, position, acceleration, wrench) if robot.free_flyer else 0.0
    if not share < PULLS:
        return None
    return (
        f"has ankle wrenches that pull the robot down with {-100 * share:.0f} % of its weight. They are those of the "
        "foot on the ground, and must be those of the ground on the foot: change their sign (docs/other_bag.md)"
    )
