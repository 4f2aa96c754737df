"""Where a sole rests on several planes at once: the face of the roof over what is under it that it lies on.

Seen along the normal of the sole, what is under it is a height over (x, y) of the sole frame, and a rigid flat sole
touches no more of it than its concave majorant, a roof: the upper convex hull of the corners of all parts of patches
under the sole. A sole that rests on the ground rests on a face of this roof, or on an edge or a corner of a face. A
face of one plane is that plane (:func:`bipedsim.ground.support.support_polygon`). A face that spans from one plane to
another, from the heel on the floor to the edge of the tile under the toes, is a plane of its own: the one that the
sole has where it lies on the face, so that an edge of a patch pushes along the normal of the sole.

Planes z = -g_a + s . (x - x_a) through the corner a with the least gap g_a are above the ground where
s . (x_i - x_a) + g_i - g_a >= 0 for every corner i: a convex polygon of slopes s. Its vertices are the faces that
have the corner a. The sole itself has s = 0, so that the vertex nearest to 0 is the face that it lies on or turns to.
Gaps are those at the end of the step, at the velocity that it begins with: a corner that would land within the step is
one of the face that the contact model is given, and so it does land.

Compiled, without allocation; arguments are those of :mod:`bipedsim.ground.support`.
"""

from __future__ import annotations

import numpy as np

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
from bipedsim.numerics import MERGE, Array, convex_hull, copy_points, cut, kernel, simplify, start_as

NEAR = 0.02
"""A foot farther than this [m] above the ground does not lie on anything yet."""
SOON = 1e-3
"""Ways [m] that corners may make in a step, and so planes that may be met in it."""
FLUSH = 1e-5
"""Corners this near [m] to a face belong to it."""
KEPT = 2e-5
"""A face stays the plane that it was while its corners are no farther from that [m]: a foot that sticks keeps it."""
STEEPEST_FACE = 0.7
"""Slope beside the sole beyond which no face is looked for."""
SAME_SLOPE = 2e-3
"""Faces whose slopes differ by less are the same one."""
LEFT = 1e-4
"""A sole still lies on a face of several planes while corners of two of them are no farther from it [m]."""
PRESENT = 1e-4
"""A face stays the one while no other is nearer to the sole by more than this slope."""


@kernel
def may_bridge(R: Array, patch: int, width: float, ground: GroundArrays, work: SupportWork) -> bool:
    """Return whether another plane than that of ``patch`` may touch first, or as well.

    A face with a corner that is ``work.apart`` lower than the first one is steeper than that over the width of the
    sole: it is not looked for while the plane that was met first is nearer to the sole.

    Args:
        width: Largest distance of two vertices of the sole [m].
    """
    if work.clearance[0] > NEAR:
        return False
    n = ground.rotation[patch, :, 2]
    along = n[0] * R[0, 2] + n[1] * R[1, 2] + n[2] * R[2, 2]
    if along < STEEPEST_FACE:
        return False
    slope = np.sqrt(max(1.0 - along * along, 0.0)) / along
    return work.apart[0] <= SOON + 1.5 * slope * width


@kernel
def bridge(
    R: Array,
    p: Array,
    vertices: Array,
    n: int,
    present: int,
    second: int,
    normal: Array,
    ground: GroundArrays,
    work: SupportWork,
    out: Array,
) -> tuple[int, int, int]:
    """Find the face that a sole lies on or turns to; return (patch, another patch of the face, vertices in ``out``).

    Args:
        present, second: The patches of the last step, -1 for none: a sole may have sunk into them.
        normal: (3,) normal of the plane of the last step, in the world.
        out: As in :func:`bipedsim.ground.support.support_polygon`: the corners of the face.

    Returns:
        The patch under the centre of the sole that gives the friction, one of another plane, and the number of vertices
        of the face. Where it does not touch several planes the second is -1 and nothing is in ``out``; the first is -1
        too where there is no face at all. The plane of a face is in ``work.face``.
    """
    total = _corners(R, p, vertices, n, present, second, ground, work)
    if total < 3:
        return -1, -1, 0
    low = 0
    for i in range(total):
        if work.corner[i, 2] < work.corner[low, 2]:
            low = i
    slopes = _slopes(total, low, work)
    # The slope of the present plane, in the sole frame.
    nx = R[0, 0] * normal[0] + R[1, 0] * normal[1] + R[2, 0] * normal[2]
    ny = R[0, 1] * normal[0] + R[1, 1] * normal[1] + R[2, 1] * normal[2]
    nz = R[0, 2] * normal[0] + R[1, 2] * normal[1] + R[2, 2] * normal[2]
    for _ in range(slopes):
        nearest = -1
        least = np.inf
        for i in range(slopes):
            sx, sy = work.slope[i]
            steepness = np.hypot(sx, sy)
            if present >= 0 and np.hypot(sx * nz + nx, sy * nz + ny) < SAME_SLOPE:
                steepness -= PRESENT
            if max(abs(sx), abs(sy)) < STEEPEST_FACE - MERGE and steepness < least:
                least = steepness
                nearest = i
        if nearest < 0:
            return -1, -1, 0
        count = _face(total, low, work.slope[nearest, 0], work.slope[nearest, 1], work)
        if count > 2:
            return _choose(R, p, vertices, n, present, second, total, count, ground, work, out)
        # Three corners in line are no face.
        work.slope[nearest, 0] = STEEPEST_FACE
    return -1, -1, 0


@kernel
def face_axes(R: Array, p: Array, first: Array, face: Array, axes: Array, origin: Array) -> None:
    """Fill the axes (3, 3), as columns, and a point (3,) in the world of the plane of ``face``.

    Args:
        first: (3,) direction in the world [-] whose part along the plane is the first axis.
        face: (3,) slopes along (x, y) of the sole and gap at its origin [m].
    """
    size = np.sqrt(1.0 + face[0] * face[0] + face[1] * face[1])
    along = 0.0
    for a in range(3):
        axes[a, 2] = (R[a, 2] - face[0] * R[a, 0] - face[1] * R[a, 1]) / size
        origin[a] = p[a] - face[2] * R[a, 2]
        along += axes[a, 2] * first[a]
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
    """Return whether the corners of the face that was found last lie on the plane of ``axes`` and ``origin``."""
    for i in range(work.corners[0]):
        if work.member[i]:
            height = 0.0
            x, y, gap = work.corner[i]
            gap -= work.ahead[0] * x + work.ahead[1] * y + work.ahead[2]
            for a in range(3):
                height += axes[a, 2] * (p[a] + R[a, 0] * x + R[a, 1] * y - R[a, 2] * gap - origin[a])
            if abs(height) > KEPT:
                return False
    return True


@kernel
def _corners(
    R: Array,
    p: Array,
    vertices: Array,
    n: int,
    present: int,
    second: int,
    ground: GroundArrays,
    work: SupportWork,
) -> int:
    """Fill ``work.corner`` and ``work.owner`` with the corners of all parts under the sole; return their number."""
    total = 0
    reach = reach_of(vertices, n)
    for i in range(ground.counts.shape[0]):
        if is_beside(ground.rotation[i], ground.point[i], ground.circle[i], p[0], p[1], p[2], reach):
            continue
        axis = ground.rotation[i, :, 2]
        along = axis[0] * R[0, 2] + axis[1] * R[1, 2] + axis[2] * R[2, 2]
        if along < STEEPEST_FACE:
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
def _slopes(total: int, low: int, work: SupportWork) -> int:
    """Fill ``work.slope`` with the polygon of slopes of planes above the ground through corner ``low``."""
    count = 0
    for sx, sy in ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)):
        work.slope[count, 0] = sx * STEEPEST_FACE
        work.slope[count, 1] = sy * STEEPEST_FACE
        count += 1
    for i in range(total):
        dx = work.corner[i, 0] - work.corner[low, 0]
        dy = work.corner[i, 1] - work.corner[low, 1]
        if np.hypot(dx, dy) < MERGE:
            continue
        gap = work.corner[i, 2] - work.corner[low, 2]
        crosses = False
        for j in range(count):
            work.slack[j] = work.slope[j, 0] * dx + work.slope[j, 1] * dy + gap
            crosses = crosses or work.slack[j] < -MERGE
        if crosses:
            count = copy_points(work.cut_slope, cut(work.slope, count, work.slack, work.cut_slope), work.slope)
    return count


@kernel
def _face(total: int, low: int, sx: float, sy: float, work: SupportWork) -> int:
    """Fill ``work.member``, the face itself in ``work.face`` and its polygon in ``work.bridge``; return its size.

    The face is the plane of least squares through its corners.
    """
    x0, y0, g0 = work.corner[low]
    count = 0
    mx = my = mg = 0.0
    for i in range(total):
        x, y, g = work.corner[i]
        work.member[i] = abs(g - g0 + sx * (x - x0) + sy * (y - y0)) <= FLUSH
        if work.member[i]:
            work.bridge[count, 0] = x
            work.bridge[count, 1] = y
            count += 1
            mx += x
            my += y
            mg += g
    if count < 3:
        return 0
    mx /= count
    my /= count
    mg /= count
    xx = xy = yy = xg = yg = 0.0
    for i in range(total):
        if work.member[i]:
            x, y, g = work.corner[i, 0] - mx, work.corner[i, 1] - my, work.corner[i, 2] - mg
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
    # Where it is now.
    work.face[0] += work.ahead[0]
    work.face[1] += work.ahead[1]
    work.face[2] -= work.ahead[2]
    return size


@kernel
def _choose(
    R: Array,
    p: Array,
    vertices: Array,
    n: int,
    present: int,
    second: int,
    total: int,
    count: int,
    ground: GroundArrays,
    work: SupportWork,
    out: Array,
) -> tuple[int, int, int]:
    """Return what :func:`bridge` does, for the face that was found."""
    plane = -1
    closest = np.inf
    for i in range(total):
        if work.member[i] and work.corner[i, 2] < closest:
            closest = work.corner[i, 2]
            plane = ground.plane[work.owner[i]]
    reach = max(closest, 0.0) + (LEFT if second >= 0 else FLUSH)
    several = False
    for i in range(total):
        if work.member[i] and ground.plane[work.owner[i]] != plane:
            several = several or work.corner[i, 2] <= reach
    if not several:
        return under_centre(R, p, vertices, n, present, plane, ground, work), -1, 0
    x, y = centre(vertices, n)
    staying = False
    for i in range(total):
        staying = staying or (work.member[i] and work.owner[i] == present)
    under = -1
    nearest = -1
    most = -np.inf
    highest = np.inf
    last = -1
    for i in range(total):
        patch = work.owner[i]
        if not work.member[i] or patch == last:
            continue
        last = patch
        place(R, p, patch, ground, work.affine)
        margin = border_margin(patch, x, y, present, staying, ground, work.affine)
        height = work.affine[2, 0] * x + work.affine[2, 1] * y + work.affine[2, 2]
        if margin >= 0.0 and height <= highest:
            under = patch
            highest = height
        elif margin > most:
            nearest = patch
            most = margin
    patch = under if under >= 0 else nearest
    for i in range(total):
        if work.member[i] and ground.plane[work.owner[i]] != ground.plane[patch]:
            last = work.owner[i]
    count = simplify(work.bridge, count, out.shape[0])
    start_as(work.bridge, count, vertices, n, work.hull_spare)
    return patch, last, copy_points(work.bridge, count, out)
