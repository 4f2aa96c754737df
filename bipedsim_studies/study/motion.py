"""Compute metrics of the motion in a recording, for batteries and studies, in addition to those of the summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bipedsim.analysis import roll_pitch_yaw
from bipedsim.numerics import Array
from bipedsim.recording import Recording
from bipedsim.runs import Velocity

SETTLED = 2.0
"""Settling time after a velocity command [s]. Only the following part of the command's interval is evaluated."""
LEAST = 0.1
"""Minimum speed for the normalisation of velocity errors [m/s, rad/s]."""
NAMES = ("travel_x_m", "travel_y_m", "turned_rad", "work_J", "cost_of_transport", "velocity_error", "turn_error")


def motion_figures(recording: Recording, commanded: Sequence[Velocity]) -> dict[str, Any]:
    """Return the metrics :data:`NAMES` of a run, None for those that do not exist.

    * ``travel_x_m``, ``travel_y_m``: final position of the base relative to its initial pose.
    * ``turned_rad``: total change of the yaw angle, including complete turns.
    * ``work_J``: positive work of all joints, the integral of max(tau q', 0).
    * ``cost_of_transport``: this work divided by m g times the path length, if the path has at least half a metre.
    * ``velocity_error``, ``turn_error``: largest difference between mean and commanded velocity in the heading frame.
      The mean is over the interval of one command without its first 2 s. The difference is divided by the command, or
      by 0.1 if that is larger.

    Args:
        recording: The run.
        commanded: Schedule of the velocity commands.
    """
    result: dict[str, Any] = dict.fromkeys(NAMES)
    known = np.isfinite(recording.base_pose).all(axis=1)
    if known.sum() < 2:
        return result
    t, pose = recording.t[known], recording.base_pose[known]
    yaw = roll_pitch_yaw(pose[:, 3:])[:, 2]
    velocity = _heading_velocity(t, pose[:, :2], yaw)
    c, s = np.cos(yaw[0]), np.sin(yaw[0])
    displacement = pose[-1, :2] - pose[0, :2]
    result["travel_x_m"] = float(c * displacement[0] + s * displacement[1])
    result["travel_y_m"] = float(c * displacement[1] - s * displacement[0])
    result["turned_rad"] = float(yaw[-1] - yaw[0])
    power = np.maximum(recording.joint_effort * recording.joint_velocity, 0.0)[known].sum(axis=1)
    result["work_J"] = float(np.trapezoid(np.nan_to_num(power), t))
    path_length = float(np.hypot(*np.diff(pose[::100, :2], axis=0).T).sum())
    if path_length >= 0.5:
        result["cost_of_transport"] = result["work_J"] / (recording.weight * path_length)
    steps = sorted(commanded, key=lambda step: step.at)
    errors = []
    ends = [step.at for step in steps[1:]] + [float(t[-1])] * bool(steps)
    for step, end in zip(steps, ends, strict=True):
        evaluated = (t >= step.at + SETTLED) & (t <= end)
        if evaluated.sum() < 2 or t[evaluated][-1] - t[evaluated][0] < 0.5 * SETTLED:
            continue
        mean_velocity = velocity[evaluated].mean(axis=0)
        deviation = float(np.hypot(mean_velocity[0] - step.vx, mean_velocity[1] - step.vy))
        speed = max(float(np.hypot(step.vx, step.vy)), LEAST)
        turn_deviation = abs(float(mean_velocity[2]) - step.wz)
        errors.append((deviation / speed, turn_deviation / max(abs(step.wz), LEAST)))
    if errors:
        result["velocity_error"], result["turn_error"] = (max(column) for column in zip(*errors, strict=True))
    return result


def _heading_velocity(t: Array, position: Array, yaw: Array) -> Array:
    """Return velocities (n, 3) forwards, to the left and about the vertical, by finite differences."""
    rate = np.gradient(np.column_stack([position, yaw]), t, axis=0)
    c, s = np.cos(yaw), np.sin(yaw)
    return np.column_stack([c * rate[:, 0] + s * rate[:, 1], c * rate[:, 1] - s * rate[:, 0], rate[:, 2]])
