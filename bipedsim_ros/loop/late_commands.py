"""Late commands as the likely cause of a fall in real time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

BEFORE_S = 2.0
"""Time before a fall within which late commands count [s]."""
SHARE, GAP_S = 0.05, 0.01
"""Share of ticks without a new command, and time without one [s], from which they are a likely cause."""


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

    def explain(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metrics of an outcome, and add the late commands before a fall to its line if they matter."""
        fell_at = outcome.get("fell_at_s")
        if fell_at is None:
            return dict(outcome)
        late = [t for t in self._times if fell_at - BEFORE_S < t <= fell_at]
        gap = longest = 0
        before = -1.0
        for t in late:
            gap = gap + 1 if t - before < 1.5 * self._dt else 1
            longest, before = max(longest, gap), t
        if len(late) * self._dt < SHARE * min(BEFORE_S, fell_at) and longest * self._dt < GAP_S:
            return dict(outcome)
        why = (
            f"likely because of late commands: {len(late)} in the {min(BEFORE_S, fell_at):.2g} s before, at most "
            f"{1e3 * longest * self._dt:.3g} ms without a new one"
        )
        return {**outcome, "verdict": f"{outcome['verdict']}; {why}"}
