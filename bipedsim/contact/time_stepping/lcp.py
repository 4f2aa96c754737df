"""Time stepping with a complementarity problem: impulses at all vertices, friction pyramids, restitution.

Source: Stewart and Trinkle 1996; Anitescu and Potra 1997; with restitution as in Adu-Bredu, *Kicking biped*, eq. 4 to
7. :mod:`bipedsim_studies.complementarity.time_stepping` is the same for any bodies; this is it for feet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.anchors import carry_anchors, way_back
from bipedsim.contact.modes import normal_velocity, target_height_velocity
from bipedsim.contact.time_stepping.cone_newton import POLISHED_PART, begin_with_guess, newton
from bipedsim.contact.time_stepping.cone_problem import (
    LEAVES,
    SLIPS,
    STICKS,
    copy_points,
    fill_velocities,
    let_go,
    measure,
    onto_polygon,
)
from bipedsim.contact.time_stepping.cone_solver import PROXIMAL
from bipedsim.contact.time_stepping.lcp_problem import (
    LcpContacts,
    LcpParams,
    fill_constant,
    fill_free,
    fill_matrix,
    spread,
    take_answer,
)
from bipedsim.contact.vertices import (
    VertexContacts,
    VertexModel,
    begin,
    carry_rows,
    is_part,
    normal_compliance,
    tangential_compliance,
    write_result,
)
from bipedsim.dynamics import UNCHANGED, Projection
from bipedsim.numerics import assign, kernel, point_velocity
from bipedsim.numerics.lcp import SOLVED, TOLERANCE, solve

# What is asked of a step that has no solution: all, no restitution, no friction either, nothing.
_ALL, _NO_RESTITUTION, _NO_FRICTION, _NOTHING = 0, 1, 2, 3
# Distances [m]: a vertex that ends this near to the ground touches it; one that slips less in a step sticks.
_NEAR = 1e-9
_HELD = 1e-11
# Share of mu f_n that friction of a vertex that sticks has to be to say where its pyramid points.
_FELT = 1e-6
# Cosine of the angle between slip and corner, and how often in a step pyramids are turned where it is less.
_ALIGNED = 0.9998
_TURNS = 3
# Newton's method is tried so often, in turn from the best impulses and from none, each time held back so much more.
_TRIES = 4
_MILDER = 1000.0


class Vertices(NamedTuple):
    """Everything that the model writes."""

    contacts: VertexContacts
    lcp: LcpContacts


@kernel
def _carry(p: Projection, s: VertexContacts, m: LcpContacts):
    """Continue anchors and the last impulses on polygons that changed."""
    for k in range(s.result.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            carry_anchors(k, p, s, m.anchors)
            carry_rows(m.last[k], s.origin[k], p.n_vertices[k], m.old)


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
def _turn(s: VertexContacts, m: LcpContacts, count) -> bool:
    """Turn the pyramids of loaded contacts that slip, a corner along the friction that would stop them; return whether
    any was far from it."""
    q = m.points
    more = False
    for a in range(count):
        if q.f[a, 2] > 0.0 and np.hypot(q.u[a, 0], q.u[a, 1]) > _HELD / s.h:
            x = q.mobility[a] * q.f[a, 0] - q.u[a, 0]
            y = q.mobility[a] * q.f[a, 1] - q.u[a, 1]
            needed = np.hypot(x, y)
            more = more or x * q.axis[a, 0] + y * q.axis[a, 1] < _ALIGNED * needed
            last = m.last[q.foot[a], m.vertex[a]]
            last[3] = x / needed
            last[4] = y / needed
    return more


@kernel
def _break_loose(p: Projection, s: VertexContacts, m: LcpContacts, count) -> bool:
    """Give dynamic friction to loaded contacts that static friction does not hold; return whether there are any."""
    more = False
    for a in range(count):
        k = m.points.foot[a]
        i = m.vertex[a]
        if not m.slides[k, i] and m.points.f[a, 2] > 0.0 and p.mu_dynamic[k] != p.mu_static[k]:
            m.slides[k, i] = np.hypot(m.points.u[a, 0], m.points.u[a, 1]) > _HELD / s.h
            more = more or m.slides[k, i]
    return more


@kernel
def _gather(p: Projection, s: VertexContacts, m: LcpContacts, level) -> int:
    """List the contacts that take part: friction, wanted velocities, pyramids, the impulses to begin with; return how
    many there are.

    A pyramid without a direction gets that against which free motion would slip.
    """
    q = m.points
    count = 0
    largest = 0.0
    for k in range(s.result.mode.shape[0]):
        vx, vy, turn = way_back(k, p, s, m.anchors, m.params.gamma / s.h)
        for i in range(p.n_vertices[k]):
            if not m.active[k, i]:
                continue
            r = p.offsets[k, i]
            q.foot[count] = k
            m.vertex[count] = i
            q.mu[count] = p.mu_dynamic[k] if m.slides[k, i] else p.mu_static[k]
            if level >= _NO_FRICTION:
                q.mu[count] = 0.0
            wanted = m.wanted[count]
            wanted[0] = vx - turn * r[1]
            wanted[1] = vy + turn * r[0]
            wanted[2] = target_height_velocity(s.heights[k, i], s.h, m.params.gamma)
            x, y, fall = point_velocity(p.w_free[6 * k :], r)
            if level == _ALL and m.params.restitution > 0.0:
                approach = -normal_velocity(p.w_before, k, r)
                if approach > m.params.rest_speed and s.heights[k, i] + s.h * fall <= 0.0:
                    wanted[2] = max(wanted[2], m.params.restitution * approach)
            last = m.last[k, i]
            x -= wanted[0]
            y -= wanted[1]
            speed = np.hypot(x, y)
            if last[3] == 0.0 and last[4] == 0.0:
                last[3] = -x / speed if speed > 0.0 else 1.0
                last[4] = -y / speed if speed > 0.0 else 0.0
            for a in range(3):
                q.arm[count, a] = r[a]
                q.f[count, a] = last[a]
            if s.touching[k, i]:
                q.guess[count] = STICKS if s.sticking[k, i] else SLIPS
            else:
                q.guess[count] = STICKS if fall < wanted[2] else LEAVES
            q.axis[count, 0] = last[3]
            q.axis[count, 1] = last[4]
            q.mobility[count] = (normal_compliance(p, k, i) + tangential_compliance(p, k, i)) / 3.0
            largest = max(largest, q.mobility[count])
            count += 1
    for a in range(count):
        q.mobility[a] = max(q.mobility[a], 1e-12 * largest)
    q.points[0] = count
    return count


@kernel
def _settle(s: VertexContacts, m: LcpContacts, count, level) -> bool:
    """Fill what touches, what sticks, and where pyramids point next; return whether a vertex is new on the ground.

    Next is against the slip, or along the friction that holds: what grows holds up to all of mu in its direction.
    """
    q = m.points
    gained = False
    for a in range(count):
        k = q.foot[a]
        i = m.vertex[a]
        last = m.last[k, i]
        x, y, away = q.u[a]
        before = s.touching[k, i]
        near = away <= _NEAR / s.h
        ends = s.heights[k, i] + s.h * (away + m.wanted[a, 2])
        s.touching[k, i] = near and (s.impulses[k, i, 2] > 0.0 or ends <= _NEAR)
        slip = np.hypot(x, y)
        s.sticking[k, i] = s.touching[k, i] and level < _NO_FRICTION and slip <= _HELD / s.h
        gained = gained or (s.touching[k, i] and not before)
        if s.sticking[k, i]:
            x = -last[0]
            y = -last[1]
            slip = np.hypot(x, y)
            if slip <= _FELT * q.mu[a] * last[2]:
                slip = 0.0
        last[3] = -x / slip if s.touching[k, i] and slip > 0.0 else 0.0
        last[4] = -y / slip if s.touching[k, i] and slip > 0.0 else 0.0
    for k in range(s.result.mode.shape[0]):
        for i in range(m.active.shape[1]):
            if not m.active[k, i]:
                s.touching[k, i] = False
                s.sticking[k, i] = False
                m.last[k, i, :] = 0.0
    return gained


@kernel
def _attempt(p: Projection, m: LcpContacts, h, level, twists, guessed) -> bool:
    """Solve for the impulses of the contacts that stop ``twists`` (6K,); return False if there is no answer.

    Newton's method begins with the impulses of the last step, or where contacts do what is ``guessed``. What it does
    not solve is for Lemke's.
    """
    q = m.points
    needed = fill_free(m, twists, h)
    q.residual[0] = np.inf
    if not needed:
        q.f[:, :] = 0.0
    elif not q.mobility[0] > 0.0:
        return False
    else:
        q.enough[0] = POLISHED_PART if is_part(p) else 0.0
        if guessed:
            _begin_round(p, m)
        for again in range(_TRIES):
            q.used[0] = 0
            newton(p.G, q, PROXIMAL * _MILDER**again, False)
            if q.residual[0] <= q.tolerance or q.budget[0] <= 0:
                break
            copy_points(q.best, q.f)
            if again % 2 == 0:
                q.f[:, :] = 0.0
        # Into the pyramids and back out of the ground it may grow by as much again. Where the budget of the step is
        # used up, the best that was found acts.
        if not q.residual[0] <= 0.5 * TOLERANCE and not _pivot(p, m, level) and q.budget[0] > 0:
            return False
        copy_points(q.best, q.f)
    for a in range(q.points[0]):
        # The residual allows for as much outside; contact never pulls, and friction ends in its pyramid.
        f = q.f[a]
        f[2] = max(f[2], 0.0)
        f[0], f[1] = onto_polygon(q, a, f[0], f[1], q.mu[a] * f[2])
    fill_velocities(p.G, q)
    let_go(q)
    m.figures[0] = max(m.figures[0], measure(q))
    return True


@kernel
def _begin_round(p: Projection, m: LcpContacts):
    """Begin with the impulses of round cones, and turn the pyramids along their friction: they solve these, too."""
    q = m.points
    q.round[0] = True
    begin_with_guess(p.G, q, PROXIMAL)
    q.used[0] = 0
    newton(p.G, q, PROXIMAL, False)
    q.round[0] = False
    q.residual[0] = np.inf
    copy_points(q.best, q.f)
    fill_velocities(p.G, q)
    for a in range(q.points[0]):
        x = q.mobility[a] * q.f[a, 0] - q.u[a, 0]
        y = q.mobility[a] * q.f[a, 1] - q.u[a, 1]
        needed = np.hypot(x, y)
        if q.f[a, 2] > 0.0 and needed > 0.0:
            last = m.last[q.foot[a], m.vertex[a]]
            q.axis[a, 0] = last[3] = x / needed
            q.axis[a, 1] = last[4] = y / needed


@kernel
def _pivot(p: Projection, m: LcpContacts, level) -> bool:
    """Solve the problem by Lemke's method, into ``m.points.best``; return whether it has an answer."""
    q = m.points
    count = q.points[0]
    sides = m.corners.shape[0] if level < _NO_FRICTION else 0
    n = count * (sides + 2) if sides > 0 else count
    fill_matrix(p, m, count, sides)
    fill_constant(m, count, sides)
    found = solve(m.work, n, 50 + 20 * n, False) == SOLVED
    m.figures[1] += m.work.pivots[0]
    if not found:
        return False
    take_answer(m, count, sides)
    fill_velocities(p.G, q)
    copy_points(q.f, q.best)
    q.residual[0] = measure(q)
    spread(m, count)
    before = q.residual[0]
    q.residual[0] = TOLERANCE
    q.used[0] = 0
    newton(p.G, q, PROXIMAL, False)
    if q.residual[0] == TOLERANCE:
        q.residual[0] = before
    return True


@kernel
def lcp(p: Projection, model: Vertices):
    """Take one step: solve for the vertices near the ground, and again where the answer drives others below it, makes
    some slide that static friction was tried on, or aside of their pyramid."""
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
    turns = 0
    m.figures[:] = 0.0
    count, ended = 0, False
    # Each try but the last takes a vertex in, has one slide, turns a pyramid or leaves a level.
    for _ in range(2 * m.active.size + _TURNS + _NOTHING + 1):
        count = _gather(p, s, m, level)
        if count > 0 and level < _NOTHING:
            solves += 1
            if not _attempt(p, m, s.h, level, p.w_free, solves == 1 and is_part(p)):
                level = _NO_FRICTION if level == _ALL and m.params.restitution == 0.0 else level + 1
                continue
        else:
            _let_go(p, m)
        _take(s, m, count)
        if m.points.budget[0] <= 0:
            break
        for i in range(m.w_next.shape[0]):
            m.w_next[i] = p.w_free[i] + m.points.twist[i]
        if _choose(p, s, m, m.w_next, -_NEAR):
            continue
        if level < _NO_FRICTION:
            if turns < _TURNS and _turn(s, m, count):
                turns += 1
                continue
            if _break_loose(p, s, m, count):
                continue
        ended = True
        break
    gained = _settle(s, m, count, level)
    wanted = (gained or m.landed[0]) and not p.parted[0]
    if wanted and count > 0 and level < _NOTHING:
        if _attempt(p, m, s.h, level, p.w_before, False):
            # What takes the velocities before the step to those wanted; the rest answers the forces over the step.
            for a in range(count):
                assign(s.impacts[m.points.foot[a], m.vertex[a]], m.points.f[a])
        else:
            ended = False
    m.landed[0] = gained
    write_result(p, s, solves, level > _ALL or not ended or m.points.budget[0] <= 0)


@kernel
def _let_go(p: Projection, m: LcpContacts):
    """Take no impulses."""
    fill_free(m, p.w_free, 1.0)
    m.points.f[:, :] = 0.0
    fill_velocities(p.G, m.points)


@kernel
def _take(s: VertexContacts, m: LcpContacts, count):
    """Take over the impulses of the contacts."""
    for a in range(count):
        k = m.points.foot[a]
        i = m.vertex[a]
        for j in range(3):
            s.impulses[k, i, j] = m.points.f[a, j]
            m.last[k, i, j] = m.points.f[a, j]


class Lcp(VertexModel):
    """Time stepping with a complementarity problem: every vertex pushes, sticks, slides or bounces on its own."""

    Params = LcpParams
    kernel = lcp

    def _arrays_of(self, n_feet: int, widest: int) -> Vertices:
        return Vertices(self.contacts, LcpContacts.of_feet(n_feet, widest, self.params, self._projection.budget))

    @property
    def residual(self) -> float:
        """Residual of the last step, as that of ``ncp`` with pyramids in the cones; 0 in the air."""
        return float(self.arrays.lcp.figures[0])

    @property
    def pivots(self) -> int:
        """Pivots of Lemke's method in the last step; 0 where Newton's found the answer."""
        return int(self.arrays.lcp.figures[1])

    def _memory(self) -> dict[str, NDArray[Any]]:
        m = self.arrays.lcp
        own = {"last": m.last, "anchors": m.anchors.place, "anchored": m.anchors.held, "landed": m.landed}
        return super()._memory() | own | {"figures": m.figures}
