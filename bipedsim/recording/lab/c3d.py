"""Write C3D files (https://www.c3d.org).

Lengths are in mm and moments in N.mm, as usual in laboratories. Numbers are 32-bit floats. ``FORCE_PLATFORM`` contains
the plates. Their channels are the reaction on the person along the plate's own axes, so a plate with z into the floor
has a negative Fz under load. The first sample is at t = 0.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim.plates import PlateGeometry, PlateSignals
from bipedsim.recording.files import writing
from bipedsim.recording.lab.c3d_format import BLOCK, INTEL, KEY, LAST
from bipedsim.recording.lab.trial import LabTrial, Markers

POINT_RATE = 250.0
"""Maximum rate of marker frames [Hz], as of usual cameras; the plate rate is an integer multiple of the frame rate."""
MOST_FRAMES = 1 << 24
"""Largest frame number that a 32-bit float represents exactly; C3D counts more than 16 bits of frames with a float."""
MOST_TEXT = 255
"""Maximum bytes of a text, and entries per dimension of a parameter; a byte counts them."""
MOST_BYTES = 0x7FFF
"""Maximum bytes of a parameter; a signed 16-bit word counts them."""
MOST_BLOCKS = 255
"""Maximum number of parameter blocks; a byte counts them."""
MM = 1000.0

Groups = dict[str, dict[str, Any]]


def write_c3d(trial: LabTrial, path: Path | str, about: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Write plates, markers and events of a trial.

    Args:
        trial: Trial to write; all plates need common times.
        path: The file, replaced if it exists.
        about: Further texts for the group ``BIPEDSIM``, name to text, such as the filter that was used.

    Returns:
        Notes on changes, such as resampling of plates to a common rate.

    Raises:
        ConfigError: The trial does not fit a C3D file; the message says what to do.
        RecordingError: The file cannot be written.
    """
    path = Path(path)
    if path.suffix != ".c3d":
        raise ConfigError("the name of a C3D file must end in .c3d", path)
    plates, notes = one_clock(trial.plates)
    if not plates and not len(trial.markers.t):
        raise ConfigError("the trial has neither force plates nor markers: there is nothing to write", path)
    analog_rate, t = (plates[0].geometry.rate, plates[0].t) if plates else (_rate(trial.markers.t), trial.markers.t)
    ratio = max(1, int(np.ceil(analog_rate / POINT_RATE - 1e-9)))
    frames = len(t) // ratio
    if not 0 < frames <= MOST_FRAMES:
        raise ConfigError(
            f"{frames} frames at {analog_rate / ratio:g} Hz do not fit a C3D file of 1 to {MOST_FRAMES}: write a "
            "part of the run with --from and --to",
            path,
        )
    if frames * ratio < len(t):
        remaining = len(t) - frames * ratio
        rest = "sample of the plates fills" if remaining == 1 else f"{remaining} samples of the plates fill"
        notes.append(f"the last {rest} no frame of markers: left out")
    points = _points(trial.markers, t[: frames * ratio : ratio])
    groups: Groups = {"POINT": _point_group(trial.markers, analog_rate / ratio)}
    groups["ANALOG"], groups["FORCE_PLATFORM"], analogs = _plate_groups(plates, frames * ratio, analog_rate)
    groups["EVENT"] = _event_group(trial, t[: frames * ratio])
    about_texts = {"START": f"{t[0]:.9g} s is time 0 of this file", **(about or {}), "NOTES": "\n".join(trial.notes)}
    groups["BIPEDSIM"] = {_parameter_name(name): _wrapped(text) for name, text in about_texts.items() if text}
    groups["MANUFACTURER"] = {"COMPANY": ["bipedsim"], "SOFTWARE": ["bipedsim export"]}
    data = _encoded(path, {name: rows for name, rows in groups.items() if rows}, points, analogs, ratio)
    with writing(path):
        path.write_bytes(data)
    return tuple(notes)


def one_clock(plates: Sequence[PlateSignals]) -> tuple[list[PlateSignals], list[str]]:
    """Return plates with common times, and notes on the resampling.

    Plates with equal times are returned unchanged. Others are linearly interpolated at the highest rate, over the time
    that all of them cover.

    Raises:
        ConfigError: The plates have no time in common.
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
    note = f"plates of several clocks ({rates}) were resampled to {rate:g} Hz by straight lines"
    return [resampled(p, t, rate) for p in plates], [note]


def resampled(plate: PlateSignals, t: Array, rate: float) -> PlateSignals:
    """Interpolate a plate's signals linearly at the times ``t`` (n,) [s]."""
    channels = np.column_stack([np.interp(t, plate.t, np.nan_to_num(values)) for values in plate.channels.T])
    return replace(plate, t=t, geometry=replace(plate.geometry, rate=rate), channels=channels)


def _rate(t: Array) -> float:
    return round((len(t) - 1) / float(t[-1] - t[0]), 6) if len(t) > 1 else 1.0


def _point_group(markers: Markers, rate: float) -> dict[str, Any]:
    count = len(markers.names)
    return {
        "USED": count,
        # A negative scale marks floats.
        "SCALE": -1.0,
        "RATE": rate,
        "LABELS": list(markers.names),
        "DESCRIPTIONS": [""] * count,
        "UNITS": ["mm"],
        "X_SCREEN": ["+X"],
        "Y_SCREEN": ["+Z"],
    }


def _points(markers: Markers, t: Array) -> Array:
    """Return x, y, z [mm] and residual (n, m, 4) of the markers at times ``t``; the residual is -1 if invisible."""
    values = np.zeros((len(t), len(markers.names), 4))
    for k in range(len(markers.names)):
        for axis in range(3):
            values[:, k, axis] = MM * np.interp(t, markers.t, markers.positions[:, k, axis])
    values[~np.isfinite(values).all(axis=2)] = (0.0, 0.0, 0.0, -1.0)
    return values


def _event_group(trial: LabTrial, t: Array) -> dict[str, Any]:
    """Return the group EVENT with the events between the first and the last time."""
    events = [event for event in trial.events if t[0] - 1e-9 <= event.t <= t[-1] + 1e-9]
    if not events:
        return {}
    count = len(events)
    at = np.array([event.t - float(t[0]) for event in events])
    return {
        "USED": count,
        "CONTEXTS": [event.context for event in events],
        "LABELS": [event.label for event in events],
        "DESCRIPTIONS": [""] * count,
        "TIMES": np.stack([at // 60.0, at % 60.0]),
        "SUBJECTS": [""] * count,
        "ICON_IDS": np.zeros(count, dtype=int),
        "GENERIC_FLAGS": np.zeros(count, dtype=int),
    }


def _plate_groups(plates: Sequence[PlateSignals], n: int, rate: float) -> tuple[dict[str, Any], dict[str, Any], Array]:
    """Return the groups ANALOG and FORCE_PLATFORM, and the channels (n, c)."""
    channels: list[Array] = [np.zeros((n, 0))]
    labels: list[str] = []
    units: list[str] = []
    descriptions: list[str] = []
    channel_numbers: list[range] = []
    for number, plate in enumerate(plates, 1):
        geometry = plate.geometry
        scales, names = _channel_units(geometry)
        values = np.nan_to_num(_on_person(plate)[:n]) * scales
        channel_numbers.append(range(len(labels) + 1, len(labels) + 1 + values.shape[1]))
        channels.append(values)
        labels += [f"{name}_{number}" for name in geometry.channel_names]
        units += names
        descriptions += [f"force plate {geometry.name}, type {geometry.kind}"] * values.shape[1]
    analog: dict[str, Any] = {"USED": len(labels)}
    if not plates:
        return analog, {}, channels[0]
    analog |= {
        "LABELS": labels,
        "DESCRIPTIONS": descriptions,
        "GEN_SCALE": 1.0,
        "SCALE": np.ones(len(labels)),
        "OFFSET": np.zeros(len(labels), dtype=int),
        "UNITS": units,
        "RATE": rate,
        "FORMAT": ["SIGNED"],
    }
    widest = max(map(len, channel_numbers))
    platform = {
        "USED": len(plates),
        "TYPE": np.array([plate.geometry.kind for plate in plates]),
        "ZERO": np.array([1, 0]),
        "CORNERS": np.stack([MM * plate.geometry.corners.T for plate in plates], axis=2),
        "ORIGIN": np.column_stack([_origin(plate.geometry) for plate in plates]),
        "CHANNEL": np.column_stack([[*numbers, *[0] * (widest - len(numbers))] for numbers in channel_numbers]),
        "CAL_MATRIX": np.stack([_calibration(plate.geometry) for plate in plates], axis=2),
    }
    return analog, platform, np.hstack(channels)


def _on_person(plate: PlateSignals) -> Array:
    """Return the channels (n, c) as the reaction on the person."""
    if plate.geometry.channels_on == "person":
        return plate.channels
    if plate.geometry.kind == 1:
        # The position of the CoP is the same for both signs.
        return plate.channels * np.array([-1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
    return -plate.channels


def _channel_units(geometry: PlateGeometry) -> tuple[Array, list[str]]:
    """Return the factor and the unit of each channel in the file.

    Raises:
        ConfigError: A plate of type 4 does not have six channels.
    """
    if geometry.kind == 4:
        count = len(geometry.channel_names)
        if count != 6:
            raise ConfigError(f"force plate {geometry.name!r}: type 4 has six channels in C3D, and this one {count}")
        return np.ones(6), ["V"] * 6
    units = {1: ["N", "N", "N", "mm", "mm", "Nmm"], 2: ["N"] * 3 + ["Nmm"] * 3, 3: ["N"] * 8}[geometry.kind]
    return np.array([1.0 if unit == "N" else MM for unit in units]), units


def _origin(geometry: PlateGeometry) -> Array:
    """Return ORIGIN (3,) [mm]: from transducers to surface centre; for type 3 with half the sensor distances."""
    if geometry.kind == 3:
        return MM * np.array([*geometry.half_base, geometry.offset[2]])
    return MM * geometry.offset


def _calibration(geometry: PlateGeometry) -> Array:
    """Return CAL_MATRIX (6, 6) [N, N.mm per unit of the channels]."""
    matrix = geometry.calibration if geometry.kind == 4 else np.eye(6)
    return np.asarray(np.array([1.0, 1.0, 1.0, MM, MM, MM])[:, None] * matrix if geometry.kind == 4 else matrix)


def _parameter_name(text: str) -> str:
    """Convert a text to a parameter name of capitals, digits and _."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").upper()[:127] or "TEXT"


def _wrapped(text: str) -> list[str]:
    """Wrap a text into lines that fit a parameter in bytes."""
    lines = []
    for line in text.split("\n"):
        width = MOST_TEXT
        while any(len(part.encode()) > MOST_TEXT for part in textwrap.wrap(line, width)):
            width //= 2
        lines += textwrap.wrap(line, width) or [""]
    return lines


def _encoded(path: Path, groups: Groups, points: Array, analogs: Array, ratio: int) -> bytes:
    """Return the bytes of a file in Intel's format with floats.

    Args:
        path: The file, for error messages.
        groups: Parameters by group and name: integers, floats, arrays of them, or lists of texts.
        points: (n, m, 4) x, y, z and residual.
        analogs: (n * ratio, c).
        ratio: Number of analog samples per frame.

    Raises:
        ConfigError: A count exceeds the limits of the format.
    """
    frames, channels = len(points), analogs.shape[1]
    for quantity, count in (("points", points.shape[1]), ("analog samples a frame", channels * ratio)):
        if count > LAST:
            raise ConfigError(f"a C3D file has at most {LAST} {quantity}, and this one {count}", path)
    groups["POINT"] |= {"FRAMES": min(frames, LAST), "DATA_START": 0}
    if frames > LAST:
        groups["POINT"]["LONG_FRAMES"] = float(frames)
        groups["TRIAL"] = {
            "ACTUAL_START_FIELD": np.array([1, 0]),
            "ACTUAL_END_FIELD": np.array([frames % (LAST + 1), frames // (LAST + 1)]),
        }
    blocks = -(-len(_records(path, groups)) // BLOCK)
    if blocks > MOST_BLOCKS:
        raise ConfigError(
            f"{blocks} blocks of names and texts do not fit a C3D file of at most {MOST_BLOCKS}: write fewer markers "
            "or plates",
            path,
        )
    start = 2 + blocks
    groups["POINT"]["DATA_START"] = start
    header = np.zeros(BLOCK // 2, dtype="<u2")
    header[:5] = 2 | KEY << 8, points.shape[1], channels * ratio, 1, min(frames, LAST)
    header[6:8] = np.array([groups["POINT"]["SCALE"]], dtype="<f4").view("<u2")
    header[8:10] = start, ratio
    header[10:12] = np.array([groups["POINT"]["RATE"]], dtype="<f4").view("<u2")
    parameters = bytearray(_records(path, groups).ljust(blocks * BLOCK, b"\0"))
    parameters[:4] = 1, KEY, blocks, INTEL
    values = np.hstack([points.reshape(frames, -1), analogs.reshape(frames, -1)]).astype("<f4").tobytes()
    return header.tobytes() + parameters + values.ljust(-(-len(values) // BLOCK) * BLOCK, b"\0")


def _records(path: Path, groups: Groups) -> bytes:
    """Return the parameter section; its first four bytes are zero."""
    parts = [bytes(4)]
    for number, (group, rows) in enumerate(groups.items(), 1):
        parts.append(_record(group, -number, b"\0"))
        for name, value in rows.items():
            for suffix, part in _split(value):
                parts.append(_record(f"{name}{suffix}", number, _typed(f"{path}: {group}:{name}{suffix}", part)))
    return b"".join(parts) + b"\0\0"


def _record(name: str, group: int, body: bytes) -> bytes:
    raw = name.encode()
    return bytes([len(raw), group % 256]) + raw + (len(body) + 2).to_bytes(2, "little") + body


def _split(value: Any) -> list[tuple[str, Any]]:
    """Split a value into parts that fit a dimension, each with the suffix of its name: empty, 2, 3."""
    size = len(value) if isinstance(value, list) else np.shape(value)[-1] if np.ndim(value) else 1
    if size <= MOST_TEXT:
        return [("", value)]
    cuts = [slice(k, k + MOST_TEXT) for k in range(0, size, MOST_TEXT)]
    parts = [value[cut] if isinstance(value, list) else value[..., cut] for cut in cuts]
    return [(f"{k + 1}" if k else "", part) for k, part in enumerate(parts)]


def _typed(where: str, value: Any) -> bytes:
    """Return type, dimensions and data of a parameter, and an empty description.

    Raises:
        ConfigError: A text or the parameter is too long, or an integer does not fit 16 bits.
    """
    if isinstance(value, list):
        texts = [text.encode() for text in value]
        width = max([1, *map(len, texts)])
        longest = max(value, key=lambda text: len(text.encode()), default="")
        if width > MOST_TEXT:
            raise ConfigError(f"has {width} bytes; a C3D file takes {MOST_TEXT}: use a shorter name", where, longest)
        kind, shape, raw = -1, (width, len(texts)), b"".join(text.ljust(width) for text in texts)
    else:
        array = np.asarray(value)
        is_integer = array.dtype.kind in "iu"
        if is_integer and array.size and not 0 <= array.min() <= array.max() <= LAST:
            raise ConfigError(f"{array.max()} does not fit a word of 16 bits, from 0 to {LAST}", where)
        kind, shape = (2, array.shape) if is_integer else (4, array.shape)
        raw = array.astype("<u2" if is_integer else "<f4").tobytes(order="F")
    body = bytes([kind % 256, len(shape), *shape]) + raw + b"\0"
    if len(body) > MOST_BYTES:
        raise ConfigError(f"{len(body)} bytes do not fit a parameter of at most {MOST_BYTES}: shorten the names", where)
    return body
