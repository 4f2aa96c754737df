"""Joint accelerations for the tasks of feet, CoM, base and posture, by weighted least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.config import param
from bipedsim.control.walking.body import BodyArrays, FootStates, place_feet
from bipedsim.dynamics import Equations, fill_equations
from bipedsim.model import Robot
from bipedsim.numerics import (
    Array,
    Integers,
    assign,
    box,
    entry,
    kernel,
    mul_t,
    rotation_error,
    solve_positive_definite,
    zeros_of,
)

_PARTS = 8
"""Number of iterations to the posture in which the swing foot passes the stance foot."""
STANCE, SWING = 1, 2
"""Tasks of a foot: rest on the ground, or follow its target."""


@dataclass(frozen=True)
class TaskParams:
    """Weights and gains of the tasks."""

    stance_weight: float = param(1e6, "of the acceleration of a foot on the ground", low=0.0)
    stance_damping: float = param(20.0, "velocity gain of a foot on the ground", unit="1/s", low=0.0, live=True)
    swing_weight: float = param(1e4, "of the acceleration of the swing foot", low=0.0)
    swing_stiffness: float = param(400.0, "position gain of the swing foot", unit="1/s^2", low=0.0, live=True)
    swing_damping: float = param(40.0, "velocity gain of the swing foot", unit="1/s", low=0.0, live=True)
    swing_turn_stiffness: float = param(1600.0, "attitude gain of the swing foot", unit="1/s^2", low=0.0, live=True)
    swing_turn_damping: float = param(80.0, "angular velocity gain of the swing foot", unit="1/s", low=0.0, live=True)
    com_weight: float = param(1e4, "of the acceleration of the centre of mass", low=0.0)
    base_weight: float = param(1e3, "of the angular acceleration of the base", low=0.0)
    heading_weight: float = param(50.0, "the same about the vertical", low=0.0)
    base_stiffness: float = param(200.0, "attitude gain of the base", unit="1/s^2", low=0.0, live=True)
    base_damping: float = param(28.0, "angular velocity gain of the base", unit="1/s", low=0.0, live=True)
    momentum_weight: float = param(
        300.0, "of the moment of the ground about the vertical over the inertia: arms and waist counter-swing", low=0.0
    )
    posture_weight: float = param(5.0, "of joint accelerations towards the standing posture", low=0.0)
    posture_stiffness: float = param(100.0, "position gain of the posture", unit="1/s^2", low=0.0, live=True)
    posture_damping: float = param(20.0, "velocity gain of the posture", unit="1/s", low=0.0, live=True)
    regularisation: float = param(1e-4, "weight of all accelerations", low=1e-9)


class TaskTargets(NamedTuple):
    """Targets of the tasks, in the axes of the world.

    Attributes:
        foot: (K,) ``STANCE``, ``SWING`` or 0 for no task.
        R, p: (K, 3, 3), (K, 3) [m] pose of the swing foot.
        twist, acceleration: (K, 6) of the swing foot.
        com: (3,) acceleration of the centre of mass [m/s^2].
        R_base: (3, 3) attitude of the base.
        w_base: (3,) angular velocity of the base [rad/s].
        pivot: (2,) position of the vertical axis about which the ground reaction should have no moment [m].
        counter: (1,) weight of this task, 0 to 1.
        posture: (nu,) joint positions [rad].
    """

    foot: Annotated[Integers, "K"]
    R: Annotated[Array, "K", 3, 3]
    p: Annotated[Array, "K", 3]
    twist: Annotated[Array, "K", 6]
    acceleration: Annotated[Array, "K", 6]
    com: Annotated[Array, 3]
    R_base: Annotated[Array, 3, 3]
    w_base: Annotated[Array, 3]
    pivot: Annotated[Array, 2]
    counter: Annotated[Array, 1]
    posture: Array


class TaskArrays(NamedTuple):
    """Arrays of the kernels of :class:`WholeBody`.

    Attributes:
        body, feet, goal, gains: See the classes.
        idx_q, idx_v: (nu,) indices of the joints of the posture.
        limit: (nu,) effort limits [N.m].
        yaw_inertia: (1,) inertia of the standing robot about the vertical [kg.m^2].
        N, b: (nv, nv), (nv,) the weighted least squares N a = b; only the upper triangle of N is used.
        work: (3,) scratch.
        row: (nv,) scratch.
    """

    body: BodyArrays
    feet: FootStates
    goal: TaskTargets
    gains: TaskParams
    idx_q: Integers
    idx_v: Integers
    limit: Array
    yaw_inertia: Annotated[Array, 1]
    N: Annotated[Array, "v", "v"]
    b: Annotated[Array, "v"]
    work: Annotated[Array, 3]
    row: Annotated[Array, "v"]


@kernel
def _add_feet(t: TaskArrays):  # type: ignore[no-untyped-def]
    """Add the tasks J a + J' v = wanted of the feet: a damper for a stance foot, a PD law for a swing foot."""
    body, feet, goal, gains = t.body, t.feet, t.goal, t.gains
    for k in range(body.joint.shape[0]):
        if goal.foot[k] == 0:
            continue
        stance = goal.foot[k] == STANCE
        weight = gains.stance_weight if stance else gains.swing_weight
        assign(t.work, rotation_error(feet.R[k], goal.R[k]))
        for r in range(6):
            if stance:
                wanted = -gains.stance_damping * feet.twist[k, r]
            else:
                error = goal.p[k, r] - feet.p[k, r] if r < 3 else t.work[r - 3]
                rate = goal.twist[k, r] - feet.twist[k, r]
                stiffness = gains.swing_stiffness if r < 3 else gains.swing_turn_stiffness
                damping = gains.swing_damping if r < 3 else gains.swing_turn_damping
                wanted = goal.acceleration[k, r] + stiffness * error + damping * rate
            wanted -= feet.bias[k, r]
            J = feet.J[k, r]
            for i in range(body.columns.shape[1]):
                ci = body.columns[k, i]
                if ci < 0:
                    break
                scaled = weight * J[ci]
                t.b[ci] += scaled * wanted
                for j in range(i, body.columns.shape[1]):
                    cj = body.columns[k, j]
                    if cj < 0:
                        break
                    t.N[ci, cj] += scaled * J[cj]


@kernel
def _add_com(t: TaskArrays):  # type: ignore[no-untyped-def]
    """Add the task of the centre of mass.

    The first rows of M a + nle are the total force on the robot, in the axes of the base: m (c'' + g).
    """
    body, work = t.body, t.work
    pose = body.poses[1]
    for r in range(3):
        work[r] = -body.nle[r] / body.mass
        for x in range(3):
            up = body.g if x == 2 else 0.0
            work[r] += pose[3 * r + x] * (t.goal.com[x] + up)
    M0, M1, M2 = body.M[0], body.M[1], body.M[2]
    scale = t.gains.com_weight / body.mass
    for i in range(t.b.shape[0]):
        f0, f1, f2 = scale * M0[i], scale * M1[i], scale * M2[i]
        t.b[i] += f0 * work[0] + f1 * work[1] + f2 * work[2]
        row = t.N[i]
        for j in range(i, t.b.shape[0]):
            row[j] += (f0 * M0[j] + f1 * M1[j] + f2 * M2[j]) / body.mass


@kernel
def _add_momentum(t: TaskArrays):  # type: ignore[no-untyped-def]
    """Add the task that the ground reaction has no moment about the vertical axis through ``pivot``.

    While a leg swings, arms, waist or base swing against it, and the stance foot needs less torsion. The rows are those
    of the angular momentum about the CoM, from the ground reaction wrench M a + nle at the base, in its axes. The force
    at the CoM has its desired value, so the task does not change the motion of the CoM.
    """
    body, row, pivot = t.body, t.row, t.goal.pivot
    pose, com, force = body.poses[1], body.com, t.goal.com
    x = pose[9] - com[0]
    y = pose[10] - com[1]
    wanted = body.mass * ((com[1] - pivot[1]) * force[0] - (com[0] - pivot[0]) * force[1])
    for i in range(row.shape[0]):
        row[i] = 0.0
    for r in range(3):
        along = x * pose[3 * r + 1] - y * pose[3 * r]
        about = pose[3 * r + 2]
        wanted -= along * body.nle[r] + about * body.nle[3 + r]
        for i in range(row.shape[0]):
            row[i] += along * body.M[r, i] + about * body.M[3 + r, i]
    inertia = t.yaw_inertia[0]
    scale = t.goal.counter[0] * t.gains.momentum_weight / (inertia * inertia)
    for i in range(row.shape[0]):
        scaled = scale * row[i]
        t.b[i] += scaled * wanted
        for j in range(i, row.shape[0]):
            t.N[i, j] += scaled * row[j]


@kernel
def _add_base_and_posture(t: TaskArrays, q, v):  # type: ignore[no-untyped-def]
    """Add the tasks of base and posture: a spring and a damper on each row."""
    gains, goal = t.gains, t.goal
    R = t.body.poses[1, :9].reshape((3, 3)).T
    error = mul_t(R, rotation_error(R, goal.R_base))
    wanted = mul_t(R, goal.w_base)
    for r in range(3):
        rate = wanted[r] - v[3 + r]
        weight = gains.base_weight if r < 2 else gains.heading_weight
        t.N[3 + r, 3 + r] += weight
        t.b[3 + r] += weight * (gains.base_stiffness * error[r] + gains.base_damping * rate)
    for i in range(t.idx_v.shape[0]):
        c = t.idx_v[i]
        t.N[c, c] += gains.posture_weight
        spring = gains.posture_stiffness * (goal.posture[i] - q[t.idx_q[i]])
        t.b[c] += gains.posture_weight * (spring - gains.posture_damping * v[c])


@entry
def _update_feet(tasks, v):  # type: ignore[no-untyped-def]
    t = tasks.arrays
    place_feet(t.body, t.feet, v)


@entry
def _solve(tasks, q, v):  # type: ignore[no-untyped-def]
    """Solve for the accelerations and write them to ``b``; return whether there is a solution."""
    t = tasks.arrays
    for i in range(v.shape[0]):
        t.b[i] = 0.0
        for j in range(i, v.shape[0]):
            t.N[i, j] = 0.0
        t.N[i, i] = t.gains.regularisation
    _add_feet(t)
    _add_com(t)
    if t.goal.counter[0] * t.gains.momentum_weight > 0.0:
        _add_momentum(t)
    _add_base_and_posture(t, q, v)
    return solve_positive_definite(t.N, t.b)


@entry
def _fill_torques(tasks, a, wrench, tau):  # type: ignore[no-untyped-def]
    """Fill tau (nu,): M a + nle - J^T f of the actuated joints, with f (K, 6) in world axes at the soles.

    The torques are clipped to +- limit (nu,).
    """
    t = tasks.arrays
    for i in range(t.idx_v.shape[0]):
        c = t.idx_v[i]
        total = t.body.nle[c]
        for j in range(a.shape[0]):
            total += t.body.M[c, j] * a[j]
        for k in range(wrench.shape[0]):
            for r in range(6):
                total -= t.feet.J[k, r, c] * wrench[k, r]
        tau[i] = min(max(total, -t.limit[i]), t.limit[i])


class WholeBody:
    """Compute rigid-body dynamics and task-space control of one robot.

    Args:
        robot: The robot; free-flying, with feet.
        params: See :class:`TaskParams`.

    Attributes:
        body, feet, goal: See the classes. ``feet`` is valid after :meth:`update`; fill ``goal`` before
            :meth:`accelerations`.
    """

    def __init__(self, robot: Robot, params: TaskParams) -> None:
        self._model = model = robot.model
        equations = Equations.of_model(model)
        joints = equations.joints
        self._filled = box(equations)
        nv, count = model.nv, len(robot.soles)
        moves = [_columns(model, sole.joint_id) for sole in robot.soles]
        columns = np.full((count, max(map(len, moves))), -1, dtype=np.int64)
        for row, indices in zip(columns, moves, strict=True):
            row[: len(indices)] = indices
        centres = [sole.placement_joint_sole * pin.SE3(np.eye(3), np.append(sole.centre, 0.0)) for sole in robot.soles]
        self.body = BodyArrays(
            poses=joints.poses,
            twists=joints.twists,
            accelerations=joints.accelerations,
            origin=joints.origin,
            ancestors=equations.ancestors,
            depth=equations.depth,
            J=equations.J,
            M=equations.M,
            nle=equations.nle,
            com=equations.com,
            joint=np.array([sole.joint_id for sole in robot.soles], dtype=np.int64),
            R_sole=np.array([centre.rotation for centre in centres]),
            p_sole=np.array([centre.translation for centre in centres]),
            columns=columns,
            mass=robot.mass,
            g=robot.weight / robot.mass,
        )
        sizes = {"K": count, "v": nv}
        self.feet = zeros_of(FootStates, sizes)
        turned = np.tile(np.eye(3), (count, 1, 1))
        self.goal = zeros_of(TaskTargets, sizes, R=turned, R_base=np.eye(3), posture=robot.posture.copy())
        self.goal.foot[:] = STANCE
        tasks = zeros_of(
            TaskArrays,
            sizes,
            body=self.body,
            feet=self.feet,
            goal=self.goal,
            gains=params,
            idx_q=np.ascontiguousarray(robot.idx_q, dtype=np.int64),
            idx_v=np.ascontiguousarray(robot.idx_v, dtype=np.int64),
            limit=robot.effort_limit.copy(),
        )
        self._b = tasks.b
        self._arrays = tasks
        self._tasks = box(tasks)
        self.update(robot.q_nominal, np.zeros(nv))
        # The inertia refers to the CoM; the first rows of M are the mass times the motion of the CoM.
        tasks.yaw_inertia[0] = self.body.M[5, 5] - (self.body.M[:3, 5] @ self.body.M[:3, 5]) / robot.mass

    def tune(self, params: TaskParams) -> None:
        """Take other parameters between two updates."""
        self._tasks = box(self._arrays._replace(gains=params))

    def update(self, q: Array, v: Array) -> None:
        """Update dynamics and feet for (q, v), (nq,) and (nv,)."""
        fill_equations(self._filled, q, v)
        _update_feet(self._tasks, v)

    def accelerations(self, q: Array, v: Array) -> Array:
        """Return the accelerations (nv,) that fulfil ``goal`` best, at the (q, v) of :meth:`update`.

        Raises:
            ArithmeticError: The normal equations are not positive definite because a number is not finite.
        """
        if not _solve(self._tasks, q, v):
            raise ArithmeticError("the tasks of the whole body cannot be solved: a number is not finite")
        return self._b

    def swing_inertia(self, q: Array, foot: int) -> float:
        """Return kappa [s^2]: ZMP shift per horizontal acceleration of ``foot``, at ``q`` (nq,).

        The rest of the body follows the tasks, and the CoM rests. The value is the mean of both directions. Call
        :meth:`update` afterwards.
        """
        v = np.zeros(self._model.nv)
        rest, ahead, aside = (
            self._response(q, v, foot, (x, y, 0.0))[1] for x, y in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
        )
        return float(0.5 * (ahead[0] - rest[0] + aside[1] - rest[1]))

    def knee_inertia(self, q: Array, foot: int) -> float:
        """Return mu [s^2/m]: backward ZMP shift per squared forward speed of ``foot``, at ``q`` (nq,).

        The leg is bent most where its foot passes the other one, and there the rotation of thigh and shank begins to
        reverse. The conditions of :meth:`swing_inertia` apply.
        """
        v = np.zeros(self._model.nv)
        # The velocities for a foot speed of 1 m/s equal the accelerations from rest for 1 m/s^2.
        rest = (0.0, 0.0, 0.0)
        at_rest, zmp_at_rest = self._response(q, v, foot, rest)
        velocity = self._response(q, v, foot, (1.0, 0.0, 0.0))[0] - at_rest
        # The mean of both directions cancels the dampers of the tasks.
        moving = [self._response(q, direction * velocity, foot, rest)[1][0] for direction in (1.0, -1.0)]
        return float(zmp_at_rest[0] - 0.5 * sum(moving))

    def passing(self, q: Array, foot: int, rise: float, drop: float) -> Array:
        """Return q (nq,) with ``foot`` raised by ``rise`` and the CoM lowered by ``drop`` [m], as in mid-swing."""
        at_rest, feet, com = np.zeros(self._model.nv), self.feet.p, self.body.com
        self.update(q, at_rest)
        up = rise + feet[foot, 2] - feet[1 - foot, 2]
        low = com[2] - feet[1 - foot, 2] - drop
        for parts in range(_PARTS, 0, -1):
            # The response of the tasks from rest is linear, so accelerations can stand for displacements.
            still = self._response(q, at_rest, foot, (0.0, 0.0, 0.0))[0]
            level = feet[1 - foot, 2]
            asked, lifted = (0.0, 0.0, (up + level - feet[foot, 2]) / parts), (low + level - com[2]) / parts
            q = pin.integrate(self._model, q, self._response(q, at_rest, foot, asked, lifted)[0] - still)
        return np.asarray(q)

    def _response(
        self, q: Array, v: Array, foot: int, asked: tuple[float, float, float], lifted: float = 0.0
    ) -> tuple[Array, Array]:
        """Return accelerations (nv,) and ZMP (2,) [m] at (q, v).

        Args:
            q, v: (nq,), (nv,).
            foot: The swing foot.
            asked: Acceleration of the swing foot [m/s^2].
            lifted: Upward acceleration of the CoM [m/s^2].
        """
        goal = self.goal
        self.update(q, v)
        goal.foot[:] = STANCE
        goal.foot[foot] = SWING
        goal.R[:], goal.p[:], goal.twist[:] = self.feet.R, self.feet.p, self.feet.twist
        goal.com[:] = goal.w_base[:] = goal.acceleration[:] = 0.0
        goal.pivot[:], goal.counter[0] = self.feet.p[1 - foot, :2], 1.0
        goal.acceleration[foot, :3] = asked
        goal.com[2] = lifted
        pose = self.body.poses[1]
        base = pin.SE3(pose[:9].reshape(3, 3).T, pose[9:])
        goal.R_base[:] = base.rotation
        a = self.accelerations(q, v).copy()
        wrench = base.act(pin.Force((self.body.M @ a + self.body.nle)[:6]))
        goal.acceleration[:] = 0.0
        goal.foot[:] = STANCE
        return a, np.array([-wrench.angular[1], wrench.angular[0]]) / wrench.linear[2]

    def torques(self, a: Array, wrench: Array, tau: Array) -> None:
        """Fill ``tau`` (nu,) [N.m] for accelerations (nv,) under wrenches (K, 6) in world axes at the soles.

        The torques are clipped to the effort limits.
        """
        _fill_torques(self._tasks, a, wrench, tau)


def _columns(model: Any, joint: int) -> list[int]:
    """Return the columns of a Jacobian that move ``joint``, in ascending order."""
    columns: list[int] = []
    for above in list(model.supports[joint])[1:]:
        start = model.idx_vs[above]
        columns += range(start, start + model.nvs[above])
    return columns
