"""Runs from files, whatever wrote them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from bipedsim.errors import RecordingError
from bipedsim.recording.bag import ROWS, BagRows, find_bag, name_one, recording_from_bag
from bipedsim.recording.recording import Recording, between, load_npz, nothing_between


def load_recording(
    path: Path | str, segment: int = -1, start: float | None = None, stop: float | None = None
) -> Recording:
    """Read a run (.npz), a bag directory, a bring-up's directory that holds ``bag/``, or an .mcap file.

    Args:
        path: What to read. A bag that its recorder could not finish is read up to the last whole message; ``notes``
            say so.
        segment: Of a bag in which time jumps back (reset): which stretch; -1 is the last one.
        start, stop: Rows before and behind these times [s] are left out, and take no memory; None: none are.

    Raises:
        RecordingError: Nothing readable is there, or no row between these times, or more rows than there is memory for;
            the message says what was found.
    """
    path = Path(path)
    if not _is_npz(path):
        return recording_from_bag(path, segment, start, stop)
    run = load_npz(path)
    here = between(run.t, start, stop)
    if len(run) and not here.any():
        raise nothing_between(start, stop, str(path), run.t[0], run.t[-1])
    return run if here.all() else run.rows(here)


def read_blocks(
    path: Path | str, columns: Collection[str] | None = None, grows: Callable[[], bool] | None = None
) -> Iterator[tuple[int, Recording]]:
    """Yield (number of the stretch, some rows of it) of what :func:`load_recording` reads, without holding it all.

    A stretch ends where time jumps back. The last rows that come have ``notes`` and ``statistics`` of the whole.

    Args:
        path: What to read.
        columns: Which columns of a bag are wanted; the others may stay empty. All by default.
        grows: Whether a bag is still being written, so that more is waited for; None: it is not.

    Raises:
        RecordingError: Nothing readable is there; the message says what was found.
    """
    path = Path(path)
    if _is_npz(path):
        run = load_npz(path)
        for first in range(0, max(1, len(run)), ROWS):
            yield 0, run.rows(slice(first, first + ROWS))
        return
    reader, last = BagRows(path, columns, grows), None
    for number, rows in reader:
        if last is not None:
            yield last
        last = (number, rows)
    if last is not None:
        last[1].notes, last[1].statistics = reader.notes(-1), reader.statistics
        yield last


def _is_npz(path: Path) -> bool:
    """Return whether there is a run and no bag.

    Raises:
        RecordingError: There is neither.
    """
    if not os.path.exists(path):
        raise RecordingError(f"{path}: no such file or directory")
    if os.path.isfile(path) and path.suffix == ".npz":
        return True
    if find_bag(path) is None and (which := name_one(path, (".npz",))):
        raise RecordingError(f"{path}: neither a bag nor a run{which}")
    return False
