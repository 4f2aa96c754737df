"""Let a planar biped adapt its masses while it walks, by the law of Slotine and Li with resting feet.

J are the rows of the resting feet, and Z spans their null space (J Z = 0). Let s be the part of e' + slope e in Z,
v_r = v - s, and a_r the desired change of v_r. The forces of the estimated dynamics,

    Y belief = M (a_r - damping s) + C(q, v) v_r + g,

are distributed between ground and actuators. Let V = s^T M s / 2 + sum (belief - truth)^2 / (2 gain). While the feet
rest, V decreases at the rate damping s^T M s if the estimates change by -gain Y^T s. The ground does no work on s,
because J s = 0.

With true estimates, this is the computed torque of eq. 56 with the poles -slope and -damping. With constant wrong
estimates, it is computed torque with a wrong model.

J.-J. Slotine, W. Li: On the adaptive control of robot manipulators. International Journal of Robotics Research 6(3),
    1987.
Y. Hurmuzlu, F. Genot, B. Brogliato: Modeling, stability and control of biped robots: a general framework. INRIA, 2001,
    section 5.2.1: any adaptive technique of manipulators can be applied to the smooth phases of bipeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pinocchio as pin

from bipedsim.control.output import LoadedFeet, SupportedDynamics
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Command, Observation

RANK = 1e-9
EARLY = 0.02
"""Fraction of the weight for a foot that touches down before its planned load."""


@dataclass(frozen=True)
class AdaptiveGains:
    """Gains of the adaptive law.

    Attributes:
        slope, damping: Negative poles of the error [1/s].
        gain: Adaptation gain for the whole mass [1/J]; the gain of a group is this value over its fraction of the mass.
    """

    slope: float = 10.0
    damping: float = 10.0
    gain: float = 0.01


class JointPlan(Protocol):
    """Joint angles of a walk over time, as provided by :class:`bipedsim.control.output.PlanarWalk`."""

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return angles (nu,) [rad], velocities and accelerations at ``t`` [s]."""

    def share(self, t: float) -> Array:
        """Return the desired fraction of the weight on each foot (2,)."""

    def coming(self, t: float) -> Flags:
        """Return which feet (2,) swing and may touch down."""


class BelievedDynamics:
    """Compute M a + C(q, v) w + g by link groups, which is linear in their masses.

    Args:
        robot: Robot without quaternions: all joints are revolute or prismatic.
        groups: For each name, the joints whose bodies form the group; the groups contain all bodies with a mass.

    Attributes:
        names: Names of the groups.
        masses: (g,) masses of the groups [kg].
    """

    def __init__(self, robot: Robot, groups: Mapping[str, Sequence[str]]) -> None:
        self._model, self._data = robot.model, robot.model.createData()
        self._damping = robot.joint_damping
        self.names = tuple(groups)
        parameters = np.array([inertia.toDynamicParameters() for inertia in list(robot.model.inertias)[1:]])
        self._bodies = np.zeros((parameters.size, len(groups)))
        for k, joints in enumerate(groups.values()):
            for joint in joints:
                i = robot.model.getJointId(joint) - 1
                self._bodies[10 * i : 10 * i + 10, k] = parameters[i]
        self.masses: Array = self._bodies[::10].sum(axis=0)

    def _dynamics(self, q: Array, v: Array, a: Array) -> Array:
        forces: Array = pin.computeJointTorqueRegressor(self._model, self._data, q, v, a) @ self._bodies
        return forces

    def by_group(self, q: Array, v: Array, w: Array, a: Array) -> Array:
        """Return Y (nv, g) of M a + C(q, v) w + g, where C w is bilinear and symmetric in v and w."""
        at_rest = np.zeros_like(v)
        forces: Array = self._dynamics(q, at_rest, a)
        forces = forces + 0.25 * (self._dynamics(q, v + w, at_rest) - self._dynamics(q, v - w, at_rest))
        return forces

    def known(self, w: Array, a: Array) -> Array:
        """Return the contribution of rotors and viscous friction (nv,), which is assumed to be known."""
        forces: Array = np.asarray(self._model.armature) * a + self._damping * w
        return forces


class AdaptiveWalk:
    """Controller that lets a planar biped walk a gait and adapts the masses.

    Args:
        robot: Planar biped such as ``planar_biped``. Its inertias are the truth, known up to the estimate.
        walk: Gait to follow.
        groups: See :class:`BelievedDynamics`.
        belief: (g,) initial estimates of masses and inertias over the true values.
        dt: Control period [s].
        delay: Standing time before the walk [s].
        gains: Gains of the law.
        adapts: Whether the estimates change.

    Attributes:
        belief: (g,) current estimates over the true values.
        s: (nv,) of the last tick.
        share: (2,) fraction of the weight on each foot in the last tick.
        readouts: ``tracking_error``, the largest error of a joint [rad].
    """

    def __init__(
        self,
        robot: Robot,
        walk: JointPlan,
        groups: Mapping[str, Sequence[str]],
        belief: Array,
        dt: float,
        delay: float = 0.5,
        gains: AdaptiveGains | None = None,
        adapts: bool = True,
    ) -> None:
        self._robot, self._dt, self._delay = robot, dt, delay
        self._gains = gains or AdaptiveGains()
        self._walk = walk
        self._state, self._feet = SupportedDynamics(robot), LoadedFeet(robot)
        self._drift_of = _VertexDrift(robot)
        self.dynamics = BelievedDynamics(robot, groups)
        rate = self._gains.gain * robot.mass / self.dynamics.masses
        self._rate: Array = rate if adapts else np.zeros_like(rate)
        self._first = np.array(belief, dtype=np.float64)
        self._drives = robot.idx_v
        self._passive = np.setdiff1d(np.arange(robot.model.nv), robot.idx_v)
        leg_joints = [set(robot.model.supports[sole.joint_id]) for sole in robot.soles]
        joints = [robot.model.getJointId(name) for name in robot.joint_names]
        self._legs = np.array([[float(joint in leg) for leg in leg_joints] for joint in joints])
        self._points = [sole.n_vertices for sole in robot.soles]
        self._t0, self._begun = 0.0, False
        self._landed = np.zeros(2, np.bool_)
        self._command = Command(np.zeros(robot.nu))
        self.belief: Array = self._first.copy()
        self.s: Array = np.zeros(robot.model.nv)
        self.share: Array = np.full(2, 0.5)
        self.readouts: dict[str, float] = {"tracking_error": 0.0}

    def reset(self, observation: Observation) -> None:
        """Reset the estimates to their initial values."""
        self._t0, self._begun = observation.t, False
        self._landed[:] = False
        self.belief = self._first.copy()

    def update(self, observation: Observation) -> Command:
        """Return the torques of one tick, and update the estimates."""
        t = observation.t - self._t0 - self._delay
        self.share = self._load_shares(observation, t)
        self._state.place(observation)
        J = self._state.find_velocity(observation, self.share > 0.0)
        q, v = self._state.q, self._state.v
        position, speed, bend = self._walk.at(t)
        error = observation.joint_position - position
        tau, learns = self.law(q, v, J, error, observation.joint_velocity - speed, bend)
        limit = self._robot.effort_limit
        self._command.tau_joint[:] = np.clip(tau, -limit, limit)
        self.belief = self.belief + self._dt * learns
        self.readouts["tracking_error"] = float(np.abs(error).max())
        return self._command

    def law(self, q: Array, v: Array, J: Array, error: Array, rate: Array, bend: Array) -> tuple[Array, Array]:
        """Return torques (nu,) [N.m] and the rate of change of the estimates (g,) [1/s], and store ``s``.

        Args:
            q, v: (nv,) state of the robot with J v = 0.
            J: (3 p, nv) rows of the vertices of the feet with a ``share``.
            error, rate: (nu,) errors of the joints [rad, rad/s].
            bend: (nu,) desired accelerations of the joints [rad/s^2].
        """
        slope, drives = self._gains.slope, self._drives
        Z = _null_space(J)
        # On two feet, the joint errors can contradict each other. Each leg is weighted by its load.
        weights = np.maximum(self._legs @ self.share, EARLY)
        projection = Z @ np.linalg.lstsq(weights[:, None] * Z[drives], np.diag(weights), rcond=RANK)[0]
        self.s = projection @ (rate + slope * error)
        v_r = v - self.s
        steady = -np.linalg.pinv(J, RANK) @ self._drift_of.both(q, v, v_r, self.share > 0.0)
        a_r = steady + projection @ (bend - slope * rate - steady[drives]) - self._gains.damping * self.s
        Y = self.dynamics.by_group(q, v, v_r, a_r)
        forces = Y @ self.belief + self.dynamics.known(v_r, a_r)
        return self._actuator_torques(J, forces), -self._rate * (Y.T @ self.s)

    def _load_shares(self, observation: Observation, t: float) -> Array:
        """Return the fraction of the weight on each foot (2,); a foot that touches down early has a small one."""
        if self._begun:
            self._feet.update(observation)
        self._begun = True
        share = self._walk.share(t)
        self._landed = self._walk.coming(t) & (self._landed | self._feet.loaded)
        carried: Array = np.where(self._landed, np.maximum(share, EARLY), share)
        return carried / carried.sum()

    def _actuator_torques(self, J: Array, forces: Array) -> Array:
        """Return the actuator torques (nu,) for forces (nv,); the ground exerts the rest with minimum f^2 / share."""
        loads = [np.full(3 * n, part) for n, part in zip(self._points, self.share, strict=True) if part > 0.0]
        weight, carried = np.concatenate(loads), J[:, self._passive]
        force = weight * (carried @ (np.linalg.pinv((carried.T * weight) @ carried, RANK) @ forces[self._passive]))
        torque: Array = (forces - J.T @ force)[self._drives]
        return torque


class _VertexDrift:
    """Drift J'(v) w of the vertices of the feet, bilinear in two velocities."""

    def __init__(self, robot: Robot) -> None:
        self._model, self._data = robot.model, robot.model.createData()
        self._points = [[(sole.joint_id, pin.SE3(np.eye(3), x)) for x in sole.vertices_joint] for sole in robot.soles]
        self._still = np.zeros(robot.model.nv)

    def _of(self, q: Array, v: Array, resting: Flags) -> Array:
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, q, v, self._still)
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        points = [point for points, rests in zip(self._points, resting, strict=True) if rests for point in points]
        return np.concatenate(
            [
                pin.getFrameClassicalAcceleration(model, data, joint, placement, axes).linear
                for joint, placement in points
            ]
        )

    def both(self, q: Array, v: Array, w: Array, resting: Flags) -> Array:
        """Return J'(v) w (m,), which is symmetric in v and w, for the feet in ``resting`` (2,)."""
        drift: Array = 0.25 * (self._of(q, v + w, resting) - self._of(q, v - w, resting))
        return drift


def _null_space(J: Array) -> Array:
    """Return an orthonormal basis (nv, k) of the velocities with J v = 0."""
    _, sizes, rows = np.linalg.svd(J)
    rank = int((sizes > RANK * sizes[0]).sum())
    basis: Array = rows[rank:].T
    return basis
