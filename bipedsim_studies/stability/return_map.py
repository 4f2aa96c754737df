"""Simulate one stride as a function, from section to section (hurmuzlu2001 eq. 49)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim_studies.stability.chart import SectionChart
from bipedsim_studies.stability.loop import ClosedLoop, LoopState
from bipedsim_studies.stability.maps import Return
from bipedsim_studies.stability.mirror import Mirror
from bipedsim_studies.stability.planes import translated
from bipedsim_studies.stability.section import Section, SectionCrossing

LONGEST = 4.0
"""Maximum duration of a stride, as a multiple of the first one."""


class _StridePart(NamedTuple):
    """Walk between two resets of the clock: its initial loop state, its state (q, v), and its complete ticks."""

    moment: LoopState
    at: tuple[Array, ...]
    ticks: int


class ReturnMap:
    """Return map of a closed loop in the simulator.

    A stride starts and ends exactly on the section, between two physics steps. The simulator's clock is reset at the
    start. The map is therefore a smooth function of the state and of the step h, and its error is a series in h.
    Without the reset, a touch-down could fall anywhere within a step, and the map would have jumps of order h.

    Args:
        loop: Robot, controller and ground.
        section: Section where strides start and end.
        q, v: Initial state of the first stride. By default, the robot's initial posture at rest.
        settle: Number of strides before the one whose end is the centre of the chart.
        mirrored: Map single steps instead of strides. The state is mirrored after a touch-down of the other foot. The
            controller may then remember nothing except which foot is in contact; see :meth:`memory`.
        first: Maximum time from the initial state to the section [s].

    Attributes:
        chart: Coordinates on the section. names: Their names. centre: (n,) coordinates at the end of the first
            strides.

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
            # Use the step after which the first foot is in contact. The other one is its mirror image.
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
        """Return the coordinates (n,) after one stride from ``xi`` (n,).

        Raises:
            NoReturnError: The trajectory does not return to the section.
        """
        crossing, _ = self._stride(self._moment, SectionCrossing(0.0, *self._start(xi)))
        return Return(self._coordinates(crossing), crossing.t)

    def follow(self, xi: Array, count: int) -> list[Return]:
        """Simulate ``count`` consecutive strides, with a controller that keeps its memory.

        Raises:
            NoReturnError: One of the strides does not return to the section.
        """
        moment, strides = self._moment, []
        crossing = SectionCrossing(0.0, *self._start(xi))
        for _ in range(count):
            crossing, moment = self._next(moment, crossing)
            strides.append(Return(self._coordinates(crossing), crossing.t))
        return strides

    def memory(self, xi: Array) -> float:
        """Return the effect of the controller's memory on the second stride from ``xi``, as the largest coordinate.

        The map assumes that the memory at the section equals that after the first strides. The effect is 0 for a
        controller that plans every stride from its measurements.
        """
        return float(np.abs(self.follow(xi, 2)[1].xi - self(self(xi).xi).xi).max())

    def state(self, xi: Array) -> tuple[Array, Array]:
        """Return the robot's state (q, v) at the coordinates (n,), at the position where the first strides ended."""
        return self._start(xi)

    def state_on(self, loop: ClosedLoop, section: Section, xi: Array) -> tuple[Array, Array]:
        """Return (q, v) at the coordinates ``xi`` for ``loop``: the same robot, at the origin of another slope."""
        q, v = self.chart.state(xi)
        return self._chart_of(loop, section, translated(loop.robot, q, -self.chart.place), v).state(xi)

    def _chart_of(self, loop: ClosedLoop, section: Section, q: Array, v: Array) -> SectionChart:
        value = None if section.exact else lambda q, v: section.value(q, v, self._lands)
        return SectionChart(loop.robot, loop.feet, q, v, self._carrying, value)

    def _start(self, xi: Array) -> tuple[Array, Array]:
        q, v = self.chart.state(xi)
        return translated(self._loop.robot, q, self._place - self.chart.place), v

    def _stride(self, moment: LoopState, crossing: SectionCrossing | None) -> tuple[SectionCrossing, _StridePart]:
        """Walk one stride from ``crossing``. Return its end, with its total duration, and its last part."""
        duration = 0.0
        while True:
            at = () if crossing is None else (crossing.q, crossing.v)
            self._loop.go(moment, *at)
            crossing, ticks = self._loop.stride(self._section, self._longest)
            duration += crossing.t
            part = _StridePart(moment, at, ticks)
            if self._section.ends(crossing):
                return crossing._replace(t=duration), part
            moment = self._before(part)

    def _next(self, moment: LoopState, crossing: SectionCrossing | None = None) -> tuple[SectionCrossing, LoopState]:
        """Walk one stride from ``crossing``. Return the next crossing, and the loop state at the last tick before."""
        crossing_ahead, part = self._stride(moment, crossing)
        return crossing_ahead, self._before(part)

    def _before(self, part: _StridePart) -> LoopState:
        """Return the loop state at the last tick of a part of a stride, by simulating the part again."""
        self._loop.go(part.moment, *part.at)
        self._loop.advance(part.ticks)
        return self._loop.moment()

    def _coordinates(self, crossing: SectionCrossing) -> Array:
        q, v = crossing.q, crossing.v
        if self._mirror is not None and crossing.carrying != self._carrying:
            q, v = self._mirror(q, v)
        q = translated(self._loop.robot, q, self.chart.place - self._where(q))
        return self.chart.coordinates(q, v)

    def _where(self, q: Array) -> Array:
        if not self._carrying:
            return np.zeros(3)
        return np.asarray(self._loop.feet.points(q, self._carrying).mean(axis=0))
