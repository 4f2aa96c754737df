"""Sub-steps of a step: active contact points, coupled pairs, impacts, and the time of the next contact."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Integers, kernel
from bipedsim.objects.bodies import Bodies, fly
from bipedsim.objects.contacts import WORLD, PairContacts
from bipedsim.objects.solve import drift, normal_drift

TOUCHING = 1e-7
"""Points within this distance [m] are in contact."""
KEPT = 1e-5
"""Slow points that were loaded count as in contact within this distance [m]."""
APPROACH = 1e-6
"""Approach speed [m/s] above which points in contact are in an impact."""
TOGETHER = 1e-9
"""Relative difference of speeds below which impacts are simultaneous."""


@kernel
def speed(b: Bodies, c: PairContacts, m: int, v, w) -> float:
    """Return the normal velocity of point ``m`` for the velocities ``v``, ``w`` (N, 3) of the bodies."""
    p = c.pair[m]
    n = c.axes[p, 2]
    total = 0.0
    for side in range(2):
        i = c.first[p] if side == 0 else c.second[p]
        if i == WORLD:
            continue
        x = c.where[m, 0] - b.position[i, 0]
        y = c.where[m, 1] - b.position[i, 1]
        z = c.where[m, 2] - b.position[i, 2]
        u = (
            v[i, 0] + w[i, 1] * z - w[i, 2] * y,
            v[i, 1] + w[i, 2] * x - w[i, 0] * z,
            v[i, 2] + w[i, 0] * y - w[i, 1] * x,
        )
        total += (1.0 - 2.0 * side) * (u[0] * n[0] + u[1] * n[1] + u[2] * n[2])
    return total


@kernel
def mark_touching(b: Bodies, c: PairContacts, slow: float) -> None:
    """Mark the points in contact as active."""
    for m in range(c.points[0]):
        near = c.gap[m] <= TOUCHING
        if not near and c.loaded[m] and c.gap[m] <= KEPT:
            near = abs(speed(b, c, m, b.v, b.w)) <= slow
        c.active[m] = 1 if near else 0


@kernel
def begin_part(b: Bodies, c: PairContacts, s: float, slow: float, last: bool, closing: Integers) -> int:
    """Compute the motion of all bodies in ``s`` seconds without contact; return the number of active points.

    In the ``last`` sub-step, points that would meet within it are active too, and are closed at its end. So are those
    of bodies that are ``closing`` (N,).
    """
    for i in range(b.mass.shape[0]):
        fly(b, i, s)
        b.at_end[i] = 0.0
        for x in range(6):
            b.impulse[i, x] = 0.0
    mark_touching(b, c, slow)
    count = 0
    for m in range(c.points[0]):
        if not c.active[m] and (last or _closes(c, m, closing)):
            least = min(speed(b, c, m, b.v, b.w), speed(b, c, m, b.v_free, b.w_free))
            if c.gap[m] + s * least < 0.0:
                c.active[m] = 1
                p = c.pair[m]
                b.at_end[c.first[p]] = 1.0
                if c.second[p] != WORLD:
                    b.at_end[c.second[p]] = 1.0
        if not c.active[m]:
            c.force[m, :] = 0.0
        count += c.active[m]
    return count


@kernel
def _closes(c: PairContacts, m: int, closing: Integers) -> bool:
    """Return whether point ``m`` is one of a body that is ``closing``."""
    one, two = c.first[c.pair[m]], c.second[c.pair[m]]
    return closing[one] != 0 or (two != WORLD and closing[two] != 0)


@kernel
def label_islands(c: PairContacts, taken: Integers, island: Integers) -> None:
    """Fill ``island`` (N,) with a common number for bodies that are coupled by pairs that are not ``taken`` (P,).

    Pairs without active points become taken.
    """
    for i in range(island.shape[0]):
        island[i] = i
    for p in range(c.pairs[0]):
        if not _carries(c, p):
            taken[p] = 1
        if taken[p] or c.second[p] == WORLD:
            continue
        one, two = _root(island, c.first[p]), _root(island, c.second[p])
        island[max(one, two)] = min(one, two)
    for i in range(island.shape[0]):
        island[i] = _root(island, i)


@kernel
def _root(island: Integers, i: int) -> int:
    while island[i] != i:
        i = island[i]
    return i


@kernel
def collect_pairs(c: PairContacts, taken: Integers, island: Integers, chosen: Integers) -> int:
    """Fill ``chosen`` with the pairs of the next island that are not ``taken`` (P,); return their number."""
    count = 0
    for p in range(c.pairs[0]):
        if not taken[p] and (count == 0 or island[c.first[p]] == island[c.first[chosen[0]]]):
            taken[p] = 1
            chosen[count] = p
            count += 1
    return count


@kernel
def _carries(c: PairContacts, p: int) -> bool:
    carries = False
    for m in range(c.begin[p], c.end[p]):
        carries = carries or c.active[m] != 0
    return carries


@kernel
def time_to_contact(b: Bodies, c: PairContacts, s: float, closing: Integers) -> float:
    """Return the time [s] until the next points meet, at most ``s``; normal velocities are taken as linear.

    Points of bodies that are ``closing`` (N,) do not count.
    """
    first = s
    for m in range(c.points[0]):
        if c.active[m] or _closes(c, m, closing):
            continue
        u = speed(b, c, m, b.v, b.w)
        turning = drift(b, c, m, c.axes[c.pair[m], 2]) + normal_drift(b, c, m)
        end = speed(b, c, m, b.v_end, b.w_end) + s * turning
        square = u * u - 2.0 * (end - u) / s * c.gap[m]
        if square < 0.0:
            continue
        down = np.sqrt(square) - u
        if down > 0.0 and 2.0 * c.gap[m] < first * down:
            first = 2.0 * c.gap[m] / down
    return first


@kernel
def select_impacts(b: Bodies, c: PairContacts, slow: float, chosen) -> int:
    """Fill ``chosen`` with the pairs of the next impact; return their number, negative if the impact is plastic.

    These are the fastest pairs with restitution, and all that are equally fast. If there are none, all pairs in contact
    are chosen for a plastic impact. This requires that any of their points still approach.
    """
    fastest = 0.0
    approach = False
    for m in range(c.points[0]):
        if c.active[m]:
            u = -speed(b, c, m, b.v, b.w)
            approach = approach or u > APPROACH
            if u > slow and c.restitution[c.pair[m]] > 0.0:
                fastest = max(fastest, u)
    count = 0
    for p in range(c.pairs[0]):
        taken = False
        for m in range(c.begin[p], c.end[p]):
            if not c.active[m]:
                continue
            if fastest > 0.0:
                enough = c.restitution[p] > 0.0 and -speed(b, c, m, b.v, b.w) >= (1.0 - TOGETHER) * fastest
                taken = taken or enough
            else:
                taken = taken or approach
        if taken:
            chosen[count] = p
            count += 1
    return count if fastest > 0.0 else -count
