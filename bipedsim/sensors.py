"""What a robot measures: encoders, IMU and ankle force-torque, from the state and the contact of one step."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.contact.base import ContactResult
from bipedsim.robot import Robot
from bipedsim.robot_io import Observation

Array = NDArray[np.float64]


class Sensors:
    """Fills one Observation from the state; ideal sensors, no noise.

    Args:
        robot: The robot; gives joint order, IMU and ankle frames.
    """

    def __init__(self, robot: Robot) -> None:
        self._model = robot.model
        self._data = robot.model.createData()
        self._idx_q = robot.idx_q
        self._idx_v = robot.idx_v
        self._imu_joint = robot.imu_joint_id
        self._imu = robot.placement_joint_imu
        self._gravity = robot.model.gravity.linear.copy()
        # Wrench of the ground from the sole to the ankle frame: (f, torque) at the ankle = X (f, torque) at the sole.
        self._ankles = []
        for k, sole in enumerate(robot.soles):
            ankle = robot.placement_joint_ankle[k]
            sole_to_ankle = ankle.actInv(sole.placement_joint_sole).toDualActionMatrix()
            joint_to_ankle = ankle.inverse().toDualActionMatrix()
            self._ankles.append((robot.ankle_joint_ids[k], sole_to_ankle, joint_to_ankle))
        self.observation = Observation.zeros(robot.nu, len(robot.soles))

    def measure(self, t: float, q: Array, v: Array, a: Array, tau_joint: Array, contact: ContactResult) -> Observation:
        """Return what the robot measures at time ``t``; the observation is overwritten by the next call.

        Args:
            t: Time [s].
            q, v: State after the step.
            a: (nv,) mean acceleration over the step, (v+ - v) / h.
            tau_joint: (nu,) torque applied over the step [N.m].
            contact: What the ground did over the step.
        """
        model, data = self._model, self._data
        obs = self.observation
        obs.t = t
        q.take(self._idx_q, out=obs.joint_position)
        v.take(self._idx_v, out=obs.joint_velocity)
        obs.joint_effort[:] = tau_joint
        # f of a joint after RNEA: what the body below it needs from above and from the ground together.
        pin.rnea(model, data, q, v, a)
        imu = data.oMi[self._imu_joint].act(self._imu)
        rotation = imu.rotation
        obs.imu_orientation[:] = pin.Quaternion(rotation).coeffs()
        motion = self._imu.actInv(data.v[self._imu_joint])
        # RNEA carries gravity as an upward acceleration of the world: the classical acceleration below is the specific force.
        spatial = self._imu.actInv(data.a_gf[self._imu_joint])
        obs.imu_angular_velocity[:] = motion.angular
        obs.imu_linear_acceleration[:] = spatial.linear + np.cross(motion.angular, motion.linear)
        for k, (joint, sole_to_ankle, joint_to_ankle) in enumerate(self._ankles):
            obs.foot_wrench[k] = sole_to_ankle @ contact.wrench[k] - joint_to_ankle @ data.f[joint].vector
        return obs
