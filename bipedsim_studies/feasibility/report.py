"""Format and draw the results of ``bipedsim margins``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.analysis import aligned
from bipedsim.view import LIMIT_COLOUR, TOTAL_COLOUR, foot_colour, foot_dash, picture, time_axis
from bipedsim_studies.feasibility.margins import RunMargins
from bipedsim_studies.feasibility.touchdowns import PredictedTouchDown

TOUCH_DOWN = {True: ("#777777", "touch-down as predicted"), False: (LIMIT_COLOUR, "touch-down not as predicted")}
"""Colour and legend of a touchdown, by whether it agrees with the prediction."""


def as_json(margins: RunMargins, touch_downs: Sequence[PredictedTouchDown]) -> dict[str, Any]:
    """Return margins and touchdowns as numbers and texts; missing values are None."""

    def smallest(values: Any) -> dict[str, float] | None:
        if not np.isfinite(values).any():
            return None
        j = int(np.nanargmin(np.where(np.isfinite(values), values, np.nan)))
        return {"least": float(values[j]), "t": float(margins.t[j])}

    torque = smallest(margins.torque)
    return {
        "feet": {
            name: {
                "force_N": smallest(margins.force[:, k]),
                "cop_m": smallest(margins.cop[:, k]),
                "unused_friction": smallest(margins.friction[:, k]),
            }
            for k, name in enumerate(margins.feet)
        },
        "torque_Nm": torque,
        "limit": None if torque is None else margins.first[int(np.searchsorted(margins.t, torque["t"]))],
        "rows": int(margins.judged.sum()),
        "agreement": margins.agreement if margins.judged.any() else None,
        "touch_downs": [
            {
                "t": touch_down.t,
                "feet": list(touch_down.feet),
                "speed_m_s": touch_down.speed,
                "all_stick": touch_down.all_stick,
                "limit": touch_down.limit,
                "predicted": list(touch_down.predicted),
                "happened": list(touch_down.happened),
                "impulse_predicted_Ns": touch_down.impulse_predicted.tolist(),
                "impulse_happened_Ns": touch_down.impulse_happened.tolist(),
                "agrees": touch_down.agrees,
            }
            for touch_down in touch_downs
        ],
    }


_LEAST = {
    "force_N": ("normal force", 1.0, "N", "lifts"),
    "cop_m": ("CoP to the edge", 1e3, "mm", "tips"),
    "unused_friction": ("unused friction", 100.0, "% of mu f_z", "slips"),
}
"""Name, scale, unit and failure (at 0) of the smallest margins of a foot."""


def as_text(margins: RunMargins, touch_downs: Sequence[PredictedTouchDown]) -> str:
    """Return a readable text: the smallest margins of each foot, and a table of touchdowns."""
    result = as_json(margins, touch_downs)
    rows = [
        [name, quantity, f"{scale * value['least']:.4g} {unit}", f"at t = {value['t']:.3f} s", f"at 0 it {end}"]
        for name, figures in result["feet"].items()
        for key, (quantity, scale, unit, end) in _LEAST.items()
        if (value := figures[key]) is not None
    ]
    lines = ["least margins of each foot while it carries; more is safer:", *aligned(rows)] if rows else []
    if result["torque_Nm"] is not None:
        smallest, time, limit = result["torque_Nm"]["least"], result["torque_Nm"]["t"], _without_unit(result["limit"])
        lines.append(
            f"joint torques could be off by {smallest:.4g} N.m (norm over the joints) at t = {time:.3f} s, the least "
            f"of the run, before a foot lifts, tips or slips ({limit})"
            if smallest >= 0.0
            else f"joint torques were {-smallest:.4g} N.m (norm over the joints) beyond what keeps the feet at t = "
            f"{time:.3f} s, the most of the run ({limit})"
        )
    if result["rows"]:
        lines.append(f"{result['agreement']:.2%} of {result['rows']} rows went on as the conditions said")
    if not touch_downs:
        return "\n".join([*lines, "no touch-downs"])
    correct = sum(entry.agrees for entry in touch_downs)
    lines.append(
        f"touch-downs, {correct} of {len(touch_downs)} as predicted ({', '.join(margins.feet)}); at a margin below 0 "
        "not all that touches can stick:"
    )
    table = [["t [s]", "m/s", "impulse [N.s]", "predicted / happened", "margin of sticking"]]
    for entry in touch_downs:
        impulses = "/".join(f"{p:.2f}" for p in entry.impulse_predicted)
        happened = "as predicted" if entry.agrees else ", ".join(entry.happened)
        outcome = f"{', '.join(entry.predicted)} / {happened}"
        _, _, unit = entry.limit.partition(" [")
        margin = f"{entry.all_stick:.3g} {unit.removesuffix(']')}: {_without_unit(entry.limit)}"
        table.append([f"{entry.t:.3f}", f"{entry.speed:.3f}", impulses, outcome, margin])
    return "\n".join([*lines, *aligned(table)])


def _without_unit(label: str) -> str:
    """Return the name of a condition without the unit of its value."""
    return label.partition(" [")[0]


def plot(margins: RunMargins, touch_downs: Sequence[PredictedTouchDown], title: str, path: Path) -> None:
    """Draw the margins over time; below zero a condition fails. Touchdowns are dotted, in red if wrongly predicted.

    Args:
        margins, touch_downs: Results of the run.
        title: Title of the figure.
        path: .png, .pdf or .svg.

    Raises:
        RecordingError: The figure cannot be written.
    """
    panels = (
        ("Normal force [N]", margins.force),
        ("CoP to the edge of what is held [m]", margins.cop),
        ("Unused friction, as a share of mu f_z", margins.friction),
        ("How far torques could be off, all joints together [N.m]", margins.torque[:, None]),
    )
    with picture(path, (10.0, 9.0), title) as figure:
        axes = figure.subplots(len(panels), 1, sharex=True)
        for ax, (name, values) in zip(axes, panels, strict=True):
            ax.set_title(name)
            single = values.shape[1] == 1
            for k in range(values.shape[1]):
                colour = TOTAL_COLOUR if single else foot_colour(k)
                label = None if single else f"{margins.feet[k]} foot"
                ax.plot(margins.t, values[:, k], color=colour, linestyle=foot_dash(k), label=label)
            ax.axhline(0.0, color=LIMIT_COLOUR, linewidth=0.8, label="lifts, tips, slips below")
            for entry in touch_downs:
                colour, label = TOUCH_DOWN[entry.agrees]
                ax.axvline(entry.t, color=colour, linewidth=0.8, linestyle=":", label=label)
        # The legend has one entry for each kind of line.
        shown = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
        axes[0].legend(
            list(shown.values()), list(shown), loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5, borderaxespad=0.1
        )
        # The friction of a foot that is about to lift off is not meaningful.
        axes[2].set_ylim(max(axes[2].get_ylim()[0], -1.0), 1.05)
        time_axis(*axes)
