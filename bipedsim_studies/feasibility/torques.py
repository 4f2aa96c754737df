"""The torques that keep the feet as they are: whether there are any, the safest ones, and those nearest to a wish.

The conditions are linear but for the friction cones of the feet. These are met by planes that touch them, one more for
every answer that lies outside (Kelley's cutting planes), so that answers lie on the cones and not on a pyramid in them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import daqp
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim_studies.feasibility.conditions import Conditions

Solve = Callable[[Array, Array], "Array | None"]

CUTS = 60
"""Most rounds of planes; nearly all answers take a dozen at most."""
INSIDE = 2e-5
"""Answers keep this distance from every limit, in shares of the effort limits: on the safe side of the solvers."""
PRECISION = 1e-4
"""Of :attr:`Safest.radius`."""


class Safest(NamedTuple):
    """The torques farthest from every limit.

    Attributes:
        torque: (nu,) [N.m].
        radius: How far they may be off, as a share of the effort limits in the Euclidean norm over the joints, before
            a foot slips, tips or lifts, or a limit is met. Negative where nothing keeps the feet: how much is missing.
    """

    torque: Array
    radius: float


class TorqueSet:
    """Torques within limits under which all conditions hold.

    Args:
        conditions: On the torques, see :func:`bipedsim_studies.feasibility.sticking.sticking_conditions`.
        limit: (nu,) largest magnitudes [N.m].

    Raises:
        ConfigError: The limits do not fit the conditions, or are not positive and finite.
    """

    def __init__(self, conditions: Conditions, limit: ArrayLike) -> None:
        self._conditions = conditions
        self._limit = np.asarray(limit, dtype=np.float64)
        n = conditions.wrenches.shape[1] - 1
        if self._limit.shape != (n,) or not (np.isfinite(self._limit) & (self._limit > 0.0)).all():
            raise ConfigError(f"limit = {self._limit.tolist()} must be {n} positive, finite torques")

    @cached_property
    def _rows(self) -> tuple[Array, Array, bool]:
        """A and B in shares of the limits, rows of length one: their values are distances; and whether all can hold.

        A row that no torque changes is true or false as it is, and left out.
        """
        A, B = self._conditions.A * self._limit, self._conditions.B
        length = np.linalg.norm(A, axis=1)
        changes = length > 1e-12 * length.max(initial=0.0)
        possible = bool((B[~changes] > 0.0).all())
        return A[changes] / length[changes, None], B[changes] / length[changes], possible

    def contains(self, torque: Array) -> bool:
        """Whether the torques (nu,) are within the limits and all conditions hold."""
        return bool((np.abs(torque) <= self._limit).all()) and self._conditions.holds(torque)

    def safest(self) -> Safest:
        """Return the torques farthest from every limit (the Chebyshev centre), by linear programmes."""
        n = len(self._limit)
        cost = np.zeros(n + 1)
        cost[-1] = -1.0
        radius = -np.inf

        def solve(A: Array, B: Array) -> Array | None:
            nonlocal radius
            box = np.vstack([np.eye(n), -np.eye(n)])
            rows = np.column_stack([np.vstack([-A, box]), np.ones(len(A) + 2 * n)])
            found = linprog(cost, A_ub=rows, b_ub=np.concatenate([B, np.ones(2 * n)]), bounds=(None, None))
            if found.status != 0:
                return None
            radius = float(found.x[-1])
            return np.asarray(found.x[:-1])

        x = self._cut(solve, lambda: radius - PRECISION)
        if x is None or not self._rows[2]:
            return Safest(np.zeros(n) if x is None else x * self._limit, -np.inf)
        return Safest(x * self._limit, radius)

    def nearest(self, wanted: Array) -> Array | None:
        """Return the torques (nu,) of the set nearest to ``wanted`` (nu,), or None where none was found.

        Nearest in shares of the effort limits; torques of the set come back as they are. The cones are convex but for
        the torsion that a sole can carry, which depends on its CoP: where that limits, others may be a little nearer.
        """
        if self.contains(wanted):
            return wanted.copy()
        if not self._rows[2]:
            return None
        n = len(self._limit)
        aim = wanted / self._limit

        def solve(A: Array, B: Array) -> Array | None:
            m = len(A)
            upper = np.concatenate([np.ones(n), np.full(m, 1e30)])
            lower = np.concatenate([-np.ones(n), INSIDE - B])
            x, _, flag, _ = daqp.solve(
                np.eye(n), -aim, np.ascontiguousarray(A), upper, lower, np.zeros(n + m, dtype=np.int32)
            )
            return np.clip(x, -1.0, 1.0) if flag > 0 else None

        x = self._cut(solve, lambda: 0.0)
        if x is None:
            return None
        torque: Array = x * self._limit
        return torque if self.contains(torque) else None

    def _cut(self, solve: Solve, needed: Callable[[], float]) -> Array | None:
        """Return what ``solve`` finds for rows A, B once all frictions are as ``needed``; None where it finds none.

        After ``CUTS`` rounds what it found last, which may still lie a little outside.
        """
        A, B, _ = self._rows
        for _ in range(CUTS):
            x = solve(A, B)
            if x is None:
                return None
            rows, offsets = self._conditions.tangents(x * self._limit)
            rows = rows * self._limit
            length = np.maximum(np.linalg.norm(rows, axis=1), np.finfo(float).tiny)
            rows, offsets = rows / length[:, None], offsets / length
            outside = rows @ x + offsets < needed()
            if not outside.any():
                return x
            A, B = np.vstack([A, rows[outside]]), np.concatenate([B, offsets[outside]])
        return x


def weakest(conditions: Conditions, torque: Array) -> tuple[float, str]:
    """Return how far [N.m] torques (nu,) may be off before a condition fails, and which it is.

    Euclidean norm over the joints; the friction cones are linearised at ``torque``. Negative where a condition fails;
    one that no torque changes is infinitely far from its end, or beyond it. Infinity and no name where nothing touches.
    """
    if not conditions.exact_labels:
        return np.inf, ""
    A, B = conditions.linear(torque)
    values = A @ torque + B
    length = np.linalg.norm(A, axis=1)
    fixed = length <= 1e-12 * length.max(initial=0.0)
    away = np.where(fixed, np.where(values > 0.0, np.inf, -np.inf), values / np.where(fixed, 1.0, length))
    i = int(np.argmin(away))
    return float(away[i]), conditions.exact_labels[i]
