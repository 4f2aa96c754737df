"""Reading C3D files of laboratories: force plates of types 1 to 4, markers, events.

What files break the standard in and everybody reads all the same is mended, and said: an ORIGIN whose z has the wrong
sign. What stops a plate from being read is told with what was looked for and what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.errors import ConfigError, RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import CHANNELS, PlateGeometry, PlateSignals
from bipedsim.recording.lab.c3d_format import C3DContent, Parameters, read_content, unsigned
from bipedsim.recording.lab.cells import whole_samples
from bipedsim.recording.lab.corrections import fitted_rectangle, with_moment_unit
from bipedsim.recording.lab.trial import Event, LabTrial, Markers, force_unit, length_unit, moment_unit

LEVEL = 0.9
"""Cosine to a plate's normal from which a laboratory's axis counts as its vertical."""
LOADED = 50.0
"""Normal force of the wrong sign from which somebody is taken to stand on the plate [N]: no drift is as large."""
UPRIGHT = {
    "X": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "Y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "Z": np.eye(3),
}
"""Axis of a laboratory that looks up, to what turns its vectors so that z does."""


def read_c3d(path: Path | str) -> LabTrial:
    """Read a C3D file.

    Args:
        path: The file.

    Returns:
        Plates, markers and events in metres and newtons, turned so that z looks up; ``notes`` say what was mended.

    Raises:
        RecordingError: No C3D file, a damaged one, one without force plates, or with plates, units or axes that are
            not known here.
    """
    path = Path(path)
    try:
        content = read_content(path)
        notes = list(content.notes)
        units = content.parameters.texts("POINT", "UNITS")
        scale = length_unit(units[0] if units and units[0] else "mm", f"{path}: POINT:UNITS")
        plates = _plates(path, content, scale, notes)
        turn = _upright(path, [plate for plate, _ in plates], notes)
        signals = tuple(_in_the_world(plate, taken, turn, notes) for plate, taken in plates)
        events = _events(content)
    except (ValueError, IndexError, OverflowError) as error:
        # Damaged bytes may mean anything.
        raise RecordingError(
            f"{path}: damaged, or no C3D file ({type(error).__name__}: {error}); if there is a whole copy, read that"
        ) from error
    positions = scale * content.points
    names = content.parameters.texts("POINT", "LABELS")[: positions.shape[1]]
    names += [f"point {k + 1}" for k in range(len(names), positions.shape[1])]
    t = np.arange(len(positions)) / (content.point_rate or 1.0)
    markers = Markers(t, tuple(names), positions if turn is None else positions @ turn.T)
    return LabTrial(path.stem, signals, markers, events, tuple(notes))


def _events(content: C3DContent) -> tuple[Event, ...]:
    """Return the events of the group EVENT; they count their time from frame 1, which a file that was cut lacks."""
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
    found = [
        Event(float(60.0 * m + s - begin), label, context)
        for m, s, label, context in zip(minutes, seconds, labels, contexts, strict=False)
    ]
    return tuple(sorted(found, key=lambda event: event.t))


def _plates(path: Path, content: C3DContent, scale: float, notes: list[str]) -> list[tuple[PlateSignals, float | None]]:
    """Return the plates in the axes of the file.

    With each come the metres of the unit of length that its moments were taken to have; None where the file names it.

    Raises:
        RecordingError: There is none, or some cannot be read; the message has what is wrong with each of them.
    """
    parameters = content.parameters
    used = parameters.number("FORCE_PLATFORM", "USED")
    count = int(used or 0)
    labels = parameters.texts("ANALOG", "LABELS")
    if count == 0:
        groups = ", ".join(parameters.groups)
        raise RecordingError(
            f"{path}: no force plates: looked for FORCE_PLATFORM:USED above 0; found "
            f"{'FORCE_PLATFORM:USED = 0' if used is not None else f'the groups {groups}'} and {len(labels)} analog "
            f"channels{': ' + ', '.join(labels[:12]) if labels else ''}"
        )
    found = {name: parameters.numbers("FORCE_PLATFORM", name) for name in ("TYPE", "CORNERS", "ORIGIN", "CHANNEL")}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        raise RecordingError(f"{path}: its {count} force plates lack FORCE_PLATFORM:{', :'.join(missing)}")
    kinds = np.asarray(found["TYPE"], dtype=int).ravel()
    corners = np.asarray(found["CORNERS"], dtype=np.float64).reshape(3, 4, -1, order="F")
    origins = np.asarray(found["ORIGIN"], dtype=np.float64).reshape(3, -1, order="F")
    places = np.asarray(unsigned(found["CHANNEL"]), dtype=int)
    places = places.reshape(places.shape[0], -1, order="F")
    if content.analog_rate <= 0.0:
        raise RecordingError(f"{path}: damaged: looked for a rate of its force plates above 0 Hz, found 0")
    if count > min(len(kinds), corners.shape[2], origins.shape[1], places.shape[1]):
        raise RecordingError(f"{path}: FORCE_PLATFORM:USED counts {count}, TYPE, CORNERS, ORIGIN or CHANNEL fewer")
    zero = _zero_samples(content, notes)
    plates, wrong = [], []
    for i in range(count):
        try:
            given = scale * corners[:, :, i].T, scale * origins[:, i]
            plates.append(_plate(content, i, int(kinds[i]), places[:, i], *given, scale, zero, notes))
        except (RecordingError, ConfigError) as error:
            wrong.append(str(error))
    if wrong:
        raise RecordingError(f"{path}: {'; '.join(wrong)}")
    _say_corrections(parameters, kinds[:count], notes)
    return plates


def _plate(
    content: C3DContent,
    i: int,
    kind: int,
    places: Any,
    corners: Array,
    origin: Array,
    scale: float,
    zero: slice | None,
    notes: list[str],
) -> tuple[PlateSignals, float | None]:
    """Return a plate, see :func:`_plates`; ``places`` are the numbers of its channels, lengths are in metres."""
    parameters, analogs, where = content.parameters, content.analogs, f"force plate {i + 1}"
    if kind not in CHANNELS:
        raise RecordingError(f"{where}: its type is {kind}; known are {', '.join(map(str, CHANNELS))}")
    wanted = CHANNELS[kind]
    numbers = places[: len(wanted)]
    if len(numbers) < len(wanted) or (numbers < 1).any() or (numbers > analogs.shape[1]).any():
        raise RecordingError(
            f"{where}: type {kind} needs the channels {', '.join(wanted)}; FORCE_PLATFORM:CHANNEL gives "
            f"{numbers.tolist()} of {analogs.shape[1]} analog channels: "
            f"{', '.join(parameters.texts('ANALOG', 'LABELS')[:16])}"
        )
    units = parameters.texts("ANALOG", "UNITS")
    named = [units[k - 1] if k <= len(units) else "" for k in numbers]
    channels = analogs[:, numbers - 1] * _scales(where, kind, named, scale)
    t = np.arange(len(channels)) / content.analog_rate
    channels = whole_samples(where, t, channels, notes)
    geometry = PlateGeometry(
        f"{i + 1}",
        fitted_rectangle(f"{i + 1}", corners, notes),
        kind,
        content.analog_rate,
        np.array([0.0, 0.0, origin[2]]) if kind == 3 else origin,
        np.abs(origin[:2]) if kind == 3 else np.zeros(2),
        _calibration(where, parameters, i, scale) if kind == 4 else np.eye(6),
    )
    if zero is not None:
        channels = _without_zero(geometry, channels, zero, notes)
    unsaid = kind == 4 or (kind == 2 and not any(named[3:]))
    return PlateSignals(t, geometry, channels), scale if unsaid else None


def _say_corrections(parameters: Parameters, kinds: Any, notes: list[str]) -> None:
    """Say that the maker's correction of the CoP is not made: its layout differs between files."""
    corrected = parameters.numbers("FORCE_PLATFORM", "FPCOPPOLY")
    if corrected is not None and corrected.any() and (kinds == 3).any():
        notes.append(
            "FORCE_PLATFORM:FPCOPPOLY, the maker's polynomial that corrects the CoP of plates of type 3, is not used: "
            "their CoP is as the forces of the transducers give it"
        )


def _zero_samples(content: C3DContent, notes: list[str]) -> slice | None:
    """Return the samples whose mean FORCE_PLATFORM:ZERO says is that of unloaded plates; None where it says none."""
    value = content.parameters.numbers("FORCE_PLATFORM", "ZERO")
    zero = [] if value is None else [int(frame) for frame in np.ravel(unsigned(value))]
    if len(zero) != 2 or zero[0] <= 0 or zero[1] < zero[0]:
        return None
    # Frames count from 1, also where a part of a trial was kept.
    begin, end = ((frame - content.first_frame) * content.ratio for frame in (zero[0], zero[1] + 1))
    if begin < 0 or end > len(content.analogs):
        notes.append(f"FORCE_PLATFORM:ZERO is not taken off: its frames {zero[0]} to {zero[1]} are not all in the file")
        return None
    return slice(begin, end)


def _without_zero(geometry: PlateGeometry, channels: Array, zero: slice, notes: list[str]) -> Array:
    """Return the channels less their mean over the samples in which the plate was unloaded, if it was."""
    mean = channels[zero].mean(axis=0)
    carried = abs(float(geometry.wrench(mean[None])[0, 2]))
    if carried > LOADED:
        notes.append(
            f"force plate {geometry.name}: FORCE_PLATFORM:ZERO is not taken off: in its frames the plate carries "
            f"{carried:.0f} N"
        )
        return channels
    if geometry.kind == 1:
        # Where nobody stands there is no CoP.
        mean[3:5] = 0.0
    if mean.any():
        notes.append(
            f"force plate {geometry.name}: the mean of the frames of FORCE_PLATFORM:ZERO was taken off, {carried:.3g} "
            "N along its normal"
        )
    return channels - mean


def _scales(where: str, kind: int, units: list[str], scale: float) -> Array:
    """Return what makes SI units of each channel; a unit that is not given is N, and that of the file's lengths."""
    if kind == 4:
        return np.ones(len(units))
    scales = []
    for name, unit in zip(CHANNELS[kind], units, strict=True):
        here = f"{where}: unit of {name}"
        if name.startswith("F"):
            scales.append(force_unit(unit, here) if unit else 1.0)
        elif name.startswith("P"):
            scales.append(length_unit(unit, here) if unit else scale)
        else:
            scales.append(moment_unit(unit, here) if unit else scale)
    return np.array(scales)


def _calibration(where: str, parameters: Parameters, i: int, scale: float) -> Array:
    """Return the calibration (6, 6) of a plate of type 4, in newtons and newton metres."""
    matrix = parameters.numbers("FORCE_PLATFORM", "CAL_MATRIX")
    shape: tuple[int, ...] = np.shape(matrix) if matrix is not None else ()
    if len(shape) < 2 or shape[:2] != (6, 6) or (len(shape) > 2 and shape[2] <= i):
        raise RecordingError(f"{where}: type 4 needs FORCE_PLATFORM:CAL_MATRIX of 6 x 6; found shape {tuple(shape)}")
    own = np.asarray(matrix, dtype=np.float64).reshape(6, 6, -1, order="F")[:, :, i]
    return own * np.array([1.0, 1.0, 1.0, scale, scale, scale])[:, None]


def _upright(path: Path, plates: Sequence[PlateSignals], notes: list[str]) -> Array | None:
    """Return what turns the file's axes so that z looks up; None where it does.

    Raises:
        RecordingError: Plates lie along no axis, or along several.
    """
    normals = {plate.geometry.name: np.abs(plate.geometry.rotation[:, 2]) for plate in plates}
    axes = {"XYZ"[int(normal.argmax())] if normal.max() > LEVEL else "" for normal in normals.values()}
    if len(axes) != 1 or "" in axes:
        found = "; ".join(f"{name}: {np.round(normal, 3).tolist()}" for name, normal in normals.items())
        raise RecordingError(
            f"{path}: no vertical: looked for one axis of the laboratory along the normals of all force plates, found "
            f"the normals {found}"
        )
    axis = axes.pop()
    if axis == "Z":
        return None
    notes.append(f"its plates lie across {axis}, which was taken for up and turned to z")
    return UPRIGHT[axis]


def _in_the_world(signals: PlateSignals, taken: float | None, turn: Array | None, notes: list[str]) -> PlateSignals:
    """Return a plate in the world whose z looks up; what is corrected goes to ``notes``."""
    geometry = signals.geometry
    if turn is not None:
        geometry = replace(geometry, corners=geometry.corners @ turn.T)
    if geometry.kind != 1 and geometry.offset[2] * geometry.up < 0.0:
        # The surface is above the transducers; so ezc3d and others take it.
        offset = geometry.offset * (np.array([1.0, 1.0, -1.0]) if geometry.kind == 3 else -1.0)
        geometry = replace(geometry, offset=offset)
        notes.append(f"force plate {geometry.name}: its ORIGIN has the transducers above the surface: turned round")
    signals = replace(signals, geometry=geometry)
    normal = signals.normal_force()
    if len(normal) and -float(normal.min()) > LOADED and -float(normal.min()) > 5.0 * float(normal.max()):
        signals = replace(signals, geometry=replace(geometry, channels_on="plate"))
        notes.append(
            f"force plate {geometry.name}: its channels hold the load on the plate and not the reaction on the "
            "person, whose sign C3D asks for: turned round"
        )
    return signals if taken is None else with_moment_unit(signals, taken, notes)
