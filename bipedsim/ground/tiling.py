"""Ground of tiles at random heights."""

from __future__ import annotations

import math

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch


def tiles(
    height: float,
    size: float,
    columns: int,
    rows: int,
    start: float = 0.5,
    seed: int = 0,
    **friction: float | None,
) -> Ground:
    """Return the floor z = 0 and square tiles above it, each at a height drawn evenly from 0 to ``height``.

    Args:
        height: The highest that a tile may be [m].
        size: Edge of a tile [m].
        columns, rows: How many tiles along world x and y; the rows are centred on y = 0.
        start: Where the first column begins [m].
        seed: The same one gives the same tiles.
        friction: As in :class:`Patch`, of floor and tiles.

    Raises:
        ConfigError: A length is not positive and finite, or there are no tiles.
    """
    for name, value in (("height", height), ("size", size)):
        if not (math.isfinite(value) and value > 0.0):
            raise ConfigError(f"tiles: {name} = {value} m must be positive")
    if columns < 1 or rows < 1 or not math.isfinite(start):
        raise ConfigError(f"tiles: columns = {columns} and rows = {rows} must be at least 1, start = {start} m finite")
    heights = np.random.default_rng(seed).uniform(0.0, height, (columns, rows))
    region = size * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    patches = [Patch(name="floor", **friction)]  # type: ignore[arg-type]
    for i in range(columns):
        for j in range(rows):
            point = np.array([start + i * size, (j - 0.5 * rows) * size, heights[i, j]])
            patches.append(Patch(point, region=region, name=f"tile {i} {j}", **friction))  # type: ignore[arg-type]
    return Ground(tuple(patches))
