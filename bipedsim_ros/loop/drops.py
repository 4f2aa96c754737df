"""Messages that were dropped: counted by kind, and told at the first of each kind and every few seconds after it."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_S = 5.0


class Drops:
    """Counts of messages that were dropped.

    Args:
        tell: Called with a text; rclpy's own throttle goes by the line of the call, so that one kind would silence
            another.
        clock: Time [s] by which the rest of a kind is told now and then.

    Attributes:
        by_kind: How many, by what was wrong with them.
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._quiet_until: dict[str, float] = {}
        self.by_kind: dict[str, int] = {}

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.by_kind.values())

    def add(self, kind: str, text: str) -> None:
        """Count one message of a kind, and say ``text`` of it if it is the first or the others were long ago."""
        count = self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        now = self._clock()
        if now >= self._quiet_until.get(kind, now):
            self._quiet_until[kind] = now + _EVERY_S
            self._tell(text if count == 1 else f"{text} ({count} of this kind so far)")
