"""Write and read a recording as one wide CSV table.

The names of the columns follow from the schema, so logs of other programs can be converted to the same table.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import ProgressBar, check_readable
from bipedsim.errors import RecordingError, some, warn_omitted
from bipedsim.numerics import Array
from bipedsim.recording.files import writing
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import COLUMNS, OBJECT_COMPONENTS, Column

_READOUT, _OBJECT = "readout_", "object_"
"""Prefixes of the columns of debug signals and of free objects."""
_FORM = "a comma-separated table whose first line has the names of `bipedsim export` (docs/recording.md), such as t[s]"
_TABLES = ("joint", "foot", "imu", "switch")


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

    Columns without any recorded value are left out. All digits are written, so that :func:`load_csv` returns the same
    bits.

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
                formats += ["%r" if column.dtype is np.float64 else "%d"] * block.shape[1]
                blocks.append(block)
        for name in self._columns.readouts:
            names.append(name if name.startswith("/") else f"{_READOUT}{name}")
            formats.append("%r")
            blocks.append(rows.readouts.get(name, np.full(n, np.nan))[:, None])
        for name in self._columns.objects:
            names += [f"{_OBJECT}{name}_{component}" for component in OBJECT_COMPONENTS]
            formats += ["%r"] * len(OBJECT_COMPONENTS)
            blocks.append(rows.objects.get(name, np.full((n, len(OBJECT_COMPONENTS)), np.nan)))
        line = ",".join(formats) + "\n"
        begins = self._rows == 0
        with writing(self._path), self._path.open("w" if begins else "a", newline="", encoding="utf-8") as file:
            if begins:
                csv.writer(file).writerow(names)
            for start in range(0, n, step):
                # A float table is exact for its integers: modes and bit masks stay below 2^53.
                table = np.hstack([block[start : start + step].astype(np.float64) for block in blocks])
                text = "".join([line % tuple(row) for row in table.tolist()])
                file.write(text.replace("nan", "").replace(".0,", ",").replace(".0\n", "\n"))
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


class _Place(NamedTuple):
    """Place of a table's column in a recording.

    Attributes:
        column: Column of the schema.
        owner: Name of the joint, foot or sensor; empty if the column has none.
        component: Index of the number.
        unit: Unit with brackets; empty for a number without one.
    """

    column: Column
    owner: str
    component: int
    unit: str


def load_csv(path: Path) -> Recording:
    """Read a table of :class:`CsvTable`, or one of another program with the same names.

    The first line has the names. Only ``t[s]`` must be there; other columns and cells may be missing. Joints, feet and
    sensors are in the order in which they appear. A name without a unit has the unit of the schema. Columns with other
    names are left out; ``notes`` and a warning list them.

    Args:
        path: The file.

    Returns:
        The recording. The table names no robot, and contains no settings of a run.

    Raises:
        RecordingError: The file cannot be read, or a name, unit, number or time is wrong. The message says where.

    Warns:
        OmittedWarning: The table has columns with unknown names.
    """
    check_readable(path, RecordingError)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordingError(f"cannot be read ({error}); expected {_FORM}", path) from error
    names = [name.strip() for name in lines[0]] if lines else []
    places = {name: _place(name, path) for name in names}
    if doubled := [name for name in places if names.count(name) > 1]:
        raise RecordingError(f"has several columns {some(doubled)}; remove all but one of each", path)
    clock = next((name for name, place in places.items() if place is not None and place.column.name == "t"), None)
    if clock is None:
        raise RecordingError(f"lacks the column t[s]; found {some(names) or 'nothing'}. Expected {_FORM}", path)
    table = dict(zip(names, _numbers(lines, names, path).T, strict=True))
    _check_times(table[clock], lines, f"{path}: {clock}")
    return _recording(path, table, {name: place for name, place in places.items() if place is not None})


def _suffixes() -> dict[str, _Place]:
    """Return the end of a name, without unit, to its place; the whole name if the column has no owner."""
    nobody = dict.fromkeys(_TABLES, ("",))
    result = {}
    for column in COLUMNS.values():
        for i, header in enumerate(column.headers(nobody)):
            name, bracket, unit = header.partition("[")
            result[name] = _Place(column, "", i, bracket + unit)
    return result


_SUFFIXES = _suffixes()


def _place(header: str, path: Path) -> _Place | None:
    """Return the place of a column; None if its name is unknown.

    Raises:
        RecordingError: The unit is another one.
    """
    if header.startswith((_READOUT, _OBJECT, "/")):
        return None
    name, bracket, unit = header.partition("[")
    name = name.rstrip()
    # The longest end that the schema knows decides, because names of joints contain underscores too.
    cuts = [at for at, letter in enumerate(name) if letter == "_"]
    ends = ((name[:at], _SUFFIXES.get(name[at:])) for at in cuts if at)
    found = next(((owner, place) for owner, place in ends if place is not None and place.column.per), None)
    owner, place = ("", _SUFFIXES.get(name)) if name in _SUFFIXES or found is None else found
    if place is None or bool(place.column.per) != bool(owner):
        return None
    if bracket and bracket + unit != place.unit:
        expected = place.unit or "no unit"
        raise RecordingError(f"has the unit [{unit}; convert the numbers to {expected}", f"{path}: {header}")
    return place._replace(owner=owner)


def _numbers(lines: Sequence[Sequence[str]], names: Sequence[str], path: Path) -> Array:
    """Return the numbers (n, columns) of all lines but the first; empty cells are NaN.

    Raises:
        RecordingError: A line has another number of cells, or a cell is no number.
    """
    table = np.empty((sum(map(bool, lines[1:])), len(names)))
    rows = ((number, line) for number, line in enumerate(lines[1:], 2) if line)
    for row, (number, line) in zip(table, rows, strict=True):
        if len(line) != len(names):
            raise RecordingError(f"has {len(line)} cells, and the first line {len(names)}", f"{path}: line {number}")
        try:
            row[:] = [float(cell or "nan") for cell in line]
        except ValueError:
            name, cell = next(pair for pair in zip(names, line, strict=True) if not _is_number(pair[1]))
            message = "is no number; leave the cell empty if nothing was measured"
            raise RecordingError(message, f"{path}: line {number}, column {name}", cell) from None
    return table


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _check_times(t: Array, lines: Sequence[Sequence[str]], where: str) -> None:
    """Raise RecordingError unless there are times, and all of them rise."""
    if not len(t):
        raise RecordingError("has no rows below the names", where)
    wrong = ~np.isfinite(t)
    wrong[1:] |= ~(np.diff(t) > 0.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        number = next(itertools.islice((k for k, line in enumerate(lines[1:], 2) if line), row, None))
        before = f" after {t[row - 1]!r}" if row else ""
        raise RecordingError(f"must rise from line to line{before}; sort the lines", f"{where}, line {number}", t[row])


def _recording(path: Path, table: Mapping[str, Array], places: Mapping[str, _Place]) -> Recording:
    """Return the recording of a table's columns."""
    n = len(next(iter(table.values())))
    owners = {
        per: tuple(dict.fromkeys(place.owner for place in places.values() if place.column.per == per))
        for per in _TABLES
    }
    columns = {place.column.name for place in places.values()}
    run = Recording.empty(
        n,
        owners["joint"],
        owners["foot"],
        columns=columns,
        imu_names=owners["imu"],
        switch_names=owners["switch"],
    )
    for name, place in places.items():
        column, values = place.column, table[name]
        target = getattr(run, column.name).reshape(n, -1)
        at = owners[column.per].index(place.owner) * column.width if column.per else 0
        target[:, at + place.component] = np.where(np.isnan(values), column.absent, values)
    for name, values in table.items():
        if name.startswith((_READOUT, "/")):
            run.readouts[name.removeprefix(_READOUT)] = values
    run.objects = dict(_objects(table))
    known = {*places, *(name for name in table if name.startswith((_READOUT, "/"))), *_object_names(run.objects)}
    if unknown := [name for name in table if name not in known]:
        note = f"columns with unknown names are left out: {some(unknown)}"
        run.notes = (note,)
        warn_omitted(f"{path}: {note}")
    return run


def _object_names(objects: Mapping[str, Array]) -> Iterator[str]:
    """Yield the columns of free objects."""
    yield from (f"{_OBJECT}{name}_{component}" for name in objects for component in OBJECT_COMPONENTS)


def _objects(table: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """Yield the name and the states (n, 13) of each free object of which all columns are there."""
    first = f"_{OBJECT_COMPONENTS[0]}"
    for header in table:
        if header.startswith(_OBJECT) and header.endswith(first):
            name = header.removeprefix(_OBJECT).removesuffix(first)
            columns = list(_object_names({name: table[header]}))
            if set(columns) <= table.keys():
                yield name, np.stack([table[column] for column in columns], axis=1)


def _holds_any(values: NDArray[Any], dtype: Any, absent: Any) -> bool:
    """Return whether the column contains a recorded value; boolean columns always do."""
    if dtype is np.float64:
        return not np.isnan(values).all()
    return dtype is not np.int64 or not (values == absent).all()
