"""Time stepping with a complementarity problem: impulses at all vertices, friction pyramids, restitution.

Source: Stewart and Trinkle 1996; Anitescu and Potra 1997; with restitution as in Adu-Bredu, *Kicking biped*, eq. 4 to
7. :mod:`bipedsim_studies.complementarity.time_stepping` is the same method for any bodies; this module is for feet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.anchors import carry_anchors, drift_correction
from bipedsim.contact.modes import normal_velocity, target_height_velocity
from bipedsim.contact.time_stepping.cone_newton import POLISHED_PART, begin_with_guess, newton
from bipedsim.contact.time_stepping.cone_problem import (
    LEAVES,
    SLIPS,
    STICKS,
    clear_open_points,
    copy_points,
    fill_velocities,
    floor_mobilities,
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
    read_solution,
    spread,
)
from bipedsim.contact.vertices import (
    VertexContacts,
    VertexModel,
    begin_vertices,
    carry_rows,
    is_part,
    mean_mobility,
    write_vertices,
)
from bipedsim.dynamics import UNCHANGED, Projection
from bipedsim.numerics import assign, kernel, point_velocity
from bipedsim.numerics.lcp import SOLVED, TOLERANCE, solve

# Relaxation levels of a step without solution: the full problem, no restitution, also no friction, no contact.
_ALL, _NO_RESTITUTION, _NO_FRICTION, _NOTHING = 0, 1, 2, 3
# A vertex that ends within _NEAR [m] of the ground is in contact; one that slips less than _HELD [m] per step sticks.
_NEAR = 1e-9
_HELD = 1e-11
# Fraction of mu f_n above which friction of a sticking vertex defines the direction of its pyramid.
_FELT = 1e-6
# Minimum cosine of the angle between slip and corner, and maximum number of pyramid rotations per step to reach it.
_ALIGNED = 0.9998
_ROTATIONS = 3
# Number of attempts of Newton's method, alternately from the best impulses and from zero, and the factor by which the
# proximal weight grows with each.
_ATTEMPTS = 4
_MILDER = 1000.0


class Vertices(NamedTuple):
    """All arrays that the model writes."""

    contacts: VertexContacts
    lcp: LcpContacts


@kernel
def _carry(p: Projection, s: VertexContacts, m: LcpContacts):
    """Transfer anchors and the last impulses to polygons that changed."""
    for k in range(s.result.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            carry_anchors(k, p, s, m.anchors)
            carry_rows(m.last[k], s.origin[k], p.n_vertices[k], m.old)


@kernel
def _activate(p: Projection, s: VertexContacts, m: LcpContacts, twists, lowest) -> bool:
    """Activate vertices that the ``twists`` move below ``lowest`` [m]; return whether any is new."""
    more = False
    for k in range(s.result.mode.shape[0]):
        for i in range(p.n_vertices[k]):
            if not m.active[k, i]:
                height = s.heights[k, i] + s.h * normal_velocity(twists, k, p.offsets[k, i])
                m.active[k, i] = height < lowest
                more = more or m.active[k, i]
    return more


@kernel
def _rotate_pyramids(s: VertexContacts, m: LcpContacts, count) -> bool:
    """Rotate the pyramids of loaded slipping contacts, so that a corner is along the friction that would stop them.

    Returns:
        Whether any pyramid was far from this direction.
    """
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
    """Set dynamic friction at loaded contacts that static friction does not hold; return whether there are any."""
    more = False
    for a in range(count):
        k = m.points.foot[a]
        i = m.vertex[a]
        if not m.slides[k, i] and m.points.f[a, 2] > 0.0 and p.mu_dynamic[k] != p.mu_static[k]:
            m.slides[k, i] = np.hypot(m.points.u[a, 0], m.points.u[a, 1]) > _HELD / s.h
            more = more or m.slides[k, i]
    return more


@kernel
def _collect_contacts(p: Projection, s: VertexContacts, m: LcpContacts, level) -> int:
    """List the active contacts with friction, target velocities, pyramids and initial impulses; return their number.

    A pyramid without a direction gets the direction opposite to the slip of free motion.
    """
    q = m.points
    count = 0
    for k in range(s.result.mode.shape[0]):
        vx, vy, turn = drift_correction(k, p, s, m.anchors, m.params.gamma / s.h)
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
            q.mobility[count] = mean_mobility(p, k, i)
            count += 1
    q.points[0] = count
    floor_mobilities(q)
    return count


@kernel
def _update_flags(s: VertexContacts, m: LcpContacts, count, level) -> bool:
    """Update contact, sticking and the next pyramid directions; return whether a vertex touched down.

    The next direction is opposite to the slip, or along the friction that holds. A growing force in that direction can
    then reach all of mu.
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
    """Solve for the impulses of the contacts that stop ``twists`` (6K,); return False if there is no solution.

    Newton's method starts from the impulses of the last step, or from the predicted states if ``guessed``. Lemke's
    method solves the remaining problems.
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
        for again in range(_ATTEMPTS):
            q.used[0] = 0
            newton(p.G, q, PROXIMAL * _MILDER**again, False)
            if q.residual[0] <= q.tolerance or q.budget[0] <= 0:
                break
            copy_points(q.best, q.f)
            if again % 2 == 0:
                q.f[:, :] = 0.0
        # Projection on the pyramids and out of the ground may add as much residual again. When the budget of the step
        # is exhausted, the best impulses are used.
        if not q.residual[0] <= 0.5 * TOLERANCE and not _pivot(p, m, level) and q.budget[0] > 0:
            return False
        copy_points(q.best, q.f)
    for a in range(q.points[0]):
        # The residual allows small violations; this excludes pulls and friction outside the pyramid.
        f = q.f[a]
        f[2] = max(f[2], 0.0)
        f[0], f[1] = onto_polygon(q, a, f[0], f[1], q.mu[a] * f[2])
    fill_velocities(p.G, q)
    clear_open_points(q)
    m.figures[0] = max(m.figures[0], measure(q))
    return True


@kernel
def _begin_round(p: Projection, m: LcpContacts):
    """Start from the impulses of round cones, and rotate the pyramids along their friction, so that these also solve
    the pyramid problem."""
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
    """Solve the problem by Lemke's method and write ``m.points.best``; return whether it has a solution."""
    q = m.points
    count = q.points[0]
    sides = m.corners.shape[0] if level < _NO_FRICTION else 0
    n = count * (sides + 2) if sides > 0 else count
    fill_matrix(p, m, count, sides)
    fill_constant(m, count, sides)
    solved = solve(m.work, n, 50 + 20 * n, False) == SOLVED
    m.figures[1] += m.work.pivots[0]
    if not solved:
        return False
    read_solution(m, count, sides)
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
    """Advance one step with impulses at the vertices near the ground.

    The problem is solved again if further vertices end below the ground, or if a vertex slides in spite of static
    friction. It is also solved again if a slip is not aligned with its pyramid.
    """
    s = model.contacts
    m = model.lcp
    begin_vertices(p, s)
    _carry(p, s, m)
    for k in range(s.result.mode.shape[0]):
        for i in range(m.active.shape[1]):
            m.active[k, i] = False
            m.slides[k, i] = s.touching[k, i] and not s.sticking[k, i]
    _activate(p, s, m, p.w_free, m.params.threshold)
    level = _ALL
    solves = 0
    rotations = 0
    m.figures[:] = 0.0
    count, ended = 0, False
    # Each attempt except the last activates a vertex, lets one slide, rotates a pyramid or relaxes the problem.
    for _ in range(2 * m.active.size + _ROTATIONS + _NOTHING + 1):
        count = _collect_contacts(p, s, m, level)
        if count > 0 and level < _NOTHING:
            solves += 1
            if not _attempt(p, m, s.h, level, p.w_free, solves == 1 and is_part(p)):
                level = _NO_FRICTION if level == _ALL and m.params.restitution == 0.0 else level + 1
                continue
        else:
            _clear_impulses(p, m)
        _store_impulses(s, m, count)
        if m.points.budget[0] <= 0:
            break
        for i in range(m.w_next.shape[0]):
            m.w_next[i] = p.w_free[i] + m.points.twist[i]
        if _activate(p, s, m, m.w_next, -_NEAR):
            continue
        if level < _NO_FRICTION:
            if rotations < _ROTATIONS and _rotate_pyramids(s, m, count):
                rotations += 1
                continue
            if _break_loose(p, s, m, count):
                continue
        ended = True
        break
    gained = _update_flags(s, m, count, level)
    wanted = (gained or m.landed[0]) and not p.parted[0]
    if wanted and count > 0 and level < _NOTHING:
        if _attempt(p, m, s.h, level, p.w_before, False):
            # This impulse changes the velocities before the step to the target; the rest balances forces over the step.
            for a in range(count):
                assign(s.impacts[m.points.foot[a], m.vertex[a]], m.points.f[a])
        else:
            ended = False
    m.landed[0] = gained
    write_vertices(p, s, solves, level > _ALL or not ended or m.points.budget[0] <= 0)


@kernel
def _clear_impulses(p: Projection, m: LcpContacts):
    """Set all impulses to zero."""
    fill_free(m, p.w_free, 1.0)
    m.points.f[:, :] = 0.0
    fill_velocities(p.G, m.points)


@kernel
def _store_impulses(s: VertexContacts, m: LcpContacts, count):
    """Store the impulses of the contacts."""
    for a in range(count):
        k = m.points.foot[a]
        i = m.vertex[a]
        for j in range(3):
            s.impulses[k, i, j] = m.points.f[a, j]
            m.last[k, i, j] = m.points.f[a, j]


class Lcp(VertexModel):
    """Solve contacts as a complementarity problem: every vertex pushes, sticks, slides or bounces independently."""

    Params = LcpParams
    kernel = lcp
    rigid = True

    def _arrays_of(self, n_feet: int, widest: int) -> Vertices:
        return Vertices(self.contacts, LcpContacts.of_feet(n_feet, widest, self.params, self._projection.budget))

    @property
    def residual(self) -> float:
        """Residual of the last step, as for ``ncp`` but with pyramids inside the cones; 0 in the air."""
        return float(self.arrays.lcp.figures[0])

    @property
    def pivots(self) -> int:
        """Number of pivots of Lemke's method in the last step; 0 if Newton's method found the solution."""
        return int(self.arrays.lcp.figures[1])

    def _memory(self) -> dict[str, NDArray[Any]]:
        m = self.arrays.lcp
        own = {"last": m.last, "anchors": m.anchors.place, "anchored": m.anchors.held, "landed": m.landed}
        return super()._memory() | own | {"figures": m.figures}
