"""Metrics of the free objects of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from bipedsim.numerics import Array
from bipedsim.recording import Recording


def object_figures(recording: Recording) -> dict[str, Any]:
    """Return ``objects``, by name; empty if there were none.

    * end_m: position of its origin in the last row, x, y and z in the world;
    * farthest_m: largest distance from its position in the first row;
    * fastest_m_s: largest speed of its origin in any row [m/s].
    """
    figures = ObjectFigures()
    figures.add(recording)
    return figures.figures()


class ObjectFigures:
    """Accumulate the metrics of :func:`object_figures` over the blocks of a run."""

    def __init__(self) -> None:
        self._first: dict[str, Array] = {}
        self._found: dict[str, dict[str, Any]] = {}

    def add(self, rows: Recording) -> None:
        """Process the next rows."""
        for name, states in rows.objects.items():
            valid = states[np.isfinite(states[:, :3]).all(axis=1)]
            if not len(valid):
                continue
            place = valid[:, :3]
            first = self._first.setdefault(name, place[0].copy())
            far = float(np.linalg.norm(place - first, axis=1).max())
            # The norm of a velocity does not depend on the axes.
            fast = float(np.nanmax(np.linalg.norm(valid[:, 7:10], axis=1), initial=0.0))
            before = self._found.get(name, {"farthest_m": 0.0, "fastest_m_s": 0.0})
            self._found[name] = {
                "end_m": dict(zip("xyz", map(float, place[-1]), strict=True)),
                "farthest_m": max(far, before["farthest_m"]),
                "fastest_m_s": max(fast, before["fastest_m_s"]),
            }

    def figures(self) -> dict[str, Any]:
        """Return the metrics of all rows so far."""
        return {"objects": dict(self._found)} if self._found else {}
