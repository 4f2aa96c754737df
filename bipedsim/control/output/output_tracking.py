"""Base of the controllers that linearise outputs: outputs by name, their targets, and the tick.

A controller defines the desired output accelerations (:meth:`OutputTracking.wanted`). The dynamics on the stance feet
(:class:`bipedsim.control.output.supported.SupportedDynamics`) give the torques for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from bipedsim.control.base import refuse_loops
from bipedsim.control.loads import RELIEVED
from bipedsim.control.output.supported import LoadedFeet, SupportedDynamics, Task
from bipedsim.control.posture import JointReference, StaticSupport, Wave
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Command, Observation

TILT = ("roll", "pitch")
"""Names of the tilt angles of the IMU's body, measured from the nominal posture."""

_TERM = re.compile(r"([+-])\s*(?:([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*\*\s*)?([A-Za-z_]\w*)\s*")


def linear_sum(text: str, names: tuple[str, ...], where: str) -> Array:
    """Parse a sum such as ``l_knee - 0.5 * r_knee`` into its coefficients (n,) over ``names``.

    Raises:
        ConfigError: The text is no such sum; the message names ``where``.
        UnknownNameError: A name is not in ``names``.
    """
    expression = str(text).strip()
    expression = expression if expression.startswith(("+", "-")) else f"+{expression}"
    row = np.zeros(len(names))
    position = 0
    while position < len(expression):
        term = _TERM.match(expression, position)
        if term is None:
            raise ConfigError("must be a sum of joints, such as `l_knee - 0.5 * r_knee`", where, text)
        sign, factor, name = term.groups()
        if name not in names:
            raise UnknownNameError("joint", name, names, where)
        row[names.index(name)] += float(f"{sign}{factor or 1.0}")
        position = term.end()
    return row


def linear_sums(sums: Mapping[str, str], names: tuple[str, ...], where: str) -> Array:
    """Parse named sums into coefficients (m, n); see :func:`linear_sum`."""
    rows = [linear_sum(text, names, f"{where}.{name}") for name, text in sums.items()]
    return np.array(rows).reshape(len(sums), len(names))


class OutputTracking:
    """Track outputs by feedback linearisation; base class of the controllers.

    Outputs are sums of joint angles and, if a controller allows it, of roll and pitch of the trunk. Their target is the
    same sum of the joint reference, plus a wave. The remaining degrees of freedom hold the joints at their reference.

    Args:
        robot: The robot, with joints.
        params: ``Params`` of the controller.
        dt: Control period [s]; the control laws are those of continuous time.

    Attributes:
        who: Name of the controller, for messages.
        tilt: Whether outputs may contain ``roll`` and ``pitch``.
        readouts: ``tracking_error``: largest error of an output in the last tick [rad].

    Raises:
        ConfigError: The robot has no joints, or a parameter does not fit it.
        UnknownNameError: There is no such joint or output.
    """

    who: ClassVar[str]
    tilt: ClassVar[bool] = True

    def __init__(self, robot: Robot, params: Any, dt: float) -> None:
        who = self.who
        if not robot.nu:
            raise ConfigError(f"it needs joints with drives, {robot.name!r} has none", f"controller {who!r}")
        refuse_loops(robot, who)
        nu = robot.nu
        names = (*robot.joint_names, *(TILT if self.tilt else ()))
        self._robot = robot
        self._params = params
        self._dynamics = SupportedDynamics(robot)
        self._feet = LoadedFeet(robot)
        # Static torques resolve redundant torques; with a fixed base there is no redundancy.
        self._support = StaticSupport(robot, 0.0) if robot.free_flyer and robot.soles else None
        self._reference = JointReference(robot, params, who)
        sums = linear_sums(params.outputs, names, f"{who}: outputs")
        self._sums = np.pad(sums, ((0, 0), (0, nu + len(TILT) - sums.shape[1])))
        self._tilts = bool(self._sums[:, nu:].any())
        waving = tuple(params.outputs) or robot.joint_names
        amplitudes = np.zeros(len(waving))
        for name, amplitude in params.wave.items():
            if name not in waving:
                raise UnknownNameError("output", name, waving, f"{who}: wave")
            amplitudes[waving.index(name)] = amplitude
        self._wave = Wave(amplitudes, params.wave_period, params.ramp)
        self._joints = np.eye(robot.model.nv)[robot.idx_v]
        self._t0 = 0.0
        self._begun = False
        self._landed = np.zeros(len(robot.soles), np.bool_)
        self._share: Array | None = None
        self._legs = _legs(robot)
        self._command = Command(np.zeros(nu))
        self.readouts: dict[str, float] = {"tracking_error": 0.0}

    def reset(self, observation: Observation) -> None:
        """Start from the measured state; before the first measured load, the lowest feet count as stance feet."""
        self._t0 = observation.t
        self._begun = False
        self._dynamics.reset()
        self._reference.reset(observation.joint_position)
        if self._support is not None:
            self._support.reset()

    def update(self, observation: Observation) -> Command:
        """Return the torques of one tick; the next call overwrites the arrays."""
        dynamics, t = self._dynamics, observation.t - self._t0
        dynamics.place(observation)
        if self._begun:
            self._feet.update(observation)
        else:
            self._feet.loaded[:] = dynamics.lowest_feet()
        self._share = share = self._carried(t)
        dynamics.update(observation, self._resting(observation) if share is None else share > 0.0)
        self._begun = True
        start = np.zeros(self._robot.nu)
        if self._support is not None:
            start[:] = self._support.torque(observation)[self._robot.idx_v]
        tau = dynamics.torque(self._tasks(observation, t), start)
        self._command.tau_joint[:] = tau if share is None else dynamics.shared(tau, share)
        return self._command

    def wanted(self, error: Array, rate: Array, acceleration: Array) -> Array:
        """Return the desired accelerations (m,) of outputs with ``error`` (m,) = y - y_ref and its derivative ``rate``.

        Args:
            error: [rad].
            rate: [rad/s].
            acceleration: (m,) y_ref'' [rad/s^2].
        """
        raise NotImplementedError

    def _resting(self, observation: Observation) -> Flags:
        """Return the feet (K,) that the dynamics treat as resting."""
        return self._feet.loaded

    def _carried(self, t: float) -> Array | None:
        """Return the planned share of the weight on each foot (K,) of a walk at ``t`` [s]; None without a walk.

        A foot that touches down early gets a small share.
        """
        share = self._reference.share(t)
        if share is None:
            return None
        self._landed = self._reference.coming(t) & (self._landed | self._feet.loaded)
        carried: Array = np.where(self._landed, np.maximum(share, RELIEVED), share)
        return carried / carried.sum()

    def _tasks(self, observation: Observation, t: float) -> list[Task]:
        """Return the tasks at ``t`` [s] since the start, the most important first."""
        q, v, a = self._reference.at(t)
        wave = self._wave.at(t)
        position, velocity = observation.joint_position, observation.joint_velocity
        nu = len(q)
        quiet = np.zeros(nu)
        if not len(self._sums):
            error, rate = position - q - wave[0], velocity - v - wave[1]
            self.readouts["tracking_error"] = float(np.abs(error).max())
            desired = self.wanted(error, rate, a + wave[2])
            # In double support the errors of each leg are weighted by its load; in single support both count in full.
            weight = np.ones(nu) if self._share is None else np.maximum(self._legs @ self._share, RELIEVED)
            return [Task(weight[:, None] * self._joints, quiet, weight * desired)]
        of_joints, of_tilt = self._sums[:, :nu], self._sums[:, nu:]
        rows, bias = of_joints @ self._joints, np.zeros(len(self._sums))
        error = of_joints @ (position - q) - wave[0]
        if self._tilts:
            tilt, tilt_rows, tilt_bias = self._dynamics.tilt()
            rows, bias, error = rows + of_tilt @ tilt_rows, of_tilt @ tilt_bias, error + of_tilt @ tilt
        rate = rows @ self._dynamics.v - of_joints @ v - wave[1]
        self.readouts["tracking_error"] = float(np.abs(error).max())
        return [
            Task(rows, bias, self.wanted(error, rate, of_joints @ a + wave[2])),
            Task(self._joints, quiet, self.wanted(position - q, velocity - v, a)),
        ]


def _legs(robot: Robot) -> Array:
    """Return (nu, K): 1 for the joints between the root and each foot, else 0."""
    chains = [set(robot.model.supports[sole.joint_id]) for sole in robot.soles]
    joints = [robot.model.getJointId(name) for name in robot.joint_names]
    return np.array([[float(joint in chain) for chain in chains] for joint in joints]).reshape(robot.nu, len(chains))
