"""Read force-plate tables in text files, which laboratories publish in addition to C3D.

The first line contains the column names, which identify two layouts:

* ``Fx[N] Fy[N] Fz[N] Mx[Nm] My[Nm] Mz[Nm]``, with units in the names: one plate with z up. The columns are the reaction
  on the person about the centre of the surface (BMClab's BDS, Santos and Duarte 2016). Other columns are ignored.
* ``NAMEGRF_X, _Y, _Z`` with ``NAMECOP_X, _Z`` and ``NAMEFREEMOMENT_Y``: one plate per foot with y up, in newtons and
  metres (BMClab's PDS, dos Santos et al. 2017). ``GRFNET`` is their sum and is not a plate.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from bipedsim.errors import RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import PlateGeometry, PlateSignals
from bipedsim.recording.lab.cells import complete_samples, note_uneven_times, numbers, read_lines
from bipedsim.recording.lab.opensim import plate_of_forces
from bipedsim.recording.lab.trial import Y_UP, LabTrial, force_unit, length_unit, moment_unit

HALF = 0.3
"""Half the side length of a plate of unknown size [m]."""
FEET = {"L": "left", "R": "right"}


def read_text(path: Path | str) -> LabTrial:
    """Read a table in one of these layouts.

    Raises:
        RecordingError: The file cannot be read, is damaged, or has other columns.
    """
    path = Path(path)
    first, *lines = read_lines(path) or [""]
    names = re.split(r"[\t,; ]+", first.strip())
    rows = [re.split(r"[\t,; ]+", line.strip()) for line in lines if line.strip()]
    bad_row = next((k for k, row in enumerate(rows) if len(row) != len(names)), None)
    if bad_row is not None:
        raise RecordingError(f"damaged: {len(names)} columns, {len(rows[bad_row])} numbers in row {bad_row + 1}", path)
    values = numbers(path, names, rows)
    columns = {name.partition("[")[0].lower(): values[:, k] for k, name in enumerate(names)}
    units = {name.partition("[")[0].lower(): name.partition("[")[2].rstrip("]") for name in names}
    t = columns.get("time", columns.get("t"))
    feet = [name[: -len("GRF_X")] for name in names if name.endswith("GRF_X") and name != "GRF_X"]
    wrench_columns = [f"{kind}{axis}" for kind in "fm" for axis in "xyz"]
    if t is None or len(t) < 2 or not (np.diff(t) > 0.0).all() or not (feet or set(wrench_columns) <= set(columns)):
        raise RecordingError(
            "no force plates: expected an increasing column Time, and Fx[N] ... Mz[Nm], or LGRF_X ... LCOP_Z; found "
            f"{len(rows)} rows of {', '.join(names[:24])}",
            path,
        )
    notes: list[str] = []
    note_uneven_times(t, notes)
    if not feet:
        return LabTrial(path.stem, (_wrench(path, t, columns, units, notes),), notes=tuple(notes))
    plates = []
    for foot in feet:
        axes = [[f"{foot}{kind}_{axis}".lower() for axis in "XYZ"] for kind in ("GRF", "COP")]
        missing = [name for name in (*axes[0], axes[1][0], axes[1][2]) if name not in columns]
        if missing:
            raise RecordingError(f"plate {foot!r} lacks them", f"{path}: columns {', '.join(missing)}")
        force, point = (np.column_stack([columns.get(name, np.zeros(len(t))) for name in three]) for three in axes)
        twist = np.zeros((len(t), 3))
        twist[:, 1] = columns.get(f"{foot}FREEMOMENT_Y".lower(), 0.0)
        name = FEET.get(foot.upper(), foot)
        sample = complete_samples(f"plate {foot!r}", t, np.hstack([force, twist]), notes, point)
        plates.append(plate_of_forces(name, t, sample[:, :3] @ Y_UP, point @ Y_UP, sample[:, 3:] @ Y_UP))
    return LabTrial(path.stem, tuple(plates), notes=tuple(notes))


def _wrench(path: Path, t: Array, columns: dict[str, Array], units: dict[str, str], notes: list[str]) -> PlateSignals:
    """Return the single plate of a table with wrenches."""
    scale = [force_unit(units[f"f{a}"] or "N", f"{path}: F{a}") for a in "xyz"]
    scale += [moment_unit(units[f"m{a}"] or "Nm", f"{path}: M{a}") for a in "xyz"]
    wrench = np.column_stack([columns[f"{kind}{axis}"] for kind in "fm" for axis in "xyz"])
    wrench = complete_samples("force plate 1", t, wrench, notes) * np.array(scale)
    half = HALF
    for axis in "xy":
        name = f"cop{axis}"
        if name in columns and units[name]:
            metres = length_unit(units[name], f"{path}: COP{axis}")
            half = max(half, 1.1 * metres * float(np.nanmax(np.abs(columns[name]), initial=0.0)))
    corners = half * np.array([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0]])
    rate = round((len(t) - 1) / float(t[-1] - t[0]), 6)
    return PlateSignals(t, PlateGeometry("1", corners, 2, rate), wrench)
