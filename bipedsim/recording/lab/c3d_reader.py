"""Reading C3D files of laboratories: force plates of types 1 to 4, markers, events.

What files break the standard in and everybody reads all the same is mended, and said: an ORIGIN whose z has the wrong
sign. What stops a plate from being read is told with what was looked for and what was found.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.errors import BipedSimError, RecordingError
from bipedsim.numerics import Array
from bipedsim.plates import CHANNELS, PlateGeometry, PlateSignals
from bipedsim.recording.lab.c3d import ezc3d_module
from bipedsim.recording.lab.cells import LARGEST, whole_samples
from bipedsim.recording.lab.ezc3d_alone import read_alone
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
        ConfigError: ezc3d is missing.
        RecordingError: No C3D file, a damaged one, one without force plates, or with plates, units or axes that are
            not known here.
    """
    ezc3d_module()
    path = Path(path)
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror})") from error
    if len(head) < 512 or head[1] != 0x50:
        found = f"{len(head)} bytes" if len(head) < 512 else f"0x{head[1]:02x} there"
        raise RecordingError(
            f"{path}: no C3D file: looked for a header of 512 bytes, its second 0x50; found {found}"
        )
    try:
        c3d = read_alone(path)
        notes: list[str] = []
        frames = _frames(path, c3d, head)
        markers, scale = _markers(path, c3d, frames)
        plates = _plates(path, c3d, scale, notes)
        turn = _upright(path, plates, notes)
        signals = tuple(_signals(plates, turn, notes))
        events = _events(c3d)
    except (BipedSimError, MemoryError):
        raise
    except Exception as error:
        # Damaged bytes may mean anything.
        raise RecordingError(
            f"{path}: damaged, or no C3D file ({type(error).__name__}: {error}); if there is a whole copy, read that"
        ) from error
    if turn is not None:
        markers = Markers(markers.t, markers.names, markers.positions @ turn.T)
    return LabTrial(path.stem, signals, markers, events, tuple(notes))


def _values(c3d: Any, group: str, name: str) -> Any:
    """Return the value of a parameter; None where there is none."""
    found = c3d["parameters"].get(group, {}).get(name)
    return None if found is None else found["value"]


def _frames(path: Path, c3d: Any, head: bytes) -> int:
    """Return how many frames there are.

    Raises:
        RecordingError: The file ends before the frames that its header counts.
    """
    frames, samples = int(c3d["data"]["points"].shape[2]), int(c3d["data"]["analogs"].shape[2])
    first, last = (int.from_bytes(head[k : k + 2], "little") for k in (6, 8))
    counted = last - first + 1
    header = c3d["header"]
    ratio = header["analogs"]["frame_rate"] / (header["points"]["frame_rate"] or 1.0)
    number = 4 if _values(c3d, "POINT", "SCALE")[0] < 0.0 else 2  # bytes: floats or integers
    width = number * (4 * int(header["points"]["size"]) + int(header["analogs"]["size"]) * round(ratio))
    start = 512 * (int.from_bytes(head[16:18], "little") - 1)
    there = min(frames, (path.stat().st_size - start) // max(1, width))
    if start >= 0 and there < counted:
        raise RecordingError(
            f"{path}: damaged: its header counts {counted} frames and the file ends after {max(0, there)} of them; if "
            "there is a whole copy, read that"
        )
    if frames == 0 and samples == 0:
        raise RecordingError(f"{path}: it holds no frames")
    return frames


def _markers(path: Path, c3d: Any, frames: int) -> tuple[Markers, float]:
    """Return the markers, in the axes of the file, and how many metres its unit of length is."""
    units = _values(c3d, "POINT", "UNITS") or ["mm"]
    scale = length_unit(str(units[0]), f"{path}: POINT:UNITS")
    points = c3d["data"]["points"]
    names = [str(name) for name in (_values(c3d, "POINT", "LABELS") or ())][: points.shape[1]]
    names += [f"point {k + 1}" for k in range(len(names), points.shape[1])]
    rate = float(c3d["header"]["points"]["frame_rate"])
    positions = scale * np.moveaxis(points[:3], 0, 2).transpose(1, 0, 2)
    return Markers(np.arange(frames) / (rate or 1.0), tuple(names), positions), scale


def _events(c3d: Any) -> tuple[Event, ...]:
    times, labels, contexts = (_values(c3d, "EVENT", name) for name in ("TIMES", "LABELS", "CONTEXTS"))
    if times is None or not len(labels or ()):
        return ()
    begin = float(_values(c3d, "TRIAL", "ACTUAL_START_FIELD")[0] - 1) if _has_start(c3d) else 0.0
    begin /= float(c3d["header"]["points"]["frame_rate"]) or 1.0
    contexts = list(contexts or ()) + ["General"] * len(labels)
    seconds = np.asarray(times)[0] * 60.0 + np.asarray(times)[1] - begin
    found = [Event(float(t), str(label), str(c)) for t, label, c in zip(seconds, labels, contexts, strict=False)]
    return tuple(sorted(found, key=lambda event: event.t))


def _has_start(c3d: Any) -> bool:
    value = _values(c3d, "TRIAL", "ACTUAL_START_FIELD")
    return value is not None and len(value) > 0


def _plates(path: Path, c3d: Any, scale: float, notes: list[str]) -> list[tuple[dict[str, Any], Array, Array]]:
    """Return geometry, channels and times of each plate, in the axes of the file.

    Raises:
        RecordingError: There is none, or one that cannot be read.
    """
    used = _values(c3d, "FORCE_PLATFORM", "USED")
    count = int(used[0]) if used is not None and len(used) else 0
    labels = [str(label) for label in (_values(c3d, "ANALOG", "LABELS") or ())]
    if count == 0:
        groups = ", ".join(name for name in c3d["parameters"])
        raise RecordingError(
            f"{path}: no force plates: looked for FORCE_PLATFORM:USED above 0; found "
            f"{'FORCE_PLATFORM:USED = 0' if used is not None else f'the groups {groups}'} and {len(labels)} analog "
            f"channels{': ' + ', '.join(labels[:12]) if labels else ''}"
        )
    rows = {name: _values(c3d, "FORCE_PLATFORM", name) for name in ("TYPE", "CORNERS", "ORIGIN", "CHANNEL")}
    missing = [name for name, value in rows.items() if value is None or not np.size(value)]
    if missing:
        raise RecordingError(f"{path}: its {count} force plates lack FORCE_PLATFORM:{', :'.join(missing)}")
    kinds = np.asarray(rows["TYPE"], dtype=int).ravel()
    corners = np.asarray(rows["CORNERS"], dtype=np.float64).reshape(3, 4, -1)
    origins = np.asarray(rows["ORIGIN"], dtype=np.float64).reshape(3, -1)
    places = np.asarray(rows["CHANNEL"], dtype=int)
    places = places.reshape(places.shape[0], -1)
    analogs = c3d["data"]["analogs"][0]
    units = [str(unit) for unit in (_values(c3d, "ANALOG", "UNITS") or ())]
    rate = float(c3d["header"]["analogs"]["frame_rate"])
    if not 0.0 < rate < LARGEST:
        raise RecordingError(f"{path}: damaged: looked for a rate of its force plates above 0 Hz, found {rate:g}")
    zero = _zero_samples(c3d, len(analogs[0]) if len(analogs) else 0, notes)
    result = []
    for i in range(count):
        where = f"{path}: force plate {i + 1}"
        if i >= min(len(kinds), corners.shape[2], origins.shape[1], places.shape[1]):
            raise RecordingError(f"{where}: FORCE_PLATFORM:USED counts {count}, TYPE, CORNERS, ORIGIN or CHANNEL fewer")
        kind = int(kinds[i])
        if kind not in CHANNELS:
            raise RecordingError(f"{where}: its type is {kind}; known are {', '.join(map(str, CHANNELS))}")
        wanted = CHANNELS[kind]
        numbers = places[: len(wanted), i]
        if len(numbers) < len(wanted) or (numbers < 1).any() or (numbers > len(analogs)).any():
            raise RecordingError(
                f"{where}: type {kind} needs the channels {', '.join(wanted)}; FORCE_PLATFORM:CHANNEL gives "
                f"{numbers.tolist()} of {len(analogs)} analog channels: {', '.join(labels[:16])}"
            )
        named = [units[k - 1] if k <= len(units) else "" for k in numbers]
        channels = analogs[numbers - 1].T * _scales(where, kind, named, scale)
        t = np.arange(len(channels)) / rate
        channels = whole_samples(where, t, channels, notes)
        geometry: dict[str, Any] = {
            "name": str(i + 1),
            "corners": scale * corners[:, :, i].T,
            "kind": kind,
            "rate": rate,
        }
        offset = scale * origins[:, i]
        if kind == 3:
            geometry["half_base"], offset = np.abs(offset[:2]), np.array([0.0, 0.0, offset[2]])
        elif kind == 4:
            geometry["calibration"] = _calibration(where, c3d, i, scale)
        geometry["offset"] = offset
        if zero is not None:
            channels = _without_zero(PlateGeometry(**geometry), channels, zero, notes)
        result.append((geometry, channels, t))
    return result


def _zero_samples(c3d: Any, n: int, notes: list[str]) -> slice | None:
    """Return the samples whose mean FORCE_PLATFORM:ZERO says is that of unloaded plates; None where it says none."""
    value = _values(c3d, "FORCE_PLATFORM", "ZERO")
    zero = [] if value is None else [int(frame) for frame in np.ravel(value)]
    if len(zero) != 2 or zero[0] <= 0 or zero[1] < zero[0]:
        return None
    each = round(c3d["header"]["analogs"]["frame_rate"] / (c3d["header"]["points"]["frame_rate"] or 1.0))
    # Frames count from 1, also where a part of a trial was kept; ezc3d's count from 0.
    first = int(c3d["header"]["points"]["first_frame"])
    begin, end = ((frame - first) * max(1, each) for frame in (zero[0] - 1, zero[1]))
    if begin < 0 or end > n:
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


def _calibration(where: str, c3d: Any, i: int, scale: float) -> Array:
    """Return the calibration (6, 6) of a plate of type 4, in newtons and newton metres."""
    matrix = _values(c3d, "FORCE_PLATFORM", "CAL_MATRIX")
    shape: tuple[int, ...] = np.shape(matrix) if matrix is not None else ()
    if len(shape) < 2 or shape[:2] != (6, 6) or (len(shape) > 2 and shape[2] <= i):
        raise RecordingError(f"{where}: type 4 needs FORCE_PLATFORM:CAL_MATRIX of 6 x 6; found shape {tuple(shape)}")
    own = np.asarray(matrix, dtype=np.float64).reshape(6, 6, -1)[:, :, i]
    return own * np.array([1.0, 1.0, 1.0, scale, scale, scale])[:, None]


def _upright(path: Path, plates: list[tuple[dict[str, Any], Array, Array]], notes: list[str]) -> Array | None:
    """Return what turns the file's axes so that z looks up; None where it does.

    Raises:
        RecordingError: Plates lie along no axis, or along several.
    """
    normals = []
    for geometry, _, _ in plates:
        c = geometry["corners"]
        normal = np.cross(c[0] - c[1], c[0] - c[3])
        size = float(np.linalg.norm(normal))
        normals.append(np.abs(normal) / size if size else np.zeros(3))
    axes = {"XYZ"[int(normal.argmax())] if normal.max() > LEVEL else "" for normal in normals}
    if len(axes) != 1 or "" in axes:
        found = "; ".join(
            f"{one[0]['name']}: {np.round(n, 3).tolist()}" for one, n in zip(plates, normals, strict=True)
        )
        raise RecordingError(
            f"{path}: no vertical: looked for one axis of the laboratory along the normals of all force plates, found "
            f"the normals {found}"
        )
    axis = axes.pop()
    if axis == "Z":
        return None
    notes.append(f"its plates lie across {axis}, which was taken for up and turned to z")
    return UPRIGHT[axis]


def _signals(
    plates: list[tuple[dict[str, Any], Array, Array]], turn: Array | None, notes: list[str]
) -> list[PlateSignals]:
    """Return the plates in the world whose z looks up; what is mended goes to ``notes``."""
    result = []
    for values, channels, t in plates:
        if turn is not None:
            values["corners"] = values["corners"] @ turn.T
        geometry = PlateGeometry(**values)
        if geometry.kind != 1 and geometry.offset[2] * geometry.up < 0.0:
            # The surface is above the transducers; so ezc3d and others take it.
            offset = geometry.offset * (np.array([1.0, 1.0, -1.0]) if geometry.kind == 3 else -1.0)
            geometry = replace(geometry, offset=offset)
            notes.append(
                f"force plate {geometry.name}: its ORIGIN has the transducers above the surface: turned round"
            )
        signals = PlateSignals(t, geometry, channels)
        normal = signals.normal_force()
        if len(normal) and -float(normal.min()) > LOADED and -float(normal.min()) > 5.0 * float(normal.max()):
            geometry = replace(geometry, channels_on="plate")
            signals = PlateSignals(t, geometry, channels)
            notes.append(
                f"force plate {geometry.name}: its channels hold the load on the plate and not the reaction on the "
                "person, whose sign C3D asks for: turned round"
            )
        result.append(signals)
    return result
