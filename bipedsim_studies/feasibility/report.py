"""What ``bipedsim margins`` prints and draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.analysis import aligned
from bipedsim.view import LIMIT_COLOUR, TOTAL_COLOUR, foot_colour, foot_dash, picture
from bipedsim_studies.feasibility.margins import RunMargins
from bipedsim_studies.feasibility.touchdowns import TouchDown

TOUCH_DOWN = {True: ("#777777", "touch-down as predicted"), False: (LIMIT_COLOUR, "touch-down not as predicted")}
"""Colour and legend of a touch-down, by whether it went as predicted."""


def as_json(margins: RunMargins, touch_downs: Sequence[TouchDown]) -> dict[str, Any]:
    """Return margins and touch-downs as numbers and texts; what does not exist is None."""

    def least(values: Any) -> dict[str, float] | None:
        if not np.isfinite(values).any():
            return None
        j = int(np.nanargmin(np.where(np.isfinite(values), values, np.nan)))
        return {"least": float(values[j]), "t": float(margins.t[j])}

    torque = least(margins.torque)
    return {
        "feet": {
            name: {
                "force_N": least(margins.force[:, k]),
                "cop_m": least(margins.cop[:, k]),
                "unused_friction": least(margins.friction[:, k]),
            }
            for k, name in enumerate(margins.feet)
        },
        "torque_Nm": torque,
        "limit": None if torque is None else margins.first[int(np.searchsorted(margins.t, torque["t"]))],
        "rows": int(margins.judged.sum()),
        "agreement": margins.agreement if margins.judged.any() else None,
        "touch_downs": [
            {
                "t": found.t,
                "feet": list(found.feet),
                "speed_m_s": found.speed,
                "all_stick": found.all_stick,
                "limit": found.limit,
                "predicted": list(found.predicted),
                "happened": list(found.happened),
                "impulse_predicted_Ns": found.impulse_predicted.tolist(),
                "impulse_happened_Ns": found.impulse_happened.tolist(),
                "agrees": found.agrees,
            }
            for found in touch_downs
        ],
    }


_LEAST = {
    "force_N": ("normal force", 1.0, "N", "lifts"),
    "cop_m": ("CoP to the edge", 1e3, "mm", "tips"),
    "unused_friction": ("unused friction", 100.0, "% of mu f_z", "slips"),
}
"""What the least margins of a foot are called, what they are shown in, and what the foot does at 0."""


def as_text(margins: RunMargins, touch_downs: Sequence[TouchDown]) -> str:
    """Return both for readers: the least margins of every foot, and a table of touch-downs."""
    found = as_json(margins, touch_downs)
    rows = [
        [name, what, f"{scale * one['least']:.4g} {unit}", f"at t = {one['t']:.3f} s", f"at 0 it {end}"]
        for name, figures in found["feet"].items()
        for key, (what, scale, unit, end) in _LEAST.items()
        if (one := figures[key]) is not None
    ]
    lines = ["least margins of each foot while it carries; more is safer:", *aligned(rows)] if rows else []
    if found["torque_Nm"] is not None:
        least, at, limit = found["torque_Nm"]["least"], found["torque_Nm"]["t"], _without_unit(found["limit"])
        lines.append(
            f"joint torques could be off by {least:.4g} N.m (norm over the joints) at t = {at:.3f} s, the least of the "
            f"run, before a foot lifts, tips or slips ({limit})"
            if least >= 0.0
            else f"joint torques were {-least:.4g} N.m (norm over the joints) beyond what keeps the feet at t = "
            f"{at:.3f} s, the most of the run ({limit})"
        )
    if found["rows"]:
        lines.append(f"{found['agreement']:.2%} of {found['rows']} rows went on as the conditions said")
    if not touch_downs:
        return "\n".join([*lines, "no touch-downs"])
    right = sum(entry.agrees for entry in touch_downs)
    lines.append(
        f"touch-downs, {right} of {len(touch_downs)} as predicted ({', '.join(margins.feet)}); at a margin below 0 not "
        "all that touches can stick:"
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


def plot(margins: RunMargins, touch_downs: Sequence[TouchDown], title: str, path: Path) -> None:
    """Draw the margins over time, below zero a condition has failed; touch-downs are dotted, wrong ones red.

    Args:
        margins, touch_downs: Of the run.
        title: Above the picture.
        path: .png, .pdf or .svg.

    Raises:
        RecordingError: The picture cannot be written.
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
            one = values.shape[1] == 1
            for k in range(values.shape[1]):
                colour = TOTAL_COLOUR if one else foot_colour(k)
                label = None if one else f"{margins.feet[k]} foot"
                ax.plot(margins.t, values[:, k], color=colour, linestyle=foot_dash(k), label=label)
            ax.axhline(0.0, color=LIMIT_COLOUR, linewidth=0.8, label="lifts, tips, slips below")
            for entry in touch_downs:
                colour, label = TOUCH_DOWN[entry.agrees]
                ax.axvline(entry.t, color=colour, linewidth=0.8, linestyle=":", label=label)
        # One entry for each kind of line.
        shown = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
        axes[0].legend(
            list(shown.values()), list(shown), loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5, borderaxespad=0.1
        )
        # A foot that is about to leave has no friction to speak of.
        axes[2].set_ylim(max(axes[2].get_ylim()[0], -1.0), 1.05)
        axes[-1].set_xlabel("time [s]")
