"""Position of points relative to convex support polygons: distance to the edge, nearest point inside."""

from __future__ import annotations

import math

import numpy as np

from bipedsim.numerics.arrays import Array
from bipedsim.numerics.jit import kernel


def reach(hull: Array, point: Array, direction: Array) -> float:
    """Return the distance [m] from ``point`` (2,) to the edge of a hull (n, 2) in a direction (2,).

    It is 0 outside.
    """
    size = math.hypot(*direction)
    if size == 0.0:
        return 0.0
    edges = np.roll(hull, -1, axis=0) - hull
    outward = np.column_stack([edges[:, 1], -edges[:, 0]])
    distance, rate = np.einsum("ij,ij->i", outward, hull - point), outward @ direction / size
    ahead = rate > 1e-12
    return max(0.0, float((distance[ahead] / rate[ahead]).min())) if ahead.any() else 0.0


@kernel
def to_edge(hull, n, i, x, y):  # type: ignore[no-untyped-def]
    """Return the point of edge ``i`` nearest to (x, y), the distance, and whether (x, y) is on the inner side."""
    k = i + 1 if i + 1 < n else 0
    ex = hull[k, 0] - hull[i, 0]
    ey = hull[k, 1] - hull[i, 1]
    dx = x - hull[i, 0]
    dy = y - hull[i, 1]
    length = ex * ex + ey * ey
    along = min(max((dx * ex + dy * ey) / length, 0.0), 1.0) if length > 0.0 else 0.0
    gap = math.hypot(dx - along * ex, dy - along * ey)
    return hull[i, 0] + along * ex, hull[i, 1] + along * ey, gap, not ex * dy - ey * dx < 0.0


@kernel
def margin(hull, n, x, y) -> float:  # type: ignore[no-untyped-def]
    """Return the signed distance [m] from (x, y) to the boundary, positive inside.

    It is at most 0 for a point or a line.
    """
    inside = n > 2
    nearest = math.inf
    for i in range(n):
        _, _, gap, within = to_edge(hull, n, i, x, y)
        nearest = min(nearest, gap)
        inside = inside and within
    return nearest if inside else -nearest


@kernel
def move_inside(hull, n, point) -> None:  # type: ignore[no-untyped-def]
    """Move ``point`` (2,) to the nearest point of a convex polygon, line or point, counter-clockwise (>= n, 2)."""
    inside = n > 2
    nearest = math.inf
    x, y = point
    for i in range(n):
        to_x, to_y, gap, within = to_edge(hull, n, i, x, y)
        inside = inside and within
        if gap < nearest:
            nearest = gap
            point[0] = to_x
            point[1] = to_y
    if inside:
        point[0] = x
        point[1] = y


@kernel
def _gap(hull, n, inset, i, x, y):  # type: ignore[no-untyped-def]
    """Return the distance of (x, y) outside of edge ``i`` moved inwards by ``inset`` [m], and the inward normal."""
    k = i + 1 if i + 1 < n else 0
    ex = hull[k, 0] - hull[i, 0]
    ey = hull[k, 1] - hull[i, 1]
    length = math.hypot(ex, ey)
    nx = -ey / length
    ny = ex / length
    return inset - (nx * (x - hull[i, 0]) + ny * (y - hull[i, 1])), nx, ny


@kernel
def clamp(hull, n, inset, point) -> bool:  # type: ignore[no-untyped-def]
    """Move ``point`` (2,) to the nearest point that is ``inset`` [m] inside the hull; return whether it moved.

    If the hull is nowhere two insets wide, the point moves to the mean of the corners.

    Args:
        hull: (>= n, 2) distinct corners, counter-clockwise, as :func:`hull_corners` returns them.
        n: Number of corners, at least 1.
        inset: At least 0 [m].
        point: Input and output.
    """
    outside = n < 3
    for i in range(n if n > 2 else 0):
        if _gap(hull, n, inset, i, point[0], point[1])[0] > 0.0:
            outside = True
    if not outside:
        return False
    best = math.inf
    to_x = 0.0
    to_y = 0.0
    for i in range(n if n > 2 else 0):
        out, nx, ny = _gap(hull, n, inset, i, point[0], point[1])
        if out < 0.0:
            continue
        # Foot of the perpendicular on this edge, and the range along the edge that satisfies all other edges.
        x = point[0] + out * nx
        y = point[1] + out * ny
        low = -math.inf
        high = math.inf
        for j in range(n):
            if j == i:
                continue
            short, mx, my = _gap(hull, n, inset, j, x, y)
            slope = mx * ny - my * nx
            if slope > 1e-9:
                low = max(low, short / slope)
            elif slope < -1e-9:
                high = min(high, short / slope)
            elif short > 1e-9:
                low = math.inf
        if low > high:
            continue
        along = min(max(0.0, low), high)
        distance = math.hypot(out, along)
        if distance < best:
            best = distance
            to_x = x + along * ny
            to_y = y - along * nx
    if best == math.inf:
        for i in range(n):
            to_x += hull[i, 0] / n
            to_y += hull[i, 1] / n
    point[0] = to_x
    point[1] = to_y
    return True
