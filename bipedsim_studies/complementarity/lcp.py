"""Solve the linear complementarity problem: find z >= 0 with w = M z + q >= 0 and z^T w = 0.

``solve_lcp`` follows Lemke's path from basis to basis; ``all_solutions`` enumerates all bases. Each answer is validated
in the problem itself by :func:`scaled_residual`.

Source: Cottle, Pang and Stone, *The Linear Complementarity Problem*, 1992: sections 4.4 (Lemke), 4.9 (lexicographic
rule), 3.1 to 3.9 (classes of matrices).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bipedsim.errors import BipedSimError, ConfigError
from bipedsim.numerics import Array, call
from bipedsim.numerics.lcp import LcpWork, residual_work, scale_work, solve_work

Status = Literal["solved", "ray", "limit", "inaccurate"]

_STATUS: tuple[Status, ...] = ("solved", "ray", "limit", "inaccurate")


class ComplementarityError(BipedSimError):
    """A contact problem has no solution, or more than one."""


@dataclass(frozen=True)
class LcpResult:
    """Result of Lemke's method.

    Attributes:
        z: (n,) the unknowns; NaN unless ``status`` is "solved".
        w: (n,) M z + q, computed from z.
        residual: :func:`scaled_residual` of the last basis; infinite if there was none.
        status: "solved". "ray": the path is unbounded. For a copositive-plus M (such as a positive semidefinite one),
            this proves that no z >= 0 has M z + q >= 0; for other M it proves nothing. "limit": the maximum number of
            pivots is reached. "inaccurate": rounding makes the final basis invalid.
        pivots: Number of pivots.
    """

    z: Array
    w: Array
    residual: float
    status: Status
    pivots: int


def checked(M: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Return M (n, n) and q (n,) as float64; raise ConfigError if they are invalid."""
    matrix, vector = np.asarray(M, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if vector.ndim != 1 or matrix.shape != (vector.size, vector.size):
        raise ConfigError(f"{matrix.shape} and {vector.shape} must be (n, n) and (n,)", "shapes of M and q")
    for name, array in (("M", matrix), ("q", vector)):
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise ConfigError("is not a finite number", f"{name}{list(where)}", array[where])
    return matrix, vector


def natural_residual(M: ArrayLike, q: ArrayLike, z: ArrayLike) -> float:
    """Return max |min(z, M z + q)|, which is zero only at solutions; its unit is that of the smaller term."""
    matrix, vector = checked(M, q)
    unknown = np.asarray(z, dtype=np.float64)
    return float(np.abs(np.minimum(unknown, matrix @ unknown + vector)).max(initial=0.0))


@dataclass(frozen=True)
class _Scaled:
    """Scaled problem with entries near one: M = rows M' columns, z = unit columns z', w = unit w' / rows."""

    M: Array
    q: Array
    columns: Array
    unit: float

    def residual(self, z: Array) -> float:
        """Return max |min(z', M' z' + q')| for a z in the units of the original problem."""
        return float(residual_work(self.M, self.q, z / (self.columns * self.unit)))


def _work(matrix: Array, vector: Array) -> LcpWork:
    work = LcpWork.of_size(vector.size)
    work.M[...] = matrix
    work.q[...] = vector
    return work


def _scale(matrix: Array, vector: Array) -> _Scaled:
    """Balance rows and columns (Ruiz 2001), so that different units and magnitudes have equal weight.

    The factors are powers of two, so there is no rounding, and zeros and signs do not change.
    """
    work = _work(matrix, vector)
    call(scale_work, work)
    return _Scaled(work.M, work.q, work.columns, float(work.unit[0]))


def scaled_residual(M: ArrayLike, q: ArrayLike, z: ArrayLike) -> float:
    """Return max |min(z, w)| after rows and columns are scaled so that M and q have entries near one.

    It has no unit. It is the same for the problem in other units, or for a robot of a hundredth of the mass.
    """
    matrix, vector = checked(M, q)
    return _scale(matrix, vector).residual(np.asarray(z, dtype=np.float64))


def solve_lcp(M: ArrayLike, q: ArrayLike, *, pivots: int | None = None) -> LcpResult:
    """Find one solution of w = M z + q, z >= 0, w >= 0, z^T w = 0 by Lemke's method.

    The method finds a solution, if one exists, for copositive-plus M. It also does for P matrices, and for copositive M
    if z^T q >= 0 for all solutions of the LCP with q = 0 (friction pyramids in time stepping). The lexicographic rule
    prevents cycling, so dependent constraints and ties need no perturbation.

    Args:
        M: (n, n) any matrix.
        q: (n,) vector.
        pivots: Maximum number of pivots; 50 + 20 n by default.

    Raises:
        ConfigError: Shapes do not match, or numbers are not finite.
    """
    matrix, vector = checked(M, q)
    size = vector.size
    work = _work(matrix, vector)
    status = _STATUS[call(solve_work, work, 50 + 20 * size if pivots is None else pivots, False)]
    z = work.z if status == "solved" else np.full(size, np.nan)
    w = matrix @ z + vector if status == "solved" else z.copy()
    return LcpResult(z, w, float(work.residual[0]), status, int(work.pivots[0]))
