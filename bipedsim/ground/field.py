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
        cell_x, cell_y: Distance of two heights along the axes of the field [m].
        cos, sin: Of the angle from world x to the x axis of the field.
        tops: (.., ..) largest height of each block of ``BLOCK`` x ``BLOCK`` cells [m].
        flatness: (.., ..) smallest z of the normals in each of these blocks.
        kinks: (X, Y) whether the field is not plane around each height.
    """

    first: int
    heights: Array
    x: float
    y: float
    cell_x: float
    cell_y: float
    cos: float
    sin: float
    tops: Array
    flatness: Array
    kinks: Flags

    @classmethod
    def of(cls, field: HeightField | None, first: int) -> FieldArrays:
        """Return the arrays of ``field`` behind ``first`` patches."""
        if field is None:
            axes = 0.0, 0.0, 1.0, 1.0, 1.0, 0.0
            nothing = np.zeros((0, 0))
            return cls(first, nothing, *axes, nothing, nothing, np.zeros((0, 0), dtype=bool))
        heights = field.heights
        blocks = [range(0, n - 1, BLOCK) for n in heights.shape]
        tops = [[heights[i : i + BLOCK + 1, j : j + BLOCK + 1].max() for j in blocks[1]] for i in blocks[0]]
        normal = 1.0 / np.sqrt(1.0 + (field.slopes() ** 2).sum(axis=3).max(axis=2))
        flatness = [[normal[i : i + BLOCK, j : j + BLOCK].min() for j in blocks[1]] for i in blocks[0]]
        # Kernels for read-only arrays would have to be compiled again.
        axes = *field.corner, float(field.cell), float(field.cell_y), math.cos(field.yaw), math.sin(field.yaw)
        return cls(first, heights.copy(), *axes, np.array(tops), np.array(flatness), field.kinks())


@dataclass(frozen=True, eq=False)
class HeightField:
    """Heights on a regular grid in the plan view.

    Each cell has two triangles, which share the diagonal from ``[i, j]`` to ``[i + 1, j + 1]``, as the meshes of
    legged_gym and Isaac Lab do. The ground below the triangles is solid, and ends at the border of the grid.

    Attributes:
        heights: (X, Y) heights [m]; ``heights[i, j]`` is at ``i cell`` and ``j cell_y`` from ``corner`` along the axes
            of the field.
        cell: Distance of two heights along the x axis of the field [m].
        centre: (2,) position of the middle of the grid in the world [m].
        friction_static, friction_dynamic: As in :class:`bipedsim.ground.Patch`.
        yaw: Angle from world x to the x axis of the field [rad].
        cell_y: Distance of two heights along the y axis of the field [m]; 0 stands for ``cell``.

    Raises:
        ConfigError: A value is not finite, the grid has less than 2 x 2 heights or too many cells, or the friction is
            wrong.
    """

    heights: Array
    cell: float
    centre: tuple[float, float] = (0.0, 0.0)
    friction_static: float | None = None
    friction_dynamic: float | None = None
    yaw: float = 0.0
    cell_y: float = 0.0

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
        if not self.cell_y:
            object.__setattr__(self, "cell_y", self.cell)
        if not (math.isfinite(self.cell_y) and self.cell_y > 0.0):
            raise ConfigError("m must be positive", "field: cell_y", self.cell_y)
        for name in ("centre", "yaw"):
            if not np.isfinite(np.asarray(getattr(self, name), dtype=np.float64)).all():
                raise ConfigError("must be finite", f"field: {name}", getattr(self, name))
        friction = checked_friction(self.friction_static, self.friction_dynamic, "field")
        heights.setflags(write=False)
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "friction_static", friction[0])
        object.__setattr__(self, "friction_dynamic", friction[1])

    @property
    def corner(self) -> tuple[float, float]:
        """Position (x, y) of ``heights[0, 0]`` in the world [m]."""
        nx, ny = self.heights.shape
        x, y = self._turned(0.5 * (nx - 1) * self.cell, 0.5 * (ny - 1) * self.cell_y)
        return float(self.centre[0] - x), float(self.centre[1] - y)

    def _turned(self, along: ArrayLike, across: ArrayLike) -> tuple[Array, Array]:
        """Return offsets along the axes of the field [m] in world axes."""
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        along, across = np.asarray(along), np.asarray(across)
        return np.asarray(c * along - s * across), np.asarray(s * along + c * across)

    def _cells(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array, Array, Array]:
        """Return the heights of the origin of the triangle at (x, y), its two slopes, and the offsets in it [m].

        Slopes and offsets are along the axes of the field.
        """
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        dx, dy = np.asarray(x) - self.corner[0], np.asarray(y) - self.corner[1]
        with np.errstate(invalid="ignore"):
            u, v = (c * dx + s * dy) / self.cell, (c * dy - s * dx) / self.cell_y
        nx, ny = self.heights.shape
        with np.errstate(invalid="ignore"):
            inside = (u >= 0.0) & (u <= nx - 1) & (v >= 0.0) & (v <= ny - 1)
            i = np.clip(np.where(inside, u, 0.0).astype(np.int64), 0, nx - 2)
            j = np.clip(np.where(inside, v, 0.0).astype(np.int64), 0, ny - 2)
            du, dv = u - i, v - j
            lower = du >= dv
        z = self.heights
        a, b, far, d = z[i, j], z[i + 1, j], z[i + 1, j + 1], z[i, j + 1]
        along = np.where(lower, b - a, far - d) / self.cell
        across = np.where(lower, far - b, d - a) / self.cell_y
        return np.where(inside, a, np.nan), along, across, du * self.cell, dv * self.cell_y

    def height(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the height at points (...) in the world [m]; NaN beyond the border."""
        z, along, across, du, dv = self._cells(x, y)
        return np.asarray(z + along * du + across * dv)

    def plane(self, x: float, y: float) -> Patch | None:
        """Return the plane of the triangle at a point in the world [m]; None beyond the border."""
        z, along, across, du, dv = self._cells(x, y)
        if np.isnan(z):
            return None
        dx, dy = self._turned(du, dv)
        point = np.array([x - dx, y - dy, z])
        axes = self._rotation @ axes_of_normal(np.array([-along, -across, 1.0], dtype=np.float64))
        return Patch(point, axes, None, self.friction_static, self.friction_dynamic, "field")

    def mean_plane(self, x: float, y: float, radius: float, steepest: float) -> Patch | None:
        """Return the least-squares plane of the heights around a point in the world; None beyond the border.

        Heights behind a step or the edge of a hole do not count. It is the plane of the triangle at the point if the
        field is plane there. If too few heights count, it is that plane or, above ``steepest``, a level one.

        Args:
            x, y: The point [m].
            radius: Distance in the plan view within which heights count [m].
            steepest: Largest slope between neighbouring heights that count, and of the plane.
        """
        plane = self.plane(x, y)
        if plane is None:
            return None
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        dx, dy = x - self.corner[0], y - self.corner[1]
        sides = zip((c * dx + s * dy, c * dy - s * dx), (self.cell, self.cell_y), self.heights.shape, strict=True)
        low_high = [(max(math.ceil((u - radius) / d), 0), min(int((u + radius) / d), n - 1)) for u, d, n in sides]
        i, j = (a.ravel() for a in np.meshgrid(*(np.arange(a, b + 1) for a, b in low_high), indexing="ij"))
        along, across = self._turned(self.cell * i, self.cell_y * j)
        along, across = along - dx, across - dy
        near = along**2 + across**2 <= radius**2
        i, j, along, across = i[near], j[near], along[near], across[near]
        if len(i) == 0 or not self.kinks()[i, j].any():
            return plane
        joined = self._joined(i, j, int(np.argmin(along**2 + across**2)), steepest)
        i, j, along, across = i[joined], j[joined], along[joined], across[joined]
        columns = np.column_stack([np.ones(len(i)), along, across])
        (z, a, b), _, rank, _ = np.linalg.lstsq(columns, self.heights[i, j], rcond=None)
        if rank < 3 or math.hypot(a, b) > steepest:
            if plane.normal_world[2] >= 1.0 / math.hypot(1.0, steepest):
                return plane
            z, a, b = float(self.height(x, y)), 0.0, 0.0
        axes = axes_of_normal(np.array([-a, -b, 1.0]))
        return Patch(np.array([x, y, z]), axes, None, self.friction_static, self.friction_dynamic, "field")

    def _joined(self, i: Integers, j: Integers, start: int, steepest: float) -> Flags:
        """Return which of the heights [i, j] (n,) a path of slopes up to ``steepest`` joins to height ``start``."""
        number = np.full((int(np.ptp(i)) + 1, int(np.ptp(j)) + 1), -1)
        number[i - i.min(), j - j.min()] = np.arange(len(i))
        ends = np.concatenate(
            [
                np.stack([number[:-1].ravel(), number[1:].ravel()]),
                np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
            ],
            axis=1,
        )
        a, b = ends[:, ends.min(axis=0) >= 0]
        rise = abs(self.heights[i[b], j[b]] - self.heights[i[a], j[a]])
        a, b = (end[rise <= steepest * np.where(i[a] == i[b], self.cell_y, self.cell)] for end in (a, b))
        graph = coo_matrix((np.ones(len(a), dtype=bool), (a, b)), shape=(len(i), len(i)))
        _, label = connected_components(graph, directed=False)
        return np.asarray(label == label[start])

    @property
    def _rotation(self) -> Array:
        """(3, 3) axes of the field as columns, in world axes."""
        x, y = self._turned([1.0, 0.0], [0.0, 1.0])
        return np.array([[*x, 0.0], [*y, 0.0], [0.0, 0.0, 1.0]])

    def mesh(self) -> tuple[Array, Integers]:
        """Return the vertices (X Y, 3) [m] in the world, and the triangles (T, 3) as indices, counter-clockwise."""
        nx, ny = self.heights.shape
        grid = np.meshgrid(self.cell * np.arange(nx), self.cell_y * np.arange(ny), indexing="ij")
        x, y = (start + offset for start, offset in zip(self.corner, self._turned(*grid), strict=True))
        vertices = np.dstack([x, y, self.heights]).reshape(-1, 3)
        a = np.arange(nx * ny).reshape(nx, ny)[:-1, :-1].ravel()
        cells = np.column_stack([a, a + ny, a + ny + 1, a, a + ny + 1, a + 1])
        return vertices, cells.reshape(-1, 3)

    def depth(self, points_world: Array) -> Array:
        """Return the depth of points (..., 3) below the plane of the triangle under them [m]; NaN beyond the border."""
        x, y, height = np.moveaxis(points_world, -1, 0)
        z, along, across, du, dv = self._cells(x, y)
        return np.asarray((z + along * du + across * dv - height) / np.sqrt(1.0 + along**2 + across**2))

    def slopes(self) -> Array:
        """Return the slopes (X - 1, Y - 1, 2, 2) of both triangles of each cell along the axes of the field."""
        z = self.heights
        along, across = np.diff(z, axis=0) / self.cell, np.diff(z, axis=1) / self.cell_y
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
        z = self.heights
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
        rotation = self._rotation @ np.stack([t1, np.cross(normal, t1), normal], axis=2)
        index = index.reshape(-1, 3, 2)
        x, y = self._turned(self.cell * index[..., 0], self.cell_y * index[..., 1])
        xyz = np.stack([self.corner[0] + x, self.corner[1] + y, z[index[..., 0], index[..., 1]]], axis=2)
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
        grid = np.array([self.cell, *self.centre, self.yaw, self.cell_y])
        return {"field_heights": self.heights, "field_grid": grid, "field_friction": np.array(friction)}

    @classmethod
    def of_saved(cls, kept: Mapping[str, Any]) -> HeightField:
        """Make a field from the arrays, or lists, of :meth:`saved`."""
        # Recordings of older versions have no yaw and equal cells.
        cell, x, y, *axes = (float(value) for value in kept["field_grid"])
        static, dynamic = (None if np.isnan(mu) else float(mu) for mu in kept["field_friction"])
        return cls(np.asarray(kept["field_heights"]), cell, (x, y), static, dynamic, *axes)


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
def along_field(field: FieldArrays, x: float, y: float) -> tuple[float, float]:
    """Return an offset (x, y) in world axes [m] along the axes of the field."""
    return field.cos * x + field.sin * y, field.cos * y - field.sin * x


@kernel
def triangle_at(field: FieldArrays, x: float, y: float) -> int:
    """Return the triangle above or below (x, y) [m] in the world, as index of a patch; -1 beyond the border."""
    u, v = along_field(field, x - field.x, y - field.y)
    u /= field.cell_x
    v /= field.cell_y
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
    a, b = BLOCK * field.cell_x, BLOCK * field.cell_y
    u, v = along_field(field, x - field.x, y - field.y)
    top = -np.inf
    for i in range(max(int((u - reach) / a), 0), min(int((u + reach) / a), nx - 1) + 1):
        for j in range(max(int((v - reach) / b), 0), min(int((v + reach) / b), ny - 1) + 1):
            top = max(top, field.tops[i, j])
    return top


@kernel
def steepest_near(field: FieldArrays, x: float, y: float, reach: float) -> float:
    """Return a lower bound of the z of all normals within ``reach`` of (x, y) [m]; 1 beyond the border."""
    nx, ny = field.tops.shape
    a, b = BLOCK * field.cell_x, BLOCK * field.cell_y
    u, v = along_field(field, x - field.x, y - field.y)
    flatness = 1.0
    for i in range(max(int((u - reach) / a), 0), min(int((u + reach) / a), nx - 1) + 1):
        for j in range(max(int((v - reach) / b), 0), min(int((v + reach) / b), ny - 1) + 1):
            flatness = min(flatness, field.flatness[i, j])
    return flatness
