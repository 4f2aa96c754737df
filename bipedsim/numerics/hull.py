"""Convex polygons of support in the plane: hull, distance to the edge, nearest point inside."""

from __future__ import annotations

import math

import numpy as np

from bipedsim.numerics.jit import entry, kernel


@entry
def hull_corners(points, n, hull) -> int:  # type: ignore[no-untyped-def]
    """Fill ``hull`` with the corners of the convex hull, counter-clockwise from the least x, and return their number.

    Andrew's monotone chain: below from left to right, above and back. Signs decide, no tolerance does: feet abreast
    have edges in line up to rounding, on which a tolerance would leave the way round open. Corners are at least
    1 nm apart.

    Args:
        points: (>= n, 2) points [m]; the first ``n`` count.
        n: Number of points, at least 1.
        hull: (>= n, 2) out.
    """
    order = np.empty(n, np.int64)
    for i in range(n):
        k = i
        while k > 0:
            other = order[k - 1]
            ahead = points[other, 0] - points[i, 0]
            if ahead < 0.0 or (ahead == 0.0 and points[other, 1] <= points[i, 1]):
                break
            order[k] = other
            k -= 1
        order[k] = i
    # A corner below may have to be taken again on the way back until the next one drops it.
    chain = np.empty((2 * n, 2))
    count = 0
    below = 0
    for step in range(2 * n - 1):
        back = step >= n
        if step == n:
            below = count
        i = order[2 * n - 2 - step if back else step]
        x = points[i, 0]
        y = points[i, 1]
        while count >= (below + 1 if back else 2):
            ex = chain[count - 1, 0] - chain[count - 2, 0]
            ey = chain[count - 1, 1] - chain[count - 2, 1]
            if ex * (y - chain[count - 2, 1]) - ey * (x - chain[count - 2, 0]) > 0.0:
                break
            count -= 1
        if count and math.hypot(x - chain[count - 1, 0], y - chain[count - 1, 1]) < 1e-9:
            continue
        if back and math.hypot(x - chain[0, 0], y - chain[0, 1]) < 1e-9:
            continue
        chain[count, 0] = x
        chain[count, 1] = y
        count += 1
    for i in range(count):
        hull[i, 0] = chain[i, 0]
        hull[i, 1] = chain[i, 1]
    return count


@kernel
def _to_edge(hull, n, i, x, y):  # type: ignore[no-untyped-def]
    """Return the point of edge ``i`` that is nearest to (x, y), its distance, and whether (x, y) is inside the edge."""
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
    """Return the signed distance [m] from (x, y) to the boundary, positive inside; of a point or a line at most 0."""
    inside = n > 2
    nearest = math.inf
    for i in range(n):
        _, _, gap, within = _to_edge(hull, n, i, x, y)
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
        to_x, to_y, gap, within = _to_edge(hull, n, i, x, y)
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
    """Return how far (x, y) lies outside of edge ``i`` moved inwards by ``inset`` [m], and the normal to the inside."""
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

    Where the hull is nowhere two insets wide, the mean of its corners takes the place of what is inside.

    Args:
        hull: (>= n, 2) corners, counter-clockwise and apart, as :func:`hull_corners` gives them.
        n: Number of corners, at least 1.
        inset: At least 0 [m].
        point: In and out.
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
        # The foot of the perpendicular on this edge, and how far to go along the edge for all others to hold.
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
