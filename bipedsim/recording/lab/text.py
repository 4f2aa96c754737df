"""Read force plates from the text files of laboratories: one row per sample, one column per component.

A row of names identifies the columns, with force, moment, CoP and free moment of each plate (:data:`NAME`). A unit is
in brackets behind the name, or in the row below. Further rows above the names are the header.

Axes and signs depend on the maker:

* BioWare (a column ``abs time``): load on the plate, z into the floor (Kistler, *Force Plate Formulae*).
* Qualisys (``FORCE_PLATE_...`` in the header): load on the plate, in the axes that ``DESCRIPTION`` names.
* Others: reaction on the person. The axis of the largest force is the vertical and points up.

If the force contradicts the sign, it is reversed with a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bipedsim.config import together
from bipedsim.errors import RecordingError, shown, some
from bipedsim.numerics import Array, Flags
from bipedsim.plates import THRESHOLD, PlateGeometry, PlateSignals
from bipedsim.recording.lab.cells import (
    cells,
    complete_samples,
    decimal_mark,
    fitted_rows,
    note_uneven_times,
    number,
    numbers,
    read_lines,
    separator,
)
from bipedsim.recording.lab.corrections import fitted_rectangle, is_reversed, with_moment_unit
from bipedsim.recording.lab.opensim import plate_of_forces
from bipedsim.recording.lab.rate import rejected_rates, sampling_rate
from bipedsim.recording.lab.trial import UPRIGHT, LabTrial, force_unit, length_unit, moment_unit, time_unit

HALF = 0.3
"""Half the side length of a plate of unknown size [m]."""
FAR = 20.0
"""Largest distance of a CoP from the origin in a laboratory [m]; larger numbers without a unit are in mm."""
CONSISTENT = 1e-4
"""Deviation of the CoP from force and moment that needs no note [m]; files have few digits."""
MOST_HEADER = 200
"""Maximum number of lines before the names."""
FEET = {"l": "left", "r": "right"}
KINDS = {
    **dict.fromkeys(("f", "for", "force", "grf"), "force"),
    **dict.fromkeys(("m", "mom", "moment"), "moment"),
    **dict.fromkeys(("a", "c", "cop", ""), "cop"),
    **dict.fromkeys(("t", "freemoment"), "twist"),
}
"""Names of a quantity (lower case) to the quantity. BioWare writes ``Ax``, Nexus ``Cx``, Cortex ``X1`` for a CoP."""
NAME = re.compile(
    r"(?P<before>.*?)[_. :-]*(?P<kind>freemoment|grf|force|for|f|moment|mom|m|cop|c|a|t)[_. ]*(?P<axis>[xyz])"
    r"[_. ]*(?P<after>\d*)",
    re.IGNORECASE,
)
"""Column name: plate, quantity, axis, and the number of the plate, as in ``Fx1``, ``FP1.ForX``, ``LGRF_X``,
``left_CoPx``."""
_POINT = re.compile(r"(?P<before>)(?P<kind>)(?P<axis>[xyz])(?P<after>\d+)", re.IGNORECASE)
_TIME = re.compile(r"(abs |elapsed )?time( ?stamp)?|t", re.IGNORECASE)
_UNIT = re.compile(r"(?P<name>.*?)\s*[\[(](?P<unit>[^\])]*)[\])]")
_DOWN = np.diag([1.0, -1.0, -1.0])
"""Rotation of axes with z into the floor to those of the world."""
EXPECTED = (
    "a row of column names with force and moment, or force and CoP, of each plate, such as Time[s], Fx[N], Fy[N], "
    "Fz[N], Mx[N.m], My[N.m], Mz[N.m]"
)

Column = tuple[str, str]
"""Quantity and axis of a column, such as ``("force", "x")``."""


class _Table(NamedTuple):
    """A table: cells of the lines above, names, units, names of the devices (each per column), rows and marks."""

    head: list[list[str]]
    names: list[str]
    units: list[str]
    groups: list[str]
    rows: list[list[str]]
    separator: str
    decimal: str = ""


class _Columns(NamedTuple):
    """Numbers of a plate by quantity, (n, 3) each, in SI units where the file states units.

    ``given`` has the axes of each quantity that have a column, and ``stated`` the quantities with a unit. An axis
    without a column is zero.
    """

    values: Mapping[str, Array]
    given: Mapping[str, str]
    stated: frozenset[str]


class _Frame(NamedTuple):
    """Meaning of the numbers of a file.

    Attributes:
        axes: (3, 3) rotation from the axes of the file to a world with z up.
        centre: (3,) origin of the CoP and of the axes in the world [m].
        up: Name of the vertical axis in the file.
        sign: 1 for the reaction on the person, -1 for the load on the plate.
        length: Unit of lengths without a stated one [m].
        moments: Possible units of moments without a stated one [N.m].
        corners: (4, 3) of the plate [m]; None if unknown.
    """

    axes: Array
    centre: Array
    up: str
    sign: float
    length: float
    moments: tuple[float, ...]
    corners: Array | None


def read_text(path: Path | str) -> LabTrial:
    """Read force plates from a text file.

    Raises:
        RecordingError: The file cannot be read, is damaged, or lacks times, names or units. The message lists all
            missing columns.
    """
    path = Path(path)
    notes: list[str] = []
    table = _table(path, notes)
    found = _plates(table)
    used = [*_time_column(table), *(k for indices in found.values() for k in indices.values())]
    rows = [[row[k] for k in used] for row in table.rows]
    table = table._replace(decimal=decimal_mark(path, [table.names[k] for k in used], rows))
    t = _times(path, table, notes)
    columns: dict[str, _Columns] = {}
    plates, errors = [], []
    for name, indices in found.items():
        try:
            columns[name] = _columns(f"{path}: plate {shown(name)}", path, table, indices)
        except RecordingError as error:
            errors.append(error)
    together(errors, RecordingError)
    frame = _frame(table, columns, notes)
    for name, plate in columns.items():
        try:
            plates.append(_plate(f"{path}: plate {shown(name)}", name, t, frame, plate, notes))
        except RecordingError as error:
            errors.append(error)
    if plates:
        notes += [f"left out: {error}" for error in errors]
    else:
        together(errors, RecordingError)
    return LabTrial(path.stem, tuple(plates), notes=tuple(notes))


def _table(path: Path, notes: list[str]) -> _Table:
    """Find the row of names, and return the table below it.

    Raises:
        RecordingError: There is no such row, or the rows below have other numbers of cells.
    """
    lines = read_lines(path)
    at = next((k for k, line in enumerate(lines[:MOST_HEADER]) if _has_force(line)), None)
    if at is None:
        raise RecordingError(f"no force plates: expected {EXPECTED}; found {_content(lines)}", path)
    mark = separator(lines[at])
    names = cells(lines[at].lstrip("%# ").rstrip(mark or None), mark)
    count = len(names)
    head = [cells(line, mark) for line in lines[:at]]
    split = [(k, cells(line, mark)) for k, line in enumerate(lines[at + 1 :]) if line.strip(f" \0{mark or ' '}")]
    units = [""] * count
    if split and not any(map(_is_number, split[0][1])):
        units = [*split.pop(0)[1], *units][:count]
    # Another table may follow an empty line: the markers in a file of Nexus.
    end = next(
        (k for k in range(1, len(split)) if split[k][0] > split[k - 1][0] + 1 and not _is_number(split[k][1][0])),
        len(split),
    )
    rows = fitted_rows(path, count, [row for _, row in split[:end]], notes)
    for k, name in enumerate(names):
        if match := _UNIT.fullmatch(name):
            names[k], units[k] = match["name"].strip(), match["unit"]
    return _Table(head, names, units, _groups(head, count), rows, mark)


def _content(lines: list[str]) -> str:
    """Return a description of a file without names."""
    first = next((line.strip(" \t\0") for line in lines if line.strip(" \t\0")), "")
    row = cells(first, separator(first))
    if not row:
        return "an empty file"
    if all(map(_is_number, row)):
        # AMTI's NetForce writes neither names nor rate.
        return f"{len(row)} columns without names; add them, and a line such as `Rate (Hz),1000` above"
    return repr(first[:80])


def _is_number(cell: str) -> bool:
    return any(np.isfinite(number(cell, mark)) for mark in ".,")


def _has_force(line: str) -> bool:
    names = cells(line, separator(line))
    return {"x", "y", "z"} <= {axis for kind, axis in map(_column, names) if kind == "force"}


def _groups(head: list[list[str]], count: int) -> list[str]:
    """Return the device of each column: the row ``Device`` of BioWare, or the row above the names of Nexus."""
    row = next((row for row in head if row[0].rstrip(":").lower() == "device"), None)
    if row is None and head and len(head[-1]) > 1 and not head[-1][0]:
        row = head[-1]
        for k in range(1, len(row)):
            # Nexus names a device above its first column, and the quantity behind a dash.
            row[k] = row[k].rpartition(" - ")[0] or row[k] or row[k - 1]
    return ([] if row is None else row[:count]) + [""] * (count - len(row or []))


def _column(name: str) -> Column:
    """Return quantity and axis of a column; empty texts if it has none."""
    match = _match(name)
    return (KINDS[match["kind"].lower()], match["axis"].lower()) if match else ("", "")


def _match(name: str) -> re.Match[str] | None:
    bare = _UNIT.fullmatch(name)
    name = bare["name"].strip() if bare else name
    return NAME.fullmatch(name) or _POINT.fullmatch(name)


def _plates(table: _Table) -> dict[str, dict[Column, int]]:
    """Return the columns of each plate that has a force; names that repeat begin another plate."""
    plates: dict[tuple[str, ...], dict[Column, int]] = {}
    for k, name in enumerate(table.names):
        match = _match(name)
        if match is None:
            continue
        own = (table.groups[k], match["before"].strip("_. :-"), match["after"])
        repeated = 1
        while _column(name) in plates.setdefault((*own, str(repeated)), {}):
            repeated += 1
        plates[(*own, str(repeated))][_column(name)] = k
    # Sums of plates are no plates.
    found = {
        key: columns
        for key, columns in plates.items()
        if {("force", axis) for axis in "xyz"} <= set(columns) and key[1].lower() not in ("total", "net")
    }
    names = [" ".join(filter(None, key[:3])) for key in found]
    names = [FEET.get(name.lower(), name) or "1" for name in names]
    numbered = [name if names.count(name) == 1 else f"{name} ({k})".strip() for k, name in enumerate(names, 1)]
    return dict(zip(numbered, found.values(), strict=True))


def _time_column(table: _Table) -> list[int]:
    """Return the index of the column of times; empty without one."""
    return [k for k, name in enumerate(table.names) if _TIME.fullmatch(name)][:1]


def _times(path: Path, table: _Table, notes: list[str]) -> Array:
    """Return the times (n,) [s], from their column or from the rate in the header.

    Raises:
        RecordingError: There is neither, the times do not increase, or the header has contradicting rates.
    """
    found = "none"
    for k in _time_column(table):
        t = time_unit(table.units[k], f"{path}: {table.names[k]}") * _numbers(path, table, [k])[:, 0]
        if len(t) > 1 and (np.diff(t) > 0.0).all():
            note_uneven_times(t, notes)
            return t
        found = f"column {shown(table.names[k])}, which does not increase"
    rate = sampling_rate(path, table.head, (table.separator, table.decimal), table.names[0].lower() == "frame", notes)
    if rate is None:
        if rejected := rejected_rates(table.head):
            found += f". These are no sampling rates in Hz: {some(rejected)}"
        raise RecordingError(
            f"expected an increasing column Time[s], or a line such as `Rate (Hz),1000` above the names; found {found}",
            f"{path}: times",
        )
    return np.arange(len(table.rows)) / rate


def _numbers(path: Path, table: _Table, columns: Sequence[int]) -> Array:
    names = [table.names[k] for k in columns]
    return numbers(path, names, [[row[k] for k in columns] for row in table.rows], table.decimal)


def _columns(where: str, path: Path, table: _Table, columns: Mapping[Column, int]) -> _Columns:
    """Return the numbers of a plate.

    Raises:
        RecordingError: A unit is unknown, or a cell is no number.
    """
    read = dict(zip(columns, _numbers(path, table, list(columns.values())).T, strict=True))
    values, given, stated = {}, {}, set()
    for kind, unit in (("force", force_unit), ("moment", moment_unit), ("cop", length_unit), ("twist", moment_unit)):
        values[kind] = np.zeros((len(table.rows), 3))
        given[kind] = "".join(axis for axis in "xyz" if (kind, axis) in columns)
        for axis in given[kind]:
            k = columns[kind, axis]
            scale = 1.0
            if table.units[k]:
                scale = unit(table.units[k], f"{where}: {table.names[k]}")
                stated.add(kind)
            values[kind][:, "xyz".index(axis)] = scale * read[kind, axis]
    return _Columns(values, given, frozenset(stated))


def _frame(table: _Table, plates: Mapping[str, _Columns], notes: list[str]) -> _Frame:
    """Return the frame of a file by its maker, or by the forces of all plates."""
    header = {row[0]: row[1] for row in table.head if len(row) > 1}
    if any(_TIME.fullmatch(name) and name.lower().startswith("abs") for name in table.names):
        return _Frame(_DOWN, np.zeros(3), "z", -1.0, 1.0, (1.0,), None)
    if any(key.startswith("FORCE_PLATE_") for key in header):
        corners = _corners(header)
        corners = None if corners is None else fitted_rectangle("1", corners, notes)
        local = "local" in header.get("DESCRIPTION", "").lower()
        if local and corners is not None:
            geometry = PlateGeometry("1", corners)
            return _Frame(geometry.rotation, geometry.centre, "z", -1.0, 1e-3, (1.0, 1e-3), corners)
        return _Frame(_DOWN if local else np.eye(3), np.zeros(3), "z", -1.0, 1e-3, (1.0, 1e-3), corners)
    total = sum(np.nansum(np.abs(plate.values["force"]), axis=0) for plate in plates.values())
    up = "xyz"[int(np.argmax(total))]
    farthest = max(
        float(
            np.abs(np.nan_to_num(plate.values["cop"][np.linalg.norm(plate.values["force"], axis=1) > THRESHOLD])).max(
                initial=0.0
            )
        )
        for plate in plates.values()
    )
    # Numbers without a unit are in m and N.m, or, as Cortex has them, in mm and N.mm.
    length = 1e-3 if farthest > FAR else 1.0
    moments = (1.0, 1e-3) if length == 1.0 else (1e-3, 1.0)
    return _Frame(UPRIGHT[up.upper()], np.zeros(3), up, 1.0, length, moments, None)


def _plate(where: str, name: str, t: Array, frame: _Frame, plate: _Columns, notes: list[str]) -> PlateSignals:
    """Return a plate in a world with z up.

    Raises:
        RecordingError: The columns do not give the CoP.
    """
    values, given, stated = plate
    level, label = "xyz".replace(frame.up, ""), f"plate {shown(name)}"
    has_cop, has_moment = set(level) <= set(given["cop"]), given["moment"] == "xyz"
    if not has_cop and not has_moment:
        raise RecordingError(
            f"lacks its CoP: expected moments along x, y and z, or a CoP along {level[0]} and {level[1]}", where
        )
    sign = frame.sign
    if is_reversed(sign * (values["force"] @ frame.axes.T)[:, 2]):
        sign = -sign
        notes.append(
            f"{label}: its force is taken for the {'load on the plate' if sign < 0.0 else 'reaction on the person'}, "
            "because its vertical component has the sign of that; such files usually have the opposite"
        )
    force, moment = (sign * values[kind] @ frame.axes.T for kind in ("force", "moment"))
    # Next to a CoP, a single moment is the free moment about the vertical. Cortex calls it MZ also where y points up.
    alone = "twist" if given["twist"] else "moment"
    axis = given[alone] if len(given[alone]) == 1 else frame.up
    twist = sign * frame.axes[2, "xyz".index(frame.up)] * values[alone][:, "xyz".index(axis)]
    twist = np.outer(twist if alone in stated else frame.moments[0] * twist, [0.0, 0.0, 1.0])
    cop = values["cop"] * (1.0 if "cop" in stated else frame.length) @ frame.axes.T + frame.centre
    loaded: Flags = np.asarray(force[:, 2] > max(THRESHOLD, 0.25 * float(np.nanmax(force[:, 2], initial=0.0))))
    if has_moment:
        usable = loaded & np.isfinite(np.hstack([force, moment])).all(axis=1)
        origin, deviation, unit = frame.centre, 0.0, 1.0 if "moment" in stated else frame.moments[0]
        if has_cop:
            usable &= np.isfinite(cop).all(axis=1)
            origin, deviation, unit = min(
                (
                    (*_origin(force[usable], k * moment[usable], cop[usable], frame.centre), k)
                    for k in ((1.0,) if "moment" in stated else frame.moments)
                ),
                key=lambda fit: fit[1],
            )
        if deviation <= CONSISTENT:
            signals = _by_moments(name, t, np.hstack([force, unit * moment]), origin, cop[usable], frame.corners, notes)
            return signals if "moment" in stated or has_cop else with_moment_unit(signals, unit, notes)
        notes.append(
            f"{label}: its CoP is up to {1e3 * deviation:.1f} mm from that of its forces and moments: the CoP is taken"
        )
        twist = (unit * moment - np.cross(np.nan_to_num(cop) - origin, force)) * [0.0, 0.0, 1.0]
    sample = complete_samples(label, t, np.hstack([force, twist]), notes, cop)
    return plate_of_forces(name, t, sample[:, :3], cop, sample[:, 3:])


def _by_moments(
    name: str, t: Array, wrench: Array, origin: Array, cop: Array, corners: Array | None, notes: list[str]
) -> PlateSignals:
    """Return a plate with the wrench (n, 6) at a point ``origin`` (3,), in the world.

    ``cop`` (k, 3) are known positions of the CoP; a plate of unknown ``corners`` is a square that contains them.
    """
    if corners is None:
        height = float(np.median(cop[:, 2])) if len(cop) else origin[2]
        surface = np.array([origin[0], origin[1], height])
        half = max(HALF, 1.1 * float(np.abs(cop - surface)[:, :2].max(initial=0.0)))
        corners = surface + half * np.array([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0]])
    rate = round((len(t) - 1) / float(t[-1] - t[0]), 6) if len(t) > 1 else 1.0
    geometry = PlateGeometry(name, corners, 2, rate)
    turn = geometry.rotation
    geometry = replace(geometry, offset=turn.T @ (geometry.centre - origin))
    wrench = complete_samples(f"plate {shown(name)}", t, wrench, notes)
    return PlateSignals(t, geometry, np.hstack([wrench[:, :3] @ turn, wrench[:, 3:] @ turn]))


def _corners(header: Mapping[str, str]) -> Array | None:
    """Return the corners (4, 3) in the header of a file of Qualisys [m]; None if it has none."""
    signs = (("POS", "POS"), ("NEG", "POS"), ("NEG", "NEG"), ("POS", "NEG"))
    texts = [[header.get(f"FORCE_PLATE_CORNER_{x}X_{y}Y_{axis}", "") for axis in "XYZ"] for x, y in signs]
    corners = 1e-3 * np.array([[number(text) for text in row] for row in texts])
    return corners if np.isfinite(corners).all() else None


def _origin(force: Array, moment: Array, cop: Array, centre: Array) -> tuple[Array, float]:
    """Return the point (3,) to which moments refer, and the largest deviation of the CoP from force and moment [m].

    Makers use the centre of the surface, that of the transducers, or the origin of the laboratory. The point solves
    M = (CoP - point) x F + (0, 0, Tz) in the horizontal components, by least squares.

    Args:
        force, moment, cop: (n, 3) in the world, of loaded samples.
        centre: (3,) point from which the solution deviates as little as possible.
    """
    if len(force) < 3:
        return centre, 0.0
    f, zero = force / np.abs(force[:, 2]).mean(), np.zeros(len(force))
    m = moment / np.abs(force[:, 2]).mean() - np.cross(cop - centre, f)
    rows = np.concatenate([np.column_stack([zero, -f[:, 2], f[:, 1]]), np.column_stack([f[:, 2], zero, -f[:, 0]])])
    moved = np.asarray(np.linalg.lstsq(rows, m[:, :2].T.ravel(), rcond=1e-6)[0], dtype=np.float64)
    residual = m[:, :2] - np.cross(-moved, f)[:, :2]
    return centre + moved, float((np.hypot(*residual.T) / np.abs(f[:, 2])).max())
