"""Read the terrain of an MJCF scene: planes, upward faces of static boxes, and a height field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bipedsim.config import flow_text, read_xml
from bipedsim.errors import ConfigError, UnknownNameError, some, warn_omitted
from bipedsim.ground.field import HeightField
from bipedsim.ground.patch import FRICTION_MAX, Patch
from bipedsim.numerics import Array

STEEPEST = math.cos(math.radians(60.0))
"""Smallest z of the normal of a plane or face; a steeper one is a wall or a riser."""
UPRIGHT = 1e-9
"""Largest deviation of the rotation of a height field from one about the vertical."""
WAYS = ("x", "y", "z")


class GroundPieces(NamedTuple):
    """Part of a ground.

    Attributes:
        patches: Patches, later ones on top.
        field: Height field; None without one.
    """

    patches: tuple[Patch, ...] = ()
    field: HeightField | None = None


def read_terrain(
    file: Path, leave_out: Sequence[str] = (), friction: tuple[float | None, float | None] | None = None
) -> GroundPieces:
    """Read the terrain of an MJCF file, as MuJoCo's compiler understands it.

    The terrain is made of the shapes of the world and of bodies that cannot move, if anything can touch them. A shape
    of positive priority decides the friction, as in MuJoCo. Otherwise the friction of the sole applies, which the
    import of a robot takes from its file.

    Args:
        file: The file.
        leave_out: Names of shapes and bodies that are not part of the ground. Shapes without a name are called
            ``geom<i>``, where i counts all shapes of the file, including those of missing meshes.
        friction: Friction while sticking and sliding of all parts, instead of that of the file.

    Raises:
        ConfigError: MuJoCo is not installed, it cannot read the file, or the file contains no terrain.
        UnknownNameError: ``leave_out`` names something that the file does not contain.

    Warns:
        OmittedWarning: The file contains a robot, or shapes that a ground cannot have.
    """
    root, _, _ = read_xml(file)
    if root.tag != "mujoco":
        raise ConfigError(f"the root element is <{root.tag}>; an MJCF file has <mujoco>", file)
    return _Scene(file, leave_out, friction).terrain()


class _Scene:
    """Reader of one MJCF file."""

    def __init__(
        self, file: Path, leave_out: Sequence[str], friction: tuple[float | None, float | None] | None
    ) -> None:
        from bipedsim.descriptions import compiled_mjcf

        self._mj, self._m, self._missing = compiled_mjcf(file)
        self._state = self._mj.MjData(self._m)
        self._mj.mj_kinematics(self._m, self._state)
        self._file, self._own_friction = file, friction
        self._leave_out = dict.fromkeys(leave_out).keys()
        names = {self._name("body", i) for i in range(self._m.nbody)}
        names |= {self._name("geom", i) for i in range(self._m.ngeom)} | {shape.name for shape in self._missing}
        for name in leave_out:
            if name not in names:
                raise UnknownNameError("shape or body", name, sorted(names), f"{file}: leave_out")

    def terrain(self) -> GroundPieces:
        """Return the terrain, and warn about the parts of the file that are left out."""
        patches: list[Patch] = []
        fields: list[HeightField] = []
        omitted: list[tuple[str, str]] = []
        for geom in self._static():
            name = self._name("geom", geom)
            kind = self._kind(geom)
            rotation = self._state.geom_xmat[geom].reshape(3, 3)
            if kind == "plane" and rotation[2, 2] >= STEEPEST:
                patches.append(self._patch(geom, self._state.geom_xpos[geom], rotation, None, name))
            elif kind == "box":
                patches += self._faces(geom, name)
            elif kind == "hfield" and not fields and abs(rotation[2, 2] - 1.0) <= UPRIGHT:
                fields.append(self._field(geom))
            else:
                why = "tilted " if kind == "hfield" and not abs(rotation[2, 2] - 1.0) <= UPRIGHT else ""
                why = "second " if kind == "hfield" and not why else "steep " if kind == "plane" else why
                omitted.append((f"{why}{kind}", name))
        for shape in self._missing:
            if shape.collides and self._is_terrain(shape.name, shape.body):
                omitted.append((f"mesh of the missing file {shape.mesh}", shape.name))
        if not patches and not fields:
            problem = "has no plane, static box or height field that is not left out"
            raise ConfigError(f"{problem}; others are {_listed(omitted)}" if omitted else problem, self._file)
        for body in range(1, self._m.nbody):
            carried = self._moves(body) and not self._moves(int(self._m.body_parentid[body]))
            if carried and not self._with_parents(body) & self._leave_out:
                omitted.append(("moving body", self._name("body", body)))
        if omitted:
            names = [*self._leave_out, *(name for _, name in omitted)]
            key = flow_text({"leave_out": names})[1:-1]
            warn_omitted(
                f"{self._file}: the ground has no {_listed(omitted)}. To switch this warning off, set this key next to "
                f"`file` in `mjcf` of a ground (docs/ground.md): {key}"
            )
        return GroundPieces(tuple(patches), fields[0] if fields else None)

    def _name(self, kind: str, index: int) -> str:
        name = self._mj.mj_id2name(self._m, getattr(self._mj.mjtObj, f"mjOBJ_{kind.upper()}"), index)
        return str(name or f"{kind}{index}")

    def _kind(self, geom: int) -> str:
        return str(self._mj.mjtGeom(int(self._m.geom_type[geom])).name.removeprefix("mjGEOM_").lower())

    def _moves(self, body: int) -> bool:
        """Return whether there are joints between a body and the world, or it is moved from outside."""
        return bool(self._m.body_weldid[body])

    def _with_parents(self, body: int) -> set[str]:
        """Return the names of a body and of the bodies that carry it, without the world."""
        names = set()
        while body:
            names.add(self._name("body", body))
            body = int(self._m.body_parentid[body])
        return names

    def _static(self) -> Iterator[int]:
        """Yield the shapes of the terrain that can be touched and are not left out."""
        m = self._m
        paired = {*m.pair_geom1.tolist(), *m.pair_geom2.tolist()}
        for geom in range(m.ngeom):
            body = int(m.geom_bodyid[geom])
            touches = m.geom_contype[geom] or m.geom_conaffinity[geom] or geom in paired
            if touches and self._is_terrain(self._name("geom", geom), body):
                yield geom

    def _is_terrain(self, shape: str, body: int) -> bool:
        """Return whether a shape of a body cannot move and is not left out."""
        return not self._moves(body) and not ({shape} | self._with_parents(body)) & self._leave_out

    def _friction(self, geom: int) -> tuple[float | None, float | None]:
        if self._own_friction is not None:
            return self._own_friction
        if int(self._m.geom_priority[geom]) <= 0:
            return None, None
        mu = 0.0 if int(self._m.geom_condim[geom]) < 3 else float(self._m.geom_friction[geom, 0])
        if mu > FRICTION_MAX:
            way_out = "Give the ground its own friction_static"
            raise ConfigError(f"is above {FRICTION_MAX:g}. {way_out}", f"{self._file}: {self._name('geom', geom)}", mu)
        return mu, None

    def _patch(self, geom: int, point: Array, axes: Array, region: Array | None, name: str) -> Patch:
        return Patch(point, axes, region, *self._friction(geom), name=name)

    def _faces(self, geom: int, name: str) -> list[Patch]:
        """Return the upward faces of a box, from the flattest to the steepest."""
        rotation = self._state.geom_xmat[geom].reshape(3, 3)
        faces: list[Patch] = []
        for axis in sorted(range(3), key=lambda axis: -abs(rotation[2, axis])):
            up = math.copysign(1.0, rotation[2, axis])
            if up * rotation[2, axis] < STEEPEST:
                continue
            first, second = (axis + 1) % 3, (axis + 2) % 3
            half = self._m.geom_size[geom]
            # The second axis is reversed on a face that belongs to a negative side, so that n = t1 x t2.
            axes = np.column_stack([rotation[:, first], up * rotation[:, second], up * rotation[:, axis]])
            centre = self._state.geom_xpos[geom] + up * half[axis] * rotation[:, axis]
            corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]) * half[[first, second]]
            label = name if not faces else f"{name} {'-+'[int(up > 0.0)]}{WAYS[axis]}"
            faces.append(self._patch(geom, centre, axes, corners, label))
        return faces

    def _field(self, geom: int) -> HeightField:
        """Return the height field of a shape."""
        m, data = self._m, int(self._m.geom_dataid[geom])
        rows, columns, start = int(m.hfield_nrow[data]), int(m.hfield_ncol[data]), int(m.hfield_adr[data])
        along, across, high, _ = (float(value) for value in m.hfield_size[data])
        elevation = np.array(m.hfield_data[start : start + rows * columns], dtype=np.float64).reshape(rows, columns)
        if not elevation.any():
            warn_omitted(f"{self._file}: {self._name('hfield', data)!r} has no elevations, so that it is level")
        x, y, z = (float(value) for value in self._state.geom_xpos[geom])
        rotation = self._state.geom_xmat[geom].reshape(3, 3)
        yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        cells = 2.0 * along / (columns - 1), 2.0 * across / (rows - 1)
        heights = z + high * elevation.T
        return HeightField(heights, cells[0], (x, y), *self._friction(geom), yaw=yaw, cell_y=cells[1])


def _listed(omitted: Sequence[tuple[str, str]]) -> str:
    """Return parts of a scene, given by kind and name, for a sentence."""
    return some([f"{kind} {name!r}" for kind, name in omitted])
