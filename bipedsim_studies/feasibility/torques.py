"""Find torques that keep the feet in their contact state: whether there are any, the safest, and the nearest ones.

The conditions are linear except for the friction cones of the feet. The cones are replaced by tangent planes, and each
solution outside a cone adds one more plane (Kelley's cutting planes). Solutions are therefore on the cones, not on a
pyramid inside them.
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
"""Maximum number of rounds of planes; almost all solutions take at most a dozen."""
INSIDE = 2e-5
"""Distance of solutions from each limit, relative to the effort limits, as a margin for the solvers' errors."""
PRECISION = 1e-4
"""Precision of :attr:`Safest.radius`."""


class Safest(NamedTuple):
    """Torques with the largest distance from all limits.

    Attributes:
        torque: (nu,) torques [N.m].
        radius: Tolerable error of the torques before a foot slips, tips or lifts, or an effort limit is reached. It is
            relative to the effort limits, in the Euclidean norm over the joints. Negative values are the amount by
            which all torques fail to keep the feet in contact.
    """

    torque: Array
    radius: float


class TorqueSet:
    """Set of torques within limits that satisfy all conditions.

    Args:
            conditions: Conditions on the torques, see
                :func:`bipedsim_studies.feasibility.sticking.sticking_conditions`.
            limit: (nu,) largest magnitudes [N.m].

        Raises:
            ConfigError: The limits do not match the conditions, or are not positive and finite.
    """

    def __init__(self, conditions: Conditions, limit: ArrayLike) -> None:
        self._conditions = conditions
        self._limit = np.asarray(limit, dtype=np.float64)
        n = conditions.wrenches.shape[1] - 1
        if self._limit.shape != (n,) or not (np.isfinite(self._limit) & (self._limit > 0.0)).all():
            raise ConfigError(f"must be {n} positive, finite torques", "limit", self._limit.tolist())

    @cached_property
    def _rows(self) -> tuple[Array, Array, bool]:
        """A and B relative to the limits, and whether all rows can hold; rows have length one, so values are distances.

        A row that is independent of the torques is either satisfied or not, and is omitted.
        """
        A, B = self._conditions.A * self._limit, self._conditions.B
        length = np.linalg.norm(A, axis=1)
        changes = length > 1e-12 * length.max(initial=0.0)
        possible = bool((B[~changes] > 0.0).all())
        return A[changes] / length[changes, None], B[changes] / length[changes], possible

    def contains(self, torque: Array) -> bool:
        """Return whether the torques (nu,) are within the limits and satisfy all conditions."""
        return bool((np.abs(torque) <= self._limit).all()) and self._conditions.holds(torque)

    def safest(self) -> Safest:
        """Return the torques farthest from all limits (the Chebyshev centre), by linear programming."""
        n = len(self._limit)
        cost = np.zeros(n + 1)
        cost[-1] = -1.0
        radius = -np.inf

        def solve(A: Array, B: Array) -> Array | None:
            nonlocal radius
            box = np.vstack([np.eye(n), -np.eye(n)])
            rows = np.column_stack([np.vstack([-A, box]), np.ones(len(A) + 2 * n)])
            solution = linprog(cost, A_ub=rows, b_ub=np.concatenate([B, np.ones(2 * n)]), bounds=(None, None))
            if solution.status != 0:
                return None
            radius = float(solution.x[-1])
            return np.asarray(solution.x[:-1])

        x = self._cut(solve, lambda: radius - PRECISION)
        if x is None or not self._rows[2]:
            return Safest(np.zeros(n) if x is None else x * self._limit, -np.inf)
        return Safest(x * self._limit, radius)

    def nearest(self, wanted: Array) -> Array | None:
        """Return the torques (nu,) of the set nearest to ``wanted`` (nu,), or None if none are found.

        The distance is relative to the effort limits; torques inside the set are returned unchanged. The cones are
        convex except for the torsion of a sole, which depends on its CoP. If the torsion is the limit, slightly nearer
        torques may exist.
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
        """Return the solution of ``solve`` for rows A, B once all frictions reach ``needed``; None if there is none.

        After ``CUTS`` rounds, it returns the last solution, which may still be slightly outside.
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
    """Return the tolerable error [N.m] of torques (nu,) before a condition fails, and the name of this condition.

    The error is the Euclidean norm over the joints, with the friction cones linearised at ``torque``. It is negative if
    a condition fails. For a condition that is independent of the torques, it is plus or minus infinity. Without
    contacts, the function returns infinity and no name.
    """
    if not conditions.exact_labels:
        return np.inf, ""
    A, B = conditions.linear(torque)
    values = A @ torque + B
    length = np.linalg.norm(A, axis=1)
    fixed = length <= 1e-12 * length.max(initial=0.0)
    distances = np.where(fixed, np.where(values > 0.0, np.inf, -np.inf), values / np.where(fixed, 1.0, length))
    i = int(np.argmin(distances))
    return float(distances[i]), conditions.exact_labels[i]
