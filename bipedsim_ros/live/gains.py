"""Show sliders for the parameters of the controller that can change while it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from bipedsim_ros.live.remote import CONTROLLER, LiveParameter, Remote

RENEWED = 2.0
"""Time between two requests of the values [s]. Other programs can change them, too."""
WIDEST = 4.0
"""End of a slider, as a multiple of the first value."""
STEPS = 200
"""Minimum number of steps of a slider."""


def slider_range(parameter: LiveParameter) -> tuple[float, float, float]:
    """Return first and last value and step of a slider. The step is a power of ten.

    Without a lower limit, a positive value stays so: most gains have no limit and must be positive.
    """
    reach = WIDEST * max(abs(parameter.value), 0.25)
    first = max(parameter.low, 0.0 if math.isinf(parameter.low) and parameter.value > 0.0 else -reach)
    last = min(parameter.high, max(reach, first + reach))
    return first, last, 10.0 ** math.floor(math.log10((last - first) / STEPS))


class Gains:
    """Show sliders in a folder of the page. A controller without live parameters has no folder.

    Args:
        gui: The page's controls.
        remote: Sends requests to the nodes.
        queue: Executes a function in the thread that calls :meth:`look`.
        order: Position of the folder.
    """

    def __init__(self, gui: Any, remote: Remote, queue: Callable[[Callable[[], None]], None], order: float) -> None:
        self._gui, self._remote, self._queue, self._order = gui, remote, queue, order
        self._folder: Any = None
        self._sliders: dict[str, Any] = {}
        self._wanted: dict[str, float] = {}
        self._sent = ""
        self._due = 0.0

    def look(self) -> None:
        """Send the newest value of a moved slider, one change at a time. Request all values every ``RENEWED`` s."""
        if self._wanted and not self._sent:
            self._sent = next(iter(self._wanted))
            self._remote.change(self._sent, self._sent, self._wanted.pop(self._sent), of=CONTROLLER)
        if time.monotonic() >= self._due and not self._sent:
            self._due = time.monotonic() + RENEWED
            if not self._remote.read_live(self._take):
                self._take([])

    def answered(self, asked: str) -> None:
        """Continue after the answer to a change, and show the values of the node again."""
        if asked == self._sent:
            self._sent, self._due = "", 0.0

    def _take(self, parameters: list[LiveParameter]) -> None:
        """Show the values. Another controller gets other sliders. Without a controller there are none."""
        parameters = [each for each in parameters if each.low < each.high]
        if [each.name for each in parameters] != list(self._sliders):
            self._build(parameters)
        for each in parameters:
            slider = self._sliders[each.name]
            if each.name not in self._wanted and each.name != self._sent and slider.value != each.value:
                slider.max = max(slider.max, each.value)
                slider.min = min(slider.min, each.value)
                slider.value = each.value

    def _build(self, parameters: list[LiveParameter]) -> None:
        if self._folder is not None:
            self._folder.remove()
        self._folder, self._sliders = None, {}
        if not parameters:
            return
        self._folder = self._gui.add_folder("Gains", order=self._order, expand_by_default=False)
        with self._folder:
            for each in parameters:
                label, (first, last, step) = each.name.partition(".")[2] or each.name, slider_range(each)
                slider = self._gui.add_slider(label, first, last, step, each.value, hint=each.doc)
                slider.on_update(lambda event, name=each.name: self._slid(event, name))
                self._sliders[each.name] = slider

    def _slid(self, event: Any, name: str) -> None:
        """Queue the value of a slider, unless :meth:`_take` has set it."""
        if event.client_id is not None:
            value = float(event.target.value)
            self._queue(lambda: self._wanted.update({name: value}))
