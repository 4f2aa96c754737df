"""How long this process was compiling: no part of how fast what it compiled is."""

from __future__ import annotations

import time
from typing import Any

from numba.core.event import Listener, register


class _Stopwatch(Listener):  # type: ignore[misc]
    """Adds up what the compiler takes; functions that it compiles for others are within theirs."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._begun = 0.0

    def on_start(self, event: Any) -> None:
        """Start at the outermost function."""
        if not self._depth:
            self._begun = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Stop where it is done."""
        self._depth -= 1
        if not self._depth:
            self.seconds += time.perf_counter() - self._begun


_stopwatch = _Stopwatch()
register("numba:compile", _stopwatch)


def compile_seconds() -> float:
    """Return how long this process has compiled so far [s]."""
    return _stopwatch.seconds
