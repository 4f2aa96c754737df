"""Draw a push map: impulses over directions, in a top view of the robot with its heading upwards."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.view import FOOT_COLOURS, STYLE, TOTAL_COLOUR, picture
from bipedsim_studies.push_map.push_map import SYMBOLS, PushMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_AWAY = 11.0
"""Distance from a point to its label [pt]."""
COLUMNS = 4
"""Number of maps in a row, if there are several phases of a step."""
HEADROOM = 1.15
"""Radius of the plot relative to the largest value drawn."""


def plot(push_map: PushMap, path: Path) -> None:
    """Write a push map as .png, .pdf or .svg.

    Raises:
        RecordingError: The figure cannot be written.
    """
    if any(math.isfinite(situation.phase) for situation in push_map.situations):
        _plot_phases(push_map, path)
        return
    first, kind = push_map.situations[0], push_map.kind
    title = (
        f"{Path(first.settings.robot).stem}: largest push that it recovers from [N.s]\n"
        f"{kind.duration:g} s at {kind.body or 'the root link'}, m = {first.stance.mass:.1f} kg"
    )
    with picture(path, (7.5, 7.5), title, {**STYLE, "axes.spines.top": True, "axes.spines.right": True}) as figure:
        axes = figure.add_subplot(projection="polar")
        axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
        for i, situation in enumerate(push_map.situations):
            colour = FOOT_COLOURS[i % len(FOOT_COLOURS)]
            if not situation.walking:
                circle = np.linspace(0.0, 2.0 * math.pi, 721)
                bound = [situation.stance.bound(angle) for angle in circle]
                label = "\n".join(["theoretical limit if the feet do not move: m ω d", *SYMBOLS])
                axes.plot(circle, bound, color=TOTAL_COLOUR, linestyle="--", label=label)
            entries = push_map.directions[i]
            angles = [entry.angle for entry in entries]
            impulses = [entry.threshold.survived for entry in entries]
            at = f"{situation.settings.scenario}, t = {situation.at:g} s, on {' and '.join(situation.stance.feet)}"
            axes.fill([*angles, angles[0]], [*impulses, impulses[0]], color=colour, alpha=0.12)
            axes.plot([*angles, angles[0]], [*impulses, impulses[0]], color=colour, marker="o", label=at)
        axes.set_ylim(0.0, HEADROOM * axes.get_ylim()[1])
        _name_directions(axes, push_map)
        _write_impulses(axes, push_map)
        figure.legend(loc="outside lower left")


def _plot_phases(push_map: PushMap, path: Path) -> None:
    """Draw one small map per situation, with impulses relative to the leg length, and all with the same scale."""
    kind, count = push_map.kind, len(push_map.situations)
    first = push_map.situations[0]
    columns = min(count, COLUMNS)
    rows = math.ceil(count / columns)
    title = (
        f"{Path(first.settings.robot).stem}, {first.settings.controller}: largest push it recovers from, J / (m ω L)\n"
        f"J: impulse, {kind.duration:g} s at {kind.body or 'the root link'}; m = {first.stance.mass:.1f} kg; "
        f"{SYMBOLS[1]}; L = {push_map.legs[0]:.2f} m from hip to sole"
    )
    style = {**STYLE, "axes.spines.top": True, "axes.spines.right": True}
    with picture(path, (3.0 * columns, 3.2 * rows + 1.0), title, style) as figure:
        largest = 0.0
        panels = []
        for i, situation in enumerate(push_map.situations):
            axes = figure.add_subplot(rows, columns, i + 1, projection="polar")
            panels.append(axes)
            axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
            entries = push_map.directions[i]
            turn = [*(entry.angle for entry in entries), entries[0].angle]
            survived = [push_map.share(i, entry.threshold.survived) for entry in entries]
            axes.fill(turn, [*survived, survived[0]], color=FOOT_COLOURS[0], alpha=0.15)
            axes.plot(turn, [*survived, survived[0]], color=FOOT_COLOURS[0], marker="o", markersize=3, label="recovers")
            limits = [push_map.share(i, entry.capture) for entry in entries if entry.capture is not None]
            if len(limits) == len(entries):
                label = "what steps can catch in theory"
                axes.plot(turn, [*limits, limits[0]], color=TOTAL_COLOUR, linestyle="--", label=label)
            largest = max(largest, *survived, *limits)
            named = [entry.name if round(math.degrees(entry.angle)) % 90 == 0 else "" for entry in entries]
            axes.set_xticks(turn[:-1], named)
            axes.tick_params(labelsize=7)
            phase = (
                f"{situation.phase:.0%} of the step" if math.isfinite(situation.phase) else f"t = {situation.at:g} s"
            )
            axes.set_title(
                f"{situation.settings.scenario}, {phase}\non {' and '.join(situation.stance.feet)}", fontsize=8
            )
        for axes in panels:
            axes.set_ylim(0.0, HEADROOM * largest)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left")


def _name_directions(axes: Axes, push_map: PushMap) -> None:
    """Label the directions. If situations use different names for one, list them in the order of the legend."""
    names: dict[float, list[str]] = {}
    for entries in push_map.directions.values():
        for entry in entries:
            names.setdefault(entry.angle, []).append(entry.name)
    labels = ["\n".join(dict.fromkeys(["ahead ↑"] * (not angle) + texts)) for angle, texts in names.items()]
    axes.set_xticks(list(names), labels)
    axes.tick_params(axis="x", pad=LABEL_AWAY)
    # The radial labels are placed between two directions.
    axes.set_rlabel_position(180.0 / len(names))  # type: ignore[attr-defined]
    axes.tick_params(axis="y", labelsize=7.5, labelcolor="#777777")


def _write_impulses(axes: Axes, push_map: PushMap) -> None:
    """Label the points: the largest value of each direction outside, the smallest inside, others at the side."""
    points: dict[float, list[tuple[float, str]]] = {}
    for i, entries in push_map.directions.items():
        for entry in entries:
            colour = FOOT_COLOURS[i % len(FOOT_COLOURS)]
            points.setdefault(entry.angle, []).append((entry.threshold.survived, colour))
    for angle, values in points.items():
        values.sort(reverse=True)
        for rank, (impulse, colour) in enumerate(values):
            label_angle = angle + (0.0 if rank == 0 else math.pi if rank == len(values) - 1 else 0.5 * math.pi)
            # Labels are wider than high, so they need a larger horizontal offset.
            axes.annotate(
                f"{impulse:.1f}",
                (angle, impulse),
                (-1.5 * LABEL_AWAY * math.sin(label_angle), LABEL_AWAY * math.cos(label_angle)),
                textcoords="offset points",
                color=colour,
                fontsize=8,
                ha="center",
                va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.6, "pad": 0.5},
            )
