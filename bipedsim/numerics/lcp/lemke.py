"""Lemke's method, compiled: what :mod:`bipedsim_studies.complementarity.lcp` promises, at the pace of a control loop.

One problem is w = M z + q, z >= 0, w >= 0, z^T w = 0. The tableau holds only the columns outside the basis, and one
pivot exchanges two variables in place: n (n + 2) multiplications. Rounding adds up on the way, so the tableau is never
believed: a basis is factored anew and refined, its scaled residual decides, and where that is too large another path
is followed, in the end with a fresh tableau at each pivot.

A basis that solved a similar problem, such as that of the step before, is tried first: one factorisation.

Variables have numbers: 0..n-1 are w, n..2n-1 are z, 2n is the artificial z0 of w = M z + covering z0 + q.

Source: Cottle, Pang and Stone, *The Linear Complementarity Problem*, 1992, sections 4.4 (Lemke) and 4.9 (lexicographic
rule); scaling: Ruiz 2001.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.jit import entry, kernel
from bipedsim.numerics.lcp.basis import TIE, LcpWork, judge, residual_of, scale, unscale

SOLVED, RAY, LIMIT, INACCURATE = 0, 1, 2, 3

TOLERANCE = 1e-9
"""Scaled residual above which nothing is called a solution."""

# A basis of another problem has to be better than that: degenerate zeros come back as small negative numbers.
_WARM_TOLERANCE = 1e-10
# What a path ends with where rounding did not lead it astray; else another may end with less.
_SHARP = 1e-12
# Pivots below are rounding, and so are differences of ratios. Of problems of robots that land, the first try, strict,
# fails on 1 in 600; the others are for what it leaves.
_PIVOT = 1e-11
_STRICT_PIVOT = 1e-9
_STRICT_TIE = 1e-10
_SINGULAR = 1e-14
_TRIES = 5


@kernel
def _begin(w: LcpWork, n: int) -> None:
    """Fill the tableau of the basis w."""
    for i in range(n):
        row = w.table[i]
        given = w.M[i]
        row[0] = w.q[i]
        for j in range(n):
            row[j + 1] = -given[j]
        row[n + 1] = -w.covering[i]
        w.basic[i] = i
        w.place[i] = i
    for c in range(n + 1):
        w.outside[c + 1] = n + c
        w.place[n + c] = -(c + 1)


@kernel
def _exchange(w: LcpWork, n: int, r: int, s: int) -> None:
    """Let the variable of column ``s`` enter the basis for that of row ``r``."""
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
    """Fill the tableau of the present basis from the problem, largest pivots first; return False if it is singular."""
    for variable in range(2 * n + 1):
        w.wanted[variable] = False
    missing = 0
    for i in range(n):
        w.wanted[w.basic[i]] = True
        if w.basic[i] >= n:
            missing += 1
    _begin(w, n)
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
def _first(w: LcpWork, n: int, s: int, sign: float, strict: bool) -> int:
    """Return the row that blocks variable ``s`` first, ties broken by the lexicographic rule; -1 if none does.

    The rows of (values, inverse of the basis) over column ``s`` times ``sign`` are compared; a column of the inverse
    is that of a w outside the basis, or else a unit vector. z0 leaves whenever it may.

    Args:
        strict: Whether pivots far smaller than the column, and ratios that differ little, count as rounding.
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
    found = -1
    for i in range(n):
        w.tied[i] = w.tied[i] and w.table[i, 0] / (sign * w.table[i, s]) <= limit
        if w.tied[i]:
            count += 1
            found = i
    if count == 1:
        return found
    artificial = w.place[2 * n]
    if artificial >= 0 and w.tied[artificial]:
        return artificial
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
                    found = i
        if count == 1:
            return found
    return found


@kernel
def _is_there(w: LcpWork, n: int) -> bool:
    """Whether the point of the tableau solves the problem without z0: where many rows are zero at once, rounding can
    hide that z0 is zero, and from there on the path is noise."""
    for j in range(n):
        place = w.place[n + j]
        value = w.table[place, 0] if place >= 0 else 0.0
        w.scaled[j] = value if value >= TIE else 0.0
    return residual_of(w.M, w.q, w.scaled, n) <= 0.01 * TOLERANCE


@kernel
def _follow(w: LcpWork, n: int, limit: int, strict: bool, refreshed: bool) -> int:
    """Follow Lemke's path for at most ``limit`` pivots; return how it ended, the basis in ``w.place``.

    Args:
        strict: See :func:`_first`.
        refreshed: Whether each pivot gets a tableau without the rounding of those before it.
    """
    _begin(w, n)
    w.pivots[0] = 0
    for i in range(n):
        if w.q[i] < 0.0:
            break
    else:
        return SOLVED
    # Covered just so that all rows are lexicographically positive from here on.
    row = _first(w, n, n + 1, -1.0, strict)
    _exchange(w, n, row, n + 1)
    entering = n + row
    fresh = False
    made = 0
    while made < limit and w.budget[0] > 0:
        if refreshed and not fresh:
            fresh = _refresh(w, n)
            if not fresh:
                return INACCURATE
        artificial = w.place[2 * n]
        if w.table[artificial, 0] <= TOLERANCE and _is_there(w, n):
            return SOLVED
        s = -w.place[entering]
        row = _first(w, n, s, 1.0, strict)
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
        made += 1
        w.pivots[0] = made
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

    LIMIT or INACCURATE are also what it ends with where ``w.budget`` is used up.

    Args:
        limit: Most pivots of one try.
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
        for attempt in range(_TRIES):
            # Fresh tableaus take long, and are for what nothing else solves.
            if (attempt > 2 and least <= TOLERANCE) or w.budget[0] <= 0:
                break
            # Another covering vector goes another way: worth a try where rounding, not the problem, ended the first.
            ones = attempt in (1, 4)
            for i in range(n):
                w.covering[i] = 1.0 if ones else 1.0 + (i + 1) * 0.618033988749895 % 1.0
            strict = attempt < 2
            status = _follow(w, n, limit, strict, attempt > 2)
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
            # A strict try may take a small pivot for none.
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
    """:func:`solve` for callers in Python: all of ``w`` is the problem."""
    return solve(w, len(w.q), limit, warm)
