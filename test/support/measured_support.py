"""Measurements of a robot at rest."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.sim.io import Observation


def measured(robot: Robot, q: np.ndarray, contact: float = 1.0) -> Observation:
    """Return the measurements at rest at ``q``, with ``contact`` times the weight on the feet."""
    observation = Observation.zeros(robot.nu, len(robot.soles))
    observation.joint_position[:] = q[robot.idx_q]
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    imu = data.oMi[robot.imu_joint_id].rotation @ robot.placement_joint_imu.rotation
    observation.imu_orientation[:] = pin.Quaternion(imu).coeffs()
    for wrench, joint, ankle in zip(
        observation.foot_wrench, robot.ankle_joint_ids, robot.placement_joint_ankle, strict=True
    ):
        up = (data.oMi[joint].rotation @ ankle.rotation).T @ [0.0, 0.0, 1.0]
        wrench[:3] = contact * robot.weight / len(robot.soles) * up
    return observation
