"""Penalty contact by input-output feedback linearisation (rengifo2009).

The contact model says how the vertices that touch should accelerate (eq. 17), and the forces that do this are solved
for (eq. 18), of least norm where there are several; saturation makes them forces that a ground can give (eq. 19, 20).
So the parameters describe the motion of the vertices alone, whatever mass stands on them.

The pseudo-inverse needs no decomposition of the matrix of all vertices (3n x 3n, of rank 6 a foot at most): the least
squares of rigid motions on a set of points separate into the motion of its centroid and turns about its principal axes.
Accelerations are projected on these, at most 6 a foot, and forces spread along them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.compiled import box, entry, inlined_kernel, kernel
from bipedsim.contact.base import Projection
from bipedsim.contact.course import Course, begin_substep, is_closed, next_stage, start, substep
from bipedsim.contact.linear import solve_cholesky, solve_singular
from bipedsim.contact.vertices import VertexContacts, VertexModel, begin, publish
from bipedsim.params import param

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

RESOLUTION = 0.2
"""Largest rate of the wanted motion times the substep."""
THIN = 1e-6
"""A set of vertices narrower than this [m] has no width."""


@dataclass(frozen=True)
class FeedbackLinearisedParams:
    """Parameters of feedback-linearised penalty contact; friction is that of the soles and the ground."""

    k_p: float = param(500.0, "acceleration for penetration", unit="1/s^2", low=0.0, high=1e8)
    k_v: float = param(250.0, "acceleration against the velocity of a vertex", unit="1/s", low=0.0, high=1e6)
    epsilon: float = param(
        1e-5, "penetration at rest, against the false impacts that 0 gives (section V)", unit="m", low=0.0, high=0.01
    )


class Linearised(NamedTuple):
    """Arrays of the model; the parameters as in :class:`FeedbackLinearisedParams`.

    Attributes:
        contacts, course: Vertices, and feet within the step.
        active: (K, N) whether a vertex is in contact in this substep.
        centre: (K, 3) mean of the active vertices from the sole origin, ground axes [m].
        axes: (K, 3, 3) rows: principal axes, ground axes.
        inertia: (K, 3) sum of squared distances from them [m^2], 0 for an axis that no vertex turns about.
        members: (K,) how many active vertices a foot has.
        R: (6K, 6) rows: the wrench on its foot by one unit of each pattern of vertex forces.
        foot: (6K,) foot of each pattern.
        A, L, rhs, y, residual, correction: R G R^T and its solution.
        force_sum: (K, N, 3) vertex forces weighted over the stages.
    """

    k_p: float
    k_v: float
    epsilon: float
    contacts: VertexContacts
    course: Course
    active: NDArray[np.bool_]
    centre: Array
    axes: Array
    inertia: Array
    members: Integers
    R: Array
    foot: Integers
    A: Array
    L: Array
    rhs: Array
    y: Array
    residual: Array
    correction: Array
    force_sum: Array


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
def _patterns(p: Projection, m: Linearised) -> int:
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
            rows += 1
        for b in range(3):
            if m.inertia[k, b] == 0.0:
                continue
            row = m.R[rows]
            for a in range(3):
                row[a] = 0.0
                row[3 + a] = np.sqrt(m.inertia[k, b]) * m.axes[k, b, a]
            m.foot[rows] = k
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


@inlined_kernel
def _lacking(p: Projection, m: Linearised, rows: int):
    """Fill ``rhs``: wanted minus free acceleration of the active vertices, along the patterns (eq. 17, 18)."""
    c = m.course
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
            ax = -m.k_v * v[0] - (d[0] + d[4] * z - d[5] * y)
            ay = -m.k_v * v[1] - (d[1] + d[5] * x - d[3] * z)
            az = -m.k_v * min(0.0, v[2]) - m.k_p * (m.epsilon + c.height[k, i])
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
            tx = y * az - z * ay
            ty = z * ax - x * az
            tz = x * ay - y * ax
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


@inlined_kernel
def _spread(p: Projection, m: Linearised):
    """Turn the patterns ``y`` into vertex forces, saturated by the ground (eq. 19, 20)."""
    c = m.course
    s = m.contacts
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
            fz = max(scale * m.y[row + 2] + tx * y - ty * x, 0.0)
            limit = fz * (p.mu_static[k] if s.sticking[k, i] else p.mu_dynamic[k])
            size = np.sqrt(fx * fx + fy * fy)
            if size > limit:
                fx *= limit / size
                fy *= limit / size
            c.force[k, i, 0] = fx
            c.force[k, i, 1] = fy
            c.force[k, i, 2] = fz
        row = j


@inlined_kernel
def _sticks(p: Projection, m: Linearised):
    """A vertex in contact sticks while friction of the first stage is inside its cone; one in the air is ready to."""
    s = m.contacts
    f = m.course.force
    for k in range(m.members.shape[0]):
        for i in range(m.active.shape[1]):
            if not m.active[k, i]:
                s.sticking[k, i] = True
                continue
            mu = p.mu_static[k] if s.sticking[k, i] else p.mu_dynamic[k]
            size = np.sqrt(f[k, i, 0] ** 2 + f[k, i, 1] ** 2)
            # Saturation leaves the force on the cone, to rounding.
            s.sticking[k, i] = size < mu * f[k, i, 2] * (1.0 - 1e-12)


@kernel
def feedback_linearised(p: Projection, m: Linearised):
    """Take one step of the contacts."""
    s = m.contacts
    c = m.course
    begin(p, s)
    start(p, c)
    h = s.h
    longest = h / max(np.ceil(h * max(m.k_v, np.sqrt(m.k_p)) / RESOLUTION), 1.0)
    solves = 0
    t = 0.0
    while t < h:
        rest = h - t
        dt = substep(p, c, longest, rest)
        begin_substep(c)
        for k in range(m.members.shape[0]):
            for i in range(m.active.shape[1]):
                m.active[k, i] = i < p.n_vertices[k] and is_closed(c, k, i)
                for a in range(3):
                    m.force_sum[k, i, a] = 0.0
        rows = _patterns(p, m)
        for stage in range(4):
            weight = 2.0 if stage == 1 or stage == 2 else 1.0
            if rows > 0:
                solves += 1
                _lacking(p, m, rows)
                if not solve_cholesky(m.A, m.rhs, rows, m.L, m.y):
                    solve_singular(m.A, m.rhs, rows, m.L, m.y, m.residual, m.correction)
            _spread(p, m)
            if stage == 0:
                _sticks(p, m)
            for k in range(m.members.shape[0]):
                for i in range(p.n_vertices[k]):
                    for a in range(3):
                        m.force_sum[k, i, a] += weight * c.force[k, i, a]
            next_stage(p, c, stage, dt)
        for k in range(m.members.shape[0]):
            for i in range(p.n_vertices[k]):
                for a in range(3):
                    s.impulses[k, i, a] += dt / 6.0 * m.force_sum[k, i, a]
        t = h if dt == rest else t + dt
    for k in range(m.members.shape[0]):
        for i in range(m.active.shape[1]):
            s.touching[k, i] = i < p.n_vertices[k] and is_closed(c, k, i)
    publish(p, s, solves, False)


class _Step(NamedTuple):
    projection: Projection
    model: Linearised


@entry
def _solve(step):
    feedback_linearised(step.arrays.projection, step.arrays.model)


class FeedbackLinearised(VertexModel):
    """Penalty contact whose parameters are the wanted motion of the vertices.

    Args:
        projection: The projection that every solve gets, refilled.
        params: See :class:`FeedbackLinearisedParams`.
        physics_dt: Step h [s].

    Attributes:
        arrays: For whoever fuses the solve with the dynamics into one compiled step.
    """

    Params = FeedbackLinearisedParams

    def __init__(self, projection: Projection, params: FeedbackLinearisedParams, physics_dt: float) -> None:
        super().__init__(projection, physics_dt)
        self.params = params
        feet, widest = projection.vertices.shape[:2]
        size = 6 * feet
        course = Course.of_feet(feet, widest, physics_dt)
        self.late = course.late
        self.arrays = Linearised(
            k_p=params.k_p,
            k_v=params.k_v,
            epsilon=params.epsilon,
            contacts=self.contacts,
            course=course,
            active=np.zeros((feet, widest), dtype=np.bool_),
            centre=np.zeros((feet, 3)),
            axes=np.zeros((feet, 3, 3)),
            inertia=np.zeros((feet, 3)),
            members=np.zeros(feet, dtype=np.int64),
            R=np.zeros((size, 6)),
            foot=np.zeros(size, dtype=np.int64),
            A=np.zeros((size, size)),
            L=np.zeros((size, size)),
            rhs=np.zeros(size),
            y=np.zeros(size),
            residual=np.zeros(size),
            correction=np.zeros(size),
            force_sum=np.zeros((feet, widest, 3)),
        )
        self._step = box(_Step(projection, self.arrays))

    def _solve(self) -> None:
        _solve(self._step)
