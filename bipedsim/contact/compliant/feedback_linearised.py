"""Penalty contact by input-output feedback linearisation (rengifo2009).

The contact model says how the vertices that touch should accelerate (eq. 17), and the forces that do this are solved
for (eq. 18), of least norm where there are several; saturation makes them forces that a ground can give (eq. 19, 20).
So the parameters describe the motion of the vertices alone, whatever mass stands on them.

Saturation leaves all other forces as they are, and they balance what is not there. While friction is saturated, a
brick that slides fast hops, because its normal forces are those that the moment of m k_v v would need; where a vertex
would be pulled, its neighbours push against that pull. Here normal forces are solved for again under the friction that
is left, and all forces without the vertices that would be pulled; with ``resolves: 0`` the model is the one printed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.config import param
from bipedsim.contact.compliant.linearisation import Linearised, lacking, let_go, patterns, resolve, spread
from bipedsim.contact.compliant.substeps import Substeps, begin_substep, crossing, is_closed, next_stage, start, substep
from bipedsim.contact.vertices import VertexModel, begin, friction, write_result
from bipedsim.dynamics import Projection
from bipedsim.numerics import kernel, solve_least_norm

RESOLUTION = 0.2
"""Largest rate of the wanted motion times the substep."""


@dataclass(frozen=True)
class FeedbackLinearisedParams:
    """Parameters of feedback-linearised penalty contact; friction is that of the soles and the ground."""

    k_p: float = param(500.0, "acceleration for penetration", unit="1/s^2", low=0.0, high=1e8)
    k_v: float = param(250.0, "acceleration against the velocity of a vertex", unit="1/s", low=0.0, high=1e6)
    epsilon: float = param(
        5e-5, "penetration at rest, against the false impacts that 0 gives (section V)", unit="m", low=0.0, high=0.01
    )
    resolves: int = param(
        20, "most solves of the normal forces under saturated friction; 0 is the printed model", low=0, high=100
    )


@kernel
def _sticks(p: Projection, m: Linearised):
    """A vertex in contact sticks while friction of the first stage is inside its cone."""
    s = m.contacts
    f = m.substeps.force
    for k in range(m.members.shape[0]):
        for i in range(m.active.shape[1]):
            if m.closed[k, i]:
                size = np.sqrt(f[k, i, 0] ** 2 + f[k, i, 1] ** 2)
                # Saturation leaves the force on the cone, to rounding.
                s.sticking[k, i] = size < friction(p, s, k, i) * f[k, i, 2] * (1.0 - 1e-12)
            s.touching[k, i] = m.closed[k, i]


@kernel
def _forces(p: Projection, m: Linearised) -> int:
    """Fill the vertex forces of the stage; return how many problems that took."""
    for k in range(m.active.shape[0]):
        for i in range(m.active.shape[1]):
            m.active[k, i] = m.closed[k, i]
    solves = 0
    while True:
        rows = patterns(p, m)
        if rows > 0:
            solves += 1
            lacking(p, m, rows)
            solve_least_norm(m.A, m.rhs, rows, m.L, m.work, m.y)
        if spread(p, m):
            solves += resolve(p, m, rows)
        if m.resolves == 0 or not let_go(m):
            return solves


@kernel
def feedback_linearised(p: Projection, m: Linearised):
    """Take one step of the contacts."""
    s = m.contacts
    c = m.substeps
    begin(p, s)
    start(p, c)
    h = s.h
    longest = h / max(np.ceil(h * max(m.k_v, np.sqrt(m.k_p)) / RESOLUTION), 1.0)
    m.agreed[0] = True
    solves = 0
    t = 0.0
    while t < h:
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
        t = h if dt == rest else t + dt
    for k in range(m.members.shape[0]):
        for i in range(m.active.shape[1]):
            s.touching[k, i] = i < p.n_vertices[k] and is_closed(c, k, i)
    write_result(p, s, solves, not m.agreed[0])


class FeedbackLinearised(VertexModel):
    """Penalty contact whose parameters are the wanted motion of the vertices.

    Args:
        projection: The projection that every solve gets, refilled.
        params: See :class:`FeedbackLinearisedParams`.
        physics_dt: Step h [s].
    """

    Params = FeedbackLinearisedParams
    kernel = feedback_linearised

    def __init__(self, projection: Projection, params: FeedbackLinearisedParams, physics_dt: float) -> None:
        super().__init__(projection, physics_dt)
        self.params = params
        substeps = Substeps.of_feet(self.contacts)
        self._act_within(substeps.impulse, substeps.late)
        self.arrays = Linearised.of_feet(
            self.contacts,
            substeps,
            k_p=params.k_p,
            k_v=params.k_v,
            epsilon=params.epsilon,
            resolves=params.resolves,
        )
