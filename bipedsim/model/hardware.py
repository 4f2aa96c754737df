"""Read hardware parameters from a preset or a mapping, check them, and apply them to a robot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.config import PerJoint, check_all, from_mapping, in_braces, numbers_per_joint, read_yaml
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model.inertia import inertia_problem, mass_matrix_problem
from bipedsim.model.presets import IDEAL, PRESETS, HardwareParams, InertialConfig, PlantParams
from bipedsim.model.robot import Robot
from bipedsim.model.schema import InertiaConfig
from bipedsim.model.urdf import inertia_matrix, inertia_values
from bipedsim.numerics import Array

_PER_JOINT = ("torque_gain", "torque_offset", "coulomb_friction", "viscous_friction", "encoder_offset", "armature")
"""Parameters with one number for all joints, or one per joint."""
_FILES = (".yaml", ".yml")


def hardware_mapping(spec: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return hardware as a mapping of parameters that override the preset in the key ``preset``.

    Args:
        spec: Name of a preset, a mapping, YAML text in braces, or the path of a YAML file.

    Raises:
        UnknownNameError: There is no such preset.
        ConfigError: Text or file is no mapping.
    """
    if isinstance(spec, str):
        text = spec.strip()
        if text in PRESETS:
            return {"preset": text}
        if (mapping := in_braces(text, "hardware")) is not None:
            return mapping
        if text.endswith(_FILES):
            return read_yaml(Path(text))
    if not isinstance(spec, Mapping):
        alternatives = "{preset: NAME, PARAMETER: VALUE}, or the path of a YAML file"
        raise UnknownNameError("hardware", str(spec), PRESETS, otherwise=alternatives)
    return dict(spec)


def read_hardware(spec: str | Mapping[str, Any], robot: Robot) -> HardwareParams:
    """Return the hardware parameters that ``spec`` defines for ``robot``.

    Args:
        spec: As for :func:`hardware_mapping`. The default preset is ideal.
        robot: The robot; its robot.yaml can extend the presets.

    Raises:
        UnknownNameError: The preset, a parameter, a joint, a foot or a link does not exist.
        ConfigError: A value is wrong.
    """
    parameters = hardware_mapping(spec)
    where = spec.strip() if isinstance(spec, str) and spec.strip().endswith(_FILES) else "hardware"
    preset = parameters.pop("preset", IDEAL)
    if not isinstance(preset, str) or preset not in PRESETS:
        raise UnknownNameError("preset", str(preset), PRESETS, where)
    values = {**PRESETS[preset], **robot.hardware.get(preset, {}), **parameters}
    return _checked(values, robot.model, robot.joint_names, [sole.name for sole in robot.soles], where)


def check_presets(
    presets: Mapping[str, Mapping[str, Any]],
    model: pin.Model,
    joints: Sequence[str],
    feet: Iterable[str],
    where: str,
) -> dict[str, dict[str, Any]]:
    """Check and return the key ``hardware`` of a robot.yaml.

    Args:
        presets: Preset to the parameters that this robot changes.
        model: Model of the robot.
        joints: Actuated joints.
        feet: Feet.
        where: File and key, for messages.

    Raises:
        UnknownNameError, ConfigError: As for :func:`read_hardware`.
    """
    for name, values in presets.items():
        if name not in PRESETS:
            raise UnknownNameError("preset", str(name), PRESETS, where)
        if name == IDEAL:
            raise ConfigError("the ideal hardware is the same for every robot. Omit it", f"{where}.ideal")
        _checked({**PRESETS[name], **values}, model, joints, feet, f"{where}.{name}")
    return {name: dict(values) for name, values in presets.items()}


def _checked(
    values: Mapping[str, Any], model: pin.Model, joints: Sequence[str], feet: Iterable[str], where: str
) -> HardwareParams:
    params = from_mapping(HardwareParams, values, where)
    checks = [partial(numbers_per_joint, getattr(params, key), joints, f"{where}: {key}") for key in _PER_JOINT]
    check_all([*checks, partial(_check_feet, params.foot_wrench_offset, list(feet), where)])
    _bodies(model, params.bodies, where)
    return params


def _check_feet(offsets: Iterable[str], feet: Sequence[str], where: str) -> None:
    for foot in offsets:
        if foot not in feet:
            raise UnknownNameError("foot", foot, feet, f"{where}: foot_wrench_offset")


def body_links(model: pin.Model) -> dict[int, str]:
    """Return the link that each joint moves; all later links of the joint are fixed to it. Joint 0 is the world."""
    links: dict[int, str] = {}
    for frame in model.frames:
        if frame.type == pin.BODY:
            links.setdefault(int(frame.parentJoint), frame.name)
    return links


def _bodies(model: pin.Model, bodies: Mapping[str, InertialConfig], where: str) -> dict[int, pin.Inertia]:
    """Return the inertias that ``bodies`` defines, by the joint that carries the body.

    Raises:
        ConfigError: A link is fixed to another one, whose name its rigid body has, or an inertia is impossible.
        UnknownNameError: A link does not exist.
    """
    carried = {frame.name: int(frame.parentJoint) for frame in model.frames if frame.type == pin.BODY}
    link_of = body_links(model)
    names = [link for joint, link in link_of.items() if joint > 0]
    inertias: dict[int, pin.Inertia] = {}
    for link, body in bodies.items():
        place = f"{where}: bodies.{link}"
        if link not in carried:
            raise UnknownNameError("link", link, names, f"{where}: bodies")
        joint = carried[link]
        if joint == 0:
            raise ConfigError("is fixed to the world, so its mass has no effect. Omit it", f"{where}: bodies", link)
        if link != link_of[joint]:
            raise ConfigError(
                f"is fixed to {link_of[joint]!r}. Use this name, with mass, com and inertia of the whole body",
                f"{where}: bodies",
                link,
            )
        inertias[joint] = _inertia(model.inertias[joint], body, place)
    return inertias


def _inertia(described: pin.Inertia, body: InertialConfig, place: str) -> pin.Inertia:
    """Return ``described`` with the properties that ``body`` replaces."""
    inertia = pin.Inertia(described)
    if body.mass is not None:
        inertia.mass = body.mass
    if not inertia.mass > 0.0:
        raise ConfigError("kg must be positive", f"{place}.mass", inertia.mass)
    if body.com is not None:
        inertia.lever = np.array(body.com)
    if body.inertia:
        inertia.inertia = inertia_matrix(vars(from_mapping(InertiaConfig, body.inertia, f"{place}.inertia")))
    problem = inertia_problem(inertia.mass, inertia.inertia, remedy="")
    if problem:
        raise ConfigError(problem, f"{place}.inertia", inertia_values(inertia.inertia))
    return inertia


def differs(params: HardwareParams, part: type) -> bool:
    """Return whether any parameter of ``part``, a base class of :class:`HardwareParams`, is not ideal."""
    ideal = part()
    return any(getattr(params, f.name) != getattr(ideal, f.name) for f in dataclasses.fields(part))


def joint_values(robot: Robot, values: PerJoint | None, default: float | Array = 0.0) -> Array:
    """Return a parameter per joint as an array (nu,).

    Args:
        robot: The robot.
        values: One number, or a mapping from joint name or regular expression to number.
        default: Value, or values (nu,), of joints that ``values`` leaves out.
    """
    out = np.full(robot.nu, default)
    by_joint = numbers_per_joint(values, robot.joint_names, "hardware")
    for i, joint in enumerate(robot.joint_names):
        out[i] = by_joint.get(joint, out[i])
    return out


def perturbed(robot: Robot, params: PlantParams) -> Robot:
    """Return ``robot`` with the model errors of ``params``; the same object if there are none.

    Raises:
        ConfigError: The robot could move without inertia.
    """
    described = robot
    for joint, inertia in _bodies(robot.model, params.bodies, "hardware").items():
        robot = robot.with_inertia(joint, inertia)
    if params.armature is not None:
        robot = robot.with_armature(joint_values(robot, params.armature, robot.model.armature[robot.idx_v]))
    if robot is not described:
        problem = mass_matrix_problem(robot.model, robot.q_nominal)
        if problem:
            raise ConfigError(problem, "hardware: bodies, armature")
    if any(params.imu_rotation):
        turned = pin.SE3(robot.placement_joint_imu)
        turned.rotation = turned.rotation @ pin.exp3(np.array(params.imu_rotation))
        robot = dataclasses.replace(robot, placement_joint_imu=turned)
    if params.mass_scale != 1.0:
        robot = robot.with_mass_scale(params.mass_scale)
    if any(params.com_shift):
        robot = robot.with_com_shift(params.com_shift)
    return robot
