"""Force plates as users write them: in scenario and ground files, in files of models, in parameters of nodes."""

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

from bipedsim.config import Vector, from_file, from_mapping, param, together
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.numerics import Array
from bipedsim.plates.names import PLATES
from bipedsim.plates.signals import CHANNELS, PlateGeometry

MOST = 32
"""Plates of a run at most."""
BITS = 32
"""Of an analog-to-digital converter at most."""
OVERLAP = 1e-6
"""Plates may reach over each other by so much [m]: positions are rounded."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
PerChannel = float | tuple[float, ...]
"""One number for all channels or axes, or one for each."""


@dataclass(frozen=True)
class PlateModel:
    """What a kind of plate is like; what is not given is ideal."""

    size: tuple[float, float] | None = param(None, "[x, y] along its axes", unit="m", low=1e-3, high=100.0)
    thickness: float | None = param(
        None,
        "from the surface down to the transducers, where moments are about; default 0",
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
        None, "of type 4: six rows, which make wrench of channels", unit="N, N.m per unit of a channel"
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
        "fastest drift, one or one for each channel; each reset draws another; default none",
        unit="N/s, N.m/s",
        low=0.0,
    )
    cross_talk: tuple[tuple[float, ...], ...] | None = param(
        None, "six rows: what is read of a wrench (Fx .. Mz) that acts; default the wrench itself"
    )

    @property
    def count(self) -> int:
        """How many channels it has."""
        calibration = self.calibration or ()
        return len(calibration[0]) if self.type == 4 and calibration else len(CHANNELS[self.type or 2])

    def faults(self) -> Iterator[str]:
        """Yield what is wrong between the keys of a model that is complete."""
        if self.size is None:
            yield "key 'size' is missing, here or in the model"
        if self.type == 3 and self.half_base is None:
            yield "type 3 needs half_base, [a, b] of its transducers"
        if self.type != 3 and self.half_base is not None:
            yield f"half_base: only type 3 has transducers apart, this is type {self.type or 2}"
        if self.type == 4 and self.calibration is None:
            yield "type 4 needs calibration, six rows"
        if self.type != 4 and self.calibration is not None:
            yield f"calibration: only type 4 has one, this is type {self.type or 2}"
        for key, rows in (("calibration", self.calibration), ("cross_talk", self.cross_talk)):
            if rows is None:
                continue
            widths = sorted({len(row) for row in rows})
            if len(rows) != 6 or len(widths) != 1 or widths[0] < 6 or (key == "cross_talk" and widths[0] != 6):
                yield f"{key} has {len(rows)} rows of {widths} numbers; it must have six rows of six"
                return
            if np.linalg.matrix_rank(np.array(rows)) < 6:
                yield f"{key} is singular: no wrench can be told from it"
        wanted = {"natural_frequency": 6, "damping": 6, "range": self.count, "noise": self.count, "drift": self.count}
        if self.type == 1:
            wanted |= {"range": 6, "noise": 6, "drift": 6}
        for key, count in wanted.items():
            value = getattr(self, key)
            if isinstance(value, tuple) and len(value) != count:
                yield f"{key} has {len(value)} numbers; it must be one, or {count}"
        if self.bits is not None and self.range is None:
            yield f"bits = {self.bits} needs range, over which they are"
        if self.damping is not None and self.natural_frequency is None:
            yield "damping needs natural_frequency: a rigid plate does not move"


_MODEL = tuple(field.name for field in dataclasses.fields(PlateModel))


@dataclass(frozen=True)
class ModelFile(PlateModel):
    """The file of a model."""

    description: str = param("", "one line", required=True)
    source: str = param("", "where its figures are from", required=True)


@dataclass(frozen=True)
class PlateConfig(PlateModel):
    """A force plate: an entry of ``force_plates``."""

    name: str = param("", "its name, for topics and files: lower-case letters, digits and _", required=True)
    model: str = param(
        "",
        "the path of a file of your own; its figures count where none are here",
        names="bipedsim.plates.names:PLATES",
        path=True,
    )
    position: Vector = param((0.0, 0.0, 0.0), "centre of its surface in the world", unit="m", low=-1e4, high=1e4)
    yaw: float | None = param(None, "how it is turned about the world's z; default 0", unit="rad")
    rpy: Vector | None = param(
        None, "its attitude by roll, pitch, yaw instead of `yaw`; z out of its surface", unit="rad"
    )

    def problems(self) -> Iterator[str]:
        """Yield what is wrong between the keys."""
        if self.name and not _NAME.fullmatch(self.name):
            yield f"name = {self.name!r} must be lower-case letters, digits and _, and begin with a letter"
        if self.yaw is not None and self.rpy is not None:
            yield f"yaw = {self.yaw} and rpy = {list(self.rpy)}: give one of them"
        try:
            yield from self.complete().faults()
        except ConfigError as error:
            yield f"model: {error}"

    def complete(self) -> PlateConfig:
        """Return it with all that its model says.

        Raises:
            ConfigError: The model is none.
        """
        given = {name: getattr(self, name) for name in _MODEL}
        model = vars(_model(self.model)) if self.model else dict.fromkeys(_MODEL)
        kind = given["type"] if given["type"] is not None else model["type"]
        # Figures of its channels are those of its own type.
        other = model["type"] is not None and kind != model["type"]
        left_out = ("range", "noise", "drift", "half_base", "calibration") if other else ()
        merged: dict[str, Any] = {
            name: value if value is not None else None if name in left_out else model[name]
            for name, value in given.items()
        }
        return dataclasses.replace(self, **merged)

    @property
    def rotation(self) -> Array:
        """(3, 3) axes of the surface in the world as columns, z out of it."""
        return np.asarray(pin.rpy.rpyToMatrix(*(self.rpy or (0.0, 0.0, self.yaw or 0.0))))

    def geometry(self) -> PlateGeometry:
        """Return where a plate that is :meth:`complete` is, and its channels; its own z looks down, as makers do it."""
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
        """Return what :func:`parse_plates` reads, to the bit, whatever becomes of its model's file."""
        whole = dataclasses.replace(self.complete(), model="")
        values = {field.name: getattr(whole, field.name) for field in dataclasses.fields(whole)}
        return json.dumps({key: value for key, value in values.items() if value is not None and value != ""})


def _model(name_or_path: str) -> ModelFile:
    return from_file(ModelFile, PLATES.find(name_or_path))


def describe_model(name_or_path: str | Path) -> ModelFile:
    """Return a model by its name or from its file.

    Raises:
        UnknownNameError: No such name; the message lists the names.
        ConfigError: The file is missing or wrong.
    """
    return _model(str(name_or_path))


def check_plates(plates: Sequence[PlateConfig]) -> Iterator[str]:
    """Yield what is wrong between ``plates``: names, their number, and where they lie in each other."""
    seen: set[str] = set()
    for one in plates:
        if one.name in seen:
            yield f"force_plates: the name {one.name!r} is given twice"
        seen.add(one.name)
    if len(plates) > MOST:
        yield f"force_plates: {len(plates)} are more than {MOST}, the most there are"
    try:
        whole = [one.complete() for one in plates]
    except (ConfigError, UnknownNameError):
        return  # Each says so itself.
    known = [one.geometry() for one in whole if one.size is not None and not list(one.faults())]
    for i, here in enumerate(known):
        for other in known[:i]:
            if _overlap(here, other):
                yield f"force_plates: {other.name!r} and {here.name!r} lie over each other; a force has one plate"


def _overlap(one: PlateGeometry, other: PlateGeometry) -> bool:
    """Return whether two rectangles of one plane overlap (the theorem of separating axes)."""
    if abs(float(one.normal @ (other.centre - one.centre))) > 1e-2 or float(one.normal @ other.normal) < 0.9:
        return False
    for geometry in (one, other):
        for axis in geometry.rotation.T[:2]:
            a, b = one.corners @ axis, other.corners @ axis
            if a.max() < b.min() + OVERLAP or b.max() < a.min() + OVERLAP:
                return False
    return True


def parse_plates(texts: Sequence[str]) -> tuple[PlateConfig, ...]:
    """Read force plates from texts in JSON with the keys of a scenario file.

    Raises:
        ConfigError: A text is no such thing, or a value is wrong; all faults at once.
    """
    found: list[PlateConfig] = []
    faults: list[ConfigError] = []
    for i, text in enumerate(texts):
        try:
            found.append(from_mapping(PlateConfig, json.loads(text), f"force_plates[{i}]"))
        except json.JSONDecodeError as error:
            faults.append(ConfigError(f"force_plates[{i}] = {text!r} is not JSON ({error.msg} at {error.pos})"))
        except ConfigError as error:
            faults.append(error)
    faults += [ConfigError(problem) for problem in check_plates(found)]
    together(faults)
    return tuple(found)


def per_channel(value: PerChannel | None, count: int, otherwise: float) -> Array:
    """Return one number for each of ``count`` channels or axes."""
    return np.broadcast_to(np.array(otherwise if value is None else value, dtype=np.float64), count).copy()


def as_json(geometry: PlateGeometry) -> dict[str, Any]:
    """Return a geometry as JSON can hold it to the bit; see :func:`from_json`."""
    values = {field.name: getattr(geometry, field.name) for field in dataclasses.fields(geometry)}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def from_json(values: Mapping[str, Any]) -> PlateGeometry:
    """Return the geometry that :func:`as_json` gave.

    Raises:
        ConfigError: It is none.
    """
    try:
        given = {**values, "channel_names": tuple(values["channel_names"])}
        return PlateGeometry(**given)
    except (TypeError, KeyError, ValueError) as error:
        raise ConfigError(f"no description of a force plate ({type(error).__name__}: {error})") from error
