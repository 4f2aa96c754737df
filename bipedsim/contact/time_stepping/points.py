"""Point contacts on whatever bodies: the cone problem with its matrix D = J M^-1 J^T given as a whole.

Newton's steps are those of :mod:`.cone_newton`, in the space of the points. Where they do not get there, sweeps over
the contacts come between, each solved by itself against the others (block Gauss-Seidel), as these get near from
anywhere.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.time_stepping.cone_admm import onto_cone
from bipedsim.contact.time_stepping.cone_newton import (
    EASE,
    LEAST_PROXIMAL,
    NEWTON_STEPS,
    POLISHED,
    STALLED,
    STALLED_SOLVED,
    linearise,
)
from bipedsim.contact.time_stepping.cone_problem import ConeProblem, copy_points, measure
from bipedsim.contact.time_stepping.cone_solver import MILDER, PROXIMAL, SOFTER
from bipedsim.contact.time_stepping.cone_sweeps import SWEEPS, solve_point
from bipedsim.numerics import Array, Integers, factor_pivoted, kernel, solve_factored


@kernel
def solve_points(D: Array, q: ConeProblem, A: Array, rhs: Array, x: Array, rows: Integers, order: Integers) -> bool:
    """Solve the problem from the impulses in ``q.f``; return whether the residual reached the tolerance.

    ``q.f`` and ``q.u`` are the best that was found, ``q.residual`` says how good. Never NaN for finite input.

    Args:
        D: (>= 3n, >= 3n) velocities of the points for impulses at them [1/kg].
        q: The problem: points, mu, mobility, g, scale and f are given; feet and arms are not used.
        A, rhs, x, rows, order: Work of the size of D.
    """
    q.used[0] = 0
    q.residual[0] = np.inf
    for m in range(q.points[0]):
        for a in range(3):
            q.best[m, a] = 0.0
    _newton(D, q, PROXIMAL, A, rhs, x, rows, order)
    block = 0
    copy_points(q.best, q.z)
    while q.residual[0] > q.tolerance and q.used[0] < q.iterations:
        # From where the sweeps were, whatever Newton made of it.
        copy_points(q.z, q.f)
        _sweep(D, q)
        copy_points(q.f, q.z)
        _newton(D, q, SOFTER * MILDER ** (block % 2), A, rhs, x, rows, order)
        block += 1
    for m in range(q.points[0]):
        for a in range(3):
            q.f[m, a] = q.best[m, a]
        onto_cone(q.f[m], q.mu[m])
    fill_speeds(D, q)
    now = measure(q)
    if now <= max(q.residual[0], q.tolerance):
        q.residual[0] = now
    else:
        for m in range(q.points[0]):
            for a in range(3):
                q.f[m, a] = q.best[m, a]
        fill_speeds(D, q)
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
    """Make Newton steps from ``q.f`` while they help, and keep the best impulses in ``q.best``."""
    before = np.inf
    stalled = 0
    q.proximal[0] = proximal
    for _ in range(NEWTON_STEPS):
        fill_speeds(D, q)
        now = measure(q)
        q.used[0] += 1
        if now < q.residual[0]:
            q.residual[0] = now
            copy_points(q.f, q.best)
        if not now < 0.5 * before:
            stalled += 1
            q.proximal[0] = max(q.proximal[0] * EASE, LEAST_PROXIMAL)
            if stalled >= (STALLED_SOLVED if before <= q.tolerance else STALLED):
                return
        else:
            stalled = 0
        before = min(now, before)
        if now <= POLISHED or q.used[0] >= q.iterations:
            return
        _step(D, q, A, rhs, x, rows, order)


@kernel
def _step(D: Array, q: ConeProblem, A: Array, rhs: Array, x: Array, rows: Integers, order: Integers) -> None:
    """Make one Newton step: speeds (1 + D C) x = -D c, then f of each point from its own.

    Points that are open have no part in the system: their impulses vanish whatever x is.
    """
    n, size = q.points[0], 0
    for m in range(n):
        linearise(q, m)
        by = 1.0 / q.mobility[m]
        for a in range(3):
            q.c[m, a] *= by
            for b in range(3):
                q.C[m, a, b] *= by
        if q.C[m, 2, 2] != 0.0:
            rows[size] = m
            size += 1
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
    if factor_pivoted(A, 3 * size, order):
        solve_factored(A, 3 * size, order, rhs, x)
    for m in range(n):
        for a in range(3):
            q.f[m, a] -= q.c[m, a]
    for j in range(size):
        m = rows[j]
        for a in range(3):
            q.f[m, a] -= q.C[m, a, 0] * x[3 * j] + q.C[m, a, 1] * x[3 * j + 1] + q.C[m, a, 2] * x[3 * j + 2]


@kernel
def _sweep(D: Array, q: ConeProblem) -> None:
    """Sweep over the contacts: each moves against its own speed, and back onto its cone."""
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
