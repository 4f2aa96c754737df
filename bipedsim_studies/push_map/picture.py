"""A push map as a picture: impulses over directions, the robot seen from above and looking up the page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.view import FOOT_COLOURS, STYLE, TOTAL_COLOUR, picture
from bipedsim_studies.push_map.push_map import PushMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_AWAY = 11.0
"""From a point to its number [pt]."""
COLUMNS = 4
"""Maps beside each other, where there are several phases of a step."""
HEADROOM = 1.15
"""Radius of the picture, of what is drawn in it."""


def plot(found: PushMap, path: Path) -> None:
    """Draw a push map into a .png, .pdf or .svg.

    Raises:
        RecordingError: The picture cannot be written.
    """
    if any(math.isfinite(where.phase) for where in found.situations):
        _plot_phases(found, path)
        return
    first, kind = found.situations[0], found.kind
    title = (
        f"{Path(first.settings.robot).stem}: largest push that it recovers from [N.s]\n"
        f"{kind.duration:g} s at {kind.body or 'the root link'}, m = {first.stance.mass:.1f} kg"
    )
    with picture(path, (7.5, 7.5), title, {**STYLE, "axes.spines.top": True, "axes.spines.right": True}) as figure:
        axes = figure.add_subplot(projection="polar")
        axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
        for i, where in enumerate(found.situations):
            colour = FOOT_COLOURS[i % len(FOOT_COLOURS)]
            if not where.walking:
                turn = np.linspace(0.0, 2.0 * math.pi, 721)
                bound = [where.stance.bound(angle) for angle in turn]
                label = "m ω d, d from the ZMP to the edge of the support"
                axes.plot(turn, bound, color=TOTAL_COLOUR, linestyle="--", label=label)
            entries = found.directions[i]
            angles = [entry.angle for entry in entries]
            impulses = [entry.found.survived for entry in entries]
            at = f"{where.settings.scenario}, t = {where.at:g} s, on {' and '.join(where.stance.feet)}"
            axes.fill([*angles, angles[0]], [*impulses, impulses[0]], color=colour, alpha=0.12)
            axes.plot([*angles, angles[0]], [*impulses, impulses[0]], color=colour, marker="o", label=at)
        axes.set_ylim(0.0, HEADROOM * axes.get_ylim()[1])
        _name_directions(axes, found)
        _write_impulses(axes, found)
        figure.legend(loc="outside lower left")


def _plot_phases(found: PushMap, path: Path) -> None:
    """Draw one small map for each situation, in shares of the legs, all of the same scale."""
    kind, count = found.kind, len(found.situations)
    first = found.situations[0]
    across = min(count, COLUMNS)
    down = math.ceil(count / across)
    title = (
        f"{Path(first.settings.robot).stem}, {first.settings.controller}: largest push it recovers from, J / (m ω L)\n"
        f"{kind.duration:g} s at {kind.body or 'the root link'}, L = {found.legs[0]:.2f} m from hip to sole"
    )
    style = {**STYLE, "axes.spines.top": True, "axes.spines.right": True}
    with picture(path, (3.0 * across, 3.2 * down + 1.0), title, style) as figure:
        most = 0.0
        panels = []
        for i, where in enumerate(found.situations):
            axes = figure.add_subplot(down, across, i + 1, projection="polar")
            panels.append(axes)
            axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
            entries = found.directions[i]
            turn = [*(entry.angle for entry in entries), entries[0].angle]
            survived = [found.share(i, entry.found.survived) for entry in entries]
            axes.fill(turn, [*survived, survived[0]], color=FOOT_COLOURS[0], alpha=0.15)
            axes.plot(turn, [*survived, survived[0]], color=FOOT_COLOURS[0], marker="o", markersize=3, label="recovers")
            limits = [found.share(i, entry.capture) for entry in entries if entry.capture is not None]
            if len(limits) == len(entries):
                label = "what steps can catch in theory"
                axes.plot(turn, [*limits, limits[0]], color=TOTAL_COLOUR, linestyle="--", label=label)
            most = max(most, *survived, *limits)
            named = [entry.name if round(math.degrees(entry.angle)) % 90 == 0 else "" for entry in entries]
            axes.set_xticks(turn[:-1], named)
            axes.tick_params(labelsize=7)
            phase = f"{where.phase:.0%} of the step" if math.isfinite(where.phase) else f"t = {where.at:g} s"
            axes.set_title(f"{where.settings.scenario}, {phase}\non {' and '.join(where.stance.feet)}", fontsize=8)
        for axes in panels:
            axes.set_ylim(0.0, HEADROOM * most)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left")


def _name_directions(axes: Axes, found: PushMap) -> None:
    """Name the directions around the circle; where situations call one differently, in the order of the legend."""
    names: dict[float, list[str]] = {}
    for entries in found.directions.values():
        for entry in entries:
            names.setdefault(entry.angle, []).append(entry.name)
    labels = ["\n".join(dict.fromkeys(["ahead ↑"] * (not angle) + texts)) for angle, texts in names.items()]
    axes.set_xticks(list(names), labels)
    axes.tick_params(axis="x", pad=LABEL_AWAY)
    # The numbers of the circles between two directions.
    axes.set_rlabel_position(180.0 / len(names))  # type: ignore[attr-defined]
    axes.tick_params(axis="y", labelsize=7.5, labelcolor="#777777")


def _write_impulses(axes: Axes, found: PushMap) -> None:
    """Write the numbers beside their points: in each direction the largest outside, the least inside, others aside."""
    points: dict[float, list[tuple[float, str]]] = {}
    for i, entries in found.directions.items():
        for entry in entries:
            colour = FOOT_COLOURS[i % len(FOOT_COLOURS)]
            points.setdefault(entry.angle, []).append((entry.found.survived, colour))
    for angle, values in points.items():
        values.sort(reverse=True)
        for rank, (impulse, colour) in enumerate(values):
            turned = angle + (0.0 if rank == 0 else math.pi if rank == len(values) - 1 else 0.5 * math.pi)
            # Numbers are wider than high.
            axes.annotate(
                f"{impulse:.1f}",
                (angle, impulse),
                (-1.5 * LABEL_AWAY * math.sin(turned), LABEL_AWAY * math.cos(turned)),
                textcoords="offset points",
                color=colour,
                fontsize=8,
                ha="center",
                va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.6, "pad": 0.5},
            )
