"""Read C3D files of laboratories: force plates of types 1 to 5 and 7, markers, events.

A common deviation from the standard is corrected and noted: an ORIGIN with the wrong sign of z. The error for an
unreadable plate states the expected and the actual content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bipedsim.config import together
from bipedsim.errors import ConfigError, RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import CHANNELS, PlateGeometry, PlateSignals
from bipedsim.recording.lab.c3d_format import C3DContent, Parameters, read_content, unsigned
from bipedsim.recording.lab.cells import complete_samples
from bipedsim.recording.lab.corrections import LOADED, fitted_rectangle, is_reversed, with_moment_unit, with_polynomial
from bipedsim.recording.lab.trial import UPRIGHT, Event, LabTrial, Markers, force_unit, length_unit, moment_unit

TYPES = {**CHANNELS, 5: ("Cz", "Dz", "Az", "Bz", "Yac", "Xdc", "Xab", "Ybd"), 7: CHANNELS[3]}
"""Readable types and their channels. CAL_MATRIX (6 x 8) converts type 5 to the wrench, and (8 x 8) type 7 to type 3."""
CALIBRATED = {4: (6, 6), 5: (6, 8), 7: (8, 8)}
"""Types with a calibration matrix, and its shape."""
LEVEL = 0.9
"""Minimum cosine between a plate's normal and the laboratory axis that is taken as the vertical."""


def read_c3d(path: Path | str) -> LabTrial:
    """Read a C3D file.

    Args:
        path: The file.

    Returns:
        Plates, markers and events in metres and newtons, with z up; ``notes`` list the corrections.

    Raises:
        RecordingError: The file is not a C3D file, is damaged, has no force plates, or has unknown plate types, units
            or axes.
    """
    path = Path(path)
    try:
        content = read_content(path)
        notes = list(content.notes)
        units = content.parameters.texts("POINT", "UNITS")
        scale = length_unit(units[0] if units and units[0] else "mm", f"{path}: POINT:UNITS")
        plates = _plates(path, content, scale, notes)
        rotation = _rotation_to_z_up(path, [plate.signals for plate in plates], notes)
        signals = tuple(_to_world(plate, rotation, notes) for plate in plates)
        events = _events(content)
    except (ValueError, IndexError, OverflowError) as error:
        # Damaged bytes can have any value.
        raise RecordingError(
            f"damaged, or no C3D file ({type(error).__name__}: {error}); if there is a whole copy, read that", path
        ) from error
    positions = scale * content.points
    names = content.parameters.texts("POINT", "LABELS")[: positions.shape[1]]
    names += [f"point {k + 1}" for k in range(len(names), positions.shape[1])]
    t = np.arange(len(positions)) / (content.point_rate or 1.0)
    markers = Markers(t, tuple(names), positions if rotation is None else positions @ rotation.T)
    return LabTrial(path.stem, signals, markers, events, tuple(notes))


def _events(content: C3DContent) -> tuple[Event, ...]:
    """Return the events of the group EVENT. Their times start at frame 1, which a trimmed file does not contain."""
    parameters = content.parameters
    times = parameters.numbers("EVENT", "TIMES")
    labels, contexts = parameters.texts("EVENT", "LABELS"), parameters.texts("EVENT", "CONTEXTS")
    used = parameters.number("EVENT", "USED")
    labels = labels if used is None else labels[: int(used)]
    if times is None or not labels:
        return ()
    minutes, seconds = np.asarray(times, dtype=np.float64).reshape(2, -1)
    begin = (content.first_frame - 1) / (content.point_rate or 1.0)
    contexts += ["General"] * len(labels)
    events = [
        Event(float(60.0 * m + s - begin), label, context)
        for m, s, label, context in zip(minutes, seconds, labels, contexts, strict=False)
    ]
    return tuple(sorted(events, key=lambda event: event.t))


class _Plate(NamedTuple):
    """A plate in the axes of the file.

    ``unit`` is the unit of length that its moments were assumed to have [m], None if the file states it.
    ``by_sensors`` states whether the channels are those of four transducers, types 3 and 7.
    ``polynomial`` (2, 6) is the maker's correction of the CoP in the unit of length ``scale`` [m], None without one.
    """

    signals: PlateSignals
    unit: float | None
    by_sensors: bool
    polynomial: Array | None
    scale: float


def _plates(path: Path, content: C3DContent, scale: float, notes: list[str]) -> list[_Plate]:
    """Return the plates in the axes of the file.

    Raises:
        RecordingError: There are no plates, or some cannot be read; the message lists the problem of each.
    """
    parameters = content.parameters
    used = parameters.number("FORCE_PLATFORM", "USED")
    count = int(used or 0)
    labels = parameters.texts("ANALOG", "LABELS")
    if count == 0:
        groups = ", ".join(parameters.groups)
        raise RecordingError(
            "no force plates: expected it above 0; found "
            f"{'FORCE_PLATFORM:USED = 0' if used is not None else f'the groups {groups}'} and {len(labels)} analog "
            f"channels{': ' + ', '.join(labels[:12]) if labels else ''}",
            f"{path}: FORCE_PLATFORM:USED",
        )
    group = {name: parameters.numbers("FORCE_PLATFORM", name) for name in ("TYPE", "CORNERS", "ORIGIN", "CHANNEL")}
    missing = [name for name, value in group.items() if value is None]
    if missing:
        raise RecordingError(f"its {count} force plates lack them", f"{path}: FORCE_PLATFORM:{', :'.join(missing)}")
    kinds = np.asarray(group["TYPE"], dtype=int).ravel()
    corners = np.asarray(group["CORNERS"], dtype=np.float64).reshape(3, 4, -1, order="F")
    origins = np.asarray(group["ORIGIN"], dtype=np.float64).reshape(3, -1, order="F")
    places = np.asarray(unsigned(group["CHANNEL"]), dtype=int)
    places = places.reshape(places.shape[0], -1, order="F")
    if content.analog_rate <= 0.0:
        raise RecordingError("damaged: it must be above 0 Hz", f"{path}: rate of the force plates")
    if count > min(len(kinds), corners.shape[2], origins.shape[1], places.shape[1]):
        raise RecordingError("counts more than TYPE, CORNERS, ORIGIN or CHANNEL", f"{path}: FORCE_PLATFORM:USED", count)
    zero = _zero_samples(content, notes)
    plates, errors = [], []
    for i in range(count):
        try:
            platform = _Platform(int(kinds[i]), places[:, i], scale * corners[:, :, i].T, scale * origins[:, i])
            plates.append(_plate(content, i, platform, scale, zero, notes))
        except (RecordingError, ConfigError) as error:
            errors.append(RecordingError(error, path))
    together(errors, RecordingError)
    return plates


class _Platform(NamedTuple):
    """Description of a plate in a file: type, channel numbers, and corners (4, 3) and origin (3,) in metres."""

    kind: int
    places: Any
    corners: Array
    origin: Array


def _plate(
    content: C3DContent,
    i: int,
    platform: _Platform,
    scale: float,
    zero: slice | None,
    notes: list[str],
) -> _Plate:
    """Return plate ``i``; ``scale`` is the unit of length in metres."""
    kind, places, corners, origin = platform
    parameters, analogs, where = content.parameters, content.analogs, f"force plate {i + 1}"
    if kind not in TYPES:
        raise RecordingError(
            f"is not one of {', '.join(map(str, TYPES))}; export the plate as type 2, with forces and moments",
            f"{where}: type",
            kind,
        )
    expected = TYPES[kind]
    numbers = places[: len(expected)]
    if len(numbers) < len(expected) or (numbers < 1).any() or (numbers > analogs.shape[1]).any():
        raise RecordingError(
            f"must be the channels {', '.join(expected)} of type {kind}, of {analogs.shape[1]} analog channels: "
            f"{', '.join(parameters.texts('ANALOG', 'LABELS')[:16])}",
            f"{where}: FORCE_PLATFORM:CHANNEL",
            numbers,
        )
    units = parameters.texts("ANALOG", "UNITS")
    channel_units = [units[k - 1] if k <= len(units) else "" for k in numbers]
    channels = analogs[:, numbers - 1] * _scales(where, kind, channel_units, scale)
    t = np.arange(len(channels)) / content.analog_rate
    channels = complete_samples(where, t, channels, notes)
    by_sensors = kind in (3, 7)
    geometry = PlateGeometry(
        f"{i + 1}",
        fitted_rectangle(f"{i + 1}", corners, notes),
        3 if by_sensors else 4 if kind == 5 else kind,
        content.analog_rate,
        np.array([0.0, 0.0, origin[2]]) if by_sensors else origin,
        np.abs(origin[:2]) if by_sensors else np.zeros(2),
        _calibration(where, parameters, i, kind, scale) if kind in (4, 5) else np.eye(6),
    )
    if kind == 7:
        calibration = geometry.matrix @ _calibration(where, parameters, i, kind, 1.0)
        geometry = replace(geometry, kind=4, calibration=calibration, channel_names=())
    if zero is not None:
        channels = _without_zero(geometry, channels, zero, notes)
    unit_unknown = kind in (4, 5) or (kind == 2 and not any(channel_units[3:]))
    polynomial = _polynomial(parameters, i) if by_sensors else None
    return _Plate(PlateSignals(t, geometry, channels), scale if unit_unknown else None, by_sensors, polynomial, scale)


def _polynomial(parameters: Parameters, i: int) -> Array | None:
    """Return the coefficients (2, 6) for x and y of the maker's correction of the CoP; None if there are none.

    Files have them as 6 x 2 or 2 x 6 for each plate.
    """
    values = parameters.numbers("FORCE_PLATFORM", "FPCOPPOLY")
    if values is None or values.shape[:2] not in ((6, 2), (2, 6)):
        return None
    values = np.asarray(values, dtype=np.float64).reshape(*values.shape[:2], -1, order="F")
    if i >= values.shape[2] or not values[:, :, i].any():
        return None
    return values[:, :, i] if len(values) == 2 else values[:, :, i].T


def _zero_samples(content: C3DContent, notes: list[str]) -> slice | None:
    """Return the samples without load according to FORCE_PLATFORM:ZERO; None if there are none."""
    value = content.parameters.numbers("FORCE_PLATFORM", "ZERO")
    zero = [] if value is None else [int(frame) for frame in np.ravel(unsigned(value))]
    if len(zero) != 2 or zero[0] <= 0 or zero[1] < zero[0]:
        return None
    # Frames count from 1 even if only a part of a trial was kept.
    begin, end = ((frame - content.first_frame) * content.ratio for frame in (zero[0], zero[1] + 1))
    if begin < 0 or end > len(content.analogs):
        notes.append(f"FORCE_PLATFORM:ZERO is not taken off: its frames {zero[0]} to {zero[1]} are not all in the file")
        return None
    return slice(begin, end)


def _without_zero(geometry: PlateGeometry, channels: Array, zero: slice, notes: list[str]) -> Array:
    """Subtract the mean over the unloaded samples from the channels; a plate that is loaded there stays unchanged."""
    mean = channels[zero].mean(axis=0)
    load = abs(float(geometry.wrench(mean[None])[0, 2]))
    if load > LOADED:
        notes.append(
            f"force plate {geometry.name}: FORCE_PLATFORM:ZERO is not taken off: in its frames the plate carries "
            f"{load:.0f} N"
        )
        return channels
    if geometry.kind == 1:
        # An unloaded plate has no CoP.
        mean[3:5] = 0.0
    if mean.any():
        notes.append(
            f"force plate {geometry.name}: the mean of the frames of FORCE_PLATFORM:ZERO was taken off, {load:.3g} "
            "N along its normal"
        )
    return channels - mean


def _scales(where: str, kind: int, units: list[str], scale: float) -> Array:
    """Return the factor of each channel to SI units; missing units are N and the file's unit of length."""
    if kind in CALIBRATED:
        return np.ones(len(units))
    scales = []
    for name, unit in zip(CHANNELS[kind], units, strict=True):
        label = f"{where}: unit of {name}"
        if name.startswith("F"):
            scales.append(force_unit(unit, label) if unit else 1.0)
        elif name.startswith("P"):
            scales.append(length_unit(unit, label) if unit else scale)
        else:
            scales.append(moment_unit(unit, label) if unit else scale)
    return np.array(scales)


def _calibration(where: str, parameters: Parameters, i: int, kind: int, scale: float) -> Array:
    """Return the calibration matrix of a plate [N, N.m per channel unit]; rows after the third have moments."""
    expected = CALIBRATED[kind]
    matrix = parameters.numbers("FORCE_PLATFORM", "CAL_MATRIX")
    shape: tuple[int, ...] = np.shape(matrix) if matrix is not None else ()
    if shape[:2] != expected or (len(shape) > 2 and shape[2] <= i):
        raise RecordingError(
            f"type {kind} needs {expected[0]} x {expected[1]}; found shape {tuple(shape)}",
            f"{where}: FORCE_PLATFORM:CAL_MATRIX",
        )
    calibration = np.asarray(matrix, dtype=np.float64).reshape(*expected, -1, order="F")[:, :, i]
    return calibration * np.where(np.arange(expected[0]) < 3, 1.0, scale)[:, None]


def _rotation_to_z_up(path: Path, plates: Sequence[PlateSignals], notes: list[str]) -> Array | None:
    """Return the rotation that makes z point up; None if it does already.

    Raises:
        RecordingError: The plates' normals are along no axis, or along several.
    """
    normals = {plate.geometry.name: np.abs(plate.geometry.rotation[:, 2]) for plate in plates}
    axes = {"XYZ"[int(normal.argmax())] if normal.max() > LEVEL else "" for normal in normals.values()}
    if len(axes) != 1 or "" in axes:
        normals_text = "; ".join(f"{name}: {np.round(normal, 3).tolist()}" for name, normal in normals.items())
        raise RecordingError(
            f"none: expected one axis of the laboratory along the normals of all force plates, found {normals_text}",
            f"{path}: vertical",
        )
    axis = axes.pop()
    if axis == "Z":
        return None
    notes.append(f"its plates lie across {axis}, which was taken for up and turned to z")
    return UPRIGHT[axis]


def _to_world(plate: _Plate, rotation: Array | None, notes: list[str]) -> PlateSignals:
    """Return a plate in a world with z up; ``notes`` receives the corrections."""
    signals = plate.signals
    geometry = signals.geometry
    if rotation is not None:
        geometry = replace(geometry, corners=geometry.corners @ rotation.T)
    if geometry.kind != 1 and geometry.offset[2] * geometry.up < 0.0:
        # The surface is above the transducers; ezc3d and other readers assume the same.
        offset = geometry.offset * (np.array([1.0, 1.0, -1.0]) if geometry.kind == 3 else -1.0)
        geometry = replace(geometry, offset=offset)
        notes.append(f"force plate {geometry.name}: its ORIGIN has the transducers above the surface: turned round")
    signals = replace(signals, geometry=geometry)
    if is_reversed(signals.normal_force()):
        signals = replace(signals, geometry=replace(geometry, channels_on="plate"))
        notes.append(
            f"force plate {geometry.name}: its channels hold the load on the plate and not the reaction on the "
            "person, whose sign C3D asks for: turned round"
        )
    if plate.by_sensors and geometry.up > 0.0:
        notes.append(_z_up(signals))
    if plate.unit is not None:
        signals = with_moment_unit(signals, plate.unit, notes)
    return signals if plate.polynomial is None else with_polynomial(signals, plate.polynomial, plate.scale, notes)


def _z_up(signals: PlateSignals) -> str:
    """Return the note for a plate of four transducers whose z axis points up.

    The guide has z pointing down (c3d.org, *FORCE_PLATFORM:ORIGIN, TYPE-3*). BioWare writes corners of that order next
    to channels along Kistler's axes, with z down: its own CoP differs from that of the file by the reversed depth of
    the transducers.
    """
    name, force = signals.geometry.name, signals.force()[signals.loaded(LOADED)]
    shift = 2.0 * signals.geometry.thickness * np.hypot(force[:, 0], force[:, 1]) / np.abs(force[:, 2])
    return (
        f"force plate {name}: its corners make z point up, and z of such plates points into the floor. It is read as "
        "stated. If BioWare wrote the file, horizontal forces have the wrong sign, and the CoP is up to "
        f"{1e3 * float(shift.max(initial=0.0)):.3g} mm off: export the trial with forces and moments instead"
    )
