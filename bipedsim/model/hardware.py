"""What a robot's drives, sensors and masses are like beside the ideal ones: parameters, presets, and how they are read.

:mod:`bipedsim.sim.actuators` and :mod:`bipedsim.sim.noise` do what these parameters say; see docs/hardware.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from bipedsim.config import from_mapping, param, read_yaml
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model.schema import number, numbers_per_joint

if TYPE_CHECKING:
    from bipedsim.model.robot import Robot


@dataclass(frozen=True)
class ActuatorParams:
    """What the drives do to a command; friction is one number, or per joint as in robot.yaml.

    Reflected inertia is none of these: ``armature`` of robot.yaml is in the model, whatever the hardware.
    """

    clip_effort: bool = param(False, "clip commands to the effort limits; the ideal drive trusts its caller to do so")
    corner_speed: float = param(
        0.0, "share of the velocity limit from which the torque that can drive a joint on falls", low=0.0, high=10.0
    )
    no_load_speed: float = param(
        0.0, "share of the velocity limit at which no such torque is left; 0 for no limit", low=0.0, high=20.0
    )
    coulomb_friction: Any = param(0.0, "dry friction of the joints, one number or per joint", unit="N.m")
    presliding: float = param(
        5e-4, "how far a joint at rest gives way before dry friction slips", unit="rad", low=1e-6, high=0.1
    )
    viscous_friction: Any = param(
        0.0, "viscous friction beside joint_damping of robot.yaml, one number or per joint", unit="N.m.s/rad"
    )
    command_delay: float = param(
        0.0, "time from a command to its torque, rounded to whole physics steps", unit="s", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class NoiseParams:
    """What the sensors do to a measurement.

    Noise is white and Gaussian; a bias is drawn at reset, uniform between plus and minus the largest, and stays.
    """

    encoder_resolution: float = param(0.0, "joint positions are whole multiples of it", unit="rad", low=0.0, high=1.0)
    velocity_noise: float = param(0.0, "standard deviation of joint velocities", unit="rad/s", low=0.0, high=100.0)
    gyro_noise: float = param(0.0, "standard deviation of angular velocities", unit="rad/s", low=0.0, high=10.0)
    gyro_bias: float = param(0.0, "largest bias of angular velocities", unit="rad/s", low=0.0, high=10.0)
    accelerometer_noise: float = param(
        0.0, "standard deviation of linear accelerations", unit="m/s^2", low=0.0, high=100.0
    )
    accelerometer_bias: float = param(0.0, "largest bias of linear accelerations", unit="m/s^2", low=0.0, high=100.0)
    attitude_noise: float = param(0.0, "standard deviation of roll and pitch", unit="rad", low=0.0, high=1.0)
    attitude_bias: float = param(0.0, "largest bias of roll and pitch", unit="rad", low=0.0, high=1.0)
    yaw_noise: float = param(0.0, "standard deviation of the yaw angle", unit="rad", low=0.0, high=1.0)
    yaw_bias: float = param(0.0, "largest bias of the yaw angle", unit="rad", low=0.0, high=3.2)
    force_noise: float = param(0.0, "standard deviation of the ankle forces", unit="N", low=0.0, high=1e4)
    force_bias: float = param(0.0, "largest bias of the ankle forces", unit="N", low=0.0, high=1e4)
    torque_noise: float = param(0.0, "standard deviation of the ankle torques", unit="N.m", low=0.0, high=1e3)
    torque_bias: float = param(0.0, "largest bias of the ankle torques", unit="N.m", low=0.0, high=1e3)
    measurement_delay: float = param(
        0.0, "age of the measurements when they arrive, rounded to whole control ticks", unit="s", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class PlantParams:
    """How the machine differs from the robot that its controller knows."""

    mass_scale: float = param(1.0, "factor on the mass and inertia of every link", low=0.1, high=10.0)
    com_shift: Any = param(
        (0.0, 0.0, 0.0), "[x, y, z] by which the robot's CoM is off, along the axes of its trunk", unit="m"
    )


@dataclass(frozen=True)
class HardwareParams(ActuatorParams, NoiseParams, PlantParams):
    """All parameters of the hardware; the defaults are the ideal one, which adds nothing to the simulation."""


IDEAL, REALISTIC = "ideal", "realistic"

# Noise as in walking experiments with torque-controlled humanoids; half of their 2 ms of delay on either way.
PRESETS: dict[str, dict[str, Any]] = {
    IDEAL: {},
    REALISTIC: {
        "clip_effort": True,
        "corner_speed": 0.7,
        "no_load_speed": 1.0,
        "command_delay": 1e-3,
        "encoder_resolution": 1e-4,
        "velocity_noise": 0.02,
        "gyro_noise": 0.005,
        "gyro_bias": 0.001,
        "accelerometer_noise": 0.05,
        "accelerometer_bias": 0.02,
        "attitude_noise": 0.001,
        "attitude_bias": 0.003,
        "yaw_noise": 0.001,
        "force_noise": 3.0,
        "force_bias": 1.0,
        "torque_noise": 0.1,
        "torque_bias": 0.05,
        "measurement_delay": 1e-3,
    },
}
"""Preset to the parameters that differ from their defaults; ``hardware`` of robot.yaml adds to them."""


def read_hardware(spec: str | Mapping[str, Any], robot: Robot) -> HardwareParams:
    """Return the hardware that ``spec`` means for ``robot``.

    Args:
        spec: Name of a preset; or parameters, over those of the preset that their key ``preset`` names, else of the
            ideal one: as a mapping, as text in YAML's braces, or as the path of a YAML file.
        robot: Its robot.yaml adds to the presets.

    Raises:
        UnknownNameError: No such preset, parameter or joint.
        ConfigError: A value is wrong.
    """
    where = "hardware"
    if isinstance(spec, str):
        text = spec.strip()
        if text in PRESETS:
            spec = {"preset": text}
        elif text.startswith("{"):
            try:
                spec = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ConfigError(f"hardware = {text!r} is no YAML: {error}") from error
        elif text.endswith((".yaml", ".yml")):
            where, spec = text, read_yaml(Path(text))
    if not isinstance(spec, Mapping):
        others = "{preset: NAME, PARAMETER: VALUE}, or the path of a YAML file"
        raise UnknownNameError("hardware", str(spec), PRESETS, otherwise=others)
    given = dict(spec)
    preset = given.pop("preset", IDEAL)
    if preset not in PRESETS:
        raise UnknownNameError("preset", str(preset), PRESETS, where)
    values = {**PRESETS[preset], **robot.hardware.get(preset, {}), **given}
    return _checked(values, robot.joint_names, where)


def check_presets(presets: Mapping[str, Any], joints: Sequence[str], where: str) -> dict[str, dict[str, Any]]:
    """Return the key ``hardware`` of a robot.yaml, checked.

    Args:
        presets: Preset to the parameters that this robot changes in it.
        joints: Actuated joints.
        where: File and key, for messages.

    Raises:
        UnknownNameError, ConfigError: As :func:`read_hardware`.
    """
    for name, values in presets.items():
        if name not in PRESETS:
            raise UnknownNameError("preset", str(name), PRESETS, where)
        if name == IDEAL:
            raise ConfigError(f"{where}.ideal: the ideal hardware is the same for every robot; leave it out")
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where}.{name} = {values!r} must be a mapping of parameters")
        _checked({**PRESETS[name], **values}, joints, f"{where}.{name}")
    return {str(name): dict(values) for name, values in presets.items()}


def _checked(values: Mapping[str, Any], joints: Sequence[str], where: str) -> HardwareParams:
    params = from_mapping(HardwareParams, values, where)
    for key in ("coulomb_friction", "viscous_friction"):
        numbers_per_joint(getattr(params, key), joints, f"{where}: {key}", low=0.0)
    shift = params.com_shift
    if not isinstance(shift, (list, tuple)) or len(shift) != 3:
        raise ConfigError(f"{where}: com_shift = {shift!r} must be three numbers [x, y, z] in m")
    if params.no_load_speed and not params.no_load_speed > params.corner_speed:
        raise ConfigError(
            f"{where}: no_load_speed = {params.no_load_speed} must be above corner_speed = {params.corner_speed}, "
            "or 0 for no limit"
        )
    return dataclasses.replace(params, com_shift=tuple(number(x, f"{where}: com_shift") for x in shift))


def differs(params: HardwareParams, part: type) -> bool:
    """Return whether any parameter of ``part``, a base of :class:`HardwareParams`, is not the ideal one."""
    return any(getattr(params, f.name) != f.default for f in dataclasses.fields(part))


def perturbed(robot: Robot, params: PlantParams) -> Robot:
    """Return ``robot`` with its masses as ``params`` have them; itself if they change nothing."""
    if params.mass_scale != 1.0:
        robot = robot.with_mass_scale(params.mass_scale)
    if any(params.com_shift):
        robot = robot.with_com_shift(params.com_shift)
    return robot
