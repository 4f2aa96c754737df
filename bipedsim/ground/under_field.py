"""Find the corners of a height field under a sole.

Seen along the normal of the sole, the field is a height over the (x, y) of the sole frame, linear on each triangle. Its
roof over the sole (:mod:`bipedsim.ground.bridging`) has three kinds of corners:

* grid points under the sole,
* crossings of an edge of the field and an edge of the sole,
* points of the field under the vertices of the sole.

The kernel lists each of them once, unless the field is plane there. Its cost does not depend on the size of the field.

Triangles steeper than ``STEEPEST_FACE`` relative to the sole are the risers of steps. A face cannot be so steep. A grid
point or an edge between risers is therefore a corner only if it is a peak or a ridge. A riser stops a foot that moves
into it: the border of the sole touches it along its normal, as points of a body do (:mod:`bipedsim.dynamics.bodies`).
"""

from __future__ import annotations

import math

import numpy as np

from bipedsim.ground.field import along_field, highest_near, steepest_near, triangle_at
from bipedsim.numerics import MERGE, kernel

NEAR = 0.02
"""Height of a foot above which it does not rest on any face [m]."""
STEEPEST_FACE = 0.7
"""Largest slope of a face relative to the sole."""
FLATTEST_RISER = 1.0 / math.sqrt(1.0 + STEEPEST_FACE**2)
"""Cosine of the angle of this slope: that between the normals of a sole and of the steepest triangle below it."""
STEEPEST_SOLE = FLATTEST_RISER
"""Smallest z of the normal of a sole that may be flat on the field; a steeper one touches it with its lowest vertex."""


@kernel
def below_sole(R, p, vertices, n, limit, ground, work):
    """List the corners under a sole in ``work``; return the triangle with the lowest gap, -1 for none.

    Args:
        limit: Depth [m] below which a corner is next to the foot and not under it.
        R, p, vertices, n, ground, work: As in :func:`bipedsim.ground.support.choose_patch`. The results are
            ``work.corner``, ``work.owner``, ``work.field_corners``, ``work.whole`` and ``work.low``.
    """
    work.field_corners[0] = 0
    work.whole[0] = True
    f = ground.field
    low = np.inf
    far = 0.0
    for k in range(n):
        low = min(low, p[2] + R[2, 0] * vertices[k, 0] + R[2, 1] * vertices[k, 1])
        far = max(far, vertices[k, 0] * vertices[k, 0] + vertices[k, 1] * vertices[k, 1])
    far = np.sqrt(far)
    up = low - highest_near(f, p[0], p[1], far + NEAR)
    if n < 3 or R[2, 2] < STEEPEST_SOLE or not up < NEAR:
        return _below_vertices(R, p, vertices, n, limit, ground, work)
    if not _place_nodes(R, p, vertices, n, far, ground, work):
        return -1
    total = _crossings(R, vertices, n, ground, work)
    total = _under_vertices(R, p, vertices, n, total, ground, work)
    kept = 0
    owner = -1
    work.low[0] = np.inf
    for i in range(total):
        gap = work.corner[i, 2]
        if gap < -limit:
            work.whole[0] = False
            continue
        if kept < i:
            for a in range(3):
                work.corner[kept, a] = work.corner[i, a]
            work.owner[kept] = work.owner[i]
        kept += 1
        if gap < work.low[0]:
            work.low[0] = gap
            owner = work.owner[i]
    work.field_corners[0] = kept
    if owner < 0:
        return -1
    for i in range(kept):
        work.whole[0] = work.whole[0] and ground.plane[work.owner[i]] == ground.plane[owner]
    # The contact with a peak is along the normal of the sole.
    if _is_face(R, owner, ground):
        work.low[0] *= _along(R, owner, ground)
    return owner


@kernel
def is_riser(ground, i, x, y, z):
    """Return whether triangle ``i`` is too steep for a face of a sole with the normal (x, y, z), in the world.

    It is none for a steep sole, which touches any triangle with its lowest vertex.
    """
    axes = ground.rotation[i]
    return z >= STEEPEST_SOLE and axes[0, 2] * x + axes[1, 2] * y + axes[2, 2] * z < FLATTEST_RISER


@kernel
def may_have_risers(ground, x, y, reach, z):
    """Return whether any triangle within ``reach`` of (x, y) [m] may be a riser for a sole.

    Args:
        z: z of the normal of the sole in the world.
    """
    flat = steepest_near(ground.field, x, y, reach)
    # The largest possible angle between the normals is the sum of their angles to the vertical.
    together = z * flat - np.sqrt(max((1.0 - z * z) * (1.0 - flat * flat), 0.0))
    return z >= STEEPEST_SOLE and together < FLATTEST_RISER


@kernel
def _along(R, i, ground):
    """Return the cosine of the angle between the normals of a sole and of triangle ``i``."""
    axes = ground.rotation[i]
    return axes[0, 2] * R[0, 2] + axes[1, 2] * R[1, 2] + axes[2, 2] * R[2, 2]


@kernel
def _below_vertices(R, p, vertices, n, limit, ground, work):
    """Return the triangle whose plane is closest to the vertex above it, and fill ``work.low`` with the distance [m].

    This is for points, lines, and soles that are steep or far from the field. Unless all vertices are above one plane,
    only the part above this triangle is near its plane: further away the plane may be above the foot.
    """
    owner = -1
    work.low[0] = np.inf
    for a in range(4):
        work.window[a] = 0
    for k in range(n):
        x = p[0] + R[0, 0] * vertices[k, 0] + R[0, 1] * vertices[k, 1]
        y = p[1] + R[1, 0] * vertices[k, 0] + R[1, 1] * vertices[k, 1]
        z = p[2] + R[2, 0] * vertices[k, 0] + R[2, 1] * vertices[k, 1]
        i = triangle_at(ground.field, x, y)
        if i < 0:
            continue
        height = height_above(ground, i, x, y, z)
        if -limit <= height < work.low[0]:
            work.low[0] = height
            owner = i
    for k in range(n):
        x = p[0] + R[0, 0] * vertices[k, 0] + R[0, 1] * vertices[k, 1]
        y = p[1] + R[1, 0] * vertices[k, 0] + R[1, 1] * vertices[k, 1]
        i = triangle_at(ground.field, x, y)
        work.whole[0] = work.whole[0] and i >= 0 and owner >= 0 and ground.plane[i] == ground.plane[owner]
    return owner


@kernel
def height_above(ground, i, x, y, z):
    """Return the distance of a world point [m] from the plane of patch ``i``, negative below it."""
    axes = ground.rotation[i]
    q = ground.point[i]
    return axes[0, 2] * (x - q[0]) + axes[1, 2] * (y - q[1]) + axes[2, 2] * (z - q[2])


@kernel
def _place_nodes(R, p, vertices, n, far, ground, work):
    """Fill ``work.node`` with the grid points around a sole, in its frame; return whether there are any.

    Bit k of ``work.outside`` is set if the point is beyond edge k of the sole. It is -1 where the field is plane,
    because neither the point nor an edge from it is then a corner of the roof.
    """
    f = ground.field
    nx, ny = f.heights.shape
    # A point at the gap g under the sole is offset by g times the tilt in the plan view.
    i = triangle_at(f, p[0], p[1])
    deepest = 0.0 if i < 0 else max(height_above(ground, i, p[0], p[1], p[2]), 0.0)
    deepest += NEAR + STEEPEST_FACE * work.width[0]
    tilt_u, tilt_v = along_field(f, R[0, 2], R[1, 2])
    left, right, front, back = np.inf, -np.inf, -np.inf, np.inf
    for k in range(n):
        x = p[0] + R[0, 0] * vertices[k, 0] + R[0, 1] * vertices[k, 1]
        y = p[1] + R[1, 0] * vertices[k, 0] + R[1, 1] * vertices[k, 1]
        u, v = along_field(f, x - f.x, y - f.y)
        left, right = min(left, u, u - deepest * tilt_u), max(right, u, u - deepest * tilt_u)
        back, front = min(back, v, v - deepest * tilt_v), max(front, v, v - deepest * tilt_v)
    w = work.window
    w[0] = min(max(int(np.floor(left / f.cell_x)), 0), nx - 1)
    w[1] = min(max(int(np.ceil(right / f.cell_x)), 0), nx - 1)
    w[2] = min(max(int(np.floor(back / f.cell_y)), 0), ny - 1)
    w[3] = min(max(int(np.ceil(front / f.cell_y)), 0), ny - 1)
    columns = w[3] - w[2] + 1
    # Far below a tilted sole, no corner can be part of a face that matters.
    w[1] = min(w[1], w[0] + work.outside.shape[0] // columns - 1)
    if w[1] <= w[0] or w[3] <= w[2]:
        return False
    # The compiler cannot know that the loops leave these arrays alone, and would read them for every node.
    i0, i1, j0, j1 = w
    px, py, pz = p
    xx, xy, xz = R[0]
    yx, yy, yz = R[1]
    zx, zy, zz = R[2]
    k = -1
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            k += 1
            if not f.kinks[i, j]:
                work.outside[k] = -1
                continue
            along, across = i * f.cell_x, j * f.cell_y
            dx = f.x + f.cos * along - f.sin * across - px
            dy = f.y + f.sin * along + f.cos * across - py
            dz = f.heights[i, j] - pz
            x = xx * dx + yx * dy + zx * dz
            y = xy * dx + yy * dy + zy * dz
            work.node[k, 0] = x
            work.node[k, 1] = y
            work.node[k, 2] = -(xz * dx + yz * dy + zz * dz)
            outside = 0
            for e in range(n):
                if _inside(vertices, n, e, x, y) < 0.0:
                    outside |= 1 << e
            work.outside[k] = outside
    return True


@kernel
def _inside(vertices, n, e, x, y):
    """Return the distance of (x, y) inside edge ``e`` of a polygon times the length of the edge [m^2]."""
    a = vertices[e]
    b = vertices[e + 1 if e + 1 < n else 0]
    return (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])


@kernel
def _is_face(R, i, ground):
    """Return whether triangle ``i`` exists, -1 for none, and is no riser under the sole."""
    return i >= 0 and _along(R, i, ground) >= FLATTEST_RISER


@kernel
def _crossings(R, vertices, n, ground, work):
    """List the grid points under the sole, and the crossings of edges of the field with those of the sole."""
    i0, i1, j0, j1 = work.window
    columns = j1 - j0 + 1
    total = 0
    k = -1
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            k += 1
            of_node = work.outside[k]
            if of_node < 0:
                continue
            if of_node == 0:
                owner = _at_node(R, i, j, ground)
                if owner >= 0:
                    for c in range(3):
                        work.corner[total, c] = work.node[k, c]
                    work.owner[total] = owner
                    total += 1
            for e in range(3):
                if (e != 1 and i == i1) or (e != 0 and j == j1):
                    continue
                m = k + (columns if e != 1 else 0) + (1 if e != 0 else 0)
                of_next = work.outside[m]
                if of_next < 0 or of_node & of_next or not of_node | of_next:
                    continue
                owner = _next_to_edge(R, i, j, e, ground)
                t0, t1 = _clip(work, k, m, of_node | of_next, vertices, n)
                if owner < 0 or t0 >= t1:
                    continue
                if t0 > 0.0:
                    total = _add(work, total, k, m, t0, owner)
                if t1 < 1.0:
                    total = _add(work, total, k, m, t1, owner)
    return total


@kernel
def _around(f, i, j, e):
    """Return triangle ``e`` of the six around grid point (i, j), counter-clockwise from +x; -1 beyond the border."""
    nx, ny = f.heights.shape
    i -= 1 if 2 <= e <= 4 else 0
    j -= 1 if e >= 3 else 0
    if not (0 <= i < nx - 1 and 0 <= j < ny - 1):
        return -1
    return f.first + 2 * (i * (ny - 1) + j) + e % 2


@kernel
def _at_node(R, i, j, ground):
    """Return a triangle around grid point (i, j), no riser if there is another one; -1 if it is part of a riser.

    Between risers, the point is a peak if a face can touch it: the field rises from it nowhere more than a face.
    """
    f = ground.field
    nx, ny = f.heights.shape
    any_owner = -1
    for e in range(6):
        owner = _around(f, i, j, e)
        if _is_face(R, owner, ground):
            return owner
        any_owner = max(any_owner, owner)
    for e in range(6):
        di = 1 if e < 2 else -1 if 3 <= e <= 4 else 0
        dj = 1 if 1 <= e <= 2 else -1 if e >= 4 else 0
        if 0 <= i + di < nx and 0 <= j + dj < ny and _rise(R, i, j, di, dj, f) > STEEPEST_FACE:
            return -1
    return any_owner


@kernel
def _rise(R, i, j, di, dj, f):
    """Return the slope, relative to the sole, from grid point (i, j) to grid point (i + di, j + dj)."""
    along, across = di * f.cell_x, dj * f.cell_y
    dx, dy = f.cos * along - f.sin * across, f.sin * along + f.cos * across
    dz = f.heights[i + di, j + dj] - f.heights[i, j]
    x = R[0, 0] * dx + R[1, 0] * dy + R[2, 0] * dz
    y = R[0, 1] * dx + R[1, 1] * dy + R[2, 1] * dz
    return (R[0, 2] * dx + R[1, 2] * dy + R[2, 2] * dz) / max(np.hypot(x, y), MERGE)


@kernel
def _next_to_edge(R, i, j, e, ground):
    """Return a triangle next to the edge from grid point (i, j) along x, y or the diagonal; -1 if it is of a riser.

    Between risers, the edge is a ridge if a face can touch it: it is flat enough, and the field descends on both sides.
    """
    f = ground.field
    left = _around(f, i, j, 0 if e == 0 else 2 if e == 1 else 1)
    right = _around(f, i, j, 5 if e == 0 else 1 if e == 1 else 0)
    first, second = (left, right) if e == 0 else (right, left)
    if _is_face(R, first, ground):
        return first
    if _is_face(R, second, ground):
        return second
    di, dj = 0 if e == 1 else 1, 0 if e == 0 else 1
    if abs(_rise(R, i, j, di, dj, f)) > STEEPEST_FACE:
        return -1
    along, across = di * f.cell_x, dj * f.cell_y
    dx, dy = f.cos * along - f.sin * across, f.sin * along + f.cos * across
    dz = f.heights[i + di, j + dj] - f.heights[i, j]
    # The horizontal normal of the edge in the sole frame, in the world, points to its left.
    nx, ny, nz = R[1, 2] * dz - R[2, 2] * dy, R[2, 2] * dx - R[0, 2] * dz, R[0, 2] * dy - R[1, 2] * dx
    for side in range(2):
        owner = left if side == 0 else right
        sign = 1.0 if side == 0 else -1.0
        if owner < 0:
            continue
        axes = ground.rotation[owner]
        if sign * (axes[0, 2] * nx + axes[1, 2] * ny + axes[2, 2] * nz) < 0.0:
            return -1
    return max(left, right)


@kernel
def _add(work, total, a, b, t, owner):
    """Add the point at the share ``t`` of the way from node ``a`` to node ``b``; return the new number of corners."""
    for c in range(3):
        work.corner[total, c] = work.node[a, c] + t * (work.node[b, c] - work.node[a, c])
    work.owner[total] = owner
    return total + 1


@kernel
def _clip(work, a, b, outside, vertices, n):
    """Return the shares of the way from node ``a`` to node ``b`` between which the edge is under the sole.

    One of the two nodes is beyond the edges of the sole in ``outside``.
    """
    t0, t1 = 0.0, 1.0
    for e in range(n):
        if not outside >> e & 1:
            continue
        of_a = _inside(vertices, n, e, work.node[a, 0], work.node[a, 1])
        of_b = _inside(vertices, n, e, work.node[b, 0], work.node[b, 1])
        if of_a < 0.0:
            t0 = max(t0, of_a / (of_a - of_b))
        elif of_b < 0.0:
            t1 = min(t1, of_a / (of_a - of_b))
    return t0, t1


@kernel
def _under_vertices(R, p, vertices, n, total, ground, work):
    """List the points of the field under the vertices of the sole."""
    for k in range(n):
        x = p[0] + R[0, 0] * vertices[k, 0] + R[0, 1] * vertices[k, 1]
        y = p[1] + R[1, 0] * vertices[k, 0] + R[1, 1] * vertices[k, 1]
        z = p[2] + R[2, 0] * vertices[k, 0] + R[2, 1] * vertices[k, 1]
        gap = 0.0
        last = -1
        for _ in range(4):
            i = triangle_at(ground.field, x - gap * R[0, 2], y - gap * R[1, 2])
            if i < 0 or i == last:
                last = i
                break
            along = _along(R, i, ground)
            if along < FLATTEST_RISER:
                last = -1
                break
            gap = height_above(ground, i, x, y, z) / along
            last = i
        if last < 0:
            work.whole[0] = False
            continue
        work.corner[total, 0] = vertices[k, 0]
        work.corner[total, 1] = vertices[k, 1]
        work.corner[total, 2] = gap
        work.owner[total] = last
        total += 1
    return total


@kernel
def closest_on_field(x, y, z, reach, ground, point):
    """Fill ``point`` (3,) with the point of the field closest to a ball's centre above it; return its triangle.

    Args:
        x, y, z: Centre in the world [m].
        reach: Distance in the plan view within which points are considered [m].

    Returns:
        The triangle, -1 for none, and whether the closest point is inside it and not on its border.
    """
    f = ground.field
    nx, ny = f.heights.shape
    nearest = np.inf
    owner = -1
    within = False
    along, across = along_field(f, x - f.x, y - f.y)
    left, right, back, front = along - reach, along + reach, across - reach, across + reach
    for i in range(max(int(left / f.cell_x), 0), min(int(right / f.cell_x), nx - 2) + 1):
        for j in range(max(int(back / f.cell_y), 0), min(int(front / f.cell_y), ny - 2) + 1):
            for t in range(f.first + 2 * (i * (ny - 1) + j), f.first + 2 * (i * (ny - 1) + j) + 2):
                height = height_above(ground, t, x, y, z)
                if height * height >= nearest or height < 0.0:
                    continue
                u, v, inside = _closest_in(ground, t, x, y, z)
                du, dv = _local(ground, t, x, y, z)
                away = height * height + (du - u) * (du - u) + (dv - v) * (dv - v)
                if away < nearest:
                    nearest, owner, within = away, t, inside
                    for a in range(3):
                        axes = ground.rotation[t, a]
                        point[a] = ground.point[t, a] + axes[0] * u + axes[1] * v
    return owner, within


@kernel
def _local(ground, t, x, y, z):
    """Return the coordinates of a world point in the plane of triangle ``t`` [m]."""
    axes = ground.rotation[t]
    dx, dy, dz = x - ground.point[t, 0], y - ground.point[t, 1], z - ground.point[t, 2]
    u = axes[0, 0] * dx + axes[1, 0] * dy + axes[2, 0] * dz
    return u, axes[0, 1] * dx + axes[1, 1] * dy + axes[2, 1] * dz


@kernel
def _closest_in(ground, t, x, y, z):
    """Return the point (u, v) of triangle ``t`` closest to a world point, and whether it is off the border."""
    u, v = _local(ground, t, x, y, z)
    corners = ground.region[t]
    nearest = np.inf
    inside = True
    best_u, best_v = u, v
    for e in range(3):
        a = corners[e]
        b = corners[e + 1 if e < 2 else 0]
        if _inside(corners, 3, e, u, v) > MERGE * MERGE:
            continue
        inside = False
        ex, ey = b[0] - a[0], b[1] - a[1]
        share = min(max(((u - a[0]) * ex + (v - a[1]) * ey) / (ex * ex + ey * ey), 0.0), 1.0)
        cu, cv = a[0] + share * ex, a[1] + share * ey
        away = (u - cu) * (u - cu) + (v - cv) * (v - cv)
        if away < nearest:
            nearest, best_u, best_v = away, cu, cv
    return best_u, best_v, inside
