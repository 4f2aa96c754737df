"""Pictures of a recording: ground reaction forces, centre of pressure, contact modes, joint torques.

matplotlib takes a second to import, so that it is imported when something is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.analysis.figures import unit_of
from bipedsim.analysis.force_plate import ForcePlate, force_plate, rotate, sample_rate
from bipedsim.errors import RecordingError, UnknownNameError
from bipedsim.recording import ABSENT_MODE, Recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Array = NDArray[np.float64]

PANELS = ("forces", "cop", "modes", "torques", "readouts")
# Okabe and Ito's palette, which colour-blind readers can tell apart.
FOOT_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
TOTAL_COLOUR = "#222222"
LIMIT_COLOUR = "#B00020"
FACE_COLOUR = "#59B88E"
PUSH_COLOUR = "#F0E442"
MODE_COLOURS = {"in the air": "#F2F2F2", "vertex": "#E69F00", "edge": "#7A6FD0", "face": FACE_COLOUR}
"""Kind of a contact mode and its colour; which vertex or edge it is, is written in bars with room for it."""
MAX_OUTLINES = 30
WALK_ASPECT = 2.5
"""Length over width, seen from above, beyond which the CoP gets the width of the page."""
PAGE = 12.5
"""Width of a picture [in]."""
CORNER_ROOM = 0.2
"""Shortest side of a sole in the picture [in] whose corners are numbered."""
NOISE = 1e-6
"""Torque [N.m] below which joints are left out."""
_MODES = 4096  # more than any polygon has

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


@contextmanager
def picture(path: Path, size: tuple[float, float], title: str, style: Any = STYLE) -> Iterator[Figure]:
    """Give an empty figure in our style to draw in, and write it when the block ends.

    Args:
        path: .png, .pdf or .svg; folders that are missing are made.
        size: Width and height [in].
        title: Above everything.
        style: Settings of matplotlib, for the block and the writing.

    Raises:
        RecordingError: The picture cannot be written.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, fontsize=11.5, x=0.01, ha="left")
        yield figure
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=120)
        except (OSError, ValueError) as error:
            raise RecordingError(f"{path}: the picture cannot be written ({error})") from error


def plot(recording: Recording, path: Path, panels: Sequence[str] = PANELS, cutoff: float | None = None) -> None:
    """Draw a recording into a picture file.

    Args:
        recording: What to draw.
        path: .png, .pdf or .svg.
        panels: Which of :data:`PANELS`, in any order; one of which nothing was recorded is left out.
        cutoff: Low-pass of the forces and the CoP [Hz], order 5 and without delay; None draws what was recorded.

    Raises:
        UnknownNameError: No such panel.
        RecordingError: The recording is empty or lacks the only panel that was asked for, or the picture cannot be
            written.
        ConfigError: The cut-off does not fit the recording's rate.
    """
    for panel in panels:
        if panel not in PANELS:
            raise UnknownNameError("panel", panel, PANELS)
    if len(recording) == 0:
        raise RecordingError("the recording has no rows: there is nothing to draw")
    if not recording.readouts:
        panels = [panel for panel in panels if panel != "readouts"]
        if not panels:
            raise RecordingError("the recording has no readouts: its controller showed none")
    plate = None if np.isnan(recording.sole_poses).all() else force_plate(recording, cutoff)
    height = _heights(recording, panels, plate)
    with picture(path, (PAGE, sum(height.values()) + 0.7), _title(recording, cutoff)) as figure:
        _compose(figure, recording, panels, height, plate)


def _title(recording: Recording, cutoff: float | None) -> str:
    rate = sample_rate(recording.t)
    about = recording.about
    parts = [recording.robot or "unknown robot", about.get("scenario", ""), about.get("contact_model", "")]
    parts += [f"on {about['ground']}" if "ground" in about else "", f"{recording.duration:.3g} s"]
    if np.isfinite(rate):
        parts.append(f"{rate:.4g} Hz")
    if np.isfinite(recording.weight):
        parts.append(f"m g = {recording.weight:.1f} N")
    if cutoff is not None:
        parts.append(f"low-pass {cutoff:g} Hz")
    return "   ·   ".join(part for part in parts if part) + "".join(f"\n{note}" for note in recording.notes)


def _heights(recording: Recording, panels: Sequence[str], plate: ForcePlate | None) -> dict[str, float]:
    """Return the height [in] of the rows that are needed: a walk's CoP has a row of its own."""
    height = {}
    long = _walk_height(recording, plate) if "cop" in panels else 0.0
    if "forces" in panels or ("cop" in panels and not long):
        height["top"] = 5.2
    if "modes" in panels:
        height["top"] = height.get("top", 0.0) + 0.9 + 0.3 * len(recording.feet)
    if long:
        height["cop"] = long
    if "torques" in panels:
        height["torques"] = 0.5 + 1.25 * -(-len(_shown_joints(recording)[0]) // 3)
    if "readouts" in panels:
        height["readouts"] = 0.5 + 1.25 * -(-len(recording.readouts) // 3)
    return height


def _walk_height(recording: Recording, plate: ForcePlate | None) -> float:
    """Return how high the CoP of a walk along x is at the width of the page [in]; 0 if it is no such walk."""
    if plate is None:
        return 0.0
    points = [plate.total_cop, *(outline for k in range(len(recording.feet)) for outline in _outlines(recording, k))]
    together = np.vstack(points)
    together = together[np.isfinite(together).all(axis=1)]
    if not len(together):
        return 0.0
    length, width = np.ptp(together, axis=0)
    return float(1.1 + PAGE * 1.15 * width / length) if length > WALK_ASPECT * width else 0.0


def _compose(
    figure: Figure, recording: Recording, panels: Sequence[str], height: dict[str, float], plate: ForcePlate | None
) -> None:
    """Put what runs over time on the left, one above the other with a common time axis; the CoP beside or below it."""
    rows = figure.subfigures(len(height), 1, height_ratios=list(height.values()), squeeze=False)[:, 0]
    place: dict[str, SubFigure] = dict(zip(height, rows, strict=True))
    if "top" in place:
        beside = "cop" in panels and "cop" not in place
        ratios = [3.0] * ("forces" in panels or "modes" in panels) + [2.0] * beside
        columns = place["top"].subfigures(1, len(ratios), width_ratios=ratios, squeeze=False)[0]
        ratios = [2.2, 1.0, 1.0] * ("forces" in panels) + [0.3 + 0.25 * len(recording.feet)] * ("modes" in panels)
        if ratios:
            axes = columns[0].subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
            if "forces" in panels:
                _draw_forces(axes[:3], recording, plate)
            if "modes" in panels:
                _draw_modes(axes[-1], recording)
            axes[-1].set_xlabel("time [s]")
            axes[-1].set_xlim(recording.t[0], recording.t[-1])
        if beside:
            _draw_cop(columns[-1], recording, plate, 0.35 * PAGE)
    if "cop" in place:
        _draw_cop(place["cop"], recording, plate, 0.9 * PAGE)
    if "torques" in place:
        _draw_torques(place["torques"], recording)
    if "readouts" in place:
        _draw_readouts(place["readouts"], recording)


def _mark_events(ax: Axes, recording: Recording) -> None:
    """Mark pushes, and the time from which the joints were damped because the robot had fallen."""
    for number, (start, end) in enumerate(recording.pushes):
        # A tenth of a second is hardly seen in a long run.
        end = max(end, start + 0.003 * recording.duration)
        ax.axvspan(start, end, color=PUSH_COLOUR, linewidth=0.0, zorder=0.5, label="" if number else "push")
    if np.isfinite(recording.gave_up_at):
        ax.axvline(recording.gave_up_at, color=LIMIT_COLOUR, linestyle=":", linewidth=1.2, label="fallen")


def _at_least(ax: Axes, span: float) -> None:
    """Widen the y axis to ``span``, so that rounding errors do not fill the picture."""
    low, high = ax.get_ylim()
    if high - low < span:
        middle = 0.5 * (low + high)
        ax.set_ylim(middle - 0.5 * span, middle + 0.5 * span)


def foot_colour(k: int) -> str:
    """Return the colour of foot ``k`` in every picture."""
    return FOOT_COLOURS[k % len(FOOT_COLOURS)]


def foot_dash(k: int) -> str | tuple[int, tuple[int, int]]:
    """Return the line style of foot ``k``: in a symmetric motion the second curve would hide the first."""
    return "-" if k % 2 == 0 else (0, (5, 3))


def _draw_forces(axes: Sequence[Axes], recording: Recording, plate: ForcePlate | None) -> None:
    # Without sole poses the axes are those of the soles, and the totals hold for level feet.
    force = plate.force if plate is not None else recording.wrench[:, :, :3]
    frame = "world" if plate is not None else "sole frames"
    for ax, i, name in zip(
        axes, (2, 0, 1), ("vertical  f_z [N]", "forward  f_x [N]", "sideways  f_y [N]"), strict=True
    ):
        for k, foot in enumerate(recording.feet):
            ax.plot(recording.t, force[:, k, i], color=foot_colour(k), linestyle=foot_dash(k), label=f"{foot} foot")
        ax.set_title(name, pad=3)
        _mark_events(ax, recording)
    total = force[:, :, 2].sum(axis=1)
    axes[0].plot(recording.t, total, color=TOTAL_COLOUR, label="all feet")
    if np.isfinite(recording.weight):
        axes[0].axhline(recording.weight, color=LIMIT_COLOUR, linestyle="--", linewidth=1.0, label="m g")
        for ax in axes:
            _at_least(ax, 0.05 * recording.weight)
        # An impact lasts a tick and would flatten all the rest; its height is written beside it.
        ceiling = 3.0 * recording.weight
        if np.nanmax(total) > ceiling:
            axes[0].set_ylim(min(0.0, float(np.nanmin(total))) - 0.05 * ceiling, ceiling)
            axes[0].text(
                recording.t[int(np.nanargmax(total))],
                ceiling,
                f" peak {np.nanmax(total):.0f} N",
                va="top",
                fontsize=8,
                color=TOTAL_COLOUR,
            )
    axes[0].legend(ncols=len(recording.feet) + 4, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    axes[0].set_title(f"ground reaction forces ({frame})\nvertical  f_z [N]", pad=3)


def _draw_cop(figure: SubFigure, recording: Recording, plate: ForcePlate | None, inches: float) -> None:
    if plate is None:
        _draw_cop_in_soles(figure, recording)
        return
    ax = figure.subplots()
    last = []
    for k, foot in enumerate(recording.feet):
        outlines = _outlines(recording, k)
        for outline in outlines:
            ax.fill(*outline.T, facecolor=foot_colour(k), alpha=0.10, edgecolor="none")
            ax.plot(*np.vstack([outline, outline[:1]]).T, color=foot_colour(k), linewidth=1.0, alpha=0.7)
        last.append(outlines[-1] if outlines else None)
        ax.plot(*plate.cop[:, k].T, color=foot_colour(k), label=f"{foot} foot", marker=".", markersize=2)
    ax.plot(*plate.total_cop.T, color=TOTAL_COLOUR, label="all feet", marker=".", markersize=2)
    ax.set_title("centre of pressure (world, from above)")
    ax.set_xlabel("x, forward [m]")
    ax.set_ylabel("y, to the left [m]")
    ax.set_aspect("equal", adjustable="datalim")
    _number_corners(ax, recording, last, inches)
    ax.locator_params(nbins=6)
    # Beside the forces there is no room next to the title.
    look: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (1.0, -0.1)}
    if inches > 0.5 * PAGE:
        look = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    ax.legend(ncols=len(recording.feet) + 1, borderaxespad=0.1, **look)


def _number_corners(ax: Axes, recording: Recording, soles: Sequence[Array | None], inches: float) -> None:
    """Number the corners of an outline of each foot (N, 2), as the names of contact modes do, where there is room.

    Args:
        inches: Width of the axes, about.
    """
    span = max(ax.dataLim.width, ax.dataLim.height, 1e-9)
    for k, outline in enumerate(soles):
        if outline is None:
            continue
        # A foot partly above a step stands on another polygon, with numbers of its own.
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
        axes[k].set_title(f"centre of pressure,\n{foot} sole frame")
        axes[k].set_xlabel("x [m]")
        axes[k].set_ylabel("y [m]")
        axes[k].set_aspect("equal", adjustable="datalim")


def _outlines(recording: Recording, k: int) -> list[Array]:
    """Return the sole of foot ``k`` in the world, (N, 2) each, in the middle of every time that it was down."""
    vertices = recording.sole_vertices[k]
    if not len(vertices):
        return []
    loaded = np.nan_to_num(recording.wrench[:, k, 2]) > 0.0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], loaded, [False]]).astype(np.int8)))
    stances = [(a + b - 1) // 2 for a, b in zip(edges[::2], edges[1::2], strict=True)] or [len(recording) - 1]
    # A chattering contact has thousands of stances in the same place.
    chosen = [
        stances[i] for i in np.unique(np.linspace(0, len(stances) - 1, min(len(stances), MAX_OUTLINES)).astype(int))
    ]
    outlines = []
    for row in chosen:
        pose = recording.sole_poses[row, k]
        if np.isfinite(pose).all():
            outlines.append(_from_above(pose, vertices))
    return outlines


def _from_above(pose: Array, vertices: Array) -> Array:
    points = np.column_stack([vertices, np.zeros(len(vertices))])
    return np.asarray((rotate(np.broadcast_to(pose[3:], (len(points), 4)), points) + pose[:3])[:, :2])


def _mode_kind(mode: int, n_vertices: int) -> tuple[str, str]:
    """Return the kind of a mode (a key of ``MODE_COLOURS``), and which one: ``3-0`` of an edge, ``2`` of a vertex.

    Modes of an unknown polygon (``n_vertices`` = 0) are faces, since they cannot be told apart.
    """
    from bipedsim.contact.modes import mode_name

    if mode <= 0:
        return "in the air", ""
    if not n_vertices:
        return "face", str(mode)
    kind, *which = mode_name(mode, False, n_vertices).removesuffix(" stick").split()
    return kind, "".join(which)


def _draw_modes(ax: Axes, recording: Recording) -> None:
    from matplotlib.patches import Patch

    shown = set()
    ends = np.append(recording.t[1:], recording.t[-1] + (recording.duration / max(1, len(recording) - 1)))
    for k in range(len(recording.feet)):
        # Modes count the vertices of what is above the ground, which may be another polygon than the sole.
        counts = np.where(recording.n_vertices[:, k] > 0, recording.n_vertices[:, k], len(recording.sole_vertices[k]))
        code = 2 * (recording.mode[:, k] + _MODES * counts) + recording.sliding[:, k]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(code)) + 1])
        lasts = np.append(starts[1:] - 1, len(code) - 1)
        for value in np.unique(code[starts]):
            n_vertices, mode = divmod(int(value) // 2 - ABSENT_MODE, _MODES)
            mode, sliding = mode + ABSENT_MODE, bool(value % 2)
            if mode == ABSENT_MODE:
                continue
            kind, which = _mode_kind(mode, n_vertices)
            shown.add((kind, sliding))
            chosen = code[starts] == value
            spans = [
                (recording.t[a], ends[b] - recording.t[a]) for a, b in zip(starts[chosen], lasts[chosen], strict=True)
            ]
            ax.broken_barh(spans, (k - 0.4, 0.8), linewidth=0.0, **_mode_look(kind, sliding))
            for start, lasting in spans if n_vertices == len(recording.sole_vertices[k]) else ():
                if which and lasting > 0.025 * recording.duration:
                    ax.text(start + 0.5 * lasting, k, which, fontsize=7, ha="center", va="center")
    ax.set_yticks(range(len(recording.feet)), [f"{foot} foot" for foot in recording.feet])
    ax.set_ylim(len(recording.feet) - 0.5, -0.5)
    ax.set_title("contact modes (numbers: corners of the sole)")
    _mark_events(ax, recording)
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


_SIDE = re.compile(r"(?:^|(?<=[_.]))(left|right|l|r|L|R)(?=[_.]|$)")


def _joint_groups(names: Sequence[str]) -> dict[str, list[int]]:
    """Return panel title -> joints: the left and the right joint of a pair share a panel."""
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        title = _SIDE.sub("", name, count=1).strip("_.").replace("__", "_")
        groups.setdefault(title or name, []).append(i)
    return groups


def _joint_colour(name: str, position: int) -> tuple[str, str]:
    """Return (colour, label) of a joint by its side."""
    side = _SIDE.search(name)
    if side is None:
        return (TOTAL_COLOUR if position == 0 else foot_colour(position)), ""
    return (foot_colour(0), "left") if side[1].lower().startswith("l") else (foot_colour(1), "right")


def _shown_joints(recording: Recording) -> tuple[dict[str, list[int]], list[str]]:
    """Return the panels of torques, as :func:`_joint_groups` does, and the titles of those that are only noise."""
    groups = _joint_groups(recording.joint_names)
    peak = np.nanmax(np.abs(recording.joint_effort), axis=0, initial=0.0)
    silent_joints = np.isfinite(recording.joint_effort).any(axis=0) & (peak < NOISE)
    silent = [title for title, joints in groups.items() if silent_joints[joints].all()]
    if len(silent) == len(groups):
        return groups, []
    return {title: joints for title, joints in groups.items() if title not in silent}, silent


def _draw_torques(figure: SubFigure, recording: Recording) -> None:
    groups, silent = _shown_joints(recording)
    axes = figure.subplots(-(-len(groups) // 3), 3, sharex=True, squeeze=False)
    left_out = f"; below {NOISE:g} N.m all the time: {', '.join(silent)}" if silent else ""
    figure.suptitle(f"joint torques [N.m]{left_out}", fontsize=9.5, fontweight="bold", x=0.01, ha="left")
    labels: dict[str, Any] = {}
    for ax, (title, joints) in zip(axes.flat, groups.items(), strict=False):
        for position, i in enumerate(joints):
            colour, label = _joint_colour(recording.joint_names[i], position)
            dash = foot_dash(1 if label == "right" else 0)
            (line,) = ax.plot(recording.t, recording.joint_effort[:, i], color=colour, linestyle=dash)
            if label:
                labels.setdefault(label, line)
        _mark_events(ax, recording)
        limit = _draw_limit(ax, recording, joints)
        _at_least(ax, 0.2)
        ax.set_title(f"{title}{limit}", fontweight="normal", pad=2, fontsize=8.5)
    _finish_grid(axes, recording, len(groups))
    if labels:
        figure.legend(list(labels.values()), list(labels), loc="upper right", ncols=len(labels))


def _finish_grid(axes: Any, recording: Recording, used: int) -> None:
    """Give the first ``used`` axes of a grid a common time axis, and hide the rest."""
    for ax in axes.flat[:used]:
        ax.set_xlim(recording.t[0], recording.t[-1])
        ax.tick_params(labelsize=7.5)
    for ax in axes.flat[used:]:
        ax.set_visible(False)
    for column in range(axes.shape[1]):
        shown = [ax for ax in axes[:, column] if ax.get_visible()]
        if shown:
            shown[-1].set_xlabel("time [s]")
            shown[-1].tick_params(labelbottom=True)


def _draw_readouts(figure: SubFigure, recording: Recording) -> None:
    axes = figure.subplots(-(-len(recording.readouts) // 3), 3, sharex=True, squeeze=False)
    figure.suptitle("readouts of the controller", fontsize=9.5, fontweight="bold", x=0.01, ha="left")
    for ax, (name, values) in zip(axes.flat, recording.readouts.items(), strict=False):
        rows = np.isfinite(values)
        ax.plot(recording.t[rows], values[rows], color=TOTAL_COLOUR)
        unit = unit_of(name)
        ax.set_title(f"{name} [{unit}]" if unit else name, fontweight="normal", pad=2, fontsize=8.5)
        _mark_events(ax, recording)
    _finish_grid(axes, recording, len(recording.readouts))


def _draw_limit(ax: Axes, recording: Recording, joints: list[int]) -> str:
    """Mark the torque limit where it would be in sight; return it as text."""
    limits = recording.effort_limit[joints]
    if not np.isfinite(limits).all():
        return ""
    limit = float(limits.min())
    effort = np.abs(recording.joint_effort[:, joints])
    peak = float(np.nanmax(effort)) if np.isfinite(effort).any() else 0.0
    if peak > 0.6 * limit:
        for value in (-limit, limit):
            ax.axhline(value, color=LIMIT_COLOUR, linestyle="--", linewidth=0.9)
    return f"   (peak {peak:.3g}, limit {limit:.3g})"
