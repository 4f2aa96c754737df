"""Define the bodies that can collide in a scene, from the same description for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.dynamics import BodyPoints
from bipedsim.ground import Ground
from bipedsim.model import Robot, Shape, read_hardware
from bipedsim.numerics import Array, Flags
from bipedsim.objects import ObjectConfig

SOLE_CLEARANCE = 0.005
"""Height above the sole [m] to which the points of the foot's link that the sole represents are lifted."""


@dataclass(frozen=True)
class Scene:
    """Contacts in addition to those of the soles: bodies of the robot, joint limits and objects.

    Attributes:
        objects: Free rigid bodies; balls and boxes.
    """

    objects: tuple[ObjectConfig, ...] = ()


@dataclass(frozen=True)
class BodyShape:
    """A shape of a body of the robot, without the parts that a sole represents.

    Attributes:
        name: Unique name.
        joint_id: Joint that moves the body.
        kind: sphere, capsule, cylinder, box or hull.
        size: Radius; radius and half length; half edge lengths; empty for a hull [m].
        placement: Pose of the shape in the frame of the joint; its axis is z.
        vertices: (n, 3) of a hull, in the frame of the joint [m].
    """

    name: str
    joint_id: int
    kind: str
    size: tuple[float, ...]
    placement: pin.SE3
    vertices: Array


def body_friction(robot: Robot) -> float:
    """Return Coulomb's coefficient of the robot's bodies on the ground."""
    return float(read_hardware("ideal", robot).body_friction)


def body_shapes(robot: Robot) -> list[BodyShape]:
    """Return the shapes with which bipedsim detects contacts of the robot's bodies with the ground."""
    shapes = robot.shapes.shapes
    points = BodyPoints.of_robot(robot, shapes, Ground.flat().arrays(), 1e-3)
    result = []
    for i, shape in enumerate(shapes):
        kept = points.point[points.shape == i]
        if len(kept):
            free = (np.abs(shape.points[:, None] - kept).max(axis=2) == 0.0).any(axis=1)
            result.append(_body_shape(robot, shape, f"shape {i} of {shape.name}", free))
    return result


def _body_shape(robot: Robot, shape: Shape, name: str, free: Flags) -> BodyShape:
    """Return the part of a shape whose points are ``free`` of the soles."""
    points, none = shape.points, np.zeros((0, 3))
    if shape.kind == "sphere" or (shape.kind == "capsule" and not free.all()):
        placement = pin.SE3(np.eye(3), points[free][0])
        return BodyShape(name, shape.joint_id, "sphere", (shape.radius,), placement, none)
    if shape.kind in ("capsule", "cylinder"):
        half = 0.5 * float(np.linalg.norm(points[0] - points[1]))
        rotation = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), shape.axis).matrix()
        placement = pin.SE3(rotation, points.mean(axis=0))
        return BodyShape(name, shape.joint_id, shape.kind, (shape.radius + shape.ring, half), placement, none)
    if shape.kind == "box" and free.all():
        edges = points[[4, 2, 1]] - points[0]
        lengths = np.linalg.norm(edges, axis=1)
        placement = pin.SE3((edges / lengths[:, None]).T, points.mean(axis=0))
        return BodyShape(name, shape.joint_id, "box", tuple(0.5 * lengths), placement, none)
    vertices = _lifted(robot, shape.joint_id, points, free)
    return BodyShape(name, shape.joint_id, "hull", (), pin.SE3.Identity(), vertices)


def _lifted(robot: Robot, joint_id: int, points: Array, free: Flags) -> Array:
    """Return points (n, 3) of which those of a sole are ``SOLE_CLEARANCE`` above it, so that they cannot support it."""
    lifted = points.copy()
    for sole in robot.soles:
        if sole.joint_id == joint_id:
            rotation, origin = sole.placement_joint_sole.rotation, sole.placement_joint_sole.translation
            local = (lifted[~free] - origin) @ rotation
            local[:, 2] = np.maximum(local[:, 2], SOLE_CLEARANCE)
            lifted[~free] = local @ rotation.T + origin
    return lifted


def object_mass(config: ObjectConfig) -> tuple[float, Array]:
    """Return mass [kg] and principal moments of inertia (3,) [kg m^2] of an object."""
    body = config.make()
    return float(body.mass), np.diag(body.inertia).copy()


def box_heap(number: int, side: float, mass: float, position: Sequence[float]) -> tuple[ObjectConfig, ...]:
    """Return cubes that fall into a heap.

    Args:
        number: Number of cubes.
        side, mass: Edge length [m] and mass [kg] of each.
        position: (2,) centre of the heap on the ground [m].
    """
    rng = np.random.default_rng(0)
    objects = []
    for i in range(number):
        layer, place = divmod(i, 4)
        # Every other layer is shifted, so that its cubes land on edges.
        shift = 0.4 * (layer % 2)
        corner = np.array([1.0 if place % 2 else -1.0, 1.0 if place < 2 else -1.0])
        x, y = np.asarray(position) + side * (0.75 * corner + shift + rng.uniform(-0.05, 0.05, 2))
        z = side * (0.8 + 1.4 * layer)
        objects.append(
            ObjectConfig(
                name=f"box{i}",
                shape="box",
                mass=mass,
                size=(side, side, side),
                position=(float(x), float(y), z),
                rpy=tuple(rng.uniform(-0.2, 0.2, 3).tolist()),
            )
        )
    return tuple(objects)
