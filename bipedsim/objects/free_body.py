"""Properties of a free rigid body, and of a robot link that it may touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import Array
from bipedsim.objects.shapes import Shape


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
    shapes: tuple[Shape, ...]
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
    shapes: tuple[Shape, ...]
    friction: float
