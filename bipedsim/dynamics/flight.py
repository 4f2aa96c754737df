"""Free flight, of second order in h: momentum stays to rounding, and the centre of mass follows its parabola.

A semi-implicit step is of first order, and velocities of the base and the joints do not keep momentum: the sum of all
momenta goes with the configuration. A step in which no foot carries is therefore taken again, by the midpoint rule: the
equations of motion are those of the configuration and the velocity in the middle of the step, the way is the mean
velocity times h. Then the robot as a whole is given the velocity and the place that its momentum demands; its posture
and how that changes are left alone. The turn of the base goes with the mean of the velocities before and after, which
keeps the energy of a rigid body to rounding as well (Simo and Wong, "Unconditionally stable algorithms for rigid body
dynamics that exactly preserve energy and momentum", Int. J. Numer. Methods Eng. 31, 1991).

Friction of joints is implicit: D acts on v + theta dv, with theta = (1 + r) / (2 + r) and r = h D over the inertia that
the joint moves. That is of second order where r is small, and leaves 1 / (1 + r + r^2 / 2) of the velocity in any case.
Drives with friction of their own keep theta = 1, as in stance.
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
"""Largest number of iterations of the attitude at the end of a step; each leaves a share h |w| / 2 of the error."""
SETTLED, FOUND = 1e-15, 1e-9
"""Change of the angular velocity in an iteration, relative to the velocity, that is rounding, and that is an answer."""
ROUNDED = 1e-9
"""Axes whose product is no larger are across each other."""


class Flight(NamedTuple):
    """A robot that may fly, and the momentum that it then has.

    The robot as a whole moves with the first velocities of its tree: those of a free-flyer, or of prismatic joints one
    after the other and the hinge across them, as of planar models.

    Attributes:
        aloft: (1,) whether no foot carried in the last step.
        linear, angular: How many of the first velocities move the whole robot along axes, and how many then turn it.
        pivot: Joint with the last of them.
        mass: Of the robot [kg]. com: (3,) its centre of mass in the world where the step begins [m].
        momentum, spin: (3,) wanted momentum [N.s] and angular momentum about the centre of mass [N.m.s], in the world.
        place: (3,) where the centre of mass is wanted [m].
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
    """A step in flight: what it was found to be by the step before the middle was known, and its middle.

    Attributes:
        tree, flight, stops, loops: Of the dynamics, where the step begins.
        equations, middle, chains: The equations of motion, the tree and the loops in the middle of the step; then the
            equations are those at its end.
        q, v: (nq,), (nv,) in the middle.
        viscous: (nv,) friction of the joints themselves, without that of drives [N.m.s/rad].
        theta, implicit: (nv,) share of the change of the velocity on which friction acts, and damping times that.
        turned: (1,) whether the base turns with the mean of the velocities before and after.
        before: (3,) angular velocity of the base where the step begins [rad/s].
        attitude: (4,) the quaternion of the base there.
        sum: (6,) momentum at the end, before it is corrected.
        R, axes: (3, 3) attitudes of the base as it was found and as it is wanted.
        inertia, factor: (3, 3) of the robot about its centre of mass, in the axes of the base [kg.m^2], work.
        error, turn: (3,) by how much the angular momentum is off, and what corrects it [rad/s].
        turning: (4,) quaternion of the way of the base.
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
    """Fill what is wanted at the end of the step that begins with ``v``, from what acts from outside.

    The first of M v are the momentum along the axes of the first velocities, and that about the pivot; so are the first
    of the push, its wrench.
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
    """Fill the configuration and the velocity in the middle of a step, to second order."""
    t, s, h = c.tree, c.equations.joints, c.tree.h
    lacks = h - c.loops.ahead[0]
    if c.loops.error.shape[0] > 0 and lacks > 0.0:
        # The step was solved for a velocity that is tangent in the middle of its way.
        meet(c.loops, t, c.loops.bias, -lacks)
    else:
        c.loops.change[:] = 0.0
    for i in range(v.shape[0]):
        c.v[i] = v[i] + 0.5 * (t.x[i] + c.loops.change[i])
    for j in range(1, s.parent.shape[0]):
        n, i = s.idx_q[j], s.idx_v[j]
        if s.kind[j] == FLOATS:
            for a in range(3):
                c.turn[a] = 0.25 * h * (v[i + 3 + a] + c.v[i + 3 + a])
                # Where the robot as a whole is has no part in it.
                c.q[n + a] = q[n + a]
            turn_quaternion(q[n + 3 :], c.turn, c.q[n + 3 :])
        else:
            c.q[n] = q[n] + 0.25 * h * (v[i] + c.v[i])


@entry
def _fly(boxed: Any, q: Array, v: Array, tau_joint: Array) -> float:
    """Move ``v`` (nv,) in place to the end of a step in flight from ``q`` (nq,), and fill its way and acceleration.

    The tree is that of the step as it was found, with the change of the velocity in ``x``.

    Returns:
        The largest velocity; where it is not finite or reaches ``SPEED_LIMIT``, ``v`` stays as it is.
    """
    c = boxed.arrays
    t, b, h, first = c.tree, c.middle, c.tree.h, c.loops.error.shape[0]
    _go_halfway(c, q, v)
    fill(c.equations, c.q, c.v)
    for i in range(v.shape[0]):
        c.theta[i] = 1.0
        # A drive makes its friction linear about the velocity at the end of the step, where it has to act.
        if t.damping[i] == c.viscous[i]:
            c.theta[i] = 1.0 / (2.0 - h * t.damping[i] * t.inverse[i] * t.inverse[i])
        c.implicit[i] = c.theta[i] * t.damping[i]
    factor(b, c.implicit, 1.0)
    drive(b, v, tau_joint, 1.0)
    b.rows.used[0] = 0
    if first > 0:
        fill_loops(c.chains, b, v, 0.5 * h)
    if c.stops.near[0]:
        # As of forces within the step: the velocity is that of its end.
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
    """Move the robot at the end (q, v) of a step as a whole to the wanted place and velocity, in place.

    Its acceleration, which an IMU feels, goes with the velocity.

    Returns:
        Whether the attitude was found.
    """
    c = boxed.arrays
    gather_momentum(c.equations, q, v, c.sum)
    found = True
    if c.flight.angular == 3:
        found = _correct_base(c, q, v)
    else:
        _correct_slides(c, q, v)
    c.turned[0] = False
    return found


@kernel
def _correct_base(c: Course, q: Array, v: Array) -> bool:
    """Do as :func:`_correct` with a free-flyer: in the axes of its base, in which the robot keeps its inertia."""
    f, t, com = c.flight, c.tree, c.equations.com
    from_quaternion(q[3:7], c.R)
    for a in range(4):
        c.turning[a] = q[3 + a]
    _fill_inertia(c)
    spin = mul_t(c.R, c.sum[3:])
    for a in range(3):
        assign(c.axes[a], c.R[a])
    last = (0.0, 0.0, 0.0)
    found = not c.turned[0]
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
        found = found or (n > 0 and change <= FOUND * size)
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
    return found


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
    """Do as :func:`_correct` with prismatic joints and the hinge across them."""
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
        of_axis, lacks, inertia = mul(c.inertia, axis), 0.0, 0.0
        for a in range(3):
            lacks += axis[a] * (f.spin[a] - c.sum[3 + a])
            inertia += axis[a] * of_axis[a]
        more = lacks / inertia
        swing = cross(axis, (pose[9] - com[0], pose[10] - com[1], pose[11] - com[2]))
        shift = (shift[0] + more * swing[0], shift[1] + more * swing[1], shift[2] + more * swing[2])
        v[n] += more
        t.acceleration[n] += more / t.h
    for i in range(f.linear):
        more = way = 0.0
        for a in range(3):
            more += S[i, a] * shift[a]
            way += S[i, a] * (f.place[a] - com[a])
        v[i] += more
        t.acceleration[i] += more / t.h
        q[i] += way


class Airborne:
    """Takes the steps of a robot in flight.

    Args:
        robot: The robot.
        tree, stops, loops: Of its dynamics.
        com: (3,) its centre of mass where a step begins [m], live.

    Attributes:
        flight: What a step fills for it.
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
        """Take the step from (q, v), (nq,) and (nv,), which was found to be one in flight, under the torques (nu,).

        Returns:
            As :meth:`bipedsim.dynamics.Dynamics.step`.
        """
        return self._fly(self._boxed, q, v, tau_joint)

    def correct(self, q: Array, v: Array) -> bool:
        """Correct the end (q, v) of a step in place, (nq,) and (nv,); return whether the attitude was found."""
        return self.flight.linear == 0 or self._correct(self._boxed, q, v)


def _root(robot: Robot) -> tuple[int, int, int]:
    """Return how many of the first velocities move the whole robot along axes and turn it, and the last joint of them.

    Nothing but gravity and pushes acts on it along these: they have no drive, friction, inertia of a drive, or limits.
    """
    model = robot.model
    if any(UNIVERSE in loop.joints for loop in robot.loops):
        return 0, 0, UNIVERSE
    if robot.free_flyer:
        return 3, 3, 1
    data = model.createData()
    J = pin.computeJointJacobians(model, data, pin.neutral(model)).reshape(6, model.nv)
    found: list[np.ndarray[Any, Any]] = []
    for j in range(1, model.njoints):
        n = len(found)
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
        if slides and np.abs([other @ axis for other in found]).max(initial=0.0) < ROUNDED:
            found.append(axis)
            continue
        if n == 2 and not slides and np.abs([other @ J[3:, i] for other in found]).max() < ROUNDED:
            return 2, 1, j
        break
    return len(found), 0, len(found)
