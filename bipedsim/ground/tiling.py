"""Create a ground of tiles at random heights and tilts."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin

from bipedsim.config import checked_seed
from bipedsim.errors import ConfigError
from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch
from bipedsim.numerics import Array


def tiles(
    height: float,
    size: float,
    columns: int,
    rows: int,
    start: float = 0.5,
    seed: int = 0,
    tilt: float = 0.0,
    **friction: float | None,
) -> Ground:
    """Return the floor z = 0 with square tiles on it, at uniformly distributed heights from 0 to ``height``.

    Args:
        height: Largest height of a tile [m].
        size: Edge of a tile [m].
        columns, rows: Number of tiles along world x and y; the rows are centred on y = 0.
        start: Position of the first column along x [m].
        seed: Seed of the random numbers; equal seeds give equal tiles.
        tilt: Largest tilt of a tile [rad]. Tilts are uniformly distributed, in random directions, and do not change the
            height of a tile's centre. Parts of tiles below the floor have no effect.
        friction: As in :class:`Patch`, for floor and tiles.

    Raises:
        ConfigError: A length is not positive and finite, ``tilt`` is not in [0, pi/4), there are no tiles, or the seed
            is not an integer of at least 0.
    """
    for name, value in (("height", height), ("size", size)):
        if not (math.isfinite(value) and value > 0.0):
            raise ConfigError("m must be positive", f"tiles: {name}", value)
    if columns < 1 or rows < 1 or not math.isfinite(start):
        raise ConfigError(f"and rows = {rows} must be at least 1, start = {start} m finite", "tiles: columns", columns)
    if not 0.0 <= tilt < 0.25 * math.pi:
        raise ConfigError("degrees must be from 0 to below 45", "tiles: tilt", math.degrees(tilt))
    rng = np.random.default_rng(checked_seed(seed, "tiles: seed"))
    heights = rng.uniform(0.0, height, (columns, rows))
    tilts, headings = rng.uniform(0.0, tilt, (columns, rows)), rng.uniform(-math.pi, math.pi, (columns, rows))
    corners = size * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    patches = [Patch(name="floor", **friction)]  # type: ignore[arg-type]
    for i in range(columns):
        for j in range(rows):
            point = np.array([start + i * size, (j - 0.5 * rows) * size, heights[i, j]])
            axes, region = np.eye(3), corners
            if tilt > 0.0:
                # A tile is a square in the plan view and a parallelogram in its plane, so adjacent tiles have no gap.
                axes = _tilted_axes(tilts[i, j], headings[i, j])
                point = point + np.array([0.5 * size, 0.5 * size, 0.0])
                region = np.asarray(np.linalg.solve(axes[:2, :2], (corners - 0.5 * size).T).T, dtype=np.float64)
            patches.append(Patch(point, axes, region, name=f"tile {i} {j}", **friction))
    return Ground(tuple(patches))


def _tilted_axes(angle: float, heading: float) -> Array:
    """Return axes (3, 3) of a plane that rises by ``angle`` towards ``heading`` [rad]."""
    across = np.array([np.sin(heading), -np.cos(heading), 0.0])
    return np.asarray(pin.exp3(angle * across))
