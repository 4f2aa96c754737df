"""Soles from the geometry of feet: the flat that is lowest, and its outline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from scipy.spatial import ConvexHull, QhullError

from bipedsim.descriptions.legs import outline
from bipedsim.model import Shape, Sole
from bipedsim.numerics import Array, convex_hull

FLAT = 4e-3
"""Points within this height [m] of the lowest one are of the sole: rubber, rounding of edges and of meshes."""
MOST_TILTED = 0.77
"""Cosine of the angle by which a sole may lean where all joints are at 0."""
PREFERRED = 0.85
"""Share of the largest area that a sole square to the robot or to its link may have, and be preferred."""
LEAST_LYING = 0.3
"""Sine of the angle to the vertical above which a capsule may lie on the ground."""
CUT, MOST_CORNERS = 8e-4, 16
"""Width [m] of what a polygon may lack of a sole, and corners of the polygon; the number comes first."""
POINT = 0.06
"""Length of a sole over that of the leg below which the foot is a point."""
NARROW = 6e-3
"""Width [m] below which a sole is a blade, and length below which it is a point."""


@dataclass(frozen=True, eq=False)
class FoundSole:
    """A sole that was found.

    Attributes:
        placement: Sole frame in the frame of the joint: origin under the joint, x ahead, z up into the foot.
        vertices: (N, 2) [m] in it.
        radius: Of the ball of a point foot [m].
        how: In words, what it is the outline of.
        lacks: Largest distance [m] from the polygon to what it leaves out of the outline.
    """

    placement: pin.SE3
    vertices: Array
    radius: float
    how: str
    lacks: float = 0.0

    @property
    def area(self) -> float:
        """Of the polygon [m^2]."""
        x, y = self.vertices.T
        return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def find_sole(
    shapes: Sequence[Shape], down: Array, ahead: Array, frames: Sequence[pin.SE3], leg: float
) -> FoundSole | None:
    """Return the sole of a foot, or None of one without shapes.

    The plane is the one of most area, among the ground where all joints are at 0, planes square to the link, and faces
    of the foot's hull; the first two are preferred.

    Args:
        shapes: Of the foot, in the frame of the joint.
        down: (3,) downwards where the robot stands with its joints at 0, in the frame of the joint.
        ahead: (3,) ahead, the same.
        frames: Of the links of the foot, in the frame of the joint.
        leg: Length of the leg [m].
    """
    if not shapes:
        return None
    points = np.vstack([outline(shape) for shape in shapes])
    best: tuple[float, FoundSole] | None = None
    for normal, weight, how in _directions(shapes, points, down, frames):
        sole = _flat(shapes, normal, ahead, how, POINT * leg)
        value = weight * (sole.area + 1e-6 * len(sole.vertices))
        if best is None or value > best[0]:
            best = value, sole
    assert best is not None
    kinds = sorted({shape.kind for shape in shapes})
    sole = best[1]
    return replace(sole, how=f"{len(shapes)} x {'/'.join(kinds)}, {sole.how}")


def _directions(
    shapes: Sequence[Shape], points: Array, down: Array, frames: Sequence[pin.SE3]
) -> list[tuple[Array, float, str]]:
    """Return normals that point out of the foot downwards, with a weight of each and what it is."""
    found = [(down, 1.0, "on the ground with all joints at 0")]
    for frame in (pin.SE3.Identity(), *frames):
        for axis in (*frame.rotation.T, *-frame.rotation.T):
            if axis @ down > MOST_TILTED and axis @ found[0][0] < 1.0 - 1e-9:
                found.append((axis, 0.98, "square to its link"))
    for shape in shapes:
        if shape.kind in ("capsule", "cylinder"):
            level = down - (down @ shape.axis) * shape.axis
            if np.linalg.norm(level) > LEAST_LYING:
                found.append((level / np.linalg.norm(level), PREFERRED, f"along its {shape.kind}"))
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return found
    normals = hull.equations[:, :3]
    steep = normals[normals @ down > MOST_TILTED]
    for normal in np.unique(np.round(steep, 3), axis=0)[:60]:
        found.append((normal / np.linalg.norm(normal), PREFERRED, "a face of its hull, oblique to its link"))
    return found


def _flat(shapes: Sequence[Shape], normal: Array, ahead: Array, how: str, least: float) -> FoundSole:
    """Return the sole of all points that are lowest along ``normal``, which points out of the foot.

    One that is nowhere longer than ``least`` [m] is a point.
    """
    parts = [_underside(shape, normal) for shape in shapes]
    points = np.vstack(parts)
    radii = np.concatenate([np.full(len(part), shape.radius) for part, shape in zip(parts, shapes, strict=True)])
    heights = points @ normal + radii
    lowest = float(heights.max())
    chosen = heights > lowest - FLAT
    z = -normal
    x = ahead - (ahead @ z) * z
    x /= np.linalg.norm(x)
    rotation = np.column_stack([x, np.cross(z, x), z])
    placement = pin.SE3(rotation, lowest * normal)
    flat = (points[chosen] @ rotation)[:, :2]
    vertices = outline_of(flat)
    if np.ptp(vertices, axis=0).max() < least:
        vertices = vertices.mean(axis=0)[None]
    lacks = 0.0
    if len(vertices) > 2:
        edges = np.roll(vertices, -1, axis=0) - vertices
        out = np.column_stack([edges[:, 1], -edges[:, 0]]) / np.linalg.norm(edges, axis=1)[:, None]
        lacks = float((np.einsum("ij,kij->ki", out, flat[:, None] - vertices)).max())
    radius = float(radii[chosen].max()) if len(vertices) == 1 else 0.0
    if len(vertices) == 1 and radius > 0.0:
        # robot.yaml has the middle of the ball for the vertex; it touches a radius below.
        placement = placement * pin.SE3(np.eye(3), np.array([0.0, 0.0, radius]))
    return FoundSole(placement, vertices, radius, how, lacks)


def _underside(shape: Shape, normal: Array) -> Array:
    """Return the points (n, 3) of a shape that can touch a plane with this normal, balls not added.

    A cylinder that lies touches along a line: of each of its rings with the lowest point.
    """
    level = normal - (normal @ shape.axis) * shape.axis
    lying = float(np.linalg.norm(level))
    if shape.ring == 0.0 or lying < LEAST_LYING:
        return outline(shape)
    return shape.points + shape.ring / lying * level


def outline_of(flat: Array) -> Array:
    """Return the corners (N, 2) of points (n, 2) [m], counter-clockwise: a polygon of few, a blade or a point."""
    middle = flat.mean(axis=0)
    spread = np.linalg.svd(flat - middle, full_matrices=False)
    along = (flat - middle) @ spread[2].T
    extent = along.max(axis=0) - along.min(axis=0)
    if extent[0] < NARROW:
        return np.array([middle])
    if len(extent) < 2 or extent[1] < NARROW:
        order = np.argsort(along[:, 0])
        ends = flat[order[[-1, 0]]]
        return np.array(ends if ends[0, 0] >= ends[1, 0] else ends[::-1])
    work = np.ascontiguousarray(np.unique(np.round(flat, 5), axis=0))
    count = convex_hull(work, len(work), np.zeros((2 * len(work) + 2, 2)))
    return _few(np.array(work[:count]))


def _few(corners: Array) -> Array:
    """Return a convex polygon (N, 2) with fewer corners; it cuts off ``CUT`` at most if they are few enough by then.

    Corners go one after the other, each time the one without which the polygon cuts off least of the whole one.
    """
    kept, count = list(range(len(corners))), len(corners)

    def cut(i: int) -> float:
        """Return how far [m] corners between the neighbours of the i-th one are outside without it."""
        first, last = kept[i - 1], kept[(i + 1) % len(kept)]
        between = corners[(first + 1 + np.arange((last - first - 1) % count)) % count] - corners[first]
        x, y = corners[last] - corners[first]
        return float(np.abs(between @ [y, -x]).max() / np.hypot(x, y))

    while len(kept) > 3:
        cuts = [cut(i) for i in range(len(kept))]
        least = int(np.argmin(cuts))
        if cuts[least] > CUT and len(kept) <= MOST_CORNERS:
            break
        del kept[least]
    return corners[kept]


def upright_sole(sole: Sole, place: pin.SE3, ahead: Array) -> tuple[pin.SE3, Array]:
    """Return placement and vertices (N, 2) of a point or blade whose z points up where the robot stands.

    Neither has a normal of its own: without one of the robot that stands, the loader would tilt it.

    Args:
        sole: A point or a blade.
        place: Pose of its joint in the world, as the robot stands.
        ahead: (3,) in the world.

    Returns:
        The sole frame in the frame of the joint, with its origin amid the vertices, and these in it.
    """
    points = sole.vertices_joint @ place.rotation.T + place.translation
    z = np.array([0.0, 0.0, 1.0])
    if len(points) == 2:
        along = (points[1] - points[0]) / np.linalg.norm(points[1] - points[0])
        z -= (z @ along) * along
        z /= np.linalg.norm(z)
    x = ahead - (ahead @ z) * z
    x /= np.linalg.norm(x)
    rotation = np.column_stack([x, np.cross(z, x), z])
    middle = points.mean(axis=0)
    return place.inverse() * pin.SE3(rotation, middle), ((points - middle) @ rotation)[:, :2]


def sole_of_inertia(body: pin.Inertia, down: Array, ahead: Array, leg: float) -> FoundSole:
    """Return the underside of the box that has the inertia of a foot: what is left to go by without geometry.

    Args:
        body: Of the foot, in the frame of the joint.
        down, ahead: (3,) in the frame of the joint.
        leg: Length of the leg [m]: no foot is longer than 0.3 of it, wider than 0.15 or thicker than 0.1.
    """
    x = ahead - (ahead @ down) * down
    x /= np.linalg.norm(x)
    rotation = np.column_stack([x, np.cross(-down, x), -down])
    turned = rotation.T @ body.inertia @ rotation
    second = np.maximum(0.5 * np.trace(turned) - np.diag(turned), 1e-9)
    half = np.minimum(np.sqrt(3.0 * second / max(body.mass, 1e-6)), np.array([0.15, 0.075, 0.05]) * leg)
    half = np.maximum(half, 0.005)
    centre = rotation.T @ body.lever
    signs = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    height = float(body.lever @ down) + half[2]
    return FoundSole(pin.SE3(rotation, height * down), centre[:2] + signs * half[:2], 0.0, "a box of its inertia")
