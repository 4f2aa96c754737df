"""Define the optimal control problem: minimise half the integral of u^T u for x' = f(x, u) with tied ends (eq. 58)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bipedsim.numerics import Array

Numbers = NDArray[np.inexact]
"""Real or complex numbers; complex-step derivatives are exact to rounding (Squire and Trapp 1998)."""
TINY = 1e-30


@dataclass(frozen=True)
class Problem:
    """Minimise 1/2 integral of u^T u from 0 to ``duration``, with x' = f(x, u) and g(x(0), x(duration)) = 0.

    Attributes:
        states, controls, ties: Numbers of components of x, u and g.
        duration: Duration [s].
        flow: f of x (n, k) and u (m, k), for each column.
        ends: g (r,) of x at the start and at the end (n,); in eq. 58 these are h_1 and h_2.
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
            perturbed = np.vstack([x, u]).astype(np.complex128)
            perturbed[j] += TINY * 1j
            columns.append(self.flow(perturbed[:n], perturbed[n:]).imag / TINY)
        jacobian = np.stack(columns, axis=1)
        return jacobian[:, :n], jacobian[:, n:]

    def end_slopes(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Return dg/dx(0) and dg/dx(duration), both (r, n)."""
        n, columns = self.states, []
        for j in range(2 * n):
            perturbed = np.concatenate([first, last]).astype(np.complex128)
            perturbed[j] += TINY * 1j
            columns.append(self.ends(perturbed[:n], perturbed[n:]).imag / TINY)
        jacobian = np.stack(columns, axis=1)
        return jacobian[:, :n], jacobian[:, n:]


@dataclass(frozen=True, eq=False)
class OptimalTrajectory:
    """Motion with its controls and cost.

    Attributes:
        t: (k,) times [s].
        x: (n, k) states.
        u: (m, k) controls.
        cost: 1/2 integral of u^T u.
    """

    t: Array
    x: Array
    u: Array
    cost: float
