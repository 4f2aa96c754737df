"""Joint PD around a posture or a motion, with the gravity and ground forces of static equilibrium fed forward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bipedsim.config import numbers_per_joint, param, part_of
from bipedsim.control.base import fitting
from bipedsim.control.posture.motions import (
    JUMP,
    MODES,
    ONCE,
    SQUAT,
    SWAY,
    MotionTargets,
    PostureMotion,
    Postures,
    TimeLawParams,
    motion,
    still,
    targets,
)
from bipedsim.control.posture.references import goal_posture
from bipedsim.control.posture.static_support import UNPLANNED, StaticSupport
from bipedsim.control.posture.steps import Gait, steps
from bipedsim.errors import ConfigError, warn_controller
from bipedsim.model import PD_DAMPING, PD_STIFFNESS, Robot, joint_gains, stability_ratio
from bipedsim.numerics import Array, Integers, box, entry, zeros_of
from bipedsim.sim import Command, Observation


@dataclass(frozen=True)
class PostureParams:
    """Parameters of :class:`PostureController`."""

    mode: str = param(
        "stand",
        "stand still, squat repeatedly, sway from side to side repeatedly, shift the weight to the left foot, fall "
        "over the toes, jump once, or take some steps",
        choices=MODES,
    )
    squat_depth: float = param(
        0.05, "lowering of the centre of mass at the bottom of a squat, and before a jump", unit="m", low=0.0, high=1.0
    )
    squat_period: float = param(
        1.0, "time of one squat, down and up; around a jump, half of it each", unit="s", low=0.1, high=100.0
    )
    squat_delay: float = param(
        0.0, "time to stand before the first squat, or any other motion", unit="s", low=0.0, high=1e6
    )
    sway_amplitude: float = param(
        0.7,
        "largest shift of the centre of mass, as a fraction of the distance to the middle of a foot",
        low=0.0,
        high=2.0,
    )
    sway_period: float = param(5.0, "time of one sway to both sides; a shift takes half", unit="s", low=0.1, high=100.0)
    shift_roll: float = param(
        0.05, "roll of the unloaded foot about its inner edge at the end of a shift", unit="rad", low=0.0, high=0.5
    )
    lean_time: float = param(
        3.0, "time in which the centre of mass moves from mid-foot beyond the toes", unit="s", low=0.1, high=100.0
    )
    jump_height: float = param(0.03, "rise of the centre of mass in flight", unit="m", low=1e-3, high=1.0)
    n_steps: int = param(
        5, "number of steps, the right foot first; the last one puts the feet together", low=2, high=1000
    )
    step_length: float = param(
        0.0, "from one foot to the next; 0: a fifth of the height of the centre of mass", unit="m", low=0.0, high=1.0
    )
    step_height: float = param(
        0.0, "rise of the foot; 0: 6 % of the height of the centre of mass", unit="m", low=0.0, high=0.5
    )
    step_duration: float = param(1.0, "time of a step on the other foot alone", unit="s", low=0.1, high=100.0)
    step_shift: float = param(1.0, "time on both feet before and after a step", unit="s", low=0.1, high=100.0)
    touch_down_speed: float = param(0.05, "downward velocity of a foot at touchdown", unit="m/s", low=0.0, high=1.0)
    ramp: float = param(
        1.0, "time to reach the posture from where the robot is, and the full depth", unit="s", low=1e-3, high=100.0
    )
    kp: dict[str, float] = param(
        {}, "proportional gain per joint; joints without one get theirs from `stiffness`", unit="N.m/rad", live=True
    )
    kd: dict[str, float] = param(
        {}, "derivative gain per joint; joints without one get theirs from `damping`", unit="N.m.s/rad", live=True
    )
    damping: float = param(
        PD_DAMPING,
        "largest eigenvalue of dt M^-1 Kd if no joint has a kd of its own; 2 is unstable",
        low=0.0,
        high=2.0,
        live=True,
    )
    stiffness: float = param(PD_STIFFNESS, "kp / kd of joints without kp", unit="1/s", low=0.0, high=1000.0, live=True)
    balance: float = param(
        0.2, "shift of the centre of pressure per velocity of the centre of mass", unit="s", low=0.0, high=2.0
    )
    support: bool = param(
        True, "feed the forces of static equilibrium forward; false: the PD alone, as position-controlled drives do"
    )
    posture: dict[str, float] = param({}, "joint angles that differ from the robot's standing posture", unit="rad")


class _PdArrays(NamedTuple):
    """Pack the arguments of the PD law: gains (nu,), planned torques, velocity indices and effort limits."""

    aim: MotionTargets
    kp: Array
    kd: Array
    planned: Array
    idx_v: Integers
    limit: Array


@entry
def _targets(drive, t):  # type: ignore[no-untyped-def]
    return targets(drive.arrays.aim, t)


@entry
def _torque(drive, q, v, static, tau):  # type: ignore[no-untyped-def]
    """Fill tau (nu,): PD around the target plus static and planned torques, within the effort limits."""
    d = drive.arrays
    q_goal, v_goal = d.aim.q_goal, d.aim.v_goal
    for i in range(len(tau)):
        value = static[d.idx_v[i]] + d.planned[i] + d.kp[i] * (q_goal[i] - q[i]) + d.kd[i] * (v_goal[i] - v[i])
        tau[i] = min(max(value, -d.limit[i]), d.limit[i])


class PostureController:
    """Hold a posture or move along a path of postures, from joint states, IMU and ankle wrenches.

    tau = static + kp (q_goal - q) + kd (v_goal - v), within the effort limits. The static torques come from
    :class:`StaticSupport`, and are 0 if ``support`` is false.

    A squat lowers the CoM by depth (1 - cos) / 2 over the support, with the feet in place. The vertical acceleration of
    a squat or jump is added to gravity. Steps follow a plan of the centre of pressure
    (:mod:`bipedsim.control.posture.steps`), whose forces are fed forward. Postures are solved once, at construction
    (:mod:`bipedsim.control.posture.motions`). All modes start from the measured posture and blend with a quintic over
    ``ramp``.

    Args:
        robot: The robot; free-flying with at least one foot.
        params: See :class:`PostureParams`.
        dt: Control period [s].

    Raises:
        ConfigError: The robot has no free-flyer or no feet, a gain is below 0, a posture is outside the joint limits,
            or the robot cannot make the motion.
        UnknownNameError: A gain or angle names a joint that the robot does not have.
    """

    Params = PostureParams

    def __init__(self, robot: Robot, params: PostureParams, dt: float) -> None:
        if not robot.free_flyer or not robot.soles or not robot.nu:
            raise ConfigError(
                f"it needs a free-flying robot with joints and feet, {robot.name!r} has not{fitting(robot, 'posture')}",
                "controller 'posture'",
            )
        self._robot, self._dt = robot, dt
        self._kp, self._kd = _gains(robot, params, dt)
        goal = goal_posture(robot, params.posture, "posture")
        self._motion = _motion(robot, goal, params)
        g = robot.weight / robot.mass
        plan, motion = UNPLANNED.copy(), self._motion
        self._aim = zeros_of(MotionTargets, {"nu": robot.nu}, motion=motion, ramp=params.ramp, g=g, plan=plan)
        self._t0 = 0.0
        self._command = Command(np.zeros(robot.nu))
        self._support = StaticSupport(robot, params.balance) if params.support else None
        planned = self._aim.tau if params.support else np.zeros(robot.nu)
        idx_v = np.ascontiguousarray(robot.idx_v, dtype=np.int64)
        self._drive = box(_PdArrays(self._aim, self._kp, self._kd, planned, idx_v, robot.effort_limit.copy()))
        self._no_support = np.zeros(robot.model.nv)
        # Kernels load now and not within the first tick; `reset` discards this update.
        self.update(Observation.zeros(robot.nu, len(robot.soles)))

    def tune(self, params: PostureParams) -> None:
        """Take the gains of ``params`` between two updates; nothing else changes.

        Raises:
            ConfigError: A gain is below 0.
            UnknownNameError: A gain names a joint that the robot does not have.
        """
        self._kp[:], self._kd[:] = _gains(self._robot, params, self._dt)

    def reset(self, observation: Observation) -> None:
        """Start from the measured joint positions. The robot reaches the posture after ``ramp``."""
        self._t0 = observation.t
        self._aim.offset[:] = observation.joint_position - self._motion.start
        if self._support is not None:
            self._support.reset()

    def update(self, observation: Observation) -> Command:
        """Return the torques of one tick; the next call overwrites the arrays."""
        a_up = _targets(self._drive, observation.t - self._t0)
        static = self._no_support if self._support is None else self._support.torque(observation, a_up, self._aim.plan)
        _torque(self._drive, observation.joint_position, observation.joint_velocity, static, self._command.tau_joint)
        return self._command


def _gains(robot: Robot, params: PostureParams, dt: float) -> tuple[Array, Array]:
    """Return kp and kd (nu,), and warn about joints whose explicit PD would be unstable."""
    names = robot.joint_names
    _, kd = joint_gains(robot, dt, params.damping)
    for joint, value in numbers_per_joint(params.kd, names, "posture: kd", low=0.0).items():
        kd[names.index(joint)] = value
    kp = params.stiffness * kd
    for joint, value in numbers_per_joint(params.kp, names, "posture: kp", low=0.0).items():
        kp[names.index(joint)] = value
    ratio = stability_ratio(robot, kd, dt)
    if (ratio > 1.0).any():
        fast = ", ".join(f"{names[i]} {ratio[i]:.2f}" for i in np.flatnonzero(ratio > 1.0))
        warn_controller(f"posture: kd dt / I_eff is above 1 (above 2 diverges): {fast}; lower kd or dt")
    return kp, kd


def _motion(robot: Robot, goal: Array, params: PostureParams) -> PostureMotion:
    """Plan the motion of ``params.mode`` around the posture ``goal`` (nu,)."""
    if params.mode == "stand" or (params.mode == "squat" and params.squat_depth == 0.0):
        return still(goal, params.ramp)
    if params.mode == "steps":
        return steps(robot, goal, part_of(Gait, params), params.squat_delay, params.ramp)
    postures = Postures(robot, goal)
    depth, height, amplitude = params.squat_depth, params.jump_height, params.sway_amplitude
    if params.mode == "squat":
        law, time, table = SQUAT, params.squat_period, postures.squat(depth)
    elif params.mode == "jump":
        law, time, table = JUMP, params.squat_period, postures.jump(depth, height)
    elif params.mode == "sway":
        law, time, table = SWAY, params.sway_period, postures.sway(amplitude)
    elif params.mode == "shift":
        law, time, table = ONCE, 0.5 * params.sway_period, postures.shift(amplitude, params.shift_roll)
    else:
        law, time, table = ONCE, params.lean_time, postures.toe_fall()
    return motion(law, TimeLawParams(float(table[0][-1]), time, params.squat_delay, params.ramp, height), table)
