"""Velocity commands on a schedule, as a hand on a joystick would give them: in headless runs and in commander_node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bipedsim.errors import ConfigError

PERIOD_NS = 100_000_000
"""Time between two commands of a schedule [ns]."""
Velocity = tuple[float, float, float]
"""Ahead and to the left [m/s], and the turning rate [rad/s], in the heading frame of the robot."""


@dataclass(frozen=True)
class VelocityStep:
    """A velocity that holds from a time on.

    Attributes:
        at: When it begins [s].
        vx, vy: Ahead and to the left [m/s].
        wz: Turning rate, to the left [rad/s].
    """

    at: float
    vx: float = 0.0
    vy: float = 0.0
    wz: float = 0.0

    def text(self) -> str:
        """Return what :func:`parse_velocities` reads, to the bit."""
        return " ".join(repr(float(value)) for value in (self.at, self.vx, self.vy, self.wz))


def parse_velocities(texts: Sequence[str]) -> tuple[VelocityStep, ...]:
    """Read steps from ``'at vx vy wz'`` in s, m/s, m/s and rad/s.

    Raises:
        ConfigError: A text has another form.
    """
    result = []
    for text in texts:
        try:
            at, vx, vy, wz = (float(word) for word in text.split())
        except ValueError:
            at = vx = vy = wz = float("nan")
        if not (np.isfinite([at, vx, vy, wz]).all() and at >= 0.0):
            raise ConfigError(
                f"schedule: {text!r} must be 'at vx vy wz' in s, m/s, m/s and rad/s, the time not negative"
            )
        result.append(VelocityStep(at, vx, vy, wz))
    return tuple(result)


class VelocitySchedule:
    """A schedule in steps, of which a command is taken every 0.1 s: what begins between two is in the second.

    Args:
        steps: In any order; before the first one, and without any, the velocity is zero.
    """

    def __init__(self, steps: Iterable[VelocityStep]) -> None:
        self._steps = sorted(steps, key=lambda step: step.at)
        self.restart()

    def restart(self) -> None:
        """Begin again at t = 0."""
        self._last = -1

    def velocity(self, t: float) -> Velocity:
        """Return what holds at ``t`` [s]."""
        current: Velocity = (0.0, 0.0, 0.0)
        for step in self._steps:
            if step.at > t + 1e-9:
                break
            current = (step.vx, step.vy, step.wz)
        return current

    def due(self, t_ns: int) -> Velocity | None:
        """Return the command that is due at ``t_ns`` [ns], at the start and whenever a period is over, else None."""
        period = t_ns // PERIOD_NS
        if period == self._last:
            return None
        self._last = period
        return self.velocity(1e-9 * PERIOD_NS * period)
