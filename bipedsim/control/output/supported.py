"""The dynamics of a robot on feet that rest, from what the robot measures: joints, IMU and the load of its feet.

With the rows J of what rests, M a + nle + D v = S^T u + J^T lam and J a + J' v = 0 leave (hurmuzlu2001 eq. 1 with
active constraints, adubredu eq. 10-11)

    a = A u + b,  A = P M^-1 S^T,  b = -P M^-1 (nle + D v) - X J' v,  X = M^-1 J^T (J M^-1 J^T)^+,  P = 1 - X J

Redundant rows, as of two feet or of a robot in a plane, cost nothing: the pseudo-inverse takes what is independent.
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
"""Singular values below this share of the largest are zero: rows that say the same, torques that do the same."""
LEAST_PRESSURE = 0.05
"""Of its foot's part of the weight, a point of a walker presses at least this share."""
PULL = 1e-9
"""Share of the weight that is rounding."""
LEVEL = 5e-3
"""Before the first measured load, feet not higher than this above the lowest one stand [m]."""

_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
_LOCAL = pin.ReferenceFrame.LOCAL


class Task(NamedTuple):
    """Outputs y that are to accelerate as wanted; m of them.

    Attributes:
        rows: (m, nv) H with y' = H v.
        bias: (m,) H' v, their acceleration at constant velocities.
        wanted: (m,) y''.
    """

    rows: Array
    bias: Array
    wanted: Array


class RestingPoint(NamedTuple):
    """A frame, by its placement in a joint, and how many components of its velocity are zero, linear ones first."""

    joint_id: int
    placement: pin.SE3
    size: int


class LoadedFeet:
    """Which feet carry, by the force along the normal of their soles, with hysteresis.

    Args:
        robot: The robot.

    Attributes:
        loaded: (K,) the answer of the last tick.
    """

    def __init__(self, robot: Robot) -> None:
        self.loaded: Flags = np.zeros(len(robot.soles), dtype=np.bool_)
        pairs = zip(robot.soles, robot.placement_joint_ankle, strict=True)
        self._normals = np.array([ankle.rotation.T @ sole.placement_joint_sole.rotation[:, 2] for sole, ankle in pairs])
        self._weight = robot.weight

    def update(self, observation: Observation) -> Flags:
        """Return ``loaded`` after this tick."""
        force = np.einsum("ki,ki->k", self._normals, observation.foot_wrench[:, :3])
        limit = np.where(self.loaded, RELIEVED, CARRIES) * self._weight
        np.greater(force, limit, out=self.loaded)
        return self.loaded


class SupportedDynamics:
    """State and dynamics of a robot some of whose feet rest on the ground.

    Coordinates that nothing measures, the free flyer or passive joints, follow from the IMU and from the feet: angles
    turn the IMU as it is turned, velocities agree with the gyro and keep the feet where they are. Where the robot is in
    the world stays unknown, and no force depends on it.

    Args:
        robot: The robot.

    Attributes:
        q, v: (nq,), (nv,) the state; positions of the base are not known and 0.
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
        """Forget the attitude of before: where one is looked for, :meth:`place` begins with the last one."""
        self.q = pin.neutral(self._model)

    def place(self, observation: Observation) -> None:
        """Take in joint positions and the attitude of the IMU."""
        self.q[self._robot.idx_q] = observation.joint_position
        turned = self._imu_rotation(self.q)
        error = pin.log3(turned.T @ pin.Quaternion(observation.imu_orientation).toRotationMatrix())
        pin.computeJointJacobians(self._model, self._data, self.q)
        change = np.zeros(self._model.nv)
        change[self._unmeasured] = _solved(self._imu_jacobian(_LOCAL)[:, self._unmeasured], error)
        self.q = pin.integrate(self._model, self.q, change)

    def lowest_feet(self) -> Flags:
        """Return which feet (K,) are lowest, to ``LEVEL``, after :meth:`place`: they stand before any load is known.

        None of a robot that is fixed in the world: it needs no feet.
        """
        if not len(self._unmeasured):
            return np.zeros(len(self._robot.soles), dtype=np.bool_)
        pin.forwardKinematics(self._model, self._data, self.q)
        poses = [(self._data.oMi[sole.joint_id], sole.vertices_joint) for sole in self._robot.soles]
        heights = np.array([pose.translation[2] + (corners @ pose.rotation[2]).min() for pose, corners in poses])
        return heights < heights.min(initial=np.inf) + LEVEL

    def find_velocity(self, observation: Observation, resting: Flags) -> Array:
        """Fill the velocity alone, after :meth:`place`, with the feet of ``resting`` (K,) at rest.

        Returns:
            J (m, nv), the rows of what rests: its velocities [m/s, rad/s] are J v, in the axes of the world.
        """
        pin.computeJointJacobians(self._model, self._data, self.q)
        points = self._resting(resting)
        J = np.vstack([np.zeros((0, self._model.nv)), *(self._rows(point) for point in points)])
        self.v[:] = 0.0
        self.v[self._robot.idx_v] = observation.joint_velocity
        rows = np.vstack([self._imu_jacobian(_LOCAL), J])
        found = np.concatenate([observation.imu_angular_velocity, np.zeros(len(J))]) - rows @ self.v
        self.v[self._unmeasured] = _solved(rows[:, self._unmeasured], found)
        return J

    def update(self, observation: Observation, resting: Flags) -> None:
        """Fill velocity and dynamics after :meth:`place`, with the feet of ``resting`` (K,) at rest."""
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
        """Return the torques (nu,) within the effort limits that let the outputs accelerate as wanted.

        u = u0 + (H A)^+ (y'' - H' v - H (A u0 + b)), adubredu eq. 15 and hurmuzlu2001 eq. 56. Of several tasks the
        first comes first: a later one gets what torques are left that do not disturb it. Where torques are redundant,
        they differ least from ``start``; where outputs contradict each other or the feet, squares of the errors are
        least.

        Args:
            tasks: What is wanted, the most important first.
            start: (nu,) u0 [N.m].
        """
        u = start.copy()
        left = np.eye(len(u))
        for task in tasks:
            whole = task.rows @ self.A
            reach = whole @ left
            # What is left of rows that earlier tasks have used up is rounding, and must not be inverted.
            rounding, largest = RANK**0.5 * np.linalg.norm(whole), np.linalg.norm(reach)
            if largest <= rounding:
                continue
            inverse = np.linalg.pinv(reach, rcond=float(rounding / largest))
            u += left @ (inverse @ (task.wanted - task.bias - task.rows @ (self.A @ u + self.b)))
            left = left - left @ inverse @ reach
        return self._within_limits(u)

    def shared(self, u: Array, share: Array) -> Array:
        """Return the torques (nu,) within the effort limits that accelerate the robot as ``u`` does, with feet sharing.

        What no drive carries, r = (M a + nle + D v) of the unmeasured coordinates, the forces of the ground do: J^T f =
        r there. Of the forces that do, those with the least sum of f^2 / share are taken: along the line between two
        feet they are in proportion to ``share``, and under each foot the centre of pressure is as near to its middle.
        Points do not pull. Where without that there are no forces, as on one foot with the centre of pressure at its
        edge, the accelerations of the joints give way, as little as needed in the least-squares sense.

        Args:
            u: (nu,) [N.m].
            share: (K,) parts of the weight, 0 for feet that do not rest; their sum is 1. Only feet of points and blades
                have forces that can be compared.
        """
        passive, drives = self._unmeasured, self._robot.idx_v
        rests = [np.full(len(points), part) for points, part in zip(self._points, share, strict=True) if part > 0.0]
        parts = np.concatenate([np.zeros(0), *rests])
        foot = np.repeat(np.arange(len(rests)), [len(rest) for rest in rests])
        # On two feet the centre of pressure is between them, and a point may be without load.
        least = LEAST_PRESSURE * self._weight if len(rests) == 1 else 0.0
        carried = self._J[:, passive]
        wanted = self._M @ self.A, self._M @ self.b + self._forces
        loose = np.zeros(len(parts), np.bool_)
        for _ in range(2 * len(parts)):
            weight = np.repeat(np.where(loose, 0.0, parts), 3)
            spread = weight[:, None] * (carried @ np.linalg.pinv((carried.T * weight) @ carried, RANK, hermitian=True))
            pressing, pressed = spread @ wanted[0][passive], spread @ wanted[1][passive]
            normal = (pressing @ u + pressed)[2::3]
            worst = int(np.argmin(np.where(loose, np.inf, normal / parts)))
            others = ~loose & (np.arange(len(parts)) != worst)
            if normal[worst] < -PULL * self._weight and len(np.unique(foot[others])) > 1:
                loose[worst] = True
                continue
            short = least * parts - normal
            pulls = ~loose & (short > PULL * self._weight)
            if not pulls.any():
                break
            give = np.linalg.pinv(self.A[drives], RANK**0.5)
            u = u + give @ (np.linalg.pinv(pressing[2::3][pulls] @ give, RANK**0.5) @ short[pulls])
        force = pressing @ u + pressed
        return self._within_limits((wanted[0] @ u + wanted[1] - self._J.T @ force)[drives])

    def _within_limits(self, u: Array) -> Array:
        limit = self._robot.effort_limit
        return np.clip(u, -limit, limit)

    def tilt(self) -> tuple[Array, Array, Array]:
        """Return roll and pitch (2,) [rad] of the IMU's body from the nominal posture, rows (2, nv) and bias (2,).

        Roll and pitch are those of rotations about x, then y, then z of the world; pitch is not at +-90 degrees.
        """
        R = self._imu_rotation_now() @ self._nominal.T
        # Roll and pitch change with the angular velocity times E.
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
        """Return the rows of the velocity of ``point`` that are zero."""
        jacobian = pin.getFrameJacobian(self._model, self._data, point.joint_id, point.placement, _ALIGNED)
        rows: Array = jacobian[: point.size]
        return rows

    def _drift(self, point: RestingPoint) -> Array:
        """Return J' v of :meth:`_rows`."""
        model, data = self._model, self._data
        motion = pin.getFrameClassicalAcceleration(model, data, point.joint_id, point.placement, _ALIGNED)
        return np.asarray(motion.vector[: point.size])


def _solved(rows: Array, values: Array) -> Array:
    """Return the least-squares solution, of least norm where it is not unique."""
    return np.asarray(np.linalg.lstsq(rows, values, rcond=RANK)[0], dtype=np.float64)


def _resting_points(sole: Sole) -> tuple[RestingPoint, ...]:
    """Return what rests of a sole: all of a face, of a blade or a point the place of its vertices."""
    joint = sole.joint_id
    if sole.n_vertices > 2:
        return (RestingPoint(joint, sole.placement_joint_sole, 6),)
    return tuple(RestingPoint(joint, pin.SE3(np.eye(3), vertex), 3) for vertex in sole.vertices_joint)
