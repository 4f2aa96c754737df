"""What every contact model takes and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bipedsim.dynamics import CompiledContact, Projection
from bipedsim.numerics import Array, Box, Flags, Integers, box, entry, kept, zeros_of

STATE_CHANGES, UNRESOLVED, CANDIDATES, STEPS = range(4)
"""What :attr:`ContactResult.counters` count, each since reset; see its properties."""


@dataclass(slots=True, eq=False)
class ContactResult:
    """What the ground did to the feet over one step; arrays are reused from step to step.

    Attributes:
        impulse: (K, 6) impulse of the ground on each foot at the sole origin, ground axes: linear [N.s], angular
            [N.m.s].
        wrench: (K, 6) the same over the step, in the sole frame: force [N], torque [N.m]. An impact counts as force
            over the step.
        impact: (K, 6) the part of the impulse, in the sole frame [N.s, N.m.s], that stopped velocities at once because
            a vertex touched down in this step or the last one, else zero: wrench - impact / h is the finite force.
        cop: (K, 2) centre of pressure in the sole frame [m], NaN without normal force.
        cop_margin: (K,) distance of the CoP to the nearest edge of the sole [m], positive inside, NaN without normal
            force.
        friction_used: (K,) |f_t| / (mu f_z), NaN without normal force.
        n_vertices: (K,) vertices of the polygon that modes and bits refer to: the sole, or the part of it that is above
            the ground.
        mode: (K,) contact mode (contact/modes.py).
        clamped: (K,) the same as bits, bit i for vertex i (the first 63).
        sliding: (K,) whether friction is dynamic.
        vertex_forces: (K, N, 3) mean force of the ground on each vertex, ground axes [N]; N = 0 for models that find
            one wrench per foot and no share of the vertices.
        counters: (4,) by ``STATE_CHANGES``, ``UNRESOLVED``, ``CANDIDATES``, ``STEPS``.
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
        """Changes of mode or of friction state since reset, over all feet."""
        return int(self.counters[STATE_CHANGES])

    @property
    def unresolved(self) -> int:
        """Steps since reset that ended without a violation-free state."""
        return int(self.counters[UNRESOLVED])

    @property
    def candidates(self) -> int:
        """Sets of modes that were solved for since reset, one or more a step."""
        return int(self.counters[CANDIDATES])

    @property
    def steps(self) -> int:
        """Physics steps since reset."""
        return int(self.counters[STEPS])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name, to be read or overwritten."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def take(self, other: Mapping[str, NDArray[Any]]) -> None:
        """Overwrite all arrays with those of ``other``, as :meth:`arrays` names them."""
        for name, array in self.arrays().items():
            array[...] = other[name]

    def clear(self) -> None:
        """Become the result of a robot in the air that has not made a step."""
        self.take(ContactResult.empty(len(self.mode), self.vertex_forces.shape[1]).arrays())

    @classmethod
    def empty(cls, n_feet: int, n_vertices: int = 0) -> ContactResult:
        """Return the result of a robot in the air, with room for the forces of ``n_vertices`` a foot."""
        unknown = np.full(n_feet, np.nan)
        cop, margin, used = np.full((n_feet, 2), np.nan), unknown, unknown.copy()
        return zeros_of(cls, {"K": n_feet, "N": n_vertices}, cop=cop, cop_margin=margin, friction_used=used)


@dataclass(frozen=True)
class Promises:
    """What the theory of a contact model promises of every step; :mod:`bipedsim.sim.monitors` says where it is broken.

    Attributes:
        lift: Beyond taking a penetration back, contact gives no more energy than lifts the robot by this [m].
        springs: Whether contacts hold energy, which they may give back until the feet are in the air.
        gap: A foot that pushes ends the step no higher above the ground [m].
        depth: No vertex is deeper in the ground [m].
    """

    lift: float = 1e-6
    springs: bool = False
    gap: float = 1e-6
    depth: float = 1e-3


class ContactModel(Protocol):
    """A contact model: from the projection of one step to impulses.

    A class may declare its :class:`Promises` as the class attribute ``promises``; else it is held to the default ones.
    The table entry is a class whose constructor takes ``(projection: Projection, params: Params, physics_dt: float)``,
    with the dataclass of its parameters as the class attribute ``Params``. The projection is the one that every
    :meth:`solve` gets, refilled.

    Attributes:
        result: What the ground did over the last step.
        late: None for models that look for the velocity after the step, which then moves the robot. Models whose forces
            act within the step keep here (K, 6) their impulse weighted by the share of the step that was left when it
            acted, as ``ContactResult.impulse`` [N.s, N.m.s]: what the displacement needs.
    """

    result: ContactResult
    late: Array | None

    def reset(self) -> None:
        """Forget contacts, anchors and counters."""
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


class _Solve(NamedTuple):
    projection: Projection
    contact: CompiledContact


@entry
def _solve(step: Any) -> None:
    a = step.arrays
    a.contact.solve(a.projection, a.contact.arrays)


class CompiledModel:
    """Base of contact models whose solve is a kernel: it is compiled into the step of the dynamics by itself.

    A model is a class with ``Params`` and ``kernel``, and a constructor that makes the arrays.

    Args:
        projection: The projection that every solve gets, refilled.
        result: What the kernel fills.

    Attributes:
        promises: What the theory promises.
        kernel: ``kernel(projection, arrays)``, a function of a module, by :func:`bipedsim.numerics.kernel`.
        arrays: What the kernel works on, the arrays of ``result`` among them: a named tuple of arrays, numbers and such
            tuples, made by the constructor.
        result: What the ground did over the last step.
        late: As in :class:`ContactModel`.
    """

    kernel: ClassVar[Any]
    promises: ClassVar[Promises] = Promises()
    arrays: Any
    late: Array | None = None

    def __init__(self, projection: Projection, result: ContactResult) -> None:
        self.result = result
        self._projection = projection
        self._impulse = result.impulse

    def _act_within(self, impulse: Array, late: Array) -> None:
        """Say that forces act within the step: what moves the robot are ``impulse`` and ``late``, (K, 6) each."""
        self._impulse, self.late = impulse, late

    def _memory(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that the next step depends on beside the result, by name: always the same arrays."""
        raise NotImplementedError

    @cached_property
    def compiled(self) -> CompiledContact:
        """For whoever compiles the solve into a step."""
        late = self._impulse if self.late is None else self.late
        memory = kept([*self._memory().values(), *self.result.arrays().values()])
        return CompiledContact(type(self).kernel, self.arrays, self._impulse, late, memory)

    @cached_property
    def _boxed(self) -> Box:
        return box(_Solve(self._projection, self.compiled))

    def reset(self) -> None:
        """Forget contacts, anchors and counters: every foot is in the air until it touches."""
        for array in self._memory().values():
            array[...] = 0
        self.result.clear()

    def solve(self, projection: Projection) -> ContactResult:
        """Return the contact impulses of one step; the result is overwritten by the next call."""
        if projection is not self._projection:
            for mine, given in zip(self._projection, projection, strict=True):
                np.copyto(mine, given)
        _solve(self._boxed)
        return self.result

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next step depends on, and of the last result."""
        return {name: array.copy() for name, array in (self._memory() | self.result.arrays()).items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned; models with the same memory understand each other's."""
        for name, array in self._memory().items():
            array[...] = state[name]
        self.result.take(state)
