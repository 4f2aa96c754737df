"""Interface of the contact models: their result, their protocol and the base class of compiled models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bipedsim.dynamics import CompiledContact, Projection, solve_contact
from bipedsim.numerics import Array, Box, Flags, Integers, box, kept, zeros_of

STATE_CHANGES, UNRESOLVED, CANDIDATES, STEPS = range(4)
"""Indices of :attr:`ContactResult.counters`. Each counter restarts at reset; see the properties of the result."""


@dataclass(slots=True, eq=False)
class ContactResult:
    """Ground reaction on the feet over one step. The arrays are reused from step to step.

    Attributes:
        impulse: (K, 6) impulse of the ground on each foot at the sole origin, ground axes: linear [N.s], angular
            [N.m.s].
        wrench: (K, 6) mean wrench over the step, in the sole frame: force [N], torque [N.m]. It includes the impact
            divided by the step.
        impact: (K, 6) part of the impulse that stopped velocities at once, in the sole frame [N.s, N.m.s]. It is zero
            unless a vertex touched down in this step or the last one. The finite force is wrench - impact / h.
        cop: (K, 2) centre of pressure in the sole frame [m], NaN without normal force.
        cop_margin: (K,) distance of the CoP to the nearest edge of the sole [m], positive inside, NaN without normal
            force.
        friction_used: (K,) |f_t| / (mu f_z), NaN without normal force.
        n_vertices: (K,) number of vertices of the polygon that ``mode`` and ``clamped`` refer to: the sole, or the part
            of it that is above the ground.
        mode: (K,) contact mode (contact/modes.py).
        clamped: (K,) the clamped vertices as bits, bit i for vertex i (the first 63).
        sliding: (K,) whether friction is dynamic.
        vertex_forces: (K, N, 3) mean force of the ground on each vertex, ground axes [N]. N = 0 for models that compute
            one wrench per foot and no forces on vertices.
        counters: (4,) indexed by ``STATE_CHANGES``, ``UNRESOLVED``, ``CANDIDATES``, ``STEPS``.
    """

    impulse: Annotated[Array, "K", 6]
    wrench: Annotated[Array, "K", 6]
    impact: Annotated[Array, "K", 6]
    cop: Annotated[Array, "K", 2]
    cop_margin: Annotated[Array, "K"]
    friction_used: Annotated[Array, "K"]
    n_vertices: Annotated[Integers, "K"]
    mode: Annotated[Integers, "K"]
    clamped: Annotated[Integers, "K"]
    sliding: Annotated[Flags, "K"]
    vertex_forces: Annotated[Array, "K", "N", 3]
    counters: Annotated[Integers, 4]

    @property
    def state_changes(self) -> int:
        """Number of changes of mode or of friction state since reset, over all feet."""
        return int(self.counters[STATE_CHANGES])

    @property
    def unresolved(self) -> int:
        """Number of steps since reset that ended without a violation-free state."""
        return int(self.counters[UNRESOLVED])

    @property
    def candidates(self) -> int:
        """Number of problems solved since reset: for models that select modes, one per set of modes."""
        return int(self.counters[CANDIDATES])

    @property
    def steps(self) -> int:
        """Number of physics steps since reset."""
        return int(self.counters[STEPS])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name, to read or to overwrite."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def take(self, other: Mapping[str, NDArray[Any]]) -> None:
        """Overwrite all arrays with those of ``other``, which has the names of :meth:`arrays`."""
        for name, array in self.arrays().items():
            array[...] = other[name]

    def clear(self) -> None:
        """Reset to the result of a robot in the air that has not made a step."""
        self.take(ContactResult.empty(len(self.mode), self.vertex_forces.shape[1]).arrays())

    @classmethod
    def empty(cls, n_feet: int, n_vertices: int = 0) -> ContactResult:
        """Return the result of a robot in the air, with memory for the forces of ``n_vertices`` per foot."""
        unknown = np.full(n_feet, np.nan)
        cop, margin, used = np.full((n_feet, 2), np.nan), unknown, unknown.copy()
        return zeros_of(cls, {"K": n_feet, "N": n_vertices}, cop=cop, cop_margin=margin, friction_used=used)


@dataclass(frozen=True)
class Promises:
    """Bounds that the theory of a contact model guarantees in every step; :mod:`bipedsim.sim.monitors` checks them.

    Attributes:
        lift: Maximum energy that contact adds, as the height by which it would lift the robot [m]. The energy that
            corrects a penetration is not included.
        springs: Whether contacts store energy, which they may return until the feet are in the air.
        gap: Maximum height above the ground of a loaded foot at the end of a step [m].
        depth: Maximum depth of a vertex in the ground [m].
    """

    lift: float = 1e-6
    springs: bool = False
    gap: float = 1e-6
    depth: float = 1e-3


class ContactModel(Protocol):
    """Compute contact impulses from the projection of one step.

    A class may declare its :class:`Promises` as the class attribute ``promises``; otherwise the defaults apply.
    The table entry is a class whose constructor takes ``(projection: Projection, params: Params, physics_dt: float)``.
    The class attribute ``Params`` is the dataclass of its parameters. Every :meth:`solve` gets the same projection
    object with new values.

    Attributes:
        result: Ground reaction over the last step.
        rigid: Whether the model keeps the vertices out of the ground by impulses over a step, like point contacts. In
            steps with other contacts, its feet are then point contacts too (:mod:`bipedsim.touch`). Any other model is
            called in turn with the solver of the other contacts.
        late: (K, 6) contact impulse weighted by the fraction of the step that remained when it acted, as
            ``ContactResult.impulse`` [N.s, N.m.s]. The displacement of the step depends on it. Only models whose forces
            act within the step provide it. It is None for models that solve for the velocity after the step: that
            velocity then moves the robot.
    """

    result: ContactResult
    rigid: ClassVar[bool]
    late: Array | None

    def reset(self) -> None:
        """Clear contacts, anchors and counters."""
        ...

    def resume(self) -> None:
        """Continue from ``result`` after steps in which the feet were point contacts; only for a rigid model."""
        ...

    def solve(self, projection: Projection) -> ContactResult:
        """Return the contact impulses of one step; the result is overwritten by the next call."""
        ...

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next step depends on."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        ...


class CompiledModel:
    """Base class of contact models that are one jitted function, which the compiled step calls.

    A model is a class with ``Params`` and ``kernel``, and a constructor that makes the arrays.

    Args:
        projection: The projection that every solve gets, refilled.
        result: Result that the jitted function fills.

    Attributes:
        promises: Bounds that the theory guarantees.
        kernel: ``kernel(projection, arrays)``, a module-level function decorated by :func:`bipedsim.numerics.kernel`.
        rigid: As in :class:`ContactModel`.
        arrays: Argument of the jitted function: a named tuple of arrays, numbers and such tuples. It includes the
            arrays of ``result``. The constructor makes it.
        result: Ground reaction over the last step.
        late: As in :class:`ContactModel`.
    """

    kernel: ClassVar[Any]
    promises: ClassVar[Promises] = Promises()
    rigid: ClassVar[bool] = False
    arrays: Any
    late: Array | None = None

    def __init__(self, projection: Projection, result: ContactResult) -> None:
        self.result = result
        self._projection = projection
        self._impulse = result.impulse

    def _act_within(self, impulse: Array, late: Array) -> None:
        """Declare that forces act within the step: ``impulse`` and ``late``, (K, 6) each, then move the robot."""
        self._impulse, self.late = impulse, late

    def _memory(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that the next step depends on, except the result, by name: always the same objects."""
        raise NotImplementedError

    @cached_property
    def compiled(self) -> CompiledContact:
        """Kernel, arrays and memory with which the compiled step calls this solve."""
        late = self._impulse if self.late is None else self.late
        memory = kept([*self._memory().values(), *self.result.arrays().values()])
        return CompiledContact(type(self).kernel, self._projection, self.arrays, self._impulse, late, memory)

    @cached_property
    def _boxed(self) -> Box:
        return box(self.compiled)

    def reset(self) -> None:
        """Clear contacts, anchors and counters, so that every foot counts as in the air until it touches down."""
        for array in self._memory().values():
            array[...] = 0
        self.result.clear()

    def resume(self) -> None:
        """Continue from ``result`` after steps in which the feet were point contacts: nothing is anchored any more."""
        anchored = self._memory().get("anchored")
        if anchored is not None:
            anchored[...] = False

    def solve(self, projection: Projection) -> ContactResult:
        """Return the contact impulses of one step; the result is overwritten by the next call."""
        if projection is not self._projection:
            for target, source in zip(self._projection, projection, strict=True):
                np.copyto(target, source)
        solve_contact(self._boxed)
        return self.result

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next step depends on, and of the last result."""
        return {name: array.copy() for name, array in (self._memory() | self.result.arrays()).items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the output of :meth:`state`. Models with the same memory accept each other's state."""
        for name, array in self._memory().items():
            array[...] = state[name]
        self.result.take(state)
