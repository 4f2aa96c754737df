"""Read numbers from laboratory files. Errors state the cell of an invalid number; notes count missing numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bipedsim.errors import RecordingError, shown
from bipedsim.numerics import Array, Flags

ENCODINGS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""First bytes of a text file to its encoding; spreadsheets write such byte-order marks."""
LARGEST = 1e9
"""Upper limit of any force, moment, position or time in a laboratory file, in any unit; larger values are damage."""
UNEVEN = 0.1
"""Tolerated deviation of time steps from the median step, as a fraction of it; files round their times."""


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, in UTF-8 unless a byte-order mark gives another encoding.

    Raises:
        RecordingError: The file cannot be read.
    """
    try:
        with path.open("rb") as raw:
            begin = raw.read(3)
        encoding = next((name for mark, name in ENCODINGS.items() if begin.startswith(mark)), "utf-8")
        with path.open(encoding=encoding, errors="replace") as file:
            return file.readlines()
    except OSError as error:
        raise RecordingError(f"cannot be read ({error.strerror})", path) from error


def numbers(path: Path, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Array:
    """Convert a table (n, columns) of texts to numbers; ``nan`` is valid.

    Args:
        path: The file, for error messages.
        names: Column names.
        rows: Texts of each row, one per column.

    Raises:
        RecordingError: A text is not a number, or its value is implausible.
    """
    try:
        values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    except ValueError:
        values = np.array([[_number(cell) for cell in row] for row in rows])
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


def _number(cell: str) -> float:
    try:
        return float(cell)
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
