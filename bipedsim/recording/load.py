"""Load a run from a file of any supported format."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from bipedsim.config import check_readable
from bipedsim.errors import RecordingError
from bipedsim.recording.bag import ROWS, BagRows, find_bag, name_one, recording_from_bag
from bipedsim.recording.csv import csv_blocks
from bipedsim.recording.recording import Recording, between, joined, load_npz, nothing_between


def _npz_blocks(path: Path) -> Iterator[Recording]:
    """Yield the run as one block."""
    yield load_npz(path)


_TABLES = {".npz": _npz_blocks, ".csv": csv_blocks}
"""Suffix of a file with a whole run to the function that reads it block by block. All else is a bag."""


def load_recording(
    path: Path | str, segment: int = -1, start: float | None = None, stop: float | None = None
) -> Recording:
    """Read a run (.npz or .csv), a bag directory, a launch directory that contains ``bag/``, or an .mcap file.

    Args:
        path: File or directory. An unfinished bag is read up to its last whole message; ``notes`` report this.
        segment: Index of the segment in a bag whose time jumps back (reset); -1 is the last one.
        start, stop: First and last time [s]. Rows outside are left out and, except in a .npz, take no memory while the
            file is read; None means no limit.

    Raises:
        RecordingError: The path is not readable, has no row between these times, or is a bag with more rows than fit
            into memory. The message says what was found.
    """
    path = Path(path)
    if (read := _table_reader(path)) is None:
        return recording_from_bag(path, segment, start, stop)
    parts: list[Recording] = []
    span: list[float] = []
    for block in read(path):
        in_range = between(block.t, start, stop)
        if in_range.all():
            parts.append(block)
        elif in_range.any():
            parts.append(block.rows(in_range))
        span = [*span[:1], *block.t[[0, -1]]] if len(block) else span
    if not parts:
        raise nothing_between(start, stop, str(path), span[0], span[-1])
    return joined(parts)


def read_blocks(path: Path | str, columns: Collection[str] | None = None) -> Iterator[tuple[int, Recording]]:
    """Yield (segment number, some of its rows) of the data that :func:`load_recording` reads, block by block.

    A segment ends where time jumps back. The last block has the ``notes`` and ``statistics`` of the whole recording.

    Args:
        path: File or directory.
        columns: Columns to read from a bag, all by default; other columns may stay empty.

    Raises:
        RecordingError: The path is not readable; the message says what was found.
    """
    path = Path(path)
    if (read := _table_reader(path)) is not None:
        for run in read(path):
            for first in range(0, max(1, len(run)), ROWS):
                yield 0, run.rows(slice(first, first + ROWS))
        return
    reader, last = BagRows(path, columns), None
    for number, rows in reader:
        if last is not None:
            yield last
        last = (number, rows)
    if last is not None:
        last[1].notes, last[1].statistics = reader.notes(-1), reader.statistics
        yield last


def _table_reader(path: Path) -> Callable[[Path], Iterator[Recording]] | None:
    """Return the function that reads the blocks of a run from one file; None for a bag.

    Raises:
        RecordingError: The path is neither.
    """
    check_readable(path, RecordingError, directories=True)
    if os.path.isfile(path) and (suffix := path.suffix.lower()) in _TABLES:
        return _TABLES[suffix]
    if find_bag(path) is None and (which := name_one(path, (".npz",))):
        raise RecordingError(f"neither a bag nor a run{which}", path)
    return None
