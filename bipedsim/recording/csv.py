"""A recording as one wide CSV table."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.errors import RecordingError
from bipedsim.recording.recording import Recording
from bipedsim.recording.schema import COLUMNS


def export_csv(recording: Recording, path: Path | str, progress: bool | None = None) -> None:
    """Write one wide CSV table: a row per tick, names with units in the first line, NaN as empty cells.

    Groups that were not recorded at all are left out.

    Args:
        recording: What to write.
        path: The file, replaced if it exists.
        progress: Show progress on stderr; by default on a terminal and beyond 20 000 rows.

    Raises:
        RecordingError: The file cannot be written.
    """
    path = Path(path)
    n = len(recording)
    names: list[str] = []
    formats: list[str] = []
    blocks: list[NDArray[Any]] = []
    for name, column in COLUMNS.items():
        block = getattr(recording, name).reshape(n, -1)
        number = column.dtype is np.float64
        missing = np.isnan(block).all() if number else column.dtype is np.int64 and (block == column.absent).all()
        if name == "t" or not missing:
            names += column.headers(recording.joint_names, recording.feet)
            formats += ["%.9g" if number else "%d"] * block.shape[1]
            blocks.append(block)
    for name, values in recording.readouts.items():
        names.append(f"readout_{name}")
        formats.append("%.9g")
        blocks.append(values[:, None])
    if progress is None:
        progress = n > 20_000 and sys.stderr.isatty()
    report = _report_progress if progress else lambda _done, _total: None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(names)
            _write_rows(file, blocks, formats, report)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written ({error.strerror})") from error


def _write_rows(
    file: IO[str], blocks: list[NDArray[Any]], formats: list[str], report: Callable[[int, int], None]
) -> None:
    line = ",".join(formats) + "\n"
    n, step = len(blocks[0]), 2000
    for start in range(0, n, step):
        # One float table is exact for the integers in it: modes and bit masks stay below 2^53.
        table = np.hstack([block[start : start + step].astype(np.float64) for block in blocks])
        text = "".join([line % tuple(row) for row in table.tolist()])
        file.write(text.replace("nan", ""))
        report(min(start + step, n), n)


def _report_progress(done: int, total: int) -> None:
    end = "\n" if done == total else ""
    print(f"\r{done} of {total} rows ({100 * done // total} %)", end=end, file=sys.stderr, flush=True)
