"""Convert a height scan to points in the frame of the base, without a ground or a simulator."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array


def scan_points(points: Array, heights: Array, up: Array) -> Array:
    """Return the points (S, 3) of a height scan in the frame of the base [m], NaN where there is no ground.

    Args:
        points: (S, 2) points of the scan in the heading frame of the base [m].
        heights: (S,) height of the base above the ground there [m].
        up: (3,) vertical in the axes of the base.
    """
    up = up / np.linalg.norm(up)
    ahead = np.array([1.0, 0.0, 0.0]) - up[0] * up
    size = float(np.linalg.norm(ahead))
    # A base whose x axis is vertical has the heading of world x, which is unknown here.
    ahead = ahead / size if size > 0.0 else np.array([0.0, 0.0, 1.0])
    below = np.where(np.isfinite(heights), -heights, np.nan)
    return np.column_stack([points, below]) @ np.array([ahead, np.cross(up, ahead), up])
