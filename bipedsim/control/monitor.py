"""The guard around every controller: it detects a fall, and then damps the joints until the next reset.

Nodes and runs without ROS host a controller through it, so that a fall is the same event everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.control.base import Controller, Estimate, checked
from bipedsim.control.stop import StopKind, StopReason
from bipedsim.errors import ConfigError, InvalidCommandError
from bipedsim.model import Robot
from bipedsim.numerics import Array, is_finite
from bipedsim.sim import Command, Observation

FALL_TILT = 1.0
"""Default tilt [rad] at which a robot has fallen: of the IMU, from its attitude in the standing posture."""


_VALUES = {"torque": "tau_joint"} | {name: name for name in ("position", "velocity", "stiffness", "damping")}
"""Words for the values of a command, and their attributes."""


def joint_damping(robot: Robot) -> Array:
    """Return damping gains (nu,) [N.m.s/rad] that reach the effort limit at the velocity limit of each joint."""
    return np.asarray(robot.effort_limit / robot.velocity_limit)


class Guard:
    """Host a controller: find its optional members, and damp the joints after a fall or an error.

    The robot counts as fallen in three cases:

    * The controller reports it.
    * A value of its command is not finite.
    * The tilt of the IMU from its attitude in the standing posture exceeds ``fall_tilt``. Rotation about the vertical
      does not count, and an IMU without attitude is ignored.

    From then on the guard commands damping torques within the effort limits. If the controller commands impedances, the
    guard commands the damping as an impedance, because the drives may accept nothing else.

    Args:
        controller: The controller; :class:`Controller` lists the optional members.
        robot: The robot it controls.
        fall_tilt: See above [rad]; 0 disables the check. Robots fixed to the world cannot tilt.
        dt: Length of a tick [s], to count the ticks of a ``decimation`` by time stamps, including lost ticks. Without
            it every update counts as one tick.

    Attributes:
        set_velocity: The controller's method, or None; :meth:`steer` calls it.
        set_footsteps, tune: The controller's methods, or None.
        height_points, true_velocity: The controller's arrays, or None.
        has_estimate: Whether the controller estimates the state of the robot.
        fresh: Whether the last command is new, and not repeated from an earlier tick.
        reason: Why the robot counts as fallen; None before a fall. Its kind tells errors from falls.
        fell_at: Time stamp of the observation in which the fall was detected [s], or None.
    """

    def __init__(
        self, controller: Controller, robot: Robot, fall_tilt: float = FALL_TILT, dt: float | None = None
    ) -> None:
        self._controller: Any = controller
        self.set_velocity: Callable[[float, float, float], None] | None = getattr(controller, "set_velocity", None)
        self.set_footsteps: Callable[[Array], None] | None = getattr(controller, "set_footsteps", None)
        self.tune: Callable[[Any], None] | None = getattr(controller, "tune", None)
        self.height_points: Array | None = getattr(controller, "height_points", None)
        self.true_velocity: Array | None = getattr(controller, "true_velocity", None)
        self._shown: Mapping[str, float] = getattr(controller, "readouts", {})
        self.has_estimate = hasattr(controller, "estimate")
        self._gives_up = hasattr(controller, "fallen")
        self._upright = _vertical_in_imu(robot)
        self._least_cosine = np.cos(fall_tilt) if fall_tilt > 0.0 and robot.free_flyer else -np.inf
        self._damping = joint_damping(robot)
        self._limit = robot.effort_limit
        self._joint_names = robot.joint_names
        self._damped = Command(np.zeros(robot.nu))
        self._damping_drives = Command(np.zeros(robot.nu), damping=self._damping.copy())
        self._decimation = _decimation_of(controller)
        self._dt = dt
        self._wait = 0
        self._asked_at = -np.inf
        self._held = self._damped
        self.fresh = True
        self.reason: StopReason | None = None
        self.fell_at: float | None = None
        self._velocity: tuple[float, float, float] | None = None

    @property
    def fallen(self) -> bool:
        """Whether the robot has fallen since the last reset."""
        return self.fell_at is not None

    @property
    def readouts(self) -> Mapping[str, float]:
        """Debug signals of the controller, live; empty if it has none.

        If the controller replaces the dict, keys that only the first one has are NaN.
        """
        shown = getattr(self._controller, "readouts", self._shown)
        return self._shown if shown is self._shown else {**dict.fromkeys(self._shown, math.nan), **shown}

    @property
    def controller_class(self) -> type[Any]:
        """The class of the controller."""
        return type(self._controller)

    @property
    def estimate(self) -> Estimate | None:
        """The state that the controller estimates, or None."""
        estimate: Estimate | None = self._controller.estimate if self.has_estimate else None
        return estimate

    def reset(self, observation: Observation) -> None:
        """Clear a fall and reset the controller."""
        self.reason, self.fell_at, self._velocity = None, None, None
        self._wait, self._asked_at = 0, -np.inf
        self._controller.reset(observation)

    def steer(self, velocity: tuple[float, float, float]) -> None:
        """Pass a new velocity (vx, vy, wz) [m/s, m/s, rad/s] to the controller, if the controller takes velocities."""
        if self.set_velocity is not None and velocity != self._velocity:
            self._velocity = velocity
            self.set_velocity(*velocity)

    def update(self, observation: Observation) -> Command:
        """Return the controller's command, or joint damping once the robot has fallen.

        Between two updates of a controller with a decimation, its last command is repeated. An exception of the
        controller propagates to the caller, and the guard damps the joints from then on.

        Raises:
            InvalidCommandError: The controller returned an invalid command.
        """
        self.fresh = self._due(observation.t)
        if self.fell_at is None:
            try:
                if self.fresh:
                    self._held = checked(self._controller.update(observation), observation)
            except Exception as error:
                self.fell_at, self.reason = observation.t, _reason(error)
                raise
            self.reason = self._fault(observation, self._held)
            if self.reason is None:
                return self._held
            self.fell_at = observation.t
            self.fresh = True
        if self._held.closes_loop:
            return self._damping_drives
        self.fresh = True
        tau = self._damped.tau_joint
        np.multiply(-self._damping, observation.joint_velocity, out=tau)
        np.clip(tau, -self._limit, self._limit, out=tau)
        return self._damped

    def _due(self, t: float) -> bool:
        """Return whether this tick updates the controller, and count the tick."""
        wait, every = self._wait, self._decimation
        if self._dt is not None and every > 1:
            if self._asked_at > -np.inf:
                # The line after next counts the current tick, so only lost ticks are subtracted here.
                wait -= max(0, round((t - self._asked_at) / self._dt) - 1)
            self._asked_at = t
        due = wait <= 0
        # A late update runs at once; the schedule of later updates stays as it was.
        self._wait = ((wait % every or every) if due else wait) - 1
        return due

    def _fault(self, observation: Observation, command: Command) -> StopReason | None:
        """Return why the robot counts as fallen, or None."""
        tau = command.tau_joint
        if command.closes_loop or not is_finite(tau):
            for name, attribute in _VALUES.items():
                values = getattr(command, attribute)
                if values is not None and not np.isfinite(values).all():
                    j = int(np.argmin(np.isfinite(values)))
                    return StopReason(StopKind.NOT_FINITE, f"{name} of {self._joint_names[j]} is {values[j]}")
        cosine = _upward(observation.imu_orientation, self._upright)
        if cosine < self._least_cosine:
            return StopReason(StopKind.TILTED, f"{np.degrees(np.arccos(max(cosine, -1.0))):.0f}")
        if self._gives_up and self._controller.fallen:
            return StopReason(StopKind.GAVE_UP)
        return None


def _reason(error: Exception) -> StopReason:
    """Return why a controller stopped after its update raised an error or returned an invalid command."""
    if isinstance(error, InvalidCommandError):
        return StopReason(StopKind.RETURNED, error.detail)
    message = str(error).strip().partition("\n")[0]
    return StopReason(StopKind.RAISED, f"{type(error).__name__}{f': {message}' if message else ''}")


def _decimation_of(controller: Controller) -> int:
    """Return the number of ticks per update of a controller.

    Raises:
        ConfigError: Its ``decimation`` is not a whole number of at least 1.
    """
    decimation = getattr(controller, "decimation", 1)
    if isinstance(decimation, bool) or not isinstance(decimation, int) or decimation < 1:
        raise ConfigError("of the controller must be a whole number of ticks, at least 1", "decimation", decimation)
    return decimation


def _upward(quaternion: Array, vector: tuple[float, float, float]) -> float:
    """Return the vertical component of ``vector`` after a rotation by ``quaternion`` (4,), x y z w."""
    x, y, z, w = quaternion.tolist()
    row = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    return float(row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2])


def _vertical_in_imu(robot: Robot) -> tuple[float, float, float]:
    """Return the unit vector (3,) that points up, in the IMU's frame, when the robot stands in its nominal posture."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, robot.q_nominal)
    rotation = (data.oMi[robot.imu_joint_id] * robot.placement_joint_imu).rotation
    x, y, z = rotation[2].tolist()
    return x, y, z
