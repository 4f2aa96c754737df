"""Collocated partial feedback linearisation, with steps for walkers that fall from foot to foot.

Source: A. Adu-Bredu, Contact simulation of a 2D bipedal robot kicking a ball, eq. 10 to 15. Collocated linearisation:
M. W. Spong, Partial feedback linearization of underactuated mechanical systems, IROS 1994.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import param
from bipedsim.control.output.stance import StepTracking
from bipedsim.control.output.supported import Task
from bipedsim.control.posture import ReferenceParams
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Observation

EARLY = 0.1
"""Share of ``swing_time`` in which another touchdown is ignored as an after-effect of the last impact."""
PLANS = 2
"""Number of ticks that plan a swing from the measured state; in the first one the impact may not be over."""


@dataclass(frozen=True)
class PflParams(ReferenceParams):
    """Parameters of :class:`PflController`."""

    kp: float = param(100.0, "K_p of eq. 14", unit="1/s^2", low=0.0, high=1e6, live=True)
    kd: float = param(0.0, "K_d of eq. 14; 0: 2 sqrt(kp), critical damping", unit="1/s", low=0.0, high=1e4, live=True)
    swing: dict[str, str] = param(
        {}, "for walkers: stance foot to the sum of joints that gives the angle between the legs"
    )
    swing_target: float = param(0.3, "that angle when the swing ends", unit="rad", low=-3.0, high=3.0)
    swing_time: float = param(1.0, "time of a swing; then the angle is held", unit="s", low=1e-2, high=100.0)


class PflController(StepTracking):
    """Make sums of driven joints follow y'' = y_ref'' - K_p (y - y_ref) - K_d (y' - y_ref') exactly.

    Other degrees of freedom, such as a stance leg that falls forwards over its foot, stay uncontrolled. With ``swing``
    only the stance foot counts as resting, and every touchdown of the other foot begins a swing. A swing is a quintic
    from the measured angle and velocity to rest at ``swing_target``.
    """

    Params = PflParams
    who = "pfl"
    tilt = False

    def __init__(self, robot: Robot, params: PflParams, dt: float) -> None:
        if params.swing and params.mode == "walk":
            raise ConfigError("swing and mode = 'walk' exclude each other. Omit one", "pfl: swing")
        super().__init__(robot, params, dt)
        self.tune(params)
        swing = self._per_foot(robot, params.swing, robot.joint_names, "swing")
        if params.swing and not len(swing) == len(robot.soles) == 2:
            raise ConfigError(
                f"an angle is needed for each of two feet, not for {', '.join(params.swing)}", "pfl: swing"
            )
        self._walk(swing, EARLY * params.swing_time)
        self._target, self._time = params.swing_target, params.swing_time
        self._planned = 0
        self._curve: tuple[NDArray[Any], ...] = ()

    def tune(self, params: PflParams) -> None:
        """Take the gains K_p and K_d between two updates."""
        self._kp, self._kd = params.kp, params.kd or 2.0 * math.sqrt(params.kp)

    def wanted(self, error: Array, rate: Array, acceleration: Array) -> Array:
        """Return the desired y'' of eq. 14."""
        return acceleration - self._kp * error - self._kd * rate

    def _begin(self, observation: Observation, stance: int) -> None:
        """Plan the swing on the stance foot ``stance`` from the measured angle and velocity."""
        self._planned = 1 if stance != self._stance.index or not self._stance.known else self._planned + 1
        super()._begin(observation, stance)
        row = self._swing[stance]
        start, rate = float(row @ observation.joint_position), float(row @ observation.joint_velocity)
        curve = swing_curve(start, rate, self._target, self._time)
        self._curve = tuple(np.polyder(curve, order) for order in range(3))

    def _swinging(self, observation: Observation) -> None:
        if self._planned < PLANS:
            self._begin(observation, self._stance.index)

    def _swing_task(self, observation: Observation) -> tuple[Task, float]:
        row = self._swing[self._stance.index : self._stance.index + 1]
        since = min(observation.t - self._stance.began, self._time)
        y, dy, ddy = (np.polyval(curve, since) for curve in self._curve)
        error, rate = row @ observation.joint_position - y, row @ observation.joint_velocity - dy
        return Task(row @ self._joints, np.zeros(1), self.wanted(error, rate, np.array([ddy]))), float(error[0])


def swing_curve(start: float, rate: float, end: float, duration: float) -> Array:
    """Compute the quintic (6,), highest power first, from ``start`` with ``rate`` to rest at ``end``.

    The accelerations at both ends are zero.

    Args:
        start, end: [rad].
        rate: [rad/s].
        duration: [s].
    """
    distance, initial = end - start, rate * duration
    in_share = np.array(
        [
            6.0 * distance - 3.0 * initial,
            -15.0 * distance + 8.0 * initial,
            10.0 * distance - 6.0 * initial,
            0.0,
            initial,
            start,
        ]
    )
    curve: Array = in_share / duration ** np.arange(5, -1, -1)
    return curve
