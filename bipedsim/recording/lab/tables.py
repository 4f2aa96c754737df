"""Write tables of named columns with units as CSV, Parquet and MATLAB files."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy

from bipedsim.errors import ConfigError, RecordingError, install
from bipedsim.numerics import Array
from bipedsim.recording.files import writing

LONGEST = 63
"""Maximum length of a MATLAB name in ASCII characters."""


@dataclass(frozen=True, eq=False)
class LabTable:
    """Columns with names and units.

    Attributes:
        columns: Name to values (n,).
        units: Name to unit; empty if there is none.
        about: Description of the processing, name to text.
    """

    columns: Mapping[str, Array]
    units: Mapping[str, str]
    about: Mapping[str, str] = field(default_factory=dict)

    def headers(self) -> list[str]:
        """Return column names with units: ``left_Fz[N]``."""
        return [f"{name}[{self.units[name]}]" if self.units[name] else name for name in self.columns]


def write_csv(table: LabTable, path: Path | str) -> None:
    """Write a table as CSV: ``# key: text`` lines, names with units, then rows; NaN as empty cells.

    Raises:
        RecordingError: The file cannot be written.
    """
    path = Path(path)
    values = np.column_stack(list(table.columns.values()))
    line = ",".join(["%.12g"] * values.shape[1]) + "\n"
    with writing(path), path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {key}: {text}\n" for key, text in table.about.items())
        csv.writer(file, lineterminator="\n").writerow(table.headers())
        for start in range(0, len(values), 2000):
            rows = values[start : start + 2000].tolist()
            file.write("".join([line % tuple(row) for row in rows]).replace("nan", ""))


def write_parquet(table: LabTable, path: Path | str) -> None:
    """Write a table as Parquet with 64-bit floats; column metadata contain units, schema metadata the rest.

    Raises:
        ConfigError: pyarrow is missing.
        RecordingError: The file cannot be written.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigError(f"Parquet needs the library pyarrow: {install('bipedsim[lab]')} ({error})") from error
    path = Path(path)
    fields = [pa.field(name, pa.float64(), metadata={"unit": table.units[name]}) for name in table.columns]
    schema = pa.schema(fields, metadata=dict(table.about))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table([pa.array(values) for values in table.columns.values()], schema=schema), path)
    except OSError as error:
        raise RecordingError(f"cannot be written ({error})", path) from error


def write_mat(table: LabTable, path: Path | str) -> None:
    """Write a table as a MATLAB file (version 5) with the structs ``data``, ``units`` and ``about``.

    Raises:
        ConfigError: Two columns have the same name in MATLAB's character set.
        RecordingError: The file cannot be written.
    """
    path = Path(path)
    names = {name: _matlab_name(name) for name in table.columns}
    if len(set(names.values())) < len(names):
        duplicates = sorted({n for n in names.values() if list(names.values()).count(n) > 1})
        raise ConfigError("several columns in MATLAB; rename joints or feet", f"{path}: {', '.join(duplicates)}")
    data = {names[name]: values[:, None] for name, values in table.columns.items()}
    units = {names[name]: table.units[name] for name in table.columns}
    about = {_matlab_name(key): text for key, text in table.about.items()}
    with writing(path):
        scipy.io.savemat(path, {"data": data, "units": units, "about": about}, long_field_names=True)


def _matlab_name(name: str) -> str:
    """Convert a name to a valid MATLAB name."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)[:LONGEST]
    return text if text[:1].isalpha() else f"x_{text}"[:LONGEST]
