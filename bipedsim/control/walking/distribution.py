"""Distribution of the wrench on the base over the feet: a quadratic programme within friction limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import daqp
import numpy as np

from bipedsim.config import param
from bipedsim.control.walking.ankle_limits import area, below
from bipedsim.control.walking.body import BodyArrays, FootStates
from bipedsim.dynamics import edge_lines
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Integers, assign, box, entry, kernel, mul

_MOMENT = 100.0
"""Weight of moments relative to forces, which makes them equivalent at a lever arm of a tenth of a metre."""
_SMALL = 1e-5
"""Weight of the wrenches of the feet, relative to the error of their sum."""
_ARM = 400.0
"""Weight of the moments of a foot relative to its forces, for a lever arm of 0.05 m."""
_LEAST_AREA = 1e-6
"""Smallest area of a sole without its edge [m^2]."""
_ENOUGH = 0.75
"""Share of the area of a sole that a few of its vertices must enclose."""
_CORNERS = 6
"""Largest number of vertices used per sole: four give 16 to 32 rows, six give 54, twelve more than 300."""


@dataclass(frozen=True)
class DistributionParams:
    """Limits of the wrenches on a foot."""

    friction: float = param(0.4, "friction coefficient of the plan; tangential components stay below mu f_z / sqrt(2)")
    edge: float = param(0.003, "minimum distance of the CoP to the edge of the sole", unit="m", low=0.0)
    ankle_share: float = param(
        0.0,
        "fraction of the effort limit of an ankle that the CoP may use; 0: the whole sole, also where ankles are weak",
        low=0.0,
        high=1.0,
    )
    yaw_weight: float = param(
        _MOMENT,
        "weight of the moment about the vertical, where forces have 1 and other moments 100: where narrow soles cannot "
        "give it, a lower one lets the robot turn rather than tip",
        low=0.0,
    )


class DistributionArrays(NamedTuple):
    """Arrays of the kernels of :class:`Distribution`, for one set of n feet in contact.

    Attributes:
        body, feet: See the classes.
        contact: (n,) feet in contact.
        limits: (K, rows, 6) rows of the limits on the wrench of each foot: rows @ wrench <= 0.
        weights: (6,) weights of the rows of the base.
        G: (6, 6 n) map from the wrenches of the feet to the wrench on the base.
        H, f, A: (6 n, 6 n), (6 n,), (rows n, 6 n) the QP over the wrenches of these feet, in sole axes at the centres
            of the soles.
        target: (6,) wrench that the base needs, in its own axes.
        wrench: (K, 6) the solution, in world axes.
    """

    body: BodyArrays
    feet: FootStates
    contact: Integers
    limits: Array
    weights: Array
    G: Array
    H: Array
    f: Array
    A: Array
    target: Array
    wrench: Array


@kernel
def _build_problem(s: DistributionArrays, a):  # type: ignore[no-untyped-def]
    """Fill target, G, H, f and A for accelerations a (nv,)."""
    body, feet, contact, target = s.body, s.feet, s.contact, s.target
    G, H, A = s.G, s.H, s.A
    rows = s.limits.shape[1]
    nv = a.shape[0]
    for r in range(6):
        target[r] = body.nle[r]
        for j in range(nv):
            target[r] += body.M[r, j] * a[j]
    n = contact.shape[0]
    for i in range(n):
        k = contact[i]
        R = feet.R[k]
        for c in range(3):
            for r in range(6):
                force = 0.0
                moment = 0.0
                for x in range(3):
                    force += feet.J[k, x, r] * R[x, c]
                    moment += feet.J[k, 3 + x, r] * R[x, c]
                G[r, 6 * i + c] = force
                G[r, 6 * i + 3 + c] = moment
    for i in range(6 * n):
        total = 0.0
        for r in range(6):
            total -= s.weights[r] * G[r, i] * target[r]
        s.f[i] = total
        for j in range(6 * n):
            total = 0.0
            for r in range(6):
                total += s.weights[r] * G[r, i] * G[r, j]
            H[i, j] = total
        H[i, i] += _SMALL * (1.0 if i % 6 < 3 else _ARM)
    A[:, :] = 0.0
    for i in range(n):
        for row in range(rows):
            for c in range(6):
                A[i * rows + row, 6 * i + c] = s.limits[contact[i], row, c]


@entry
def _store_wrench(share, x):  # type: ignore[no-untyped-def]
    """Fill ``wrench`` from the solution ``x`` (6 n,) in sole axes, with 0 for the other feet."""
    s = share.arrays
    s.wrench[:, :] = 0.0
    for i in range(s.contact.shape[0]):
        k = s.contact[i]
        assign(s.wrench[k], mul(s.feet.R[k], x[6 * i :]))
        assign(s.wrench[k, 3:], mul(s.feet.R[k], x[6 * i + 3 :]))


@entry
def _fill_problem(share, a):  # type: ignore[no-untyped-def]
    """Fill the QP for accelerations ``a`` (nv,); return whether all its numbers are finite."""
    s = share.arrays
    _build_problem(s, a)
    total = 0.0
    for i in range(s.f.shape[0]):
        total += s.f[i]
    return np.isfinite(total)


class Distribution:
    """Distribute the wrench on the base over the feet.

    The objective is least squares on the six rows of the base, with a small weight on the wrenches themselves. The
    weight is larger for moments about the centres of the soles, so the CoP stays in mid-foot if possible.

    The limits of a foot are the wrenches of friction pyramids inside the friction cones of its vertices. The CoP is
    inside the sole, the foot does not pull, and torsion is limited. The limit of torsion is lower near an edge, and
    where tangential forces use more of the friction.

    Args:
        robot: The robot, for its soles.
        params: See :class:`DistributionParams`.
        body, feet: Dynamics and feet, which the caller keeps up to date.
        polygons: Usable polygon (N, 2) of each sole about its centre [m]; see
            :func:`bipedsim.control.walking.ankle_limits.sole_polygons`.

    Raises:
        ConfigError: ``edge`` leaves nothing of a sole.

    Attributes:
        wrench: (K, 6) last result: force [N] and moment [N.m] at the centre of each sole, in world axes.
        target: (6,) wrench that the base needed: force and moment at its origin, in its own axes.
    """

    def __init__(
        self,
        robot: Robot,
        params: DistributionParams,
        body: BodyArrays,
        feet: FootStates,
        polygons: Sequence[Array],
    ) -> None:
        limits = [_rows(sole.name, polygon, params) for sole, polygon in zip(robot.soles, polygons, strict=True)]
        self._rows = max(map(len, limits))
        # Feet with fewer rows repeat their last row.
        self._limits = np.array([np.vstack([rows, *[rows[-1:]] * (self._rows - len(rows))]) for rows in limits])
        self._weights = np.array([1.0, 1.0, 1.0, _MOMENT, _MOMENT, params.yaw_weight])
        self._body, self._feet = body, feet
        self.wrench = np.zeros((len(robot.soles), 6))
        self.target = np.zeros(6)
        self._problems: dict[tuple[int, ...], tuple[Any, ...]] = {}

    def _problem_of(self, contact: tuple[int, ...]) -> tuple[Any, ...]:
        """Make the QP of these feet: the packed arguments of the kernels, and the arrays of the solver."""
        size, rows = 6 * len(contact), self._rows * len(contact)
        G, H, f, A = np.zeros((6, size)), np.zeros((size, size)), np.zeros(size), np.zeros((rows, size))
        feet = np.array(contact, dtype=np.int64)
        share = DistributionArrays(
            self._body, self._feet, feet, self._limits, self._weights, G, H, f, A, self.target, self.wrench
        )
        return box(share), H, f, A, np.zeros(rows), np.full(rows, -1e30), np.zeros(rows, dtype=np.int32)

    def solve(self, a: Array, contact: tuple[int, ...]) -> bool:
        """Fill ``wrench`` for accelerations ``a`` (nv,) and the feet ``contact``; return whether the QP was solved.

        Without feet in contact all wrenches are 0. If the solver fails, the wrenches do not change.
        """
        if not contact:
            self.wrench[:] = 0.0
            return True
        if contact not in self._problems:
            self._problems[contact] = self._problem_of(contact)
        share, H, f, A, upper, lower, sense = self._problems[contact]
        if not _fill_problem(share, a):
            return False
        sense[:] = 0
        x, _, flag, _ = daqp.solve(H, f, A, upper, lower, sense)
        if flag < 1:
            return False
        _store_wrench(share, x)
        return True


def _rows(foot: str, polygon: Array, params: DistributionParams) -> Array:
    """Return rows (n, 6) of the contact wrench cone of a foot: rows @ wrench <= 0.

    The wrenches that the ground can apply at the centre of the sole are those of forces at the vertices within their
    friction pyramids. Divided by the normal force, they form the convex hull of the wrenches of the pyramids' edges.
    The rows are the facets of this hull. On a rectangle they are those of Caron, Pham and Nakamura, "Stability of
    surface contacts for humanoid robots" (2015), eq. (16) to (26).

    Args:
        foot: Name of the foot.
        polygon: (N, 2) usable part of the sole about its centre [m]; at most ``_CORNERS`` of its vertices are used.
        params: Limits.
    """
    import scipy

    corners = _inset(_few_corners(polygon), params.edge)
    if corners is None:
        raise ConfigError(f"m leaves nothing of the sole of foot {foot!r}", "edge", params.edge)
    mu = params.friction / np.sqrt(2.0)
    ratios = np.array([[fx, fy, y, -x, x * fy - y * fx] for x, y in corners for fx in (mu, -mu) for fy in (mu, -mu)])
    scale = np.abs(ratios).max(axis=0)
    facets = scipy.spatial.ConvexHull(ratios / scale).equations
    # The convex hull divides a facet with many vertices into simplices with equal equations.
    facets = np.unique(facets.round(9), axis=0)
    facets[:, :5] /= scale
    unit = facets[:, [0, 1, 5, 2, 3, 4]]
    return np.vstack([[0.0, 0.0, -1.0, 0.0, 0.0, 0.0], unit])


def _few_corners(polygon: Array) -> Array:
    """Return a polygon inside ``polygon`` (N, 2) with at most ``_CORNERS`` of its vertices.

    Every n-th vertex is used if they enclose nearly the whole area. Where many vertices are at one place, those that
    contribute least to the area are removed.
    """
    if len(polygon) <= _CORNERS:
        return polygon
    few = polygon[np.unique(np.linspace(0, len(polygon), _CORNERS, endpoint=False, dtype=np.int64))]
    if area(few) >= _ENOUGH * area(polygon):
        return few
    while len(polygon) > _CORNERS:
        before, after = np.roll(polygon, 1, axis=0) - polygon, np.roll(polygon, -1, axis=0) - polygon
        cut = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
        polygon = np.delete(polygon, int(np.argmin(cut)), axis=0)
    return polygon


def _inset(polygon: Array, distance: float) -> Array | None:
    """Return a convex polygon (m, 2), counter-clockwise, with its edges moved inwards; None if nothing is left."""
    edges = edge_lines(polygon)
    normal, room = edges[:, :2], edges[:, 2] - distance
    corners = np.array(
        [np.linalg.solve([normal[i - 1], normal[i]], [room[i - 1], room[i]]) for i in range(len(polygon))]
    )
    if (corners @ normal.T < room + 1e-9).all():
        return corners
    # An edge shorter than the inset can vanish.
    for direction, limit in zip(normal, room, strict=True):
        polygon = below(polygon, direction, float(limit))
    return polygon if len(polygon) > 2 and area(polygon) > _LEAST_AREA else None
