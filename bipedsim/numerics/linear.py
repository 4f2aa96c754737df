"""Compiled solvers of small dense linear systems."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.jit import kernel

# A pivot below this fraction of the largest diagonal entry is rounding, so its row depends on the others.
RANK_TOLERANCE = 1e-13


# Shift of a singular matrix relative to its largest diagonal entry, and number of refinements of the solution.
SHIFT = 1e-9
REFINEMENTS = 4
# Maximum number of sweeps of Jacobi's method (about six are needed), and relative size of an eigenvalue that is
# rounding.
SWEEPS = 30
EIGENVALUE_TOLERANCE = 1e-10
# A pivot below this fraction of its diagonal entry may be rounding that earlier small pivots have magnified.
DOUBTFUL_PIVOT = 1e-5
# Residual relative to b above which the equations contradict each other.
CONTRADICTION = 1e-12


@kernel
def solve_singular(A, b, n, L, x, residual, correction):
    """Solve the symmetric positive semi-definite, consistent A x = b of size ``n`` for the x of least norm.

    Four legs of a rigid chair then share its weight; a basic solution would leave one unloaded and pull another. The
    matrix A + shift is factored and the solution refined, which leaves the null space unchanged.

    Args:
        A, b, L, x: As in :func:`solve_cholesky`.
        residual, correction: (>= n,) work arrays.

    Returns:
        False if the equations contradict each other; x then contains the contradicting part divided by the shift.
    """
    largest = 0.0
    for i in range(n):
        largest = max(largest, A[i, i])
        x[i] = 0.0
    shift = SHIFT * largest
    for _ in range(REFINEMENTS):
        for i in range(n):
            total = b[i]
            for j in range(n):
                total -= (A[i, j] if j <= i else A[j, i]) * x[j]
            residual[i] = total
        for i in range(n):
            A[i, i] += shift
        done = solve_cholesky(A, residual, n, L, correction)
        for i in range(n):
            A[i, i] -= shift
        if not done:
            return True
        for i in range(n):
            x[i] += correction[i]
    largest_b = largest_residual = 0.0
    for i in range(n):
        total = b[i]
        for j in range(n):
            total -= (A[i, j] if j <= i else A[j, i]) * x[j]
        largest_b = max(largest_b, abs(b[i]))
        largest_residual = max(largest_residual, abs(total))
    return largest_residual <= CONTRADICTION * largest_b


@kernel
def solve_cholesky(A, b, n, L, x) -> bool:
    """Solve the symmetric positive definite A x = b of size ``n``; return False, with x undefined, if A is singular.

    Args:
        A, b: (>= n, >= n), (>= n,), unchanged; only the lower triangle of A is read.
        L: (>= n, >= n) work array.
        x: (>= n,) output.
    """
    largest = 0.0
    for i in range(n):
        largest = max(largest, A[i, i])
        x[i] = b[i]
    floor = RANK_TOLERANCE * largest
    # The entries of a column do not depend on each other, so the processor computes several at a time.
    for j in range(n):
        total = A[j, j]
        for k in range(j):
            total -= L[j, k] * L[j, k]
        if not total > floor:
            return False
        # L stores the inverse of the diagonal, because divisions are slow.
        inverse = 1.0 / np.sqrt(total)
        L[j, j] = inverse
        y = x[j] * inverse
        x[j] = y
        for i in range(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            total *= inverse
            L[i, j] = total
            x[i] -= total * y
    for i in range(n - 1, -1, -1):
        y = x[i] * L[i, i]
        x[i] = y
        for j in range(i):
            x[j] -= L[i, j] * y
    return True


@kernel
def is_doubtful(A, n, L) -> bool:
    """Return whether A may be singular although :func:`solve_cholesky` has factored it as ``L``.

    The factorisation has no pivoting. The rows of two points of one body are dependent. If the points are close to each
    other, small pivots magnify the rounding error of the last pivot far above ``RANK_TOLERANCE``. The solution would
    press the points against each other with 10 000 times the weight.
    """
    doubtful = False
    for i in range(n):
        # The diagonal of L stores the inverse square roots of the pivots.
        doubtful = doubtful or L[i, i] * L[i, i] * A[i, i] * DOUBTFUL_PIVOT > 1.0
    return doubtful


@kernel
def solve_least_norm(A, b, n, L, work, x):
    """Solve as :func:`solve_pseudo_inverse`, but by Cholesky's method if A clearly has full rank.

    Args:
        A, b, x: As in :func:`solve_pseudo_inverse`.
        L, work: (>= n, >= n) work arrays.
    """
    if not solve_cholesky(A, b, n, L, x) or is_doubtful(A, n, L):
        solve_pseudo_inverse(A, b, n, L, work, x)


@kernel
def solve_pseudo_inverse(A, b, n, V, work, x):
    """Compute the x of least norm that minimises the residual of the symmetric positive semi-definite A x = b.

    The method is Jacobi's. Unlike :func:`solve_singular`, it also accepts contradictory equations.

    Args:
        A, b: (>= n, >= n), (>= n,), unchanged; only the lower triangle of A is read.
        V, work: (>= n, >= n) work arrays.
        x: (>= n,) output.
    """
    total = 0.0
    for i in range(n):
        x[i] = 0.0
        for j in range(n):
            V[i, j] = 1.0 if i == j else 0.0
            work[i, j] = A[i, j] if j <= i else A[j, i]
            total += work[i, j] * work[i, j]
    for _ in range(SWEEPS):
        off = 0.0
        for i in range(n):
            for j in range(i):
                off += work[i, j] * work[i, j]
        if off <= 1e-32 * total:
            break
        for i in range(n):
            for j in range(i):
                _rotate(work, V, n, i, j)
    largest = 0.0
    for i in range(n):
        largest = max(largest, work[i, i])
    for k in range(n):
        if not work[k, k] > EIGENVALUE_TOLERANCE * largest:
            continue
        along = 0.0
        for i in range(n):
            along += V[i, k] * b[i]
        along /= work[k, k]
        for i in range(n):
            x[i] += V[i, k] * along


@kernel
def _rotate(A, V, n, p, q):
    """Make A[p, q] zero by a rotation in the plane of ``p`` and ``q``, and apply the rotation to ``V``."""
    if A[p, q] == 0.0:
        return
    theta = (A[q, q] - A[p, p]) / (2.0 * A[p, q])
    t = (1.0 if theta >= 0.0 else -1.0) / (abs(theta) + np.sqrt(theta * theta + 1.0))
    c = 1.0 / np.sqrt(t * t + 1.0)
    s = t * c
    for k in range(n):
        a = A[k, p]
        A[k, p] = c * a - s * A[k, q]
        A[k, q] = s * a + c * A[k, q]
    for k in range(n):
        a = A[p, k]
        A[p, k] = c * a - s * A[q, k]
        A[q, k] = s * a + c * A[q, k]
        a = V[k, p]
        V[k, p] = c * a - s * V[k, q]
        V[k, q] = s * a + c * V[k, q]


@kernel
def solve_dense(A, b, n, x, rows, columns):
    """Solve A x = b of size ``n`` by elimination with complete pivoting; return the rank. A and b are overwritten.

    Dependent rows (a straight knee, a foot that a short chain cannot move) get no multiplier.
    """
    rank = eliminate(A, n, rows, columns)
    solve_eliminated(A, b, n, rank, x, rows, columns)
    return rank


@kernel
def eliminate(A, n, rows, columns) -> int:
    """Factor A of size ``n`` in place with complete pivoting, for :func:`solve_eliminated`; return the rank.

    Args:
        A: (>= n, >= n), overwritten.
        n: Size of the system.
        rows, columns: (>= n,) output, order of elimination.
    """
    largest = 0.0
    for i in range(n):
        columns[i] = i
        rows[i] = i
        for j in range(n):
            largest = max(largest, abs(A[i, j]))
    rank = n
    for k in range(n):
        pivot = 0.0
        p = k
        q = k
        for i in range(k, n):
            for j in range(k, n):
                if abs(A[rows[i], columns[j]]) > pivot:
                    pivot = abs(A[rows[i], columns[j]])
                    p = i
                    q = j
        if pivot <= RANK_TOLERANCE * largest:
            rank = k
            break
        rows[k], rows[p] = rows[p], rows[k]
        columns[k], columns[q] = columns[q], columns[k]
        pivot = A[rows[k], columns[k]]
        for i in range(k + 1, n):
            f = A[rows[i], columns[k]] / pivot
            A[rows[i], columns[k]] = f
            if f != 0.0:
                for j in range(k + 1, n):
                    A[rows[i], columns[j]] -= f * A[rows[k], columns[j]]
    return rank


@kernel
def solve_eliminated(A, b, n, rank, x, rows, columns) -> None:
    """Solve with the factors of :func:`eliminate`; ``b`` (>= n,) is overwritten, ``x`` (>= n,) is filled."""
    for k in range(rank):
        for i in range(k + 1, n):
            f = A[rows[i], columns[k]]
            if f != 0.0:
                b[rows[i]] -= f * b[rows[k]]
    for k in range(n):
        x[k] = 0.0
    for k in range(rank - 1, -1, -1):
        total = b[rows[k]]
        for j in range(k + 1, rank):
            total -= A[rows[k], columns[j]] * x[columns[j]]
        x[columns[k]] = total / A[rows[k], columns[k]]


@kernel
def factor_pivoted(A, n, order) -> bool:
    """Factor the regular A of size ``n`` in place, for :func:`solve_factored`; return False if a pivot is 0.

    Args:
        A: (>= n, >= n), overwritten by both factors.
        n: Size of the system.
        order: (>= n,) output, exchanged rows.
    """
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if A[p, k] == 0.0:
            return False
        order[k] = p
        if p != k:
            for j in range(n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
        by = 1.0 / A[k, k]
        for i in range(k + 1, n):
            f = A[i, k] * by
            A[i, k] = f
            if f != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= f * A[k, j]
    return True


@kernel
def solve_factored(A, n, order, b, x) -> None:
    """Solve with the factors of :func:`factor_pivoted`; ``b`` (>= n,) is overwritten, ``x`` (>= n,) is filled."""
    for k in range(n):
        b[k], b[order[k]] = b[order[k]], b[k]
    for i in range(n):
        total = b[i]
        for j in range(i):
            total -= A[i, j] * b[j]
        b[i] = total
    for i in range(n - 1, -1, -1):
        total = b[i]
        for j in range(i + 1, n):
            total -= A[i, j] * x[j]
        x[i] = total / A[i, i]


LEAST_PIVOT = 0.1
"""A pivot on the diagonal is kept if it is at least this fraction of the largest entry of its column."""


@kernel
def factor_from_end(A, first, end, order, entries, others, b) -> int:
    """Factor the regular block of A in rows and columns ``first`` to ``end`` in place, from its last row to its first.

    Zeros are skipped in the row and in the column of the pivot. So A stays sparse, and few operations are needed, if
    every row is connected to rows before it as in a tree. Rows are exchanged only for a pivot that is small
    (``LEAST_PIVOT``).

    Args:
        A: (n, n); both factors overwrite the block.
        first, end: First row of the block, and the one after its last.
        order: (n,) output, exchanged rows.
        entries, others: (n,) work arrays.
        b: (n,) right side; the row exchanges and the inverse first factor are applied to b[first:end].

    Returns:
        Number of operations, 0 if a pivot is 0.
    """
    count = 0
    for k in range(end - 1, first - 1, -1):
        pivot, used = A[k], 0
        p, diagonal = k, abs(pivot[k])
        largest = diagonal
        for i in range(first, k):
            size = abs(A[i, k])
            if size != 0.0:
                others[used] = i
                used += 1
                if size > largest:
                    p, largest = i, size
        if largest == 0.0:
            return 0
        if diagonal >= LEAST_PIVOT * largest:
            p = k
        order[k] = p
        if p != k:
            for j in range(first, end):
                A[k, j], A[p, j] = A[p, j], A[k, j]
            b[k], b[p] = b[p], b[k]
        filled = 0
        for j in range(first, k):
            if pivot[j] != 0.0:
                entries[filled] = j
                filled += 1
        by = 1.0 / pivot[k]
        for m in range(used):
            i = others[m]
            row = A[i]
            f = row[k] * by
            row[k] = f
            for n in range(filled):
                j = entries[n]
                row[j] -= f * pivot[j]
            b[i] -= f * b[k]
        count += 3 * used * filled + 2 * (k - first + 1)
    return count


@kernel
def solve_second_factor(A, first, end, b, x) -> None:
    """Fill x[first:end] with the product of the inverse second factor of :func:`factor_from_end` and b[first:end]."""
    for i in range(first, end):
        row, begin = A[i], first
        # Four sums do not wait for each other.
        t0 = t1 = t2 = t3 = 0.0
        while begin + 4 <= i:
            t0 += row[begin] * x[begin]
            t1 += row[begin + 1] * x[begin + 1]
            t2 += row[begin + 2] * x[begin + 2]
            t3 += row[begin + 3] * x[begin + 3]
            begin += 4
        for j in range(begin, i):
            t0 += row[j] * x[j]
        x[i] = (b[i] - ((t0 + t1) + (t2 + t3))) / row[i]
