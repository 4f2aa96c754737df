"""Plot the whole robot over time: centre of mass, base, tracking, telemetry, objects and monitors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.analysis import ComMotion, estimate_errors, resolution_of, roll_pitch_yaw, unit_of
from bipedsim.numerics import Array
from bipedsim.recording import Recording, without_plan
from bipedsim.view.palette import LIMIT_COLOUR, TOTAL_COLOUR, foot_colour
from bipedsim.view.plot_joints import across, rows_of, wanted_positions
from bipedsim.view.sheet import at_least, finish_grid, foot_dash, heading, mark_events, small_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


MOST_OBJECTS = 6
"""Maximum number of objects that are plotted."""
WANTED = "_wanted"
"""Suffix of a telemetry signal that is the setpoint of the signal without it."""
_JUDGES = ("_error", "_margin", "sliding_variable")
_WANTED_LOOK: Any = {"color": LIMIT_COLOUR, "linestyle": (0, (4, 2)), "linewidth": 0.9}
_ESTIMATE_LOOK: Any = {"color": foot_colour(1), "linestyle": (0, (4, 2)), "linewidth": 0.9}
_AXIS_LOOKS: Any = {
    "x": {"color": foot_colour(0)},
    "y": {"color": foot_colour(1), "linestyle": (0, (4, 2))},
    "z": {"color": TOTAL_COLOUR, "linewidth": 0.9},
}
_SAME = 1e-9
"""Relative change up to which a telemetry signal counts as constant, because of rounding."""
_DECADES = 12.0
"""Length of the bars of monitors, in decades below the permitted value."""


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves in the same axes.

    Attributes:
        title: Title with the unit.
        curves: Name to values (n,), NaN without a value.
        looks: Line properties of curves that differ from the default.
        limit: Value of a limit line.
        span: Minimum length of the y axis.
    """

    title: str
    curves: Mapping[str, Array]
    looks: Mapping[str, Any]
    limit: float | None = None
    span: float = 0.0


def chart_height(charts: int) -> float:
    """Return the height [in] of a number of charts."""
    return 0.5 + 1.25 * rows_of(charts)


def draw_charts(figure: SubFigure, recording: Recording, title: str, charts: Sequence[Chart]) -> None:
    """Draw charts over time, three or four next to each other."""
    heading(figure, title)
    axes = figure.subplots(rows_of(len(charts)), across(len(charts)), sharex=True, squeeze=False)
    labels: dict[str, Any] = {}
    for ax, chart in zip(axes.flat, charts, strict=False):
        for name, values in chart.curves.items():
            rows = np.isfinite(values)
            look = chart.looks.get(name, {"color": TOTAL_COLOUR})
            # Gaps are shown if most values are known; otherwise the few values are connected.
            shown = slice(None) if rows.mean() > 0.5 else rows
            (line,) = ax.plot(recording.t[shown], values[shown], label=name, **look)
            if len(chart.curves) > 1:
                labels.setdefault(name, line)
        if chart.limit is not None:
            ax.axhline(chart.limit, color=LIMIT_COLOUR, linestyle="--", linewidth=0.9)
        at_least(ax, chart.span)
        small_title(ax, chart.title)
        mark_events(ax, recording)
    finish_grid(axes, recording, len(charts))
    if labels:
        figure.legend(list(labels.values()), list(labels), loc="upper right", ncols=len(labels))


def shown_readouts(recording: Recording, constants: bool) -> tuple[dict[str, Array], list[str]]:
    """Select the telemetry signals to plot; signals that are constant up to their resolution are omitted.

    Args:
        recording: The run.
        constants: Whether to plot constant signals too.

    Returns:
        The signals, and texts with the values of the omitted ones.
    """
    shown, left_out = {}, []
    for name, values in without_plan(recording.readouts).items():
        known = values[np.isfinite(values)]
        if constants or (len(known) and np.ptp(known) > max(_SAME * np.abs(known).max(), resolution_of(name))):
            shown[name] = values
        else:
            left_out.append(f"{name} = {known[0]:.4g} {unit_of(name)}".rstrip() if len(known) else f"{name} unknown")
    return shown, left_out


def draw_readouts(figure: SubFigure, recording: Recording, constants: bool) -> None:
    """Draw the controller's telemetry, see :func:`shown_readouts`."""
    shown, left_out = shown_readouts(recording, constants)
    charts = [
        Chart(_with_unit(name), {name: values}, {}, span=10.0 * resolution_of(name)) for name, values in shown.items()
    ]
    same = f"; constant: {', '.join(left_out)}" if left_out else ""
    draw_charts(figure, recording, f"readouts{same}", charts)


def _with_unit(name: str) -> str:
    unit = unit_of(name)
    return f"{name} [{unit}]" if unit else name


def draw_objects(figure: SubFigure, recording: Recording) -> None:
    """Draw the position ahead, the height and the speed of each object."""
    axes = figure.subplots(1, 3, sharex=True, squeeze=False)
    heading(figure, "objects")
    shown = dict(list(recording.objects.items())[:MOST_OBJECTS])
    for name, states in shown.items():
        speed = np.linalg.norm(states[:, 7:10], axis=1)
        for ax, values in zip(axes.flat, (states[:, 0], states[:, 2], speed), strict=True):
            ax.plot(recording.t, values, label=name)
    for ax, title in zip(axes.flat, ("x, forward [m]", "height z [m]", "speed [m/s]"), strict=True):
        small_title(ax, title)
        mark_events(ax, recording)
    for ax in axes.flat[1:]:
        at_least(ax, 0.1)
    # The events of the panel have labels, too.
    handles, labels = axes[0, 0].get_legend_handles_labels()
    of_label = dict(zip(labels, handles, strict=True))
    names = list(shown)
    more = len(recording.objects) - len(shown)
    names[-1] += f" (and {more} more)" if more else ""
    figure.legend([of_label[name] for name in shown], names, loc="upper right", ncols=len(names))
    finish_grid(axes, recording, 3)


def draw_com(figure: SubFigure, recording: Recording, com: ComMotion | str) -> None:
    """Draw the centre of mass with the capture point and the centre of pressure.

    Args:
        figure, recording: Target and data.
        com: Motion of the centre of mass in each row, or the reason why it is unknown.
    """
    if isinstance(com, str):
        heading(figure, "centre of mass")
        figure.text(0.02, 0.5, f"not drawn: {com}", fontsize=9, color="#777777", wrap=True)
        return
    looks = {"capture point": {"color": foot_colour(0)}, "CoP": {"color": foot_colour(1), "linewidth": 0.8}}
    charts = []
    for axis, name in enumerate(("x, forward [m]", "y, to the left [m]")):
        curves = {"CoM": com.position[:, axis], "capture point": com.capture[:, axis]}
        charts.append(Chart(name, {**curves, "CoP": recording.cop_world[:, axis]}, looks, span=0.01))
    charts.append(Chart("height z [m]", {"CoM": com.position[:, 2]}, {}, span=0.01))
    draw_charts(figure, recording, "centre of mass (world)", charts)


def base_charts(recording: Recording) -> list[Chart]:
    """Return position and attitude of the base: ground truth, and the controller's estimate."""
    looks = {"estimate": _ESTIMATE_LOOK}
    poses = {"true": recording.base_pose, "estimate": recording.odometry}
    poses = {name: pose for name, pose in poses.items() if np.isfinite(pose).any()}
    charts = []
    for axis, name in enumerate(("x, forward [m]", "y, to the left [m]", "height z [m]")):
        charts.append(Chart(name, {source: pose[:, axis] for source, pose in poses.items()}, looks, span=0.01))
    angles = {source: roll_pitch_yaw(pose[:, 3:]) for source, pose in poses.items()}
    for axis, name in enumerate(("roll [deg]", "pitch [deg]", "yaw [deg]")):
        curves = {source: np.rad2deg(values[:, axis]) for source, values in angles.items()}
        charts.append(Chart(name, curves, looks, span=0.5))
    return charts


def sensor_charts(recording: Recording) -> list[Chart]:
    """Return spin and specific force of each additional IMU, and the state of each contact switch."""
    charts = []
    for i, name in enumerate(recording.imu_names):
        for quantity, first in (("angular velocity [rad/s]", 4), ("specific force [m/s^2]", 7)):
            curves = {axis: recording.imus[:, i, first + a] for a, axis in enumerate("xyz")}
            charts.append(Chart(f"{name}, {quantity}", curves, _AXIS_LOOKS, span=0.01))
    for i, name in enumerate(recording.switch_names):
        closed = recording.contact_switches[:, i]
        charts.append(Chart(f"{name} (1: closed)", {name: closed}, {name: {"drawstyle": "steps-post"}}, span=1.0))
    return charts


def tracking_charts(recording: Recording) -> list[Chart]:
    """Return charts of setpoints and actual values, from telemetry, drive setpoints and the controller's estimate."""
    charts, readouts = [], recording.readouts
    for name, values in readouts.items():
        if name + WANTED in readouts:
            wanted = {"wanted": readouts[name + WANTED]}
            charts.append(Chart(_with_unit(name), {"was": values, **wanted}, {"wanted": _WANTED_LOOK}))
        elif name.endswith(_JUDGES):
            limit = 0.0 if name.endswith("_margin") else None
            charts.append(Chart(_with_unit(name), {name: values}, {}, limit))
    wanted_position = wanted_positions(recording).values
    if np.isfinite(wanted_position).any():
        error = np.abs(recording.joint_position - wanted_position)
        charts.append(Chart("joints, largest position error [rad]", {"largest error": _largest(error)}, {}))
    torque_error = _largest(np.abs(recording.joint_effort - recording.joint_command))
    if np.nanmax(torque_error, initial=0.0) > 0.0:
        charts.append(Chart("torques, applied minus commanded [N.m]", {"largest": torque_error}, {}))
    distance, angle = estimate_errors(recording)
    if np.isfinite(distance).any():
        charts.append(Chart("base, error of the estimate [mm]", {"distance": 1e3 * distance}, {}, span=0.01))
        charts.append(Chart("base, error of the estimate [deg]", {"angle": np.rad2deg(angle)}, {}, span=0.001))
    return charts


def _largest(values: Array) -> Array:
    """Return the maximum of each row (n,), NaN for a row without values."""
    known = np.isfinite(values)
    return np.where(known.any(axis=1), np.where(known, values, 0.0).max(axis=1, initial=0.0), np.nan)


def monitor_charts(recording: Recording) -> list[Chart]:
    """Return charts of the monitored quantities: friction, CoP margins, impacts and torques."""
    feet = list(enumerate(recording.feet))
    looks = {f"{foot} foot": {"color": foot_colour(k), "linestyle": foot_dash(k)} for k, foot in feet}

    def each(values: Array) -> dict[str, Array]:
        return {f"{foot} foot": values[:, k] for k, foot in feet}

    charts = []
    if np.isfinite(recording.friction_used).any():
        charts.append(Chart("friction used (1: slips)", each(recording.friction_used), looks, 1.0, 0.1))
    if np.isfinite(recording.cop_margin).any():
        charts.append(Chart("CoP to the edge of its sole [mm]", each(1e3 * recording.cop_margin), looks, 0.0, 1.0))
    if np.nanmax(np.abs(recording.impact[:, :, 2]), initial=0.0) > 0.0:
        charts.append(Chart("impacts, upwards [N.s]", each(recording.impact[:, :, 2]), looks))
    limits = recording.effort_limit
    if np.isfinite(limits).any() and np.isfinite(recording.joint_command).any():
        share = _largest(np.abs(recording.joint_command) / limits)
        charts.append(Chart("largest torque over its limit", {"largest torque over its limit": share}, {}, 1.0, 0.1))
    return charts


def monitors_height(recording: Recording) -> float:
    """Return the height [in] of :func:`draw_monitors`."""
    charts, bars = len(monitor_charts(recording)), len(_bars(physics_of(recording)))
    return (chart_height(charts) if charts else 0.0) + (_bars_height(bars) if bars else 0.0)


def draw_monitors(figure: SubFigure, recording: Recording) -> None:
    """Draw the monitored quantities over time, and below them the worst values of the physics monitors."""
    physics = physics_of(recording)
    charts, bars = monitor_charts(recording), len(_bars(physics))
    note = "" if physics else "; the recording lacks the results of the physics monitors"
    heights = [chart_height(len(charts))] * bool(charts) + [_bars_height(bars)] * bool(bars)
    parts = list(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    if charts:
        draw_charts(parts[0], recording, f"monitors{note}", charts)
    if bars:
        _draw_physics(parts[-1].subplots(), physics)


def physics_of(recording: Recording) -> Mapping[str, Mapping[str, Any]]:
    """Return the results of the physics monitors; empty if they were not recorded."""
    return (recording.statistics or {}).get("physics") or {}


def _bars(physics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the monitors with a worst and a permitted value."""
    return [name for name, figure in physics.items() if figure.get("worst") is not None and figure.get("allowed")]


def _bars_height(bars: int) -> float:
    # The height of a bar must be sufficient for its label.
    return 0.6 + 0.15 * bars


def _draw_physics(ax: Axes, physics: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the worst value of each monitor relative to the permitted value, on a logarithmic axis."""
    names = _bars(physics)
    shares = [physics[name]["worst"] / physics[name]["allowed"] for name in names]
    drawn = [max(0.0, _DECADES + np.log10(share)) if share > 0.0 else 0.0 for share in shares]
    colours = [LIMIT_COLOUR if share > 1.0 else foot_colour(2) for share in shares]
    ax.barh(range(len(names)), drawn, color=colours, height=0.7)
    ax.axvline(_DECADES, color=LIMIT_COLOUR, linestyle="--", linewidth=0.9)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0, labelsize=7.5)
    ticks = np.arange(0.0, _DECADES + 1.0, 4.0)
    ax.set_xticks(ticks, [f"1e{tick - _DECADES:.0f}" if tick < _DECADES else "1" for tick in ticks])
    ax.set(ylim=(len(names) - 0.5, -0.5), xlim=(0.0, max([_DECADES, *drawn]) + 0.5), xlabel="")
    small_title(ax, "physics monitors: worst value / limit, logarithmic")
