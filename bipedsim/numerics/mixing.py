"""Fixed points found in fewer turns: Anderson's mixing (D. G. Anderson 1965; H. F. Walker and P. Ni 2011)."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics.arrays import Array, Integers
from bipedsim.numerics.jit import kernel

# What a turn adds to those before it, as a share, before it is taken for rounding.
DEPENDENT = 1e-6


class Mixing(NamedTuple):
    """What the last M turns of X unknowns tell of the next.

    Attributes:
        x, f: The last guess, and how far its image was from it.
        moves, changes: How both changed from turn to turn.
        q, r, share: The changes as orthonormal directions, and what of each is in the rest.
        stored: How many turns are kept, -1 before the first; and where the next one goes.
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
    """Begin anew: the next turn is a plain one."""
    m.stored[0] = -1
    m.stored[1] = 0


@kernel
def mix(m: Mixing, x, f):
    """Move ``x`` (X,) towards the fixed point, where ``f`` (X,) = g(x) - x is zero.

    The combination of the last turns whose rest is least is taken, and what that leaves as a plain turn: of a linear g
    the fixed point is found after as many turns as it has dimensions, and one.
    """
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
    used = 0
    for c in range(m.stored[0]):
        q, change = m.q[c], m.changes[(m.stored[1] - 1 - c) % depth]
        whole = left = 0.0
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
            left += q[i] * q[i]
        if not left > DEPENDENT * DEPENDENT * whole:
            break
        left = np.sqrt(left)
        m.r[c, c] = left
        for i in range(n):
            q[i] /= left
        used += 1
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
