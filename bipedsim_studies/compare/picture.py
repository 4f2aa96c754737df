"""A comparison as a picture: what happens over time on the left, figures side by side on the right."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.analysis import sole_depth
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR, at_least, picture
from bipedsim_studies.compare.comparison import Comparison, Failed, Measured
from bipedsim_studies.compare.figures import FIGURES, centre_of_pressure, joint_deviation, vertical_force
from bipedsim_studies.compare.table import headline, number

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

COLOURS = (TOTAL_COLOUR, *FOOT_COLOURS)
BARS = (
    *("fz_rest_error_N", "fz_noise_N", "penetration_max_um", "creep_um_s"),
    *("energy_residual_J", "joint_deviation_rad", "step_us"),
)
"""Figures that are drawn as bars, from top to bottom."""
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
    with picture(path, (13.5, 10.0), _title(comparison)) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=[2.0, 1.0], squeeze=False)[0]
        _draw_curves(left, comparison, rows)
        _draw_bars(right, comparison, rows)


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
    axes = figure.subplots(5, 1, sharex=True, height_ratios=[1.5, 1.0, 1.0, 1.0, 1.0])
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
        ]
        if isinstance(reference, Measured) and row is not reference:
            curves.append(np.maximum(joint_deviation(recording, reference.recording), ANGLE_FLOOR))
        for ax, curve in zip(axes, curves, strict=False):
            ax.plot(t, curve, color=colour, linewidth=width, label=name, solid_capstyle="butt")
    axes[0].axhline(weight, color=LIMIT_COLOUR, linestyle="--", linewidth=1.0, label="m g", zorder=5)
    if peak > CEILING * weight:
        axes[0].set_ylim(-0.05 * CEILING * weight, CEILING * weight)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=len(rows) + 1, fontsize=8, loc="outside upper left")
    beyond = f", impacts up to {peak:.0f} N" if peak > CEILING * weight else ""
    titles = (
        f"vertical force [N]{beyond}",
        f"centre of pressure, {('forward x', 'sideways y')[axis]} [mm]",
        "penetration [um]",
        "energy dissipated by contact [J]",
        f"joints, deviation from {comparison.reference} [rad]",
    )
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, pad=3)
    for ax, span in ((axes[0], 0.02 * weight), (axes[1], 2.0), (axes[3], 0.01)):
        at_least(ax, span)
    for ax, floor in ((axes[2], DEPTH_FLOOR), (axes[4], ANGLE_FLOOR)):
        ax.set(yscale="log", ylim=(floor / 2.0, max(ax.get_ylim()[1], 1e3 * floor)))
    if not axes[4].lines:
        text = "there is only the reference" if isinstance(reference, Measured) else "the reference failed"
        axes[4].text(0.5, 0.5, text, transform=axes[4].transAxes, ha="center", va="center", color="#777777")
    axes[-1].set(xlabel="time [s]", xlim=(0.0, first.t[-1]))


def _spread(points: Array) -> Array:
    """Return the range of the points (n, 3) along x and y, NaN left out."""
    points = points[np.isfinite(points).all(axis=1), :2]
    return np.ptp(points, axis=0) if len(points) else np.zeros(2)


def _draw_bars(figure: SubFigure, comparison: Comparison, rows: dict[str, Measured]) -> None:
    """Draw a group of bars per figure, on log axes where the values differ by orders of magnitude."""
    shown = [key for key in BARS if any(row.figures[key] is not None for row in rows.values())]
    axes = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    looks = _looks(comparison)
    names = list(comparison.rows)
    for ax, key in zip(axes, shown, strict=True):
        values = [_value(comparison.rows[name], key) for name in names]
        drawn = _lengths(values)
        ax.barh(range(len(names)), drawn, color=[looks[name][0] for name in names], height=0.72)
        for i, name in enumerate(names):
            row = comparison.rows[name]
            text = number(values[i]) if isinstance(row, Measured) else row.status
            ax.text(drawn[i] + 0.02, i, text, va="center", fontsize=8)
        unit = FIGURES[key].unit
        ax.set_title(f"{FIGURES[key].name} [{unit}]", pad=3)
        ax.set_yticks(range(len(names)), names)
        ax.set(ylim=(len(names) - 0.5, -0.5), xlim=(0.0, 1.25))
        ax.set_xticks([])
        ax.grid(False)
        ax.spines["bottom"].set_visible(False)
        ax.tick_params(axis="y", length=0, labelsize=8)
    figure.supxlabel("bars: logarithmic, over the six decades below the largest", fontsize=8, x=0.98, ha="right")


def _value(row: Measured | Failed, key: str) -> float | int | None:
    return row.figures[key] if isinstance(row, Measured) else None


def _lengths(values: list[float | int | None]) -> list[float]:
    """Return lengths between 0 and 1 that are logarithmic over the six decades below the largest value."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    lengths = []
    for value in values:
        share = abs(value) / largest if value and largest else 0.0
        lengths.append(max(0.0, 1.0 + np.log10(share) / 6.0) if share else 0.0)
    return lengths
