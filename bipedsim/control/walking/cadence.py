"""Duration of the steps of a walk, from its speed and the height of the pendulum.

People who walk faster take both longer and quicker steps. The walk ratio, which is step length times step time, is
nearly constant: 0.42 m.s (Sekiya, Nagasaki, Ito and Furuna, "The invariant relationship between step length and step
rate during free walking", 1996).

With times in units of 1 / omega and lengths in units of the CoM's height, the ratio of people is 1.40 (h = 0.96 m). One
number then suits robots of any size. Flat feet have less reach; robots walk best at 1.15.
"""

from __future__ import annotations

import math
from typing import NamedTuple

SLOWEST = 2.34
"""omega T of the slowest steps: 0.70 s with h = 0.88 m."""
DOUBLE_SUPPORT = 0.08
"""Time of double over single support; more time in single support reduces the torque of the swing leg."""


class StepTiming(NamedTuple):
    """Time [s] of a step in single support, and then in double support."""

    single: float
    double: float

    @property
    def period(self) -> float:
        """Duration T of the step [s]."""
        return self.single + self.double


class Cadence:
    """Choose the durations of single and double support.

    Args:
        single, double: Fixed times of single and double support [s]; 0 for a choice by speed.
        ratio: Walk ratio: length over h, times omega T.
        omega: sqrt(g / h) of the pendulum [1/s].
        g: [m/s^2].
        slowest: omega T of the slowest steps.
    """

    def __init__(
        self, single: float, double: float, ratio: float, omega: float, g: float, slowest: float = SLOWEST
    ) -> None:
        self._single, self._double = single, double
        self._slowest, self._ratio = slowest / omega, ratio * g / omega**3

    def timing(self, speed: float) -> StepTiming:
        """Return the times of a step at ``speed`` [m/s] ahead or back.

        Slow steps all take the same time. For quicker steps, length times time is constant.
        """
        slowest, ratio, speed = self._slowest, self._ratio, abs(speed)
        period = slowest if speed * slowest * slowest < ratio else math.sqrt(ratio / speed)
        single = self._single or period / (1.0 + DOUBLE_SUPPORT)
        return StepTiming(single, self._double or DOUBLE_SUPPORT * single)

    def speed(self, length: float) -> float:
        """Return the walking speed [m/s] at which steps have this ``length`` [m]."""
        slow = length / self.timing(0.0).period
        if self._single:
            return slow
        # length = speed double + root sqrt(speed)
        root = math.sqrt(self._ratio) / (1.0 + DOUBLE_SUPPORT if self._double else 1.0)
        return float(max(slow, (2.0 * length / (root + math.sqrt(root * root + 4.0 * self._double * length))) ** 2))
