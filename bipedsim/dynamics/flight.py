"""Free flight of second order in h: momentum is conserved to rounding, and the centre of mass follows its parabola.

A semi-implicit step is of first order. It does not conserve momentum, because the total momentum also depends on the
configuration. A step in which no foot is in contact is therefore repeated by the midpoint rule. It evaluates the
equations of motion at the configuration and the velocity in the middle of the step. The displacement is h times the
mean velocity. Then the velocity and the position of the whole robot are corrected to match its momentum. The posture
and its rate stay unchanged. The base rotates with the mean of the angular velocities before and after the step. This
also conserves the energy of a rigid body to rounding (Simo and Wong, "Unconditionally stable algorithms for rigid body
dynamics that exactly preserve energy and momentum", Int. J. Numer. Methods Eng. 31, 1991).

Joint friction is implicit: D acts on v + theta dv, with theta = (1 + r) / (2 + r). Here r is h D divided by the inertia
that the joint moves. This is of second order for small r. For any r, the velocity decays by 1 / (1 + r + r^2 / 2).
Actuators with friction of their own use theta = 1, as in stance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.dynamics.equations import Equations, fill, gather_momentum
from bipedsim.dynamics.joints import FLOATS, UNIVERSE
from bipedsim.dynamics.loops import Loops, fill_loops, meet, read_loops
from bipedsim.dynamics.protocol import Part
from bipedsim.dynamics.rows import Rows, impose, orthonormalise
from bipedsim.dynamics.stops import Stops, end_at_limits, fill_rows, read_stops
from bipedsim.dynamics.tree import SPEED_LIMIT, Tree, drive, factor, reach_rows, solve_change
from bipedsim.model import Robot
from bipedsim.numerics import (
    Array,
    Box,
    Flags,
    assign,
    box,
    cross,
    entry,
    from_quaternion,
    kernel,
    mul,
    mul_t,
    product,
    ready,
    solve_cholesky,
    turn_quaternion,
    zeros_of,
)

ITERATIONS = 50
"""Maximum number of iterations of the attitude at the end of a step; each reduces the error by the factor h |w| / 2."""
SETTLED, FOUND = 1e-15, 1e-9
"""Relative changes of the angular velocity per iteration: rounding level that ends it, and level of success."""
ROUNDED = 1e-9
"""Scalar product below which two axes are perpendicular."""


class Flight(NamedTuple):
    """Store the state of flight of a robot and its required momentum.

    The first velocities of the tree move the whole robot. They belong to a free-flyer or, in planar models, to a chain
    of prismatic joints and the hinge perpendicular to them.

    Attributes:
        aloft: (1,) whether no foot was in contact in the last step.
        linear, angular: Number of first velocities that translate the whole robot, and number that then rotate it.
        pivot: Joint of the last of these velocities.
        mass: Mass of the robot [kg]. com: (3,) its centre of mass in the world at the beginning of the step [m].
        momentum, spin: (3,) required momentum [N.s] and angular momentum about the centre of mass [N.m.s], world axes.
        place: (3,) required position of the centre of mass [m].
    """

    aloft: Annotated[Flags, 1]
    linear: int
    angular: int
    pivot: int
    mass: float
    com: Array
    momentum: Annotated[Array, 3]
    spin: Annotated[Array, 3]
    place: Annotated[Array, 3]


class Course(NamedTuple):
    """Store a step in flight: its semi-implicit first solution, and its midpoint.

    Attributes:
        tree, flight, stops, loops: Those of the dynamics, at the beginning of the step.
        equations, middle, chains: Equations of motion, tree and loops at the midpoint; the equations are then reused
            for the end of the step.
        q, v: (nq,), (nv,) at the midpoint.
        viscous: (nv,) friction of the joints themselves, without that of the actuators [N.m.s/rad].
        theta, implicit: (nv,) fraction of the change of velocity on which friction acts, and damping times that.
        turned: (1,) whether the base rotates with the mean of the velocities before and after.
        before: (3,) angular velocity of the base at the beginning of the step [rad/s].
        attitude: (4,) quaternion of the base there.
        sum: (6,) momentum at the end, before the correction.
        R, axes: (3, 3) attitudes of the base before and after the correction.
        inertia, factor: (3, 3) inertia of the robot about its centre of mass in the axes of the base [kg.m^2], and a
            work array.
        error, turn: (3,) error of the angular momentum [N.m.s], and its correction [rad/s].
        turning: (4,) quaternion of the base at the end of the step.
    """

    tree: Tree
    flight: Flight
    stops: Stops
    loops: Loops
    equations: Equations
    middle: Tree
    chains: Loops
    q: Annotated[Array, "q"]
    v: Annotated[Array, "v"]
    viscous: Annotated[Array, "v"]
    theta: Annotated[Array, "v"]
    implicit: Annotated[Array, "v"]
    turned: Annotated[Flags, 1]
    before: Annotated[Array, 3]
    attitude: Annotated[Array, 4]
    sum: Annotated[Array, 6]
    R: Annotated[Array, 3, 3]
    axes: Annotated[Array, 3, 3]
    inertia: Annotated[Array, 3, 3]
    factor: Annotated[Array, 3, 3]
    error: Annotated[Array, 3]
    turn: Annotated[Array, 3]
    turning: Annotated[Array, 4]


@kernel
def look_ahead(f: Flight, t: Tree, v: Array) -> None:
    """Fill the required momentum and position at the end of the step from ``v`` (nv,) and the external forces.

    The first entries of M v are the linear momentum along the first axes and the angular momentum about the pivot. The
    first entries of the push are its wrench in the same axes.
    """
    if f.linear == 0:
        return
    h = t.h
    pose = t.poses[f.pivot]
    px = py = pz = lx = ly = lz = fx = fy = fz = nx = ny = nz = 0.0
    for a in range(f.linear + f.angular):
        total = 0.0
        for i in range(v.shape[0]):
            total += (t.M_rows[i, a] if i > a else t.M_rows[a, i]) * v[i]
        axis, push = t.J_rows[a], t.push[a]
        if a < f.linear:
            px, py, pz = px + total * axis[0], py + total * axis[1], pz + total * axis[2]
            fx, fy, fz = fx + push * axis[0], fy + push * axis[1], fz + push * axis[2]
        else:
            lx, ly, lz = lx + total * axis[3], ly + total * axis[4], lz + total * axis[5]
            nx, ny, nz = nx + push * axis[3], ny + push * axis[4], nz + push * axis[5]
    momentum, spin, force, torque = (px, py, pz), (lx, ly, lz), (fx, fy, fz), (nx, ny, nz)
    arm = (f.com[0] - pose[9], f.com[1] - pose[10], f.com[2] - pose[11])
    moment, of_force = cross(arm, momentum), cross(arm, force)
    for a in range(3):
        rate = f.mass * t.gravity[a] + force[a]
        f.place[a] = f.com[a] + h / f.mass * (momentum[a] + 0.5 * h * rate)
        f.momentum[a] = momentum[a] + h * rate
        f.spin[a] = spin[a] - moment[a] + h * (torque[a] - of_force[a])


@kernel
def _go_halfway(c: Course, q: Array, v: Array) -> None:
    """Fill the configuration and the velocity at the midpoint of a step, to second order."""
    t, s, h = c.tree, c.equations.joints, c.tree.h
    missing_time = h - c.loops.ahead[0]
    if c.loops.error.shape[0] > 0 and missing_time > 0.0:
        # The first solution has a velocity that is tangent to the loops at the midpoint of the displacement.
        meet(c.loops, t, c.loops.bias, -missing_time)
    else:
        c.loops.change[:] = 0.0
    for i in range(v.shape[0]):
        c.v[i] = v[i] + 0.5 * (t.x[i] + c.loops.change[i])
    for j in range(1, s.parent.shape[0]):
        n, i = s.idx_q[j], s.idx_v[j]
        if s.kind[j] == FLOATS:
            for a in range(3):
                c.turn[a] = 0.25 * h * (v[i + 3 + a] + c.v[i + 3 + a])
                # The equations do not depend on the position of the whole robot.
                c.q[n + a] = q[n + a]
            turn_quaternion(q[n + 3 :], c.turn, c.q[n + 3 :])
        else:
            c.q[n] = q[n] + 0.25 * h * (v[i] + c.v[i])


@entry
def _fly(boxed: Any, q: Array, v: Array, tau_joint: Array) -> float:
    """Advance ``v`` (nv,) in place over a step in flight from ``q`` (nq,); fill displacement and acceleration.

    The tree contains the semi-implicit first solution, with the change of velocity in ``x``.

    Returns:
        The largest velocity; if it is not finite or reaches ``SPEED_LIMIT``, ``v`` stays unchanged.
    """
    c = boxed.arrays
    t, b, h, first = c.tree, c.middle, c.tree.h, c.loops.error.shape[0]
    _go_halfway(c, q, v)
    fill(c.equations, c.q, c.v)
    for i in range(v.shape[0]):
        c.theta[i] = 1.0
        # An actuator linearises its friction about the velocity at the end of the step, so it has to act there.
        if t.damping[i] == c.viscous[i]:
            c.theta[i] = 1.0 / (2.0 - h * t.damping[i] * t.inverse[i] * t.inverse[i])
        c.implicit[i] = c.theta[i] * t.damping[i]
    factor(b, c.implicit, 1.0)
    drive(b, v, tau_joint, 1.0)
    b.rows.used[0] = 0
    if first > 0:
        fill_loops(c.chains, b, v, 0.5 * h)
    if c.stops.near[0]:
        # As with forces within the step, the velocity belongs to the end of the step.
        fill_rows(c.stops, b, q, v, Part.WITHIN.value, first)
        reach_rows(b, v, first)
        orthonormalise(b.rows, first)
    for i in range(v.shape[0]):
        b.x[i] = b.z[i]
    if b.rows.used[0] > 0:
        impose(b.rows, b.x, False)
    fastest = solve_change(b, b.x, v)
    if not fastest < SPEED_LIMIT:
        return fastest
    if c.flight.angular == 3:
        c.turned[0] = True
        assign(c.before, v[3:])
        for a in range(4):
            c.attitude[a] = q[3 + a]
    for i in range(v.shape[0]):
        t.step[i] = h * (v[i] + c.theta[i] * b.x[i])
        t.acceleration[i] = b.x[i] / h
    if c.stops.near[0]:
        read_stops(c.stops, b, first)
        end_at_limits(c.stops, t, q, v)
    if first > 0:
        read_loops(c.loops, b)
    for i in range(v.shape[0]):
        v[i] += b.x[i]
    return fastest


@entry
def _correct(boxed: Any, q: Array, v: Array) -> bool:
    """Correct position and velocity of the whole robot at the end (q, v) of a step, in place.

    The acceleration, which an IMU measures, is corrected with the velocity.

    Returns:
        Whether the iteration of the attitude converged.
    """
    c = boxed.arrays
    gather_momentum(c.equations, q, v, c.sum)
    converged = True
    if c.flight.angular == 3:
        converged = _correct_base(c, q, v)
    else:
        _correct_slides(c, q, v)
    c.turned[0] = False
    return converged


@kernel
def _correct_base(c: Course, q: Array, v: Array) -> bool:
    """Correct a robot with a free-flyer as in :func:`_correct`, in the base axes, where its inertia is constant."""
    f, t, com = c.flight, c.tree, c.equations.com
    from_quaternion(q[3:7], c.R)
    for a in range(4):
        c.turning[a] = q[3 + a]
    _fill_inertia(c)
    spin = mul_t(c.R, c.sum[3:])
    for a in range(3):
        assign(c.axes[a], c.R[a])
    last = (0.0, 0.0, 0.0)
    converged = not c.turned[0]
    for n in range(ITERATIONS + 1):
        wanted = mul_t(c.axes, f.spin)
        for a in range(3):
            c.error[a] = wanted[a] - spin[a]
        if not solve_cholesky(c.inertia, c.error, 3, c.factor, c.turn):
            c.turn[:] = 0.0
        change, size = 0.0, 0.0
        for a in range(3):
            change = max(change, abs(c.turn[a] - last[a]))
            size = max(size, abs(v[3 + a]))
        converged = converged or (n > 0 and change <= FOUND * size)
        if not c.turned[0] or n == ITERATIONS or (n > 0 and change <= SETTLED * size):
            break
        last = (c.turn[0], c.turn[1], c.turn[2])
        for a in range(3):
            c.error[a] = 0.5 * t.h * (c.before[a] + v[3 + a] + c.turn[a])
        turn_quaternion(c.attitude, c.error, c.turning)
        from_quaternion(c.turning, c.axes)
    momentum, wanted = mul_t(c.R, c.sum), mul_t(c.axes, f.momentum)
    arm = mul_t(c.R, (q[0] - com[0], q[1] - com[1], q[2] - com[2]))
    swing, place = cross(c.turn, arm), mul(c.axes, arm)
    for a in range(3):
        shift = swing[a] + (wanted[a] - momentum[a]) / f.mass
        v[a] += shift
        v[3 + a] += c.turn[a]
        t.acceleration[a] += shift / t.h
        t.acceleration[3 + a] += c.turn[a] / t.h
        q[a] = f.place[a] + place[a]
    for a in range(4):
        q[3 + a] = c.turning[a]
    return converged


@kernel
def _fill_inertia(c: Course) -> None:
    """Fill the inertia of the robot about its centre of mass, in the axes ``R``."""
    whole, o, com = c.equations.composite[0], c.equations.joints.origin, c.equations.com
    m, x, y, z = whole[0], com[0] - o[0], com[1] - o[1], com[2] - o[2]
    c.factor[0, 0], c.factor[1, 1], c.factor[2, 2] = (
        whole[4] - m * (y * y + z * z),
        whole[6] - m * (x * x + z * z),
        whole[9] - m * (x * x + y * y),
    )
    c.factor[0, 1] = c.factor[1, 0] = whole[5] + m * x * y
    c.factor[0, 2] = c.factor[2, 0] = whole[7] + m * x * z
    c.factor[1, 2] = c.factor[2, 1] = whole[8] + m * y * z
    product(c.factor, c.R, c.axes)
    for a in range(3):
        assign(c.inertia[a], mul_t(c.axes, (c.R[0, a], c.R[1, a], c.R[2, a])))


@kernel
def _correct_slides(c: Course, q: Array, v: Array) -> None:
    """Correct a robot as in :func:`_correct` whose root is a chain of prismatic joints and a perpendicular hinge."""
    f, t, com, S = c.flight, c.tree, c.equations.com, c.equations.joints.S
    shift = (
        (f.momentum[0] - c.sum[0]) / f.mass,
        (f.momentum[1] - c.sum[1]) / f.mass,
        (f.momentum[2] - c.sum[2]) / f.mass,
    )
    if f.angular == 1:
        pose, n = c.equations.joints.poses[f.pivot], f.linear
        for a in range(3):
            for b in range(3):
                c.R[a, b] = 1.0 if a == b else 0.0
        _fill_inertia(c)
        axis = S[n, 3:]
        of_axis, deficit, inertia = mul(c.inertia, axis), 0.0, 0.0
        for a in range(3):
            deficit += axis[a] * (f.spin[a] - c.sum[3 + a])
            inertia += axis[a] * of_axis[a]
        change = deficit / inertia
        swing = cross(axis, (pose[9] - com[0], pose[10] - com[1], pose[11] - com[2]))
        shift = (shift[0] + change * swing[0], shift[1] + change * swing[1], shift[2] + change * swing[2])
        v[n] += change
        t.acceleration[n] += change / t.h
    for i in range(f.linear):
        change = way = 0.0
        for a in range(3):
            change += S[i, a] * shift[a]
            way += S[i, a] * (f.place[a] - com[a])
        v[i] += change
        t.acceleration[i] += change / t.h
        q[i] += way


class Airborne:
    """Take the steps of a robot in flight.

    Args:
        robot: The robot.
        tree, stops, loops: Those of its dynamics.
        com: (3,) live array with its centre of mass at the beginning of a step [m].

    Attributes:
        flight: State of flight and required momentum, filled by every step.
    """

    def __init__(self, robot: Robot, tree: Tree, stops: Stops, loops: Loops, com: Array) -> None:
        model = robot.model
        linear, angular, pivot = _root(robot)
        mass = pin.computeTotalMass(model)
        self.flight: Flight = zeros_of(Flight, {}, linear=linear, angular=angular, pivot=pivot, mass=mass, com=com)
        equations = Equations.of_model(model)
        s = equations.joints
        rows, nv = len(tree.rows.goal), model.nv
        sizes = {"v": nv, "D": equations.ancestors.shape[1], "K": len(tree.leaf)}
        there: dict[str, Any] = {
            "M_rows": equations.M,
            "nle": equations.nle,
            "J_rows": equations.J,
            "poses": s.poses,
            "twists": s.twists,
            "accelerations": s.accelerations,
            "origin": s.origin,
            "rows": zeros_of(Rows, {**sizes, "R": rows}),
        }
        of_tree = ("L", "inverse", "z", "x", "Y", "acceleration", "step")
        there |= {name: np.zeros_like(getattr(tree, name)) for name in of_tree}
        of_loops = ("rows", "error", "bias", "impulse", "ahead", "axes", "other", "change")
        self._course: Course = zeros_of(
            Course,
            {"q": model.nq, "v": nv},
            tree=tree,
            flight=self.flight,
            stops=stops,
            loops=loops,
            equations=equations,
            middle=tree._replace(**there),
            chains=loops._replace(**{name: np.zeros_like(getattr(loops, name)) for name in of_loops}),
            viscous=robot.joint_damping.copy(),
        )
        self._boxed: Box = box(self._course)
        self._fly: Callable[..., float] = _fly
        self._correct: Callable[..., bool] = _correct

    def ready(self) -> None:
        """Load or compile both kernels."""
        vector = self._course.v
        self._fly = ready(_fly, self._boxed, vector, vector, vector)
        self._correct = ready(_correct, self._boxed, vector, vector)

    def fly(self, q: Array, v: Array, tau_joint: Array) -> float:
        """Take a step in flight from (q, v), (nq,) and (nv,), under the torques (nu,).

        Returns:
            The largest velocity; if it is not finite or reaches ``SPEED_LIMIT``, ``v`` stays unchanged.
        """
        return self._fly(self._boxed, q, v, tau_joint)

    def correct(self, q: Array, v: Array) -> bool:
        """Correct the end (q, v) of a step in place, (nq,) and (nv,); return whether the attitude converged."""
        return self.flight.linear == 0 or self._correct(self._boxed, q, v)


def _root(robot: Robot) -> tuple[int, int, int]:
    """Return how many first velocities translate the whole robot, how many rotate it, and the joint of the last one.

    These velocities have no actuator, friction, reflected inertia or limits, so only gravity and pushes act along them.
    """
    model = robot.model
    if any(UNIVERSE in loop.joints for loop in robot.loops):
        return 0, 0, UNIVERSE
    if robot.free_flyer:
        return 3, 3, 1
    data = model.createData()
    J = pin.computeJointJacobians(model, data, pin.neutral(model)).reshape(6, model.nv)
    axes: list[np.ndarray[Any, Any]] = []
    for j in range(1, model.njoints):
        n = len(axes)
        i, limits = (
            model.idx_vs[j],
            (model.lowerPositionLimit[model.idx_qs[j]], model.upperPositionLimit[model.idx_qs[j]]),
        )
        acts = i in robot.idx_v or robot.joint_damping[i] != 0.0 or model.armature[i] != 0.0
        acts = acts or np.isfinite(limits).any()
        carries = model.parents[j] == j - 1 and min(model.parents[j + 1 :], default=j) >= j
        if acts or not carries or any(model.inertias[k].mass > 0.0 for k in range(1, j)):
            break
        slides, axis = not J[3:, i].any(), J[:3, i]
        if slides and np.abs([earlier @ axis for earlier in axes]).max(initial=0.0) < ROUNDED:
            axes.append(axis)
            continue
        if n == 2 and not slides and np.abs([earlier @ J[3:, i] for earlier in axes]).max() < ROUNDED:
            return 2, 1, j
        break
    return len(axes), 0, len(axes)
