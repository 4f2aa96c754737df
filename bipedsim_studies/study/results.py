"""What a study leaves: a journal to which each row is added as it comes, and the table of all of them in order."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from bipedsim.config import to_json
from bipedsim.errors import ConfigError, RecordingError, install
from bipedsim_studies.study.config import Plan

JOURNAL, TABLE, ABOUT = "trials.jsonl", "results.parquet", "study.json"


class Results:
    """The folder of a study; to be used as a context.

    Args:
        folder: Made if there is none.
        plan: What is run.
        restart: Forget what is there.

    Attributes:
        rows: Number of the trial to its row, those of an earlier session first.

    Raises:
        ConfigError: The folder has results of something else, or of another version.
    """

    def __init__(self, folder: Path, plan: Plan, restart: bool = False) -> None:
        self.folder = folder
        self.rows: dict[int, dict[str, Any]] = {}
        self._plan = plan
        folder.mkdir(parents=True, exist_ok=True)
        about = folder / ABOUT
        if not about.exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty and no study's; give another folder with -o")
        self._journal: IO[str] = (folder / JOURNAL).open("a", encoding="utf-8")
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
        about.write_text(to_json(said | {"version": plan.version, "checksum": plan.checksum}) + "\n")

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_error: object) -> None:
        self._journal.close()

    def _continue(self, about: Mapping[str, Any]) -> None:
        if about.get("checksum") != self._plan.checksum:
            theirs = f"study {about.get('study')!r} of version {about.get('version')}"
            raise ConfigError(
                f"{self.folder} holds results of {theirs}, which is not what would be run now (file or bipedsim was "
                "changed); give another folder with -o, or --restart"
            )
        path = self.folder / JOURNAL
        self.rows, whole = _read(path)
        os.truncate(path, whole)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row; it is on the disk when this returns.

        Raises:
            RecordingError: The disk does not take it.
        """
        try:
            self._journal.write(json.dumps(row) + "\n")
            self._journal.flush()
        except OSError as error:
            raise RecordingError(
                f"{self.folder / JOURNAL}: {error.strerror}; what was written before is kept"
            ) from error
        self.rows[row["trial"]] = row

    def write_table(self) -> Path:
        """Write all rows that there are, by trial, as Parquet; the same rows give the same bytes."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise ConfigError(f"results in Parquet need pyarrow: {install('bipedsim[study]')} ({error})") from error
        rows = [self.rows[i] for i in sorted(self.rows)]
        columns = {name: _column([row.get(name) for row in rows]) for name in dict.fromkeys(_names(rows))}
        metadata = {"study": self._plan.name, "version": self._plan.version, "checksum": self._plan.checksum}
        table = pa.table(columns).replace_schema_metadata(metadata)
        path, new = self.folder / TABLE, self.folder / f".{TABLE}"
        pq.write_table(table, new, compression="zstd")
        os.replace(new, path)
        return path


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
            rows[row["trial"]] = row
            whole += len(line)
    return rows, whole


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
