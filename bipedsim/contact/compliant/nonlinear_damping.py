"""Nonlinear damping (marhefka1996, after Hunt and Crossley 1975), with sticking friction by bristles.

The normal force of a vertex at depth x is f = k x^n (1 + 3/2 alpha x') >= 0 (eq. 6, 7). The coefficient of restitution
of a simple impact then depends on alpha v alone, and the force is continuous.

The paper leaves friction open. Here each vertex carries a bristle: a spring in series with a Coulomb slider. This is
the elasto-plastic element of Prandtl (Dupont, Hayward, Armstrong and Altpeter, "Single state elastoplastic friction
models", IEEE TAC 2002). It sticks without creep below mu f and has no jump; a friction law regularised by velocity
creeps. A parallel damper acts within the rest of the friction cone. It does not move the slider, because a foot
at touchdown has a velocity before it has a load.

Friction falls from static to dynamic over a slip distance (Rabinowicz, "The nature of the static and kinetic
coefficients of friction", J. Applied Physics 1951). It does not fall at the first micrometre, because every touchdown
slips by as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import param
from bipedsim.contact.base import Promises
from bipedsim.contact.compliant.substeps import (
    MOST_EVENTS,
    Substeps,
    begin_substep,
    move_on,
    start,
    substep,
)
from bipedsim.contact.vertices import VertexContacts, VertexModel, begin_vertices, carry_rows, write_vertices
from bipedsim.dynamics import UNCHANGED, Projection
from bipedsim.numerics import Array, assign, kernel, zeros_of


@dataclass(frozen=True)
class NonlinearDampingParams:
    """Parameters of nonlinear damping; stiffness and damping are those of each vertex."""

    stiffness: float = param(1e5, "k of f = k x^n (1 + 3/2 alpha x')", unit="N/m^n", low=1.0, high=1e12)
    exponent: float = param(1.0, "n: 1 for flat faces, 3/2 for a sphere (Hertz)", low=0.5, high=4.0)
    alpha: float = param(2.0, "damping: restitution e = 1 - alpha v at low speed v", unit="s/m", low=0.0, high=1e3)
    alpha_ratio: float = param(1.0, "alpha while a vertex leaves over alpha while it arrives", low=0.0, high=100.0)
    tangential_stiffness: float = param(1e5, "of the bristle of a vertex", unit="N/m", low=1.0, high=1e10)
    tangential_damping: float = param(300.0, "of the bristle of a vertex", unit="N.s/m", low=0.0, high=1e8)
    slip_distance: float = param(
        2e-3, "slip over which friction falls from static to dynamic", unit="m", low=0.0, high=1.0
    )
    resolution: float = param(0.5, "largest rate of the contacts times the substep", low=1e-4, high=1.0)
    max_substeps: int = param(
        500, "maximum number of substeps of a step; a step that needs more counts as unresolved", low=1
    )


class Bristles(NamedTuple):
    """Arrays of the model.

    Attributes:
        params: The parameters.
        contacts, substeps: Vertices, and feet within the step.
        bend: (K, N, 2) deflection of the bristles [m]; part of the state.
        slipped: (K, N, 1) path of the sliders since they last stuck [m]; part of the state.
        bent: (K, 2, N) deflections at the beginning of the substep [m].
        stage: (K, 2, N) deflections at the current stage [m].
        rate_sum: (K, 2, N) weighted sum of the deflection rates [m/s].
        friction: (K, N) friction coefficients in this substep.
        push: (K, 3, N) forces at the stage [N].
        share: (K, N) friction as a fraction of the unlimited force of bristle and damper.
        stiff, damped: (K, 6, 6) stiffness and damping of the contacts of a foot.
        moved, square, old: (6K, 6K), (6K, 6K), (N, 2) work arrays.
    """

    params: NonlinearDampingParams
    contacts: VertexContacts
    substeps: Substeps
    bend: Annotated[Array, "K", "N", 2]
    slipped: Annotated[Array, "K", "N", 1]
    bent: Annotated[Array, "K", 2, "N"]
    stage: Annotated[Array, "K", 2, "N"]
    rate_sum: Annotated[Array, "K", 2, "N"]
    friction: Annotated[Array, "K", "N"]
    push: Annotated[Array, "K", 3, "N"]
    share: Annotated[Array, "K", "N"]
    stiff: Annotated[Array, "K", 6, 6]
    damped: Annotated[Array, "K", 6, 6]
    moved: Annotated[Array, "6K", "6K"]
    square: Annotated[Array, "6K", "6K"]
    old: Annotated[Array, "N", 2]


@kernel
def _normal_force(law: NonlinearDampingParams, depth: float, speed: float) -> float:
    """Return the normal force [N] on a vertex at ``depth`` > 0 with penetration rate ``speed`` (eq. 6, 7)."""
    alpha = law.alpha if speed >= 0.0 else law.alpha * law.alpha_ratio
    spring = law.stiffness * (depth if law.exponent == 1.0 else depth**law.exponent)
    return max(spring * (1.0 + 1.5 * alpha * speed), 0.0)


@kernel
def _friction(p: Projection, m: Bristles, k: int, i: int) -> float:
    """Return the friction coefficient of a vertex; it falls from static to dynamic with the slip of its slider."""
    share = min(m.slipped[k, i, 0] / m.params.slip_distance, 1.0) if m.slipped[k, i, 0] > 0.0 else 0.0
    return p.mu_static[k] + share * (p.mu_dynamic[k] - p.mu_static[k])


@kernel
def _begin(p: Projection, m: Bristles):
    """Initialise the bristles at the beginning of the substep, and set the friction for all of its stages."""
    for k in range(m.bend.shape[0]):
        for i in range(p.n_vertices[k]):
            m.friction[k, i] = _friction(p, m, k, i)
            for a in range(2):
                m.bent[k, a, i] = m.stage[k, a, i] = m.bend[k, i, a]
                m.rate_sum[k, a, i] = 0.0


@kernel
def _press(p: Projection, m: Bristles, k: int, weight: float, ahead: float):
    """Compute the vertex forces of foot ``k`` at the stage, and move its bristles to the next stage.

    The forces are added to ``force_sum`` and the deflection rates to ``rate_sum``.

    Args:
        p, m: See :class:`Projection` and :class:`Bristles`.
        k: Index of the foot.
        weight: Weight of the stage.
        ahead: Time from the beginning of the substep to the next stage [s].
    """
    c, law, n = m.substeps, m.params, p.n_vertices[k]
    stiff, damping = law.tangential_stiffness, law.tangential_damping
    height, friction, share = c.height[k], m.friction[k], m.share[k]
    x, y, vx, vy, vz = m.stage[k, 0], m.stage[k, 1], c.velocity[k, 0], c.velocity[k, 1], c.velocity[k, 2]
    normal = m.push[k, 2]
    # Short loops over few arrays let the compiler vectorise over the vertices.
    for i in range(n):
        normal[i] = _normal_force(law, -height[i], -vz[i]) if height[i] < 0.0 else 0.0
    for i in range(n):
        tx = stiff * x[i] + damping * vx[i]
        ty = stiff * y[i] + damping * vy[i]
        limit = normal[i] * friction[i]
        size = np.sqrt(tx * tx + ty * ty)
        share[i] = limit / size if size > limit else 1.0
    for a in range(2):
        velocity, push, rate = c.velocity[k, a], m.push[k, a], m.rate_sum[k, a]
        stage, bent = m.stage[k, a], m.bent[k, a]
        for i in range(n):
            push[i] = -share[i] * (stiff * stage[i] + damping * velocity[i]) if height[i] < 0.0 else 0.0
        for i in range(n):
            u = velocity[i] if height[i] < 0.0 else 0.0
            rate[i] += weight * u
            stage[i] = bent[i] + ahead * u
    for a in range(3):
        push, total = m.push[k, a], c.force_sum[k, a]
        for i in range(n):
            total[i] += weight * push[i]


@kernel
def _sum_up(p: Projection, m: Bristles, k: int):
    """Fill the wrench on foot ``k`` from the forces on its vertices."""
    fx = fy = fz = mx = my = mz = 0.0
    push = m.push[k]
    for i in range(p.n_vertices[k]):
        x, y, z = p.offsets[k, i, 0], p.offsets[k, i, 1], p.offsets[k, i, 2]
        f, g, n = push[0, i], push[1, i], push[2, i]
        fx += f
        fy += g
        fz += n
        mx += y * n - z * g
        my += z * f - x * n
        mz += x * g - y * f
    wrench = m.substeps.wrench[k]
    assign(wrench, (fx, fy, fz))
    assign(wrench[3:], (mx, my, mz))


@kernel
def _update_contacts(p: Projection, m: Bristles, dt: float):
    """Update contact flags, sliders and bristles at the end of a substep; bristles in the air become straight."""
    c, s, law = m.substeps, m.contacts, m.params
    sixth = dt / 6.0
    for k in range(c.height.shape[0]):
        for i in range(c.height.shape[1]):
            b = m.bend[k, i]
            s.touching[k, i] = i < p.n_vertices[k] and c.height[k, i] < 0.0
            if not s.touching[k, i]:
                b[0] = b[1] = m.slipped[k, i, 0] = 0.0
                continue
            x = b[0] + sixth * m.rate_sum[k, 0, i]
            y = b[1] + sixth * m.rate_sum[k, 1, i]
            normal = _normal_force(law, -c.height[k, i], -c.velocity[k, 2, i])
            limit = m.friction[k, i] * normal / law.tangential_stiffness
            size = np.sqrt(x * x + y * y)
            slipped = 0.0
            if size > limit:
                slipped = m.slipped[k, i, 0] + (size - limit)
                x *= limit / size
                y *= limit / size
            m.slipped[k, i, 0] = slipped
            b[0] = x
            b[1] = y
            # The result follows the convention of the other models: a vertex slides when its friction is dynamic.
            s.sticking[k, i] = slipped <= law.slip_distance


@kernel
def _add_stiffness(K, vector, columns, weight):
    """Add ``weight`` times e e^T to K (6, 6), where e is ``vector`` in ``columns`` and zero elsewhere."""
    for a in range(3):
        for b in range(3):
            K[columns[a], columns[b]] += weight * vector[a] * vector[b]


@kernel
def _largest_rate(G, X, GX, square) -> float:
    """Return an upper bound of the largest eigenvalue of G times the blocks X (K, 6, 6).

    The bound is the fourth root of the trace of the fourth power. It exceeds the eigenvalue by a factor of at most
    (6 K)^(1/4). No eigenvalue is negative.
    """
    n = G.shape[0]
    for i in range(n):
        for k in range(X.shape[0]):
            for b in range(6):
                total = 0.0
                for a in range(6):
                    total += G[i, 6 * k + a] * X[k, a, b]
                GX[i, 6 * k + b] = total
    trace = 0.0
    for i in range(n):
        for j in range(n):
            total = 0.0
            for a in range(n):
                total += GX[i, a] * GX[a, j]
            square[i, j] = total
    for i in range(n):
        for j in range(n):
            trace += square[i, j] * square[j, i]
    return np.sqrt(np.sqrt(max(trace, 0.0)))


@kernel
def _substeps(p: Projection, m: Bristles) -> int:
    """Return the number of substeps that the fastest motion of the contacts needs.

    All vertices of a foot move with it, so their springs and dampers add up to one element of six dimensions per foot.
    Vertices that may reach the ground within the step are included. In too long a substep, a stiff spring would throw
    them back.
    """
    s, c, law = m.contacts, m.substeps, m.params
    h = s.h
    m.stiff[:, :, :] = 0.0
    m.damped[:, :, :] = 0.0
    touched = False
    for k in range(s.heights.shape[0]):
        d = c.drive[6 * k : 6 * k + 6]
        for i in range(p.n_vertices[k]):
            fall = d[4] * c.arm[k, 0, i] - d[3] * c.arm[k, 1, i] - d[2]
            depth = -c.height[k, i] + h * (max(-c.velocity[k, 2, i], 0.0) + 0.5 * h * max(fall, 0.0))
            if depth <= 0.0:
                continue
            touched = True
            spring = law.stiffness * depth**law.exponent
            x = p.offsets[k, i, 0]
            y = p.offsets[k, i, 1]
            z = p.offsets[k, i, 2]
            _add_stiffness(m.stiff[k], (1.0, y, -x), (2, 3, 4), law.exponent * spring / depth)
            _add_stiffness(m.damped[k], (1.0, y, -x), (2, 3, 4), 1.5 * law.alpha * max(1.0, law.alpha_ratio) * spring)
            _add_stiffness(m.stiff[k], (1.0, z, -y), (0, 4, 5), law.tangential_stiffness)
            _add_stiffness(m.stiff[k], (1.0, -z, x), (1, 3, 5), law.tangential_stiffness)
            _add_stiffness(m.damped[k], (1.0, z, -y), (0, 4, 5), law.tangential_damping)
            _add_stiffness(m.damped[k], (1.0, -z, x), (1, 3, 5), law.tangential_damping)
    if not touched:
        return 1
    fastest = np.sqrt(_largest_rate(p.G, m.stiff, m.moved, m.square))
    # A pure decay needs half as many: the Runge-Kutta method computes e^-1 to 2 %.
    fastest = max(fastest, 0.5 * _largest_rate(p.G, m.damped, m.moved, m.square))
    return max(int(np.ceil(min(h * fastest / law.resolution, 1e9))), 1)


@kernel
def nonlinear_damping(p: Projection, m: Bristles):
    """Advance the contacts by one step."""
    s = m.contacts
    c = m.substeps
    begin_vertices(p, s)
    for k in range(m.bend.shape[0]):
        if p.changed[k] != UNCHANGED:
            carry_rows(m.bend[k], s.origin[k], p.n_vertices[k], m.old)
            carry_rows(m.slipped[k], s.origin[k], p.n_vertices[k], m.old)
    start(p, c)
    needed = _substeps(p, m)
    count = min(needed, m.params.max_substeps)
    h = s.h
    t = 0.0
    for _ in range(MOST_EVENTS + count + 1):
        rest = h - t
        dt = substep(p, c, h / count, rest)
        begin_substep(c)
        _begin(p, m)
        for stage in range(4):
            weight = 2.0 if stage == 1 or stage == 2 else 1.0
            ahead = 0.5 * dt if stage < 2 else dt
            for k in range(c.height.shape[0]):
                _press(p, m, k, weight, ahead)
                _sum_up(p, m, k)
            move_on(p, c, stage, dt)
        _update_contacts(p, m, dt)
        if dt == rest:
            break
        t += dt
    write_vertices(p, s, 1, needed > count or c.events[0] >= MOST_EVENTS)


class NonlinearDamping(VertexModel):
    """Compute forces of springs with Hunt and Crossley's damping at each vertex, and of bristles that stick."""

    Params = NonlinearDampingParams
    # A loaded sole sinks by millimetres, and by more at impact. A foot that leaves within the step has risen by then.
    promises = Promises(springs=True, gap=1e-3, depth=0.02)
    kernel = nonlinear_damping

    def _arrays_of(self, n_feet: int, widest: int) -> Bristles:
        sizes, substeps = {"K": n_feet, "N": widest}, Substeps.of_feet(self.contacts)
        self._act_within(substeps.impulse, substeps.late)
        return zeros_of(Bristles, sizes, params=self.params, contacts=self.contacts, substeps=substeps)

    def _memory(self) -> dict[str, NDArray[Any]]:
        return super()._memory() | {"bend": self.arrays.bend, "slipped": self.arrays.slipped}
