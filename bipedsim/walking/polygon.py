"""Convex polygons of support in the plane: hull, distance to the edge, nearest point inside."""

from __future__ import annotations

import math

from numba import njit


@njit(cache=True)
def convex_hull(points, n, hull) -> int:  # type: ignore[no-untyped-def]
    """Fill ``hull`` with the corners of the convex hull, counter-clockwise, and return their number.

    Gift wrapping: with the corners of two feet nothing is faster.

    Args:
        points: (>= n, 2) points [m]; the first ``n`` count.
        n: Number of points, at least 1.
        hull: (>= n, 2) out.
    """
    first = 0
    for i in range(1, n):
        if points[i, 0] < points[first, 0] or (
            points[i, 0] == points[first, 0] and points[i, 1] < points[first, 1]
        ):
            first = i
    count = 0
    at = first
    while count < n:
        hull[count, 0] = points[at, 0]
        hull[count, 1] = points[at, 1]
        count += 1
        # The next corner leaves all points to its left; of those in line the farthest.
        following = -1
        for i in range(n):
            dx = points[i, 0] - points[at, 0]
            dy = points[i, 1] - points[at, 1]
            if dx * dx + dy * dy < 1e-18:
                continue
            if following < 0:
                following = i
                continue
            ex = points[following, 0] - points[at, 0]
            ey = points[following, 1] - points[at, 1]
            turn = ex * dy - ey * dx
            if turn < -1e-12 or (turn <= 1e-12 and dx * dx + dy * dy > ex * ex + ey * ey):
                following = i
        if following < 0:
            return count
        dx = points[following, 0] - points[first, 0]
        dy = points[following, 1] - points[first, 1]
        if dx * dx + dy * dy < 1e-18:
            return count
        at = following
    return count


@njit(cache=True)
def margin(hull, n, x, y) -> float:  # type: ignore[no-untyped-def]
    """Return the signed distance [m] from (x, y) to the boundary, positive inside; of a point or a line at most 0."""
    inside = n > 2
    nearest = math.inf
    for i in range(n):
        k = i + 1 if i + 1 < n else 0
        ex = hull[k, 0] - hull[i, 0]
        ey = hull[k, 1] - hull[i, 1]
        dx = x - hull[i, 0]
        dy = y - hull[i, 1]
        length = ex * ex + ey * ey
        along = min(max((dx * ex + dy * ey) / length, 0.0), 1.0) if length > 0.0 else 0.0
        gap = math.hypot(dx - along * ex, dy - along * ey)
        nearest = min(nearest, gap)
        if ex * dy - ey * dx < 0.0:
            inside = False
    return nearest if inside else -nearest


@njit(cache=True)
def clamp(hull, n, inset, point) -> bool:  # type: ignore[no-untyped-def]
    """Move ``point`` (2,) to the nearest point that is ``inset`` [m] inside the hull; return whether it moved.

    Where the hull is narrower than two insets, its centroid of corners takes the place of what is inside.
    """
    moved = False
    # Half-planes one after the other, three rounds: exact on an edge, and at corners of sole-like polygons to microns.
    for _ in range(3):
        worst = 0.0
        for i in range(n):
            k = i + 1 if i + 1 < n else 0
            ex = hull[k, 0] - hull[i, 0]
            ey = hull[k, 1] - hull[i, 1]
            length = math.hypot(ex, ey)
            if length < 1e-9:
                continue
            nx = -ey / length
            ny = ex / length
            short = inset - (nx * (point[0] - hull[i, 0]) + ny * (point[1] - hull[i, 1]))
            if short > 0.0:
                point[0] += short * nx
                point[1] += short * ny
                worst = max(worst, short)
                moved = True
        if worst < 1e-6:
            return moved
    if margin(hull, n, point[0], point[1]) < 0.5 * inset:
        point[0] = 0.0
        point[1] = 0.0
        for i in range(n):
            point[0] += hull[i, 0] / n
            point[1] += hull[i, 1] / n
    return moved
