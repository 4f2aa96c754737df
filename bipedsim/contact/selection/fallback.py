"""Fallback for steps in which no set of modes is free of violations: impulses of single vertices.

Table I has no set for three of four vertices, and none whose vertices stick and slip independently. Near the paradox of
Painlevé there may be no set with a compressive solution. Signorini's and Coulomb's laws at every vertex form a cone
problem (:mod:`bipedsim.contact.time_stepping`), which has a solution. Its normal impulses are compressive, it keeps all
vertices out of the ground, and its friction dissipates.
"""

from __future__ import annotations

from bipedsim.contact.base import CANDIDATES
from bipedsim.contact.modes import target_height_velocity
from bipedsim.contact.selection.arrays import Selection
from bipedsim.contact.time_stepping import floor_mobilities, solve_cones
from bipedsim.contact.vertices import mean_mobility, mode_of
from bipedsim.dynamics import Projection
from bipedsim.numerics import add_wrench, assign, kernel, point_velocity

TOUCHING = 10.0
"""A vertex slower than this many times the tolerance counts as in contact, or as sticking."""


@kernel
def fall_back(p: Projection, s: Selection) -> bool:
    """Replace the last candidate by the impulses of all vertices; return whether these are a solution.

    Anchors are not used: a sticking vertex stays where it is.
    """
    q = s.cones
    solved = _solve_vertices(p, s)
    _sum_up(s, s.trial.impulse)
    for r in range(s.trial.w_next.shape[0]):
        s.trial.w_next[r] = p.w_free[r] + q.twist[r]
    _read_modes(p, s)
    s.trial.pointwise[0] = True
    s.state.pointwise[0] += 1
    return solved


@kernel
def modes_of_vertices(p: Projection, s: Selection) -> None:
    """Fill ``s.trial.mode`` with the sets of vertices in contact when each vertex is treated on its own."""
    _solve_vertices(p, s)
    _read_modes(p, s)


@kernel
def _solve_vertices(p: Projection, s: Selection) -> bool:
    """Solve for the impulses of all vertices; return whether these are a solution."""
    _fill_vertices(p, s)
    _fill_free(p.w_free, s)
    solved = False
    # Each solve except the last one sets dynamic friction at a point.
    for _ in range(s.cones.points[0] + 1):
        solved = solve_cones(p.G, s.cones)
        s.result.counters[CANDIDATES] += 1
        if not _take_dynamic(p, s):
            break
    return solved


@kernel
def impact_of_vertices(p: Projection, s: Selection) -> bool:
    """Fill ``s.trial.impact`` with the impulse that changes the velocities before the step to the target ones.

    Returns:
        Whether the problem was solved.
    """
    _fill_free(p.w_before, s)
    solved: bool = solve_cones(p.G, s.cones)
    _sum_up(s, s.trial.impact)
    return solved


@kernel
def _fill_vertices(p: Projection, s: Selection) -> None:
    """Fill the positions and friction coefficients of the points of the cone problem."""
    q = s.cones
    m = 0
    for k in range(s.trial.mode.shape[0]):
        for i in range(p.n_vertices[k]):
            q.foot[m] = k
            for a in range(3):
                q.arm[m, a] = p.offsets[k, i, a]
                q.f[m, a] = 0.0
            q.mu[m] = p.mu_dynamic[k] if s.result.sliding[k] else p.mu_static[k]
            q.mobility[m] = mean_mobility(p, k, i)
            m += 1
    q.points[0] = m
    floor_mobilities(q)


@kernel
def _fill_free(w, s: Selection) -> None:
    """Fill the deviations of the contact-free velocities ``w`` (6K,) from the target velocities of the points."""
    q = s.cones
    settings = s.settings
    scale = settings.h
    k = i = 0
    for m in range(q.points[0]):
        i = i + 1 if m > 0 and q.foot[m] == k else 0
        k = q.foot[m]
        assign(q.g[m], point_velocity(w[6 * k :], q.arm[m]))
        q.g[m, 2] -= target_height_velocity(s.scratch.heights[k, i], settings.h, settings.gamma)
        scale = max(scale, abs(q.g[m, 0]), abs(q.g[m, 1]), -q.g[m, 2])
    q.scale[0] = scale


@kernel
def _take_dynamic(p: Projection, s: Selection) -> bool:
    """Set dynamic friction for feet that slip with static friction; return whether there was one."""
    q = s.cones
    changed = False
    for m in range(q.points[0]):
        k = q.foot[m]
        if q.mu[m] > p.mu_dynamic[k] and _slips(s, m):
            changed = True
            for j in range(q.points[0]):
                if q.foot[j] == k:
                    q.mu[j] = p.mu_dynamic[k]
    return changed


@kernel
def _slips(s: Selection, m: int) -> bool:
    """Return whether point ``m`` is loaded and slips."""
    u = s.cones.u[m]
    slow = TOUCHING * s.cones.tolerance * s.cones.scale[0]
    return s.cones.f[m, 2] > 0.0 and u[0] * u[0] + u[1] * u[1] > slow * slow


@kernel
def _sum_up(s: Selection, impulse) -> None:
    """Sum the impulses of all points into ``impulse`` (K, 6) at the sole origins."""
    q = s.cones
    impulse[:, :] = 0.0
    for m in range(q.points[0]):
        add_wrench(impulse[q.foot[m]], (q.f[m, 0], q.f[m, 1], q.f[m, 2]), q.arm[m])


@kernel
def _read_modes(p: Projection, s: Selection) -> None:
    """Fill modes, friction states and CoPs of all feet; a foot slides if one of its loaded vertices slips."""
    q, trial = s.cones, s.trial
    slow = TOUCHING * q.tolerance * q.scale[0]
    touching = s.scratch.old_anchored
    m = 0
    for k in range(trial.mode.shape[0]):
        n = p.n_vertices[k]
        trial.sliding[k] = False
        trial.outside[k] = trial.radius[k] = 0.0
        for a in range(3):
            trial.slip[k, a] = trial.cop_ground[k, a] = 0.0
        trial.cop[k, 0] = trial.cop[k, 1] = 0.0
        load = 0.0
        for i in range(n):
            load += q.f[m + i, 2]
        for i in range(n):
            touching[i] = q.f[m, 2] > 0.0 or q.u[m, 2] <= slow
            trial.sliding[k] = trial.sliding[k] or _slips(s, m)
            if load > 0.0:
                share = q.f[m, 2] / load
                for a in range(2):
                    trial.cop[k, a] += share * p.vertices[k, i, a]
                for a in range(3):
                    trial.cop_ground[k, a] += share * p.offsets[k, i, a]
            m += 1
        trial.mode[k] = trial.chosen[k] = mode_of(touching, n)
