"""Convex shapes of bodies, and their arrays for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Integers, accumulate, assign, kernel, mul, product, zeros_of
from bipedsim.objects.bodies import Bodies, end_position

BALL, BOX, CYLINDER, HULL = range(4)
"""Kinds of shapes."""
FLAT = 1e-6
"""Difference of unit normals below which triangles of a hull belong to one face."""
LINK = 1.0
"""Assumed maximum change of the velocity of a link within a step [m/s]."""
MOST_CORNERS = 256
"""Maximum number of corners of a hull."""


@dataclass(frozen=True, eq=False)
class ObjectShape:
    """Convex shape of a body.

    Attributes:
        kind: ``BALL``, ``BOX``, ``CYLINDER`` or ``HULL``.
        size: (3,) radius of a ball; half lengths of a box; radius and half length of a cylinder along its z axis [m].
        centre: (3,) of the shape in the frame of the body [m].
        rotation: (3, 3) axes of the shape in that frame, as columns.
        vertices: (V, 3) of boxes and hulls, in the axes of the shape [m].
        faces: Indices of the corners of each face, counter-clockwise from outside.
    """

    kind: int
    size: Array = field(default_factory=lambda: np.zeros(3))
    centre: Array = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    vertices: Array = field(default_factory=lambda: np.zeros((0, 3)))
    faces: tuple[tuple[int, ...], ...] = ()

    @property
    def bound(self) -> float:
        """Radius of the bounding sphere about the centre [m]."""
        if self.kind == BALL:
            return float(self.size[0])
        if self.kind == CYLINDER:
            return float(np.hypot(self.size[0], self.size[1]))
        return float(np.linalg.norm(self.vertices, axis=1).max())


def ball(radius: float) -> ObjectShape:
    """Return a ball of the given radius [m]."""
    return ObjectShape(BALL, np.array([radius, 0.0, 0.0]))


def cylinder(radius: float, length: float) -> ObjectShape:
    """Return a cylinder along z [m]."""
    return ObjectShape(CYLINDER, np.array([radius, 0.5 * length, 0.0]))


def box(lengths: Array) -> ObjectShape:
    """Return a box with the edge lengths ``lengths`` (3,) [m]."""
    half = 0.5 * np.asarray(lengths, dtype=np.float64)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    faces = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return ObjectShape(BOX, half, vertices=corners, faces=faces)


def hull(points: Array, where: str) -> ObjectShape:
    """Return the convex hull of points (n, 3) [m].

    Raises:
        ConfigError: The points are in a plane, or the hull has too many corners.
    """
    # The import is slow, and few runs need it.
    from scipy.spatial import ConvexHull

    try:
        qhull = ConvexHull(points)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"its {len(points)} points have no convex hull with a volume", where) from error
    if len(qhull.vertices) > MOST_CORNERS:
        raise ConfigError(
            f"its convex hull has {len(qhull.vertices)} corners, more than {MOST_CORNERS}. Use a simpler mesh", where
        )
    index = {int(old): new for new, old in enumerate(qhull.vertices)}
    groups: list[tuple[Array, set[int]]] = []
    for triangle, plane in zip(qhull.simplices, qhull.equations, strict=True):
        normal = plane[:3]
        for known, members in groups:
            if np.linalg.norm(known - normal) < FLAT:
                members.update(index[int(i)] for i in triangle)
                break
        else:
            groups.append((normal, {index[int(i)] for i in triangle}))
    vertices = np.asarray(points, dtype=np.float64)[qhull.vertices]
    centre = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    vertices = vertices - centre
    faces = tuple(_around(vertices, sorted(members), normal) for normal, members in groups)
    return ObjectShape(HULL, centre=centre, vertices=vertices, faces=faces)


def _around(vertices: Array, members: list[int], normal: Array) -> tuple[int, ...]:
    """Return the corners of a face in counter-clockwise order about its outward ``normal`` (3,)."""
    points = vertices[members] - vertices[members].mean(axis=0)
    first = points[0] / np.linalg.norm(points[0])
    angle = np.arctan2(points @ np.cross(normal, first), points @ first)
    return tuple(members[i] for i in np.argsort(angle, kind="stable"))


class ObjectShapes(NamedTuple):
    """S shapes for the kernels, with at most V corners, F faces, and L corners per face.

    Attributes:
        body: (S,) body of each shape.
        kind, size: As in :class:`ObjectShape`.
        bound: (S,) radius of the bounding sphere [m].
        centre, rotation: (S, 3), (S, 3, 3) relative to the centre of mass, in the axes of the body.
        vertices: (S, V, 3) in the axes of the shape [m].
        n_vertices: (S,) number of vertices.
        faces: (S, F, L) vertex indices of each face.
        n_corners, n_faces: (S, F), (S,) number of corners of each face, and number of faces.
        normals: (S, F, 3) outward normals of the faces, in the axes of the shape.
        p, R: (S, 3), (S, 3, 3) position and attitude in the world, filled by :func:`carry`.
        sweep: (S,) maximum displacement of a point in the next sub-step [m].
    """

    body: Annotated[Integers, "S"]
    kind: Annotated[Integers, "S"]
    size: Annotated[Array, "S", 3]
    bound: Annotated[Array, "S"]
    centre: Annotated[Array, "S", 3]
    rotation: Annotated[Array, "S", 3, 3]
    vertices: Annotated[Array, "S", "V", 3]
    n_vertices: Annotated[Integers, "S"]
    faces: Annotated[Integers, "S", "F", "L"]
    n_corners: Annotated[Integers, "S", "F"]
    n_faces: Annotated[Integers, "S"]
    normals: Annotated[Array, "S", "F", 3]
    p: Annotated[Array, "S", 3]
    R: Annotated[Array, "S", 3, 3]
    sweep: Annotated[Array, "S"]

    @classmethod
    def of(cls, shapes: Sequence[tuple[int, ObjectShape]], coms: Array) -> ObjectShapes:
        """Return the arrays of shapes with their bodies, whose centres of mass are ``coms`` (A, 3) in their frames."""
        most_corners = max([1, *(len(shape.vertices) for _, shape in shapes)])
        most_faces = max([1, *(len(shape.faces) for _, shape in shapes)])
        longest = max([1, *(len(face) for _, shape in shapes for face in shape.faces)])
        sizes = {"S": len(shapes), "V": most_corners, "F": most_faces, "L": longest}
        arrays = zeros_of(cls, sizes)
        for s, (body, shape) in enumerate(shapes):
            arrays.body[s] = body
            arrays.kind[s] = shape.kind
            arrays.size[s] = shape.size
            arrays.bound[s] = shape.bound
            arrays.centre[s] = shape.centre - coms[body]
            arrays.rotation[s] = shape.rotation
            arrays.n_vertices[s] = len(shape.vertices)
            arrays.vertices[s, : len(shape.vertices)] = shape.vertices
            arrays.n_faces[s] = len(shape.faces)
            for f, face in enumerate(shape.faces):
                arrays.faces[s, f, : len(face)] = face
                arrays.n_corners[s, f] = len(face)
                a, b, c = shape.vertices[list(face[:3])]
                normal = np.cross(b - a, c - b)
                arrays.normals[s, f] = normal / np.linalg.norm(normal)
        return arrays


@kernel
def carry(b: Bodies, sh: ObjectShapes, s: float) -> None:
    """Move the shapes to their bodies, and fill their possible displacement in the next ``s`` seconds."""
    for i in range(sh.body.shape[0]):
        k = sh.body[i]
        assign(sh.p[i], b.position[k])
        arm = mul(b.R[k], sh.centre[i])
        accumulate(sh.p[i], arm)
        product(b.R[k], sh.rotation[i], sh.R[i])
        speed = np.sqrt(b.v[k, 0] ** 2 + b.v[k, 1] ** 2 + b.v[k, 2] ** 2)
        spin = np.sqrt(b.w[k, 0] ** 2 + b.w[k, 1] ** 2 + b.w[k, 2] ** 2)
        away = np.sqrt(arm[0] ** 2 + arm[1] ** 2 + arm[2] ** 2) + sh.bound[i]
        if k >= b.mass.shape[0]:
            # The drives of a link change its velocity by at most LINK within a step.
            sh.sweep[i] = s * (speed + spin * away) + LINK * s
            continue
        pull = np.sqrt(b.gravity[0] ** 2 + b.gravity[1] ** 2 + b.gravity[2] ** 2)
        push = np.sqrt(b.force[k, 0] ** 2 + b.force[k, 1] ** 2 + b.force[k, 2] ** 2) / b.mass[k]
        sh.sweep[i] = s * (speed + spin * away + s * (pull + push))


@kernel
def carry_to_end(b: Bodies, sh: ObjectShapes, s: float) -> None:
    """Move the shapes of bodies to the end of a sub-step of ``s`` seconds, and fill their maximum displacement [m]."""
    for i in range(sh.body.shape[0]):
        k = sh.body[i]
        if k >= b.mass.shape[0]:
            continue
        assign(sh.p[i], end_position(b, k, s))
        arm = mul(b.R_end[k], sh.centre[i])
        accumulate(sh.p[i], arm)
        product(b.R_end[k], sh.rotation[i], sh.R[i])
        away = np.sqrt(arm[0] ** 2 + arm[1] ** 2 + arm[2] ** 2) + sh.bound[i]
        before = np.sqrt(b.v[k, 0] ** 2 + b.v[k, 1] ** 2 + b.v[k, 2] ** 2)
        before += away * np.sqrt(b.w[k, 0] ** 2 + b.w[k, 1] ** 2 + b.w[k, 2] ** 2)
        after = np.sqrt(b.v_end[k, 0] ** 2 + b.v_end[k, 1] ** 2 + b.v_end[k, 2] ** 2)
        after += away * np.sqrt(b.w_end[k, 0] ** 2 + b.w_end[k, 1] ** 2 + b.w_end[k, 2] ** 2)
        sh.sweep[i] = s * max(before, after)


@kernel
def corner(sh: ObjectShapes, s: int, i: int) -> tuple[float, float, float]:
    """Return corner ``i`` of shape ``s`` in the world [m]."""
    r = mul(sh.R[s], sh.vertices[s, i])
    return sh.p[s, 0] + r[0], sh.p[s, 1] + r[1], sh.p[s, 2] + r[2]
