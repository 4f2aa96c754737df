"""Draw the discrete states of a run: each foot over time, the states over time, and the graph of transitions."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.view import LIMIT_COLOUR, TOTAL_COLOUR, picture, time_axis
from bipedsim_studies.gait_modes.gait import GaitReport
from bipedsim_studies.gait_modes.sequence import ModeSequence, transitions
from bipedsim_studies.gait_modes.states import IMPACTS, FootState, State, is_impact, state_name, state_symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {FootState.AIR: "#F2F2F2", FootState.STICK: "#59B88E", FootState.SLIDE: "#E69F00"}
BEND = 0.15
"""Curvature of the graph's arrows, as a fraction of their length."""
SYMBOLS = "monospace"
"""Font of the state names. It must distinguish l from I: `Ild` is the impact of the left foot."""
IMPACT_COLOURS = {FootState.IMPACT_STICK: LIMIT_COLOUR, FootState.IMPACT_SLIDE: "#CC79A7"}


def plot(modes: ModeSequence, report: GaitReport, path: Path, robot: str = "") -> None:
    """Write a figure with the states of the feet, the states without bounces, and their transitions.

    Args:
        modes, report: Results of one run.
        path: .png, .pdf or .svg.
        robot: Name for the title.

    Raises:
        RecordingError: The figure cannot be written.
    """
    order = list(dict.fromkeys(entry.state for entry in report.entries))
    height = [0.5 + 0.3 * len(modes.feet), 0.6 + 0.3 * len(order)]
    title = "   ·   ".join([robot or "unknown robot", report.verdict, f"{modes.t[-1] - modes.t[0]:.3g} s"])
    with picture(path, (13.0, max(4.2 + 0.2 * len(order), sum(height) + 1.0)), title) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=[2.0, 1.0], squeeze=False)[0]
        feet, states = left.subplots(2, 1, sharex=True, height_ratios=height)
        _draw_feet(feet, modes)
        _draw_states(states, modes, report, order)
        _draw_graph(right.subplots(), modes, report, order)


def _draw_feet(ax: Axes, modes: ModeSequence) -> None:
    """Draw all recorded states as bars, except that each impact is a line because a bar would be too short."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    for k in range(len(modes.feet)):
        row = modes.states[:, k]
        edges = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), len(row)]
        spans = list(pairwise(edges))
        for state, colour in COLOURS.items():
            bars = [(modes.t[a], modes.t[b] - modes.t[a]) for a, b in spans if row[a] == state]
            ax.broken_barh(bars, (k - 0.4, 0.8), facecolor=colour, linewidth=0.0)
        for state, colour in IMPACT_COLOURS.items():
            ax.vlines([modes.t[a] for a, _ in spans if row[a] == state], k - 0.4, k + 0.4, color=colour, linewidth=1.2)
    handles: list[Any] = [Patch(facecolor=colour, label=state.words) for state, colour in COLOURS.items()]
    handles += [Line2D([], [], color=colour, label=state.words) for state, colour in IMPACT_COLOURS.items()]
    ax.legend(handles=handles, ncols=len(handles), loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    ax.set_yticks(range(len(modes.feet)), modes.feet)
    ax.set(ylim=(len(modes.feet) - 0.5, -0.5), title="feet")
    ax.grid(False)


def _draw_states(ax: Axes, modes: ModeSequence, report: GaitReport, order: list[State]) -> None:
    number = {state: i for i, state in enumerate(order)}
    entries = report.entries
    edges = [*(entry.t for entry in entries), float(modes.t[-1])]
    ax.stairs([number[entry.state] for entry in entries], edges, baseline=None, color=TOTAL_COLOUR)
    impacts = [entry for entry in entries if is_impact(entry.state)]
    ax.plot(
        [entry.t for entry in impacts],
        [number[entry.state] for entry in impacts],
        linestyle="",
        marker=".",
        color=LIMIT_COLOUR,
    )
    for stretch in report.stretches:
        if stretch.impacts:
            ax.axvspan(stretch.t, stretch.t + stretch.duration, color="#56B4E9", alpha=0.12, linewidth=0.0)
    ax.set_yticks(range(len(order)), [state_symbol(state, modes.feet) for state in order], family=SYMBOLS)
    ax.set(ylim=(len(order) - 0.5, -0.5), xlim=(modes.t[0], modes.t[-1]))
    time_axis(ax)
    ax.set_title("states without bounces (shaded: CVIS, feet meet the ground; dots: impacts)")


def _draw_graph(ax: Axes, modes: ModeSequence, report: GaitReport, order: list[State]) -> None:
    """Draw the states on a circle in order of occurrence, with an arrow per transition and a legend of the states."""
    from matplotlib.lines import Line2D

    angle = 0.5 * np.pi - 2.0 * np.pi * np.arange(len(order)) / max(1, len(order))
    position = {state: (float(np.cos(a)), float(np.sin(a))) for state, a in zip(order, angle, strict=True)}
    counts = transitions(report.entries)
    max_count = max(counts.values(), default=1)
    for (a, b), count in counts.items():
        ax.annotate(
            "",
            position[b],
            position[a],
            arrowprops={
                "arrowstyle": "-|>",
                "connectionstyle": f"arc3,rad={BEND}",
                "linewidth": 0.7 + 2.0 * count / max_count,
                "color": "#555555",
                "shrinkA": 17,
                "shrinkB": 17,
            },
        )
        # The label is at the middle of the arrow, which is half of its ``rad`` to the right of the straight line.
        (x0, y0), (x1, y1) = position[a], position[b]
        x, y = 0.5 * (x0 + x1) + 0.5 * BEND * (y1 - y0), 0.5 * (y0 + y1) - 0.5 * BEND * (x1 - x0)
        ax.text(x, y, str(count), ha="center", va="center", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
    visits = Counter(entry.state for entry in report.entries)
    for state, (x, y) in position.items():
        colour = "#F8D7DA" if any(foot in IMPACTS for foot in state) else "#DCEFE6"
        ax.text(
            x,
            y,
            f"{state_symbol(state, modes.feet)}\n{visits[state]}",
            family=SYMBOLS,
            ha="center",
            va="center",
            bbox={"boxstyle": "circle,pad=0.35", "facecolor": colour, "edgecolor": "#555555", "linewidth": 0.8},
        )
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
    ax.axis("off")
    ax.set_title("transitions seen")
    width = max(len(state_symbol(state, modes.feet)) for state in order)
    names = [f"{state_symbol(state, modes.feet):{width}}  {state_name(state, modes.feet)}" for state in order]
    ax.legend(
        handles=[Line2D([], [], linestyle="", label=name) for name in names],
        title="on arrows how often, in circles visits (red: impacts)",
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        handlelength=0.0,
        handletextpad=0.0,
        prop={"family": SYMBOLS, "size": "small"},
    )
