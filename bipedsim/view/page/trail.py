"""The curves of a page that shows what happens now: the last seconds of it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.view.page.instant import Instant
from bipedsim.view.page.plots import BEFORE, Plots, values_of

MOST = 400
"""Instants that are kept: more than there are in what is seen."""


class Trail:
    """Keeps what was shown last, and draws it.

    Args:
        gui: Of viser.
        robot: Whose curves they are.
    """

    def __init__(self, gui: Any, robot: Robot) -> None:
        self._robot = robot
        self._plots = Plots(gui, robot)
        self._kept: deque[tuple[float, dict[str, Array]]] = deque(maxlen=MOST)

    def add(self, instant: Instant) -> None:
        """Take in an instant; one before the last begins anew, and the same time again adds nothing."""
        last = self._kept[-1][0] if self._kept else -np.inf
        if instant.t < last or instant.t > last + BEFORE:
            self._kept.clear()
        elif instant.t == last:
            return
        self._kept.append((instant.t, values_of(self._robot, instant)))

    def show(self) -> None:
        """Draw it."""
        if len(self._kept) < 2:
            return
        t = np.array([time for time, _ in self._kept])
        names = self._kept[-1][1]
        self._plots.show(t, {name: np.array([values[name] for _, values in self._kept]) for name in names}, t[-1])

    def remove(self) -> None:
        """Take the curves off the page."""
        self._plots.remove()
