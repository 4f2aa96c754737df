"""Linear complementarity problem of feet over one step: arrays, matrix, and impulses from its solution.

Unknowns are the normal impulse of each contact, its impulses along the corners of the friction pyramid, and its slip
speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from bipedsim.config import param
from bipedsim.contact.anchors import Anchors
from bipedsim.contact.time_stepping.cone_problem import ConeProblem
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, Flags, Integers, assign, kernel, point_velocity, zeros_of
from bipedsim.numerics.lcp import TOLERANCE, LcpWork, pyramid

# Maximum number of Newton steps for one problem.
_STEPS = 100


@dataclass(frozen=True)
class LcpParams:
    """Parameters of time stepping with a complementarity problem."""

    sides: int = param(4, "sides of the friction pyramid of each vertex, a corner along its friction", low=4, high=16)
    restitution: float = param(0.0, "speed after over speed before an impact, e of all vertices", low=0.0, high=1.0)
    rest_speed: float = param(0.01, "a vertex with a slower touchdown does not bounce", unit="m/s", low=1e-6, high=10.0)
    gamma: float = param(0.2, "share of a position error of the contact that one step removes", low=1e-6, high=1.0)
    threshold: float = param(
        1e-3, "a vertex that would be lower than this after the step takes part", unit="m", low=1e-6, high=0.05
    )


class LcpContacts(NamedTuple):
    """Parameters, state and work arrays for K feet with at most N vertices and k sides.

    Attributes:
        params: The parameters.
        corners: (k, 2) corners of the pyramid.
        last: (K, N, 5) impulse of each vertex in the last step [N.s], and the direction of the first corner of its
            pyramid, zeros if it has none.
        anchors: Anchors of sticking vertices.
        landed: (1,) whether a vertex touched down in the last step.
        active, slides: (K, N) whether a vertex is in the problem, and whether its friction is dynamic.
        vertex: (K N,) vertex of each contact.
        wanted: (K N, 3) target velocity of each contact [m/s].
        column: (6K, 3) change of twists per unit impulse at one contact.
        w_next: (6K,) twists after the step.
        old: (N, 5) work array for a polygon that changes.
        figures: (2,) residual of the last step, and pivots of Lemke's method in it.
        points: The problem in the form of Newton's method, with foot, friction and pyramid of each contact.
        work: The problem in the form of Lemke's method.
    """

    params: LcpParams
    corners: Array
    last: Annotated[Array, "K", "N", 5]
    anchors: Anchors
    landed: Annotated[Flags, 1]
    active: Annotated[Flags, "K", "N"]
    slides: Annotated[Flags, "K", "N"]
    vertex: Annotated[Integers, "M"]
    wanted: Annotated[Array, "M", 3]
    column: Annotated[Array, "6K", 3]
    w_next: Annotated[Array, "6K"]
    old: Annotated[Array, "N", 5]
    figures: Annotated[Array, 2]
    points: ConeProblem
    work: LcpWork

    @classmethod
    def of_feet(cls, n_feet: int, widest: int, params: LcpParams, budget: Integers) -> LcpContacts:
        """Return the arrays for ``n_feet`` feet with at most ``widest`` vertices; ``budget`` (1,) is that of a step."""
        most = n_feet * widest
        return zeros_of(
            cls,
            {"K": n_feet, "N": widest, "M": most},
            params=params,
            corners=pyramid(params.sides),
            anchors=Anchors.of_feet(n_feet, widest),
            points=ConeProblem.of_feet(n_feet, most, 0.1 * TOLERANCE, _STEPS, params.sides, budget),
            work=LcpWork.of_size(most * (params.sides + 2), budget),
        )


@kernel
def fill_free(m: LcpContacts, twists, least) -> bool:
    """Fill the deviations of ``twists`` (6K,) from the target velocities, and the scale of the residuals.

    The scale is the largest deviation, at least ``least`` [m/s].

    Returns:
        Whether a contact would penetrate the ground.
    """
    q = m.points
    needed = False
    q.scale[0] = least
    for a in range(q.points[0]):
        assign(q.g[a], point_velocity(twists[6 * q.foot[a] :], q.arm[a]))
        for j in range(3):
            q.g[a, j] -= m.wanted[a, j]
            q.scale[0] = max(q.scale[0], abs(q.g[a, j]))
        needed = needed or q.g[a, 2] < 0.0
    return needed


@kernel
def _direction(m: LcpContacts, a, c) -> tuple[float, float]:
    """Return the direction of corner ``c`` of the pyramid of contact ``a``."""
    x, y = m.points.axis[a]
    return m.corners[c, 0] * x - m.corners[c, 1] * y, m.corners[c, 0] * y + m.corners[c, 1] * x


@kernel
def fill_constant(m: LcpContacts, count, sides):
    """Fill the constant part of Lemke's problem with the deviations of the contact-free velocities from the target."""
    q = m.work.q
    for a in range(count):
        g = m.points.g[a]
        q[a] = g[2]
        for c in range(sides):
            x, y = _direction(m, a, c)
            q[count + a * sides + c] = x * g[0] + y * g[1]
        if sides > 0:
            q[count * (sides + 1) + a] = 0.0


@kernel
def fill_matrix(p: Projection, m: LcpContacts, count, sides):
    """Fill the matrix of the problem from the Delassus matrix of the feet.

    The unknowns are the normal impulses, then the corner impulses of each contact, then the slip speeds.
    """
    M = m.work.M
    G = p.G
    slips = count * (sides + 1)
    for i in range(slips + (count if sides > 0 else 0)):
        for j in range(slips, slips + (count if sides > 0 else 0)):
            M[i, j] = 0.0
    foot = m.points.foot
    arm = m.points.arm
    for b in range(count):
        g = 6 * foot[b]
        # Velocities of all feet for unit impulses along the three axes at contact b.
        for i in range(G.shape[0]):
            assign(m.column[i], point_velocity(G[i, g:], arm[b]))
        for a in range(count):
            f = 6 * foot[a]
            for j in range(1 + sides):
                # Column 0 belongs to the normal impulse, the others to the corners.
                s, t = _direction(m, b, j - 1) if j > 0 else (0.0, 0.0)
                into = count + b * sides + j - 1 if j > 0 else b
                v = m.points.rhs
                for i in range(6):
                    C = m.column[f + i]
                    v[i] = s * C[0] + t * C[1] if j > 0 else C[2]
                x, y, z = point_velocity(v, arm[a])
                M[a, into] = z
                for c in range(sides):
                    dx, dy = _direction(m, a, c)
                    M[count + a * sides + c, into] = dx * x + dy * y
    if sides == 0:
        return
    for a in range(count):
        for j in range(slips):
            M[slips + a, j] = 0.0
        M[slips + a, a] = m.points.mu[a]
        for c in range(sides):
            M[slips + a, count + a * sides + c] = -1.0
            M[count + a * sides + c, slips + a] = 1.0


@kernel
def read_solution(m: LcpContacts, count, sides):
    """Fill the impulses ``m.points.f`` from the solution of Lemke's method."""
    z = m.work.z
    for a in range(count):
        f = m.points.f[a]
        f[0] = 0.0
        f[1] = 0.0
        f[2] = z[a]
        for c in range(sides):
            x, y = _direction(m, a, c)
            f[0] += x * z[count + a * sides + c]
            f[1] += y * z[count + a * sides + c]


@kernel
def spread(m: LcpContacts, count):
    """Distribute the impulse of each foot evenly over its closed contacts; Lemke's solution loads only few of them."""
    q = m.points
    first = 0
    while first < count:
        end = first
        closed = 0
        x = y = z = 0.0
        while end < count and q.foot[end] == q.foot[first]:
            if q.u[end, 2] <= TOLERANCE * q.scale[0]:
                closed += 1
                x += q.f[end, 0]
                y += q.f[end, 1]
                z += q.f[end, 2]
            end += 1
        for a in range(first, end):
            share = 1.0 / closed if q.u[a, 2] <= TOLERANCE * q.scale[0] else 0.0
            q.f[a, 0] = share * x
            q.f[a, 1] = share * y
            q.f[a, 2] = share * z
        first = end
