"""Acceleration of fixed-point iterations: Anderson's mixing (D. G. Anderson 1965; H. F. Walker and P. Ni 2011)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics.arrays import Array, Integers
from bipedsim.numerics.jit import kernel

# Relative new contribution of an iteration below which it counts as rounding.
DEPENDENT = 1e-6


class Mixing(NamedTuple):
    """History of the last M iterations of X unknowns.

    Attributes:
        x, f: Last iterate, and its residual g(x) - x.
        moves, changes: Changes of both from iteration to iteration.
        q, r: QR factors of ``changes``: orthonormal directions and triangular coefficients.
        share: Coefficients of the changes in the residual.
        stored: Number of stored iterations (-1 before the first), and slot of the next one.
    """

    x: Annotated[Array, "X"]
    f: Annotated[Array, "X"]
    moves: Annotated[Array, "M", "X"]
    changes: Annotated[Array, "M", "X"]
    q: Annotated[Array, "M", "X"]
    r: Annotated[Array, "M", "M"]
    share: Annotated[Array, "M"]
    stored: Annotated[Integers, 2]


@kernel
def forget_turns(m: Mixing):
    """Clear the history, so that the next iteration is a plain one."""
    m.stored[0] = -1
    m.stored[1] = 0


@kernel
def mix(m: Mixing, x, f):
    """Move ``x`` (X,) towards the fixed point, where ``f`` (X,) = g(x) - x is zero.

    The combination of the last iterations with the smallest residual is taken, plus a plain iteration for the remaining
    residual. For a linear g in d dimensions the fixed point is found after d + 1 iterations.
    """
    n, depth = m.moves.shape[1], m.moves.shape[0]
    _store(m, x, f)
    used = _orthonormalise(m)
    for c in range(used):
        total = 0.0
        for i in range(n):
            total += m.q[c, i] * f[i]
        m.share[c] = total
    for k in range(used):
        c = used - 1 - k
        for b in range(c + 1, used):
            m.share[c] -= m.r[c, b] * m.share[b]
        m.share[c] /= m.r[c, c]
    for i in range(n):
        x[i] += f[i]
        for c in range(used):
            j = (m.stored[1] - 1 - c) % depth
            x[i] -= m.share[c] * (m.moves[j, i] + m.changes[j, i])


@kernel
def _store(m: Mixing, x, f) -> None:
    """Store the iterate ``x`` (X,), its residual ``f`` (X,), and their changes since the last iteration."""
    n, depth = m.moves.shape[1], m.moves.shape[0]
    if m.stored[0] < 0:
        m.stored[0] = 0
    else:
        slot = m.stored[1]
        for i in range(n):
            m.moves[slot, i] = x[i] - m.x[i]
            m.changes[slot, i] = f[i] - m.f[i]
        m.stored[1] = (slot + 1) % depth
        m.stored[0] = min(m.stored[0] + 1, depth)
    for i in range(n):
        m.x[i] = x[i]
        m.f[i] = f[i]


@kernel
def _orthonormalise(m: Mixing) -> int:
    """Fill the QR factors of the changes, latest first, up to the first dependent one; return their number."""
    n, depth = m.moves.shape[1], m.moves.shape[0]
    used = 0
    for c in range(m.stored[0]):
        q, change = m.q[c], m.changes[(m.stored[1] - 1 - c) % depth]
        whole = remaining = 0.0
        for i in range(n):
            q[i] = change[i]
            whole += q[i] * q[i]
        for b in range(c):
            along = 0.0
            for i in range(n):
                along += m.q[b, i] * q[i]
            m.r[b, c] = along
            for i in range(n):
                q[i] -= along * m.q[b, i]
        for i in range(n):
            remaining += q[i] * q[i]
        if not remaining > DEPENDENT * DEPENDENT * whole:
            break
        norm = np.sqrt(remaining)
        m.r[c, c] = norm
        for i in range(n):
            q[i] /= norm
        used += 1
    return used
