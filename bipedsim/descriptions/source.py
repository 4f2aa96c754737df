"""Find and read descriptions: URDF, xacro, MJCF, and folders of description packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from copy import deepcopy
from pathlib import Path

import numpy as np
import pinocchio as pin

from bipedsim.config import check_all, parse_xml, read_xml
from bipedsim.descriptions.description import Description, plain
from bipedsim.descriptions.mjcf import read_mjcf
from bipedsim.descriptions.notes import Notes
from bipedsim.errors import ConfigError, some
from bipedsim.model import DESCRIPTIONS, check_shapes, check_urdf, mesh_path

NOT_ROBOTS = re.compile(r"scene|terrain|hand|gripper|arm(?!.*leg)|package\.xml|gazebo|transmission|visual")
"""Names of files in a description package that usually do not contain the whole robot."""
NEGLIGIBLE = 1e-3
"""Mass of a link between world and robot that counts as none, as a fraction of the total mass."""
WORLD = ("world", "map", "odom")
"""Names of a massless root link that belongs to the world, in lower case."""
NEAR = 0.01
"""Distance from a massless root link to the first link with mass that needs no note [m]."""
KNOWN = {"link", "joint", "material", "transmission", "gazebo", "mujoco", "sensor"}
"""URDF elements that the import reads or that are intended for other programs."""


def read_description(file: Path, folder: Path) -> Description:
    """Read a URDF, xacro or MJCF file, or the main description file of a folder.

    Args:
        file: The file, or the folder of a description package.
        folder: Folder for the URDF that is converted from another format.

    Raises:
        ConfigError: The description does not exist, or cannot be read.
    """
    notes = Notes()
    if file.is_dir():
        file = _in_package(file, notes)
    if file.suffix.lower() == ".xacro":
        return _read_urdf(_expanded(file), file, folder, True, notes)
    root, _, warnings = read_xml(file)
    for warning in warnings:
        notes.doubts(warning.removeprefix(f"{file}: "))
    if root.tag == "mujoco":
        return read_mjcf(file, folder, notes)
    if root.tag != "robot":
        raise ConfigError(f"the root element is <{root.tag}>; a URDF has <robot>, an MJCF file <mujoco>", file)
    return _read_urdf(root, file, folder, False, notes)


def _in_package(folder: Path, notes: Notes) -> Path:
    """Return the file with the most joints in a package; MJCF is used only if there is no URDF."""
    ranked = []
    for path in sorted(folder.rglob("*")):
        name = path.name.lower()
        if not name.endswith(DESCRIPTIONS) or not path.is_file():
            continue
        head = path.read_text(encoding="utf-8", errors="replace")
        kind = 0 if "<mujoco" in head[:2000] else 1 if name.endswith(".urdf") else 2
        if kind == 2 and not name.endswith(".urdf.xacro"):
            continue
        joints = len(re.findall(r"<joint[ >]", head))
        ranked.append((not NOT_ROBOTS.search(name), kind == 1, joints, -len(path.name), path))
    if not ranked:
        raise ConfigError("no .urdf, .urdf.xacro or MJCF .xml file in this folder. Name the file", folder)
    ranked.sort(reverse=True)
    chosen = ranked[0][-1]
    remaining = [str(row[-1].relative_to(folder)) for row in ranked[1:]]
    if remaining:
        notes.guessed(f"file: {chosen.relative_to(folder)}, with the most joints; others there: {some(remaining)}")
    return chosen


def _expanded(file: Path) -> ElementTree.Element:
    """Return the output of the program xacro for a file."""
    program = shutil.which("xacro")
    if program is None:
        raise ConfigError(
            "needs the program xacro, which is not installed: pip install xacro, or apt install "
            "ros-$ROS_DISTRO-xacro; or import a URDF generated from it elsewhere",
            file,
        )
    with tempfile.TemporaryDirectory(prefix="bipedsim_xacro_") as prefix:
        _index_packages(file.resolve(), Path(prefix))
        paths = os.pathsep.join(filter(None, (prefix, os.environ.get("AMENT_PREFIX_PATH"))))
        environment = {**os.environ, "AMENT_PREFIX_PATH": paths}
        process = subprocess.run([program, str(file)], capture_output=True, text=True, check=False, env=environment)
    if process.returncode:
        raise ConfigError(f"xacro failed: {process.stderr.strip()[-600:]}", file)
    return parse_xml(process.stdout.replace(prefix + "/share/", "package://"), str(file))


def _index_packages(file: Path, prefix: Path) -> None:
    """Make the packages around ``file`` known to xacro's $(find ...), even if they are not installed."""
    index, share = prefix / "share" / "ament_index" / "resource_index" / "packages", prefix / "share"
    index.mkdir(parents=True)
    own = next((folder for folder in file.parents if (folder / "package.xml").is_file()), file.parent)
    for manifest in [own / "package.xml", *own.parent.glob("*/package.xml")]:
        if manifest.is_file():
            name = read_xml(manifest)[0].findtext("name", "").strip()
            if name and not (share / name).exists():
                (share / name).symlink_to(manifest.parent)
                (index / name).touch()


def _read_urdf(root: ElementTree.Element, source: Path, folder: Path, made: bool, notes: Notes) -> Description:
    name = plain(root.get("name") or source.stem)
    description = Description(name, source, root, source.resolve(), made, notes)
    # The import defines all limits that the file lacks.
    limits = dict.fromkeys(("effort_limit", "velocity_limit", "position_limit"), lambda joint: True)
    check_all((lambda: check_urdf(deepcopy(root), source, limits), lambda: check_shapes(root, source)))
    _weld_followers(description)
    _take_base(description)
    for joint in root.findall("joint"):
        dynamics = joint.find("dynamics")
        if dynamics is not None:
            # Missing attributes are 0 in URDF. URDF has no reflected inertia.
            for key, values in (("damping", description.damping), ("friction", description.friction)):
                values[joint.get("name", "")] = float(dynamics.get(key) or 0.0)
    extra = sorted({e.tag for e in root if isinstance(e.tag, str)} - KNOWN)
    if extra:
        notes.dropped(f"unknown elements of the URDF: {some([f'<{tag}>' for tag in extra])}")
    if description.made:
        description.path = folder / f"{name}.urdf"
        for mesh in root.iter("mesh"):
            path = mesh_path(mesh.get("filename", ""), source.resolve())
            if path is not None:
                mesh.set("filename", f"file://{path}")
    return description


def _weld_followers(description: Description) -> None:
    """Weld joints that mimic another joint, because they have no drive of their own.

    They are welded where they are while the other joint is at 0, or at its limit nearest to 0.
    """
    joints = {joint.get("name", ""): joint for joint in description.urdf.findall("joint")}
    followers = {
        name: mimic
        for name, joint in joints.items()
        if joint.get("type") != "fixed" and (mimic := joint.find("mimic")) is not None
    }

    def angle(name: str, seen: tuple[str, ...] = ()) -> float:
        mimic = followers.get(name)
        if mimic is None or name in seen:
            limit = joints[name].find("limit") if name in joints else None
            if limit is None or joints[name].get("type") not in ("revolute", "prismatic"):
                return 0.0
            low, high = (float(limit.get(key) or 0.0) for key in ("lower", "upper"))
            return min(max(0.0, low), high)
        leader = angle(mimic.get("joint", ""), (*seen, name))
        return float(mimic.get("multiplier") or 1.0) * leader + float(mimic.get("offset") or 0.0)

    texts = []
    for name, mimic in followers.items():
        description.locked[name] = angle(name)
        texts.append(f"{name} at {description.locked[name]:.4g}")
        joints[name].remove(mimic)
    if texts:
        description.notes.dropped(
            f"<mimic>: couplings are not simulated, so these joints are welded [rad, m]: {some(texts)}"
        )


def _take_base(description: Description) -> None:
    """Make the trunk the base: remove the links between world and robot.

    These links are massless and form a chain. Its joints are a floating or planar joint, at least two slides as in a
    planar robot, or fixed, as Gazebo attaches a robot to the world.
    """
    root = description.urdf
    links = {link.get("name", ""): link for link in root.findall("link")}
    joints = root.findall("joint")
    roots = [name for name in links if name not in {_end(joint, "child") for joint in joints}]
    massless = NEGLIGIBLE * sum(map(_mass, links.values()))
    chain: list[ElementTree.Element] = []
    link = roots[0] if len(roots) == 1 else ""
    while link in links and _mass(links[link]) <= massless and len(chain) < len(joints):
        outgoing = [joint for joint in joints if _end(joint, "parent") == link]
        if len(outgoing) != 1:
            break
        chain += outgoing
        link = _end(outgoing[0], "child")
    kinds = [joint.get("type") for joint in chain]
    floats = _mass(links.get(link, root)) > massless and bool(
        {"floating", "planar"} & set(kinds) or kinds.count("prismatic") >= 2
    )
    fixed = chain if set(kinds) == {"fixed"} and _mass(links[link]) > massless else []
    if floats:
        _note_shapes(description, [links[_end(joint, "parent")] for joint in chain])
        for joint in chain:
            root.remove(joint)
            root.remove(links[_end(joint, "parent")])
        description.made = True
        moving = [joint.get("name", "") for joint in chain if joint.get("type") != "fixed"]
        description.notes.found(f"joints {some(moving)} between world and robot are replaced by a floating base")
    elif roots and _mass(links[roots[0]]) <= massless:
        _free_base(description, roots[0], fixed)


def _free_base(description: Description, base: str, chain: list[ElementTree.Element]) -> None:
    """Detach a robot from a massless root link named ``world``; note a massless root that is elsewhere than the trunk.

    If the trunk is tilted in the world, the link remains as an upright base at the trunk.

    Args:
        description: The description, changed in place.
        base: Name of the root link.
        chain: Fixed joints from it to the first link with mass; empty if there are others.
    """
    root, notes = description.urdf, description.notes
    links = {link.get("name", ""): link for link in root.findall("link")}
    pose = pin.SE3.Identity()
    for joint in chain:
        pose = pose * _origin(joint)
    trunk, distance, world = (
        _end(chain[-1], "child") if chain else "",
        np.linalg.norm(pose.translation),
        base.lower() in WORLD,
    )
    if not chain or not world or links[base].find("collision") is not None:
        if world or distance > NEAR:
            away = f", {distance:.3g} m from {trunk!r}" if chain else ""
            notes.guessed(
                f"root: the massless link {base!r}{away}. Delete it and its joint if another link is the base"
            )
        return
    between = [links[_end(joint, "child")] for joint in chain[:-1]]
    tilted = pose.rotation[2, 2] < 1.0 - 1e-12
    _note_shapes(description, between if tilted else [links[base], *between])
    for joint, link in zip(chain[:-1], between, strict=True):
        root.remove(joint)
        root.remove(link)
    if tilted:
        upright = f"{trunk}_upright"
        links[base].set("name", upright)
        for end in chain[-1].findall("parent"):
            end.set("link", upright)
        origin = chain[-1].find("origin")
        origin = ElementTree.SubElement(chain[-1], "origin") if origin is None else origin
        yaw = np.arctan2(pose.rotation[1, 0], pose.rotation[0, 0])
        rpy = pin.rpy.matrixToRpy(pin.rpy.rpyToMatrix(0.0, 0.0, -float(yaw)) @ pose.rotation)
        origin.attrib.update(xyz="0 0 0", rpy=" ".join(f"{angle:.17g}" for angle in rpy))
    else:
        root.remove(chain[-1])
        root.remove(links[base])
    description.made = True
    notes.guessed(f"root: free_flyer; the file fixes {trunk!r} to the world, by the massless link {base!r}")


def _note_shapes(description: Description, links: list[ElementTree.Element]) -> None:
    """Note the shapes of links that are removed between world and trunk."""
    names = [link.get("name", "") for link in links if {"collision", "visual"} & {part.tag for part in link}]
    if names:
        description.notes.dropped(f"shapes of the massless links between world and trunk: {some(names)}")


def _origin(joint: ElementTree.Element) -> pin.SE3:
    """Return the pose of the child of a joint in the parent."""
    origin = joint.find("origin")
    texts = {} if origin is None else origin.attrib
    xyz, rpy = (np.array([float(word) for word in texts.get(key, "0 0 0").split()]) for key in ("xyz", "rpy"))
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)


def _mass(link: ElementTree.Element) -> float:
    mass = link.find("inertial/mass")
    return 0.0 if mass is None else float(mass.get("value") or 0.0)


def _end(joint: ElementTree.Element, end: str) -> str:
    element = joint.find(end)
    return "" if element is None else element.get("link", "")
