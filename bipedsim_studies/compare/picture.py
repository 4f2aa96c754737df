"""Draw a comparison: time series on the left, metrics as bars on the right."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.analysis import sole_depth
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR, at_least, fit_titles, picture, time_axis
from bipedsim_studies.compare.comparison import FailedRun, MeasuredRun, ModelComparison
from bipedsim_studies.compare.figures import FIGURES, centre_of_pressure, joint_deviation, vertical_force
from bipedsim_studies.compare.table import headline, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

COLOURS = (TOTAL_COLOUR, *FOOT_COLOURS)
SIZE = 13.5, 11.5
"""Size of the figure [in]."""
IN_A_ROW = 7
"""Maximum number of names in one row of the legend."""
LOSS, ERROR = "contact_loss_J", "energy_residual_J"
"""Two metrics in one group of bars: energy taken by contact, and residual of the energy balance."""
BARS = (
    *("fz_rest_error_N", "fz_noise_N", "penetration_max_um", "creep_um_s"),
    *(LOSS, "joint_deviation_rad", "step_us"),
)
"""Metrics that are drawn as bars, from top to bottom."""
FAR_APART = 100.0
"""Bars are drawn on a logarithmic axis if their ratio exceeds this value. The panel's title reports it."""
DECADES = 6
"""Maximum number of decades of a logarithmic axis."""
EVENT = 0.02
"""Deviation of the ground force from the weight that counts as an event, as a fraction of the weight."""
AROUND = 0.1
"""Margin around an event, as a fraction of its duration."""
WHOLE = 0.7
"""The entire run is shown if the events take more than this fraction of it."""
DEPTH_FLOOR, ANGLE_FLOOR = 1e-3, 1e-9
"""Floors of the logarithmic axes of penetration [um] and joint deviation [rad]. Smaller values are rounding errors."""
LINE = 1.6
"""Width of a curve [pt]."""
PERIOD = 24.0
"""Length of a dash and its gap for coincident curves [pt]."""
NEAR, MOSTLY = 0.01, 0.9
"""Curves coincide if they differ by less than NEAR of the panel's span during MOSTLY of the time shown."""
CEILING = 3.0
"""Upper limit of the force axis in weights. Impacts exceed it and would compress the rest of the curve."""


_SCALES: tuple[Callable[[Array], Array], ...] = (np.asarray, np.asarray, np.log10, np.asarray, np.asarray, np.log10)
"""Scales of the panels of curves, from top to bottom."""


def plot(comparison: ModelComparison, path: Path) -> None:
    """Write a comparison as .png, .pdf or .svg.

    Raises:
        RecordingError: No run reached its end, or the figure cannot be written.
    """
    rows = {name: row for name, row in comparison.rows.items() if isinstance(row, MeasuredRun)}
    if not rows:
        raise RecordingError("no contact model reached the end of the run: there is nothing to draw", path)
    with picture(path, SIZE, _title(comparison)) as figure:
        draw(figure, comparison, rows)


def draw(figure: Figure, comparison: ModelComparison, rows: dict[str, MeasuredRun]) -> None:
    """Draw a comparison into an empty figure; ``rows`` are the runs that reached the end."""
    left, right = figure.subfigures(1, 2, width_ratios=[2.0, 1.0], squeeze=False)[0]
    _draw_curves(left, comparison, rows)
    _draw_bars(right, comparison, rows)
    fit_titles(figure)


def _title(comparison: ModelComparison) -> str:
    failed = [
        textwrap.shorten(f"{name}: {row.error.partition(';')[0]}", 170, placeholder=" ...")
        for name, row in comparison.rows.items()
        if isinstance(row, FailedRun)
    ]
    return "\n".join([headline(comparison), *failed])


def _colours(comparison: ModelComparison) -> dict[str, str]:
    """Return the colour of each model."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(comparison.rows)}


def dashes(curves: dict[str, Array]) -> dict[str, tuple[float, tuple[float, ...]]]:
    """Return the dash pattern of each curve [line widths] in matplotlib's form: an offset and lengths.

    Of k coincident curves, each is visible in one k-th of :data:`PERIOD`. All other curves are solid.

    Args:
        curves: Values (n,) of each curve by name, in drawing order.
    """
    known = np.concatenate([[], *(values[np.isfinite(values)] for values in curves.values())])
    tolerance = NEAR * float(np.ptp(known)) if len(known) else 0.0
    groups: list[list[str]] = []
    for name, values in curves.items():
        group = next((group for group in groups if _coincide(curves[group[0]], values, tolerance)), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    styles: dict[str, tuple[float, tuple[float, ...]]] = {}
    for group in groups:
        for i, name in enumerate(group):
            # The first curve is solid and shows through the gaps of the others.
            dash_length = PERIOD * (1.0 - i / len(group)) / LINE
            styles[name] = (0.0, (dash_length, PERIOD / LINE - dash_length) if i else ())
    return styles


def _coincide(a: Array, b: Array, tolerance: float) -> bool:
    """Return whether two curves (n,) mostly differ by at most ``tolerance``, so that one would hide the other."""
    if len(a) != len(b):
        return False
    known = np.isfinite(a) & np.isfinite(b)
    return bool(known.any() and np.mean(np.abs(a - b)[known] <= tolerance) >= MOSTLY)


def _draw_curves(figure: SubFigure, comparison: ModelComparison, rows: dict[str, MeasuredRun]) -> None:
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
        if isinstance(reference, MeasuredRun) and row is not reference:
            curves.append(np.maximum(joint_deviation(recording, reference.recording), ANGLE_FLOOR))
        for panel, curve in zip(panels, curves, strict=False):
            panel[name] = curve
    for ax, panel, scale in zip(axes, panels, _SCALES, strict=True):
        visible = {}
        for name, curve in panel.items():
            t = rows[name].recording.t
            shown = np.minimum(curve, CEILING * weight) if ax is axes[0] else curve
            visible[name] = scale(shown)[(begin <= t) & (t <= end)]
        for name, dash_style in dashes(visible).items():
            t, line_style = rows[name].recording.t, {"color": colours[name], "linewidth": LINE, "linestyle": dash_style}
            ax.plot(t, panel[name], label=name, dash_capstyle="butt", **line_style)
    at_rest = axes[0].axhline(weight, color=LIMIT_COLOUR, linestyle="--", linewidth=1.0, label="m g", zorder=5)
    if peak > CEILING * weight:
        axes[0].set_ylim(-0.05 * CEILING * weight, CEILING * weight)
    from matplotlib.lines import Line2D

    # Legend lines are solid, because a dash pattern is longer than a legend line.
    handles = [Line2D([], [], color=colours[name], linewidth=2.0 * LINE, label=name) for name in rows]
    handles.append(at_rest)
    figure.legend(handles=handles, ncols=min(len(handles), IN_A_ROW), fontsize=8, loc="outside upper left")
    peak_note = f"; peak {peak:.0f} N, of a landing: impulse / step" if peak > CEILING * weight else ""
    titles = (
        f"vertical force [N]{peak_note}",
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
        text = "there is only the reference" if isinstance(reference, MeasuredRun) else "the reference failed"
        axes[5].text(0.5, 0.5, text, transform=axes[5].transAxes, ha="center", va="center", color="#777777")
    whole = (begin, end) == (0.0, first.t[-1])
    axes[-1].set_xlim(begin, end)
    time_axis(*axes, text="time [s]" if whole else f"time [s]; the run is from 0 to {first.t[-1]:g} s")


def event_span(forces: Sequence[tuple[Array, Array]], weight: float) -> tuple[float, float]:
    """Return the time span [s] of all events, when a ground force differs from the weight.

    Return the entire run if there are no events, or if they take most of it.

    Args:
        forces: For each run, its times (n,) [s] and the vertical force (n,) [N].
        weight: Weight of the robot [N].
    """
    end = max(float(t[-1]) for t, _ in forces)
    moving = np.concatenate([t[np.abs(force - weight) > EVENT * weight] for t, force in forces])
    if not len(moving):
        return 0.0, end
    first, last = float(moving.min()), float(moving.max())
    margin = AROUND * (last - first)
    if last - first > WHOLE * end or margin == 0.0:
        return 0.0, end
    return max(0.0, first - margin), min(end, last + margin)


def _spread(points: Array) -> Array:
    """Return the range of the points (n, 3) along x and y, without NaN."""
    points = points[np.isfinite(points).all(axis=1), :2]
    return np.ptp(points, axis=0) if len(points) else np.zeros(2)


def _draw_bars(figure: SubFigure, comparison: ModelComparison, rows: dict[str, MeasuredRun]) -> None:
    """Draw a group of bars per metric, on a linear axis from zero or on a logarithmic axis."""
    shown = [key for key in BARS if any(row.figures[key] is not None for row in rows.values())]
    axes = figure.subplots(len(shown), 1, squeeze=False, height_ratios=[1.5 if key == LOSS else 1.0 for key in shown])
    colours = _colours(comparison)
    names = list(comparison.rows)
    for ax, key in zip(axes[:, 0], shown, strict=True):
        keys = (LOSS, ERROR) if key == LOSS else (key,)
        values = [[_value(comparison.rows[name], metric_key) for metric_key in keys] for name in names]
        start, end = bar_axis([abs(value) for row in values for value in row if value is not None])
        if key == LOSS:
            # Loss and error are compared by the lengths of their bars, which must start at zero.
            start = 0.0
        for i, name in enumerate(names):
            row = comparison.rows[name]
            for k, value in enumerate(values[i]):
                height = 0.72 / len(keys)
                position = i + (k - 0.5 * (len(keys) - 1)) * height
                # A value below the start of a logarithmic axis has no bar.
                length = max(0.0, abs(value or 0.0) - start)
                colour = LIMIT_COLOUR if keys[k] == ERROR else colours[name]
                ax.barh(position, length, left=start, color=colour, height=height)
            longest = max((abs(value or 0.0) for value in values[i]), default=0.0)
            text = ", residual ".join(map(number, values[i])) if isinstance(row, MeasuredRun) else row.status
            if 0.0 < longest < start:
                text += " (below the axis)"
            ax.annotate(text, (max(start, longest), i), (3, 0), textcoords="offset points", va="center", fontsize=8)
        metric = FIGURES[key]
        panel_title = f"{metric.name} [{metric.unit}]"
        if key == LOSS:
            panel_title = f"{metric.name} [{metric.unit}]; red: residual"
        ax.set_title(panel_title + (", logarithmic" if start else ""), pad=3)
        ax.set_yticks(range(len(names)), names)
        ax.set(ylim=(len(names) - 0.5, -0.5))
        if start:
            # The axis is longer than the bars, so that the number fits behind the longest one.
            ax.set(xscale="log", xlim=(start, end * (end / start) ** 0.3))
            ax.minorticks_off()
        else:
            # A label with two numbers needs more space.
            ax.set_xlim(0.0, (1.9 if key == LOSS else 1.3) * end)
        ax.locator_params(axis="x", **({"numticks": 5} if start else {"nbins": 5}))
        ax.tick_params(axis="y", length=0, labelsize=8)
        ax.tick_params(axis="x", labelsize=7)


def _value(row: MeasuredRun | FailedRun, key: str) -> float | int | None:
    return row.figures[key] if isinstance(row, MeasuredRun) else None


def bar_axis(lengths: Sequence[float]) -> tuple[float, float]:
    """Return the start of the axis of bars and the length of the longest bar.

    The axis starts at 0. For lengths that differ widely, it starts at the decade below the shortest one, but at most
    :data:`DECADES` below the longest one.
    """
    longest = max(lengths, default=0.0)
    positive = [length for length in lengths if length > 0.0]
    if not positive or longest <= FAR_APART * min(positive):
        return 0.0, longest or 1.0
    return float(max(10.0 ** np.floor(np.log10(0.5 * min(positive))), longest * 10.0**-DECADES)), longest
