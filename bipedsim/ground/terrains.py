"""Generate heights of fields; names and parameters are those of legged_gym and Isaac Lab.

A generator is a dataclass with a method ``heights(grid, rng)``. Each field of :class:`Terrains` is the key of one in
ground files, so a new generator is a class and a line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bipedsim.config import param
from bipedsim.numerics import Array, Flags


class FieldGrid(NamedTuple):
    """Grid of a field.

    Attributes:
        x, y: (X, Y) positions relative to the centre [m].
        cell: Distance of two heights [m]; the larger one if they differ.
    """

    x: Array
    y: Array
    cell: float

    @classmethod
    def of_size(cls, size: tuple[float, float], cell: float) -> FieldGrid:
        """Return the grid with these edges (2,) [m], rounded to whole cells."""
        nx, ny = (max(round(edge / cell), 1) + 1 for edge in size)
        return cls.of_shape((nx, ny), (cell, cell))

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], cells: tuple[float, float]) -> FieldGrid:
        """Return the grid of this shape (X, Y) with these distances along x and y [m]."""
        axes = [(np.arange(n) - 0.5 * (n - 1)) * cell for n, cell in zip(shape, cells, strict=True)]
        x, y = np.meshgrid(*axes, indexing="ij")
        return cls(x, y, max(cells))

    def off_platform(self, size: float) -> Array:
        """Return the distance (X, Y) of each point from a square of edge ``size`` at the centre [m], 0 inside."""
        # FieldGrid points on the border belong to the square in spite of rounding.
        return np.asarray(np.maximum(np.maximum(abs(self.x), abs(self.y)) - 0.5 * size - 1e-9, 0.0))

    def on_platform(self, size: float) -> Flags:
        """Return whether each point (X, Y) is in this square; none is if its edge is 0."""
        return np.asarray((size > 0.0) & (self.off_platform(size) == 0.0))


@dataclass(frozen=True)
class RandomUniform:
    """``random_uniform``: random heights, interpolated between the points of a coarser grid."""

    min_height: float = param(-0.02, "smallest height", unit="m")
    max_height: float = param(0.02, "largest height", unit="m")
    step: float = param(0.005, "difference of two possible heights; 0 for any height", unit="m", low=0.0)
    downsampled_scale: float = param(0.2, "distance of the random heights; at least the cell", unit="m", low=0.0)
    platform_size: float = param(0.0, "edge of a level platform at the centre", unit="m", low=0.0)

    def heights(self, grid: FieldGrid, rng: np.random.Generator) -> Array:
        """Return the heights (X, Y) [m]."""
        size = max(self.downsampled_scale, grid.cell)
        u, v = ((a - a.min()) / size for a in (grid.x, grid.y))
        shape = int(u.max()) + 2, int(v.max()) + 2
        if self.step > 0.0:
            count = int(np.floor((self.max_height - self.min_height) / self.step + 1e-9)) + 1
            coarse = self.min_height + self.step * rng.integers(0, max(count, 1), shape)
        else:
            coarse = rng.uniform(self.min_height, max(self.max_height, self.min_height), shape)
        i, j = np.minimum(u.astype(int), shape[0] - 2), np.minimum(v.astype(int), shape[1] - 2)
        du, dv = u - i, v - j
        low = (1.0 - du) * coarse[i, j] + du * coarse[i + 1, j]
        high = (1.0 - du) * coarse[i, j + 1] + du * coarse[i + 1, j + 1]
        return np.asarray(np.where(grid.on_platform(self.platform_size), 0.0, (1.0 - dv) * low + dv * high))


@dataclass(frozen=True)
class Sloped:
    """``sloped``: a plane that rises towards +x."""

    slope: float = param(0.1, "rise per distance", low=-1.0, high=1.0)

    def heights(self, grid: FieldGrid, rng: np.random.Generator) -> Array:
        """Return the heights (X, Y) [m]; 0 at the centre."""
        return np.asarray(self.slope * grid.x)


@dataclass(frozen=True)
class PyramidSloped:
    """``pyramid_sloped``: a hill that is 0 high at the border, with its top cut off level."""

    slope: float = param(
        0.2,
        "rise per distance along x through the centre, negative for a pit; the same height along y",
        low=-1.0,
        high=1.0,
    )
    platform_size: float = param(1.0, "edge of the platform; its corners are as high as it is", unit="m", low=0.0)

    def heights(self, grid: FieldGrid, rng: np.random.Generator) -> Array:
        """Return the heights (X, Y) [m]."""
        half_x, half_y = -grid.x[0, 0], -grid.y[0, 0]
        # The product is the shape of legged_gym and Isaac Lab. Only the lines through the centre have this slope.
        share = (1.0 - abs(grid.x) / half_x) * (1.0 - abs(grid.y) / half_y)
        corner = np.prod([max(1.0 - 0.5 * self.platform_size / half, 0.0) for half in (half_x, half_y)])
        return np.asarray(self.slope * half_x * np.clip(share, 0.0, corner))


@dataclass(frozen=True)
class Stairs:
    """``stairs``: steps up along +x from x = 0; the ground is level before them."""

    step_width: float = param(0.3, "depth of a step", unit="m", low=1e-3)
    step_height: float = param(0.1, "rise of a step, negative for steps down", unit="m")

    def heights(self, grid: FieldGrid, rng: np.random.Generator) -> Array:
        """Return the heights (X, Y) [m]."""
        return np.asarray(self.step_height * np.maximum(np.ceil(grid.x / self.step_width - 1e-9), 0.0))


@dataclass(frozen=True)
class PyramidStairs:
    """``pyramid_stairs``: square steps down from a platform at the centre, 0 high at the border."""

    step_width: float = param(0.3, "depth of a step", unit="m", low=1e-3)
    step_height: float = param(0.1, "rise of a step towards the centre, negative for a pit", unit="m")
    platform_size: float = param(1.0, "edge of the platform", unit="m", low=0.0)

    def heights(self, grid: FieldGrid, rng: np.random.Generator) -> Array:
        """Return the heights (X, Y) [m]."""
        steps = np.ceil(grid.off_platform(self.platform_size) / self.step_width - 1e-9)
        return np.asarray(self.step_height * (steps.max() - steps))


@dataclass(frozen=True)
class DiscreteObstacles:
    """``discrete_obstacles``: random rectangles, up or down by half of the height or all of it, around a platform."""

    max_height: float = param(0.05, "largest height and depth", unit="m", low=0.0)
    min_size: float = param(0.3, "shortest edge", unit="m", low=0.0)
    max_size: float = param(1.0, "longest edge", unit="m", low=0.0)
    num_rects: int = param(20, "number of rectangles", low=0, high=100_000)
    platform_size: float = param(1.0, "edge of the level platform at the centre", unit="m", low=0.0)

    def heights(self, grid: FieldGrid, rng: np.random.Generator) -> Array:
        """Return the heights (X, Y) [m]."""
        z = np.zeros(grid.x.shape)
        corner, far = np.array([grid.x[0, 0], grid.y[0, 0]]), np.array([grid.x[-1, -1], grid.y[-1, -1]])
        for _ in range(self.num_rects):
            edges = rng.uniform(self.min_size, max(self.max_size, self.min_size), 2)
            x, y = rng.uniform(corner, np.maximum(far - edges, corner))
            height = self.max_height * rng.choice([-1.0, -0.5, 0.5, 1.0])
            z[(x <= grid.x) & (grid.x <= x + edges[0]) & (y <= grid.y) & (grid.y <= y + edges[1])] = height
        z[grid.on_platform(self.platform_size)] = 0.0
        return z


@dataclass(frozen=True)
class SteppingStones:
    """``stepping_stones``: square stones of random heights with gaps between them, around a platform."""

    stone_size: float = param(0.4, "edge of a stone", unit="m", low=1e-3)
    stone_distance: float = param(0.1, "width of the gaps", unit="m", low=0.0)
    max_height: float = param(0.0, "largest height and depth of a stone", unit="m", low=0.0)
    depth: float = param(-1.0, "height of the ground in the gaps", unit="m")
    platform_size: float = param(1.0, "edge of the level platform at the centre", unit="m", low=0.0)

    def heights(self, grid: FieldGrid, rng: np.random.Generator) -> Array:
        """Return the heights (X, Y) [m]; a row of stones along x is shifted by a random distance."""
        pitch = self.stone_size + self.stone_distance
        v = (grid.y - grid.y.min()) / pitch
        row = v.astype(int)
        shift = rng.uniform(0.0, 1.0, row.max() + 1)
        u = (grid.x - grid.x.min()) / pitch + shift[row]
        column = u.astype(int)
        stones = rng.uniform(-self.max_height, self.max_height, (column.max() + 1, row.max() + 1))
        share = (self.stone_size + 1e-9) / pitch
        on = (u - column <= share) & (v - row <= share)
        z = np.where(on, stones[column, row], self.depth)
        z[grid.on_platform(self.platform_size)] = 0.0
        return z


@dataclass(frozen=True)
class Waves:
    """``wave``: sines along x and y."""

    num_waves: int = param(1, "number of waves along the edge in y; those along x are as long", low=1, high=1000)
    amplitude: float = param(0.05, "half of the height from valley to top", unit="m")

    def heights(self, grid: FieldGrid, rng: np.random.Generator) -> Array:
        """Return the heights (X, Y) [m]; 0 at the centre."""
        number = 2.0 * np.pi * self.num_waves / float(np.ptp(grid.y))
        return np.asarray(0.5 * self.amplitude * (np.sin(number * grid.x) + np.sin(number * grid.y)))


@dataclass(frozen=True)
class Terrains:
    """Generators of a field; their heights are added."""

    random_uniform: RandomUniform | None = param(None, "random heights")
    sloped: Sloped | None = param(None, "a plane")
    pyramid_sloped: PyramidSloped | None = param(None, "a pyramid")
    stairs: Stairs | None = param(None, "stairs")
    pyramid_stairs: PyramidStairs | None = param(None, "a pyramid of steps")
    discrete_obstacles: DiscreteObstacles | None = param(None, "random rectangles")
    stepping_stones: SteppingStones | None = param(None, "stones with gaps")
    wave: Waves | None = param(None, "sines")

    def generators(self) -> Iterator[Any]:
        """Yield the generators that are given."""
        for field in dataclasses.fields(Terrains):
            if (generator := getattr(self, field.name)) is not None:
                yield generator
