"""Count dropped messages by kind, and log the first of each kind and then one every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_S = 5.0


class Drops:
    """Counts dropped messages.

    Args:
        tell: Called with a text. rclpy's own throttle is per source line, so that one kind would suppress another.
        clock: Time [s] for the interval between two texts of a kind.

    Attributes:
        by_kind: Number of messages by kind of fault.
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._log = tell
        self._clock = clock
        self._quiet_until: dict[str, float] = {}
        self.by_kind: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Number of all dropped messages."""
        return sum(self.by_kind.values())

    def add(self, kind: str, text: str) -> None:
        """Count a message of a kind, and log ``text`` if it is the first or the last log of this kind is old."""
        count = self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        now = self._clock()
        if now >= self._quiet_until.get(kind, now):
            self._quiet_until[kind] = now + _EVERY_S
            self._log(text if count == 1 else f"{text} ({count} of this kind so far)")
