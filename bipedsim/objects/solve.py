"""Impulses at the points of several pairs at once: the cone problem of feet, with pairs instead of feet."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.contact import RECOVERY
from bipedsim.contact.time_stepping import ConeProblem, floor_mobilities, solve_cones
from bipedsim.numerics import Array, Integers, assign, cross, exp3, kernel, mul, mul_t, point_velocity
from bipedsim.objects.bodies import Bodies, end_position, finish_body, fly, turns_far
from bipedsim.objects.contacts import WORLD, PairContacts

GAMMA = 0.2
"""Fraction of a penetration that a step removes, as in the contact models of the feet."""
ZERO_SPEED = 10.0
"""A point slower than this many times the tolerance sticks."""


CORRECTIONS = 4
"""Maximum number of corrections of a solution for the rotation of bodies; each adds an order in h."""


class PairRows(NamedTuple):
    """Pairs that are solved together.

    Attributes:
        chosen: (P,) the pairs.
        number: (1,) number of pairs.
        J, B: (P, 2, 6, 6) Jacobians of both bodies of a pair, and M^-1 J^T, by rows.
        twist: (P, 6) relative twists without impulses, in the axes of the pair.
        axes: (P, 3, 3) axes of the pairs when the impulses act.
        half: (1,) time from the beginning of the sub-step to this moment [s].
        which: (M,) contact point of each point of the problem.
        wanted: (M,) minimum normal velocity of each point [m/s].
        off: (M, 3) error of the linear problem in the velocity at the end of the sub-step, in the axes of the pair.
    """

    chosen: Annotated[Integers, "P"]
    number: Annotated[Integers, 1]
    J: Annotated[Array, "P", 2, 6, 6]
    B: Annotated[Array, "P", 2, 6, 6]
    twist: Annotated[Array, "P", 6]
    axes: Annotated[Array, "P", 3, 3]
    half: Annotated[Array, 1]
    which: Annotated[Integers, "M"]
    wanted: Annotated[Array, "M"]
    off: Annotated[Array, "M", 3]


class PairSolve(NamedTuple):
    """Arrays of the solution for K pairs.

    Attributes:
        bodies, contacts, rows: Bodies, contacts and chosen pairs.
        cone: Cone problem of the K pairs.
        h: Step of the simulation [s].
        G: (6K, 6K) Delassus matrix of the relative twists.
        unresolved: (1,) number of problems that ended above the tolerance.
        given: (1,) bound of the energy that the correction of overlaps added in the step [J].
    """

    bodies: Bodies
    contacts: PairContacts
    cone: ConeProblem
    rows: PairRows
    h: float
    G: Array
    unresolved: Integers
    given: Array


@kernel
def _body(c: PairContacts, p: int, side: int) -> int:
    return c.first[p] if side == 0 else c.second[p]


@kernel
def _arm(a: PairSolve, i: int, point):
    """Return the arm from body ``i`` to ``point`` (3,) when the impulses act [m]."""
    x, v = a.bodies.position[i], a.bodies.v[i]
    half = a.rows.half[0]
    return point[0] - x[0] - half * v[0], point[1] - x[1] - half * v[1], point[2] - x[2] - half * v[2]


@kernel
def _position_of(a: PairSolve, m: int):
    """Return the position of contact point ``m`` in the world when its impulse acts [m]."""
    return position_after(a.contacts, m, a.rows.half[0])


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
    a.rows.half[0] = half
    for k in range(a.rows.number[0]):
        p = a.rows.chosen[k]
        axes, turn = c.axes[p], c.turn[p]
        turns = half > 0.0 and (turn[0] != 0.0 or turn[1] != 0.0 or turn[2] != 0.0)
        if turns:
            exp3(cross(axes[2], turn), half, a.bodies.A)
        for x in range(3):
            assign(a.rows.axes[k, x], mul(a.bodies.A, axes[x]) if turns else (axes[x, 0], axes[x, 1], axes[x, 2]))


@kernel
def _fill_rows(a: PairSolve, k: int, mobility: Array) -> None:
    """Fill the Jacobians of chosen pair ``k``: linear and angular rows of the relative twist at its origin.

    Args:
        a: Arrays of the solution; the rows are the output.
        k: Index of the pair.
        mobility: (N, 3, 3) inverse inertia of all bodies in world axes.
    """
    b = a.bodies
    c = a.contacts
    p = a.rows.chosen[k]
    for side in range(2):
        i = _body(c, p, side)
        J = a.rows.J[k, side]
        B = a.rows.B[k, side]
        J[:, :] = 0.0
        B[:, :] = 0.0
        if i == WORLD:
            continue
        sign = 1.0 - 2.0 * side
        r = _arm(a, i, c.origin[p])
        for x in range(3):
            axis = a.rows.axes[k, x]
            arm = cross(r, axis)
            for d in range(3):
                J[x, d] = sign * axis[d]
                J[x, 3 + d] = sign * arm[d]
                J[3 + x, 3 + d] = sign * axis[d]
        for row in range(6):
            turned = mul(mobility[i], J[row, 3:])
            for d in range(3):
                B[row, d] = J[row, d] / b.mass[i]
                B[row, 3 + d] = turned[d]


@kernel
def _fill_delassus(a: PairSolve, mobility: Array) -> None:
    """Fill rows and Delassus matrix.

    The origin of a pair is an active point, so that it is in the contact plane.
    """
    c = a.contacts
    n = a.rows.number[0]
    for k in range(n):
        p = a.rows.chosen[k]
        for m in range(c.points[0]):
            if c.pair[m] == p and c.active[m]:
                assign(c.origin[p], _position_of(a, m))
                break
    for k in range(n):
        _fill_rows(a, k, mobility)
    for k in range(n):
        for m in range(k + 1):
            _fill_block(a, k, m)


@kernel
def _fill_block(a: PairSolve, k: int, m: int) -> None:
    """Fill the block of the Delassus matrix for the chosen pairs ``k`` and ``m``, and its transpose."""
    c = a.contacts
    for x in range(6):
        for y in range(6):
            a.G[6 * k + x, 6 * m + y] = 0.0
    for s in range(2):
        i = _body(c, a.rows.chosen[k], s)
        for t in range(2):
            if i == WORLD or _body(c, a.rows.chosen[m], t) != i:
                continue
            for x in range(6):
                for y in range(6):
                    total = 0.0
                    for d in range(6):
                        total += a.rows.J[k, s, x, d] * a.rows.B[m, t, y, d]
                    a.G[6 * k + x, 6 * m + y] += total
    for x in range(6):
        for y in range(6):
            a.G[6 * m + y, 6 * k + x] = a.G[6 * k + x, 6 * m + y]


@kernel
def _fill_twist(a: PairSolve, k: int, v, w) -> None:
    """Fill the relative twist of chosen pair ``k`` for the velocities ``v``, ``w`` (N, 3) of the bodies."""
    for x in range(6):
        a.rows.twist[k, x] = 0.0
    for side in range(2):
        i = _body(a.contacts, a.rows.chosen[k], side)
        if i == WORLD:
            continue
        J = a.rows.J[k, side]
        for x in range(6):
            total = 0.0
            for d in range(3):
                total += J[x, d] * v[i, d] + J[x, 3 + d] * w[i, d]
            a.rows.twist[k, x] += total


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
def _fill_points(a: PairSolve) -> None:
    """Fill the points of the problem except for their velocities."""
    c = a.contacts
    q = a.cone
    n = 0
    for k in range(a.rows.number[0]):
        p = a.rows.chosen[k]
        for m in range(c.points[0]):
            if c.pair[m] != p or not c.active[m]:
                continue
            a.rows.which[n] = m
            q.foot[n] = k
            x, o = _position_of(a, m), c.origin[p]
            assign(q.arm[n], mul(a.rows.axes[k], (x[0] - o[0], x[1] - o[1], x[2] - o[2])))
            # All points are in one plane: with different heights they could not stick while a gap is closed.
            q.arm[n, 2] = 0.0
            q.mu[n] = c.mu[m, 0] if c.sticking[m] else c.mu[m, 1]
            q.mobility[n] = _mobility(a.G, 6 * k, q.arm[n])
            n += 1
    q.points[0] = n
    floor_mobilities(q)


@kernel
def _mobility(G, first: int, r) -> float:
    """Return the mean inverse mass at the point ``r`` (3,) of the pair whose rows start at ``first`` [1/kg]."""
    total = 0.0
    for x in range(3):
        # Row of the point: u_x = e_x + (w x r)_x.
        y = (x + 1) % 3
        z = (x + 2) % 3
        for i in range(3):
            left = 1.0 if i == 0 else (r[z] if i == 1 else -r[y])
            row = x if i == 0 else (3 + y if i == 1 else 3 + z)
            for j in range(3):
                right = 1.0 if j == 0 else (r[z] if j == 1 else -r[y])
                column = x if j == 0 else (3 + y if j == 1 else 3 + z)
                total += left * right * G[first + row, first + column]
    return total / 3.0


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
    _fill_axes(a, 0.5 * s)
    _fill_delassus(a, a.bodies.mobility_free)
    _fill_points(a)
    for k in range(a.rows.number[0]):
        _fill_twist(a, k, a.bodies.v_free, a.bodies.w_free)
    for n in range(q.points[0]):
        m = a.rows.which[n]
        assign(q.g[n], point_velocity(a.rows.twist[q.foot[n]], q.arm[n]))
        for x in range(3):
            q.f[n, x] = s * c.force[m, x]
        z = c.gap[m]
        a.rows.wanted[n] = min(-GAMMA * z / a.h, RECOVERY) if z < 0.0 else -z / s
        q.g[n, 2] -= a.rows.wanted[n]
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
                q.g[n, x] += a.rows.off[n, x]
        acts = _solve(a)
    for n in range(q.points[0]):
        m = a.rows.which[n]
        if c.gap[m] < 0.0:
            a.given[0] += q.f[n, 2] * a.rows.wanted[n]
        for x in range(3):
            c.force[m, x] = q.f[n, x] / s


@kernel
def _any_turns_far(a: PairSolve, s: float) -> bool:
    """Return whether a body of the chosen pairs rotates far in ``s`` seconds."""
    for k in range(a.rows.number[0]):
        for side in range(2):
            i = _body(a.contacts, a.rows.chosen[k], side)
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
    _fill_present(a)
    for n in range(q.points[0]):
        m = a.rows.which[n]
        q.f[n, :] = 0.0
        z = c.gap[m]
        a.rows.wanted[n] = min(-GAMMA * z / a.h, RECOVERY) if z < 0.0 else -z / s
        q.g[n, 2] -= a.rows.wanted[n]
        for side in range(2):
            i = _body(c, c.pair[m], side)
            if i != WORLD:
                axis = a.rows.axes[q.foot[n], 2]
                for x in range(3):
                    q.g[n, 2] += (0.5 - side) * axis[x] * (b.v_free[i, x] - b.v[i, x])
    _solve(a)
    for n in range(q.points[0]):
        m = a.rows.which[n]
        a.given[0] += q.f[n, 2] * max(a.rows.wanted[n], 0.0)
        for x in range(3):
            c.force[m, x] = q.f[n, x] / s
    for k in range(a.rows.number[0]):
        for side in range(2):
            i = _body(c, a.rows.chosen[k], side)
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
    for k in range(a.rows.number[0]):
        for side in range(2):
            i = _body(a.contacts, a.rows.chosen[k], side)
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
    for k in range(a.rows.number[0]):
        for side in range(2):
            i = _body(c, a.rows.chosen[k], side)
            if i != WORLD:
                finish_body(b, i, 1.0, s)
    largest = 0.0
    for k in range(a.rows.number[0]):
        mean = (0.0, 0.0)
        count = 0
        for n in range(q.points[0]):
            if q.foot[n] == k:
                u = mul(a.rows.axes[k], _end_velocity(a, a.rows.which[n], s))
                off = a.rows.off[n]
                for x in range(3):
                    off[x] = u[x] - q.u[n, x]
                # The displacement follows the mean velocity, so a gap stays constant at the initial velocity.
                off[2] += 0.5 * s * normal_drift(b, c, a.rows.which[n]) - a.rows.wanted[n]
                mean = (mean[0] + off[0], mean[1] + off[1])
                count += 1
        for n in range(q.points[0]):
            if q.foot[n] == k:
                for x in range(2):
                    a.rows.off[n, x] = mean[x] / count
                for x in range(3):
                    largest = max(largest, abs(a.rows.off[n, x]))
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
    for k in range(a.rows.number[0]):
        axes = a.rows.axes[k]
        for x in range(2):
            mean = 0.0
            count = 0
            for n in range(q.points[0]):
                if q.foot[n] == k:
                    mean += drift(a.bodies, c, a.rows.which[n], axes[x])
                    count += 1
            for n in range(q.points[0]):
                if q.foot[n] == k:
                    q.g[n, x] += 0.5 * s * mean / count
        for n in range(q.points[0]):
            if q.foot[n] == k:
                m = a.rows.which[n]
                q.g[n, 2] += 0.5 * s * (drift(a.bodies, c, m, axes[2]) + normal_drift(a.bodies, c, m))


@kernel
def _fill_present(a: PairSolve) -> None:
    """Fill the problem of the active points of the chosen pairs at the current positions and velocities."""
    q = a.cone
    _fill_axes(a, 0.0)
    _fill_delassus(a, a.bodies.mobility)
    _fill_points(a)
    for k in range(a.rows.number[0]):
        _fill_twist(a, k, a.bodies.v, a.bodies.w)
    for n in range(q.points[0]):
        assign(q.g[n], point_velocity(a.rows.twist[q.foot[n]], q.arm[n]))


@kernel
def solve_impact(a: PairSolve, slow: float) -> None:
    """Compute the impulses of an impact at the active points of the chosen pairs.

    A point that approaches faster than ``slow`` rebounds with its restitution; all others stop approaching.
    """
    c = a.contacts
    q = a.cone
    _fill_present(a)
    for n in range(q.points[0]):
        q.f[n, :] = 0.0
        if q.g[n, 2] < -slow:
            q.g[n, 2] += c.restitution[c.pair[a.rows.which[n]]] * q.g[n, 2]
    _solve(a)


@kernel
def _solve(a: PairSolve) -> bool:
    """Solve the problem, with dynamic friction where points slip, and add the impulses to the bodies.

    Returns:
        Whether any impulse was needed; False if no point approaches.
    """
    q = a.cone
    c = a.contacts
    # The minimum scale is the speed that 1 m/s^2 gives in a step.
    scale = a.h
    needed = False
    for n in range(q.points[0]):
        needed = needed or q.g[n, 2] < 0.0
        for x in range(3):
            scale = max(scale, abs(q.g[n, x]))
    q.scale[0] = scale
    slow = ZERO_SPEED * q.tolerance * scale
    if not needed:
        q.f[:, :] = 0.0
        return False
    # Each solution except the last one sets dynamic friction at a point.
    for _ in range(q.points[0] + 1):
        solved = solve_cones(a.G, q)
        again = False
        for n in range(q.points[0]):
            m = a.rows.which[n]
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
        m = a.rows.which[n]
        p = c.pair[m]
        A = a.rows.axes[q.foot[n]]
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
