"""Compute the velocity command from keys and sliders. This module does not need ROS."""

from __future__ import annotations

from dataclasses import dataclass

from bipedsim.config import param
from bipedsim.runs import PlanarVelocity

HELP = (
    "w/s: faster, slower   a/d: turn left, right   q/e: step left, right   space: stop   x: end   "
    "1, 2, 3: start, A, select of a vendor's remote control   4, 5, 6: its gantry lowers, releases, lifts"
)
_STEPS = {"w": (1, 0, 0), "s": (-1, 0, 0), "q": (0, 1, 0), "e": (0, -1, 0), "a": (0, 0, 1), "d": (0, 0, -1)}
_ARROWS = {"\x1b[A": "w", "\x1b[B": "s", "\x1b[D": "a", "\x1b[C": "d"}
_STOP, _END = " ", "x"
_BUTTONS = {"1": "start", "2": "A", "3": "select", "4": "gantry=lower", "5": "gantry=release", "6": "gantry=lift"}


@dataclass(frozen=True)
class TeleopParams:
    """Steps and limits of velocity commands from keys or sliders."""

    linear_step: float = param(0.05, "change of velocity with a key", unit="m/s", low=1e-3, high=1.0)
    angular_step: float = param(0.1, "change of the turning rate with a key", unit="rad/s", low=1e-3, high=3.0)
    max_linear: float = param(1.0, "largest velocity ahead, back and to the sides", unit="m/s", low=1e-3, high=10.0)
    max_angular: float = param(1.0, "largest turning rate", unit="rad/s", low=1e-3, high=10.0)


class Steering:
    """Velocity command from keys and sliders.

    Attributes:
        velocity: Forward and leftward velocity [m/s] and yaw rate [rad/s].
        ended: Whether a key has requested the end.
        buttons: Words for a remote control from keys, in order; the publisher must remove them from the list.
    """

    def __init__(self, params: TeleopParams) -> None:
        self._step = (params.linear_step, params.linear_step, params.angular_step)
        self._limit = (params.max_linear, params.max_linear, params.max_angular)
        self._counts = [0, 0, 0]
        self.ended = False
        self.buttons: list[str] = []

    @property
    def velocity(self) -> PlanarVelocity:
        """The velocity command, a multiple of the steps, so that the same number of steps back leads to rest."""
        vx, vy, wz = (count * step for count, step in zip(self._counts, self._step, strict=True))
        return vx, vy, wz

    def ask(self, velocity: PlanarVelocity) -> None:
        """Set the velocity command to the nearest step within the limits."""
        for i, value in enumerate(velocity):
            self._set_count(i, round(value / self._step[i]))

    def press(self, text: str) -> None:
        """Process the keys from a terminal, including arrow keys; unknown keys have no effect."""
        for arrow, key in _ARROWS.items():
            text = text.replace(arrow, key)
        for key in text.lower():
            if key == _STOP:
                self._counts = [0, 0, 0]
            elif key == _END:
                self.ended = True
            elif key in _BUTTONS:
                self.buttons.append(_BUTTONS[key])
            for i, change in enumerate(_STEPS.get(key, ())):
                self._set_count(i, self._counts[i] + change)

    def _set_count(self, i: int, count: int) -> None:
        largest = int(self._limit[i] / self._step[i] + 1e-9)
        self._counts[i] = max(-largest, min(count, largest))

    def text(self) -> str:
        """Return the velocity command as a text."""
        vx, vy, wz = self.velocity
        return f"ahead {vx:+.2f} m/s   left {vy:+.2f} m/s   turn {wz:+.2f} rad/s"
