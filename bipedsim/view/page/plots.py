"""Plot signals over time next to the 3D view; the past in full colour, the future pale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from bipedsim.numerics import Array
from bipedsim.view.page.signals import SignalTable
from bipedsim.view.palette import TOTAL_COLOUR, foot_colour

BEFORE, AFTER = 3.0, 1.0
"""Visible time before and after the present instant [s]."""
PALE = "55"
"""Opacity of the future, appended to a colour."""
OUTSIDE = 10.0
"""Distance below a plot at which unknown values are hidden, in heights of the plot."""
HEIGHT = 112
"""Height of a plot [px]."""
NEW, SAME, REMOVE = "new plot", "last plot", "remove last"
_FONT = "11px system-ui, sans-serif"
_BARE = {"font": _FONT, "labelFont": _FONT, "stroke": "#444444", "ticks": {"show": False}}
AXES = ({**_BARE, "label": "t [s]", "size": 22, "labelSize": 16, "labelGap": 0}, {**_BARE, "size": 46})
"""Time axis and value axis of a plot; uPlot's defaults take 50 px each and have no label."""


def colours(count: int) -> list[str]:
    """Return the colours of the curves of a plot; the first two are those of the left and the right foot."""
    return [foot_colour(k) for k in range(count)] if count > 1 else [TOTAL_COLOUR]


def plot_key(names: Sequence[str]) -> str:
    """Return the names of the curves of a plot with their colours, as HTML."""
    entries = (
        f'<span style="color:{colour};white-space:nowrap;margin-right:0.8em"><b aria-hidden="true">&#9644;</b> '
        f"{escape(name)}</span> "
        for name, colour in zip(names, colours(len(names)), strict=True)
    )
    return f'<div class="bipedsim-key">{"".join(entries)}</div>'


class _Plot:
    """One plot of a page: its key, and its curves."""

    def __init__(self, gui: Any, names: Sequence[str], table: SignalTable) -> None:
        self.names = list(names)
        numbers = [table.number(name) for name in self.names]
        self.columns = [c for c in numbers if c is not None]
        series: list[dict[str, Any]] = [{"label": "t [s]"}]
        for k, (column, colour) in enumerate(zip(self.columns, colours(len(self.columns)), strict=True)):
            # The first curve is wider, because the second would hide it in a symmetric motion.
            width = 3.0 if k == 0 and len(self.columns) > 1 else 1.5
            for stroke in (colour, colour + PALE):
                # uPlot connects the values on both sides of a NaN, so values with gaps are dots.
                dots = {"show": True, "size": width + 1.5, "width": 0, "fill": stroke, "stroke": stroke}
                line = {"width": width, "points": {"show": False}}
                gaps = table.signals[column].gaps
                series.append({"stroke": stroke, **({"width": 0, "points": dots} if gaps else line)})
        self._axis = table.axis(self.columns)
        self._key = gui.add_html(plot_key(self.names))
        self._uplot = gui.add_uplot(
            (np.array([0.0, 1.0]), *(np.full(2, np.nan) for _ in series[1:])),
            tuple(series),
            scales=self._scales(),
            axes=AXES,
            legend={"show": False},
            padding=(8, 8, 0, 0),
            height=HEIGHT,
        )

    def _scales(self) -> dict[str, Any]:
        return {"x": {"time": False}, "y": {"auto": False, "range": list(self._axis)}}

    @property
    def data(self) -> tuple[Array, ...]:
        """Times and curves that the page shows."""
        return tuple(self._uplot.data)

    def show(self, table: SignalTable, t: Any, first: int, now: float) -> None:
        """Draw the rows from ``first`` on, whose times are ``t``."""
        axis = table.axis(self.columns)
        if axis != self._axis:
            self._axis = axis
            self._uplot.scales = self._scales()
        rows = table.values(self.columns, first, first + len(t))
        low, high = axis
        # uPlot would connect a curve across unknown values. They are moved out of the plot, except at the start.
        lines = np.array([not table.signals[c].gaps for c in self.columns])
        known = np.isfinite(rows)
        missing = np.logical_or.accumulate(known) & ~known & lines
        rows = np.where(missing, low - OUTSIDE * (high - low), rows)
        past = (t <= now + 1e-9)[:, None]
        # Past and future share the present row.
        future = ~np.roll(past, -1, axis=0)
        future[-1] = True
        parts = np.stack([np.where(past, rows, np.nan), np.where(future, rows, np.nan)], axis=2)
        self._uplot.data = (t, *parts.reshape(len(rows), -1).T)

    def remove(self) -> None:
        self._key.remove()
        self._uplot.remove()


class Plots:
    """Plots of a page, which are drawn again for every instant, and the controls to add and remove plots.

    Args:
        gui: GUI of viser.
        table: Signals and their values.
        names: Signals of each plot at first; unknown signals are left out.
    """

    def __init__(self, gui: Any, table: SignalTable, names: Iterable[Sequence[str]]) -> None:
        self._gui, self._table = gui, table
        self._now = np.nan
        self._plots: list[_Plot] = []
        with gui.add_folder("Over time", order=70.0) as self._folder:
            self._signal = gui.add_dropdown("signal", self._options(), hint="type a part of the name")
            self._where = gui.add_button_group("plot it in", (NEW, SAME, REMOVE))
        self._where.on_click(lambda _: self._change(self._where.value))
        self.names = list(names)

    @property
    def drawn(self) -> list[tuple[Array, ...]]:
        """Times and curves of each plot, the past and the future of a signal after each other."""
        return [plot.data for plot in self._plots]

    @property
    def names(self) -> list[list[str]]:
        """Names of the signals of each plot."""
        return [plot.names for plot in self._plots]

    @names.setter
    def names(self, names: Iterable[Sequence[str]]) -> None:
        wanted = [[name for name in plot if self._table.number(name) is not None] for plot in names]
        while self._plots:
            self._plots.pop().remove()
        for plot in filter(None, wanted):
            self._add(plot)

    def _options(self) -> tuple[str, ...]:
        return tuple(sorted((signal.name for signal in self._table.signals), key=str.casefold))

    def _add(self, names: Sequence[str]) -> None:
        with self._folder:
            self._plots.append(_Plot(self._gui, names, self._table))

    def _change(self, where: str) -> None:
        name = self._signal.value
        last = self._plots[-1].names if self._plots else []
        if where != NEW and self._plots:
            self._plots.pop().remove()
        if where == NEW:
            self._add([name])
        elif where == SAME:
            self._add([*(one for one in last if one != name), name])
        self.show(self._now)

    def remove(self) -> None:
        """Remove the plots from the page."""
        self._folder.remove()

    def show(self, now: float) -> None:
        """Draw the curves shortly before and after ``now`` [s]."""
        self._now = now
        if len(self._signal.options) != len(self._table.signals):
            chosen = self._signal.value
            self._signal.options = self._options()
            self._signal.value = chosen
        t = self._table.t
        first, last = np.searchsorted(t, [now - BEFORE, now + AFTER])
        if last - first >= 2:
            for plot in self._plots:
                plot.show(self._table, t[first:last], int(first), now)
