"""Feedback linearisation of the vertices in contact: from wanted accelerations to forces (rengifo2009 eq. 17 to 20).

The pseudo-inverse needs no decomposition of the matrix of all vertices (3n x 3n, of rank 6 a foot at most): the least
squares of rigid motions on a set of points separate into the motion of its centroid and turns about its principal axes.
Accelerations are projected on these, at most 6 a foot, and forces spread along them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.config import param
from bipedsim.contact.compliant.substeps import Substeps
from bipedsim.contact.vertices import VertexContacts, friction
from bipedsim.dynamics import Projection
from bipedsim.numerics import Array, Flags, Integers, cross, kernel, solve_least_norm

THIN = 1e-6
"""A set of vertices narrower than this [m] has no width."""
AGREED = 1e-12
"""Normal forces that change by less than this share are those of the friction that they allow."""


@dataclass(frozen=True)
class FeedbackLinearisedParams:
    """Parameters of feedback-linearised penalty contact; friction is that of the soles and the ground."""

    k_p: float = param(500.0, "acceleration for penetration", unit="1/s^2", low=0.0, high=1e8)
    k_v: float = param(250.0, "acceleration against the velocity of a vertex", unit="1/s", low=0.0, high=1e6)
    epsilon: float = param(
        5e-5, "penetration at rest, against the false impacts that 0 gives (section V)", unit="m", low=0.0, high=0.01
    )
    resolves: int = param(
        20, "most solves of the normal forces under saturated friction; 0 is the printed model", low=0, high=100
    )


class Linearised(NamedTuple):
    """What the model works on.

    Attributes:
        params: The parameters.
        contacts, substeps: Vertices, and feet within the step.
        closed: (K, N) whether a vertex is in contact in this substep.
        active: (K, N) whether it takes part at this stage: those in contact, without those that would be pulled.
        centre: (K, 3) mean of the active vertices from the sole origin, ground axes [m].
        axes: (K, 3, 3) rows: principal axes, ground axes.
        inertia: (K, 3) sum of squared distances from them [m^2], 0 for an axis that no vertex turns about.
        members: (K,) how many active vertices a foot has.
        R: (6K, 6) rows: the wrench on its foot by one unit of each pattern of vertex forces.
        foot, upright: (6K,) foot of each pattern, whether it is one of normal forces.
        A, L, work, rhs, rhs_normal, y: R G R^T and its solution.
        wanted, normal: (K, N, 2), (K, N) tangential and normal forces before saturation [N].
        normals, A_normal, friction: (3K,) patterns of normal forces, (3K, 3K) their part of A, (K, 6) wrench of the
            friction that is left.
        agreed: (1,) whether normal forces and friction agreed in every stage of the step.
    """

    params: FeedbackLinearisedParams
    contacts: VertexContacts
    substeps: Substeps
    closed: Annotated[Flags, "K", "N"]
    active: Annotated[Flags, "K", "N"]
    centre: Annotated[Array, "K", 3]
    axes: Annotated[Array, "K", 3, 3]
    inertia: Annotated[Array, "K", 3]
    members: Annotated[Integers, "K"]
    R: Annotated[Array, "6K", 6]
    foot: Annotated[Integers, "6K"]
    upright: Annotated[Flags, "6K"]
    A: Annotated[Array, "6K", "6K"]
    L: Annotated[Array, "6K", "6K"]
    work: Annotated[Array, "6K", "6K"]
    rhs: Annotated[Array, "6K"]
    rhs_normal: Annotated[Array, "6K"]
    y: Annotated[Array, "6K"]
    wanted: Annotated[Array, "K", "N", 2]
    normal: Annotated[Array, "K", "N"]
    normals: Annotated[Integers, "6K"]
    A_normal: Annotated[Array, "6K", "6K"]
    friction: Annotated[Array, "K", 6]
    agreed: Annotated[Flags, 1]


@kernel
def _principal_axes(p: Projection, m: Linearised, k: int):
    """Fill members, centre, axes and inertia of the active vertices of foot ``k``."""
    n = 0
    x = y = 0.0
    for a in range(3):
        m.centre[k, a] = 0.0
    for i in range(p.n_vertices[k]):
        if m.active[k, i]:
            n += 1
            x += p.vertices[k, i, 0]
            y += p.vertices[k, i, 1]
            for a in range(3):
                m.centre[k, a] += p.offsets[k, i, a]
    m.members[k] = n
    if n == 0:
        return
    x /= n
    y /= n
    xx = xy = yy = 0.0
    for a in range(3):
        m.centre[k, a] /= n
    for i in range(p.n_vertices[k]):
        if m.active[k, i]:
            dx = p.vertices[k, i, 0] - x
            dy = p.vertices[k, i, 1] - y
            xx += dx * dx
            xy += dx * dy
            yy += dy * dy
    angle = 0.5 * np.arctan2(2.0 * xy, xx - yy)
    c = np.cos(angle)
    s = np.sin(angle)
    R = p.rotation[k]
    for a in range(3):
        m.axes[k, 0, a] = c * R[a, 0] + s * R[a, 1]
        m.axes[k, 1, a] = c * R[a, 1] - s * R[a, 0]
        m.axes[k, 2, a] = R[a, 2]
    along = c * c * xx + 2.0 * c * s * xy + s * s * yy
    across = max(xx + yy - along, 0.0)
    m.inertia[k, 0] = across if across > THIN * THIN else 0.0
    m.inertia[k, 1] = along if along > THIN * THIN else 0.0
    m.inertia[k, 2] = m.inertia[k, 0] + m.inertia[k, 1]


@kernel
def patterns(p: Projection, m: Linearised) -> int:
    """Fill the rows of R and R G R^T for the active vertices, and return how many there are."""
    rows = 0
    for k in range(m.members.shape[0]):
        _principal_axes(p, m, k)
        if m.members[k] == 0:
            continue
        scale = np.sqrt(float(m.members[k]))
        c = m.centre[k]
        for a in range(3):
            row = m.R[rows]
            row[:] = 0.0
            row[a] = scale
            # c x e_a
            row[3 + (a + 1) % 3] = scale * c[(a + 2) % 3]
            row[3 + (a + 2) % 3] = -scale * c[(a + 1) % 3]
            m.foot[rows] = k
            m.upright[rows] = a == 2
            rows += 1
        for b in range(3):
            if m.inertia[k, b] == 0.0:
                continue
            row = m.R[rows]
            for a in range(3):
                row[a] = 0.0
                row[3 + a] = np.sqrt(m.inertia[k, b]) * m.axes[k, b, a]
            m.foot[rows] = k
            m.upright[rows] = b < 2
            rows += 1
    for i in range(rows):
        for j in range(i + 1):
            total = 0.0
            for a in range(6):
                part = 0.0
                for b in range(6):
                    part += p.G[6 * m.foot[i] + a, 6 * m.foot[j] + b] * m.R[j, b]
                total += m.R[i, a] * part
            m.A[i, j] = total
    return rows


@kernel
def lacking(p: Projection, m: Linearised, rows: int):
    """Fill ``rhs``: wanted minus free acceleration of the active vertices, along the patterns (eq. 17, 18)."""
    c = m.substeps
    for i in range(rows):
        m.rhs[i] = 0.0
    row = 0
    for k in range(m.members.shape[0]):
        if m.members[k] == 0:
            continue
        scale = 1.0 / np.sqrt(float(m.members[k]))
        d = c.drive[6 * k : 6 * k + 6]
        w = c.twist[6 * k : 6 * k + 6]
        for i in range(p.n_vertices[k]):
            if not m.active[k, i]:
                continue
            x = c.arm[k, i, 0]
            y = c.arm[k, i, 1]
            z = c.arm[k, i, 2]
            v = c.velocity[k, i]
            ax = -m.params.k_v * v[0] - (d[0] + d[4] * z - d[5] * y)
            ay = -m.params.k_v * v[1] - (d[1] + d[5] * x - d[3] * z)
            az = -m.params.k_v * min(0.0, v[2]) - m.params.k_p * (m.params.epsilon + c.height[k, i])
            az -= d[2] + d[3] * y - d[4] * x
            # Of the turning foot: w x (w x r); where a ball touches stays below its centre.
            z += p.radius[k]
            wr = w[3] * x + w[4] * y + w[5] * z
            ww = w[3] * w[3] + w[4] * w[4] + w[5] * w[5]
            ax -= w[3] * wr - ww * x
            ay -= w[4] * wr - ww * y
            az -= w[5] * wr - ww * z
            m.rhs[row] += scale * ax
            m.rhs[row + 1] += scale * ay
            m.rhs[row + 2] += scale * az
            # What turns about each axis: e . (r - c) x a.
            x = p.offsets[k, i, 0] - m.centre[k, 0]
            y = p.offsets[k, i, 1] - m.centre[k, 1]
            z = p.offsets[k, i, 2] - m.centre[k, 2]
            tx, ty, tz = cross((x, y, z), (ax, ay, az))
            j = row + 3
            for b in range(3):
                if m.inertia[k, b] > 0.0:
                    e = m.axes[k, b]
                    m.rhs[j] += (e[0] * tx + e[1] * ty + e[2] * tz) / np.sqrt(m.inertia[k, b])
                    j += 1
        row += 3
        for b in range(3):
            if m.inertia[k, b] > 0.0:
                row += 1


@kernel
def spread(p: Projection, m: Linearised) -> bool:
    """Turn the patterns ``y`` into vertex forces, saturated by the ground (eq. 19, 20); return whether friction was."""
    c = m.substeps
    saturated = False
    row = 0
    for k in range(m.members.shape[0]):
        for i in range(p.n_vertices[k]):
            for a in range(3):
                c.force[k, i, a] = 0.0
        if m.members[k] == 0:
            continue
        scale = 1.0 / np.sqrt(float(m.members[k]))
        tx = ty = tz = 0.0
        j = row + 3
        for b in range(3):
            if m.inertia[k, b] > 0.0:
                turn = m.y[j] / np.sqrt(m.inertia[k, b])
                tx += turn * m.axes[k, b, 0]
                ty += turn * m.axes[k, b, 1]
                tz += turn * m.axes[k, b, 2]
                j += 1
        for i in range(p.n_vertices[k]):
            if not m.active[k, i]:
                continue
            x = p.offsets[k, i, 0] - m.centre[k, 0]
            y = p.offsets[k, i, 1] - m.centre[k, 1]
            z = p.offsets[k, i, 2] - m.centre[k, 2]
            fx = scale * m.y[row] + ty * z - tz * y
            fy = scale * m.y[row + 1] + tz * x - tx * z
            m.wanted[k, i, 0] = fx
            m.wanted[k, i, 1] = fy
            saturated = _saturate(p, m, k, i, scale * m.y[row + 2] + tx * y - ty * x) or saturated
        row = j
    return saturated


@kernel
def _saturate(p: Projection, m: Linearised, k: int, i: int, normal: float) -> bool:
    """Set the force of a vertex from ``normal`` and what it wants tangentially; return whether friction is less."""
    f = m.substeps.force[k, i]
    x = m.wanted[k, i, 0]
    y = m.wanted[k, i, 1]
    m.normal[k, i] = normal
    f[2] = max(normal, 0.0)
    limit = f[2] * friction(p, m.contacts, k, i)
    size = np.sqrt(x * x + y * y)
    share = limit / size if size > limit else 1.0
    f[0] = share * x
    f[1] = share * y
    return share < 1.0


@kernel
def let_go(m: Linearised) -> bool:
    """Take the vertices that would be pulled out of the active ones; return whether there were any.

    What balances a pull that cannot be had must go with it: of three neighbours on a polygon of many vertices, the
    outer two would push with thousands of times the weight against the one between them.
    """
    found = False
    for k in range(m.active.shape[0]):
        for i in range(m.active.shape[1]):
            if m.active[k, i] and m.normal[k, i] < 0.0:
                m.active[k, i] = False
                found = True
    return found


@kernel
def resolve(p: Projection, m: Linearised, rows: int) -> int:
    """Solve for the normal forces under the friction that is left, until both agree; return how often."""
    f = m.substeps.force
    count = 0
    for i in range(rows):
        if m.upright[i]:
            m.normals[count] = i
            count += 1
    for i in range(count):
        for j in range(i + 1):
            m.A_normal[i, j] = m.A[m.normals[i], m.normals[j]]
    for attempt in range(m.params.resolves):
        for k in range(m.members.shape[0]):
            for r in range(6):
                m.friction[k, r] = 0.0
            for i in range(p.n_vertices[k]):
                x = p.offsets[k, i]
                m.friction[k, 0] += f[k, i, 0]
                m.friction[k, 1] += f[k, i, 1]
                m.friction[k, 3] -= x[2] * f[k, i, 1]
                m.friction[k, 4] += x[2] * f[k, i, 0]
                m.friction[k, 5] += x[0] * f[k, i, 1] - x[1] * f[k, i, 0]
        for i in range(count):
            row = m.normals[i]
            total = m.rhs[row]
            for a in range(6):
                part = 0.0
                for k in range(m.members.shape[0]):
                    for b in range(6):
                        part += p.G[6 * m.foot[row] + a, 6 * k + b] * m.friction[k, b]
                total -= m.R[row, a] * part
            m.rhs_normal[i] = total
        solve_least_norm(m.A_normal, m.rhs_normal, count, m.L, m.work, m.y)
        largest = changed = 0.0
        row = 0
        for k in range(m.members.shape[0]):
            if m.members[k] == 0:
                continue
            level = m.y[row] / np.sqrt(float(m.members[k]))
            row += 1
            tx = ty = 0.0
            for b in range(2):
                if m.inertia[k, b] > 0.0:
                    turn = m.y[row] / np.sqrt(m.inertia[k, b])
                    tx += turn * m.axes[k, b, 0]
                    ty += turn * m.axes[k, b, 1]
                    row += 1
            for i in range(p.n_vertices[k]):
                if not m.active[k, i]:
                    continue
                before = f[k, i, 2]
                x = p.offsets[k, i, 0] - m.centre[k, 0]
                y = p.offsets[k, i, 1] - m.centre[k, 1]
                _saturate(p, m, k, i, level + tx * y - ty * x)
                largest = max(largest, f[k, i, 2])
                changed = max(changed, abs(f[k, i, 2] - before))
        if changed <= AGREED * largest:
            return attempt + 1
    m.agreed[0] = m.params.resolves == 0
    return m.params.resolves
