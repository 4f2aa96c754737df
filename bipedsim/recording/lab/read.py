"""Read a laboratory trial from a file of any supported format."""

from __future__ import annotations

from pathlib import Path

from bipedsim.config import check_readable
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.recording.csv import has_columns_of_a_run
from bipedsim.recording.lab.c3d_reader import read_c3d
from bipedsim.recording.lab.opensim import read_forces
from bipedsim.recording.lab.text import read_text
from bipedsim.recording.lab.trial import LabTrial

_READERS = {".c3d": read_c3d, ".mot": read_forces, ".sto": read_forces} | dict.fromkeys(
    (".txt", ".csv", ".tsv", ".forces"), read_text
)


def is_trial(path: Path | str) -> bool:
    """Return whether :func:`read_trial` reads a file: it has the suffix of a laboratory, and is no table of a run.

    Raises:
        RecordingError: A .csv file does not exist or cannot be read.
    """
    suffix = Path(path).suffix.lower()
    return suffix in _READERS and not (suffix == ".csv" and has_columns_of_a_run(Path(path)))


def read_trial(path: Path | str) -> LabTrial:
    """Read a trial: C3D, ground forces of OpenSim (.mot or .sto), or a table (.txt, .csv, .tsv, .forces).

    Raises:
        RecordingError: The file cannot be read, is damaged, has no force plates, or has unknown units or axes. The
            message says what was expected and found.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    check_readable(path, RecordingError)
    if reader is None:
        raise RecordingError(f"not a laboratory file; its name must end in {', '.join(_READERS)}", path)
    try:
        return reader(path)
    except ConfigError as error:
        raise RecordingError(error, path) from error
