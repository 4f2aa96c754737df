"""Define the keys of force plates in scenario, ground and model files and in node parameters."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.config import Vector, from_file, from_mapping, param, parse_json, together
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.numerics import Array
from bipedsim.plates.names import PLATES
from bipedsim.plates.signals import CHANNELS, PlateGeometry

MOST = 32
"""Maximum number of plates in a run."""
BITS = 32
"""Maximum resolution of an analog-to-digital converter [bits]."""
OVERLAP = 1e-6
"""Tolerated overlap of plates [m], because positions are rounded."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
PerChannel = float | tuple[float, ...]
"""One number for all channels or axes, or one for each."""


@dataclass(frozen=True)
class PlateModel:
    """Properties of a type of plate; missing ones are ideal."""

    size: tuple[float, float] | None = param(None, "[x, y] along its axes", unit="m", low=1e-3, high=100.0)
    thickness: float | None = param(
        None,
        "depth of the transducers below the surface, reference point of the moments; default 0",
        unit="m",
        low=0.0,
        high=10.0,
    )
    type: int | None = param(
        None,
        "of C3D: 1 gives Fx Fy Fz Px Py Tz; 2 Fx Fy Fz Mx My Mz; 3 the forces of four transducers; 4 channels of which "
        "`calibration` makes type 2; default 2",
        low=1,
        high=4,
    )
    half_base: tuple[float, float] | None = param(
        None, "[a, b] of type 3: half the distances of its transducers along x and y", unit="m", low=1e-3, high=100.0
    )
    calibration: tuple[tuple[float, ...], ...] | None = param(
        None, "for type 4: matrix of six rows from channels to wrench", unit="N, N.m per unit of a channel"
    )
    rate: float | None = param(None, "samples per second; default 1000", unit="Hz", low=1.0, high=1e5)
    natural_frequency: PerChannel | None = param(
        None, "of the mounted plate, one or six (Fx .. Mz); default rigid", unit="Hz", low=1.0, high=1e5
    )
    damping: PerChannel | None = param(
        None, "ratio of damping to the critical one, one or six; default 0.02", low=0.0, high=10.0
    )
    anti_alias: float | None = param(
        None,
        "cut-off of a Butterworth low-pass of second order before sampling; default none",
        unit="Hz",
        low=0.1,
        high=1e5,
    )
    range: PerChannel | None = param(
        None, "of the amplifier either way, one or one for each channel; default without end", unit="N, N.m", low=1e-9
    )
    bits: int | None = param(None, "of the converter over that range; default without steps", low=1, high=BITS)
    noise: PerChannel | None = param(
        None, "standard deviation of a sample, one or one for each channel; default none", unit="N, N.m", low=0.0
    )
    drift: PerChannel | None = param(
        None,
        "largest drift rate, one or one for each channel; redrawn at each reset; default none",
        unit="N/s, N.m/s",
        low=0.0,
    )
    cross_talk: tuple[tuple[float, ...], ...] | None = param(
        None, "six rows: reading for an applied wrench (Fx .. Mz); default: the wrench itself"
    )

    @property
    def count(self) -> int:
        """Number of channels."""
        calibration = self.calibration or ()
        return len(calibration[0]) if self.type == 4 and calibration else len(CHANNELS[self.type or 2])

    def faults(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the keys of a complete model."""
        if self.size is None:
            yield ConfigError("this key is missing, here or in the model", "size")
        if self.type == 3 and self.half_base is None:
            yield ConfigError("type 3 needs it, [a, b] of its transducers", "half_base")
        if self.type != 3 and self.half_base is not None:
            yield ConfigError(f"only type 3 has transducers apart, this is type {self.type or 2}", "half_base")
        if self.type == 4 and self.calibration is None:
            yield ConfigError("type 4 needs it, six rows", "calibration")
        if self.type != 4 and self.calibration is not None:
            yield ConfigError(f"only type 4 has one, this is type {self.type or 2}", "calibration")
        for key, rows in (("calibration", self.calibration), ("cross_talk", self.cross_talk)):
            if rows is None:
                continue
            widths = sorted({len(row) for row in rows})
            if len(rows) != 6 or len(widths) != 1 or widths[0] < 6 or (key == "cross_talk" and widths[0] != 6):
                yield ConfigError(f"it has {len(rows)} rows of {widths} numbers; it must have six rows of six", key)
                return
            if np.linalg.matrix_rank(np.array(rows)) < 6:
                yield ConfigError("singular: the wrench cannot be computed from it", key)
        sizes = {"natural_frequency": 6, "damping": 6, "range": self.count, "noise": self.count, "drift": self.count}
        if self.type == 1:
            sizes |= {"range": 6, "noise": 6, "drift": 6}
        for key, count in sizes.items():
            value = getattr(self, key)
            if isinstance(value, tuple) and len(value) != count:
                yield ConfigError(f"it has {len(value)} numbers; it must be one, or {count}", key)
        if self.bits is not None and self.range is None:
            yield ConfigError("needs range", "bits", self.bits)
        if self.damping is not None and self.natural_frequency is None:
            yield ConfigError("it needs natural_frequency: a rigid plate does not move", "damping")


_MODEL = tuple(field.name for field in dataclasses.fields(PlateModel))


@dataclass(frozen=True)
class ModelFile(PlateModel):
    """Model file."""

    description: str = param("", "one line", required=True)
    source: str = param("", "source of its data", required=True)


@dataclass(frozen=True)
class PlateConfig(PlateModel):
    """Force plate: an entry of ``force_plates``."""

    name: str = param("", "its name, for topics and files: lower-case letters, digits and _", required=True)
    model: str = param(
        "",
        "path of your own file; its values are the defaults here",
        names="bipedsim.plates.names:PLATES",
        path=True,
    )
    position: Vector = param((0.0, 0.0, 0.0), "centre of its surface in the world", unit="m", low=-1e4, high=1e4)
    yaw: float | None = param(None, "how it is turned about the world's z; default 0", unit="rad")
    rpy: Vector | None = param(
        None, "its attitude by roll, pitch, yaw instead of `yaw`; z out of its surface", unit="rad"
    )

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the keys."""
        if self.name and not _NAME.fullmatch(self.name):
            yield ConfigError("must be lower-case letters, digits and _, and begin with a letter", "name", self.name)
        if self.yaw is not None and self.rpy is not None:
            yield ConfigError("give one of them", "yaw and rpy")
        try:
            yield from self.complete().faults()
        except ConfigError as error:
            yield error.within("model")

    def complete(self) -> PlateConfig:
        """Return the plate, completed with the data of its model.

        Raises:
            ConfigError: The model does not exist or is invalid.
        """
        values = {name: getattr(self, name) for name in _MODEL}
        model = vars(_model(self.model)) if self.model else dict.fromkeys(_MODEL)
        kind = values["type"] if values["type"] is not None else model["type"]
        # Channel data of the model are valid only for its own type.
        type_differs = model["type"] is not None and kind != model["type"]
        left_out = ("range", "noise", "drift", "half_base", "calibration") if type_differs else ()
        merged: dict[str, Any] = {
            name: value if value is not None else None if name in left_out else model[name]
            for name, value in values.items()
        }
        return dataclasses.replace(self, **merged)

    @property
    def rotation(self) -> Array:
        """(3, 3) axes of the surface in the world as columns, with z out of the surface."""
        return np.asarray(pin.rpy.rpyToMatrix(*(self.rpy or (0.0, 0.0, self.yaw or 0.0))))

    def geometry(self) -> PlateGeometry:
        """Return the geometry of a :meth:`complete` plate; its z axis points down, as with manufacturers."""
        assert self.size is not None
        x, y = 0.5 * self.size[0], 0.5 * self.size[1]
        axes = self.rotation * np.array([1.0, -1.0, -1.0])
        corners = np.array([[x, y, 0.0], [-x, y, 0.0], [-x, -y, 0.0], [x, -y, 0.0]])
        return PlateGeometry(
            self.name,
            np.array(self.position) + corners @ axes.T,
            kind=self.type or 2,
            rate=self.rate or 1000.0,
            offset=np.array([0.0, 0.0, -(self.thickness or 0.0)]),
            half_base=np.array(self.half_base or (0.0, 0.0)),
            calibration=np.eye(6) if self.calibration is None else np.array(self.calibration),
        )

    def text(self) -> str:
        """Return a text for :func:`parse_plates` that reproduces the plate exactly, without its model's file."""
        complete = dataclasses.replace(self.complete(), model="")
        values = {field.name: getattr(complete, field.name) for field in dataclasses.fields(complete)}
        return json.dumps({key: value for key, value in values.items() if value is not None and value != ""})


def _model(name_or_path: str) -> ModelFile:
    return from_file(ModelFile, PLATES.find(name_or_path))


def describe_model(name_or_path: str | Path) -> ModelFile:
    """Return a model by name or from a file.

    Raises:
        UnknownNameError: The name is unknown; the message lists the names.
        ConfigError: The file is missing or wrong.
    """
    return _model(str(name_or_path))


def check_plates(plates: Sequence[PlateConfig]) -> Iterator[ConfigError]:
    """Yield inconsistencies between ``plates``: duplicate names, too many plates, and overlaps."""
    seen: set[str] = set()
    for plate in plates:
        if plate.name in seen:
            yield ConfigError("is given twice", "force_plates: name", plate.name)
        seen.add(plate.name)
    if len(plates) > MOST:
        yield ConfigError(f"{len(plates)} are more than the maximum, {MOST}", "force_plates")
    try:
        complete = [plate.complete() for plate in plates]
    except (ConfigError, UnknownNameError):
        return  # Each says so itself.
    geometries = [plate.geometry() for plate in complete if plate.size is not None and not list(plate.faults())]
    for i, second in enumerate(geometries):
        for first in geometries[:i]:
            if _overlap(second, first):
                yield ConfigError("they overlap. Move one of them", f"force_plates: {first.name!r} and {second.name!r}")


def _overlap(first: PlateGeometry, second: PlateGeometry) -> bool:
    """Return whether two rectangles in one plane overlap (separating axis theorem)."""
    if abs(float(first.normal @ (second.centre - first.centre))) > 1e-2 or float(first.normal @ second.normal) < 0.9:
        return False
    for geometry in (first, second):
        for axis in geometry.rotation.T[:2]:
            a, b = first.corners @ axis, second.corners @ axis
            if a.max() < b.min() + OVERLAP or b.max() < a.min() + OVERLAP:
                return False
    return True


def parse_plates(texts: Sequence[str]) -> tuple[PlateConfig, ...]:
    """Read force plates from JSON texts with the keys of a scenario file.

    Raises:
        ConfigError: A text is not JSON, or values are wrong; the message lists all errors.
    """
    plates: list[PlateConfig] = []
    faults: list[ConfigError] = []
    for i, text in enumerate(texts):
        try:
            plates.append(from_mapping(PlateConfig, parse_json(text, f"force_plates[{i}]"), f"force_plates[{i}]"))
        except ConfigError as error:
            faults.append(error)
    together([*faults, *check_plates(plates)])
    return tuple(plates)


def per_channel(value: PerChannel | None, count: int, otherwise: float) -> Array:
    """Return an array with one number for each of ``count`` channels or axes."""
    return np.broadcast_to(np.array(otherwise if value is None else value, dtype=np.float64), count).copy()


def as_json(geometry: PlateGeometry) -> dict[str, Any]:
    """Return a geometry as values for JSON, without loss; see :func:`from_json`."""
    values = {field.name: getattr(geometry, field.name) for field in dataclasses.fields(geometry)}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def from_json(values: Mapping[str, Any]) -> PlateGeometry:
    """Return the geometry from the result of :func:`as_json`.

    Raises:
        ConfigError: The values are invalid.
    """
    try:
        values = {**values, "channel_names": tuple(values["channel_names"])}
        return PlateGeometry(**values)
    except (TypeError, KeyError, ValueError) as error:
        raise ConfigError(f"not a description of one ({type(error).__name__}: {error})", "force plate") from error
