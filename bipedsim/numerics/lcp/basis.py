"""A linear complementarity problem in work arrays: scaling, and the solution for a given basis.

The problem is w = M z + q, z >= 0, w >= 0, z^T w = 0. A basis is the set of z that may be positive. One factorisation
gives its point, and the residual of the point shows whether it is the solution.

Source: Cottle, Pang and Stone, *The Linear Complementarity Problem*, 1992; scaling: Ruiz 2001.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics.arrays import Array, Flags, Integers
from bipedsim.numerics.budget import unlimited
from bipedsim.numerics.jit import entry, kernel
from bipedsim.numerics.zeros import zeros_of

TIE = 1e-12
"""Rounding error of a zero of the scaled problem."""

# A column of a basis whose pivot is below this fraction of the largest entry depends on the others.
_RANK = 1e-14
_REFINEMENTS = 2
_SWEEPS = 8


class LcpWork(NamedTuple):
    """Problem, solution and work arrays for at most n unknowns; made once, by :meth:`of_size`.

    Attributes:
        M, q: (n, n), (n,) input: the problem; output: the scaled problem.
        basis: (n,) input: basic z of the initial guess; output: those of the solution.
        z: (n,) output: the solution in the units of the problem, if it was solved.
        residual: (1,) output: max |min(z, w)| of the scaled problem, infinite if no basis was reached.
        pivots: (1,) output: number of pivots of the last attempt.
        rows, columns, unit: (n,), (n,), (1,) powers of two: M = M' / (rows columns), z = z' columns unit.
        scaled: (n,) the z' of the scaled problem.
        covering: (n,) column of z0.
        table: (n, n + 2) values of the basic variables, then one column for each variable outside the basis.
        basic, outside: (n,), (n + 2,) variable of each row and of each column of ``table``.
        place: (2n + 1,) position of a variable: row r as r, column c as -c.
        wanted, tied: (2n + 1,), (n,) marks.
        kept: (n,) best basis so far.
        inside: (n,) basic z.
        pivot_columns: (n,) columns of ``factor`` in the order of elimination.
        factor: (n, n) LU factors of the block of the basis.
        order: (n,) row order of ``factor``.
        right, step: (n,) work arrays.
        budget: (1,) remaining multiplications of pivots; see :mod:`bipedsim.numerics.budget`.
    """

    M: Annotated[Array, "n", "n"]
    q: Annotated[Array, "n"]
    basis: Annotated[Flags, "n"]
    z: Annotated[Array, "n"]
    residual: Annotated[Array, 1]
    pivots: Annotated[Integers, 1]
    rows: Annotated[Array, "n"]
    columns: Annotated[Array, "n"]
    unit: Annotated[Array, 1]
    scaled: Annotated[Array, "n"]
    covering: Annotated[Array, "n"]
    table: Annotated[Array, "n", "t"]
    basic: Annotated[Integers, "n"]
    outside: Annotated[Integers, "t"]
    place: Annotated[Integers, "m"]
    wanted: Annotated[Flags, "m"]
    tied: Annotated[Flags, "n"]
    kept: Annotated[Flags, "n"]
    inside: Annotated[Integers, "n"]
    pivot_columns: Annotated[Integers, "n"]
    factor: Annotated[Array, "n", "n"]
    order: Annotated[Integers, "n"]
    right: Annotated[Array, "n"]
    step: Annotated[Array, "n"]
    budget: Annotated[Integers, 1]

    @classmethod
    def of_size(cls, n: int, budget: Integers | None = None) -> LcpWork:
        """Return arrays for problems of at most ``n`` unknowns; the ``budget`` is unlimited if it is None."""
        sizes = {"n": n, "t": n + 2, "m": 2 * n + 1}
        budget = unlimited() if budget is None else budget
        return zeros_of(cls, sizes, rows=np.ones(n), columns=np.ones(n), unit=np.ones(1), budget=budget)


@kernel
def _half_power(largest: float) -> float:
    """Return the power of two nearest to 1 / sqrt(``largest``); 1 for a row of zeros."""
    if 0.5 <= largest <= 2.0 or largest == 0.0:
        return 1.0
    return 2.0 ** -np.round(np.log2(largest) / 2.0)


@kernel
def scale(w: LcpWork, n: int) -> None:
    """Balance rows and columns, so that forces and speeds, or millinewtons and kilonewtons, have the same weight.

    The factors are powers of two, so that nothing is rounded, and zeros and signs are preserved.
    """
    for i in range(n):
        w.rows[i] = 1.0
        w.columns[i] = 1.0
    for _ in range(_SWEEPS):
        rows_changed = _scale_rows(w, n)
        columns_changed = _scale_columns(w, n)
        if not rows_changed and not columns_changed:
            break
    top = 0.0
    for i in range(n):
        w.q[i] *= w.rows[i]
        top = max(top, abs(w.q[i]))
    w.unit[0] = 2.0 ** np.round(np.log2(top)) if top > 0.0 else 1.0
    for i in range(n):
        w.q[i] /= w.unit[0]


@kernel
def _scale_rows(w: LcpWork, n: int) -> bool:
    """Scale each row of M by the half power of its largest entry; return whether any row changed."""
    changed = False
    for i in range(n):
        top = 0.0
        row = w.M[i]
        for j in range(n):
            top = max(top, abs(row[j]))
        factor = _half_power(top)
        if factor != 1.0:
            changed = True
            w.rows[i] *= factor
            for j in range(n):
                row[j] *= factor
    return changed


@kernel
def _scale_columns(w: LcpWork, n: int) -> bool:
    """Scale each column of M by the half power of its largest entry; return whether any column changed."""
    largest = w.step
    for j in range(n):
        largest[j] = 0.0
    for i in range(n):
        row = w.M[i]
        for j in range(n):
            largest[j] = max(largest[j], abs(row[j]))
    changed = False
    for j in range(n):
        largest[j] = _half_power(largest[j])
        changed = changed or largest[j] != 1.0
    if changed:
        for i in range(n):
            row = w.M[i]
            for j in range(n):
                row[j] *= largest[j]
        for j in range(n):
            w.columns[j] *= largest[j]
    return changed


@kernel
def residual_of(M: Array, q: Array, z: Array, n: int) -> float:
    """Return max |min(z, M z + q)|; NaN counts as infinite."""
    worst = 0.0
    for i in range(n):
        total = q[i]
        row = M[i]
        for j in range(n):
            total += row[j] * z[j]
        error = abs(min(z[i], total))
        if not error <= worst:
            worst = error if error == error else np.inf
    return worst


@kernel
def _factorise(w: LcpWork, size: int) -> int:
    """Factor, by rows, the block of M of the first ``size`` entries of ``w.inside``; return its rank.

    A dependent column is skipped: its unknown stays zero.
    """
    A = w.factor
    largest = 0.0
    for i in range(size):
        w.order[i] = i
        row = w.M[w.inside[i]]
        for j in range(size):
            A[i, j] = row[w.inside[j]]
            largest = max(largest, abs(A[i, j]))
    rank = 0
    for c in range(size):
        best = 0.0
        r = rank
        for i in range(rank, size):
            if abs(A[i, c]) > best:
                best = abs(A[i, c])
                r = i
        if not best > _RANK * largest:
            continue
        if r != rank:
            for j in range(size):
                A[r, j], A[rank, j] = A[rank, j], A[r, j]
            w.order[r], w.order[rank] = w.order[rank], w.order[r]
        top = A[rank]
        for i in range(rank + 1, size):
            row = A[i]
            if row[c] != 0.0:
                f = row[c] / top[c]
                for j in range(c + 1, size):
                    row[j] -= f * top[j]
                row[c] = f
        w.pivot_columns[rank] = c
        rank += 1
    return rank


@kernel
def judge(w: LcpWork, n: int) -> float:
    """Fill ``w.scaled`` with the point of the basis ``w.basis`` of the scaled problem, and return its residual.

    The entries of z outside the basis are zero, and those of w inside it.
    """
    size = 0
    for i in range(n):
        w.scaled[i] = 0.0
        if w.basis[i]:
            w.inside[size] = i
            size += 1
    rank = _factorise(w, size)
    A = w.factor
    for _ in range(1 + _REFINEMENTS):
        for r in range(rank):
            i = w.inside[w.order[r]]
            total = -w.q[i]
            row = w.M[i]
            for j in range(size):
                total -= row[w.inside[j]] * w.scaled[w.inside[j]]
            for k in range(r):
                total -= A[r, w.pivot_columns[k]] * w.right[k]
            w.right[r] = total
        for r in range(rank - 1, -1, -1):
            total = w.right[r]
            for k in range(r + 1, rank):
                c = w.pivot_columns[k]
                total -= A[r, c] * w.step[k]
            w.step[r] = total / A[r, w.pivot_columns[r]]
        for r in range(rank):
            w.scaled[w.inside[w.pivot_columns[r]]] += w.step[r]
    for i in range(n):
        # A degenerate zero with its rounding error is set to zero; the residual shows whether this was right.
        if abs(w.scaled[i]) < TIE:
            w.scaled[i] = 0.0
    return residual_of(w.M, w.q, w.scaled, n)


@kernel
def unscale(w: LcpWork, n: int) -> None:
    """Fill ``w.z`` with the point of the scaled problem in the units of the original problem."""
    for i in range(n):
        w.z[i] = w.scaled[i] * w.columns[i] * w.unit[0]


@entry
def scale_work(w: LcpWork) -> None:
    """Call :func:`scale` from Python."""
    scale(w, len(w.q))


@entry
def residual_work(M: Array, q: Array, z: Array) -> float:
    """Call :func:`residual_of` from Python."""
    return residual_of(M, q, z, len(q))
