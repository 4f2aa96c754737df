"""URDF text -> pinocchio model, with every defect said in words before C++ meets it."""

from __future__ import annotations

import os
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pinocchio as pin

from bipedsim.config import read_text, together
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model.inertia import inertia_problem, nearest_inertia
from bipedsim.numerics import Array

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
MOVABLE = ("revolute", "prismatic")
INERTIA_KEYS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LINK = "\x1flink"
TURNS = "continuous"
"""A revolute joint without limits of its position."""

MOVES = (*MOVABLE, TURNS)
"""Types of joints that move along or about their axis."""
NUMBERS = {
    "mass": ("value",),
    "inertia": INERTIA_KEYS,
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
    "mimic": ("multiplier", "offset"),
}
"""Attributes of elements of links and joints that are numbers."""
VECTORS = {"origin": ("xyz", "rpy"), "axis": ("xyz",)}
"""Attributes that are three numbers."""
SHORTEST_AXIS = 1e-9
"""Length below which an axis has no direction."""


def check_numbers(root: ElementTree.Element, path: Path) -> None:
    """Check that all numbers of links and joints are finite numbers, and that axes have a direction.

    Raises:
        ConfigError: All that is wrong, by link or joint.
    """
    faults: list[ConfigError] = []
    owners = [(link, link.findall("inertial/*")) for link in root.findall("link")]
    owners += [(joint, list(joint)) for joint in root.findall("joint")]
    for owner, elements in owners:
        where = f"{path}: {owner.tag} {owner.get('name')!r}"
        for element in elements:
            for key in (key for key in NUMBERS.get(str(element.tag), ()) if element.get(key) is not None):
                try:
                    _float(element, key, where)
                except ConfigError as fault:
                    faults.append(fault)
            for key in (key for key in VECTORS.get(str(element.tag), ()) if element.get(key) is not None):
                text = element.get(key, "")
                try:
                    values = np.array([float(word) for word in text.split()])
                except ValueError:
                    values = np.full(3, np.nan)
                if values.shape != (3,) or not np.isfinite(values).all():
                    said = f"{where}: <{element.tag}> {key} = {text!r} must be three finite numbers"
                elif element.tag == "axis" and owner.get("type") in MOVES and np.linalg.norm(values) < SHORTEST_AXIS:
                    said = f"{where}: <axis> xyz = {text!r} has no direction, so that nothing moves; give a unit vector"
                else:
                    continue
                faults.append(ConfigError(said))
    together(faults)


def _float(element: ElementTree.Element, key: str, where: str) -> float:
    text = element.get(key)
    if text is None:
        raise ConfigError(f"{where}: <{element.tag}> has no {key}")
    try:
        value = float(text)
    except ValueError as error:
        raise ConfigError(f"{where}: <{element.tag}> {key} = {text!r} is no number") from error
    if not np.isfinite(value):
        raise ConfigError(f"{where}: <{element.tag}> {key} = {text!r} is not finite")
    return value


def _names(root: ElementTree.Element, tag: str, path: Path) -> list[str]:
    names = [element.get("name", "") for element in root.findall(tag)]
    for name in names:
        if not name:
            raise ConfigError(f"{path}: a <{tag}> has no name")
        if names.count(name) > 1:
            raise ConfigError(f"{path}: {tag} {name!r} appears {names.count(name)} times; names must be unique")
    return names


def _check_inertial(link: ElementTree.Element, path: Path, mend: bool) -> list[str]:
    """Return what is odd about one link; it matters only if the body it is welded into is impossible too.

    Where it is to be mended, an impossible inertia becomes the nearest possible one in place.
    """
    inertial = link.find("inertial")
    if inertial is None:
        return []
    where = f"{path}: link {link.get('name')!r}"
    mass_element, element = inertial.find("mass"), inertial.find("inertia")
    if mass_element is None or element is None:
        raise ConfigError(f"{where}: <inertial> needs <mass> and <inertia>")
    mass = _float(mass_element, "value", where)
    values = {key: _float(element, key, where) for key in INERTIA_KEYS}
    if mass < 0.0:
        raise ConfigError(f"{where}: mass = {mass} kg is negative")
    inertia = inertia_matrix(values)
    if mass == 0.0 and inertia.diagonal().any():
        return [f"{where}: inertia without mass"]
    problem = inertia_problem(mass, inertia)
    if problem and mend:
        for key, value in inertia_values(nearest_inertia(inertia)).items():
            element.set(key, repr(value))
        return [f"{where}: {problem.partition(';')[0]}; mended to the nearest possible one"]
    return [f"{where}: {problem}"] if problem else []


def inertia_matrix(values: Mapping[str, float]) -> Array:
    """Return the inertia (3, 3) of its elements ``ixx`` to ``izz``."""
    xx, xy, xz, yy, yz, zz = (values[key] for key in INERTIA_KEYS)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_values(inertia: Array) -> dict[str, float]:
    """Return the elements ``ixx`` to ``izz`` of an inertia (3, 3)."""
    return dict(zip(INERTIA_KEYS, map(float, inertia[np.triu_indices(3)]), strict=True))


def _replace_inertias(root: ElementTree.Element, inertias: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Give links other inertias than those of the file."""
    links = {link.get("name", ""): link for link in root.findall("link")}
    for name, values in inertias.items():
        if name not in links:
            raise UnknownNameError("link", name, links, f"{path}: inertia of robot.yaml")
        element = links[name].find("inertial/inertia")
        if element is None:
            raise ConfigError(f"{path}: link {name!r} has no <inertia>, for which robot.yaml has another one")
        for key, value in values.items():
            element.set(key, repr(value))


def _check_joint(
    joint: ElementTree.Element, links: list[str], overrides: Mapping[str, Callable[[str], bool]], path: Path
) -> None:
    name = joint.get("name", "")
    where = f"{path}: joint {name!r}"
    kind = joint.get("type", "")
    if kind not in JOINT_TYPES:
        raise UnknownNameError("joint type", kind, JOINT_TYPES, where)
    for end in ("parent", "child"):
        element = joint.find(end)
        link = "" if element is None else element.get("link", "")
        if link not in links:
            raise UnknownNameError(f"{end} link", link, links, where)
    if kind not in MOVES:
        return
    limit = joint.find("limit")
    if limit is None:
        limit = ElementTree.SubElement(joint, "limit")
    for key in ("effort", "velocity"):
        if limit.get(key) is None:
            if not overrides[f"{key}_limit"](name):
                raise ConfigError(
                    f"{where} has no {key} limit; write <limit {key}=...> there "
                    f"or `{key}_limit: {{{name}: ...}}` in robot.yaml"
                )
            limit.set(key, "0")
        _float(limit, key, where)
    if kind == TURNS:
        return
    for key in ("lower", "upper"):
        if limit.get(key) is not None:
            _float(limit, key, where)
        elif not overrides["position_limit"](name):
            raise ConfigError(
                f"{where} has no {key} limit; write <limit {key}=...> there "
                f"or `position_limit: {{{name}: [lower, upper]}}` in robot.yaml"
            )


@contextmanager
def _captured_stderr() -> Iterator[list[str]]:
    """Collect what C++ prints to file descriptor 2, so that it can be part of an error message."""
    lines: list[str] = []
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            sink.seek(0)
            text = sink.read().decode(errors="replace").splitlines()
            lines += [line.removeprefix("Error:").strip() for line in text if line.startswith("Error:")]


def read_urdf(
    path: Path,
    free_flyer: bool,
    overrides: Mapping[str, Callable[[str], bool]],
    inertias: Mapping[str, Mapping[str, float]] | None = None,
    mend: bool = False,
) -> tuple[pin.Model, str, list[str]]:
    """Read ``path`` into a model with every joint of the file.

    Args:
        path: The URDF file; meshes are not read.
        free_flyer: Whether the root link floats or is welded to the world.
        overrides: ``effort_limit``, ``velocity_limit`` and ``position_limit``: whether robot.yaml has that of a joint.
        inertias: Link to ``ixx`` ... ``izz`` instead of those of the file.
        mend: Whether the inertia of a link that no body can have becomes the nearest possible one.

    Returns:
        The model, the text of the file, and what is odd about single links.

    Raises:
        ConfigError: What is wrong with the file, by link or joint.
    """
    text = read_text(path)
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise ConfigError(f"{path}: not valid XML: {error}") from error
    if root.tag != "robot":
        raise ConfigError(f"{path}: the root element is <{root.tag}>, a URDF has <robot>")
    links = _names(root, "link", path)
    _names(root, "joint", path)
    _replace_inertias(root, inertias or {}, path)
    odd, endless = [], []
    faults: list[ConfigError] = []
    try:
        check_numbers(root, path)
    except ConfigError as fault:
        faults.append(fault)
    for link in root.findall("link"):
        try:
            odd += _check_inertial(link, path, mend)
        except ConfigError as fault:
            faults.append(fault)
    for joint in root.findall("joint"):
        try:
            _check_joint(joint, links, overrides, path)
        except ConfigError as fault:
            faults.append(fault)
        if joint.get("type") == TURNS:
            # As one angle without limits: pinocchio would have its sine and cosine.
            joint.set("type", "revolute")
            endless.append(joint.get("name", ""))
    together(faults)
    xml = ElementTree.tostring(root, encoding="unicode")
    with _captured_stderr() as printed:
        try:
            model = pin.buildModelFromXML(xml, pin.JointModelFreeFlyer()) if free_flyer else pin.buildModelFromXML(xml)
        except (ValueError, RuntimeError) as error:
            failure: Exception | None = error
        else:
            failure = None
    if failure is not None:
        raise ConfigError(f"{path}: not a valid URDF: {'; '.join(printed) or failure}") from failure
    lower, upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
    for name in endless:
        i = model.joints[model.getJointId(name)].idx_q
        lower[i], upper[i] = -np.inf, np.inf
    model.lowerPositionLimit, model.upperPositionLimit = lower, upper
    return model, text, odd


def welded(model: pin.Model, angles: Mapping[str, float]) -> pin.Model:
    """Return ``model`` with joints of one angle welded at theirs [rad].

    Args:
        model: As read.
        angles: Joint name to its angle.
    """
    if not angles:
        return model
    q = pin.neutral(model)
    for name, angle in angles.items():
        q[model.joints[model.getJointId(name)].idx_q] = angle
    # pinocchio looks for frames by name alone, and links may have the names of joints.
    clashing = [frame for frame in model.frames if frame.type == pin.BODY and model.existJointName(frame.name)]
    for frame in clashing:
        frame.name += _LINK
    try:
        reduced = pin.buildReducedModel(model, [model.getJointId(name) for name in angles], q)
    finally:
        for frame in clashing:
            frame.name = frame.name.removesuffix(_LINK)
    for frame in reduced.frames:
        if frame.name.endswith(_LINK):
            frame.name = frame.name.removesuffix(_LINK)
    return reduced
