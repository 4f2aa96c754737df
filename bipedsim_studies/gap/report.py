"""Format and draw the results of ``bipedsim gap``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.analysis import aligned
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim.view import picture
from bipedsim_studies.gap.floor import rms
from bipedsim_studies.gap.paired import NO_INTERVAL, DifferenceInterval, difference
from bipedsim_studies.gap.predict import HORIZONS, Gap
from bipedsim_studies.gap.signals import QUANTITIES
from bipedsim_studies.gap.trivial import HELD

WHERE, WORST = 0.200, 3
"""Horizon [s] and number of the channels with the largest errors in the text."""
FLAT = "flat"
"""Name of the ground of all predictions."""
SHOWN, JOINTS = 2, "joint position"
"""Number of joints in the figure whose angle is drawn over time, and the name of this quantity."""
COLOURS = ("#1f77b4", "#d62728", "#7f7f7f", "#bcbd22")
"""Colours of two models and of the two rules that they are compared with."""


def ground_notes(recording: Recording) -> list[str]:
    """Return a note if the recording is from other ground than that of the predictions."""
    ground = recording.about.get("ground", FLAT)
    return [] if ground == FLAT else [f"the predictions are on level ground, the recording is from ground {ground!r}"]


def rms_errors(gaps: Sequence[Gap]) -> dict[str, dict[str, list[float]]]:
    """Return the rms errors over all windows: quantity to predictor to one value per horizon.

    The predictors are the models and, for the windows of the first one, the simple rules.
    """
    result: dict[str, dict[str, list[float]]] = {}
    for name in QUANTITIES:
        sources: dict[str, Mapping[str, Array]] = {gap.label: gap.errors for gap in gaps}
        sources |= gaps[0].trivial
        result[name] = {
            predictor: [rms(errors[name][:, i]) for i in range(len(HORIZONS))]
            for predictor, errors in sources.items()
            if name in errors
        }
    return result


def rms_of_channels(gap: Gap) -> dict[str, dict[str, list[float]]]:
    """Return the rms errors of each channel over all windows: quantity to channel to one value per horizon."""
    return {
        name: {
            channel: [rms(gap.errors[name][:, i, k]) for i in range(len(HORIZONS))]
            for k, channel in enumerate(gap.channels[name])
        }
        for name in QUANTITIES
    }


def compared(first: Gap, second: Gap) -> dict[str, list[DifferenceInterval]]:
    """Return the difference ``second`` minus ``first`` of the windows' rms errors: quantity to one per horizon."""
    times, i, j = np.intersect1d(first.starts, second.starts, return_indices=True)
    return {
        name: [
            difference(times, first.errors[name][i, h], second.errors[name][j, h], horizon)
            for h, horizon in enumerate(HORIZONS)
        ]
        for name in QUANTITIES
    }


def no_better_than_held(gaps: Sequence[Gap]) -> dict[str, list[bool]]:
    """Return whether no model predicts better than the rule that nothing changes: quantity to one per horizon."""
    labels = [gap.label for gap in gaps]
    return {
        name: [min(predictors[label][i] for label in labels) > predictors[HELD][i] for i in range(len(HORIZONS))]
        for name, predictors in rms_errors(gaps).items()
    }


def as_json(gaps: Sequence[Gap], notes: Sequence[str]) -> dict[str, Any]:
    """Return the results as numbers and texts."""
    result: dict[str, Any] = {
        "horizons_s": list(HORIZONS),
        "windows": {gap.label: len(gap.starts) for gap in gaps},
        "skipped": {gap.label: dict(gap.skipped) for gap in gaps},
        "diverged": {gap.label: gap.diverged for gap in gaps},
        "units": dict(QUANTITIES),
        "rms": rms_errors(gaps),
        "rms_of_channels": {gap.label: rms_of_channels(gap) for gap in gaps},
        "noise": {name: rms(values) for name, values in gaps[0].floor.items()},
        "notes": list(notes),
    }
    if len(gaps) > 1:
        result["no_better_than_held"] = no_better_than_held(gaps)
        result["difference"] = {name: [vars(each) for each in row] for name, row in compared(*gaps).items()}
    return result


def windows(gap: Gap) -> str:
    """Return a line with the number of windows of a model, and of those without a prediction."""
    left_out = "; ".join(f"{count} left out: {reason}" for reason, count in gap.skipped.items())
    diverged = f"; {gap.diverged} diverged" if gap.diverged else ""
    return f"{gap.label}: {len(gap.starts)} windows{f' ({left_out})' if left_out else ''}{diverged}"


def as_text(gaps: Sequence[Gap], notes: Sequence[str], title: str) -> str:
    """Return a table of the rms errors, and one of the differences between two models."""
    lines = [title, *(f"note: {note}" for note in notes), *map(windows, gaps)]
    heads = [f"{1e3 * horizon:g} ms" for horizon in HORIZONS]
    rows = [["rms error", *heads, "noise"]]
    for name, predictors in rms_errors(gaps).items():
        rows.append([f"{name} [{QUANTITIES[name]}]", *([""] * len(heads)), _number(rms(gaps[0].floor[name]))])
        rows += [[f"  {predictor}", *map(_number, values), ""] for predictor, values in predictors.items()]
    lines += ["", *aligned(rows, numbers=True), "", *_where(gaps)]
    if len(gaps) > 1:
        worse = no_better_than_held(gaps)
        first, second = (gap.label for gap in gaps)
        table = [["", *heads]]
        differences = compared(*gaps)
        for name, row in differences.items():
            texts = map(str, row)
            table.append([name, *(f"({t})" if lost else t for t, lost in zip(texts, worse[name], strict=True))])
        lines += [
            "",
            f"rms error of a window, {second} minus {first}: mean [95 % interval]; above 0, {first} is better",
            *aligned(table),
        ]
        if any(map(any, worse.values())):
            lines.append(f"(in brackets: both models are worse than {HELD!r}, so the difference says nothing)")
        if any(each.lacks_interval for row in differences.values() for each in row):
            lines.append(f"({NO_INTERVAL})")
    return "\n".join(lines)


def _where(gaps: Sequence[Gap]) -> list[str]:
    """Return a table of the channels with the largest errors."""
    at = HORIZONS.index(WHERE)
    rows = [[f"largest rms errors after {1e3 * WHERE:g} ms", *(gap.label for gap in gaps)]]
    of_models = [rms_of_channels(gap) for gap in gaps]
    for name in QUANTITIES:
        row = [f"{name} [{QUANTITIES[name]}]"]
        for channels in of_models:
            finite = {channel: values[at] for channel, values in channels[name].items() if np.isfinite(values[at])}
            worst = sorted(finite, key=lambda channel: -finite[channel])[:WORST]
            row.append(", ".join(f"{channel} {finite[channel]:.2g}" for channel in worst) or "-")
        rows.append(row)
    return aligned(rows)


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "-"


def worst_joints(gap: Gap) -> list[int]:
    """Return the numbers of the ``SHOWN`` joints with the largest errors after ``WHERE``, the largest first."""
    values = rms_of_channels(gap)[JOINTS].values()
    errors = np.array([of_joint[HORIZONS.index(WHERE)] for of_joint in values])
    return [int(k) for k in np.argsort(-np.nan_to_num(errors), kind="stable")[:SHOWN]]


def predicted_curve(gap: Gap, joint: int) -> tuple[Array, Array, Array]:
    """Return times [s], measured and predicted angles [rad] of a joint, the prediction made ``WHERE`` before: (W,)."""
    at = HORIZONS.index(WHERE)
    measured = gap.measured[JOINTS][:, at, joint]
    return gap.times[:, at], measured, measured + gap.errors[JOINTS][:, at, joint]


def plot(gaps: Sequence[Gap], title: str, path: Path) -> None:
    """Draw the rms errors over the horizon, one panel per quantity, and the curves of the worst joints.

    The curves are the measured angles, and those that each model predicted ``WHERE`` seconds before. The joints are
    those with the largest errors of the last model.

    Raises:
        RecordingError: The figure cannot be written.
    """
    rows = (len(QUANTITIES) + 1) // 2
    with picture(path, (10.0, 14.0), title) as figure:
        errors, curves = figure.subfigures(2, 1, squeeze=False, height_ratios=(rows, SHOWN)).ravel()
        for panel, joint in zip(curves.subplots(SHOWN, 1, sharex=True), worst_joints(gaps[-1]), strict=False):
            panel.set_title(f"{gaps[0].channels[JOINTS][joint]}, predicted {1e3 * WHERE:g} ms before [rad]")
            for colour, gap in zip(COLOURS[2 - len(gaps) :], gaps, strict=False):
                t, measured, predicted = predicted_curve(gap, joint)
                # A sensor with a lower rate has measured nothing at some of these times.
                seen = np.isfinite(predicted)
                style = "--" if gap is gaps[-1] and len(gaps) > 1 else "-"
                panel.plot(t[seen], predicted[seen], color=colour, linewidth=1.0, linestyle=style, label=gap.label)
            seen = np.isfinite(measured)
            panel.plot(t[seen], measured[seen], color="black", linewidth=1.0, linestyle=":", label="measured")
            panel.legend(loc="best")
        panel.set_xlabel("time [s]")
        panels = errors.subplots(rows, 2, sharex=True).ravel()
        for panel, (name, predictors) in zip(panels, rms_errors(gaps).items(), strict=False):
            panel.set_title(f"{name} [{QUANTITIES[name]}]")
            for colour, (predictor, values) in zip(COLOURS[2 - len(gaps) :], predictors.items(), strict=False):
                style = "--" if predictor == gaps[-1].label and len(gaps) > 1 else "-"
                panel.loglog(HORIZONS, values, marker="o", color=colour, linestyle=style, label=predictor)
            panel.axhline(rms(gaps[0].floor[name]), color="black", linestyle=":", label="noise")
        for panel in panels[len(QUANTITIES) :]:
            panel.set_axis_off()
            panel.legend(*panels[0].get_legend_handles_labels(), loc="center")
        for panel in panels[-2:]:
            panel.set_xlabel("horizon [s]")
