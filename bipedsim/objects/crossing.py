"""Shapes that meet at a single point: crossing edges, a rim on a rounded shape, a corner on a side.

The nearest points of curved shapes are known to some micrometres only, and their normal less well. This module
therefore replaces each shape by its local feature: a corner, a straight edge, the axis of a side, or a rim. Newton's
method computes the two nearest points of these features. The same equations give the velocities of the points and of
the normal. With unit tangents t1, t2 and d = x1 - x2, both d . t1 and d . t2 remain zero.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics import Array, Integers, assign, cross, dot, kernel, minus, mul_t
from bipedsim.objects.bodies import Bodies
from bipedsim.objects.shapes import BALL, CYLINDER, ObjectShapes, corner

CORNER, EDGE, RIM = range(3)
"""Kinds of local features of a shape."""
SLOPES = 1e-2, 1e-6
"""Slopes against the contact plane below which an edge counts as parallel to it; the first that gives a point is used.
"""
ROUNDS, NEAR = 10, 1e-14
"""Maximum number of iterations, and convergence tolerance as a fraction of the bounding radii of the shapes."""
PARALLEL = 1e-6
"""Squared sine of the angle between two tangents below which they count as parallel."""
WORSE = 1e-9
"""Accepted loss of distance between the shapes [m], compared with the initial point."""


class Crossing(NamedTuple):
    """Local features of two shapes where they meet, by side, and their motion.

    Attributes:
        kind: (2,) ``CORNER``, ``EDGE`` or ``RIM``.
        start: (2, 3) corner, end of an edge, or centre of a rim [m].
        along: (2, 3) unit vector of an edge, or of the axis of a rim.
        length: (2,) length of an edge, or radius of a rim [m].
        round: (2,) rounding radius around the feature [m].
        at: (2, 3) nearest points [m].
        tangent: (2, 3) unit tangents of the features.
        curve: (2, 3) derivatives of the tangents along the features [1/m].
        way: (2,) displacements [m], or velocities [m/s], of the points along the tangents.
        normal: (3,) unit normal from the second shape to the first.
        rate: (3,) its rate of change [1/s].
        moving: (3,) velocity of the midpoint [m/s].
    """

    kind: Annotated[Integers, 2]
    start: Annotated[Array, 2, 3]
    along: Annotated[Array, 2, 3]
    length: Annotated[Array, 2]
    round: Annotated[Array, 2]
    at: Annotated[Array, 2, 3]
    tangent: Annotated[Array, 2, 3]
    curve: Annotated[Array, 2, 3]
    way: Annotated[Array, 2]
    normal: Annotated[Array, 3]
    rate: Annotated[Array, 3]
    moving: Annotated[Array, 3]


@kernel
def _plus(a, s: float, b) -> tuple[float, float, float]:
    """Return a + s b."""
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


@kernel
def _fill_feature(x: Crossing, side: int, sh: ObjectShapes, i: int, d, point, slope: float) -> None:
    """Fill the feature of shape ``i`` that is farthest along ``d`` (3,), and its point nearest to ``point`` (3,)."""
    x.kind[side] = CORNER
    x.round[side] = 0.0
    x.length[side] = 0.0
    R = sh.R[i]
    if sh.kind[i] == BALL:
        assign(x.start[side], sh.p[i])
        x.round[side] = sh.size[i, 0]
    elif sh.kind[i] == CYLINDER:
        axis = (R[0, 2], R[1, 2], R[2, 2])
        across = dot(axis, d)
        half = sh.size[i, 1]
        assign(x.along[side], axis)
        if abs(across) <= slope:
            x.kind[side] = EDGE
            x.round[side] = sh.size[i, 0]
            x.length[side] = 2.0 * half
            assign(x.start[side], _plus(sh.p[i], -half, axis))
        else:
            x.kind[side] = RIM
            x.length[side] = sh.size[i, 0]
            assign(x.start[side], _plus(sh.p[i], half if across > 0.0 else -half, axis))
    else:
        local = mul_t(R, d)
        best = second = -np.inf
        one = two = 0
        for k in range(sh.n_vertices[i]):
            far = dot(sh.vertices[i, k], local)
            if far > best:
                second, two = best, one
                best, one = far, k
            elif far > second:
                second, two = far, k
        # The two farthest corners of a convex body share an edge.
        first = corner(sh, i, one)
        edge = minus(corner(sh, i, two), first)
        length = np.sqrt(dot(edge, edge))
        assign(x.start[side], first)
        if best - second <= slope * length:
            x.kind[side] = EDGE
            x.length[side] = length
            assign(x.along[side], (edge[0] / length, edge[1] / length, edge[2] / length))
    start, along = x.start[side], x.along[side]
    if x.kind[side] == CORNER:
        assign(x.at[side], start)
        assign(x.tangent[side], (0.0, 0.0, 0.0))
        assign(x.curve[side], (0.0, 0.0, 0.0))
        return
    r = minus(point, start)
    s = dot(r, along)
    if x.kind[side] == EDGE:
        assign(x.at[side], _plus(start, s, along))
        assign(x.tangent[side], along)
        assign(x.curve[side], (0.0, 0.0, 0.0))
        return
    r = _plus(r, -s, along)
    out = np.sqrt(dot(r, r))
    if out < 1e-6 * x.length[side]:
        # Straight above the centre all points of the rim are equally near, so the choice is arbitrary.
        r = (R[0, 0], R[1, 0], R[2, 0])
        out = 1.0
    _put_on_rim(x, side, (r[0] / out, r[1] / out, r[2] / out))


@kernel
def _put_on_rim(x: Crossing, side: int, outward) -> None:
    """Set the point of a rim to the direction ``outward`` (3,), a unit vector from its centre."""
    radius = x.length[side]
    assign(x.at[side], _plus(x.start[side], radius, outward))
    assign(x.tangent[side], cross(x.along[side], outward))
    assign(x.curve[side], (-outward[0] / radius, -outward[1] / radius, -outward[2] / radius))


@kernel
def _move_along(x: Crossing, side: int, s: float) -> None:
    """Move the point of one side along its curve by ``s`` [m]."""
    if x.kind[side] == EDGE:
        assign(x.at[side], _plus(x.at[side], s, x.along[side]))
    elif x.kind[side] == RIM:
        radius = x.length[side]
        c, o = np.cos(s / radius), np.sin(s / radius)
        u, t = x.curve[side], x.tangent[side]
        _put_on_rim(x, side, (o * t[0] - c * radius * u[0], o * t[1] - c * radius * u[1], o * t[2] - c * radius * u[2]))


@kernel
def _solve_displacements(x: Crossing, d, one: float, two: float) -> bool:
    """Fill the displacements along both tangents that change d . t1 by ``one`` and d . t2 by ``two``.

    Returns:
        Whether the tangents are not parallel.
    """
    curved_1 = 1.0 + dot(d, x.curve[0]) if x.kind[0] != CORNER else 1.0
    curved_2 = dot(d, x.curve[1]) - 1.0 if x.kind[1] != CORNER else -1.0
    both = dot(x.tangent[0], x.tangent[1])
    # The tangent of a corner is zero, and so is its term in these equations.
    determinant = curved_1 * curved_2 + both * both
    if not determinant < -PARALLEL:
        return False
    x.way[0] = (one * curved_2 + both * two) / determinant
    x.way[1] = (curved_1 * two - both * one) / determinant
    return True


@kernel
def cross_shapes(x: Crossing, sh: ObjectShapes, i: int, j: int, n, one, two, slope: float) -> bool:
    """Compute the nearest points of shapes ``i`` and ``j``, and the normal from ``j`` to ``i``.

    Args:
        x: Output.
        sh: All shapes.
        i, j: Indices of the shapes.
        n: (3,) approximate normal.
        one, two: (3,) approximate points [m].
        slope: Slope below which an edge counts as parallel to the contact plane.

    Returns:
        Whether the shapes meet at one point.
    """
    _fill_feature(x, 0, sh, i, (-n[0], -n[1], -n[2]), one, slope)
    _fill_feature(x, 1, sh, j, n, two, slope)
    small = NEAR * (sh.bound[i] + sh.bound[j])
    for _ in range(ROUNDS):
        d = minus(x.at[0], x.at[1])
        if not _solve_displacements(x, d, -dot(d, x.tangent[0]), -dot(d, x.tangent[1])):
            return False
        _move_along(x, 0, x.way[0])
        _move_along(x, 1, x.way[1])
        if abs(x.way[0]) + abs(x.way[1]) <= small:
            break
    for side in range(2):
        if x.kind[side] == EDGE:
            s = dot(minus(x.at[side], x.start[side]), x.along[side])
            if s < 0.0 or s > x.length[side]:
                return False
    d = minus(x.at[0], x.at[1])
    sharp = x.round[0] == 0.0 and x.round[1] == 0.0
    across = d
    if x.kind[0] != CORNER and x.kind[1] != CORNER:
        across = cross(x.tangent[0], x.tangent[1])
    elif sharp:
        # A corner at an edge, or at another corner, has no normal.
        return False
    length = np.sqrt(dot(across, across))
    if not length > small:
        return False
    if dot(across, n) < 0.0:
        length = -length
    assign(x.normal, (across[0] / length, across[1] / length, across[2] / length))
    return True


@kernel
def distance(x: Crossing) -> float:
    """Return the distance of the two shapes along the normal [m]."""
    return dot(minus(x.at[0], x.at[1]), x.normal) - x.round[0] - x.round[1]


@kernel
def _velocity(b: Bodies, i: int, point) -> tuple[float, float, float]:
    turning = cross(b.w[i], minus(point, b.position[i]))
    return _plus(b.v[i], 1.0, turning)


@kernel
def move_crossing(x: Crossing, b: Bodies, first: int, second: int, fastest: float) -> bool:
    """Compute the motion of the normal and of the midpoint of the nearest points from the motion of both bodies.

    Returns:
        Whether the motion is defined, and the normal rotates at most at ``fastest`` [rad/s].
    """
    d = minus(x.at[0], x.at[1])
    u = _velocity(b, first, x.at[0])
    v = _velocity(b, second, x.at[1])
    turned_1, turned_2 = cross(b.w[first], x.tangent[0]), cross(b.w[second], x.tangent[1])
    apart = minus(u, v)
    one = -dot(apart, x.tangent[0]) - dot(d, turned_1)
    two = -dot(apart, x.tangent[1]) - dot(d, turned_2)
    if not _solve_displacements(x, d, one, two):
        return False
    u = _plus(u, x.way[0], x.tangent[0])
    v = _plus(v, x.way[1], x.tangent[1])
    if x.kind[0] != CORNER and x.kind[1] != CORNER:
        turned_1 = _plus(turned_1, x.way[0], x.curve[0])
        turned_2 = _plus(turned_2, x.way[1], x.curve[1])
        across = cross(x.tangent[0], x.tangent[1])
        change = _plus(cross(turned_1, x.tangent[1]), 1.0, cross(x.tangent[0], turned_2))
    else:
        across = d
        change = minus(u, v)
    length = dot(across, x.normal)
    assign(x.rate, _plus(change, -dot(change, x.normal), x.normal))
    for k in range(3):
        x.rate[k] /= length
    out = x.round[0] + 0.5 * distance(x)
    assign(x.moving, _plus(u, -out, x.rate))
    return dot(x.rate, x.rate) <= fastest * fastest
