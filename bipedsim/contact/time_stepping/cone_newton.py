"""Semi-smooth Newton steps on the map of Alart and Curnier (1991) for point contacts.

A step costs one solve of 6K rows for any number of points, because points move with their feet. Dependent rows are
common (four vertices of a rigid sole). A proximal term keeps the step regular, and selects a solution near the initial
value if there are many.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.time_stepping.cone_problem import (
    CORNER,
    EDGE,
    INSIDE,
    LEAVES,
    STICKS,
    ConeProblem,
    add_quadratic,
    copy_points,
    facet,
    fill_velocities,
    gather,
    measure,
    multiply,
    multiply_blocks,
)
from bipedsim.numerics import assign, factor_pivoted, kernel, point_velocity, solve_dense, solve_factored

EASE, LEAST_PROXIMAL = 0.2, 1e-11
"""Factor by which a Newton step without progress reduces the proximal weight, and the smallest weight.

Points with slightly inconsistent heights exchange load at a rate inversely proportional to the weight.
"""
NEWTON_STEPS = 25
"""Maximum number of Newton steps before another method continues."""
WIDE = 48
"""Number of rows above which pivots are searched in one column only."""
PER_POINT = 300
"""Operations of a step per point."""
STALLED, STALLED_SOLVED = 8, 2
"""Newton steps without halving the residual after which the method stops, and the same when the tolerance is met."""
POLISHED = 1e-14
"""Residual at rounding level; Newton's method continues to it if it can, regardless of the tolerance."""
POLISHED_PART = 1e-10
"""The same for the sub-steps of a step with an impact. Their residual is not carried into the next step."""


@kernel
def linearise(q: ConeProblem, m):
    """Fill ``q.c[m]`` and ``q.C[m]`` with the Newton step of point ``m`` on the map of Alart and Curnier.

    With p the impulse times mobility: an open point has p = 0, a sticking one u = 0. A slipping point has u_n = 0 and
    p_t = mu (p_n - u_n) t, where t is the direction of p_t - u_t. The proximal term makes each case solvable for p.
    """
    c = q.c[m]
    C = q.C[m]
    d = q.mobility[m]
    u = q.u[m]
    px = d * q.f[m, 0]
    py = d * q.f[m, 1]
    pn = d * q.f[m, 2]
    C[:, :] = 0.0
    load = pn - u[2]
    if not load > 0.0:
        c[0] = px
        c[1] = py
        c[2] = pn
        return
    stiff = 1.0 / q.proximal[0]
    x = px - u[0]
    y = py - u[1]
    length = np.sqrt(x * x + y * y)
    limit = q.mu[m] * load
    kind = INSIDE if length <= limit else CORNER
    tx = ty = 0.0
    if q.sides > 0 and not q.round[0]:
        kind, tx, ty = facet(q, m, x, y, limit)
    if kind == INSIDE:
        for a in range(3):
            c[a] = stiff * u[a]
            C[a, a] = stiff
        return
    c[2] = stiff * u[2]
    C[2, 2] = stiff
    if q.sides > 0 and not q.round[0]:
        _linearise_facet(q, m, kind, tx, ty)
        return
    tx = x / length
    ty = y / length
    turn = limit / length
    # Along the slip p_t = mu (p_n - u_n); across it the direction rotates.
    along = q.mu[m] * stiff * u[2] + (px * tx + py * ty - limit)
    soft = 1.0 / (1.0 - turn + q.proximal[0])
    across = soft * (-px * ty + py * tx)
    c[0] = along * tx - across * ty
    c[1] = along * ty + across * tx
    C[0, 0] = soft * turn * ty * ty
    C[0, 1] = -soft * turn * tx * ty
    C[1, 0] = C[0, 1]
    C[1, 1] = soft * turn * tx * tx
    C[0, 2] = q.mu[m] * (stiff + 1.0) * tx
    C[1, 2] = q.mu[m] * (stiff + 1.0) * ty


@kernel
def _linearise_facet(q: ConeProblem, m, kind, tx, ty):
    """Fill the tangential rows of ``q.c[m]`` and ``q.C[m]`` for the edge or corner in the direction (tx, ty)."""
    c = q.c[m]
    C = q.C[m]
    u = q.u[m]
    d = q.mobility[m]
    stiff = 1.0 / q.proximal[0]
    mu = q.mu[m]
    px = d * q.f[m, 0]
    py = d * q.f[m, 1]
    load = d * q.f[m, 2] - u[2]
    if kind == EDGE:
        mu *= q.half[0]
    # Along the direction p_t = mu (p_n - u_n); across it a corner is fixed and an edge sticks.
    along = mu * stiff * u[2] + px * tx + py * ty - mu * load
    across = py * tx - px * ty
    if kind == EDGE:
        across = stiff * (u[1] * tx - u[0] * ty)
        C[0, 0] = stiff * ty * ty
        C[0, 1] = -stiff * tx * ty
        C[1, 0] = C[0, 1]
        C[1, 1] = stiff * tx * tx
    c[0] = along * tx - across * ty
    c[1] = along * ty + across * tx
    C[0, 2] = mu * (stiff + 1.0) * tx
    C[1, 2] = mu * (stiff + 1.0) * ty


@kernel
def begin_with_guess(G, q: ConeProblem, proximal):
    """Fill ``q.f`` with the impulses of the contact states ``q.guess``, unless the impulses in it are better.

    This takes one matrix and two passes; the second removes the error of the proximal term. Slipping points keep the
    slip direction of ``q.g``.
    """
    copy_points(q.f, q.best)
    q.proximal[0] = proximal
    size = q.rhs.shape[0]
    for again in range(2):
        if again == 0:
            q.f[:, :] = 0.0
        fill_velocities(G, q)
        for m in range(q.points[0]):
            _linearise_guess(q, m)
        if again == 0:
            _fill_blocks(q)
            multiply_blocks(G, q.H, 1.0, q.A)
            if not factor_pivoted(q.A, size, q.rows):
                copy_points(q.best, q.f)
                return
        _fill_step(G, q)
        solve_factored(q.A, size, q.rows, q.rhs, q.twist)
        _take_twist(q)
    fill_velocities(G, q)
    now = measure(q)
    if now > q.enough[0]:
        copy_points(q.f, q.z)
        copy_points(q.best, q.f)
        fill_velocities(G, q)
        if now < measure(q):
            copy_points(q.z, q.f)


@kernel
def _linearise_guess(q: ConeProblem, m):
    """Fill ``q.c[m]`` and ``q.C[m]`` as :func:`linearise` does, for a point in the state ``q.guess``."""
    c = q.c[m]
    C = q.C[m]
    d = q.mobility[m]
    C[:, :] = 0.0
    if q.guess[m] == LEAVES:
        for a in range(3):
            c[a] = d * q.f[m, a]
        return
    u = q.u[m]
    stiff = 1.0 / q.proximal[0]
    speed = np.sqrt(q.g[m, 0] * q.g[m, 0] + q.g[m, 1] * q.g[m, 1])
    if q.guess[m] == STICKS or not speed > 0.0:
        for a in range(3):
            c[a] = stiff * u[a]
            C[a, a] = stiff
        return
    c[2] = stiff * u[2]
    C[2, 2] = stiff
    # p_t = mu (p_n - u_n) against the slip.
    tx = -q.g[m, 0] / speed
    ty = -q.g[m, 1] / speed
    friction = q.mu[m] * (d * q.f[m, 2] - u[2] - stiff * u[2])
    c[0] = d * q.f[m, 0] - friction * tx
    c[1] = d * q.f[m, 1] - friction * ty
    C[0, 2] = q.mu[m] * (stiff + 1.0) * tx
    C[1, 2] = q.mu[m] * (stiff + 1.0) * ty


@kernel
def _newton_step(G, q: ConeProblem):
    """Make one Newton step: twist = -G J^T (c + C J twist), then f of each point from it."""
    for m in range(q.points[0]):
        linearise(q, m)
    _fill_blocks(q)
    _fill_step(G, q)
    multiply_blocks(G, q.H, 1.0, q.A)
    size = q.rhs.shape[0]
    q.budget[0] -= size * size * (size // 3 + 6) + PER_POINT * q.points[0]
    # A pivot search in the whole matrix takes longer than the rest of the step. Problems far from their solution need
    # many steps, so they search by column; the others keep the full search and thus their exact bits.
    in_rows = q.enough[0] > 0.0 or size > WIDE
    if in_rows and factor_pivoted(q.A, size, q.rows):
        solve_factored(q.A, size, q.rows, q.rhs, q.twist)
    else:
        if in_rows:
            multiply_blocks(G, q.H, 1.0, q.A)
        q.budget[0] -= size * size * size
        solve_dense(q.A, q.rhs, size, q.twist, q.rows, q.columns)
    _take_twist(q)


@kernel
def _fill_blocks(q: ConeProblem):
    """Fill ``q.H`` with J^T C J of each foot."""
    q.H[:, :, :] = 0.0
    for m in range(q.points[0]):
        add_quadratic(q.arm[m], q.C[m], 1.0 / q.mobility[m], q.H[q.foot[m]])


@kernel
def _fill_step(G, q: ConeProblem):
    """Convert ``q.c`` to impulses and fill ``q.rhs`` with -G J^T c."""
    for m in range(q.points[0]):
        by = 1.0 / q.mobility[m]
        for a in range(3):
            q.c[m, a] *= by
    gather(q, q.c, False)
    multiply(G, q.wrench, q.rhs)
    for i in range(q.rhs.shape[0]):
        q.rhs[i] = -q.rhs[i]


@kernel
def _take_twist(q: ConeProblem):
    """Update ``q.f`` by the step with the velocities in ``q.twist``."""
    for m in range(q.points[0]):
        assign(q.u[m], point_velocity(q.twist[6 * q.foot[m] :], q.arm[m]))
        by = 1.0 / q.mobility[m]
        for a in range(3):
            step = q.C[m, a, 0] * q.u[m, 0] + q.C[m, a, 1] * q.u[m, 1] + q.C[m, a, 2] * q.u[m, 2]
            q.f[m, a] -= q.c[m, a] + by * step


@kernel
def newton(G, q: ConeProblem, proximal, patient):
    """Make Newton steps from ``q.f`` while they reduce the residual, and store the best impulses in ``q.best``.

    Args:
        G, q: See :func:`solve_cones`.
        proximal: Initial weight of the proximal term.
        patient: Whether to keep this weight and continue without progress. Points that cannot all stick then push
            against each other, a little more with each step, until one of them slips.
    """
    smallest, stalled = np.inf, 0
    q.proximal[0] = proximal
    for _ in range(NEWTON_STEPS):
        fill_velocities(G, q)
        smallest, stalled, stop = check_progress(q, smallest, stalled, patient)
        if stop:
            return
        _newton_step(G, q)


@kernel
def check_progress(q: ConeProblem, smallest, stalled, patient):
    """Measure the residual of ``q.f`` and ``q.u``, store the best impulses, and adapt the proximal weight.

    Args:
        q: The problem.
        smallest: Smallest residual of the previous steps.
        stalled: Number of steps since it was last halved.
        patient: See :func:`newton`.

    Returns:
        New values of ``smallest`` and ``stalled``, and whether the method stops.
    """
    now = measure(q)
    q.used[0] += 1
    if now < q.residual[0]:
        q.residual[0] = now
        copy_points(q.f, q.best)
    if not now < 0.5 * smallest and not patient:
        stalled += 1
        q.proximal[0] = max(q.proximal[0] * EASE, LEAST_PROXIMAL)
        # A problem that is solved stops earlier, because no step improves it.
        if stalled >= (STALLED_SOLVED if smallest <= q.tolerance else STALLED):
            return smallest, stalled, True
    else:
        stalled = 0
    smallest = min(now, smallest)
    stop = now <= max(POLISHED, q.enough[0]) or q.used[0] >= q.iterations or q.budget[0] <= 0
    return smallest, stalled, stop
