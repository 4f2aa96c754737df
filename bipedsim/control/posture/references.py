"""References of joints and outputs over time: postures, squats and waves, with velocity and acceleration."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # it imports its submodules at their first use

from bipedsim.config import numbers_per_joint, param, part_of
from bipedsim.control.output import LEAD, PlanarGait, PlanarWalk
from bipedsim.control.posture.motions import SQUAT, PostureMotion, Postures, TimeLawParams, motion, path, still
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags, quintic


@dataclass(frozen=True)
class ReferenceParams:
    """Parameters of the reference, the same for all controllers that track outputs."""

    mode: str = param(
        "stand", "hold the posture, squat repeatedly, or walk in the plane", choices=("stand", "squat", "walk")
    )
    squat_depth: float = param(
        0.05, "lowering of the centre of mass at the bottom of a squat", unit="m", low=0.0, high=1.0
    )
    squat_period: float = param(1.0, "time of one squat, down and up", unit="s", low=0.1, high=100.0)
    squat_delay: float = param(0.0, "time to stand before the first squat", unit="s", low=0.0, high=1e6)
    n_steps: int = param(
        0, "number of steps of a walk, the last one puts the feet together; 0: without end", low=0, high=1_000_000
    )
    step_length: float = param(0.25, "from one foot to the next", unit="m", low=0.01, high=2.0)
    step_height: float = param(0.05, "rise of the foot", unit="m", low=1e-3, high=1.0)
    step_duration: float = param(0.45, "time of a step on the other foot alone", unit="s", low=0.05, high=100.0)
    step_shift: float = param(0.15, "time on both feet between two steps", unit="s", low=0.01, high=100.0)
    walk_delay: float = param(0.5, "time to stand before a walk", unit="s", low=0.0, high=1e6)
    walk_begin: float = param(
        0.6, "time from standing to the first step, and from the last one to standing", unit="s", low=0.05, high=100.0
    )
    walk_drop: float = param(0.03, "lowering of the hips from the standing posture", unit="m", low=0.0, high=1.0)
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


def goal_posture(robot: Robot, angles: dict[str, float], controller: str) -> Array:
    """Return the standing posture (nu,) [rad] with the ``angles`` of some joints replaced.

    Raises:
        ConfigError: An angle is outside the limits of its joint; the message names the ``controller``.
        UnknownNameError: The robot has no such joint.
    """
    goal = robot.posture.copy()
    for joint, angle in numbers_per_joint(angles, robot.joint_names, f"{controller}: posture").items():
        i = robot.joint_names.index(joint)
        if not robot.position_lower[i] <= angle <= robot.position_upper[i]:
            limits = f"[{robot.position_lower[i]:g}, {robot.position_upper[i]:g}]"
            raise ConfigError(f"rad is outside the limits {limits}", f"{controller}: posture.{joint}", angle)
        goal[i] = angle
    return goal


class JointReference:
    """Plan joint angles over time: from the measured posture to a goal, with squats around it or a walk from it.

    Args:
        robot: The robot.
        params: See :class:`ReferenceParams`.
        controller: Name of the controller, for messages.

    Raises:
        ConfigError: A posture is outside the joint limits, or the robot cannot make the squat or walk.
    """

    def __init__(self, robot: Robot, params: ReferenceParams, controller: str) -> None:
        goal = goal_posture(robot, params.posture, controller)
        self._walk = _walk(robot, params, controller) if params.mode == "walk" else None
        self._delay = params.walk_delay
        self._motion = self._motion_of(robot, goal, params, controller)
        curve = scipy.interpolate.PPoly(self._motion.coefficients, self._motion.knots)
        self._curves = (curve, curve.derivative(), curve.derivative(2))
        self._ramp = params.ramp
        self._g = robot.weight / robot.mass
        self._offset = np.zeros(robot.nu)

    @staticmethod
    def _motion_of(robot: Robot, goal: Array, params: ReferenceParams, controller: str) -> PostureMotion:
        if params.mode != "squat" or params.squat_depth == 0.0:
            return still(goal, 1.0)
        if not robot.free_flyer or not robot.soles:
            raise ConfigError(f"it needs a free-flying robot with feet, {robot.name!r} has not", f"{controller}: mode")
        numbers = TimeLawParams(
            params.squat_depth, params.squat_period, params.squat_delay, max(params.ramp, 1e-3), 0.0
        )
        return motion(SQUAT, numbers, Postures(robot, goal).squat(params.squat_depth))

    def reset(self, joint_position: Array) -> None:
        """Start from ``joint_position`` (nu,) [rad]."""
        self._offset[:] = joint_position - self._motion.start if self._ramp > 0.0 else 0.0

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return angles (nu,) [rad], velocities and accelerations ``t`` [s] after the start."""
        if self._walk is not None:
            value, velocity, acceleration = self._walk.at(t - self._delay)
        else:
            s, ds, dds, _ = path(self._motion.law, t, self._motion.numbers, self._g)
            value, slope, bend = (curve(s) for curve in self._curves)
            velocity, acceleration = slope * ds, bend * ds * ds + slope * dds
        remaining, rate, change = 0.0, 0.0, 0.0
        if self._ramp > 0.0:
            blend, rate, change = quintic(t, self._ramp)
            remaining = 1.0 - blend
        return (
            value + remaining * self._offset,
            velocity - rate * self._offset,
            acceleration - change * self._offset,
        )

    def share(self, t: float) -> Array | None:
        """Return the planned share of the weight on each foot (2,) of a walk at ``t`` [s]; None without a walk."""
        return None if self._walk is None else self._walk.share(t - self._delay)

    def coming(self, t: float) -> Flags:
        """Return which feet (2,) of a walk swing and may touch down at ``t`` [s]."""
        return np.zeros(2, np.bool_) if self._walk is None else self._walk.coming(t - self._delay)


def _walk(robot: Robot, params: ReferenceParams, controller: str) -> PlanarWalk:
    """Plan the walk that the parameters describe."""
    if params.posture:
        raise ConfigError("mode = 'walk' starts in the standing one. Omit posture", f"{controller}: posture")
    if 0 < params.n_steps < 2 * LEAD:
        raise ConfigError(
            f"is too few: {LEAD} steps lead into a walk and {LEAD} out of it; take {2 * LEAD} or more, or 0 for no end",
            f"{controller}: n_steps",
            params.n_steps,
        )
    return PlanarWalk(robot, part_of(PlanarGait, params), controller)


class Wave:
    """Evaluate a sine to add to outputs.

    Args:
        amplitudes: (m,) [rad].
        period: Period of the sine [s].
        ramp: Time in which the amplitude grows from 0 [s]; 0 for a sine with full amplitude at once.
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
