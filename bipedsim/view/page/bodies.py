"""Create triangle meshes of a robot's bodies from the visuals of its URDF, its collision shapes, or its skeleton."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot, mesh_path, mesh_triangles
from bipedsim.numerics import Array, Integers
from bipedsim.objects import ObjectConfig, ObjectShape
from bipedsim.view.animation import Skeleton

Colour = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""
PLAIN: Colour = (176, 180, 186)
"""Colour of a body without a colour in its file."""
FINEST = 120_000
"""Maximum number of triangles of a robot; above it, its meshes are simplified."""
CREASE = np.deg2rad(35.0)
"""Angle between adjacent faces above which their edge is visible."""
ROUNDED = 1e-6
"""Distance below which vertices of a mesh file are equal [m]."""
WELD = 2e-5
"""Distance below which vertices are merged before a mesh is simplified [m]."""
GENTLE = 2
"""Aggressiveness of the simplification, from 0; usual values would remove thin parts such as fingers."""
LEAST = 24
"""Minimum number of triangles of a simplified mesh."""
ROUND = 24
"""Number of corners of a circle."""
BONE = 0.012
"""Radius of a line of the skeleton, as a fraction of the height of the CoM."""


@dataclass(frozen=True, eq=False)
class Look:
    """Triangle mesh of one body, in the frame of its joint.

    Attributes:
        name: Name of the link.
        joint_id: Joint of the pinocchio model; 0 is the world.
        vertices: (V, 3) [m].
        faces: (F, 3) indices of vertices, counter-clockwise from outside.
        colour: Colour of the mesh.
        smooth: Whether the surface is shaded smoothly, without visible edges.
    """

    name: str
    joint_id: int
    vertices: Array
    faces: Integers
    colour: Colour = PLAIN
    smooth: bool = False


def looks(robot: Robot, finest: int = FINEST) -> tuple[list[Look], tuple[str, ...], str]:
    """Return the meshes of a robot's bodies.

    Args:
        robot: The robot; its URDF defines shapes and meshes.
        finest: Maximum of the total number of triangles.

    Returns:
        The meshes, descriptions of elements that cannot be shown, and a note on the number of triangles.
    """
    root = ElementTree.fromstring(robot.urdf_xml.encode())
    colours = {element.get("name", ""): _rgb(element) for element in root.findall("material")}
    meshes: list[Look] = []
    missing: list[str] = []
    for link in root.findall("link"):
        name = link.get("name", "")
        if not robot.model.existFrame(name, pin.FrameType.BODY):
            continue
        frame = robot.model.frames[robot.model.getFrameId(name, pin.FrameType.BODY)]
        for tag in ("visual", "collision"):
            made = [_look(element, frame, robot.urdf_path, colours, missing) for element in link.findall(tag)]
            if any(made):
                meshes += [look for look in made if look is not None]
                break
    joints_with_mesh = {look.joint_id for look in meshes}
    meshes += [bone for bone in _skeleton(robot) if bone.joint_id not in joints_with_mesh]
    thin = _thinned(meshes, finest)
    thin = [look if look.smooth else _split_at_creases(look) for look in thin]
    before, after = (sum(len(look.faces) for look in bodies) for bodies in (meshes, thin))
    detail = f"{after} triangles of the robot" + (f", thinned from {before}" if after < before else "")
    return thin, tuple(dict.fromkeys(missing)), detail


def _look(
    element: ElementTree.Element,
    frame: pin.Frame,
    urdf_path: Path,
    colours: Mapping[str, Colour | None],
    missing: list[str],
) -> Look | None:
    """Return the mesh of a <visual> or <collision>; return None and append to ``missing`` if it cannot be drawn."""
    geometry = element.find("geometry")
    if geometry is None or not len(geometry):
        return None
    try:
        made = _geometry(geometry[0], urdf_path)
        placement = frame.placement * _origin(element)
    except (OSError, ValueError, ImportError) as error:
        missing.append(f"{frame.name}: {error}")
        return None
    vertices, faces, smooth = made
    material = element.find("material")
    colour = None
    if material is not None:
        colour = _rgb(material) or colours.get(material.get("name", ""))
    vertices = vertices @ placement.rotation.T + placement.translation
    return Look(frame.name, int(frame.parentJoint), vertices, faces, colour or PLAIN, smooth)


def _geometry(element: ElementTree.Element, urdf_path: Path) -> tuple[Array, Integers, bool]:
    """Return vertices, faces and whether the surface is smooth; the axis of round shapes is z.

    Raises:
        OSError, ValueError, ImportError: The shape is unknown, or its mesh cannot be read.
    """
    if element.tag == "mesh":
        name = element.get("filename", "")
        path = mesh_path(name, urdf_path)
        if path is None:
            raise ValueError(f"no file {name}")
        corners: Array = (mesh_triangles(path) * _three(element.get("scale", "1 1 1"))).reshape(-1, 3)
        if not len(corners) or not np.isfinite(corners).all():
            raise ValueError(f"no triangles in {path.name}")
        # Mesh files use single precision, so that vertices of adjacent triangles are equal only after rounding.
        first, faces = _unique_rows(np.round(corners / ROUNDED).astype(np.int64))
        return corners[first], faces.reshape(-1, 3), False
    values = {key: _three(text) for key, text in element.attrib.items()}
    radius, length = (float(values.get(key, np.zeros(3))[0]) for key in ("radius", "length"))
    if element.tag == "box":
        return *_triangles("box", extents=values.get("size", np.zeros(3))), False
    if element.tag == "ellipsoid":
        vertices, faces = ball(1.0)
        axes = values.get("radii", values.get("size", np.zeros(3)))
        return vertices * axes, faces, True
    if element.tag == "sphere":
        # A sphere of radius 0 marks a point.
        return *ball(max(radius, 2e-3)), True
    if element.tag == "capsule":
        return *_triangles("capsule", radius=radius, height=length, count=[ROUND, ROUND]), True
    if element.tag == "cylinder":
        return *_triangles("cylinder", radius=radius, height=length, sections=ROUND), False
    if element.tag == "cone":
        vertices, faces = _triangles("cone", radius=radius, height=length, sections=ROUND)
        # The origin of the frame is in the middle of the axis, as for a cylinder.
        return vertices - np.array([0.0, 0.0, 0.5 * length]), faces, False
    raise ValueError(f"<{element.tag}> is an unknown shape")


def _triangles(kind: str, **size: Any) -> tuple[Array, Integers]:
    """Return a mesh from ``trimesh.creation``, whose import takes a third of a second."""
    from trimesh import creation

    mesh = getattr(creation, kind)(**size)
    vertices = np.array(mesh.vertices)
    # In older versions, the origin of a capsule is at one of its ends.
    return vertices - (vertices.mean(axis=0) if kind == "capsule" else 0.0), np.array(mesh.faces)


def ball(radius: float) -> tuple[Array, Integers]:
    """Return vertices (V, 3) [m] and faces (F, 3) of a ball around the origin."""
    return _triangles("icosphere", subdivisions=2, radius=radius)


def cone(radius: float, height: float) -> tuple[Array, Integers]:
    """Return vertices (V, 3) [m] and faces (F, 3) of a cone that opens along z, with its tip at the origin."""
    vertices, faces = _triangles("cone", radius=radius, height=height, sections=ROUND)
    return np.array([0.0, 0.0, height]) - vertices * np.array([-1.0, 1.0, 1.0]), faces


def object_looks(config: ObjectConfig) -> list[Look]:
    """Return the meshes of a free object, in its own frame."""
    if config.urdf is not None:
        return [_convex(config.name, shape) for shape in config.make().shapes]
    if config.size is not None:
        return [Look(config.name, 0, *_triangles("box", extents=config.size))]
    assert config.radius is not None
    if config.length is None:
        return [Look(config.name, 0, *ball(config.radius), smooth=True)]
    return [Look(config.name, 0, *_triangles("cylinder", radius=config.radius, height=config.length, sections=ROUND))]


def _convex(name: str, shape: ObjectShape) -> Look:
    """Return the mesh of a shape of a free body: its faces as triangle fans, or a round shape."""
    if shape.faces:
        fans = [(face[0], face[i], face[i + 1]) for face in shape.faces for i in range(1, len(face) - 1)]
        vertices, faces = shape.vertices, np.array(fans, dtype=np.int64)
    elif shape.size[1] > 0.0:
        vertices, faces = _triangles("cylinder", radius=shape.size[0], height=2.0 * shape.size[1], sections=ROUND)
    else:
        vertices, faces = ball(float(shape.size[0]))
    return Look(name, 0, vertices @ shape.rotation.T + shape.centre, faces)


def _skeleton(robot: Robot) -> list[Look]:
    """Return the lines between the joints as meshes of rods."""
    skeleton = Skeleton.of(robot)
    made = []
    for a, b in skeleton.lines:
        ends = skeleton.local[[a, b]]
        along = ends[1] - ends[0]
        length = float(np.linalg.norm(along))
        vertices, faces = _triangles("capsule", radius=BONE * robot.com_height, height=length, count=[12, 12])
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), along / length).matrix()
        joint = int(skeleton.joints[a])
        made.append(Look(robot.model.names[joint], joint, vertices @ turn.T + ends.mean(axis=0), faces, smooth=True))
    return made


def _thinned(meshes: list[Look], finest: int) -> list[Look]:
    """Simplify the meshes, so that the total number of triangles is at most ``finest``.

    Larger meshes keep more triangles, in proportion to their size.
    """
    counts = np.array([len(look.faces) for look in meshes], dtype=np.int64)
    if counts.sum() <= finest:
        return meshes
    sizes = np.array([np.linalg.norm(np.ptp(look.vertices, axis=0)) for look in meshes])
    least = np.minimum(counts, LEAST)
    allowed = least + _shares(counts - least, np.maximum(sizes, 1e-3), finest - int(least.sum()))
    return [
        look if count <= limit else _simplified(look, int(limit))
        for look, count, limit in zip(meshes, counts, allowed, strict=True)
    ]


def _shares(counts: Integers, weights: Array, total: int) -> Integers:
    """Distribute ``total`` in proportion to ``weights``, at most ``counts`` each; the rest goes to the others."""
    shares = np.zeros(len(counts))
    free = np.ones(len(counts), dtype=np.bool_)
    while free.any():
        shares[free] = (total - counts[~free].sum()) * weights[free] / weights[free].sum()
        full = free & (shares >= counts)
        if not full.any():
            break
        shares[full] = counts[full]
        free &= ~full
    return np.floor(shares).astype(np.int64)


def _simplified(look: Look, limit: int) -> Look:
    """Simplify a mesh to at most ``limit`` triangles."""
    import fast_simplification

    # Vertices that are only almost equal would become holes.
    vertices, faces = _welded(look.vertices, look.faces, WELD)
    if len(faces) > limit:
        thin = fast_simplification.simplify(
            vertices.astype(np.float32), faces.astype(np.int32), target_count=limit, agg=GENTLE
        )
        vertices, faces = thin[0].astype(np.float64), thin[1].astype(np.int64)
    # The edges of open surfaces remain, so the result may have too many triangles.
    cell = 1e-3
    while len(faces) > limit:
        welded = _welded(vertices, faces, cell)
        if not len(welded[1]):
            break
        vertices, faces = welded
        cell *= 1.25
    return Look(look.name, look.joint_id, vertices, faces, look.colour, look.smooth)


def _split_at_creases(look: Look) -> Look:
    """Return a mesh for smooth shading, whose vertices are separate where faces meet at an angle above CREASE."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    a, b, c = look.vertices[look.faces].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    count = len(look.faces)
    edges = np.sort(np.concatenate([look.faces[:, [0, 1]], look.faces[:, [1, 2]], look.faces[:, [2, 0]]]), axis=1)
    order = np.lexsort(edges.T)
    edges, owner = edges[order], np.tile(np.arange(count), 3)[order]
    shared = (edges[1:] == edges[:-1]).all(axis=1)
    one, other = owner[:-1][shared], owner[1:][shared]
    is_smooth = np.einsum("ij,ij->i", normals[one], normals[other]) > np.cos(CREASE)
    one, other = one[is_smooth], other[is_smooth]
    links = coo_array((np.ones(len(one), dtype=np.int8), (one, other)), shape=(count, count))
    _, surface = connected_components(links, directed=False)
    corners = np.column_stack([look.faces.ravel(), np.repeat(surface, 3)])
    first, faces = _unique_rows(corners)
    return Look(
        look.name, look.joint_id, look.vertices[corners[first, 0]], faces.reshape(-1, 3), look.colour, smooth=True
    )


def _welded(vertices: Array, faces: Integers, cell: float) -> tuple[Array, Integers]:
    """Merge the vertices in each cube with edge ``cell`` [m]; remove triangles that become lines or equal."""
    _, which = _unique_rows(np.round(vertices / cell).astype(np.int64))
    count = np.bincount(which)
    merged = np.column_stack([np.bincount(which, vertices[:, i]) / count for i in range(3)])
    corners = which[faces]
    corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]
    first, _ = _unique_rows(np.sort(corners, axis=1))
    return merged, corners[np.sort(first)]


def _unique_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Return the index of the first of equal rows (n, k), and for each row which of them it is."""
    low = rows.min(axis=0, initial=0)
    spans = rows.max(axis=0, initial=0) - low + 1
    # One number for each row is several times as fast as rows, if it does not overflow.
    keys: Integers = rows
    if np.log2(spans.astype(np.float64)).sum() < 62.0:
        keys = np.zeros(len(rows), dtype=np.int64)
        for column, span in zip((rows - low).T, spans, strict=True):
            keys = keys * span + column
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()


def _origin(element: ElementTree.Element) -> pin.SE3:
    origin = element.find("origin")
    if origin is None:
        return pin.SE3.Identity()
    xyz, rpy = (_three(origin.get(key, "0 0 0")) for key in ("xyz", "rpy"))
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)


def _three(text: str) -> Array:
    """Return up to three numbers of a text; missing numbers are 0."""
    values = np.zeros(3)
    words = text.split()[:3]
    values[: len(words)] = [float(word) for word in words]
    return values


def _rgb(material: ElementTree.Element) -> Colour | None:
    colour = material.find("color")
    if colour is None:
        return None
    red, green, blue = (round(255.0 * min(1.0, max(0.0, value))) for value in _three(colour.get("rgba", "")))
    return red, green, blue
