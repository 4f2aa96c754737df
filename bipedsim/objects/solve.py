"""Impulses at the points of several pairs at once: their cone problem, and its solution in time."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.contact import (
    POLISHED,
    RECOVERY,
    ConeProblem,
    PointRows,
    add_body,
    fill_root,
    prepare_points,
    solve_points,
)
from bipedsim.numerics import Array, Integers, assign, cross, exp3, kernel, mul, mul_t
from bipedsim.objects.bodies import Bodies, end_position, finish_body, fly, turns_far
from bipedsim.objects.contacts import WORLD, PairContacts

GAMMA = 0.2
"""Fraction of a penetration that a step removes, as in the contact models of the feet."""
CLOSED = 1e-9
"""A contact point of coupled bodies keeps a smaller gap or overlap [m].

The gaps of bodies with more contacts than they need are never all zero. Contacts that had to close the rounding errors
of their gaps would push the bodies against each other until they slip.
"""
FEW = 3
"""Largest number of coupled bodies that is not called a heap."""
LEAST_SCALE, OF_HEAP = 0.1, 1.0
"""Minimum speed [m/s] to which residuals are relative, and that of a heap.

In a heap at rest, the gaps of bodies with more contacts than they need contradict each other by 1e-8 m/s and more.
"""
ZERO_SPEED = 10.0
"""A point slower than this many times the tolerance sticks."""
ENOUGH = 1e-10
"""Residual at which the solve of a heap ends; others continue to rounding level.

The impulses in a heap are far from rounding level in any case, because the next step moves the bodies.
"""
CORRECTIONS = 4
"""Maximum number of corrections of a solution for the rotation of bodies; each adds an order in h."""


class PairSolve(NamedTuple):
    """Pairs that are solved together, and the arrays of their solution.

    Attributes:
        bodies, contacts: Bodies and contacts.
        cone: Points of the pairs; ``foot`` is the index of the chosen pair.
        rows: Rows of the points.
        place: (N,) number of each body in the problem, or -1.
        members: (N,) bodies of the problem.
        root: (N, 6, 6) S of M^-1 = S S^T of each of them.
        h: Step of the simulation [s].
        unresolved: (1,) number of problems that ended above the tolerance.
        given: (1,) bound of the energy that the correction of overlaps added in the step [J].
        chosen: (P,) the pairs.
        number: (1,) number of pairs.
        axes: (P, 3, 3) axes of the pairs when the impulses act.
        half: (1,) time from the beginning of the sub-step to this moment [s].
        begin, end: (P,) first point of each pair in the problem, and the one after its last.
        which: (M,) contact point of each point of the problem.
        wanted: (M,) minimum normal velocity of each point [m/s].
        off: (M, 3) error of the linear problem in the velocity at the end of the sub-step, in the axes of the pair.
    """

    bodies: Bodies
    contacts: PairContacts
    cone: ConeProblem
    rows: PointRows
    place: Integers
    members: Annotated[Integers, "N"]
    root: Annotated[Array, "N", 6, 6]
    h: float
    unresolved: Integers
    given: Array
    chosen: Annotated[Integers, "P"]
    number: Annotated[Integers, 1]
    axes: Annotated[Array, "P", 3, 3]
    half: Annotated[Array, 1]
    begin: Annotated[Integers, "P"]
    end: Annotated[Integers, "P"]
    which: Annotated[Integers, "M"]
    wanted: Annotated[Array, "M"]
    off: Annotated[Array, "M", 3]


@kernel
def _body(c: PairContacts, p: int, side: int) -> int:
    return c.first[p] if side == 0 else c.second[p]


@kernel
def _arm(a: PairSolve, i: int, point):
    """Return the arm from body ``i`` to ``point`` (3,) when the impulses act [m]."""
    x, v = a.bodies.position[i], a.bodies.v[i]
    half = a.half[0]
    return point[0] - x[0] - half * v[0], point[1] - x[1] - half * v[1], point[2] - x[2] - half * v[2]


@kernel
def _position_of(a: PairSolve, m: int):
    """Return the position of contact point ``m`` in the world when its impulse acts [m]."""
    return position_after(a.contacts, m, a.half[0])


@kernel
def position_after(c: PairContacts, m: int, s: float):
    """Return the predicted position of contact point ``m`` in the world after ``s`` seconds [m]."""
    x, u, w = c.where[m], c.moving[m], c.bow[m]
    t = 0.5 * s * s
    return x[0] + s * u[0] + t * w[0], x[1] + s * u[1] + t * w[1], x[2] + s * u[2] + t * w[2]


@kernel
def _fill_axes(a: PairSolve, half: float) -> None:
    """Set the time at which the impulses act, ``half`` seconds after the beginning, and the axes of the pairs then."""
    c = a.contacts
    a.half[0] = half
    for k in range(a.number[0]):
        p = a.chosen[k]
        axes, turn = c.axes[p], c.turn[p]
        turns = half > 0.0 and (turn[0] != 0.0 or turn[1] != 0.0 or turn[2] != 0.0)
        if turns:
            exp3(cross(axes[2], turn), half, a.bodies.A)
        for x in range(3):
            assign(a.axes[k, x], mul(a.bodies.A, axes[x]) if turns else (axes[x, 0], axes[x, 1], axes[x, 2]))


@kernel
def drift(b: Bodies, c: PairContacts, m: int, axis) -> float:
    """Return the rate of the relative velocity of point ``m`` along ``axis`` (3,) at constant twists [m/s^2].

    The velocity of a rotating body differs at the positions to which the contact point moves.
    """
    p = c.pair[m]
    u = c.moving[m]
    total = 0.0
    for side in range(2):
        i = _body(c, p, side)
        if i == WORLD:
            continue
        swing = cross(b.w[i], (u[0] - b.v[i, 0], u[1] - b.v[i, 1], u[2] - b.v[i, 2]))
        total += (1.0 - 2.0 * side) * (swing[0] * axis[0] + swing[1] * axis[1] + swing[2] * axis[2])
    return total


@kernel
def normal_drift(b: Bodies, c: PairContacts, m: int) -> float:
    """Return the rate of the normal velocity of point ``m`` due to the rotation of the normal [m/s^2]."""
    p = c.pair[m]
    total = 0.0
    for side in range(2):
        i = _body(c, p, side)
        if i == WORLD:
            continue
        x = b.position[i]
        turning = cross(b.w[i], (c.where[m, 0] - x[0], c.where[m, 1] - x[1], c.where[m, 2] - x[2]))
        for d in range(3):
            total += (1.0 - 2.0 * side) * c.turn[p, d] * (b.v[i, d] + turning[d])
    return total


@kernel
def _fill_problem(a: PairSolve, half: float, v: Array, w: Array, mobility: Array) -> None:
    """Fill the problem for impulses that act after ``half`` seconds.

    Args:
        a: The pairs; their problem is the output.
        half: Time from the beginning of the sub-step [s].
        v, w: (N, 3) velocities of the bodies without impulses.
        mobility: (N, 3, 3) their inverse inertias, in world axes.
    """
    c = a.contacts
    q = a.cone
    _fill_axes(a, half)
    for k in range(a.rows.system.used[0]):
        a.place[a.members[k]] = -1
    a.rows.system.used[0] = 0
    n = 0
    for k in range(a.number[0]):
        p = a.chosen[k]
        # The origin of a pair is an active point, so that it is in the contact plane.
        a.begin[k] = n
        for m in range(c.begin[p], c.end[p]):
            if not c.active[m]:
                continue
            if n == a.begin[k]:
                assign(c.origin[p], _position_of(a, m))
            a.which[n] = m
            q.foot[n] = k
            x, o = _position_of(a, m), c.origin[p]
            # All points are in one plane: with different heights they could not stick while a gap is closed.
            x, y, _ = mul(a.axes[k], (x[0] - o[0], x[1] - o[1], x[2] - o[2]))
            t1, t2 = a.axes[k, 0], a.axes[k, 1]
            point = (
                o[0] + x * t1[0] + y * t2[0],
                o[1] + x * t1[1] + y * t2[1],
                o[2] + x * t1[2] + y * t2[2],
            )
            assign(q.g[n], (0.0, 0.0, 0.0))
            a.rows.width[n] = 0
            for side in range(2):
                i = _body(c, p, side)
                if i == WORLD:
                    continue
                if a.place[i] < 0:
                    _join(a, i, mobility)
                arm, sign = _arm(a, i, point), 1.0 - 2.0 * side
                add_body(a.rows, n, 6 * a.place[i], sign, a.axes[k], arm, a.root[a.place[i]])
                turning = cross(w[i], arm)
                u = mul(a.axes[k], (v[i, 0] + turning[0], v[i, 1] + turning[1], v[i, 2] + turning[2]))
                for d in range(3):
                    q.g[n, d] += sign * u[d]
            q.mu[n] = c.mu[m, 0] if c.sticking[m] else c.mu[m, 1]
            n += 1
        a.end[k] = n
    q.points[0] = n
    prepare_points(a.rows, q)
    q.enough[0] = ENOUGH if a.rows.system.used[0] > FEW else POLISHED


@kernel
def _join(a: PairSolve, i: int, mobility: Array) -> None:
    """Add body ``i`` to the problem."""
    n = a.rows.system.used[0]
    a.rows.system.used[0] = n + 1
    a.place[i], a.members[n] = n, i
    fill_root(a.bodies.mass[i], mobility[i], a.root[n])


@kernel
def _wanted_velocity(a: PairSolve, m: int, s: float) -> float:
    """Return the minimum normal velocity of contact point ``m`` in the next ``s`` seconds [m/s]."""
    z = a.contacts.gap[m]
    closed = CLOSED if a.rows.system.used[0] > 1 else 0.0
    if abs(z) <= closed:
        return 0.0
    return min(-GAMMA * (z + closed) / a.h, RECOVERY) if z < 0.0 else (closed - z) / s


@kernel
def solve_part(a: PairSolve, s: float) -> None:
    """Compute the finite forces at the active points of the chosen pairs over ``s`` seconds, and add their impulses.

    The problem is linear in the impulses, but the motion of rotating bodies is not. A solution predicts their rotation.
    The problem is solved again with the resulting error while the error decreases. If a body rotates too far for
    this, the contacts act at the beginning of the sub-step.
    """
    c = a.contacts
    q = a.cone
    if _any_turns_far(a, s):
        _solve_at_once(a, s)
        return
    b = a.bodies
    _fill_problem(a, 0.5 * s, b.v_free, b.w_free, b.mobility_free)
    for n in range(q.points[0]):
        m = a.which[n]
        for x in range(3):
            q.f[n, x] = s * c.force[m, x]
        a.wanted[n] = _wanted_velocity(a, m, s)
        q.g[n, 2] -= a.wanted[n]
    _add_drift(a, s)
    acts = _solve(a)
    before = np.inf
    for _ in range(CORRECTIONS):
        off = _fill_errors(a, s) if acts else 0.0
        if off <= q.tolerance * q.scale[0] or not off < 0.5 * before:
            break
        before = off
        _clear_impulses(a)
        for n in range(q.points[0]):
            for x in range(3):
                q.g[n, x] += a.off[n, x]
        acts = _solve(a)
    for n in range(q.points[0]):
        m = a.which[n]
        if c.gap[m] < 0.0:
            a.given[0] += q.f[n, 2] * a.wanted[n]
        for x in range(3):
            c.force[m, x] = q.f[n, x] / s


@kernel
def _any_turns_far(a: PairSolve, s: float) -> bool:
    """Return whether a body of the chosen pairs rotates far in ``s`` seconds."""
    for k in range(a.number[0]):
        for side in range(2):
            i = _body(a.contacts, a.chosen[k], side)
            if i != WORLD and turns_far(a.bodies, i, s):
                return True
    return False


@kernel
def _solve_at_once(a: PairSolve, s: float) -> None:
    """Let the active points of the chosen pairs act as impacts at the beginning of a sub-step of ``s`` seconds.

    An impact dissipates energy for any rotation of the bodies. The bodies separate with the speed that gravity cancels
    by the middle of the sub-step. So they do not sink.
    """
    b = a.bodies
    c = a.contacts
    q = a.cone
    _fill_problem(a, 0.0, b.v, b.w, b.mobility)
    for n in range(q.points[0]):
        m = a.which[n]
        q.f[n, :] = 0.0
        a.wanted[n] = _wanted_velocity(a, m, s)
        q.g[n, 2] -= a.wanted[n]
        for side in range(2):
            i = _body(c, c.pair[m], side)
            if i != WORLD:
                axis = a.axes[q.foot[n], 2]
                for x in range(3):
                    q.g[n, 2] += (0.5 - side) * axis[x] * (b.v_free[i, x] - b.v[i, x])
    _solve(a)
    for n in range(q.points[0]):
        m = a.which[n]
        a.given[0] += q.f[n, 2] * max(a.wanted[n], 0.0)
        for x in range(3):
            c.force[m, x] = q.f[n, x] / s
    for k in range(a.number[0]):
        for side in range(2):
            i = _body(c, a.chosen[k], side)
            if i == WORLD:
                continue
            torque = mul(b.mobility[i], b.impulse[i, 3:])
            for x in range(3):
                b.v[i, x] += b.impulse[i, x] / b.mass[i]
                b.w[i, x] += torque[x]
            for x in range(6):
                b.contact[i, x] += b.impulse[i, x]
                b.impulse[i, x] = 0.0
            fly(b, i, s)


@kernel
def _clear_impulses(a: PairSolve) -> None:
    """Clear the impulses of all bodies of the chosen pairs."""
    for k in range(a.number[0]):
        for side in range(2):
            i = _body(a.contacts, a.chosen[k], side)
            if i != WORLD:
                a.bodies.impulse[i, :] = 0.0


@kernel
def _fill_errors(a: PairSolve, s: float) -> float:
    """Fill the errors of the solution in the velocities at the end of the sub-step; return the largest one [m/s].

    In the plane of a pair the mean error of its points is used. Otherwise no two points of rotating bodies could stick.
    """
    b = a.bodies
    c = a.contacts
    q = a.cone
    for k in range(a.number[0]):
        for side in range(2):
            i = _body(c, a.chosen[k], side)
            if i != WORLD:
                finish_body(b, i, 1.0, s)
    largest = 0.0
    for k in range(a.number[0]):
        mean = (0.0, 0.0)
        for n in range(a.begin[k], a.end[k]):
            u = mul(a.axes[k], _end_velocity(a, a.which[n], s))
            off = a.off[n]
            for x in range(3):
                off[x] = u[x] - q.u[n, x]
            # The displacement follows the mean velocity, so a gap stays constant at the initial velocity.
            off[2] += 0.5 * s * normal_drift(b, c, a.which[n]) - a.wanted[n]
            mean = (mean[0] + off[0], mean[1] + off[1])
        count = a.end[k] - a.begin[k]
        for n in range(a.begin[k], a.end[k]):
            for x in range(2):
                a.off[n, x] = mean[x] / count
            for x in range(3):
                largest = max(largest, abs(a.off[n, x]))
    return largest


@kernel
def _end_velocity(a: PairSolve, m: int, s: float) -> tuple[float, float, float]:
    """Return the relative velocity at contact point ``m`` at the end of the sub-step, in the world [m/s]."""
    b = a.bodies
    c = a.contacts
    p = c.pair[m]
    own = c.own[m]
    place = (0.0, 0.0, 0.0)
    if own != WORLD:
        x = b.position[own]
        r = mul(b.R_end[own], mul_t(b.R[own], (c.where[m, 0] - x[0], c.where[m, 1] - x[1], c.where[m, 2] - x[2])))
        place = end_position(b, own, s)
        place = (place[0] + r[0], place[1] + r[1], place[2] + r[2])
    total = (0.0, 0.0, 0.0)
    for side in range(2):
        i = _body(c, p, side)
        if i == WORLD:
            continue
        x, v, at = b.position[i], b.v[i], position_after(c, m, s)
        r = at[0] - x[0] - s * v[0], at[1] - x[1] - s * v[1], at[2] - x[2] - s * v[2]
        if own != WORLD:
            centre = end_position(b, i, s)
            r = (place[0] - centre[0], place[1] - centre[1], place[2] - centre[2])
        turning = cross(b.w_end[i], r)
        sign = 1.0 - 2.0 * side
        total = (
            total[0] + sign * (b.v_end[i, 0] + turning[0]),
            total[1] + sign * (b.v_end[i, 1] + turning[1]),
            total[2] + sign * (b.v_end[i, 2] + turning[2]),
        )
    return total


@kernel
def _add_drift(a: PairSolve, s: float) -> None:
    """Add the change of the point velocities due to rotation, from the middle to the end of ``s`` seconds.

    In the plane of a pair the mean of its points is used. Otherwise no two points of rotating bodies could stick.
    """
    c = a.contacts
    q = a.cone
    for k in range(a.number[0]):
        axes = a.axes[k]
        for x in range(2):
            mean = 0.0
            for n in range(a.begin[k], a.end[k]):
                mean += drift(a.bodies, c, a.which[n], axes[x])
            for n in range(a.begin[k], a.end[k]):
                q.g[n, x] += 0.5 * s * mean / (a.end[k] - a.begin[k])
        for n in range(a.begin[k], a.end[k]):
            m = a.which[n]
            q.g[n, 2] += 0.5 * s * (drift(a.bodies, c, m, axes[2]) + normal_drift(a.bodies, c, m))


@kernel
def solve_impact(a: PairSolve, slow: float) -> None:
    """Compute the impulses of an impact at the active points of the chosen pairs.

    A point that approaches faster than ``slow`` rebounds with its restitution; all others stop approaching.
    """
    b = a.bodies
    c = a.contacts
    q = a.cone
    _fill_problem(a, 0.0, b.v, b.w, b.mobility)
    for n in range(q.points[0]):
        q.f[n, :] = 0.0
        if q.g[n, 2] < -slow:
            q.g[n, 2] += c.restitution[c.pair[a.which[n]]] * q.g[n, 2]
    _solve(a)


@kernel
def _solve(a: PairSolve) -> bool:
    """Solve the problem, with dynamic friction where points slip, and add the impulses to the bodies.

    Returns:
        Whether any impulse was needed; False if no point approaches.
    """
    q = a.cone
    c = a.contacts
    scale = OF_HEAP if a.rows.system.used[0] > FEW else LEAST_SCALE
    needed = False
    for n in range(q.points[0]):
        needed = needed or q.g[n, 2] < 0.0
        for x in range(3):
            scale = max(scale, abs(q.g[n, x]))
    q.scale[0] = scale
    slow = ZERO_SPEED * q.tolerance * scale
    if not needed:
        for n in range(q.points[0]):
            assign(q.f[n], (0.0, 0.0, 0.0))
        return False
    # Each solution except the last one sets dynamic friction at a point.
    for _ in range(q.points[0] + 1):
        solved = solve_points(a.rows, q)
        again = False
        for n in range(q.points[0]):
            m = a.which[n]
            slips = np.hypot(q.u[n, 0], q.u[n, 1]) > slow
            if slips and q.mu[n] > c.mu[m, 1] and q.f[n, 2] > 0.0:
                q.mu[n] = c.mu[m, 1]
                again = True
            c.sticking[m] = 0 if slips else 1
        if not solved:
            a.unresolved[0] += 1
        if not (again and solved):
            break
    b = a.bodies
    for n in range(q.points[0]):
        m = a.which[n]
        p = c.pair[m]
        A = a.axes[q.foot[n]]
        f = q.f[n]
        world = (
            A[0, 0] * f[0] + A[1, 0] * f[1] + A[2, 0] * f[2],
            A[0, 1] * f[0] + A[1, 1] * f[1] + A[2, 1] * f[2],
            A[0, 2] * f[0] + A[1, 2] * f[1] + A[2, 2] * f[2],
        )
        for side in range(2):
            i = _body(c, p, side)
            if i == WORLD:
                continue
            sign = 1.0 - 2.0 * side
            r = _arm(a, i, _position_of(a, m))
            torque = cross(r, world)
            for x in range(3):
                b.impulse[i, x] += sign * world[x]
                b.impulse[i, 3 + x] += sign * torque[x]
    return True
