"""Judge an estimate by its predictions of a recording, in comparison with the description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bipedsim.analysis import aligned
from bipedsim.model import IDEAL, Robot
from bipedsim.recording import Recording
from bipedsim_studies.gap import (
    HORIZONS,
    NO_INTERVAL,
    QUANTITIES,
    Gap,
    as_json as gap_as_json,
    compared,
    no_better_than_held,
    on_common_windows,
    predict_recording,
    rms_errors,
    windows,
)

DESCRIBED, IDENTIFIED = "described", "identified"
"""Labels of the two models."""
HORIZON = 0.200
"""Time of the predictions in the short text [s]."""


HEADS = ("", DESCRIBED, IDENTIFIED, "mean change of a window [95 % interval]")
"""Heads of the table of errors."""
LOST = "in brackets: both predict worse than the rule that nothing changes"
"""Meaning of brackets in this table."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """Errors of the predictions of a recording by the robot as described and as identified.

    Attributes:
        source: The recording.
        held_out: Whether it was not used for the estimate.
        gaps: Errors as described and as identified, where both have a prediction.
        notes: Notes for the reader.
    """

    source: Path
    held_out: bool
    gaps: tuple[Gap, Gap]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        source: Path,
        recording: Recording,
        robot: Robot,
        hardware: Mapping[str, Any],
        held_out: bool = True,
        progress: bool = False,
    ) -> Judgement:
        """Return the judgement.

        Args:
            source: Path of the recording.
            recording: The recording.
            robot: The robot as described.
            hardware: Hardware with the identified numbers.
            held_out: Whether the recording was not used for the estimate.
            progress: Whether to show progress bars on stderr.

        Raises:
            BipedSimError: The recording cannot be predicted.
        """
        gaps, notes = predict_recording(recording, robot, {DESCRIBED: IDEAL, IDENTIFIED: hardware}, progress)
        return cls(source, held_out, on_common_windows(*gaps), (*notes, *map(windows, gaps)))

    @property
    def heading(self) -> str:
        """Name of the recording, and whether it was used for the estimate."""
        return f"{self.source} ({'not ' if self.held_out else ''}used for the estimate)"

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a row of text for each quantity: errors as described and as identified, and their difference.

        The difference is the mean of a window with its 95 % interval. It is in brackets if both models predict worse
        than the rule that nothing changes.
        """
        at, differences, worse = HORIZONS.index(HORIZON), compared(*self.gaps), no_better_than_held(self.gaps)
        for name, errors in rms_errors(self.gaps).items():
            values = (f"{errors[label][at]:.3g}" for label in (DESCRIBED, IDENTIFIED))
            change = str(differences[name][at])
            yield f"{name} [{QUANTITIES[name]}]", *values, f"({change})" if worse[name][at] else change

    def text(self) -> Iterator[str]:
        """Yield the table of errors as lines of text."""
        yield f"\npredictions of {self.heading}, rms errors after {1e3 * HORIZON:g} ms"
        yield from (f"note: {note}" for note in self.notes)
        yield from aligned([HEADS, *self.rows()])
        if any(row[HORIZONS.index(HORIZON)] for row in no_better_than_held(self.gaps).values()):
            yield f"({LOST})"
        if any(row[HORIZONS.index(HORIZON)].lacks_interval for row in compared(*self.gaps).values()):
            yield f"({NO_INTERVAL})"

    def as_json(self) -> dict[str, Any]:
        """Return the errors as JSON values."""
        of_recording = {"recording": str(self.source), "held_out": self.held_out}
        return of_recording | gap_as_json(self.gaps, self.notes)
