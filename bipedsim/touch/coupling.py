"""Coupling of the feet with all other contacts in one step.

With M = L^T L, a contact with the rows J has Y = L^-T J^T. Its velocity after the step is J v + Y xi. Here xi sums all
actions: z without contact, plus the columns of all contacts times their impulses.

The contact model of the feet and the solver of the other contacts run in turn, each with the impulses of the other.
They stop when both agree on the velocities of the feet. The feet also see the response of the other contacts to a
change of their impulses, as if the active rows were eliminated. One round is enough if the active rows stay the same.

Joint limits are contacts with one row. So no separate search for the active limits is needed. Closed kinematic chains
are eliminated before (:mod:`bipedsim.dynamics.loops`).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.contact import ConeProblem, find_parts, floor_mobilities, solve_points, target_height_velocity
from bipedsim.dynamics import BodyPoints, Projection, Stops, Tree, add_wrenches, impose
from bipedsim.numerics import Array, Flags, Integers, cross, entry, kernel, mul, mul_t, point_velocity
from bipedsim.touch.contacts import WORLD, Contacts, ObjectContacts

STICKS = 1.0 - 1e-9
"""A contact sticks if it uses less than this fraction of its cone."""
LEAST = 10.0
"""Acceleration [m/s^2] whose speed after a step is the minimum scale of the residuals."""
ZERO_SPEED = 10.0
"""A contact slower than this many times the tolerance sticks."""
DEPENDENT = 1e-9
"""A row counts as dependent on the previous active rows if its independent part is not above this fraction."""


class TouchCoupling(NamedTuple):
    """Contacts (at most C) of a robot with nv velocities, K feet and M objects.

    Attributes:
        tree, projection: Arrays of the robot's step.
        bodies, stops, contacts, objects: Bodies and joint limits of the robot, all contacts, and free objects.
        problem: Cone problem of the contacts.
        gamma: Fraction of an overlap that a step removes.
        slow: Speed [m/s] below which nothing rebounds.
        Y: (3C, n) rows of the contacts over the n = nv + 6M velocities.
        D, W: (3C, 3C), (3C, 6K) their Delassus matrix and that with the feet, for a robot with closed chains.
        before: (C, 3) velocities before the step; for objects, after the step without contact.
        target: (C, 3) target velocities.
        rebound: (C,) minimum normal velocity due to restitution.
        z: (nv,) actions on the robot in a step without contacts.
        G, free: (6K, 6K), (6K,) Delassus matrix and free velocities of the feet in that step.
        seen: (6K,) free velocities of the feet including the contacts.
        V: (3C, 6K) orthonormalised rows of W that are active.
        xi, along: (n,), (3C,) work arrays.
        slips: (C,) whether a contact slips under load.
        reaches: (C,) whether a part of the problem affects the feet, by number of the part.
        A, rhs, x, rows, order: Work arrays of the solver.
        force: (nv,) generalised impulse of the contacts [N.s, N.m.s].
        gained: (1,) kinetic energy that the contacts added, relative to the same step without any contact [J]. The work
            of the feet is that in a step with the contacts. The energy that corrects overlaps is subtracted.
    """

    tree: Tree
    projection: Projection
    bodies: BodyPoints
    stops: Stops
    contacts: Contacts
    objects: ObjectContacts
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
def _fill_side(s: TouchCoupling, m: int, side: int, sign: float, v: Array) -> None:
    """Add one body of contact ``m`` to its rows and its velocity."""
    t, c = s.tree, s.contacts
    axes, point = c.axes[m], c.point[m]
    nv, bodies = t.z.shape[0], s.bodies.leaf.shape[0]
    if side >= bodies:
        # A joint limit opens when its joint moves away from it.
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
def _approach_velocity(s: TouchCoupling, m: int) -> float:
    """Return the normal velocity of contact ``m`` before the step [m/s], negative on approach."""
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
def store_drive(boxed: Any) -> None:
    """Store the actions on the robot in a step without contacts, and clear the rebounds."""
    s = boxed.arrays
    for m in range(s.rebound.shape[0]):
        s.rebound[m] = -np.inf
    for i in range(s.z.shape[0]):
        s.z[i] = s.tree.z[i]


@entry
def hide_contacts(boxed: Any) -> None:
    """Reset the inputs of robot and feet to those of a step without the contacts."""
    s = boxed.arrays
    for i in range(s.z.shape[0]):
        s.tree.z[i] = s.z[i]
    for a in range(s.free.shape[0]):
        s.projection.w_free[a] = s.free[a]
        for b in range(s.free.shape[0]):
            s.projection.G[a, b] = s.G[a, b]


@entry
def fill_rows(boxed: Any, v: Array) -> bool:
    """Fill rows, velocities and targets of all contacts; return whether any contact may rebound."""
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
        # A joint ends exactly at its limit, so that rounding errors do not accumulate.
        gamma = s.gamma if c.a[m] < s.bodies.leaf.shape[0] else 1.0
        s.target[m, 2] = max(target_height_velocity(c.gap[m], h, gamma), s.rebound[m])
        bounces = bounces or (c.restitution[m] > 0.0 and _approach_velocity(s, m) < -s.slow)
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
    """Let contacts that close within the step and rebound leave as after an impact at the moment of contact.

    Velocities of objects are those at that moment.

    Args:
        boxed: A :class:`TouchCoupling`.
        impulse: (K, 6) of the feet in the step without these contacts.
        lag: Delay of the robot's velocities as a fraction of a step. It is half a step, because positions follow the
            velocity at the end of the step (:mod:`bipedsim.sim.steps`), and zero in flight.
    """
    s = boxed.arrays
    t, c = s.tree, s.contacts
    _add_feet(s, impulse)
    for m in range(c.used[0]):
        if not c.restitution[m] > 0.0:
            continue
        u = _approach_velocity(s, m)
        own = s.before[m, 2] - u
        robot = 0.0
        for i in range(t.z.shape[0]):
            robot += s.Y[3 * m + 2, i] * s.xi[i]
        # The bodies meet after the fraction x of the step: gap / h + x (u + lag robot) + x^2 (robot + own) / 2 = 0.
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
def _add_feet(s: TouchCoupling, impulse: Array) -> None:
    """Fill ``xi`` with the actions on the robot when the feet have the ``impulse`` (K, 6)."""
    for i in range(s.z.shape[0]):
        s.xi[i] = s.z[i]
    add_wrenches(s.tree, impulse, s.xi)
    if s.tree.rows.used[0] > 0:
        impose(s.tree.rows, s.xi[: s.z.shape[0]], False)


@entry
def fill_delassus(boxed: Any) -> None:
    """Fill the Delassus matrices, and start the cone problem from the last impulses."""
    s = boxed.arrays
    p = s.projection
    n, size = 3 * s.contacts.used[0], s.seen.shape[0]
    _fill_products(s, n)
    _eliminate_loops(s, n)
    for a in range(size):
        s.free[a] = p.w_free[a]
        for b in range(size):
            s.G[a, b] = p.G[a, b]
    for i in range(n):
        for j in range(i):
            s.D[j, i] = s.D[i, j]
    _start_problem(s)


@kernel
def _fill_products(s: TouchCoupling, n: int) -> None:
    """Fill the lower triangle of D, and W, for ``n`` rows of a robot without closed chains."""
    t = s.tree
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            if _share_body(s, i // 3, j // 3):
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


@kernel
def _eliminate_loops(s: TouchCoupling, n: int) -> None:
    """Eliminate the constraints of closed kinematic chains, which are always active, from D and W."""
    r, size = s.tree.rows, s.seen.shape[0]
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


@kernel
def _start_problem(s: TouchCoupling) -> None:
    """Fill points, mobilities and initial impulses of the cone problem, and mark its parts that affect the feet."""
    c, q = s.contacts, s.problem
    q.points[0] = c.used[0]
    for m in range(c.used[0]):
        q.mobility[m] = (s.D[3 * m, 3 * m] + s.D[3 * m + 1, 3 * m + 1] + s.D[3 * m + 2, 3 * m + 2]) / 3.0
        for a in range(3):
            q.f[m, a] = c.impulse[m, a]
    floor_mobilities(q)
    find_parts(s.D, q)
    for m in range(c.used[0]):
        s.reaches[m] = False
    for m in range(c.used[0]):
        for row in range(3 * m, 3 * m + 3):
            for a in range(s.seen.shape[0]):
                if s.W[row, a] != 0.0:
                    s.reaches[q.foot[m]] = True


@kernel
def _share_body(s: TouchCoupling, m: int, k: int) -> bool:
    """Return whether the contacts ``m`` and ``k`` have the robot or an object in common."""
    c = s.contacts
    robot = max(c.a[m], c.b[m]) > WORLD and max(c.a[k], c.b[k]) > WORLD
    first = c.a[m] < WORLD and (c.a[m] == c.a[k] or c.a[m] == c.b[k])
    second = c.b[m] < WORLD and (c.b[m] == c.a[k] or c.b[m] == c.b[k])
    return robot or first or second


@entry
def condense_contacts(boxed: Any, impulse: Array) -> float:
    """Condense the contacts into the inputs of the feet; return the change of the predicted foot velocities [m/s].

    The contacts were last solved with the ``impulse`` (K, 6) of the feet. Their response to another impulse follows
    from elimination of the active rows. Sticking contacts hold their points; slipping ones hold the height of theirs.
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
    n = _factor_active_rows(s)
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
def _factor_active_rows(s: TouchCoupling) -> int:
    """Fill V with L^-1 W of the active rows, where L L^T is their Delassus matrix; return the number of these rows."""
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
            remaining = s.D[row, row]
            for k in range(n):
                remaining -= s.A[n, k] * s.A[n, k]
            # A row that depends on active rows needs no row of its own.
            if not remaining > DEPENDENT * s.D[row, row]:
                continue
            s.A[n, n] = np.sqrt(remaining)
            for b in range(size):
                total = s.W[row, b]
                for k in range(n):
                    total -= s.A[n, k] * s.V[k, b]
                s.V[n, b] = total / s.A[n, n]
            n += 1
    return n


@entry
def apply_impulses(boxed: Any) -> None:
    """Add the impulses of the contacts to the actions on the robot, and show these to the feet without a response."""
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
    """Solve the contacts with the ``impulse`` (K, 6) of the feet; return whether the residual is within tolerance."""
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
    # The scale is the speed that contact has to remove.
    q.scale[0] = scale
    for m in range(c.used[0]):
        q.mu[m] = c.mu[m]
    solved = False
    # Each solve except the last one sets dynamic friction at a contact.
    for _ in range(c.used[0] + 1):
        solved = solve_points(s.D, q, s.A, s.rhs, s.x, s.rows, s.order)
        if not _take_dynamic(s):
            break
    return solved


@kernel
def _take_dynamic(s: TouchCoupling) -> bool:
    """Mark the loaded contacts that slip, and set their dynamic friction; return whether one of them had more."""
    q, c = s.problem, s.contacts
    slow = ZERO_SPEED * q.tolerance * q.scale[0]
    changed = False
    for m in range(c.used[0]):
        s.slips[m] = q.f[m, 2] > 0.0 and np.hypot(q.u[m, 0], q.u[m, 1]) > slow
        if s.slips[m] and q.mu[m] > c.mu_slips[m]:
            q.mu[m] = c.mu_slips[m]
            changed = True
    return changed


@entry
def finish(boxed: Any, impulse: Array) -> bool:
    """Store the last solution with the ``impulse`` (K, 6) of the feet; return whether a contact is loaded."""
    s = boxed.arrays
    t, c, q, o = s.tree, s.contacts, s.problem, s.objects
    nv = t.z.shape[0]
    loaded = False
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
        loaded = loaded or c.impulse[m, 2] != 0.0
        _add_side_force(s, m, c.a[m], 1.0)
        _add_side_force(s, m, c.b[m], -1.0)
        _accelerate_objects(s, m)
    s.gained[0] = gained
    return loaded


@kernel
def _accelerate_objects(s: TouchCoupling, m: int) -> None:
    """Add the effect of the impulse of contact ``m`` to the velocities of the objects."""
    c, o = s.contacts, s.objects
    nv = s.tree.z.shape[0]
    for k in range(o.free.shape[0]):
        for i in range(6):
            total = 0.0
            for a in range(3):
                total += s.Y[3 * m + a, nv + 6 * k + i] * c.impulse[m, a]
            if total != 0.0:
                for j in range(6):
                    o.after[k, j] += o.root[k, j, i] * total


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
def _add_side_force(s: TouchCoupling, m: int, side: int, sign: float) -> None:
    """Add the impulse of contact ``m`` on one of its bodies to the generalised impulse of the robot."""
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
