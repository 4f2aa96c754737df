"""Contacts of boxes, cylinders and hulls: the direction between the nearest points, and points of the facing surfaces.

A box that rocks on another needs a depth per point, accurate to rounding. So the contact normal is that of a face
whenever the face separates the shapes as well as the best direction does.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import assign, cross, dot, kernel, minus
from bipedsim.objects.crossing import SLOPES, WORSE, cross_shapes, move_crossing
from bipedsim.objects.narrow import (
    CAP,
    CAPPED,
    DEEPER,
    MARGIN,
    Near,
    begin_pair,
    clip,
    fill_face,
    fill_rim,
    follow_rim,
    lowest_on_rim,
    put_point,
    velocity,
)
from bipedsim.objects.nearest import find_nearest
from bipedsim.objects.shapes import BALL, CYLINDER, ObjectShapes, corner

AS_GOOD, NEARLY = 1e-6, 0.05
"""Tolerance for the separation by a face: absolute [m], and as a fraction of the distance.

Within it, a face separates two shapes as well as another direction does. Nearly aligned edges separate overlapping
boxes slightly better, in an arbitrary direction.
"""
BESIDE = -1
"""Key of a point that is on no face."""
AS_FOUND, FIRST_FACE, SECOND_FACE, CROSSING = range(4)
"""Origin of the contact normal: nearest points, a face of the first or second shape, or a crossing of two features."""
FAR = 0.2
"""Maximum rotation [rad] of the normal of a crossing in the rest of a step; beyond it the motion is not predicted."""
FIRST = 1e-9
"""Additional separation [m] that the first shape's face must provide to be preferred to the second one's."""


@kernel
def _farthest(sh: ObjectShapes, i: int, d) -> float:
    """Return the extent of shape ``i`` along ``d`` (3,) [m]."""
    if sh.kind[i] == BALL:
        return dot(sh.p[i], d) + sh.size[i, 0]
    if sh.kind[i] == CYLINDER:
        R = sh.R[i]
        along = R[0, 2] * d[0] + R[1, 2] * d[1] + R[2, 2] * d[2]
        across = dot(lowest_on_rim(sh, i, d), d)
        return dot(sh.p[i], d) + abs(along) * sh.size[i, 1] + sh.size[i, 0] * across
    most = -np.inf
    for k in range(sh.n_vertices[i]):
        most = max(most, dot(corner(sh, i, k), d))
    return most


@kernel
def _flat_normal(a: Near, i: int, d, out) -> bool:
    """Fill ``out`` with the normal of the flat face of shape ``i`` that faces ``d`` most; return False without one."""
    sh = a.shapes
    if sh.kind[i] == BALL:
        return False
    count, face = fill_face(a, i, d)
    if count < 3:
        return False
    R = sh.R[i]
    if face < 0:
        side = 1.0 if R[0, 2] * d[0] + R[1, 2] * d[1] + R[2, 2] * d[2] >= 0.0 else -1.0
        assign(out, (side * R[0, 2], side * R[1, 2], side * R[2, 2]))
        return True
    n = sh.normals[i, face]
    for x in range(3):
        out[x] = R[x, 0] * n[0] + R[x, 1] * n[1] + R[x, 2] * n[2]
    return True


@kernel
def _separate(a: Near, i: int, j: int) -> tuple[int, float]:
    """Compute the direction that separates the shapes ``i`` and ``j`` best.

    If they are farther apart than ``reach``, the distance is only a lower bound.

    Returns:
        Origin of the direction (``FIRST_FACE``, ``SECOND_FACE``, ``CROSSING`` or ``AS_FOUND``) and distance [m].
    """
    sh = a.shapes
    least = find_nearest(a.nearest, sh, i, j)
    if least > a.reach[0]:
        return AS_FOUND, least
    # Direction from the second to the first shape, and the best separating face of either.
    back = a.nearest.normal
    n = (-back[0], -back[1], -back[2])
    distance = -_farthest(sh, j, back) - _farthest(sh, i, n)
    own = a.own
    other = a.other
    best = -np.inf
    whose = AS_FOUND
    if _flat_normal(a, j, back, other):
        best = -_farthest(sh, i, (-other[0], -other[1], -other[2])) - _farthest(sh, j, other)
        whose = SECOND_FACE
    if _flat_normal(a, i, n, own):
        room = -_farthest(sh, j, (-own[0], -own[1], -own[2])) - _farthest(sh, i, own)
        if room > best + FIRST:
            best = room
            whose = FIRST_FACE
    if best >= distance:
        return whose, best
    better = AS_FOUND
    for slope in SLOPES:
        if cross_shapes(a.crossing, sh, i, j, back, a.nearest.at[0], a.nearest.at[1], slope):
            m = a.crossing.normal
            room = -_farthest(sh, j, m) - _farthest(sh, i, (-m[0], -m[1], -m[2]))
            if room >= distance - WORSE:
                better = CROSSING
                distance = room
                break
    return (whose if best >= distance - _tolerance(distance) else better), max(best, distance)


@kernel
def _tolerance(distance: float) -> float:
    return AS_GOOD + NEARLY * abs(distance)


@kernel
def _add_pair(a: Near, i: int, j: int) -> float:
    """Add the contacts of the shapes ``i`` and ``j``; return their distance [m]."""
    sh = a.shapes
    a.reach[0] = MARGIN + sh.sweep[i] + sh.sweep[j]
    whose, room = _separate(a, i, j)
    if room > a.reach[0]:
        return room
    if whose in (AS_FOUND, CROSSING):
        _add_single_point(a, i, j, room, whose == CROSSING)
        return room
    reference = j if whose == SECOND_FACE else i
    incident = i if whose == SECOND_FACE else j
    m = a.other if whose == SECOND_FACE else a.own
    sign = 1.0 if whose == SECOND_FACE else -1.0
    p = begin_pair(a, i, j, (sign * m[0], sign * m[1], sign * m[2]))
    if p < 0:
        return room
    assign(a.contacts.turn[p], cross(a.bodies.w[sh.body[reference]], a.contacts.axes[p, 2]))
    followed = capped = False
    if sh.kind[incident] == CYLINDER:
        followed = fill_rim(a, incident, m, cross(a.bodies.w[sh.body[reference]], m))
        capped = abs(dot(a.rim[0], m)) >= CAPPED
    level = _farthest(sh, reference, m)
    count = _clipped(a, reference, incident, m)
    least = np.inf
    for k in range(count):
        gap = dot(a.polygon[k], m) - level
        least = min(least, gap)
        if gap <= a.reach[0]:
            key = a.keys[k] + (65536 if whose == FIRST_FACE else 0)
            body = sh.body[incident]
            m_k = put_point(a, p, a.polygon[k], gap, key, velocity(a.bodies, body, a.polygon[k]), body)
            if m_k >= 0 and followed:
                _follow(a, incident, m_k, a.keys[k], capped)
    # The shapes may meet next to the face.
    if least > room + _tolerance(room):
        _put_between(a, p, i, j, room)
    return room


@kernel
def _follow(a: Near, i: int, m: int, key: int, capped: bool) -> None:
    """Let contact point ``m``, corner ``key`` of cylinder ``i``, move along the rim unless a cap was clipped there."""
    radius, half = a.shapes.size[i, 0], a.shapes.size[i, 1]
    if capped and key < CAP:
        side = 1.0 if dot(minus(a.contacts.where[m], a.shapes.p[i]), a.rim[0]) >= 0.0 else -1.0
        angle = side * 2.0 * np.pi * key / CAP
        follow_rim(a, i, m, (side * half, radius * np.cos(angle), radius * np.sin(angle)))
    elif not capped:
        along = dot(minus(a.contacts.where[m], a.shapes.p[i]), a.rim[0])
        follow_rim(a, i, m, (along, radius, 0.0))


@kernel
def _clipped(a: Near, reference: int, incident: int, m) -> int:
    """Fill ``polygon`` with the face of ``incident`` that faces ``m``, clipped by the sides of the other face."""
    count, _ = fill_face(a, reference, m)
    side = a.side
    for k in range(count):
        for x in range(3):
            side[k, x] = a.polygon[k, x]
    remaining, _ = fill_face(a, incident, (-m[0], -m[1], -m[2]))
    for e in range(count):
        f = e + 1 if e + 1 < count else 0
        ex = side[f, 0] - side[e, 0]
        ey = side[f, 1] - side[e, 1]
        ez = side[f, 2] - side[e, 2]
        # Outward normal: edge x normal, because faces are counter-clockwise from outside.
        out = (ey * m[2] - ez * m[1], ez * m[0] - ex * m[2], ex * m[1] - ey * m[0])
        length = np.sqrt(dot(out, out))
        out = (out[0] / length, out[1] / length, out[2] / length)
        remaining = clip(a, remaining, out, dot(out, side[e]), e)
    return remaining


@kernel
def _add_single_point(a: Near, i: int, j: int, room: float, crossing: bool) -> None:
    """Add a pair of shapes that meet at one point: their crossing, or else the middle of their nearest points."""
    x = a.crossing
    sh = a.shapes
    n = x.normal if crossing else a.nearest.normal
    p = begin_pair(a, i, j, n)
    if p < 0:
        return
    if not crossing or not move_crossing(x, a.bodies, sh.body[i], sh.body[j], FAR / a.left[0]):
        _put_between(a, p, i, j, room)
        return
    assign(a.contacts.turn[p], x.rate)
    out = x.round[0] + 0.5 * room
    point = (x.at[0, 0] - out * n[0], x.at[0, 1] - out * n[1], x.at[0, 2] - out * n[2])
    put_point(a, p, point, room, BESIDE, x.moving)


@kernel
def _put_between(a: Near, p: int, i: int, j: int, distance: float) -> None:
    """Add the midpoint of the two nearest points."""
    at = a.nearest.at
    point = (0.5 * (at[0, 0] + at[1, 0]), 0.5 * (at[0, 1] + at[1, 1]), 0.5 * (at[0, 2] + at[1, 2]))
    one = velocity(a.bodies, a.shapes.body[i], point)
    two = velocity(a.bodies, a.shapes.body[j], point)
    moving = (0.5 * (one[0] + two[0]), 0.5 * (one[1] + two[1]), 0.5 * (one[2] + two[2]))
    put_point(a, p, point, distance, BESIDE, moving)


@kernel
def add_hulls(a: Near) -> None:
    """Add the contacts of all pairs of shapes that :func:`~bipedsim.objects.narrow.find_contacts` has listed."""
    for q in range(a.asked[0]):
        a.room[q] = _add_pair(a, a.ask[q, 0], a.ask[q, 1])


@kernel
def spare_between(a: Near, least: float, first: bool) -> float:
    """Return the minimum of ``least`` and the remaining distances [m] of the pairs to ``check``.

    Negative values mean that a pair is deeper than its contacts allow. Pairs with a positive value at the ``first``
    trial end of a sub-step are not checked at earlier ends.
    """
    for q in range(a.asked[0]):
        if not a.check[q]:
            continue
        a.reach[0] = 0.0
        _, room = _separate(a, a.ask[q, 0], a.ask[q, 1])
        spare = room - min(a.room[q], 0.0) + DEEPER
        least = min(least, spare)
        if first:
            a.check[q] = spare < 0.0
    return least
