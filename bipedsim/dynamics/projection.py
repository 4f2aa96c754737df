"""What the feet see of one step of the dynamics."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.model import Sole, padded_vertices
from bipedsim.numerics import Array, Flags, Integers, unlimited, zeros_of


class Projection(NamedTuple):
    """One step of the dynamics as the feet see it; arrays are reused from step to step.

    K feet, N vertices at most; each foot has the axes (t1, t2, n) of the ground under it; (u, w) is the velocity of
    the sole origin [m/s] and its angular velocity [rad/s].

    Attributes:
        G: (6K, 6K) Delassus matrix J M^-1 J^T.
        w_free: (6K,) velocities (u, w) after the step if no contact acts.
        w_before: (6K,) velocities before the step.
        rotation: (K, 3, 3) sole axes as columns, in ground axes.
        position: (K, 3) sole origins, ground axes [m].
        offsets: (K, N, 3) vertices relative to the sole origin, ground axes [m].
        vertices: (K, N, 2) polygon that can carry load, in the sole frame [m], counter-clockwise: the sole, or the part
            of it that is above the ground.
        n_vertices: (K,) how many of the N each foot has; none where it is over nothing.
        edges: (K, N, 3) edge i as a line: outward unit normal and its offset, a x + b y - c = distance outside [m].
        bias: (6K,) classical acceleration of the sole origin and angular acceleration at constant joint velocities,
            J' v; filled only for models whose forces act within the step.
        mu_static, mu_dynamic: (K,) friction of each foot on the ground under it.
        changed: (K,) 0 if what is under the foot is what it was in the last step, 1 if the polygon is another, 2 if the
            plane is.
        radius: (K,) of a ball around the only vertex [m], 0 for all other feet. Its offset is that of the point where
            it touches, a radius below the vertex; it rolls, so that no material point of it stays where it touched.
        previous, n_previous: (K, N, 2), (K,) the polygon of the last step, where it is another.
        lifted: (K, N) added to the height of a vertex [m]: models leave out one that is lifted, else it is 0.
        parted: (1,) whether this is the impact or the rest of a step in which something arrived: nobody asks what of
            the impulse of these parts is impact, so that models need not find out.
        budget: (1,) operations that the solves of this step may still take; see :mod:`bipedsim.numerics.budget`. It is
            unlimited, unless whoever takes the steps sets it at the beginning of each.
    """

    G: Annotated[Array, "6K", "6K"]
    w_free: Annotated[Array, "6K"]
    w_before: Annotated[Array, "6K"]
    bias: Annotated[Array, "6K"]
    rotation: Array
    position: Annotated[Array, "K", 3]
    offsets: Annotated[Array, "K", "N", 3]
    vertices: Array
    n_vertices: Integers
    edges: Annotated[Array, "K", "N", 3]
    mu_static: Array
    mu_dynamic: Array
    changed: Annotated[Integers, "K"]
    radius: Array
    previous: Annotated[Array, "K", "N", 2]
    n_previous: Annotated[Integers, "K"]
    lifted: Annotated[Array, "K", "N"]
    parted: Annotated[Flags, 1]
    budget: Annotated[Integers, 1]

    @classmethod
    def of_soles(cls, soles: tuple[Sole, ...], capacity: int = 1) -> Projection:
        """Return a projection for polygons of at least ``capacity`` vertices, the soles filled in and the rest zero."""
        vertices, counts = padded_vertices(soles, capacity)
        feet, widest = vertices.shape[:2]
        found = zeros_of(
            cls,
            {"K": feet, "N": widest},
            rotation=np.tile(np.eye(3), (feet, 1, 1)),
            vertices=vertices,
            n_vertices=counts,
            mu_static=np.array([sole.friction_static for sole in soles]),
            mu_dynamic=np.array([sole.friction_dynamic for sole in soles]),
            radius=np.array([sole.radius for sole in soles]),
            budget=unlimited(),
        )
        for k, sole in enumerate(soles):
            found.edges[k, : counts[k]] = edge_lines(sole.vertices)
        return found


def edge_lines(vertices: Array) -> Array:
    """Return the edges (N, 3) of a counter-clockwise polygon (N, 2) as outward unit normal and offset [m]."""
    along = np.roll(vertices, -1, axis=0) - vertices
    length = np.maximum(np.hypot(along[:, 0], along[:, 1]), np.finfo(float).tiny)
    normal = np.column_stack([along[:, 1], -along[:, 0]]) / length[:, None]
    return np.column_stack([normal, np.einsum("ij,ij->i", normal, vertices)])
