"""Feet and all other contacts in one step: what each sees of the other, and the velocities that both leave.

With M = L^T L a contact of the rows J has Y = L^-T J^T, and its velocity after the step is J v + Y xi, where xi sums up
what acts: z without contact, the columns of the feet and those of all other contacts times their impulses. The contact
model of the feet is asked with the other contacts' impulses among what acts, the other contacts are solved with the
feet's, in turn, until both agree on the velocities of the feet. What the others would do about a change of the feet's
impulses is shown to the feet, as if the rows that carry were eliminated: where these stay the same, one round does.
Stops of joints are contacts like the others, of one row: which of them carry needs no search here. Loops of closed
chains are eliminated before (:mod:`bipedsim.dynamics.loops`).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.contact import ConeProblem, find_parts, solve_points, target_height_velocity
from bipedsim.dynamics import Bodies, Projection, Stops, Tree, add_wrenches, impose
from bipedsim.numerics import Array, Flags, Integers, cross, entry, kernel, mul, mul_t, point_velocity
from bipedsim.touch.contacts import WORLD, Contacts, Objects

STICKS = 1.0 - 1e-9
"""A contact sticks that uses less of its cone."""
LEAST = 10.0
"""Residuals count beside the speed that contact has to take away, at least what so many m/s^2 bring in a step."""
ZERO_SPEED = 10.0
"""A contact slower than this many times the tolerance sticks."""
DEPENDENT = 1e-9
"""A row of which no larger share is new is held with those before it."""


class Coupling(NamedTuple):
    """Contacts of a robot with nv velocities and of M objects, C at most, and K feet.

    Attributes:
        tree, projection: Of the step of the robot.
        bodies, stops, contacts, objects, problem: What touches, and the cone problem of it.
        gamma: Share of an overlap that a step removes. slow: Speed [m/s] below which nothing rebounds.
        Y: (3C, n) rows of the contacts over the n = nv + 6M velocities. D, W: (3C, 3C), (3C, 6K) their Delassus matrix
            and that with the feet, of a robot whose loops are closed.
        before: (C, 3) velocities before the step, of objects those without contact after it. target: (C, 3) wanted
            ones. rebound: (C,) normal one that restitution wants at least.
        z: (nv,) of the robot in a step without contacts. G, free: (6K, 6K), (6K,) what the feet see of that. seen:
            (6K,) the latter with the contacts.
        V: (3C, 6K) what is held of W, orthonormal.
        xi, along: (n,), (3C,) work. slips: (C,) which contacts slip under load.
        reaches: (C,) whether the feet notice the parts of the problem, by number. A, rhs, x, rows, order: Work of the
            solver.
        force: (nv,) generalised impulse of the contacts [N.s, N.m.s].
        gained: (1,) kinetic energy that they gave, beside the same step without any contact, the feet's work taken as
            in a step that has them; less what taking overlaps back may give [J].
    """

    tree: Tree
    projection: Projection
    bodies: Bodies
    stops: Stops
    contacts: Contacts
    objects: Objects
    problem: ConeProblem
    gamma: float
    slow: float
    Y: Annotated[Array, "3C", "n"]
    D: Annotated[Array, "3C", "3C"]
    W: Annotated[Array, "3C", "6K"]
    V: Annotated[Array, "3C", "6K"]
    G: Annotated[Array, "6K", "6K"]
    before: Annotated[Array, "C", 3]
    target: Annotated[Array, "C", 3]
    rebound: Annotated[Array, "C"]
    z: Annotated[Array, "v"]
    free: Annotated[Array, "6K"]
    xi: Annotated[Array, "n"]
    along: Annotated[Array, "3C"]
    seen: Annotated[Array, "6K"]
    slips: Annotated[Flags, "C"]
    reaches: Annotated[Flags, "C"]
    A: Annotated[Array, "3C", "3C"]
    rhs: Annotated[Array, "3C"]
    x: Annotated[Array, "3C"]
    rows: Annotated[Integers, "3C"]
    order: Annotated[Integers, "3C"]
    force: Annotated[Array, "v"]
    gained: Annotated[Array, 1]


@kernel
def _fill_side(s: Coupling, m: int, side: int, sign: float, v: Array) -> None:
    """Add one side of contact ``m`` to its rows and its velocity."""
    t, c = s.tree, s.contacts
    axes, point = c.axes[m], c.point[m]
    nv, bodies = t.z.shape[0], s.bodies.leaf.shape[0]
    if side >= bodies:
        # A stop opens as its joint moves away from it.
        i = s.stops.idx_v[side - bodies]
        away = -s.stops.side[side - bodies]
        s.Y[3 * m + 2, i] += away
        s.before[m, 2] += away * v[i]
    elif side > WORLD:
        leaf = s.bodies.leaf[side]
        for d in range(t.depth[leaf]):
            i = t.ancestors[leaf, d]
            u = mul_t(axes, point_velocity(t.J_rows[i], point))
            for a in range(3):
                s.Y[3 * m + a, i] += sign * u[a]
                s.before[m, a] += sign * u[a] * v[i]
    elif side < WORLD:
        k = -1 - side
        o = s.objects
        arm = (point[0] - o.position[k, 0], point[1] - o.position[k, 1], point[2] - o.position[k, 2])
        u = mul_t(axes, point_velocity(o.free[k], arm))
        for a in range(3):
            s.before[m, a] += sign * u[a]
        for j in range(6):
            u = mul_t(axes, point_velocity(o.root[k, :, j], arm))
            for a in range(3):
                s.Y[3 * m + a, nv + 6 * k + j] += sign * u[a]


@kernel
def _arrival(s: Coupling, m: int) -> float:
    """Return the normal velocity of contact ``m`` before the step [m/s]."""
    c = s.contacts
    total = s.before[m, 2]
    for sign, side in ((1.0, c.a[m]), (-1.0, c.b[m])):
        if side < WORLD:
            k = -1 - side
            o = s.objects
            point = c.point[m]
            arm = (point[0] - o.position[k, 0], point[1] - o.position[k, 1], point[2] - o.position[k, 2])
            was = mul_t(c.axes[m], point_velocity(o.before[k], arm))
            free = mul_t(c.axes[m], point_velocity(o.free[k], arm))
            total += sign * (was[2] - free[2])
    return total


@entry
def keep_drive(boxed: Any) -> None:
    """Keep what acts on the robot in a step without contacts, and forget rebounds."""
    s = boxed.arrays
    for m in range(s.rebound.shape[0]):
        s.rebound[m] = -np.inf
    for i in range(s.z.shape[0]):
        s.z[i] = s.tree.z[i]


@entry
def show_alone(boxed: Any) -> None:
    """Let robot and feet see a step without the contacts."""
    s = boxed.arrays
    for i in range(s.z.shape[0]):
        s.tree.z[i] = s.z[i]
    for a in range(s.free.shape[0]):
        s.projection.w_free[a] = s.free[a]
        for b in range(s.free.shape[0]):
            s.projection.G[a, b] = s.G[a, b]


@entry
def fill_rows(boxed: Any, v: Array) -> bool:
    """Fill rows, velocities and targets of all contacts; return whether anything may rebound."""
    s = boxed.arrays
    bounces = False
    t, c = s.tree, s.contacts
    nv, h = v.shape[0], t.h
    for m in range(c.used[0]):
        for a in range(3):
            s.before[m, a] = 0.0
            s.target[m, a] = 0.0
            for i in range(s.Y.shape[1]):
                s.Y[3 * m + a, i] = 0.0
        _fill_side(s, m, c.a[m], 1.0, v)
        _fill_side(s, m, c.b[m], -1.0, v)
        # A joint is at its limit in the end, whatever rounding left.
        gamma = s.gamma if c.a[m] < s.bodies.leaf.shape[0] else 1.0
        s.target[m, 2] = max(target_height_velocity(c.gap[m], h, gamma), s.rebound[m])
        bounces = bounces or (c.restitution[m] > 0.0 and _arrival(s, m) < -s.slow)
        for a in range(3):
            y = s.Y[3 * m + a]
            for i in range(nv - 1, -1, -1):
                if y[i] != 0.0:
                    y[i] *= t.inverse[i]
                    for d in range(t.depth[i] - 1):
                        y[t.ancestors[i, d]] -= t.L[i, d] * y[i]
    return bounces


@entry
def rebound(boxed: Any, impulse: Array, lag: float) -> None:
    """Have what meets within the step, and rebounds, leave as after an impact at the moment at which it meets.

    Velocities of objects are those of the moment.

    Args:
        boxed: A :class:`Coupling`.
        impulse: (K, 6) of the feet in the step without these contacts.
        lag: Share of a step by which the velocities of the robot are behind: half a step, as its positions go with the
            velocity at the end of the step (:mod:`bipedsim.sim.steps`), and nothing in flight.
    """
    s = boxed.arrays
    t, c = s.tree, s.contacts
    _add_feet(s, impulse)
    for m in range(c.used[0]):
        if not c.restitution[m] > 0.0:
            continue
        u = _arrival(s, m)
        own = s.before[m, 2] - u
        robot = 0.0
        for i in range(t.z.shape[0]):
            robot += s.Y[3 * m + 2, i] * s.xi[i]
        # After the share x of the step they meet: gap / h + x (u + lag robot) + x^2 (robot + own) / 2 = 0.
        slope, gap = u + lag * robot, c.gap[m] / t.h
        square = slope * slope - 2.0 * (robot + own) * gap
        if not (square >= 0.0 and slope < 0.0):
            continue
        x = 2.0 * gap / (np.sqrt(square) - slope)
        arrives = u + (lag + x) * robot + x * own
        if x < 1.0 and arrives < -s.slow:
            c.late[m] = 1.0 - x
            s.rebound[m] = -c.restitution[m] * arrives + (1.0 - lag - x) * robot + (1.0 - x) * own
            s.target[m, 2] = max(s.target[m, 2], s.rebound[m])


@kernel
def _add_feet(s: Coupling, impulse: Array) -> None:
    """Fill ``xi`` with what acts on the robot where the feet have the ``impulse`` (K, 6)."""
    for i in range(s.z.shape[0]):
        s.xi[i] = s.z[i]
    add_wrenches(s.tree, impulse, s.xi)
    if s.tree.rows.used[0] > 0:
        impose(s.tree.rows, s.xi[: s.z.shape[0]], False)


@entry
def fill_delassus(boxed: Any) -> None:
    """Fill the Delassus matrices, and begin the cone problem from the last impulses."""
    s = boxed.arrays
    t, c, p, q = s.tree, s.contacts, s.projection, s.problem
    n, size = 3 * c.used[0], s.seen.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            if _together(s, i // 3, j // 3):
                for k in range(s.Y.shape[1]):
                    total += s.Y[i, k] * s.Y[j, k]
            s.D[i, j] = total
    for i in range(n):
        for k in range(t.leaf.shape[0]):
            chain = t.ancestors[t.leaf[k]]
            for a in range(6):
                total = 0.0
                for d in range(t.depth[t.leaf[k]]):
                    total += s.Y[i, chain[d]] * t.Y[k, d, a]
                s.W[i, 6 * k + a] = total
    # Loops, which are always there, leave this of it.
    r = t.rows
    for row in range(r.used[0]):
        for i in range(n):
            total = 0.0
            for k in range(r.Q.shape[1]):
                total += s.Y[i, k] * r.Q[row, k]
            s.along[i] = total
        for i in range(n):
            for j in range(i + 1):
                s.D[i, j] -= s.along[i] * s.along[j]
            for a in range(size):
                s.W[i, a] -= s.along[i] * r.along[row, a]
    for a in range(size):
        s.free[a] = p.w_free[a]
        for b in range(size):
            s.G[a, b] = p.G[a, b]
    for i in range(n):
        for j in range(i):
            s.D[j, i] = s.D[i, j]
    q.points[0] = c.used[0]
    largest = 0.0
    for m in range(c.used[0]):
        q.mobility[m] = (s.D[3 * m, 3 * m] + s.D[3 * m + 1, 3 * m + 1] + s.D[3 * m + 2, 3 * m + 2]) / 3.0
        largest = max(largest, q.mobility[m])
        for a in range(3):
            q.f[m, a] = c.impulse[m, a]
    find_parts(s.D, q)
    for m in range(c.used[0]):
        q.mobility[m] = max(q.mobility[m], 1e-12 * largest)
        s.reaches[m] = False
    for m in range(c.used[0]):
        for row in range(3 * m, 3 * m + 3):
            for a in range(size):
                if s.W[row, a] != 0.0:
                    s.reaches[q.foot[m]] = True


@kernel
def _together(s: Coupling, m: int, k: int) -> bool:
    """Whether the contacts ``m`` and ``k`` have the robot or an object in common."""
    c = s.contacts
    robot = max(c.a[m], c.b[m]) > WORLD and max(c.a[k], c.b[k]) > WORLD
    first = c.a[m] < WORLD and (c.a[m] == c.a[k] or c.a[m] == c.b[k])
    second = c.b[m] < WORLD and (c.b[m] == c.a[k] or c.b[m] == c.b[k])
    return robot or first or second


@entry
def lean_on(boxed: Any, impulse: Array) -> float:
    """Show the feet what the contacts do, and how they answer; return by how much the feet were shown something else.

    The feet had the ``impulse`` (K, 6) when the contacts were solved last. What these would do about another one: those
    that stick hold their points, those that slip hold the heights of theirs, so that they are eliminated.
    """
    s = boxed.arrays
    p, q, c = s.projection, s.problem, s.contacts
    size = s.seen.shape[0]
    flat = impulse.reshape(size)
    off = 0.0
    for a in range(size):
        seen, shown = s.free[a], p.w_free[a]
        for m in range(c.used[0]):
            for b in range(3):
                seen += s.W[3 * m + b, a] * q.f[m, b]
        s.seen[a] = seen
        for b in range(size):
            seen += s.G[a, b] * flat[b]
            shown += p.G[a, b] * flat[b]
        off = max(off, abs(seen - shown))
    n = _hold_what_carries(s)
    q.budget[0] -= n * (n * (n // 6 + size // 2) + size * size)
    for a in range(size):
        total = s.seen[a]
        for b in range(size):
            share = 0.0
            for i in range(n):
                share += s.V[i, a] * s.V[i, b]
            p.G[a, b] = s.G[a, b] - share
            total += share * flat[b]
        p.w_free[a] = total
    return off


@kernel
def _hold_what_carries(s: Coupling) -> int:
    """Fill V with L^-1 W of the rows that contacts hold, L L^T their Delassus matrix; return how many there are."""
    q, size = s.problem, s.seen.shape[0]
    n = 0
    for m in range(q.points[0]):
        if not (q.f[m, 2] > 0.0 and s.reaches[q.foot[m]]):
            continue
        sticks = np.hypot(q.f[m, 0], q.f[m, 1]) < STICKS * q.mu[m] * q.f[m, 2]
        for a in range(0 if sticks else 2, 3):
            row = 3 * m + a
            s.rows[n] = row
            for j in range(n):
                total = s.D[row, s.rows[j]]
                for k in range(j):
                    total -= s.A[n, k] * s.A[j, k]
                s.A[n, j] = total / s.A[j, j]
            left = s.D[row, row]
            for k in range(n):
                left -= s.A[n, k] * s.A[n, k]
            # What depends on rows that are held already is held.
            if not left > DEPENDENT * s.D[row, row]:
                continue
            s.A[n, n] = np.sqrt(left)
            for b in range(size):
                total = s.W[row, b]
                for k in range(n):
                    total -= s.A[n, k] * s.V[k, b]
                s.V[n, b] = total / s.A[n, n]
            n += 1
    return n


@entry
def give(boxed: Any) -> None:
    """Make the impulses of the contacts part of what acts on the robot, and let the feet see that, and no answers."""
    s = boxed.arrays
    t, p, q = s.tree, s.projection, s.problem
    nv, size = t.z.shape[0], s.seen.shape[0]
    for i in range(nv):
        total = s.z[i]
        for m in range(q.points[0]):
            for a in range(3):
                total += s.Y[3 * m + a, i] * q.f[m, a]
        t.z[i] = total
    for a in range(size):
        p.w_free[a] = s.seen[a]
        for b in range(size):
            p.G[a, b] = s.G[a, b]


@entry
def solve(boxed: Any, impulse: Array) -> bool:
    """Solve the contacts where the feet have the ``impulse`` (K, 6); return whether it is done within tolerance."""
    s = boxed.arrays
    t, q, c = s.tree, s.problem, s.contacts
    nv = t.z.shape[0]
    _add_feet(s, impulse)
    scale = LEAST * t.h
    for m in range(c.used[0]):
        for a in range(3):
            total = s.before[m, a] - s.target[m, a]
            for i in range(nv):
                total += s.Y[3 * m + a, i] * s.xi[i]
            q.g[m, a] = total
        if q.g[m, 2] < 0.0:
            scale = max(scale, abs(q.g[m, 0]), abs(q.g[m, 1]), -q.g[m, 2])
    # What contact has to take away.
    q.scale[0] = scale
    for m in range(c.used[0]):
        q.mu[m] = c.mu[m]
    solved = False
    # Each solve but the last gives a contact dynamic friction.
    for _ in range(c.used[0] + 1):
        solved = solve_points(s.D, q, s.A, s.rhs, s.x, s.rows, s.order)
        if not _take_dynamic(s):
            break
    return solved


@kernel
def _take_dynamic(s: Coupling) -> bool:
    """Say which loaded contacts slip, and give them dynamic friction; return whether one of them had more."""
    q, c = s.problem, s.contacts
    slow = ZERO_SPEED * q.tolerance * q.scale[0]
    found = False
    for m in range(c.used[0]):
        s.slips[m] = q.f[m, 2] > 0.0 and np.hypot(q.u[m, 0], q.u[m, 1]) > slow
        if s.slips[m] and q.mu[m] > c.mu_slips[m]:
            q.mu[m] = c.mu_slips[m]
            found = True
    return found


@entry
def finish(boxed: Any, impulse: Array) -> bool:
    """Take over what the last solve found, the feet having the ``impulse`` (K, 6); return whether a contact carries."""
    s = boxed.arrays
    t, c, q, o = s.tree, s.contacts, s.problem, s.objects
    nv = t.z.shape[0]
    carries = False
    for i in range(nv):
        s.xi[i] = s.z[i]
    if t.rows.used[0] > 0:
        impose(t.rows, s.xi[:nv], False)
    gained = 0.0
    for k in range(impulse.shape[0]):
        for a in range(6):
            gained -= 0.5 * impulse[k, a] * (s.seen[6 * k + a] - s.free[6 * k + a])
    for i in range(nv):
        s.force[i] = 0.0
    for k in range(o.free.shape[0]):
        for a in range(6):
            o.after[k, a] = o.free[k, a]
    for m in range(c.used[0]):
        for a in range(3):
            c.impulse[m, a] = q.f[m, a]
            c.velocity[m, a] = q.u[m, a] + s.target[m, a]
            free = s.before[m, a]
            for i in range(nv):
                free += s.Y[3 * m + a, i] * s.xi[i]
            gained += 0.5 * q.f[m, a] * (free + c.velocity[m, a])
        gained -= q.f[m, 2] * max(s.target[m, 2], 0.0)
        if c.a[m] >= s.bodies.leaf.shape[0]:
            j = c.a[m] - s.bodies.leaf.shape[0]
            s.stops.impulse[j] = -s.stops.side[j] * c.impulse[m, 2]
            s.stops.held[j] = s.stops.side[j] if c.impulse[m, 2] != 0.0 else 0
            continue
        carries = carries or c.impulse[m, 2] != 0.0
        _give_side(s, m, c.a[m], 1.0)
        _give_side(s, m, c.b[m], -1.0)
        for k in range(o.free.shape[0]):
            for i in range(6):
                total = 0.0
                for a in range(3):
                    total += s.Y[3 * m + a, nv + 6 * k + i] * c.impulse[m, a]
                if total != 0.0:
                    for j in range(6):
                        o.after[k, j] += o.root[k, j, i] * total
    s.gained[0] = gained
    return carries


@entry
def add_forces(boxed: Any, out: Array) -> None:
    """Add the impulses of all contacts on the bodies of the robot to ``out`` (joints, 3), in the world [N.s]."""
    c = boxed.arrays.contacts
    for m in range(c.used[0]):
        f = mul(c.axes[m], c.impulse[m])
        for a in range(3):
            if WORLD < c.a[m] < out.shape[0]:
                out[c.a[m], a] += f[a]
            if WORLD < c.b[m] < out.shape[0]:
                out[c.b[m], a] -= f[a]


@kernel
def _give_side(s: Coupling, m: int, side: int, sign: float) -> None:
    """Add the impulse of contact ``m`` on one of its sides to the generalised one."""
    t, c = s.tree, s.contacts
    if side <= WORLD:
        return
    x, y, z = mul(c.axes[m], c.impulse[m])
    force = (sign * x, sign * y, sign * z)
    moment = cross(c.point[m], force)
    leaf = s.bodies.leaf[side]
    for d in range(t.depth[leaf]):
        i = t.ancestors[leaf, d]
        J = t.J_rows[i]
        s.force[i] += J[0] * force[0] + J[1] * force[1] + J[2] * force[2]
        s.force[i] += J[3] * moment[0] + J[4] * moment[1] + J[5] * moment[2]
