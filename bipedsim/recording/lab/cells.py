"""Read numbers from laboratory files. Errors state the cell of an invalid number; notes count missing numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bipedsim.config import open_file
from bipedsim.errors import RecordingError, shown
from bipedsim.numerics import Array, Flags

ENCODINGS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""First bytes of a text file to its encoding; spreadsheets write such byte-order marks."""
MISSING = re.compile(r"|[+-]?nan(\(\w*\))?|[+-]?1[.,]#(ind|qnan)\w*|n/?a", re.IGNORECASE)
"""Texts for a missing number: an empty cell, and NaN as C, Microsoft's libraries and spreadsheets write it."""
LARGEST = 1e9
"""Upper limit of any force, moment, position or time in a laboratory file, in any unit; larger values are damage."""
GROUPED = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+") for mark in ",."}
"""Mark to the numbers in which it can separate thousands, such as ``1,440``."""
UNEVEN = 0.1
"""Tolerated deviation of time steps from the median step, as a fraction of it; files round their times."""
_INNER = "\x1f"
"""Stands for a separator between quotes; no table has this character."""
_QUOTED = re.compile(r'"[^"]*"')
_DECIMAL = {mark: re.compile(rf"[+-]?(?=.?\d)\d*{re.escape(mark)}\d*(e[+-]?\d+)?", re.IGNORECASE) for mark in ",."}
_THOUSANDS = {
    mark: re.compile(
        rf"[+-]?[1-9]\d{{0,2}}({re.escape(other)}\d{{3}})+({re.escape(mark)}\d*)?(e[+-]?\d+)?", re.IGNORECASE
    )
    for mark, other in (".,", ",.")
}
"""Decimal mark to the numbers in which the other mark separates thousands, such as ``1,440.5``."""
_WHOLE = re.compile(r"[+-]?\d+")


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file without their ends.

    A byte-order mark gives the encoding. Without one it is UTF-8, or else that of Western Windows.

    Raises:
        RecordingError: The file cannot be read.
    """
    with open_file(path, RecordingError) as file:
        raw = file.read()
    encoding = next((name for mark, name in ENCODINGS.items() if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        text = raw.decode("cp1252" if encoding == "utf-8" else encoding, errors="replace")
    return re.split(r"\r\n|\n|\r", text)


def separator(line: str) -> str:
    """Return the character that separates the cells of a line; empty if it is white space.

    Separators between quotes belong to a cell, unless the line has no others.
    """
    return next((mark for text in (_QUOTED.sub("", line), line) for mark in "\t;," if mark in text), "")


def cells(line: str, mark: str) -> list[str]:
    """Split a line into cells at ``mark`` (:func:`separator`), without blanks and quotes around them.

    A ``mark`` between quotes belongs to the cell, unless the whole line is between quotes.
    """
    quoted = line.split('"')
    if mark and len(quoted) > 2 and len(quoted) % 2 and mark in "".join(quoted[::2]):
        quoted[1::2] = [part.replace(mark, _INNER) for part in quoted[1::2]]
        parts = [part.replace(_INNER, mark) for part in "".join(quoted).split(mark)]
    else:
        parts = line.split(mark) if mark else line.split()
    return [part.strip(' \t"\0') for part in parts]


def fitted_rows(path: Path, count: int, rows: list[list[str]], notes: list[str]) -> list[list[str]]:
    """Return the rows of a table with ``count`` columns, without empty cells at the ends of lines.

    An incomplete last row is left out with a note, because a program that was interrupted leaves one.

    Raises:
        RecordingError: There are no rows, or a row has another number of cells.
    """
    rows = [row[:count] if not any(row[count:]) else row for row in rows]
    if len(rows) > 1 and len(rows[-1]) < count:
        rows = rows[:-1]
        notes.append(f"its last row ends early and is left out: {len(rows)} rows remain")
    bad = next((k for k, row in enumerate(rows) if len(row) != count), None)
    if bad is not None or not rows:
        content = "no rows" if bad is None else f"{len(rows[bad])} in row {bad + 1} of {len(rows)}"
        raise RecordingError(f"damaged: expected {count} numbers a row, found {content}", path)
    return rows


def decimal_mark(path: Path, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the decimal mark of a table (n, columns) of texts: a point or a comma; empty if no number has one.

    A number decides if one of its marks cannot separate thousands, or must. The last of two different marks is decimal.
    Otherwise, commas are ambiguous. So are points next to commas or whole numbers, because a program writes all numbers
    of a column with the same digits, or leaves out all zeros at their ends.

    Args:
        path: The file, for error messages.
        names: Column names.
        rows: Texts of each row, one per column.

    Raises:
        RecordingError: The mark is ambiguous, or two cells contradict each other; the message states the cells.
    """

    def first(kind: Callable[[str, str], bool], mark: str) -> tuple[str, str] | None:
        """Return the place and the text of the first number of a kind."""
        other = "," if mark == "." else "."
        return next(
            (
                (f"row {row}, column {shown(name)}", cell)
                for row, texts in enumerate(rows, 1)
                for name, cell in zip(names, texts, strict=True)
                if (mark in cell or cell.count(other) > 1) and kind(cell, mark)
            ),
            None,
        )

    point, comma = (first(_decides, mark) for mark in ".,")
    if point and comma:
        raise RecordingError(
            f"has a decimal comma, but {point[1]!r} in {point[0]} has a decimal point. Write all numbers with one mark",
            f"{path}: {comma[0]}",
            comma[1],
        )
    if point or comma:
        return "." if point else ","
    point, comma = (first(_may_be_grouped, mark) for mark in ".,")
    if comma or (point and any(_WHOLE.fullmatch(cell) for texts in rows for cell in texts)):
        where, cell = point or comma or ("", "")
        raise ambiguous(f"{path}: {where}", cell)
    return "." if point else ""


def _decides(cell: str, mark: str) -> bool:
    """Return whether ``mark`` is certainly the decimal mark of the table of a cell."""
    if mark in cell:
        certain = _DECIMAL[mark].fullmatch(cell) or _THOUSANDS[mark].fullmatch(cell)
        return bool(certain) and not _may_be_grouped(cell, mark)
    other = "," if mark == "." else "."
    return cell.count(other) > 1 and _may_be_grouped(cell, other)


def _may_be_grouped(cell: str, mark: str) -> bool:
    """Return whether ``mark`` may separate the thousands of a cell."""
    return mark in cell and bool(GROUPED[mark].fullmatch(cell))


def ambiguous(where: str, cell: str) -> RecordingError:
    """Return the error of a number whose commas or points are decimal marks or separate thousands."""
    plain = re.sub("[.,]", "", cell)
    return RecordingError(
        f"is {plain} with thousands separators, or a number with decimals, and nothing in the file states which. "
        f"Write {plain} without separators, or with another number of decimals",
        where,
        cell,
    )


def numbers(path: Path, names: Sequence[str], rows: Sequence[Sequence[str]], mark: str | None = None) -> Array:
    """Convert a table (n, columns) of texts to numbers, also with decimal commas.

    NaN stands for a missing number: an empty cell, or one of the spellings of NaN.

    Args:
        path: The file, for error messages.
        names: Column names.
        rows: Texts of each row, one per column.
        mark: Decimal mark (:func:`decimal_mark`); None finds it in these rows.

    Raises:
        RecordingError: A text is not a number, its value is implausible, or its decimal mark is ambiguous.
    """
    mark = decimal_mark(path, names, rows) if mark is None else mark
    try:
        if mark == "," and any("." in cell for row in rows for cell in row):
            raise ValueError("points separate thousands")
        values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    except ValueError:
        values = np.array([[number(cell, mark or ".") for cell in row] for row in rows])
        values = values.reshape(len(rows), len(names))
    invalid = np.argwhere(~(np.isnan(values) | (np.abs(values) <= LARGEST)))
    if len(invalid):
        row, column = invalid[0]
        more = f", and {len(invalid) - 1} more such cells" if len(invalid) > 1 else ""
        raise RecordingError(
            f"is no number: the file is damaged{more}",
            f"{path}: row {row + 1}, column {shown(names[column])}",
            rows[row][column],
        )
    return values


def number(cell: str, mark: str = ".") -> float:
    """Return the number in a cell with the decimal ``mark``; NaN if it is missing, infinity if it is no number.

    The other mark may separate thousands.
    """
    if MISSING.fullmatch(cell):
        return np.nan
    other = "," if mark == "." else "."
    if other in cell:
        if not _THOUSANDS[mark].fullmatch(cell):
            return np.inf
        cell = cell.replace(other, "")
    try:
        return float(cell.replace(mark, ".", 1))
    except ValueError:
        return np.inf


def complete_samples(where: str, t: Array, values: Array, notes: list[str], needed: Array | None = None) -> Array:
    """Return plate samples (n, k) with incomplete samples set to zero, and count these in ``notes``.

    Args:
        where: Name of the plate, for the note.
        t: (n,) [s].
        values: (n, k) samples; NaN for missing numbers.
        notes: Receives the note.
        needed: (n, m) further numbers that a sample with non-zero values requires.

    Raises:
        RecordingError: A number is infinite or implausibly large.
    """
    invalid = np.argwhere(~(np.isnan(values) | (np.abs(values) <= LARGEST)))
    if len(invalid):
        row, column = invalid[0]
        raise RecordingError(
            "is no force and no moment: the file is damaged", f"{where}: at {t[row]:g} s", values[row, column]
        )
    incomplete: Flags = np.asarray(np.isnan(values).any(axis=1))
    if needed is not None:
        incomplete |= np.isnan(needed).any(axis=1) & (values != 0.0).any(axis=1)
    if not incomplete.any():
        return values
    notes.append(
        f"{where}: {incomplete.sum()} of {len(t)} samples lack a number, the first at {t[incomplete][0]:g} s; they "
        "count as no force"
    )
    return np.where(incomplete[:, None], 0.0, values)


def note_uneven_times(t: Array, notes: list[str]) -> None:
    """Add a note if the times (n,) [s] are not equidistant, as all later processing assumes."""
    steps = np.diff(t)
    step = float(np.median(steps)) if len(steps) else 0.0
    uneven = np.flatnonzero(np.abs(steps - step) > UNEVEN * step)
    if len(uneven):
        notes.append(
            f"its times are not even: {len(uneven)} of {len(steps)} steps are not of {step:g} s, the first behind "
            f"{t[uneven[0]]:g} s; filters, rates and impulses assume even times"
        )
