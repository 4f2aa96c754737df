"""The figures of a run of any length, from its recording alone."""

from __future__ import annotations

from typing import Any

from bipedsim.analysis.controller import ControllerFigures
from bipedsim.analysis.plates import RunFigures
from bipedsim.recording import Recording


class RunSummary:
    """Gathers the figures of :func:`summary` and :func:`controller_figures` block by block.

    Attributes:
        notes: What a reader of the recording should know.
    """

    COLUMNS = RunFigures.COLUMNS + ControllerFigures.COLUMNS
    """What it looks at."""

    def __init__(self) -> None:
        self._parts = (RunFigures(), ControllerFigures())
        self._robot = ""
        self.notes: tuple[str, ...] = ()

    def add(self, rows: Recording) -> None:
        """Take the next rows."""
        self._robot, self.notes = rows.robot, rows.notes
        for part in self._parts:
            part.add(rows)

    def figures(self) -> dict[str, Any]:
        """Return the figures of all rows so far, with the keys of summary.json."""
        return {"robot": self._robot or None, **self._parts[0].figures(), **self._parts[1].figures()}
