"""Small dense solves, compiled."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.jit import kernel

# A pivot this small beside the largest diagonal entry is rounding: the row depends on the others.
RANK_TOLERANCE = 1e-13


# Shift of a singular matrix, beside its largest diagonal entry, and how often its solution is refined.
SHIFT = 1e-9
REFINEMENTS = 4
# Most sweeps of Jacobi's method, of which it needs six or so; an eigenvalue this small beside the largest is rounding.
SWEEPS = 30
EIGENVALUE_TOLERANCE = 1e-10
# A pivot this small beside the diagonal entry of its row may be rounding that small ones before it have magnified.
DOUBTFUL_PIVOT = 1e-5
# Equations contradict each other where so much is left of what is wanted.
CONTRADICTION = 1e-12


@kernel
def solve_singular(A, b, n, L, x, residual, correction):
    """Solve the symmetric positive semi-definite, consistent A x = b of size ``n`` for the x of least norm.

    Four legs of a rigid chair then share its weight, where a basic solution lets one hang and another pull. A + shift
    is factored and the solution refined, which leaves the null space alone. Returns False where the equations
    contradict each other: what does, over the shift, is then in x.

    Args:
        A, b, L, x: As in :func:`solve_cholesky`.
        residual, correction: (>= n,) work arrays.
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
    wanted = left = 0.0
    for i in range(n):
        total = b[i]
        for j in range(n):
            total -= (A[i, j] if j <= i else A[j, i]) * x[j]
        wanted = max(wanted, abs(b[i]))
        left = max(left, abs(total))
    return left <= CONTRADICTION * wanted


@kernel
def solve_cholesky(A, b, n, L, x) -> bool:
    """Solve the symmetric positive definite A x = b of size ``n``; return False, x undefined, if A has not full rank.

    Args:
        A, b: (>= n, >= n), (>= n,), untouched; only the lower triangle of A is read.
        L: (>= n, >= n) work array.
        x: (>= n,) out.
    """
    largest = 0.0
    for i in range(n):
        largest = max(largest, A[i, i])
    floor = RANK_TOLERANCE * largest
    for i in range(n):
        y = b[i]
        for j in range(i):
            total = A[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            total *= L[j, j]
            L[i, j] = total
            y -= total * x[j]
        total = A[i, i]
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if not total > floor:
            return False
        # The diagonal holds the inverse: divisions are slow.
        L[i, i] = 1.0 / np.sqrt(total)
        x[i] = y * L[i, i]
    for i in range(n - 1, -1, -1):
        y = x[i] * L[i, i]
        x[i] = y
        for j in range(i):
            x[j] -= L[i, j] * y
    return True


@kernel
def is_doubtful(A, n, L) -> bool:
    """Return whether A, which :func:`solve_cholesky` has factored as ``L``, may be singular all the same.

    There is no pivoting: the rows of two points of one body depend on each other, and with the points side by side
    there are small pivots that magnify what rounding leaves of the last one, far above ``RANK_TOLERANCE``. The answer
    would press the points against each other with 10 000 times the weight.
    """
    doubtful = False
    for i in range(n):
        # L holds the inverse roots of the pivots.
        doubtful = doubtful or L[i, i] * L[i, i] * A[i, i] * DOUBTFUL_PIVOT > 1.0
    return doubtful


@kernel
def solve_least_norm(A, b, n, L, work, x):
    """Do as :func:`solve_pseudo_inverse`, by Cholesky's method where there is no doubt of the rank.

    Args:
        A, b, x: As in :func:`solve_pseudo_inverse`. L, work: (>= n, >= n) work arrays.
    """
    if not solve_cholesky(A, b, n, L, x) or is_doubtful(A, n, L):
        solve_pseudo_inverse(A, b, n, L, work, x)


@kernel
def solve_pseudo_inverse(A, b, n, V, work, x):
    """Find the x of least norm among those that come nearest to the symmetric positive semi-definite A x = b.

    By Jacobi's rotations: unlike :func:`solve_singular`, for equations that contradict each other too.

    Args:
        A, b: (>= n, >= n), (>= n,), untouched; only the lower triangle of A is read.
        V, work: (>= n, >= n) work arrays.
        x: (>= n,) out.
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
    """Make A[p, q] zero by a rotation in the plane of ``p`` and ``q``, and take ``V`` along."""
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

    Rows that depend on the others (a straight knee, a foot that a short chain cannot move) get no multiplier.
    """
    rank = eliminate(A, n, rows, columns)
    solve_eliminated(A, b, n, rank, x, rows, columns)
    return rank


@kernel
def eliminate(A, n, rows, columns) -> int:
    """Factor A of size ``n`` in place with complete pivoting, for :func:`solve_eliminated`; return the rank.

    Args:
        A: (>= n, >= n), overwritten. rows, columns: (>= n,) order of elimination.
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
    """Solve with what :func:`eliminate` made of A; ``b`` (>= n,) is overwritten, ``x`` (>= n,) is filled."""
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
    """Factor the regular A of size ``n`` in place, for :func:`solve_factored`; return False where a pivot is 0.

    Args:
        A: (>= n, >= n), overwritten by both factors. order: (>= n,) rows that were exchanged.
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
    """Solve with what :func:`factor_pivoted` made of A; ``b`` (>= n,) is overwritten, ``x`` (>= n,) is filled."""
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
