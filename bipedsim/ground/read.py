"""Read ground files and convert them to patches and a height field."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pinocchio as pin

from bipedsim.config import (
    HEIGHT_SUFFIXES,
    SCENE_SUFFIX,
    Polygon,
    Vector,
    from_file,
    from_mapping,
    in_braces,
    param,
    read_yaml,
    together,
)
from bipedsim.errors import ConfigError, warn_inferred
from bipedsim.ground.field import HeightField
from bipedsim.ground.ground import Ground
from bipedsim.ground.heights import HeightGrid, read_heights
from bipedsim.ground.names import GROUNDS
from bipedsim.ground.patch import Patch, axes_of_normal, checked_friction
from bipedsim.ground.scene import GroundPieces, read_terrain
from bipedsim.ground.terrains import FieldGrid, Terrains
from bipedsim.ground.tiling import tiles
from bipedsim.plates import PlateConfig, check_plates

CELL = 0.05
"""Distance of two heights of a field [m], unless the ground file or the file of heights contains another one."""
OTHER_FORMATS = (*HEIGHT_SUFFIXES, SCENE_SUFFIX)
"""Suffixes of files that describe a ground without the keys of a ground file."""


@dataclass(frozen=True)
class _GroundPart:
    make: ClassVar[Callable[..., Ground]]
    friction_static: float | None = param(None, "Coulomb friction while sticking, instead of the sole's")
    friction_dynamic: float | None = param(None, "the same while sliding; default friction_static")

    def patches(self) -> tuple[Patch, ...]:
        """Return the patches of this part of the ground."""
        return type(self).make(**vars(self)).patches

    def terrain(self) -> GroundPieces:
        """Return this part of the ground."""
        return GroundPieces(self.patches())


@dataclass(frozen=True)
class PatchConfig(_GroundPart):
    """Entry of ``patches``."""

    name: str = param("", "name of the patch, for messages and plots")
    point: Vector = param((0.0, 0.0, 0.0), "a point of the plane in the world, the origin of `region`", unit="m")
    normal: Vector | None = param(None, "outward normal in world axes, of any length; default [0, 0, 1]")
    rpy: Vector | None = param(None, "axes of the patch by roll, pitch, yaw, instead of `normal`", unit="rad")
    region: Polygon | None = param(
        None, "convex polygon, a list of [x, y] in the plane from `point`; default all of it", unit="m"
    )

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the keys."""
        if self.normal is not None and self.rpy is not None:
            yield ConfigError("give one of them", "normal and rpy")

    def numbered(self, i: int) -> GroundPieces:
        """Return the patch, with the default name ``patch i``."""
        if self.rpy is not None:
            axes = pin.rpy.rpyToMatrix(*self.rpy)
        else:
            axes = axes_of_normal([0.0, 0.0, 1.0] if self.normal is None else list(self.normal))
        region = None if self.region is None else np.array(self.region)
        friction = self.friction_static, self.friction_dynamic
        return GroundPieces((Patch(np.array(self.point), axes, region, *friction, name=self.name or f"patch {i}"),))


@dataclass(frozen=True)
class FlatConfig(_GroundPart):
    """``flat``: a horizontal plane."""

    make = Ground.flat
    height: float = param(0.0, "height of the plane", unit="m")


@dataclass(frozen=True)
class SlopeConfig(_GroundPart):
    """``slope``: a plane through the origin."""

    angle_deg: float = param(5.0, "slope angle", unit="deg", low=-89.0, high=89.0)
    direction_deg: float = param(0.0, "heading that is uphill, 0 for world x", unit="deg")

    def patches(self) -> tuple[Patch, ...]:
        """Return the plane."""
        angle, direction = math.radians(self.angle_deg), math.radians(self.direction_deg)
        friction = {"friction_static": self.friction_static, "friction_dynamic": self.friction_dynamic}
        return Ground.slope(angle, direction, **friction).patches


@dataclass(frozen=True)
class StairsConfig(_GroundPart):
    """``stairs``: a floor and treads that climb along world x."""

    make = Ground.stairs
    rise: float = param(0.1, "height of a step", unit="m")
    run: float = param(0.3, "depth of a step", unit="m")
    steps: int = param(4, "number of treads", low=1, high=1000)
    width: float = param(2.0, "width of the treads, centred on y = 0", unit="m")
    start: float = param(0.5, "x of the first riser", unit="m")
    landing: float = param(0.0, "additional depth of the last tread", unit="m", low=0.0)


@dataclass(frozen=True)
class TilesConfig(_GroundPart):
    """``tiles``: a floor and tiles at random heights above it."""

    height: float = param(0.02, "largest height of a tile above the floor", unit="m")
    size: float = param(0.5, "edge of a tile", unit="m")
    columns: int = param(10, "number of tiles along world x", low=1, high=1000)
    rows: int = param(4, "number of tiles along world y, centred on y = 0", low=1, high=1000)
    start: float = param(0.5, "x of the start of the first column", unit="m")
    seed: int = param(0, "seed of the random heights", low=0, high=2**31 - 1)
    tilt_deg: float = param(
        0.0, "largest tilt of a tile; each tile has a random heading", unit="deg", low=0.0, high=44.0
    )

    def patches(self) -> tuple[Patch, ...]:
        """Return floor and tiles."""
        values = dict(vars(self))
        return tiles(tilt=math.radians(values.pop("tilt_deg")), **values).patches


@dataclass(frozen=True)
class SceneConfig:
    """``mjcf``: the terrain of a MuJoCo scene."""

    file: str | None = param(None, "MJCF file; its planes, static boxes and height field are the ground", path=True)
    leave_out: tuple[str, ...] = param((), "names of shapes and bodies that are not part of the ground")
    friction_static: float | None = param(None, "Coulomb friction while sticking, instead of that of the file")
    friction_dynamic: float | None = param(None, "the same while sliding; default friction_static")

    def problems(self) -> Iterator[ConfigError]:
        """Yield a missing file."""
        if self.file is None:
            yield ConfigError("has no file. Add the path of an MJCF scene", "file")

    def terrain(self) -> GroundPieces:
        """Return the terrain of the file.

        Raises:
            ConfigError: The file cannot be read, or a value is wrong.
        """
        friction = checked_friction(self.friction_static, self.friction_dynamic, "friction")
        return read_terrain(Path(str(self.file)), self.leave_out, None if friction[0] is None else friction)


@dataclass(frozen=True)
class FieldConfig(Terrains):
    """``field``: heights on a grid, from a file, from a list, or from generators; all of these are added."""

    file: str | None = param(
        None,
        "heights as .npy, rows along x; as .png of 8 or 16 bit, or as GeoTIFF in metres, with x to the right and y up",
        path=True,
    )
    heights: tuple[tuple[float, ...], ...] | None = param(None, "heights in rows along x: heights[i][j] at (i, j)")
    scale: float | None = param(
        None, "metres per unit of the file, and for an image metres from black to white; default 1"
    )
    offset: float = param(0.0, "height that is added", unit="m")
    cell: float | None = param(
        None, "distance of two heights; default that of a GeoTIFF, else 0.05", unit="m", low=1e-3, high=1e3
    )
    size: tuple[float, float] = param((10.0, 10.0), "edges along x and y without a file", unit="m", low=1e-3)
    centre: tuple[float, float] = param((0.0, 0.0), "position of the middle", unit="m")
    yaw_deg: float = param(0.0, "angle from world x to the x axis of the field", unit="deg")
    seed: int = param(0, "seed of the generators", low=0, high=2**31 - 1)
    friction_static: float | None = param(None, "Coulomb friction while sticking, instead of the sole's")
    friction_dynamic: float | None = param(None, "the same while sliding; default friction_static")

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the keys."""
        if self.file is not None and self.heights is not None:
            yield ConfigError("give one of them", "file and heights")
        if self.file is None and self.heights is None and not any(True for _ in self.generators()):
            names = ", ".join(field.name for field in dataclasses.fields(Terrains))
            yield ConfigError(f"has no heights. Add file, heights or a generator: {names}")

    def terrain(self) -> GroundPieces:
        """Return the field as a part of the ground.

        Raises:
            ConfigError: The file cannot be read, or a value is wrong.

        Warns:
            InferredWarning: The file is an image, and there is no scale.
        """
        if self.file is not None:
            grid = read_heights(Path(self.file))
            if grid.grey and self.scale is None:
                warn_inferred(
                    f"{self.file}: the image has no scale, so its white is 1 m above its black. Set this height [m] "
                    "next to `file` in `field` of a ground (docs/ground.md): scale: 1.0"
                )
        elif self.heights is not None:
            rows = {len(row) for row in self.heights}
            if len(rows) != 1:
                raise ConfigError("must have rows of the same length", "heights", sorted(rows))
            grid = HeightGrid(np.array(self.heights))
        else:
            grid = HeightGrid(np.zeros(FieldGrid.of_size(self.size, self.cell or CELL).x.shape))
        cells = (self.cell, self.cell) if self.cell is not None else grid.cells or (CELL, CELL)
        heights = (1.0 if self.scale is None else self.scale) * grid.heights
        if heights.ndim == 2 and min(heights.shape) > 1:
            points = FieldGrid.of_shape(heights.shape, cells)
            rng = np.random.default_rng(self.seed)
            heights = sum((generator.heights(points, rng) for generator in self.generators()), heights + self.offset)
        friction = self.friction_static, self.friction_dynamic
        return GroundPieces(
            field=HeightField(
                heights, cells[0], self.centre, *friction, yaw=math.radians(self.yaw_deg), cell_y=cells[1]
            )
        )


@dataclass(frozen=True)
class GroundConfig:
    """Ground file. Where its parts overlap in one plane, the later key is used; ``patches`` is the last one."""

    flat: FlatConfig | None = param(None, "a horizontal plane")
    slope: SlopeConfig | None = param(None, "an inclined plane")
    stairs: StairsConfig | None = param(None, "a floor and stairs")
    tiles: TilesConfig | None = param(None, "a floor and tiles of random heights")
    mjcf: SceneConfig | None = param(None, "the terrain of a MuJoCo scene")
    patches: tuple[PatchConfig, ...] | None = param(None, "pieces of planes")
    field: FieldConfig | None = param(None, "heights on a grid")
    force_plates: tuple[PlateConfig, ...] = param((), "force plates in it (docs/force_plates.md)")

    def problems(self) -> Iterator[ConfigError]:
        """Yield errors in the file as a whole."""
        yield from check_plates(self.force_plates)
        if self.patches == ():
            yield ConfigError("must be a list of patches, at least one", "patches", [])
        parts = [part.name for part in dataclasses.fields(self) if part.name != "force_plates"]
        if all(getattr(self, name) is None for name in parts):
            yield ConfigError(f"the file defines no ground. Add one of {', '.join(parts)}")


def read_ground(path: Path) -> Ground:
    """Read a ground file.

    Raises:
        ConfigError: The file is missing or wrong; the message has file, key and value.
        UnknownNameError: A key is unknown; the message lists the keys.
    """
    return _built(from_file(GroundConfig, path), str(path))


def make_ground(values: Mapping[str, Any], where: str, folder: Path | None = None) -> Ground:
    """Build a ground from a mapping with the keys of a ground file.

    Args:
        values: The mapping.
        where: File and key of the mapping, for messages and as the name of the ground.
        folder: Base folder of relative paths.

    Raises:
        ConfigError, UnknownNameError: As for :func:`read_ground`.
    """
    return _built(from_mapping(GroundConfig, values, where, folder), where)


def _built(config: GroundConfig, where: str) -> Ground:
    parts: list[tuple[str, Callable[[], GroundPieces]]] = [
        (key, part.terrain)
        for key in ("flat", "slope", "stairs", "tiles", "mjcf", "field")
        if (part := getattr(config, key)) is not None
    ]
    parts += [(f"patches[{i}]", partial(entry.numbered, i)) for i, entry in enumerate(config.patches or ())]
    patches: list[Patch] = []
    fields: list[HeightField] = []
    faults = []
    for key, build in parts:
        try:
            terrain = build()
        except ConfigError as error:
            faults.append(error.within(f"{where}: {key}"))
            continue
        patches += terrain.patches
        fields += [] if terrain.field is None else [terrain.field]
    if len(fields) > 1:
        problem = "a ground has one height field, and the MJCF file has one. Remove the key, or leave out the other"
        faults.append(ConfigError(problem, f"{where}: field"))
    together(faults)
    return Ground(tuple(patches), where, config.force_plates, fields[0] if fields else None)


def ground_values(spec: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """Return a ground as a mapping with the keys of a ground file.

    Args:
        spec: Name, path of a ground file, file of heights, MJCF scene, mapping, or a mapping as YAML text in braces.

    Raises:
        UnknownNameError: The name is unknown; the message lists the names.
        ConfigError: The file is missing, or no YAML.
    """
    values = _inline(spec)
    if values is not None:
        return values
    path = GROUNDS.find(cast("str | Path", spec))
    return _of_other_format(path) if path.suffix.lower() in OTHER_FORMATS else read_yaml(path)


def get_ground(spec: str | Path | Mapping[str, Any]) -> Ground:
    """Return a ground by name, from a ground file, from a mapping, or from heights or an MJCF scene.

    Args:
        spec: As for :func:`ground_values`.

    Raises:
        UnknownNameError: The name or a key is unknown; the message lists the names.
        ConfigError: The file is missing, or a value is wrong.
    """
    values = _inline(spec)
    if values is not None:
        return make_ground(values, "ground")
    path = GROUNDS.find(cast("str | Path", spec))
    if path.suffix.lower() in OTHER_FORMATS:
        return make_ground(_of_other_format(path), str(path))
    return read_ground(path)


def _of_other_format(path: Path) -> dict[str, Any]:
    """Return the content of a ground file that reads a file of heights or an MJCF scene with the defaults."""
    return {"mjcf" if path.suffix.lower() == SCENE_SUFFIX else "field": {"file": str(path)}}


def _inline(spec: str | Path | Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the mapping, also of a text in braces; None for a name or a path."""
    return dict(spec) if isinstance(spec, Mapping) else in_braces(spec, "ground") if isinstance(spec, str) else None
