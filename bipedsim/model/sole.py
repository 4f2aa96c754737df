"""Define the sole of a foot: the convex polygon that can touch the ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array, Integers

SHORTEST_EDGE = 1e-4
"""Length below which an edge is an error in the data [m]."""
MOST_VERTICES = 64
"""Maximum number of vertices; 64 corners approximate a disc to 0.12 % of its radius."""
CONTAINS_TOLERANCE = 1e-9
"""Width of the boundary that still counts as inside [m]."""


def checked_polygon(vertices: Any, where: str) -> Array:
    """Return ``vertices`` as a strictly convex counter-clockwise polygon.

    A clockwise polygon is reversed and keeps its vertex 0, because both orders describe the same sole. All other
    polygons that are not strictly convex are refused: contact modes are numbered by vertex, and a repair would change
    the numbers.

    Args:
        vertices: (N, 2) in the sole frame [m]; N = 1 is a point foot, N = 2 a line foot.
        where: File and key, for messages.

    Raises:
        ConfigError: Wrong shape, not finite, an edge shorter than 0.1 mm, collinear or self-intersecting vertices, or
            not convex.
    """
    try:
        points = np.array(vertices, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError("must be a list of [x, y] pairs in metres", where, vertices) from error
    if points.ndim != 2 or points.shape[0] < 1 or points.shape[1] != 2:
        raise ConfigError(f"must be a list of [x, y] pairs in metres, got shape {points.shape}", where, vertices)
    if not np.isfinite(points).all():
        raise ConfigError("must be finite", where, vertices)
    n = len(points)
    if n > MOST_VERTICES:
        raise ConfigError(f"are more than {MOST_VERTICES}; remove some; a disc needs no more", f"{where}: number", n)
    if n == 1:
        return points
    edges = np.roll(points, -1, axis=0) - points
    lengths = np.hypot(edges[:, 0], edges[:, 1])
    shortest = int(np.argmin(lengths))
    if lengths[shortest] < SHORTEST_EDGE:
        raise ConfigError(f"{lengths[shortest]:.3g} m from the next vertex. Remove one", f"{where}[{shortest}]")
    if n == 2:
        return points
    directions = edges / lengths[:, None]
    after = np.roll(directions, -1, axis=0)
    sines = directions[:, 0] * after[:, 1] - directions[:, 1] * after[:, 0]
    cosines = np.einsum("ij,ij->i", directions, after)
    turning = float(np.sum(np.arctan2(sines, cosines)))
    if turning < 0.0:
        reverse = np.roll(points[::-1], 1, axis=0)
        return checked_polygon(reverse, where)
    straight = np.flatnonzero(np.abs(sines) < 1e-6)
    if len(straight):
        corner = (int(straight[0]) + 1) % n
        raise ConfigError("on the line through its neighbours (degenerate polygon). Remove it", f"{where}[{corner}]")
    if (sines < 0.0).any():
        corner = (int(np.flatnonzero(sines < 0.0)[0]) + 1) % n
        raise ConfigError("makes a dent; use the convex hull, in order around it", f"{where}[{corner}]", points[corner])
    if turning > 3.0 * np.pi:
        raise ConfigError("the polygon intersects itself. List the vertices in order around it", where)
    return points


@dataclass(frozen=True, eq=False)
class Sole:
    """A planar convex polygon fixed to a link, with the friction of its contact.

    Attributes:
        name: Name of the foot, such as ``"left"``.
        frame: URDF frame in which the sole frame is placed.
        joint_id: pinocchio index of the joint that moves the foot.
        placement_joint_sole: Sole frame in the frame of that joint; z is the normal and points up into the foot.
        vertices: (N, 2) in the sole frame [m], strictly convex, counter-clockwise seen from +z. N = 1 is a point foot,
            N = 2 a line foot.
        friction_static: Coulomb coefficient while sticking.
        friction_dynamic: Coulomb coefficient while sliding, at most ``friction_static``.
        radius: Radius of a ball around the only vertex [m], 0 for none. The contact point is one radius below the
            vertex along the ground normal, so the ball rolls.
        passes_ground: Replaces the knee of a straight leg. A lifted foot ignores the ground until it comes down at
            least this far in front of all other feet along its own x axis [m]. 0 for a foot that always meets the
            ground.
        load_cell: Whether the foot's sensor is a load cell in the sole, with all mass above it, instead of a sensor at
            the joint that moves the foot.
    """

    name: str
    frame: str
    joint_id: int
    placement_joint_sole: pin.SE3
    vertices: Array
    friction_static: float
    friction_dynamic: float
    radius: float = 0.0
    passes_ground: float = 0.0
    load_cell: bool = False

    @property
    def n_vertices(self) -> int:
        """Number of vertices N."""
        return len(self.vertices)

    @property
    def centre(self) -> Array:
        """(2,) mean of the vertices [m], in the sole frame."""
        return self.vertices.mean(axis=0)

    @property
    def vertices_joint(self) -> Array:
        """(N, 3) vertices [m] in the frame of the parent joint."""
        flat = np.column_stack([self.vertices, np.zeros(self.n_vertices)])
        placement = self.placement_joint_sole
        return flat @ placement.rotation.T + placement.translation

    def margin(self, cop: ArrayLike) -> Any:
        """Return the signed distance from ``cop`` to the boundary [m], positive inside; at most 0 for N < 3.

        Args:
            cop: (..., 2) centre of pressure in the sole frame [m]; NaN gives NaN.

        Returns:
            A float for one point, else an array of shape (...).
        """
        p = np.asarray(cop, dtype=np.float64)
        start = self.vertices
        edge = np.roll(start, -1, axis=0) - start
        offset = p[..., None, :] - start
        squared = np.maximum(np.einsum("ij,ij->i", edge, edge), 1e-300)
        along = np.clip(np.einsum("...ij,ij->...i", offset, edge) / squared, 0.0, 1.0)
        gap = offset - along[..., None] * edge
        distance = np.sqrt(np.einsum("...ij,...ij->...i", gap, gap)).min(axis=-1)
        if self.n_vertices > 2:
            side = edge[:, 0] * offset[..., 1] - edge[:, 1] * offset[..., 0]
            distance = np.where((side >= 0.0).all(axis=-1), distance, -distance)
        else:
            distance = -distance
        return float(distance) if p.ndim == 1 else distance

    def contains(self, cop: ArrayLike) -> Any:
        """Return whether ``cop`` (..., 2) [m] in the sole frame is inside the polygon or within 1 nm; False for NaN."""
        inside = np.asarray(self.margin(cop)) >= -CONTAINS_TOLERANCE
        return bool(inside) if inside.ndim == 0 else inside


def padded_vertices(soles: Sequence[Sole], capacity: int = 1) -> tuple[Array, Integers]:
    """Return all sole polygons in one array (K, N, 2) [m], N >= ``capacity``, and the vertex counts (K,)."""
    counts = np.array([len(sole.vertices) for sole in soles], dtype=np.int64)
    vertices = np.zeros((len(soles), max(capacity, *counts), 2))
    for k, sole in enumerate(soles):
        vertices[k, : counts[k]] = sole.vertices
    return vertices, counts
