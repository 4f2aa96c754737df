"""Writing C3D files (https://www.c3d.org), with the library ezc3d.

Lengths are in mm and moments in N.mm, as laboratories have them; numbers are 32-bit floats. ``FORCE_PLATFORM``
holds the plates: channels are the reaction on the person along the plate's own axes, so that a plate whose z looks into
the floor has a negative Fz under load. Time begins at 0 with the first sample.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.errors import ConfigError, RecordingError, install
from bipedsim.numerics import Array
from bipedsim.plates import PlateGeometry, PlateSignals
from bipedsim.recording.lab.trial import LabTrial

POINT_RATE = 250.0
"""Most frames of markers per second: usual cameras; plates have a whole multiple of what is taken."""
MOST_FRAMES = 65_535
"""Frames that the header of a C3D file can count."""
MM = 1000.0


def ezc3d_module() -> Any:
    """Return the library that reads and writes C3D files.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        import ezc3d
    except ImportError as error:
        raise ConfigError(f"C3D files need the library ezc3d: {install('bipedsim[lab]')} ({error})") from error
    return ezc3d


def write_c3d(trial: LabTrial, path: Path | str, about: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Write plates, markers and events of a trial.

    Args:
        trial: What to write; all plates need samples in common.
        path: The file, replaced if it exists.
        about: More to say in the group ``BIPEDSIM``, name to text, such as which filter was used.

    Returns:
        What was changed on the way, such as plates that were brought to one rate.

    Raises:
        ConfigError: ezc3d is missing, or the trial does not fit a C3D file; the message says what to do.
        RecordingError: The file cannot be written.
    """
    ezc3d = ezc3d_module()
    path = Path(path)
    if path.suffix != ".c3d":
        raise ConfigError(f"{path}: the name of a C3D file must end in .c3d")
    plates, notes = one_clock(trial.plates)
    if not plates and not len(trial.markers.t):
        raise ConfigError(f"{path}: the trial has neither force plates nor markers: there is nothing to write")
    analog_rate, t = (plates[0].geometry.rate, plates[0].t) if plates else (_rate(trial.markers.t), trial.markers.t)
    each = max(1, int(np.ceil(analog_rate / POINT_RATE - 1e-9)))
    frames = len(t) // each
    if not 0 < frames <= MOST_FRAMES:
        raise ConfigError(
            f"{path}: {frames} frames at {analog_rate / each:g} Hz do not fit a C3D file of 1 to {MOST_FRAMES}: "
            "write a part of the run with --from and --to"
        )
    if frames * each < len(t):
        left = len(t) - frames * each
        rest = "sample of the plates fills" if left == 1 else f"{left} samples of the plates fill"
        notes.append(f"the last {rest} no frame of markers: left out")
    c3d = ezc3d.c3d()
    _set_points(c3d, trial, t[: frames * each : each], analog_rate / each)
    _set_plates(c3d, plates, frames * each, analog_rate)
    for event in trial.events:
        if t[0] - 1e-9 <= event.t <= t[frames * each - 1] + 1e-9:
            at = event.t - float(t[0])
            c3d.add_event([at // 60.0, at % 60.0], event.context, event.label)
    said = {"START": f"{t[0]:.9g} s is time 0 of this file", **(about or {}), "NOTES": "; ".join(trial.notes)}
    for name, text in said.items():
        if text:
            c3d.add_parameter("BIPEDSIM", name.upper(), [text[:200]])
    c3d.add_parameter("MANUFACTURER", "COMPANY", ["bipedsim"])
    c3d.add_parameter("MANUFACTURER", "SOFTWARE", ["bipedsim export"])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # ezc3d says nothing where it cannot write.
        path.open("wb").close()
        c3d.write(os.fspath(path))
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written ({error.strerror or error})") from error
    return tuple(notes)


def one_clock(plates: Sequence[PlateSignals]) -> tuple[list[PlateSignals], list[str]]:
    """Return plates at the same times, and what had to be done for it.

    Plates of one rate and begin are handed through. Others are read off, by straight lines between samples, at the
    highest rate over the time that all of them have.

    Raises:
        ConfigError: They have no time in common.
    """
    if not plates:
        return [], []
    first = plates[0]
    if all(len(p.t) == len(first.t) and np.allclose(p.t, first.t, rtol=0.0, atol=1e-7) for p in plates[1:]):
        return list(plates), []
    rate = max(p.geometry.rate for p in plates)
    begin, end = max(float(p.t[0]) for p in plates), min(float(p.t[-1]) for p in plates)
    if end <= begin:
        raise ConfigError("the force plates have no time in common: write one of them at a time")
    t = begin + np.arange(int(np.floor((end - begin) * rate + 1e-6)) + 1) / rate
    rates = ", ".join(f"{p.geometry.name} {p.geometry.rate:g} Hz" for p in plates)
    note = f"plates of several clocks ({rates}) were brought to {rate:g} Hz by straight lines"
    return [resampled(p, t, rate) for p in plates], [note]


def resampled(plate: PlateSignals, t: Array, rate: float) -> PlateSignals:
    """Return a plate's signals at the times ``t`` (n,) [s], by straight lines between samples."""
    channels = np.column_stack([np.interp(t, plate.t, np.nan_to_num(values)) for values in plate.channels.T])
    return replace(plate, t=t, geometry=replace(plate.geometry, rate=rate), channels=channels)


def _rate(t: Array) -> float:
    return round((len(t) - 1) / float(t[-1] - t[0]), 6) if len(t) > 1 else 1.0


def _set_points(c3d: Any, trial: LabTrial, t: Array, rate: float) -> None:
    markers = trial.markers
    points = c3d["parameters"]["POINT"]
    points["RATE"]["value"] = [rate]
    points["UNITS"]["value"] = ["mm"]
    points["LABELS"]["value"] = list(markers.names)
    points["DESCRIPTIONS"]["value"] = [""] * len(markers.names)
    c3d.add_parameter("POINT", "X_SCREEN", ["+X"])
    c3d.add_parameter("POINT", "Y_SCREEN", ["+Z"])
    values = np.zeros((4, len(markers.names), len(t)))
    for k in range(len(markers.names)):
        for axis in range(3):
            values[axis, k] = MM * np.interp(t, markers.t, markers.positions[:, k, axis])
    unseen = ~np.isfinite(values[:3]).all(axis=0)
    values[:, unseen] = np.nan
    values[3, ~unseen] = 1.0
    c3d["data"]["points"] = values
    c3d["data"]["meta_points"]["residuals"] = np.where(unseen, -1.0, 0.0)[None]
    c3d["data"]["meta_points"]["camera_masks"] = np.zeros((7, len(markers.names), len(t)), dtype=bool)


def _set_plates(c3d: Any, plates: Sequence[PlateSignals], n: int, rate: float) -> None:
    channels: list[Array] = []
    labels: list[str] = []
    units: list[str] = []
    descriptions: list[str] = []
    places: list[range] = []
    for number, plate in enumerate(plates, 1):
        geometry = plate.geometry
        scales, names = _channel_units(geometry)
        values = np.nan_to_num(_on_person(plate)[:n]) * scales
        places.append(range(len(labels) + 1, len(labels) + 1 + values.shape[1]))
        channels.append(values.T)
        labels += [f"{name}_{number}" for name in geometry.channel_names]
        units += names
        descriptions += [f"force plate {geometry.name}, type {geometry.kind}"] * values.shape[1]
    analog = c3d["parameters"]["ANALOG"]
    analog["RATE"]["value"] = [rate]
    analog["LABELS"]["value"] = labels
    analog["DESCRIPTIONS"]["value"] = descriptions
    analog["UNITS"]["value"] = units
    analog["SCALE"]["value"] = np.ones(len(labels))
    analog["OFFSET"]["value"] = np.zeros(len(labels), dtype=int)
    c3d["data"]["analogs"] = np.vstack(channels)[None] if channels else np.zeros((1, 0, n))
    if not plates:
        return
    widest = max(map(len, places))
    for name, value in {
        "USED": np.array([len(plates)]),
        "TYPE": np.array([plate.geometry.kind for plate in plates]),
        "ZERO": np.array([1, 0]),
        "CORNERS": np.stack([MM * plate.geometry.corners.T for plate in plates], axis=2),
        "ORIGIN": np.column_stack([_origin(plate.geometry) for plate in plates]),
        "CHANNEL": np.column_stack([[*place, *[0] * (widest - len(place))] for place in places]),
        "CAL_MATRIX": np.stack([_calibration(plate.geometry) for plate in plates], axis=2),
    }.items():
        c3d.add_parameter("FORCE_PLATFORM", name, np.asarray(value, dtype=np.float64))
    for name in ("USED", "TYPE", "ZERO", "CHANNEL"):
        c3d["parameters"]["FORCE_PLATFORM"][name]["type"] = 2  # integers, of which ezc3d makes floats


def _on_person(plate: PlateSignals) -> Array:
    """Return the channels (n, c) as the reaction on the person."""
    if plate.geometry.channels_on == "person":
        return plate.channels
    if plate.geometry.kind == 1:
        # The place of the CoP is the same for both.
        return plate.channels * np.array([-1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
    return -plate.channels


def _channel_units(geometry: PlateGeometry) -> tuple[Array, list[str]]:
    """Return what each channel is multiplied by for the file, and its unit there.

    Raises:
        ConfigError: A plate of type 4 has other than six channels.
    """
    if geometry.kind == 4:
        count = len(geometry.channel_names)
        if count != 6:
            raise ConfigError(f"force plate {geometry.name!r}: type 4 has six channels in C3D, and this one {count}")
        return np.ones(6), ["V"] * 6
    units = {1: ["N", "N", "N", "mm", "mm", "Nmm"], 2: ["N"] * 3 + ["Nmm"] * 3, 3: ["N"] * 8}[geometry.kind]
    return np.array([1.0 if unit == "N" else MM for unit in units]), units


def _origin(geometry: PlateGeometry) -> Array:
    """Return ORIGIN (3,) [mm]: to the centre of the surface from the transducers, of type 3 with their distances."""
    if geometry.kind == 3:
        return MM * np.array([*geometry.half_base, geometry.offset[2]])
    return MM * geometry.offset


def _calibration(geometry: PlateGeometry) -> Array:
    """Return CAL_MATRIX (6, 6) [N, N.mm per unit of the channels]."""
    matrix = geometry.calibration if geometry.kind == 4 else np.eye(6)
    return np.asarray(np.array([1.0, 1.0, 1.0, MM, MM, MM])[:, None] * matrix if geometry.kind == 4 else matrix)
