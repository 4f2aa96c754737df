"""Metrics of the controller of a recording: its readouts, its estimate of the base, and when it was stopped."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from bipedsim.analysis.controller_stop import ControllerStop
from bipedsim.config import ParameterChange
from bipedsim.numerics import Array
from bipedsim.recording import Recording, schema, without_plan


def controller_figures(recording: Recording) -> dict[str, Any]:
    """Return the metrics of the controller of a run; missing metrics are None.

    * gave_up_at_s: time at which the controller was stopped because the robot had fallen or the controller failed;
      gave_up_why, gave_up_kind: the reason, and its kind;
    * base_position_error_m: largest position error of the estimated base. Both positions refer to the first row that
      has both, because the estimate's origin is free. Its drift counts;
    * base_orientation_error_rad: largest angle between the estimated and the true attitude;
    * readouts: minimum and maximum by name;
    * parameter_changes: ``at`` [s], ``name`` and new ``value`` of each parameter that changed during the run, and its
      owner ``of``, ``controller`` or ``drives``.
    """
    figures = ControllerFigures()
    figures.add(recording)
    return figures.figures()


class ControllerFigures:
    """Accumulate the metrics of :func:`controller_figures` over the blocks of a run."""

    COLUMNS = ("odometry", "base_pose")
    """Columns of the recording that are read."""

    def __init__(self) -> None:
        self._stop: ControllerStop | None = None
        self._first: tuple[Array, Array] | None = None
        self._apart: float | None = None
        self._turned: float | None = None
        self._readouts: dict[str, dict[str, float]] = {}
        self._changes: dict[ParameterChange, None] = {}

    def add(self, rows: Recording) -> None:
        """Process the next rows."""
        self._stop = self._stop or ControllerStop.recorded(rows)
        self._changes |= dict.fromkeys(rows.changes)
        for name, values in without_plan(rows.readouts).items():
            if not np.isnan(values).all():
                span = self._readouts.setdefault(name, {"min": np.inf, "max": -np.inf})
                span["min"] = min(span["min"], float(np.nanmin(values)))
                span["max"] = max(span["max"], float(np.nanmax(values)))
        complete = np.isfinite(rows.odometry).all(axis=1) & np.isfinite(rows.base_pose).all(axis=1)
        if not complete.any():
            return
        estimated, true = rows.odometry[complete], rows.base_pose[complete]
        self._first = self._first or (estimated[0, :3].copy(), true[0, :3].copy())
        apart, turned = _errors(estimated, true, *self._first)
        self._apart = max(self._apart or 0.0, float(apart.max()))
        self._turned = max(self._turned or 0.0, float(turned.max()))

    def figures(self) -> dict[str, Any]:
        """Return the metrics of all rows so far."""
        return {
            **(dict.fromkeys(schema.STOPPED) if self._stop is None else self._stop.figures()),
            "base_position_error_m": self._apart,
            "base_orientation_error_rad": self._turned,
            "readouts": self._readouts,
            "parameter_changes": [asdict(change) for change in self._changes] or None,
        }


def estimate_errors(recording: Recording) -> tuple[Array, Array]:
    """Return the position error [m] and attitude error [rad] of the estimated base, (n,) each.

    Positions refer to the first row that has both. The errors are NaN where a row lacks one of them.
    """
    apart, turned = np.full((2, len(recording)), np.nan)
    complete = np.isfinite(recording.odometry).all(axis=1) & np.isfinite(recording.base_pose).all(axis=1)
    if complete.any():
        estimated, true = recording.odometry[complete], recording.base_pose[complete]
        apart[complete], turned[complete] = _errors(estimated, true, estimated[0, :3], true[0, :3])
    return apart, turned


def _errors(estimated: Array, true: Array, estimated_at: Array, true_at: Array) -> tuple[Array, Array]:
    """Return distance [m] and angle [rad] (m,) between poses (m, 7), with positions relative to the given origins."""
    apart = (estimated[:, :3] - estimated_at) - (true[:, :3] - true_at)
    (tv, tw), (ev, ew) = ((poses[:, 3:6], poses[:, 6:]) for poses in (true, estimated))
    axis, cosine = tw * ev - ew * tv - np.cross(tv, ev), tw[:, 0] * ew[:, 0] + (tv * ev).sum(axis=1)
    turned = 2.0 * np.arctan2(np.linalg.norm(axis, axis=1), np.abs(cosine))
    return np.linalg.norm(apart, axis=1), turned
