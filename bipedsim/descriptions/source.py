"""Find and read descriptions: URDF, xacro, MJCF, and folders of description packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from bipedsim.config import parse_xml, read_text
from bipedsim.descriptions.description import Description, plain
from bipedsim.descriptions.mjcf import read_mjcf
from bipedsim.descriptions.notes import Notes
from bipedsim.errors import ConfigError, some
from bipedsim.model import DESCRIPTIONS, check_numbers, mesh_path

NOT_ROBOTS = re.compile(r"scene|terrain|hand|gripper|arm(?!.*leg)|package\.xml|gazebo|transmission|visual")
"""Names of files in a description package that usually do not contain the whole robot."""
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
    text = read_text(file)
    root = parse_xml(text, str(file))
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
            name = parse_xml(read_text(manifest), str(manifest)).findtext("name", "").strip()
            if name and not (share / name).exists():
                (share / name).symlink_to(manifest.parent)
                (index / name).touch()


def _read_urdf(root: ElementTree.Element, source: Path, folder: Path, made: bool, notes: Notes) -> Description:
    name = plain(root.get("name") or source.stem)
    description = Description(name, source, root, source.resolve(), made, notes)
    check_numbers(root, source)
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
    """Weld joints that mimic another joint, because they have no drive of their own."""
    joints = [joint for joint in description.urdf.findall("joint") if joint.get("type") != "fixed"]
    followers = [joint for joint in joints if joint.find("mimic") is not None]
    for joint in followers:
        mimic = joint.find("mimic")
        assert mimic is not None
        description.locked[joint.get("name", "")] = float(mimic.get("offset") or 0.0)
        joint.remove(mimic)
    if followers:
        names = [joint.get("name", "") for joint in followers]
        description.notes.dropped(f"<mimic> of {some(names)}: couplings are not simulated, so these joints are welded")


def _take_base(description: Description) -> None:
    """Remove a massless world link if a floating or planar joint connects the robot to it."""
    root = description.urdf
    joints = root.findall("joint")
    children = {_end(joint, "child") for joint in joints}
    roots = [link for link in root.findall("link") if link.get("name") not in children]
    for joint in joints:
        if len(roots) == 1 and _end(joint, "parent") == roots[0].get("name") and not _mass(roots[0]):
            siblings = [other for other in joints if _end(other, "parent") == roots[0].get("name")]
            if joint.get("type") in ("floating", "planar") and len(siblings) == 1:
                root.remove(joint)
                root.remove(roots[0])
                description.made = True
                description.notes.found(
                    f"joint {joint.get('name')!r} is the floating base; it becomes the root of robot.yaml"
                )
                return


def _mass(link: ElementTree.Element) -> float:
    mass = link.find("inertial/mass")
    return 0.0 if mass is None else float(mass.get("value") or 0.0)


def _end(joint: ElementTree.Element, end: str) -> str | None:
    element = joint.find(end)
    return None if element is None else element.get("link")
