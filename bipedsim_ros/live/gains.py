"""Show sliders for the gains of the controller and of the drives, which can change while they run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bipedsim_ros.live.remote import LiveParameter, Remote

RENEWED = 2.0
"""Time between two looks whether the node has restarted or published changes [s]."""
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
        self._start: tuple[bytes, ...] = ()
        self._outdated = False

    def look(self) -> None:
        """Send the newest value of a moved slider, one change at a time.

        The parameters are requested once per start of the node, and their values after each change, because the node
        may be in the process of a real-time loop.
        """
        if self._wanted and not self._sent:
            self._sent = next(iter(self._wanted))
            self._remote.change(self._sent, self._sent, self._wanted.pop(self._sent), of=self._of)
        if time.monotonic() >= self._due and not self._sent:
            self._due = time.monotonic() + RENEWED
            self._renew()

    def _renew(self) -> None:
        start = self._remote.start_of(self._of)
        self._outdated |= self._remote.changed(self._of)
        if not start:
            self._start = ()
            self._take([])
        elif start != self._start:
            # Without an answer, the next look asks again.
            self._remote.read_live(lambda parameters: self._begin(start, parameters), self._of, self._groups)
        elif self._outdated and self._sliders:
            self._remote.read(self._of, list(self._sliders), self._show)

    def _begin(self, start: tuple[bytes, ...], parameters: list[LiveParameter]) -> None:
        self._start, self._outdated = start, False
        self._take(parameters)

    def answered(self, asked: str) -> None:
        """Continue after the answer to a change, and show the values of the node again."""
        if asked == self._sent:
            self._sent, self._due, self._outdated = "", 0.0, True

    def _take(self, parameters: list[LiveParameter]) -> None:
        """Show parameters. A node with other parameters gets other sliders. Without a node there are none."""
        parameters = [each for each in parameters if each.low < each.high]
        if [each.name for each in parameters] != list(self._sliders):
            self._build(parameters)
        self._show({each.name: each.value for each in parameters})

    def _show(self, values: Mapping[str, float]) -> None:
        """Show new values of the parameters."""
        self._outdated = False
        for name, value in values.items():
            slider = self._sliders.get(name)
            # The sliders may be those of another start of the node by now.
            if slider is not None and name not in self._wanted and name != self._sent and slider.value != value:
                slider.max = max(slider.max, value)
                slider.min = min(slider.min, value)
                slider.value = value

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
