"""Find the patch that a foot meets first, and the part of its sole above the ground.

The coordinates of a sole point in patch axes are affine in (x, y) of the sole frame, for any tilt between the two. A
patch seen along its normal is therefore a set of half-planes in the sole plane. All clipping is done there, so nothing
is mapped back.

The kernels allocate no memory: results and work arrays are arguments. :func:`make_work` creates the work arrays. Common
arguments are:

* ``R`` (3, 3) and ``p`` (3,) [m]: pose of the sole in the world.
* ``vertices`` (N, 2): its first ``n`` entries are the sole polygon, counter-clockwise in the sole frame [m].
* ``ground``: :class:`bipedsim.ground.GroundArrays`.

A patch is given by its index; -1 is none.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.ground.field import triangle_at
from bipedsim.ground.ground import STEEPEST, GroundArrays
from bipedsim.ground.under_field import NEAR, STEEPEST_FACE, below_sole, closest_on_field, height_above
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
"""A foot stays on its plane unless it meets another one earlier by more than this [m]."""
BORDER = 1e-3
"""Distance of the foot's centre beyond a border at which the foot changes to the next patch of the plane [m]."""
UNDERSIDE = 0.005
"""Depth below a bounded patch from which a foot is under it or next to it, without contact [m]."""
SUNK = 0.03
"""The same depth for the patch of the last step [m]; it is larger, because soft ground gives way."""
CARRY = 1e-4
"""Distance below which vertices and edges of two support polygons are the same [m]."""


class SupportWork(NamedTuple):
    """Work arrays of one foot; see :func:`make_work`.

    Attributes:
        affine, part, spare, hull, distance: For the sole above one patch, and above several patches in one plane.
        clearance: (1,) clearance of the plane that is met first [m], set by :func:`choose_patch`.
        apart: (1,) difference to the clearance of the next plane [m].
        width: (1,) largest distance between two vertices of the sole [m].
        corner: Corners (x, y, gap along the sole's normal) [m] of all parts under the sole.
        owner: Patch of each corner.
        members: Corners that belong to the face (:mod:`bipedsim.ground.bridging`), in increasing order.
        n_members: (1,) number of these.
        corners: (1,) number of corners.
        slope, cut_slope, slack: Slopes of planes above the ground.
        tight: (8,) smallest slope towards a corner in each octant, squared. tightest: (8,) this corner, -1 for none.
        bridge, hull_spare: Polygon of a face.
        ahead: (3,) growth of the gaps within the step along (x, y) [-], and at the origin of the sole [m].
        face: Slopes of the face along (x, y) of the sole, and its gap at the sole's origin [m].
        node: (x, y, gap) [m] of the grid points of a height field around the sole, row by row.
        outside: Edges of the sole beyond which each of them is, one bit for each.
        window: First and last row and column of these grid points.
        field_corners: (1,) number of corners of the field, the first ones of ``corner``.
        low: (1,) clearance of the field [m].
        low_triangle: (1,) triangle with this clearance, -1 for none.
        whole: (1,) whether the whole sole is above one plane of the field.
        rounded: (1,) whether a ball touches an edge or a corner of the field at ``touched`` (3,) [m].
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
    members: Annotated[Integers, "C"]
    n_members: Annotated[Integers, 1]
    corners: Annotated[Integers, 1]
    slope: Annotated[Array, "S", 2]
    cut_slope: Annotated[Array, "S", 2]
    slack: Annotated[Array, "S"]
    tight: Annotated[Array, 8]
    tightest: Annotated[Integers, 8]
    bridge: Annotated[Array, "S", 2]
    hull_spare: Annotated[Array, "S", 2]
    ahead: Annotated[Array, 3]
    face: Annotated[Array, 3]
    node: Annotated[Array, "N", 3]
    outside: Annotated[Integers, "N"]
    window: Annotated[Integers, 4]
    field_corners: Annotated[Integers, 1]
    low: Annotated[Array, 1]
    low_triangle: Annotated[Integers, 1]
    whole: Annotated[Flags, 1]
    rounded: Annotated[Flags, 1]
    touched: Annotated[Array, 3]


def polygon_capacity(ground: GroundArrays, n_max: int) -> int:
    """Return the largest number of support polygon vertices for soles of up to ``n_max``; the size of ``out``."""
    return n_max if not ground.counts.any() else n_max + int(ground.counts.max())


def make_work(ground: GroundArrays, n_max: int, width: float = 0.5) -> SupportWork:
    """Return work arrays for soles of at most ``n_max`` vertices and ``width`` [m]."""
    patches = ground.field.first
    corners = n_max * patches + int(ground.counts[:patches].sum())
    nodes = 0
    if ground.field.heights.size:
        # The plan view of the sole, and of what it may touch when it is tilted.
        reach = (1.0 + STEEPEST_FACE) * width + NEAR
        nodes = (int(reach / ground.field.cell_x) + 4) * (int(reach / ground.field.cell_y) + 4)
        # A node, and two crossings of each of the three edges that start at it.
        corners += 7 * nodes + n_max
    sizes = {"M": 2 * (n_max + int(ground.counts.max())) + 2, "C": corners, "S": corners + 6, "N": nodes}
    # A single infinite plane is never examined, and no other plane is near.
    values = {"apart": np.full(1, np.inf), "width": np.full(1, width)}
    return zeros_of(SupportWork, sizes)._replace(**values)


@kernel
def choose_patch(R, p, vertices, n, radius, present, ground, work):
    """Return the patch that a foot stands on or meets first; -1 if there is none.

    The plane with the smallest clearance to the part of the sole above it is chosen. The present plane has priority for
    equal clearances. If the plane has several patches, the one under the centre of the sole defines the friction; for
    overlapping patches it is the later one.

    Args:
        radius: Radius of a ball around the only vertex [m], 0 for none. A ball meets the plane of a patch below its
            centre, and never the edge of a patch.
        present: Result of the last step, also for an airborne foot; -1 at the start.
    """
    patches = ground.field.first
    if ground.counts.shape[0] == 1 and ground.counts[0] == 0:
        return 0
    plane = -1
    best = np.inf
    # `low` is the lowest clearance of all planes that may be under the sole, and `next_low` that of the other planes.
    # Planes that are not examined in detail have a lower bound.
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
            first, low, next_low = _update_two_lowest(first, low, next_low, ground.plane[i], clearance)
            continue
        count, _ = part_above(vertices, n, i, ground, work)
        if count == 0:
            continue
        clearance = lowest(work.part, count, work.affine) - radius
        if ground.counts[i] > 0 and clearance < -(SUNK if stays else UNDERSIDE):
            continue
        first, low, next_low = _update_two_lowest(first, low, next_low, ground.plane[i], clearance)
        if clearance - bonus < best:
            best = clearance - bonus
            plane = ground.plane[i]
    if patches < ground.counts.shape[0]:
        triangle = _meet_field(R, p, vertices, n, radius, present, ground, work)
        work.low_triangle[0] = triangle
        if triangle >= 0:
            clearance = work.low[0]
            first, low, next_low = _update_two_lowest(first, low, next_low, ground.plane[triangle], clearance)
            if not work.whole[0]:
                next_low = min(next_low, clearance)
            bonus = TIE if present >= patches else 0.0
            if clearance - bonus < best:
                best = clearance - bonus
                plane = ground.plane[triangle]
    if plane < 0:
        return -1
    work.clearance[0] = best
    work.apart[0] = (next_low if plane == first else low) - best
    return under_centre(R, p, vertices, n, present, plane, ground, work)


@kernel
def _meet_field(R, p, vertices, n, radius, present, ground, work):
    """Return the triangle of the field that a foot meets first, -1 for none; its clearance is in ``work.low``."""
    patches = ground.field.first
    limit = SUNK if present >= patches else UNDERSIDE
    work.rounded[0] = False
    if radius == 0.0:
        return below_sole(R, p, vertices, n, limit, ground, work)
    work.field_corners[0] = 0
    work.whole[0] = True
    x, y, z = p[0], p[1], p[2]
    for a in range(2):
        x += R[0, a] * vertices[0, a]
        y += R[1, a] * vertices[0, a]
        z += R[2, a] * vertices[0, a]
    triangle, within = closest_on_field(x, y, z, radius, ground, work.touched)
    if triangle >= 0:
        c = work.touched
        away = np.sqrt((x - c[0]) ** 2 + (y - c[1]) ** 2 + (z - c[2]) ** 2)
        work.rounded[0] = not within and 0.0 < away <= radius + NEAR
        work.low[0] = away - radius
        return triangle
    # The centre is below the field, or far above it.
    triangle = triangle_at(ground.field, x, y)
    if triangle >= 0:
        work.low[0] = height_above(ground, triangle, x, y, z) - radius
    return triangle


@kernel
def is_beside(R, p, circle, x, y, z, reach):
    """Return whether a region is neither over nor under any point within ``reach`` [m] of a world point.

    Args:
        R, p: (3, 3), (3,) axes and origin of the patch.
        circle: (3,) circle around its region in these axes; see :class:`GroundArrays`.
        x, y, z: World point [m].
    """
    dx, dy, dz = x - p[0], y - p[1], z - p[2]
    u = R[0, 0] * dx + R[1, 0] * dy + R[2, 0] * dz - circle[0]
    v = R[0, 1] * dx + R[1, 1] * dy + R[2, 1] * dz - circle[1]
    far = circle[2] + reach
    return u * u + v * v > far * far


@kernel
def reach_of(vertices, n):
    """Return the largest distance of a vertex from the origin of a sole [m]."""
    far = 0.0
    for k in range(n):
        far = max(far, vertices[k, 0] * vertices[k, 0] + vertices[k, 1] * vertices[k, 1])
    return np.sqrt(far)


@kernel
def _update_two_lowest(first, low, next_low, plane, clearance):
    """Add a plane; return the plane with the lowest clearance, this clearance, and the lowest of all other planes."""
    if plane == first:
        return first, min(low, clearance), next_low
    if clearance < low:
        return plane, clearance, low
    return first, low, min(next_low, clearance)


@kernel
def centre(vertices, n):
    """Return the mean (x, y) [m] of the vertices of a sole; the patch under it defines the friction."""
    x = 0.0
    y = 0.0
    for k in range(n):
        x += vertices[k, 0] / n
        y += vertices[k, 1] / n
    return x, y


@kernel
def border_margin(patch, x, y, present, staying, ground, affine):
    """Return the distance of the sole point (x, y) inside ``patch`` [m], with a hysteresis of ``BORDER``.

    Args:
        present: The patch of the last step.
        staying: Whether the patch of the last step is still available.
        patch, x, y, ground, affine: As in :func:`margin_inside`.
    """
    margin = margin_inside(patch, x, y, ground, affine)
    if patch == present:
        return margin + BORDER
    return margin - BORDER if staying else margin


@kernel
def under_centre(R, p, vertices, n, present, plane, ground, work):
    """Return the patch of ``plane`` under the sole's centre, or else the nearest one under a part of the sole."""
    x, y = centre(vertices, n)
    if plane >= ground.field.first:
        if work.rounded[0]:
            return work.low_triangle[0]
        i = triangle_at(ground.field, p[0] + R[0, 0] * x + R[0, 1] * y, p[1] + R[1, 0] * x + R[1, 1] * y)
        return i if i >= 0 and ground.plane[i] == plane else work.low_triangle[0]
    staying = present >= 0 and ground.plane[present] == plane
    under = -1
    nearest = -1
    largest_margin = -np.inf
    reach = reach_of(vertices, n)
    for i in range(plane, ground.field.first):
        if ground.plane[i] != plane:
            continue
        if is_beside(ground.rotation[i], ground.point[i], ground.circle[i], p[0], p[1], p[2], reach):
            continue
        place(R, p, i, ground, work.affine)
        margin = border_margin(i, x, y, present, staying, ground, work.affine)
        if margin >= 0.0:
            under = i
        elif margin > largest_margin and part_above(vertices, n, i, ground, work)[0] > 0:
            nearest = i
            largest_margin = margin
    return under if under >= 0 else nearest


@kernel
def surface(ground, x, y):
    """Return the height [m] of the highest patch at (x, y) [m] in the world, and the patch; NaN and -1 for none.

    The later patch is used where patches of one plane overlap. This is :meth:`bipedsim.ground.Ground.height` for
    kernels.
    """
    highest = np.nan
    patch = -1
    for i in range(ground.field.first):
        R = ground.rotation[i]
        if R[2, 2] < STEEPEST:
            continue
        dx = x - ground.point[i, 0]
        dy = y - ground.point[i, 1]
        dz = -(R[0, 2] * dx + R[1, 2] * dy) / R[2, 2]
        z = ground.point[i, 2] + dz
        if patch >= 0 and z < highest:
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
            patch = i
    i = triangle_at(ground.field, x, y)
    if i >= 0:
        axes = ground.rotation[i]
        z = (
            ground.point[i, 2]
            - (axes[0, 2] * (x - ground.point[i, 0]) + axes[1, 2] * (y - ground.point[i, 1])) / axes[2, 2]
        )
        if patch < 0 or z >= highest:
            return z, i
    return highest, patch


@kernel
def patch_friction(mu_static, mu_dynamic, patch, ground):
    """Return (static, dynamic) friction of a foot on ``patch``: the patch's own, or the sole's if it has none."""
    if patch < 0 or np.isnan(ground.mu_static[patch]):
        return mu_static, mu_dynamic
    return ground.mu_static[patch], ground.mu_dynamic[patch]


@kernel
def support_polygon(R, p, vertices, n, patch, ground, work, out):
    """Fill ``out`` with the part of the sole that the ground can support and return its number of vertices.

    This is the part above the region of ``patch``. If further patches are in the same plane, it is the convex hull of
    the parts above all of them, because the sole is rigid. A sole completely above a region is returned unchanged, to
    the bit and in its own order.

    Args:
        out: (capacity, 2) result in the sole frame [m], counter-clockwise, strictly convex; 1 vertex for point feet, 2
            for line feet, none without overlap. The capacity is :func:`polygon_capacity`.
    """
    if patch < 0:
        return 0
    plane = ground.plane[patch]
    if ground.counts[patch] == 0 or (plane >= ground.field.first and work.whole[0]):
        return copy_points(vertices, n, out)
    count = 0
    parts = 0
    reach = reach_of(vertices, n)
    # The patch itself comes first, because it nearly always supports the whole sole.
    for k in range(-1, _candidates(plane, ground, work)):
        i = patch if k < 0 else _candidate(k, plane, ground, work)
        if (k >= 0 and i == patch) or ground.plane[i] != plane:
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
def _candidates(plane, ground, work):
    """Return the number of patches that may be in a plane under a sole, see :func:`_candidate`."""
    if plane < ground.field.first:
        return ground.field.first
    w = work.window
    return 2 * (w[1] - w[0]) * (w[3] - w[2])


@kernel
def _candidate(k, plane, ground, work):
    """Return patch ``k`` of those that may be in a plane under a sole: any patch, or a triangle around the sole."""
    if plane < ground.field.first:
        return k
    w = work.window
    columns = ground.field.heights.shape[1] - 1
    return ground.field.first + 2 * ((w[0] + k // 2 // (w[3] - w[2])) * columns + w[2] + k // 2 % (w[3] - w[2])) + k % 2


@kernel
def same_polygon(a, n_a, b, n_b):
    """Return whether two polygons, (>= n_a, 2) and (>= n_b, 2) [m], are equal up to rounding, vertex by vertex."""
    if n_a != n_b:
        return False
    largest = 0.0
    for i in range(n_a):
        largest = max(largest, abs(a[i, 0] - b[i, 0]), abs(a[i, 1] - b[i, 1]))
    return largest <= MERGE


@kernel
def carry_vertices(old, n_old, new, n_new, origin):
    """Fill ``origin`` (>= n_new,) with the vertex of ``old`` that each of ``new`` continues; -1 for a new one."""
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
    """Fill ``affine`` (3, 3); affine @ (x, y, 1) is the sole point (x, y) in the axes of ``patch`` [m]."""
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
    """Return the lowest height of ``points`` (>= count, 2) of the sole above the patch of ``affine`` [m]."""
    minimum = np.inf
    for i in range(count):
        minimum = min(minimum, affine[2, 0] * points[i, 0] + affine[2, 1] * points[i, 1] + affine[2, 2])
    return minimum


@kernel
def _inward(patch, edge, ground, affine):
    """Return (gx, gy, g); gx x + gy y + g is the distance of sole point (x, y) inside an edge of a region [m]."""
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
    """Return the distance of the sole point (x, y) inside the region of ``patch`` [m]; negative outside."""
    margin = np.inf
    for edge in range(ground.counts[patch]):
        gx, gy, g = _inward(patch, edge, ground, affine)
        margin = min(margin, gx * x + gy * y + g)
    return margin


@kernel
def part_above(vertices, n, patch, ground, work):
    """Fill ``work.part`` with the sole above one patch; return its number of vertices and whether it is complete.

    ``work.affine`` must belong to this patch. Parts thinner than ``MERGE`` are ignored.
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
