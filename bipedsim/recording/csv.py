"""Write and read a recording as one wide CSV table.

The names of the columns follow from the schema, so logs of other programs can be converted to the same table.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import ProgressBar, check_readable
from bipedsim.errors import RecordingError, some, warn_omitted
from bipedsim.numerics import Array, Flags
from bipedsim.recording.bag import ROWS
from bipedsim.recording.files import writing
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import COLUMNS, OBJECT_COMPONENTS, Column

_READOUT, _OBJECT = "readout_", "object_"
"""Prefixes of the columns of debug signals and of free objects."""
_FORM = "a comma-separated table whose first line has the names of `bipedsim export` (docs/recording.md), such as t[s]"
_SENSORS = {"imu": "IMU", "switch": "contact switch"}
_TABLES = ("joint", "foot", *_SENSORS)
_LARGEST_INTEGER = 2.0**53
"""Largest integer up to which all integers are exact in a cell read as a float."""


class CsvColumns:
    """Collect which columns of a run contain values, and the number of rows, before the table is written.

    Attributes:
        rows: Number of rows so far.
        columns: Names of the schema's columns with a value, including ``t``.
        readouts, objects: Names of the controller's readouts and of free objects, in order of appearance.
        notes: Remarks on the run.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.columns = {"t"}
        self.readouts: dict[str, None] = {}
        self.objects: dict[str, None] = {}
        self.notes: tuple[str, ...] = ()

    def add(self, rows: Recording) -> None:
        """Scan the next rows."""
        self.rows += len(rows)
        for name, column in COLUMNS.items():
            if name not in self.columns and _holds_any(getattr(rows, name), column.dtype, column.absent):
                self.columns.add(name)
        self.readouts |= dict.fromkeys(rows.readouts)
        self.objects |= dict.fromkeys(rows.objects)
        self.notes = tuple(dict.fromkeys([*self.notes, *rows.notes]))


class CsvTable:
    """One wide CSV table: one row per tick, names with units in the first line, NaN as empty cells.

    Columns without any recorded value are left out. All digits are written, so that :func:`csv_blocks` returns the same
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
            names += _object_headers(name)
            formats += ["%r"] * len(OBJECT_COMPONENTS)
            blocks.append(rows.objects.get(name, np.full((n, len(OBJECT_COMPONENTS)), np.nan)))
        if doubled := [name for name, count in Counter(names).items() if count > 1]:
            message = f"would have several columns {some(doubled)}; rename readouts, objects or sensors of the run"
            raise RecordingError(message, self._path)
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


def csv_blocks(path: Path) -> Iterator[Recording]:
    """Yield the rows of a table of :class:`CsvTable`, or of another program with the same names, block by block.

    The first line has the names. Only ``t[s]`` must be there; other columns and cells may be missing. Joints, feet and
    sensors are in the order in which they appear. A name without a unit has the unit of the schema, except that an
    additional IMU needs a column with its unit. Columns with other names are left out; ``notes`` and a warning list
    them. ``notes`` also list the sensors.

    Args:
        path: The file.

    Yields:
        At least one row. The table names no robot, and contains no settings of a run.

    Raises:
        RecordingError: The file cannot be read, or a name, unit, number or time is wrong. The message says where.

    Warns:
        OmittedWarning: The table has columns with unknown names.
    """
    check_readable(path, RecordingError)
    last = -np.inf
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            layout = _CsvLayout(path, [name.strip() for name in next(lines, [])])
            for numbers, values in _blocks(lines, layout):
                layout.check(numbers, values, last)
                last = float(values[-1, layout.clock])
                yield layout.recording(values)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordingError(f"cannot be read ({error}); expected {_FORM}", path) from error
    if last == -np.inf:
        raise RecordingError("has no rows below the names", path)


def has_columns_of_a_run(path: Path) -> bool:
    """Return whether a CSV file is a table of a run: its first line has ``t[s]`` and a column of a joint, foot or IMU.

    A table of a laboratory may have ``t[s]`` too.

    Raises:
        RecordingError: The file does not exist or cannot be read.
    """
    check_readable(path, RecordingError)
    with path.open("rb") as file:
        names = [name.strip() for name in file.readline().decode("utf-8-sig", "replace").split(",")]
    ends = {f"{end}{place.unit}" for end, place in _SUFFIXES.items() if place.unit and place.column.per}
    return "t[s]" in names and any(name.endswith(tuple(ends)) for name in names)


def _blocks(lines: Any, layout: _CsvLayout) -> Iterator[tuple[list[int], Array]]:
    """Yield the numbers of lines with their values (n, columns), for at most :data:`ROWS` lines without empty ones.

    Args:
        lines: A ``csv.reader`` after the first line.
        layout: The columns.
    """
    numbers: list[int] = []
    values = np.empty((ROWS, len(layout.columns)))
    for line in lines:
        if not any(line):
            continue
        if len(numbers) == ROWS:
            yield numbers, values
            numbers, values = [], np.empty_like(values)
        values[len(numbers)] = layout.row(line, lines.line_num)
        numbers.append(lines.line_num)
    if numbers:
        yield numbers, values[: len(numbers)]


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
    """Return the place of a column by the end of its name; None if the schema has none.

    Raises:
        RecordingError: The unit is another one.
    """
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
        if header.startswith((_READOUT, _OBJECT)):
            return None
        expected = place.unit or "no unit"
        message = f"has the unit [{unit}; convert the numbers to {expected}, or rename the column"
        raise RecordingError(message, f"{path}: {header}")
    return place._replace(owner=owner)


def _places(names: Iterable[str], path: Path) -> dict[str, _Place]:
    """Return the names of columns that the schema knows, with their places.

    Raises:
        RecordingError: A unit is another one.
    """
    found = {name: place for name in names if (place := _place(name, path)) is not None}
    certain = {(place.column.per, place.owner) for name, place in found.items() if name.endswith("]")}
    # Other quantities end in _qx or _wx too, and readouts in _joint_position, so these owners need a unit.
    return {
        name: place
        for name, place in found.items()
        if (place.column.per, place.owner) in certain
        or not (place.column.per == "imu" or name.startswith((_READOUT, _OBJECT)))
    }


class _CsvLayout:
    """Columns of a table, by the names in its first line.

    Args:
        path: The file.
        names: The first line; empty names are allowed above empty cells.

    Attributes:
        columns: Names of the columns that the recording has.
        clock: Index of the time in :attr:`columns`.

    Raises:
        RecordingError: A name or unit is wrong, or the time is missing.

    Warns:
        OmittedWarning: There are unknown names.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path, self._names = path, names
        self._objects = dict(_objects(names))
        of_objects = {header for headers in self._objects.values() for header in headers}
        topics = [name for name in names if name.startswith("/")]
        self._places = _places([name for name in names if name not in of_objects.union(topics)], path)
        readouts = [name for name in names if name.startswith((_READOUT, "/")) and name not in self._places]
        self._readouts = {name: name.removeprefix(_READOUT) for name in readouts}
        known = {*self._places, *self._readouts, *of_objects}
        self._indices = [i for i, name in enumerate(names) if name in known]
        self._unnamed = [i for i, name in enumerate(names) if not name]
        self.columns = [names[i] for i in self._indices]
        self._refuse_doubled()
        clock = next((name for name, place in self._places.items() if place.column.name == "t"), None)
        if clock is None:
            shown = some([name for name in names if name]) or "nothing"
            raise RecordingError(f"lacks the column t[s]; found {shown}. Expected {_FORM}", path)
        self.clock = self.columns.index(clock)
        self._owners = {
            per: tuple(dict.fromkeys(place.owner for place in self._places.values() if place.column.per == per))
            for per in _TABLES
        }
        self._notes = tuple(self._remarks([name for name in names if name and name not in known]))

    def _refuse_doubled(self) -> None:
        """Raise RecordingError if two columns contain the same number."""
        canonical = {name: f"{_READOUT}{readout}" for name, readout in self._readouts.items()}
        targets = [self._places.get(name) or canonical.get(name, name) for name in self.columns]
        counts = Counter(targets)
        if doubled := [name for name, target in zip(self.columns, targets, strict=True) if counts[target] > 1]:
            raise RecordingError(
                f"has several columns of the same number: {some(doubled)}; remove all but one", self._path
            )

    def _remarks(self, unknown: Sequence[str]) -> Iterator[str]:
        """Yield the notes on sensors and on ``unknown`` columns, and warn of the latter."""
        if sensors := [f"{kind} {name}" for per, kind in _SENSORS.items() for name in self._owners[per]]:
            yield f"additional sensors in the table: {some(sensors)}"
        if unknown:
            note = f"columns with unknown names are left out: {some(unknown)}"
            warn_omitted(f"{self._path}: {note}")
            yield note

    def row(self, line: Sequence[str], number: int) -> list[float]:
        """Return the numbers of a line in :attr:`columns`; empty cells are NaN.

        Raises:
            RecordingError: The line has another number of cells, a cell is no number, or a value has no name.
        """
        where = f"{self._path}: line {number}"
        if len(line) != len(self._names):
            raise RecordingError(f"has {len(line)} cells, and the first line {len(self._names)}", where)
        for i in self._unnamed:
            if line[i].strip():
                message = "has no name in the first line; name the column, or remove it"
                raise RecordingError(message, f"{where}, column {i + 1}", line[i])
        try:
            return [float(line[i] or "nan") for i in self._indices]
        except ValueError:
            i = next(i for i in self._indices if not _is_number(line[i]))
            message = "is no number; leave the cell empty if nothing was measured"
            raise RecordingError(message, f"{where}, column {self._names[i]}", line[i]) from None

    def check(self, numbers: Sequence[int], values: Array, last: float) -> None:
        """Check times, integers and flags of a block.

        Args:
            numbers: Numbers of the lines (n).
            values: Values (n, columns).
            last: Time before the block [s]; -inf for the first one.

        Raises:
            RecordingError: A time is missing, infinite or does not rise, or a value does not fit its column.
        """
        t = values[:, self.clock]
        before = np.concatenate([[last], t[:-1]])
        clock = self.columns[self.clock]
        self._refuse(clock, numbers, t, np.isnan(t), "is no time; every line needs one")
        self._refuse(clock, numbers, t, np.isinf(t), "is no time; every line needs a finite one")
        wrong = t <= before
        message = f"must be after the time of the line before, {float(before[np.argmax(wrong)])!r}; sort the lines"
        self._refuse(clock, numbers, t, wrong, message)
        for name, place in self._places.items():
            column = values[:, self.columns.index(name)]
            present = ~np.isnan(column)
            if place.column.dtype is np.int64:
                wrong = present & ~((np.abs(column) <= _LARGEST_INTEGER) & (np.rint(column) == column))
                self._refuse(name, numbers, column, wrong, "must be an integer")
            elif place.column.dtype is np.bool_ or place.column.per == "switch":
                wrong = present & (column != 0.0) & (column != 1.0)
                self._refuse(name, numbers, column, wrong, "must be 0 or 1; convert the numbers, or rename the column")

    def _refuse(self, name: str, numbers: Sequence[int], column: Array, wrong: Flags, message: str) -> None:
        """Raise RecordingError with the first ``wrong`` value of a column, if there is one."""
        if wrong.any():
            row = int(np.argmax(wrong))
            raise RecordingError(message, f"{self._path}: line {numbers[row]}, column {name}", column[row])

    def recording(self, values: Array) -> Recording:
        """Return the recording of a block's values (n, columns)."""
        table = dict(zip(self.columns, values.T, strict=True))
        n, owners = len(values), self._owners
        run = Recording.empty(
            n,
            owners["joint"],
            owners["foot"],
            columns={place.column.name for place in self._places.values()},
            imu_names=owners["imu"],
            switch_names=owners["switch"],
        )
        for name, place in self._places.items():
            column, numbers = place.column, table[name]
            target = getattr(run, column.name).reshape(n, -1)
            at = owners[column.per].index(place.owner) * column.width if column.per else 0
            target[:, at + place.component] = np.where(np.isnan(numbers), column.absent, numbers)
        # Copies, because the views would keep the whole block in memory.
        run.readouts = {readout: table[name].copy() for name, readout in self._readouts.items()}
        run.objects = {
            name: np.stack([table[header] for header in headers], axis=1) for name, headers in self._objects.items()
        }
        run.notes = self._notes
        return run


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _object_headers(name: str) -> list[str]:
    """Return the names of the columns of a free object."""
    return [f"{_OBJECT}{name}_{component}" for component in OBJECT_COMPONENTS]


def _objects(names: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the columns of each free object of which all columns are there."""
    first = f"_{OBJECT_COMPONENTS[0]}"
    for header in names:
        if header.startswith(_OBJECT) and header.endswith(first):
            headers = _object_headers(name := header.removeprefix(_OBJECT).removesuffix(first))
            if set(headers) <= set(names):
                yield name, headers


def _holds_any(values: NDArray[Any], dtype: Any, absent: Any) -> bool:
    """Return whether the column contains a recorded value; boolean columns always do."""
    if dtype is np.float64:
        return not np.isnan(values).all()
    return dtype is not np.int64 or not (values == absent).all()
