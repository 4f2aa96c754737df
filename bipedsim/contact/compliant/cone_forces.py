"""Forces of the wanted accelerations where linear equations give none that the ground can: those of the cone problem.

Next to the paradox of Painlevé (much friction below a high mass) the equations with saturated friction come near to
singular: what solves them is a pull, which is let go until nothing holds the foot, or thousands of times the weight.
What is wanted of the vertices in contact is then asked as a cone problem, which has a solution everywhere: with u the
accelerations beyond the wanted ones, a vertex that pushes has u_n = 0, one that does not u_n >= 0, and friction that is
at its limit is opposite to u_t. Each of its solutions takes energy out of u: f . u <= 0 at every vertex.
"""

from __future__ import annotations

import numpy as np

from bipedsim.contact.compliant.linearisation import Linearised
from bipedsim.contact.time_stepping import fill_velocities, measure, onto_cone, solve_cones
from bipedsim.contact.vertices import friction, normal_compliance, tangential_compliance
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, Flags, assign, kernel

SOLVED = 1e-4
"""Residual that counts as solved, forces inside their cones; mostly it is solved to rounding."""
ROUNDING = 1e-9
"""An acceleration this small beside the largest is none."""
ASIDE = 0.05
"""What friction that is not quite opposite to u may give, as a share of |f . (u without contact)|: walking and landing
feet give up to 0.004 of it, sets of vertices without an answer up to some thousand times as much."""
SINKS = 0.05
"""How far the acceleration of a vertex that was let go may be below the wanted one, beside the largest that any lacks.
One that is let go because its neighbours cannot be held with it would sink freely, and come up by k_p with more than it
took."""


@kernel
def _fill_points(p: Projection, m: Linearised, which: Flags):
    """Fill the points of the cone problem: the vertices ``which`` (K, N), their forces, and what they lack without."""
    q = m.cones
    n = 0
    largest = 0.0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if not m.closed[k, i]:
                continue
            for a in range(3):
                largest = max(largest, abs(m.lacks[k, i, a]))
            if not which[k, i]:
                continue
            q.foot[n] = k
            for a in range(3):
                q.arm[n, a] = p.offsets[k, i, a]
                q.f[n, a] = m.substeps.force[k, i, a]
                q.g[n, a] = -m.lacks[k, i, a]
            n += 1
    q.points[0] = n
    q.scale[0] = largest


@kernel
def is_sound(p: Projection, m: Linearised) -> bool:
    """Whether the forces take energy out of what is not as wanted, and neither foot nor vertex sinks without any.

    All of it holds of every solution of the cone problem, whatever the direction of friction is.
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
    largest = 0.0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if which[k, i]:
                q.mu[n] = friction(p, m.contacts, k, i)
                q.mobility[n] = (normal_compliance(p, k, i) + tangential_compliance(p, k, i)) / 3.0
                largest = max(largest, q.mobility[n])
                n += 1
    for i in range(n):
        # A point that nothing can move gets no force worth the name.
        q.mobility[i] = max(q.mobility[i], 1e-12 * largest)


@kernel
def _solve_active(p: Projection, m: Linearised) -> float:
    """Fill the vertex forces with those of the cone problem of the active vertices alone, inside their cones.

    Returns how far they are from solving that of all vertices in contact.
    """
    q = m.cones
    # What solved the problem before is near: stages and steps differ little.
    _copy_forces(m.warm, m.substeps.force)
    _fill_cones(p, m, m.active)
    solve_cones(p.G, q)
    n = 0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if m.active[k, i]:
                # What is not solved to rounding may be outside.
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
    """Fill the vertex forces with those of the cone problem, inside their cones; return whether they solve it.

    Where all vertices together lead to no end, what leave at the best forces are left out; then each is tried alone:
    vertices that only just leave are what the solver goes round. Where the budget of the step is used up, the best act.
    """
    least = np.inf
    # -2 all, -1 those that push, else one.
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
            _copy_forces(m.substeps.force, m.kept)
        if least <= SOLVED or p.budget[0] <= 0:
            break
    _copy_forces(m.kept, m.substeps.force)
    if least <= SOLVED:
        _copy_forces(m.kept, m.warm)
    return least <= SOLVED


@kernel
def _copy_forces(source: Array, target: Array):
    for k in range(source.shape[0]):
        for i in range(source.shape[1]):
            for a in range(3):
                target[k, i, a] = source[k, i, a]
