"""Stand or squat: joint PD around a posture, with the gravity and ground forces of static equilibrium fed forward."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from bipedsim.controllers.static_support import StaticSupport
from bipedsim.errors import ConfigError
from bipedsim.params import param
from bipedsim.robot import Robot, inverse_inertia
from bipedsim.robot_config import numbers_per_joint
from bipedsim.robot_io import Command, Observation
from bipedsim.settle import crouch

Array = NDArray[np.float64]

KNOTS = 17
"""Postures solved between standing and the deepest squat."""


@dataclass(frozen=True)
class PostureParams:
    """Parameters of :class:`PostureController`."""

    mode: str = param("stand", "stand still, or squat without end", choices=("stand", "squat"))
    squat_depth: float = param(
        0.05, "lowering of the centre of mass at the bottom of a squat", unit="m", low=0.0, high=1.0
    )
    squat_period: float = param(1.0, "time of one squat, down and up", unit="s", low=0.1, high=100.0)
    squat_delay: float = param(0.0, "time to stand before the first squat", unit="s", low=0.0, high=1e6)
    ramp: float = param(
        1.0, "time to reach the posture from where the robot is, and the full depth", unit="s", low=1e-3, high=100.0
    )
    kp: dict[str, float] = param(
        {}, "proportional gain per joint; joints without one get theirs from `stiffness`", unit="N.m/rad"
    )
    kd: dict[str, float] = param(
        {}, "derivative gain per joint; joints without one get theirs from `damping`", unit="N.m.s/rad"
    )
    damping: float = param(
        0.25, "largest eigenvalue of dt M^-1 Kd if no joint has a kd of its own; 2 is unstable", low=0.0, high=2.0
    )
    stiffness: float = param(50.0, "kp / kd of joints without kp", unit="1/s", low=0.0, high=1000.0)
    balance: float = param(
        0.2, "shift of the centre of pressure per velocity of the centre of mass", unit="s", low=0.0, high=2.0
    )
    posture: dict[str, float] = param({}, "joint angles that differ from the robot's standing posture", unit="rad")


@njit(cache=True)
def _quintic(t: float, duration: float) -> tuple[float, float, float]:
    """Return a rest-to-rest step from 0 to 1 over ``duration`` [s], with its first and second derivatives."""
    x = min(max(t / duration, 0.0), 1.0)
    value = x * x * x * (10.0 + x * (-15.0 + 6.0 * x))
    rate = 30.0 * x * x * (1.0 - x) ** 2 / duration
    return value, rate, 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / (duration * duration)


@njit(cache=True)
def _targets(t, params, offset, knots, coefficients, q_goal, v_goal):  # type: ignore[no-untyped-def]
    """Fill the joint targets (nu,) at ``t`` since reset and return the vertical acceleration of the CoM [m/s^2]."""
    depth, period, delay, ramp = params
    blend, rate, _ = _quintic(t, ramp)
    squat_t = t - delay
    grown, growth, bend = _quintic(squat_t, ramp)
    w = 2.0 * math.pi / period
    wave = 0.5 * depth * (1.0 - math.cos(w * squat_t))
    d_wave = 0.5 * depth * w * math.sin(w * squat_t)
    dd_wave = 0.5 * depth * w * w * math.cos(w * squat_t)
    s = grown * wave
    ds = growth * wave + grown * d_wave
    dds = bend * wave + 2.0 * growth * d_wave + grown * dd_wave
    step = knots[1] - knots[0]
    k = min(max(int(s / step), 0), len(knots) - 2)
    h = s - knots[k]
    for i in range(len(q_goal)):
        a = coefficients[0, k, i]
        b = coefficients[1, k, i]
        c = coefficients[2, k, i]
        q_goal[i] = ((a * h + b) * h + c) * h + coefficients[3, k, i] + (1.0 - blend) * offset[i]
        v_goal[i] = ((3.0 * a * h + 2.0 * b) * h + c) * ds - rate * offset[i]
    return -dds


@njit(cache=True)
def _torque(q, v, q_goal, v_goal, kp, kd, static, idx_v, limit, tau):  # type: ignore[no-untyped-def]
    """Fill tau (nu,): PD around the target on top of the static torque, within the effort limits."""
    for i in range(len(tau)):
        value = static[idx_v[i]] + kp[i] * (q_goal[i] - q[i]) + kd[i] * (v_goal[i] - v[i])
        tau[i] = min(max(value, -limit[i]), limit[i])


class PostureController:
    """Holds a posture, or squats, from joint states, IMU and ankle wrenches.

    tau = static + kp (q_goal - q) + kd (v_goal - v), within the effort limits, with :class:`StaticSupport` fed forward.
    A squat lowers the CoM by depth (1 - cos) / 2 over the support, feet in place; its vertical acceleration is added
    to gravity. Postures are solved once, at construction. Both modes start from where the robot is and blend with a
    quintic over ``ramp``.

    Args:
        robot: The robot; free-flying with at least one foot.
        params: See :class:`PostureParams`.
        dt: Control period [s].

    Raises:
        ConfigError: No free-flyer or no feet, a gain below 0, a posture outside the joint limits, or a squat deeper
            than the robot can.
        UnknownNameError: A gain or angle is given for a joint that the robot has not.
    """

    Params = PostureParams

    def __init__(self, robot: Robot, params: PostureParams, dt: float) -> None:
        if not robot.free_flyer or not robot.soles or not robot.nu:
            raise ConfigError(
                f"controller 'posture' needs a free-flying robot with joints and feet, {robot.name!r} has not"
            )
        self._kp, self._kd = _gains(robot, params, dt)
        self._robot = robot
        goal = _goal(robot, params)
        depth = params.squat_depth if params.mode == "squat" else 0.0
        self._knots, self._coefficients = _squat_table(robot, goal, depth)
        self._timing = (depth, params.squat_period, params.squat_delay, params.ramp)
        self._t0 = 0.0
        self._offset = np.zeros(robot.nu)
        self._q_goal, self._v_goal = np.zeros(robot.nu), np.zeros(robot.nu)
        self._command = Command(np.zeros(robot.nu))
        self._support = StaticSupport(robot, params.balance)
        # Kernels load now and not within the first tick; `reset` starts anew.
        self.update(Observation.zeros(robot.nu, len(robot.soles)))

    def reset(self, observation: Observation) -> None:
        """Start from the measured joint positions; the posture is reached after ``ramp``."""
        self._t0 = observation.t
        self._offset[:] = observation.joint_position - self._coefficients[3, 0]
        self._support.reset()

    def update(self, observation: Observation) -> Command:
        """Return the torques of one tick; the arrays are reused by the next one."""
        robot = self._robot
        t = observation.t - self._t0
        a_up = _targets(t, self._timing, self._offset, self._knots, self._coefficients, self._q_goal, self._v_goal)
        static = self._support.torque(observation, a_up)
        _torque(
            observation.joint_position,
            observation.joint_velocity,
            self._q_goal,
            self._v_goal,
            self._kp,
            self._kd,
            static,
            robot.idx_v,
            robot.effort_limit,
            self._command.tau_joint,
        )
        return self._command


def _gains(robot: Robot, params: PostureParams, dt: float) -> tuple[Array, Array]:
    """Return kp and kd (nu,), and warn where an explicit PD would be unstable."""
    names = robot.joint_names
    inverse = inverse_inertia(robot)
    ratio_of_unit = np.diag(inverse) * dt
    # In proportion to I_eff; joints act on each other, so that all at once are 1.8 to 2.7 times as stiff as one alone.
    together = float(np.abs(np.linalg.eigvals(inverse / np.diag(inverse))).max())
    kd = params.damping / (ratio_of_unit * together)
    for joint, value in numbers_per_joint(params.kd, names, "posture: kd", low=0.0).items():
        kd[names.index(joint)] = value
    kp = params.stiffness * kd
    for joint, value in numbers_per_joint(params.kp, names, "posture: kp", low=0.0).items():
        kp[names.index(joint)] = value
    ratio = kd * ratio_of_unit
    if (ratio > 1.0).any():
        fast = ", ".join(f"{names[i]} {ratio[i]:.2f}" for i in np.flatnonzero(ratio > 1.0))
        warnings.warn(f"posture: kd dt / I_eff is above 1 (above 2 diverges): {fast}; lower kd or dt", stacklevel=3)
    return kp, kd


def _goal(robot: Robot, params: PostureParams) -> Array:
    """Return the posture (nu,) to hold."""
    goal = robot.posture.copy()
    for joint, angle in numbers_per_joint(params.posture, robot.joint_names, "posture: posture").items():
        i = robot.joint_names.index(joint)
        if not robot.position_lower[i] <= angle <= robot.position_upper[i]:
            limits = f"[{robot.position_lower[i]:g}, {robot.position_upper[i]:g}]"
            raise ConfigError(f"posture: posture.{joint} = {angle:g} rad is outside the limits {limits}")
        goal[i] = angle
    return goal


def _squat_table(robot: Robot, goal: Array, depth: float) -> tuple[Array, Array]:
    """Return depths (n,) [m] and the cubics (4, n - 1, nu), highest power first, of the joints over depth."""
    if depth == 0.0:
        coefficients = np.zeros((4, 1, robot.nu))
        coefficients[3, 0] = goal
        return np.array([0.0, 1.0]), coefficients
    depths: Array = np.linspace(0.0, depth, KNOTS, dtype=np.float64)
    postures = crouch(robot.model, robot.soles, robot.settle(goal), depths)
    if len(postures) < KNOTS:
        deepest = depths[len(postures) - 1] if postures else 0.0
        raise ConfigError(
            f"posture: squat_depth = {depth:g} m is more than {robot.name} can with flat feet and joints in their "
            f"limits; {deepest:.3f} m is possible"
        )
    spline = CubicSpline(depths, np.array(postures)[:, robot.idx_q], bc_type="natural")
    return depths, np.ascontiguousarray(spline.c)
