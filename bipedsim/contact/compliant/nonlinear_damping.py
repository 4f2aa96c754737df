"""Nonlinear damping (marhefka1996, after Hunt and Crossley 1975), with friction by bristles that stick.

Normal force of a vertex at depth x: f = k x^n (1 + 3/2 alpha x') >= 0 (eq. 6, 7). The coefficient of restitution of a
simple impact then depends on alpha v alone, and the force is continuous.

The paper leaves friction open. Here each vertex carries a bristle, a spring with a damper, in series with a Coulomb
slider (the elasto-plastic element of Prandtl; Dupont, Hayward, Armstrong and Altpeter, "Single state elastoplastic
friction models", IEEE TAC 2002): it sticks without creep below mu f, which a friction law regularised by velocity does
not, and has no jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import param
from bipedsim.contact.base import Promises
from bipedsim.contact.compliant.substeps import (
    Substeps,
    begin_substep,
    next_stage,
    normal_compliance,
    start,
    substep,
    tangential_compliance,
)
from bipedsim.contact.vertices import VertexContacts, VertexModel, begin, carry_rows, friction, write_result
from bipedsim.dynamics import UNCHANGED, Projection
from bipedsim.numerics import Array, kernel, zeros_of


@dataclass(frozen=True)
class NonlinearDampingParams:
    """Parameters of nonlinear damping; stiffness and damping are those of each vertex."""

    stiffness: float = param(1e5, "k of f = k x^n (1 + 3/2 alpha x')", unit="N/m^n", low=1.0, high=1e12)
    exponent: float = param(1.0, "n: 1 for flat faces, 3/2 for a sphere (Hertz)", low=0.5, high=4.0)
    alpha: float = param(2.0, "damping: restitution e = 1 - alpha v at low speed v", unit="s/m", low=0.0, high=1e3)
    alpha_ratio: float = param(1.0, "alpha while a vertex leaves over alpha while it arrives", low=0.0, high=100.0)
    tangential_stiffness: float = param(1e5, "of the bristle of a vertex", unit="N/m", low=1.0, high=1e10)
    tangential_damping: float = param(300.0, "of the bristle of a vertex", unit="N.s/m", low=1e-3, high=1e8)
    resolution: float = param(0.5, "largest rate of the contacts times the substep", low=1e-4, high=1.0)
    max_substeps: int = param(500, "most substeps of a step; more are needed: the step counts as unresolved", low=1)


class Bristles(NamedTuple):
    """What the model works on.

    Attributes:
        params: The parameters.
        contacts, substeps: Vertices, and feet within the step.
        bend: (K, N, 2) deflection of the bristles [m]: state.
        stage, rate_sum: (K, N, 2) the same at a stage, and their weighted rates.
        rate: (K, N, 2) [m/s].
        old: (N, 2) work.
    """

    params: NonlinearDampingParams
    contacts: VertexContacts
    substeps: Substeps
    bend: Annotated[Array, "K", "N", 2]
    stage: Annotated[Array, "K", "N", 2]
    rate: Annotated[Array, "K", "N", 2]
    rate_sum: Annotated[Array, "K", "N", 2]
    old: Annotated[Array, "N", 2]


@kernel
def _forces(p: Projection, m: Bristles):
    """Fill the vertex forces and the rates of the bristles at the stage."""
    c, law = m.substeps, m.params
    for k in range(c.height.shape[0]):
        for i in range(p.n_vertices[k]):
            f = c.force[k, i]
            depth = -c.height[k, i]
            if depth <= 0.0:
                f[0] = f[1] = f[2] = 0.0
                m.rate[k, i, 0] = m.rate[k, i, 1] = 0.0
                continue
            speed = -c.velocity[k, i, 2]
            alpha = law.alpha if speed >= 0.0 else law.alpha * law.alpha_ratio
            spring = law.stiffness * (depth if law.exponent == 1.0 else depth**law.exponent)
            f[2] = max(spring * (1.0 + 1.5 * alpha * speed), 0.0)
            kt = law.tangential_stiffness
            dt = law.tangential_damping
            bx = kt * m.stage[k, i, 0]
            by = kt * m.stage[k, i, 1]
            tx = bx + dt * c.velocity[k, i, 0]
            ty = by + dt * c.velocity[k, i, 1]
            limit = f[2] * friction(p, m.contacts, k, i)
            size = np.sqrt(tx * tx + ty * ty)
            if size > limit:
                tx *= limit / size
                ty *= limit / size
            f[0] = -tx
            f[1] = -ty
            m.rate[k, i, 0] = (tx - bx) / dt
            m.rate[k, i, 1] = (ty - by) / dt


@kernel
def _settle(p: Projection, m: Bristles):
    """At the end of a substep: who touches, who sticks; bristles in the air are straight."""
    c, s, law = m.substeps, m.contacts, m.params
    for k in range(c.height.shape[0]):
        for i in range(c.height.shape[1]):
            if i >= p.n_vertices[k] or c.height[k, i] >= 0.0:
                s.touching[k, i] = False
                m.bend[k, i, 0] = m.bend[k, i, 1] = 0.0
                continue
            speed = -c.velocity[k, i, 2]
            alpha = law.alpha if speed >= 0.0 else law.alpha * law.alpha_ratio
            normal = law.stiffness * (-c.height[k, i]) ** law.exponent * (1.0 + 1.5 * alpha * speed)
            tx = law.tangential_stiffness * m.bend[k, i, 0] + law.tangential_damping * c.velocity[k, i, 0]
            ty = law.tangential_stiffness * m.bend[k, i, 1] + law.tangential_damping * c.velocity[k, i, 1]
            s.sticking[k, i] = np.sqrt(tx * tx + ty * ty) <= friction(p, s, k, i) * max(normal, 0.0)
            s.touching[k, i] = True


@kernel
def _substeps(p: Projection, m: Bristles) -> int:
    """Return how many substeps the fastest motion of the contacts needs.

    The sum over the vertices bounds the largest eigenvalue of stiffness, or damping, times compliance. Vertices that
    may fall to the ground within the step count too: a stiff spring would throw them back out of too long a substep.
    """
    s, c, law = m.contacts, m.substeps, m.params
    h = s.h
    stiff = damped = stiff_t = damped_t = 0.0
    for k in range(s.heights.shape[0]):
        d = c.drive[6 * k : 6 * k + 6]
        for i in range(p.n_vertices[k]):
            fall = d[4] * c.arm[k, i, 0] - d[3] * c.arm[k, i, 1] - d[2]
            depth = -c.height[k, i] + h * (max(-c.velocity[k, i, 2], 0.0) + 0.5 * h * max(fall, 0.0))
            if depth <= 0.0:
                continue
            g = normal_compliance(p, k, i)
            kt = tangential_compliance(p, k, i)
            spring = law.stiffness * depth**law.exponent
            stiff += law.exponent * spring / depth * g
            damped += 1.5 * law.alpha * max(1.0, law.alpha_ratio) * spring * g
            stiff_t += law.tangential_stiffness * kt
            damped_t += law.tangential_damping * kt
    fastest = max(max(np.sqrt(stiff), damped), max(np.sqrt(stiff_t), damped_t))
    if stiff_t > 0.0:
        fastest = max(fastest, law.tangential_stiffness / law.tangential_damping)
    return max(int(np.ceil(min(h * fastest / law.resolution, 1e9))), 1)


@kernel
def nonlinear_damping(p: Projection, m: Bristles):
    """Take one step of the contacts."""
    s = m.contacts
    c = m.substeps
    begin(p, s)
    for k in range(m.bend.shape[0]):
        if p.changed[k] != UNCHANGED:
            carry_rows(m.bend[k], s.origin[k], p.n_vertices[k], m.old)
    start(p, c)
    wanted = _substeps(p, m)
    count = min(wanted, m.params.max_substeps)
    h = s.h
    feet, widest = c.height.shape
    t = 0.0
    while t < h:
        rest = h - t
        dt = substep(p, c, h / count, rest)
        begin_substep(c)
        for k in range(feet):
            for i in range(widest):
                for a in range(2):
                    m.stage[k, i, a] = m.bend[k, i, a]
                    m.rate_sum[k, i, a] = 0.0
        for stage in range(4):
            weight = 2.0 if stage == 1 or stage == 2 else 1.0
            ahead = 0.5 * dt if stage < 2 else dt
            _forces(p, m)
            for k in range(feet):
                for i in range(p.n_vertices[k]):
                    for a in range(2):
                        m.rate_sum[k, i, a] += weight * m.rate[k, i, a]
                        m.stage[k, i, a] = m.bend[k, i, a] + ahead * m.rate[k, i, a]
            next_stage(p, c, stage, dt)
        for k in range(feet):
            for i in range(p.n_vertices[k]):
                for a in range(2):
                    m.bend[k, i, a] += dt / 6.0 * m.rate_sum[k, i, a]
        _settle(p, m)
        t = h if dt == rest else t + dt
    write_result(p, s, 1, wanted > count)


class NonlinearDamping(VertexModel):
    """Springs with Hunt and Crossley's damping at each vertex, and bristles that stick."""

    Params = NonlinearDampingParams
    # Under load a sole sinks by millimetres, in landings by more; a foot that left within the step has risen by then.
    promises = Promises(springs=True, gap=1e-3, depth=0.02)
    kernel = nonlinear_damping

    def _arrays_of(self, n_feet: int, widest: int) -> Bristles:
        sizes, substeps = {"K": n_feet, "N": widest}, Substeps.of_feet(self.contacts)
        self._act_within(substeps.impulse, substeps.late)
        return zeros_of(Bristles, sizes, params=self.params, contacts=self.contacts, substeps=substeps)

    def _memory(self) -> dict[str, NDArray[Any]]:
        return super()._memory() | {"bend": self.arrays.bend}
