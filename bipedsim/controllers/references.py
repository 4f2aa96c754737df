"""What joints and outputs should do over time: postures, squats and waves, with velocity and acceleration."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PPoly

from bipedsim.controllers.motions import SQUAT, Motion, Postures, motion, path, still
from bipedsim.errors import ConfigError
from bipedsim.params import param
from bipedsim.quintic import quintic
from bipedsim.robot import Robot
from bipedsim.robot_config import numbers_per_joint

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReferenceParams:
    """Parameters of what is tracked, the same for all controllers of outputs."""

    mode: str = param("stand", "hold the posture, or squat without end", choices=("stand", "squat"))
    squat_depth: float = param(
        0.05, "lowering of the centre of mass at the bottom of a squat", unit="m", low=0.0, high=1.0
    )
    squat_period: float = param(1.0, "time of one squat, down and up", unit="s", low=0.1, high=100.0)
    squat_delay: float = param(0.0, "time to stand before the first squat", unit="s", low=0.0, high=1e6)
    ramp: float = param(
        1.0,
        "time to reach the posture from where the robot is, and the full depth or wave; 0: they are the target at once",
        unit="s",
        low=0.0,
        high=100.0,
    )
    posture: dict[str, float] = param({}, "joint angles that differ from the robot's standing posture", unit="rad")
    outputs: dict[str, str] = param(
        {},
        "what is tracked, by name: sums such as `l_knee - 0.5 * r_knee` of joints; joints hold their posture "
        "with what is left; every joint by default",
    )
    wave: dict[str, float] = param(
        {}, "amplitude of a sine on top of an output, by name; a joint's name without `outputs`", unit="rad"
    )
    wave_period: float = param(1.0, "of that sine", unit="s", low=1e-2, high=1e4)


def goal_posture(robot: Robot, angles: dict[str, float], who: str) -> Array:
    """Return the standing posture (nu,) [rad] with other ``angles`` for some joints.

    Raises:
        ConfigError: An angle is outside the limits of its joint; ``who`` is named.
        UnknownNameError: No such joint.
    """
    goal = robot.posture.copy()
    for joint, angle in numbers_per_joint(angles, robot.joint_names, f"{who}: posture").items():
        i = robot.joint_names.index(joint)
        if not robot.position_lower[i] <= angle <= robot.position_upper[i]:
            limits = f"[{robot.position_lower[i]:g}, {robot.position_upper[i]:g}]"
            raise ConfigError(f"{who}: posture.{joint} = {angle:g} rad is outside the limits {limits}")
        goal[i] = angle
    return goal


class JointReference:
    """Joint angles over time: from where the joints are to a posture, and squats around it.

    Args:
        robot: The robot.
        params: See :class:`ReferenceParams`.
        who: The controller, for messages.

    Raises:
        ConfigError: A posture outside the joint limits, or a squat that the robot cannot do.
    """

    def __init__(self, robot: Robot, params: ReferenceParams, who: str) -> None:
        goal = goal_posture(robot, params.posture, who)
        self._motion = self._made(robot, goal, params, who)
        curve = PPoly(self._motion.coefficients, self._motion.knots)
        self._curves = (curve, curve.derivative(), curve.derivative(2))
        self._ramp = params.ramp
        self._g = robot.weight / robot.mass
        self._offset = np.zeros(robot.nu)

    @staticmethod
    def _made(robot: Robot, goal: Array, params: ReferenceParams, who: str) -> Motion:
        if params.mode == "stand" or params.squat_depth == 0.0:
            return still(goal, 1.0)
        if not robot.free_flyer or not robot.soles:
            raise ConfigError(f"{who}: mode = 'squat' needs a free-flying robot with feet, {robot.name!r} has not")
        numbers = (params.squat_depth, params.squat_period, params.squat_delay, max(params.ramp, 1e-3), 0.0)
        return motion(SQUAT, numbers, Postures(robot, goal).squat(params.squat_depth))

    def reset(self, joint_position: Array) -> None:
        """Start from ``joint_position`` (nu,) [rad]."""
        self._offset[:] = joint_position - self._motion.start if self._ramp > 0.0 else 0.0

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return angles (nu,) [rad], velocities and accelerations ``t`` [s] after the start."""
        s, ds, dds, _ = path(self._motion.law, t, self._motion.numbers, self._g)
        value, slope, bend = (curve(s) for curve in self._curves)
        left, rate, change = 0.0, 0.0, 0.0
        if self._ramp > 0.0:
            blend, rate, change = quintic(t, self._ramp)
            left = 1.0 - blend
        return (
            value + left * self._offset,
            slope * ds - rate * self._offset,
            bend * ds * ds + slope * dds - change * self._offset,
        )


class Wave:
    """A sine on top of outputs.

    Args:
        amplitudes: (m,) [rad].
        period: [s].
        ramp: Time in which the amplitude grows from 0 [s]; 0 for a sine that begins at once.
    """

    def __init__(self, amplitudes: Array, period: float, ramp: float) -> None:
        self._amplitudes = amplitudes
        self._rate = 2.0 * math.pi / period
        self._ramp = ramp

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return value (m,), rate and acceleration at ``t`` [s]."""
        w, size = self._rate, self._amplitudes
        s, c = math.sin(w * t), w * math.cos(w * t)
        grown, growth, bend = quintic(t, self._ramp) if self._ramp > 0.0 else (1.0, 0.0, 0.0)
        acceleration = bend * s + 2.0 * growth * c - grown * w * w * s
        return size * (grown * s), size * (growth * s + grown * c), size * acceleration
