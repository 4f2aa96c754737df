"""When a vertex lands within a step: what is left out of a first solve, and at which share of the step it arrives.

A step of time stepping closes a gap by a velocity that just reaches the ground at the end of the step, and stops what
is left in the next one: two impacts of which neither has the velocity of the body, an error of first order in h at
every landing. A step in which a vertex arrives is therefore solved in three parts (:class:`bipedsim.sim.steps`): up
to the arrival without that vertex, the impact alone, and from there to the end.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.dynamics.projection import Projection
from bipedsim.numerics import Array, Integers, kernel, point_velocity

APART = 1e-9
"""A vertex this far above the ground [m] may land."""
TOUCHING = 1e-5
"""A vertex that is no farther above the ground [m] takes part in the impact of others."""
RESTING = 1e-6
"""The same in an impact of joints at their stops: what contacts may be off at rest."""
SLOW = 0.5
"""A vertex that arrives with less than what gravity adds in so many steps is put down within the step."""
OUT_OF_REACH = 1e3
"""Height [m] that leaves a vertex out of a solve."""
TOGETHER = 0.1
"""Vertices that arrive within this share of a step arrive at once."""
NEVER = 2.0
LAST = 1.0 - 1e-6
"""Share of the step at which a vertex or a joint arrives at the latest, so that something is left of the step."""


class Landing(NamedTuple):
    """Which vertices may land in a step, and when the first one does.

    Attributes:
        slow: Speed [m/s] below which a vertex is put down and does not land.
        lifted: (1,) how many vertices the first solve leaves out.
        arrival: (K, N) share of the step at which each of them arrives, else ``NEVER``. share: (1,) the first of these,
            ``LAST`` at most.
        together: (1,) vertices that arrive up to this share of the step take part in the impact. touching: (1,) so do
            those no farther above the ground [m].
        lag: (1,) by which share of a step the velocities are behind the positions: half a step, as that is what a
            semi-implicit step makes of them; nothing in flight, whose steps are corrected for it.
    """

    slow: float
    lifted: Annotated[Integers, 1]
    arrival: Annotated[Array, "K", "N"]
    share: Annotated[Array, 1]
    together: Annotated[Array, 1]
    touching: Annotated[Array, 1]
    lag: Annotated[Array, 1]


@kernel
def lift(p: Projection, a: Landing, h: float) -> None:
    """Lift the vertices that may land in this step, and lower all others."""
    a.lifted[0] = 0
    for k in range(p.n_vertices.shape[0]):
        for i in range(p.n_vertices[k]):
            p.lifted[k, i] = 0.0
            a.arrival[k, i] = NEVER
            z = p.position[k, 2] + p.offsets[k, i, 2]
            if z > APART:
                before = point_velocity(p.w_before[6 * k :], p.offsets[k, i])[2]
                if before < -a.slow:
                    free = point_velocity(p.w_free[6 * k :], p.offsets[k, i])[2]
                    if z + h * min(before, free) < 0.0:
                        p.lifted[k, i] = OUT_OF_REACH
                        a.lifted[0] += 1


@kernel
def touch(p: Projection, a: Landing) -> None:
    """Lift the vertices that have no part in the impact: those that arrive later, and what is above the ground."""
    for k in range(p.n_vertices.shape[0]):
        for i in range(p.n_vertices[k]):
            when = a.arrival[k, i]
            above = p.position[k, 2] + p.offsets[k, i, 2] > a.touching[0]
            out = when > a.together[0] if when < NEVER else above
            p.lifted[k, i] = OUT_OF_REACH if out else 0.0


@kernel
def arrives(p: Projection, a: Landing, h: float, impulse: Array) -> bool:
    """Whether a lifted vertex reaches the ground under the ``impulse`` (K, 6) of the others; lower all of them.

    Where one does, fill ``share`` and ``lag``: positions go with the velocity in the middle of the way, and
    velocities that are behind are half a step older.
    """
    carried = False
    for k in range(impulse.shape[0]):
        carried = carried or impulse[k, 2] != 0.0
    ahead = 0.5 if carried else 0.0
    first = 1.0
    for k in range(p.n_vertices.shape[0]):
        for i in range(p.n_vertices[k]):
            if p.lifted[k, i] == 0.0:
                continue
            p.lifted[k, i] = 0.0
            r = p.offsets[k, i]
            z = p.position[k, 2] + r[2]
            before = point_velocity(p.w_before[6 * k :], r)[2]
            change = 0.0
            for m in range(impulse.shape[0]):
                for b in range(6):
                    g = p.G[6 * k :, 6 * m + b]
                    change += (g[2] + g[3] * r[1] - g[4] * r[0]) * impulse[m, b]
            change += point_velocity(p.w_free[6 * k :], r)[2] - before
            # z + h s (before + (ahead + s / 2) change) = 0
            slope = h * (before + ahead * change)
            square = slope * slope - 2.0 * h * change * z
            if square < 0.0:
                continue
            ground = np.sqrt(square) - slope
            if ground > 0.0 and 2.0 * z < ground:
                a.arrival[k, i] = 2.0 * z / ground
                first = min(first, a.arrival[k, i])
    if not first < 1.0:
        return False
    a.share[0] = min(first, LAST)
    a.together[0] = first + TOGETHER
    a.touching[0] = TOUCHING
    a.lag[0] = ahead
    return True
