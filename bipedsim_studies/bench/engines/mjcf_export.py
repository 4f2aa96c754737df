"""Export the reduced model of a robot, its soles, and a scene as MJCF."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot, Sole
from bipedsim.objects import ObjectConfig
from bipedsim_studies.bench.engines.base import SOLE_THICKNESS, EngineUnavailableError, not_supported, sole_box
from bipedsim_studies.bench.engines.scene import BodyShape, Scene, body_friction, body_shapes, object_mass
from bipedsim_studies.bench.joints import single_axis

# Geoms collide if the contype of one and the conaffinity of the other share a bit. The robot does not collide with
# itself.
_GROUND = {"contype": "1", "conaffinity": "0"}
_ROBOT = {"contype": "0", "conaffinity": "3"}
_SOLE = {"contype": "0", "conaffinity": "1"}
_OBJECT = {"contype": "2", "conaffinity": "3"}
_UNLIMITED = 1e3
"""Range of a joint above which it counts as unlimited [rad, m]."""
_POINT = 1e-6
"""Radius of a sphere that represents a point [m]."""


def mjcf(robot: Robot, dt: float, options: Mapping[str, str], scene: Scene | None = None) -> str:
    """Return the MJCF of the robot's reduced model on a plane, with reflected inertia, damping and soles.

    Args:
        robot, dt: The robot, and the step [s].
        options: Attributes of ``<option>``.
        scene: Adds the collision shapes of the bodies, the joint limits, and objects.

    Raises:
        EngineUnavailableError: A joint has more than one axis, or a sole has fewer than three vertices and is no ball.
    """
    model = robot.model
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", inertiafromgeom="false", angle="radian")
    ET.SubElement(root, "option", {"timestep": repr(dt), "gravity": _text(model.gravity.linear), **options})
    asset = ET.SubElement(root, "asset")
    world = ET.SubElement(root, "worldbody")
    # MuJoCo uses the larger friction of two geoms, so that of the ground must not count.
    plane = {"name": "ground", "type": "plane", "size": "0 0 1", "friction": "0 0 0"}
    ET.SubElement(world, "geom", {**plane, **_GROUND})
    bodies = [world]
    for j in range(1, model.njoints):
        name, placement, inertia = model.names[j], model.jointPlacements[j], model.inertias[j]
        if inertia.mass <= 0.0 or np.linalg.eigvalsh(inertia.inertia)[0] <= 0.0:
            raise not_supported("not positive definite: MuJoCo refuses it", f"inertia of link {name!r}")
        body = ET.SubElement(bodies[model.parents[j]], "body", {"name": f"link {name}", **_pose(placement)})
        bodies.append(body)
        _add_inertia(body, inertia)
        if j == 1:
            ET.SubElement(body, "freejoint", name=name)
            continue
        kind, axis = single_axis(model, j)
        i = model.joints[j].idx_v
        joint = {
            "name": name,
            "type": {"revolute": "hinge", "prismatic": "slide"}[kind],
            "axis": _text(axis),
            "armature": repr(float(model.armature[i])),
            "damping": repr(float(robot.joint_damping[i])),
        }
        ET.SubElement(body, "joint", {**joint, **(_limits(model, model.joints[j].idx_q) if scene else {})})
    sensors = ET.SubElement(root, "sensor")
    for sole in robot.soles:
        _add_sole(bodies[sole.joint_id], asset, sole)
        ET.SubElement(
            sensors, "contact", geom1="ground", geom2=sole.name, data="force torque pos", reduce="netforce", num="1"
        )
    if scene:
        friction = body_friction(robot)
        for shape in body_shapes(robot):
            _add_shape(bodies[shape.joint_id], asset, shape, friction)
        for config in scene.objects:
            _add_object(world, config)
    return ET.tostring(root, encoding="unicode")


def _add_inertia(body: ET.Element, inertia: pin.Inertia) -> None:
    moments = inertia.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    mass = repr(float(inertia.mass))
    ET.SubElement(body, "inertial", pos=_text(inertia.lever), mass=mass, fullinertia=_text(moments))


def _limits(model: pin.Model, index: int) -> dict[str, str]:
    lower, upper = model.lowerPositionLimit[index], model.upperPositionLimit[index]
    return {"limited": "true", "range": _text([lower, upper])} if upper - lower < _UNLIMITED else {}


def _add_sole(body: ET.Element, asset: ET.Element, sole: Sole) -> None:
    contact = {**_SOLE, "friction": _friction(sole.friction_static)}
    ET.SubElement(body, "site", name=f"{sole.name} sole", pos=_text(sole.placement_joint_sole.translation))
    if sole.radius > 0.0:
        centre = _text(sole.vertices_joint[0])
        ET.SubElement(
            body, "geom", {"name": sole.name, "type": "sphere", "size": _text([sole.radius]), "pos": centre, **contact}
        )
        return
    try:
        box = sole_box(sole)
    except EngineUnavailableError:
        if sole.n_vertices < 3:
            raise
        corners = np.vstack([np.insert(sole.vertices, 2, z, axis=1) for z in (0.0, SOLE_THICKNESS)])
        ET.SubElement(asset, "mesh", name=sole.name, vertex=_text(corners.ravel()))
        shape = {"type": "mesh", "mesh": sole.name, **_pose(sole.placement_joint_sole)}
    else:
        shape = {"type": "box", "size": _text(0.5 * box.size), **_pose(box.placement_joint_box)}
    ET.SubElement(body, "geom", {"name": sole.name, **shape, **contact})


def _add_shape(body: ET.Element, asset: ET.Element, shape: BodyShape, friction: float) -> None:
    geom = {"name": shape.name, "friction": _friction(friction), **_ROBOT}
    if shape.kind == "hull":
        ET.SubElement(asset, "mesh", name=shape.name, vertex=_text(shape.vertices.ravel()))
        ET.SubElement(body, "geom", {**geom, "type": "mesh", "mesh": shape.name})
    else:
        size = _text(np.maximum(shape.size, _POINT))
        ET.SubElement(body, "geom", {**geom, "type": shape.kind, "size": size, **_pose(shape.placement)})


def _add_object(world: ET.Element, config: ObjectConfig) -> None:
    if config.shape == "ball":
        shape = {"type": "sphere", "size": _text([config.radius])}
    elif config.shape == "box":
        shape = {"type": "box", "size": _text(0.5 * np.array(config.size))}
    else:
        raise not_supported("the adapter knows balls and boxes", f"object {config.name!r}")
    placement = pin.SE3(pin.rpy.rpyToMatrix(*config.rpy), np.array(config.position))
    body = ET.SubElement(world, "body", {"name": config.name, **_pose(placement)})
    mass, moments = object_mass(config)
    ET.SubElement(body, "inertial", pos="0 0 0", mass=repr(mass), diaginertia=_text(moments))
    ET.SubElement(body, "freejoint", name=config.name)
    geom = {"name": config.name, "friction": _friction(config.friction_static), **_OBJECT}
    ET.SubElement(body, "geom", {**geom, **shape})


def _friction(coefficient: float) -> str:
    return f"{coefficient!r} 0.005 0.0001"


def _pose(placement: pin.SE3) -> dict[str, str]:
    x, y, z, w = pin.Quaternion(placement.rotation).coeffs()
    return {"pos": _text(placement.translation), "quat": _text([w, x, y, z])}


def _text(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)
