"""Protocol of a physics step: its parts, attempts and outcomes, and the interface of a contact model."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any, NamedTuple, Protocol

from bipedsim.dynamics.projection import Projection
from bipedsim.numerics import Array, Integers, Kept


class Part(IntEnum):
    """Name the part of a step that one solve covers.

    Attributes:
        WHOLE: The whole step; impacts within it, and flight, are detected.
        WITHIN: The whole step with contact forces that act within it; flight is detected, impacts are not.
        UNSPLIT: The whole step; neither impacts nor flight are detected.
        CLOSED: The whole step; flight is detected, impacts are not.
        IMPACT: The impact alone, which changes the velocity at once. The driver applies the change.
        REST: The rest of the step after an impact. The driver applies the change.
    """

    WHOLE = 0
    WITHIN = 1
    UNSPLIT = 2
    CLOSED = 3
    IMPACT = 4
    REST = 5


class Attempt(IntEnum):
    """Name an attempt to solve a part of a step.

    Attributes:
        FIRST: With the joint limits that are active at the start.
        OTHER_LIMITS: With another set of active joint limits.
        ALL_LIMITS: No set of active limits is consistent: the active limits stay active, even if one pulls.
        CONTACT: Only the contact model is called, for the first time.
        CONTACT_AGAIN: Only the contact model is called, from its state before CONTACT.
        PROJECT: The equations of motion and the projection are filled, and nothing is solved.
        COUPLED: Only the result is checked and applied; joint limits and all contacts were solved together.
        GIVEN: The caller gives the impulses.
    """

    FIRST = 0
    OTHER_LIMITS = 1
    ALL_LIMITS = 2
    CONTACT = 3
    CONTACT_AGAIN = 4
    PROJECT = 5
    COUPLED = 6
    GIVEN = 7


class Outcome(IntEnum):
    """Name the outcome of a step, or of an attempt at a part of one. The velocity changes only if it is TAKEN.

    Attributes:
        TAKEN: The step was taken.
        BAD_TORQUE: The joint torques are not finite.
        DIVERGED: A velocity would not be finite or would reach ``SPEED_LIMIT``; ``Progress.fastest`` has the largest.
        IMPACT: A vertex touches down, or a joint reaches its limit, within the step; ``Landing`` stores the time.
        FLIGHT: No foot is in contact; :meth:`Dynamics.fly` takes the step.
        BODY_CONTACT: A body would penetrate the ground or another body, or a sole a riser of a height field.
        OTHER_LIMITS: The active joint limits differ from the assumed ones.
        FIRST_LIMITS: The same, in the first attempt near a limit.
        NO_ANSWER: The parts of a step with an impact have no consistent solution.
    """

    TAKEN = 0
    BAD_TORQUE = 1
    DIVERGED = 2
    IMPACT = 3
    FLIGHT = 4
    BODY_CONTACT = 5
    OTHER_LIMITS = 6
    FIRST_LIMITS = 7
    NO_ANSWER = 8


class MemoryUse(IntEnum):
    """Name the operation that the caller must apply to the state of the contact model.

    Attributes:
        NOTHING: Leave the state as it is.
        STORE: Store the state.
        RESTORE: Restore the stored state.
    """

    NOTHING = 0
    STORE = 1
    RESTORE = 2


class Progress(NamedTuple):
    """Store the results that an attempt returns to its caller.

    Attributes:
        fastest: (1,) largest entry of the velocity after it.
        memory: (1,) a :class:`MemoryUse`, to apply before the contact model is called and after the attempt.
        end: (nq,) configuration at the end of the step, filled when the step is taken.
    """

    fastest: Annotated[Array, 1]
    memory: Annotated[Integers, 1]
    end: Annotated[Array, "q"]


class Contact(Protocol):
    """Describe a contact model, as a step uses it.

    A model with a compiled solve also has an attribute ``compiled``, a :class:`CompiledContact`. Its solve and the
    dynamics are then one call from Python, which is 1.3 times as fast.

    Attributes:
        late: None, or (K, 6) for forces that act within the step: their impulse weighted by the share of the step that
            remained when it acted.
    """

    @property
    def late(self) -> Array | None: ...

    def solve(self, projection: Any) -> Any:
        """Return an object with an attribute ``impulse``, (K, 6) on the feet at the sole origins, ground axes [N.s]."""
        ...

    def state(self) -> dict[str, Any]:
        """Return a copy of everything that the next step depends on; called if a step may have to be repeated."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state` returned."""
        ...


class Coupling(Protocol):
    """Describe the contacts other than those of the feet, as a step uses them; :class:`bipedsim.touch.Touching`."""

    def find(self, q: Array, v: Array) -> None:
        """Find the contacts of a step from (q, v), joint limits included."""
        ...

    def add_stops(self, q: Array) -> None:
        """Add the joint limits that the solved step exceeds, before it is solved again."""
        ...

    def solve(self, ask: Callable[[], Array]) -> Array:
        """Solve all contacts together with the contact model and return the foot impulses, (K, 6) [N.s].

        ``ask()`` calls the contact model. At the end, ``tree.z`` must include the other impulses on the robot.
        """
        ...


class CompiledContact(NamedTuple):
    """Describe a contact model to compiled code.

    Attributes:
        solve: Kernel ``solve(projection, arrays)``, a function of a module; it fills ``impulse`` and ``late``.
        projection: Its first argument; a step replaces it by its own.
        arrays: Its arrays, a named tuple.
        impulse, late: (K, 6) as in :class:`Contact`; ``late`` is used only if the model has one.
        memory: Everything that the next step depends on, and the last result; stored if a step may be repeated.
    """

    solve: Any
    projection: Projection
    arrays: Any
    impulse: Array
    late: Array
    memory: Kept
