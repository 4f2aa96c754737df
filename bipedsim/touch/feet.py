"""The feet as point contacts, used when their contact model and the other contacts do not agree."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from bipedsim.contact import ContactResult, mode_of, to_sole, write_mode, write_pressure
from bipedsim.dynamics import Foothold, Projection
from bipedsim.numerics import Array, Flags, Integers, add_wrench, entry, mul, point_velocity, zeros_of
from bipedsim.touch.contacts import WORLD, Contacts, add, may_touch


class FeetAsPoints(NamedTuple):
    """K feet of at most N vertices.

    Attributes:
        feet, projection, contacts: Arrays of the step.
        result: Result that the contact model fills.
        joint: (K,) joint that carries each foot.
        h: Step [s].
        begin: (1,) index of the first contact that is a vertex.
        impulse: (K, 6) on the feet at the sole origins, ground axes [N.s].
        last: (K, N, 3) impulses on the vertices in the last solve, from which the next one starts [N.s].
        taken: (K, N) index of the contact of each vertex, -1 for none.
        touching: (N,) work array.
    """

    feet: Foothold
    projection: Projection
    contacts: Contacts
    result: ContactResult
    joint: Integers
    h: float
    begin: Annotated[Integers, 1]
    impulse: Annotated[Array, "K", 6]
    last: Annotated[Array, "K", "N", 3]
    taken: Annotated[Integers, "K", "N"]
    touching: Annotated[Flags, "N"]


@entry
def add_vertices(boxed: Any) -> bool:
    """Add the vertices that may touch the ground to the contacts; return False if there are too many."""
    s = boxed.arrays
    p, f, c = s.projection, s.feet, s.contacts
    s.begin[0] = c.used[0]
    room = True
    for k in range(s.impulse.shape[0]):
        for i in range(p.n_vertices[k]):
            r = mul(f.axes[k], p.offsets[k, i])
            o = f.sole_origin[k]
            point = (o[0] + r[0], o[1] + r[1], o[2] + r[2])
            height = p.position[k, 2] + p.offsets[k, i, 2]
            s.taken[k, i] = -1
            if not may_touch(height, point_velocity(p.w_before[6 * k :], p.offsets[k, i])[2], s.h):
                continue
            s.taken[k, i] = c.used[0]
            mu = p.mu_dynamic[k] if s.result.sliding[k] else p.mu_static[k]
            if add(c, (s.joint[k], WORLD), point, f.axes[k], height, mu, 0.0, -1):
                c.mu_slips[s.taken[k, i]] = min(mu, p.mu_dynamic[k])
                for a in range(3):
                    c.impulse[s.taken[k, i], a] = s.last[k, i, a]
            else:
                s.taken[k, i] = -1
                room = False
    return room


@entry
def take_vertices(boxed: Any, impulses: Array, slips: Flags) -> None:
    """Convert ``impulses`` (C, 3) at the contacts to those of the feet, and remove the vertices from the contacts.

    A foot slides if all its loaded vertices slip, as in the models of vertex forces. Its total force does not show
    this, because a force between dynamic and static friction means sticking.

    Args:
        boxed: A :class:`FeetAsPoints`.
        impulses: (C, 3) in the axes of the contacts [N.s].
        slips: (C,) whether each contact slips.
    """
    s = boxed.arrays
    p, r = s.projection, s.result
    per_step = 1.0 / s.h
    for k in range(s.impulse.shape[0]):
        n = p.n_vertices[k]
        for a in range(6):
            s.impulse[k, a] = r.impact[k, a] = 0.0
        x = y = 0.0
        bits = 0
        loaded = sticks = False
        for i in range(n):
            s.touching[i] = False
            for a in range(3):
                s.last[k, i, a] = impulses[s.taken[k, i], a] if s.taken[k, i] >= 0 else 0.0
            if s.taken[k, i] < 0:
                if i < r.vertex_forces.shape[1]:
                    r.vertex_forces[k, i, :] = 0.0
                continue
            f = s.last[k, i]
            add_wrench(s.impulse[k], f, p.offsets[k, i])
            x += f[2] * p.vertices[k, i, 0]
            y += f[2] * p.vertices[k, i, 1]
            s.touching[i] = f[2] > 0.0
            if s.touching[i]:
                loaded = True
                sticks = sticks or not slips[s.taken[k, i]]
                if i < 63:
                    bits |= 1 << i
            if i < r.vertex_forces.shape[1]:
                for a in range(3):
                    r.vertex_forces[k, i, a] = f[a] * per_step
        for a in range(6):
            r.impulse[k, a] = s.impulse[k, a]
            r.wrench[k, a] = s.impulse[k, a] * per_step
        to_sole(p.rotation[k], r.wrench[k], r.wrench[k])
        write_mode(k, p, r, mode_of(s.touching, n), loaded and not sticks, bits)
        load = r.impulse[k, 2]
        write_pressure(k, p, r, x / load, y / load)
    s.contacts.used[0] = s.begin[0]


def feet_as_points(
    feet: Foothold, projection: Projection, contacts: Contacts, result: ContactResult, joint: Integers, h: float
) -> FeetAsPoints:
    """Return the arrays; see :class:`FeetAsPoints`."""
    n_feet, widest = projection.vertices.shape[:2]
    return zeros_of(
        FeetAsPoints,
        {"K": n_feet, "N": widest},
        feet=feet,
        projection=projection,
        contacts=contacts,
        result=result,
        joint=joint,
        h=h,
    )
