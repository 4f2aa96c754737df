"""The feet as point contacts among other contacts."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.contact import (
    Anchors,
    VertexContacts,
    begin_vertices,
    carry_anchors,
    carry_rows,
    clamped_range,
    drift_correction,
    write_vertices,
)
from bipedsim.dynamics import UNCHANGED, Foothold, Projection
from bipedsim.numerics import Array, Flags, Integers, kernel, mul, point_velocity
from bipedsim.touch.contacts import WORLD, Contacts, add, may_touch


class FeetAsPoints(NamedTuple):
    """K feet of at most N vertices.

    Attributes:
        feet, projection: Ground under the feet, and their velocities.
        vertices: State and impulses of the vertices.
        anchors: Anchors of sticking vertices.
        joint: (K,) joint that carries each foot.
        rate: Fraction of the drift of a foot that is corrected per time [1/s].
        begun: (1,) whether the feet were points in the last step, too.
        first: (1,) index of the first contact that is a vertex.
        contact: (K, N) contact of each vertex, -1 for none.
        last: (K, N, 3) impulses on the vertices in the last step, from which the next solve starts [N.s].
        old: (N, 3) work array.
    """

    feet: Foothold
    projection: Projection
    vertices: VertexContacts
    anchors: Anchors
    joint: Integers
    rate: float
    begun: Annotated[Flags, 1]
    first: Annotated[Integers, 1]
    contact: Annotated[Integers, "K", "N"]
    last: Annotated[Array, "K", "N", 3]
    old: Annotated[Array, "N", 3]


@kernel
def begin_feet(s: FeetAsPoints) -> None:
    """Begin a step: transfer state to polygons that changed, and take it from the contact model after other steps."""
    p, vertices = s.projection, s.vertices
    r = vertices.result
    if not s.begun[0]:
        s.begun[0] = True
        for k in range(r.mode.shape[0]):
            first, count = clamped_range(r.mode[k], r.n_vertices[k])
            for i in range(vertices.touching.shape[1]):
                vertices.touching[k, i] = vertices.sticking[k, i] = s.anchors.held[k, i] = False
                for a in range(3):
                    s.last[k, i, a] = 0.0
            for j in range(count):
                i = (first + j) % r.n_vertices[k]
                vertices.touching[k, i] = True
                vertices.sticking[k, i] = not r.sliding[k]
    begin_vertices(p, vertices)
    for k in range(r.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            carry_rows(s.last[k], vertices.origin[k], p.n_vertices[k], s.old)
            carry_anchors(k, p, vertices, s.anchors)


@kernel
def add_vertices(s: FeetAsPoints, c: Contacts) -> None:
    """Add the vertices that may touch the ground to the contacts."""
    p, f, vertices = s.projection, s.feet, s.vertices
    s.first[0] = c.used[0]
    for k in range(p.n_vertices.shape[0]):
        vx, vy, wz = drift_correction(k, p, vertices, s.anchors, s.rate)
        for i in range(p.n_vertices[k]):
            r = p.offsets[k, i]
            s.contact[k, i] = -1
            height = vertices.heights[k, i]
            if not may_touch(height, point_velocity(p.w_before[6 * k :], r)[2], vertices.h):
                continue
            x, y, z = mul(f.axes[k], r)
            o = f.sole_origin[k]
            slides = vertices.touching[k, i] and not vertices.sticking[k, i]
            mu = p.mu_dynamic[k] if slides else p.mu_static[k]
            m = c.used[0]
            if add(c, (s.joint[k], WORLD), (o[0] + x, o[1] + y, o[2] + z), f.axes[k], height, mu, 0.0, -1):
                s.contact[k, i] = m
                c.mu_slips[m] = min(mu, p.mu_dynamic[k])
                c.drift[m, 0], c.drift[m, 1] = vx - wz * r[1], vy + wz * r[0]
                for a in range(3):
                    c.impulse[m, a] = s.last[k, i, a]


@kernel
def take_vertices(s: FeetAsPoints, c: Contacts, f: Array, u: Array, slow: float, unresolved: bool) -> None:
    """Convert impulses at the vertices to those of the feet, and remove the vertices from the contacts.

    A foot slides if all its loaded vertices slip, as in the models of vertex forces. Its total force does not show
    this, because a force between dynamic and static friction means sticking.

    Args:
        s, c: Feet and contacts.
        f, u: (C, 3) impulses [N.s] and velocities [m/s] of the contacts.
        slow: Speed below which a vertex stays on the ground, or sticks [m/s].
        unresolved: Whether the step has no solution within the tolerance.
    """
    vertices = s.vertices
    for k in range(s.contact.shape[0]):
        for i in range(s.contact.shape[1]):
            m = s.contact[k, i] if i < s.projection.n_vertices[k] else -1
            for a in range(3):
                vertices.impulses[k, i, a] = s.last[k, i, a] = f[m, a] if m >= 0 else 0.0
            vertices.touching[k, i] = m >= 0 and (f[m, 2] > 0.0 or u[m, 2] <= slow)
            vertices.sticking[k, i] = vertices.touching[k, i] and np.hypot(u[m, 0], u[m, 1]) <= slow
    c.used[0] = s.first[0]
    write_vertices(s.projection, vertices, 1, unresolved)
