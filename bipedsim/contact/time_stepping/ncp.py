"""Nonlinear complementarity: unilateral contact and the exact Coulomb cone at every vertex; the reference model.

Every vertex is a point contact. It does not pull and does not penetrate, and its friction is the force in the circular
cone that dissipates most. The model has no modes, no pyramid and no stiffness. Impulses act over one step as in
Moreau's time stepping. ``cone_problem.py`` defines the problem and its residual, ``cone_solver.py`` solves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import param
from bipedsim.contact.anchors import Anchors, carry_anchors, drift_correction
from bipedsim.contact.modes import target_height_velocity
from bipedsim.contact.time_stepping.cone_newton import POLISHED_PART, begin_with_guess
from bipedsim.contact.time_stepping.cone_problem import LEAVES, SLIPS, STICKS, ConeProblem, floor_mobilities
from bipedsim.contact.time_stepping.cone_solver import PROXIMAL, solve_cones
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
from bipedsim.numerics import Array, Flags, assign, kernel, point_velocity, zeros_of

ZERO_SPEED = 10.0
"""A vertex slower than this many times the tolerance counts as in contact, or as sticking."""

LEAST = 100.0
"""Acceleration [m/s^2] that defines the minimum scale of residuals, as its speed after one step.

Without a minimum, speeds at rounding level (1e-9 m/s) would count.
"""


@dataclass(frozen=True)
class NcpParams:
    """Parameters of the nonlinear complementarity model."""

    tolerance: float = param(
        1e-8, "residual that counts as solved, relative to the speed that the contact removes", low=1e-13, high=1e-3
    )
    iterations: int = param(5000, "maximum number of iterations per problem; the best one is used", low=1, high=1000000)
    restitution: float = param(
        0.0, "Newton's coefficient: speed of a vertex after an impact over the speed before", low=0.0, high=1.0
    )
    gamma: float = param(0.2, "share of a position error of the contact that one step removes", low=1e-6, high=1.0)


class FrictionState(NamedTuple):
    """Friction state and work arrays of the model.

    Attributes:
        params: The parameters.
        warm: (K, N, 3) impulses of the last step, ground axes [N.s].
        anchors: Anchors of sticking vertices.
        landed: (1,) whether a vertex touched down in the last step.
        targets: (K, N, 3) target velocities of the vertices [m/s].
        old_warm: (N, 3) work array for a polygon that changes.
        figures: (2,) residual of the last step, and its number of iterations.
    """

    params: NcpParams
    warm: Annotated[Array, "K", "N", 3]
    anchors: Anchors
    landed: Annotated[Flags, 1]
    targets: Annotated[Array, "K", "N", 3]
    old_warm: Annotated[Array, "N", 3]
    figures: Annotated[Array, 2]

    @classmethod
    def of_feet(cls, n_feet: int, widest: int, params: NcpParams) -> FrictionState:
        """Return the arrays for ``n_feet`` feet with at most ``widest`` vertices each."""
        anchors = Anchors.of_feet(n_feet, widest)
        return zeros_of(cls, {"K": n_feet, "N": widest}, params=params, anchors=anchors)


@kernel
def _fill_problem(p: Projection, s: VertexContacts, t: FrictionState, q: ConeProblem) -> bool:
    """Fill target velocities and the points of all feet; return whether any point would penetrate the ground.

    The target of a vertex above the ground is to reach it at the end of the step. The target of a vertex below it is to
    reduce the penetration by ``gamma``. With restitution, the target of a vertex at touchdown is to rebound.
    """
    h = s.h
    m = 0
    for k in range(s.result.mode.shape[0]):
        if p.changed[k] != UNCHANGED:
            carry_rows(t.warm[k], s.origin[k], p.n_vertices[k], t.old_warm)
            carry_anchors(k, p, s, t.anchors)
        vx, vy, wz = drift_correction(k, p, s, t.anchors, t.params.gamma / h)
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
            q.mobility[m] = mean_mobility(p, k, i)
            m += 1
    q.points[0] = m
    return _fill_free(p.w_free, s, t, q)


@kernel
def _fill_free(w, s: VertexContacts, t: FrictionState, q: ConeProblem) -> bool:
    """Fill ``q.g`` and its scale with the velocities ``w`` (6K,); return whether a vertex needs contact.

    The scale is the largest speed that contact may have to remove, at least the speed that ``LEAST`` gives in a step.
    """
    needed = False
    scale = LEAST * s.h
    k = 0
    i = 0
    for m in range(q.points[0]):
        i = i + 1 if m > 0 and q.foot[m] == k else 0
        k = q.foot[m]
        assign(q.g[m], point_velocity(w[6 * k :], q.arm[m]))
        for a in range(3):
            q.g[m, a] -= t.targets[k, i, a]
        # The speeds of points far above the ground are excluded; touchdown sub-steps lift such points out of reach.
        scale = max(scale, abs(q.g[m, 0]), abs(q.g[m, 1]), -q.g[m, 2])
        needed = needed or q.g[m, 2] < 0.0
    q.scale[0] = scale
    return floor_mobilities(q) > 0.0 and needed


@kernel
def _guess(s: VertexContacts, q: ConeProblem) -> None:
    """Fill ``q.guess``: vertices in contact keep their last state, and vertices that touch down stick."""
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
    """Set dynamic friction at loaded vertices that slip with more; return whether there was one."""
    slow = ZERO_SPEED * q.tolerance * q.scale[0]
    changed = False
    for m in range(q.points[0]):
        mu = p.mu_dynamic[q.foot[m]]
        if q.mu[m] > mu and q.f[m, 2] > 0.0 and np.hypot(q.u[m, 0], q.u[m, 1]) > slow:
            q.mu[m] = mu
            changed = True
    return changed


class Cones(NamedTuple):
    """All arrays that the model writes."""

    contacts: VertexContacts
    friction: FrictionState
    problem: ConeProblem


@kernel
def ncp(p: Projection, model: Cones):
    """Advance one step: compute the impulses that keep all vertices out of the ground, and their impact part.

    If a vertex touched down in this step or the last one, the problem is solved once more. The velocities before the
    step then replace those under free forces, and the resulting impulse is the impact.
    """
    s = model.contacts
    t = model.friction
    q = model.problem
    begin_vertices(p, s)
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
        # Each solve except the last one sets dynamic friction at a point.
        for _ in range(q.points[0] + 1):
            solved = solve_cones(p.G, q)
            solves += 1
            used += q.used[0]
            residual = q.residual[0]
            if not _take_dynamic(p, q):
                break
    else:
        solved = _clear_impulses(q)
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
    write_vertices(p, s, solves, not solved)


@kernel
def _clear_impulses(q: ConeProblem) -> bool:
    """Clear the impulses; return whether no point penetrates the ground, which a point of an immovable foot may do."""
    above = True
    for m in range(q.points[0]):
        for a in range(3):
            q.f[m, a] = 0.0
            q.u[m, a] = q.g[m, a]
        above = above and q.u[m, 2] >= 0.0
    return above


@kernel
def _take_state(s: VertexContacts, t: FrictionState, q: ConeProblem) -> bool:
    """Store impulses, contact and sticking; return whether a vertex touched down."""
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
    """Solve contacts as points with the exact friction cone at all vertices.

    If vertices are redundant, as the four of a rigid sole, wrenches are unique and vertex forces are not. Vertex forces
    then stay near those of the last step; initially they are near the ones of least norm.
    """

    Params = NcpParams
    kernel = ncp
    rigid = True

    def _arrays_of(self, n_feet: int, widest: int) -> Cones:
        friction = FrictionState.of_feet(n_feet, widest, self.params)
        limits = self.params.tolerance, self.params.iterations
        problem = ConeProblem.of_feet(n_feet, n_feet * widest, *limits, budget=self._projection.budget)
        return Cones(self.contacts, friction, problem)

    @property
    def residual(self) -> float:
        """Residual of the last step, relative to the speed that contact had to remove."""
        return float(self.arrays.friction.figures[0])

    @property
    def iterations(self) -> int:
        """Number of iterations of the last step, over all of its problems."""
        return int(self.arrays.friction.figures[1])

    def _memory(self) -> dict[str, NDArray[Any]]:
        t = self.arrays.friction
        own = {"warm": t.warm, "anchors": t.anchors.place, "anchored": t.anchors.held, "landed": t.landed}
        return super()._memory() | own | {"figures": t.figures}
