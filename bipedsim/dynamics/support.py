"""Find the ground under each foot: its plane, the polygon that can carry load, and the friction."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.dynamics.projection import Projection
from bipedsim.ground import (
    GroundArrays,
    PlacedSole,
    SupportWork,
    bridge,
    choose_patch,
    complete_axes,
    face_axes,
    make_work,
    may_bridge,
    patch_friction,
    polygon_capacity,
    same_polygon,
    still_lies_on,
    support_polygon,
)
from bipedsim.model import Sole, padded_vertices
from bipedsim.numerics import Array, Flags, Integers, copy_points, kernel, zeros_of

UNCHANGED, NEW_POLYGON, NEW_PLANE = 0, 1, 2

LIFTED = 1e-5
"""Height [m] above which a foot has left the ground; a foot that rotates about its point rises less in a step."""


class Foothold(NamedTuple):
    """Store the ground and the support of K feet on it, with at most M vertices in a support polygon.

    Attributes:
        ground: Patches of the ground. work, spare: work arrays, the last of size (M, 2).
        endless: Whether the ground is one infinite plane, so that no look-up is needed after the first step.
        soles, n_soles: (K, N, 2) sole polygons in the sole frame [m], (K,) number of vertices.
        mu_static, mu_dynamic: (K,) friction of the soles.
        passes: Whether any foot may pass through the ground. lead: (K,) distance [m] by which such a foot must be in
            front to touch down, 0 for all others. passing: (K,) whether it ignores the ground now
            (:func:`find_passing`).
        width: (K,) largest distance between two vertices of each sole [m].
        patch: (K,) patch under each foot, -1 without ground. second: (K,) a patch of another plane for a foot that is
            supported by several planes (:mod:`bipedsim.ground.bridging`), else -1.
        twist: (6,) velocity of the origin [m/s] and angular velocity [rad/s] of one sole, in its axes: work array.
        axes, origin: (K, 3, 3) axes of the ground under each foot as columns, (K, 3) a point of it, in the world.
        sole_axes, sole_origin: (K, 3, 3), (K, 3) pose of each sole in the world.
    """

    ground: GroundArrays
    work: SupportWork
    spare: Annotated[Array, "M", 2]
    endless: bool
    soles: Array
    n_soles: Integers
    mu_static: Array
    mu_dynamic: Array
    passes: bool
    lead: Array
    passing: Annotated[Flags, "K"]
    width: Array
    patch: Integers
    second: Integers
    twist: Annotated[Array, 6]
    axes: Array
    origin: Array
    sole_axes: Annotated[Array, "K", 3, 3]
    sole_origin: Annotated[Array, "K", 3]

    @classmethod
    def of_soles(cls, soles: tuple[Sole, ...], ground: GroundArrays) -> Foothold:
        """Make the footholds of these soles, without ground under them yet."""
        vertices, counts = padded_vertices(soles)
        feet, widest = vertices.shape[:2]
        return zeros_of(
            cls,
            {"K": feet, "M": polygon_capacity(ground, widest)},
            ground=ground,
            work=make_work(ground, widest, max((_width(sole.vertices) for sole in soles), default=0.0)),
            endless=len(ground.counts) == 1 and ground.counts[0] == 0,
            soles=vertices,
            n_soles=counts,
            mu_static=np.array([sole.friction_static for sole in soles]),
            mu_dynamic=np.array([sole.friction_dynamic for sole in soles]),
            passes=any(sole.passes_ground > 0.0 for sole in soles),
            lead=np.array([sole.passes_ground for sole in soles]),
            width=np.array([_width(sole.vertices) for sole in soles]),
            patch=np.full(feet, -1, dtype=np.int64),
            second=np.full(feet, -1, dtype=np.int64),
            axes=np.tile(ground.rotation[0], (feet, 1, 1)),
            origin=np.tile(ground.point[0], (feet, 1)),
        )


def _width(vertices: Array) -> float:
    return float(np.linalg.norm(vertices[:, None] - vertices[None], axis=2).max())


@kernel
def meet_ground(k: int, f: Foothold, p: Projection) -> int:
    """Return the patch that foot ``k`` meets first, -1 if there is none."""
    if f.passing[k]:
        return -1
    R, n = f.sole_axes[k], f.n_soles[k]
    return choose_patch(R, f.sole_origin[k], f.soles[k], n, p.radius[k], f.patch[k], f.ground, f.work)


@kernel
def may_lie_on_several(k: int, patch: int, f: Foothold) -> bool:
    """Return whether foot ``k``, which meets ``patch`` first, may also be in contact with another plane."""
    if patch < 0:
        return False
    if f.n_soles[k] < 3:
        return f.work.rounded[0]
    return f.second[k] >= 0 or may_bridge(f.sole_axes[k], patch, f.width[k], f.ground, f.work)


@kernel
def find_foothold(k: int, patch: int, several: bool, h: float, f: Foothold, p: Projection) -> None:
    """Fill plane, polygon, edges and friction of foot ``k`` if they changed.

    Args:
        patch: Patch that the foot meets first. several: whether to consider other planes; this needs ``f.twist``.
        h: Step [s].
        k, f, p: Foot, :class:`Foothold`, :class:`Projection`.
    """
    p.changed[k] = UNCHANGED
    before, before_second = f.patch[k], f.second[k]
    R, point, n = f.sole_axes[k], f.sole_origin[k], f.n_soles[k]
    second, count = -1, 0
    if several and n < 3:
        second, count = patch, copy_points(f.soles[k], n, f.spare)
    elif several:
        f.work.width[0] = f.width[k]
        # The growth of a gap in the step is affine in (x, y) of the sole.
        f.work.ahead[0] = -h * f.twist[4]
        f.work.ahead[1] = h * f.twist[3]
        f.work.ahead[2] = h * f.twist[2]
        normal = f.axes[k, :, 2]
        sole = PlacedSole(R, point, f.soles[k], n)
        on, second, count = bridge(sole, before, before_second, normal, f.ground, f.work, f.spare)
        patch = on if on >= 0 else patch
    f.patch[k], f.second[k] = patch, second
    if second < 0:
        count = support_polygon(R, point, f.soles[k], n, patch, f.ground, f.work, f.spare)
    p.mu_static[k], p.mu_dynamic[k] = patch_friction(f.mu_static[k], f.mu_dynamic[k], patch, f.ground)
    if second >= 0 and n < 3:
        # The normal points from the edge of the height field to the centre of the ball, so it changes continuously.
        p.changed[k] = NEW_PLANE
        _face_ball(k, patch, f)
    elif second >= 0:
        if before_second < 0 or not still_lies_on(R, point, f.axes[k], f.origin[k], f.work):
            p.changed[k] = NEW_PLANE
            face_axes(R, point, f.ground.rotation[patch, :, 0], f.work.face, f.axes[k], f.origin[k])
    elif patch >= 0:
        plane = f.ground.plane[patch]
        if before < 0 or before_second >= 0 or f.ground.plane[before] != plane:
            p.changed[k] = NEW_PLANE
            for a in range(3):
                f.origin[k, a] = f.ground.point[plane, a]
                for b in range(3):
                    f.axes[k, a, b] = f.ground.rotation[plane, a, b]
    if not same_polygon(f.spare, count, p.vertices[k], p.n_vertices[k]):
        p.changed[k] = max(p.changed[k], NEW_POLYGON)
    if p.changed[k] == UNCHANGED:
        return
    p.n_previous[k] = p.n_vertices[k]
    for i in range(p.n_vertices[k]):
        p.previous[k, i, 0] = p.vertices[k, i, 0]
        p.previous[k, i, 1] = p.vertices[k, i, 1]
    p.n_vertices[k] = count
    for i in range(count):
        p.vertices[k, i, 0] = f.spare[i, 0]
        p.vertices[k, i, 1] = f.spare[i, 1]
    fill_edges(k, p)


@kernel
def _face_ball(k: int, patch: int, f: Foothold) -> None:
    """Fill the axes of the plane under a ball that touches an edge of the height field."""
    R, vertex, axes = f.sole_axes[k], f.soles[k, 0], f.axes[k]
    size = 0.0
    for a in range(3):
        axes[a, 2] = f.sole_origin[k, a] + R[a, 0] * vertex[0] + R[a, 1] * vertex[1] - f.work.touched[a]
        size += axes[a, 2] * axes[a, 2]
        f.origin[k, a] = f.work.touched[a]
    for a in range(3):
        axes[a, 2] /= np.sqrt(size)
    complete_axes(f.ground.rotation[patch, :, 0], axes)


@kernel
def find_passing(f: Foothold, radius: Array) -> None:
    """Mark the feet that ignore the ground now; swing feet on straight legs would otherwise stub their toes.

    A foot with ``Sole.passes_ground`` starts to ignore the ground when it lifts off behind or next to the other feet.
    It may then move below the ground and back up. It meets the ground again when it is above it and far enough in front
    of all other feet. A foot on the ground stays there, wherever the other feet move.

    Args:
        f: See :class:`Foothold`.
        radius: (K,) radius of the ball feet [m].
    """
    feet = f.patch.shape[0]
    for k in range(feet):
        if f.lead[k] == 0.0:
            continue
        n = f.axes[k, :, 2]
        R = f.sole_axes[k]
        height = np.inf
        for i in range(f.n_soles[k]):
            z = -radius[k]
            for a in range(3):
                corner = f.sole_origin[k, a] + R[a, 0] * f.soles[k, i, 0] + R[a, 1] * f.soles[k, i, 1]
                z += n[a] * (corner - f.origin[k, a])
            height = min(height, z)
        tilt = R[0, 0] * n[0] + R[1, 0] * n[1] + R[2, 0] * n[2]
        level = np.sqrt(max(1.0 - tilt * tilt, 1e-300))
        lead = np.inf
        for j in range(feet):
            along = 0.0
            for a in range(3):
                along += (R[a, 0] - tilt * n[a]) / level * (f.sole_origin[k, a] - f.sole_origin[j, a])
            lead = min(lead, along if j != k else np.inf)
        in_front = lead >= f.lead[k]
        if f.passing[k]:
            f.passing[k] = height < 0.0 or not in_front
        else:
            # At the start of a run, a foot that is below the ground counts as passing.
            sunk = f.patch[k] < 0 and height < -LIFTED
            f.passing[k] = sunk or (height > LIFTED and not in_front)


@kernel
def fill_edges(k: int, p: Projection) -> None:
    """Fill the edge lines of the polygon of foot ``k``."""
    n = p.n_vertices[k]
    for i in range(n):
        j = i + 1 if i + 1 < n else 0
        x = p.vertices[k, i, 0]
        y = p.vertices[k, i, 1]
        ex = p.vertices[k, j, 0] - x
        ey = p.vertices[k, j, 1] - y
        length = max(np.hypot(ex, ey), 1e-300)
        p.edges[k, i, 0] = ey / length
        p.edges[k, i, 1] = -ex / length
        p.edges[k, i, 2] = (ey * x - ex * y) / length
