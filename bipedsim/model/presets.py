"""Define parameters and presets for real hardware: drives, joint limits, sensors, masses and mounting.

:mod:`bipedsim.sim.actuators` and :mod:`bipedsim.sim.noise` implement the parameters; see docs/hardware.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bipedsim.config import PerJoint, Vector, param
from bipedsim.errors import ConfigError

Wrench = tuple[float, float, float, float, float, float]
"""Force and torque; a list of six numbers in files."""


@dataclass(frozen=True)
class ActuatorParams:
    """Effects of the drives on a command; values per joint are given as in robot.yaml."""

    clip_effort: bool = param(False, "clip commands to the effort limits; the ideal drive trusts its caller to do so")
    corner_speed: float = param(
        0.0, "fraction of the velocity limit above which the available driving torque decreases", low=0.0, high=10.0
    )
    no_load_speed: float = param(
        0.0, "fraction of the velocity limit at which the driving torque is 0; 0 for no limit", low=0.0, high=20.0
    )
    torque_gain: PerJoint = param(
        1.0,
        "torque at the joint divided by the torque that the drive reports, one number or per joint",
        low=0.0,
        high=10.0,
    )
    torque_offset: PerJoint = param(
        0.0, "torque at the joint while the drive reports none, one number or per joint", unit="N.m"
    )
    coulomb_friction: PerJoint = param(0.0, "dry friction of the joints, one number or per joint", unit="N.m", low=0.0)
    presliding: float = param(
        5e-4, "deflection of a joint at rest before dry friction slips", unit="rad", low=1e-6, high=0.1
    )
    viscous_friction: PerJoint = param(
        0.0,
        "viscous friction in addition to joint_damping of robot.yaml, one number or per joint",
        unit="N.m.s/rad",
        low=0.0,
    )
    command_delay: float = param(
        0.0, "time from a command to its torque, rounded to whole physics steps", unit="s", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class NoiseParams:
    """Effects of the sensors on a measurement.

    Noise is white and Gaussian. A bias is drawn uniformly from its symmetric range at reset and stays constant.
    """

    encoder_resolution: float = param(0.0, "resolution of joint positions", unit="rad", low=0.0, high=1.0)
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
    height_noise: float = param(0.0, "standard deviation of the height scan", unit="m", low=0.0, high=10.0)
    height_bias: float = param(0.0, "largest bias of the height scan", unit="m", low=0.0, high=10.0)
    measurement_delay: float = param(
        0.0, "age of the measurements when they arrive, rounded to whole control ticks", unit="s", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class OffsetParams:
    """Errors of the sensors that are the same after every reset. They add to noise and drawn biases."""

    encoder_offset: PerJoint = param(
        0.0, "measured minus true joint position, one number or per joint", unit="rad", low=-3.2, high=3.2
    )
    gyro_offset: Vector = param((0.0, 0.0, 0.0), "[x, y, z] added to angular velocities", unit="rad/s")
    accelerometer_offset: Vector = param((0.0, 0.0, 0.0), "[x, y, z] added to linear accelerations", unit="m/s^2")
    foot_wrench_offset: Mapping[str, Wrench] = param(
        {}, "foot to [fx, fy, fz, tx, ty, tz], added to the wrench of its ankle sensor", unit="N, N.m"
    )


@dataclass(frozen=True)
class InertialConfig:
    """Entry of ``bodies``: properties of a rigid body that differ from those in its description."""

    mass: float | None = param(None, "mass", unit="kg", low=0.0)
    com: Vector | None = param(None, "centre of mass in the frame of the link", unit="m")
    inertia: Mapping[str, float] = param(
        {}, "{ixx: ..., iyy: ..., izz: ...} about the centre of mass, along the axes of the link", unit="kg.m^2"
    )


@dataclass(frozen=True)
class PlantParams:
    """Differences between the simulated robot and the model in its controller."""

    bodies: Mapping[str, InertialConfig] = param(
        {}, "link to mass, com and inertia of its rigid body, all links that are fixed to it included"
    )
    armature: PerJoint | None = param(
        None, "reflected rotor inertia, one number or per joint; default: robot.yaml", unit="kg.m^2", low=0.0
    )
    imu_rotation: Vector = param(
        (0.0, 0.0, 0.0), "rotation vector from the IMU frame of the model to the real one", unit="rad"
    )
    mass_scale: float = param(1.0, "factor on the mass and inertia of every link", low=0.1, high=10.0)
    com_shift: Vector = param(
        (0.0, 0.0, 0.0), "[x, y, z] offset of the robot's CoM, along the axes of its trunk", unit="m"
    )


@dataclass(frozen=True)
class StopParams:
    """Behaviour of a joint at its position limit."""

    joint_stops: bool = param(True, "whether joints stop at their position limits")
    stop_restitution: float = param(
        0.0, "Newton's coefficient of restitution of an impact at a joint limit", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class BodyParams:
    """Contact of bodies other than soles with the ground."""

    body_contact: bool = param(True, "whether all bodies with a shape make contact with the ground, or only the soles")
    body_friction: float = param(
        0.5, "Coulomb friction of these bodies, where the ground defines none", low=0.0, high=10.0
    )
    body_restitution: float = param(0.0, "Newton's coefficient of restitution of their impacts", low=0.0, high=1.0)


@dataclass(frozen=True)
class HardwareParams(ActuatorParams, OffsetParams, NoiseParams, PlantParams, StopParams, BodyParams):
    """All hardware parameters; the defaults are ideal hardware without any effect on the simulation."""

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies between the parameters."""
        if self.no_load_speed and not self.no_load_speed > self.corner_speed:
            yield ConfigError(
                f"must be above corner_speed = {self.corner_speed}, or 0 for no limit",
                "no_load_speed",
                self.no_load_speed,
            )


IDEAL, REALISTIC = "ideal", "realistic"

# Noise is as in walking experiments with torque-controlled humanoids. Their delay of 2 ms is split equally between
# commands and measurements.
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
        "height_noise": 0.01,
        "height_bias": 0.01,
        "measurement_delay": 1e-3,
    },
}
"""Preset to the parameters that differ from their defaults; ``hardware`` of robot.yaml extends them."""
