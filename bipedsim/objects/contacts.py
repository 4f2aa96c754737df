"""PairContacts of free bodies: pairs of bodies, each with a contact plane and points in it."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.numerics import Array, Integers, accumulate, assign, cross, kernel, minus, mul

PAIRS, POINTS = 8, 16
"""Initial capacity for pairs of bodies that are near each other, and for their contact points in total."""
WORLD = -1
"""Body number of the ground."""


class PairContacts(NamedTuple):
    """PairContacts of at most P pairs and M points; :class:`~bipedsim.objects.world.World` increases the capacity.

    The solver treats a pair like a foot: its velocity is the twist of one body relative to the other.

    Attributes:
        pairs, points: (1,) numbers of pairs and points.
        lost: (1,) number of points that exceeded the capacity.
        first, second: (P,) bodies; the second may be ``WORLD``.
        shapes: (P, 2) their shapes; for the ground, -1 minus the number of the plane's first patch.
        axes: (P, 3, 3) t1, t2, n as rows in the world; n points from the second to the first body.
        origin: (P, 3) reference point of the relative twist, world [m].
        turn: (P, 3) rate of change of the normal [1/s].
        restitution: (P,) Newton's coefficient.
        begin, end: (P,) first point of each pair, and the one after its last.
        pair: (M,) pair of each point.
        where: (M, 3) position in the world [m].
        gap: (M,) distance between the bodies at the point [m].
        mu: (M, 2) static and dynamic friction.
        own: (M,) body to which the point is fixed, such as a corner; ``WORLD`` if the point moves along the bodies.
        moving: (M, 3) velocity of the contact point, which may differ from that of any material point [m/s].
        bow: (M, 3) acceleration of the contact point along the bodies, in addition to theirs [m/s^2].
        key: (M,) feature of the pair, such as a corner; it identifies a point from step to step.
        loaded: (M,) whether the point was loaded in the last sub-step.
        sticking: (M,) whether its friction is static.
        force: (M, 3) force in the axes of the pair [N]: of the last sub-step, and after the solve of the current one.
        active: (M,) whether the point is in the problem.
    """

    pairs: Annotated[Integers, 1]
    points: Annotated[Integers, 1]
    lost: Annotated[Integers, 1]
    first: Annotated[Integers, "P"]
    second: Annotated[Integers, "P"]
    shapes: Annotated[Integers, "P", 2]
    axes: Annotated[Array, "P", 3, 3]
    origin: Annotated[Array, "P", 3]
    turn: Annotated[Array, "P", 3]
    restitution: Annotated[Array, "P"]
    begin: Annotated[Integers, "P"]
    end: Annotated[Integers, "P"]
    pair: Annotated[Integers, "M"]
    where: Annotated[Array, "M", 3]
    gap: Annotated[Array, "M"]
    mu: Annotated[Array, "M", 2]
    own: Annotated[Integers, "M"]
    moving: Annotated[Array, "M", 3]
    bow: Annotated[Array, "M", 3]
    key: Annotated[Integers, "M"]
    loaded: Annotated[Integers, "M"]
    sticking: Annotated[Integers, "M"]
    force: Annotated[Array, "M", 3]
    active: Annotated[Integers, "M"]


@kernel
def open_pair(c: PairContacts, first: int, second: int, shape: int, other: int) -> int:
    """Add a pair and return its number, or -1 if the capacity is reached."""
    p = c.pairs[0]
    if p == c.first.shape[0]:
        c.lost[0] += 1
        return -1
    c.pairs[0] += 1
    c.first[p] = first
    c.second[p] = second
    c.shapes[p, 0] = shape
    c.shapes[p, 1] = other
    c.begin[p] = c.end[p] = c.points[0]
    assign(c.turn[p], (0.0, 0.0, 0.0))
    return p


@kernel
def fill_axes(c: PairContacts, p: int, n) -> None:
    """Fill the axes of pair ``p`` for the normal ``n`` (3,); t1 is along world x, or y if n is along x."""
    along = (1.0, 0.0, 0.0) if abs(n[0]) < 0.9 else (0.0, 1.0, 0.0)
    dot = along[0] * n[0] + along[1] * n[1] + along[2] * n[2]
    t1 = (along[0] - dot * n[0], along[1] - dot * n[1], along[2] - dot * n[2])
    length = np.sqrt(t1[0] ** 2 + t1[1] ** 2 + t1[2] ** 2)
    t1 = (t1[0] / length, t1[1] / length, t1[2] / length)
    assign(c.axes[p, 0], t1)
    assign(c.axes[p, 1], cross(n, t1))
    assign(c.axes[p, 2], n)


@kernel
def add_point(c: PairContacts, p: int, point, gap: float, key: int) -> int:
    """Add a point to the last pair ``p`` and return its number, or -1 if the capacity is reached."""
    m = c.points[0]
    if m == c.pair.shape[0]:
        c.lost[0] += 1
        return -1
    c.points[0] = c.end[p] = m + 1
    c.pair[m] = p
    assign(c.where[m], point)
    c.gap[m] = gap
    c.own[m] = WORLD
    assign(c.bow[m], (0.0, 0.0, 0.0))
    c.key[m] = key
    c.loaded[m] = 0
    c.sticking[m] = 1
    assign(c.force[m], (0.0, 0.0, 0.0))
    return m


class Memory(NamedTuple):
    """Points of the last sub-step, as initial values of the next one.

    Attributes:
        points: (1,) number of points.
        who: (M, 5) bodies, shapes and key of each point.
        force: (M, 3) in world axes [N].
        where: (M, 3) position in the world [m].
        sticking: (M,) whether friction is static.
    """

    points: Annotated[Integers, 1]
    who: Annotated[Integers, "M", 5]
    force: Annotated[Array, "M", 3]
    where: Annotated[Array, "M", 3]
    sticking: Annotated[Integers, "M"]


@kernel
def copy_memory(source: Memory, target: Memory) -> None:
    """Copy the points of the last sub-step; the target must have enough capacity."""
    target.points[0] = source.points[0]
    for n in range(source.points[0]):
        for a in range(5):
            target.who[n, a] = source.who[n, a]
        for a in range(3):
            target.force[n, a] = source.force[n, a]
            target.where[n, a] = source.where[n, a]
        target.sticking[n] = source.sticking[n]


@kernel
def store_points(c: PairContacts, k: Memory) -> None:
    """Store the loaded points."""
    n = 0
    for m in range(c.points[0]):
        p = c.pair[m]
        if not c.force[m, 2] > 0.0:
            continue
        k.who[n, 0] = c.first[p]
        k.who[n, 1] = c.second[p]
        k.who[n, 2] = c.shapes[p, 0]
        k.who[n, 3] = c.shapes[p, 1]
        k.who[n, 4] = c.key[m]
        for a in range(3):
            k.where[n, a] = c.where[m, a]
            k.force[n, a] = (
                c.axes[p, 0, a] * c.force[m, 0] + c.axes[p, 1, a] * c.force[m, 1] + c.axes[p, 2, a] * c.force[m, 2]
            )
        k.sticking[n] = c.sticking[m]
        n += 1
    k.points[0] = n


@kernel
def restore_points(c: PairContacts, k: Memory) -> None:
    """Initialise the points with their forces of the last sub-step.

    The force of a point that has disappeared goes to the nearest point of its pair. Corners that coincide with edges of
    the other body change their features from step to step.
    """
    m = -1
    for n in range(k.points[0]):
        found, least, same = -1, np.inf, False
        for _ in range(c.points[0]):
            # The search begins after the last match, because the order of the points rarely changes.
            m = m + 1 if m + 1 < c.points[0] else 0
            p = c.pair[m]
            if k.who[n, 0] != c.first[p] or k.who[n, 1] != c.second[p]:
                continue
            if k.who[n, 2] != c.shapes[p, 0] or k.who[n, 3] != c.shapes[p, 1]:
                continue
            if k.who[n, 4] == c.key[m]:
                found, same = m, True
                break
            x, y, z = minus(c.where[m], k.where[n])
            if x * x + y * y + z * z < least:
                found, least = m, x * x + y * y + z * z
        if found < 0:
            continue
        if same:
            c.loaded[found] = 1
            c.sticking[found] = k.sticking[n]
        accumulate(c.force[found], mul(c.axes[c.pair[found]], k.force[n]))
