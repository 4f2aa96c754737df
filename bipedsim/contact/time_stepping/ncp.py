"""Nonlinear complementarity: unilateral contact and the exact Coulomb cone at every vertex, the reference of the table.

Every vertex is a point contact: it does not pull, does not go below the ground, and its friction is that of all forces
in the circular cone which dissipates most. No sets, no pyramid, no stiffness; impulses of one step as in time stepping
after Moreau. See ``cone_problem.py`` for the problem and its residual, ``cone_solver.py`` for its solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import param
from bipedsim.contact.anchors import Anchors, carry_anchors, way_back
from bipedsim.contact.modes import target_height_velocity
from bipedsim.contact.time_stepping.cone_newton import POLISHED_PART, begin_with_guess
from bipedsim.contact.time_stepping.cone_problem import LEAVES, SLIPS, STICKS, ConeProblem
from bipedsim.contact.time_stepping.cone_solver import PROXIMAL, solve_cones
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
from bipedsim.numerics import Array, Flags, assign, kernel, point_velocity, zeros_of

ZERO_SPEED = 10.0
"""A vertex slower than this many times the tolerance touches, or sticks."""

LEAST = 100.0
"""Acceleration [m/s^2] whose speed after a step is the least that residuals are relative to: 1e-9 m/s are rounding."""


@dataclass(frozen=True)
class NcpParams:
    """Parameters of the nonlinear complementarity model."""

    tolerance: float = param(
        1e-8, "residual that counts as solved, beside the speed that contact has to take away", low=1e-13, high=1e-3
    )
    iterations: int = param(5000, "iterations that one problem may take; the best one is kept", low=1, high=1000000)
    restitution: float = param(
        0.0, "Newton's coefficient: the share of its speed with which a vertex that arrives leaves", low=0.0, high=1.0
    )
    gamma: float = param(0.2, "share of a position error of the contact that one step removes", low=1e-6, high=1.0)


class Friction(NamedTuple):
    """What the model keeps beside the vertices.

    Attributes:
        params: The parameters.
        warm: (K, N, 3) impulses of the last step, ground axes [N.s].
        anchors: Where sticking vertices belong.
        landed: (1,) whether a vertex touched down in the last step.
        targets: (K, N, 3) velocities wanted of the vertices [m/s].
        old_warm: (N, 3) work, for a polygon that changes.
        figures: (2,) residual of the last step, and the iterations that it took.
    """

    params: NcpParams
    warm: Annotated[Array, "K", "N", 3]
    anchors: Anchors
    landed: Annotated[Flags, 1]
    targets: Annotated[Array, "K", "N", 3]
    old_warm: Annotated[Array, "N", 3]
    figures: Annotated[Array, 2]

    @classmethod
    def of_feet(cls, n_feet: int, widest: int, params: NcpParams) -> Friction:
        """Return the arrays for ``n_feet`` of ``widest`` vertices at most."""
        anchors = Anchors.of_feet(n_feet, widest)
        return zeros_of(cls, {"K": n_feet, "N": widest}, params=params, anchors=anchors)


@kernel
def _fill_problem(p: Projection, s: VertexContacts, t: Friction, q: ConeProblem) -> bool:
    """Fill wanted velocities and the points of all feet; return whether any of them would go through the ground.

    A vertex wants to be at the ground at the end of the step if it is above, and to get out of it by ``gamma`` if it is
    below; with restitution, one that arrives wants to leave.
    """
    h = s.h
    m = 0
    for k in range(s.result.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            carry_rows(t.warm[k], s.origin[k], p.n_vertices[k], t.old_warm)
            carry_anchors(k, p, s, t.anchors)
        vx, vy, wz = way_back(k, p, s, t.anchors, t.params.gamma / h)
        for i in range(p.n_vertices[k]):
            r = p.offsets[k, i]
            target = t.targets[k, i]
            target[0] = vx - wz * r[1]
            target[1] = vy + wz * r[0]
            target[2] = target_height_velocity(s.heights[k, i], h, t.params.gamma)
            q.foot[m] = k
            for a in range(3):
                q.arm[m, a] = r[a]
                q.f[m, a] = t.warm[k, i, a]
            if t.params.restitution > 0.0 and not s.touching[k, i]:
                assign(q.g[m], point_velocity(p.w_free[6 * k :], r))
                if q.g[m, 2] < target[2]:
                    assign(q.g[m], point_velocity(p.w_before[6 * k :], r))
                    target[2] = max(target[2], -t.params.restitution * q.g[m, 2])
            q.mu[m] = p.mu_static[k] if s.sticking[k, i] or not s.touching[k, i] else p.mu_dynamic[k]
            q.mobility[m] = (normal_compliance(p, k, i) + tangential_compliance(p, k, i)) / 3.0
            m += 1
    q.points[0] = m
    return _fill_free(p.w_free, s, t, q)


@kernel
def _fill_free(w, s: VertexContacts, t: Friction, q: ConeProblem) -> bool:
    """Fill ``q.g`` and its scale with the velocities ``w`` (6K,); return whether a vertex needs contact.

    The scale is the fastest that contact may have to take away, at least what ``LEAST`` brings in a step.
    """
    needed = False
    scale = LEAST * s.h
    k = 0
    i = 0
    largest = 0.0
    for m in range(q.points[0]):
        i = i + 1 if m > 0 and q.foot[m] == k else 0
        k = q.foot[m]
        assign(q.g[m], point_velocity(w[6 * k :], q.arm[m]))
        for a in range(3):
            q.g[m, a] -= t.targets[k, i, a]
        # Not the speeds of what is far above the ground: those of impacts are lifted out of reach.
        scale = max(scale, abs(q.g[m, 0]), abs(q.g[m, 1]), -q.g[m, 2])
        needed = needed or q.g[m, 2] < 0.0
        largest = max(largest, q.mobility[m])
    q.scale[0] = scale
    # A point that nothing can move gets no impulse worth the name.
    for m in range(q.points[0]):
        q.mobility[m] = max(q.mobility[m], 1e-12 * largest)
    return needed and largest > 0.0


@kernel
def _guess(s: VertexContacts, q: ConeProblem) -> None:
    """Fill ``q.guess``: what touches does what it did in the last part of the step, and what arrives sticks."""
    k = 0
    i = 0
    for m in range(q.points[0]):
        i = i + 1 if m > 0 and q.foot[m] == k else 0
        k = q.foot[m]
        if s.touching[k, i]:
            q.guess[m] = STICKS if s.sticking[k, i] else SLIPS
        else:
            q.guess[m] = STICKS if q.g[m, 2] < 0.0 else LEAVES


@kernel
def _take_dynamic(p: Projection, q: ConeProblem) -> bool:
    """Give dynamic friction to loaded vertices that slip with more; return whether there was one."""
    slow = ZERO_SPEED * q.tolerance * q.scale[0]
    found = False
    for m in range(q.points[0]):
        mu = p.mu_dynamic[q.foot[m]]
        if q.mu[m] > mu and q.f[m, 2] > 0.0 and np.hypot(q.u[m, 0], q.u[m, 1]) > slow:
            q.mu[m] = mu
            found = True
    return found


class Cones(NamedTuple):
    """Everything that the model writes."""

    contacts: VertexContacts
    friction: Friction
    problem: ConeProblem


@kernel
def ncp(p: Projection, model: Cones):
    """Take one step: the impulses that keep all vertices out of the ground, and what part of them is impact.

    Where a vertex touched down in this step or the last one, the same problem is solved once more with the velocities
    before the step in place of those that free forces bring: what that takes is the impact.
    """
    s = model.contacts
    t = model.friction
    q = model.problem
    begin(p, s)
    solves = 0
    used = 0
    residual = 0.0
    solved = True
    if _fill_problem(p, s, t, q):
        q.enough[0] = 0.0
        if is_part(p):
            q.enough[0] = POLISHED_PART
            _guess(s, q)
            begin_with_guess(p.G, q, PROXIMAL)
        # Each solve but the last gives a point dynamic friction.
        for _ in range(q.points[0] + 1):
            solved = solve_cones(p.G, q)
            solves += 1
            used += q.used[0]
            residual = q.residual[0]
            if not _take_dynamic(p, q):
                break
    else:
        solved = _let_go(q)
    gained = _take_state(s, t, q)
    if (gained or t.landed[0]) and not p.parted[0] and _fill_free(p.w_before, s, t, q):
        solved = solve_cones(p.G, q) and solved
        solves += 1
        used += q.used[0]
        residual = max(residual, q.residual[0])
        _unpack(q, s.impacts)
    t.landed[0] = gained
    t.figures[0] = residual
    t.figures[1] = used
    write_result(p, s, solves, not solved)


@kernel
def _let_go(q: ConeProblem) -> bool:
    """Take no impulses; return whether no point goes through the ground (that of a foot which nothing can move may)."""
    above = True
    for m in range(q.points[0]):
        for a in range(3):
            q.f[m, a] = 0.0
            q.u[m, a] = q.g[m, a]
        above = above and q.u[m, 2] >= 0.0
    return above


@kernel
def _take_state(s: VertexContacts, t: Friction, q: ConeProblem) -> bool:
    """Take over impulses and who touches and sticks; return whether a vertex touched down."""
    _unpack(q, s.impulses)
    _unpack(q, t.warm)
    slow = ZERO_SPEED * q.tolerance * q.scale[0]
    gained = False
    k = 0
    i = 0
    for m in range(q.points[0]):
        i = i + 1 if m > 0 and q.foot[m] == k else 0
        k = q.foot[m]
        touching = q.f[m, 2] > 0.0 or q.u[m, 2] <= slow
        gained = gained or (touching and not s.touching[k, i])
        s.touching[k, i] = touching
        s.sticking[k, i] = touching and np.hypot(q.u[m, 0], q.u[m, 1]) <= slow
    return gained


@kernel
def _unpack(q: ConeProblem, out):
    """Fill ``out`` (K, N, 3) with the impulses of all points."""
    out[:, :, :] = 0.0
    k = 0
    i = 0
    for m in range(q.points[0]):
        i = i + 1 if m > 0 and q.foot[m] == k else 0
        k = q.foot[m]
        for a in range(3):
            out[k, i, a] = q.f[m, a]


class Ncp(VertexModel):
    """Point contacts with the exact friction cone at all vertices.

    Where vertices are redundant, as the four of a rigid sole, wrenches are unique and vertex forces are not: they stay
    near those of the last step, and begin near the ones of least norm.
    """

    Params = NcpParams
    kernel = ncp

    def _arrays_of(self, n_feet: int, widest: int) -> Cones:
        friction = Friction.of_feet(n_feet, widest, self.params)
        limits = self.params.tolerance, self.params.iterations
        problem = ConeProblem.of_feet(n_feet, n_feet * widest, *limits, budget=self._projection.budget)
        return Cones(self.contacts, friction, problem)

    @property
    def residual(self) -> float:
        """How far the last step is from a solution, relative to the speed that contact had to take away."""
        return float(self.arrays.friction.figures[0])

    @property
    def iterations(self) -> int:
        """Iterations of the last step, over all problems that it solved."""
        return int(self.arrays.friction.figures[1])

    def _memory(self) -> dict[str, NDArray[Any]]:
        t = self.arrays.friction
        own = {"warm": t.warm, "anchors": t.anchors.place, "anchored": t.anchors.held, "landed": t.landed}
        return super()._memory() | own | {"figures": t.figures}
