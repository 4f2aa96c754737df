"""What bodies are like from outside: spheres, capsules, cylinders, boxes and hulls, from the URDF's <collision>."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.config import together
from bipedsim.errors import ConfigError, some
from bipedsim.model.schema import ShapeConfig
from bipedsim.numerics import Array

COARSE = 1e-3
"""A hull is reduced until no vertex that was left out is farther outside of it [m]."""
MOST_VERTICES = 32
"""Vertices of a hull at most."""
THIN = 1e-3
"""A hull that is nowhere thicker [m] has no inside that could be told from its outside."""
OPEN = 1e-3
"""Share of its surface that a closed mesh may lack: single precision, and cracks that nobody sees."""
NAMED = 3
"""Open meshes that a message names."""
HALF_DIRECTIONS = 120
"""Over half a sphere: in so many directions, and against them, the vertices of a mesh are compared."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A shape of a body of the robot: points, each with a ball or a ring around it.

    A sphere is a point with a ball around it, a capsule two of them; the ends of a cylinder are two rings; boxes and
    hulls are their vertices.

    Attributes:
        name: Link of the URDF.
        joint_id: Joint that carries it.
        kind: sphere, capsule, cylinder, box or hull.
        points: (P, 3) in the frame of the joint [m].
        radius: Of the ball around every point [m].
        ring: Radius of the circle around every point [m], at right angles to ``axis`` (3,), a unit vector.
    """

    name: str
    joint_id: int
    kind: str
    points: Array
    radius: float = 0.0
    ring: float = 0.0
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))


_CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


class Shapes(NamedTuple):
    """The shapes of a robot, and what was left out of it or is odd, by name."""

    shapes: tuple[Shape, ...]
    warnings: tuple[str, ...]


def lowest_point(pose: pin.SE3, point: Array, radius: Array | float, ring: Array | float, axis: Array) -> Array:
    """Return where points (..., 3) of a body, with the ball and the ring around each, are lowest in the world [m].

    Args:
        pose: Of the joint that carries the body. point, radius, ring, axis: See :class:`Shape`; for each point or all.
    """
    down = -pose.rotation[2]
    across = down - axis * (axis @ down)[..., None]
    length = np.linalg.norm(across, axis=-1)
    out = np.where(length > 0.0, ring / np.where(length > 0.0, length, 1.0), 0.0)
    lowest = point + np.asarray(radius)[..., None] * down + out[..., None] * across
    return np.asarray(lowest @ pose.rotation.T + pose.translation)


def read_shapes(
    model: pin.Model,
    urdf_xml: str,
    urdf_path: Path,
    given: Mapping[str, Sequence[ShapeConfig]] | None = None,
    tag: str = "collision",
    whole: bool = False,
) -> Shapes:
    """Return the shapes of all links that a joint of ``model`` moves.

    Args:
        model: May have fewer joints than the file: links that were welded go with their body.
        urdf_xml, urdf_path: The URDF's text, and its file, beside which meshes are looked for.
        given: Link to its shapes, instead of those of the file.
        tag: Which shapes of the file, ``collision`` or ``visual``.
        whole: Keep all vertices of the hulls of meshes; else those that span them to ``COARSE``.

    Raises:
        ConfigError: Sizes of shapes that touch are no positive numbers, all of them by link.
    """
    shapes: list[Shape] = []
    odd: list[str] = []
    opened: list[str] = []
    faults: list[ConfigError] = []
    for link in ElementTree.fromstring(urdf_xml.encode()).findall("link"):
        name = link.get("name", "")
        if not model.existFrame(name, pin.FrameType.BODY):
            continue
        frame = model.frames[model.getFrameId(name, pin.FrameType.BODY)]
        if frame.parentJoint == 0:
            continue
        if given is not None and name in given:
            shapes += [_given(name, frame, shape) for shape in given[name]]
            continue
        for element in link.findall(tag):
            where = f"{urdf_path}: link {name!r}: <{tag}>"
            geometry = element.find("geometry")
            made = None
            try:
                placement = frame.placement * _origin(element, where)
                if geometry is not None and len(geometry):
                    made = _made(geometry[0], urdf_path, where, odd, opened, whole)
            except ConfigError as fault:
                # A shape that is only seen touches nothing.
                if tag != "visual":
                    faults.append(fault)
                odd.append(f"{fault}; it is left out")
            if made is None:
                continue
            shapes.append(_placed(name, int(frame.parentJoint), placement, made))
    together(faults)
    if opened:
        odd.append(
            f"{urdf_path}: meshes of <collision> are open, or their triangles are turned one against the other: "
            f"{some(list(dict.fromkeys(opened)), NAMED)}; their hulls are taken all the same"
        )
    return Shapes(tuple(shapes), tuple(odd))


_Made = tuple[str, Array, float, float]


def _placed(name: str, joint_id: int, placement: pin.SE3, made: _Made) -> Shape:
    kind, points, radius, ring = made
    points = points @ placement.rotation.T + placement.translation
    return Shape(name, joint_id, kind, points, radius, ring, placement.rotation[:, 2].copy())


def _given(name: str, frame: pin.Frame, shape: ShapeConfig) -> Shape:
    """Return a shape of robot.yaml."""
    ends = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]]) * shape.length
    made: _Made = "sphere", np.zeros((1, 3)), shape.radius, 0.0
    if shape.kind == "capsule":
        made = shape.kind, ends, shape.radius, 0.0
    elif shape.kind == "cylinder":
        made = shape.kind, ends, 0.0, shape.radius
    elif shape.kind == "box":
        made = shape.kind, 0.5 * _CORNERS * np.array(shape.size), 0.0, 0.0
    return _placed(name, int(frame.parentJoint), frame.placement * shape.placement.transform(), made)


def _made(
    element: ElementTree.Element, urdf_path: Path, where: str, odd: list[str], opened: list[str], whole: bool
) -> _Made | None:
    """Return kind, points, radius and ring of the shape ``element``; None of one that cannot touch, which ``odd`` says.

    Meshes that are not closed are added to ``opened``.

    Points are in the frame of the shape, whose axis is z.
    """
    if element.tag == "sphere":
        # One of radius 0 marks a point that touches, in files for engines that know points.
        radius = 0.0 if element.get("radius", "").strip("0.") == "" else _size(element, "radius", where)
        return "sphere", np.zeros((1, 3)), radius, 0.0
    if element.tag in ("cylinder", "capsule"):
        radius, half = _size(element, "radius", where), 0.5 * _size(element, "length", where)
        ends = np.array([[0.0, 0.0, half], [0.0, 0.0, -half]])
        return ("capsule", ends, radius, 0.0) if element.tag == "capsule" else ("cylinder", ends, 0.0, radius)
    if element.tag == "box":
        size = _three(element.get("size"), where, "size")
        if not (size > 0.0).all():
            raise ConfigError(f"{where}: size = {size.tolist()} m must be positive")
        return "box", 0.5 * _CORNERS * size, 0.0, 0.0
    if element.tag == "mesh":
        name = element.get("filename", "")
        path = mesh_path(name, urdf_path)
        if path is None:
            odd.append(f"{where}: no file {name!r}: the link touches nothing; give it a shape under `bodies`")
            return None
        scale = _three(element.get("scale", "1 1 1"), where, "scale")
        points, problem, closed = _hull(path, tuple(scale), path.stat().st_mtime_ns, whole)
        if not closed:
            opened.append(path.name)
        if problem:
            odd.append(f"{where}: {path.name}: {problem}")
        return None if points is None else ("hull", points, 0.0, 0.0)
    odd.append(f"{where}: <{element.tag}> is no shape that is known; the link touches nothing with it")
    return None


def _size(element: ElementTree.Element, key: str, where: str) -> float:
    value = _three(f"{element.get(key)} 0 0", where, key)[0]
    if not value > 0.0:
        raise ConfigError(f"{where}: <{element.tag}> {key} = {value} m must be positive")
    return float(value)


def _three(text: str | None, where: str, key: str) -> Array:
    try:
        values = np.array([float(word) for word in (text or "").split()])
    except ValueError:
        values = np.full(1, np.nan)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ConfigError(f"{where}: {key} = {text!r} must be three finite numbers")
    return values


def _origin(collision: ElementTree.Element, where: str) -> pin.SE3:
    origin = collision.find("origin")
    if origin is None:
        return pin.SE3.Identity()
    xyz, rpy = (_three(origin.get(key, "0 0 0"), where, key) for key in ("xyz", "rpy"))
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)


def mesh_path(name: str, urdf_path: Path) -> Path | None:
    """Return the file that a URDF names, in its package or beside itself."""
    scheme, _, rest = name.partition("://")
    if scheme not in ("package", "file") or not rest:
        rest = name
    if scheme == "package":
        rest = rest.lstrip("/")
    roots = [urdf_path.parent, *urdf_path.parents] if scheme != "file" else [Path("/")]
    for prefix in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep):
        if prefix:
            roots.append(Path(prefix))
    # A package may lie in a folder of another name, as a clone does.
    inside = rest.partition("/")[2] if scheme == "package" else ""
    names = [rest, inside] if inside else [rest]
    return next((path for name in names for root in roots if (path := root / name).is_file()), None)


def located(urdf_xml: str, urdf_path: Path) -> str:
    """Return a URDF that names meshes that are found as ``file://``, for programs that know no package of theirs."""

    def place(found: re.Match[str]) -> str:
        path = mesh_path(found[2], urdf_path)
        return found[0] if path is None else f"{found[1]}file://{path.resolve()}{found[3]}"

    return re.sub(r"""(<mesh\b[^>]*?\bfilename=["'])([^"']+)(["'])""", place, urdf_xml)


@lru_cache(maxsize=1024)
def _hull(path: Path, scale: tuple[float, ...], changed: int, whole: bool) -> tuple[Array | None, str, bool]:
    """Return the vertices (P, 3) of the hull of a mesh [m], what is odd about it, and whether it is closed.

    The hull is reduced, or ``whole``.

    Args:
        path: Of a format that :func:`mesh_triangles` reads.
        scale: Of x, y, z.
        changed: When the file did, so that a new one is read.
    """
    try:
        corners = mesh_triangles(path) * scale
    except (OSError, ValueError, ImportError) as error:
        return None, f"cannot be read ({error}); the link touches nothing with it", True
    vertices = corners.reshape(-1, 3)
    if len(vertices) < 4 or not np.isfinite(vertices).all():
        said = f"has {len(vertices)} vertices, or some that are not finite; the link touches nothing with it"
        return None, said, True
    # Single precision and rows that lie in memory: half a million vertices in a tenth of a second.
    along = _DIRECTIONS.astype(np.float32) @ vertices.T.astype(np.float32)
    least, most = along.argmin(axis=1), along.argmax(axis=1)
    width = float(np.einsum("ij,ij->i", _DIRECTIONS, vertices[most] - vertices[least]).min())
    odd = f"is only {width:.2g} m thick" if width < THIN else ""
    closed = _is_closed(corners)
    if whole and not odd:
        from scipy.spatial import ConvexHull

        return vertices[ConvexHull(vertices).vertices], odd, closed
    return _reduced(vertices[np.unique([least, most])]), odd, closed


def _is_closed(corners: Array) -> bool:
    """Whether triangles (T, 3, 3) bound a volume V: then the sum of their areas dA is 0, and that of r dA^T is V 1."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    areas = 0.5 * np.cross(b - a, c - a)
    middle = (a + b + c) / 3.0
    middle -= middle.mean(axis=0)
    moment = middle.T @ areas
    area, size = float(np.linalg.norm(areas, axis=1).sum()), float(np.ptp(middle, axis=0).max())
    off = np.abs(moment - np.trace(moment) / 3.0 * np.eye(3)).max()
    return bool(np.linalg.norm(areas.sum(axis=0)) <= OPEN * area and off <= OPEN * area * size)


def _directions() -> Array:
    """Return the axes, and directions evenly over half a sphere by the golden angle."""
    i = np.arange(HALF_DIRECTIONS) + 0.5
    z, turn = i / HALF_DIRECTIONS, np.pi * (1.0 + np.sqrt(5.0)) * i
    level = np.sqrt(1.0 - z * z)
    return np.vstack([np.eye(3), np.column_stack([level * np.cos(turn), level * np.sin(turn), z])])


_DIRECTIONS = _directions()


def mesh_triangles(path: Path) -> Array:
    """Return the triangles (T, 3, 3) of all meshes in a file; a binary STL is read a hundred times as fast as others.

    Collada is in metres, by its own unit; its ``up_axis`` is not followed, as in RViz and Gazebo. Other formats have
    no unit.

    Raises:
        OSError: The file cannot be read. ValueError: It is no mesh of a format that is known.
    """
    suffix = path.suffix.lower()
    if suffix == ".stl":
        data = path.read_bytes()
        count = int.from_bytes(data[80:84], "little")
        if len(data) == 84 + 50 * count:
            triangle = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("unused", "<u2")])
            return np.frombuffer(data, triangle, count, 84)["corners"].astype(np.float64)
    if suffix == ".dae":
        return _collada_triangles(path)
    import trimesh

    try:
        mesh = trimesh.load_mesh(str(path), process=False, skip_materials=True)
    except OSError:
        raise
    except Exception as error:  # readers of many formats, each with errors of its own
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if not len(mesh.faces):
        raise ValueError("no triangles in it")
    return np.asarray(mesh.triangles, dtype=np.float64)


def _collada(path: Path) -> Any:
    import collada

    try:
        # Broken materials and textures do not matter here.
        document = collada.Collada(str(path), ignore=[collada.common.DaeError])
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    read = {geometry.id for geometry in document.geometries}
    named = {element.get("id") for element in document.xmlnode.iter() if str(element.tag).endswith("}geometry")}
    if named - read:
        raise ValueError(f"geometry {some(sorted(map(repr, named - read)))}: {document.errors[0]}")
    return document


def _collada_triangles(path: Path) -> Array:
    """Return the triangles (T, 3, 3) [m] of all geometry in the scene of a Collada file."""
    document = _collada(path)
    found = []
    for kind in ("geometry", "controller"):
        for bound in document.scene.objects(kind) if document.scene is not None else ():
            for primitive in bound.primitives():
                if hasattr(primitive, "triangleset"):
                    primitive = primitive.triangleset()
                if getattr(primitive, "vertex", None) is None or np.shape(primitive.vertex_index)[1:] != (3,):
                    continue  # lines, and what has no positions
                found.append(primitive.vertex[primitive.vertex_index])
    if not found:
        raise ValueError("no triangles in its scene")
    return np.concatenate(found).astype(np.float64) * (document.assetInfo.unitmeter or 1.0)


def collada_up_axis(path: Path) -> str:
    """Return which axis of a Collada file points up: ``X``, ``Y`` or ``Z``.

    Raises:
        OSError, ValueError: As :func:`mesh_triangles`.
    """
    return str(_collada(path).assetInfo.upaxis or "Y_UP")[0]


def _reduced(vertices: Array) -> Array:
    """Return those of the vertices (P, 3) of a hull that span it to ``COARSE``, ``MOST_VERTICES`` at most."""
    along = vertices @ np.vstack([_DIRECTIONS, -_DIRECTIONS]).T
    axes = [0, 1, 2, len(_DIRECTIONS), len(_DIRECTIONS) + 1, len(_DIRECTIONS) + 2]
    chosen = list(dict.fromkeys(int(k) for k in along[:, axes].argmax(axis=0)))
    farthest = along.max(axis=0)
    while len(chosen) < min(MOST_VERTICES, len(vertices)):
        lacking = farthest - along[chosen].max(axis=0)
        worst = int(lacking.argmax())
        if lacking[worst] <= COARSE:
            break
        chosen.append(int(along[:, worst].argmax()))
    return np.ascontiguousarray(vertices[sorted(chosen)])
