"""Reduce the return map of a walker to one dimension with a virtual constraint that holds before every touch-down.

The method is that of Grizzle, Abba and Plestan, as described in hurmuzlu2001 (sections 4.3 and 5.2). A feedback makes
the swing leg follow the stance leg, theta_2 = p(theta_1), before the next touch-down. Every touch-down then has the
same angle and theta_2' = p' theta_1', so the rate of the stance leg determines the state.

The hip torque has no moment about the stance foot. Only gravity changes the angular momentum s = I(theta_1) theta_1'
about it, by the moment G(theta_1). The remaining motion s ds = G I dtheta_1 is the zero dynamics.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial
from scipy.integrate import solve_ivp

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim_studies.planar import finite_time_feedback, settling_time
from bipedsim_studies.stability.maps import NoReturnError, Return
from bipedsim_studies.stability.straight_legs import StraightLegs

RELATIVE, ABSOLUTE = 1e-10, 1e-13
"""Tolerances of the integration."""
SETTLED = 1e-6
"""Errors below this value count as zero [rad, rad/s]. They vanish within a hundredth of the time scale."""


class VirtualConstraint:
    """Virtual constraint theta_2 = p(theta_1) of a walker with two straight legs.

    Args:
        walker: The walker.
        path: Polynomial p of the stance leg's angle from the normal of the slope.

    Attributes:
        walker: The walker.
        touch_down: theta_1 at a touch-down on the constraint [rad].

    Raises:
        ConfigError: The swing foot never touches down on this constraint.
    """

    def __init__(self, walker: StraightLegs, path: Polynomial) -> None:
        self.walker = walker
        self._path, self._slope = path, path.deriv()
        ends = np.asarray((path + Polynomial([0.0, 2.0])).roots(), dtype=np.complex128)
        touch_down_angles = [
            float(end.real) for end in ends if abs(end.imag) < 1e-9 and -0.5 * np.pi < end.real < -walker.apart
        ]
        if not touch_down_angles:
            raise ConfigError(
                "it never brings the legs to theta_2 = -2 theta_1: the foot does not land", f"path {path}"
            )
        self.touch_down = max(touch_down_angles)

    def before_strike(self, rate: float) -> Array:
        """Return the state (4,) on the constraint before a touch-down with theta_1' = ``rate`` [rad/s]."""
        angle = self.touch_down
        return np.array([angle, rate, -2.0 * angle, float(self._slope(angle)) * rate])

    def error(self, state: Array) -> tuple[float, float]:
        """Return the error theta_2 - p [rad] and its rate [rad/s] in a state (4,)."""
        angle, rate, swing, swing_rate = state
        return float(swing - self._path(angle)), float(swing_rate - self._slope(angle) * rate)

    def state(self, angle: float, momentum: float, error: float = 0.0, error_rate: float = 0.0) -> Array:
        """Return the state (4,) with the given theta_1 [rad], angular momentum about the stance foot, and error."""
        swing, slope = float(self._path(angle)) + error, float(self._slope(angle))
        # The momentum is linear in theta_1', since error rate and slope of the path determine theta_2'.
        momentum_at_zero_rate = self.momentum(np.array([angle, 0.0, swing, error_rate]))
        rate = (momentum - momentum_at_zero_rate) / self.momentum(np.array([angle, 1.0, swing, slope]))
        return np.array([angle, rate, swing, slope * rate + error_rate])

    def momentum(self, state: Array) -> float:
        """Return the angular momentum about the stance foot [kg.m^2/s] in a state (4,)."""
        angle, rate, swing, swing_rate = state
        M, _ = self.walker.equations(angle, angle + swing, rate, rate + swing_rate)
        return float(M.sum(axis=0) @ [rate, rate + swing_rate])

    def moment(self, angle: float, error: float = 0.0) -> float:
        """Return the moment G of gravity about the stance foot [N.m]."""
        _, N = self.walker.equations(angle, angle + float(self._path(angle)) + error, 0.0, 0.0)
        return -float(N.sum())

    def inertia(self, angle: float) -> float:
        """Return the inertia I [kg.m^2]: the angular momentum on the constraint divided by theta_1'."""
        return 1.0 / float(self.state(angle, 1.0)[1])


class ReducedMap:
    """Return map on the constraint: from theta_1' before one touch-down to theta_1' before the next.

    After a touch-down, :func:`finite_time_feedback` removes the error. The required torque does not have to be known,
    because it does not change the angular momentum. The zero dynamics follow.

    Args:
        constraint: The constraint.
        power: Exponent of the feedback.
        time_scale: Time scale of the feedback [s]. 0 means an instantaneous transient, which changes neither angles
            nor angular momentum. The constraint must then hold for the angles after a touch-down.
    """

    names: tuple[str, ...] = ("theta_1'",)

    def __init__(self, constraint: VirtualConstraint, power: float = 0.7, time_scale: float = 0.0) -> None:
        self._constraint = constraint
        self._power, self._scale = power, time_scale

    def __call__(self, xi: Array) -> Return:
        """Return theta_1' (1,) [rad/s] before the next touch-down.

        Raises:
            NoReturnError: The walker falls, or the foot touches down before the constraint holds.
        """
        constraint = self._constraint
        start = constraint.walker.heel_strike(constraint.before_strike(float(xi[0])))
        angle, momentum, transient_time = self._settled(start)
        half_square = 0.5 * momentum**2

        def along(angle: float, z: Array) -> list[float]:
            inertia = constraint.inertia(angle)
            return [constraint.moment(angle) * inertia, -inertia / np.sqrt(2.0 * max(z[0], ABSOLUTE))]

        def reverses(_angle: float, z: Array) -> float:
            return float(z[0] - 1e-6 * half_square)

        reverses.terminal = True  # type: ignore[attr-defined]
        span = (angle, constraint.touch_down)
        solution = solve_ivp(along, span, [half_square, 0.0], "DOP853", events=reverses, rtol=RELATIVE, atol=ABSOLUTE)
        if solution.status != 0:
            raise NoReturnError("rad/s is too slow: the walker falls back", "theta_1'", float(xi[0]))
        end = constraint.state(constraint.touch_down, -np.sqrt(2.0 * solution.y[0, -1]))
        return Return(end[1:2], transient_time + float(solution.y[1, -1]))

    def _settled(self, start: Array) -> tuple[float, float, float]:
        """Return theta_1, the angular momentum, and the time at which the constraint holds after state ``start``."""
        constraint = self._constraint
        error, rate = constraint.error(start)
        momentum = constraint.momentum(start)
        if self._scale == 0.0:
            if abs(error) > SETTLED:
                raise NoReturnError(
                    f"after the touch-down the constraint is off by {error:.3g} rad: it needs some time"
                )
            return float(start[0]), momentum, 0.0
        if max(abs(error), abs(rate)) < SETTLED:
            return float(start[0]), momentum, 0.0

        def slope(_t: float, z: Array) -> list[float]:
            angle, s, error, error_rate = z
            wanted = float(finite_time_feedback(error, error_rate, self._power, self._scale))
            theta_rate = float(constraint.state(angle, s, error, error_rate)[1])
            return [theta_rate, constraint.moment(angle, error), error_rate, wanted]

        def settled(_t: float, z: Array) -> float:
            return float(max(abs(z[2]), abs(z[3])) - SETTLED)

        def ends(_t: float, z: Array) -> float:
            return float(min(z[0] - constraint.touch_down, -z[1]))

        settled.terminal = ends.terminal = True  # type: ignore[attr-defined]
        longest = 1.1 * settling_time(error, rate, self._power, self._scale)
        z = [float(start[0]), momentum, error, rate]
        solution = solve_ivp(slope, (0.0, longest), z, "RK45", events=(settled, ends), rtol=1e-7, atol=0.01 * SETTLED)
        angle, momentum = solution.y[:2, -1]
        if not len(solution.t_events[0]):
            raise NoReturnError(
                "s is too long: the constraint does not hold before the next touch-down", "time scale", self._scale
            )
        return float(angle), float(momentum), float(solution.t[-1])
