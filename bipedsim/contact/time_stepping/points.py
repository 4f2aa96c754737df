"""Point contacts between any bodies: the cone problem with its full matrix D = J M^-1 J^T.

Newton's steps are those of :mod:`.cone_newton`, in the space of the points. If they do not converge, sweeps over the
contacts alternate with them. A sweep solves each contact alone against the others (block Gauss-Seidel), which works
from any initial value.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.time_stepping.cone_admm import onto_cone
from bipedsim.contact.time_stepping.cone_newton import NEWTON_STEPS, check_progress, linearise
from bipedsim.contact.time_stepping.cone_problem import NOTHING, ConeProblem, copy_points, measure, reserve_budget
from bipedsim.contact.time_stepping.cone_solver import MILDER, PROXIMAL, SOFTER
from bipedsim.contact.time_stepping.cone_sweeps import SWEEPS, solve_point
from bipedsim.numerics import Array, Integers, factor_pivoted, kernel, solve_factored

PER_POINT = 60
"""Operations of a step or a sweep per point, in addition to those per pair of points."""


@kernel
def find_parts(D: Array, q: ConeProblem) -> None:
    """Number the independent parts of the problem, and write the part of each point to ``q.foot``."""
    n = q.points[0]
    q.budget[0] -= 9 * n * n
    for m in range(n):
        q.foot[m] = -1
    parts = 0
    for first in range(n):
        if q.foot[first] >= 0:
            continue
        q.foot[first] = parts
        q.guess[0] = first
        count, done = 1, 0
        while done < count:
            m = q.guess[done]
            done += 1
            for k in range(n):
                if q.foot[k] < 0 and _acts(D, m, k):
                    q.foot[k] = parts
                    q.guess[count] = k
                    count += 1
        parts += 1


@kernel
def _acts(D: Array, m: int, k: int) -> bool:
    """Return whether an impulse at point ``k`` moves point ``m``."""
    for a in range(3):
        for b in range(3):
            if D[3 * m + a, 3 * k + b] != 0.0:
                return True
    return False


@kernel
def solve_points(D: Array, q: ConeProblem, A: Array, rhs: Array, x: Array, rows: Integers, order: Integers) -> bool:
    """Solve the problem from the impulses in ``q.f``; return whether the residual reached the tolerance.

    ``q.f`` and ``q.u`` are the best values found, projected on the cones; ``q.residual`` is their residual, at most
    twice as large after the projection. They are never NaN for finite input. The solver takes at most half of the
    remaining budget of the step. It makes some sweeps even without budget.

    Args:
        D: (>= 3n, >= 3n) velocities of the points per unit impulse at them [1/kg].
        q: The problem: points, mu, mobility, g, scale and f are inputs, and foot contains the part of each point, see
            :func:`find_parts`. Arms are not used.
        A, rhs, x, rows, order: Work arrays of the size of D.
    """
    reserved = reserve_budget(q)
    q.used[0] = 0
    q.residual[0] = np.inf
    for m in range(q.points[0]):
        for a in range(3):
            q.best[m, a] = 0.0
    _newton(D, q, PROXIMAL, A, rhs, x, rows, order)
    block = 0
    copy_points(q.best, q.z)
    # The first sweeps always run: they are cheap, and near a solution they give a usable result.
    while q.residual[0] > q.tolerance and q.used[0] < q.iterations and (block == 0 or q.budget[0] > 0):
        # The sweeps continue from their own impulses, regardless of the result of Newton's method.
        copy_points(q.z, q.f)
        _sweep(D, q)
        copy_points(q.f, q.z)
        _newton(D, q, SOFTER * MILDER ** (block % 2), A, rhs, x, rows, order)
        block += 1
    copy_points(q.best, q.f)
    fill_speeds(D, q)
    tolerated = q.residual[0] * q.scale[0]
    for m in range(q.points[0]):
        load = q.mobility[m] * q.f[m, 2]
        if load <= tolerated and q.u[m, 2] > load:
            # An open point has exactly no impulse; the residual would allow a small one.
            for a in range(3):
                q.f[m, a] = 0.0
        onto_cone(q.f[m], q.mu[m])
    fill_speeds(D, q)
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
        fill_speeds(D, q)
    q.budget[0] = max(q.budget[0], 0) + reserved
    return q.residual[0] <= q.tolerance


@kernel
def fill_speeds(D: Array, q: ConeProblem) -> None:
    """Fill ``q.u`` with D f + g."""
    for m in range(q.points[0]):
        for a in range(3):
            total = q.g[m, a]
            row = D[3 * m + a]
            for k in range(q.points[0]):
                total += row[3 * k] * q.f[k, 0] + row[3 * k + 1] * q.f[k, 1] + row[3 * k + 2] * q.f[k, 2]
            q.u[m, a] = total


@kernel
def _newton(
    D: Array, q: ConeProblem, proximal: float, A: Array, rhs: Array, x: Array, rows: Integers, order: Integers
) -> None:
    """Make Newton steps from ``q.f`` while they reduce the residual, and store the best impulses in ``q.best``."""
    smallest, stalled = np.inf, 0
    q.proximal[0] = proximal
    for _ in range(NEWTON_STEPS):
        fill_speeds(D, q)
        smallest, stalled, stop = check_progress(q, smallest, stalled, False)
        if stop:
            return
        _step(D, q, A, rhs, x, rows, order)


@kernel
def _step(D: Array, q: ConeProblem, A: Array, rhs: Array, x: Array, rows: Integers, order: Integers) -> None:
    """Make one Newton step: speeds (1 + D C) x = -D c, then f of each point from its own speed, part by part.

    Open points are not in the system, because their impulses vanish for any x.
    """
    n = q.points[0]
    parts = 0
    for m in range(n):
        parts = max(parts, q.foot[m] + 1)
        linearise(q, m)
        by = 1.0 / q.mobility[m]
        for a in range(3):
            q.c[m, a] *= by
            for b in range(3):
                q.C[m, a, b] *= by
    q.budget[0] -= 18 * n * n + PER_POINT * n
    for m in range(n):
        for a in range(3):
            q.f[m, a] -= q.c[m, a]
    for part in range(parts):
        _solve_part(D, q, part, A, rhs, x, rows, order)


@kernel
def _solve_part(
    D: Array, q: ConeProblem, part: int, A: Array, rhs: Array, x: Array, rows: Integers, order: Integers
) -> None:
    """Subtract from the impulses of a ``part`` the contribution of the speeds of a Newton step."""
    n, size = q.points[0], 0
    for m in range(n):
        if q.foot[m] == part and q.C[m, 2, 2] != 0.0:
            rows[size] = m
            size += 1
    q.budget[0] -= 9 * size * size * (size + 4)
    for j in range(size):
        for a in range(3):
            row = D[3 * rows[j] + a]
            total = 0.0
            for m in range(n):
                total -= row[3 * m] * q.c[m, 0] + row[3 * m + 1] * q.c[m, 1] + row[3 * m + 2] * q.c[m, 2]
            rhs[3 * j + a] = total
            for k in range(size):
                m = rows[k]
                d0, d1, d2 = row[3 * m], row[3 * m + 1], row[3 * m + 2]
                for b in range(3):
                    A[3 * j + a, 3 * k + b] = d0 * q.C[m, 0, b] + d1 * q.C[m, 1, b] + d2 * q.C[m, 2, b]
            A[3 * j + a, 3 * j + a] += 1.0
    if not factor_pivoted(A, 3 * size, order):
        return
    solve_factored(A, 3 * size, order, rhs, x)
    for j in range(size):
        m = rows[j]
        for a in range(3):
            q.f[m, a] -= q.C[m, a, 0] * x[3 * j] + q.C[m, a, 1] * x[3 * j + 1] + q.C[m, a, 2] * x[3 * j + 2]


@kernel
def _sweep(D: Array, q: ConeProblem) -> None:
    """Sweep over the contacts: reduce the speed of each one and project its impulse on the cone."""
    n = q.points[0]
    for _ in range(SWEEPS):
        for m in range(n):
            i = 3 * m
            u0, u1, u2 = q.g[m, 0], q.g[m, 1], q.g[m, 2]
            for k in range(n):
                for b in range(3):
                    f = q.f[k, b]
                    u0 += D[i, 3 * k + b] * f
                    u1 += D[i + 1, 3 * k + b] * f
                    u2 += D[i + 2, 3 * k + b] * f
            own = D[i : i + 3, i : i + 3]
            q.f[m, 0], q.f[m, 1], q.f[m, 2] = solve_point(own, q.f[m], q.mu[m], u0, u1, u2)
    q.used[0] += SWEEPS
    q.budget[0] -= SWEEPS * n * (9 * n + PER_POINT)
