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
from numpy.typing import ArrayLike, NDArray

from bipedsim.errors import BipedSimError, ConfigError

Array = NDArray[np.float64]
Status = Literal["solved", "ray", "limit", "inaccurate"]

TOLERANCE = 1e-9
"""Scaled residual above which nothing is called a solution."""

_PIVOT = 1e-11
_TIE = 1e-12


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
        unknown = z / (self.columns * self.unit)
        return float(np.abs(np.minimum(unknown, self.M @ unknown + self.q)).max(initial=0.0))


def _scale(matrix: Array, vector: Array) -> _Scaled:
    """Balance rows and columns (Ruiz 2001): forces beside speeds, and millinewtons beside kilonewtons, weigh the same.

    The factors are powers of two, so that nothing is rounded, and zeros and signs stay.
    """
    rows, columns = np.ones_like(vector), np.ones_like(vector)
    for _ in range(8):
        size = np.abs(rows[:, None] * matrix * columns)
        for factors, axis in ((rows, 1), (columns, 0)):
            largest = size.max(axis=axis, initial=0.0)
            factors *= np.exp2(-np.round(np.log2(np.where(largest > 0.0, largest, 1.0)) / 2.0))
    largest = float(np.abs(rows * vector).max(initial=0.0))
    unit = float(np.exp2(np.round(np.log2(largest)))) if largest > 0.0 else 1.0
    return _Scaled(rows[:, None] * matrix * columns, rows * vector / unit, columns, unit)


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
    scaled = _scale(matrix, vector)
    allowed = 50 + 20 * size if pivots is None else pivots
    result: LcpResult | None = None
    # Another covering vector goes another way: worth a try where rounding, not the problem, ended the first.
    for covering in (np.ones(size), 1.0 + np.modf(np.arange(1, size + 1) * 0.618033988749895)[0]):
        status, basis, made = _lemke(scaled.M, scaled.q, covering, allowed)
        z = scaled.columns * scaled.unit * _point(scaled.M, scaled.q, basis)
        residual = scaled.residual(z) if status == "solved" else np.inf
        if status == "solved" and not residual <= TOLERANCE:
            status = "inaccurate"
        if status != "solved":
            z = np.full(size, np.nan)
        result = LcpResult(z, matrix @ z + vector if status == "solved" else z.copy(), residual, status, made)
        if status in ("solved", "ray"):
            break
    assert result is not None
    return result


def _point(M: Array, q: Array, basis: NDArray[np.intp]) -> Array:
    """Return the z whose entries outside ``basis`` are zero and whose w inside it is."""
    z = np.zeros_like(q)
    if basis.size:
        block = M[np.ix_(basis, basis)]
        try:
            inside = np.linalg.solve(block, -q[basis])
            inside -= np.linalg.solve(block, block @ inside + q[basis])
        except np.linalg.LinAlgError:
            inside = np.linalg.lstsq(block, -q[basis], rcond=None)[0]
        # Rounding of a degenerate zero; the residual judges what is left.
        z[basis] = np.where(np.abs(inside) < _TIE, 0.0, inside)
    return z


def _lemke(M: Array, q: Array, covering: Array, pivots: int) -> tuple[Status, NDArray[np.intp], int]:
    """Follow Lemke's path; return how it ended, which z are basic, and the pivots made.

    Variables: 0..n-1 are w, n..2n-1 are z, 2n is z0 of w = M z + covering z0 + q. The tableau is solved for anew at
    every pivot: errors do not add up, and a contact problem is small.
    """
    size = q.size
    none = np.zeros(0, dtype=np.intp)
    if (q >= 0.0).all():
        return "solved", none, 0
    table = np.hstack([np.eye(size), -M, -covering[:, None]])
    right = np.hstack([q[:, None], np.eye(size)])
    basis = np.arange(size)
    # Covered just so that all rows are lexicographically positive from here on.
    leaving = _first(-right / covering[:, None], np.arange(size))
    entering, basis[leaving] = size + leaving, 2 * size
    for made in range(1, pivots + 1):
        try:
            solved = np.linalg.solve(table[:, basis], np.hstack([right, table[:, [entering]]]))
        except np.linalg.LinAlgError:
            return "inaccurate", none, made
        artificial = int(np.flatnonzero(basis == 2 * size)[0])
        if solved[artificial, 0] <= TOLERANCE:
            # Rounding can hide that z0 is zero where many rows are at once; from there on the path is noise.
            inside = np.sort(basis[(basis >= size) & (basis < 2 * size)] - size)
            point = _point(M, q, inside)
            if np.abs(np.minimum(point, M @ point + q)).max() <= 0.01 * TOLERANCE:
                return "solved", inside, made
        column = solved[:, -1]
        rows = np.flatnonzero(column > _PIVOT)
        if not rows.size:
            return "ray", none, made
        ratios = solved[rows, :-1] / column[rows, None]
        smallest = ratios[:, 0].min()
        at = np.flatnonzero(rows == artificial)
        if at.size and ratios[at[0], 0] <= smallest + _TIE * (1.0 + abs(smallest)):
            basis[artificial] = entering
            return "solved", np.sort(basis[basis >= size] - size), made
        row = _first(-ratios, rows)
        left, basis[row] = int(basis[row]), entering
        entering = left + size if left < size else left - size
    return "limit", none, pivots


def _first(keys: Array, names: NDArray[np.intp]) -> int:
    """Return the name of the row of ``keys`` that is lexicographically largest."""
    kept = np.arange(names.size)
    for column in keys.T:
        largest = column[kept].max()
        kept = kept[column[kept] >= largest - _TIE * (1.0 + abs(largest))]
        if kept.size == 1:
            break
    return int(names[kept[0]])
