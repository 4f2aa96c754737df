"""Store the results of a study: a journal that receives each row immediately, and an ordered table of all rows."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from bipedsim.config import changes, to_json, write_whole
from bipedsim.errors import ConfigError, RecordingError, install, some
from bipedsim_studies.study.config import StudyPlan
from bipedsim_studies.study.trial import FAILED

JOURNAL, TABLE, ABOUT = "trials.jsonl", "results.parquet", "study.json"
SYNC = 1.0
"""Interval at which rows are synchronised to the disk [s]."""


class Results:
    """Folder with the results of a study; use it as a context manager.

    Args:
        folder: Folder of the results. It is created if it does not exist.
        plan: The trials.

    Attributes:
        rows: Row of each trial by its index; those of an earlier session come first.
        again: Number of trials of an earlier session that gave no result and are repeated.

    Raises:
        ConfigError: The folder has results of another study, or of other code or files.
    """

    def __init__(self, folder: Path, plan: StudyPlan) -> None:
        self.folder = folder
        self.rows: dict[int, dict[str, Any]] = {}
        self.again = 0
        self._synced = -math.inf
        self._plan = plan
        folder.mkdir(parents=True, exist_ok=True)
        about = folder / ABOUT
        if not about.exists() and any(folder.iterdir()):
            raise ConfigError("not empty, and no results of a study; give another folder with -o", folder)
        # The file is unbuffered. A buffer would be written again at the end of the process, which fails on a full disk.
        self._journal: FileIO = (folder / JOURNAL).open("ab", buffering=0)
        try:
            self._lock_and_load(about)
        except BaseException:
            self._journal.close()
            raise

    def _lock_and_load(self, about: Path) -> None:
        """Lock the folder for this process and load existing results."""
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            text = "another study is writing to it; wait for it, or give another folder with -o"
            raise ConfigError(text, self.folder) from error
        if about.exists():
            self._continue(_parsed(about.read_bytes(), about))
            return
        plan = self._plan
        about_data = {"study": plan.name, "description": plan.description, "trials": len(plan.trials)}
        about_data |= {"version": plan.version, "asked": plan.asked, "content": dict(plan.needs.content)}
        if plan.conditions:
            about_data["conditions"] = dict(plan.conditions)
        write_whole(about, (to_json(about_data) + "\n").encode())

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(OSError):
            self.sync()
        self._journal.close()

    def _continue(self, about: Mapping[str, Any]) -> None:
        plan = self._plan
        description = f"results of study {about.get('study')!r}"
        remedy = "delete the folder to run all trials again, or give another one with -o"
        if about.get("asked") != plan.asked:
            raise ConfigError(f"{description} with a different study file or different options; {remedy}", self.folder)
        if about.get("content") != dict(plan.needs.content):
            differences = changes(about.get("content", {}), plan.needs.content)
            text = f"{description} with different code or files; {remedy}"
            raise ConfigError(text, f"{self.folder}: {some(differences)}")
        path = self.folder / JOURNAL
        rows, complete_bytes = _read(path)
        self.rows = {i: row for i, row in rows.items() if row["outcome"] not in FAILED}
        self.again = len(rows) - len(self.rows)
        os.truncate(path, complete_bytes)

    def add(self, row: dict[str, Any]) -> None:
        """Store a row. It survives the end of this process at once, and that of the machine after :data:`SYNC`.

        Raises:
            RecordingError: The row cannot be written to the disk.
        """
        try:
            line = (json.dumps(row) + "\n").encode()
            if self._journal.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if time.monotonic() - self._synced > SYNC:
                self.sync()
        except OSError as error:
            raise _write_error(self.folder / JOURNAL, error) from error
        self.rows[row["trial"]] = _interned(row)

    def sync(self) -> None:
        """Synchronise all rows to the disk.

        Raises:
            OSError: The rows cannot be written to the disk.
        """
        os.fsync(self._journal.fileno())
        self._synced = time.monotonic()

    def write_table(self) -> Path:
        """Write all existing rows as Parquet, in order of the trials. Equal rows give identical files.

        Raises:
            RecordingError: The table cannot be written to the disk.
        """
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise ConfigError(f"results in Parquet need pyarrow: {install('bipedsim[study]')} ({error})") from error
        rows = [self.rows[i] for i in sorted(self.rows)]
        columns = {name: _column([row.get(name) for row in rows]) for name in dict.fromkeys(_names(rows))}
        metadata = {"study": self._plan.name, "version": self._plan.version, "checksum": self._plan.checksum}
        table = pa.table(columns).replace_schema_metadata(metadata)
        path = self.folder / TABLE
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, compression="zstd")
        try:
            self.sync()
        except OSError as error:
            raise _write_error(self.folder / JOURNAL, error) from error
        write_whole(path, buffer.getvalue().to_pybytes())
        return path


def _write_error(path: Path, error: OSError) -> RecordingError:
    return RecordingError(f"{error.strerror}. Earlier results are kept. Free disk space, then repeat the command", path)


def read_about(folder: Path) -> dict[str, Any]:
    """Return the description of the study from a folder of results.

    Raises:
        ConfigError: The folder has no results, or the description is damaged.
    """
    path = _existing(folder, ABOUT)
    return _parsed(path.read_bytes(), path)


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows in a folder of results, in order of the trials.

    Raises:
        ConfigError: The folder has no journal.
    """
    rows, _ = _read(_existing(folder, JOURNAL))
    return [rows[i] for i in sorted(rows)]


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise ConfigError(f"{path} does not exist: {folder} has no results of a study; give another folder")
    return path


def _read(path: Path) -> tuple[dict[int, dict[str, Any]], int]:
    """Return the complete rows of a journal by trial, and their total size in bytes."""
    rows, complete_bytes = {}, 0
    with path.open("rb") as file:
        for line in file:
            # A crash of the machine can leave an incomplete last line. Its trial is run again.
            if not line.endswith(b"\n"):
                break
            row = _parsed(line, path)
            rows[row["trial"]] = _interned(row)
            complete_bytes += len(line)
    return rows, complete_bytes


def _interned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with interned names, which are stored only once for all rows."""
    return {sys.intern(name): value for name, value in row.items()}


def _parsed(text: bytes, path: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"damaged ({error}); delete the folder to run all trials again", path) from error
    return dict(parsed)


def _names(rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for row in rows:
        yield from row


def _column(values: list[Any]) -> list[Any]:
    """Return values of one type: integers only if all are integers, and texts if some are not numbers."""
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({bool}, {int}, {str}):
        return values
    if kinds <= {bool, int, float}:
        return [math.nan if value is None else float(value) for value in values]
    return [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion at 95 %, which is also valid for few trials."""
    from scipy.stats import binomtest

    if trials == 0:
        return 0.0, 1.0
    interval = binomtest(successes, trials).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)
