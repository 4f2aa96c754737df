"""Detection of ground contact of the robot's bodies within a step, and of soles with the risers of a height field.

All shapes of a joint share one bounding box. While no box is near the ground, nothing else is checked. Points of a
foot's link in the plane of its sole are ignored, because the sole represents them. A sole rests on faces of the ground.
On a height field, points on its border are in contact with the triangles that are too steep for a face.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.dynamics.tree import Tree
from bipedsim.ground import (
    GroundArrays,
    height_above,
    highest_near,
    is_beside,
    is_riser,
    may_have_risers,
    triangle_at,
)
from bipedsim.model import Robot, Shape, Sole
from bipedsim.numerics import Array, Flags, Integers, act, kernel, point_velocity, zeros_of

FASTEST = 30.0
"""A body is near the ground if it could reach the ground within a step at this speed [m/s]."""
CLOSE = 0.01
"""Minimum of the distance [m] up to which a body is near the ground."""
OF_SOLE = 0.005
"""Points of the foot's link belong to the sole up to this distance from its plane [m]."""
SUNK = 0.03
"""A point deeper than this below a patch with a region [m] is not in contact with it."""
PASSES = 1e-12
"""Penetration [m] above which a body is in contact with the ground."""
SPACING = 0.02
"""Distance of the points on the border of a sole [m]; the size of a cell if this is larger."""
SURELY = 1e-9
"""Clearance of a bounding box [m] above which its body is free of the ground in spite of rounding."""


class BodyPoints(NamedTuple):
    """Store B bodies that may contact the ground, with P points; each point has a ball or a ring.

    On a height field, each sole is a body of its own.

    Attributes:
        joint: (B,) joint of each body. centre, half: (B, 3) bounding box of its points, in the joint frame [m].
        radius: (B,) of the sphere around the box [m].
        begin, end: (B,) range of its points.
        of_sole: (B,) whether the body is a sole. facing: (B, 3) its normal in the joint frame. mu: (B,) its friction.
        body: (P,) body of each point. point: (P, 3) position in the joint frame [m]. ball, ring: (P,) radii [m]. axis:
            (P, 3) axis of the ring, a unit vector.
        shape: (P,) index of its shape, -1 for points of a sole.
        leaf: (joints,) last velocity index of each joint, -1 for the world.
        reach: Largest distance of a box from the ground [m] at which it is near.
        plane: (G,) first patches of the planes that may be near any body in this part of a step. planes: (1,) their
            number.
        near: (1,) whether any body is near in this part of a step. close: (B,) whether each body is. low: (B,) distance
            of the box of each of these from the ground [m].
        twist: (6,) work array.
    """

    joint: Annotated[Integers, "B"]
    centre: Annotated[Array, "B", 3]
    half: Annotated[Array, "B", 3]
    radius: Annotated[Array, "B"]
    begin: Annotated[Integers, "B"]
    end: Annotated[Integers, "B"]
    of_sole: Annotated[Flags, "B"]
    facing: Annotated[Array, "B", 3]
    mu: Annotated[Array, "B"]
    body: Annotated[Integers, "P"]
    point: Annotated[Array, "P", 3]
    ball: Annotated[Array, "P"]
    ring: Annotated[Array, "P"]
    axis: Annotated[Array, "P", 3]
    shape: Annotated[Integers, "P"]
    leaf: Integers
    reach: float
    plane: Annotated[Integers, "G"]
    planes: Annotated[Integers, 1]
    near: Annotated[Flags, 1]
    close: Annotated[Flags, "B"]
    low: Annotated[Array, "B"]
    twist: Annotated[Array, 6]

    @classmethod
    def of_robot(cls, robot: Robot, shapes: Sequence[Shape], ground: GroundArrays, physics_dt: float) -> BodyPoints:
        """Make the bodies that have ``shapes`` and, for a height field, those that have soles."""
        model = robot.model
        leaf = np.array([-1] + [model.joints[j].idx_v + model.joints[j].nv - 1 for j in range(1, model.njoints)])
        kept = [
            _Point(shape.joint_id, -1, shape.points[k], i, shape.axis, shape.radius, shape.ring)
            for i, shape in enumerate(shapes)
            for k in range(len(shape.points))
            if _touches(robot, shape, k)
        ]
        if ground.field.heights.size:
            spacing = max(SPACING, min(ground.field.cell_x, ground.field.cell_y))
            kept += [point for s, sole in enumerate(robot.soles) for point in _border(s, sole, spacing)]
        kept.sort(key=lambda point: point[:2])
        owners = sorted({point[:2] for point in kept})
        bodies: BodyPoints = zeros_of(
            cls,
            {"B": len(owners), "P": len(kept), "G": ground.field.first},
            joint=np.array([joint for joint, _ in owners], dtype=np.int64),
            of_sole=np.array([s >= 0 for _, s in owners], dtype=np.bool_),
            leaf=leaf.astype(np.int64),
            reach=max(CLOSE, FASTEST * physics_dt),
        )
        low, high = np.full((len(owners), 3), np.inf), np.full((len(owners), 3), -np.inf)
        bodies.begin[:] = len(kept)
        for b, (_, s) in enumerate(owners):
            if s >= 0:
                bodies.facing[b] = robot.soles[s].placement_joint_sole.rotation[:, 2]
                bodies.mu[b] = robot.soles[s].friction_dynamic
        for p, point in enumerate(kept):
            b = owners.index(point[:2])
            bodies.body[p], bodies.shape[p] = b, point.shape
            bodies.point[p], bodies.axis[p] = point.position, point.axis
            bodies.ball[p], bodies.ring[p] = point.ball, point.ring
            bodies.begin[b], bodies.end[b] = min(bodies.begin[b], p), p + 1
            wide = point.ball + point.ring * np.sqrt(np.maximum(1.0 - point.axis**2, 0.0))
            low[b], high[b] = np.minimum(low[b], point.position - wide), np.maximum(high[b], point.position + wide)
        bodies.centre[:], bodies.half[:] = 0.5 * (low + high), 0.5 * (high - low)
        bodies.radius[:] = np.linalg.norm(bodies.half, axis=1)
        return bodies


class _Point(NamedTuple):
    """Point of a body, with the attributes of :class:`BodyPoints`."""

    joint: int
    sole: int
    position: Array
    shape: int = -1
    axis: Array = np.zeros(3)
    ball: float = 0.0
    ring: float = 0.0


def _border(s: int, sole: Sole, spacing: float) -> Iterator[_Point]:
    """Yield the vertices of sole ``s``, and points between them at most ``spacing`` [m] apart.

    There are none for points, lines and balls, which touch triangles of any slope, and for feet that may pass through
    the ground.
    """
    if sole.n_vertices < 3 or sole.passes_ground > 0.0:
        return
    for start, end in zip(sole.vertices_joint, np.roll(sole.vertices_joint, -1, axis=0), strict=True):
        parts = math.ceil(float(np.linalg.norm(end - start)) / spacing)
        for i in range(parts):
            yield _Point(sole.joint_id, s, start + i / parts * (end - start))


def _touches(robot: Robot, shape: Shape, k: int) -> bool:
    """Return whether point ``k`` of a shape may contact the ground, and no sole represents it."""
    for sole in robot.soles:
        if sole.joint_id == shape.joint_id:
            into = sole.placement_joint_sole.inverse()
            along = into.rotation @ shape.axis
            across = shape.ring * np.sqrt(max(1.0 - along[2] ** 2, 0.0))
            height = (into.rotation @ shape.points[k] + into.translation)[2] - shape.radius - across
            if abs(height + sole.radius) < OF_SOLE:
                return False
    return True


@kernel
def _plane_beside(ground: GroundArrays, g: int, x: float, y: float, z: float, reach: float) -> bool:
    """Return whether the plane of ``g`` has no patch within ``reach`` [m] of a world point."""
    return is_beside(ground.rotation[g], ground.point[g], ground.plane_circle[g], x, y, z, reach)


@kernel
def _list_planes(b: BodyPoints, t: Tree, ground: GroundArrays) -> None:
    """List the planes that have a part above or below the bounding sphere of all bodies."""
    if ground.field.first == 1:
        b.planes[0] = 1
        return
    b.planes[0] = 0
    if b.joint.shape[0] == 0:
        return
    x, y, z = act(t.poses[b.joint[0]], b.centre[0])
    far = 0.0
    for i in range(b.joint.shape[0]):
        ix, iy, iz = act(t.poses[b.joint[i]], b.centre[i])
        away = np.sqrt((ix - x) * (ix - x) + (iy - y) * (iy - y) + (iz - z) * (iz - z))
        far = max(far, away + b.radius[i])
    for g in range(ground.field.first):
        if ground.plane[g] == g and not _plane_beside(ground, g, x, y, z, far):
            b.plane[b.planes[0]] = g
            b.planes[0] += 1


@kernel
def anything_near(b: BodyPoints, t: Tree, ground: GroundArrays) -> bool:
    """Mark the bodies that are near a plane of the ground in ``b.close``; return whether there is any."""
    near = False
    _list_planes(b, t, ground)
    for i in range(b.joint.shape[0]):
        b.close[i] = False
        b.low[i] = b.reach
        pose = t.poses[b.joint[i]]
        c, e = b.centre[i], b.half[i]
        x, y, z = act(pose, c)
        if b.of_sole[i] and not _near_risers(b, i, pose, ground, x, y):
            continue
        for g in b.plane[: 0 if b.of_sole[i] else b.planes[0]]:
            n = ground.rotation[g, :, 2]
            height = n[0] * (x - ground.point[g, 0]) + n[1] * (y - ground.point[g, 1]) + n[2] * (z - ground.point[g, 2])
            if height - b.radius[i] >= b.reach or _plane_beside(ground, g, x, y, z, b.radius[i]):
                continue
            for a in range(3):
                height -= e[a] * abs(n[0] * pose[3 * a] + n[1] * pose[3 * a + 1] + n[2] * pose[3 * a + 2])
            if height < b.low[i]:
                b.low[i] = height
                b.close[i] = True
                near = True
        # The distance from a height field is at least that from its highest point nearby.
        e = b.half[i]
        low = z - e[0] * abs(pose[2]) - e[1] * abs(pose[5]) - e[2] * abs(pose[8])
        low -= highest_near(ground.field, x, y, b.radius[i] + b.reach)
        if low < b.low[i]:
            b.low[i] = low
            b.close[i] = True
            near = True
    b.near[0] = near
    return near


@kernel
def _near_risers(b: BodyPoints, i: int, pose: Array, ground: GroundArrays, x: float, y: float) -> bool:
    """Return whether the sole that is body ``i``, with its centre at (x, y), may touch a riser in this step."""
    f = b.facing[i]
    nz = pose[2] * f[0] + pose[5] * f[1] + pose[8] * f[2]
    return bool(may_have_risers(ground, x, y, b.radius[i] + b.reach, nz))


@kernel
def lowest_point(b: BodyPoints, p: int, pose: Array, n: Array) -> tuple[float, float, float]:
    """Return the lowest point along ``n`` of the ball or ring around point ``p``, in the world [m]."""
    x, y, z = act(pose, b.point[p])
    r = b.ball[p]
    x -= r * n[0]
    y -= r * n[1]
    z -= r * n[2]
    if b.ring[p] > 0.0:
        a = b.axis[p]
        ax = pose[0] * a[0] + pose[3] * a[1] + pose[6] * a[2]
        ay = pose[1] * a[0] + pose[4] * a[1] + pose[7] * a[2]
        az = pose[2] * a[0] + pose[5] * a[1] + pose[8] * a[2]
        along = ax * n[0] + ay * n[1] + az * n[2]
        ex, ey, ez = n[0] - along * ax, n[1] - along * ay, n[2] - along * az
        length = np.sqrt(ex * ex + ey * ey + ez * ez)
        if length > 1e-9:
            by = b.ring[p] / length
            x -= by * ex
            y -= by * ey
            z -= by * ez
    return x, y, z


@kernel
def patch_below(ground: GroundArrays, g: int, point: tuple[float, float, float], gap: float) -> int:
    """Return the last patch of the plane of ``g`` with ``point`` in its region, -1 if there is none.

    A triangle of a height field stands for itself; :func:`triangle_below` has found it under the point.
    """
    if g >= ground.field.first:
        return g if gap > -SUNK else -1
    patch = -1
    for i in range(g, ground.field.first):
        if ground.plane[i] != g:
            continue
        x = y = 0.0
        for a in range(3):
            x += ground.rotation[i, a, 0] * (point[a] - ground.point[i, a])
            y += ground.rotation[i, a, 1] * (point[a] - ground.point[i, a])
        inside = ground.counts[i] == 0 or gap > -SUNK
        for k in range(ground.counts[i]):
            start, end = ground.region[i, k], ground.region[i, k + 1 if k + 1 < ground.counts[i] else 0]
            inside = inside and (end[0] - start[0]) * (y - start[1]) - (end[1] - start[1]) * (x - start[0]) >= 0.0
        if inside:
            patch = i
    return patch


@kernel
def twist_of(b: BodyPoints, t: Tree, i: int, v: Array, x: Array) -> None:
    """Fill ``b.twist`` with the motion of body ``i`` at the world origin for the velocity v + x (nv,)."""
    ux = uy = uz = wx = wy = wz = 0.0
    leaf = b.leaf[b.joint[i]]
    for d in range(t.depth[leaf]):
        k = t.ancestors[leaf, d]
        speed, J = v[k] + x[k], t.J_rows[k]
        ux, uy, uz = ux + J[0] * speed, uy + J[1] * speed, uz + J[2] * speed
        wx, wy, wz = wx + J[3] * speed, wy + J[4] * speed, wz + J[5] * speed
    b.twist[0], b.twist[1], b.twist[2], b.twist[3], b.twist[4], b.twist[5] = ux, uy, uz, wx, wy, wz


@kernel
def _fastest_point(b: BodyPoints, i: int, pose: Array) -> float:
    """Return an upper bound of the speed of the points of body ``i`` under its twist [m/s]."""
    ux, uy, uz = point_velocity(b.twist, act(pose, b.centre[i]))
    wx, wy, wz = b.twist[3], b.twist[4], b.twist[5]
    return np.sqrt(ux * ux + uy * uy + uz * uz) + np.sqrt(wx * wx + wy * wy + wz * wz) * b.radius[i]


@kernel
def touches_ground(b: BodyPoints, t: Tree, ground: GroundArrays, v: Array, span: float) -> bool:
    """Return whether a near body would be in the ground after ``span`` [s] with velocity v + t.x.

    Args:
        b, t, ground: See :class:`BodyPoints`, :class:`Tree` (the change of v in ``x``) and :class:`GroundArrays`.
        v: (nv,) velocity before the step.
        span: Duration of this part of the step [s].
    """
    for i in range(b.joint.shape[0]):
        if not b.close[i]:
            continue
        pose = t.poses[b.joint[i]]
        twist_of(b, t, i, v, t.x)
        if b.low[i] - span * _fastest_point(b, i, pose) > SURELY:
            continue
        cx, cy, cz = act(pose, b.centre[i])
        for g in b.plane[: 0 if b.of_sole[i] else b.planes[0]]:
            if _plane_beside(ground, g, cx, cy, cz, b.radius[i]):
                continue
            n = ground.rotation[g, :, 2]
            for p in range(b.begin[i], b.end[i]):
                x, y, z = lowest_point(b, p, pose, n)
                gap = n[0] * (x - ground.point[g, 0]) + n[1] * (y - ground.point[g, 1])
                gap += n[2] * (z - ground.point[g, 2])
                u = point_velocity(b.twist, (x, y, z))
                passes = gap + span * (n[0] * u[0] + n[1] * u[1] + n[2] * u[2]) < -PASSES
                if passes and patch_below(ground, g, (x, y, z), gap) >= 0:
                    return True
        if ground.field.heights.shape[0] == 0:
            continue
        for p in range(b.begin[i], b.end[i]):
            g = triangle_below(b, p, pose, ground)
            if g < 0:
                continue
            n = ground.rotation[g, :, 2]
            x, y, z = lowest_point(b, p, pose, n)
            gap = height_above(ground, g, x, y, z)
            u = point_velocity(b.twist, (x, y, z))
            if gap > -SUNK and gap + span * (n[0] * u[0] + n[1] * u[1] + n[2] * u[2]) < -PASSES:
                return True
    return False


@kernel
def triangle_below(b: BodyPoints, p: int, pose: Array, ground: GroundArrays) -> int:
    """Return the triangle of the height field under the lowest point of point ``p`` of a body, -1 for none.

    For a point of a sole, it is -1 unless the triangle is a riser.
    """
    x, y, _ = act(pose, b.point[p])
    g = triangle_at(ground.field, x, y)
    if b.shape[p] < 0:
        f = b.facing[b.body[p]]
        nx = pose[0] * f[0] + pose[3] * f[1] + pose[6] * f[2]
        ny = pose[1] * f[0] + pose[4] * f[1] + pose[7] * f[2]
        nz = pose[2] * f[0] + pose[5] * f[1] + pose[8] * f[2]
        return g if g >= 0 and is_riser(ground, g, nx, ny, nz) else -1
    if g >= 0 and b.ball[p] + b.ring[p] > 0.0:
        x, y, _ = lowest_point(b, p, pose, ground.rotation[g, :, 2])
        g = triangle_at(ground.field, x, y)
    return g
