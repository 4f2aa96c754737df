"""Draw curves over time next to the 3D view; the past in full colour, the future pale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.view.page.instant import Instant
from bipedsim.view.palette import LIMIT_COLOUR, TOTAL_COLOUR, foot_colour

BEFORE, AFTER = 3.0, 1.0
"""Visible time before and after the present instant [s]."""
PALE = "55"
"""Opacity of the future, appended to a colour."""
OUTSIDE = 10.0
"""Distance below a plot at which unknown values are hidden, in heights of the plot."""
HEIGHT = 124
"""Height of a plot [px]."""
_FONT = "11px system-ui, sans-serif"
_BARE = {"font": _FONT, "labelFont": _FONT, "ticks": {"show": False}}
AXES = ({**_BARE, "label": "t [s]", "size": 22, "labelSize": 16, "labelGap": 0}, {**_BARE, "size": 46})
"""Time axis and value axis of a plot; uPlot's defaults take 50 px each and have no label."""


@dataclass(frozen=True)
class Curves:
    """Definition of one plot.

    Attributes:
        title: Title with unit.
        colours: Colour of each curve.
        low, high: Limits of the value axis.
        gaps: Whether values may be missing, as the CoP in the air. The curve is then drawn as dots, one per instant,
            because uPlot connects the values on both sides of a NaN.
    """

    title: str
    colours: tuple[str, ...]
    low: float
    high: float
    gaps: bool = False


def curves_of(robot: Robot) -> dict[str, Curves]:
    """Return the plots for a robot by name."""
    feet = tuple(foot_colour(k) for k in range(len(robot.soles)))
    widest = max((float(np.ptp(sole.vertices, axis=0).min()) for sole in robot.soles), default=0.0)
    made = {
        "torque": Curves("largest torque, % of its limit", (LIMIT_COLOUR,), 0.0, 105.0),
        "height": Curves("height of the base [m]", (TOTAL_COLOUR,), 0.0, 1.5 * max(0.1, float(robot.q_nominal[2]))),
    }
    if not robot.free_flyer:
        del made["height"]
    feet_names = ", ".join(sole.name for sole in robot.soles)
    if feet:
        force = {"force": Curves(f"vertical force [N]: {feet_names}", feet, 0.0, 1.6 * robot.weight)}
        high = 1e3 * 0.6 * widest
        margin = {"margin": Curves(f"CoP to the edge [mm]: {feet_names}", feet, -5.0, max(high, 5.0), gaps=True)}
        made = {**force, **(margin if widest > 0.0 else {}), **made}
    return made


def values_of(robot: Robot, instant: Instant) -> dict[str, Array]:
    """Return the values of each plot (n,) at an instant; NaN for unknown values.

    Zero forces and torques at t = 0 count as unknown, because a simulator publishes its initial state before the first
    step.
    """
    unknown = np.full(len(robot.soles), np.nan)
    wrench, torque = instant.wrench, np.nan
    begins = instant.t == 0.0
    if begins and wrench is not None and not np.any(wrench):
        wrench = None
    efforts = instant.joint_effort
    if efforts is not None and np.isfinite(efforts).any() and not (begins and not np.any(efforts)):
        torque = 100.0 * float(np.nanmax(np.abs(efforts) / robot.effort_limit))
    return {
        "force": unknown if wrench is None else np.asarray(wrench)[:, 2],
        "margin": unknown if instant.cop_margin is None else 1e3 * np.asarray(instant.cop_margin),
        "torque": np.array([torque]),
        "height": instant.q[2:3] if robot.free_flyer else np.full(1, np.nan),
    }


class Plots:
    """Plots of a page, which are drawn again for every instant.

    Args:
        gui: GUI of viser.
        robot: The robot.
    """

    def __init__(self, gui: Any, robot: Robot) -> None:
        self._curves = curves_of(robot)
        self._plots = {}
        empty = np.array([0.0, 1.0])
        with gui.add_folder("Over time", order=70.0) as self._folder:
            for name, curves in self._curves.items():
                series: list[dict[str, Any]] = [{"label": "t [s]"}]
                for k, colour in enumerate(curves.colours):
                    # The first curve is wider, because the second would hide it in a symmetric motion.
                    width = 3.0 if k == 0 and len(curves.colours) > 1 else 1.5
                    for stroke in (colour, colour + PALE):
                        dots = {"show": True, "size": width + 1.5, "width": 0, "fill": stroke, "stroke": stroke}
                        line = {"width": width, "points": {"show": False}}
                        series.append({"stroke": stroke, **({"width": 0, "points": dots} if curves.gaps else line)})
                self._plots[name] = gui.add_uplot(
                    (empty, *(np.full(2, np.nan) for _ in series[1:])),
                    tuple(series),
                    title=curves.title,
                    scales={"x": {"time": False}, "y": {"auto": False, "range": [curves.low, curves.high]}},
                    axes=AXES,
                    legend={"show": False},
                    padding=(8, 8, 0, 0),
                    height=HEIGHT,
                )

    def remove(self) -> None:
        """Remove the plots from the page."""
        self._folder.remove()

    def show(self, t: Array, values: dict[str, Array], now: float) -> None:
        """Draw the curves shortly before and after ``now`` [s].

        Args:
            t: (F,) increasing times [s].
            values: Name of each plot to its curves (F, n), see :func:`values_of`.
            now: Time of the scene [s].
        """
        first, last = np.searchsorted(t, [now - BEFORE, now + AFTER])
        if last - first < 2:
            return
        times = t[first:last]
        past = (times <= now + 1e-9)[:, None]
        # Past and future share the present row.
        future = ~np.roll(past, -1, axis=0)
        future[-1] = True
        for name, plot in self._plots.items():
            curves, rows = self._curves[name], values[name][first:last]
            if not curves.gaps:
                # uPlot would connect a curve across unknown values. They are moved out of the plot, except at the
                # start.
                known = np.isfinite(rows)
                missing = np.logical_or.accumulate(known) & ~known
                rows = np.where(missing, curves.low - OUTSIDE * (curves.high - curves.low), rows)
            parts = np.stack([np.where(past, rows, np.nan), np.where(future, rows, np.nan)], axis=2)
            plot.data = (times, *parts.reshape(len(rows), -1).T)
