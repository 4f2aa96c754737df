"""Define the events that end a stride, and compute the state at an event between two physics steps."""

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
"""Number of states before an event for the cubic extrapolation. Its error is of the fourth order of the step."""
REACH = 4.0
"""Maximum time of a touch-down after the last airborne state, in steps."""
AFTER = 0.1
"""Time after an event in which no other event is detected [s]. An impact must be shorter."""


class SectionCrossing(NamedTuple):
    """Crossing of a section by a trajectory, on the side before the impact.

    Attributes:
        t: Time since the start of the stride [s].
        q, v: (nq,), (nv,) the state.
        foot: Index of the foot that touches down; -1 for another event.
        carrying: Indices of the feet in contact.
    """

    t: float
    q: Array
    v: Array
    foot: int = -1
    carrying: tuple[int, ...] = ()


class Section(Protocol):
    """Interface of a section, as used by :class:`SectionMonitor`.

    Attributes:
        after: Time from the start of a stride in which no event is detected [s].
        exact: Whether the event coincides with a physics step instead of being between two.
    """

    after: float
    exact: bool

    def event(self, t: float, before: tuple[Array, Array], after: tuple[Array, Array], landed: int) -> int | None:
        """Return None, or the foot of the event if it happened in this step (-1 if no foot is involved).

        Args:
            t: Time after the step, since the start of the stride [s].
            before, after: States (q, v) before and after the step.
            landed: Index of the foot that came into contact in the step; -1 for none.
        """
        ...

    def ends(self, crossing: SectionCrossing) -> bool:
        """Return whether the crossing ends the stride. If not, the clock is reset and the stride continues."""
        ...

    def value(self, q: Array, v: Array, foot: int) -> float:
        """Return the value of the section's function, which is zero on the section."""
        ...


class TouchDown:
    """Touch-down of a foot (hurmuzlu2001 eq. 46), at the instant of contact before the impact.

    Args:
        robot: The robot.
        feet: Position of its feet relative to the ground.
        foot: Name of the foot; None for any foot.
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

    def ends(self, crossing: SectionCrossing) -> bool:
        """Return whether the given foot touched down. Touch-downs of the other feet only reset the clock."""
        return self._foot in (None, crossing.foot)

    def value(self, q: Array, v: Array, foot: int) -> float:
        """Return the height of the foot above the ground [m]."""
        return self._feet.height(q, foot)


class Passing:
    """Zero crossing of a function of the state, between two steps and without an impact.

    Args:
        function: Function of q (nq,) and v (nv,).
        rising: Whether the function crosses zero from below instead of from above.
        after: See :class:`Section`.
    """

    exact = False

    def __init__(self, function: Callable[[Array, Array], float], rising: bool = True, after: float = AFTER) -> None:
        self.after = after
        self._function = function
        self._sign = 1.0 if rising else -1.0

    def event(self, t: float, before: tuple[Array, Array], after: tuple[Array, Array], landed: int) -> int | None:
        """See :class:`Section`."""
        previous, current = (self._sign * self._function(*state) for state in (before, after))
        return -1 if previous < 0.0 <= current else None

    def ends(self, crossing: SectionCrossing) -> bool:
        """Return True."""
        return True

    def value(self, q: Array, v: Array, foot: int) -> float:
        """Return the value of the function."""
        return self._function(q, v)


class Clock:
    """Phase of a clocked controller. The section is a time, and the map is stroboscopic.

    Args:
        period: Time from section to section [s], a whole number of control ticks.
    """

    exact = True

    def __init__(self, period: float) -> None:
        self.after = self._period = period

    def event(self, t: float, before: tuple[Array, Array], after: tuple[Array, Array], landed: int) -> int | None:
        """See :class:`Section`."""
        return -1 if t > self._period * (1.0 - 1e-9) else None

    def ends(self, crossing: SectionCrossing) -> bool:
        """Return True."""
        return True

    def value(self, q: Array, v: Array, foot: int) -> float:
        """Return 0, since every state is on the section."""
        return 0.0


class SectionMonitor:
    """Check for a section crossing at every physics step. Assign it to ``on_physics_step`` of the simulator.

    Args:
        sim: The simulator.
        section: The section.

    Attributes:
        crossing: The crossing; None until it occurs.
    """

    def __init__(self, sim: Simulator, section: Section) -> None:
        self._sim, self._section = sim, section
        self._states: deque[tuple[Array, Array]] = deque(maxlen=POINTS)
        self.begin()

    def begin(self) -> None:
        """Start a stride at the current state of the simulator."""
        self.crossing: SectionCrossing | None = None
        self._t0 = self._sim.t
        self._states.clear()
        self._states.append((self._sim.q, self._sim.v.copy()))
        self._loaded = [True] * len(self._sim.robot.soles)

    def __call__(self, contact: ContactResult, _push: Array) -> None:
        """Process one physics step."""
        if self.crossing is not None:
            return
        sim, section = self._sim, self._section
        loaded = [load > 0.0 for load in contact.impulse[:, 2].tolist()]
        t, state = sim.t - self._t0, (sim.q, sim.v.copy())
        if t > section.after - 1e-9:
            touchdowns = [now and not was for now, was in zip(loaded, self._loaded, strict=True)]
            foot = section.event(t, self._states[-1], state, touchdowns.index(True) if True in touchdowns else -1)
            if foot is not None:
                # Without a touch-down, the feet in contact after the step are the same as before it.
                loads = loaded if foot < 0 else self._loaded
                carrying = tuple(k for k, in_contact in enumerate(loads) if in_contact)
                self.crossing = self._located(t, state, foot)._replace(carrying=carrying)
                return
        if loaded != self._loaded:
            # Velocities jump at an impact, so a polynomial must not span it.
            self._states.clear()
        self._loaded = loaded
        self._states.append(state)

    def _located(self, t: float, state: tuple[Array, Array], foot: int) -> SectionCrossing:
        """Return the crossing in or just after the step that ends at time ``t``."""
        section, h, model = self._section, self._sim.physics_dt, self._sim.robot.model
        if section.exact:
            return SectionCrossing(t, state[0].copy(), state[1], foot)
        states = list(self._states)
        last, before = t - h, states[-1][0]
        if foot < 0:
            states, last = [*states[-POINTS + 1 :], state], t
        times = np.arange(1 - len(states), 1) * h + (last - (t - h))
        rows = np.array([np.concatenate([pin.difference(model, before, q), v]) for q, v in states])
        curve = np.polynomial.polynomial.polyfit(times / h, rows, len(states) - 1)

        def at(share: float) -> tuple[Array, Array]:
            offset = np.asarray(np.polynomial.polynomial.polyval(share, curve))
            return pin.integrate(model, before, offset[: model.nv]), offset[model.nv :]

        def value(share: float) -> float:
            return section.value(*at(share), foot)

        end = 1.0 if foot < 0 else REACH
        if value(0.0) * value(end) > 0.0:
            raise NoReturnError(
                f"the contact model caught it {value(0.0):.2g} m above the ground, {value(end):.2g} m where it would "
                f"be {end:g} steps later; take a smaller physics_dt, or a section that is no touch-down",
                f"{self._sim.robot.name}: foot {self._sim.robot.soles[foot].name}",
            )
        share = brentq(value, 0.0, end, xtol=1e-14)
        return SectionCrossing(t - h + share * h, *at(share), foot)
