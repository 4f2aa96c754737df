"""Plot the contacts of the feet: centre of pressure from above, contact modes over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import ForcePlate, cop_under_soles, rotate
from bipedsim.numerics import Array, true_runs
from bipedsim.recording import ABSENT_MODE, Recording
from bipedsim.view.palette import AIR, MODE_COLOURS, TOTAL_COLOUR, foot_colour, text_colour
from bipedsim.view.sheet import PAGE, mark_events

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


MAX_OUTLINES = 30
CORNER_ROOM = 0.2
"""Minimum length of a sole's shortest side in the plot for numbered corners [in]."""
_MODES = 4096  # more than the number of modes of any polygon


def draw_cop(figure: SubFigure, recording: Recording, plate: ForcePlate | None, inches: float) -> None:
    """Draw the CoP among the outlines of the soles from above, or in each sole frame if the sole poses are unknown.

    Args:
        figure, recording: Target and data.
        plate: Forces in the world frame; None without the poses of the soles.
        inches: Approximate width of the panel.
    """
    if plate is None:
        _draw_cop_in_soles(figure, recording)
        return
    ax = figure.subplots()
    cop, total_cop = cop_under_soles(plate, recording.sole_poses)
    last = []
    for k, foot in enumerate(recording.feet):
        down = outlines(recording, k)
        for outline in down:
            ax.fill(*outline.T, facecolor=foot_colour(k), alpha=0.10, edgecolor="none")
            ax.plot(*np.vstack([outline, outline[:1]]).T, color=foot_colour(k), linewidth=1.0, alpha=0.7)
        last.append(down[-1] if down else None)
        ax.plot(*cop[:, k, :2].T, color=foot_colour(k), label=f"{foot} foot", marker=".", markersize=2)
    ax.plot(*total_cop[:, :2].T, color=TOTAL_COLOUR, label="all feet", marker=".", markersize=2)
    ax.set(title="centre of pressure (world, from above)", xlabel="x, forward [m]", ylabel="y, to the left [m]")
    ax.set_aspect("equal", adjustable="datalim")
    _number_corners(ax, recording, last, inches)
    ax.locator_params(nbins=6)
    # In a narrow panel, the legend does not fit next to the title.
    look: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (1.0, -0.1)}
    if inches > 0.5 * PAGE:
        look = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    ax.legend(ncols=len(recording.feet) + 1, borderaxespad=0.1, **look)


def _number_corners(ax: Axes, recording: Recording, soles: Sequence[Array | None], inches: float) -> None:
    """Number the corners of each foot's outline (N, 2), as in the names of contact modes, if there is enough space.

    Args:
        ax, recording: Target and data.
        soles: Outline of each foot, or None.
        inches: Approximate width of the axes.
    """
    span = max(ax.dataLim.width, ax.dataLim.height, 1e-9)
    for k, outline in enumerate(soles):
        if outline is None:
            continue
        # A foot partly above a step has another contact polygon with other numbers.
        counts = recording.n_vertices[:, k]
        if (counts[counts > 0] != len(outline)).any():
            continue
        shortest = float(np.linalg.norm(np.roll(outline, -1, axis=0) - outline, axis=1).min())
        if shortest / span * inches < CORNER_ROOM:
            continue
        for number, (x, y) in enumerate(outline + 0.13 * (outline.mean(axis=0) - outline)):
            ax.text(x, y, str(number), color=foot_colour(k), fontsize=7, ha="center", va="center")


def _draw_cop_in_soles(figure: SubFigure, recording: Recording) -> None:
    axes = figure.subplots(1, max(1, len(recording.feet)), squeeze=False)[0]
    for k, foot in enumerate(recording.feet):
        vertices = recording.sole_vertices[k]
        if len(vertices):
            axes[k].plot(*np.vstack([vertices, vertices[:1]]).T, color=foot_colour(k))
        axes[k].plot(*recording.cop[:, k].T, color=foot_colour(k), marker=".", markersize=2)
        axes[k].set(title=f"centre of pressure,\n{foot} sole frame", xlabel="x [m]", ylabel="y [m]")
        axes[k].set_aspect("equal", adjustable="datalim")


def outlines(recording: Recording, k: int) -> list[Array]:
    """Return the outline of foot ``k`` in the world, (N, 2) each, in the middle of every stance."""
    vertices = recording.sole_vertices[k]
    if not len(vertices):
        return []
    loaded = np.nan_to_num(recording.wrench[:, k, 2]) > 0.0
    stances = [(a + b - 1) // 2 for a, b in true_runs(loaded)] or [len(recording) - 1]
    # A chattering contact causes thousands of stances at the same position.
    chosen = [
        stances[i] for i in np.unique(np.linspace(0, len(stances) - 1, min(len(stances), MAX_OUTLINES)).astype(int))
    ]
    stance_outlines = []
    for row in chosen:
        pose = recording.sole_poses[row, k]
        if np.isfinite(pose).all():
            stance_outlines.append(_from_above(pose, vertices))
    return stance_outlines


def _from_above(pose: Array, vertices: Array) -> Array:
    points = np.column_stack([vertices, np.zeros(len(vertices))])
    return np.asarray((rotate(np.broadcast_to(pose[3:], (len(points), 4)), points) + pose[:3])[:, :2])


def mode_kind(mode: int, n_vertices: int) -> tuple[str, str]:
    """Return the kind of a mode (a key of ``MODE_COLOURS``), and its vertices: ``3-0`` for an edge, ``2`` for a vertex.

    Modes of an unknown polygon (``n_vertices`` = 0) count as faces, because they cannot be distinguished.
    """
    from bipedsim.contact import mode_parts

    if mode <= 0:
        return AIR, ""
    if not n_vertices:
        return "face", str(mode)
    kind, *which = mode_parts(mode, n_vertices)
    return kind, "".join(which)


def draw_modes(ax: Axes, recording: Recording) -> None:
    """Draw the contact modes of each foot as bars over time, with a legend below."""
    from matplotlib.patches import Patch

    shown = set()
    ends = np.append(recording.t[1:], recording.t[-1] + (recording.duration / max(1, len(recording) - 1)))
    for k in range(len(recording.feet)):
        # Modes refer to the part of the sole above the ground, whose polygon may differ from the sole.
        counts = np.where(recording.n_vertices[:, k] > 0, recording.n_vertices[:, k], len(recording.sole_vertices[k]))
        # Modes are undefined before the first step.
        known = np.where(recording.t > 0.0, recording.mode[:, k], ABSENT_MODE)
        code = 2 * (known + _MODES * counts) + recording.sliding[:, k]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(code)) + 1])
        lasts = np.append(starts[1:] - 1, len(code) - 1)
        for value in np.unique(code[starts]):
            n_vertices, mode = divmod(int(value) // 2 - ABSENT_MODE, _MODES)
            mode, sliding = mode + ABSENT_MODE, bool(value % 2)
            if mode == ABSENT_MODE:
                continue
            kind, which = mode_kind(mode, n_vertices)
            shown.add((kind, sliding))
            chosen = code[starts] == value
            spans = [
                (recording.t[a], ends[b] - recording.t[a]) for a, b in zip(starts[chosen], lasts[chosen], strict=True)
            ]
            ax.broken_barh(spans, (k - 0.4, 0.8), linewidth=0.0, **_mode_look(kind, sliding))
            shade = text_colour(MODE_COLOURS[kind])
            for start, lasting in spans if n_vertices == len(recording.sole_vertices[k]) else ():
                if which and lasting > 0.025 * recording.duration:
                    ax.text(start + 0.5 * lasting, k, which, fontsize=7, ha="center", va="center", color=shade)
    ax.set_yticks(range(len(recording.feet)), [f"{foot} foot" for foot in recording.feet])
    ax.set(ylim=(len(recording.feet) - 0.5, -0.5), title="contact modes (numbers: corners of the sole)")
    mark_events(ax, recording)
    ax.grid(False)
    if not shown:
        ax.text(0.5, 0.5, "not recorded", transform=ax.transAxes, ha="center", va="center", color="#777777")
        return
    handles = [
        Patch(label=f"{kind}, sliding" if sliding else kind, linewidth=0.3, **_mode_look(kind, sliding))
        for kind in MODE_COLOURS
        for sliding in (False, True)
        if (kind, sliding) in shown
    ]
    ax.figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))


def _mode_look(kind: str, sliding: bool) -> dict[str, Any]:
    return {"facecolor": MODE_COLOURS[kind], "hatch": "////" if sliding else "", "edgecolor": "#555555"}
