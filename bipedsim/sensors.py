"""What a robot measures: encoders, IMU and ankle force-torque, from the state and the contact of one step."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numba import njit
from numpy.typing import NDArray

from bipedsim.contact.base import ContactResult
from bipedsim.robot import Robot
from bipedsim.robot_io import Observation

Array = NDArray[np.float64]


@njit(cache=True)
def _quaternion(R, out):
    """Fill ``out`` (4,) with the unit quaternion x y z w, w >= 0, of the rotation matrix R (3, 3)."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    if trace > 0.0:
        w = 0.5 * np.sqrt(1.0 + trace)
        out[0] = (R[2, 1] - R[1, 2]) / (4.0 * w)
        out[1] = (R[0, 2] - R[2, 0]) / (4.0 * w)
        out[2] = (R[1, 0] - R[0, 1]) / (4.0 * w)
        out[3] = w
        return
    i = 0
    if R[1, 1] > R[0, 0]:
        i = 1
    if R[2, 2] > R[i, i]:
        i = 2
    j = (i + 1) % 3
    k = (i + 2) % 3
    x = 0.5 * np.sqrt(1.0 + R[i, i] - R[j, j] - R[k, k])
    w = (R[k, j] - R[j, k]) / (4.0 * x)
    sign = 1.0 if w >= 0.0 else -1.0
    out[i] = sign * x
    out[j] = sign * (R[i, j] + R[j, i]) / (4.0 * x)
    out[k] = sign * (R[i, k] + R[k, i]) / (4.0 * x)
    out[3] = sign * w


@njit(cache=True)
def _imu(rotation, v, a, imu_R, imu_p, quaternion, gyro, accelerometer):
    """Fill what an IMU fixed to a joint measures.

    Args:
        rotation: (3, 3) transposed rotation of the joint in the world.
        v, a: (6,) spatial velocity and gravity-compensated spatial acceleration of the joint, linear first, in its
            own frame.
        imu_R, imu_p: IMU frame in the joint.
        quaternion, gyro, accelerometer: out.
    """
    R = np.zeros((3, 3))
    for x in range(3):
        for y in range(3):
            for i in range(3):
                R[x, y] += rotation[i, x] * imu_R[i, y]
    _quaternion(R, quaternion)
    w = v[3:6]
    dw = a[3:6]
    # Velocity of the IMU's origin; the classical acceleration is the spatial one plus w x v.
    ux = v[0] + w[1] * imu_p[2] - w[2] * imu_p[1]
    uy = v[1] + w[2] * imu_p[0] - w[0] * imu_p[2]
    uz = v[2] + w[0] * imu_p[1] - w[1] * imu_p[0]
    ax = a[0] + dw[1] * imu_p[2] - dw[2] * imu_p[1] + w[1] * uz - w[2] * uy
    ay = a[1] + dw[2] * imu_p[0] - dw[0] * imu_p[2] + w[2] * ux - w[0] * uz
    az = a[2] + dw[0] * imu_p[1] - dw[1] * imu_p[0] + w[0] * uy - w[1] * ux
    for i in range(3):
        gyro[i] = imu_R[0, i] * w[0] + imu_R[1, i] * w[1] + imu_R[2, i] * w[2]
        accelerometer[i] = imu_R[0, i] * ax + imu_R[1, i] * ay + imu_R[2, i] * az


@njit(cache=True)
def _ankle_wrenches(joint_forces, sole_wrench, sole_to_ankle, joint_to_ankle, out):
    """Fill ``out`` (K, 6), in the ankle frames: the ground's wrench less what the foot needs to hang and move."""
    for k in range(out.shape[0]):
        for r in range(6):
            total = 0.0
            for c in range(6):
                total += sole_to_ankle[k, r, c] * sole_wrench[k, c] - joint_to_ankle[k, r, c] * joint_forces[k][c]
            out[k, r] = total


@njit(cache=True)
def _force_plates(rotations, translations, placement_R, placement_p, impulse, cop, poses, cop_world):
    """Fill the pose of every sole and the centre of pressure of all feet, in the world.

    Args:
        rotations, translations: Per foot, transposed rotation (3, 3) and translation (3,) of its joint in the world.
        placement_R, placement_p: (K, 3, 3), (K, 3) sole frame in that joint.
        impulse, cop: (K, 6), (K, 2) of the contact.
        poses: (K, 7) out, position and quaternion x y z w. cop_world: (3,) out, NaN in the air.
    """
    R = np.zeros((3, 3))
    cop_world[:] = 0.0
    total = 0.0
    for k in range(poses.shape[0]):
        for x in range(3):
            poses[k, x] = translations[k][x]
            for y in range(3):
                poses[k, x] += rotations[k][y, x] * placement_p[k, y]
                R[x, y] = 0.0
                for i in range(3):
                    R[x, y] += rotations[k][i, x] * placement_R[k, i, y]
        _quaternion(R, poses[k, 3:])
        fz = impulse[k, 2]
        if fz > 0.0:
            for x in range(3):
                cop_world[x] += fz * (poses[k, x] + R[x, 0] * cop[k, 0] + R[x, 1] * cop[k, 1])
            total += fz
    for x in range(3):
        cop_world[x] = cop_world[x] / total if total > 0.0 else np.nan


class Sensors:
    """Fills one Observation from the state; ideal sensors, no noise.

    Args:
        robot: The robot; gives joint order, IMU and ankle frames.
    """

    def __init__(self, robot: Robot) -> None:
        self._model = robot.model
        self._data = data = robot.model.createData()
        self._idx_q = robot.idx_q
        self._idx_v = robot.idx_v
        # Live views of pinocchio's data, refilled by every call of RNEA.
        imu = robot.imu_joint_id
        self._imu_views = (
            np.asarray(data.oMi[imu].rotation).T,
            data.v[imu].vector,
            data.a_gf[imu].vector,
            np.ascontiguousarray(robot.placement_joint_imu.rotation),
            np.ascontiguousarray(robot.placement_joint_imu.translation),
        )
        self._joint_forces = tuple(data.f[joint].vector for joint in robot.ankle_joint_ids)
        ankles = robot.placement_joint_ankle
        self._sole_to_ankle = np.array(
            [
                ankle.actInv(sole.placement_joint_sole).toDualActionMatrix()
                for ankle, sole in zip(ankles, robot.soles, strict=True)
            ]
        )
        self._sole_views = (
            tuple(np.asarray(data.oMi[sole.joint_id].rotation).T for sole in robot.soles),
            tuple(np.asarray(data.oMi[sole.joint_id].translation) for sole in robot.soles),
            np.array([sole.placement_joint_sole.rotation for sole in robot.soles]),
            np.array([sole.placement_joint_sole.translation for sole in robot.soles]),
        )
        self._joint_to_ankle = np.array([ankle.inverse().toDualActionMatrix() for ankle in ankles])
        self.observation = Observation.zeros(robot.nu, len(robot.soles))

    def measure(self, t: float, q: Array, v: Array, a: Array, tau_joint: Array, contact: ContactResult) -> Observation:
        """Return what the robot measures at time ``t``; the observation is overwritten by the next call.

        Args:
            t: Time [s].
            q, v: State after the step, (nq,) and (nv,).
            a: (nv,) mean acceleration over the step, (v+ - v) / h.
            tau_joint: (nu,) torque applied over the step [N.m].
            contact: What the ground did over the step.
        """
        obs = self.observation
        obs.t = t
        q.take(self._idx_q, out=obs.joint_position)
        v.take(self._idx_v, out=obs.joint_velocity)
        obs.joint_effort[:] = tau_joint
        # After RNEA, f of the ankle joint is what the foot needs from the leg and the ground together, and a_gf holds
        # accelerations less gravity.
        pin.rnea(self._model, self._data, q, v, a)
        # RNEA leaves the placements in the world alone.
        pin.forwardKinematics(self._model, self._data, q)
        _imu(*self._imu_views, obs.imu_orientation, obs.imu_angular_velocity, obs.imu_linear_acceleration)
        _ankle_wrenches(self._joint_forces, contact.wrench, self._sole_to_ankle, self._joint_to_ankle, obs.foot_wrench)
        return obs

    def restore(self, q: Array, observation: Observation) -> Observation:
        """Go back to an earlier observation, measured at configuration ``q`` (nq,), and return it."""
        pin.forwardKinematics(self._model, self._data, q)
        self.observation = observation.copy()
        return self.observation

    def force_plates(self, contact: ContactResult) -> tuple[Array, Array]:
        """Return sole poses (K, 7) and overall CoP (3,), NaN in the air, in the world, at the last measurement."""
        poses = np.empty((len(self._joint_forces), 7))
        cop_world = np.empty(3)
        _force_plates(*self._sole_views, contact.impulse, contact.cop, poses, cop_world)
        return poses, cop_world
