"""What a free rigid body is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import Array
from bipedsim.objects.shapes import Shape


@dataclass(frozen=True, eq=False)
class FreeBody:
    """A free rigid body.

    Attributes:
        name: Its name.
        mass: [kg].
        inertia: (3, 3) about the centre of mass in the axes of the body [kg.m^2].
        com: (3,) centre of mass in its frame [m].
        shapes: What of it touches.
        friction_static, friction_dynamic, restitution: Of its surface. ground_restitution: The same on the ground.
        pose: (7,) of its frame in the world at the start: position [m], quaternion x y z w.
        twist: (6,) velocity of the origin of its frame [m/s] and angular velocity [rad/s] at the start, in the world.
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
        """How far from its centre of mass any point of it is [m]."""
        return max(float(np.linalg.norm(shape.centre - self.com)) + shape.bound for shape in self.shapes)


@dataclass(frozen=True, eq=False)
class Link:
    """A body of a robot that free bodies may meet.

    Attributes:
        name: Its name.
        joint: Number of the joint that carries it.
        shapes: In the frame of that joint.
        friction: Coulomb's coefficient.
    """

    name: str
    joint: int
    shapes: tuple[Shape, ...]
    friction: float
