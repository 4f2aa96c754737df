"""Progress bars that are readable both on a terminal and in a file or pipe."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm import tqdm

INTERVAL = 10.0
"""Minimum interval of the lines that replace a progress bar if stderr is not a terminal [s]."""


class ProgressBar(tqdm):
    """Show the progress of an iteration: a bar on a terminal; otherwise a line on stderr every 10 s.

    Args:
        iterable: Items to iterate over; None for a bar that the caller updates.
        options: Options of tqdm, such as ``total``, ``desc``, ``unit`` and ``disable``.
    """

    def __init__(self, iterable: Any = None, **options: Any) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + INTERVAL
        if not self._terminal:
            options["bar_format"] = "{desc}{n_fmt} of {total_fmt} {unit}s, {elapsed} elapsed, {remaining} left{postfix}"
            options["desc"] = f"{options['desc']}: " if options.get("desc") else None
        super().__init__(iterable, **{"file": sys.stderr, "leave": False, **options})

    def display(self, msg: str | None = None, pos: int | None = None) -> Any:
        """Draw the bar, or print a line if the last one is old enough."""
        if self._terminal:
            return super().display(msg, pos)
        if msg is None and time.monotonic() >= self._next:
            self._next = time.monotonic() + INTERVAL
            print(self, file=self.fp, flush=True)
        return True

    def close(self) -> None:
        """Remove the bar; lines remain."""
        if not self._terminal:
            self.sp = None  # tqdm then writes no control characters
        super().close()
