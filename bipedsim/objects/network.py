"""Solution of the cone problem of free bodies, at a cost that grows with the number of their contacts.

Newton's method is that of :mod:`bipedsim.contact.time_stepping.cone_newton`. Its linear system has six rows per body,

    (M + J^T C J) dv = -J^T c,

and is block sparse: two bodies without a common contact have no block. The bodies with the fewest neighbours are
eliminated first. If Newton's method does not converge, sweeps over the contacts alternate with it.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.contact import (
    NEWTON_STEPS,
    PROXIMAL,
    SWEEPS,
    WEIGHTS,
    ConeProblem,
    check_progress,
    clear_open_points,
    copy_points,
    floor_mobilities,
    linearise,
    measure,
    onto_cone,
    reserve_budget,
    solve_point,
)
from bipedsim.numerics import Array, Flags, Integers, assign, cross, kernel, mul, mul_t
from bipedsim.objects.bodies import Bodies

PER_POINT, PER_BLOCK = 400, 220
"""Operations of a Newton step per point and per product of two blocks."""
PER_SWEEP = 150
"""Operations of a sweep per point."""
ENOUGH = 1e-10
"""Residual at which Newton's method stops if several bodies are coupled."""
NONE = -1
"""Body number of a side without a free body."""


class BodyNetwork(NamedTuple):
    """Free bodies that are coupled by contact points.

    Attributes:
        bodies: (1,) number of bodies n.
        members: (N,) the bodies.
        place: (N,) index of each body in ``members``, or ``NONE``.
        order: (N,) indices of the members in the order of their elimination.
        done: (N,) whether a member is in ``order``.
        linked: (N, N) whether two members have a block.
        products: (1,) number of products of two blocks in an elimination.
        sides: (M, 2) indices of the bodies of each point, or ``NONE``.
        J: (M, 2, 3, 6) Jacobians of each point, in the axes of its pair.
        own: (M, 3, 3) velocities of each point per unit impulse at it [1/kg].
        mass: (N,) of the members [kg].
        inertia, mobility: (N, 3, 3) of the members in world axes, and its inverse.
        v: (N, 6) velocities due to the impulses.
        rhs: (N, 6) right-hand side, and solution.
        blocks: (N, N, 6, 6) matrix of a Newton step.
        A: (6, 3) work array.
        rows: (6,) work array, exchanged rows.
    """

    bodies: Annotated[Integers, 1]
    members: Annotated[Integers, "N"]
    place: Annotated[Integers, "N"]
    order: Annotated[Integers, "N"]
    done: Annotated[Flags, "N"]
    linked: Annotated[Flags, "N", "N"]
    products: Annotated[Integers, 1]
    sides: Annotated[Integers, "M", 2]
    J: Annotated[Array, "M", 2, 3, 6]
    own: Annotated[Array, "M", 3, 3]
    mass: Annotated[Array, "N"]
    inertia: Annotated[Array, "N", 3, 3]
    mobility: Annotated[Array, "N", 3, 3]
    v: Annotated[Array, "N", 6]
    rhs: Annotated[Array, "N", 6]
    blocks: Annotated[Array, "N", "N", 6, 6]
    A: Annotated[Array, 6, 3]
    rows: Annotated[Integers, 6]


@kernel
def begin_network(o: BodyNetwork) -> None:
    """Remove all bodies."""
    for k in range(o.bodies[0]):
        o.place[o.members[k]] = NONE
    o.bodies[0] = 0


@kernel
def couple(o: BodyNetwork, first: int, second: int) -> None:
    """Add the bodies of a pair; the second may be ``NONE``."""
    one = _join(o, first)
    if second == NONE:
        return
    two = _join(o, second)
    o.linked[one, two] = o.linked[two, one] = True


@kernel
def _join(o: BodyNetwork, body: int) -> int:
    """Add a body if it is new, and return its index."""
    if o.place[body] != NONE:
        return o.place[body]
    n = o.bodies[0]
    o.place[body] = n
    o.members[n] = body
    for k in range(n):
        o.linked[n, k] = o.linked[k, n] = False
    o.linked[n, n] = True
    o.bodies[0] = n + 1
    return n


@kernel
def attach(o: BodyNetwork, q: ConeProblem, n: int, side: int, body: int, axes, arm, v, w) -> None:  # noqa: PLR0913  # type: ignore[no-untyped-def]
    """Attach point ``n`` to a body, and add the velocity of the body there to ``q.g[n]``."""
    o.sides[n, side] = o.place[body]
    sign = 1.0 - 2.0 * side
    J = o.J[n, side]
    for x in range(3):
        axis = axes[x]
        turning = cross(arm, axis)
        total = 0.0
        for d in range(3):
            J[x, d] = sign * axis[d]
            J[x, 3 + d] = sign * turning[d]
            total += J[x, d] * v[d] + J[x, 3 + d] * w[d]
        q.g[n, x] += total


@kernel
def end_network(o: BodyNetwork, q: ConeProblem, b: Bodies, R: Array, mobility: Array) -> None:
    """Fill inertias and the order of elimination, and the mobilities of the points."""
    for k in range(o.bodies[0]):
        i = o.members[k]
        o.mass[k] = b.mass[i]
        for x in range(3):
            row = mul(b.inertia[i], (R[i, x, 0], R[i, x, 1], R[i, x, 2]))
            for y in range(3):
                o.mobility[k, x, y] = mobility[i, x, y]
                o.inertia[k, x, y] = R[i, y, 0] * row[0] + R[i, y, 1] * row[1] + R[i, y, 2] * row[2]
    _order_members(o)
    for n in range(q.points[0]):
        for x in range(3):
            for y in range(3):
                o.own[n, x, y] = 0.0
        for side in range(2):
            k = o.sides[n, side]
            if k == NONE:
                continue
            J = o.J[n, side]
            for y in range(3):
                turned = mul(o.mobility[k], J[y, 3:])
                for x in range(3):
                    for d in range(3):
                        o.own[n, x, y] += J[x, d] * J[y, d] / o.mass[k] + J[x, 3 + d] * turned[d]
        q.mobility[n] = (o.own[n, 0, 0] + o.own[n, 1, 1] + o.own[n, 2, 2]) / 3.0
    floor_mobilities(q)


@kernel
def _order_members(o: BodyNetwork) -> None:
    """Fill the order of elimination, fewest neighbours first, and mark the blocks that fill up."""
    count = o.bodies[0]
    o.products[0] = 0
    for k in range(count):
        o.done[k] = False
    for n in range(count):
        fewest = count + 1
        for k in range(count):
            if not o.done[k]:
                degree = 0
                for j in range(count):
                    if o.linked[k, j] and not o.done[j]:
                        degree += 1
                if degree < fewest:
                    fewest = degree
                    o.order[n] = k
        k = o.order[n]
        o.done[k] = True
        o.products[0] += fewest * fewest
        for i in range(count):
            if o.linked[k, i] and not o.done[i]:
                for j in range(count):
                    if o.linked[k, j] and not o.done[j]:
                        o.linked[i, j] = True


@kernel
def solve_network(o: BodyNetwork, q: ConeProblem) -> bool:
    """Solve the problem from the impulses in ``q.f``; return whether the residual reached the tolerance.

    ``q.f`` and ``q.u`` are the best values found; ``q.residual`` is their residual. They are never NaN for finite
    input. The solver takes at most half of the remaining budget of the step. It makes some sweeps even without budget.
    """
    q.used[0] = 0
    q.residual[0] = np.inf
    # The impulses between bodies are far from rounding level in any case, because the next step moves the bodies.
    q.enough[0] = ENOUGH if o.bodies[0] > 1 else 0.0
    for n in range(q.points[0]):
        assign(q.best[n], (0.0, 0.0, 0.0))
    reserved = reserve_budget(q)
    _newton(o, q, PROXIMAL, False)
    block = 0
    copy_points(q.best, q.z)
    # The first sweeps always run: they are cheap, and near a solution they give a usable result.
    while q.residual[0] > q.tolerance and q.used[0] < q.iterations and (block == 0 or q.budget[0] > 0):
        # The sweeps continue from their own impulses, regardless of the result of Newton's method.
        copy_points(q.z, q.f)
        _sweep(o, q)
        copy_points(q.f, q.z)
        _newton(o, q, WEIGHTS[block % len(WEIGHTS)], True)
        block += 1
    copy_points(q.best, q.f)
    for n in range(q.points[0]):
        onto_cone(q.f[n], q.mu[n])
    _fill_speeds(o, q)
    now = measure(q)
    if now <= max(q.residual[0], q.tolerance):
        q.residual[0] = now
    else:
        copy_points(q.best, q.f)
        _fill_speeds(o, q)
    clear_open_points(q)
    q.budget[0] = max(q.budget[0], 0) + reserved
    return q.residual[0] <= q.tolerance


@kernel
def _fill_speeds(o: BodyNetwork, q: ConeProblem) -> None:
    """Fill ``v`` with the effect of the impulses ``q.f``, and ``q.u`` with the velocities of the points."""
    for k in range(o.bodies[0]):
        for d in range(6):
            o.rhs[k, d] = 0.0
    for n in range(q.points[0]):
        for side in range(2):
            k = o.sides[n, side]
            if k != NONE:
                J = o.J[n, side]
                for d in range(6):
                    o.rhs[k, d] += J[0, d] * q.f[n, 0] + J[1, d] * q.f[n, 1] + J[2, d] * q.f[n, 2]
    for k in range(o.bodies[0]):
        for d in range(3):
            o.v[k, d] = o.rhs[k, d] / o.mass[k]
        assign(o.v[k, 3:], mul(o.mobility[k], o.rhs[k, 3:]))
    for n in range(q.points[0]):
        u = _speed(o, o.v, n)
        for x in range(3):
            q.u[n, x] = u[x] + q.g[n, x]


@kernel
def _speed(o: BodyNetwork, v: Array, n: int) -> tuple[float, float, float]:
    """Return the velocity of point ``n`` for the velocities ``v`` (N, 6) of the bodies."""
    x = y = z = 0.0
    for side in range(2):
        k = o.sides[n, side]
        if k != NONE:
            J = o.J[n, side]
            for d in range(6):
                x += J[0, d] * v[k, d]
                y += J[1, d] * v[k, d]
                z += J[2, d] * v[k, d]
    return x, y, z


@kernel
def _newton(o: BodyNetwork, q: ConeProblem, proximal: float, patient: bool) -> None:
    """Make Newton steps from ``q.f``, and store the best impulses; ``patient`` keeps the proximal weight."""
    smallest, stalled = np.inf, 0
    q.proximal[0] = proximal
    for _ in range(NEWTON_STEPS):
        _fill_speeds(o, q)
        smallest, stalled, stop = check_progress(q, smallest, stalled, patient)
        if stop or not _step(o, q):
            return


@kernel
def _step(o: BodyNetwork, q: ConeProblem) -> bool:
    """Make one Newton step; return False if its matrix is singular."""
    q.budget[0] -= PER_POINT * q.points[0] + PER_BLOCK * o.products[0]
    _clear_system(o)
    for n in range(q.points[0]):
        linearise(q, n)
        _add_point(o, q, n)
    if not _eliminate(o):
        return False
    for n in range(q.points[0]):
        by = 1.0 / q.mobility[n]
        u = _speed(o, o.rhs, n)
        for x in range(3):
            step = q.C[n, x, 0] * u[0] + q.C[n, x, 1] * u[1] + q.C[n, x, 2] * u[2]
            q.f[n, x] -= by * (q.c[n, x] + step)
    return True


@kernel
def _clear_system(o: BodyNetwork) -> None:
    """Set the system to that without contact."""
    for k in range(o.bodies[0]):
        for d in range(6):
            o.rhs[k, d] = 0.0
        for j in range(o.bodies[0]):
            if o.linked[k, j]:
                for x in range(6):
                    for y in range(6):
                        o.blocks[k, j, x, y] = 0.0
        for x in range(3):
            o.blocks[k, k, x, x] = o.mass[k]
            for y in range(3):
                o.blocks[k, k, 3 + x, 3 + y] = o.inertia[k, x, y]


@kernel
def _add_point(o: BodyNetwork, q: ConeProblem, n: int) -> None:
    """Add J^T C J of point ``n`` to the matrix, and subtract J^T c from the right-hand side."""
    by = 1.0 / q.mobility[n]
    c, C = q.c[n], q.C[n]
    closed = C[2, 2] != 0.0
    for side in range(2):
        i = o.sides[n, side]
        if i == NONE:
            continue
        J = o.J[n, side]
        for d in range(6):
            o.rhs[i, d] -= by * (J[0, d] * c[0] + J[1, d] * c[1] + J[2, d] * c[2])
        if not closed:
            continue
        for x in range(6):
            for y in range(3):
                o.A[x, y] = by * (J[0, x] * C[0, y] + J[1, x] * C[1, y] + J[2, x] * C[2, y])
        for other in range(2):
            j = o.sides[n, other]
            if j == NONE:
                continue
            K = o.J[n, other]
            block = o.blocks[i, j]
            for x in range(6):
                for y in range(6):
                    block[x, y] += o.A[x, 0] * K[0, y] + o.A[x, 1] * K[1, y] + o.A[x, 2] * K[2, y]


@kernel
def _eliminate(o: BodyNetwork) -> bool:
    """Solve the system in place; return False if a pivot is 0 or not finite.

    The factors of the blocks are used and not their inverses, whose errors would exceed the masses where contacts
    stick.
    """
    for n in range(o.bodies[0]):
        if not _eliminate_member(o, n):
            return False
    for n in range(o.bodies[0] - 1, -1, -1):
        _insert(o, n)
    return True


@kernel
def _eliminate_member(o: BodyNetwork, n: int) -> bool:
    """Eliminate the ``n``-th member from the rows of all later ones; return False if a pivot is 0 or not finite."""
    count = o.bodies[0]
    p = o.order[n]
    pivots = o.blocks[p, p]
    if not _factor(pivots, o.rows):
        return False
    _forward_vector(pivots, o.rows, o.rhs[p])
    for s in range(n + 1, count):
        j = o.order[s]
        if o.linked[p, j]:
            _forward(pivots, o.rows, o.blocks[p, j])
    for r in range(n + 1, count):
        i = o.order[r]
        if not o.linked[i, p]:
            continue
        factor = o.blocks[i, p]
        _divide(factor, pivots)
        for x in range(6):
            o.rhs[i, x] -= _row_times(factor, x, o.rhs[p])
        for s in range(n + 1, count):
            j = o.order[s]
            if o.linked[p, j]:
                _subtract_product(factor, o.blocks[p, j], o.blocks[i, j])
    return True


@kernel
def _row_times(A: Array, x: int, b: Array) -> float:
    total = 0.0
    for d in range(6):
        total += A[x, d] * b[d]
    return total


@kernel
def _insert(o: BodyNetwork, n: int) -> None:
    """Solve the row of the ``n``-th member, in which all later ones are known."""
    p = o.order[n]
    rhs = o.rhs[p]
    for r in range(n + 1, o.bodies[0]):
        j = o.order[r]
        if o.linked[p, j]:
            for x in range(6):
                rhs[x] -= _row_times(o.blocks[p, j], x, o.rhs[j])
    for x in range(5, -1, -1):
        total = rhs[x]
        for d in range(x + 1, 6):
            total -= o.blocks[p, p, x, d] * rhs[d]
        rhs[x] = total / o.blocks[p, p, x, x]


@kernel
def _factor(A: Array, rows: Integers) -> bool:
    """Factor A (6, 6) in place as :func:`~bipedsim.numerics.factor_pivoted` does; return False without a pivot."""
    for k in range(6):
        p = k
        for x in range(k + 1, 6):
            if abs(A[x, k]) > abs(A[p, k]):
                p = x
        rows[k] = p
        if not 0.0 < abs(A[p, k]) < np.inf:
            return False
        if p != k:
            for y in range(6):
                A[k, y], A[p, y] = A[p, y], A[k, y]
        by = 1.0 / A[k, k]
        for x in range(k + 1, 6):
            A[x, k] *= by
            for y in range(k + 1, 6):
                A[x, y] -= A[x, k] * A[k, y]
    return True


@kernel
def _forward(A: Array, rows: Integers, B: Array) -> None:
    """Apply the row exchanges and the inverse lower factor of A to B (6, 6)."""
    for k in range(6):
        p = rows[k]
        if p != k:
            for y in range(6):
                B[k, y], B[p, y] = B[p, y], B[k, y]
    for x in range(1, 6):
        for k in range(x):
            by = A[x, k]
            for y in range(6):
                B[x, y] -= by * B[k, y]


@kernel
def _forward_vector(A: Array, rows: Integers, b: Array) -> None:
    """Apply the row exchanges and the inverse lower factor of A to b (6,)."""
    for k in range(6):
        p = rows[k]
        b[k], b[p] = b[p], b[k]
    for x in range(1, 6):
        for k in range(x):
            b[x] -= A[x, k] * b[k]


@kernel
def _divide(B: Array, A: Array) -> None:
    """Multiply B (6, 6) by the inverse upper factor of A from the right."""
    for y in range(6):
        by = 1.0 / A[y, y]
        for x in range(6):
            total = B[x, y]
            for k in range(y):
                total -= B[x, k] * A[k, y]
            B[x, y] = total * by


@kernel
def _subtract_product(A: Array, B: Array, out: Array) -> None:
    """Subtract A B from ``out``, all (6, 6)."""
    for x in range(6):
        for k in range(6):
            by = A[x, k]
            for y in range(6):
                out[x, y] -= by * B[k, y]


@kernel
def _sweep(o: BodyNetwork, q: ConeProblem) -> None:
    """Sweep over the points from ``q.f``: reduce the velocity of each point and project its impulse on the cone."""
    _fill_speeds(o, q)
    for _ in range(SWEEPS):
        for n in range(q.points[0]):
            u = _speed(o, o.v, n)
            x, y, z = solve_point(o.own[n], q.f[n], q.mu[n], u[0] + q.g[n, 0], u[1] + q.g[n, 1], u[2] + q.g[n, 2])
            f = (x - q.f[n, 0], y - q.f[n, 1], z - q.f[n, 2])
            for a in range(3):
                q.f[n, a] += f[a]
            for side in range(2):
                k = o.sides[n, side]
                if k == NONE:
                    continue
                J = o.J[n, side]
                for d in range(3):
                    o.v[k, d] += (J[0, d] * f[0] + J[1, d] * f[1] + J[2, d] * f[2]) / o.mass[k]
                torque = mul_t(J[:, 3:], f)
                for d in range(3):
                    m = o.mobility[k, d]
                    o.v[k, 3 + d] += m[0] * torque[0] + m[1] * torque[1] + m[2] * torque[2]
    q.used[0] += SWEEPS
    q.budget[0] -= SWEEPS * q.points[0] * PER_SWEEP
