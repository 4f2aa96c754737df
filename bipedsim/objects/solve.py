"""Impulses at the points of some pairs at once: the cone problem of feet, with a pair in the place of a foot."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.contact import RECOVERY
from bipedsim.contact.time_stepping import ConeProblem, solve_cones
from bipedsim.numerics import Array, Integers, assign, cross, exp3, kernel, mul, mul_t, point_velocity
from bipedsim.objects.bodies import Bodies, end_position, finish_body, fly, turns_far
from bipedsim.objects.contacts import WORLD, Contacts

GAMMA = 0.2
"""Share of a penetration that a step takes back, as under the contact models of the feet."""
ZERO_SPEED = 10.0
"""A point slower than this many times the tolerance sticks."""


CORRECTIONS = 4
"""Solutions that are corrected by how bodies turn, at most: each adds an order in h."""


class Rows(NamedTuple):
    """Pairs that are chosen to be solved for together.

    Attributes:
        chosen: (P,) the pairs. number: (1,) how many.
        J, B: (P, 2, 6, 6) Jacobians of both sides of a pair, and M^-1 J^T, by rows.
        twist: (P, 6) relative twists without impulses, in the axes of the pair.
        axes: (P, 3, 3) axes of the pairs at the moment at which the impulses act.
        half: (1,) when that is after the begin of the part [s].
        which: (M,) contact point of each point of the problem.
        wanted: (M,) normal velocity that each of them is to have at least [m/s].
        off: (M, 3) by how much the linear problem is off the velocity at the end of the part, in the axes of the pair.
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


class Solve(NamedTuple):
    """What it takes to solve for K pairs.

    Attributes:
        bodies, contacts, rows: All of them. cone: The problem of the K pairs.
        h: Step of the simulation [s].
        G: (6K, 6K) Delassus matrix of the relative twists.
        unresolved: (1,) problems that ended above the tolerance.
        given: (1,) energy that taking overlaps back may have given in the step [J].
    """

    bodies: Bodies
    contacts: Contacts
    cone: ConeProblem
    rows: Rows
    h: float
    G: Array
    unresolved: Integers
    given: Array


@kernel
def _body(c: Contacts, p: int, side: int) -> int:
    return c.first[p] if side == 0 else c.second[p]


@kernel
def _arm(a: Solve, i: int, point):
    """Return the arm from body ``i`` to ``point`` (3,), both at the moment at which the impulses act [m]."""
    x, v = a.bodies.position[i], a.bodies.v[i]
    half = a.rows.half[0]
    return point[0] - x[0] - half * v[0], point[1] - x[1] - half * v[1], point[2] - x[2] - half * v[2]


@kernel
def _place_of(a: Solve, m: int):
    """Return where contact point ``m`` is at the moment at which its impulse acts, world [m]."""
    return place_after(a.contacts, m, a.rows.half[0])


@kernel
def place_after(c: Contacts, m: int, s: float):
    """Return where contact point ``m`` gets in ``s`` seconds while its bodies go on as they are, world [m]."""
    x, u, w = c.where[m], c.moving[m], c.bow[m]
    t = 0.5 * s * s
    return x[0] + s * u[0] + t * w[0], x[1] + s * u[1] + t * w[1], x[2] + s * u[2] + t * w[2]


@kernel
def _fill_axes(a: Solve, half: float) -> None:
    """Have the impulses act ``half`` seconds after the begin of the part, and fill the axes of the pairs there."""
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
def _fill_rows(a: Solve, k: int, mobility: Array) -> None:
    """Fill the Jacobians of chosen pair ``k``: linear and angular rows of the relative twist at its origin.

    Args:
        a: Where to.
        k: Number of the pair.
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
def _fill_delassus(a: Solve, mobility: Array) -> None:
    """Fill rows and Delassus matrix; twists are taken at a point that is active, as the plane of the pair is there."""
    c = a.contacts
    n = a.rows.number[0]
    for k in range(n):
        p = a.rows.chosen[k]
        for m in range(c.points[0]):
            if c.pair[m] == p and c.active[m]:
                assign(c.origin[p], _place_of(a, m))
                break
    for k in range(n):
        _fill_rows(a, k, mobility)
    for k in range(n):
        for m in range(k + 1):
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
def _fill_twist(a: Solve, k: int, v, w) -> None:
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
def drift(b: Bodies, c: Contacts, m: int, axis) -> float:
    """Return what the relative velocity of point ``m`` along ``axis`` (3,) gains at constant velocities [m/s^2].

    Bodies that turn have another velocity where the contact goes.
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
def bend(b: Bodies, c: Contacts, m: int) -> float:
    """Return what the normal velocity of point ``m`` gains because the normal turns, at constant velocities [m/s^2]."""
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
def _fill_points(a: Solve) -> None:
    """Fill the points of the problem but for their velocities."""
    c = a.contacts
    q = a.cone
    n = 0
    largest = 0.0
    for k in range(a.rows.number[0]):
        p = a.rows.chosen[k]
        for m in range(c.points[0]):
            if c.pair[m] != p or not c.active[m]:
                continue
            a.rows.which[n] = m
            q.foot[n] = k
            x, o = _place_of(a, m), c.origin[p]
            assign(q.arm[n], mul(a.rows.axes[k], (x[0] - o[0], x[1] - o[1], x[2] - o[2])))
            # All in one plane: points of different heights could not stick while a gap is closed.
            q.arm[n, 2] = 0.0
            q.mu[n] = c.mu[m, 0] if c.sticking[m] else c.mu[m, 1]
            q.mobility[n] = _mobility(a.G, 6 * k, q.arm[n])
            largest = max(largest, q.mobility[n])
            n += 1
    q.points[0] = n
    for m in range(n):
        q.mobility[m] = max(q.mobility[m], 1e-12 * largest)


@kernel
def _mobility(G, first: int, r) -> float:
    """Return the mean inverse mass at the point ``r`` (3,) of the pair whose rows begin at ``first`` [1/kg]."""
    total = 0.0
    for x in range(3):
        # u_x = e_x + (w x r)_x: the row of the point.
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
def solve_part(a: Solve, s: float) -> None:
    """Find the finite forces at the active points of the chosen pairs over ``s`` seconds, and add their impulses.

    The problem is linear in the impulses; what bodies do that turn is not. A solution says how they turn, and the
    problem is solved again with what it was off by, while that becomes less. Of bodies that turn too far in the part
    for that, the contacts act at its beginning.
    """
    c = a.contacts
    q = a.cone
    if _any_turns_far(a, s):
        _strike(a, s)
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
        off = _fill_off(a, s) if acts else 0.0
        if off <= q.tolerance * q.scale[0] or not off < 0.5 * before:
            break
        before = off
        _take_back(a)
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
def _any_turns_far(a: Solve, s: float) -> bool:
    """Whether a body of the chosen pairs turns far in ``s`` seconds."""
    for k in range(a.rows.number[0]):
        for side in range(2):
            i = _body(a.contacts, a.rows.chosen[k], side)
            if i != WORLD and turns_far(a.bodies, i, s):
                return True
    return False


@kernel
def _strike(a: Solve, s: float) -> None:
    """Have the active points of the chosen pairs act at once, where a part of ``s`` seconds begins, and stop there.

    That takes energy, however the bodies turn. They get as much speed away from each other as gravity takes back until
    the middle of the part: so they do not sink.
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
def _take_back(a: Solve) -> None:
    """Take the impulses of all bodies of the chosen pairs back."""
    for k in range(a.rows.number[0]):
        for side in range(2):
            i = _body(a.contacts, a.rows.chosen[k], side)
            if i != WORLD:
                a.bodies.impulse[i, :] = 0.0


@kernel
def _fill_off(a: Solve, s: float) -> float:
    """Fill by how much the solution is off the velocities at the end of the part; return the largest of it [m/s].

    Along the plane of a pair it is the mean: no two points of turning bodies could stick else.
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
                # With the velocity of the begin the gap stays, as the mean of both velocities takes the bodies along.
                off[2] += 0.5 * s * bend(b, c, a.rows.which[n]) - a.rows.wanted[n]
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
def _end_velocity(a: Solve, m: int, s: float) -> tuple[float, float, float]:
    """Return the relative velocity at contact point ``m`` at the end of the part, in the world [m/s]."""
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
        x, v, at = b.position[i], b.v[i], place_after(c, m, s)
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
def _add_drift(a: Solve, s: float) -> None:
    """Add what the velocities of the points gain from the middle to the end of ``s`` seconds because bodies turn.

    Along the plane of a pair it is the mean: no two points of turning bodies could stick else.
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
                q.g[n, 2] += 0.5 * s * (drift(a.bodies, c, m, axes[2]) + bend(a.bodies, c, m))


@kernel
def _fill_present(a: Solve) -> None:
    """Fill the problem of the active points of the chosen pairs where the bodies are, with their velocities."""
    q = a.cone
    _fill_axes(a, 0.0)
    _fill_delassus(a, a.bodies.mobility)
    _fill_points(a)
    for k in range(a.rows.number[0]):
        _fill_twist(a, k, a.bodies.v, a.bodies.w)
    for n in range(q.points[0]):
        assign(q.g[n], point_velocity(a.rows.twist[q.foot[n]], q.arm[n]))


@kernel
def solve_impact(a: Solve, slow: float) -> None:
    """Find the impulses of an impact at the active points of the chosen pairs.

    A point that arrives with more than ``slow`` leaves with its restitution; all others do not go on to approach.
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
def _solve(a: Solve) -> bool:
    """Solve the problem, take dynamic friction where points slip, and add the impulses to the bodies.

    Returns:
        Whether there was anything to solve: not where nothing approaches.
    """
    q = a.cone
    c = a.contacts
    # What 1 m/s^2 brings in a step, at least.
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
    # Each solution that is not the last one gives dynamic friction to a point.
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
            r = _arm(a, i, _place_of(a, m))
            torque = cross(r, world)
            for x in range(3):
                b.impulse[i, x] += sign * world[x]
                b.impulse[i, 3 + x] += sign * torque[x]
    return True
