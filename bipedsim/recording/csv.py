"""Export a recording as one wide CSV table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import ProgressBar
from bipedsim.recording.files import writing
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import COLUMNS, OBJECT_COMPONENTS


class CsvColumns:
    """Collect which columns of a run contain values, and the number of rows, before the table is written.

    Attributes:
        rows: Number of rows so far.
        columns: Names of the schema's columns with a value, including ``t``.
        readouts, objects: Names of the controller's readouts and of free objects, in order of appearance.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.columns = {"t"}
        self.readouts: dict[str, None] = {}
        self.objects: dict[str, None] = {}

    def add(self, rows: Recording) -> None:
        """Scan the next rows."""
        self.rows += len(rows)
        for name, column in COLUMNS.items():
            if name not in self.columns and _holds_any(getattr(rows, name), column.dtype, column.absent):
                self.columns.add(name)
        self.readouts |= dict.fromkeys(rows.readouts)
        self.objects |= dict.fromkeys(rows.objects)


class CsvTable:
    """One wide CSV table: one row per tick, names with units in the first line, NaN as empty cells.

    Columns without any recorded value are left out.

    Args:
        path: The file, replaced if it exists.
        columns: Columns of the table.
        progress: Show progress on stderr; by default beyond 20 000 rows.
    """

    def __init__(self, path: Path | str, columns: CsvColumns, progress: bool | None = None) -> None:
        self._path = Path(path)
        self._columns = columns
        shown = columns.rows > 20_000 if progress is None else progress
        self._rows = 0
        self._bar = ProgressBar(total=columns.rows, unit="row", disable=not shown)

    def add(self, rows: Recording) -> None:
        """Write the next rows.

        Raises:
            RecordingError: The file cannot be written.
        """
        formats: list[str] = []
        blocks: list[NDArray[Any]] = []
        names: list[str] = []
        n, step = len(rows), 2000
        for name, column in COLUMNS.items():
            if name in self._columns.columns:
                block = getattr(rows, name).reshape(n, -1)
                names += column.headers(rows.owners)
                formats += ["%.9g" if column.dtype is np.float64 else "%d"] * block.shape[1]
                blocks.append(block)
        for name in self._columns.readouts:
            names.append(name if name.startswith("/") else f"readout_{name}")
            formats.append("%.9g")
            blocks.append(rows.readouts.get(name, np.full(n, np.nan))[:, None])
        for name in self._columns.objects:
            names += [f"object_{name}_{component}" for component in OBJECT_COMPONENTS]
            formats += ["%.9g"] * len(OBJECT_COMPONENTS)
            blocks.append(rows.objects.get(name, np.full((n, len(OBJECT_COMPONENTS)), np.nan)))
        line = ",".join(formats) + "\n"
        begins = self._rows == 0
        with writing(self._path), self._path.open("w" if begins else "a", newline="", encoding="utf-8") as file:
            if begins:
                csv.writer(file).writerow(names)
            for start in range(0, n, step):
                # A float table is exact for its integers: modes and bit masks stay below 2^53.
                table = np.hstack([block[start : start + step].astype(np.float64) for block in blocks])
                file.write("".join([line % tuple(row) for row in table.tolist()]).replace("nan", ""))
                self._rows += len(table)
                self._bar.update(len(table))
        if self._rows == self._columns.rows:
            self._bar.close()


def export_csv(recording: Recording, path: Path | str, progress: bool | None = None) -> None:
    """Write a recording as a :class:`CsvTable`.

    Args:
        recording: Recording to write.
        path, progress: See :class:`CsvTable`.

    Raises:
        RecordingError: The file cannot be written.
    """
    columns = CsvColumns()
    columns.add(recording)
    CsvTable(path, columns, progress).add(recording)


def _holds_any(values: NDArray[Any], dtype: Any, absent: Any) -> bool:
    """Return whether the column contains a recorded value; boolean columns always do."""
    if dtype is np.float64:
        return not np.isnan(values).all()
    return dtype is not np.int64 or not (values == absent).all()
