"""Read and write OpenSim files: ``.mot`` and ``.sto`` tables (storage), ``.trc`` markers, external loads.

OpenSim's ground has y up: the vector (x, y, z) of bipedsim is (x, z, -y) there. Forces act on the person at the centre
of pressure, together with the free moment about the vertical through it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from bipedsim.errors import ConfigError, RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import PlateGeometry, PlateSignals
from bipedsim.recording.files import writing
from bipedsim.recording.lab.cells import (
    cells,
    complete_samples,
    fitted_rows,
    note_uneven_times,
    numbers,
    read_lines,
    separator,
)
from bipedsim.recording.lab.corrections import LOADED
from bipedsim.recording.lab.trial import Y_UP, LabTrial, Markers, length_unit

MARGIN = 0.1
"""Margin around the centres of pressure for the plate of a file without plates [m]."""
MOVED = 0.01
"""Distance of the CoP from the point of application of a loaded plate that needs a note [m]."""
MOST_HEADER = 1000
"""Maximum number of header lines."""


@dataclass(frozen=True, eq=False)
class Storage:
    """Table of OpenSim.

    Attributes:
        name: First line of the file.
        names: Column names, time first.
        values: (n, columns).
        degrees: Whether angles are in degrees, from the header.
        header: Other header entries, name to text.
        notes: Remarks for the reader.
    """

    name: str
    names: tuple[str, ...]
    values: Array
    degrees: bool
    header: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def t(self) -> Array:
        """(n,) [s]."""
        return self.values[:, 0]

    def column(self, name: str) -> Array:
        """Return a column (n,) by name."""
        return self.values[:, self.names.index(name)]


def write_storage(
    path: Path | str,
    names: Sequence[str],
    values: Array,
    degrees: bool = False,
    about: Sequence[str] = (),
) -> None:
    """Write a table as .mot or .sto.

    Args:
        path: The file, replaced if it exists.
        names: Column names; the first is ``time``. Blanks become ``_``, because they separate names.
        values: (n, columns).
        degrees: Whether angles are in degrees; otherwise they are in radians.
        about: Header lines that readers skip.

    Raises:
        ConfigError: Two columns have the same name.
        RecordingError: The file cannot be written.
    """
    path = Path(path)
    names = [re.sub(r"\s+", "_", name.strip()) for name in names]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigError("several columns; rename joints, feet or plates", f"{path}: {', '.join(doubled)}")
    lines = [
        path.stem,
        "version=1",
        f"nRows={len(values)}",
        f"nColumns={len(names)}",
        f"inDegrees={'yes' if degrees else 'no'}",
        *about,
        "endheader",
        "\t".join(names),
    ]
    _write(path, lines, values)


def _write(path: Path, lines: Sequence[str], values: Array) -> None:
    """Write lines and a tab-separated table."""
    with writing(path), path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines) + "\n")
        np.savetxt(file, values, fmt="%.12g", delimiter="\t")


def read_storage(path: Path | str) -> Storage:
    """Read a .mot or .sto file of numbers.

    Raises:
        RecordingError: The file cannot be read, or is not a storage file; the message says what was expected and found.
    """
    path = Path(path)
    lines = [line.strip() for line in read_lines(path)]
    end = next((k for k, line in enumerate(lines[:MOST_HEADER]) if line.lower() == "endheader"), None)
    if end is None:
        raise RecordingError(
            f"no .mot or .sto file: no such line in {len(lines[:MOST_HEADER])} lines, of which the first is "
            f"{lines[0][:80] if lines else ''!r}",
            f"{path}: endheader",
        )
    head, table = lines[: end + 1], [line for line in lines[end + 1 :] if line]
    # OpenSim separates by any white space, which a tab would not; spreadsheets change it to commas or semicolons.
    mark = separator(table[0].replace("\t", " ")) if table else ""
    names, *rows = [cells(line, mark) for line in table] or [[]]
    notes: list[str] = []
    header: dict[str, str] = {}
    for line in head[1:-1]:
        # The oldest format has `datarows 101` instead of `nRows=101`.
        key, _, value = line.partition("=") if "=" in line else line.partition(" ")
        header[key.strip().lower()] = value.strip()
    rows = fitted_rows(path, len(names), rows, notes)
    announced = header.get("nrows", header.get("datarows", ""))
    if announced.isdigit() and int(announced) != len(rows):
        notes.append(f"its header announces {announced} rows, and it has {len(rows)}: these are read")
    values = numbers(path, names, rows)
    if names[0].lower() != "time" or not (np.diff(values[:, 0]) > 0.0).all():
        raise RecordingError("must be an increasing `time`", f"{path}: first column", names[0])
    degrees = header.get("indegrees", "no").lower() == "yes"
    return Storage(head[0], tuple(names), values, degrees, header, tuple(notes))


def force_columns(name: str) -> tuple[str, ...]:
    """Return the nine column names of a force: ``ground_force_right_vx`` and so on for ``right``.

    Order: force x y z, point x y z, torque x y z. The names follow OpenSim's examples, which use ``r`` and ``l``.
    """
    force = [f"ground_force_{name}_{part}{axis}" for part in "vp" for axis in "xyz"]
    return (*force, *(f"ground_torque_{name}_{axis}" for axis in "xyz"))


def opensim_name(name: str) -> str:
    """Return the name of a foot or plate in OpenSim's columns: ``r`` and ``l`` for right and left."""
    return {"right": "r", "left": "l"}.get(name.lower(), re.sub(r"\W+", "_", name) or "plate")


def write_forces(plates: Sequence[PlateSignals], path: Path | str, threshold: float, about: Sequence[str] = ()) -> None:
    """Write plates as ground forces of OpenSim: force on the person, CoP and free moment of each plate.

    Unloaded plates are also written. They have no CoP up to a normal force of ``threshold``, so the point is then the
    centre of the plate and the torque is the moment about it. No force or moment is lost.

    Args:
        plates: Plates with common times.
        path: A .mot or .sto file, replaced if it exists.
        threshold: Minimum normal force of a CoP [N].
        about: Header lines.

    Raises:
        RecordingError: The file cannot be written.
    """
    names, blocks = ["time"], [plates[0].t[:, None]]
    for plate in plates:
        cop = plate.cop(threshold)
        known = np.isfinite(cop).all(axis=1, keepdims=True)
        point = np.where(known, cop, plate.geometry.centre)
        names += force_columns(opensim_name(plate.geometry.name))
        blocks += [plate.force() @ Y_UP.T, point @ Y_UP.T, plate.moment_about(point) @ Y_UP.T]
    write_storage(path, names, np.hstack(blocks), False, about)


def loads_xml(forces: Path, bodies: Mapping[str, str]) -> str:
    """Return the XML file that assigns forces to bodies in OpenSim's tools (``ExternalLoads``).

    Args:
        forces: The .mot file of :func:`write_forces`, relative to the XML file.
        bodies: Name of a plate to the name of the body in the model.
    """
    loads = "".join(
        f"""
			<ExternalForce name={quoteattr(name)}>
				<applied_to_body>{escape(body)}</applied_to_body>
				<force_expressed_in_body>ground</force_expressed_in_body>
				<point_expressed_in_body>ground</point_expressed_in_body>
				<force_identifier>ground_force_{opensim_name(name)}_v</force_identifier>
				<point_identifier>ground_force_{opensim_name(name)}_p</point_identifier>
				<torque_identifier>ground_torque_{opensim_name(name)}_</torque_identifier>
			</ExternalForce>"""
        for name, body in bodies.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8" ?>
<OpenSimDocument Version="40000">
	<ExternalLoads name="loads">
		<objects>{loads}
		</objects>
		<groups />
		<datafile>{escape(forces.name)}</datafile>
	</ExternalLoads>
</OpenSimDocument>
"""


def write_trc(markers: Markers, path: Path | str) -> None:
    """Write markers in mm with y up, as OpenSim's tools require; invisible points are empty.

    Raises:
        RecordingError: The file cannot be written.
    """
    path, n = Path(path), len(markers.t)
    rate = round((n - 1) / float(markers.t[-1] - markers.t[0]), 6) if n > 1 else 1.0
    count = len(markers.names)
    lines = [
        f"PathFileType\t4\t(X/Y/Z)\t{path.name}",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{rate:g}\t{rate:g}\t{n}\t{count}\tmm\t{rate:g}\t1\t{n}",
        "Frame#\tTime\t" + "\t\t\t".join(markers.names) + "\t\t",
        "\t\t" + "\t".join(f"{axis}{k}" for k in range(1, count + 1) for axis in "XYZ"),
        "",
    ]
    values = (1000.0 * markers.positions @ Y_UP.T).reshape(n, -1)
    with writing(path), path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines) + "\n")
        for k, (t, row) in enumerate(zip(markers.t, values, strict=True), 1):
            cells = ["" if math.isnan(value) else f"{value:.9g}" for value in row]
            file.write("\t".join([str(k), f"{t:.9g}", *cells]) + "\n")


def read_forces(path: Path | str) -> LabTrial:
    """Read the ground forces of a .mot or .sto file.

    Every name with columns ``NAMEvx, vy, vz`` and ``NAMEpx, py, pz`` is a plate. OpenSim uses ``ground_force_vx`` and
    ``1_ground_force_vx``, laboratories also ``ground_force_r_vx``. Torques are optional. These files do not describe
    plates: each plate is a rectangle around its CoPs, and its moments are computed from force, point and torque.

    Raises:
        RecordingError: The file has another format, or has no such columns.
    """
    path = Path(path)
    table = read_storage(path)
    unit_text = table.header.get("units", "m")
    # OpenSim writes a sentence: `Units are S.I. units (second, meters, Newtons, ...)`.
    unit = 1.0 if unit_text.lower().startswith("are s.i.") else length_unit(unit_text, f"{path}: units in its header")
    stems = [name[:-2] for name in table.names if name.endswith("vx")]
    stems = [s for s in stems if {s + part + axis for part in "vp" for axis in "xyz"} <= set(table.names)]
    if not stems:
        raise RecordingError(
            "none: expected columns such as ground_force_r_vx, _vy, _vz, _px, _py, _pz, found "
            f"{', '.join(table.names[:24])}{', ...' if len(table.names) > 24 else ''}",
            f"{path}: ground forces",
        )
    notes = list(table.notes)
    note_uneven_times(table.t, notes)
    plates = []
    for stem in stems:
        force, point = (np.column_stack([table.column(f"{stem}{part}{axis}") for axis in "xyz"]) for part in "vp")
        torque, torque_stem = np.zeros_like(force), _torque_stem(stem, table.names)
        if torque_stem is None:
            notes.append(f"{stem}vx: without torques, which count as zero")
        else:
            torque = np.column_stack([table.column(f"{torque_stem}{axis}") for axis in "xyz"])
        sample = complete_samples(f"{stem}vx", table.t, np.hstack([force, torque]), notes, point)
        force, point, torque = sample[:, :3] @ Y_UP, unit * point @ Y_UP, unit * sample[:, 3:] @ Y_UP
        plate = plate_of_forces(_plate_name(stem), table.t, force, point, torque)
        plates.append(plate)
        loaded = plate.loaded(LOADED) & np.isfinite(point).all(axis=1)
        moved = np.linalg.norm((plate.cop() - point)[loaded, :2], axis=1).max(initial=0.0)
        if moved > MOVED:
            notes.append(
                f"{stem}vx: its horizontal torques and the heights of its points put the CoP up to {1e3 * moved:.3g} "
                "mm from the points: as in OpenSim, force and torque both act; check the unit of the torques"
            )
    return LabTrial(path.stem, tuple(plates), notes=tuple(notes))


def _torque_stem(stem: str, names: Sequence[str]) -> str | None:
    """Return the prefix of the torque columns; None if there are none."""
    for candidate in (stem.replace("force", "torque"), stem.replace("force", "moment"), stem + "m"):
        if {candidate + axis for axis in "xyz"} <= set(names) and candidate != stem:
            return candidate
    return None


def _plate_name(stem: str) -> str:
    """Return the plate name in a column prefix: ``r`` in ``ground_force_r_``, ``1`` in ``1_ground_force_``."""
    name = re.sub(r"_*(ground|force|grf)_*", "_", stem).strip("_")
    return {"r": "right", "l": "left"}.get(name, name or "plate")


def plate_of_forces(name: str, t: Array, force: Array, point: Array, torque: Array) -> PlateSignals:
    """Convert forces at points to a plate of type 2 in the plane of the points.

    Args:
        name: Name of the plate.
        t: (n,) [s].
        force: (n, 3) force on the person, in the world [N].
        point: (n, 3) point of application [m].
        torque: (n, 3) about that point [N.m].
    """
    loaded = np.isfinite(point).all(axis=1) & (np.abs(force[:, 2]) > 0.0)
    points = point[loaded] if loaded.any() else np.zeros((1, 3))
    height = float(np.median(points[:, 2]))
    (x0, y0), (x1, y1) = points[:, :2].min(axis=0) - MARGIN, points[:, :2].max(axis=0) + MARGIN
    # Manufacturers let z point down, so the y axis of the corners is reversed.
    corners = np.array([[x1, y0, height], [x0, y0, height], [x0, y1, height], [x1, y1, height]])
    rate = round((len(t) - 1) / float(t[-1] - t[0]), 6) if len(t) > 1 else 1.0
    geometry = PlateGeometry(name, corners, 2, rate)
    moment = torque + np.cross(np.nan_to_num(point) - geometry.transducer_origin, force)
    rotation = geometry.rotation
    return PlateSignals(t, geometry, np.nan_to_num(np.hstack([force @ rotation, moment @ rotation])))
