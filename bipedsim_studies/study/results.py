"""What a study leaves: a journal to which each row is added as it comes, and the table of all of them in order."""

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

from bipedsim.config import changes, to_json
from bipedsim.errors import ConfigError, RecordingError, install, some
from bipedsim_studies.study.config import Plan
from bipedsim_studies.study.trial import FAILED

JOURNAL, TABLE, ABOUT = "trials.jsonl", "results.parquet", "study.json"
SYNC = 1.0
"""Rows are forced onto the disk so often [s], and whenever something is said of them."""


class Results:
    """The folder of a study; to be used as a context.

    Args:
        folder: Made if there is none.
        plan: What is run.
        restart: Forget what is there.

    Attributes:
        rows: Number of the trial to its row, those of an earlier session first.
        again: How many trials of an earlier session gave no result, and are tried again.

    Raises:
        ConfigError: The folder has results of something else, or of other code or files.
    """

    def __init__(self, folder: Path, plan: Plan, restart: bool = False) -> None:
        self.folder = folder
        self.rows: dict[int, dict[str, Any]] = {}
        self.again = 0
        self._synced = -math.inf
        self._plan = plan
        folder.mkdir(parents=True, exist_ok=True)
        about = folder / ABOUT
        if not about.exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty and no study's; give another folder with -o")
        # Without a buffer, of which the end of the process would have to make another attempt on a full disk.
        self._journal: FileIO = (folder / JOURNAL).open("ab", buffering=0)
        try:
            self._take(about, restart)
        except BaseException:
            self._journal.close()
            raise

    def _take(self, about: Path, restart: bool) -> None:
        """Keep others out of the folder while this process lives, and read what is there."""
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            text = f"another study writes into {self.folder} now; wait for it, or give another folder with -o"
            raise ConfigError(text) from error
        if restart:
            self._journal.truncate(0)
        elif about.exists():
            self._continue(_parsed(about.read_bytes(), about))
            return
        plan = self._plan
        said = {"study": plan.name, "description": plan.description, "trials": len(plan.trials)}
        said |= {"version": plan.version, "asked": plan.asked, "content": dict(plan.needs.content)}
        if plan.conditions:
            said["conditions"] = dict(plan.conditions)
        write_whole(about, (to_json(said) + "\n").encode())

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(OSError):
            self.sync()
        self._journal.close()

    def _continue(self, about: Mapping[str, Any]) -> None:
        plan = self._plan
        theirs = f"{self.folder} holds results of study {about.get('study')!r}"
        way_out = "--restart runs all trials again, another folder (-o) keeps both"
        if about.get("asked") != plan.asked:
            raise ConfigError(f"{theirs}, which asks for other runs than now (its file or options changed); {way_out}")
        if about.get("content") != dict(plan.needs.content):
            said = changes(about.get("content", {}), plan.needs.content)
            raise ConfigError(f"{theirs}, which came from other code or files: {some(said)}; {way_out}")
        path = self.folder / JOURNAL
        rows, whole = _read(path)
        self.rows = {i: row for i, row in rows.items() if row["outcome"] not in FAILED}
        self.again = len(rows) - len(self.rows)
        os.truncate(path, whole)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row: at once through the end of this process, through that of the machine after :data:`SYNC`.

        Raises:
            RecordingError: The disk does not take it.
        """
        try:
            line = (json.dumps(row) + "\n").encode()
            if self._journal.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if time.monotonic() - self._synced > SYNC:
                self.sync()
        except OSError as error:
            raise _unwritten(self.folder / JOURNAL, error) from error
        self.rows[row["trial"]] = _shared(row)

    def sync(self) -> None:
        """Force all rows onto the disk.

        Raises:
            OSError: The disk does not take them.
        """
        os.fsync(self._journal.fileno())
        self._synced = time.monotonic()

    def write_table(self) -> Path:
        """Write all rows that there are, by trial, as Parquet; the same rows give the same bytes.

        Raises:
            RecordingError: The disk does not take it.
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
        written = pa.BufferOutputStream()
        pq.write_table(table, written, compression="zstd")
        try:
            self.sync()
        except OSError as error:
            raise _unwritten(self.folder / JOURNAL, error) from error
        write_whole(path, written.getvalue().to_pybytes())
        return path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is on the disk whole, or as it was before.

    Raises:
        RecordingError: The disk does not take it.
    """
    new = path.with_name(f".{path.name}")
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as error:
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: OSError) -> RecordingError:
    return RecordingError(
        f"{path}: {error.strerror}; what was written before is kept: make room, then repeat the command"
    )


def read_about(folder: Path) -> dict[str, Any]:
    """Return what a folder of results says of the study that it is of.

    Raises:
        ConfigError: It is no such folder, or damaged.
    """
    path = folder / ABOUT
    if not path.is_file():
        raise ConfigError(f"{folder} is no folder of results: there is no {ABOUT} in it")
    return _parsed(path.read_bytes(), path)


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows that a folder of results holds, by trial.

    Raises:
        ConfigError: It holds none.
    """
    path = folder / JOURNAL
    if not path.is_file():
        raise ConfigError(f"{folder} is no folder of results: there is no {JOURNAL} in it")
    rows, _ = _read(path)
    return [rows[i] for i in sorted(rows)]


def _read(path: Path) -> tuple[dict[int, dict[str, Any]], int]:
    """Return the whole rows of a journal by trial, and how many bytes they are."""
    rows, whole = {}, 0
    with path.open("rb") as file:
        for line in file:
            # A line that was being written when the machine went down has no end; its trial is run again.
            if not line.endswith(b"\n"):
                break
            row = _parsed(line, path)
            rows[row["trial"]] = _shared(row)
            whole += len(line)
    return rows, whole


def _shared(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with names that are in memory once for all rows."""
    return {sys.intern(name): value for name, value in row.items()}


def _parsed(text: bytes, path: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path}: damaged ({error}); --restart runs all trials again") from error
    return dict(parsed)


def _names(rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for row in rows:
        yield from row


def _column(values: list[Any]) -> list[Any]:
    """Return values of one type: whole numbers only where all are, and texts where some are no numbers."""
    kinds = {type(value) for value in values if value is not None}
    if kinds in ({bool}, {int}, {str}):
        return values
    if kinds <= {bool, int, float}:
        return [math.nan if value is None else float(value) for value in values]
    return [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]


def wilson(successes: int, trials: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Return the interval of a share at 95 % by Wilson's score (J. Am. Stat. Assoc. 22, 1927).

    It holds for few trials too, and for none or all of them successful.
    """
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    scale = 1.0 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z * math.sqrt(share * (1.0 - share) / trials + z * z / (4.0 * trials * trials)) / scale
    return max(0.0, centre - half), min(1.0, centre + half)
