"""Long runs, thinned to the rows that a picture shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bipedsim.analysis import sample_rate
from bipedsim.numerics import Array, Flags, Indices, Integers, entry
from bipedsim.recording import Recording, joined, without_plan
from bipedsim.view.panels import USUAL_PANELS

MOST = 1 << 15
"""Rows up to which a run is shown as it is."""
STRETCHES = 1200
"""Of a longer run at most so many stretches of equal time are told apart."""

_OF_PANEL = {
    "forces": ("wrench", "ankle_wrench", "sole_poses", "base_contact", "link_contact"),
    "cop": ("wrench", "ankle_wrench", "sole_poses", "cop", "n_vertices"),
    "modes": ("mode", "sliding", "n_vertices"),
    "torques": ("joint_effort", "joint_command", "stop_torque"),
    "joints": ("joint_position", "setpoint"),
    "velocities": ("joint_velocity", "setpoint"),
    "com": ("joint_position", "base_pose", "sole_poses", "cop_world"),
    "base": ("base_pose", "odometry"),
    "tracking": ("joint_position", "setpoint", "joint_effort", "joint_command", "base_pose", "odometry"),
    "monitors": ("friction_used", "cop_margin", "impact", "joint_command"),
}
"""The columns that a panel shows, or is made of."""
_CURVES = (
    *("joint_effort", "cop", "joint_command", "joint_position", "joint_velocity", "setpoint", "odometry", "cop_world"),
    *("friction_used", "cop_margin", "impact"),
)
"""Those of which all numbers are curves."""


def columns_of(panels: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that these panels need."""
    # Extremes of forces, and where modes change, are kept for all of them.
    always = _OF_PANEL["forces"][:3] + _OF_PANEL["modes"]
    return tuple(dict.fromkeys(always + tuple(name for panel in panels for name in _OF_PANEL.get(panel, ()))))


class Thinned:
    """Gathers a run block by block and keeps, once it is long, of every stretch of time the rows with extremes.

    These are the first and the last row of what came; where a number that the panels show, a readout, a coordinate of
    the base or of an object is least or largest, or its velocity; and where a contact mode is met first. They are rows
    as they were.

    Args:
        panels: What will be drawn.
    """

    def __init__(self, panels: Sequence[str] = USUAL_PANELS) -> None:
        self._columns = columns_of(panels)
        self._kept: list[Recording] = []
        self._rows = 0
        self._span = 0.0
        self._begin = 0.0
        self._rate = float("nan")

    def add(self, rows: Recording) -> None:
        """Take the next rows."""
        if not self._kept:
            self._begin, self._rate = float(rows.t[0]) if len(rows) else 0.0, sample_rate(rows.t)
        self._rows += len(rows)
        self._kept.append(rows.rows(self._extremes(rows)) if self._span else rows)
        while sum(map(len, self._kept)) > MOST:
            # Extremes of extremes are extremes: nothing is lost that stretches of this length would have kept.
            self._span = max(1.5 * self._span, (float(rows.t[-1]) - self._begin) / STRETCHES)
            whole = joined(self._kept)
            self._kept = [whole.rows(self._extremes(whole))]

    def recording(self) -> Recording:
        """Return what was kept; ``notes`` say if rows were left out."""
        out = joined(self._kept)
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
        stretch = np.floor((rows.t - self._begin) / self._span).astype(np.int64)
        keep = np.zeros(n, dtype=np.bool_)
        keep[[0, -1]] = True
        _keep_extremes(np.hstack(curves), codes, stretch, keep)
        return np.flatnonzero(keep)


@entry
def _keep_extremes(table: Array, codes: Integers, stretch: Integers, keep: Flags) -> None:
    """Mark in ``keep`` (n,), stretch by stretch, the first row with each extreme of ``table`` and each of ``codes``."""
    first = 0
    while first < len(stretch):
        last = first + 1
        while last < len(stretch) and stretch[last] == stretch[first]:
            last += 1
        for k in range(table.shape[1]):
            low, high, least, largest = np.inf, -np.inf, first, first
            for i in range(first, last):
                # Neither holds of what is unknown.
                if table[i, k] < low:
                    low, least = table[i, k], i
                if table[i, k] > high:
                    high, largest = table[i, k], i
            keep[least] = keep[largest] = True
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
