"""Curves beside the 3D view that follow time: what was is drawn in full, what comes is pale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.view.page.instant import Instant
from bipedsim.view.sheet import LIMIT_COLOUR, TOTAL_COLOUR, foot_colour

BEFORE, AFTER = 3.0, 1.0
"""What is seen before and behind the time that is shown [s]."""
PALE = "55"
"""Opacity of what comes, behind a colour."""
OUTSIDE = 10.0
"""How far below a plot that is, in heights of it."""
HEIGHT = 124
"""Of a plot [px]."""
_FONT = "11px system-ui, sans-serif"
_BARE = {"font": _FONT, "labelFont": _FONT, "ticks": {"show": False}}
AXES = ({**_BARE, "label": "t [s]", "size": 22, "labelSize": 16, "labelGap": 0}, {**_BARE, "size": 46})
"""Of a plot: that of time, and that of its values; uPlot leaves them 50 px each, and no name."""


@dataclass(frozen=True)
class Curves:
    """One plot.

    Attributes:
        title: With its unit.
        colours: Of each curve.
        low, high: Of its axis.
        gaps: Whether values lack now and then, as there is no CoP in the air: then it is drawn in dots, one for each
            instant, since uPlot joins what is on both sides of a NaN.
    """

    title: str
    colours: tuple[str, ...]
    low: float
    high: float
    gaps: bool = False


def curves_of(robot: Robot) -> dict[str, Curves]:
    """Return the plots of a robot by name."""
    feet = tuple(foot_colour(k) for k in range(len(robot.soles)))
    widest = max((float(np.ptp(sole.vertices, axis=0).min()) for sole in robot.soles), default=0.0)
    made = {
        "torque": Curves("largest torque, % of its limit", (LIMIT_COLOUR,), 0.0, 105.0),
        "height": Curves("height of the base [m]", (TOTAL_COLOUR,), 0.0, 1.5 * max(0.1, float(robot.q_nominal[2]))),
    }
    if not robot.free_flyer:
        del made["height"]
    named = ", ".join(sole.name for sole in robot.soles)
    if feet:
        force = {"force": Curves(f"vertical force [N]: {named}", feet, 0.0, 1.6 * robot.weight)}
        high = 1e3 * 0.6 * widest
        margin = {"margin": Curves(f"CoP to the edge [mm]: {named}", feet, -5.0, max(high, 5.0), gaps=True)}
        made = {**force, **(margin if widest > 0.0 else {}), **made}
    return made


def values_of(robot: Robot, instant: Instant) -> dict[str, Array]:
    """Return the value of each curve (n,) at an instant, NaN where it is not known.

    No force and no torque at t = 0 are none that were measured: a simulator says where it begins before its first step.
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
    """The plots of a page, which are drawn anew for every time.

    Args:
        gui: Of viser.
        robot: Whose they are.
    """

    def __init__(self, gui: Any, robot: Robot) -> None:
        self._curves = curves_of(robot)
        self._plots = {}
        empty = np.array([0.0, 1.0])
        with gui.add_folder("Over time", order=70.0) as self._folder:
            for name, curves in self._curves.items():
                series: list[dict[str, Any]] = [{"label": "t [s]"}]
                for k, colour in enumerate(curves.colours):
                    # In a symmetric motion the second curve would hide the first.
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
        """Take them off the page."""
        self._folder.remove()

    def show(self, t: Array, values: dict[str, Array], now: float) -> None:
        """Draw what was shortly before ``now`` [s], and what comes.

        Args:
            t: (F,) rising [s].
            values: Name of each plot to its curves (F, n), see :func:`values_of`.
            now: The time that the scene shows [s].
        """
        first, last = np.searchsorted(t, [now - BEFORE, now + AFTER])
        if last - first < 2:
            return
        times = t[first:last]
        past = (times <= now + 1e-9)[:, None]
        # The two parts share the row of now.
        future = ~np.roll(past, -1, axis=0)
        future[-1] = True
        for name, plot in self._plots.items():
            curves, rows = self._curves[name], values[name][first:last]
            if not curves.gaps:
                # What is not known leaves the plot, as a line would go on to the next value; it begins at the first.
                known = np.isfinite(rows)
                lacks = np.logical_or.accumulate(known) & ~known
                rows = np.where(lacks, curves.low - OUTSIDE * (curves.high - curves.low), rows)
            parts = np.stack([np.where(past, rows, np.nan), np.where(future, rows, np.nan)], axis=2)
            plot.data = (times, *parts.reshape(len(rows), -1).T)
