"""Read closed chains from MJCF: ``connect`` and ``weld`` in ``equality`` between bodies that are links in the URDF."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pinocchio as pin

from bipedsim.config import read_xml, together
from bipedsim.errors import ConfigError
from bipedsim.model.loops import CONNECT, WELD, Loop
from bipedsim.numerics import Array

WORLD = "world"
FindFrame = Callable[[str, str], pin.Frame]
"""Function from the name of a link, and the location for messages, to its frame."""


def read_equality(path: Path, model: pin.Model, find: FindFrame) -> tuple[list[Loop], list[str]]:
    """Return the loops of an MJCF file, and notes on the parts of ``equality`` that are left out.

    A connect defines its point in the first body. As in MuJoCo, the point in the second body follows from the
    configuration with all joints at 0. The same holds for the pose of a weld without ``relpose``.

    Args:
        path: The file; included files are not read.
        model: Model from the URDF, whose joints have the same zeros as in MJCF.
        find: Finds a link.

    Raises:
        ConfigError: The file cannot be read or has errors; the message lists all of them by element.
    """
    root, _, warnings = read_xml(path)
    if root.tag != "mujoco":
        raise ConfigError(f"the root element is <{root.tag}>, an MJCF file has <mujoco>", path)
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    loops: list[Loop] = []
    left_out = warnings + [f"{path}: <include file={e.get('file')!r}/> is not followed" for e in root.iter("include")]
    faults: list[ConfigError] = []
    for i, element in enumerate(_constraints(root)):
        name = element.get("name") or f"{element.tag}{i}"
        where = f"{path}: <{element.tag} name={name!r}>"
        if element.tag not in (CONNECT, WELD):
            left_out.append(f"{where} is left out, because a loop must be connect or weld")
        elif element.get("active", "true") != "true":
            left_out.append(f"{where} is not active, and left out")
        else:
            try:
                loops.append(_loop(element, name, where, data, find))
            except ConfigError as error:
                faults.append(error)
    together(faults)
    return loops, left_out


def _constraints(root: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for equality in root.findall("equality"):
        yield from equality


def _loop(element: ElementTree.Element, name: str, where: str, data: pin.Data, find: FindFrame) -> Loop:
    if element.get("site1") or element.get("site2"):
        raise ConfigError("between sites, which a URDF lacks. Use body1, body2 and anchor", where)
    if not element.get("body1"):
        raise ConfigError("no body1", where)
    first, second = _body(element.get("body1", ""), where, find), _body(element.get("body2", WORLD), where, find)
    if first[0] == second[0]:
        raise ConfigError("both bodies move with the same joint; a loop is between two bodies", where)
    poses = [data.oMi[joint] * placement for joint, placement in (first, second)]
    relative = poses[1].actInv(poses[0])
    if element.tag == CONNECT:
        point = pin.SE3(np.eye(3), _numbers(element, "anchor", 3, where))
        placements = first[1] * point, second[1] * relative * point
    else:
        pose = _numbers(element, "relpose", 7, where) if element.get("relpose") else np.zeros(7)
        length = float(np.linalg.norm(pose[3:]))
        x, y, z = pose[:3]
        w, i, j, k = pose[3:] / (length or 1.0)
        weld_pose = pin.XYZQUATToSE3(np.array([x, y, z, i, j, k, w])) if length else relative.inverse()
        placements = first[1] * weld_pose, second[1]
    return Loop(name, element.tag, (first[0], second[0]), placements)


def _body(name: str, where: str, find: FindFrame) -> tuple[int, pin.SE3]:
    """Return the joint that moves a body, and the body's frame relative to this joint."""
    if name == WORLD:
        return 0, pin.SE3.Identity()
    frame = find(name, where)
    return int(frame.parentJoint), frame.placement


def _numbers(element: ElementTree.Element, key: str, count: int, where: str) -> Array:
    text = element.get(key, "")
    try:
        values = np.array([float(part) for part in text.split()])
    except ValueError as error:
        raise ConfigError(f"must be {count} numbers", f"{where}: {key}", text) from error
    if len(values) != count or not np.isfinite(values).all():
        raise ConfigError(f"must be {count} finite numbers", f"{where}: {key}", text)
    return values
