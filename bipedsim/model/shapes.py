"""Read the shapes of bodies from the URDF's <collision>: spheres, capsules, cylinders, boxes and hulls."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache, partial
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pinocchio as pin

from bipedsim.config import check_all, together
from bipedsim.errors import ConfigError, some
from bipedsim.model.schema import ShapeConfig
from bipedsim.model.urdf import number_in
from bipedsim.numerics import Array

COARSE = 1e-3
"""Largest distance of omitted vertices to a reduced hull [m]."""
MOST_VERTICES = 32
"""Maximum number of vertices of a reduced hull."""
THIN = 1e-3
"""Thickness below which a hull has no distinguishable inside [m]."""
OPEN = 1e-3
"""Tolerated missing surface of a closed mesh, as a fraction; covers single precision and invisible cracks."""
NAMED = 3
"""Maximum number of open meshes in a message."""
HALF_DIRECTIONS = 120
"""Number of directions over half a sphere; the vertices of a mesh are compared along and against each."""


_LOCATION = re.compile(
    r"(?P<scheme>package|model):/*|file:/+(?:[A-Za-z]:/+)?|\$\(find (?P<package>[^)]+)\)/*|[A-Za-z]:/+|/+"
)
"""Beginning of the name of a mesh that is not relative to the URDF."""
_SEARCHED = {
    "ROS_PACKAGE_PATH": "",
    "AMENT_PREFIX_PATH": "share",
    "GZ_SIM_RESOURCE_PATH": "",
    "GAZEBO_MODEL_PATH": "",
}
"""Variable with folders of packages to the subfolder that contains them."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A shape of a body of the robot: points, each with a ball or a ring around it.

    A sphere is one point with a ball, and a capsule two of them. The ends of a cylinder are two rings. Boxes and hulls
    are their vertices.

    Attributes:
        name: Link of the URDF.
        joint_id: Joint that moves the link.
        kind: sphere, capsule, cylinder, box or hull.
        points: (P, 3) in the frame of the joint [m].
        radius: Radius of the ball around every point [m].
        ring: Radius of the circle around every point [m], perpendicular to ``axis`` (3,), a unit vector.
    """

    name: str
    joint_id: int
    kind: str
    points: Array
    radius: float = 0.0
    ring: float = 0.0
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))


_CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


class ShapeFault(Enum):
    """Name what is wrong with a shape."""

    NO_FILE = auto()
    """The file of a mesh does not exist."""
    UNREADABLE = auto()
    """The file of a mesh cannot be read."""
    NO_HULL = auto()
    """A mesh has too few vertices, or some that are not finite."""
    THIN = auto()
    """A mesh is thinner than ``THIN``."""
    OPEN = auto()
    """Meshes are not closed."""
    INVALID = auto()
    """Numbers of a visual shape are invalid, and the shape is left out."""
    UNKNOWN = auto()
    """A shape is of an unknown kind."""


@dataclass(frozen=True)
class ShapeWarning:
    """Warn about a shape that is missing or implausible.

    Attributes:
        fault: What is wrong.
        link: Link of the shape; empty for a warning about several links.
        text: The message, which begins with the file and the link.
    """

    fault: ShapeFault
    link: str
    text: str

    def __str__(self) -> str:
        return self.text


class Shapes(NamedTuple):
    """The shapes of a robot, and warnings about shapes that are missing or implausible."""

    shapes: tuple[Shape, ...]
    warnings: tuple[ShapeWarning, ...]

    @property
    def left_out(self) -> tuple[ShapeWarning, ...]:
        """Warnings about shapes that make no contact. Open and thin meshes do, because contact uses convex hulls."""
        return tuple(warning for warning in self.warnings if warning.fault not in (ShapeFault.OPEN, ShapeFault.THIN))


def lowest_point(pose: pin.SE3, point: Array, radius: Array | float, ring: Array | float, axis: Array) -> Array:
    """Return the lowest point in the world [m] of the ball and ring around each point (..., 3) of a body.

    Args:
        pose: Pose of the joint that moves the body.
        point, radius, ring, axis: See :class:`Shape`; for each point or for all.
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
    overrides: Mapping[str, Sequence[ShapeConfig]] | None = None,
    tag: str = "collision",
    whole: bool = False,
) -> Shapes:
    """Return the shapes of all links that the joints of ``model`` move.

    Args:
        model: May have fewer joints than the file; welded links belong to the body they are welded to.
        urdf_xml, urdf_path: Text and path of the URDF; meshes are searched relative to the path.
        overrides: Link to its shapes, instead of those of the file.
        tag: Kind of shapes in the file, ``collision`` or ``visual``.
        whole: Keep all vertices of the hulls of meshes; otherwise reduce the hulls to an accuracy of ``COARSE``.

    Raises:
        ConfigError: Sizes of collision shapes are not positive numbers; the message lists all of them by link.
    """
    shapes: list[Shape] = []
    warnings: list[ShapeWarning] = []
    open_meshes: list[str] = []
    faults: list[ConfigError] = []
    for link in ElementTree.fromstring(urdf_xml.encode()).findall("link"):
        name = link.get("name", "")
        if not model.existFrame(name, pin.FrameType.BODY):
            continue
        frame = model.frames[model.getFrameId(name, pin.FrameType.BODY)]
        if frame.parentJoint == 0:
            continue
        if overrides is not None and name in overrides:
            shapes += [_configured(name, frame, shape) for shape in overrides[name]]
            continue
        warn = partial(_warn, warnings, name)
        for element in link.findall(tag):
            where = f"{urdf_path}: link {name!r}: <{tag}>"
            geometry = element.find("geometry")
            content = None
            try:
                placement = frame.placement * _origin(element, where)
                if geometry is not None and len(geometry):
                    content = _read_shape(geometry[0], urdf_path, where, warn, open_meshes, whole)
            except ConfigError as fault:
                # An invalid visual shape is only a warning, because it has no contacts.
                if tag != "visual":
                    faults.append(fault)
                warn(ShapeFault.INVALID, f"{fault}; it is left out")
            if content is None:
                continue
            shapes.append(_in_joint_frame(name, int(frame.parentJoint), placement, content))
    together(faults)
    if open_meshes:
        text = (
            f"{urdf_path}: collision meshes are open, or their triangles have inconsistent orientation: "
            f"{some(list(dict.fromkeys(open_meshes)), NAMED)}. Their convex hulls are used"
        )
        _warn(warnings, "", ShapeFault.OPEN, text)
    return Shapes(tuple(shapes), tuple(warnings))


def check_shapes(root: ElementTree.Element, path: Path) -> None:
    """Check the numbers of all collision shapes of a URDF, without its meshes.

    Raises:
        ConfigError: Some numbers are invalid; the message lists all of them by link.
    """
    checks: list[Callable[[], object]] = []
    for link in root.findall("link"):
        where = f"{path}: link {link.get('name', '')!r}: <collision>"
        for element in link.findall("collision"):
            checks.append(partial(_origin, element, where))
            checks += [partial(_dimensions, shape, where) for shape in element.findall("geometry/*")]
    check_all(checks)


_ShapeContent = tuple[str, Array, float, float]
_Problem = tuple[ShapeFault, str] | None


def _in_joint_frame(name: str, joint_id: int, placement: pin.SE3, content: _ShapeContent) -> Shape:
    kind, points, radius, ring = content
    points = points @ placement.rotation.T + placement.translation
    return Shape(name, joint_id, kind, points, radius, ring, placement.rotation[:, 2].copy())


def _configured(name: str, frame: pin.Frame, shape: ShapeConfig) -> Shape:
    """Return a shape that is defined in robot.yaml."""
    ends = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]]) * shape.length
    content: _ShapeContent = "sphere", np.zeros((1, 3)), shape.radius, 0.0
    if shape.kind == "capsule":
        content = shape.kind, ends, shape.radius, 0.0
    elif shape.kind == "cylinder":
        content = shape.kind, ends, 0.0, shape.radius
    elif shape.kind == "box":
        content = shape.kind, 0.5 * _CORNERS * np.array(shape.size), 0.0, 0.0
    return _in_joint_frame(name, int(frame.parentJoint), frame.placement * shape.placement.transform(), content)


def _warn(warnings: list[ShapeWarning], link: str, fault: ShapeFault, text: str) -> None:
    warnings.append(ShapeWarning(fault, link, text))


def _read_shape(
    element: ElementTree.Element,
    urdf_path: Path,
    where: str,
    warn: Callable[[ShapeFault, str], None],
    open_meshes: list[str],
    whole: bool,
) -> _ShapeContent | None:
    """Return kind, points, radius and ring of the shape ``element`` in its own frame, whose axis is z.

    Returns None for a shape that cannot touch, with a warning. Meshes that are not closed are added to ``open_meshes``.
    """
    sizes = _dimensions(element, where)
    if element.tag == "sphere":
        return "sphere", np.zeros((1, 3)), float(sizes[0]), 0.0
    if element.tag in ("cylinder", "capsule"):
        radius, half = float(sizes[0]), 0.5 * sizes[1]
        ends = np.array([[0.0, 0.0, half], [0.0, 0.0, -half]])
        return ("capsule", ends, radius, 0.0) if element.tag == "capsule" else ("cylinder", ends, 0.0, radius)
    if element.tag == "box":
        return "box", 0.5 * _CORNERS * sizes, 0.0, 0.0
    if element.tag == "mesh":
        name = element.get("filename", "")
        path = mesh_path(name, urdf_path)
        if path is None:
            warn(
                ShapeFault.NO_FILE,
                f"{where}: no file {name!r}: the link makes no contact. Define a shape under `bodies`",
            )
            return None
        points, problem, closed = _hull(path, tuple(sizes), path.stat().st_mtime_ns, whole)
        if not closed:
            open_meshes.append(path.name)
        if problem:
            warn(problem[0], f"{where}: {path.name}: {problem[1]}")
        return None if points is None else ("hull", points, 0.0, 0.0)
    warn(ShapeFault.UNKNOWN, f"{where}: <{element.tag}> is an unknown shape and makes no contact")
    return None


def _dimensions(element: ElementTree.Element, where: str) -> Array:
    """Return the radius, length or size of a shape [m], or the scale of a mesh; empty for an unknown shape."""
    if element.tag == "sphere":
        # Files for engines with contact points mark such a point with a sphere of radius 0.
        return np.array([0.0 if element.get("radius", "").strip("0.") == "" else _size(element, "radius", where)])
    if element.tag in ("cylinder", "capsule"):
        return np.array([_size(element, key, where) for key in ("radius", "length")])
    if element.tag == "box":
        size = _vector(element.get("size"), where, "size")
        if not (size > 0.0).all():
            raise ConfigError("m must be positive", f"{where}: size", size.tolist())
        return size
    return _vector(element.get("scale", "1 1 1"), where, "scale") if element.tag == "mesh" else np.zeros(0)


def _size(element: ElementTree.Element, key: str, where: str) -> float:
    value = _vector(f"{element.get(key)} 0 0", where, key)[0]
    if not value > 0.0:
        raise ConfigError("m must be positive", f"{where}: <{element.tag}> {key}", value)
    return float(value)


def _vector(text: str | None, where: str, key: str) -> Array:
    try:
        values = np.array([number_in(word) for word in (text or "").split()])
    except ValueError:
        values = np.full(1, np.nan)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ConfigError("must be three finite numbers", f"{where}: {key}", text)
    return values


def _origin(collision: ElementTree.Element, where: str) -> pin.SE3:
    origin = collision.find("origin")
    if origin is None:
        return pin.SE3.Identity()
    xyz, rpy = (_vector(origin.get(key, "0 0 0"), where, key) for key in ("xyz", "rpy"))
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)


def mesh_path(name: str, urdf_path: Path) -> Path | None:
    """Return the mesh file with this name in a URDF, from its package or next to the URDF.

    If no file has exactly this name, the case of letters is ignored, as on Windows.
    """
    if not name or "\0" in name:
        return None
    candidates = list(dict.fromkeys(_mesh_candidates(name, urdf_path.absolute().parent)))
    exact = next((path for path in candidates if path.is_file()), None)
    return exact or next(filter(None, map(_ignoring_case, candidates)), None)


def _mesh_candidates(name: str, folder: Path) -> Iterator[Path]:
    """Yield paths of a mesh, most literal first.

    Percent-encoding and Windows separators are resolved. Names of the form ``package://PACKAGE/FILE``,
    ``model://PACKAGE/FILE`` and ``$(find PACKAGE)/FILE`` are searched with and without the package, whose folder may
    have another name, for example in a clone. Of absolute paths of another machine, their ends are searched.
    """
    roots = [folder, *folder.parents]
    for variable, subfolder in _SEARCHED.items():
        roots += [Path(prefix, subfolder) for prefix in os.environ.get(variable, "").split(os.pathsep) if prefix]
    windows = name.replace("\\", "/")
    for text in dict.fromkeys((name, windows, unquote(windows))):
        found = _LOCATION.match(text)
        rest = text[found.end() :] if found is not None else text
        if found is not None and found["package"]:
            rest = f"{found['package']}/{rest}"
        names = [rest]
        if found is not None and (found["package"] or found["scheme"] in ("package", "model")):
            names.append(rest.partition("/")[2])
        elif found is not None:
            parts = rest.split("/")
            yield Path("/", rest)
            names += ["/".join(parts[i:]) for i in range(1, len(parts) - 1)]
        yield from (root / inner for inner in names if inner for root in roots)


def _ignoring_case(path: Path) -> Path | None:
    """Return the file at a path whose letters may have another case."""
    here = Path(path.anchor)
    for part in path.parts[1:]:
        if not (here / part).exists():
            try:
                part = next((entry for entry in os.listdir(here) if entry.lower() == part.lower()), "")
            except OSError:
                return None
            if not part:
                return None
        here /= part
    return here if here.is_file() else None


def located(urdf_xml: str, urdf_path: Path) -> str:
    """Replace the mesh names in a URDF by ``file://`` paths, for programs that do not find the packages."""

    def replacement(match: re.Match[str]) -> str:
        path = mesh_path(unescape(match[2]), urdf_path)
        return match[0] if path is None else f"{match[1]}file://{path.resolve()}{match[3]}"

    return re.sub(r"""(<mesh\b[^>]*?\bfilename=["'])([^"']+)(["'])""", replacement, urdf_xml)


@lru_cache(maxsize=1024)
def _hull(path: Path, scale: tuple[float, ...], changed: int, whole: bool) -> tuple[Array | None, _Problem, bool]:
    """Return the vertices (P, 3) of the hull of a mesh [m], a problem if any, and whether the mesh is closed.

    The hull is reduced unless ``whole``.

    Args:
        path: File in a format that :func:`mesh_triangles` reads.
        scale: Scale of x, y, z.
        changed: Modification time of the file, so that a new version is read again.
    """
    try:
        corners = mesh_triangles(path) * scale
    except (OSError, ValueError, ImportError) as error:
        problem = ShapeFault.UNREADABLE, f"cannot be read ({error}); it makes no contact"
        return None, problem, True
    vertices = corners.reshape(-1, 3)
    if len(vertices) < 4 or not np.isfinite(vertices).all():
        message = f"has {len(vertices)} vertices, or non-finite ones; it makes no contact"
        return None, (ShapeFault.NO_HULL, message), True
    # Single precision and contiguous rows allow half a million vertices in a tenth of a second.
    projections = _DIRECTIONS.astype(np.float32) @ vertices.T.astype(np.float32)
    lowest, highest = projections.argmin(axis=1), projections.argmax(axis=1)
    width = float(np.einsum("ij,ij->i", _DIRECTIONS, vertices[highest] - vertices[lowest]).min())
    thin = (ShapeFault.THIN, f"is only {width:.2g} m thick") if width < THIN else None
    closed = _is_closed(corners)
    if whole and thin is None:
        from scipy.spatial import ConvexHull

        return vertices[ConvexHull(vertices).vertices], None, closed
    return _reduced(vertices[np.unique([lowest, highest])]), thin, closed


def _is_closed(corners: Array) -> bool:
    """Return whether triangles (T, 3, 3) bound a volume V: the sum of areas dA is then 0, and that of r dA^T is V 1."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    areas = 0.5 * np.cross(b - a, c - a)
    middle = (a + b + c) / 3.0
    middle -= middle.mean(axis=0)
    moment = middle.T @ areas
    area, size = float(np.linalg.norm(areas, axis=1).sum()), float(np.ptp(middle, axis=0).max())
    deviation = np.abs(moment - np.trace(moment) / 3.0 * np.eye(3)).max()
    return bool(np.linalg.norm(areas.sum(axis=0)) <= OPEN * area and deviation <= OPEN * area * size)


def _directions() -> Array:
    """Return the axes, and directions that are evenly distributed over half a sphere by the golden angle."""
    i = np.arange(HALF_DIRECTIONS) + 0.5
    z, turn = i / HALF_DIRECTIONS, np.pi * (1.0 + np.sqrt(5.0)) * i
    level = np.sqrt(1.0 - z * z)
    return np.vstack([np.eye(3), np.column_stack([level * np.cos(turn), level * np.sin(turn), z])])


_DIRECTIONS = _directions()


def mesh_triangles(path: Path) -> Array:
    """Return the triangles (T, 3, 3) of all meshes in a file; binary STL is a hundred times faster than other formats.

    Collada files are in metres according to their unit; their ``up_axis`` is ignored, as in RViz and Gazebo. Other
    formats have no unit.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a mesh of a supported format.
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
    except Exception as error:  # the readers of many formats have their own errors
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if not len(mesh.faces):
        raise ValueError("no triangles in it")
    return np.asarray(mesh.triangles, dtype=np.float64)


def _collada(path: Path) -> Any:
    import collada

    try:
        # Errors in materials and textures are irrelevant.
        document = collada.Collada(str(path), ignore=[collada.common.DaeError])
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    loaded = {geometry.id for geometry in document.geometries}
    defined = {element.get("id") for element in document.xmlnode.iter() if str(element.tag).endswith("}geometry")}
    if defined - loaded:
        raise ValueError(f"geometry {some(sorted(map(repr, defined - loaded)))}: {document.errors[0]}")
    return document


def _collada_triangles(path: Path) -> Array:
    """Return the triangles (T, 3, 3) of all geometry in the scene of a Collada file [m]."""
    document = _collada(path)
    triangles = []
    for kind in ("geometry", "controller"):
        for bound in document.scene.objects(kind) if document.scene is not None else ():
            for primitive in bound.primitives():
                if hasattr(primitive, "triangleset"):
                    primitive = primitive.triangleset()
                if getattr(primitive, "vertex", None) is None or np.shape(primitive.vertex_index)[1:] != (3,):
                    continue  # lines, and primitives without positions
                triangles.append(primitive.vertex[primitive.vertex_index])
    if not triangles:
        raise ValueError("no triangles in its scene")
    return np.concatenate(triangles).astype(np.float64) * (document.assetInfo.unitmeter or 1.0)


def collada_up_axis(path: Path) -> str:
    """Return the upward axis of a Collada file: ``X``, ``Y`` or ``Z``.

    Raises:
        OSError, ValueError: As for :func:`mesh_triangles`.
    """
    return str(_collada(path).assetInfo.upaxis or "Y_UP")[0]


def _reduced(vertices: Array) -> Array:
    """Return at most ``MOST_VERTICES`` of a hull's vertices (P, 3) that approximate it to ``COARSE``."""
    projections = vertices @ np.vstack([_DIRECTIONS, -_DIRECTIONS]).T
    axes = [0, 1, 2, len(_DIRECTIONS), len(_DIRECTIONS) + 1, len(_DIRECTIONS) + 2]
    selected = list(dict.fromkeys(int(k) for k in projections[:, axes].argmax(axis=0)))
    farthest = projections.max(axis=0)
    while len(selected) < min(MOST_VERTICES, len(vertices)):
        missing = farthest - projections[selected].max(axis=0)
        worst = int(missing.argmax())
        if missing[worst] <= COARSE:
            break
        selected.append(int(projections[:, worst].argmax()))
    return np.ascontiguousarray(vertices[sorted(selected)])
