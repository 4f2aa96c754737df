"""Detect soles in the geometry of feet: the lowest flat region and its outline."""

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
"""Height above the lowest point within which points belong to the sole [m]; covers rubber and rounded edges."""
MOST_TILTED = 0.77
"""Minimum cosine of a sole's tilt with all joints at 0."""
PREFERRED = 0.85
"""Weight of the area of oblique planes; planes aligned with the robot or the link are preferred."""
LEAST_LYING = 0.3
"""Minimum sine of the angle between a capsule's axis and the vertical for contact along its side."""
CUT, MOST_CORNERS = 8e-4, 16
"""Maximum width that a polygon may cut off a sole [m], and maximum number of corners; the number has priority."""
POINT = 0.06
"""Ratio of sole length to leg length below which a foot is a point."""
NARROW = 6e-3
"""Width below which a sole is a line, and length below which it is a point [m]."""


@dataclass(frozen=True, eq=False)
class DetectedSole:
    """Sole that was detected in the geometry of a foot.

    Attributes:
        placement: Sole frame in the frame of the joint: origin below the joint, x forward, z up into the foot.
        vertices: (N, 2) in the sole frame [m].
        radius: Radius of a ball foot [m].
        how: Text that states the geometry of the outline.
        cut_off: Largest distance from the polygon to the outline parts that it cuts off [m].
    """

    placement: pin.SE3
    vertices: Array
    radius: float
    how: str
    cut_off: float = 0.0

    @property
    def area(self) -> float:
        """Area of the polygon [m^2]."""
        x, y = self.vertices.T
        return 0.5 * abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def find_sole(
    shapes: Sequence[Shape], down: Array, ahead: Array, frames: Sequence[pin.SE3], leg: float
) -> DetectedSole | None:
    """Return the sole of a foot, or None for a foot without shapes.

    Candidates for its plane are the ground with all joints at 0, planes aligned with the link, and faces of the foot's
    convex hull. The candidate of largest area is chosen; the first two kinds are preferred.

    Args:
        shapes: Shapes of the foot in the frame of the joint.
        down: (3,) downward direction with all joints at 0, in the frame of the joint.
        ahead: (3,) forward direction, likewise.
        frames: Frames of the foot's links in the frame of the joint.
        leg: Length of the leg [m].
    """
    if not shapes:
        return None
    points = np.vstack([outline(shape) for shape in shapes])
    best: tuple[float, DetectedSole] | None = None
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
    """Return candidate normals that point downwards out of the foot, each with a weight and a description."""
    directions = [(down, 1.0, "on the ground with all joints at 0")]
    for frame in (pin.SE3.Identity(), *frames):
        for axis in (*frame.rotation.T, *-frame.rotation.T):
            if axis @ down > MOST_TILTED and axis @ directions[0][0] < 1.0 - 1e-9:
                directions.append((axis, 0.98, "square to its link"))
    for shape in shapes:
        if shape.kind in ("capsule", "cylinder"):
            level = down - (down @ shape.axis) * shape.axis
            if np.linalg.norm(level) > LEAST_LYING:
                directions.append((level / np.linalg.norm(level), PREFERRED, f"along its {shape.kind}"))
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return directions
    normals = hull.equations[:, :3]
    steep = normals[normals @ down > MOST_TILTED]
    for normal in np.unique(np.round(steep, 3), axis=0)[:60]:
        directions.append((normal / np.linalg.norm(normal), PREFERRED, "a face of its hull, oblique to its link"))
    return directions


def _flat(shapes: Sequence[Shape], normal: Array, ahead: Array, how: str, min_length: float) -> DetectedSole:
    """Return the sole of all points that are lowest along ``normal``, which points out of the foot.

    A sole shorter than ``min_length`` [m] in both directions is a point.
    """
    parts = [_underside(shape, normal) for shape in shapes]
    points = np.vstack(parts)
    radii = np.concatenate([np.full(len(part), shape.radius) for part, shape in zip(parts, shapes, strict=True)])
    heights = points @ normal + radii
    lowest = float(heights.max())
    in_plane = heights > lowest - FLAT
    z = -normal
    x = ahead - (ahead @ z) * z
    x /= np.linalg.norm(x)
    rotation = np.column_stack([x, np.cross(z, x), z])
    placement = pin.SE3(rotation, lowest * normal)
    flat = (points[in_plane] @ rotation)[:, :2]
    vertices = outline_of(flat)
    if np.ptp(vertices, axis=0).max() < min_length:
        vertices = vertices.mean(axis=0)[None]
    cut_off = 0.0
    if len(vertices) > 2:
        edges = np.roll(vertices, -1, axis=0) - vertices
        outward = np.column_stack([edges[:, 1], -edges[:, 0]]) / np.linalg.norm(edges, axis=1)[:, None]
        cut_off = float((np.einsum("ij,kij->ki", outward, flat[:, None] - vertices)).max())
    radius = float(radii[in_plane].max()) if len(vertices) == 1 else 0.0
    if len(vertices) == 1 and radius > 0.0:
        # In robot.yaml, the vertex is the centre of the ball; the contact point is one radius below it.
        placement = placement * pin.SE3(np.eye(3), np.array([0.0, 0.0, radius]))
    return DetectedSole(placement, vertices, radius, how, cut_off)


def _underside(shape: Shape, normal: Array) -> Array:
    """Return the points (n, 3) of a shape that can touch a plane with this normal, without the radii of balls.

    A cylinder on its side touches along a line through the lowest point of each of its rings.
    """
    level = normal - (normal @ shape.axis) * shape.axis
    inclination = float(np.linalg.norm(level))
    if shape.ring == 0.0 or inclination < LEAST_LYING:
        return outline(shape)
    return shape.points + shape.ring / inclination * level


def outline_of(flat: Array) -> Array:
    """Return the corners (N, 2) of points (n, 2) [m], counter-clockwise: a polygon, a line or a point."""
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
    return _simplified(np.array(work[:count]))


def _simplified(corners: Array) -> Array:
    """Return a convex polygon (N, 2) with fewer corners that cuts off at most ``CUT`` of the original.

    It may cut off more if there would be more than ``MOST_CORNERS`` corners. Corners are removed one by one, each time
    the one with the smallest resulting cut.
    """
    remaining, count = list(range(len(corners))), len(corners)

    def cut_depth(i: int) -> float:
        """Return the distance of the original corners to the edge that replaces corner ``i`` [m]."""
        first, last = remaining[i - 1], remaining[(i + 1) % len(remaining)]
        between = corners[(first + 1 + np.arange((last - first - 1) % count)) % count] - corners[first]
        x, y = corners[last] - corners[first]
        return float(np.abs(between @ [y, -x]).max() / np.hypot(x, y))

    while len(remaining) > 3:
        depths = [cut_depth(i) for i in range(len(remaining))]
        cheapest = int(np.argmin(depths))
        if depths[cheapest] > CUT and len(remaining) <= MOST_CORNERS:
            break
        del remaining[cheapest]
    return corners[remaining]


def upright_sole(sole: Sole, place: pin.SE3, ahead: Array) -> tuple[pin.SE3, Array]:
    """Return placement and vertices (N, 2) of a point or line foot, with z up in the standing posture.

    These soles have no normal of their own. Without the normal of the standing posture, the loader would tilt them.

    Args:
        sole: A point or line foot.
        place: Pose of its joint in the world in the standing posture.
        ahead: (3,) forward direction in the world.

    Returns:
        The sole frame in the frame of the joint, with its origin at the mean of the vertices, and the vertices in it.
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


def sole_from_inertia(body: pin.Inertia, down: Array, ahead: Array, leg: float) -> DetectedSole:
    """Return the underside of the box with the inertia of a foot, for feet without geometry.

    Args:
        body: Inertia of the foot in the frame of the joint.
        down, ahead: (3,) in the frame of the joint.
        leg: Length of the leg [m]. The foot is at most 0.3 of it long, 0.15 wide and 0.1 thick.
    """
    x = ahead - (ahead @ down) * down
    x /= np.linalg.norm(x)
    rotation = np.column_stack([x, np.cross(-down, x), -down])
    rotated = rotation.T @ body.inertia @ rotation
    second = np.maximum(0.5 * np.trace(rotated) - np.diag(rotated), 1e-9)
    half = np.minimum(np.sqrt(3.0 * second / max(body.mass, 1e-6)), np.array([0.15, 0.075, 0.05]) * leg)
    half = np.maximum(half, 0.005)
    centre = rotation.T @ body.lever
    signs = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    height = float(body.lever @ down) + half[2]
    return DetectedSole(pin.SE3(rotation, height * down), centre[:2] + signs * half[:2], 0.0, "a box of its inertia")
