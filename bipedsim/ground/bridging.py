"""Find the face on which a sole rests if it touches several planes at once.

The ground under the sole, seen along the sole's normal, is a height over (x, y) of the sole frame. A rigid flat sole
touches only the concave majorant of this height, a roof. The roof is the upper convex hull of the corners of all patch
parts under the sole. A sole on the ground rests on a face of the roof, or on an edge or a corner of a face.

A face in one plane is this plane (:func:`bipedsim.ground.support.support_polygon`). A face may also span from one plane
to another, for example from the heel on the floor to the edge of a tile under the toes. It is then a plane of its own,
parallel to the resting sole, so that an edge of a patch pushes along the normal of the sole.

Let a be the corner with the smallest gap g_a, and z = -g_a + s . (x - x_a) a plane through a. It is above the ground
if s . (x_i - x_a) + g_i - g_a >= 0 for every corner i. This is a convex polygon of slopes s, and its vertices are the
faces at corner a. The sole itself has s = 0. The vertex nearest to 0 is therefore the face on which the sole rests, or
onto which it rotates.

Gaps are those at the end of the step, for the velocity at its start. A corner that would touch down within the step is
then part of the face for the contact model, and does touch down.

The kernels allocate no memory; their arguments are those of :mod:`bipedsim.ground.support`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bipedsim.ground.field import triangle_at
from bipedsim.ground.ground import GroundArrays
from bipedsim.ground.support import (
    SUNK,
    UNDERSIDE,
    SupportWork,
    border_margin,
    centre,
    is_beside,
    lowest,
    part_above,
    place,
    reach_of,
    under_centre,
)
from bipedsim.ground.under_field import FLATTEST_RISER, NEAR, STEEPEST_FACE, height_above
from bipedsim.numerics import MERGE, Array, convex_hull, copy_points, cut, kernel, simplify, start_as

SOON = 1e-3
"""Displacement of corners within a step [m], which defines the planes that may be met in it."""
FLUSH = 1e-5
"""Distance from a face within which a corner belongs to it [m]."""
KEPT = 2e-5
"""Distance of all corners from a face within which the face keeps its plane [m], so that a sticking foot keeps it."""
GENTLE = 0.05
"""Slope of a face relative to the sole up to which the faces of a height field are examined first, and limit of the
slope of an edge on which a sole rests."""
STEEPEST_PATCH = 0.7
"""Cosine of the angle between a sole and the steepest patch that may be part of a face."""
SAME_SLOPE = 2e-3
"""Difference of slopes below which two faces are the same."""
LEFT = 1e-4
"""Distance of corners of two planes from a sole within which the sole still rests on both [m]."""
PRESENT = 1e-4
"""Slope by which another face must be nearer to the sole before it replaces the present one."""


class PlacedSole(NamedTuple):
    """A sole at its present pose.

    Attributes:
        R, p: (3, 3), (3,) its axes and origin in the world.
        vertices: (N, 2) in its frame [m], of which the first ``n`` are valid.
        n: Number of vertices.
    """

    R: Array
    p: Array
    vertices: Array
    n: int


@kernel
def may_bridge(R: Array, patch: int, width: float, ground: GroundArrays, work: SupportWork) -> bool:
    """Return whether a plane other than that of ``patch`` may be touched first or at the same time.

    A face with a corner lower by ``work.apart`` than the first one is steeper than this difference divided by the width
    of the sole. It is irrelevant while the plane that is met first is closer to the sole.

    Args:
        width: Largest distance between two vertices of the sole [m].
    """
    if work.clearance[0] > NEAR:
        return False
    n = ground.rotation[patch, :, 2]
    along = n[0] * R[0, 2] + n[1] * R[1, 2] + n[2] * R[2, 2]
    if patch >= ground.field.first and along < FLATTEST_RISER:
        # The riser next to a peak is not the plane on which the sole rests.
        return work.field_corners[0] > 0
    if along < STEEPEST_PATCH:
        return False
    slope = np.sqrt(max(1.0 - along * along, 0.0)) / along
    return work.apart[0] <= SOON + 1.5 * slope * width


@kernel
def bridge(
    sole: PlacedSole, present: int, second: int, normal: Array, ground: GroundArrays, work: SupportWork, out: Array
) -> tuple[int, int, int]:
    """Find the face on which a sole rests or rotates; return (patch, second patch, vertices in ``out``).

    Args:
        sole: The sole.
        present, second: The patches of the last step, -1 for none; the sole may have sunk into them.
        normal: (3,) normal of the plane of the last step, in the world.
        out: As in :func:`bipedsim.ground.support.support_polygon`; receives the corners of the face.

    Returns:
        The patch under the centre of the sole, which defines the friction; a patch of another plane; and the number of
        vertices of the face. If the sole touches only one plane, the second patch is -1 and ``out`` is empty. If there
        is no face, the first patch is also -1. The plane of a face is in ``work.face``.
    """
    R = sole.R
    total = _corners(sole, present, second, ground, work)
    lowest_corner = 0
    for i in range(total):
        if work.corner[i, 2] < work.corner[lowest_corner, 2]:
            lowest_corner = i
    if total < 3:
        return _on_edge(sole, total, lowest_corner, ground, work, out)
    # (nx, ny, nz) is the normal of the present plane in the sole frame.
    nx = R[0, 0] * normal[0] + R[1, 0] * normal[1] + R[2, 0] * normal[2]
    ny = R[0, 1] * normal[0] + R[1, 1] * normal[1] + R[2, 1] * normal[2]
    nz = R[0, 2] * normal[0] + R[1, 2] * normal[1] + R[2, 2] * normal[2]
    # The face is nearly always flatter than this; then most corners of a height field need not be examined.
    size = STEEPEST_FACE if ground.field.first == ground.counts.shape[0] else GENTLE
    slopes = _slopes(total, lowest_corner, size, work)
    # Each pass removes a slope or enlarges the square.
    for _ in range(2 * work.slope.shape[0]):
        nearest = -1
        smallest = np.inf
        for i in range(slopes):
            sx, sy = work.slope[i]
            steepness = np.hypot(sx, sy)
            if present >= 0 and np.hypot(sx * nz + nx, sy * nz + ny) < SAME_SLOPE:
                steepness -= PRESENT
            # Vertices on the border of the square are no faces, and beyond its circle one outside may be nearer.
            inside = max(abs(sx), abs(sy)) < size - MERGE and (size == STEEPEST_FACE or steepness < size)
            if inside and steepness < smallest:
                smallest = steepness
                nearest = i
        if nearest < 0:
            if size == STEEPEST_FACE:
                return _on_edge(sole, total, lowest_corner, ground, work, out)
            size = min(4.0 * size, STEEPEST_FACE)
            slopes = _slopes(total, lowest_corner, size, work)
            continue
        count = _face(total, lowest_corner, work.slope[nearest, 0], work.slope[nearest, 1], work)
        if count > 2:
            return _choose(sole, present, second, count, ground, work, out)
        # Three corners on a line are not a face.
        work.slope[nearest, 0] = STEEPEST_FACE
    return _on_edge(sole, total, lowest_corner, ground, work, out)


@kernel
def face_axes(R: Array, p: Array, first: Array, face: Array, axes: Array, origin: Array) -> None:
    """Fill the axes (3, 3), as columns, and a point (3,) of the plane of ``face`` in the world.

    Args:
        first: (3,) world direction [-]; its component in the plane is the first axis.
        face: (3,) slopes along (x, y) of the sole and gap at the sole's origin [m].
    """
    size = np.sqrt(1.0 + face[0] * face[0] + face[1] * face[1])
    for a in range(3):
        axes[a, 2] = (R[a, 2] - face[0] * R[a, 0] - face[1] * R[a, 1]) / size
        origin[a] = p[a] - face[2] * R[a, 2]
    complete_axes(first, axes)


@kernel
def complete_axes(first: Array, axes: Array) -> None:
    """Fill the first two axes of a plane, given its normal; ``first`` as in :func:`face_axes`."""
    along = axes[0, 2] * first[0] + axes[1, 2] * first[1] + axes[2, 2] * first[2]
    size = 0.0
    for a in range(3):
        axes[a, 0] = first[a] - along * axes[a, 2]
        size += axes[a, 0] * axes[a, 0]
    size = np.sqrt(size)
    for a in range(3):
        axes[a, 0] /= size
    for a in range(3):
        b = (a + 1) % 3
        c = (a + 2) % 3
        axes[a, 1] = axes[b, 2] * axes[c, 0] - axes[c, 2] * axes[b, 0]


@kernel
def still_lies_on(R: Array, p: Array, axes: Array, origin: Array, work: SupportWork) -> bool:
    """Return whether the corners of the last face are still on the plane of ``axes`` and ``origin``."""
    for m in range(work.n_members[0]):
        height = 0.0
        x, y, gap = work.corner[work.members[m]]
        gap -= work.ahead[0] * x + work.ahead[1] * y + work.ahead[2]
        for a in range(3):
            height += axes[a, 2] * (p[a] + R[a, 0] * x + R[a, 1] * y - R[a, 2] * gap - origin[a])
        if abs(height) > KEPT:
            return False
    return True


@kernel
def _corners(sole: PlacedSole, present: int, second: int, ground: GroundArrays, work: SupportWork) -> int:
    """Fill ``work.corner`` and ``work.owner`` with the corners of all parts under the sole; return their number."""
    R, p, vertices, n = sole
    total = 0 if ground.field.first == ground.counts.shape[0] else work.field_corners[0]
    for i in range(total):
        x, y, _ = work.corner[i]
        work.corner[i, 2] += work.ahead[0] * x + work.ahead[1] * y + work.ahead[2]
    reach = reach_of(vertices, n)
    for i in range(ground.field.first):
        if is_beside(ground.rotation[i], ground.point[i], ground.circle[i], p[0], p[1], p[2], reach):
            continue
        axis = ground.rotation[i, :, 2]
        along = axis[0] * R[0, 2] + axis[1] * R[1, 2] + axis[2] * R[2, 2]
        if along < STEEPEST_PATCH:
            continue
        place(R, p, i, ground, work.affine)
        if lowest(vertices, n, work.affine) > work.clearance[0] + NEAR + STEEPEST_FACE * work.width[0]:
            continue
        count, _ = part_above(vertices, n, i, ground, work)
        if count == 0:
            continue
        plane = ground.plane[i]
        stays = (present >= 0 and plane == ground.plane[present]) or (second >= 0 and plane == ground.plane[second])
        if ground.counts[i] > 0 and lowest(work.part, count, work.affine) < -(SUNK if stays else UNDERSIDE):
            continue
        for j in range(count):
            x, y = work.part[j]
            work.corner[total, 0] = x
            work.corner[total, 1] = y
            gap = (work.affine[2, 0] * x + work.affine[2, 1] * y + work.affine[2, 2]) / along
            work.corner[total, 2] = gap + work.ahead[0] * x + work.ahead[1] * y + work.ahead[2]
            work.owner[total] = i
            total += 1
    work.corners[0] = total
    return total


@kernel
def _slopes(total: int, low: int, size: float, work: SupportWork) -> int:
    """Fill ``work.slope`` with the polygon of slopes, up to ``size``, of planes above the ground through ``low``."""
    count = 0
    for sx, sy in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
        work.slope[count, 0] = sx * size
        work.slope[count, 1] = sy * size
        count += 1
    # The nearest line in each direction comes first. The polygon is then small, so few of the other lines cross it.
    _find_tightest(total, low, work)
    for k in range(work.tightest.shape[0]):
        if work.tightest[k] >= 0:
            count, _ = _cut_slopes(work.tightest[k], low, count, work)
    # A box around the polygon shows for most corners that their line does not cross it.
    left, right, back, front = _box(count, work)
    x0, y0, g0 = work.corner[low]
    for i in range(total):
        dx = work.corner[i, 0] - x0
        dy = work.corner[i, 1] - y0
        least = work.corner[i, 2] - g0 + (left if dx > 0.0 else right) * dx + (back if dy > 0.0 else front) * dy
        if least >= 0.0 or dx * dx + dy * dy < MERGE * MERGE:
            continue
        count, smaller = _cut_slopes(i, low, count, work)
        if smaller:
            left, right, back, front = _box(count, work)
    return count


@kernel
def _find_tightest(total: int, low: int, work: SupportWork) -> None:
    """Fill ``work.tightest`` with the corner towards which the ground rises most, in each octant around ``low``."""
    for k in range(work.tight.shape[0]):
        work.tight[k] = np.inf
        work.tightest[k] = -1
    x0, y0, g0 = work.corner[low]
    for i in range(total):
        dx = work.corner[i, 0] - x0
        dy = work.corner[i, 1] - y0
        away = dx * dx + dy * dy
        if away < MERGE * MERGE:
            continue
        gap = work.corner[i, 2] - g0
        k = (1 if dx > 0.0 else 0) + (2 if dy > 0.0 else 0) + (4 if abs(dx) > abs(dy) else 0)
        tight = gap * gap / away
        if tight < work.tight[k]:
            work.tight[k] = tight
            work.tightest[k] = i


@kernel
def _cut_slopes(i: int, low: int, count: int, work: SupportWork) -> tuple[int, bool]:
    """Cut the polygon of ``count`` slopes to planes above corner ``i``; return its new number, and if it is smaller."""
    dx = work.corner[i, 0] - work.corner[low, 0]
    dy = work.corner[i, 1] - work.corner[low, 1]
    gap = work.corner[i, 2] - work.corner[low, 2]
    crosses = False
    for j in range(count):
        work.slack[j] = work.slope[j, 0] * dx + work.slope[j, 1] * dy + gap
        crosses = crosses or work.slack[j] < -MERGE
    if crosses:
        count = copy_points(work.cut_slope, cut(work.slope, count, work.slack, work.cut_slope), work.slope)
    return count, crosses


@kernel
def _box(count: int, work: SupportWork) -> tuple[float, float, float, float]:
    """Return the smallest and largest slopes of the polygon along x and y."""
    left, right, back, front = np.inf, -np.inf, np.inf, -np.inf
    for j in range(count):
        x, y = work.slope[j]
        left, right, back, front = min(left, x), max(right, x), min(back, y), max(front, y)
    return left, right, back, front


@kernel
def _face(total: int, low: int, sx: float, sy: float, work: SupportWork) -> int:
    """Fill ``work.members``, the face in ``work.face`` and its polygon in ``work.bridge``; return its vertex count.

    The face is the best-fit plane of its corners (least squares).
    """
    x0, y0, g0 = work.corner[low]
    count = 0
    mx = my = mg = 0.0
    for i in range(total):
        x, y, g = work.corner[i]
        if abs(g - g0 + sx * (x - x0) + sy * (y - y0)) <= FLUSH:
            work.members[count] = i
            work.bridge[count, 0] = x
            work.bridge[count, 1] = y
            count += 1
            mx += x
            my += y
            mg += g
    work.n_members[0] = count
    if count < 3:
        return 0
    mx /= count
    my /= count
    mg /= count
    xx = xy = yy = xg = yg = 0.0
    for m in range(count):
        x, y, g = work.corner[work.members[m]]
        x, y, g = x - mx, y - my, g - mg
        xx += x * x
        xy += x * y
        yy += y * y
        xg += x * g
        yg += y * g
    size = convex_hull(work.bridge, count, work.hull_spare)
    if size < 3:
        return 0
    determinant = xx * yy - xy * xy
    work.face[0] = -(yy * xg - xy * yg) / determinant
    work.face[1] = -(xx * yg - xy * xg) / determinant
    work.face[2] = mg + work.face[0] * mx + work.face[1] * my
    # The face is converted from the end of the step to the present time.
    work.face[0] += work.ahead[0]
    work.face[1] += work.ahead[1]
    work.face[2] -= work.ahead[2]
    return size


@kernel
def _on_edge(
    sole: PlacedSole, total: int, low: int, ground: GroundArrays, work: SupportWork, out: Array
) -> tuple[int, int, int]:
    """Return the result of :func:`bridge` for a sole on a peak or a ridge of a field, whose faces are too steep.

    The polygon is the lowest corner, and the one towards which the ground descends least if the sole may reach it soon.
    """
    if total == 0 or work.owner[low] < ground.field.first:
        return -1, -1, 0
    _find_tightest(total, low, work)
    x0, y0, gap = work.corner[low]
    work.members[0] = low
    work.n_members[0] = 1
    tightest = GENTLE * GENTLE
    for k in range(work.tight.shape[0]):
        if work.tightest[k] >= 0 and work.tight[k] < tightest:
            tightest = work.tight[k]
            work.members[1] = work.tightest[k]
            work.n_members[0] = 2
    sx = sy = 0.0
    if work.n_members[0] == 2:
        x, y, g = work.corner[work.members[1]]
        away = (x - x0) * (x - x0) + (y - y0) * (y - y0)
        sx, sy = (gap - g) * (x - x0) / away, (gap - g) * (y - y0) / away
    for m in range(work.n_members[0]):
        out[m, 0] = work.corner[work.members[m], 0]
        out[m, 1] = work.corner[work.members[m], 1]
    work.low_triangle[0] = work.owner[low]
    work.face[0] = sx + work.ahead[0]
    work.face[1] = sy + work.ahead[1]
    work.face[2] = gap + sx * x0 + sy * y0 - work.ahead[2]
    return _or_triangle(sole, -1, False, ground, work), work.owner[low], work.n_members[0]


@kernel
def _choose(
    sole: PlacedSole,
    present: int,
    second: int,
    count: int,
    ground: GroundArrays,
    work: SupportWork,
    out: Array,
) -> tuple[int, int, int]:
    """Return the result of :func:`bridge` for the face that was found."""
    R, p, vertices, n = sole
    members = work.members[: work.n_members[0]]
    plane = -1
    closest = np.inf
    for i in members:
        if work.corner[i, 2] < closest:
            closest = work.corner[i, 2]
            work.low_triangle[0] = work.owner[i]
            plane = ground.plane[work.owner[i]]
    reach = max(closest, 0.0) + (LEFT if second >= 0 else FLUSH)
    several = False
    for i in members:
        if ground.plane[work.owner[i]] != plane:
            # On a height field, a foot is on the face before its corners touch, so that the normal is continuous.
            on_field = work.owner[i] >= ground.field.first
            several = several or on_field or work.corner[i, 2] <= reach
    if not several:
        return under_centre(R, p, vertices, n, present, plane, ground, work), -1, 0
    x, y = centre(vertices, n)
    staying = False
    for i in members:
        staying = staying or work.owner[i] == present
    under = -1
    nearest = -1
    largest_margin = -np.inf
    highest = np.inf
    last = -1
    for i in members:
        patch = work.owner[i]
        if patch == last or patch >= ground.field.first:
            continue
        last = patch
        place(R, p, patch, ground, work.affine)
        margin = border_margin(patch, x, y, present, staying, ground, work.affine)
        height = work.affine[2, 0] * x + work.affine[2, 1] * y + work.affine[2, 2]
        if margin >= 0.0 and height <= highest:
            under = patch
            highest = height
        elif margin > largest_margin:
            nearest = patch
            largest_margin = margin
    patch = under if under >= 0 else nearest
    patch = _or_triangle(sole, patch, under >= 0, ground, work)
    for i in members:
        if ground.plane[work.owner[i]] != ground.plane[patch]:
            last = work.owner[i]
    count = simplify(work.bridge, count, out.shape[0])
    start_as(work.bridge, count, vertices, n, work.hull_spare)
    return patch, last, copy_points(work.bridge, count, out)


@kernel
def _or_triangle(sole: PlacedSole, patch: int, under: bool, ground: GroundArrays, work: SupportWork) -> int:
    """Return ``patch`` of a face, or the triangle under the sole's centre if it is higher or the only choice.

    Args:
        under: Whether ``patch``, -1 for none, is under the centre.
    """
    field = -1
    for i in work.members[: work.n_members[0]]:
        if work.owner[i] >= ground.field.first:
            field = work.owner[i]
    if field < 0:
        return patch
    R, p, vertices, n = sole
    x, y = centre(vertices, n)
    wx = p[0] + R[0, 0] * x + R[0, 1] * y
    wy = p[1] + R[1, 0] * x + R[1, 1] * y
    wz = p[2] + R[2, 0] * x + R[2, 1] * y
    i = triangle_at(ground.field, wx, wy)
    if i < 0:
        return field if patch < 0 else patch
    if under and height_above(ground, patch, wx, wy, wz) < height_above(ground, i, wx, wy, wz):
        return patch
    return i
