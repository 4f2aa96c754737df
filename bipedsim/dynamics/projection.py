"""Projection of one step of the dynamics on the feet: the input of every contact model."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bipedsim.model import Sole, padded_vertices
from bipedsim.numerics import Array, Flags, Integers, unlimited, zeros_of


class Projection(NamedTuple):
    """Store one step of the dynamics projected on the feet; every step reuses the arrays.

    There are K feet with at most N vertices each. Each foot uses the axes (t1, t2, n) of the ground under it. A
    velocity (u, w) is that of the sole origin [m/s] and the angular velocity of the sole [rad/s].

    Attributes:
        G: (6K, 6K) Delassus matrix J M^-1 J^T.
        w_free: (6K,) velocities (u, w) after the step if no contact acts.
        w_before: (6K,) velocities before the step.
        rotation: (K, 3, 3) sole axes as columns, in ground axes.
        position: (K, 3) sole origins, ground axes [m].
        offsets: (K, N, 3) vertices relative to the sole origin, ground axes [m].
        vertices: (K, N, 2) polygon that can carry load, in the sole frame [m], counter-clockwise: the sole, or the part
            of it that is above the ground.
        n_vertices: (K,) number of vertices of each foot; 0 if there is no ground under it.
        edges: (K, N, 3) edge i as a line: outward unit normal and its offset, a x + b y - c = distance outside [m].
        bias: (6K,) classical acceleration of the sole origin and angular acceleration at constant joint velocities,
            J' v; filled only for models whose forces act within the step.
        mu_static, mu_dynamic: (K,) friction of each foot on the ground under it.
        changed: (K,) change of the ground under the foot since the last step: 0 for none, 1 for another polygon, 2 for
            another plane.
        radius: (K,) of the ball around the only vertex [m], 0 for all other feet. The offset of a ball is its contact
            point, one radius below the vertex. The ball rolls, so the contact point is not fixed to the material.
        previous, n_previous: (K, N, 2), (K,) the polygon of the last step, if it has changed.
        lifted: (K, N) height added to a vertex [m]; models ignore a vertex with a positive value, otherwise it is 0.
        parted: (1,) whether this is the impact or the rest of a divided step. Models then need not separate the
            impact from the rest of the impulse.
        budget: (1,) operations that the solves of this step may still take; see :mod:`bipedsim.numerics.budget`. It is
            unlimited unless the caller sets it at the beginning of each step.
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
        """Allocate a projection for polygons of at least ``capacity`` vertices; fill in the soles, the rest is zero."""
        vertices, counts = padded_vertices(soles, capacity)
        feet, widest = vertices.shape[:2]
        projection = zeros_of(
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
            projection.edges[k, : counts[k]] = edge_lines(sole.vertices)
        return projection


def edge_lines(vertices: Array) -> Array:
    """Return the edges (N, 3) of a counter-clockwise polygon (N, 2) as outward unit normal and offset [m]."""
    along = np.roll(vertices, -1, axis=0) - vertices
    length = np.maximum(np.hypot(along[:, 0], along[:, 1]), np.finfo(float).tiny)
    normal = np.column_stack([along[:, 1], -along[:, 0]]) / length[:, None]
    return np.column_stack([normal, np.einsum("ij,ij->i", normal, vertices)])
