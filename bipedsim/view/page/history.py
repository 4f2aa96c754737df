"""Store the last minutes of a live page, draw their curves, and show an earlier instant on request."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np

from bipedsim.view.page.frames import RATE
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.page import Page
from bipedsim.view.page.plots import Plots
from bipedsim.view.page.signals import SignalTable, usual_plots

KEPT = 180.0
"""Simulated time that can be rewound [s]."""


class History:
    """Shows the instants of a running robot on a page, or an earlier one while the user has moved the slider back.

    The robot continues meanwhile. A jump back in time, such as a reset, clears the history.

    Args:
        page: The page.
        most: Maximum number of stored instants.
    """

    def __init__(self, page: Page, most: int = round(KEPT * RATE)) -> None:
        self._page = page
        self._lock = threading.RLock()
        self._instants: deque[Instant] = deque(maxlen=most)
        self._table = SignalTable(page.robot, most)
        self._shown: Instant | None = None
        gui = page.gui
        with gui.add_folder("Rewind", order=15.0) as self._folder:
            self._slider = gui.add_slider(
                "time [s]", 0.0, 1.0, 1e-3, 0.0, disabled=True, hint="an earlier instant; the robot continues meanwhile"
            )
            self._live = gui.add_button("Back to live", disabled=True)
        self._slider.on_update(self._seek)
        self._live.on_click(lambda _: self.go(None))
        self._plots = Plots(gui, self._table, usual_plots(page.robot))
        page.plots = self._plots

    @property
    def live(self) -> bool:
        """Whether the page shows the newest instant."""
        return self._shown is None

    def add(self, instant: Instant) -> None:
        """Add an instant, and show it unless the user looks at an earlier one."""
        with self._lock:
            last = self._instants[-1].t if self._instants else -np.inf
            if instant.t < last:
                self._instants.clear()
                self._table.clear()
                self.go(None)
            state = self._page.show(instant) if self.live else self._page.scene.derive(instant)
            if instant.t != last:
                self._instants.append(instant)
                self._table.add(instant, state)

    def show(self) -> None:
        """Draw the curves, and adapt the slider to the stored instants."""
        with self._lock:
            if len(self._instants) < 2:
                return
            first, last = self._instants[0].t, self._instants[-1].t
            now = last if self._shown is None else self._shown.t
            with self._page.server.atomic():
                self._plots.show(now)
                # The interval must contain the value at all times.
                self._slider.max = max(round(last, 3), self._slider.min + 1e-3)
                self._slider.min = round(first, 3)
                self._slider.value = round(now, 3)
                self._slider.disabled = False

    def go(self, t: float | None) -> None:
        """Show the stored instant nearest to ``t`` [s]; None returns to the newest."""
        with self._lock:
            self._live.disabled = t is None
            self._shown = None if t is None else min(self._instants, key=lambda instant: abs(instant.t - t))
            if self._shown is not None:
                self._page.show(self._shown)
                self.show()
            elif self._instants:
                self._page.show(self._instants[-1])

    def remove(self) -> None:
        """Remove slider and curves from the page."""
        self._folder.remove()
        self._plots.remove()
        self._page.plots = None

    def _seek(self, event: Any) -> None:
        # The page moves the slider too; only a user's move has a client.
        if event.client is not None and self._instants:
            self.go(float(event.target.value))
