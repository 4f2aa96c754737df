"""Define a height field: heights on a regular grid, joined by triangles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from bipedsim.errors import ConfigError
from bipedsim.ground.patch import Patch, axes_of_normal, checked_friction
from bipedsim.numerics import Array, Flags, Integers, kernel

COPLANAR = 1e-9
"""Tolerance of normals [rad] for neighbouring triangles in one plane; it may add up over all cells."""
MOST_CELLS = 1_000_000
"""Largest number of cells; each takes 400 bytes in every simulation."""
BLOCK = 16
"""Cells along the edge of a block, of which the kernels know the largest height."""


class FieldArrays(NamedTuple):
    """Arrays of a field with X x Y heights for kernels.

    Attributes:
        first: Index of the first triangle in :class:`bipedsim.ground.GroundArrays`; number of patches without a field.
        heights: (X, Y) [m]; of size (0, 0) without a field.
        x, y: World position of ``heights[0, 0]`` [m].
        cell: Distance of two heights [m].
        tops: (.., ..) largest height of each block of ``BLOCK`` x ``BLOCK`` cells [m].
        kinks: (X, Y) whether the field is not plane around each height.
    """

    first: int
    heights: Array
    x: float
    y: float
    cell: float
    tops: Array
    kinks: Flags

    @classmethod
    def of(cls, field: HeightField | None, first: int) -> FieldArrays:
        """Return the arrays of ``field`` behind ``first`` patches."""
        if field is None:
            return cls(first, np.zeros((0, 0)), 0.0, 0.0, 1.0, np.zeros((0, 0)), np.zeros((0, 0), dtype=bool))
        heights = field.heights
        blocks = [range(0, n - 1, BLOCK) for n in heights.shape]
        tops = [[heights[i : i + BLOCK + 1, j : j + BLOCK + 1].max() for j in blocks[1]] for i in blocks[0]]
        # Kernels for read-only arrays would have to be compiled again.
        return cls(first, heights.copy(), *field.corner, field.cell, np.array(tops), field.kinks())


@dataclass(frozen=True, eq=False)
class HeightField:
    """Heights on a regular grid along world x and y.

    Each cell has two triangles, which share the diagonal from ``[i, j]`` to ``[i + 1, j + 1]``, as the meshes of
    legged_gym and Isaac Lab do. The ground below the triangles is solid, and ends at the border of the grid.

    Attributes:
        heights: (X, Y) heights [m]; ``heights[i, j]`` is at x = corner[0] + i cell, y = corner[1] + j cell.
        cell: Distance of two heights [m].
        centre: (2,) position of the middle of the grid [m].
        friction_static, friction_dynamic: As in :class:`bipedsim.ground.Patch`.

    Raises:
        ConfigError: A value is not finite, the grid has less than 2 x 2 heights or too many cells, or the friction is
            wrong.
    """

    heights: Array
    cell: float
    centre: tuple[float, float] = (0.0, 0.0)
    friction_static: float | None = None
    friction_dynamic: float | None = None

    def __post_init__(self) -> None:
        try:
            heights = np.array(self.heights, dtype=np.float64, order="C")
        except (TypeError, ValueError) as error:
            raise ConfigError("must be numbers in rows of the same length", "field: heights") from error
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ConfigError("must have two dimensions with at least 2 heights each", "field: heights", heights.shape)
        if heights.size > MOST_CELLS:
            problem = f"has more than {MOST_CELLS} heights. Use every second one, and twice the cell"
            raise ConfigError(problem, "field: heights", heights.shape)
        if not np.isfinite(heights).all():
            i, j = np.argwhere(~np.isfinite(heights))[0]
            problem = "m is not a height. Fill holes, for example with a height far below"
            raise ConfigError(problem, f"field: heights[{i}, {j}]", float(heights[i, j]))
        if not (math.isfinite(self.cell) and self.cell > 0.0):
            raise ConfigError("m must be positive", "field: cell", self.cell)
        if not np.isfinite(np.asarray(self.centre, dtype=np.float64)).all():
            raise ConfigError("must be finite", "field: centre", self.centre)
        friction = checked_friction(self.friction_static, self.friction_dynamic, "field")
        heights.setflags(write=False)
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "friction_static", friction[0])
        object.__setattr__(self, "friction_dynamic", friction[1])

    @property
    def corner(self) -> tuple[float, float]:
        """Position (x, y) of ``heights[0, 0]`` [m]."""
        nx, ny = self.heights.shape
        return self.centre[0] - 0.5 * (nx - 1) * self.cell, self.centre[1] - 0.5 * (ny - 1) * self.cell

    def _cells(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array, Array, Array]:
        """Return the heights of the origin of the triangle at (x, y), its two slopes, and the offsets in it [m]."""
        u, v = (np.asarray(x) - self.corner[0]) / self.cell, (np.asarray(y) - self.corner[1]) / self.cell
        nx, ny = self.heights.shape
        with np.errstate(invalid="ignore"):
            inside = (u >= 0.0) & (u <= nx - 1) & (v >= 0.0) & (v <= ny - 1)
            i = np.clip(np.where(inside, u, 0.0).astype(np.int64), 0, nx - 2)
            j = np.clip(np.where(inside, v, 0.0).astype(np.int64), 0, ny - 2)
            du, dv = u - i, v - j
            lower = du >= dv
        z = self.heights
        a, b, c, d = z[i, j], z[i + 1, j], z[i + 1, j + 1], z[i, j + 1]
        along = np.where(lower, b - a, c - d) / self.cell
        across = np.where(lower, c - b, d - a) / self.cell
        return np.where(inside, a, np.nan), along, across, du * self.cell, dv * self.cell

    def height(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the height at points (...) in the world [m]; NaN beyond the border."""
        z, along, across, du, dv = self._cells(x, y)
        return np.asarray(z + along * du + across * dv)

    def plane(self, x: float, y: float) -> Patch | None:
        """Return the plane of the triangle at a point in the world [m]; None beyond the border."""
        z, along, across, du, dv = self._cells(x, y)
        if np.isnan(z):
            return None
        point = np.array([x - du, y - dv, z])
        axes = axes_of_normal(np.array([-along, -across, 1.0], dtype=np.float64))
        return Patch(point, axes, None, self.friction_static, self.friction_dynamic, "field")

    def mesh(self) -> tuple[Array, Integers]:
        """Return the vertices (X Y, 3) [m] in the world, and the triangles (T, 3) as indices, counter-clockwise."""
        nx, ny = self.heights.shape
        x, y = (start + self.cell * np.arange(n) for start, n in zip(self.corner, (nx, ny), strict=True))
        vertices = np.dstack([*np.meshgrid(x, y, indexing="ij"), self.heights]).reshape(-1, 3)
        a = np.arange(nx * ny).reshape(nx, ny)[:-1, :-1].ravel()
        cells = np.column_stack([a, a + ny, a + ny + 1, a, a + ny + 1, a + 1])
        return vertices, cells.reshape(-1, 3)

    def depth(self, points_world: Array) -> Array:
        """Return the depth of points (..., 3) below the plane of the triangle under them [m]; NaN beyond the border."""
        x, y, height = np.moveaxis(points_world, -1, 0)
        z, along, across, du, dv = self._cells(x, y)
        return np.asarray((z + along * du + across * dv - height) / np.sqrt(1.0 + along**2 + across**2))

    def slopes(self) -> Array:
        """Return the slopes (X - 1, Y - 1, 2, 2) along x and y of both triangles of each cell."""
        z = self.heights
        along, across = np.diff(z, axis=0) / self.cell, np.diff(z, axis=1) / self.cell
        lower = np.stack([along[:, :-1], across[1:]], axis=2)
        return np.stack([lower, np.stack([along[:, 1:], across[:-1]], axis=2)], axis=2)

    def kinks(self) -> Flags:
        """Return for each height (X, Y) whether the triangles around it are in several planes, or there is a border."""
        s = self.slopes()
        around = [s[1:, 1:, 0], s[1:, 1:, 1], s[:-1, :-1, 0], s[:-1, :-1, 1], s[1:, :-1, 1], s[:-1, 1:, 0]]
        kinks = np.ones(self.heights.shape, dtype=bool)
        kinks[1:-1, 1:-1] = (np.ptp(around, axis=0) > COPLANAR).any(axis=2)
        return kinks

    def triangles(self, first: int, width: int) -> dict[str, Any]:
        """Return the triangles as arrays of :class:`bipedsim.ground.GroundArrays`, with regions padded to ``width``."""
        z, cell = self.heights, self.cell
        nx, ny = z.shape
        i, j = (a.ravel() for a in np.meshgrid(np.arange(nx - 1), np.arange(ny - 1), indexing="ij"))
        corners = np.array([[[0, 0], [1, 0], [1, 1]], [[0, 0], [1, 1], [0, 1]]])
        index = np.stack([i, j], axis=1)[:, None, None] + corners
        slopes = self.slopes()
        slope = slopes.reshape(-1, 2)
        count = len(slope)
        normal = np.column_stack([-slope, np.ones(count)]) / np.sqrt(1.0 + (slope**2).sum(axis=1))[:, None]
        t1 = np.column_stack([np.ones(count), np.zeros(count), slope[:, 0]])
        t1 /= np.linalg.norm(t1, axis=1)[:, None]
        rotation = np.stack([t1, np.cross(normal, t1), normal], axis=2)
        index = index.reshape(-1, 3, 2)
        xyz = np.dstack([self.corner + cell * index, z[index[..., 0], index[..., 1]]])
        region = np.zeros((count, width, 2))
        region[:, :3] = np.einsum("tva,tab->tvb", xyz - xyz[:, :1], rotation[:, :, :2])
        low, high = region[:, :3].min(axis=1), region[:, :3].max(axis=1)
        middle = 0.5 * (low + high)
        radius = np.linalg.norm(region[:, :3] - middle[:, None], axis=2).max(axis=1) + 1e-6
        static, dynamic = (
            np.full(count, np.nan if mu is None else mu) for mu in (self.friction_static, self.friction_dynamic)
        )
        return {
            "rotation": np.ascontiguousarray(rotation),
            "point": np.ascontiguousarray(xyz[:, 0]),
            "region": region,
            "counts": np.full(count, 3),
            "plane": first + _first_in_plane(slopes),
            "mu_static": static,
            "mu_dynamic": dynamic,
            "circle": np.column_stack([middle, radius]),
        }

    def saved(self) -> dict[str, Any]:
        """Return the arrays from which :meth:`of_saved` makes this field again."""
        friction = [np.nan if mu is None else mu for mu in (self.friction_static, self.friction_dynamic)]
        grid = np.array([self.cell, *self.centre])
        return {"field_heights": self.heights, "field_grid": grid, "field_friction": np.array(friction)}

    @classmethod
    def of_saved(cls, kept: Mapping[str, Any]) -> HeightField:
        """Make a field from the arrays, or lists, of :meth:`saved`."""
        cell, x, y = (float(value) for value in kept["field_grid"])
        friction = (None if np.isnan(mu) else float(mu) for mu in kept["field_friction"])
        return cls(np.asarray(kept["field_heights"]), cell, (x, y), *friction)


def _first_in_plane(slope: Array) -> Integers:
    """Return for each triangle the first one of the adjacent triangles in its plane.

    Args:
        slope: (X - 1, Y - 1, 2, 2) slopes along x and y of both triangles of each cell.
    """
    number = np.arange(slope[..., 0].size).reshape(slope.shape[:3])
    pairs = [
        (number[:, :, 0], number[:, :, 1]),
        (number[:, 1:, 0], number[:, :-1, 1]),
        (number[1:, :, 1], number[:-1, :, 0]),
    ]
    flat = slope.reshape(-1, 2)
    kept = []
    for a, b in pairs:
        same = np.abs(flat[a.ravel()] - flat[b.ravel()]).max(axis=1, initial=0.0) <= COPLANAR
        kept.append(np.stack([a.ravel()[same], b.ravel()[same]]))
    a, b = np.concatenate(kept, axis=1)
    graph = coo_matrix((np.ones(len(a), dtype=bool), (a, b)), shape=(number.size, number.size))
    _, label = connected_components(graph, directed=False)
    _, first, back = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(first[back], dtype=np.int64)


@kernel
def triangle_at(field: FieldArrays, x: float, y: float) -> int:
    """Return the triangle above or below (x, y) [m] in the world, as index of a patch; -1 beyond the border."""
    u = (x - field.x) / field.cell
    v = (y - field.y) / field.cell
    nx, ny = field.heights.shape
    if not (nx > 0 and 0.0 <= u <= nx - 1 and 0.0 <= v <= ny - 1):
        return -1
    i = min(int(u), nx - 2)
    j = min(int(v), ny - 2)
    upper = 0 if u - i >= v - j else 1
    return field.first + 2 * (i * (ny - 1) + j) + upper


@kernel
def highest_near(field: FieldArrays, x: float, y: float, reach: float) -> float:
    """Return an upper bound of the height within ``reach`` of (x, y) [m]; -inf beyond the border."""
    nx, ny = field.tops.shape
    size = BLOCK * field.cell
    top = -np.inf
    for i in range(max(int((x - reach - field.x) / size), 0), min(int((x + reach - field.x) / size), nx - 1) + 1):
        for j in range(max(int((y - reach - field.y) / size), 0), min(int((y + reach - field.y) / size), ny - 1) + 1):
            top = max(top, field.tops[i, j])
    return top
