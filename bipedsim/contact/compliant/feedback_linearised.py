"""Penalty contact by input-output feedback linearisation (rengifo2009).

The contact model prescribes the accelerations of the vertices in contact (eq. 17). It solves for the forces that
produce them (eq. 18), of least norm where they are not unique. Saturation limits these to forces that the ground can
provide (eq. 19, 20). So the parameters describe the motion of the vertices, independent of the mass that they carry.

Saturation in the paper changes only the saturated forces, so the others balance forces that no longer exist. A brick
that slides fast then hops: its normal forces are those that the moment of m k_v v would need. Where a vertex would be
pulled, its neighbours push against that pull. This module therefore solves again with the friction that remains and
without the vertices that would be pulled. If that has no solution, it solves a cone problem. With ``resolves: 0`` the
model is the published one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.base import Promises
from bipedsim.contact.compliant.cone_forces import has_valid_forces, solve_as_cones
from bipedsim.contact.compliant.linearisation import (
    LEAST_NORM,
    SLOW,
    FeedbackLinearisedParams,
    Linearised,
    fill_missing,
    patterns,
    release_pulled,
    resolve,
    spread,
)
from bipedsim.contact.compliant.substeps import (
    MOST_EVENTS,
    Substeps,
    begin_substep,
    crossing,
    is_closed,
    next_stage,
    start,
    substep,
)
from bipedsim.contact.time_stepping import ConeProblem
from bipedsim.contact.vertices import VertexModel, begin_vertices, friction, write_vertices
from bipedsim.dynamics import UNCHANGED, Projection
from bipedsim.numerics import is_doubtful, kernel, solve_cholesky, solve_pseudo_inverse, zeros_of

RESOLUTION = 0.2
"""Largest rate of the target motion times the substep."""
CONES_SOLVED, CONE_ITERATIONS = 1e-6, 10000
"""Residual at which a cone problem counts as solved, and its maximum number of iterations.

One drop in about 500 needs more than 2000 iterations.
"""


@kernel
def _sticks(p: Projection, m: Linearised):
    """Update the contact flags: a vertex sticks if its friction is inside the cone or if it does not move.

    The friction is that of the first stage. A vertex at the limit of its cone does not slide while its neighbours hold
    the foot.
    """
    s = m.contacts
    f = m.substeps.force
    for k in range(m.members.shape[0]):
        for i in range(m.active.shape[1]):
            if m.closed[k, i]:
                size = np.sqrt(f[k, i, 0] ** 2 + f[k, i, 1] ** 2)
                x, y = m.substeps.velocity[k, 0, i], m.substeps.velocity[k, 1, i]
                held = m.params.resolves > 0 and x * x + y * y < SLOW * SLOW
                # A saturated force is on the cone to rounding.
                s.sticking[k, i] = held or size < friction(p, s, k, i) * f[k, i, 2] * (1.0 - 1e-12)
            s.touching[k, i] = m.closed[k, i]


@kernel
def _forces(p: Projection, m: Linearised) -> int:
    """Fill the vertex forces of the stage and return the number of problems solved."""
    for k in range(m.active.shape[0]):
        for i in range(m.active.shape[1]):
            m.active[k, i] = m.closed[k, i]
    solves = 0
    pulled = saturated = False
    consistent_before = m.consistent[0]
    m.consistent[0] = True
    # Each solve except the last one releases a vertex.
    for _ in range(m.active.size + 1):
        rows = patterns(p, m)
        regular = True
        if rows > 0:
            solves += 1
            p.budget[0] -= rows * rows * rows
            fill_missing(p, m, rows)
            regular = solve_cholesky(m.A, m.rhs, rows, m.L, m.y) and not is_doubtful(m.A, rows, m.L)
            if not regular:
                p.budget[0] -= LEAST_NORM * rows * rows * rows
                solve_pseudo_inverse(m.A, m.rhs, rows, m.L, m.work, m.y)
        saturated = spread(p, m)
        if m.params.resolves == 0:
            break
        if saturated:
            solves += resolve(p, m, regular)
        if not release_pulled(m) or p.budget[0] <= 0:
            break
        pulled = True
    if m.params.resolves > 0 and (pulled or saturated) and not (m.consistent[0] and has_valid_forces(p, m)):
        solves += 1
        m.consistent[0] = solve_as_cones(p, m)
    m.consistent[0] = m.consistent[0] and consistent_before
    return solves


@kernel
def feedback_linearised(p: Projection, m: Linearised):
    """Advance the contacts by one step."""
    s = m.contacts
    c = m.substeps
    begin_vertices(p, s)
    start(p, c)
    h = s.h
    count = max(int(np.ceil(h * max(m.params.k_v, np.sqrt(m.params.k_p)) / RESOLUTION)), 1)
    longest = h / count
    m.consistent[0] = True
    for k in range(m.members.shape[0]):
        if p.changed[k] != UNCHANGED:
            m.warm[k] = 0.0
    solves = 0
    t = 0.0
    for _ in range(MOST_EVENTS + count + 1):
        if p.budget[0] <= 0:
            c.events[0] = MOST_EVENTS
        rest = h - t
        dt = substep(p, c, longest, rest)
        begin_substep(c)
        for k in range(m.members.shape[0]):
            for i in range(m.active.shape[1]):
                m.closed[k, i] = i < p.n_vertices[k] and is_closed(c, k, i)
        for stage in range(4):
            solves += _forces(p, m)
            if stage == 0:
                _sticks(p, m)
                dt = crossing(p, c, dt)
            next_stage(p, c, stage, dt)
        if dt == rest:
            break
        t += dt
    for k in range(m.members.shape[0]):
        for i in range(m.active.shape[1]):
            s.touching[k, i] = i < p.n_vertices[k] and is_closed(c, k, i)
    unresolved = not m.consistent[0] or c.events[0] >= MOST_EVENTS or p.budget[0] <= 0
    write_vertices(p, s, solves, unresolved)


class FeedbackLinearised(VertexModel):
    """Compute penalty forces whose parameters prescribe the motion of the vertices."""

    Params = FeedbackLinearisedParams
    # A landing at 6 m/s penetrates by v / k_v. A foot that leaves within the step rises by as much, at 1 m/s.
    promises = Promises(springs=True, gap=1e-3, depth=0.025)
    kernel = feedback_linearised

    def _arrays_of(self, n_feet: int, widest: int) -> Linearised:
        sizes, substeps = {"K": n_feet, "N": widest}, Substeps.of_feet(self.contacts)
        self._act_within(substeps.impulse, substeps.late)
        limits = CONES_SOLVED, CONE_ITERATIONS
        cones = ConeProblem.of_feet(n_feet, n_feet * widest, *limits, budget=self._projection.budget)
        return zeros_of(Linearised, sizes, params=self.params, contacts=self.contacts, substeps=substeps, cones=cones)

    def _memory(self) -> dict[str, NDArray[Any]]:
        return super()._memory() | {"warm": self.arrays.warm}
