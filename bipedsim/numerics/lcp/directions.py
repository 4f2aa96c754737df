"""Friction pyramids: polygons that approximate the friction circle."""

from __future__ import annotations

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics.arrays import Array


def pyramid(sides: int) -> Array:
    """Return the directions (k, 2) of the corners of a friction pyramid, the first along t1; k = ``sides`` >= 4."""
    if sides < 4:
        raise ConfigError("of a friction pyramid must be 4 or more", "sides", sides)
    angles = 2.0 * np.pi * np.arange(sides) / sides
    return np.column_stack([np.cos(angles), np.sin(angles)])
