"""Point contacts between any bodies: the cone problem in the space of the bodies' velocities.

The velocities y have unit mass: an impulse f at the points changes them by Y^T f. So D = Y Y^T, which is never formed.
Newton's steps linearise the same map as :mod:`.cone_newton`. A step is one solve for as many velocities as the bodies
have, for any number of points. If the steps do not converge, sweeps over the contacts alternate with them, and then the
method of multipliers. A sweep solves each contact alone against the others (block Gauss-Seidel). Both work from any
initial value.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.time_stepping.cone_admm import onto_cone
from bipedsim.contact.time_stepping.cone_newton import LEAST_PROXIMAL, STALLED_SOLVED, linearise
from bipedsim.contact.time_stepping.cone_problem import NOTHING, ConeProblem, copy_points, measure, reserve_budget
from bipedsim.contact.time_stepping.cone_sweeps import SWEEPS, solve_point
from bipedsim.contact.time_stepping.point_rows import PointRows, add_impulse, velocities, velocity_at
from bipedsim.numerics import assign, begin_matrix, kernel, solve_blocks

WEIGHTS = (1e-5, 1e-2, 1e-3)
"""Weights of the proximal term of the first Newton steps and of those after sweeps.

They are relative to the mobility of a point. A robot at rest on the ground has many contacts that stick with nearly all
their friction. Their impulses are not unique, and the first steps may cycle between them.
"""
FOLLOWING, LEAST_FOLLOWING = 1, 1e-8
"""Index of the weight that is the residual itself, from the second value to that weight."""
NEAR, SHRINK = 1e-4, 0.5
"""Residual below which each step multiplies the other weights by the second value.

There, contacts at slightly inconsistent heights exchange load at a rate inversely proportional to the weight.
"""
FIRST_STEPS, STEPS = 10, 30
"""Maximum number of Newton steps from the last impulses or from those of multipliers, and after sweeps."""
PATIENCE = 2
"""Number of the first Newton steps without halving the residual after which sweeps continue.

Most steps from the last impulses that do not converge soon cycle. After sweeps, the residual may rise for many steps.
"""
PENALTY, ROUNDS, DESCENTS = 1e-3, 2, 10
"""Weight of the method of multipliers, its steps between two attempts of Newton's method, and Newton steps of each."""
FINISHED = 1e-4
"""Fraction of its first decrease at which the minimisation of a step ends."""
FLAT, SEARCHES = 0.1, 10
"""Fraction of the first slope at which a line search ends, and maximum number of its trials."""
CLOSING = (1e-6, 1e-4)
"""First weights of the Newton steps after multipliers, in turn."""
PER_POINT = 60
"""Operations of a step or a sweep per point, in addition to those per entry of its rows."""


@kernel
def solve_points(r: PointRows, q: ConeProblem) -> bool:
    """Solve the problem from the impulses in ``q.f``; return whether the residual reached the tolerance.

    ``q.f`` and ``q.u`` are the best values found, projected on the cones; ``q.residual`` is their residual, at most
    twice as large after the projection. They are never NaN for finite input. The solver takes at most half of the
    remaining budget of the step. It makes some sweeps even without budget.

    Args:
        r: Rows of the points, with their diagonal blocks.
        q: The problem: points, mu, mobility, g, scale, enough and f are inputs. Feet and arms are not used.
    """
    reserved = reserve_budget(q)
    q.used[0] = 0
    q.residual[0] = np.inf
    for m in range(q.points[0]):
        for a in range(3):
            q.best[m, a] = 0.0
    _newton(r, q, WEIGHTS[0], FIRST_STEPS, PATIENCE, False)
    block = 1
    copy_points(q.best, q.z)
    # The first sweeps always run: they are cheap, and near a solution they give a usable result.
    while q.residual[0] > q.tolerance and q.used[0] < q.iterations and (block == 1 or q.budget[0] > 0):
        # Both methods continue from their own impulses, regardless of the result of Newton's method.
        copy_points(q.z, q.f)
        if block < len(WEIGHTS):
            _sweep(r, q)
            copy_points(q.f, q.z)
            _newton(r, q, WEIGHTS[block], STEPS, STEPS, block == FOLLOWING)
        else:
            _multiply(r, q)
            copy_points(q.f, q.z)
            _newton(r, q, CLOSING[block % len(CLOSING)], FIRST_STEPS, FIRST_STEPS, False)
        block += 1
    copy_points(q.best, q.f)
    _fill_speeds(r, q)
    tolerated = q.residual[0] * q.scale[0]
    for m in range(q.points[0]):
        load = q.mobility[m] * q.f[m, 2]
        if (load <= tolerated and q.u[m, 2] > load) or load <= NOTHING * q.scale[0]:
            # An open point has exactly no impulse; the residual would allow a small one.
            for a in range(3):
                q.f[m, a] = 0.0
        onto_cone(q.f[m], q.mu[m])
    _fill_speeds(r, q)
    now = measure(q)
    if now <= max(q.residual[0], q.tolerance):
        q.residual[0] = now
    else:
        for m in range(q.points[0]):
            load = q.mobility[m] * q.best[m, 2]
            for a in range(3):
                q.f[m, a] = q.best[m, a] if load > NOTHING * q.scale[0] else 0.0
            # Friction beyond its cone or a pull is never a result, even if it has the smaller residual.
            onto_cone(q.f[m], q.mu[m])
        _fill_speeds(r, q)
    q.budget[0] = max(q.budget[0], 0) + reserved
    return q.residual[0] <= q.tolerance


@kernel
def _fill_speeds(r: PointRows, q: ConeProblem) -> None:
    """Fill ``r.y`` with Y^T f and ``q.u`` with Y y + g."""
    for i in range(velocities(r)):
        r.y[i] = 0.0
    for m in range(q.points[0]):
        if q.f[m, 0] != 0.0 or q.f[m, 1] != 0.0 or q.f[m, 2] != 0.0:
            add_impulse(r, m, (q.f[m, 0], q.f[m, 1], q.f[m, 2]), r.y)
    for m in range(q.points[0]):
        ux, uy, uz = velocity_at(r, m, r.y)
        q.u[m, 0] = q.g[m, 0] + ux
        q.u[m, 1] = q.g[m, 1] + uy
        q.u[m, 2] = q.g[m, 2] + uz


@kernel
def _measure_best(r: PointRows, q: ConeProblem) -> float:
    """Fill the velocities for ``q.f``, store the impulses if they are the best ones, and return their residual."""
    _fill_speeds(r, q)
    now = measure(q)
    if now < q.residual[0]:
        q.residual[0] = now
        copy_points(q.f, q.best)
    return now


@kernel
def _newton(r: PointRows, q: ConeProblem, proximal: float, steps: int, patience: int, follows: bool) -> None:
    """Make Newton steps from ``q.f``, and store the best impulses.

    Args:
        r, q: See :func:`solve_points`.
        proximal: First weight of the proximal term, and its maximum if it follows the residual.
        steps: Maximum number of steps.
        patience: Number of steps without halving the residual after which the method stops.
        follows: Whether the weight is the residual.
    """
    smallest, stalled = np.inf, 0
    q.proximal[0] = proximal
    for _ in range(steps):
        now = _measure_best(r, q)
        q.used[0] += 1
        if now < 0.5 * smallest:
            stalled = 0
        else:
            stalled += 1
        if follows:
            q.proximal[0] = min(max(now, LEAST_FOLLOWING), proximal)
        elif now < NEAR:
            q.proximal[0] = max(q.proximal[0] * SHRINK, LEAST_PROXIMAL)
        smallest = min(now, smallest)
        polished = smallest <= q.tolerance and stalled >= STALLED_SOLVED
        lost = stalled >= patience and smallest > NEAR
        if polished or lost or now <= q.enough[0] or q.used[0] >= q.iterations or q.budget[0] <= 0:
            return
        _step(r, q)


@kernel
def _step(r: PointRows, q: ConeProblem) -> None:
    """Make one Newton step: (1 + Y^T C Y) y = -Y^T c, then f of each point from its own velocity.

    Open points are not in the system, because their impulses vanish for any y.
    """
    for i in range(velocities(r)):
        r.rhs[i] = 0.0
    cleared, entries = begin_matrix(r.system), 0
    for m in range(q.points[0]):
        linearise(q, m)
        by = 1.0 / q.mobility[m]
        for a in range(3):
            q.c[m, a] *= by
            q.f[m, a] -= q.c[m, a]
            for b in range(3):
                q.C[m, a, b] *= by
        add_impulse(r, m, (-q.c[m, 0], -q.c[m, 1], -q.c[m, 2]), r.rhs)
        if q.C[m, 2, 2] != 0.0:
            entries += _add_point(r, q, m)
    if not _solve_system(r, q, cleared + 3 * entries):
        return
    for m in range(q.points[0]):
        if q.C[m, 2, 2] != 0.0:
            ux, uy, uz = velocity_at(r, m, r.step)
            for a in range(3):
                q.f[m, a] -= q.C[m, a, 0] * ux + q.C[m, a, 1] * uy + q.C[m, a, 2] * uz


@kernel
def _add_point(r: PointRows, q: ConeProblem, m: int) -> int:
    """Add Y^T C Y of point ``m`` to the system of a Newton step, and return its number of entries."""
    rows, column, width = r.Y[m], r.column[m], r.width[m]
    C = q.C[m]
    if q.mu[m] == 0.0:
        # Joint limits are such contacts; nothing acts along their other axes.
        for a in range(2):
            for b in range(3):
                C[a, b] = 0.0
        for i in range(width):
            by = C[2, 2] * rows[2, i]
            row = r.system.A[column[i]]
            for j in range(width):
                row[column[j]] += by * rows[2, j]
        return width * width
    for i in range(width):
        x, y, z = rows[0, i], rows[1, i], rows[2, i]
        b0 = x * C[0, 0] + y * C[1, 0] + z * C[2, 0]
        b1 = x * C[0, 1] + y * C[1, 1] + z * C[2, 1]
        b2 = x * C[0, 2] + y * C[1, 2] + z * C[2, 2]
        row = r.system.A[column[i]]
        for j in range(width):
            row[column[j]] += b0 * rows[0, j] + b1 * rows[1, j] + b2 * rows[2, j]
    return width * width


@kernel
def _solve_system(r: PointRows, q: ConeProblem, operations: int) -> bool:
    """Fill ``r.step`` with the solution of a Newton step that took so many ``operations``; return False if singular."""
    solving = solve_blocks(r.system, r.rhs, r.step)
    q.budget[0] -= operations + solving + PER_POINT * q.points[0]
    return solving > 0


@kernel
def _sweep(r: PointRows, q: ConeProblem) -> None:
    """Sweep over the contacts: reduce the speed of each one and project its impulse on the cone."""
    _fill_speeds(r, q)
    entries = 0
    for _ in range(SWEEPS):
        for m in range(q.points[0]):
            ux, uy, uz = velocity_at(r, m, r.y)
            x, y, z = solve_point(r.own[m], q.f[m], q.mu[m], q.g[m, 0] + ux, q.g[m, 1] + uy, q.g[m, 2] + uz)
            add_impulse(r, m, (x - q.f[m, 0], y - q.f[m, 1], z - q.f[m, 2]), r.y)
            q.f[m, 0], q.f[m, 1], q.f[m, 2] = x, y, z
            entries += r.width[m]
    q.used[0] += SWEEPS
    q.budget[0] -= 6 * entries + SWEEPS * PER_POINT * q.points[0]


@kernel
def _multiply(r: PointRows, q: ConeProblem) -> None:
    """Make steps of the method of multipliers from ``q.f``, which works from any initial value.

    With De Saxcé's correction held constant, the impulses minimise a convex function. A step adds the proximal term
    |f' - f|^2 / (2 rho), where rho is the inverse of ``PENALTY`` times mobility. In terms of the velocities y = Y^T f'
    it minimises the smooth function

        |y|^2 / 2 + sum |P(f - rho u)|^2 / (2 rho),     u = Y y + g + correction,

    by Newton's method with line search, and f' is the projection P(f - rho u) on the cones (Rockafellar 1976).
    """
    for _ in range(ROUNDS):
        _measure_best(r, q)
        if q.budget[0] <= 0:
            return
        for m in range(q.points[0]):
            q.shift[m] = q.mu[m] * np.hypot(q.u[m, 0], q.u[m, 1])
        first = 0.0
        for _ in range(DESCENTS):
            decrease = _descend(r, q)
            q.used[0] += 1
            first = max(first, decrease)
            if not decrease > FINISHED * first or q.budget[0] <= 0:
                break
        for m in range(q.points[0]):
            _project(q, m, 0.0)
            for a in range(3):
                q.f[m, a] = q.c[m, a]


@kernel
def _descend(r: PointRows, q: ConeProblem) -> float:
    """Make a Newton step of :func:`_multiply` from ``r.y`` and ``q.u``; return its slope with opposite sign."""
    size, slope, square = velocities(r), 0.0, 0.0
    for i in range(size):
        r.rhs[i] = -r.y[i]
    cleared, entries = begin_matrix(r.system), 0
    for m in range(q.points[0]):
        if _linearise_projection(q, m):
            add_impulse(r, m, (q.c[m, 0], q.c[m, 1], q.c[m, 2]), r.rhs)
            entries += _add_point(r, q, m)
    if not _solve_system(r, q, cleared + 3 * entries):
        return 0.0
    for i in range(size):
        slope += r.step[i] * r.y[i]
        square += r.step[i] * r.step[i]
    for m in range(q.points[0]):
        assign(q.y[m], velocity_at(r, m, r.step))
    along = _search(q, slope, square)
    for i in range(size):
        r.y[i] += along * r.step[i]
    for m in range(q.points[0]):
        for a in range(3):
            q.u[m, a] += along * q.y[m, a]
    return -_slope(q, slope, square, 0.0)


@kernel
def _search(q: ConeProblem, slope: float, square: float) -> float:
    """Return the fraction of a step at which its function is smallest, by false position within bounds."""
    first = low = _slope(q, slope, square, 0.0)
    begin, end, along = 0.0, 1.0, 1.0
    for _ in range(SEARCHES):
        now = _slope(q, slope, square, along)
        if abs(now) <= FLAT * abs(first) or (now < 0.0 and along == 1.0):
            break
        if now > 0.0:
            end, high = along, now
        else:
            begin, low = along, now
        along = begin + (end - begin) * min(max(low / (low - high), 0.1), 0.9)
    return along


@kernel
def _slope(q: ConeProblem, slope: float, square: float, along: float) -> float:
    """Return the derivative of the function of :func:`_multiply` at the fraction ``along`` of a step.

    Args:
        q: The problem; ``y`` are the velocities of the step.
        slope, square: Products of the step with y and with itself.
        along: The fraction.
    """
    total = slope + along * square
    for m in range(q.points[0]):
        _project(q, m, along)
        total -= q.c[m, 0] * q.y[m, 0] + q.c[m, 1] * q.y[m, 1] + q.c[m, 2] * q.y[m, 2]
    return total


@kernel
def _project(q: ConeProblem, m: int, along: float) -> None:
    """Fill ``q.c[m]`` with P(f - rho u) at the fraction ``along`` of a step with the velocities ``q.y``."""
    by = 1.0 / (PENALTY * q.mobility[m])
    for a in range(3):
        q.c[m, a] = q.f[m, a] - by * (q.u[m, a] + along * q.y[m, a])
    q.c[m, 2] -= by * q.shift[m]
    onto_cone(q.c[m], q.mu[m])


@kernel
def _linearise_projection(q: ConeProblem, m: int) -> bool:
    """Fill ``q.c[m]`` with P(f - rho u), and ``q.C[m]`` with its derivative; return whether these are not zero."""
    by, mu, c, C = 1.0 / (PENALTY * q.mobility[m]), q.mu[m], q.c[m], q.C[m]
    for a in range(3):
        c[a] = q.f[m, a] - by * q.u[m, a]
        for b in range(3):
            C[a, b] = by if a == b else 0.0
    c[2] -= by * q.shift[m]
    t = np.sqrt(c[0] * c[0] + c[1] * c[1])
    if mu * t <= -c[2]:
        return False
    if t <= mu * c[2]:
        return True
    x, y, share = c[0] / t, c[1] / t, 1.0 / (1.0 + mu * mu)
    n = (c[2] + mu * t) * share
    # The projection is on the line (mu x, mu y, 1); across it, the direction rotates.
    along, across = by * share, by * mu * n / t
    C[0, 0] = along * mu * mu * x * x + across * y * y
    C[1, 1] = along * mu * mu * y * y + across * x * x
    C[0, 1] = C[1, 0] = (along * mu * mu - across) * x * y
    C[0, 2] = C[2, 0] = along * mu * x
    C[1, 2] = C[2, 1] = along * mu * y
    C[2, 2] = along
    assign(c, (mu * n * x, mu * n * y, n))
    return True
