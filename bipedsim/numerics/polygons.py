"""Convex polygons in preallocated arrays: clip, convex hull, simplify.

Points are rows of (>= count, 2) arrays [m]; polygons are counter-clockwise. The functions are compiled and do not
allocate memory.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.jit import kernel

MERGE = 1e-6
"""Points within this distance [m] are merged; a vertex that crosses a border by less is not clipped."""


@kernel
def cut(points, count, distance, out):
    """Clip a polygon or segment to ``distance`` >= 0 by Sutherland and Hodgman's method, into ``out``; return its size.

    No two points of the result are nearer than ``MERGE``. Of two such points an intersection is dropped, so that the
    original vertices keep their exact values.
    """
    total = 0
    last_is_cut = False
    edges = count if count > 2 else count - 1
    for i in range(count):
        if distance[i] >= -MERGE:
            out[total, 0] = points[i, 0]
            out[total, 1] = points[i, 1]
            total += 1
            last_is_cut = False
        if i >= edges:
            continue
        j = i + 1 if i + 1 < count else 0
        inner, outer = (i, j) if distance[i] > distance[j] else (j, i)
        if not (distance[inner] > 0.0 and distance[outer] < -MERGE):
            continue
        t = distance[inner] / (distance[inner] - distance[outer])
        out[total, 0] = points[inner, 0] + t * (points[outer, 0] - points[inner, 0])
        out[total, 1] = points[inner, 1] + t * (points[outer, 1] - points[inner, 1])
        near_vertex = gap(out, total, points, inner) < MERGE
        near_cut = last_is_cut and gap(out, total, out, total - 1) < MERGE
        if not near_vertex and not near_cut:
            total += 1
            last_is_cut = True
    if total > 1 and last_is_cut and gap(out, total - 1, out, 0) < MERGE:
        total -= 1
    return total


@kernel
def gap(a, i, b, j):
    """Return the distance between a[i] and b[j]."""
    return np.hypot(a[i, 0] - b[j, 0], a[i, 1] - b[j, 1])


@kernel
def drop_straight(points, count):
    """Drop vertices within ``MERGE`` of the line through their neighbours; return the remaining number, 0 or > 2."""
    i = 0
    since = 0
    while count > 2 and since < count:
        a = i - 1 if i > 0 else count - 1
        b = i + 1 if i + 1 < count else 0
        ex = points[b, 0] - points[a, 0]
        ey = points[b, 1] - points[a, 1]
        across = (points[i, 0] - points[a, 0]) * ey - (points[i, 1] - points[a, 1]) * ex
        if across < MERGE * np.hypot(ex, ey):
            count = _remove(points, count, i)
            # The neighbours must be tested again.
            i = i - 1 if i > 0 else count - 1
            since = 0
        else:
            i = i + 1 if i + 1 < count else 0
            since += 1
    return count if count > 2 else 0


@kernel
def _remove(points, count, i):
    """Remove points[i], keeping the order; return the remaining number."""
    for j in range(i, count - 1):
        points[j, 0] = points[j + 1, 0]
        points[j, 1] = points[j + 1, 1]
    return count - 1


@kernel
def copy_points(points, count, out):
    """Fill ``out`` with the first ``count`` points and return ``count``."""
    for i in range(count):
        out[i, 0] = points[i, 0]
        out[i, 1] = points[i, 1]
    return count


@kernel
def span(points, count, n, spare):
    """Reduce the points of a point sole to one, and of a line foot to the two ends; return their number.

    The parts of a line foot keep its direction, so that the first points of all parts come before their last ones.
    """
    if n == 1:
        return 1
    ex = points[1, 0] - points[0, 0]
    ey = points[1, 1] - points[0, 1]
    low = 0
    high = 0
    for i in range(count):
        s = points[i, 0] * ex + points[i, 1] * ey
        if s < points[low, 0] * ex + points[low, 1] * ey:
            low = i
        if s > points[high, 0] * ex + points[high, 1] * ey:
            high = i
    spare[0, 0] = points[low, 0]
    spare[0, 1] = points[low, 1]
    spare[1, 0] = points[high, 0]
    spare[1, 1] = points[high, 1]
    return copy_points(spare, 2, points)


@kernel
def hull_corners(points, count, apart, out):
    """Fill ``out`` (> count, 2) with the corners of the convex hull, counter-clockwise from the smallest x on.

    The method is Andrew's monotone chain (1979): the lower side from left to right, then the upper side back. Decisions
    use signs without a tolerance. Feet side by side have edges that are aligned up to rounding, and a tolerance could
    leave the hull open there.

    Args:
        points: (>= count, 2), sorted by this function.
        count: Number of points, at least 1.
        apart: A corner within this distance of the previous one, or of the first one on the way back, is dropped [m].
        out: Output.

    Returns:
        The number of corners.
    """
    for i in range(1, count):
        x = points[i, 0]
        y = points[i, 1]
        j = i - 1
        while j >= 0 and (points[j, 0] > x or (points[j, 0] == x and points[j, 1] > y)):
            points[j + 1, 0] = points[j, 0]
            points[j + 1, 1] = points[j, 1]
            j -= 1
        points[j + 1, 0] = x
        points[j + 1, 1] = y
    size = 0
    floor = 1
    for step in range(2 * count - 1):
        if step == count:
            floor = size
        i = step if step < count else 2 * count - 2 - step
        while size > floor and _turns_right(out, size, points, i):
            size -= 1
        if size and (gap(out, size - 1, points, i) <= apart or (step >= count and gap(out, 0, points, i) <= apart)):
            continue
        out[size, 0] = points[i, 0]
        out[size, 1] = points[i, 1]
        size += 1
    return size


@kernel
def convex_hull(points, count, spare):
    """Replace ``points`` by their convex hull, counter-clockwise and strictly convex; return its size."""
    return drop_straight(points, copy_points(spare, hull_corners(points, count, 0.0, spare), points))


@kernel
def _turns_right(chain, size, points, i):
    """Return whether points[i] is not to the left of the last edge of the chain."""
    ax = chain[size - 1, 0] - chain[size - 2, 0]
    ay = chain[size - 1, 1] - chain[size - 2, 1]
    return ax * (points[i, 1] - chain[size - 2, 1]) - ay * (points[i, 0] - chain[size - 2, 0]) <= 0.0


@kernel
def simplify(points, count, most):
    """Drop the corners of a convex polygon with the smallest triangles until it has at most ``most`` vertices."""
    while count > most:
        smallest = np.inf
        worst = 0
        for i in range(count):
            a = i - 1 if i > 0 else count - 1
            b = i + 1 if i + 1 < count else 0
            area = (points[i, 0] - points[a, 0]) * (points[b, 1] - points[a, 1])
            area -= (points[i, 1] - points[a, 1]) * (points[b, 0] - points[a, 0])
            if area < smallest:
                smallest = area
                worst = i
        count = _remove(points, count, worst)
    return count


@kernel
def start_as(points, count, vertices, n, spare):
    """Rotate the order of a polygon to start with the first vertex of the sole that it contains, if any."""
    for i in range(n):
        for j in range(count):
            if points[j, 0] == vertices[i, 0] and points[j, 1] == vertices[i, 1]:
                for k in range(count):
                    spare[k, 0] = points[(j + k) % count, 0]
                    spare[k, 1] = points[(j + k) % count, 1]
                copy_points(spare, count, points)
                return
