"""Compiled version of Lemke's method in :mod:`bipedsim_studies.complementarity.lcp`, fast enough for a control loop.

The problem is w = M z + q, z >= 0, w >= 0, z^T w = 0. The tableau contains only the columns outside the basis, and one
pivot exchanges two variables in place: n (n + 2) multiplications. Rounding errors accumulate, so the values in the
tableau are not used as the solution. Instead the basis is factored again and refined, and its scaled residual decides.
If the residual is too large, another path is followed; the last attempts recompute the tableau at each pivot.

A basis that solved a similar problem, such as that of the previous step, is tried first with one factorisation.

Variables have numbers: 0..n-1 are w, n..2n-1 are z, and 2n is the artificial z0 of w = M z + covering z0 + q.

Source: Cottle, Pang and Stone, *The Linear Complementarity Problem*, 1992, sections 4.4 (Lemke) and 4.9 (lexicographic
rule); scaling: Ruiz 2001.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.jit import entry, kernel
from bipedsim.numerics.lcp.basis import TIE, LcpWork, judge, residual_of, scale, unscale

SOLVED, RAY, LIMIT, INACCURATE = 0, 1, 2, 3

TOLERANCE = 1e-9
"""Scaled residual above which a point is not a solution."""

# The basis of another problem needs a smaller residual, because degenerate zeros return as small negative numbers.
_WARM_TOLERANCE = 1e-10
# Residual of a path that rounding did not disturb. A larger one leads to another attempt, which may reach less.
_SHARP = 1e-12
# Pivots, and relative differences of ratios, below these values are rounding. For problems of landing robots, the first
# strict attempt fails on 1 in 600; the other attempts solve these.
_PIVOT = 1e-11
_STRICT_PIVOT = 1e-9
_STRICT_TIE = 1e-10
_SINGULAR = 1e-14
_ATTEMPTS = 5


@kernel
def _fill_tableau(w: LcpWork, n: int) -> None:
    """Fill the tableau of the basis w (all z are zero)."""
    for i in range(n):
        row = w.table[i]
        coefficients = w.M[i]
        row[0] = w.q[i]
        for j in range(n):
            row[j + 1] = -coefficients[j]
        row[n + 1] = -w.covering[i]
        w.basic[i] = i
        w.place[i] = i
    for c in range(n + 1):
        w.outside[c + 1] = n + c
        w.place[n + c] = -(c + 1)


@kernel
def _exchange(w: LcpWork, n: int, r: int, s: int) -> None:
    """Exchange the variable of column ``s`` with the basic variable of row ``r``."""
    w.budget[0] -= n * (n + 2)
    top = w.table[r]
    inverse = 1.0 / top[s]
    for c in range(n + 2):
        top[c] *= inverse
    top[s] = inverse
    for i in range(n):
        row = w.table[i]
        f = row[s]
        if i != r and f != 0.0:
            row[s] = 0.0
            for c in range(n + 2):
                row[c] -= f * top[c]
    entering = w.outside[s]
    leaving = w.basic[r]
    w.basic[r] = entering
    w.outside[s] = leaving
    w.place[entering] = r
    w.place[leaving] = -s


@kernel
def _refresh(w: LcpWork, n: int) -> bool:
    """Recompute the tableau of the present basis, largest pivots first; return False if the basis is singular."""
    for variable in range(2 * n + 1):
        w.wanted[variable] = False
    missing = 0
    for i in range(n):
        w.wanted[w.basic[i]] = True
        if w.basic[i] >= n:
            missing += 1
    _fill_tableau(w, n)
    for _ in range(missing):
        if w.budget[0] <= 0:
            return False
        best = _SINGULAR
        r = -1
        s = -1
        for i in range(n):
            if not w.wanted[w.basic[i]]:
                row = w.table[i]
                for c in range(1, n + 2):
                    if w.wanted[w.outside[c]] and abs(row[c]) > best:
                        best = abs(row[c])
                        r = i
                        s = c
        if r < 0:
            return False
        _exchange(w, n, r, s)
    return True


@kernel
def _blocking_row(w: LcpWork, n: int, s: int, sign: float, strict: bool) -> int:
    """Return the row that blocks variable ``s`` first, ties broken by the lexicographic rule; -1 if none does.

    z0 leaves the basis whenever it may.

    Args:
        w, n: The problem and its size.
        s: Column of the entering variable.
        sign: 1, or -1 to reverse the direction of the variable.
        strict: Whether pivots far below the largest entry of the column, and small differences of ratios, count as
            rounding.
    """
    smallest = _PIVOT
    tie = TIE
    if strict:
        tie = _STRICT_TIE
        for i in range(n):
            smallest = max(smallest, _STRICT_PIVOT * abs(w.table[i, s]))
    least = np.inf
    for i in range(n):
        d = sign * w.table[i, s]
        w.tied[i] = d > smallest
        if w.tied[i]:
            least = min(least, w.table[i, 0] / d)
    if least == np.inf:
        return -1
    limit = least + tie * (1.0 + abs(least))
    count = 0
    blocking = -1
    for i in range(n):
        w.tied[i] = w.tied[i] and w.table[i, 0] / (sign * w.table[i, s]) <= limit
        if w.tied[i]:
            count += 1
            blocking = i
    if count == 1:
        return blocking
    artificial = w.place[2 * n]
    if artificial >= 0 and w.tied[artificial]:
        return artificial
    return _break_ties(w, n, s, sign, blocking)


@kernel
def _break_ties(w: LcpWork, n: int, s: int, sign: float, blocking: int) -> int:
    """Return the lexicographically smallest of the tied rows, of which ``blocking`` is the last.

    The rule compares the rows of the inverse of the basis divided by column ``s`` times ``sign``. A column of the
    inverse is that of a w outside the basis, or a unit vector.
    """
    for unit in range(n):
        place = w.place[unit]
        is_basic = place >= 0
        least = np.inf
        for i in range(n):
            if w.tied[i]:
                value = (1.0 if i == place else 0.0) if is_basic else w.table[i, -place]
                least = min(least, value / (sign * w.table[i, s]))
        limit = least + TIE * (1.0 + abs(least))
        count = 0
        for i in range(n):
            if w.tied[i]:
                value = (1.0 if i == place else 0.0) if is_basic else w.table[i, -place]
                w.tied[i] = value / (sign * w.table[i, s]) <= limit
                if w.tied[i]:
                    count += 1
                    blocking = i
        if count == 1:
            return blocking
    return blocking


@kernel
def _is_solution(w: LcpWork, n: int) -> bool:
    """Return whether the point of the tableau solves the problem without z0.

    Where many rows are zero at once, rounding can hide that z0 is zero. The path after that point is meaningless.
    """
    for j in range(n):
        place = w.place[n + j]
        value = w.table[place, 0] if place >= 0 else 0.0
        w.scaled[j] = value if value >= TIE else 0.0
    return residual_of(w.M, w.q, w.scaled, n) <= 0.01 * TOLERANCE


@kernel
def _follow_path(w: LcpWork, n: int, limit: int, strict: bool, refreshed: bool) -> int:
    """Follow Lemke's path for at most ``limit`` pivots; return its outcome, with the basis in ``w.place``.

    Args:
        w, n: The problem and its size.
        limit: Maximum number of pivots.
        strict: See :func:`_blocking_row`.
        refreshed: Whether the tableau is recomputed at each pivot, without the rounding errors of earlier pivots.
    """
    _fill_tableau(w, n)
    w.pivots[0] = 0
    for i in range(n):
        if w.q[i] < 0.0:
            break
    else:
        return SOLVED
    # z0 just covers q, so that all rows are lexicographically positive from here on.
    row = _blocking_row(w, n, n + 1, -1.0, strict)
    _exchange(w, n, row, n + 1)
    entering = n + row
    fresh = False
    pivots = 0
    while pivots < limit and w.budget[0] > 0:
        if refreshed and not fresh:
            fresh = _refresh(w, n)
            if not fresh:
                return INACCURATE
        artificial = w.place[2 * n]
        if w.table[artificial, 0] <= TOLERANCE and _is_solution(w, n):
            return SOLVED
        s = -w.place[entering]
        row = _blocking_row(w, n, s, 1.0, strict)
        if row < 0:
            if not fresh:
                fresh = _refresh(w, n)
                if not fresh:
                    return INACCURATE
                continue
            for i in range(n):
                if w.table[i, 0] < -TOLERANCE:
                    return INACCURATE
            return RAY
        pivots += 1
        w.pivots[0] = pivots
        leaving = w.basic[row]
        _exchange(w, n, row, s)
        fresh = False
        if leaving == 2 * n:
            return SOLVED
        entering = leaving + n if leaving < n else leaving - n
    return LIMIT


@kernel
def solve(w: LcpWork, n: int, limit: int, warm: bool) -> int:
    """Solve the problem of size ``n`` in ``w``; return SOLVED, RAY, LIMIT or INACCURATE.

    LIMIT or INACCURATE are also returned when ``w.budget`` is used up.

    Args:
        w, n: The problem and its size.
        limit: Maximum number of pivots of one attempt.
        warm: Whether ``w.basis`` is tried first.
    """
    scale(w, n)
    w.pivots[0] = 0
    w.residual[0] = np.inf
    status = INACCURATE
    if warm:
        w.residual[0] = judge(w, n)
        if w.residual[0] <= _WARM_TOLERANCE:
            status = SOLVED
    if status != SOLVED:
        least = np.inf
        for attempt in range(_ATTEMPTS):
            # Attempts that recompute the tableau take long, so they are made only if nothing else solves the problem.
            if (attempt > 2 and least <= TOLERANCE) or w.budget[0] <= 0:
                break
            # Another covering vector follows another path, which helps if rounding ended the first one.
            ones = attempt in (1, 4)
            for i in range(n):
                w.covering[i] = 1.0 if ones else 1.0 + (i + 1) * 0.618033988749895 % 1.0
            strict = attempt < 2
            status = _follow_path(w, n, limit, strict, attempt > 2)
            w.residual[0] = np.inf
            if status == SOLVED:
                for i in range(n):
                    w.basis[i] = w.place[n + i] >= 0
                w.residual[0] = judge(w, n)
                if w.residual[0] < least:
                    least = w.residual[0]
                    for i in range(n):
                        w.kept[i] = w.basis[i]
                if least <= _SHARP:
                    break
                status = INACCURATE
            # A strict attempt may reject a small pivot that is needed.
            if status == RAY and not strict:
                break
        if least <= TOLERANCE:
            for i in range(n):
                w.basis[i] = w.kept[i]
            w.residual[0] = judge(w, n)
            status = SOLVED
    unscale(w, n)
    return status


@entry
def solve_work(w: LcpWork, limit: int, warm: bool) -> int:
    """Call :func:`solve` from Python for all of ``w``."""
    return solve(w, len(w.q), limit, warm)
