"""Parts of a step: which points carry, which pairs belong together, and when the next bodies meet."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import kernel
from bipedsim.objects.bodies import Bodies, fly
from bipedsim.objects.contacts import WORLD, Contacts
from bipedsim.objects.solve import bend, drift

TOUCHING = 1e-7
"""Points no farther apart [m] touch."""
KEPT = 1e-5
"""Points that carried are taken to touch up to here [m], where they are slow."""
APPROACH = 1e-6
"""Points that touch and are faster towards each other [m/s] are in an impact."""
TOGETHER = 1e-9
"""Impacts whose speeds differ relatively by less happen at once."""


@kernel
def speed(b: Bodies, c: Contacts, m: int, v, w) -> float:
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
def touches(b: Bodies, c: Contacts, slow: float) -> None:
    """Mark the points that touch as active."""
    for m in range(c.points[0]):
        near = c.gap[m] <= TOUCHING
        if not near and c.loaded[m] and c.gap[m] <= KEPT:
            near = abs(speed(b, c, m, b.v, b.w)) <= slow
        c.active[m] = 1 if near else 0


@kernel
def begin_part(b: Bodies, c: Contacts, s: float, slow: float, last: bool) -> int:
    """Fill where all bodies would get in ``s`` seconds without contact; return how many points are active.

    In the ``last`` part points that would meet on the way are active, too, and closed at its end.
    """
    for i in range(b.mass.shape[0]):
        fly(b, i, s)
        b.at_end[i] = 0.0
        for x in range(6):
            b.impulse[i, x] = 0.0
    touches(b, c, slow)
    count = 0
    for m in range(c.points[0]):
        if last and not c.active[m]:
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
def gather(c: Contacts, taken, chosen) -> int:
    """Fill ``chosen`` with pairs of active points that hang together and are not ``taken`` (P,); return how many."""
    count = 0
    for p in range(c.pairs[0]):
        if count == 0 and not taken[p] and _carries(c, p):
            chosen[0] = p
            taken[p] = 1
            count = 1
    k = 0
    while k < count:
        for p in range(c.pairs[0]):
            if not taken[p] and _share(c, p, chosen[k]) and _carries(c, p):
                taken[p] = 1
                chosen[count] = p
                count += 1
        k += 1
    # In the order of the pairs, whatever hangs together with what.
    for i in range(1, count):
        p = chosen[i]
        j = i - 1
        while j >= 0 and chosen[j] > p:
            chosen[j + 1] = chosen[j]
            j -= 1
        chosen[j + 1] = p
    return count


@kernel
def _carries(c: Contacts, p: int) -> bool:
    carries = False
    for m in range(c.points[0]):
        carries = carries or (c.pair[m] == p and c.active[m] != 0)
    return carries


@kernel
def _share(c: Contacts, p: int, q: int) -> bool:
    """Whether two pairs have a body in common."""
    one = c.first[p] == c.first[q] or c.first[p] == c.second[q]
    two = c.second[p] != WORLD and (c.second[p] == c.first[q] or c.second[p] == c.second[q])
    return one or two


@kernel
def arrival(b: Bodies, c: Contacts, s: float) -> float:
    """Return after how many of ``s`` seconds the next points meet, ``s`` if none do; normal velocities are linear."""
    first = s
    for m in range(c.points[0]):
        if c.active[m]:
            continue
        u = speed(b, c, m, b.v, b.w)
        turning = drift(b, c, m, c.axes[c.pair[m], 2]) + bend(b, c, m)
        end = speed(b, c, m, b.v_end, b.w_end) + s * turning
        square = u * u - 2.0 * (end - u) / s * c.gap[m]
        if square < 0.0:
            continue
        down = np.sqrt(square) - u
        if down > 0.0 and 2.0 * c.gap[m] < first * down:
            first = 2.0 * c.gap[m] / down
    return first


@kernel
def pick(b: Bodies, c: Contacts, slow: float, chosen) -> int:
    """Fill ``chosen`` with the pairs that are to have an impact now; return how many, less than 0 if it is plastic.

    The fastest of those with restitution, and such as are as fast; where there are none, all pairs that touch, if any
    two of their points go on to approach.
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
        for m in range(c.points[0]):
            if c.pair[m] != p or not c.active[m]:
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
