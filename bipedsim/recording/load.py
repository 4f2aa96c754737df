"""Load a run from a file of any supported format."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from bipedsim.config import check_readable
from bipedsim.errors import RecordingError
from bipedsim.model import load_robot
from bipedsim.recording.bag import ROWS, BagRows, find_bag, name_one, recording_from_bag
from bipedsim.recording.csv import csv_blocks
from bipedsim.recording.recording import Recording, between, joined, load_npz, nothing_between


def _npz_blocks(path: Path) -> Iterator[Recording]:
    """Yield the run as one block."""
    yield load_npz(path)


_TABLES = {".npz": _npz_blocks, ".csv": csv_blocks}
"""Suffix of a file with a whole run to the function that reads it block by block. All else is a bag."""


def load_recording(
    path: Path | str,
    segment: int = -1,
    start: float | None = None,
    stop: float | None = None,
    remap: Mapping[str, str] | None = None,
    robot: str = "",
) -> Recording:
    """Read a run (.npz or .csv), a bag directory, a launch directory that contains ``bag/``, or an .mcap file.

    Args:
        path: File or directory. An unfinished bag is read up to its last whole message; ``notes`` report this.
        segment: Index of the segment in a bag whose time jumps back (reset); -1 is the last one.
        start, stop: First and last time [s]. Rows outside are left out and, except in a .npz, take no memory while the
            file is read; None means no limit.
        remap: Topic of a bag to the name under which it is read, such as ``{"/imu": "/imu/data"}``. ``{"/robot1/*":
            "/*"}`` removes a namespace.
        robot: Name or robot.yaml of the robot, for a recording that does not name it; replaces the recorded one.

    Raises:
        RecordingError: The path is not readable, has no row between these times, or is a bag with more rows than fit
            into memory. The message says what was found.
        ConfigError: ``remap`` does not fit the bag, or there is no such robot.
    """
    path = Path(path)
    if (read := _table_reader(path, remap)) is None:
        return recording_from_bag(path, segment, start, stop, remap, robot)
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
    recording = joined(parts)
    if robot:
        recording.describe_robot(load_robot(robot), robot)
    return recording


def read_blocks(
    path: Path | str,
    columns: Collection[str] | None = None,
    remap: Mapping[str, str] | None = None,
    robot: str = "",
) -> Iterator[tuple[int, Recording]]:
    """Yield (segment number, some of its rows) of the data that :func:`load_recording` reads, block by block.

    A segment ends where time jumps back. The last block has the ``notes`` and ``statistics`` of the whole recording.

    Args:
        path: File or directory.
        columns: Columns to read from a bag, all by default; other columns may stay empty.
        remap, robot: See :func:`load_recording`.

    Raises:
        RecordingError: The path is not readable; the message says what was found.
    """
    path = Path(path)
    if (read := _table_reader(path, remap)) is not None:
        described = load_robot(robot) if robot else None
        for run in read(path):
            if described is not None:
                run.describe_robot(described, robot)
            for first in range(0, max(1, len(run)), ROWS):
                yield 0, run.rows(slice(first, first + ROWS))
        return
    reader, last = BagRows(path, columns, remap, robot), None
    for number, rows in reader:
        if last is not None:
            yield last
        last = (number, rows)
    if last is not None:
        last[1].notes, last[1].statistics = reader.notes(-1), reader.statistics
        yield last


def _table_reader(path: Path, remap: Mapping[str, str] | None) -> Callable[[Path], Iterator[Recording]] | None:
    """Return the function that reads the blocks of a run from one file; None for a bag.

    Raises:
        RecordingError: The path is neither, or a table whose topics are to be renamed.
    """
    check_readable(path, RecordingError, directories=True)
    if os.path.isfile(path) and (suffix := path.suffix.lower()) in _TABLES:
        if remap:
            raise RecordingError("a table has no topics to rename; rename its columns", path)
        return _TABLES[suffix]
    if find_bag(path) is None and (which := name_one(path, (".npz",))):
        raise RecordingError(f"neither a bag nor a run{which}", path)
    return None
