"""Feedback linearisation of the vertices in contact: from target accelerations to forces (rengifo2009 eq. 17 to 20).

The pseudo-inverse needs no decomposition of the matrix of all vertices (3n x 3n, of rank 6 per foot at most). The least
squares of rigid motions on a set of points separate into the motion of its centroid and rotations about its principal
axes. Accelerations are projected on these patterns, at most 6 per foot, and forces are distributed along them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.config import param
from bipedsim.contact.compliant.substeps import Substeps
from bipedsim.contact.time_stepping import ConeProblem
from bipedsim.contact.vertices import VertexContacts, friction
from bipedsim.dynamics import Projection
from bipedsim.numerics import (
    Array,
    Flags,
    Integers,
    add_wrench,
    assign,
    cross,
    kernel,
    solve_dense,
    solve_least_norm,
)

THIN = 1e-6
"""A set of vertices narrower than this [m] counts as a line."""
SLOW = 1e-3
"""Slip speed [m/s] below which friction is static and has no direction of its own."""
LEAST_NORM = 30
"""Operations of a least-norm solution of n rows, in units of n^3; used to charge the budget of the step."""


@dataclass(frozen=True)
class FeedbackLinearisedParams:
    """Parameters of feedback-linearised penalty contact; friction is that of the soles and the ground."""

    k_p: float = param(500.0, "acceleration for penetration", unit="1/s^2", low=0.0, high=1e8)
    k_v: float = param(250.0, "acceleration against the velocity of a vertex", unit="1/s", low=0.0, high=1e6)
    epsilon: float = param(
        5e-5, "penetration at rest, against the false impacts that 0 gives (section V)", unit="m", low=0.0, high=0.01
    )
    resolves: int = param(
        20, "maximum number of solves with saturated friction; 0 is the published model", low=0, high=100
    )


class Linearised(NamedTuple):
    """Arrays of the model.

    Attributes:
        params: The parameters.
        contacts, substeps: Vertices, and feet within the step.
        cones: The cone problem, used where the linear equations have no valid solution.
        closed: (K, N) whether a vertex is in contact in this substep.
        active: (K, N) whether it carries load at this stage: those in contact, except those that would be pulled.
        centre: (K, 3) mean of the active vertices relative to the sole origin, ground axes [m].
        axes: (K, 3, 3) rows: principal axes, ground axes.
        inertia: (K, 3) sum of squared distances from the axes [m^2], 0 for an axis through all vertices.
        members: (K,) number of active vertices of a foot.
        R: (6K, 6) rows: wrench on the foot for one unit of each pattern of vertex forces.
        foot, upright: (6K,) foot of each pattern, and whether it consists of normal forces.
        A, L, work, rhs, y: R G R^T, its factor, work arrays, right-hand side and solution.
        unsaturated, normal: (K, N, 2), (K, N) tangential and normal forces before saturation [N].
        missing: (K, N, 3) target minus free acceleration of the active vertices [m/s^2].
        best: (K, N, 3) best forces of the cone problem so far [N].
        warm: (K, N, 3) forces that solved the last cone problem [N]; initial value of the next one.
        saturated: (K, N) whether friction is saturated in the first solve.
        slides: (K, N) whether friction is saturated in the last solve.
        sticking: (N,) whether friction of a vertex of the current foot is not saturated.
        direction: (K, N, 2) direction of friction of the sliding vertices.
        field: (6K, 3) coefficients of the fields of vertex forces over the ground. A normal field is a + b x + c y, a
            tangential one (a - c y, b + c x).
        W: (6K, 6) wrenches of the fields including the friction that normal forces cause.
        coupled: (6K, 6K) matrix of the equations of the fields.
        moved, order, foot_order: (6K,) work arrays.
        consistent: (1,) whether friction was consistent with the normal forces in every stage of the step.
    """

    params: FeedbackLinearisedParams
    contacts: VertexContacts
    substeps: Substeps
    cones: ConeProblem
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
    y: Annotated[Array, "6K"]
    unsaturated: Annotated[Array, "K", "N", 2]
    normal: Annotated[Array, "K", "N"]
    missing: Annotated[Array, "K", "N", 3]
    best: Annotated[Array, "K", "N", 3]
    warm: Annotated[Array, "K", "N", 3]
    saturated: Annotated[Flags, "K", "N"]
    slides: Annotated[Flags, "K", "N"]
    sticking: Annotated[Flags, "N"]
    direction: Annotated[Array, "K", "N", 2]
    field: Annotated[Array, "6K", 3]
    W: Annotated[Array, "6K", 6]
    coupled: Annotated[Array, "6K", "6K"]
    moved: Annotated[Array, "6K"]
    order: Annotated[Integers, "6K"]
    foot_order: Annotated[Integers, "6K"]
    consistent: Annotated[Flags, 1]


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
    """Fill the rows of R and of R G R^T for the active vertices, and return their number."""
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
def fill_missing(p: Projection, m: Linearised, rows: int):
    """Fill ``rhs`` with target minus free acceleration of the active vertices, along the patterns (eq. 17, 18)."""
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
            x = c.arm[k, 0, i]
            y = c.arm[k, 1, i]
            z = c.arm[k, 2, i]
            v = c.velocity[k, 0, i], c.velocity[k, 1, i], c.velocity[k, 2, i]
            ax = -m.params.k_v * v[0] - (d[0] + d[4] * z - d[5] * y)
            ay = -m.params.k_v * v[1] - (d[1] + d[5] * x - d[3] * z)
            az = -m.params.k_v * min(0.0, v[2]) - m.params.k_p * (m.params.epsilon + c.height[k, i])
            az -= d[2] + d[3] * y - d[4] * x
            # Centripetal acceleration w x (w x r); the contact point of a ball stays below its centre.
            z += p.radius[k]
            wr = w[3] * x + w[4] * y + w[5] * z
            ww = w[3] * w[3] + w[4] * w[4] + w[5] * w[5]
            ax -= w[3] * wr - ww * x
            ay -= w[4] * wr - ww * y
            az -= w[5] * wr - ww * z
            assign(m.missing[k, i], (ax, ay, az))
            m.rhs[row] += scale * ax
            m.rhs[row + 1] += scale * ay
            m.rhs[row + 2] += scale * az
            # Component about each principal axis: e . (r - c) x a.
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
    """Distribute the patterns ``y`` as saturated vertex forces (eq. 19, 20); return whether friction saturated."""
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
            m.unsaturated[k, i, 0] = fx
            m.unsaturated[k, i, 1] = fy
            m.saturated[k, i] = _saturate(p, m, k, i, scale * m.y[row + 2] + tx * y - ty * x)
            saturated = saturated or m.saturated[k, i]
        row = j
    return saturated


@kernel
def _saturate(p: Projection, m: Linearised, k: int, i: int, normal: float) -> bool:
    """Set the force of a vertex from ``normal`` and its unsaturated tangential force; return whether it saturates.

    The function also stores the direction of friction. In the published model (``resolves: 0``) it is that of the
    unsaturated force. On a sole that slides and spins, this force is not parallel to the slip, because it depends on
    the distribution of the masses. Otherwise friction of a sliding vertex opposes its own slip. A vertex near its limit
    hardly slides, so the direction blends from the one to the other.
    """
    f = m.substeps.force[k, i]
    x = m.unsaturated[k, i, 0]
    y = m.unsaturated[k, i, 1]
    m.normal[k, i] = normal
    f[2] = max(normal, 0.0)
    limit = f[2] * friction(p, m.contacts, k, i)
    size = np.sqrt(x * x + y * y)
    if size <= limit:
        f[0] = x
        f[1] = y
        return False
    d = m.direction[k, i]
    d[0] = x / size
    d[1] = y / size
    if m.params.resolves > 0:
        u = m.substeps.velocity[k, 0, i], m.substeps.velocity[k, 1, i]
        share = (limit / size) ** 4
        braked = (1.0 - share) / (SLOW + np.sqrt(u[0] * u[0] + u[1] * u[1]))
        x = share * d[0] - braked * u[0]
        y = share * d[1] - braked * u[1]
        size = np.sqrt(x * x + y * y)
        if size > 0.0:
            d[0] = x / size
            d[1] = y / size
    f[0] = limit * d[0]
    f[1] = limit * d[1]
    return True


@kernel
def release_pulled(m: Linearised) -> bool:
    """Deactivate the vertices that would be pulled; return whether there were any.

    The forces that balance an impossible pull must vanish with it. Otherwise, of three neighbours on a polygon of many
    vertices, the outer two would push with thousands of times the weight against the one between them.
    """
    released = False
    for k in range(m.active.shape[0]):
        for i in range(m.active.shape[1]):
            if m.active[k, i] and m.normal[k, i] < 0.0:
                m.active[k, i] = False
                released = True
    return released


@kernel
def _field(m: Linearised, row: int, k: int, which: Flags, n: int, offsets: Array, upright: bool) -> int:
    """Write the force fields of the vertices ``which`` of foot ``k`` as rows from ``row`` on; return the next row.

    Normal fields are a constant and two principal moments. Tangential fields are two directions and the rotation about
    the mean. All are orthogonal and of norm 1, so the least coefficients are those of the least forces.
    """
    count = 0
    x = y = xx = xy = yy = 0.0
    for i in range(n):
        if which[i]:
            count += 1
            x += offsets[i, 0]
            y += offsets[i, 1]
    if count == 0:
        return row
    x /= count
    y /= count
    for i in range(n):
        if which[i]:
            dx = offsets[i, 0] - x
            dy = offsets[i, 1] - y
            xx += dx * dx
            xy += dx * dy
            yy += dy * dy
    scale = 1.0 / np.sqrt(float(count))
    first = row
    if upright:
        assign(m.field[row], (scale, 0.0, 0.0))
        row += 1
        angle = 0.5 * np.arctan2(2.0 * xy, xx - yy)
        c = np.cos(angle)
        s = np.sin(angle)
        for _ in range(2):
            moment = c * c * xx + 2.0 * c * s * xy + s * s * yy
            if moment > THIN * THIN:
                scale = 1.0 / np.sqrt(moment)
                assign(m.field[row], (-scale * (c * x + s * y), scale * c, scale * s))
                row += 1
            c, s = -s, c
    else:
        assign(m.field[row], (scale, 0.0, 0.0))
        assign(m.field[row + 1], (0.0, scale, 0.0))
        row += 2
        if xx + yy > THIN * THIN:
            scale = 1.0 / np.sqrt(xx + yy)
            assign(m.field[row], (scale * y, -scale * x, scale))
            row += 1
    for r in range(first, row):
        m.foot[r] = k
        m.upright[r] = upright
    return row


@kernel
def _force_of(m: Linearised, row: int, x: float, y: float) -> tuple[float, float, float]:
    """Return the force of field ``row`` on a vertex at (x, y) that belongs to the field."""
    a = m.field[row, 0]
    b = m.field[row, 1]
    c = m.field[row, 2]
    if m.upright[row]:
        return 0.0, 0.0, a + b * x + c * y
    return a - c * y, b + c * x, 0.0


@kernel
def _fields(p: Projection, m: Linearised) -> int:
    """Fill the equations of the fields in ``coupled`` and ``rhs``, and return their number.

    The normal force of a sliding vertex causes friction. Its contribution to a normal field is therefore oblique.
    """
    rows = 0
    for k in range(m.active.shape[0]):
        n = p.n_vertices[k]
        rows = _field(m, rows, k, m.active[k], n, p.offsets[k], True)
        for i in range(n):
            m.sticking[i] = m.active[k, i] and not m.slides[k, i]
        rows = _field(m, rows, k, m.sticking, n, p.offsets[k], False)
    for r in range(rows):
        k = m.foot[r]
        m.R[r, :] = 0.0
        m.W[r, :] = 0.0
        m.rhs[r] = 0.0
        for i in range(p.n_vertices[k]):
            if not m.active[k, i] or (m.slides[k, i] and not m.upright[r]):
                continue
            x = p.offsets[k, i]
            f = _force_of(m, r, x[0], x[1])
            add_wrench(m.R[r], f, x)
            missing = m.missing[k, i]
            m.rhs[r] += f[0] * missing[0] + f[1] * missing[1] + f[2] * missing[2]
            if m.slides[k, i]:
                grip = f[2] * friction(p, m.contacts, k, i)
                f = grip * m.direction[k, i, 0], grip * m.direction[k, i, 1], f[2]
            add_wrench(m.W[r], f, x)
    for j in range(rows):
        for k in range(m.active.shape[0]):
            for a in range(6):
                m.moved[6 * k + a] = 0.0
                for b in range(6):
                    m.moved[6 * k + a] += p.G[6 * k + a, 6 * m.foot[j] + b] * m.W[j, b]
        for i in range(rows):
            total = 0.0
            for a in range(6):
                total += m.R[i, a] * m.moved[6 * m.foot[i] + a]
            m.coupled[i, j] = total
    return rows


@kernel
def _solve_coupled(m: Linearised, rows: int, regular: bool):
    """Solve for the coefficients ``y`` of the fields, of least norm if the feet cannot move independently."""
    m.cones.budget[0] -= rows * rows * rows
    for i in range(rows):
        m.moved[i] = m.rhs[i]
        for j in range(rows):
            m.L[i, j] = m.coupled[i, j]
    if regular and solve_dense(m.L, m.moved, rows, m.y, m.order, m.foot_order) == rows:
        return
    m.cones.budget[0] -= LEAST_NORM * rows * rows * rows
    # y = B^T (B B^T)^+ b
    for i in range(rows):
        for j in range(i + 1):
            total = 0.0
            for a in range(rows):
                total += m.coupled[i, a] * m.coupled[j, a]
            m.A[i, j] = total
    solve_least_norm(m.A, m.rhs, rows, m.L, m.work, m.moved)
    for j in range(rows):
        m.y[j] = 0.0
        for i in range(rows):
            m.y[j] += m.coupled[i, j] * m.moved[i]


@kernel
def resolve(p: Projection, m: Linearised, regular: bool) -> int:
    """Solve again with saturated friction and return the number of solves.

    The normal forces of sliding vertices include their friction; sticking vertices solve for friction as well. A vertex
    that needs more than its friction starts to slide, and the others take over the rest. This repeats until no further
    vertex slides.

    Args:
        p, m: See :class:`Projection` and :class:`Linearised`; forces are those of :func:`spread`.
        regular: Whether the feet can move independently.
    """
    for k in range(m.active.shape[0]):
        for i in range(p.n_vertices[k]):
            m.slides[k, i] = m.saturated[k, i]
    for solves in range(1, m.params.resolves + 1):
        rows = _fields(p, m)
        _solve_coupled(m, rows, regular)
        more = False
        for k in range(m.active.shape[0]):
            for i in range(p.n_vertices[k]):
                if not m.active[k, i]:
                    continue
                fx = fy = fz = 0.0
                x = p.offsets[k, i]
                for r in range(rows):
                    if m.foot[r] == k:
                        f = _force_of(m, r, x[0], x[1])
                        fx += m.y[r] * f[0]
                        fy += m.y[r] * f[1]
                        fz += m.y[r] * f[2]
                if m.slides[k, i]:
                    m.normal[k, i] = fz
                    fz = max(fz, 0.0)
                    limit = fz * friction(p, m.contacts, k, i)
                    assign(m.substeps.force[k, i], (limit * m.direction[k, i, 0], limit * m.direction[k, i, 1], fz))
                    continue
                m.unsaturated[k, i, 0] = fx
                m.unsaturated[k, i, 1] = fy
                if _saturate(p, m, k, i, fz):
                    m.slides[k, i] = True
                    more = True
        if not more:
            return solves
    m.consistent[0] = False
    return m.params.resolves
