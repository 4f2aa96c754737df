"""A comparison as a picture: what happens over time on the left, figures side by side on the right."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
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
CEILING = 3.0
"""Forces beyond this share of the weight are impacts, which would flatten all the rest."""


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


def _looks(comparison: Comparison) -> dict[str, tuple[str, float]]:
    """Return colour and line width of each model: curves that coincide show as bands, the first one widest."""
    names = list(comparison.rows)
    widths = np.linspace(1.2 + min(1.4 * (len(names) - 1), 4.5), 1.2, len(names))
    return {name: (COLOURS[i % len(COLOURS)], float(widths[i])) for i, name in enumerate(names)}


def _draw_curves(figure: SubFigure, comparison: Comparison, rows: dict[str, Measured]) -> None:
    axes = figure.subplots(6, 1, sharex=True, height_ratios=[1.5, 1.0, 1.0, 1.0, 1.0, 1.0])
    reference = comparison.rows[comparison.reference]
    weight = comparison.prepared.robot.weight
    first = next(iter(rows.values())).recording
    axis = int(np.argmax(np.nan_to_num(_spread(centre_of_pressure(first)))))
    peak, looks = 0.0, _looks(comparison)
    for name, row in rows.items():
        recording = row.recording
        t, (colour, width) = recording.t, looks[name]
        force = vertical_force(recording)
        peak = max(peak, float(force.max()))
        curves = [
            force,
            1e3 * centre_of_pressure(recording)[:, axis],
            np.maximum(1e6 * sole_depth(recording, comparison.prepared.robot, comparison.prepared.ground), DEPTH_FLOOR),
            -row.meter.energies[:, 3],
            row.meter.residual,
        ]
        if isinstance(reference, Measured) and row is not reference:
            curves.append(np.maximum(joint_deviation(recording, reference.recording), ANGLE_FLOOR))
        for ax, curve in zip(axes, curves, strict=False):
            ax.plot(t, curve, color=colour, linewidth=width, label=name, solid_capstyle="butt")
    axes[0].axhline(weight, color=LIMIT_COLOUR, linestyle="--", linewidth=1.0, label="m g", zorder=5)
    if peak > CEILING * weight:
        axes[0].set_ylim(-0.05 * CEILING * weight, CEILING * weight)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=min(len(handles), IN_A_ROW), fontsize=8, loc="outside upper left")
    beyond = f", impacts up to {peak:.0f} N" if peak > CEILING * weight else ""
    titles = (
        f"vertical force [N]{beyond}",
        f"centre of pressure, {('forward x', 'sideways y')[axis]} [mm]",
        "penetration [um]",
        "energy dissipated by contact [J]",
        "residual of the energy balance [J], no loss of an impact: the integrator's halves with the step",
        f"joints, deviation from {comparison.reference} [rad]",
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
    begin, end = event_span([(row.recording.t, vertical_force(row.recording)) for row in rows.values()], weight)
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
    looks = _looks(comparison)
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
                colour = LIMIT_COLOUR if keys[k] == ERROR else looks[name][0]
                ax.barh(at, length, left=start, color=colour, height=height)
                text = number(value) if isinstance(row, Measured) else row.status if not k else ""
                ax.annotate(text, (start + length, at), (3, 0), textcoords="offset points", va="center", fontsize=8)
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
            ax.set_xlim(0.0, 1.3 * end)
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
