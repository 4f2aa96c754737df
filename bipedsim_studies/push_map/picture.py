"""Draw a push map: impulses over directions, in a top view of the robot with its heading upwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.view import FOOT_COLOURS, STYLE, TOTAL_COLOUR, picture
from bipedsim_studies.push_map.push_map import SYMBOLS, PushMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bipedsim_studies.push_map.trial import Situation

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
        for number, places in enumerate(push_map.variants()):
            situation = push_map.situations[places[0]]
            colour = FOOT_COLOURS[number % len(FOOT_COLOURS)]
            if not situation.walking:
                circle = np.linspace(0.0, 2.0 * math.pi, 721)
                bound = [situation.stance.bound(angle) for angle in circle]
                limit = f"theoretical limit if the feet do not move: m ω d{_of_first(situation, places)}"
                label = "\n".join([limit, *SYMBOLS])
                axes.plot(circle, bound, color=TOTAL_COLOUR, linestyle="--", label=label)
            at = f"{situation.settings.scenario}, t = {situation.at:g} s, on {' and '.join(situation.stance.feet)}"
            _draw_map(axes, push_map, places, colour, _label(at, places), shares=False)
        axes.set_ylim(0.0, HEADROOM * axes.get_ylim()[1])
        _name_directions(axes, push_map)
        _write_impulses(axes, push_map)
        figure.legend(loc="outside lower left")


def _closed(values: Sequence[float]) -> list[float]:
    """Return the values with the first one repeated at the end."""
    return [*values, values[0]]


def _draw_map(axes: Axes, push_map: PushMap, places: Sequence[int], colour: str, label: str, shares: bool) -> float:
    """Draw the area that the robot recovers from; for several robots, the least and the largest one and the median.

    Args:
        axes: Polar axes.
        push_map: The map.
        places: Situations that differ only in the hardware.
        colour: Colour of the area.
        label: Text in the legend.
        shares: Whether to draw the shift of the DCM in leg lengths of each robot, and not the impulse [N.s].

    Returns:
        The largest value.
    """
    values = [
        [
            push_map.share(i, entry.threshold.survived) if shares else entry.threshold.survived
            for i, entry in zip(places, entries, strict=True)
        ]
        for entries in push_map.across(places)
    ]
    turn = _closed([entry.angle for entry in push_map.directions[places[0]]])
    least, middle, most = (_closed([function(each) for each in values]) for function in (min, median, max))
    axes.fill(turn, least, color=colour, alpha=0.12)
    axes.vlines(turn, least, most, color=colour, alpha=0.4, linewidth=5.0)
    axes.plot(turn, middle, color=colour, marker="o", markersize=4, label=label)
    return max(most)


def _plot_phases(push_map: PushMap, path: Path) -> None:
    """Draw one small map per phase, with impulses relative to the leg length, and all with the same scale."""
    kind, groups = push_map.kind, push_map.variants()
    first = push_map.situations[0]
    columns = min(len(groups), COLUMNS)
    rows = math.ceil(len(groups) / columns)
    title = (
        f"{Path(first.settings.robot).stem}, {first.settings.controller}: largest push it recovers from, J / (m ω L)\n"
        f"J: impulse, {kind.duration:g} s at {kind.body or 'the root link'}; m = {first.stance.mass:.1f} kg; "
        f"{SYMBOLS[1]}; L = {push_map.legs[0]:.2f} m from hip to sole"
    )
    style = {**STYLE, "axes.spines.top": True, "axes.spines.right": True}
    with picture(path, (3.0 * columns, 3.2 * rows + 1.0), title, style) as figure:
        largest = 0.0
        panels = []
        for number, places in enumerate(groups):
            i, situation = places[0], push_map.situations[places[0]]
            axes = figure.add_subplot(rows, columns, number + 1, projection="polar")
            panels.append(axes)
            axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
            entries = push_map.directions[i]
            most = _draw_map(axes, push_map, places, FOOT_COLOURS[0], _label("recovers", places), shares=True)
            limits = [push_map.share(i, entry.capture) for entry in entries if entry.capture is not None]
            turn = _closed([entry.angle for entry in entries])
            if len(limits) == len(entries):
                label = f"what steps can catch in theory{_of_first(situation, places)}"
                axes.plot(turn, _closed(limits), color=TOTAL_COLOUR, linestyle="--", label=label)
            largest = max(largest, most, *limits)
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


def _of_first(situation: Situation, places: Sequence[int]) -> str:
    """Return the hardware of the robot whose limit is drawn, if there are several robots."""
    return f", with {situation.settings.hardware}" if len(places) > 1 else ""


def _label(text: str, places: Sequence[int]) -> str:
    """Return the text for the legend, with the number of robots if there are several."""
    return f"{text}; median and range of {len(places)} robots" if len(places) > 1 else text


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
    """Label the medians: the largest value of each direction outside, the smallest inside, others at the side."""
    points: dict[float, list[tuple[float, str]]] = {}
    for number, places in enumerate(push_map.variants()):
        for entries in push_map.across(places):
            colour = FOOT_COLOURS[number % len(FOOT_COLOURS)]
            middle = median(entry.threshold.survived for entry in entries)
            points.setdefault(entries[0].angle, []).append((middle, colour))
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
