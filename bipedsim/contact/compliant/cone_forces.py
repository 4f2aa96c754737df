"""Forces of the wanted accelerations where linear equations give none that the ground can: those of the cone problem.

Next to the paradox of Painlevé (much friction below a high mass) the equations with saturated friction come near to
singular: what solves them is a pull, which is let go until nothing holds the foot, or thousands of times the weight.
What is wanted of the vertices in contact is then asked as a cone problem, which has a solution everywhere: with u the
accelerations beyond the wanted ones, a vertex that pushes has u_n = 0, one that does not u_n >= 0, and friction that is
at its limit is opposite to u_t. Each of its solutions takes energy out of u: f . u <= 0 at every vertex.
"""

from __future__ import annotations

from bipedsim.contact.compliant.linearisation import Linearised
from bipedsim.contact.time_stepping import fill_velocities, solve_cones
from bipedsim.contact.vertices import friction, normal_compliance, tangential_compliance
from bipedsim.dynamics import Projection
from bipedsim.numerics import assign, kernel

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
def _fill_points(p: Projection, m: Linearised):
    """Fill the points of the cone problem: the vertices in contact, their forces, and what they lack without them."""
    q = m.cones
    n = 0
    largest = 0.0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if not m.closed[k, i]:
                continue
            q.foot[n] = k
            for a in range(3):
                q.arm[n, a] = p.offsets[k, i, a]
                q.f[n, a] = m.substeps.force[k, i, a]
                q.g[n, a] = -m.lacks[k, i, a]
                largest = max(largest, abs(m.lacks[k, i, a]))
            n += 1
    q.points[0] = n
    q.scale[0] = largest


@kernel
def is_sound(p: Projection, m: Linearised) -> bool:
    """Whether the forces take energy out of what is not as wanted, and neither foot nor vertex sinks without any.

    All of it holds of every solution of the cone problem, whatever the direction of friction is.
    """
    q = m.cones
    _fill_points(p, m)
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
def solve_as_cones(p: Projection, m: Linearised) -> bool:
    """Fill the vertex forces with those of the cone problem; return whether it was solved."""
    q = m.cones
    _fill_points(p, m)
    n = 0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if m.closed[k, i]:
                q.mu[n] = friction(p, m.contacts, k, i)
                q.mobility[n] = (normal_compliance(p, k, i) + tangential_compliance(p, k, i)) / 3.0
                n += 1
    largest = 0.0
    for i in range(n):
        largest = max(largest, q.mobility[i])
    for i in range(n):
        # A point that nothing can move gets no force worth the name.
        q.mobility[i] = max(q.mobility[i], 1e-12 * largest)
        assign(q.f[i], (0.0, 0.0, 0.0))
    solved = solve_cones(p.G, q)
    n = 0
    for k in range(m.closed.shape[0]):
        for i in range(p.n_vertices[k]):
            if m.closed[k, i]:
                for a in range(3):
                    m.substeps.force[k, i, a] = q.f[n, a]
                n += 1
    return solved
