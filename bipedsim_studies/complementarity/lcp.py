"""The linear complementarity problem: find z >= 0 with w = M z + q >= 0 and z^T w = 0.

``solve_lcp`` follows Lemke's path from basis to basis, ``all_solutions`` looks at every basis. Neither is believed:
each answer is put back into the problem, and :func:`scaled_residual` decides.

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
    """A contact problem without an answer, or with more than one."""


@dataclass(frozen=True)
class LcpResult:
    """What Lemke's method found.

    Attributes:
        z: (n,) the unknowns; NaN unless ``status`` is "solved".
        w: (n,) M z + q, computed from z.
        residual: :func:`scaled_residual` of the last basis; infinite when there was none.
        status: "solved"; "ray": the path went to infinity, which for a copositive-plus M (such as a positive
            semidefinite one) proves that no z >= 0 has M z + q >= 0, and for others proves nothing; "limit": out of
            pivots; "inaccurate": a basis was reached, and rounding spoiled it.
        pivots: Pivots made.
    """

    z: Array
    w: Array
    residual: float
    status: Status
    pivots: int


def checked(M: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Return M (n, n) and q (n,) as float64, or raise ConfigError that says what is wrong with them."""
    matrix, vector = np.asarray(M, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if vector.ndim != 1 or matrix.shape != (vector.size, vector.size):
        raise ConfigError(f"an LCP needs M (n, n) and q (n,), not M {matrix.shape} and q {vector.shape}")
    for name, array in (("M", matrix), ("q", vector)):
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise ConfigError(f"{name}{list(where)} of an LCP is {array[where]}, not a finite number")
    return matrix, vector


def natural_residual(M: ArrayLike, q: ArrayLike, z: ArrayLike) -> float:
    """Return max |min(z, M z + q)|, zero at solutions and nowhere else; in the units of whichever is smaller."""
    matrix, vector = checked(M, q)
    unknown = np.asarray(z, dtype=np.float64)
    return float(np.abs(np.minimum(unknown, matrix @ unknown + vector)).max(initial=0.0))


@dataclass(frozen=True)
class _Scaled:
    """The same problem with entries near one: M = rows M' columns, z = unit columns z', w = unit w' / rows."""

    M: Array
    q: Array
    columns: Array
    unit: float

    def residual(self, z: Array) -> float:
        """Return max |min(z', M' z' + q')| for a z in the units of the problem that was scaled."""
        return float(residual_work(self.M, self.q, z / (self.columns * self.unit)))


def _work(matrix: Array, vector: Array) -> LcpWork:
    work = LcpWork.of_size(vector.size)
    work.M[...] = matrix
    work.q[...] = vector
    return work


def _scale(matrix: Array, vector: Array) -> _Scaled:
    """Balance rows and columns (Ruiz 2001): forces beside speeds, and millinewtons beside kilonewtons, weigh the same.

    The factors are powers of two, so that nothing is rounded, and zeros and signs stay.
    """
    work = _work(matrix, vector)
    call(scale_work, work)
    return _Scaled(work.M, work.q, work.columns, float(work.unit[0]))


def scaled_residual(M: ArrayLike, q: ArrayLike, z: ArrayLike) -> float:
    """Return max |min(z, w)| after rows and columns are scaled so that M and q have entries near one.

    It has no unit: that of the same problem in other units, or for a robot of a hundredth of the mass, is the same.
    """
    matrix, vector = checked(M, q)
    return _scale(matrix, vector).residual(np.asarray(z, dtype=np.float64))


def solve_lcp(M: ArrayLike, q: ArrayLike, *, pivots: int | None = None) -> LcpResult:
    """Find one solution of w = M z + q, z >= 0, w >= 0, z^T w = 0 by Lemke's method.

    It finds a solution wherever M is copositive-plus and the problem has one, wherever M is a P matrix, and wherever
    M is copositive and z^T q >= 0 for all solutions of the LCP with q = 0 (friction pyramids by time stepping). The
    lexicographic rule rules out cycling, so dependent constraints and ties need no perturbation.

    Args:
        M: (n, n), any.
        q: (n,).
        pivots: Most pivots to make; 50 + 20 n unless told.

    Raises:
        ConfigError: Shapes that do not fit, or numbers that are not finite.
    """
    matrix, vector = checked(M, q)
    size = vector.size
    work = _work(matrix, vector)
    status = _STATUS[call(solve_work, work, 50 + 20 * size if pivots is None else pivots, False)]
    z = work.z if status == "solved" else np.full(size, np.nan)
    w = matrix @ z + vector if status == "solved" else z.copy()
    return LcpResult(z, w, float(work.residual[0]), status, int(work.pivots[0]))
