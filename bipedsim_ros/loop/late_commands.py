"""Late commands as the likely cause of a fall."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

BEFORE_S = 2.0
"""Time before a fall within which late commands count [s]."""
SHARE, GAP_S = 0.05, 0.01
"""Share of ticks without a new command, and time without one [s], from which they are a likely cause."""


class Late(NamedTuple):
    """Late commands before a fall.

    Attributes:
        ticks: Number of ticks without a new command.
        period: Time before the fall in which they were counted [s].
        longest: Longest time without a new command [s].
    """

    ticks: int
    period: float
    longest: float

    def __str__(self) -> str:
        return (
            f"likely because of late commands: {self.ticks} in the {self.period:.2g} s before, at most "
            f"{1e3 * self.longest:.3g} ms without a new one"
        )


class LateCommands:
    """Remembers the ticks that began without a new command.

    Args:
        dt: Length of a tick [s].
    """

    def __init__(self, dt: float) -> None:
        self._dt = dt
        self._times: deque[float] = deque(maxlen=round(BEFORE_S / dt))

    def clear(self) -> None:
        """Forget all of them, as at a reset."""
        self._times.clear()

    def add(self, t: float) -> None:
        """Add the tick that ended at ``t`` [s]."""
        self._times.append(t)

    def before(self, fell_at: float) -> Late | None:
        """Return the late commands before a fall at ``fell_at`` [s]; None if they are too few to be its cause."""
        late = [t for t in self._times if fell_at - BEFORE_S < t <= fell_at]
        gap = longest = 0
        last = -1.0
        for t in late:
            gap = gap + 1 if t - last < 1.5 * self._dt else 1
            longest, last = max(longest, gap), t
        period = min(BEFORE_S, fell_at)
        if len(late) * self._dt < SHARE * period and longest * self._dt < GAP_S:
            return None
        return Late(len(late), period, longest * self._dt)

    def explain(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metrics of an outcome, and add the late commands before a fall to its line if they matter."""
        fell_at = outcome.get("fell_at_s")
        late = None if fell_at is None else self.before(fell_at)
        return dict(outcome) if late is None else {**outcome, "verdict": f"{outcome['verdict']}; {late}"}
