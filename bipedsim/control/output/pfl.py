"""Collocated partial feedback linearisation, with steps for walkers that fall from foot to foot.

A. Adu-Bredu: Contact simulation of a 2D bipedal robot kicking a ball, eq. 10 to 15; collocated: M. W. Spong, Partial
feedback linearization of underactuated mechanical systems, IROS 1994.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import param
from bipedsim.control.output.output_tracking import OutputTracking, linear_sums
from bipedsim.control.output.stance import StanceFoot
from bipedsim.control.output.supported import Task
from bipedsim.control.posture import ReferenceParams
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Observation

EARLY = 0.1
"""Share of ``swing_time`` before which a touch-down is no step: what the ground does just after one."""
PLANS = 2
"""Ticks in which a swing is planned anew from what is measured: in the first one the impact may not be over."""


@dataclass(frozen=True)
class PflParams(ReferenceParams):
    """Parameters of :class:`PflController`."""

    kp: float = param(100.0, "K_p of eq. 14", unit="1/s^2", low=0.0, high=1e6)
    kd: float = param(0.0, "K_d of eq. 14; 0: 2 sqrt(kp), critical damping", unit="1/s", low=0.0, high=1e4)
    swing: dict[str, str] = param(
        {}, "of a walker: foot that carries, to the sum of joints that is the angle of the swinging leg from it"
    )
    swing_target: float = param(0.3, "that angle when the swing ends", unit="rad", low=-3.0, high=3.0)
    swing_time: float = param(1.0, "time of a swing; then the angle is held", unit="s", low=1e-2, high=100.0)


class PflController(OutputTracking):
    """Makes sums of driven joints follow y'' = y_ref'' - K_p (y - y_ref) - K_d (y' - y_ref') exactly.

    What the outputs do not say, such as a stance leg that falls forwards over its foot, goes its own way. With
    ``swing``, the foot that carries is the only one at rest, and every touch-down of the other begins a swing: a
    quintic from the measured angle and velocity to ``swing_target`` at rest.

    Args:
        robot: The robot.
        params: See :class:`PflParams`.
        dt: Control period [s]; the law is that of continuous time.

    Attributes:
        readouts: With ``steps``, the touch-downs that began a swing.

    Raises:
        ConfigError: A parameter does not fit the robot.
        UnknownNameError: A joint, output or foot that there is not.
    """

    Params = PflParams

    def __init__(self, robot: Robot, params: PflParams, dt: float) -> None:
        if params.swing and params.mode == "walk":
            raise ConfigError("pfl: swing and mode = 'walk' are two ways to walk; leave out one")
        super().__init__(robot, params, "pfl", tilt=False)
        self._kp, self._kd = params.kp, params.kd or 2.0 * math.sqrt(params.kp)
        names = [sole.name for sole in robot.soles]
        for foot in params.swing:
            if foot not in names:
                raise UnknownNameError("foot", foot, names, "pfl: swing")
        missing = [name for name in names if name not in params.swing]
        if params.swing and (missing or len(names) != 2):
            raise ConfigError(f"pfl: swing needs an angle for each of two feet, not for {', '.join(params.swing)}")
        ordered = {name: params.swing[name] for name in names} if params.swing else {}
        self._swing = linear_sums(ordered, robot.joint_names, "pfl: swing")
        self._target, self._time = params.swing_target, params.swing_time
        self._stance = StanceFoot(EARLY * params.swing_time)
        self._planned = 0
        self._curve: tuple[NDArray[Any], ...] = ()
        if params.swing:
            self.readouts["steps"] = 0.0

    def wanted(self, error: Array, rate: Array, acceleration: Array) -> Array:
        """Return y'' of eq. 14."""
        return acceleration - self._kp * error - self._kd * rate

    def reset(self, observation: Observation) -> None:
        """Start from the measured state."""
        super().reset(observation)
        self._stance.reset()

    def _resting(self, observation: Observation) -> Flags:
        loaded = self._feet.loaded
        if not len(self._swing):
            return loaded
        stance = self._stance
        if not stance.known:
            self._begin(observation, int(np.argmax(loaded)))
            self.readouts["steps"] = 0.0
        elif stance.lands(observation.t, loaded):
            self._begin(observation, 1 - stance.index)
            self.readouts["steps"] += 1.0
        elif self._planned < PLANS:
            self._begin(observation, stance.index)
        return np.arange(len(loaded)) == stance.index

    def _begin(self, observation: Observation, stance: int) -> None:
        """Plan the swing beside the foot ``stance`` from the measured angle and velocity."""
        self._planned = 1 if stance != self._stance.index or not self._stance.known else self._planned + 1
        self._stance.take(observation.t, stance)
        row = self._swing[stance]
        start, rate = float(row @ observation.joint_position), float(row @ observation.joint_velocity)
        curve = swing_curve(start, rate, self._target, self._time)
        self._curve = tuple(np.polyder(curve, order) for order in range(3))

    def _tasks(self, observation: Observation, t: float) -> list[Task]:
        if not len(self._swing):
            return super()._tasks(observation, t)
        row = self._swing[self._stance.index : self._stance.index + 1]
        since = min(observation.t - self._stance.began, self._time)
        y, dy, ddy = (np.polyval(curve, since) for curve in self._curve)
        error, rate = row @ observation.joint_position - y, row @ observation.joint_velocity - dy
        swing = Task(row @ self._joints, np.zeros(1), self.wanted(error, rate, np.array([ddy])))
        # A walker of one drive has none left for anything else.
        others = super()._tasks(observation, t) if self._robot.nu > 1 else []
        self.readouts["tracking_error"] = abs(float(error[0]))
        return [swing, *others]


def swing_curve(start: float, rate: float, end: float, duration: float) -> Array:
    """Return the quintic (6,), highest power first, from ``start`` with ``rate`` to rest at ``end``.

    Accelerations at both ends are zero.

    Args:
        start, end: [rad].
        rate: [rad/s].
        duration: [s].
    """
    way, lead = end - start, rate * duration
    in_share = np.array([6.0 * way - 3.0 * lead, -15.0 * way + 8.0 * lead, 10.0 * way - 6.0 * lead, 0.0, lead, start])
    curve: Array = in_share / duration ** np.arange(5, -1, -1)
    return curve
