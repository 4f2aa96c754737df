"""Ground of tiles at random heights and tilts."""

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
    """Return the floor z = 0 and square tiles on it, each at a height drawn evenly from 0 to ``height``.

    Args:
        height: The highest that a tile may be [m].
        size: Edge of a tile [m].
        columns, rows: How many tiles along world x and y; the rows are centred on y = 0.
        start: Where the first column begins [m].
        seed: The same one gives the same tiles.
        tilt: Each tile leans by an angle drawn evenly from 0 to it [rad], towards a heading of its own; its centre
            keeps its height. Where it leans below the floor, the floor is what is met.
        friction: As in :class:`Patch`, of floor and tiles.

    Raises:
        ConfigError: A length is not positive and finite, ``tilt`` not from 0 to below pi/4, there are no tiles, or the
            seed is no integer of at least 0.
    """
    for name, value in (("height", height), ("size", size)):
        if not (math.isfinite(value) and value > 0.0):
            raise ConfigError(f"tiles: {name} = {value} m must be positive")
    if columns < 1 or rows < 1 or not math.isfinite(start):
        raise ConfigError(f"tiles: columns = {columns} and rows = {rows} must be at least 1, start = {start} m finite")
    if not 0.0 <= tilt < 0.25 * math.pi:
        raise ConfigError(f"tiles: tilt = {math.degrees(tilt):g} degrees must be from 0 to below 45")
    rng = np.random.default_rng(checked_seed(seed, "tiles: seed"))
    heights = rng.uniform(0.0, height, (columns, rows))
    leans, headings = rng.uniform(0.0, tilt, (columns, rows)), rng.uniform(-math.pi, math.pi, (columns, rows))
    corners = size * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    patches = [Patch(name="floor", **friction)]  # type: ignore[arg-type]
    for i in range(columns):
        for j in range(rows):
            point = np.array([start + i * size, (j - 0.5 * rows) * size, heights[i, j]])
            axes, region = np.eye(3), corners
            if tilt > 0.0:
                # A square in the plan view is a parallelogram in its own plane: tiles side by side leave no gap.
                axes = _leaning(leans[i, j], headings[i, j])
                point = point + np.array([0.5 * size, 0.5 * size, 0.0])
                region = np.asarray(np.linalg.solve(axes[:2, :2], (corners - 0.5 * size).T).T, dtype=np.float64)
            patches.append(Patch(point, axes, region, name=f"tile {i} {j}", **friction))
    return Ground(tuple(patches))


def _leaning(angle: float, heading: float) -> Array:
    """Return axes (3, 3) of a plane that rises by ``angle`` towards ``heading`` [rad], turned about a level line."""
    across = np.array([np.sin(heading), -np.cos(heading), 0.0])
    return np.asarray(pin.exp3(angle * across))
