"""Long runs, thinned to the rows that a picture shows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bipedsim.analysis import sample_rate
from bipedsim.numerics import Indices
from bipedsim.recording import Recording, joined

MOST = 1 << 17
"""Rows up to which a run is shown as it is."""
STRETCHES = 1200
"""Of a longer run at most so many stretches of equal time are told apart."""


class Thinned:
    """Gathers a run block by block and keeps, once it is long, of every stretch of time the rows with extremes.

    These are the first and the last row of what came; where a force, a torque, a readout or a coordinate of a centre of
    pressure or of the base is least or largest; and where a contact mode is met first. They are rows as they were.
    """

    COLUMNS = ("wrench", "ankle_wrench", "cop", "mode", "sliding", "n_vertices", "joint_effort", "sole_poses")
    """What a picture shows."""

    def __init__(self) -> None:
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
        curves = [rows.wrench[:, :, :3].reshape(n, -1), rows.wrench[:, :, 2].sum(axis=1)[:, None], rows.joint_effort]
        curves += [rows.cop.reshape(n, -1), rows.base_pose[:, :2], *(v[:, None] for v in rows.readouts.values())]
        table = np.hstack(curves)
        unknown = np.isnan(table)
        low, high = np.where(unknown, np.inf, table), np.where(unknown, -np.inf, table)
        codes = (rows.mode * 4096 + rows.n_vertices) * 2 + rows.sliding
        stretch = np.floor((rows.t - self._begin) / self._span)
        edges = [0, *(np.flatnonzero(np.diff(stretch)) + 1), n]
        chosen = [np.array([0, n - 1])]
        for first, last in pairwise(edges):
            here = [low[first:last].argmin(axis=0), high[first:last].argmax(axis=0)]
            here += [np.unique(codes[first:last, k], return_index=True)[1] for k in range(codes.shape[1])]
            chosen.append(first + np.concatenate(here))
        return np.unique(np.concatenate(chosen))
