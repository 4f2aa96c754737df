"""Detection of joint limits, and of contacts of bodies with the ground and with each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bipedsim.dynamics import (
    BodyPoints,
    Pairs,
    Stops,
    Tree,
    approach,
    closest,
    lowest_point,
    patch_below,
    triangle_below,
    twist_of,
)
from bipedsim.ground import GroundArrays
from bipedsim.numerics import Array, cross, entry, kernel, point_velocity
from bipedsim.touch.contacts import WORLD, Contacts, add, clear, may_touch
from bipedsim.touch.coupling import TouchCoupling, fill_rows, store_drive
from bipedsim.touch.feet import begin_feet

STOPS, PAIRS = 1 << 41, 1 << 42
"""First keys of joint limits and of pairs of bodies."""
ROUNDING = 1e-9
"""Margin [m, m/s] for the rounding of gap and speed."""
PER_POINT = 3
"""Number of contacts of a ring on a plane, at equal angles."""


class RobotContacts(NamedTuple):
    """All inputs of the search for contacts of a robot, without objects.

    Attributes:
        bodies, pairs, stops, tree, ground: Arrays of the robot's step, and the ground.
        contacts, coupling: The contacts that the search fills.
        mu, restitution: Coefficients of the bodies.
        nothing: (nv,) zeros.
        axes: (3, 3) work array.
    """

    bodies: BodyPoints
    pairs: Pairs
    stops: Stops
    tree: Tree
    ground: GroundArrays
    contacts: Contacts
    coupling: TouchCoupling
    mu: float
    restitution: float
    nothing: Array
    axes: Array


@entry
def find_contacts(boxed: Any, q: Array, v: Array, complete: bool) -> bool:
    """See :func:`find_all`.

    Returns:
        If these are ``complete``, without objects, whether any contact may rebound; see :func:`fill_rows`.
    """
    s = boxed.arrays
    find_all(s, q, v)
    return fill_rows(s.coupling, v) if complete else False


@kernel
def find_all(s: Any, q: Array, v: Array) -> None:
    """Find the contacts of a step of the robot from (q, v): bodies, joint limits, and the feet as points."""
    clear(s.contacts)
    store_drive(s.coupling)
    if s.coupling.points[0]:
        begin_feet(s.coupling.feet)
    _find_on_ground(s, v)
    _find_pairs(s, v)
    _find_stops(s, q, v)


@kernel
def _find_on_ground(s: Any, v: Array) -> None:
    """Add the points of bodies that may touch the ground in a step that begins with ``v`` (nv,)."""
    b, t, ground = s.bodies, s.tree, s.ground
    for i in range(b.joint.shape[0]):
        if not b.close[i]:
            continue
        twist_of(b, t, i, v, s.nothing)
        pose = t.poses[b.joint[i]]
        for g in b.plane[: 0 if b.of_sole[i] else b.planes[0]]:
            # Gap and speed of a point along the normal are linear in its coordinates on the body.
            n, w = ground.rotation[g, :, 2], b.twist[3:6]
            nx, ny, nz = _to_body(pose, n[0], n[1], n[2])
            gap = n[0] * (pose[9] - ground.point[g, 0]) + n[1] * (pose[10] - ground.point[g, 1])
            gap += n[2] * (pose[11] - ground.point[g, 2])
            m = cross(n, w)
            mx, my, mz = _to_body(pose, m[0], m[1], m[2])
            speed = n[0] * b.twist[0] + n[1] * b.twist[1] + n[2] * b.twist[2]
            speed += m[0] * pose[9] + m[1] * pose[10] + m[2] * pose[11]
            turn = np.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
            for p in range(b.begin[i], b.end[i]):
                q, ring = b.point[p], b.ring[p]
                lowest = gap + nx * q[0] + ny * q[1] + nz * q[2] - b.ball[p] - ring - ROUNDING
                fastest = speed + mx * q[0] + my * q[1] + mz * q[2] - ring * turn - ROUNDING
                if may_touch(lowest, fastest, t.h):
                    _find_on_plane(b, t, ground, s.contacts, p, g, s.mu, s.restitution)
        if ground.field.heights.shape[0] > 0:
            for p in range(b.begin[i], b.end[i]):
                g = triangle_below(b, p, pose, ground)
                if g >= 0 and b.of_sole[i]:
                    _find_on_plane(b, t, ground, s.contacts, p, g, b.mu[i], 0.0)
                elif g >= 0:
                    _find_on_plane(b, t, ground, s.contacts, p, g, s.mu, s.restitution)


@kernel
def _to_body(pose: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return a direction in the world in the axes of a body."""
    return (
        pose[0] * x + pose[1] * y + pose[2] * z,
        pose[3] * x + pose[4] * y + pose[5] * z,
        pose[6] * x + pose[7] * y + pose[8] * z,
    )


@kernel
def _find_stops(s: Any, q: Array, v: Array) -> None:
    """Add and mark the limits that joints at ``q`` (nq,) may reach with ``v`` (nv,)."""
    o, t = s.stops, s.tree
    o.near[0] = False
    for j in range(o.idx_q.shape[0]):
        angle, speed = q[o.idx_q[j]], v[o.idx_v[j]]
        above, below = o.upper[j] - angle, angle - o.lower[j]
        side = 1 if above < below else -1
        gap = above if side > 0 else below
        o.held[j] = 0
        o.impulse[j] = 0.0
        o.asked[j] = False
        if gap <= o.reach + 2.0 * t.h * max(side * speed, 0.0):
            _add_stop(s, j, side, gap)


@entry
def add_passed(boxed: Any, q: Array) -> None:
    """See :func:`add_passed_limits`."""
    add_passed_limits(boxed.arrays, q)


@kernel
def add_passed_limits(s: Any, q: Array) -> None:
    """Add the active limits of joints at ``q`` (nq,) that are not yet in the contacts."""
    o = s.stops
    for j in range(o.idx_q.shape[0]):
        if o.held[j] != 0 and not o.asked[j]:
            angle = q[o.idx_q[j]]
            _add_stop(s, j, o.held[j], o.upper[j] - angle if o.held[j] > 0 else angle - o.lower[j])


@kernel
def _add_stop(s: Any, j: int, side: int, gap: float) -> None:
    """Add the limit of joint ``j`` on one side (1 upper, -1 lower)."""
    o = s.stops
    o.near[0] = o.asked[j] = True
    o.side[j] = side
    key = STOPS + 2 * j + (side > 0)
    axes = s.ground.rotation[0]
    bodies = s.bodies.leaf.shape[0] + j, WORLD
    add(s.contacts, bodies, s.tree.gravity, axes, gap, 0.0, o.restitution, key)


@kernel
def _find_pairs(s: Any, v: Array) -> None:
    """Add the pairs of bodies that may touch in a step that begins with ``v`` (nv,)."""
    pairs, t, axes = s.pairs, s.tree, s.axes
    for p in range(pairs.near.shape[0]):
        gap, speed = approach(pairs, t, s.bodies.leaf, p, v, s.nothing)
        if not pairs.near[p] or not may_touch(gap, speed, t.h):
            continue
        on_a, on_b, _ = closest(pairs, t, p)
        n = (on_a[0] - on_b[0], on_a[1] - on_b[1], on_a[2] - on_b[2])
        length = np.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2])
        if length < 1e-9:
            continue
        n = (n[0] / length, n[1] / length, n[2] / length)
        # The first tangent is perpendicular to the world axis with the smallest component of n.
        x, y, z = abs(n[0]), abs(n[1]), abs(n[2])
        least_aligned = (1.0, 0.0, 0.0) if x <= y and x <= z else (0.0, 1.0, 0.0) if y <= z else (0.0, 0.0, 1.0)
        e = cross(least_aligned, n)
        size = np.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
        e = (e[0] / size, e[1] / size, e[2] / size)
        f = cross(n, e)
        half = pairs.radius[p, 1] + 0.5 * gap
        for a in range(3):
            axes[a, 0], axes[a, 1], axes[a, 2] = e[a], f[a], n[a]
        point = (on_b[0] + half * n[0], on_b[1] + half * n[1], on_b[2] + half * n[2])
        bodies = pairs.joint[p, 0], pairs.joint[p, 1]
        add(s.contacts, bodies, point, axes, gap, s.mu, s.restitution, PAIRS + p)


@kernel
def _find_on_plane(
    b: BodyPoints, t: Tree, ground: GroundArrays, c: Contacts, p: int, g: int, mu: float, restitution: float
) -> None:
    """Add point ``p`` of a body on the plane of patch ``g``."""
    joint = b.joint[b.body[p]]
    pose, axes = t.poses[joint], ground.rotation[g]
    n = axes[:, 2]
    for index in range(PER_POINT if b.ring[p] > 0.0 else 1):
        point = lowest_point(b, p, pose, n) if index == 0 else _on_ring(b, p, pose, n, index)
        gap = 0.0
        for a in range(3):
            gap += n[a] * (point[a] - ground.point[g, a])
        u = point_velocity(b.twist, point)
        speed = n[0] * u[0] + n[1] * u[1] + n[2] * u[2]
        if not may_touch(gap, speed, t.h):
            continue
        patch = patch_below(ground, g, point, gap)
        if patch >= 0:
            friction = mu if np.isnan(ground.mu_dynamic[patch]) else ground.mu_dynamic[patch]
            key = (g * b.point.shape[0] + p) * PER_POINT + index
            add(c, (joint, WORLD), point, axes, gap, friction, restitution, key)


@kernel
def _on_ring(b: BodyPoints, p: int, pose: Array, n: Array, index: int) -> tuple[float, float, float]:
    """Return the point of a ring that is one or two thirds of its circumference from the lowest one."""
    a = b.axis[p]
    axis = (
        pose[0] * a[0] + pose[3] * a[1] + pose[6] * a[2],
        pose[1] * a[0] + pose[4] * a[1] + pose[7] * a[2],
        pose[2] * a[0] + pose[5] * a[1] + pose[8] * a[2],
    )
    x, y, z = lowest_point(b, p, pose, n)
    q = b.point[p]
    cx = pose[9] + pose[0] * q[0] + pose[3] * q[1] + pose[6] * q[2] - b.ball[p] * n[0]
    cy = pose[10] + pose[1] * q[0] + pose[4] * q[1] + pose[7] * q[2] - b.ball[p] * n[1]
    cz = pose[11] + pose[2] * q[0] + pose[5] * q[1] + pose[8] * q[2] - b.ball[p] * n[2]
    e = (x - cx, y - cy, z - cz)
    f = cross(axis, e)
    side = 0.8660254037844386 if index == 1 else -0.8660254037844386
    return cx - 0.5 * e[0] + side * f[0], cy - 0.5 * e[1] + side * f[1], cz - 0.5 * e[2] + side * f[2]
