"""How a run moved: figures of a recording that a battery or a study asks for beside those of its summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bipedsim.analysis import roll_pitch_yaw
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim.runs import Velocity

SETTLED = 2.0
"""A velocity command has been answered after this time [s]; what comes later in its stretch is judged."""
LEAST = 0.1
"""Errors are shares of the commanded speed, or of this one where it is lower [m/s, rad/s]."""
NAMES = ("travel_x_m", "travel_y_m", "turned_rad", "work_J", "cost_of_transport", "velocity_error", "turn_error")


def motion_figures(recording: Recording, commanded: Sequence[Velocity]) -> dict[str, Any]:
    """Return the figures :data:`NAMES` of a run, None where it has none.

    * ``travel_x_m``, ``travel_y_m``: where the base ended, from where and how it stood at the start.
    * ``turned_rad``: how far it turned, whole turns counted.
    * ``work_J``: positive work of all joints, the integral of max(tau q', 0).
    * ``cost_of_transport``: that over m g times the length of the way, of who went half a metre or more.
    * ``velocity_error``, ``turn_error``: the largest difference of mean and commanded velocity in the heading frame
      over a stretch with one command, from 2 s after its begin, as a share of the command (of 0.1 where that is less).

    Args:
        recording: The run.
        commanded: The schedule of velocity commands.
    """
    result: dict[str, Any] = dict.fromkeys(NAMES)
    known = np.isfinite(recording.base_pose).all(axis=1)
    if known.sum() < 2:
        return result
    t, pose = recording.t[known], recording.base_pose[known]
    yaw = roll_pitch_yaw(pose[:, 3:])[:, 2]
    velocity = _heading_velocity(t, pose[:, :2], yaw)
    c, s = np.cos(yaw[0]), np.sin(yaw[0])
    moved = pose[-1, :2] - pose[0, :2]
    result["travel_x_m"], result["travel_y_m"] = float(c * moved[0] + s * moved[1]), float(c * moved[1] - s * moved[0])
    result["turned_rad"] = float(yaw[-1] - yaw[0])
    power = np.maximum(recording.joint_effort * recording.joint_velocity, 0.0)[known].sum(axis=1)
    result["work_J"] = float(np.trapezoid(np.nan_to_num(power), t))
    way = float(np.hypot(*np.diff(pose[::100, :2], axis=0).T).sum())
    if way >= 0.5:
        result["cost_of_transport"] = result["work_J"] / (recording.weight * way)
    steps = sorted(commanded, key=lambda step: step.at)
    errors = []
    ends = [step.at for step in steps[1:]] + [float(t[-1])] * bool(steps)
    for step, end in zip(steps, ends, strict=True):
        judged = (t >= step.at + SETTLED) & (t <= end)
        if judged.sum() < 2 or t[judged][-1] - t[judged][0] < 0.5 * SETTLED:
            continue
        seen = velocity[judged].mean(axis=0)
        off = float(np.hypot(seen[0] - step.vx, seen[1] - step.vy)) / max(float(np.hypot(step.vx, step.vy)), LEAST)
        errors.append((off, abs(float(seen[2]) - step.wz) / max(abs(step.wz), LEAST)))
    if errors:
        result["velocity_error"], result["turn_error"] = (max(column) for column in zip(*errors, strict=True))
    return result


def _heading_velocity(t: Array, position: Array, yaw: Array) -> Array:
    """Return velocities (n, 3) ahead, to the left and turning, by differences."""
    rate = np.gradient(np.column_stack([position, yaw]), t, axis=0)
    c, s = np.cos(yaw), np.sin(yaw)
    return np.column_stack([c * rate[:, 0] + s * rate[:, 1], c * rate[:, 1] - s * rate[:, 0], rate[:, 2]])
