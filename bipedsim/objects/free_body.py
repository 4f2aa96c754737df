"""Properties of a free rigid body, and of a robot link that it may touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import Array, zeros_of
from bipedsim.objects.bodies import Bodies
from bipedsim.objects.shapes import ObjectShape


@dataclass(frozen=True, eq=False)
class FreeBody:
    """Properties and initial state of a free rigid body.

    Attributes:
        name: Its name.
        mass: [kg].
        inertia: (3, 3) about the centre of mass in the axes of the body [kg.m^2].
        com: (3,) centre of mass in the frame of the body [m].
        shapes: Collision shapes.
        friction_static, friction_dynamic, restitution: Coefficients of its surface.
        ground_restitution: Restitution on the ground.
        pose: (7,) initial pose of its frame in the world: position [m], quaternion x y z w.
        twist: (6,) initial velocity of the origin of its frame [m/s] and angular velocity [rad/s], in the world.
    """

    name: str
    mass: float
    inertia: Array
    com: Array
    shapes: tuple[ObjectShape, ...]
    friction_static: float
    friction_dynamic: float
    restitution: float
    ground_restitution: float
    pose: Array
    twist: Array

    @property
    def reach(self) -> float:
        """Maximum distance of a point of the body from its centre of mass [m]."""
        return max(float(np.linalg.norm(shape.centre - self.com)) + shape.bound for shape in self.shapes)


@dataclass(frozen=True, eq=False)
class Link:
    """Robot link that free bodies may touch.

    Attributes:
        name: Its name.
        joint: Number of the joint that carries it.
        shapes: Collision shapes in the frame of that joint.
        friction: Coulomb's coefficient.
    """

    name: str
    joint: int
    shapes: tuple[ObjectShape, ...]
    friction: float


def bodies_of(free: Sequence[FreeBody], n_links: int, gravity: Array) -> Bodies:
    """Return the arrays of ``free`` bodies and of the links of a robot, before they have a pose."""
    coms, reach = np.array([body.com for body in free]), np.array([body.reach for body in free])
    sizes = {"N": len(free), "A": len(free) + n_links}
    b = zeros_of(Bodies, sizes, com=coms, reach=reach, gravity=np.array(gravity))
    for i, body in enumerate(free):
        b.mass[i] = body.mass
        b.inertia[i] = body.inertia
        b.moments[i], b.principal[i] = _principal(body.inertia)
    return b


def frame_poses(b: Bodies) -> Array:
    """Return the poses (N, 7) of the frames of free bodies in the world: position [m], quaternion x y z w."""
    free = slice(len(b.com))
    return np.hstack([b.position[free] - np.einsum("nij,nj->ni", b.R[free], b.com), b.quaternion])


def frame_twists(b: Bodies) -> Array:
    """Return the velocities (N, 6) of the frames of free bodies, linear and angular, in their own axes."""
    free = slice(len(b.com))
    R, w = b.R[free], b.w[free]
    linear = b.v[free] - np.cross(w, np.einsum("nij,nj->ni", R, b.com))
    return np.hstack([np.einsum("nji,nj->ni", R, linear), np.einsum("nji,nj->ni", R, w)])


def _principal(inertia: Array) -> tuple[Array, Array]:
    """Return principal moments (3,), the most similar two first, and their axes (3, 3) as right-handed columns."""
    if np.count_nonzero(inertia - np.diag(np.diagonal(inertia))) == 0:
        moments, axes = np.diagonal(inertia).copy(), np.eye(3)
    else:
        moments, axes = np.linalg.eigh(inertia)
    unlike = [abs(moments[(k + 1) % 3] - moments[(k + 2) % 3]) / moments.max() for k in range(3)]
    last = int(np.argmin(unlike))
    order = [(last + 1) % 3, (last + 2) % 3, last]
    axes = axes[:, order]
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return moments[order], axes
