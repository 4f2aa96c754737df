"""Scheduled velocity commands in place of a joystick, for headless runs and commander_node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bipedsim.config import from_mapping, param
from bipedsim.errors import ConfigError

PERIOD_NS = 100_000_000
"""Time between two commands of a schedule [ns]."""
PlanarVelocity = tuple[float, float, float]
"""Forward velocity, velocity to the left [m/s], and yaw rate [rad/s], in the heading frame of the robot."""


@dataclass(frozen=True)
class Velocity:
    """Describe a velocity that applies from a given time on: an entry of ``velocity`` in a scenario file."""

    at: float = param(0.0, "when it begins", unit="s", low=0.0, high=1e9)
    vx: float = param(0.0, "velocity ahead", unit="m/s", low=-10.0, high=10.0)
    vy: float = param(0.0, "velocity to the left", unit="m/s", low=-10.0, high=10.0)
    wz: float = param(0.0, "turning rate to the left", unit="rad/s", low=-10.0, high=10.0)

    def text(self) -> str:
        """Return the velocity as a text for :func:`parse_velocities`, without loss of precision."""
        return " ".join(repr(float(value)) for value in (self.at, self.vx, self.vy, self.wz))


def parse_velocities(texts: Sequence[str]) -> tuple[Velocity, ...]:
    """Read velocities from ``'at vx vy wz'`` in s, m/s, m/s and rad/s.

    Raises:
        ConfigError: A text has another form, or a value is out of range.
    """
    result = []
    for text in texts:
        form = "must be 'at vx vy wz' in s, m/s, m/s and rad/s"
        try:
            at, vx, vy, wz = map(float, text.split())
        except ValueError as error:
            raise ConfigError(form, "schedule", text) from error
        try:
            result.append(from_mapping(Velocity, {"at": at, "vx": vx, "vy": vy, "wz": wz}, "it says"))
        except ConfigError as error:
            raise ConfigError(f"{form}; {error}", "schedule", text) from error
    return tuple(result)


class VelocitySchedule:
    """Sample a piecewise constant velocity every 0.1 s; a change between two samples appears in the second.

    Args:
        steps: Velocities in any order. Before the first one, and without any, the velocity is zero.
    """

    def __init__(self, steps: Iterable[Velocity]) -> None:
        self._steps = sorted(steps, key=lambda step: step.at)
        self.restart()

    def restart(self) -> None:
        """Restart at t = 0."""
        self._last = -1

    def velocity(self, t: float) -> PlanarVelocity:
        """Return the velocity at ``t`` [s]."""
        current: PlanarVelocity = (0.0, 0.0, 0.0)
        for step in self._steps:
            if step.at > t + 1e-9:
                break
            current = (step.vx, step.vy, step.wz)
        return current

    def due(self, t_ns: int) -> PlanarVelocity | None:
        """Return the command that is due at ``t_ns`` [ns]: one at the start and one per period, otherwise None."""
        period = t_ns // PERIOD_NS
        if period == self._last:
            return None
        self._last = period
        return self.velocity(1e-9 * PERIOD_NS * period)
