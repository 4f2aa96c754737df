"""Free bodies from URDF files, and collision shapes from a robot's links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.config import together
from bipedsim.errors import ConfigError
from bipedsim.model import Shape, read_shapes
from bipedsim.numerics import Array
from bipedsim.objects.shapes import ObjectShape, ball, cylinder, hull


class BodyProperties(NamedTuple):
    """Properties of a body in a URDF file.

    Attributes:
        mass: [kg].
        inertia: (3, 3) about the centre of mass, in the axes of its frame [kg.m^2].
        com: (3,) centre of mass in its frame [m].
        shapes: Collision shapes.
    """

    mass: float
    inertia: Array
    com: Array
    shapes: tuple[ObjectShape, ...]


def read_body(path: Path) -> BodyProperties:
    """Return the body of a URDF without moving joints.

    Raises:
        ConfigError: The file cannot be read, or has moving joints, no mass, no shape or invalid shapes.
    """
    try:
        xml = path.read_text(encoding="utf-8")
        model = pin.buildModelFromXML(xml, pin.JointModelFreeFlyer())
    except (OSError, UnicodeDecodeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"cannot be read as a URDF ({error})", path) from error
    if model.njoints != 2:
        moving = ", ".join(list(model.names)[2:])
        raise ConfigError(f"an object has no joints that move, this one has {moving}; make them fixed", path)
    inertia = model.inertias[1]
    if not inertia.mass > 0.0:
        raise ConfigError("the body has no mass. Add an <inertial>", path)
    if not np.linalg.eigvalsh(inertia.inertia).min() > 0.0:
        raise ConfigError(f"the inertia {inertia.inertia.tolist()} is not positive. Define all of its moments", path)
    collision = read_shapes(model, xml, path)
    together([ConfigError(str(warning)) for warning in collision.warnings])
    shapes = tuple(part for shape in collision.shapes for part in parts_of(shape))
    if not shapes:
        raise ConfigError("the body has no <collision>, so it would make no contact", path)
    return BodyProperties(float(inertia.mass), np.array(inertia.inertia), np.array(inertia.lever), shapes)


def parts_of(shape: Shape) -> list[ObjectShape]:
    """Return the shapes of a link in the frame of its joint; a capsule becomes a cylinder and two balls."""
    parts: list[ObjectShape] = []
    if shape.kind in ("sphere", "capsule"):
        parts += [replace(ball(shape.radius), centre=point) for point in shape.points]
    if shape.kind in ("cylinder", "capsule"):
        one, two = shape.points
        radius = shape.ring if shape.kind == "cylinder" else shape.radius
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), np.asarray(shape.axis)).toRotationMatrix()
        rod = cylinder(radius, float(np.linalg.norm(two - one)))
        parts.append(replace(rod, centre=0.5 * (one + two), rotation=turn))
    if shape.kind in ("box", "hull"):
        parts.append(hull(shape.points, f"link {shape.name!r}"))
    return parts
