"""Dynamics of a robot on resting feet, from its measurements: joints, IMU and the load of the feet.

With the rows J of the resting feet, M a + nle + D v = S^T u + J^T lam and J a + J' v = 0 give (hurmuzlu2001 eq. 1 with
active constraints, adubredu eq. 10-11)

    a = A u + b,  A = P M^-1 S^T,  b = -P M^-1 (nle + D v) - X J' v,  X = M^-1 J^T (J M^-1 J^T)^+,  P = 1 - X J

Rows may be redundant, as those of two feet or of a planar robot: the pseudo-inverse uses only independent rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.control.loads import CARRIES, RELIEVED
from bipedsim.model import Robot, Sole
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Observation

RANK = 1e-9
"""Share of the largest singular value below which others count as zero: redundant rows or torques."""
LEAST_PRESSURE = 0.05
"""Minimum force on a contact point of a walk, as a share of its part of the foot's load."""
PULL = 1e-9
"""Share of the weight below which a force is rounding error."""
LEVEL = 5e-3
"""Height above the lowest foot up to which feet count as standing, before the first measured load [m]."""

_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
_LOCAL = pin.ReferenceFrame.LOCAL


class Task(NamedTuple):
    """Outputs y with desired accelerations; m of them.

    Attributes:
        rows: (m, nv) H with y' = H v.
        bias: (m,) H' v, their acceleration at constant velocities.
        wanted: (m,) desired y''.
    """

    rows: Array
    bias: Array
    wanted: Array


class RestingPoint(NamedTuple):
    """A frame, placed in a joint, and the number of its velocity components that are zero, linear ones first."""

    joint_id: int
    placement: pin.SE3
    size: int


class LoadedFeet:
    """Detect the loaded feet from the force along the normal of their soles, with hysteresis.

    Args:
        robot: The robot.

    Attributes:
        loaded: (K,) loaded feet of the last tick.
    """

    def __init__(self, robot: Robot) -> None:
        self.loaded: Flags = np.zeros(len(robot.soles), dtype=np.bool_)
        pairs = zip(robot.soles, robot.placement_joint_ankle, strict=True)
        self._normals = np.array([ankle.rotation.T @ sole.placement_joint_sole.rotation[:, 2] for sole, ankle in pairs])
        self._weight = robot.weight

    def update(self, observation: Observation) -> Flags:
        """Update ``loaded`` and return it."""
        force = np.einsum("ki,ki->k", self._normals, observation.foot_wrench[:, :3])
        limit = np.where(self.loaded, RELIEVED, CARRIES) * self._weight
        np.greater(force, limit, out=self.loaded)
        return self.loaded


class SupportedDynamics:
    """Compute state and dynamics of a robot with some feet at rest on the ground.

    The unmeasured coordinates, which are the free flyer or passive joints, follow from the IMU and the feet. Their
    angles match the IMU's attitude. Their velocities agree with the gyro and keep the resting feet in place. The
    position in the world stays unknown, and no force depends on it.

    Args:
        robot: The robot.

    Attributes:
        q, v: (nq,), (nv,) the state; unknown positions of the base are 0.
        A, b: (nv, nu), (nv,) a = A u + b.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model = model = robot.model
        self._data = model.createData()
        self.q = pin.neutral(model)
        self.v = np.zeros(model.nv)
        self.A = np.zeros((model.nv, robot.nu))
        self.b = np.zeros(model.nv)
        self._rest = np.zeros(model.nv)
        self._M = np.zeros((model.nv, model.nv))
        self._forces = np.zeros(model.nv)
        self._J = np.zeros((0, model.nv))
        self._unmeasured = np.setdiff1d(np.arange(model.nv), robot.idx_v)
        self._nominal = self._imu_rotation(robot.q_nominal)
        self._weight = robot.weight
        self._selection = np.eye(model.nv)[:, robot.idx_v]
        self._points = [_resting_points(sole) for sole in robot.soles]

    def reset(self) -> None:
        """Reset the attitude, from which :meth:`place` starts its solution."""
        self.q = pin.neutral(self._model)

    def place(self, observation: Observation) -> None:
        """Update the configuration from the joint positions and the attitude of the IMU."""
        self.q[self._robot.idx_q] = observation.joint_position
        turned = self._imu_rotation(self.q)
        error = pin.log3(turned.T @ pin.Quaternion(observation.imu_orientation).toRotationMatrix())
        pin.computeJointJacobians(self._model, self._data, self.q)
        change = np.zeros(self._model.nv)
        change[self._unmeasured] = _solved(self._imu_jacobian(_LOCAL)[:, self._unmeasured], error)
        self.q = pin.integrate(self._model, self.q, change)

    def lowest_feet(self) -> Flags:
        """Return the feet (K,) that are lowest, to ``LEVEL``; they count as standing before any load is known.

        Call :meth:`place` first. A robot that is fixed in the world has none, because it needs no feet.
        """
        if not len(self._unmeasured):
            return np.zeros(len(self._robot.soles), dtype=np.bool_)
        pin.forwardKinematics(self._model, self._data, self.q)
        poses = [(self._data.oMi[sole.joint_id], sole.vertices_joint) for sole in self._robot.soles]
        heights = np.array([pose.translation[2] + (corners @ pose.rotation[2]).min() for pose, corners in poses])
        return heights < heights.min(initial=np.inf) + LEVEL

    def find_velocity(self, observation: Observation, resting: Flags) -> Array:
        """Update only the velocity, with the feet of ``resting`` (K,) at rest; call :meth:`place` first.

        Returns:
            J (m, nv), the rows of the resting feet: their velocities [m/s, rad/s] are J v, in the axes of the world.
        """
        pin.computeJointJacobians(self._model, self._data, self.q)
        points = self._resting(resting)
        J = np.vstack([np.zeros((0, self._model.nv)), *(self._rows(point) for point in points)])
        self.v[:] = 0.0
        self.v[self._robot.idx_v] = observation.joint_velocity
        rows = np.vstack([self._imu_jacobian(_LOCAL), J])
        residual = np.concatenate([observation.imu_angular_velocity, np.zeros(len(J))]) - rows @ self.v
        self.v[self._unmeasured] = _solved(rows[:, self._unmeasured], residual)
        return J

    def update(self, observation: Observation, resting: Flags) -> None:
        """Update velocity and dynamics, with the feet of ``resting`` (K,) at rest; call :meth:`place` first."""
        model, data, robot = self._model, self._data, self._robot
        J = self.find_velocity(observation, resting)
        points = self._resting(resting)
        pin.forwardKinematics(model, data, self.q, self.v, self._rest)
        drift = np.concatenate([np.zeros(0), *(self._drift(point) for point in points)])
        pin.crba(model, data, self.q)
        forces = pin.nonLinearEffects(model, data, self.q, self.v) + robot.joint_damping * self.v
        M = np.triu(data.M) + np.triu(data.M, 1).T
        self._M, self._forces, self._J = M, forces, J
        free = np.linalg.solve(M, np.column_stack([self._selection, -forces, J.T]))
        nu = robot.nu
        X = free[:, nu + 1 :] @ np.linalg.pinv(J @ free[:, nu + 1 :], rcond=RANK, hermitian=True)
        held = free[:, : nu + 1] - X @ (J @ free[:, : nu + 1])
        self.A[:] = held[:, :nu]
        self.b[:] = held[:, nu] - X @ drift

    def torque(self, tasks: Iterable[Task], start: Array) -> Array:
        """Return the torques (nu,) within the effort limits for the desired output accelerations.

        u = u0 + (H A)^+ (y'' - H' v - H (A u0 + b)), adubredu eq. 15 and hurmuzlu2001 eq. 56. Tasks are ordered by
        priority: a later one uses only torques that do not disturb earlier ones. Redundant torques differ least from
        ``start``. If outputs contradict each other or the feet, the sum of squared errors is minimal.

        Args:
            tasks: The tasks, the most important first.
            start: (nu,) u0 [N.m].
        """
        u = start.copy()
        null_space = np.eye(len(u))
        for task in tasks:
            response = task.rows @ self.A
            reach = response @ null_space
            # If earlier tasks have used up the rows, the remainder is rounding error and must not be inverted.
            rounding, largest = RANK**0.5 * np.linalg.norm(response), np.linalg.norm(reach)
            if largest <= rounding:
                continue
            inverse = np.linalg.pinv(reach, rcond=float(rounding / largest))
            u += null_space @ (inverse @ (task.wanted - task.bias - task.rows @ (self.A @ u + self.b)))
            null_space = null_space - null_space @ inverse @ reach
        return self._within_limits(u)

    def shared(self, u: Array, share: Array) -> Array:
        """Return torques (nu,) within the effort limits for the accelerations of ``u``, with the load shared by feet.

        The ground reaction forces provide what no drive can: J^T f = r with r = M a + nle + D v of the unmeasured
        coordinates. Of these forces, those with the smallest sum of f^2 / share are chosen. Along the line between two
        feet they are proportional to ``share``, and under each foot the centre of pressure is close to its middle in
        the same sense.

        Points cannot pull. If no such forces exist, as on one foot with the centre of pressure at its edge, the joint
        accelerations change, by as little as needed in the least-squares sense.

        Args:
            u: (nu,) [N.m].
            share: (K,) shares of the weight, 0 for feet that do not rest; their sum is 1. Only point feet and line feet
                have forces that can be compared.
        """
        passive, drives = self._unmeasured, self._robot.idx_v
        point_shares = [
            np.full(len(points), part) for points, part in zip(self._points, share, strict=True) if part > 0.0
        ]
        parts = np.concatenate([np.zeros(0), *point_shares])
        foot = np.repeat(np.arange(len(point_shares)), [len(shares) for shares in point_shares])
        # On two feet the centre of pressure is between the feet, and a point may have no load.
        minimum = LEAST_PRESSURE * self._weight if len(point_shares) == 1 else 0.0
        carried = self._J[:, passive]
        required = self._M @ self.A, self._M @ self.b + self._forces
        released = np.zeros(len(parts), np.bool_)
        for _ in range(2 * len(parts)):
            weight = np.repeat(np.where(released, 0.0, parts), 3)
            spread = weight[:, None] * (carried @ np.linalg.pinv((carried.T * weight) @ carried, RANK, hermitian=True))
            pressing, pressed = spread @ required[0][passive], spread @ required[1][passive]
            normal = (pressing @ u + pressed)[2::3]
            worst = int(np.argmin(np.where(released, np.inf, normal / parts)))
            remaining = ~released & (np.arange(len(parts)) != worst)
            if normal[worst] < -PULL * self._weight and len(np.unique(foot[remaining])) > 1:
                released[worst] = True
                continue
            short = minimum * parts - normal
            pulls = ~released & (short > PULL * self._weight)
            if not pulls.any():
                break
            joint_response = np.linalg.pinv(self.A[drives], RANK**0.5)
            u = u + joint_response @ (np.linalg.pinv(pressing[2::3][pulls] @ joint_response, RANK**0.5) @ short[pulls])
        force = pressing @ u + pressed
        return self._within_limits((required[0] @ u + required[1] - self._J.T @ force)[drives])

    def _within_limits(self, u: Array) -> Array:
        limit = self._robot.effort_limit
        return np.clip(u, -limit, limit)

    def tilt(self) -> tuple[Array, Array, Array]:
        """Return roll and pitch (2,) [rad] of the IMU's body from the nominal posture, rows (2, nv) and bias (2,).

        The angles are rotations about x, then y, then z of the world. The pitch must not be +-90 degrees.
        """
        R = self._imu_rotation_now() @ self._nominal.T
        # The rates of roll and pitch are E times the angular velocity.
        roll, pitch, yaw = pin.rpy.matrixToRpy(R)
        c, s, tan, cos = np.cos(yaw), np.sin(yaw), np.tan(pitch), np.cos(pitch)
        E = np.array([[c / cos, s / cos, 0.0], [-s, c, 0.0]])
        J = self._imu_jacobian(_ALIGNED)
        w = J @ self.v
        d_pitch = E[1] @ w
        d_yaw = w[2] + tan * (c * w[0] + s * w[1])
        dE = np.array([[-s, c, 0.0], [-c, -s, 0.0]]) * d_yaw
        dE[0] = dE[0] / cos + E[0] * tan * d_pitch
        joint, placement = self._robot.imu_joint_id, self._robot.placement_joint_imu
        drift = pin.getFrameAcceleration(self._model, self._data, joint, placement, _ALIGNED).angular
        return np.array([roll, pitch]), E @ J, E @ drift + dE @ w

    def _imu_rotation(self, q: Array) -> Array:
        pin.forwardKinematics(self._model, self._data, q)
        return self._imu_rotation_now()

    def _imu_rotation_now(self) -> Array:
        turned: Array = self._data.oMi[self._robot.imu_joint_id].rotation @ self._robot.placement_joint_imu.rotation
        return turned

    def _imu_jacobian(self, axes: pin.ReferenceFrame) -> Array:
        """Return the rows (3, nv) of the angular velocity of the IMU."""
        joint, placement = self._robot.imu_joint_id, self._robot.placement_joint_imu
        jacobian: Array = pin.getFrameJacobian(self._model, self._data, joint, placement, axes)[3:]
        return jacobian

    def _resting(self, resting: Flags) -> list[RestingPoint]:
        return [point for points, rests in zip(self._points, resting, strict=True) if rests for point in points]

    def _rows(self, point: RestingPoint) -> Array:
        """Return the Jacobian of the velocity components of ``point`` that are zero."""
        jacobian = pin.getFrameJacobian(self._model, self._data, point.joint_id, point.placement, _ALIGNED)
        rows: Array = jacobian[: point.size]
        return rows

    def _drift(self, point: RestingPoint) -> Array:
        """Return J' v of :meth:`_rows`."""
        model, data = self._model, self._data
        motion = pin.getFrameClassicalAcceleration(model, data, point.joint_id, point.placement, _ALIGNED)
        return np.asarray(motion.vector[: point.size])


def _solved(rows: Array, values: Array) -> Array:
    """Return the least-squares solution with the smallest norm."""
    return np.asarray(np.linalg.lstsq(rows, values, rcond=RANK)[0], dtype=np.float64)


def _resting_points(sole: Sole) -> tuple[RestingPoint, ...]:
    """Return the resting points of a sole: the whole frame of a face, or each vertex of a line or point foot."""
    joint = sole.joint_id
    if sole.n_vertices > 2:
        return (RestingPoint(joint, sole.placement_joint_sole, 6),)
    return tuple(RestingPoint(joint, pin.SE3(np.eye(3), vertex), 3) for vertex in sole.vertices_joint)
