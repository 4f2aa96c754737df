"""When a stride ends: sections by an event, and the state at the event itself, between two steps of the simulator."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin
from scipy.optimize import brentq

from bipedsim.contact import ContactResult
from bipedsim.errors import UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim_studies.stability.maps import NoReturnError
from bipedsim_studies.stability.planes import FeetOnPlane

POINTS = 4
"""States before an event, through which a cubic goes to the event: its error is of the fourth order of the step."""
REACH = 4.0
"""A touch-down lies at most this many steps after the last state in the air."""
AFTER = 0.1
"""Time after an event in which no other one is looked for [s]: that is how long an impact may take at most."""


class Crossing(NamedTuple):
    """Where a trajectory meets a section, on the near side: before an impact.

    Attributes:
        t: Since the start of the stride [s].
        q, v: (nq,), (nv,) the state.
        foot: Index of the foot that lands; -1 for another event.
        carrying: Indices of the feet that carry there.
    """

    t: float
    q: Array
    v: Array
    foot: int = -1
    carrying: tuple[int, ...] = ()


class Section(Protocol):
    """What :class:`Watch` asks of a section.

    Attributes:
        after: Time from the start in which nothing is looked for [s].
        exact: Whether the event is on a step of the simulator, and not between two.
    """

    after: float
    exact: bool

    def event(self, t: float, before: tuple[Array, Array], after: tuple[Array, Array], landed: int) -> int | None:
        """Return None, or for a step in which the event happened the foot that makes it (-1: none).

        Args:
            t: After the step, since the start of the stride [s].
            before, after: States (q, v) before and after the step.
            landed: The foot that began to carry in the step; -1 for none.
        """
        ...

    def ends(self, crossing: Crossing) -> bool:
        """Return whether a stride ends there; if not, the simulator's clock is set anew, and the stride goes on."""
        ...

    def value(self, q: Array, v: Array, foot: int) -> float:
        """Return what is zero on the section."""
        ...


class TouchDown:
    """A foot begins to carry (hurmuzlu2001 eq. 46): the section is where it reaches the ground, before the impact.

    Args:
        feet: The robot's feet above the ground.
        robot: The robot.
        foot: Its name; None for any.
        after: See :class:`Section`.

    Raises:
        UnknownNameError: The robot has no such foot.
    """

    exact = False

    def __init__(self, robot: Robot, feet: FeetOnPlane, foot: str | None = None, after: float = AFTER) -> None:
        names = [sole.name for sole in robot.soles]
        if foot is not None and foot not in names:
            raise UnknownNameError("foot", foot, names)
        self.after = after
        self._foot = None if foot is None else names.index(foot)
        self._feet = feet

    def event(self, t: float, before: tuple[Array, Array], after: tuple[Array, Array], landed: int) -> int | None:
        """See :class:`Section`."""
        return landed if landed >= 0 else None

    def ends(self, crossing: Crossing) -> bool:
        """Return whether it is the right foot; touch-downs of others are places to set the clock, too."""
        return self._foot in (None, crossing.foot)

    def value(self, q: Array, v: Array, foot: int) -> float:
        """Return how high the foot is [m]."""
        return self._feet.height(q, foot)


class Passing:
    """A function of the state passes zero; between steps, without an impact there.

    Args:
        function: Of q (nq,) and v (nv,).
        rising: From below; else from above.
        after: See :class:`Section`.
    """

    exact = False

    def __init__(self, function: Callable[[Array, Array], float], rising: bool = True, after: float = AFTER) -> None:
        self.after = after
        self._function = function
        self._sign = 1.0 if rising else -1.0

    def event(self, t: float, before: tuple[Array, Array], after: tuple[Array, Array], landed: int) -> int | None:
        """See :class:`Section`."""
        was, now = (self._sign * self._function(*state) for state in (before, after))
        return -1 if was < 0.0 <= now else None

    def ends(self, crossing: Crossing) -> bool:
        """Return True."""
        return True

    def value(self, q: Array, v: Array, foot: int) -> float:
        """Return the function."""
        return self._function(q, v)


class Clock:
    """A phase of a controller that walks by the clock: the section is a time, and the map is stroboscopic.

    Args:
        period: From section to section [s], a whole number of control ticks.
    """

    exact = True

    def __init__(self, period: float) -> None:
        self.after = self._period = period

    def event(self, t: float, before: tuple[Array, Array], after: tuple[Array, Array], landed: int) -> int | None:
        """See :class:`Section`."""
        return -1 if t > self._period * (1.0 - 1e-9) else None

    def ends(self, crossing: Crossing) -> bool:
        """Return True."""
        return True

    def value(self, q: Array, v: Array, foot: int) -> float:
        """Return 0: all states are on the section."""
        return 0.0


class Watch:
    """Looks for a section at every physics step of a simulator; hang it on ``on_physics_step``.

    Args:
        sim: The simulator.
        section: What to look for.

    Attributes:
        found: The crossing; None as long as there is none.
    """

    def __init__(self, sim: Simulator, section: Section) -> None:
        self._sim, self._section = sim, section
        self._states: deque[tuple[Array, Array]] = deque(maxlen=POINTS)
        self.begin()

    def begin(self) -> None:
        """Start a stride from the state of the simulator."""
        self.found: Crossing | None = None
        self._t0 = self._sim.t
        self._states.clear()
        self._states.append((self._sim.q, self._sim.v.copy()))
        self._carries = [True] * len(self._sim.robot.soles)

    def __call__(self, contact: ContactResult, _push: Array) -> None:
        """Take in a step."""
        if self.found is not None:
            return
        sim, section = self._sim, self._section
        carries = [load > 0.0 for load in contact.impulse[:, 2].tolist()]
        t, state = sim.t - self._t0, (sim.q, sim.v.copy())
        if t > section.after - 1e-9:
            lands = [now and not was for now, was in zip(carries, self._carries, strict=True)]
            foot = section.event(t, self._states[-1], state, lands.index(True) if True in lands else -1)
            if foot is not None:
                # After a step that lands nothing, who carries now is as good as who did.
                holds = carries if foot < 0 else self._carries
                carrying = tuple(k for k, hold in enumerate(holds) if hold)
                self.found = self._located(t, state, foot)._replace(carrying=carrying)
                return
        if carries != self._carries:
            # A polynomial through an impact means nothing.
            self._states.clear()
        self._carries = carries
        self._states.append(state)

    def _located(self, t: float, state: tuple[Array, Array], foot: int) -> Crossing:
        """Return the crossing in or just after the step that ends at ``t``."""
        section, h, model = self._section, self._sim.physics_dt, self._sim.robot.model
        if section.exact:
            return Crossing(t, state[0].copy(), state[1], foot)
        states = list(self._states)
        last, before = t - h, states[-1][0]
        if foot < 0:
            states, last = [*states[-POINTS + 1 :], state], t
        times = np.arange(1 - len(states), 1) * h + (last - (t - h))
        rows = np.array([np.concatenate([pin.difference(model, before, q), v]) for q, v in states])
        curve = np.polynomial.polynomial.polyfit(times / h, rows, len(states) - 1)

        def at(share: float) -> tuple[Array, Array]:
            row = np.asarray(np.polynomial.polynomial.polyval(share, curve))
            return pin.integrate(model, before, row[: model.nv]), row[model.nv :]

        def value(share: float) -> float:
            return section.value(*at(share), foot)

        end = 1.0 if foot < 0 else REACH
        if value(0.0) * value(end) > 0.0:
            raise NoReturnError(
                f"{self._sim.robot.name}: the contact model caught foot {self._sim.robot.soles[foot].name} "
                f"{value(0.0):.2g} m above the ground, {value(end):.2g} m where the foot would be {end:g} steps later; "
                "take a smaller physics_dt, or a section that is no touch-down"
            )
        share = brentq(value, 0.0, end, xtol=1e-14)
        return Crossing(t - h + share * h, *at(share), foot)
