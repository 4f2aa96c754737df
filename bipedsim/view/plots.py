"""Plot a recording as panels below each other.

Import of matplotlib takes a second, so the functions import it when they draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import (
    ComMotion,
    ForcePlate,
    com_motion,
    cop_under_soles,
    force_plate,
    joint_limits,
    length_text,
    other_bodies,
    robot_of,
    sample_rate,
)
from bipedsim.errors import BipedSimError, RecordingError
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim.view.palette import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR, foot_colour
from bipedsim.view.panels import USUAL_PANELS, panel_names
from bipedsim.view.plot_body import (
    base_charts,
    chart_height,
    draw_charts,
    draw_com,
    draw_monitors,
    draw_objects,
    draw_readouts,
    monitor_charts,
    monitors_height,
    physics_of,
    sensor_charts,
    shown_readouts,
    tracking_charts,
)
from bipedsim.view.plot_contact import draw_cop, draw_modes, outlines
from bipedsim.view.plot_joints import (
    draw_positions,
    draw_torques,
    draw_velocities,
    height_of,
    joint_groups,
    shown_torques,
    wanted_positions,
)
from bipedsim.view.sheet import DOT, PAGE, at_least, foot_dash, mark_events, note_above, picture
from bipedsim.view.time_axes import time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


WALK_ASPECT = 2.5
"""Ratio of length to width from above, beyond which the CoP panel gets the full width."""
SEEN = 3.0, 1.0, 1.0
"""Maximum range of the axes of vertical, forward and sideways force, in body weights."""
BODIES_COLOUR = FOOT_COLOURS[3]


def plot(
    recording: Recording,
    path: Path | str,
    panels: Sequence[str] = USUAL_PANELS,
    cutoff: float | None = None,
    constants: bool = False,
) -> dict[str, str]:
    """Plot a recording; return the omitted panels with the reason of each.

    Args:
        recording: The run.
        path: .png, .pdf, .svg or .html.
        panels: Some of :data:`PANELS`, in any order, or ``all``; panels without recorded data are omitted.
        cutoff: Cut-off frequency of a zero-phase low-pass filter of order 5 for forces and CoP [Hz]; None disables it.
        constants: Whether to plot constant telemetry signals too; otherwise their values are in the title.

    Raises:
        UnknownNameError: A panel does not exist.
        RecordingError: The recording is empty or lacks all selected panels, or the plot cannot be written.
        ConfigError: The cut-off frequency does not suit the recording's rate.
    """
    page = PanelPlot(recording, panels, cutoff, constants)
    with picture(Path(path), page.size, page.title) as figure:
        page.draw(figure)
    return page.lacking


class PanelPlot:
    """Panels of a recording, for any figure.

    Args:
        recording, panels, cutoff, constants: See :func:`plot`.

    Attributes:
        panels: Panels that are drawn.
        lacking: Omitted panels and the reason of each.
        size: Width and height [in].
        title: Title of the plot.

    Raises:
        UnknownNameError: A panel does not exist.
        RecordingError: The recording is empty or lacks all selected panels.
        ConfigError: The cut-off frequency does not suit the recording's rate.
    """

    def __init__(
        self,
        recording: Recording,
        panels: Sequence[str] = USUAL_PANELS,
        cutoff: float | None = None,
        constants: bool = False,
    ) -> None:
        if len(recording) == 0:
            raise RecordingError("no rows: there is nothing to draw", "the recording")
        selected = panel_names(panels)
        self._drawn = {name: _PANELS[name] for name in selected if name in _PANELS}
        if constants and "readouts" in self._drawn:
            self._drawn["readouts"] = _readouts(constants)
        reasons = {name: panel.lacks(recording) for name, panel in self._drawn.items()}
        self.lacking = {name: f"the recording has {reason}" for name, reason in reasons.items() if reason}
        self.panels = tuple(name for name in selected if name not in self.lacking)
        if not self.panels:
            raise RecordingError(
                "; ".join(self.lacking.values()) or "none was selected", f"panels {', '.join(self.lacking)}"
            )
        self._recording = recording
        self._plate = None if np.isnan(recording.sole_poses).all() else force_plate(recording, cutoff)
        self._heights = _heights(recording, self.panels, self._plate, self._drawn)
        self.size = (PAGE, sum(self._heights.values()) + 0.7)
        self.title = _title(recording, cutoff)

    def draw(self, figure: Figure | SubFigure) -> None:
        """Draw all panels."""
        _compose(figure, self._recording, self.panels, self._heights, self._plate, self._drawn)


@dataclass(frozen=True)
class _Panel:
    """Panel over the full width of the plot.

    Attributes:
        height: Returns the height [in].
        draw: Draws the panel.
        lacks: Returns the data that the recording lacks for the panel, or an empty text.
    """

    height: Callable[[Recording], float]
    draw: Callable[[SubFigure, Recording], None]
    lacks: Callable[[Recording], str] = lambda _recording: ""


def _com_or_why(recording: Recording) -> ComMotion | str:
    try:
        return com_motion(recording, robot_of(recording))
    except BipedSimError as error:
        return str(error)


def _draw_joints(figure: SubFigure, recording: Recording) -> None:
    draw_positions(figure, recording, joint_limits(recording, "position_lower", "position_upper"))


def _draw_velocities(figure: SubFigure, recording: Recording) -> None:
    draw_velocities(figure, recording, joint_limits(recording, "velocity_limit", "velocity_limit"))


def _lacks(column: str, missing: str) -> Callable[[Recording], str]:
    return lambda recording: "" if np.isfinite(getattr(recording, column)).any() else missing


def _readouts(constants: bool) -> _Panel:
    """Return the panel of all telemetry signals, or of those that are not constant."""

    def lacks(recording: Recording) -> str:
        shown, left_out = shown_readouts(recording, constants)
        if shown:
            return ""
        if not left_out:
            return "no readouts: the controller has none"
        return f"no readouts that change: {', '.join(left_out)}"

    return _Panel(
        lambda recording: chart_height(len(shown_readouts(recording, constants)[0])),
        lambda figure, recording: draw_readouts(figure, recording, constants),
        lacks,
    )


_PANELS = {
    "torques": _Panel(lambda recording: height_of(recording, shown_torques(recording)[0]), draw_torques),
    "readouts": _readouts(constants=False),
    "objects": _Panel(
        lambda _recording: 2.0,
        draw_objects,
        lambda recording: "" if recording.objects else "no objects: the run had none",
    ),
    "sensors": _Panel(
        lambda recording: chart_height(len(sensor_charts(recording))),
        lambda figure, recording: _charts(figure, recording, "additional sensors", sensor_charts(recording)),
        lambda recording: (
            ""
            if np.isfinite(recording.imus).any() or np.isfinite(recording.contact_switches).any()
            else "no additional IMUs or contact switches"
        ),
    ),
    "joints": _Panel(
        lambda recording: height_of(recording, joint_groups(recording.joint_names), wanted_positions(recording)),
        _draw_joints,
        _lacks("joint_position", "no joint positions"),
    ),
    "velocities": _Panel(
        lambda recording: height_of(recording, joint_groups(recording.joint_names)),
        _draw_velocities,
        _lacks("joint_velocity", "no joint velocities"),
    ),
    "com": _Panel(
        lambda _recording: 2.3,
        lambda figure, recording: draw_com(figure, recording, _com_or_why(recording)),
        lambda recording: "" if len(recording) > 1 else "a single row has no velocity of the centre of mass",
    ),
    "base": _Panel(
        lambda recording: chart_height(len(base_charts(recording))),
        lambda figure, recording: _charts(figure, recording, "base (world)", base_charts(recording)),
        lambda recording: (
            "" if np.isfinite(np.hstack([recording.base_pose, recording.odometry])).any() else "no pose of the base"
        ),
    ),
    "tracking": _Panel(
        lambda recording: chart_height(len(tracking_charts(recording))),
        lambda figure, recording: _charts(
            figure, recording, "tracking: measured and desired values", tracking_charts(recording)
        ),
        lambda recording: (
            "" if tracking_charts(recording) else "no setpoints, no estimate, no readouts of errors or margins"
        ),
    ),
    "monitors": _Panel(
        monitors_height,
        draw_monitors,
        lambda recording: (
            "" if monitor_charts(recording) or physics_of(recording) else "no contacts, so the monitors have no data"
        ),
    ),
}
"""Panels in rows of their own; forces, CoP and modes are arranged together."""


def _charts(figure: SubFigure, recording: Recording, title: str, charts: Sequence[Any]) -> None:
    draw_charts(figure, recording, title, charts)


def _title(recording: Recording, cutoff: float | None) -> str:
    about = recording.about
    rate = float(about.get("rate") or sample_rate(recording.t))
    # A third-party bag may lack these entries.
    words = {"scenario": "scenario", "controller": "controller", "contact_model": "contact model", "ground": "on"}
    named = [f"{word} {about[key]}" for key, word in words.items() if about.get(key)]
    parts = [recording.robot or "unknown robot", *named]
    parts.append(length_text(recording.duration))
    if np.isfinite(rate):
        parts.append(f"{rate:.4g} Hz")
    if np.isfinite(recording.weight):
        parts.append(f"m g = {recording.weight:.1f} N")
    if cutoff is not None:
        parts.append(f"low-pass {cutoff:g} Hz")
    return "\n".join([DOT.join(parts), *recording.notes])


def _heights(
    recording: Recording, panels: Sequence[str], plate: ForcePlate | None, drawn: Mapping[str, _Panel]
) -> dict[str, float]:
    """Return the height [in] of each row; the CoP of a walk has its own row."""
    height = {}
    long = _walk_height(recording, plate) if "cop" in panels else 0.0
    if "forces" in panels or ("cop" in panels and not long):
        height["top"] = 5.2
    if "modes" in panels:
        height["top"] = height.get("top", 0.0) + 0.9 + 0.3 * len(recording.feet)
    if long:
        height["cop"] = long
    for name in panels:
        if name in drawn:
            height[name] = drawn[name].height(recording)
    return height


def _walk_height(recording: Recording, plate: ForcePlate | None) -> float:
    """Return the height of the CoP panel at full width [in] for a walk along x; 0 for other motions."""
    if plate is None:
        return 0.0
    _, total_cop = cop_under_soles(plate, recording.sole_poses)
    sole_points = [outline for k in range(len(recording.feet)) for outline in outlines(recording, k)]
    points = np.vstack([total_cop[:, :2], *sole_points])
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return 0.0
    length, width = np.ptp(points, axis=0)
    return float(1.1 + PAGE * 1.15 * width / length) if length > WALK_ASPECT * width else 0.0


def _compose(
    figure: Figure | SubFigure,
    recording: Recording,
    panels: Sequence[str],
    height: dict[str, float],
    plate: ForcePlate | None,
    drawn: Mapping[str, _Panel],
) -> None:
    """Arrange the panels: time axes on the left below each other, the CoP next to or below them."""
    rows = figure.subfigures(len(height), 1, height_ratios=list(height.values()), squeeze=False)[:, 0]
    row_of: dict[str, SubFigure] = dict(zip(height, rows, strict=True))
    if "top" in row_of:
        has_side_cop = "cop" in panels and "cop" not in row_of
        ratios = [3.0] * ("forces" in panels or "modes" in panels) + [2.0] * has_side_cop
        columns = row_of["top"].subfigures(1, len(ratios), width_ratios=ratios, squeeze=False)[0]
        ratios = [2.2, 1.0, 1.0] * ("forces" in panels) + [0.3 + 0.25 * len(recording.feet)] * ("modes" in panels)
        if ratios:
            axes = columns[0].subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
            if "forces" in panels:
                _draw_forces(axes[:3], recording, plate)
            if "modes" in panels:
                draw_modes(axes[-1], recording)
            axes[-1].set_xlim(recording.t[0], recording.t[-1])
            time_axis(*axes)
        if has_side_cop:
            draw_cop(columns[-1], recording, plate, 0.35 * PAGE)
    if "cop" in row_of:
        draw_cop(row_of["cop"], recording, plate, 0.9 * PAGE)
    for name in panels:
        if name in drawn:
            drawn[name].draw(row_of[name], recording)


def _cut_peaks(ax: Axes, t: Array, force: Array, limit: float) -> None:
    """Limit the axis to ``limit`` [N] on either side if a force (n, m) exceeds it, and write the peaks above.

    The force of an impact lasts one tick and would dominate the scale.
    """
    low, high = float(np.nanmin(force, initial=0.0)), float(np.nanmax(force, initial=0.0))
    bottom, top = ax.get_ylim()
    over, under = high > limit, low < -limit
    if not (over or under):
        return
    bottom = -limit if under else max(bottom, low - 0.05 * limit)
    ax.set_ylim(bottom, limit if over else min(top, high + 0.05 * limit))
    at = {peak: t[np.nanargmax((force == peak).any(axis=1))] for cut, peak in ((over, high), (under, low)) if cut}
    note_above(ax, "\n".join(f"clipped: peak {peak:.0f} N at {when:.2f} s" for peak, when in at.items()))


def _draw_forces(axes: Sequence[Axes], recording: Recording, plate: ForcePlate | None) -> None:
    # Without sole poses, the forces are in sole axes, and the total is valid only for level feet.
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
    # One row next to the title has space for four entries.
    n = len(axes[0].get_legend_handles_labels()[0])
    columns = n if n <= 4 else -(-n // 2)
    axes[0].legend(ncols=columns, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    axes[0].set_title(f"ground reaction forces ({frame})\nvertical  f_z [N]", pad=3)
    if np.isfinite(recording.weight):
        shown = force if bodies is None else np.concatenate([force, np.nan_to_num(bodies)[:, None]], axis=1)
        upward = np.concatenate([shown[..., 2], total[:, None]], axis=1)
        for ax, values, share in zip(axes, (upward, shown[..., 0], shown[..., 1]), SEEN, strict=True):
            _cut_peaks(ax, recording.t, values, share * recording.weight)
