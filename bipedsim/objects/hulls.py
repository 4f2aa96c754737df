"""Boxes, cylinders and hulls near each other: coal says from which direction, the faces that meet say where.

coal's contact patch has one depth for all of its points; a box that rocks on another needs one for each, and to
rounding. So the normal is that of a face wherever a face parts the two as well as the best direction does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import coal
import numpy as np

from bipedsim.numerics import Array, Box, assign, cross, dot, entry, kernel, minus, ready
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
    put,
    velocity,
)
from bipedsim.objects.shapes import BALL, BOX, CYLINDER, Shape, Shapes, corner

AS_GOOD, NEARLY = 1e-6, 0.05
"""A face parts two shapes as well as another direction does if that leaves no more room between them [m] than this and
this share of the distance: edges that are nearly in line part overlapping boxes a little better, in any direction."""
CORE = 0.005
"""Shapes are made smaller by this share of what they measure at least, for coal."""
BESIDE = -1
"""Key of a point that is on no face."""
AS_FOUND, FIRST_FACE, SECOND_FACE, CROSSING = range(4)
"""What parts two shapes: the normal that coal found, a face of either, or what they have where they cross."""
FAR = 0.2
"""Angle [rad] by which the normal of a crossing may turn in what is left of a step: farther, and it is not followed."""
FIRST = 1e-9
"""The second shape's face is taken where it leaves this much more room [m]."""


@kernel
def _farthest(sh: Shapes, i: int, d) -> float:
    """Return how far shape ``i`` reaches along ``d`` (3,) [m]."""
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
    """Fill ``out`` with the normal of the face of shape ``i`` that looks most along ``d``; False if none is flat."""
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
def _part(a: Near, found: Array) -> tuple[int, float]:
    """Find the direction that parts the two shapes that coal was asked for: shapes i and j, normal, a point of each.

    Returns:
        What has it: ``FIRST_FACE`` or ``SECOND_FACE``, ``CROSSING``, or ``AS_FOUND``; and the room between both [m].
    """
    sh = a.shapes
    i = int(found[0])
    j = int(found[1])
    n = found[2:5]
    back = a.back
    # The way from the second to the first, and the face of either that parts them best.
    for x in range(3):
        back[x] = -n[x]
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
        if cross_shapes(a.crossing, sh, i, j, back, found[5:8], found[8:11], slope):
            m = a.crossing.normal
            room = -_farthest(sh, j, m) - _farthest(sh, i, (-m[0], -m[1], -m[2]))
            if room >= distance - WORSE:
                better = CROSSING
                distance = room
                break
    return (whose if best >= distance - _enough(distance) else better), max(best, distance)


@kernel
def _enough(distance: float) -> float:
    return AS_GOOD + NEARLY * abs(distance)


@kernel
def _meet(a: Near, found: Array) -> float:
    """Add the pair that coal has found, see :func:`_part`; return the room between the two [m]."""
    sh = a.shapes
    i = int(found[0])
    j = int(found[1])
    whose, room = _part(a, found)
    if room > a.reach[0]:
        return room
    if whose in (AS_FOUND, CROSSING):
        _meet_at_point(a, i, j, room, found, whose == CROSSING)
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
            m_k = put(a, p, a.polygon[k], gap, key, velocity(a.bodies, body, a.polygon[k]), body)
            if m_k >= 0 and followed:
                _follow(a, incident, m_k, a.keys[k], capped)
    # Where they meet beside the face.
    if least > room + _enough(room):
        _put_between(a, p, i, j, room, found)
    return room


@kernel
def _follow(a: Near, i: int, m: int, key: int, capped: bool) -> None:
    """Have the corner ``key`` of a face of cylinder ``i``, contact point ``m``, go round, unless a cap is cut there."""
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
    """Fill ``polygon`` with the face of ``incident`` that looks against ``m``, cut by the sides of the other's face."""
    count, _ = fill_face(a, reference, m)
    side = a.side
    for k in range(count):
        for x in range(3):
            side[k, x] = a.polygon[k, x]
    left, _ = fill_face(a, incident, (-m[0], -m[1], -m[2]))
    for e in range(count):
        f = e + 1 if e + 1 < count else 0
        ex = side[f, 0] - side[e, 0]
        ey = side[f, 1] - side[e, 1]
        ez = side[f, 2] - side[e, 2]
        # Outward: edge x normal, faces being counter-clockwise from outside.
        out = (ey * m[2] - ez * m[1], ez * m[0] - ex * m[2], ex * m[1] - ey * m[0])
        length = np.sqrt(dot(out, out))
        out = (out[0] / length, out[1] / length, out[2] / length)
        left = clip(a, left, out, dot(out, side[e]), e)
    return left


@kernel
def _meet_at_point(a: Near, i: int, j: int, room: float, found: Array, crossing: bool) -> None:
    """Add the pair of shapes that meet at one point: where they cross, or else where coal has found them."""
    x = a.crossing
    sh = a.shapes
    n = x.normal if crossing else a.back
    p = begin_pair(a, i, j, n)
    if p < 0:
        return
    if not crossing or not move_crossing(x, a.bodies, sh.body[i], sh.body[j], FAR / a.left[0]):
        _put_between(a, p, i, j, room, found)
        return
    assign(a.contacts.turn[p], x.rate)
    out = x.round[0] + 0.5 * room
    point = (x.at[0, 0] - out * n[0], x.at[0, 1] - out * n[1], x.at[0, 2] - out * n[2])
    put(a, p, point, room, BESIDE, x.moving)


@kernel
def _put_between(a: Near, p: int, i: int, j: int, distance: float, found: Array) -> None:
    """Add the point midway between the two that are nearest to each other."""
    point = (0.5 * (found[5] + found[8]), 0.5 * (found[6] + found[9]), 0.5 * (found[7] + found[10]))
    one = velocity(a.bodies, a.shapes.body[i], point)
    two = velocity(a.bodies, a.shapes.body[j], point)
    moving = (0.5 * (one[0] + two[0]), 0.5 * (one[1] + two[1]), 0.5 * (one[2] + two[2]))
    put(a, p, point, distance, BESIDE, moving)


@entry
def _add(boxed: Any, found: Array, q: int) -> None:
    a = boxed.arrays
    a.reach[0] = MARGIN + a.shapes.sweep[int(found[0])] + a.shapes.sweep[int(found[1])]
    a.room[q] = _meet(a, found)


@entry
def _room(boxed: Any, found: Array) -> float:
    _, room = _part(boxed.arrays, found)
    return room


def _core(shape: Shape) -> Any:
    """Return a shape as coal has it, in its own axes, slightly smaller."""
    if shape.kind == BALL:
        return coal.Sphere(float((1.0 - CORE) * shape.size[0]))
    if shape.kind == CYLINDER:
        less = CORE * float(shape.size[:2].min())
        return coal.Cylinder(float(shape.size[0] - less), float(2.0 * (shape.size[1] - less)))
    if shape.kind == BOX:
        return coal.Box(*(2.0 * (shape.size - CORE * shape.size.min())).tolist())
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in shape.vertices:
        points.append((1.0 - CORE) * vertex)
    for face in shape.faces:
        for k in range(1, len(face) - 1):
            triangles.append(coal.Triangle(face[0], face[k], face[k + 1]))
    return coal.Convex(points, triangles)


class Hulls:
    """Asks coal where pairs of shapes meet.

    Args:
        shapes: What they are.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._cores = [_core(shape) for shape in shapes]
        self._poses = coal.Transform3s(), coal.Transform3s()
        self._request = coal.DistanceRequest()
        self._request.enable_signed_distance = True
        self._result = coal.DistanceResult()
        self._found: Array = np.zeros(11)

    def warm_up(self, boxed: Box) -> None:
        """Load or compile what :meth:`add` and :meth:`spare` need."""
        ready(_add, boxed, self._found, 0)
        ready(_room, boxed, self._found)

    def add(self, near: Near, boxed: Box) -> None:
        """Add the contacts of all pairs that ``look`` left to ask for to ``near``, which is in ``boxed``."""
        for q, (i, j) in enumerate(near.ask[: near.asked[0]].tolist()):
            self._ask(near, i, j)
            _add(boxed, self._found, q)

    def spare(self, near: Near, boxed: Box, least: float, first: bool) -> float:
        """Return ``least``, or how much less room [m] a pair that ``near`` has to ``check`` has where it is now.

        Pairs that have enough room at the ``first`` end of a part that is tried are not checked at earlier ones.
        """
        for q in np.flatnonzero(near.check[: near.asked[0]]).tolist():
            self._ask(near, *near.ask[q].tolist())
            spare = _room(boxed, self._found) - min(near.room[q], 0.0) + DEEPER
            least = min(least, spare)
            if first:
                near.check[q] = spare < 0.0
        return least

    def _ask(self, near: Near, i: int, j: int) -> None:
        """Fill what coal says about shapes ``i`` and ``j``."""
        found, result = self._found, self._result
        for pose, s in zip(self._poses, (i, j), strict=True):
            pose.setRotation(near.shapes.R[s])
            pose.setTranslation(near.shapes.p[s])
        result.clear()
        found[0], found[1] = i, j
        coal.distance(self._cores[i], self._poses[0], self._cores[j], self._poses[1], self._request, result)
        found[2:5] = result.normal
        found[5:8] = result.getNearestPoint1()
        found[8:11] = result.getNearestPoint2()
