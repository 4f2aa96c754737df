"""Draw the curves of the last seconds on a live page."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.plots import BEFORE, Plots, values_of

MOST = 400
"""Maximum number of stored instants, more than the plots can show."""


class Trail:
    """Stores the last instants and draws their curves.

    Args:
        gui: GUI of viser.
        robot: The robot.
    """

    def __init__(self, gui: Any, robot: Robot) -> None:
        self._robot = robot
        self._plots = Plots(gui, robot)
        self._history: deque[tuple[float, dict[str, Array]]] = deque(maxlen=MOST)

    def add(self, instant: Instant) -> None:
        """Add an instant; a repeated time is ignored, and a jump in time clears the history."""
        last = self._history[-1][0] if self._history else -np.inf
        if instant.t < last or instant.t > last + BEFORE:
            self._history.clear()
        elif instant.t == last:
            return
        self._history.append((instant.t, values_of(self._robot, instant)))

    def show(self) -> None:
        """Draw the curves."""
        if len(self._history) < 2:
            return
        t = np.array([time for time, _ in self._history])
        names = self._history[-1][1]
        curves = {name: np.array([values[name] for _, values in self._history]) for name in names}
        self._plots.show(t, curves, t[-1])

    def remove(self) -> None:
        """Remove the curves from the page."""
        self._plots.remove()
