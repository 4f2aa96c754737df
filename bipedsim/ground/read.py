"""Ground files: what users write."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pinocchio as pin

from bipedsim.config import from_mapping, param, read_yaml
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.ground.ground import Ground
from bipedsim.ground.names import GROUNDS
from bipedsim.ground.patch import Patch, axes_of_normal
from bipedsim.ground.tiling import tiles
from bipedsim.model import number


@dataclass(frozen=True)
class _Friction:
    friction_static: Any = param(None, "Coulomb friction while sticking, instead of the sole's")
    friction_dynamic: Any = param(None, "the same while sliding; default friction_static")

    def pair(self) -> dict[str, float | None]:
        """Return both coefficients by name."""
        return {"friction_static": self.friction_static, "friction_dynamic": self.friction_dynamic}


@dataclass(frozen=True)
class PatchConfig(_Friction):
    """One entry of ``patches``."""

    name: str = param("", "name of the patch, for messages and plots")
    point: Any = param((0.0, 0.0, 0.0), "a point of the plane in the world, the origin of `region`", unit="m")
    normal: Any = param(None, "outward normal in world axes, of any length; default [0, 0, 1]")
    rpy: Any = param(None, "axes of the patch by roll, pitch, yaw, instead of `normal`", unit="rad")
    region: Any = param(None, "convex polygon, a list of [x, y] in the plane from `point`; default all of it", unit="m")


@dataclass(frozen=True)
class FlatConfig(_Friction):
    """``flat``: a horizontal plane."""

    height: float = param(0.0, "height of the plane", unit="m")


@dataclass(frozen=True)
class SlopeConfig(_Friction):
    """``slope``: a plane through the origin."""

    angle_deg: float = param(5.0, "how steep it rises", unit="deg", low=-89.0, high=89.0)
    direction_deg: float = param(0.0, "heading that is uphill, 0 for world x", unit="deg")


@dataclass(frozen=True)
class StairsConfig(_Friction):
    """``stairs``: a floor and treads that climb along world x."""

    rise: float = param(0.1, "height of a step", unit="m")
    run: float = param(0.3, "depth of a step", unit="m")
    steps: int = param(4, "number of treads", low=1, high=1000)
    width: float = param(2.0, "width of the treads, centred on y = 0", unit="m")
    start: float = param(0.5, "where the first riser stands", unit="m")
    landing: float = param(0.0, "how much deeper the last tread is", unit="m", low=0.0)


@dataclass(frozen=True)
class TilesConfig(_Friction):
    """``tiles``: a floor, and tiles at random heights above it."""

    height: float = param(0.02, "the highest that a tile may be above the floor", unit="m")
    size: float = param(0.5, "edge of a tile", unit="m")
    columns: int = param(10, "number of tiles along world x", low=1, high=1000)
    rows: int = param(4, "number of tiles along world y, centred on y = 0", low=1, high=1000)
    start: float = param(0.5, "where the first column begins", unit="m")
    seed: int = param(0, "the same one gives the same tiles", low=0, high=2**31 - 1)


def _flat(values: Any, where: str) -> tuple[Patch, ...]:
    config = _read(FlatConfig, values, where)
    return Ground.flat(config.height, **config.pair()).patches


def _slope(values: Any, where: str) -> tuple[Patch, ...]:
    config = _read(SlopeConfig, values, where)
    return Ground.slope(math.radians(config.angle_deg), math.radians(config.direction_deg), **config.pair()).patches


def _stairs(values: Any, where: str) -> tuple[Patch, ...]:
    c = _read(StairsConfig, values, where)
    return Ground.stairs(c.rise, c.run, c.steps, c.width, c.start, c.landing, **c.pair()).patches


def _tiles(values: Any, where: str) -> tuple[Patch, ...]:
    c = _read(TilesConfig, values, where)
    return tiles(c.height, c.size, c.columns, c.rows, c.start, c.seed, **c.pair()).patches


def _patches(values: Any, where: str) -> tuple[Patch, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise ConfigError(f"{where} = {values!r} must be a list of patches, at least one")
    return tuple(_patch(entry, i, f"{where}[{i}]") for i, entry in enumerate(values))


def _patch(values: Any, i: int, where: str) -> Patch:
    config = _read(PatchConfig, values, where)
    if config.normal is not None and config.rpy is not None:
        raise ConfigError(f"{where}: normal = {config.normal!r} and rpy = {config.rpy!r}: give one of them")
    if config.rpy is not None:
        axes = pin.rpy.rpyToMatrix(*_vector(config.rpy, f"{where}: rpy"))
    else:
        normal = (0.0, 0.0, 1.0) if config.normal is None else config.normal
        axes = axes_of_normal(_vector(normal, f"{where}: normal"))
    return Patch(
        _vector(config.point, f"{where}: point"), axes, config.region, name=config.name or f"patch {i}", **config.pair()
    )


# In this order they lie over each other where they share a plane: what is listed under `patches` comes last, on top.
_KEYS = {"flat": _flat, "slope": _slope, "stairs": _stairs, "tiles": _tiles, "patches": _patches}


def _read(cls: type[Any], values: Any, where: str) -> Any:
    for key in ("friction_static", "friction_dynamic"):
        if isinstance(values, Mapping) and values.get(key) is not None:
            number(values[key], f"{where}: {key}")
    return from_mapping(cls, values, where)


def _vector(values: Any, where: str) -> Any:
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != 3:
        raise ConfigError(f"{where} = {values!r} must be three numbers")
    return [number(value, where) for value in values]


def read_ground(path: Path) -> Ground:
    """Read a ground file.

    Raises:
        ConfigError: The file is missing or wrong; the message holds file, key and value.
        UnknownNameError: An unknown key; the message lists the keys.
    """
    data: Mapping[str, Any] = read_yaml(path)
    for key in data:
        if key not in _KEYS:
            raise UnknownNameError("key", str(key), _KEYS, str(path))
    if not data:
        raise ConfigError(f"{path}: no ground in it; give one of {', '.join(_KEYS)}")
    patches: list[Patch] = []
    for key, build in _KEYS.items():
        if key in data:
            try:
                patches += build(data[key], f"{path}: {key}")
            except UnknownNameError:
                raise
            except ConfigError as error:
                text = str(error)
                raise ConfigError(text if text.startswith(str(path)) else f"{path}: {key}: {text}") from error
    return Ground(tuple(patches))


def get_ground(name_or_path: str | Path) -> Ground:
    """Return a ground by its name, or from a ground file.

    Raises:
        UnknownNameError: No such name; the message lists the names.
        ConfigError: The file is missing or wrong.
    """
    text = str(name_or_path)
    if text in GROUNDS:
        return read_ground(GROUNDS[text])
    if isinstance(name_or_path, Path) or "/" in text or text.endswith((".yaml", ".yml")):
        return read_ground(Path(name_or_path))
    raise UnknownNameError("ground", text, GROUNDS, otherwise="the path of a YAML file")
