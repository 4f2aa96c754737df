"""Read hardware parameters from a preset or a mapping, check them, and apply them to a robot."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bipedsim.config import from_mapping, in_braces, numbers_per_joint, read_yaml
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model.presets import IDEAL, PRESETS, HardwareParams, PlantParams
from bipedsim.model.robot import Robot


def read_hardware(spec: str | Mapping[str, Any], robot: Robot) -> HardwareParams:
    """Return the hardware parameters that ``spec`` defines for ``robot``.

    Args:
        spec: Name of a preset, or parameters that override the preset in their key ``preset`` (default: ideal).
            Parameters are a mapping, YAML text in braces, or the path of a YAML file.
        robot: The robot; its robot.yaml can extend the presets.

    Raises:
        UnknownNameError: The preset, a parameter or a joint does not exist.
        ConfigError: A value is wrong.
    """
    where = "hardware"
    if isinstance(spec, str):
        text = spec.strip()
        if text in PRESETS:
            spec = {"preset": text}
        elif (mapping := in_braces(text, where)) is not None:
            spec = mapping
        elif text.endswith((".yaml", ".yml")):
            where, spec = text, read_yaml(Path(text))
    if not isinstance(spec, Mapping):
        alternatives = "{preset: NAME, PARAMETER: VALUE}, or the path of a YAML file"
        raise UnknownNameError("hardware", str(spec), PRESETS, otherwise=alternatives)
    parameters = dict(spec)
    preset = parameters.pop("preset", IDEAL)
    if not isinstance(preset, str) or preset not in PRESETS:
        raise UnknownNameError("preset", str(preset), PRESETS, where)
    values = {**PRESETS[preset], **robot.hardware.get(preset, {}), **parameters}
    return _checked(values, robot.joint_names, where)


def check_presets(
    presets: Mapping[str, Mapping[str, Any]], joints: Sequence[str], where: str
) -> dict[str, dict[str, Any]]:
    """Check and return the key ``hardware`` of a robot.yaml.

    Args:
        presets: Preset to the parameters that this robot changes.
        joints: Actuated joints.
        where: File and key, for messages.

    Raises:
        UnknownNameError, ConfigError: As for :func:`read_hardware`.
    """
    for name, values in presets.items():
        if name not in PRESETS:
            raise UnknownNameError("preset", str(name), PRESETS, where)
        if name == IDEAL:
            raise ConfigError("the ideal hardware is the same for every robot. Omit it", f"{where}.ideal")
        _checked({**PRESETS[name], **values}, joints, f"{where}.{name}")
    return {name: dict(values) for name, values in presets.items()}


def _checked(values: Mapping[str, Any], joints: Sequence[str], where: str) -> HardwareParams:
    params = from_mapping(HardwareParams, values, where)
    for key in ("coulomb_friction", "viscous_friction"):
        numbers_per_joint(getattr(params, key), joints, f"{where}: {key}")
    return params


def differs(params: HardwareParams, part: type) -> bool:
    """Return whether any parameter of ``part``, a base class of :class:`HardwareParams`, is not ideal."""
    return any(getattr(params, f.name) != f.default for f in dataclasses.fields(part))


def perturbed(robot: Robot, params: PlantParams) -> Robot:
    """Return ``robot`` with the mass changes of ``params``; the same object if there are none."""
    if params.mass_scale != 1.0:
        robot = robot.with_mass_scale(params.mass_scale)
    if any(params.com_shift):
        robot = robot.with_com_shift(params.com_shift)
    return robot
