"""Numbers of laboratories' files: what is none is told by its place, and what lacks is told by how much of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bipedsim.errors import RecordingError, shown
from bipedsim.numerics import Array, Flags

ENCODINGS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""What a text file begins with to its encoding: spreadsheets write such marks of the order of bytes."""
LARGEST = 1e9
"""No force, moment, place or time of a laboratory is larger, in whatever unit: beyond it are damaged bytes."""
UNEVEN = 0.1
"""Share of a step by which times may differ from even ones: files round them."""


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, UTF-8 unless a mark at its begin says otherwise.

    Raises:
        RecordingError: It cannot be read.
    """
    try:
        with path.open("rb") as raw:
            begin = raw.read(3)
        encoding = next((name for mark, name in ENCODINGS.items() if begin.startswith(mark)), "utf-8")
        with path.open(encoding=encoding, errors="replace") as file:
            return file.readlines()
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror})") from error


def numbers(path: Path, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Array:
    """Return a table (n, columns) of texts as numbers; ``nan`` is one.

    Args:
        path: Of the file.
        names: Of the columns.
        rows: As many texts each.

    Raises:
        RecordingError: A text is no number, or one that nothing in a laboratory can be.
    """
    try:
        values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    except ValueError:
        values = np.array([[_number(cell) for cell in row] for row in rows])
    wrong = np.argwhere(~(np.isnan(values) | (np.abs(values) <= LARGEST)))
    if len(wrong):
        row, column = wrong[0]
        more = f", and {len(wrong) - 1} more such cells" if len(wrong) > 1 else ""
        raise RecordingError(
            f"{path}: damaged: looked for a number in row {row + 1}, column {shown(names[column])}; found "
            f"{shown(rows[row][column])}{more}"
        )
    return values


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.inf


def whole_samples(where: str, t: Array, values: Array, notes: list[str], needed: Array | None = None) -> Array:
    """Return samples (n, k) of a plate in which those that lack a number are zero, which ``notes`` say.

    Args:
        where: The plate, for the note.
        t: (n,) [s].
        values: (n, k); NaN where there is no number.
        notes: Gets what there is to say.
        needed: (n, m) more, without which a sample lacks something too.

    Raises:
        RecordingError: A number is infinite, or beyond all that can be.
    """
    wild = np.argwhere(~(np.isnan(values) | (np.abs(values) <= LARGEST)))
    if len(wild):
        row, column = wild[0]
        raise RecordingError(
            f"{where}: damaged: looked for forces and moments, found {values[row, column]:g} at {t[row]:g} s"
        )
    lacks: Flags = np.asarray(np.isnan(values).any(axis=1))
    if needed is not None:
        lacks |= np.isnan(needed).any(axis=1) & (values != 0.0).any(axis=1)
    if not lacks.any():
        return values
    notes.append(
        f"{where}: {lacks.sum()} of {len(t)} samples lack a number, the first at {t[lacks][0]:g} s; they count as no "
        "force"
    )
    return np.where(lacks[:, None], 0.0, values)


def say_if_uneven(t: Array, notes: list[str]) -> None:
    """Say in ``notes`` that the times (n,) [s] are not even, where everything after takes them to be."""
    steps = np.diff(t)
    step = float(np.median(steps)) if len(steps) else 0.0
    odd = np.flatnonzero(np.abs(steps - step) > UNEVEN * step)
    if len(odd):
        notes.append(
            f"its times are not even: {len(odd)} of {len(steps)} steps are not of {step:g} s, the first behind "
            f"{t[odd[0]]:g} s; filters, rates and impulses take them to be even"
        )
