"""What is to be optimal: half the integral of u^T u over a motion x' = f(x, u) whose ends are tied (eq. 58)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bipedsim.numerics import Array

Numbers = NDArray[np.inexact]
"""Real or complex: derivatives are those of a complex step, exact to rounding (Squire and Trapp 1998)."""
TINY = 1e-30


@dataclass(frozen=True)
class Problem:
    """Least 1/2 integral of u^T u from 0 to ``duration``, with x' = f(x, u) and g(x(0), x(duration)) = 0.

    Attributes:
        states, controls, ties: Numbers of components of x, u, g.
        duration: [s].
        flow: f of x (n, k) and u (m, k), column by column.
        ends: g (r,) of x at the start and at the end (n,); eq. 58 has h_1 and h_2 there.
    """

    states: int
    controls: int
    ties: int
    duration: float
    flow: Callable[[Numbers, Numbers], Numbers]
    ends: Callable[[Numbers, Numbers], Numbers]

    def slopes(self, x: Array, u: Array) -> tuple[Array, Array]:
        """Return df/dx (n, n, k) and df/du (n, m, k)."""
        n, columns = self.states, []
        for j in range(n + self.controls):
            moved = np.vstack([x, u]).astype(np.complex128)
            moved[j] += TINY * 1j
            columns.append(self.flow(moved[:n], moved[n:]).imag / TINY)
        whole = np.stack(columns, axis=1)
        return whole[:, :n], whole[:, n:]

    def end_slopes(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Return dg/dx(0) and dg/dx(duration), (r, n) both."""
        n, columns = self.states, []
        for j in range(2 * n):
            moved = np.concatenate([first, last]).astype(np.complex128)
            moved[j] += TINY * 1j
            columns.append(self.ends(moved[:n], moved[n:]).imag / TINY)
        whole = np.stack(columns, axis=1)
        return whole[:, :n], whole[:, n:]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion.

    Attributes:
        t: (k,) [s]. x: (n, k). u: (m, k). cost: 1/2 integral of u^T u.
    """

    t: Array
    x: Array
    u: Array
    cost: float
