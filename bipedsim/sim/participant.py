"""The protocol of everything that acts on, watches or records the physics steps of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array

if TYPE_CHECKING:
    # Controllers and schedules import this module; they do not need the physics.
    from bipedsim.contact import ContactModel, ContactResult
    from bipedsim.dynamics import Dynamics
    from bipedsim.model import Robot
    from bipedsim.sim.steps import Steps


class Simulation(Protocol):
    """Describe the part of a :class:`Simulator` that participants use."""

    robot: Robot
    physics_dt: float
    control_dt: float
    q: Array
    v: Array
    seed: int
    draw: int
    step_count: int
    dynamics: Dynamics
    solver: ContactModel
    stepper: Steps

    @property
    def t(self) -> float: ...

    @property
    def contact(self) -> ContactResult: ...

    @property
    def effort(self) -> Array: ...

    def closed_at(self, q: Array) -> Array: ...

    def refuse(self, reason: str) -> NoReturn: ...

    def push(self, wrench_world: Array, body: str | None = None, duration: float = ..., after: float = ...) -> None: ...


class Participant:
    """Take part in a simulation: override the methods that are needed, and pass an object to ``Simulator.add``.

    A simulator calls each method of its participants in the order of its list. Methods that are not overridden cost
    nothing.

    Attributes:
        name: Key of the participant's state in a snapshot; unique in a simulation.
        adds_force: Whether :meth:`before_step` adds to ``sim.dynamics.push``.
        changes_form: Whether sizes in :meth:`state` change during a run; :meth:`check_state` then has to check them.
    """

    name: ClassVar[str] = ""
    adds_force: ClassVar[bool] = False
    changes_form: ClassVar[bool] = False

    def check_start(self, sim: Simulation, q: Array, v: Array) -> None:
        """Check whether a run may start at the configuration ``q`` (nq,) with the velocity ``v`` (nv,).

        Raises:
            ConfigError: It may not; nothing has changed.
        """

    def reset(self, sim: Simulation) -> None:
        """Start a run: ``sim`` is at its first state, with the seed and the draw of the run."""

    def begin_tick(self, sim: Simulation) -> None:
        """Start a control tick, of one or several physics steps."""

    def before_step(self, sim: Simulation) -> None:
        """Prepare a physics step from ``sim.q`` and ``sim.v``."""

    def judge(self, sim: Simulation, q: Array, v: Array, share: float) -> None:
        """Examine a step, or a part of one, before the state of ``sim`` changes.

        Args:
            sim: The simulation, in the state in which the step begins.
            q: (nq,) configuration in which the part begins.
            v: (nv,) velocity at the end of the part.
            share: Share of the step for which forces other than impacts act in this part.
        """

    def after_step(self, sim: Simulation) -> None:
        """Process the physics step that ``sim`` has just taken.

        Raises:
            DivergenceError: The participant could not take the step; raise it by ``sim.refuse``.
        """

    def state(self) -> Any:
        """Return a copy of everything that the next step depends on; None if there is nothing."""
        return None

    def check_state(self, state: Any) -> None:
        """Check a state beyond its keys and sizes, before :meth:`set_state` gets it.

        Raises:
            ConfigError: The state belongs to another simulation; nothing has changed.
        """

    def set_state(self, state: Any, sim: Simulation) -> None:
        """Restore a state that :meth:`state` returned; ``sim`` already has the q and v of that moment."""

    def warm_up(self) -> None:
        """Load or compile the kernels that the first steps do not use."""


class Hooks(NamedTuple):
    """Store the methods that participants override, in the order of the list."""

    begin_tick: tuple[Callable[[Simulation], None], ...]
    before_step: tuple[Callable[[Simulation], None], ...]
    judge: tuple[Callable[[Simulation, Array, Array, float], None], ...]
    after_step: tuple[Callable[[Simulation], None], ...]

    @classmethod
    def of(cls, participants: Sequence[Participant]) -> Hooks:
        """Return the hooks of ``participants``."""

        def overridden(name: str) -> tuple[Any, ...]:
            own = getattr(Participant, name)
            return tuple(
                getattr(participant, name)
                for participant in participants
                if getattr(type(participant), name) is not own
            )

        return cls(*(overridden(name) for name in cls._fields))


class Participants(Mapping[str, Any]):
    """The participants of a simulation by name, in the order in which they act.

    Args:
        own: Participants that every such simulation has.
        added: Participants of the user, which act last.

    Attributes:
        hooks: The methods to call in each step.
    """

    def __init__(self, own: Sequence[Participant], added: Sequence[Participant] = ()) -> None:
        self._own, self._added = tuple(own), tuple(added)
        self._by_name = {participant.name: participant for participant in (*own, *added)}
        self.hooks = Hooks.of(tuple(self._by_name.values()))

    def __getitem__(self, name: str) -> Any:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def own_hooks(self) -> Hooks:
        """Hooks without the participants of the user."""
        return Hooks.of(self._own)

    def including(self, participant: Participant) -> Participants:
        """Return these participants and another one; see :meth:`Simulator.add`."""
        if not participant.name:
            raise ConfigError(f"participant {type(participant).__name__} has no name; give the class a `name`")
        if participant.name in self:
            raise ConfigError(f"the simulation has a participant {participant.name!r} already; use another name")
        return Participants(self._own, (*self._added, participant))

    def without(self, participant: Participant) -> Participants:
        """Return the other participants; see :meth:`Simulator.remove`."""
        if participant in self._own:
            raise ConfigError(f"participant {participant.name!r} belongs to the simulation and cannot be removed")
        return Participants(self._own, [other for other in self._added if other is not participant])

    def states(self) -> dict[str, Any]:
        """Return copies of all states that are not None, for a snapshot."""
        states = {name: participant.state() for name, participant in self.items()}
        return {name: state for name, state in states.items() if state is not None}
