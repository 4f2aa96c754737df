"""Pictures of a recording: ground reaction forces, centre of pressure, contact modes, joint torques.

matplotlib takes a second to import, so that it is imported when something is drawn.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import ForcePlate, force_plate, length_text, other_bodies, sample_rate, unit_of
from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim.view.panels import PANELS, check_panels
from bipedsim.view.plot_contact import draw_cop, draw_modes, outlines
from bipedsim.view.sheet import (
    LIMIT_COLOUR,
    PAGE,
    TOTAL_COLOUR,
    at_least,
    foot_colour,
    foot_dash,
    mark_events,
    picture,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


WALK_ASPECT = 2.5
"""Length over width, seen from above, beyond which the CoP gets the width of the page."""
_NOTE = 140
"""Letters of a note in the title that have room beside each other."""
SEEN = 3.0, 1.0, 1.0
"""How far axes of the vertical, forward and sideways force reach at most, as a share of the weight."""
BODIES_COLOUR = "#CC79A7"
MOST_OBJECTS = 6
"""Objects that are drawn over time."""
NOISE = 1e-6
"""Torque [N.m] below which joints are left out."""


def plot(recording: Recording, path: Path | str, panels: Sequence[str] = PANELS, cutoff: float | None = None) -> None:
    """Draw a recording into a picture file.

    Args:
        recording: What to draw.
        path: .png, .pdf or .svg.
        panels: Which of :data:`PANELS`, in any order; readouts and objects of which nothing was recorded are left out.
        cutoff: Low-pass of the forces and the CoP [Hz], order 5 and without delay; None draws what was recorded.

    Raises:
        UnknownNameError: No such panel.
        RecordingError: The recording is empty or lacks all panels that were asked for, or the picture cannot be
            written.
        ConfigError: The cut-off does not fit the recording's rate.
    """
    check_panels(panels)
    if len(recording) == 0:
        raise RecordingError("the recording has no rows: there is nothing to draw")
    lacking = {
        "readouts": None if recording.readouts else "the recording has no readouts: its controller showed none",
        "objects": None if recording.objects else "the recording has no objects: there were none beside the robot",
    }
    said = [str(lacking[panel]) for panel in panels if lacking.get(panel)]
    panels = [panel for panel in panels if not lacking.get(panel)]
    if said and not panels:
        raise RecordingError("; ".join(said))
    plate = None if np.isnan(recording.sole_poses).all() else force_plate(recording, cutoff)
    height = _heights(recording, panels, plate)
    with picture(Path(path), (PAGE, sum(height.values()) + 0.7), _title(recording, cutoff)) as figure:
        _compose(figure, recording, panels, height, plate)


def _title(recording: Recording, cutoff: float | None) -> str:
    about = recording.about
    rate = float(about.get("rate") or sample_rate(recording.t))
    parts = [recording.robot or "unknown robot", about.get("scenario", ""), about.get("contact_model", "")]
    parts += [f"on {about['ground']}" if "ground" in about else "", length_text(recording.duration)]
    if np.isfinite(rate):
        parts.append(f"{rate:.4g} Hz")
    if np.isfinite(recording.weight):
        parts.append(f"m g = {recording.weight:.1f} N")
    if cutoff is not None:
        parts.append(f"low-pass {cutoff:g} Hz")
    notes = (textwrap.fill(note, _NOTE) for note in recording.notes)
    return "\n".join(["   ·   ".join(part for part in parts if part), *notes])


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
    if "objects" in panels:
        height["objects"] = 2.0
    return height


def _walk_height(recording: Recording, plate: ForcePlate | None) -> float:
    """Return how high the CoP of a walk along x is at the width of the page [in]; 0 if it is no such walk."""
    if plate is None:
        return 0.0
    points = [plate.total_cop, *(outline for k in range(len(recording.feet)) for outline in outlines(recording, k))]
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
                draw_modes(axes[-1], recording)
            axes[-1].set(xlabel="time [s]", xlim=(recording.t[0], recording.t[-1]))
        if beside:
            draw_cop(columns[-1], recording, plate, 0.35 * PAGE)
    if "cop" in place:
        draw_cop(place["cop"], recording, plate, 0.9 * PAGE)
    if "torques" in place:
        _draw_torques(place["torques"], recording)
    if "readouts" in place:
        _draw_readouts(place["readouts"], recording)
    if "objects" in place:
        _draw_objects(place["objects"], recording)


def _cut_peaks(ax: Axes, t: Array, force: Array, limit: float) -> None:
    """End the axis at ``limit`` [N] to either side where a force (n, m) goes beyond, and write down how far.

    An impact lasts a tick and would flatten all the rest.
    """
    low, high = float(np.nanmin(force, initial=0.0)), float(np.nanmax(force, initial=0.0))
    bottom, top = ax.get_ylim()
    over, under = high > limit, low < -limit
    if not (over or under):
        return
    bottom = -limit if under else max(bottom, low - 0.05 * limit)
    ax.set_ylim(bottom, limit if over else min(top, high + 0.05 * limit))
    for cut, peak, edge, side in ((over, high, limit, "top"), (under, low, -limit, "bottom")):
        if not cut:
            continue
        at = float(t[np.nanargmax((force == peak).any(axis=1))])
        late = at > t[0] + 0.8 * (t[-1] - t[0])
        ax.text(
            at,
            edge,
            f" cut: peak {peak:.0f} N at {at:.2f} s ",
            ha="right" if late else "left",
            va=side,
            fontsize=8,
            color=TOTAL_COLOUR,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
            zorder=5.0,
        )


def _draw_forces(axes: Sequence[Axes], recording: Recording, plate: ForcePlate | None) -> None:
    # Without sole poses the axes are those of the soles, and the totals hold for level feet.
    force = plate.force if plate is not None else recording.wrench[:, :, :3]
    frame = "world" if plate is not None else "sole frames"
    bodies = None if np.isnan(recording.base_contact).all() else other_bodies(recording)
    for ax, i, name in zip(
        axes, (2, 0, 1), ("vertical  f_z [N]", "forward  f_x [N]", "sideways  f_y [N]"), strict=True
    ):
        for k, foot in enumerate(recording.feet):
            ax.plot(recording.t, force[:, k, i], color=foot_colour(k), linestyle=foot_dash(k), label=f"{foot} foot")
        if bodies is not None:
            ax.plot(recording.t, bodies[:, i], color=BODIES_COLOUR, label="other bodies")
        ax.set_title(name, pad=3)
        mark_events(ax, recording)
    total = force[:, :, 2].sum(axis=1)
    if bodies is not None:
        total = total + np.nan_to_num(bodies[:, 2])
    axes[0].plot(recording.t, total, color=TOTAL_COLOUR, label="all feet" if bodies is None else "all")
    if np.isfinite(recording.weight):
        axes[0].axhline(recording.weight, color=LIMIT_COLOUR, linestyle="--", linewidth=1.0, label="m g")
        for ax in axes:
            at_least(ax, 0.05 * recording.weight)
        shown = force if bodies is None else np.concatenate([force, np.nan_to_num(bodies)[:, None]], axis=1)
        upward = np.concatenate([shown[..., 2], total[:, None]], axis=1)
        for ax, values, share in zip(axes, (upward, shown[..., 0], shown[..., 1]), SEEN, strict=True):
            _cut_peaks(ax, recording.t, values, share * recording.weight)
    # One row beside the title has room for four.
    n = len(axes[0].get_legend_handles_labels()[0])
    columns = n if n <= 4 else -(-n // 2)
    axes[0].legend(ncols=columns, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    axes[0].set_title(f"ground reaction forces ({frame})\nvertical  f_z [N]", pad=3)


_SIDE = re.compile(r"(?:^|(?<=[_.]))(left|right|Left|Right|LEFT|RIGHT|l|r|L|R)(?=[_.]|$)")


def _joint_groups(names: Sequence[str]) -> dict[str, list[int]]:
    """Return panel title -> joints: the left and the right joint of a pair share a panel."""
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        title = _SIDE.sub("", name, count=1).strip("_.").replace("__", "_")
        groups.setdefault(title or name, []).append(i)
    return groups


def side_of(name: str) -> int | None:
    """Return 0 for a joint whose name says left, 1 for right, None for neither."""
    side = _SIDE.search(name)
    return None if side is None else "lr".index(side[1][0].lower())


def _joint_colour(name: str, position: int) -> tuple[str, str]:
    """Return (colour, label) of a joint by its side."""
    side = side_of(name)
    if side is None:
        return (TOTAL_COLOUR if position == 0 else foot_colour(position)), ""
    return foot_colour(side), ("left", "right")[side]


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
            stopped = np.where(np.nan_to_num(recording.stop_torque[:, i]) != 0.0, 0.02 + 0.05 * position, np.nan)
            if np.isfinite(stopped).any():
                # Along the lower edge, as impacts on stops would flatten all the rest.
                (line,) = ax.plot(recording.t, stopped, color=colour, linewidth=3.0, transform=ax.get_xaxis_transform())
                labels.setdefault("at its stop", line)
        mark_events(ax, recording)
        limit = _draw_limit(ax, recording, joints)
        at_least(ax, 0.2)
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
        mark_events(ax, recording)
    _finish_grid(axes, recording, len(recording.readouts))


def _draw_objects(figure: SubFigure, recording: Recording) -> None:
    """Draw how far each object is, how high and how fast."""
    axes = figure.subplots(1, 3, sharex=True, squeeze=False)
    figure.suptitle("objects", fontsize=9.5, fontweight="bold", x=0.01, ha="left")
    shown = dict(list(recording.objects.items())[:MOST_OBJECTS])
    for name, states in shown.items():
        speed = np.linalg.norm(states[:, 7:10], axis=1)
        for ax, values in zip(axes.flat, (states[:, 0], states[:, 2], speed), strict=True):
            ax.plot(recording.t, values, label=name)
    for ax, title in zip(axes.flat, ("x, forward [m]", "height z [m]", "speed [m/s]"), strict=True):
        ax.set_title(title, fontweight="normal", pad=2, fontsize=8.5)
        mark_events(ax, recording)
    for ax in axes.flat[1:]:
        at_least(ax, 0.1)
    handles, names = axes[0, 0].get_legend_handles_labels()
    more = len(recording.objects) - len(shown)
    names[-1] += f" (and {more} more)" if more else ""
    figure.legend(handles, names, loc="upper right", ncols=len(names))
    _finish_grid(axes, recording, 3)


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
