"""Export the reduced model of a robot as URDF, for engines without another format."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim_studies.bench.engines import not_supported, sole_box
from bipedsim_studies.bench.joints import single_axis

ROOT_LINK = "root_link"
UNLIMITED = "1e6"


def link_name(robot: Robot, joint_id: int) -> str:
    """Return the name of the child link of a joint."""
    return ROOT_LINK if joint_id == 1 else f"{robot.model.names[joint_id]}_link"


def urdf(robot: Robot, soles: bool, reflected_inertia: bool = False) -> str:
    """Return the URDF: links, joints with damping and without limits, and optionally the soles as boxes.

    Args:
        robot: The robot.
        soles: Whether to add a collision box per sole, for engines that read contacts from the URDF.
        reflected_inertia: Whether to add the reflected inertia of a joint to its link, for engines without armature.
            It is modelled as a thin disc about the axis, since engines reject inertias that no body can have. This
            makes no difference at rest. In motion, it also affects the parents of the link.

    Raises:
        EngineUnavailableError: A joint or a sole cannot be represented.
    """
    model = robot.model
    root = ET.Element("robot", name=robot.name)
    links: list[ET.Element] = []
    for j in range(1, model.njoints):
        link = ET.SubElement(root, "link", name=link_name(robot, j))
        links.append(link)
        rotor = np.zeros((3, 3))
        if j > 1:
            kind, axis = single_axis(model, j)
            i = model.joints[j].idx_v
            if reflected_inertia:
                if kind == "prismatic" and model.armature[i] > 0.0:
                    raise not_supported(f"reflected inertia of the prismatic joint {model.names[j]!r}")
                rotor = 0.5 * float(model.armature[i]) * (np.eye(3) + np.outer(axis, axis))
            joint = ET.SubElement(root, "joint", name=model.names[j], type=kind)
            ET.SubElement(joint, "parent", link=link_name(robot, model.parents[j]))
            ET.SubElement(joint, "child", link=link_name(robot, j))
            _origin(joint, model.jointPlacements[j])
            ET.SubElement(joint, "axis", xyz=_text(axis))
            ET.SubElement(joint, "dynamics", damping=_text([robot.joint_damping[i]]))
            ET.SubElement(joint, "limit", lower="-1e6", upper=UNLIMITED, effort=UNLIMITED, velocity=UNLIMITED)
        _inertial(link, model.inertias[j], rotor)
    for sole in robot.soles if soles else ():
        box = sole_box(sole)
        collision = ET.SubElement(links[sole.joint_id - 1], "collision", name=sole.name)
        _origin(collision, box.placement_joint_box)
        ET.SubElement(ET.SubElement(collision, "geometry"), "box", size=_text(box.size))
    ET.indent(root)  # Bullet's parser fails on long lines.
    return ET.tostring(root, encoding="unicode")


def _inertial(link: ET.Element, inertia: pin.Inertia, rotor: Any) -> None:
    element = ET.SubElement(link, "inertial")
    _origin(element, pin.SE3(np.eye(3), inertia.lever))
    ET.SubElement(element, "mass", value=_text([inertia.mass]))
    m = inertia.inertia + rotor
    pairs = {"ixx": m[0, 0], "ixy": m[0, 1], "ixz": m[0, 2], "iyy": m[1, 1], "iyz": m[1, 2], "izz": m[2, 2]}
    ET.SubElement(element, "inertia", {name: _text([value]) for name, value in pairs.items()})


def _origin(element: ET.Element, placement: pin.SE3) -> None:
    rpy = pin.rpy.matrixToRpy(placement.rotation)
    ET.SubElement(element, "origin", xyz=_text(placement.translation), rpy=_text(rpy))


def _text(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)
