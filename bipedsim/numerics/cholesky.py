"""Solution of positive definite systems with a few tens of unknowns, without a call of LAPACK."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.jit import kernel


@kernel
def solve_positive_definite(N, b):  # type: ignore[no-untyped-def]
    """Replace b (n,) by the solution of N x = b, and N (n, n) by its factor: N = U^T U, upper triangles only.

    The inner loops process four rows at a time along rows, so that the compiler vectorises them.

    Returns:
        Whether N is positive definite and all numbers are finite.
    """
    n = b.shape[0]
    for i in range(n):
        row = N[i]
        for k in range(0, i - 3, 4):
            r0, r1, r2, r3 = N[k], N[k + 1], N[k + 2], N[k + 3]
            f0, f1, f2, f3 = r0[i], r1[i], r2[i], r3[i]
            for j in range(i, n):
                row[j] -= f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]
            b[i] -= f0 * b[k] + f1 * b[k + 1] + f2 * b[k + 2] + f3 * b[k + 3]
        for k in range(i - i % 4, i):
            last = N[k]
            factor = last[i]
            for j in range(i, n):
                row[j] -= factor * last[j]
            b[i] -= factor * b[k]
        pivot = row[i]
        if not (pivot > 0.0 and np.isfinite(pivot)):
            return False
        scale = 1.0 / np.sqrt(pivot)
        for j in range(i, n):
            row[j] *= scale
        b[i] *= scale
    finite = True
    for k in range(n - 1, -1, -1):
        row = N[k]
        x = b[k]
        for j in range(k + 1, n):
            x -= row[j] * b[j]
        b[k] = x / row[k]
        finite = finite and np.isfinite(b[k])
    return finite
