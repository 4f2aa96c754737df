"""All contacts of a step in one problem: bodies, joint limits and objects, and the feet of rigid contact models.

With M = L^T L, a contact with the rows J has Y = L^-T J^T. Its velocity after the step is J v + Y xi. Here xi sums all
actions: z without contact, plus the columns of all contacts times their impulses.

The feet of a rigid contact model are points of the same problem. Constraint selection and Coulomb's law at every vertex
agree where both have a solution, and when bodies touch, constraint selection often has none. Any other contact model is
called in turn with the solver of the other contacts, each with the impulses of the other. They stop when both agree on
the velocities of the feet. If they do not, its feet become points in this step, too.

Joint limits are contacts with one row. So no separate search for the active limits is needed. Closed kinematic chains
are eliminated before (:mod:`bipedsim.dynamics.loops`).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from bipedsim.contact import (
    ConeProblem,
    PointRows,
    add_body,
    add_impulse,
    prepare_points,
    solve_points,
    target_height_velocity,
    velocity_at,
)
from bipedsim.dynamics import BodyPoints, Projection, Stops, Tree, add_wrenches, impose
from bipedsim.numerics import Array, Flags, Integers, cross, entry, kernel, mul, mul_t, point_velocity
from bipedsim.touch.contacts import WORLD, Contacts, ObjectContacts
from bipedsim.touch.feet import FeetAsPoints, add_vertices, begin_feet, take_vertices

STICKS = 1.0 - 1e-9
"""A contact sticks if it uses less than this fraction of its cone."""
DEPENDENT = 1e-9
"""A row counts as dependent on the previous active rows if its independent part is not above this fraction."""
LEAST = 10.0
"""Acceleration [m/s^2] whose speed after a step is the minimum scale of the residuals."""
ENOUGH = 1e-10
"""Error of a velocity [m/s] at which a solve ends."""
ZERO_SPEED = 10.0
"""A contact slower than this many times the tolerance sticks."""


class TouchCoupling(NamedTuple):
    """Contacts (at most C) of a robot with nv velocities, K feet and M objects; n = nv + 6M.

    Attributes:
        tree, projection: Arrays of the robot's step.
        bodies, stops, contacts, objects: Bodies and joint limits of the robot, all contacts, and free objects.
        feet: The feet as points.
        points: (1,) whether the feet are points in this step.
        problem, rows: Cone problem of the contacts, and their rows.
        gamma: Fraction of an overlap that a step removes.
        slow: Speed [m/s] below which nothing rebounds.
        before: (C, 3) velocities before the step; for objects, after the step without contact.
        imposed: (C, 3) changes of velocity that closed chains require.
        target: (C, 3) target velocities.
        rebound: (C,) minimum normal velocity due to restitution.
        z: (nv,) actions on the robot in a step without contacts.
        G, free: (6K, 6K), (6K,) Delassus matrix and free velocities of the feet in that step.
        done: (B,) whether the rows of a body are filled in this step, by number of its joint.
        span: (B,) number of velocities that move the body; chain: (B, nv) these, in increasing order.
        twist: (B, 6) velocity of the body at the world's origin, world axes. given: (B, 6) the part of its change that
            closed chains require.
        body_rows: (B, nv, 6) L^-T J^T of the body's twist.
        xi: (n,) work array. y: (nv,) work array.
        shift: (n,) effect of all contacts except those of the feet.
        seen: (6K,) free velocities of the feet that include it.
        basis: (n, n) orthonormalised active rows. along: (6K,) work array.
        slips: (C,) whether a contact slips under load.
        force: (nv,) generalised impulse of the contacts [N.s, N.m.s].
        loaded: (1,) whether any contact except feet and joint limits is loaded.
        gained: (1,) kinetic energy that the contacts added, relative to the same step without any contact [J]. The work
            of the feet is that in a step with the contacts. The energy that corrects overlaps is subtracted.
    """

    tree: Tree
    projection: Projection
    bodies: BodyPoints
    stops: Stops
    contacts: Contacts
    objects: ObjectContacts
    feet: FeetAsPoints
    points: Annotated[Flags, 1]
    problem: ConeProblem
    rows: PointRows
    gamma: float
    slow: float
    before: Annotated[Array, "C", 3]
    imposed: Annotated[Array, "C", 3]
    target: Annotated[Array, "C", 3]
    rebound: Annotated[Array, "C"]
    z: Annotated[Array, "v"]
    G: Annotated[Array, "6K", "6K"]
    free: Annotated[Array, "6K"]
    xi: Annotated[Array, "n"]
    y: Annotated[Array, "v"]
    done: Annotated[Flags, "B"]
    span: Annotated[Integers, "B"]
    chain: Annotated[Integers, "B", "v"]
    twist: Annotated[Array, "B", 6]
    given: Annotated[Array, "B", 6]
    body_rows: Annotated[Array, "B", "v", 6]
    shift: Annotated[Array, "n"]
    seen: Annotated[Array, "6K"]
    basis: Annotated[Array, "n", "n"]
    along: Annotated[Array, "6K"]
    slips: Annotated[Flags, "C"]
    force: Annotated[Array, "v"]
    loaded: Annotated[Flags, 1]
    gained: Annotated[Array, 1]


@kernel
def _fill_body(s: TouchCoupling, joint: int, leaf: int, v: Array) -> None:
    """Fill the rows of the twist of a body, or with the number of a joint limit those of its joint as an x axis."""
    t = s.tree
    rows, chain, twist, given = s.body_rows[joint], s.chain[joint], s.twist[joint], s.given[joint]
    s.done[joint] = True
    # Closed chains connect all velocities.
    closed = t.rows.used[0] > 0
    width = s.span[joint] = t.z.shape[0] if closed else t.depth[leaf]
    of_body = joint < s.bodies.leaf.shape[0]
    for a in range(6):
        twist[a] = given[a] = 0.0
    for j in range(width):
        chain[j] = j if closed else t.ancestors[leaf, j]
        for a in range(6):
            rows[j, a] = 0.0
    if of_body:
        for d in range(t.depth[leaf]):
            i = t.ancestors[leaf, d]
            row = rows[i if closed else d]
            for a in range(6):
                row[a] = t.J_rows[i, a]
                twist[a] += row[a] * v[i]
    else:
        # A joint limit opens when its joint moves away from it. The rows of its other axes stay zero.
        side = -s.stops.side[joint - s.bodies.leaf.shape[0]]
        rows[leaf if closed else width - 1, 0] = side
        twist[0] = side * v[leaf]
    for j in range(width - 1, -1, -1):
        _divide_row(t, rows, chain[j], j, closed, of_body)
    # Only the part of the rows that the closed chains leave counts.
    for n in range(t.rows.used[0]):
        q = t.rows.Q[n]
        for a in range(6):
            share = 0.0
            for j in range(width):
                share += q[j] * rows[j, a]
            for j in range(width):
                rows[j, a] -= share * q[j]
            given[a] += share * t.rows.beta[n]


@kernel
def _divide_row(t: Tree, rows: Array, i: int, j: int, closed: bool, of_body: bool) -> None:
    """Multiply by L^-T: divide row ``j`` of velocity ``i``, and subtract it from those of its ancestors."""
    row, by = rows[j], t.inverse[i]
    if not of_body:
        row[0] *= by
        for d in range(t.depth[i] - 1):
            rows[t.ancestors[i, d] if closed else d, 0] -= t.L[i, d] * row[0]
        return
    for a in range(6):
        row[a] *= by
    for d in range(t.depth[i] - 1):
        by, before = t.L[i, d], rows[t.ancestors[i, d] if closed else d]
        for a in range(6):
            before[a] -= by * row[a]


@kernel
def _add_side(s: TouchCoupling, m: int, side: int, sign: float, v: Array) -> None:
    """Add one body or object to the rows and velocities of contact ``m``."""
    if side == WORLD:
        return
    if side < WORLD:
        _add_object(s, m, side, sign)
        return
    c, rows, column = s.contacts, s.rows.Y[m], s.rows.column[m]
    bodies = s.bodies.leaf.shape[0]
    leaf = s.stops.idx_v[side - bodies] if side >= bodies else s.bodies.leaf[side]
    if not s.done[side]:
        _fill_body(s, side, leaf, v)
    point, axes, chain = c.point[m], c.axes[m], s.chain[side]
    k, width = 0, s.rows.width[m]
    for j in range(s.span[side]):
        if side >= bodies:
            u = (0.0, 0.0, s.body_rows[side, j, 0])
        else:
            u = mul_t(axes, point_velocity(s.body_rows[side, j], point))
        # Two bodies of the robot share the velocities of their common ancestors, the first ones of both chains.
        while k < width and column[k] != chain[j]:
            k += 1
        if k == width:
            column[width] = chain[j]
            rows[0, width] = rows[1, width] = rows[2, width] = 0.0
            width += 1
        for a in range(3):
            rows[a, k] += sign * u[a]
        k += 1
    s.rows.width[m] = width
    if side >= bodies:
        s.before[m, 2] += s.twist[side, 0]
        s.imposed[m, 2] += s.given[side, 0]
        return
    u, w = mul_t(axes, point_velocity(s.twist[side], point)), mul_t(axes, point_velocity(s.given[side], point))
    for a in range(3):
        s.before[m, a] += sign * u[a]
        s.imposed[m, a] += sign * w[a]


@kernel
def _add_object(s: TouchCoupling, m: int, side: int, sign: float) -> None:
    """Append the part of an object to the rows of contact ``m``, and add its velocity."""
    o, c = s.objects, s.contacts
    k, point, axes = -1 - side, c.point[m], c.axes[m]
    arm = (point[0] - o.position[k, 0], point[1] - o.position[k, 1], point[2] - o.position[k, 2])
    u = mul_t(axes, point_velocity(o.free[k], arm))
    for a in range(3):
        s.before[m, a] += sign * u[a]
    add_body(s.rows, m, s.tree.z.shape[0] + 6 * k, sign, axes.T, arm, o.root[k])


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


@kernel
def store_drive(s: TouchCoupling) -> None:
    """Store the actions on the robot and its feet in a step without contacts, and clear the rebounds."""
    for m in range(s.rebound.shape[0]):
        s.rebound[m] = -np.inf
    for i in range(s.z.shape[0]):
        s.z[i] = s.tree.z[i]
    for a in range(s.free.shape[0]):
        s.free[a] = s.projection.w_free[a]
        for b in range(s.free.shape[0]):
            s.G[a, b] = s.projection.G[a, b]


@entry
def fill_problem(boxed: Any, v: Array) -> bool:
    """See :func:`fill_rows`."""
    return fill_rows(boxed.arrays, v)


@entry
def begin_points(boxed: Any, v: Array) -> None:
    """Begin a step again, with the feet as points."""
    begin_feet(boxed.arrays.feet)
    fill_rows(boxed.arrays, v)


@kernel
def fill_rows(s: TouchCoupling, v: Array) -> bool:
    """Fill rows, velocities and targets of all contacts; return whether any contact may rebound.

    The vertices of rigid feet become contacts; robot and feet get the inputs of a step without contacts.
    """
    if s.points[0]:
        add_vertices(s.feet, s.contacts)
    bounces = False
    c, q, r = s.contacts, s.problem, s.rows
    q.points[0] = c.used[0]
    for b in range(s.done.shape[0]):
        s.done[b] = False
    for i in range(s.z.shape[0]):
        s.tree.z[i] = s.z[i]
    for a in range(s.free.shape[0]):
        s.projection.w_free[a] = s.free[a]
        for b in range(s.free.shape[0]):
            s.projection.G[a, b] = s.G[a, b]
    for m in range(c.used[0]):
        for a in range(3):
            s.before[m, a] = s.imposed[m, a] = 0.0
            q.f[m, a] = c.impulse[m, a]
        r.width[m] = 0
        _add_side(s, m, c.a[m], 1.0, v)
        _add_side(s, m, c.b[m], -1.0, v)
        # A joint ends exactly at its limit, so that rounding errors do not accumulate.
        gamma = s.gamma if c.a[m] < s.bodies.leaf.shape[0] else 1.0
        s.target[m, 0], s.target[m, 1] = c.drift[m, 0], c.drift[m, 1]
        s.target[m, 2] = max(target_height_velocity(c.gap[m], s.tree.h, gamma), s.rebound[m])
        bounces = bounces or (c.restitution[m] > 0.0 and _approach_velocity(s, m) < -s.slow)
    prepare_points(r, q)
    return bounces


@entry
def rebound(boxed: Any, impulse: Array, lag: float) -> None:
    """See :func:`fill_rebounds`."""
    fill_rebounds(boxed.arrays, impulse, lag)


@kernel
def fill_rebounds(s: TouchCoupling, impulse: Array, lag: float) -> None:
    """Let contacts that close within the step and rebound leave as after an impact at the moment of contact.

    Velocities of objects are those at that moment.

    Args:
        s: The contacts.
        impulse: (K, 6) of the feet in the step without these contacts.
        lag: Delay of the robot's velocities as a fraction of a step. It is half a step, because positions follow the
            velocity at the end of the step (:mod:`bipedsim.sim.steps`), and zero in flight.
    """
    t, c = s.tree, s.contacts
    _act_on_robot(s, impulse)
    for m in range(c.used[0]):
        if not c.restitution[m] > 0.0:
            continue
        u = _approach_velocity(s, m)
        own = s.before[m, 2] - u
        robot = s.imposed[m, 2] + velocity_at(s.rows, m, s.xi)[2]
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
def _act_on_robot(s: TouchCoupling, impulse: Array) -> None:
    """Fill ``xi`` with the actions on the robot when the feet have the ``impulse`` (K, 6)."""
    nv = s.z.shape[0]
    for i in range(s.xi.shape[0]):
        s.xi[i] = s.z[i] if i < nv else 0.0
    add_wrenches(s.tree, impulse, s.xi)
    if s.tree.rows.used[0] > 0:
        impose(s.tree.rows, s.xi[:nv], False)


@kernel
def _solve(s: TouchCoupling, impulse: Array) -> bool:
    """Solve the contacts with the ``impulse`` (K, 6) of other feet; return whether the residual is within tolerance."""
    q, c = s.problem, s.contacts
    _act_on_robot(s, impulse)
    scale = LEAST * s.tree.h
    for m in range(q.points[0]):
        u = velocity_at(s.rows, m, s.xi)
        for a in range(3):
            q.g[m, a] = s.before[m, a] - s.target[m, a] + s.imposed[m, a] + u[a]
        if q.g[m, 2] < 0.0:
            scale = max(scale, abs(q.g[m, 0]), abs(q.g[m, 1]), -q.g[m, 2])
        q.mu[m] = c.mu[m]
    # The scale is the speed that contact has to remove.
    q.scale[0] = scale
    q.enough[0] = ENOUGH / scale
    solved = False
    # Each solve except the last one sets dynamic friction at a contact.
    for _ in range(q.points[0] + 1):
        solved = solve_points(s.rows, q)
        if not _take_dynamic(s):
            break
    return solved


@kernel
def _take_dynamic(s: TouchCoupling) -> bool:
    """Mark the loaded contacts that slip, and set their dynamic friction; return whether one of them had more."""
    q, c = s.problem, s.contacts
    slow = ZERO_SPEED * q.tolerance * q.scale[0]
    changed = False
    for m in range(q.points[0]):
        s.slips[m] = q.f[m, 2] > 0.0 and np.hypot(q.u[m, 0], q.u[m, 1]) > slow
        if s.slips[m] and q.mu[m] > c.mu_slips[m]:
            q.mu[m] = c.mu_slips[m]
            changed = True
    return changed


@entry
def solve_with_feet(boxed: Any, impulse: Array) -> bool:
    """See :func:`solve_all`."""
    return solve_all(boxed.arrays, impulse)


@kernel
def solve_all(s: TouchCoupling, impulse: Array) -> bool:
    """Solve all contacts with the feet as points, and store the solution; return whether it is within tolerance.

    Args:
        s: The contacts.
        impulse: (K, 6) zeros.
    """
    q = s.problem
    solved = _solve(s, impulse)
    slow = ZERO_SPEED * q.tolerance * q.scale[0]
    take_vertices(s.feet, s.contacts, q.f, q.u, slow, not solved)
    _fill_seen(s)
    _store(s, s.feet.vertices.result.impulse)
    return solved


@entry
def solve_beside_feet(boxed: Any, impulse: Array) -> float:
    """Solve the contacts with the ``impulse`` (K, 6) of the feet, and show their effect to the feet.

    The feet also see the response of the contacts to another impulse, as if the active rows were eliminated. So one
    round is enough if the active rows stay the same. Sticking contacts hold their points, slipping ones the height of
    theirs.

    Returns:
        The change of the foot velocities that the feet expect for ``impulse`` [m/s], relative to the speeds that the
        contacts change; NaN if the contacts have no solution within the tolerance.
    """
    s = boxed.arrays
    p, size = s.projection, s.seen.shape[0]
    solved = _solve(s, impulse)
    _fill_seen(s)
    largest = 0.0
    for a in range(size):
        change = s.seen[a] - p.w_free[a]
        for b in range(size):
            change += (s.G[a, b] - p.G[a, b]) * impulse[b // 6, b % 6]
        largest = max(largest, abs(change))
    rank = _orthonormalise_active(s)
    s.problem.budget[0] -= rank * (rank * s.xi.shape[0] + size * size)
    for a in range(size):
        p.w_free[a] = s.seen[a]
        for b in range(size):
            p.G[a, b] = s.G[a, b]
    for n in range(rank):
        share = 0.0
        for a in range(size):
            s.along[a] = _foot_row(s, a, s.basis[n])
            share += s.along[a] * impulse[a // 6, a % 6]
        for a in range(size):
            p.w_free[a] += s.along[a] * share
            for b in range(size):
                p.G[a, b] -= s.along[a] * s.along[b]
    return largest / s.problem.scale[0] if solved else np.nan


@kernel
def _foot_row(s: TouchCoupling, a: int, y: Array) -> float:
    """Return entry ``a`` of the velocities of all feet for the velocities ``y`` (n,)."""
    t = s.tree
    leaf, total = t.leaf[a // 6], 0.0
    for d in range(t.depth[leaf]):
        total += t.Y[a // 6, d, a % 6] * y[t.ancestors[leaf, d]]
    return total


@kernel
def _orthonormalise_active(s: TouchCoupling) -> int:
    """Fill ``basis`` with the orthonormalised active rows of all contacts, and return their number."""
    q, r, rank = s.problem, s.rows, 0
    for m in range(q.points[0]):
        if not q.f[m, 2] > 0.0:
            continue
        sticks = np.hypot(q.f[m, 0], q.f[m, 1]) < STICKS * q.mu[m] * q.f[m, 2]
        for a in range(0 if sticks else 2, 3):
            if rank == s.basis.shape[0]:
                return rank
            y = s.basis[rank]
            for i in range(y.shape[0]):
                y[i] = 0.0
            for j in range(r.width[m]):
                y[r.column[m, j]] += r.Y[m, a, j]
            remaining = 0.0
            for _ in range(2):
                for n in range(rank):
                    share = 0.0
                    for i in range(y.shape[0]):
                        share += s.basis[n, i] * y[i]
                    for i in range(y.shape[0]):
                        y[i] -= share * s.basis[n, i]
            for i in range(y.shape[0]):
                remaining += y[i] * y[i]
            # A row that depends on the others changes nothing.
            if remaining > DEPENDENT * r.own[m, a, a]:
                for i in range(y.shape[0]):
                    y[i] /= np.sqrt(remaining)
                rank += 1
    return rank


@kernel
def _fill_seen(s: TouchCoupling) -> None:
    """Fill ``seen``, the free velocities of the feet that include all other contacts."""
    _fill_shift(s)
    for a in range(s.seen.shape[0]):
        s.seen[a] = s.free[a] + _foot_row(s, a, s.shift)


@kernel
def _fill_shift(s: TouchCoupling) -> None:
    """Fill ``shift`` from the contacts that are not of feet."""
    q = s.problem
    for i in range(s.shift.shape[0]):
        s.shift[i] = 0.0
    for m in range(s.contacts.used[0]):
        add_impulse(s.rows, m, (q.f[m, 0], q.f[m, 1], q.f[m, 2]), s.shift)


@entry
def store_beside_feet(boxed: Any, impulse: Array) -> None:
    """Store the last solution with the ``impulse`` (K, 6) of the feet."""
    _store(boxed.arrays, impulse)


@kernel
def _store(s: TouchCoupling, impulse: Array) -> None:
    """Store the last solution with the ``impulse`` (K, 6) of the feet.

    The impulses of the contacts are added to the actions on the robot, ``tree.z``.
    """
    t, c, q, o = s.tree, s.contacts, s.problem, s.objects
    nv = t.z.shape[0]
    s.loaded[0] = False
    for a in range(s.seen.shape[0]):
        s.projection.w_free[a] = s.seen[a]
        for b in range(s.seen.shape[0]):
            s.projection.G[a, b] = s.G[a, b]
    # The work of the feet is that with the velocities that they have with the contacts.
    for i in range(s.xi.shape[0]):
        s.xi[i] = 0.0
    add_wrenches(t, impulse, s.xi)
    gained = 0.0
    for i in range(nv):
        gained -= 0.5 * s.xi[i] * s.shift[i]
        s.xi[i] = s.z[i]
        s.force[i] = s.y[i] = 0.0
    if t.rows.used[0] > 0:
        impose(t.rows, s.xi[:nv], False)
    for k in range(o.free.shape[0]):
        for a in range(6):
            o.after[k, a] = o.free[k, a]
            for j in range(6):
                o.after[k, a] += o.root[k, a, j] * s.shift[nv + 6 * k + j]
    for m in range(c.used[0]):
        free = velocity_at(s.rows, m, s.xi)
        for a in range(3):
            c.impulse[m, a] = q.f[m, a]
            c.velocity[m, a] = q.u[m, a] + s.target[m, a]
            gained += 0.5 * q.f[m, a] * (s.before[m, a] + s.imposed[m, a] + free[a] + c.velocity[m, a])
        gained -= q.f[m, 2] * max(s.target[m, 2], 0.0)
        if c.a[m] >= s.bodies.leaf.shape[0]:
            j = c.a[m] - s.bodies.leaf.shape[0]
            s.stops.impulse[j] = -s.stops.side[j] * c.impulse[m, 2]
            s.stops.held[j] = s.stops.side[j] if c.impulse[m, 2] != 0.0 else 0
            s.y[s.stops.idx_v[j]] += s.stops.impulse[j]
            continue
        if c.impulse[m, 2] != 0.0:
            s.loaded[0] = True
            _add_side_force(s, m, c.a[m], 1.0)
            _add_side_force(s, m, c.b[m], -1.0)
    s.gained[0] = gained
    for i in range(nv - 1, -1, -1):
        y = (s.y[i] + s.force[i]) * t.inverse[i]
        for d in range(t.depth[i] - 1):
            s.y[t.ancestors[i, d]] -= t.L[i, d] * y
        t.z[i] = s.z[i] + y


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
