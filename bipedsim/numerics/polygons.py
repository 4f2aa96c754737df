"""Convex polygons in preallocated arrays: cut, hull, simplify.

Points are rows of (>= count, 2) arrays [m]; a polygon is counter-clockwise. Compiled, without allocation.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.jit import kernel

MERGE = 1e-6
"""Points [m] nearer than this are one; what reaches over a border by less is not cut."""


@kernel
def cut(points, count, distance, out):
    """Sutherland and Hodgman's step: fill ``out`` with the part of a polygon or segment where ``distance`` >= 0.

    No two points of the result are nearer than ``MERGE``; of such two a cut goes, so that vertices keep their bits.
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
    """Drop vertices within ``MERGE`` of the line through their neighbours; return how many are left, 0 or > 2."""
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
            # The neighbours are judged anew.
            i = i - 1 if i > 0 else count - 1
            since = 0
        else:
            i = i + 1 if i + 1 < count else 0
            since += 1
    return count if count > 2 else 0


@kernel
def _remove(points, count, i):
    """Remove points[i], keeping the order; return how many are left."""
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
    """Reduce points of a point sole to one, of a blade to the two ends; return their number.

    The parts of a blade keep its direction, so that the first points of all parts come before their last ones.
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
    """Fill ``out`` (> count, 2) with the corners of the convex hull, counter-clockwise from the least x on.

    Andrew's monotone chain (1979): below from left to right, above and back. Signs decide, no tolerance does: feet
    abreast have edges in line up to rounding, on which a tolerance would leave the way round open.

    Args:
        points: (>= count, 2), sorted here.
        count: Number of points, at least 1.
        apart: A corner as near as this to the one before, or to the first one on the way back, is none [m].
        out: Out.

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
    """Return whether points[i] does not lie to the left of the last edge of the chain."""
    ax = chain[size - 1, 0] - chain[size - 2, 0]
    ay = chain[size - 1, 1] - chain[size - 2, 1]
    return ax * (points[i, 1] - chain[size - 2, 1]) - ay * (points[i, 0] - chain[size - 2, 0]) <= 0.0


@kernel
def simplify(points, count, most):
    """Drop the corners of a convex polygon that cut off least until it has at most ``most`` vertices."""
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
    """Turn the order of a polygon so that it begins with the first vertex of the sole that it has, if any."""
    for i in range(n):
        for j in range(count):
            if points[j, 0] == vertices[i, 0] and points[j, 1] == vertices[i, 1]:
                for k in range(count):
                    spare[k, 0] = points[(j + k) % count, 0]
                    spare[k, 1] = points[(j + k) % count, 1]
                copy_points(spare, count, points)
                return
