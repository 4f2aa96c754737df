"""The complementarity problem of feet over one step: its arrays, its matrix, and what its answer does to the feet.

Unknowns: the normal impulse of each contact; its impulses along the corners of the friction pyramid; its slip speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from bipedsim.config import param
from bipedsim.contact.anchors import Anchors
from bipedsim.contact.vertices import VertexContacts
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, Flags, Integers, assign, cross, kernel, point_velocity, zeros_of
from bipedsim.numerics.lcp import LcpWork, pyramid


@dataclass(frozen=True)
class LcpParams:
    """Parameters of time stepping with a complementarity problem."""

    sides: int = param(4, "sides of the friction pyramid, the first corner along t1", low=4, high=16)
    restitution: float = param(0.0, "speed after over speed before an impact, e of all vertices", low=0.0, high=1.0)
    rest_speed: float = param(
        0.01, "a vertex that lands slower than this does not bounce", unit="m/s", low=1e-6, high=10.0
    )
    gamma: float = param(0.2, "share of a position error of the contact that one step removes", low=1e-6, high=1.0)
    threshold: float = param(
        1e-3, "a vertex that would be lower than this after the step takes part", unit="m", low=1e-6, high=0.05
    )


class LcpContacts(NamedTuple):
    """Parameters, state and work arrays for K feet of N vertices at most and k sides.

    Attributes:
        params: The parameters.
        corners: (k, 2) of the pyramid.
        basis: (K, N, k + 2) which of (normal impulse, k of friction, slip speed) were basic in the last answer.
        anchors: Where sticking vertices belong.
        landed: (1,) whether a vertex touched down in the last step.
        active, slides: (K, N) which vertices take part, and which of them meet dynamic friction.
        foot, vertex: (K N,) foot and vertex of each contact.
        mu: (K N,) its friction. wanted: (K N, 3) velocity that it is held to [m/s].
        column: (6K, 3) change of twists by an impulse at one contact.
        w_next: (6K,) twists after the step.
        work: The complementarity problem.
    """

    params: LcpParams
    corners: Array
    basis: Annotated[Flags, "K", "N", "S"]
    anchors: Anchors
    landed: Annotated[Flags, 1]
    active: Annotated[Flags, "K", "N"]
    slides: Annotated[Flags, "K", "N"]
    foot: Annotated[Integers, "M"]
    vertex: Annotated[Integers, "M"]
    mu: Annotated[Array, "M"]
    wanted: Annotated[Array, "M", 3]
    column: Annotated[Array, "6K", 3]
    w_next: Annotated[Array, "6K"]
    work: LcpWork

    @classmethod
    def of_feet(cls, n_feet: int, widest: int, params: LcpParams) -> LcpContacts:
        """Return the arrays for ``n_feet`` of ``widest`` vertices at most."""
        most, kinds = n_feet * widest, params.sides + 2
        return zeros_of(
            cls,
            {"K": n_feet, "N": widest, "M": most, "S": kinds},
            params=params,
            corners=pyramid(params.sides),
            anchors=Anchors.of_feet(n_feet, widest),
            work=LcpWork.of_size(most * kinds),
        )


@kernel
def fill_constant(p: Projection, m: LcpContacts, count, sides, twists):
    """Fill the constant part of the problem: how far contact-free velocities are from those wanted."""
    q = m.work.q
    v = m.column[0]
    for a in range(count):
        assign(v, point_velocity(twists[6 * m.foot[a] :], p.offsets[m.foot[a], m.vertex[a]]))
        for j in range(3):
            v[j] -= m.wanted[a, j]
        q[a] = v[2]
        for c in range(sides):
            q[count + a * sides + c] = m.corners[c, 0] * v[0] + m.corners[c, 1] * v[1]
        if sides > 0:
            q[count * (sides + 1) + a] = 0.0


@kernel
def fill_matrix(p: Projection, m: LcpContacts, count, sides):
    """Fill the matrix of the problem from the Delassus matrix of the feet.

    Unknowns: normal impulses; of each contact its impulses along the corners; slip speeds.
    """
    M = m.work.M
    G = p.G
    slips = count * (sides + 1)
    for i in range(slips + (count if sides > 0 else 0)):
        for j in range(slips, slips + (count if sides > 0 else 0)):
            M[i, j] = 0.0
    for b in range(count):
        g = 6 * m.foot[b]
        r = p.offsets[m.foot[b], m.vertex[b]]
        # J M^-1 J^T of all feet by the three axes of an impulse at contact b.
        for i in range(G.shape[0]):
            assign(m.column[i], point_velocity(G[i, g:], r))
        first = count + b * sides
        for a in range(count):
            f = 6 * m.foot[a]
            o = p.offsets[m.foot[a], m.vertex[a]]
            row = count + a * sides
            for j in range(3):
                x, y, z = point_velocity(m.column[f:, j], o)
                if j == 2:
                    M[a, b] = z
                    for c in range(sides):
                        M[row + c, b] = m.corners[c, 0] * x + m.corners[c, 1] * y
                    continue
                for d in range(sides):
                    along = m.corners[d, j]
                    before = 0.0 if j == 0 else M[a, first + d]
                    M[a, first + d] = before + along * z
                    for c in range(sides):
                        before = 0.0 if j == 0 else M[row + c, first + d]
                        M[row + c, first + d] = before + along * (m.corners[c, 0] * x + m.corners[c, 1] * y)
    if sides == 0:
        return
    for a in range(count):
        for j in range(slips):
            M[slips + a, j] = 0.0
        M[slips + a, a] = m.mu[a]
        for c in range(sides):
            M[slips + a, count + a * sides + c] = -1.0
            M[count + a * sides + c, slips + a] = 1.0


@kernel
def carry_basis(m: LcpContacts, count, sides, back):
    """Copy the basis of the problem from the memory of the vertices, or ``back``."""
    for a in range(count):
        kept = m.basis[m.foot[a], m.vertex[a]]
        last = kept.shape[0] - 1
        if back:
            kept[0] = m.work.basis[a]
            for c in range(sides):
                kept[1 + c] = m.work.basis[count + a * sides + c]
            kept[last] = sides > 0 and m.work.basis[count * (sides + 1) + a]
        else:
            m.work.basis[a] = kept[0]
            for c in range(sides):
                m.work.basis[count + a * sides + c] = kept[1 + c]
            if sides > 0:
                m.work.basis[count * (sides + 1) + a] = kept[last]


@kernel
def take_impulses(m: LcpContacts, count, sides, impulses):
    """Fill ``impulses`` (K, N, 3) of the contacts from the answer."""
    z = m.work.z
    for a in range(count):
        f = impulses[m.foot[a], m.vertex[a]]
        f[0] = 0.0
        f[1] = 0.0
        f[2] = z[a]
        for c in range(sides):
            f[0] += m.corners[c, 0] * z[count + a * sides + c]
            f[1] += m.corners[c, 1] * z[count + a * sides + c]


@kernel
def advance_twists(p: Projection, s: VertexContacts, m: LcpContacts, count):
    """Fill ``m.w_next`` with the twists after the step."""
    for i in range(m.w_next.shape[0]):
        m.w_next[i] = p.w_free[i]
    for a in range(count):
        k = 6 * m.foot[a]
        f = s.impulses[m.foot[a], m.vertex[a]]
        r = p.offsets[m.foot[a], m.vertex[a]]
        tx, ty, tz = cross(r, f)
        for i in range(m.w_next.shape[0]):
            G = p.G[i]
            m.w_next[i] += G[k] * f[0] + G[k + 1] * f[1] + G[k + 2] * f[2]
            m.w_next[i] += G[k + 3] * tx + G[k + 4] * ty + G[k + 5] * tz
