"""C3D files and their truth, written after the C3D User Guide (c3d.org) without code of bipedsim.

A file is a header of 512 bytes, a section of parameters and frames. Integers and floats are those of Intel, DEC (VAX)
or SGI (MIPS). Every number of the header is an argument, so that tests can write typical errors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PROCESSORS = {"intel": 84, "dec": 85, "sgi": 86}
HALF = 2.0**-24
"""Half a unit in the last place of a 32-bit float, as a share."""


def words(values: Any, processor: str) -> bytes:
    """Words of 16 bits, with a sign or without one."""
    return (np.atleast_1d(values).astype(np.int64) & 0xFFFF).astype(">u2" if processor == "sgi" else "<u2").tobytes("F")


def floats(values: Any, processor: str) -> bytes:
    """Floats of 32 bits; those of a VAX are four times as large in IEEE's bits, and have their halves swapped."""
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if processor == "dec":
        return (4.0 * array).astype("<f4").ravel("F").view("<u2").reshape(-1, 2)[:, ::-1].tobytes()
    return array.astype(">f4" if processor == "sgi" else "<f4").tobytes("F")


def single(values: Any) -> Any:
    """Numbers as 32-bit floats hold them."""
    return np.asarray(values, dtype=np.float32).astype(np.float64)


def parameter(group: int, name: str, value: Any, processor: str) -> bytes:
    """A record: texts from lists or str, words of 16 bits from integers, else floats."""
    if isinstance(value, str):
        body = struct.pack("bBB", -1, 1, len(value.encode())) + value.encode()
    elif isinstance(value, list):
        raw = [text.encode() for text in value]
        width = max([1, *map(len, raw)])
        body = struct.pack("bBBB", -1, 2, width, len(raw)) + b"".join(text.ljust(width) for text in raw)
    else:
        array = np.asarray(value)
        whole = array.dtype.kind in "iu"
        body = struct.pack("bB", 2 if whole else 4, array.ndim) + bytes(array.shape)
        body += words(array, processor) if whole else floats(array, processor)
    body += b"\0"
    return struct.pack("bb", len(name), group) + name.encode() + words(2 + len(body), processor) + body


def c3d_bytes(
    groups: dict[str, dict[str, Any]],
    frames: Any,
    *,
    points: int = 0,
    per_frame: int = 0,
    ratio: int = 1,
    rate: float = 100.0,
    first: int = 1,
    last: int | None = None,
    scale: float = -1.0,
    processor: str = "intel",
) -> bytes:
    """The bytes of a file.

    Args:
        groups: Parameters by group and name; ``POINT:DATA_START`` is put in.
        frames: (n, words) raw numbers, points before analog samples.
        points, per_frame, ratio, rate, first, last, scale: Of the header: points, analog values and samples per frame,
            rate of frames, first and last frame, and the scale of points, which is negative for floats.
        processor: One of ``PROCESSORS``.
    """

    def section(start: int) -> bytes:
        parts = []
        for number, (group, rows) in enumerate(groups.items(), 1):
            parts.append(struct.pack("bb", len(group), -number) + group.encode() + words(3, processor) + b"\0")
            rows = {**rows, "DATA_START": start} if group == "POINT" else rows
            parts += [parameter(number, name, value, processor) for name, value in rows.items()]
        return b"".join(parts) + b"\0\0"

    blocks = -(-(4 + len(section(0))) // 512)
    start = 2 + blocks
    n = len(frames)
    header = bytearray(512)
    header[:2] = b"\x02\x50"
    header[2:12] = words([points, per_frame, first, first + n - 1 if last is None else last, 10], processor)
    header[12:16] = floats([scale], processor)
    header[16:20] = words([start, ratio], processor)
    header[20:24] = floats([rate], processor)
    raw = floats(np.ravel(frames), processor) if scale < 0.0 else words(np.ravel(frames), processor)
    head = bytes([1, 80, blocks % 256, PROCESSORS[processor]])
    return (
        bytes(header) + (head + section(start)).ljust(512 * blocks, b"\0") + raw.ljust(-(-len(raw) // 512) * 512, b"\0")
    )


@dataclass(frozen=True)
class TruePlate:
    """Loads on a plate, in a world with z up, in newtons and metres.

    Attributes:
        kind: Type of C3D.
        centre, yaw, size: Of its surface; x and y of the plate are those of the world, turned by yaw, and y mirrored,
            as its z looks into the floor.
        origin: (3,) from the transducers to the centre of the surface, in plate axes; z is negative.
        half: (2,) half the distances of the transducers of type 3.
        calibration: (6, 6) of type 4, converts its channels to newtons and newton metres.
        force: (n, 3) on the person.
        cop: (n, 2) in the world.
        twist: (n,) free moment on the person about the world's z.
    """

    kind: int
    centre: Any
    yaw: float
    size: Any
    origin: Any
    half: Any
    calibration: Any
    force: Any
    cop: Any
    twist: Any

    @property
    def axes(self) -> Any:
        """(3, 3) x, y, z of the plate as columns."""
        c, s = np.cos(self.yaw), np.sin(self.yaw)
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ np.diag([1.0, -1.0, -1.0])

    @property
    def corners(self) -> Any:
        """(4, 3) in the order of the guide."""
        own = 0.5 * np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]]) * [*self.size, 0.0]
        return np.array([*self.centre, 0.0]) + own @ self.axes.T

    def wrench(self) -> Any:
        """(n, 6) at the transducers, in plate axes."""
        force = self.force @ self.axes
        arm = np.column_stack([self.cop - self.centre, np.zeros(len(self.cop))]) @ self.axes
        moment = np.cross(arm + self.origin, force)
        moment[:, 2] -= self.twist
        return np.hstack([force, moment])

    def mixing(self) -> Any:
        """(6, c) matrix from the channels of types 2 to 4 to the wrench."""
        if self.kind == 2:
            return np.eye(6)
        if self.kind == 4:
            return self.calibration
        a, b = self.half
        rows = np.zeros((6, 8))
        rows[0, :2] = rows[1, 2:4] = rows[2, 4:] = 1.0
        rows[3, 4:], rows[4, 4:] = [b, b, -b, -b], [-a, a, a, -a]
        rows[5, :4] = [-b, b, a, -a]
        return rows

    def channels(self, rng: np.random.Generator) -> Any:
        """(n, c) of the transducers; of type 3 they are under tension besides, which does not act outside."""
        wrench = self.wrench()
        if self.kind == 1:
            at = np.column_stack([self.cop - self.centre, np.zeros(len(self.cop))]) @ self.axes
            return np.column_stack([wrench[:, :3], at[:, :2], -self.twist])
        if self.kind != 3:
            return wrench @ np.linalg.inv(self.mixing()).T
        some = wrench @ np.linalg.pinv(self.mixing()).T
        inside = np.zeros((2, 8))
        inside[0, 4:] = [1.0, -1.0, 1.0, -1.0]
        a, b = self.half
        inside[1, :4] = [a, -a, b, -b]
        loads = np.column_stack([np.abs(self.force[:, 2]), self.force[:, 0]]) * rng.uniform(-0.2, 0.2, 2)
        return some + loads @ inside


METRES = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "in": 0.0254}
NEWTONS = {"N": 1.0, "nt": 1.0, "Newton": 1.0, "kN": 1e3, "lbf": 4.4482216152605, "kgf": 9.80665}


@dataclass(frozen=True)
class Case:
    """A random file and its truth.

    Attributes:
        about: Description of the random choices, for reports.
        plates: Loads on each plate.
        rate: Of their samples.
        errors: For each plate and channel, maximum error of its number in the file, in SI units.
        events: Times from the first frame.
        points: (n, m, 3) in metres, in the world.
        analogs: (n, c) in the units of the file, for other readers.
        resolution: (c,) of ``analogs``.
        refused: Values of which an error must contain one; empty if the file must be read.
    """

    about: dict[str, Any]
    plates: list[TruePlate]
    rate: float
    errors: list[Any]
    events: list[float]
    points: Any
    analogs: Any
    resolution: Any
    refused: tuple[str | int, ...] = field(default=())


RATES = (
    23.976,
    25.0,
    29.97,
    33.33,
    50.0,
    59.94,
    60.0,
    83.33,
    99.9,
    100.0,
    119.88,
    120.0,
    150.001,
    179.82,
    239.76,
    250.0,
)


def _plate(rng: np.random.Generator, kind: int, number: int, n: int, metre: float) -> TruePlate:
    """A person walks over a plate that is empty at the beginning and at the end."""
    size = rng.uniform(0.3, 0.9, 2)
    s = np.linspace(-0.15, 1.15, n)
    load = rng.uniform(300.0, 1500.0) * np.sqrt(np.clip(np.sin(np.pi * s), 0.0, None)) * ((s > 0.0) & (s < 1.0))
    sway = [np.sin(rng.uniform(1.0, 9.0) * s + rng.uniform(0.0, 6.0)) for _ in range(5)]
    centre, yaw = np.array([1.0 * number, 0.0]) + rng.uniform(-0.2, 0.2, 2), rng.uniform(-np.pi, np.pi)
    c, turn = np.cos(yaw), np.sin(yaw)
    inside = np.column_stack([0.35 * size[0] * sway[0], 0.35 * size[1] * sway[1]])
    depth = -rng.uniform(0.0, 0.08)
    slant = np.zeros(2) if kind in (1, 3) else rng.uniform(-2e-3, 2e-3, 2)
    origin = metre * single(np.array([*slant, depth]) / metre)
    units = np.array([1.0, 1.0, 1.0, metre, metre, metre])[:, None]
    calibration = np.diag([500.0, 510.0, 990.0, 300.0, 210.0, 110.0]) + rng.uniform(-3.0, 3.0, (6, 6))
    return TruePlate(
        kind,
        centre,
        yaw,
        size,
        origin,
        metre * single(rng.uniform(0.1, 0.3, 2) / metre),
        units * single(calibration / units),
        np.column_stack([0.2 * load * sway[2], 0.1 * load * sway[3], load]),
        centre + inside @ np.array([[c, turn], [-turn, c]]) * [1.0, 1.0],
        np.where(load > 0.0, 8.0 * sway[4], 0.0),
    )


def _units(rng: np.random.Generator, kind: int, length: str) -> tuple[list[str], list[float]]:
    """Units of the channels of a plate, and their factors to SI units; a moment without one has the length unit of the
    file.
    """
    force = str(rng.choice(list(NEWTONS)))
    arm = str(rng.choice(list(METRES)))
    moment, own = f"{force}{rng.choice(['', '.', '*', ' ', '-'])}{arm}", NEWTONS[force] * METRES[arm]
    if kind == 1:
        names, scales = [force] * 3 + [arm] * 2 + [moment], [NEWTONS[force]] * 3 + [METRES[arm]] * 2 + [own]
    elif kind == 2:
        names, scales = [force] * 3 + [moment] * 3, [NEWTONS[force]] * 3 + [own] * 3
        if rng.random() < 0.1:
            names, scales = [""] * 6, [1.0] * 3 + [METRES[length]] * 3
    elif kind == 3:
        names, scales = [force] * 8, [NEWTONS[force]] * 8
    else:
        names, scales = [str(rng.choice(["V", "mV", ""]))] * 6, [1.0] * 6
    return names, scales


def random_case(seed: int, path: Path) -> Case:
    """Write a random file to ``path`` and return its truth."""
    rng = np.random.default_rng(seed)
    real, processor = bool(rng.random() < 0.5), str(rng.choice(list(PROCESSORS)))
    form = str(rng.choice(["", "SIGNED", "UNSIGNED"]))
    rate = float(rng.choice(RATES)) if rng.random() < 0.6 else round(float(rng.uniform(20.0, 300.0)), 2)
    ratio = int(rng.integers(1, 31))
    n = max(4, min(120, 900 // ratio))
    length = str(rng.choice(list(METRES), p=[0.6, 0.1, 0.2, 0.1]))
    metre = METRES[length]
    kinds = [int(kind) for kind in rng.integers(1, 5, int(rng.integers(1, 4)))]
    plates = [_plate(rng, kind, number, n * ratio, metre) for number, kind in enumerate(kinds)]
    refused: tuple[str | int, ...] = ()
    analog_rate = float(single(rate * ratio))

    # Channels of the plates, each behind some of other instruments.
    columns, units, scales, owners = [], [], [], []
    for number, plate in enumerate(plates):
        for _ in range(int(rng.integers(0, 3))):
            columns.append(rng.normal(size=n * ratio))
            units.append("V")
            scales.append(1.0)
            owners.append(-1)
        names, factors = _units(rng, plate.kind, length)
        columns += list((plate.channels(rng) / factors).T)
        units += names
        scales += factors
        owners += [number] * len(names)
    if rng.random() < 0.05:
        foul = next(k for k, owner in enumerate(owners) if owner >= 0)
        units[foul] = "furlong"
        refused = ("furlong",) if plates[owners[foul]].kind != 4 else ()
    analogs = np.column_stack(columns)
    count = analogs.shape[1]

    # (value - OFFSET) * SCALE * GEN_SCALE
    general = float(single(rng.choice([1.0, 0.5, 0.00244140625, 0.01])))
    if form == "UNSIGNED":
        offset = rng.choice([32768, 32768, 2047, 40000], count)
    else:
        offset = rng.choice([0, 0, 2048, -700], count)
    low, high = (0, 65535) if form == "UNSIGNED" else (-32768, 32767)
    room = np.minimum(high - offset, offset - low)
    sign = rng.choice([1.0, 1.0, -1.0], count)
    largest = np.abs(analogs).max(axis=0) + 1e-9
    scale = single(sign * largest / (0.9 * room * general))
    if real and rng.random() < 0.5:
        scale, general, offset = np.ones(count), 1.0, np.zeros(count, dtype=int)
    raw = analogs / (scale * general) + offset
    step = np.abs(scale * general)
    resolution = (2.0 * HALF * np.abs(raw).max(axis=0) if real else np.full(count, 0.5)) * step * (1.0 + 1e-6)
    if not real:
        raw = np.rint(raw)

    # Points. One of them is not visible for a while.
    m = int(rng.integers(0, 4))
    places = rng.uniform(-1.0, 1.0, (n, m, 3)).cumsum(axis=0) * 0.01 if m else np.zeros((n, 0, 3))
    turn = np.eye(3) if rng.random() < 0.75 else np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    points = np.zeros((n, m, 4))
    points[..., :3] = places @ turn.T / metre
    point_scale = float(single(max(1e-6, np.abs(points).max(initial=0.0)) / 30000.0))
    if not real:
        points[..., :3] = np.rint(points[..., :3] / point_scale)
    if m:
        points[2:4, 0] = (0.0, 0.0, 0.0, -1.0)
        places[2:4, 0] = np.nan

    first = 1 if rng.random() < 0.6 else int(rng.integers(2, 60000))
    groups: dict[str, dict[str, Any]] = {
        "POINT": {
            "USED": m,
            "SCALE": -point_scale if real else point_scale,
            "FRAMES": n,
            "RATE": rate,
            "LABELS": [f"M{k}" for k in range(m)],
            "UNITS": length,
        },
        "ANALOG": {
            "USED": count,
            "LABELS": [f"C{k}" for k in range(count)],
            "UNITS": units,
            "GEN_SCALE": general,
            "SCALE": scale,
            "OFFSET": offset,
            "RATE": analog_rate,
        },
    }
    if form:
        groups["ANALOG"]["FORMAT"] = form
    no_rate = bool(rng.random() < 0.15)
    if no_rate:
        groups["POINT"]["RATE"] = 0.0
    widest = max(len(plate.mixing()[0]) if plate.kind != 1 else 6 for plate in plates)
    places_of = [[k + 1 for k, owner in enumerate(owners) if owner == number] for number in range(len(plates))]
    groups["FORCE_PLATFORM"] = {
        "USED": len(plates),
        "TYPE": np.array(kinds),
        "ZERO": np.array([0, 0]),
        "CORNERS": np.stack([turn @ plate.corners.T / metre for plate in plates], axis=2),
        "ORIGIN": np.column_stack(
            [np.array([*plate.half, plate.origin[2]] if plate.kind == 3 else plate.origin) / metre for plate in plates]
        ),
        "CHANNEL": np.column_stack([[*one, *[0] * (widest - len(one))] for one in places_of]),
    }
    if 4 in kinds:
        units_of = np.array([1.0, 1.0, 1.0, metre, metre, metre])[:, None]
        groups["FORCE_PLATFORM"]["CAL_MATRIX"] = np.stack([plate.calibration / units_of for plate in plates], axis=2)
    if rng.random() < 0.05:
        odd = int(rng.integers(8, 12))
        groups["FORCE_PLATFORM"]["TYPE"] = np.array([*kinds[:-1], odd])
        refused = (*refused, odd)
    events = sorted(rng.uniform(0.0, (n - 1) / rate, int(rng.integers(0, 4))).tolist())
    if events:
        # From frame 1, which is not in a file that was cut.
        at = np.array(events) + (first - 1) / rate
        groups["EVENT"] = {
            "USED": len(events),
            "LABELS": ["Foot Strike"] * len(events),
            "CONTEXTS": ["Left"] * len(events),
            "TIMES": np.stack([at // 60.0, at % 60.0]),
        }
    if rng.random() < 0.4:
        groups["TRIAL"] = {
            "ACTUAL_START_FIELD": np.array([first % 65536, first // 65536]),
            "ACTUAL_END_FIELD": np.array([(first + n - 1) % 65536, (first + n - 1) // 65536]),
        }
    frames = np.hstack([points.reshape(n, -1), raw.reshape(n, -1)])
    path.write_bytes(
        c3d_bytes(
            groups,
            frames,
            points=m,
            per_frame=count * ratio,
            ratio=ratio,
            rate=rate if rng.random() < 0.8 else 0.0,
            first=first,
            last=min(65535, first + n - 1),
            scale=groups["POINT"]["SCALE"],
            processor=processor,
        )
    )
    errors = [(resolution * scales)[[k for k, owner in enumerate(owners) if owner == i]] for i in range(len(plates))]
    about = {
        "processor": processor,
        "numbers": "floats" if real else "integers",
        "format": form or "none",
        "rate": rate,
        "ratio": ratio,
        "length": length,
        "types": kinds,
        "first": first,
        "no_rate": no_rate,
        "below_zero": bool((offset < 0).any()),
        "refused": refused,
    }
    return Case(about, plates, analog_rate, errors, events, places, analogs, resolution, refused)


def bounds(plate: TruePlate, error: Any) -> tuple[Any, Any, Any]:
    """Maximum errors of force (n, 3), CoP (n,) and free moment (n,) if channels are off by ``error``.

    The CoP is x = -M_y / F_z and y = M_x / F_z at the surface; the bounds are those of the quotients. They include the
    rounding of the corners to 32-bit floats and of 64-bit arithmetic.
    """
    wrench = plate.wrench()
    off = np.array([*error[:3], 0.0, 0.0, 0.0]) if plate.kind == 1 else np.abs(plate.mixing()) @ error
    place = 2e-6
    force = np.linalg.norm(off[:3]) + 1e-6 * np.linalg.norm(plate.force, axis=1)[:, None] + np.zeros((len(wrench), 3))
    with np.errstate(divide="ignore", invalid="ignore"):
        if plate.kind == 1:
            cop = np.full(len(wrench), np.hypot(error[3], error[4]) + place)
            return force, cop, np.full(len(wrench), error[5] + 1e-6)
        lever = np.abs(plate.origin)
        moment = off[3:] + np.array(
            [
                lever[1] * off[2] + lever[2] * off[1],
                lever[2] * off[0] + lever[0] * off[2],
                lever[0] * off[1] + lever[1] * off[0],
            ]
        )
        at = np.linalg.norm(plate.cop - plate.centre, axis=1)
        normal = np.abs(wrench[:, 2]) - off[2]
        cop = (np.hypot(moment[0], moment[1]) + at * off[2]) / normal + place
        shear = np.linalg.norm(wrench[:, :2], axis=1)
        twist = moment[2] + cop * shear + (at + cop) * np.linalg.norm(off[:2]) + 1e-6
    return force, cop, twist
