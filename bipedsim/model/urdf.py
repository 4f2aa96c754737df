"""Read URDF text into a pinocchio model; errors are reported in plain text before pinocchio's C++ parser fails."""

from __future__ import annotations

import os
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pinocchio as pin

from bipedsim.config import read_xml, together
from bipedsim.errors import BipedSimError, ConfigError, UnknownNameError
from bipedsim.model.inertia import inertia_problem, nearest_inertia
from bipedsim.numerics import Array

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
MOVABLE = ("revolute", "prismatic")
INERTIA_KEYS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LINK = "\x1flink"
CONTINUOUS = "continuous"
"""Type of a revolute joint without position limits."""

MOVES = (*MOVABLE, CONTINUOUS)
"""Types of joints that move along or about an axis."""
NUMBERS = {
    "mass": ("value",),
    "inertia": INERTIA_KEYS,
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
    "mimic": ("multiplier", "offset"),
}
"""Element of a link or joint to its numeric attributes."""
VECTORS = {"origin": ("xyz", "rpy"), "axis": ("xyz",)}
"""Element to its attributes of three numbers."""
SHORTEST_AXIS = 1e-9
"""Length below which the direction of an axis is undefined."""


def check_urdf(
    root: ElementTree.Element, path: Path, overrides: Mapping[str, Callable[[str], bool]], mend: bool = False
) -> list[str]:
    """Check names, numbers, inertias and joints of a URDF; complete the limits of its joints for pinocchio.

    Args:
        root: The root element. Its joints receive <limit> elements if ``overrides`` define their limits.
        path: The file, for messages.
        overrides, mend: As for :func:`read_urdf`.

    Returns:
        Warnings about single links.

    Raises:
        ConfigError: The file has errors; the message lists all of them by link or joint.
    """
    warnings: list[str] = []
    links = [element.get("name", "") for element in root.findall("link")]
    checks: list[Callable[[], object]] = [partial(_check_names, root, tag, path) for tag in ("link", "joint")]
    checks.append(partial(_check_numbers, root, path))
    checks += [partial(_check_inertial, link, path, mend, warnings) for link in root.findall("link")]
    checks += [partial(_check_joint, joint, links, overrides, path) for joint in root.findall("joint")]
    checks.append(partial(_check_tree, root, links, path))
    faults: dict[str, BipedSimError] = {}
    for check in checks:
        try:
            check()
        except ConfigError as fault:
            # Two checks can find the same fault.
            faults |= {str(one): one for one in fault.faults or (fault,)}
    together(list(faults.values()))
    return warnings


def _check_numbers(root: ElementTree.Element, path: Path) -> None:
    """Check that all numbers of links and joints are finite, and that axes have a direction."""
    faults: list[ConfigError] = []
    owners = [(link, link.findall("inertial/*")) for link in root.findall("link")]
    owners += [(joint, list(joint)) for joint in root.findall("joint")]
    for owner, elements in owners:
        where = f"{path}: {owner.tag} {owner.get('name')!r}"
        for element in elements:
            for key in (key for key in NUMBERS.get(str(element.tag), ()) if element.get(key) is not None):
                try:
                    _float(element, key, where)
                    # urdfdom refuses spaces around a number, and other readers accept them.
                    element.set(key, element.get(key, "").strip())
                except ConfigError as fault:
                    faults.append(fault)
            for key in (key for key in VECTORS.get(str(element.tag), ()) if element.get(key) is not None):
                text = element.get(key, "")
                try:
                    values = np.array([number_in(word) for word in text.split()])
                except ValueError:
                    values = np.full(3, np.nan)
                if values.shape != (3,) or not np.isfinite(values).all():
                    message = "must be three finite numbers"
                elif element.tag == "axis" and owner.get("type") in MOVES and np.linalg.norm(values) < SHORTEST_AXIS:
                    message = "has no direction, so the joint cannot move. Use a unit vector"
                else:
                    continue
                faults.append(ConfigError(message, f"{where}: <{element.tag}> {key}", text))
    together(faults)


def number_in(text: str) -> float:
    """Return the number in a text.

    Raises:
        ValueError: The text is not a number, or has digits that only Python accepts, such as 1_000.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return float(text)


def _float(element: ElementTree.Element, key: str, where: str) -> float:
    text = element.get(key)
    if text is None:
        raise ConfigError(f"<{element.tag}> has no {key}", where)
    try:
        value = number_in(text)
    except ValueError as error:
        raise ConfigError("is not a number", f"{where}: <{element.tag}> {key}", text) from error
    if not np.isfinite(value):
        raise ConfigError("is not finite", f"{where}: <{element.tag}> {key}", text)
    return value


def _check_names(root: ElementTree.Element, tag: str, path: Path) -> None:
    names = Counter(element.get("name", "") for element in root.findall(tag))
    faults = [ConfigError(f"a <{tag}> has no name", path)] if names.pop("", 0) else []
    faults += [
        ConfigError(f"appears {count} times; names must be unique", f"{path}: {tag}", name)
        for name, count in names.items()
        if count > 1
    ]
    together(faults)


def _check_inertial(link: ElementTree.Element, path: Path, mend: bool, warnings: list[str]) -> None:
    """Add warnings about one link; they matter only if the body that it is welded to is also impossible.

    With ``mend``, an impossible inertia is replaced in place by the nearest possible one.
    """
    inertial = link.find("inertial")
    if inertial is None:
        return
    where = f"{path}: link {link.get('name')!r}"
    mass_element, element = inertial.find("mass"), inertial.find("inertia")
    if mass_element is None or element is None:
        raise ConfigError("<inertial> needs <mass> and <inertia>", where)
    mass = _float(mass_element, "value", where)
    values = {key: _float(element, key, where) for key in INERTIA_KEYS}
    if mass < 0.0:
        raise ConfigError("kg is negative", f"{where}: mass", mass)
    inertia = inertia_matrix(values)
    if mass == 0.0 and inertia.diagonal().any():
        warnings.append(f"{where}: inertia without mass")
        return
    problem = inertia_problem(mass, inertia)
    if problem and mend:
        for key, value in inertia_values(nearest_inertia(inertia)).items():
            element.set(key, repr(value))
        problem = f"{problem.partition(';')[0]}; replaced by the nearest possible one"
    if problem:
        warnings.append(f"{where}: {problem}")


def inertia_matrix(values: Mapping[str, float]) -> Array:
    """Return the inertia (3, 3) from its elements ``ixx`` to ``izz``."""
    xx, xy, xz, yy, yz, zz = (values[key] for key in INERTIA_KEYS)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_values(inertia: Array) -> dict[str, float]:
    """Return the elements ``ixx`` to ``izz`` of an inertia (3, 3)."""
    return dict(zip(INERTIA_KEYS, map(float, inertia[np.triu_indices(3)]), strict=True))


def _replace_inertias(root: ElementTree.Element, inertias: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Replace the inertias of links in the file."""
    links = {link.get("name", ""): link for link in root.findall("link")}
    for name, values in inertias.items():
        if name not in links:
            raise UnknownNameError("link", name, links, f"{path}: inertia of robot.yaml")
        element = links[name].find("inertial/inertia")
        if element is None:
            raise ConfigError(f"link {name!r} has no <inertia>, for which robot.yaml has another one", path)
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
        link = _link_of(joint, end)
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
                    f"no limit; write <limit {key}=...> there or `{key}_limit: {{{name}: ...}}` in robot.yaml",
                    f"{where}: {key}",
                )
            limit.set(key, "0")
        _float(limit, key, where)
    if kind == CONTINUOUS:
        return
    for key in ("lower", "upper"):
        if limit.get(key) is not None:
            _float(limit, key, where)
        elif not overrides["position_limit"](name):
            raise ConfigError(
                f"no limit; write <limit {key}=...> or `position_limit: {{{name}: [lower, upper]}}` in robot.yaml",
                f"{where}: {key}",
            )


def _check_tree(root: ElementTree.Element, links: list[str], path: Path) -> None:
    """Check that the joints connect the links to a tree.

    Raises:
        ConfigError: A link has several parents, several links have none, or links are parents of each other.
    """
    # Child to its parents, and to the joints between them.
    parents: dict[str, list[tuple[str, str]]] = {}
    whole = True
    for joint in root.findall("joint"):
        parent, child = (_link_of(joint, end) for end in ("parent", "child"))
        if parent in links and child in links:
            parents.setdefault(child, []).append((parent, joint.get("name", "")))
        else:
            # The joint has its own error, of which the roots are a consequence.
            whole = False
    faults = [
        ConfigError(
            f"is the child of joints {', '.join(joint for _, joint in above)}, and a URDF is a tree. Keep one of them, "
            "and close the chain by `loops` in robot.yaml",
            f"{path}: link",
            link,
        )
        for link, above in parents.items()
        if len(above) > 1
    ]
    roots = [link for link in dict.fromkeys(links) if link and link not in parents]
    if whole and len(roots) > 1:
        faults.append(
            ConfigError(
                "are links that no joint attaches, and a robot has one such link. Attach the others by joints, or "
                "delete them",
                f"{path}: roots",
                roots,
            )
        )
    cyclic: set[str] = set()
    for link in parents:
        chain: list[str] = []
        while link in parents and link not in chain and link not in cyclic:
            chain.append(link)
            link = parents[link][0][0]
        if link in chain:
            cycle = chain[chain.index(link) :]
            names = [parents[member][0][1] for member in cycle]
            cyclic |= set(cycle)
            faults.append(
                ConfigError(
                    f"are links in a cycle of joints {', '.join(reversed(names))}, and a URDF is a tree. Delete one "
                    "of these joints, and close the chain by `loops` in robot.yaml",
                    f"{path}: cycle",
                    cycle[::-1],
                )
            )
    together(faults)


def _link_of(joint: ElementTree.Element, end: str) -> str:
    element = joint.find(end)
    return "" if element is None else element.get("link", "")


@contextmanager
def _captured_stderr() -> Iterator[list[str]]:
    """Collect the output of C++ on file descriptor 2 for error messages."""
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
    """Read ``path`` into a model with all joints of the file.

    Args:
        path: The URDF file; meshes are not read.
        free_flyer: Whether the root link floats or is welded to the world.
        overrides: Key ``effort_limit``, ``velocity_limit`` or ``position_limit`` to a function that returns whether
            robot.yaml defines this limit for a joint.
        inertias: Link to ``ixx`` ... ``izz``, instead of those of the file.
        mend: Whether to replace an impossible inertia of a link by the nearest possible one.

    Returns:
        The model, the text of the file, and warnings about single links.

    Raises:
        ConfigError: The file has errors; the message lists them by link or joint.
    """
    root, text, warnings = read_xml(path)
    if root.tag != "robot":
        raise ConfigError(f"the root element is <{root.tag}>, a URDF has <robot>", path)
    _replace_inertias(root, inertias or {}, path)
    warnings += check_urdf(root, path, overrides, mend)
    continuous = [joint for joint in root.findall("joint") if joint.get("type") == CONTINUOUS]
    for joint in continuous:
        # A revolute joint without limits has one coordinate; pinocchio's continuous joint has a sine and a cosine.
        joint.set("type", "revolute")
    xml = ElementTree.tostring(root, encoding="unicode")
    with _captured_stderr() as printed:
        try:
            model = pin.buildModelFromXML(xml, pin.JointModelFreeFlyer()) if free_flyer else pin.buildModelFromXML(xml)
        except (ValueError, RuntimeError) as error:
            failure: Exception | None = error
        else:
            failure = None
    if failure is not None:
        raise ConfigError(f"not a valid URDF: {'; '.join(printed) or failure}", path) from failure
    lower, upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
    for joint in continuous:
        i = model.joints[model.getJointId(joint.get("name", ""))].idx_q
        lower[i], upper[i] = -np.inf, np.inf
    model.lowerPositionLimit, model.upperPositionLimit = lower, upper
    return model, text, warnings


def welded(model: pin.Model, angles: Mapping[str, float]) -> pin.Model:
    """Return ``model`` with some one-coordinate joints welded.

    Args:
        model: Model from :func:`read_urdf`.
        angles: Joint name to its angle [rad].
    """
    if not angles:
        return model
    q = pin.neutral(model)
    for name, angle in angles.items():
        q[model.joints[model.getJointId(name)].idx_q] = angle
    # pinocchio searches frames by name only, and links may have the same names as joints.
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
