"""One stride as a function: from the section to the section (hurmuzlu2001 eq. 49)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim_studies.stability.chart import Chart
from bipedsim_studies.stability.loop import ClosedLoop, Moment
from bipedsim_studies.stability.maps import Return
from bipedsim_studies.stability.mirror import Mirror
from bipedsim_studies.stability.planes import moved
from bipedsim_studies.stability.section import Crossing, Section

LONGEST = 4.0
"""A stride may take this many times as long as the first one."""


class _Part(NamedTuple):
    """A walk between two places where the clock is set: where it begins, and how many whole ticks it takes."""

    moment: Moment
    at: tuple[Array, ...]
    ticks: int


class ReturnMap:
    """The map of a closed loop through the simulator.

    A stride begins at the section itself, with the clock of the simulator set anew, and ends at the section itself,
    between two steps: so the map is a smooth function of the state and of the step h, and differs from its limit by a
    series in h. On a clock that runs on, a touch-down falls anywhere within a step, and the map has teeth of height h.

    Args:
        loop: Robot, controller, ground.
        section: Where strides begin and end.
        q, v: Where the first stride begins; the posture of the robot, at rest, by default.
        settle: Strides to walk before the one whose end is the centre of the chart.
        mirrored: Take steps, left for right, instead of strides: after a touch-down of the other foot the state is
            mirrored. The controller then must remember nothing but which foot carries; see :meth:`memory`.
        first: Longest time to the section from the start [s].

    Attributes:
        chart: Coordinates on the section. names: Of these. centre: (n,) where the first strides ended.

    Raises:
        NoReturnError: The robot does not walk from (q, v).
    """

    def __init__(
        self,
        loop: ClosedLoop,
        section: Section,
        q: Array | None = None,
        v: Array | None = None,
        settle: int = 2,
        mirrored: bool = False,
        first: float = 10.0,
    ) -> None:
        self._loop, self._section = loop, section
        self._longest = first
        moment = loop.begin(q, v)
        crossing, moment = self._next(moment)
        for _ in range(settle):
            crossing, moment = self._next(moment, crossing)
        if mirrored and crossing.carrying != (0,):
            # Of two mirror images, the one that stands on the first foot.
            crossing, moment = self._next(moment, crossing)
            if crossing.carrying != (0,):
                raise ConfigError(f"{loop.robot.name} does not step from foot to foot: take whole strides of one foot")
        self._longest = LONGEST * crossing.t
        self._moment = loop.copy_controllers(moment, section, self._longest)
        self._carrying = crossing.carrying
        self._mirror = Mirror(loop.robot) if mirrored else None
        self._lands = crossing.foot
        self.chart = self._chart_of(loop, section, crossing.q, crossing.v)
        self.names, self.centre = self.chart.names, self.chart.centre
        self._place = self._where(crossing.q)

    def __call__(self, xi: Array) -> Return:
        """Return what becomes of the coordinates (n,) after one stride.

        Raises:
            NoReturnError: They do not come back.
        """
        crossing, _ = self._stride(self._moment, Crossing(0.0, *self._start(xi)))
        return Return(self._coordinates(crossing), crossing.t)

    def follow(self, xi: Array, count: int) -> list[Return]:
        """Return ``count`` strides one after the other, in which the controller forgets nothing.

        Raises:
            NoReturnError: One of them does not come back.
        """
        moment, found = self._moment, []
        crossing = Crossing(0.0, *self._start(xi))
        for _ in range(count):
            crossing, moment = self._next(moment, crossing)
            found.append(Return(self._coordinates(crossing), crossing.t))
        return found

    def memory(self, xi: Array) -> float:
        """Return how much of the second stride from ``xi`` the controller's memory changes: the largest coordinate.

        The map takes the memory at the section to be that of the first strides; of a controller that plans every
        stride from what it measures, this is 0.
        """
        return float(np.abs(self.follow(xi, 2)[1].xi - self(self(xi).xi).xi).max())

    def state(self, xi: Array) -> tuple[Array, Array]:
        """Return (q, v) of the robot at the coordinates (n,), where the first strides ended."""
        return self._start(xi)

    def state_on(self, loop: ClosedLoop, section: Section, xi: Array) -> tuple[Array, Array]:
        """Return (q, v) at the coordinates ``xi`` for another loop: the same robot at the origin of another slope."""
        q, v = self.chart.state(xi)
        return self._chart_of(loop, section, moved(loop.robot, q, -self.chart.place), v).state(xi)

    def _chart_of(self, loop: ClosedLoop, section: Section, q: Array, v: Array) -> Chart:
        value = None if section.exact else lambda q, v: section.value(q, v, self._lands)
        return Chart(loop.robot, loop.feet, q, v, self._carrying, value)

    def _start(self, xi: Array) -> tuple[Array, Array]:
        q, v = self.chart.state(xi)
        return moved(self._loop.robot, q, self._place - self.chart.place), v

    def _stride(self, moment: Moment, crossing: Crossing | None) -> tuple[Crossing, _Part]:
        """Walk one stride from ``crossing`` and return its end, with the time of it all, and its last part."""
        duration = 0.0
        while True:
            at = () if crossing is None else (crossing.q, crossing.v)
            self._loop.go(moment, *at)
            crossing, ticks = self._loop.stride(self._section, self._longest)
            duration += crossing.t
            part = _Part(moment, at, ticks)
            if self._section.ends(crossing):
                return crossing._replace(t=duration), part
            moment = self._before(part)

    def _next(self, moment: Moment, crossing: Crossing | None = None) -> tuple[Crossing, Moment]:
        """Walk one stride from ``crossing`` and return the next one, and the moment of the last tick before it."""
        found, part = self._stride(moment, crossing)
        return found, self._before(part)

    def _before(self, part: _Part) -> Moment:
        """Return the moment of the last tick of a part of a stride, by walking there again."""
        self._loop.go(part.moment, *part.at)
        self._loop.advance(part.ticks)
        return self._loop.moment()

    def _coordinates(self, crossing: Crossing) -> Array:
        q, v = crossing.q, crossing.v
        if self._mirror is not None and crossing.carrying != self._carrying:
            q, v = self._mirror(q, v)
        q = moved(self._loop.robot, q, self.chart.place - self._where(q))
        return self.chart.coordinates(q, v)

    def _where(self, q: Array) -> Array:
        if not self._carrying:
            return np.zeros(3)
        return np.asarray(self._loop.feet.points(q, self._carrying).mean(axis=0))
