"""How long the steps of a walk take, from its speed and the height of the pendulum.

People who walk faster take longer and quicker steps alike: the length of a step times its time, the walk ratio, hardly
changes: 0.42 m.s (Sekiya, Nagasaki, Ito and Furuna, "The invariant relationship between step length and step rate
during free walking", 1996). With times in units of 1 / omega and lengths in units of the height of the CoM it is 1.40
for them (h = 0.96 m), and can be one number for robots of any size. Flat feet reach less far: robots walk best at 1.15.
"""

from __future__ import annotations

import math
from typing import NamedTuple

SLOWEST = 2.34
"""omega T of the slowest steps: 0.70 s with h = 0.88 m."""
DOUBLE = 0.08
"""Time on both feet over that on one: the longer the foot in the air has, the less torque its leg takes."""


class Timing(NamedTuple):
    """Time [s] of a step on one foot, and then on both."""

    single: float
    double: float

    @property
    def period(self) -> float:
        """T of the step [s]."""
        return self.single + self.double


class Cadence:
    """Chooses the times of a step.

    Args:
        single, double: Times on one foot and on both that are fixed [s]; 0: chosen.
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

    def timing(self, speed: float) -> Timing:
        """Return the times of a step at ``speed`` [m/s] ahead or back.

        Slow steps take the same time; of quicker ones, length times time stays what it is.
        """
        slowest, ratio, speed = self._slowest, self._ratio, abs(speed)
        period = slowest if speed * slowest * slowest < ratio else math.sqrt(ratio / speed)
        single = self._single or period / (1.0 + DOUBLE)
        return Timing(single, self._double or DOUBLE * single)

    def speed(self, length: float) -> float:
        """Return the speed [m/s] of steps of this ``length`` [m]."""
        slow = length / self.timing(0.0).period
        if self._single:
            return slow
        # length = speed double + root sqrt(speed)
        root = math.sqrt(self._ratio) / (1.0 + DOUBLE if self._double else 1.0)
        return float(max(slow, (2.0 * length / (root + math.sqrt(root * root + 4.0 * self._double * length))) ** 2))
