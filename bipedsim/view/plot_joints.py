"""Plot joint positions, velocities and torques over time, with setpoints and limits.

The left and the right joint of a pair share axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bipedsim.model import SIDES, split_side
from bipedsim.numerics import Array
from bipedsim.recording import COLUMNS, Recording
from bipedsim.view.palette import LIMIT_COLOUR, TOTAL_COLOUR, foot_colour
from bipedsim.view.sheet import at_least, finish_grid, foot_dash, heading, mark_events, small_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


_ACROSS = 3
AT_LIMIT = "at its joint limit"
"""Label of the markers of joints at a position limit."""
NOISE = 1e-6
"""Maximum torque [N.m] of joints that are omitted."""
IN_SIGHT = 0.6
"""Fraction of a limit that must be reached for the limit to be drawn."""
NEAR = 0.05
"""Distance [rad, m] below which a position limit is drawn in any case."""
_SETPOINT = {label.removeprefix("setpoint_"): i for i, label in enumerate(COLUMNS["setpoint"].labels)}
_WANTED: Any = {"color": "#666666", "linewidth": 0.7, "linestyle": (0, (2, 1.5)), "zorder": 3.0}


def joint_groups(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the joints of each panel by title; a left and a right joint share a panel, the left one first."""
    titles = [split_side(name)[1] for name in names]
    sides = [split_side(name)[0] for name in names]
    groups: dict[str, list[int]] = {}
    for i, (name, title) in enumerate(zip(names, titles, strict=True)):
        pair = [sides[j] for j, other in enumerate(titles) if other == title]
        groups.setdefault(title if sorted(pair) == list(SIDES) else name, []).append(i)
    return {title: sorted(joints, key=lambda i: sides[i]) for title, joints in groups.items()}


def joint_look(name: str, joints: Sequence[int]) -> tuple[str, Any, str]:
    """Return colour, line style and label of a joint that shares its axes with ``joints``."""
    side = split_side(name)[0] if len(joints) > 1 else ""
    if not side:
        return TOTAL_COLOUR, "-", ""
    return foot_colour(SIDES.index(side)), foot_dash(SIDES.index(side)), side


@dataclass(frozen=True, eq=False)
class JointSetpoints:
    """Setpoints of the joints in each row of a recording.

    Attributes:
        name: Name in the legend.
        values: (n, nu), NaN without a setpoint.
        error: Whether the tracking error is drawn below.
    """

    name: str
    values: Array
    error: bool = False

    def of(self, joints: Sequence[int]) -> bool:
        """Return whether there are setpoints for these joints."""
        return bool(np.isfinite(self.values[:, joints]).any())


def wanted_positions(recording: Recording) -> JointSetpoints:
    """Return the position setpoints of the drives."""
    return JointSetpoints("wanted", recording.setpoint[:, :, _SETPOINT["position"]], error=True)


def _wanted_velocities(recording: Recording) -> JointSetpoints:
    return JointSetpoints("wanted", recording.setpoint[:, :, _SETPOINT["velocity"]])


def _commanded(recording: Recording) -> JointSetpoints:
    """Return the commanded torques of the joints whose measured torque differs."""
    command, effort = recording.joint_command, recording.joint_effort
    other = (np.abs(command - effort) > NOISE).any(axis=0)
    return JointSetpoints("commanded", np.where(other, command, np.nan))


def shown_torques(recording: Recording) -> tuple[dict[str, list[int]], list[str]]:
    """Return the panels of torques, as :func:`joint_groups` does, and the titles of panels with only noise."""
    groups = joint_groups(recording.joint_names)
    peak = np.nanmax(np.abs(recording.joint_effort), axis=0, initial=0.0)
    silent_joints = np.isfinite(recording.joint_effort).any(axis=0) & (peak < NOISE)
    silent = [title for title, joints in groups.items() if silent_joints[joints].all()]
    if len(silent) == len(groups):
        return groups, []
    return {title: joints for title, joints in groups.items() if title not in silent}, silent


def across(count: int) -> int:
    """Return the number of axes per row: one more than usual if the last row would otherwise contain a single one."""
    return _ACROSS + (count > _ACROSS and count % _ACROSS == 1 and count % (_ACROSS + 1) != 1)


def rows_of(count: int) -> int:
    """Return the number of rows for ``count`` axes."""
    return -(-count // across(count))


def height_of(recording: Recording, groups: dict[str, list[int]], wanted: JointSetpoints | None = None) -> float:
    """Return the height [in] of the axes of these joints."""
    error = wanted is not None and wanted.error and wanted.of(range(len(recording.joint_names)))
    return 0.5 + (1.9 if error else 1.25) * rows_of(len(groups))


def draw_positions(figure: SubFigure, recording: Recording, limits: tuple[Array, Array] | None) -> None:
    """Draw positions with their setpoints, and the tracking error below.

    Args:
        figure, recording: Target and data.
        limits: Lower and upper limits, (nu,) each [rad]; None if unknown.
    """
    wanted = wanted_positions(recording)
    none = "" if wanted.of(range(len(recording.joint_names))) else "; torque commands, so no desired position"
    heading(figure, f"joint positions [rad; m of sliding joints]{none}")
    _draw(figure, recording, joint_groups(recording.joint_names), recording.joint_position, wanted, limits)


def draw_velocities(figure: SubFigure, recording: Recording, limits: tuple[Array, Array] | None) -> None:
    """Draw velocities with their setpoints; see :func:`draw_positions`."""
    heading(figure, "joint velocities [rad/s; m/s of sliding joints]")
    groups = joint_groups(recording.joint_names)
    _draw(figure, recording, groups, recording.joint_velocity, _wanted_velocities(recording), limits)


def draw_torques(figure: SubFigure, recording: Recording) -> None:
    """Draw applied torques, commanded torques where they differ, and limits."""
    groups, silent = shown_torques(recording)
    left_out = f"; below {NOISE:g} N.m all the time: {', '.join(silent)}" if silent else ""
    heading(figure, f"joint torques [N.m]{left_out}")
    limit = recording.effort_limit

    def mark_joint_limits(ax: Axes, i: int, position: int, colour: str, labels: dict[str, Any]) -> None:
        at_limit = np.nan_to_num(recording.stop_torque[:, i]) != 0.0
        if at_limit.any():
            # The markers are widened, because a marker of one or a few ticks would be invisible.
            around = np.ones(3 + 2 * int(0.0015 * len(at_limit)))
            wide = np.convolve(at_limit, around)[len(around) // 2 :][: len(at_limit)] > 0.0
            along = np.where(wide, 0.02 + 0.05 * position, np.nan)
            # The markers are at the lower edge, because impacts at joint limits would dominate the scale.
            (line,) = ax.plot(recording.t, along, color=colour, linewidth=3.0, transform=ax.get_xaxis_transform())
            line.set_label(AT_LIMIT)
            labels.setdefault(AT_LIMIT, line)

    effort = recording.joint_effort
    axes = _draw(figure, recording, groups, effort, _commanded(recording), (-limit, limit), mark_joint_limits)
    for ax, (title, joints) in zip(axes, groups.items(), strict=True):
        at_least(ax, 0.2)
        limit_torque = float(limit[joints].min())
        if np.isfinite(limit_torque):
            peak = float(np.nanmax(np.abs(effort[:, joints]), initial=0.0))
            small_title(ax, title, f"peak {peak:.3g}, limit {limit_torque:.3g}")


def _draw(
    figure: SubFigure,
    recording: Recording,
    groups: dict[str, list[int]],
    values: Array,
    wanted: JointSetpoints,
    limits: tuple[Array, Array] | None,
    more: Callable[[Axes, int, int, str, dict[str, Any]], None] | None = None,
) -> list[Axes]:
    """Draw ``values`` (n, nu) of each group over time, with its joints in the same axes; return the axes."""
    errors = wanted.error and wanted.of(range(values.shape[1]))
    rows, columns, each = rows_of(len(groups)), across(len(groups)), 2 if errors else 1
    axes = figure.subplots(rows * each, columns, sharex=True, squeeze=False, height_ratios=[1.9, 1.0][:each] * rows)
    upper, lower = axes[::each], axes[1::each] if errors else axes[:0]
    labels: dict[str, Any] = {}
    for number, (title, joints) in enumerate(groups.items()):
        ax = upper.flat[number]
        for position, i in enumerate(joints):
            name = recording.joint_names[i]
            colour, dash, side = joint_look(name, joints)
            (line,) = ax.plot(recording.t, values[:, i], color=colour, linestyle=dash, label=name)
            if side:
                labels.setdefault(side, line)
            if wanted.of([i]):
                (line,) = ax.plot(recording.t, wanted.values[:, i], label=f"{name} {wanted.name}", **_WANTED)
                labels.setdefault(wanted.name, line)
            if more is not None:
                more(ax, i, position, colour, labels)
            if errors:
                error = values[:, i] - wanted.values[:, i]
                lower.flat[number].plot(
                    recording.t, error, color=colour, linestyle=dash, linewidth=0.8, label=f"{name} error"
                )
        if limits is not None:
            _mark_limits(ax, values[:, joints], (limits[0][joints], limits[1][joints]))
        small_title(ax, title)
        if errors:
            small_title(lower.flat[number], "position - wanted")
            at_least(lower.flat[number], 1e-4)
        at_least(ax, 1e-3)
    for ax in axes.flat:
        if ax.lines:
            mark_events(ax, recording)
    if errors:
        finish_pairs(axes, recording, len(groups))
    else:
        finish_grid(axes, recording, len(groups))
    if labels:
        figure.legend(list(labels.values()), list(labels), loc="upper right", ncols=len(labels))
    return list(upper.flat[: len(groups)])


def finish_pairs(axes: Any, recording: Recording, used: int) -> None:
    """Finish a grid whose rows alternate between values and errors, with ``used`` axes of each."""
    for half in (axes[::2], axes[1::2]):
        finish_grid(half, recording, used)
    for ax in axes[::2].flat:
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)


def _mark_limits(ax: Axes, values: Array, limits: tuple[Array, Array]) -> None:
    """Draw the lower and the upper limit (k,) of ``values`` (n, k) if the values come near to them."""
    if not np.isfinite(values).any():
        return
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    for bound, reached in ((float(limits[0].max()), low), (float(limits[1].min()), high)):
        if not np.isfinite(bound):
            continue
        past = reached / bound > IN_SIGHT if bound else True
        if (past and abs(bound) > NEAR) or abs(reached - bound) < NEAR:
            ax.axhline(bound, color=LIMIT_COLOUR, linestyle="--", linewidth=0.9)
