"""What all models of vertex forces share: who touches, and how impulses at vertices become wrenches, CoP and modes.

A vertex model finds an impulse for each vertex of each foot. Modes are read off afterwards: the vertices that touch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.base import CompiledModel, ContactResult
from bipedsim.contact.selection import distance_outside
from bipedsim.dynamics import UNCHANGED, Projection
from bipedsim.ground import carry_vertices
from bipedsim.numerics import inlined_kernel, kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class VertexContacts(NamedTuple):
    """Vertices of K feet, N at most: the state of a vertex model, and what it fills for :func:`publish`.

    Attributes:
        h: Step [s].
        touching: (K, N) whether each vertex touched the ground at the end of the last step; written by the model.
        sticking: (K, N) whether friction held it, likewise.
        heights: (K, N) heights of the vertices at the beginning of the step [m], by :func:`begin`.
        origin: (K, N) for a polygon that changed, the vertex of the last step that each one continues, -1 for a new
            place; else i itself.
        impulses: (K, N, 3) impulses of the ground on the vertices over the step, ground axes [N.s]; by the model.
        impacts: (K, N, 3) the part of them that stopped velocities at once; by the model, zero where there is none.
        old: (N,) work.
        impulse ... counters: As in :class:`ContactResult`; they hold the last step until it is published.
    """

    h: float
    touching: Flags
    sticking: Flags
    heights: Array
    origin: Integers
    impulses: Array
    impacts: Array
    old: Flags
    impulse: Array
    wrench: Array
    impact: Array
    cop: Array
    cop_margin: Array
    friction_used: Array
    n_vertices: Integers
    mode: Integers
    clamped: Integers
    sliding: Flags
    vertex_forces: Array
    counters: Integers

    @classmethod
    def of_feet(cls, n_feet: int, widest: int, result: ContactResult, h: float) -> VertexContacts:
        """Return the arrays for ``n_feet`` of ``widest`` vertices at most; ``result`` is published into."""
        return cls(
            h=h,
            touching=np.zeros((n_feet, widest), dtype=np.bool_),
            sticking=np.zeros((n_feet, widest), dtype=np.bool_),
            heights=np.zeros((n_feet, widest)),
            origin=np.tile(np.arange(widest), (n_feet, 1)),
            impulses=np.zeros((n_feet, widest, 3)),
            impacts=np.zeros((n_feet, widest, 3)),
            old=np.zeros(widest, dtype=np.bool_),
            **result.arrays(),
        )


@kernel
def begin(p: Projection, s: VertexContacts):
    """Fill heights and origins, clear impulses, and carry flags to polygons that changed."""
    for k in range(s.mode.shape[0]):
        n = p.n_vertices[k]
        for i in range(s.heights.shape[1]):
            s.origin[k, i] = i
            for a in range(3):
                s.impulses[k, i, a] = 0.0
                s.impacts[k, i, a] = 0.0
        if p.changed[k] != UNCHANGED:
            carry_vertices(p.previous[k], p.n_previous[k], p.vertices[k], n, s.origin[k])
            _carry_flags(s.touching[k], s.origin[k], n, s.old)
            _carry_flags(s.sticking[k], s.origin[k], n, s.old)
        for i in range(n):
            s.heights[k, i] = p.position[k, 2] + p.offsets[k, i, 2]


@kernel
def _carry_flags(flags, origin, n, old):
    for i in range(flags.shape[0]):
        old[i] = flags[i]
    for i in range(flags.shape[0]):
        flags[i] = i < n and origin[i] >= 0 and old[origin[i]]


@inlined_kernel
def friction(p: Projection, s: VertexContacts, k: int, i: int) -> float:
    """Return the coefficient of a vertex: dynamic for one that slid when it was last looked at, else static."""
    return p.mu_dynamic[k] if s.touching[k, i] and not s.sticking[k, i] else p.mu_static[k]


@kernel
def velocity_at(twists, k, r, out):
    """Fill ``out`` (3,) with the velocity of the point at ``r`` (3,) from the sole origin of foot ``k``."""
    u = twists[6 * k : 6 * k + 6]
    out[0] = u[0] + u[4] * r[2] - u[5] * r[1]
    out[1] = u[1] + u[5] * r[0] - u[3] * r[2]
    out[2] = u[2] + u[3] * r[1] - u[4] * r[0]


@kernel
def mode_of(touching, n) -> int:
    """Return the contact mode of the vertices that touch; any that span the sole plane, or a diagonal, are its face."""
    count = 0
    first = -1
    last = -1
    for i in range(n):
        if touching[i]:
            count += 1
            last = i
            if first < 0:
                first = i
    if count == 0:
        return 0
    if count == 1:
        return 1 + first
    if n == 2:
        return 3
    if count == 2 and last == first + 1:
        return n + 1 + first
    if count == 2 and first == 0 and last == n - 1:
        return n + 1 + last
    return 2 * n + 1


@inlined_kernel
def publish(p: Projection, s: VertexContacts, solves: int, unresolved: bool):
    """Turn vertex impulses into wrenches, CoP and modes, and count what changed.

    The CoP is the mean of the vertices weighted by their normal forces. A foot slides when no loaded vertex sticks.

    Args:
        p, s: See :class:`Projection` and :class:`VertexContacts`.
        solves: How many problems were solved in this step.
        unresolved: Whether the step ended without a solution.
    """
    changes = 0
    for k in range(s.mode.shape[0]):
        n = p.n_vertices[k]
        for r in range(6):
            s.impulse[k, r] = 0.0
            s.impact[k, r] = 0.0
        s.cop[k, :] = 0.0
        bits = 0
        sticks = False
        loaded = False
        for i in range(s.impulses.shape[1]):
            f = s.impulses[k, i]
            for a in range(3):
                s.vertex_forces[k, i, a] = f[a] / s.h
            if i >= n:
                continue
            if s.touching[k, i] and i < 63:
                bits |= 1 << i
            add_at(f, p.offsets[k, i], s.impulse[k])
            add_at(s.impacts[k, i], p.offsets[k, i], s.impact[k])
            s.cop[k, 0] += f[2] * p.vertices[k, i, 0]
            s.cop[k, 1] += f[2] * p.vertices[k, i, 1]
            if f[2] > 0.0:
                loaded = True
                sticks = sticks or s.sticking[k, i]
        f = s.impulse[k]
        _to_sole(p.rotation[k], f, 1.0 / s.h, s.wrench[k])
        _to_sole(p.rotation[k], s.impact[k], 1.0, s.impact[k])
        mode = mode_of(s.touching[k], n)
        sliding = loaded and not sticks
        if mode != s.mode[k] or sliding != s.sliding[k]:
            changes += 1
        s.mode[k] = mode
        s.sliding[k] = sliding
        s.clamped[k] = bits
        s.n_vertices[k] = n
        if f[2] <= 0.0:
            s.cop[k, :] = np.nan
            s.cop_margin[k] = np.nan
            s.friction_used[k] = np.nan
            continue
        s.cop[k, 0] /= f[2]
        s.cop[k, 1] /= f[2]
        s.cop_margin[k] = -distance_outside(p.vertices[k], p.edges[k], n, 0, n, s.cop[k, 0], s.cop[k, 1])
        mu = p.mu_dynamic[k] if sliding else p.mu_static[k]
        s.friction_used[k] = np.sqrt(f[0] * f[0] + f[1] * f[1]) / (mu * f[2]) if mu > 0.0 else 0.0
    # The contacts that a robot starts with are no change of state.
    if s.counters[3] > 0:
        s.counters[0] += changes
    s.counters[3] += 1
    s.counters[2] += solves
    if unresolved:
        s.counters[1] += 1


@inlined_kernel
def add_at(f, r, wrench):
    """Add the force or impulse ``f`` (3,) at ``r`` (3,) from the sole origin to ``wrench`` (6,)."""
    wrench[0] += f[0]
    wrench[1] += f[1]
    wrench[2] += f[2]
    wrench[3] += r[1] * f[2] - r[2] * f[1]
    wrench[4] += r[2] * f[0] - r[0] * f[2]
    wrench[5] += r[0] * f[1] - r[1] * f[0]


@inlined_kernel
def _to_sole(R, wrench, scale, out):
    """Fill ``out`` (6,) with ``wrench`` (6,) times ``scale`` in the axes that are the columns of ``R``."""
    for part in (0, 3):
        x = wrench[part] * scale
        y = wrench[part + 1] * scale
        z = wrench[part + 2] * scale
        for a in range(3):
            out[part + a] = R[0, a] * x + R[1, a] * y + R[2, a] * z


class VertexModel(CompiledModel):
    """Base of the models of vertex forces: who touches, and state in and out.

    Args:
        projection: The projection that every solve gets, refilled.
        physics_dt: Step h [s].

    Attributes:
        contacts: The vertices.
    """

    def __init__(self, projection: Projection, physics_dt: float) -> None:
        feet, widest = projection.vertices.shape[:2]
        super().__init__(projection, ContactResult.empty(feet, widest))
        self.contacts = VertexContacts.of_feet(feet, widest, self.result, physics_dt)

    def _memory(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that the next step depends on, by name; a model with more of them adds its own."""
        return {"touching": self.contacts.touching, "sticking": self.contacts.sticking}
