"""Contact forces as the solution of a cone problem, for states in which the linear equations give invalid forces.

Near the paradox of Painlevé (much friction below a high centre of mass) the equations with saturated friction are
nearly singular. Their solution is then a pull or a force of thousands of times the weight. Removing the pulled vertices
one by one ends with a foot that nothing holds. This module therefore poses the target accelerations of the vertices in
contact as a cone problem, which always has a solution. Let u be the accelerations beyond the target. A loaded vertex
has u_n = 0, an unloaded one u_n >= 0, and friction at its limit opposes u_t. Every solution dissipates u: f . u <= 0 at
each vertex.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.compliant.linearisation import Linearised
from bipedsim.contact.time_stepping import fill_velocities, floor_mobilities, measure, onto_cone, solve_cones
from bipedsim.contact.vertices import friction, mean_mobility
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, Flags, assign, kernel

SOLVED = 1e-4
"""Residual at which the problem counts as solved, with forces inside their cones. Most solutions are exact to rounding.
"""
ROUNDING = 1e-9
"""An acceleration smaller than this fraction of the largest one counts as zero."""
ASIDE = 0.05
"""Tolerance on the power f . u, as a fraction of |f . (u without contact)|.

Friction that does not oppose u exactly adds power. Walking and landing feet reach up to 0.004 of the reference; sets of
vertices without a solution reach up to some thousand times the reference.
"""
SINKS = 0.05
"""Largest downward acceleration of a released vertex, as a fraction of the largest missing acceleration.

A vertex that is released only because its neighbours cannot be held with it would sink freely. The term k_p would then
push it out with more energy than it absorbed.
"""


@kernel
def _fill_points(p: Projection, m: Linearised, which: Flags):
    """Fill the points of the cone problem: the vertices ``which`` (K, N), their forces and missing accelerations."""
    q = m.cones
    n = 0
    largest = 0.0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if not m.closed[k, i]:
                continue
            for a in range(3):
                largest = max(largest, abs(m.missing[k, i, a]))
            if not which[k, i]:
                continue
            q.foot[n] = k
            for a in range(3):
                q.arm[n, a] = p.offsets[k, i, a]
                q.f[n, a] = m.substeps.force[k, i, a]
                q.g[n, a] = -m.missing[k, i, a]
            n += 1
    q.points[0] = n
    q.scale[0] = largest


@kernel
def has_valid_forces(p: Projection, m: Linearised) -> bool:
    """Return whether the forces are a valid solution of the cone problem.

    They must remove energy from the deviation u from the target. No foot may sink without load, and no unloaded vertex
    may sink by more than ``SINKS``. Every solution of the cone problem fulfils this for any direction of friction.
    """
    q = m.cones
    _fill_points(p, m, m.closed)
    fill_velocities(p.G, q)
    power = scale = 0.0
    foot = -1
    loaded = sinking = False
    for n in range(q.points[0]):
        if q.foot[n] != foot:
            if sinking and not loaded:
                return False
            foot = q.foot[n]
            loaded = sinking = False
        for a in range(3):
            power += q.f[n, a] * q.u[n, a]
            scale += abs(q.f[n, a] * q.g[n, a])
        if q.f[n, 2] == 0.0 and q.u[n, 2] < -SINKS * q.scale[0]:
            return False
        sinking = sinking or q.u[n, 2] < -ROUNDING * q.scale[0]
        loaded = loaded or q.f[n, 2] > 0.0
    return power <= ASIDE * scale and (loaded or not sinking)


@kernel
def _fill_cones(p: Projection, m: Linearised, which: Flags):
    """Fill the cone problem of the vertices ``which`` (K, N)."""
    q = m.cones
    _fill_points(p, m, which)
    n = 0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if which[k, i]:
                q.mu[n] = friction(p, m.contacts, k, i)
                q.mobility[n] = mean_mobility(p, k, i)
                n += 1
    floor_mobilities(q)


@kernel
def _solve_active(p: Projection, m: Linearised) -> float:
    """Solve the cone problem of the active vertices alone and fill the vertex forces, projected on their cones.

    Returns:
        Residual of these forces in the problem of all vertices in contact.
    """
    q = m.cones
    # The last solution is a good initial value, because stages and steps differ little.
    _copy_forces(m.warm, m.substeps.force)
    _fill_cones(p, m, m.active)
    solve_cones(p.G, q)
    n = 0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if m.active[k, i]:
                # A solution that is not exact to rounding may be outside its cone.
                onto_cone(q.f[n], q.mu[n])
                assign(m.substeps.force[k, i], (q.f[n, 0], q.f[n, 1], q.f[n, 2]))
                n += 1
            else:
                assign(m.substeps.force[k, i], (0.0, 0.0, 0.0))
    _fill_cones(p, m, m.closed)
    fill_velocities(p.G, q)
    return measure(q)


@kernel
def solve_as_cones(p: Projection, m: Linearised) -> bool:
    """Fill the vertex forces with the solution of the cone problem, inside their cones; return whether they solve it.

    The first attempt uses all vertices in contact. If it fails, the second uses the vertices that are loaded in it.
    Then each vertex is tried alone, because the solver oscillates over vertices that are about to separate. The best
    forces are used when the budget of the step is exhausted.
    """
    least = np.inf
    # Attempt -2 uses all vertices, -1 the loaded ones, and i >= 0 only vertex i.
    for attempt in range(-2, m.closed.size):
        for k in range(m.closed.shape[0]):
            for i in range(m.closed.shape[1]):
                one = attempt == k * m.closed.shape[1] + i
                pushes = attempt == -1 and m.substeps.force[k, i, 2] > 0.0
                m.active[k, i] = m.closed[k, i] and (attempt == -2 or pushes or one)
        if attempt >= 0 and not m.active[attempt // m.closed.shape[1], attempt % m.closed.shape[1]]:
            continue
        residual = _solve_active(p, m)
        if residual < least:
            least = residual
            _copy_forces(m.substeps.force, m.best)
        if least <= SOLVED or p.budget[0] <= 0:
            break
    _copy_forces(m.best, m.substeps.force)
    if least <= SOLVED:
        _copy_forces(m.best, m.warm)
    return least <= SOLVED


@kernel
def _copy_forces(source: Array, target: Array):
    for k in range(source.shape[0]):
        for i in range(source.shape[1]):
            for a in range(3):
                target[k, i, a] = source[k, i, a]
