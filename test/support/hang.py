"""A test that hangs prints its stack, unless kernels are being compiled."""

from __future__ import annotations

import faulthandler
from typing import Any

from numba.core.event import Listener, register


class Patience(Listener):  # type: ignore[misc]
    """Counts pytest's ``faulthandler_timeout`` from the last kernel on that the compiler began or finished.

    With an empty cache a test compiles up to 400 kernels, for minutes on a busy machine. One kernel takes seconds.

    Args:
        seconds: The time after which a test without a sign of life prints its stack.
        file: Where pytest has it printed.
    """

    def __init__(self, seconds: float, file: int) -> None:
        self._seconds, self._file = seconds, file
        self.running = False
        register("numba:compile", self)

    def on_start(self, event: Any) -> None:
        """Begin anew; between tests nothing is waited for."""
        if self.running:
            faulthandler.dump_traceback_later(self._seconds, file=self._file)

    def on_end(self, event: Any) -> None:
        """Begin anew."""
        self.on_start(event)
