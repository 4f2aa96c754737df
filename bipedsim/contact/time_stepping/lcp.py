"""Time stepping with a complementarity problem: impulses at all vertices, friction pyramids, restitution.

Source: Stewart and Trinkle 1996; Anitescu and Potra 1997; with restitution as in Adu-Bredu, *Kicking biped*, eq. 4 to
7. :mod:`bipedsim_studies.complementarity.time_stepping` is the same for any bodies; this is it for feet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from bipedsim.contact.anchors import carry_anchors, way_back
from bipedsim.contact.modes import normal_velocity, target_height_velocity
from bipedsim.contact.time_stepping.lcp_problem import (
    LcpContacts,
    LcpParams,
    advance_twists,
    carry_basis,
    fill_constant,
    fill_matrix,
    take_impulses,
)
from bipedsim.contact.vertices import VertexContacts, VertexModel, begin, write_result
from bipedsim.dynamics import UNCHANGED, Projection
from bipedsim.numerics import assign, kernel, point_velocity
from bipedsim.numerics.lcp import SOLVED, respond, solve

# What is asked of a step that has no solution: all, no restitution, no friction either, nothing.
_ALL, _NO_RESTITUTION, _NO_FRICTION, _NOTHING = 0, 1, 2, 3
# Distances [m]: a vertex that ends this near to the ground touches it; one that slips less in a step sticks.
_NEAR = 1e-9
_HELD = 1e-11


class Vertices(NamedTuple):
    """Everything that the model writes."""

    contacts: VertexContacts
    lcp: LcpContacts


@kernel
def _carry(p: Projection, s: VertexContacts, m: LcpContacts):
    """Continue anchors on polygons that changed; a basis of the old one says nothing of the new one."""
    for k in range(s.result.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            carry_anchors(k, p, s, m.anchors)
            m.basis[k, :, :] = False


@kernel
def _choose(p: Projection, s: VertexContacts, m: LcpContacts, twists, lowest) -> bool:
    """Let vertices that end below ``lowest`` [m] with the ``twists`` take part; return whether any is new."""
    more = False
    for k in range(s.result.mode.shape[0]):
        for i in range(p.n_vertices[k]):
            if not m.active[k, i]:
                height = s.heights[k, i] + s.h * normal_velocity(twists, k, p.offsets[k, i])
                m.active[k, i] = height < lowest
                more = more or m.active[k, i]
    return more


@kernel
def _break_loose(p: Projection, s: VertexContacts, m: LcpContacts, count) -> bool:
    """Give dynamic friction to loaded contacts that static friction does not hold; return whether there are any."""
    more = False
    v = m.column[0]
    for a in range(count):
        k = m.foot[a]
        i = m.vertex[a]
        if not m.slides[k, i] and s.impulses[k, i, 2] > 0.0 and p.mu_dynamic[k] != p.mu_static[k]:
            assign(v, point_velocity(m.w_next[6 * k :], p.offsets[k, i]))
            slip = max(abs(v[0] - m.wanted[a, 0]), abs(v[1] - m.wanted[a, 1]))
            m.slides[k, i] = slip > _HELD / s.h
            more = more or m.slides[k, i]
    return more


@kernel
def _gather(p: Projection, s: VertexContacts, m: LcpContacts, level) -> int:
    """List the contacts that take part with friction and wanted velocities; return how many there are."""
    count = 0
    for k in range(s.result.mode.shape[0]):
        vx, vy, turn = way_back(k, p, s, m.anchors, m.params.gamma / s.h)
        for i in range(p.n_vertices[k]):
            if not m.active[k, i]:
                continue
            m.foot[count] = k
            m.vertex[count] = i
            m.mu[count] = p.mu_dynamic[k] if m.slides[k, i] else p.mu_static[k]
            m.wanted[count, 0] = vx - turn * p.offsets[k, i, 1]
            m.wanted[count, 1] = vy + turn * p.offsets[k, i, 0]
            height = s.heights[k, i]
            wanted = target_height_velocity(height, s.h, m.params.gamma)
            if level == _ALL and m.params.restitution > 0.0:
                approach = -normal_velocity(p.w_before, k, p.offsets[k, i])
                arrives = height + s.h * normal_velocity(p.w_free, k, p.offsets[k, i]) <= 0.0
                if approach > m.params.rest_speed and arrives:
                    wanted = max(wanted, m.params.restitution * approach)
            m.wanted[count, 2] = wanted
            count += 1
    return count


@kernel
def _settle(p: Projection, s: VertexContacts, m: LcpContacts, count, level) -> bool:
    """Fill what touches and what sticks after the step; return whether a vertex is new on the ground."""
    gained = False
    for a in range(count):
        k = m.foot[a]
        i = m.vertex[a]
        v = m.column[0]
        assign(v, point_velocity(m.w_next[6 * k :], p.offsets[k, i]))
        before = s.touching[k, i]
        near = v[2] - m.wanted[a, 2] <= _NEAR / s.h
        touching = near and (s.impulses[k, i, 2] > 0.0 or s.heights[k, i] + s.h * v[2] <= _NEAR)
        slip = max(abs(v[0] - m.wanted[a, 0]), abs(v[1] - m.wanted[a, 1]))
        s.touching[k, i] = touching
        s.sticking[k, i] = touching and level < _NO_FRICTION and slip <= _HELD / s.h
        gained = gained or (touching and not before)
    for k in range(s.result.mode.shape[0]):
        for i in range(m.active.shape[1]):
            if not m.active[k, i]:
                s.touching[k, i] = False
                s.sticking[k, i] = False
    return gained


@kernel
def _attempt(p: Projection, s: VertexContacts, m: LcpContacts, count, level) -> bool:
    """Solve for the impulses of ``count`` contacts; return False, and leave them zero, if there is no answer."""
    sides = m.corners.shape[0] if level < _NO_FRICTION else 0
    n = count * (sides + 2) if sides > 0 else count
    fill_matrix(p, m, count, sides)
    fill_constant(p, m, count, sides, p.w_free)
    carry_basis(m, count, sides, False)
    if solve(m.work, n, 50 + 20 * n, True) != SOLVED:
        return False
    for i in range(n):
        # The residual allows for as much below zero; contact never pulls.
        m.work.z[i] = max(m.work.z[i], 0.0)
    carry_basis(m, count, sides, True)
    take_impulses(m, count, sides, s.impulses)
    return True


@kernel
def lcp(p: Projection, model: Vertices):
    """Take one step: solve for the vertices near the ground, and again where the answer drives others below it, or
    makes some slide that static friction was tried on."""
    s = model.contacts
    m = model.lcp
    begin(p, s)
    _carry(p, s, m)
    for k in range(s.result.mode.shape[0]):
        for i in range(m.active.shape[1]):
            m.active[k, i] = False
            m.slides[k, i] = s.touching[k, i] and not s.sticking[k, i]
    _choose(p, s, m, p.w_free, m.params.threshold)
    level = _ALL
    solves = 0
    m.work.residual[0] = 0.0
    m.work.pivots[0] = 0
    while True:
        count = _gather(p, s, m, level)
        if count > 0 and level < _NOTHING:
            solves += 1
            if not _attempt(p, s, m, count, level):
                level = _NO_FRICTION if level == _ALL and m.params.restitution == 0.0 else level + 1
                s.impulses[:, :, :] = 0.0
                continue
        advance_twists(p, s, m, count)
        below = _choose(p, s, m, m.w_next, -_NEAR)
        loose = level < _NO_FRICTION and _break_loose(p, s, m, count)
        if not (below or loose):
            break
    gained = _settle(p, s, m, count, level)
    if (gained or m.landed[0]) and count > 0 and level < _NOTHING:
        # What takes the velocities before the step to those wanted; the rest answers the forces over the step.
        sides = m.corners.shape[0] if level < _NO_FRICTION else 0
        fill_constant(p, m, count, sides, p.w_before)
        respond(m.work, count * (sides + 2) if sides > 0 else count)
        take_impulses(m, count, sides, s.impacts)
    m.landed[0] = gained
    write_result(p, s, solves, level > _ALL)


class Lcp(VertexModel):
    """Time stepping with a complementarity problem: every vertex pushes, sticks, slides or bounces on its own."""

    Params = LcpParams
    kernel = lcp

    def _arrays_of(self, n_feet: int, widest: int) -> Vertices:
        return Vertices(self.contacts, LcpContacts.of_feet(n_feet, widest, self.params))

    @property
    def residual(self) -> float:
        """Scaled residual of the last step's problem; 0 in the air."""
        return float(self.arrays.lcp.work.residual[0])

    @property
    def pivots(self) -> int:
        """Pivots that the last problem of the last step took; 0 where the basis of the step before held."""
        return int(self.arrays.lcp.work.pivots[0])

    def _memory(self) -> dict[str, NDArray[Any]]:
        m = self.arrays.lcp
        own = {"basis": m.basis, "anchors": m.anchors.place, "anchored": m.anchors.held, "landed": m.landed}
        return super()._memory() | own | {"residual": m.work.residual, "pivots": m.work.pivots}
