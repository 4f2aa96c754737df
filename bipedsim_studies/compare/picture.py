"""A comparison as a picture: what happens over time on the left, figures side by side on the right."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.analysis import sole_depth
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR, at_least, fit_titles, picture
from bipedsim_studies.compare.comparison import Comparison, Failed, Measured
from bipedsim_studies.compare.figures import FIGURES, centre_of_pressure, joint_deviation, vertical_force
from bipedsim_studies.compare.table import headline, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

COLOURS = (TOTAL_COLOUR, *FOOT_COLOURS)
SIZE = 13.5, 11.5
"""Of the picture [in]."""
IN_A_ROW = 7
"""Names of a legend that have room beside each other."""
LOSS, ERROR = "contact_loss_J", "energy_residual_J"
"""Share a group of bars: what contact takes, and what the balance of energies lacks."""
BARS = (
    *("fz_rest_error_N", "fz_noise_N", "penetration_max_um", "creep_um_s"),
    *(LOSS, "joint_deviation_rad", "step_us"),
)
"""Figures that are drawn as bars, from top to bottom."""
FAR_APART = 100.0
"""Bars whose lengths differ by more are drawn on a logarithmic axis, which their title says."""
DECADES = 6
"""Of a logarithmic axis, at most."""
EVENT = 0.02
"""The ground carries what it carries at rest, to this share of the weight: outside an event."""
AROUND = 0.1
"""Time that is shown before and after an event, as a share of it."""
WHOLE = 0.7
"""Where events take a larger share of the run, all of it is shown."""
DEPTH_FLOOR, ANGLE_FLOOR = 1e-3, 1e-9
"""What is less is rounding and drawn at the floor of the log axis [um], [rad]."""
LINE = 1.6
"""Width of a curve [pt]."""
PERIOD = 24.0
"""Length of a dash and its gap in curves that coincide [pt]."""
NEAR, MOSTLY = 0.01, 0.9
"""Curves coincide that are so near, as a share of what a panel spans, in such a share of the time that is shown."""
CEILING = 3.0
"""Forces beyond this share of the weight are impacts, which would flatten all the rest."""


_SCALES: tuple[Callable[[Array], Array], ...] = (np.asarray, np.asarray, np.log10, np.asarray, np.asarray, np.log10)
"""Of the panels of curves, from top to bottom."""


def plot(comparison: Comparison, path: Path) -> None:
    """Draw a comparison into a .png, .pdf or .svg.

    Raises:
        RecordingError: No run reached its end, or the picture cannot be written.
    """
    rows = {name: row for name, row in comparison.rows.items() if isinstance(row, Measured)}
    if not rows:
        raise RecordingError(f"{path}: no contact model reached the end of the run: there is nothing to draw")
    with picture(path, SIZE, _title(comparison)) as figure:
        draw(figure, comparison, rows)


def draw(figure: Figure, comparison: Comparison, rows: dict[str, Measured]) -> None:
    """Draw a comparison, of which ``rows`` reached the end, into an empty figure."""
    left, right = figure.subfigures(1, 2, width_ratios=[2.0, 1.0], squeeze=False)[0]
    _draw_curves(left, comparison, rows)
    _draw_bars(right, comparison, rows)
    fit_titles(figure)


def _title(comparison: Comparison) -> str:
    failed = [
        textwrap.shorten(f"{name}: {row.error.partition(';')[0]}", 170, placeholder=" ...")
        for name, row in comparison.rows.items()
        if isinstance(row, Failed)
    ]
    return "\n".join([headline(comparison), *failed])


def _colours(comparison: Comparison) -> dict[str, str]:
    """Return the colour of each model."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(comparison.rows)}


def dashes(curves: dict[str, Array]) -> dict[str, tuple[float, tuple[float, ...]]]:
    """Return how long each curve is drawn and left out [line widths], as matplotlib has it: an offset and lengths.

    Of k curves in one place, drawn one over the other, each shows in a k-th of :data:`PERIOD`; others are solid.

    Args:
        curves: Name to values (n,), in the order in which they are drawn.
    """
    known = np.concatenate([[], *(values[np.isfinite(values)] for values in curves.values())])
    near = NEAR * float(np.ptp(known)) if len(known) else 0.0
    groups: list[list[str]] = []
    for name, values in curves.items():
        group = next((group for group in groups if _coincide(curves[group[0]], values, near)), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    made: dict[str, tuple[float, tuple[float, ...]]] = {}
    for group in groups:
        for i, name in enumerate(group):
            # The first one is solid, under what the others leave out.
            drawn = PERIOD * (1.0 - i / len(group)) / LINE
            made[name] = (0.0, (drawn, PERIOD / LINE - drawn) if i else ())
    return made


def _coincide(a: Array, b: Array, near: float) -> bool:
    """Return whether one of two curves (n,) would hide the other, being mostly no farther away than ``near``."""
    if len(a) != len(b):
        return False
    known = np.isfinite(a) & np.isfinite(b)
    return bool(known.any() and np.mean(np.abs(a - b)[known] <= near) >= MOSTLY)


def _draw_curves(figure: SubFigure, comparison: Comparison, rows: dict[str, Measured]) -> None:
    axes = figure.subplots(6, 1, sharex=True, height_ratios=[1.5, 1.0, 1.0, 1.0, 1.0, 1.0])
    reference = comparison.rows[comparison.reference]
    weight = comparison.prepared.robot.weight
    first = next(iter(rows.values())).recording
    begin, end = event_span([(row.recording.t, vertical_force(row.recording)) for row in rows.values()], weight)
    axis = int(np.argmax(np.nan_to_num(_spread(centre_of_pressure(first)))))
    colours = _colours(comparison)
    peak = max(float(vertical_force(row.recording).max()) for row in rows.values())
    panels: list[dict[str, Array]] = [{} for _ in axes]
    for name, row in rows.items():
        recording = row.recording
        curves = [
            vertical_force(recording),
            1e3 * centre_of_pressure(recording)[:, axis],
            np.maximum(1e6 * sole_depth(recording, comparison.prepared.robot, comparison.prepared.ground), DEPTH_FLOOR),
            -row.meter.energies[:, 3],
            row.meter.residual,
        ]
        if isinstance(reference, Measured) and row is not reference:
            curves.append(np.maximum(joint_deviation(recording, reference.recording), ANGLE_FLOOR))
        for panel, curve in zip(panels, curves, strict=False):
            panel[name] = curve
    for ax, panel, as_seen in zip(axes, panels, _SCALES, strict=True):
        seen = {}
        for name, curve in panel.items():
            t = rows[name].recording.t
            shown = np.minimum(curve, CEILING * weight) if ax is axes[0] else curve
            seen[name] = as_seen(shown)[(begin <= t) & (t <= end)]
        for name, dash in dashes(seen).items():
            t, look = rows[name].recording.t, {"color": colours[name], "linewidth": LINE, "linestyle": dash}
            ax.plot(t, panel[name], label=name, dash_capstyle="butt", **look)
    at_rest = axes[0].axhline(weight, color=LIMIT_COLOUR, linestyle="--", linewidth=1.0, label="m g", zorder=5)
    if peak > CEILING * weight:
        axes[0].set_ylim(-0.05 * CEILING * weight, CEILING * weight)
    from matplotlib.lines import Line2D

    # Solid, as a dash that shows beside others is too long for a legend.
    handles = [Line2D([], [], color=colours[name], linewidth=2.0 * LINE, label=name) for name in rows]
    handles.append(at_rest)
    figure.legend(handles=handles, ncols=min(len(handles), IN_A_ROW), fontsize=8, loc="outside upper left")
    beyond = f"; peak {peak:.0f} N, of a landing: impulse / step" if peak > CEILING * weight else ""
    titles = (
        f"vertical force [N]{beyond}",
        f"centre of pressure, {('forward x', 'sideways y')[axis]} [mm]",
        "penetration [um]",
        "energy taken by contact (landings, slip) [J]",
        "residual of the energy balance [J], no loss of an impact: the integrator's halves with the step",
        f"joints, deviation from {comparison.reference} [rad]; soft contact sinks in first, before it carries",
    )
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, pad=3)
    for ax, span in ((axes[0], 0.02 * weight), (axes[1], 2.0), (axes[3], 0.01), (axes[4], 0.01)):
        at_least(ax, span)
    for ax, floor in ((axes[2], DEPTH_FLOOR), (axes[5], ANGLE_FLOOR)):
        ax.set(yscale="log", ylim=(floor / 2.0, max(ax.get_ylim()[1], 1e3 * floor)))
    if not axes[5].lines:
        text = "there is only the reference" if isinstance(reference, Measured) else "the reference failed"
        axes[5].text(0.5, 0.5, text, transform=axes[5].transAxes, ha="center", va="center", color="#777777")
    whole = (begin, end) == (0.0, first.t[-1])
    axes[-1].set(xlabel="time [s]" if whole else f"time [s]; the run is from 0 to {first.t[-1]:g} s", xlim=(begin, end))


def event_span(forces: Sequence[tuple[Array, Array]], weight: float) -> tuple[float, float]:
    """Return the time [s] in which something happens: some ground does not carry the weight, as it does at rest.

    Args:
        forces: Of each run its times (n,) [s] and the vertical force (n,) [N].
        weight: [N].
    """
    end = max(float(t[-1]) for t, _ in forces)
    moving = np.concatenate([t[np.abs(force - weight) > EVENT * weight] for t, force in forces])
    if not len(moving):
        return 0.0, end
    first, last = float(moving.min()), float(moving.max())
    around = AROUND * (last - first)
    if last - first > WHOLE * end or around == 0.0:
        return 0.0, end
    return max(0.0, first - around), min(end, last + around)


def _spread(points: Array) -> Array:
    """Return the range of the points (n, 3) along x and y, NaN left out."""
    points = points[np.isfinite(points).all(axis=1), :2]
    return np.ptp(points, axis=0) if len(points) else np.zeros(2)


def _draw_bars(figure: SubFigure, comparison: Comparison, rows: dict[str, Measured]) -> None:
    """Draw a group of bars per figure, from zero; on a log axis, as its title says, where they are far apart."""
    shown = [key for key in BARS if any(row.figures[key] is not None for row in rows.values())]
    axes = figure.subplots(len(shown), 1, squeeze=False, height_ratios=[1.5 if key == LOSS else 1.0 for key in shown])
    colours = _colours(comparison)
    names = list(comparison.rows)
    for ax, key in zip(axes[:, 0], shown, strict=True):
        keys = (LOSS, ERROR) if key == LOSS else (key,)
        values = [[_value(comparison.rows[name], one) for one in keys] for name in names]
        start, end = bar_axis([abs(value) for row in values for value in row if value is not None])
        if key == LOSS:
            # Beside a loss an error is small or it is not: which of them, only lengths from zero show.
            start = 0.0
        for i, name in enumerate(names):
            row = comparison.rows[name]
            for k, value in enumerate(values[i]):
                height = 0.72 / len(keys)
                at = i + (k - 0.5 * (len(keys) - 1)) * height
                # A log axis has no zero: what is less than its start has no bar.
                length = max(0.0, abs(value or 0.0) - start)
                colour = LIMIT_COLOUR if keys[k] == ERROR else colours[name]
                ax.barh(at, length, left=start, color=colour, height=height)
            longest = max((abs(value or 0.0) for value in values[i]), default=0.0)
            text = ", residual ".join(map(number, values[i])) if isinstance(row, Measured) else row.status
            if 0.0 < longest < start:
                text += " (below the axis)"
            ax.annotate(text, (max(start, longest), i), (3, 0), textcoords="offset points", va="center", fontsize=8)
        of = FIGURES[key]
        what = f"{of.name} [{of.unit}]"
        if key == LOSS:
            what = f"{of.name} [{of.unit}]; red: residual"
        ax.set_title(what + (", logarithmic" if start else ""), pad=3)
        ax.set_yticks(range(len(names)), names)
        ax.set(ylim=(len(names) - 0.5, -0.5))
        if start:
            # Room for the number behind the longest bar.
            ax.set(xscale="log", xlim=(start, end * (end / start) ** 0.3))
            ax.minorticks_off()
        else:
            # For two numbers, more of it.
            ax.set_xlim(0.0, (1.9 if key == LOSS else 1.3) * end)
        ax.locator_params(axis="x", **({"numticks": 5} if start else {"nbins": 5}))
        ax.tick_params(axis="y", length=0, labelsize=8)
        ax.tick_params(axis="x", labelsize=7)


def _value(row: Measured | Failed, key: str) -> float | int | None:
    return row.figures[key] if isinstance(row, Measured) else None


def bar_axis(lengths: Sequence[float]) -> tuple[float, float]:
    """Return where the axis of bars begins and how far the longest reaches: from 0, or, where they are far apart, from
    the decade below the shortest, at most :data:`DECADES` below the longest.
    """
    longest = max(lengths, default=0.0)
    lasting = [length for length in lengths if length > 0.0]
    if not lasting or longest <= FAR_APART * min(lasting):
        return 0.0, longest or 1.0
    return float(max(10.0 ** np.floor(np.log10(0.5 * min(lasting))), longest * 10.0**-DECADES)), longest
