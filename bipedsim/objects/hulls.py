"""Boxes, cylinders and hulls near each other: coal says from which direction, the faces that meet say where.

coal's contact patch has one depth for all of its points; a box that rocks on another needs one for each, and to
rounding. So the normal is that of a face wherever a face parts the two as well as the best direction does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import coal
import numpy as np

from bipedsim.numerics import Array, Box, assign, cross, entry, kernel, ready
from bipedsim.objects.narrow import MARGIN, Near, begin_pair, clip, fill_face, lowest_on_rim, put, turn_normal, velocity
from bipedsim.objects.shapes import BALL, BOX, CYLINDER, Shape, Shapes, corner

AS_GOOD, NEARLY = 1e-5, 0.05
"""A face parts two shapes as well as another direction does if that leaves no more room between them [m] than this and
this share of the distance: edges that are nearly in line part overlapping boxes a little better, in any direction."""
CORE = 0.005
"""Shapes are made smaller by this share of what they measure at least, for coal."""
BESIDE = -1
"""Key of a point that is on no face."""
FIRST = 1e-9
"""The second shape's face is taken where it leaves this much more room [m]."""


@kernel
def _farthest(sh: Shapes, i: int, d) -> float:
    """Return how far shape ``i`` reaches along ``d`` (3,) [m]."""
    if sh.kind[i] == BALL:
        return _dot(sh.p[i], d) + sh.size[i, 0]
    if sh.kind[i] == CYLINDER:
        R = sh.R[i]
        along = R[0, 2] * d[0] + R[1, 2] * d[1] + R[2, 2] * d[2]
        across = _dot(lowest_on_rim(sh, i, d), d)
        return _dot(sh.p[i], d) + abs(along) * sh.size[i, 1] + sh.size[i, 0] * across
    most = -np.inf
    for k in range(sh.n_vertices[i]):
        most = max(most, _dot(corner(sh, i, k), d))
    return most


@kernel
def _dot(a, b) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


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
def _meet(a: Near, found: Array) -> None:
    """Add the pair that coal has found: shapes i and j, normal from i to j, and a point of each."""
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
    whose = 0
    if _flat_normal(a, j, back, other):
        best = -_farthest(sh, i, (-other[0], -other[1], -other[2])) - _farthest(sh, j, other)
        whose = 2
    if _flat_normal(a, i, n, own):
        room = -_farthest(sh, j, (-own[0], -own[1], -own[2])) - _farthest(sh, i, own)
        if room > best + FIRST:
            best = room
            whose = 1
    enough = AS_GOOD + NEARLY * abs(distance)
    if whose == 0 or best < distance - enough:
        _meet_at_point(a, i, j, back, distance, found)
        return
    reference = j if whose == 2 else i
    incident = i if whose == 2 else j
    m = other if whose == 2 else own
    if best > a.reach[0]:
        return
    sign = 1.0 if whose == 2 else -1.0
    p = begin_pair(a, i, j, (sign * m[0], sign * m[1], sign * m[2]))
    if p < 0:
        return
    level = _farthest(sh, reference, m)
    count = _clipped(a, reference, incident, m)
    least = np.inf
    for k in range(count):
        gap = _dot(a.polygon[k], m) - level
        least = min(least, gap)
        if gap <= a.reach[0]:
            key = a.keys[k] + (65536 if whose == 1 else 0)
            body = sh.body[incident]
            m_k = put(a, p, a.polygon[k], gap, key, velocity(a.bodies, body, a.polygon[k]), body)
            if m_k >= 0:
                turn_normal(a, m_k, cross(a.bodies.w[sh.body[reference]], a.contacts.axes[p, 2]))
    # Where they meet beside the face.
    if least > distance + enough and distance <= a.reach[0]:
        _put_between(a, p, i, j, distance, found)


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
        length = np.sqrt(_dot(out, out))
        out = (out[0] / length, out[1] / length, out[2] / length)
        left = clip(a, left, out, _dot(out, side[e]), e)
    return left


@kernel
def _meet_at_point(a: Near, i: int, j: int, back, distance: float, found: Array) -> None:
    """Add the pair of shapes that meet at one point: edges that cross, a rim on something round."""
    if distance > a.reach[0]:
        return
    p = begin_pair(a, i, j, back)
    if p >= 0:
        _put_between(a, p, i, j, distance, found)


@kernel
def _put_between(a: Near, p: int, i: int, j: int, distance: float, found: Array) -> None:
    """Add the point midway between the two that are nearest to each other."""
    point = (0.5 * (found[5] + found[8]), 0.5 * (found[6] + found[9]), 0.5 * (found[7] + found[10]))
    one = velocity(a.bodies, a.shapes.body[i], point)
    two = velocity(a.bodies, a.shapes.body[j], point)
    moving = (0.5 * (one[0] + two[0]), 0.5 * (one[1] + two[1]), 0.5 * (one[2] + two[2]))
    put(a, p, point, distance, BESIDE, moving)


@entry
def _add(boxed: Any, found: Array) -> None:
    a = boxed.arrays
    a.reach[0] = MARGIN + a.shapes.sweep[int(found[0])] + a.shapes.sweep[int(found[1])]
    _meet(a, found)


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
        """Load or compile what :meth:`add` needs."""
        ready(_add, boxed, self._found)

    def add(self, near: Near, boxed: Box) -> None:
        """Add the contacts of all pairs that ``look`` left to ask for to ``near``, which is in ``boxed``."""
        found, result = self._found, self._result
        for i, j in near.ask[: near.asked[0]].tolist():
            for pose, s in zip(self._poses, (i, j), strict=True):
                pose.setRotation(near.shapes.R[s])
                pose.setTranslation(near.shapes.p[s])
            result.clear()
            found[0], found[1] = i, j
            one, two = self._cores[i], self._cores[j]
            coal.distance(one, self._poses[0], two, self._poses[1], self._request, result)
            found[2:5] = result.normal
            found[5:8] = result.getNearestPoint1()
            found[8:11] = result.getNearestPoint2()
            _add(boxed, found)
