"""Show sliders for the gains of the controller and of the drives, which can change while they run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from bipedsim_ros.live.remote import LiveParameter, Remote

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
    """Show sliders in a folder of the page. A node without live parameters has no folder.

    Args:
        gui: The page's controls.
        remote: Sends requests to the nodes.
        queue: Executes a function in the thread that calls :meth:`look`.
        folder: Title and position of the folder.
        of: The node.
        groups: First parts of the names of the parameters, see :meth:`Remote.read_live`.
    """

    def __init__(
        self,
        gui: Any,
        remote: Remote,
        queue: Callable[[Callable[[], None]], None],
        folder: tuple[str, float],
        of: str,
        groups: Sequence[str] = (),
    ) -> None:
        self._gui, self._remote, self._queue, self._of, self._groups = gui, remote, queue, of, groups
        self._title, self._order = folder
        self._folder: Any = None
        self._sliders: dict[str, Any] = {}
        self._wanted: dict[str, float] = {}
        self._sent = ""
        self._due = 0.0

    def look(self) -> None:
        """Send the newest value of a moved slider, one change at a time. Request all values every ``RENEWED`` s."""
        if self._wanted and not self._sent:
            self._sent = next(iter(self._wanted))
            self._remote.change(self._sent, self._sent, self._wanted.pop(self._sent), of=self._of)
        if time.monotonic() >= self._due and not self._sent:
            self._due = time.monotonic() + RENEWED
            if not self._remote.read_live(self._take, self._of, self._groups):
                self._take([])

    def answered(self, asked: str) -> None:
        """Continue after the answer to a change, and show the values of the node again."""
        if asked == self._sent:
            self._sent, self._due = "", 0.0

    def _take(self, parameters: list[LiveParameter]) -> None:
        """Show the values. A node with other parameters gets other sliders. Without a node there are none."""
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
        self._folder = self._gui.add_folder(self._title, order=self._order, expand_by_default=False)
        with self._folder:
            for each in parameters:
                # All parameters of a controller begin with its name.
                label = each.name if self._groups else each.name.partition(".")[2] or each.name
                first, last, step = slider_range(each)
                slider = self._gui.add_slider(label, first, last, step, each.value, hint=each.doc)
                slider.on_update(lambda event, name=each.name: self._slid(event, name))
                self._sliders[each.name] = slider

    def _slid(self, event: Any, name: str) -> None:
        """Queue the value of a slider, unless :meth:`_take` has set it."""
        if event.client_id is not None:
            value = float(event.target.value)
            self._queue(lambda: self._wanted.update({name: value}))
