"""Shape of the steps of a walk: their times, length, width, and the ZMP under a foot, from the velocity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bipedsim.config import param
from bipedsim.control.walking.cadence import SLOWEST, Cadence, StepTiming
from bipedsim.errors import ConfigError
from bipedsim.numerics import Array

_NARROW, _WIDE = 0.75, 2.0
"""Default limits of the width of a step after a push, relative to the width of the gait."""
_ROLL = 0.1
"""Displacement of the ZMP from the foot's centre in single support, as a share of the step length.

The ZMP moves from behind the centre to ahead of it. This reduces the acceleration of the CoM, and with it the demand on
friction and hips."""
_UNEVEN, _LEANING = 0.008, 0.05
"""Deviation of height [m] and tilt [rad] of a foot from its planned touchdown, beyond which the ground is uneven.

It is twice the deviation that friction in the drives and sensor noise cause on level ground."""
WARY = 16
"""Number of level steps after which the gait returns to that of even ground."""


@dataclass(frozen=True)
class GaitParams:
    """Shape and timing of the steps."""

    single_support: float = param(
        0.0, "time on one foot; 0: from the speed, shorter at a higher speed", unit="s", high=10.0
    )
    double_support: float = param(0.0, "time of double support; 0: 0.08 of single support", unit="s", high=10.0)
    start_hold: float = param(0.5, "time from the command to the first shift", unit="s", low=0.01, high=10.0)
    start_shift: float = param(0.3, "time of the first shift of the weight", unit="s", low=0.01, high=10.0)
    stop_shift: float = param(0.6, "time of the last shift, to between the feet", unit="s", low=0.01, high=10.0)
    walk_ratio: float = param(
        1.15, "length of a step over the height of the CoM, times omega T, if the speed sets T", low=0.1, high=5.0
    )
    uneven_period: float = param(
        1.7, "longest step on uneven ground, times omega, if the speed sets T", low=0.5, high=10.0
    )
    step_height: float = param(0.05, "rise of the swing foot", unit="m", low=0.0, high=0.5)
    step_width: float = param(
        0.0,
        "lateral distance between the feet; 0: that of the standing posture, smaller at speed",
        unit="m",
        low=0.0,
        high=1.0,
    )
    swing_inertia: float = param(
        -1.0, "kappa: shift of the ZMP per acceleration of the swing foot; -1: by its inertia", unit="s^2", high=0.1
    )
    zmp_forward: float = param(0.0, "planned ZMP ahead of the centre of the sole", unit="m", low=-0.2, high=0.2)
    zmp_inward: float = param(0.0, "planned ZMP inwards of the centre of the sole", unit="m", low=-0.1, high=0.1)
    max_forward: float = param(0.8, "largest forward velocity; half of it backward", unit="m/s", low=0.0, high=3.0)
    max_sideways: float = param(0.2, "largest lateral velocity", unit="m/s", low=0.0, high=2.0)
    max_turn: float = param(0.6, "largest rate of turning", unit="rad/s", low=0.0, high=3.0)
    acceleration: float = param(0.4, "largest change of the velocity per time", unit="m/s^2", low=0.01, high=10.0)

    def cadence(self, omega: float, g: float, slowest: float = SLOWEST) -> Cadence:
        """Make the choice of step times by speed.

        Args:
            omega: sqrt(g / h) of the pendulum [1/s].
            g: [m/s^2].
            slowest: omega T of the slowest steps.
        """
        return Cadence(self.single_support, self.double_support, self.walk_ratio, omega, g, slowest)

    def problems(self) -> Iterator[ConfigError]:
        """Yield a message for each invalid step time."""
        for name, minimum in (("single_support", 0.1), ("double_support", 0.01)):
            value = getattr(self, name)
            if value and value < minimum:
                yield ConfigError(f"s must be at least {minimum:g} s, or 0 to derive it from the speed", name, value)


def farthest(timing: StepTiming, omega: float) -> float:
    """Return the largest distance of a stance foot from the CoM in a steady walk, as a share of the step length.

    The pendulum has a constant ZMP in single support, and a ZMP at constant speed in double support. The share is one
    half for short double support. It is one if the CoM is over the other foot before the first foot lifts off.
    """
    double, single = 0.5 * omega * timing.double, math.tanh(0.5 * omega * timing.single)
    return 1.0 - single / (2.0 * double * (1.0 + single / math.tanh(double)))


class GaitBuild(NamedTuple):
    """Properties of a robot that shape its steps.

    Attributes:
        width: Distance between the centres of the feet in standing [m].
        omega: sqrt(g / z) of the pendulum [1/s].
        left: Index of the left foot.
        room: Largest shift [m] of the ZMP by which a new plan continues from the DCM of the old one.
        longest: Upper limit of the step length [m], if that of ``max_forward`` is larger.
        apart: Limits of the width of a step after a push [m]; by default they follow from the width of the gait.
        narrow: Width of steps [m] at ``max_forward``; 0 for the width at rest.
        rolls: Largest displacement [m] of the planned ZMP from the centre of a foot towards heel and toes.
        knee_inertia: mu [s^2/m] of :meth:`bipedsim.control.walking.whole_body.WholeBody.knee_inertia`.
        g: [m/s^2].
    """

    width: float
    omega: float
    left: int
    room: float
    longest: float = math.inf
    apart: tuple[float, float] | None = None
    narrow: float = 0.0
    rolls: float = 0.0
    knee_inertia: float = 0.0
    g: float = 9.81


class Stride:
    """Choose times, length and width of steps by the velocity; on uneven ground the steps are quicker.

    Args:
        params: See :class:`GaitParams`.
        build: Properties of the robot.

    Attributes:
        build: The argument.
        longest: Largest step length [m].
        widths: Limits of the width of a step after a push [m].
        limits: Largest velocity ahead and sideways [m/s], and turn rate [rad/s], each without the others.
        wary: Number of steps for which the ground still counts as uneven.
    """

    def __init__(self, params: GaitParams, build: GaitBuild) -> None:
        self.build = build
        self._params = params
        self._usual_cadence = cadence = params.cadence(build.omega, build.g)
        self._quick_cadence = params.cadence(build.omega, build.g, min(params.uneven_period, SLOWEST))
        self._fastest = params.max_forward
        self.longest = self._fastest * cadence.timing(self._fastest).period
        if build.longest < self.longest:
            self.longest, self._fastest = build.longest, cadence.speed(build.longest)
        self.widths = build.apart or (_NARROW * build.width, _WIDE * build.width)
        self.limits = self._fastest, params.max_sideways, params.max_turn
        self.wary = 0

    def side(self, foot: int) -> float:
        """Return 1 for the left foot and -1 for the right one."""
        return 1.0 if foot == self.build.left else -1.0

    def landed(self, height_error: float, tilt_error: float) -> None:
        """Switch to quick steps for a while if a touchdown was off its planned height [m] or tilt [rad].

        The error of the DCM that a touchdown causes grows with e^(omega T) until the next one.
        """
        self.wary = WARY if height_error > _UNEVEN or tilt_error > _LEANING else max(0, self.wary - 1)

    def limited(self, command: Array) -> Array:
        """Return the velocity (3,) closest to ``command`` (3,) that the gait allows; zero if it is not finite."""
        if not np.isfinite(command).all():
            return np.zeros(3)
        ahead, side, turn = self.limits
        limited = np.clip(command, (-0.5 * ahead, -side, -turn), self.limits)
        # Each component alone may reach its limit. Together they would require too large a step of one foot.
        pairs = zip(limited.tolist(), self.limits, strict=True)
        share = math.sqrt(sum((value / limit) ** 2 for value, limit in pairs if limit > 0.0))
        return np.asarray(limited / max(share, 1.0))

    def cadence(self) -> Cadence:
        """Return the choice of step times for the present ground."""
        return self._quick_cadence if self.wary else self._usual_cadence

    def timing(self, velocity: Array) -> StepTiming:
        """Return the times of a step at ``velocity`` (3,); sideways, every other step is twice as long."""
        return self.cadence().timing(math.hypot(velocity[0], 2.0 * velocity[1]))

    def next_velocity(self, velocity: Array, wanted: Array) -> Array:
        """Return the velocity (3,) of the step after one at ``velocity``, closer to the ``wanted`` one."""
        max_change = self._params.acceleration * self.timing(velocity).period
        change = wanted - velocity
        size = float(np.hypot(change[0], change[1]))
        if size > max_change:
            change[:2] *= max_change / size
        return np.asarray(velocity + change)

    def zmp(self, foot: int, point: Array, yaw: float) -> Array:
        """Return the planned ZMP (2,) under a foot whose centre is at ``point`` [m], with heading ``yaw`` [rad]."""
        c, s = math.cos(yaw), math.sin(yaw)
        ahead, left = self._params.zmp_forward, -self.side(foot) * self._params.zmp_inward
        return np.array([point[0] + c * ahead - s * left, point[1] + s * ahead + c * left])

    def roll(self, velocity: Array, time: float, yaw: float) -> Array:
        """Return the displacement (2,) [m] of the ZMP ahead of the centre of a foot with heading ``yaw`` [rad]."""
        ahead = min(max(_ROLL * float(velocity[0]) * time, -self.build.rolls), self.build.rolls)
        return np.array([math.cos(yaw) * ahead, math.sin(yaw) * ahead])

    def width_at(self, velocity: Array) -> float:
        """Return the step width [m] at ``velocity`` (3,)."""
        share = min(abs(float(velocity[0])) / self._fastest, 1.0) if self._fastest else 0.0
        return self.build.width - share * (self.build.width - (self.build.narrow or self.build.width))
