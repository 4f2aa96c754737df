"""Where a foot can stand: the patch that it meets first, and the part of its sole that is above the ground.

A patch seen along its normal is a set of half-planes of the sole's own plane, whatever the tilt between the two: the
coordinates of a sole point in the patch axes are affine in (x, y) of the sole frame. All clipping happens there, and
nothing is ever mapped back.

Compiled, without allocation: results and work arrays are arguments, the latter made once by :func:`make_work`. ``R`` is
(3, 3) and ``p`` (3,) [m], the pose of the sole in the world; ``vertices`` is (N, 2), of which the first ``n`` are the
sole polygon, counter-clockwise in the sole frame [m]; ``ground`` is :class:`bipedsim.ground.GroundArrays`; a patch is
its index, -1 is none.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.ground.ground import STEEPEST, GroundArrays
from bipedsim.numerics import (
    MERGE,
    Array,
    Flags,
    Integers,
    convex_hull,
    copy_points,
    cut,
    drop_straight,
    gap,
    kernel,
    simplify,
    span,
    start_as,
    zeros_of,
)

TIE = 1e-5
"""A foot stays on the plane that it is on while no other is met earlier by more than this [m]."""
BORDER = 1e-3
"""A foot changes from patch to patch of one plane when its centre is this far [m] over the border."""
UNDERSIDE = 0.005
"""A foot deeper than this [m] below a patch with a region is under it or beside it: the patch does not lift it."""
SUNK = 0.03
"""The same for the patch of the last step, which the foot came to from above: soft ground gives way and is not lost."""
CARRY = 1e-4
"""Vertices and edges nearer than this [m] in two support polygons are the same one."""


class SupportWork(NamedTuple):
    """Work arrays of one foot; see :func:`make_work`.

    Attributes:
        affine, part, spare, hull, distance: Of the sole above one patch, and of several patches in one plane.
        clearance: (1,) of the plane that was met first [m], by :func:`choose_patch`. apart: (1,) no other plane is
            nearer than by this much more [m]. width: (1,) largest distance of two vertices of the sole [m].
        corner, owner, member: Corners (x, y, gap along the sole's normal) [m] of all parts under the sole, the patch
            of each, and whether it is one of the face (:mod:`bipedsim.ground.bridge`). corners: (1,) how many.
        slope, cut_slope, slack: Slopes of planes above the ground. bridge, hull_spare: Polygon of a face.
        ahead: (3,) what gaps grow by within the step along (x, y) [-], and at the origin of the sole [m].
        face: Its slopes along (x, y) of the sole and its gap at the origin of that [m].
    """

    affine: Annotated[Array, 3, 3]
    part: Annotated[Array, "M", 2]
    spare: Annotated[Array, "M", 2]
    hull: Annotated[Array, "M", 2]
    distance: Annotated[Array, "M"]
    clearance: Annotated[Array, 1]
    apart: Annotated[Array, 1]
    width: Annotated[Array, 1]
    corner: Annotated[Array, "C", 3]
    owner: Annotated[Integers, "C"]
    member: Annotated[Flags, "C"]
    corners: Annotated[Integers, 1]
    slope: Annotated[Array, "S", 2]
    cut_slope: Annotated[Array, "S", 2]
    slack: Annotated[Array, "S"]
    bridge: Annotated[Array, "S", 2]
    hull_spare: Annotated[Array, "S", 2]
    ahead: Annotated[Array, 3]
    face: Annotated[Array, 3]


def polygon_capacity(ground: GroundArrays, n_max: int) -> int:
    """Return how many vertices a support polygon can have, for soles of at most ``n_max``: the size of ``out``."""
    return n_max if not ground.counts.any() else n_max + int(ground.counts.max())


def make_work(ground: GroundArrays, n_max: int) -> SupportWork:
    """Return work arrays for soles of at most ``n_max`` vertices."""
    corners = n_max * len(ground.counts) + int(ground.counts.sum())
    sizes = {"M": 2 * (n_max + int(ground.counts.max())) + 2, "C": corners, "S": corners + 6}
    # Over a single plane without end nothing is looked at, and nothing else is near.
    return zeros_of(SupportWork, sizes)._replace(apart=np.full(1, np.inf))


@kernel
def choose_patch(R, p, vertices, n, radius, present, ground, work):
    """Return the patch that a foot stands on or would meet first, -1 over nothing.

    The plane with the least clearance under the part of the sole above it wins; the present one wins ties. Of several
    patches in that plane, the one under the centre of the sole gives its friction; the later lies on top.

    Args:
        radius: Of a ball around the only vertex [m], 0 for none. A ball meets the plane of a patch below its centre,
            and never the edge of one.
        present: The answer of the last step, in the air too, and -1 at the start.
    """
    patches = ground.counts.shape[0]
    if patches == 1 and ground.counts[0] == 0:
        return 0
    plane = -1
    best = np.inf
    # Lowest of all planes over which the sole may be, and of the others, for whoever asks what else is near; of what is
    # not looked at, no higher.
    first = -1
    low = np.inf
    next_low = np.inf
    reach = reach_of(vertices, n)
    for i in range(patches):
        if is_beside(ground.rotation[i], ground.point[i], ground.circle[i], p[0], p[1], p[2], reach):
            continue
        place(R, p, i, ground, work.affine)
        stays = present >= 0 and ground.plane[i] == ground.plane[present]
        bonus = TIE if stays else 0.0
        clearance = lowest(vertices, n, work.affine) - radius
        if plane >= 0 and clearance - bonus > best:
            first, low, next_low = _rank(first, low, next_low, ground.plane[i], clearance)
            continue
        count, _ = part_above(vertices, n, i, ground, work)
        if count == 0:
            continue
        clearance = lowest(work.part, count, work.affine) - radius
        if ground.counts[i] > 0 and clearance < -(SUNK if stays else UNDERSIDE):
            continue
        first, low, next_low = _rank(first, low, next_low, ground.plane[i], clearance)
        if clearance - bonus < best:
            best = clearance - bonus
            plane = ground.plane[i]
    if plane < 0:
        return -1
    work.clearance[0] = best
    work.apart[0] = (next_low if plane == first else low) - best
    return under_centre(R, p, vertices, n, present, plane, ground, work)


@kernel
def is_beside(R, p, circle, x, y, z, reach):
    """Return whether nothing within ``reach`` [m] of a point of the world is over or under a region.

    Args:
        R, p: (3, 3), (3,) axes of the patch. circle: (3,) around its region, in these; see :class:`GroundArrays`.
        x, y, z: Point [m].
    """
    dx, dy, dz = x - p[0], y - p[1], z - p[2]
    u = R[0, 0] * dx + R[1, 0] * dy + R[2, 0] * dz - circle[0]
    v = R[0, 1] * dx + R[1, 1] * dy + R[2, 1] * dz - circle[1]
    far = circle[2] + reach
    return u * u + v * v > far * far


@kernel
def reach_of(vertices, n):
    """Return how far from its origin a sole reaches [m]."""
    far = 0.0
    for k in range(n):
        far = max(far, vertices[k, 0] * vertices[k, 0] + vertices[k, 1] * vertices[k, 1])
    return np.sqrt(far)


@kernel
def _rank(first, low, next_low, plane, clearance):
    """Return the plane with the least clearance, that clearance, and the least of all other planes, with one more."""
    if plane == first:
        return first, min(low, clearance), next_low
    if clearance < low:
        return plane, clearance, low
    return first, low, min(next_low, clearance)


@kernel
def centre(vertices, n):
    """Return the mean (x, y) [m] of the vertices of a sole, whose patch gives the friction."""
    x = 0.0
    y = 0.0
    for k in range(n):
        x += vertices[k, 0] / n
        y += vertices[k, 1] / n
    return x, y


@kernel
def border_margin(patch, x, y, present, staying, ground, affine):
    """Return how far the sole point (x, y) is inside ``patch`` [m], past ``BORDER`` where it is not that of before.

    Args:
        present: The patch of the last step. staying: Whether that is still to be had.
        patch, x, y, ground, affine: As in :func:`margin_inside`.
    """
    margin = margin_inside(patch, x, y, ground, affine)
    if patch == present:
        return margin + BORDER
    return margin - BORDER if staying else margin


@kernel
def under_centre(R, p, vertices, n, present, plane, ground, work):
    """Return the patch of ``plane`` under the centre of the sole, or the nearest one that carries some of the sole."""
    x, y = centre(vertices, n)
    staying = present >= 0 and ground.plane[present] == plane
    under = -1
    nearest = -1
    most = -np.inf
    reach = reach_of(vertices, n)
    for i in range(plane, ground.counts.shape[0]):
        if ground.plane[i] != plane:
            continue
        if is_beside(ground.rotation[i], ground.point[i], ground.circle[i], p[0], p[1], p[2], reach):
            continue
        place(R, p, i, ground, work.affine)
        margin = border_margin(i, x, y, present, staying, ground, work.affine)
        if margin >= 0.0:
            under = i
        elif margin > most and part_above(vertices, n, i, ground, work)[0] > 0:
            nearest = i
            most = margin
    return under if under >= 0 else nearest


@kernel
def surface(ground, x, y):
    """Return the height [m] of the highest patch over (x, y) [m] of the world, and which one; NaN and -1 over nothing.

    The later one where patches of one plane overlap. :meth:`bipedsim.ground.Ground.height` for kernels.
    """
    highest = np.nan
    found = -1
    for i in range(ground.counts.shape[0]):
        R = ground.rotation[i]
        if R[2, 2] < STEEPEST:
            continue
        dx = x - ground.point[i, 0]
        dy = y - ground.point[i, 1]
        dz = -(R[0, 2] * dx + R[1, 2] * dy) / R[2, 2]
        z = ground.point[i, 2] + dz
        if found >= 0 and z < highest:
            continue
        u = R[0, 0] * dx + R[1, 0] * dy + R[2, 0] * dz
        v = R[0, 1] * dx + R[1, 1] * dy + R[2, 1] * dz
        inside = True
        for k in range(ground.counts[i]):
            a = ground.region[i, k]
            b = ground.region[i, k + 1 if k + 1 < ground.counts[i] else 0]
            if (b[0] - a[0]) * (v - a[1]) - (b[1] - a[1]) * (u - a[0]) < 0.0:
                inside = False
                break
        if inside:
            highest = z
            found = i
    return highest, found


@kernel
def patch_friction(mu_static, mu_dynamic, patch, ground):
    """Return (static, dynamic) friction of a foot on ``patch``: the patch's own, or the sole's where it has none."""
    if patch < 0 or np.isnan(ground.mu_static[patch]):
        return mu_static, mu_dynamic
    return ground.mu_static[patch], ground.mu_dynamic[patch]


@kernel
def support_polygon(R, p, vertices, n, patch, ground, work, out):
    """Fill ``out`` with the part of the sole that the ground can carry and return its number of vertices.

    That is the sole above the region of ``patch``; where further patches lie in the same plane, it is the convex hull
    of the parts above all of them: what a rigid sole presses on. A sole that lies above a region as a whole comes out
    bit by bit, in its own order.

    Args:
        out: (capacity, 2) result in the sole frame [m], counter-clockwise, strictly convex; 1 vertex for point soles, 2
            for blades, no vertex where nothing overlaps. Capacity by :func:`polygon_capacity`.
    """
    if patch < 0:
        return 0
    if ground.counts[patch] == 0:
        return copy_points(vertices, n, out)
    plane = ground.plane[patch]
    count = 0
    parts = 0
    reach = reach_of(vertices, n)
    # The patch itself first: nearly always it carries the whole sole.
    for k in range(-1, ground.counts.shape[0]):
        i = patch if k < 0 else k
        if k == patch or ground.plane[i] != plane:
            continue
        if is_beside(ground.rotation[i], ground.point[i], ground.circle[i], p[0], p[1], p[2], reach):
            continue
        place(R, p, i, ground, work.affine)
        added, whole = part_above(vertices, n, i, ground, work)
        if whole:
            return copy_points(vertices, n, out)
        if added == 0:
            continue
        parts += 1
        for j in range(added):
            work.hull[count + j, 0] = work.part[j, 0]
            work.hull[count + j, 1] = work.part[j, 1]
        count += added
        if parts > 1:
            count = span(work.hull, count, n, work.spare) if n < 3 else convex_hull(work.hull, count, work.spare)
        count = simplify(work.hull, count, out.shape[0])
    if parts > 1 and n > 2:
        start_as(work.hull, count, vertices, n, work.spare)
    return copy_points(work.hull, count, out)


@kernel
def same_polygon(a, n_a, b, n_b):
    """Return whether two polygons, (>= n_a, 2) and (>= n_b, 2) [m], are the same to rounding, vertex by vertex."""
    if n_a != n_b:
        return False
    largest = 0.0
    for i in range(n_a):
        largest = max(largest, abs(a[i, 0] - b[i, 0]), abs(a[i, 1] - b[i, 1]))
    return largest <= MERGE


@kernel
def carry_vertices(old, n_old, new, n_new, origin):
    """Fill ``origin`` (>= n_new,) with the vertex of ``old`` that each of ``new`` continues, -1 for a new place."""
    for j in range(n_new):
        origin[j] = -1
        closest = CARRY
        for i in range(n_old):
            d = np.hypot(new[j, 0] - old[i, 0], new[j, 1] - old[i, 1])
            if d <= closest:
                closest = d
                origin[j] = i


@kernel
def place(R, p, patch, ground, affine):
    """Fill ``affine`` (3, 3): the sole point (x, y) lies at affine @ (x, y, 1) in the axes of ``patch`` [m]."""
    for a in range(3):
        affine[a, 0] = 0.0
        affine[a, 1] = 0.0
        affine[a, 2] = 0.0
        for i in range(3):
            axis = ground.rotation[patch, i, a]
            affine[a, 0] += axis * R[i, 0]
            affine[a, 1] += axis * R[i, 1]
            affine[a, 2] += axis * (p[i] - ground.point[patch, i])


@kernel
def lowest(points, count, affine):
    """Return the least height of ``points`` (>= count, 2) of the sole above the patch of ``affine`` [m]."""
    least = np.inf
    for i in range(count):
        least = min(least, affine[2, 0] * points[i, 0] + affine[2, 1] * points[i, 1] + affine[2, 2])
    return least


@kernel
def _inward(patch, edge, ground, affine):
    """Return (gx, gy, g): gx x + gy y + g is how far the sole point (x, y) is inside of one edge of a region [m]."""
    start = ground.region[patch, edge]
    end = ground.region[patch, edge + 1 if edge + 1 < ground.counts[patch] else 0]
    ex = end[0] - start[0]
    ey = end[1] - start[1]
    length = np.hypot(ex, ey)
    ex /= length
    ey /= length
    return (
        ex * affine[1, 0] - ey * affine[0, 0],
        ex * affine[1, 1] - ey * affine[0, 1],
        ex * (affine[1, 2] - start[1]) - ey * (affine[0, 2] - start[0]),
    )


@kernel
def margin_inside(patch, x, y, ground, affine):
    """Return how far the sole point (x, y) is inside the region of ``patch`` [m]; negative outside."""
    margin = np.inf
    for edge in range(ground.counts[patch]):
        gx, gy, g = _inward(patch, edge, ground, affine)
        margin = min(margin, gx * x + gy * y + g)
    return margin


@kernel
def part_above(vertices, n, patch, ground, work):
    """Fill ``work.part`` with the sole above one patch; return its number of vertices and whether it is all of it.

    ``work.affine`` belongs to this patch. What is thinner than ``MERGE`` is nothing.
    """
    count = copy_points(vertices, n, work.part)
    whole = True
    for edge in range(ground.counts[patch]):
        gx, gy, g = _inward(patch, edge, ground, work.affine)
        crosses = False
        for i in range(count):
            work.distance[i] = gx * work.part[i, 0] + gy * work.part[i, 1] + g
            crosses = crosses or work.distance[i] < -MERGE
        if crosses:
            whole = False
            count = copy_points(work.spare, cut(work.part, count, work.distance, work.spare), work.part)
            if count < min(n, 2):
                return 0, False
    if whole:
        return count, True
    if n > 2:
        count = drop_straight(work.part, count)
        return (count if count > 2 else 0), False
    if n == 2 and (count < 2 or gap(work.part, 0, work.part, 1) < MERGE):
        return 0, False
    return count, False
