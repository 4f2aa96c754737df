"""Metrics of a run of any length, from its recording alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bipedsim.analysis.controller import ControllerFigures
from bipedsim.analysis.controller_stop import ControllerStop
from bipedsim.analysis.ending import with_stop
from bipedsim.analysis.fall import OUTCOME
from bipedsim.analysis.objects import ObjectFigures
from bipedsim.analysis.plates import RunFigures
from bipedsim.recording import Recording, schema

_UNCOUNTED = (
    "the bag lacks the statistics of the simulator, because it was killed or the recorder ended first. Falls, missed "
    "commands and the results of the physics monitors are unknown"
)
COUNTED = (
    *("robot", "duration_s", "rate_hz", "real_time_factor", "ticks", "overruns", "missed_commands", "commands_dropped"),
    *("commands_dropped_by_kind", "commands_clipped", "command_silences_s", "command_silences_wall_s"),
    *("command_silences_ticks", "command_topics", "commands_received", "pushes_dropped_by_kind", "warnings"),
)
"""Keys that a summary copies from the simulator, before all others."""
EXACT = (
    *("state_changes", "unresolved_steps", "round_trip_us", "lateness_us", "clock", "contact_model", "physics"),
    *OUTCOME,
    *schema.STOPPED,
)
"""Keys from the simulator that follow after the metrics; they count every physics step, a bag only control ticks."""

OF_ONE_PROCESS = ("foot_drift_m", "penetration_m", "faults", "commands_lost")
"""Keys of a run without ROS, in which robot and ground are available."""


def with_statistics(figures: Mapping[str, Any], statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of a simulated run: its metrics, and the statistics of the simulator."""
    result = {key: statistics.get(key) for key in COUNTED}
    result |= {key: value for key, value in figures.items() if key not in result}
    result |= {key: statistics[key] for key in OF_ONE_PROCESS if key in statistics}
    return result | {key: statistics.get(key, result.get(key)) for key in EXACT}


class RunSummary:
    """Accumulate the metrics of :func:`summary`, :func:`controller_figures` and :func:`object_figures` by block.

    If the recording contains statistics of the simulator, they complete the metrics.

    Args:
        whole: Whether the blocks cover the whole run; otherwise the statistics do not apply.

    Attributes:
        notes: Remarks on the recording for readers.
    """

    COLUMNS = RunFigures.COLUMNS + ControllerFigures.COLUMNS
    """Columns of the recording that are read."""

    def __init__(self, whole: bool = True) -> None:
        self._whole = whole
        self._parts = (RunFigures(), ControllerFigures(), ObjectFigures())
        self._robot = ""
        self._statistics: Mapping[str, Any] | None = {}
        self.notes: tuple[str, ...] = ()

    def add(self, rows: Recording) -> None:
        """Process the next rows."""
        self._robot, self.notes, self._statistics = rows.robot, rows.notes, rows.statistics
        if self._statistics is None:
            self.notes = (*self.notes, _UNCOUNTED)
        for part in self._parts:
            part.add(rows)

    def figures(self) -> dict[str, Any]:
        """Return the metrics of all rows so far, with the keys of summary.json."""
        figures: dict[str, Any] = {"robot": self._robot or None}
        for part in self._parts:
            figures |= part.figures()
        if not (self._statistics and self._whole):
            return figures
        # The simulator's statistics do not include the controller's stop, which the recording may show.
        whole = with_statistics(figures, self._statistics)
        return with_stop(whole, ControllerStop.read(whole), self._statistics.get("faults") or ())
