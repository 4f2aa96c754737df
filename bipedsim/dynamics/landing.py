"""Detection of touchdowns within a step: the time of impact, and the vertices that a solve ignores.

Plain time stepping closes a gap with a velocity that just reaches the ground at the end of the step. The remaining
velocity is stopped in the next step. Neither of these two impacts has the velocity of the body. Every touchdown
therefore has an error of first order in h. To avoid it, a step with a touchdown is solved in three parts
(:mod:`bipedsim.sim.steps`):

1. up to the touchdown, without the vertex,
2. the impact alone,
3. the rest of the step.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.dynamics.projection import Projection
from bipedsim.numerics import Array, Integers, kernel, point_velocity

APART = 1e-9
"""Minimum height of a vertex above the ground [m] for a touchdown; a lower vertex is in contact already."""
TOUCHING = 1e-5
"""Maximum height of a vertex above the ground [m] at which it takes part in the impact of other vertices."""
RESTING = 1e-6
"""The same in an impact at joint limits: the tolerance of a resting contact [m]."""
SLOW = 0.5
"""Speed below which a touchdown is no separate impact, as a multiple of the speed that gravity adds in one step."""
OUT_OF_REACH = 1e3
"""Height [m] that is added to a vertex to exclude it from a solve."""
TOGETHER = 0.1
"""Fraction of a step within which touchdowns are treated as simultaneous."""
NEVER = 2.0
LAST = 1.0 - 1e-6
"""Latest time of an impact as a fraction of the step, so that the rest of the step is not empty."""


class Landing(NamedTuple):
    """Store the vertices that may touch down in a step, and the time of the first touchdown.

    Attributes:
        slow: Speed [m/s] below which a touchdown is not a separate impact.
        lifted: (1,) number of vertices that the first solve excludes.
        arrival: (K, N) fraction of the step at which each of them touches down, else ``NEVER``. share: (1,) the
            earliest of these, at most ``LAST``.
        together: (1,) vertices that touch down up to this fraction of the step take part in the impact. touching: (1,)
            vertices up to this height above the ground [m] take part as well.
        lag: (1,) delay of the velocities behind the positions, as a fraction of a step. It is half a step after a
            semi-implicit step, and zero in flight, where the steps are corrected for it.
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
    """Exclude vertices from the solve that may touch down in this step; include all others."""
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
    """Exclude vertices from the impact that touch down later or are above the ground."""
    for k in range(p.n_vertices.shape[0]):
        for i in range(p.n_vertices[k]):
            when = a.arrival[k, i]
            above = p.position[k, 2] + p.offsets[k, i, 2] > a.touching[0]
            out = when > a.together[0] if when < NEVER else above
            p.lifted[k, i] = OUT_OF_REACH if out else 0.0


@kernel
def arrives(p: Projection, a: Landing, h: float, impulse: Array) -> bool:
    """Return whether an excluded vertex touches down under the ``impulse`` (K, 6) of the others; include all again.

    If one does, the function fills ``share``, ``together``, ``touching`` and ``lag``. The displacement follows the
    velocity at its midpoint; velocities with a lag are half a step older.
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
