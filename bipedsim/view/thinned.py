"""Thin long runs to the rows that a plot shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bipedsim.analysis import sample_rate
from bipedsim.numerics import Array, Flags, Indices, Integers, entry
from bipedsim.recording import Recording, joined, without_plan
from bipedsim.view.panels import USUAL_PANELS

MOST = 1 << 15
"""Maximum number of rows of a run that is not thinned."""
INTERVALS = 1200
"""Maximum number of equal time intervals of a longer run."""

_OF_PANEL = {
    "forces": ("wrench", "ankle_wrench", "sole_poses", "base_contact", "link_contact"),
    "cop": ("wrench", "ankle_wrench", "sole_poses", "cop", "n_vertices"),
    "modes": ("mode", "sliding", "n_vertices"),
    "torques": ("joint_effort", "joint_command", "stop_torque"),
    "sensors": ("imus", "contact_switches"),
    "joints": ("joint_position", "setpoint"),
    "velocities": ("joint_velocity", "setpoint"),
    "com": ("joint_position", "base_pose", "sole_poses", "cop_world"),
    "base": ("base_pose", "odometry"),
    "tracking": ("joint_position", "setpoint", "joint_effort", "joint_command", "base_pose", "odometry"),
    "monitors": ("friction_used", "cop_margin", "impact", "joint_command"),
}
"""Columns that a panel shows or uses."""
_CURVES = (
    *("joint_effort", "cop", "joint_command", "joint_position", "joint_velocity", "setpoint", "odometry", "cop_world"),
    *("friction_used", "cop_margin", "impact", "imus", "contact_switches"),
)
"""Columns of which all values are curves."""


def columns_of(panels: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that these panels need."""
    # The extremes of forces and the changes of modes are kept for all panels.
    always = _OF_PANEL["forces"][:3] + _OF_PANEL["modes"]
    return tuple(dict.fromkeys(always + tuple(name for panel in panels for name in _OF_PANEL.get(panel, ()))))


class Thinned:
    """Collects a run block by block; in each time interval of a long run it keeps only the rows with extremes.

    It keeps the first and the last row of each block, and the first row of each contact mode. It also keeps the rows
    where a displayed value has its minimum or maximum. These values are curves, telemetry signals, coordinates of the
    base, and coordinates and velocities of objects. The kept rows are unchanged.

    Args:
        panels: Panels to be drawn.
    """

    def __init__(self, panels: Sequence[str] = USUAL_PANELS) -> None:
        self._columns = columns_of(panels)
        self._blocks: list[Recording] = []
        self._rows = 0
        self._span = 0.0
        self._begin = 0.0
        self._rate = float("nan")

    def add(self, rows: Recording) -> None:
        """Process the next rows."""
        if not self._blocks:
            self._begin, self._rate = float(rows.t[0]) if len(rows) else 0.0, sample_rate(rows.t)
        self._rows += len(rows)
        self._blocks.append(rows.rows(self._extremes(rows)) if self._span else rows)
        while sum(map(len, self._blocks)) > MOST:
            # Thinning again is lossless: extremes of longer intervals are extremes of the present intervals too.
            self._span = max(1.5 * self._span, (float(rows.t[-1]) - self._begin) / INTERVALS)
            whole = joined(self._blocks)
            self._blocks = [whole.rows(self._extremes(whole))]

    def recording(self) -> Recording:
        """Return the kept rows; ``notes`` reports if rows were omitted."""
        out = joined(self._blocks)
        out.about = {**out.about, "rate": f"{self._rate:.4g}"} if np.isfinite(self._rate) else out.about
        if len(out) < self._rows:
            note = f"drawn from {len(out)} of {self._rows} rows; in every {self._span:.3g} s the extremes of all curves"
            out.notes = (*out.notes, note)
        return out

    def _extremes(self, rows: Recording) -> Indices:
        n = len(rows)
        curves = [rows.wrench[:, :, :3].reshape(n, -1), rows.wrench[:, :, 2].sum(axis=1)[:, None]]
        curves += [getattr(rows, name).reshape(n, -1) for name in _CURVES if name in self._columns]
        curves += [rows.base_pose[:, :2], *(v[:, None] for v in without_plan(rows.readouts).values())]
        curves += [states[:, [0, 2, 7, 8, 9]] for states in rows.objects.values()]
        codes = (rows.mode * 4096 + rows.n_vertices) * 2 + rows.sliding
        interval = np.floor((rows.t - self._begin) / self._span).astype(np.int64)
        keep = np.zeros(n, dtype=np.bool_)
        keep[[0, -1]] = True
        _keep_extremes(np.hstack(curves), codes, interval, keep)
        return np.flatnonzero(keep)


@entry
def _keep_extremes(table: Array, codes: Integers, interval: Integers, keep: Flags) -> None:
    """Mark in ``keep`` (n,) the first row of each extreme of ``table`` and of each value of ``codes`` per interval."""
    first = 0
    while first < len(interval):
        last = first + 1
        while last < len(interval) and interval[last] == interval[first]:
            last += 1
        for k in range(table.shape[1]):
            low, high, lowest, highest = np.inf, -np.inf, first, first
            for i in range(first, last):
                # Comparisons with NaN are false, so that unknown values are never extremes.
                if table[i, k] < low:
                    low, lowest = table[i, k], i
                if table[i, k] > high:
                    high, highest = table[i, k], i
            keep[lowest] = keep[highest] = True
        for k in range(codes.shape[1]):
            for i in range(first, last):
                new = True
                for j in range(i - 1, first - 1, -1):
                    if codes[j, k] == codes[i, k]:
                        new = False
                        break
                if new:
                    keep[i] = True
        first = last
