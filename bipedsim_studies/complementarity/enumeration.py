"""Find all solutions of a small LCP: none, one, several, or a continuous family."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Indices
from bipedsim_studies.complementarity.lcp import _scale, _Scaled, checked

LARGEST = 16
"""Maximum number of unknowns; 2^16 bases take seconds."""

_ZERO = 1e-10
_SINGULAR = 1e-10
_SAME = 1e-8


@dataclass(frozen=True)
class Solutions:
    """All solutions of an LCP.

    Attributes:
        z: (count, n) distinct solutions: the isolated ones, and the extreme points of each continuous family along
            ``probes``.
        continuum: Whether some solutions form a continuous family, as the forces of a chair with four legs do.
    """

    z: Array
    continuum: bool

    @property
    def count(self) -> int:
        """Number of rows of z; with a continuum, this includes extreme points."""
        return len(self.z)


def all_solutions(M: ArrayLike, q: ArrayLike, probes: ArrayLike | None = None) -> Solutions:
    """Return all solutions of w = M z + q, z >= 0, w >= 0, z^T w = 0, by enumeration of all 2^n bases.

    If the block of M of a basis is singular, its solutions are a polyhedron or empty. Linear programming then finds the
    extreme points of the polyhedron in the directions of ``probes``.

    Args:
        M: (n, n) matrix.
        q: (n,) vector, n <= 16.
        probes: (p, n) relevant linear functions of z, such as accelerations; by default one in general position.

    Raises:
        ConfigError: n > 16, shapes do not match, or numbers are not finite.
    """
    matrix, vector = checked(M, q)
    size = vector.size
    if size > LARGEST:
        raise ConfigError(f"is above {LARGEST}, as all_solutions looks at 2^n bases: use solve_lcp", "n", size)
    scaled = _scale(matrix, vector)
    directions = (
        np.cos(np.arange(1, size + 1))[None] if probes is None else np.atleast_2d(np.asarray(probes, np.float64))
    )
    if directions.shape[1] != size:
        raise ConfigError(f"{directions.shape} must be (p, {size})", "shape of probes")
    directions = directions * scaled.columns
    solutions: list[Array] = []
    continuum = False
    for count in range(size + 1):
        isolated, singular = _of_size(scaled, count)
        solutions.extend(isolated)
        for basis in singular:
            ends, family = _face(scaled, basis, directions)
            solutions.extend(ends)
            continuum = continuum or family
    distinct: list[Array] = []
    for z in solutions:
        if all(np.abs(z - known).max() > _SAME * (1.0 + np.abs(known).max()) for known in distinct):
            distinct.append(z)
    stacked = np.array(distinct).reshape(len(distinct), size)
    return Solutions(stacked * scaled.columns * scaled.unit, continuum)


def _of_size(scaled: _Scaled, count: int) -> tuple[list[Array], list[Indices]]:
    """Return the solutions of all bases of ``count`` unknowns, and the bases with a singular block."""
    size = scaled.q.size
    if count == 0:
        return ([np.zeros(size)] if (scaled.q >= -_ZERO).all() else []), []
    bases = np.array(list(combinations(range(size), count)))
    blocks = scaled.M[bases[:, :, None], bases[:, None, :]]
    U, s, Vt = np.linalg.svd(blocks)
    regular = s[:, -1] > _SINGULAR * np.maximum(s[:, 0], 1e-3)
    U, s, Vt = U[regular], s[regular], Vt[regular]
    chosen = bases[regular]
    inside = np.einsum("bji,bj->bi", Vt, np.einsum("bji,bj->bi", U, -scaled.q[chosen]) / s)
    z = np.zeros((len(chosen), size))
    np.put_along_axis(z, chosen, inside, axis=1)
    w = z @ scaled.M.T + scaled.q
    slack = _ZERO * (1.0 + np.abs(z).max(axis=1, initial=0.0))
    np.put_along_axis(w, chosen, 0.0, axis=1)
    good = (z.min(axis=1) >= -slack) & (w.min(axis=1) >= -slack)
    return list(np.maximum(z[good], 0.0)), list(bases[~regular])


def _face(scaled: _Scaled, basis: Indices, probes: Array) -> tuple[list[Array], bool]:
    """Return the extreme points of {z_B >= 0, w_B = 0, w_N >= 0, z_N = 0} along ``probes``.

    The second value says whether the set is more than a point.
    """
    block, right = scaled.M[np.ix_(basis, basis)], -scaled.q[basis]
    nearest = np.linalg.lstsq(block, right, rcond=_SINGULAR)[0]
    if np.abs(block @ nearest - right).max() > _ZERO * (1.0 + np.abs(nearest).max()):
        return [], False
    complement = np.setdiff1d(np.arange(scaled.q.size), basis)
    constraints = {
        "A_eq": block,
        "b_eq": right,
        "A_ub": -scaled.M[np.ix_(complement, basis)],
        "b_ub": scaled.q[complement],
        "bounds": (0.0, None),
    }
    general = np.cos(np.arange(1, scaled.q.size + 1))[None]
    ends: list[Array] = []
    family = False
    for probe in np.vstack([general, probes]):
        direction = probe[basis] / max(float(np.abs(probe[basis]).max()), 1e-300)
        for sign in (1.0, -1.0):
            result = linprog(sign * direction, **constraints)
            if result.status == 2:
                return [], False
            if result.status == 3:
                # The set is unbounded along this probe, so any two of its points show the family.
                family = True
                result = linprog(np.zeros(basis.size), **constraints)
            if result.status != 0:
                continue
            z = np.zeros(scaled.q.size)
            z[basis] = result.x
            ends.append(z)
    spread = max((float(np.abs(z - ends[0]).max()) for z in ends), default=0.0)
    return ends, family or spread > _SAME * (1.0 + float(np.abs(ends[0]).max()) if ends else 1.0)
