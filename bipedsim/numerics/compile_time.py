"""Compilation time of this process, so that measurements can exclude it."""

from __future__ import annotations

import time
from typing import Any

from numba.core.event import Listener, register


class _Stopwatch(Listener):  # type: ignore[misc]
    """Sum the compilation time; nested compilations count as part of the outermost one."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._begun = 0.0

    def on_start(self, event: Any) -> None:
        """Start the clock at the outermost function."""
        if not self._depth:
            self._begun = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Stop the clock when the outermost function is compiled."""
        self._depth -= 1
        if not self._depth:
            self.seconds += time.perf_counter() - self._begun


_stopwatch = _Stopwatch()
register("numba:compile", _stopwatch)


def compile_seconds() -> float:
    """Return the total compilation time of this process so far [s]."""
    return _stopwatch.seconds
