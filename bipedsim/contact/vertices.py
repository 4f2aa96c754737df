"""Common base of the models of vertex forces: contact flags, and the conversion to wrenches, CoP and modes.

A vertex model computes an impulse for each vertex of each foot. The contact mode of a foot follows from the set of its
vertices in contact.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.contact.base import CANDIDATES, CompiledModel, ContactResult
from bipedsim.contact.write_result import count_step, for_kernels, to_sole, write_mode, write_pressure
from bipedsim.dynamics import UNCHANGED, Projection
from bipedsim.ground import carry_vertices
from bipedsim.numerics import Array, Flags, Integers, add_wrench, kernel, zeros_of


class VertexContacts(NamedTuple):
    """Vertices of K feet, at most N each: state of a vertex model and input of :func:`write_vertices`.

    Attributes:
        h: Step [s].
        touching: (K, N) whether each vertex was in contact at the end of the last step; written by the model.
        sticking: (K, N) whether friction held the vertex; written by the model.
        heights: (K, N) heights of the vertices at the beginning of the step [m], by :func:`begin_vertices`.
        origin: (K, N) vertex of the last step's polygon that each vertex continues, -1 for a new position. It is i
            itself where the polygon did not change.
        impulses: (K, N, 3) impulses of the ground on the vertices over the step, ground axes [N.s]; written by the
            model.
        impacts: (K, N, 3) part of them that stopped velocities at once; written by the model, zero without impact.
        old: (N,) work array.
        result: Ground reaction; contains the last step until it is overwritten.
    """

    h: float
    touching: Annotated[Flags, "K", "N"]
    sticking: Annotated[Flags, "K", "N"]
    heights: Annotated[Array, "K", "N"]
    origin: Integers
    impulses: Annotated[Array, "K", "N", 3]
    impacts: Annotated[Array, "K", "N", 3]
    old: Annotated[Flags, "N"]
    result: ContactResult

    @classmethod
    def of_feet(cls, n_feet: int, widest: int, result: ContactResult, h: float) -> VertexContacts:
        """Return the arrays for ``n_feet`` feet with at most ``widest`` vertices each, which write to ``result``."""
        origin = np.tile(np.arange(widest), (n_feet, 1))
        return zeros_of(cls, {"K": n_feet, "N": widest}, h=h, origin=origin, result=for_kernels(result))


@kernel
def begin_vertices(p: Projection, s: VertexContacts):
    """Fill heights and origins, clear the impulses, and transfer the flags to polygons that changed."""
    s.impulses[:, :, :] = 0.0
    s.impacts[:, :, :] = 0.0
    for k in range(s.result.mode.shape[0]):
        n = p.n_vertices[k]
        for i in range(s.heights.shape[1]):
            s.origin[k, i] = i
        if p.changed[k] != UNCHANGED:
            carry_vertices(p.previous[k], p.n_previous[k], p.vertices[k], n, s.origin[k])
            carry_flags(s.touching[k], s.origin[k], n, s.old)
            carry_flags(s.sticking[k], s.origin[k], n, s.old)
        for i in range(n):
            s.heights[k, i] = p.position[k, 2] + p.offsets[k, i, 2] + p.lifted[k, i]


@kernel
def is_part(p: Projection) -> bool:
    """Return whether this solve is a sub-step of a step with a touchdown, or probably its first solve.

    The impulses of the previous solve are then a poor initial value.
    """
    if p.parted[0]:
        return True
    for k in range(p.n_vertices.shape[0]):
        for i in range(p.n_vertices[k]):
            if p.lifted[k, i] > 0.0:
                return True
    return False


@kernel
def carry_flags(flags, origin, n, old):
    """Transfer ``flags`` (N,) as :func:`carry_rows` transfers rows; new positions get False."""
    for i in range(flags.shape[0]):
        old[i] = flags[i]
    for i in range(flags.shape[0]):
        flags[i] = i < n and origin[i] >= 0 and old[origin[i]]


@kernel
def carry_rows(rows, origin, n, old):
    """Transfer ``rows`` (N, m), one row per vertex, to a polygon of ``n`` vertices; overwrite ``old`` (N, m).

    New positions get zeros. ``origin`` is that of :class:`VertexContacts`.
    """
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            old[i, a] = rows[i, a]
    for i in range(rows.shape[0]):
        j = origin[i] if i < n else -1
        for a in range(rows.shape[1]):
            rows[i, a] = old[j, a] if j >= 0 else 0.0


@kernel
def friction(p: Projection, s: VertexContacts, k: int, i: int) -> float:
    """Return the friction coefficient of a vertex: dynamic if it slid in the last update, else static."""
    return p.mu_dynamic[k] if s.touching[k, i] and not s.sticking[k, i] else p.mu_static[k]


@kernel
def normal_compliance(p: Projection, k: int, i: int) -> float:
    """Return the inverse effective mass [1/kg] of vertex ``i`` of foot ``k`` along the normal."""
    x = p.offsets[k, i, 0]
    y = p.offsets[k, i, 1]
    a = 6 * k + 2
    b = 6 * k + 3
    c = 6 * k + 4
    return _quadratic(p.G, a, b, c, y, -x)


@kernel
def tangential_compliance(p: Projection, k: int, i: int) -> float:
    """Return the sum of the inverse effective masses [1/kg] of vertex ``i`` of foot ``k`` along both tangents."""
    x = p.offsets[k, i, 0]
    y = p.offsets[k, i, 1]
    z = p.offsets[k, i, 2]
    o = 6 * k
    return _quadratic(p.G, o, o + 4, o + 5, z, -y) + _quadratic(p.G, o + 1, o + 3, o + 5, -z, x)


@kernel
def mean_mobility(p: Projection, k: int, i: int) -> float:
    """Return the mean inverse effective mass [1/kg] of vertex ``i`` of foot ``k`` over all directions."""
    return (normal_compliance(p, k, i) + tangential_compliance(p, k, i)) / 3.0


@kernel
def _quadratic(G, a, b, c, sb, sc):
    """Return e^T G e for e = 1 at a, sb at b, sc at c."""
    return G[a, a] + sb * sb * G[b, b] + sc * sc * G[c, c] + 2.0 * (sb * G[a, b] + sc * G[a, c] + sb * sc * G[b, c])


@kernel
def mode_of(touching, n) -> int:
    """Return the contact mode of the vertices in contact; a set that spans the sole, or a diagonal, is the face."""
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


@kernel
def write_vertices(p: Projection, s: VertexContacts, solves: int, unresolved: bool):
    """Convert vertex impulses to wrenches, CoP and modes, and count the changes of state.

    The CoP is the mean of the vertices weighted by their normal forces. A foot slides when no loaded vertex sticks.

    Args:
        p, s: See :class:`Projection` and :class:`VertexContacts`.
        solves: Number of problems solved in this step.
        unresolved: Whether the step ended without a solution.
    """
    r = s.result
    changes = 0
    for k in range(r.mode.shape[0]):
        n = p.n_vertices[k]
        r.impulse[k, :] = 0.0
        r.impact[k, :] = 0.0
        x = y = 0.0
        bits = 0
        sticks = False
        loaded = False
        for i in range(s.impulses.shape[1]):
            f = s.impulses[k, i]
            if i < r.vertex_forces.shape[1]:
                for a in range(3):
                    r.vertex_forces[k, i, a] = f[a] / s.h
            if i >= n:
                continue
            if s.touching[k, i] and i < 63:
                bits |= 1 << i
            add_wrench(r.impulse[k], f, p.offsets[k, i])
            add_wrench(r.impact[k], s.impacts[k, i], p.offsets[k, i])
            x += f[2] * p.vertices[k, i, 0]
            y += f[2] * p.vertices[k, i, 1]
            if f[2] > 0.0:
                loaded = True
                sticks = sticks or s.sticking[k, i]
        per_step = 1.0 / s.h
        for a in range(6):
            r.wrench[k, a] = r.impulse[k, a] * per_step
        to_sole(p.rotation[k], r.wrench[k], r.wrench[k])
        to_sole(p.rotation[k], r.impact[k], r.impact[k])
        changes += write_mode(k, p, r, mode_of(s.touching[k], n), loaded and not sticks, bits)
        write_pressure(k, p, r, x / r.impulse[k, 2], y / r.impulse[k, 2])
    r.counters[CANDIDATES] += solves
    count_step(r, changes, unresolved)


class VertexModel(CompiledModel):
    """Base class of the models of vertex forces: contact flags, and saving and restoring of the state.

    Args:
        projection: The projection that every solve gets, refilled.
        params: Parameters, an instance of the model's own ``Params``.
        physics_dt: Step h [s].

    Attributes:
        params: Parameters of the model.
        contacts: Arrays of the vertices.
    """

    def __init__(self, projection: Projection, params: Any, physics_dt: float) -> None:
        feet, widest = projection.vertices.shape[:2]
        super().__init__(projection, ContactResult.empty(feet, widest))
        self.params = params
        self.contacts = VertexContacts.of_feet(feet, widest, self.result, physics_dt)
        self.arrays = self._arrays_of(feet, widest)

    def _arrays_of(self, n_feet: int, widest: int) -> Any:
        """Return the arrays of the jitted function for ``n_feet`` feet with at most ``widest`` vertices each."""
        raise NotImplementedError

    def resume(self) -> None:
        """Continue from ``result``: its clamped vertices are in contact, and stick unless the foot slides."""
        super().resume()
        c, r = self.contacts, self.result
        c.touching[:] = (r.clamped[:, None] >> np.minimum(np.arange(c.touching.shape[1]), 63)) & 1
        c.sticking[:] = c.touching & ~r.sliding[:, None]

    def _memory(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that the next step depends on, by name. A model with more state adds its own arrays."""
        return {"touching": self.contacts.touching, "sticking": self.contacts.sticking}
