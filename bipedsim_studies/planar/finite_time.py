"""Enforce virtual constraints in finite time, by the continuous feedback of Bhat and Bernstein.

Y. Hurmuzlu, F. Genot, B. Brogliato: Modeling, stability and control of biped robots - a general framework. INRIA, 2001,
    sections 4.3 and 5.2: Grizzle's scheme, whose constraints hold before the next impact.
J. W. Grizzle, G. Abba, F. Plestan: Asymptotically stable walking for biped robots: analysis via systems with impulse
    effects. IEEE Trans. Automatic Control 46(1), 2001: outputs as functions of the stance leg.
S. P. Bhat, D. S. Bernstein: Continuous finite-time stabilization of the translational and rotational double
    integrators. IEEE Trans. Automatic Control 43(5), 1998: the feedback.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from bipedsim.config import param
from bipedsim.control.output import TILT, StepTracking, Task
from bipedsim.control.posture import ReferenceParams
from bipedsim.errors import ConfigError
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Observation

ON_CURVE = 1e-5
"""Relative size of the sum p of the feedback that counts as zero; from there, the settling time has a closed form."""
LONGEST = 100.0
"""Upper bound of the time to p = 0 from a start of size 1, in units of the time scale."""


def finite_time_feedback(error: ArrayLike, rate: ArrayLike, power: float, time_scale: float) -> Array:
    """Return the acceleration that moves error and rate to zero in a finite time (Bhat, Bernstein 1998, eq. 8).

    With x = error and w = time_scale rate, it is -(sig(w)^a + sig(p)^(a / (2 - a))) / time_scale^2. Here
    p = x + sig(w)^(2 - a) / (2 - a) and sig(w)^a = sign(w) |w|^a. On p = 0 only the first term remains, and |w|^(1 - a)
    decreases linearly to zero. Any other state converges to p = 0.

    Args:
        error, rate: Errors of any shape [rad], and their rates [rad/s].
        power: Exponent a, between 0 and 1; at 1 the feedback is linear, and the error never vanishes.
        time_scale: Time scale [s].
    """
    x, w = np.asarray(error, dtype=np.float64), time_scale * np.asarray(rate, dtype=np.float64)
    p = x + _signed_power(w, 2.0 - power) / (2.0 - power)
    acceleration: Array = -(_signed_power(w, power) + _signed_power(p, power / (2.0 - power))) / time_scale**2
    return acceleration


def settling_time(error: float, rate: float, power: float, time_scale: float) -> float:
    """Return the time [s] in which :func:`finite_time_feedback` moves a double integrator to rest at zero.

    The motion is integrated until p is ``ON_CURVE`` of its scale. The rest, along p = 0, takes
    time_scale |w|^(1 - a) / (1 - a).

    Args:
        error, rate: Initial state [rad, rad/s].
        power, time_scale: Parameters of the feedback.
    """
    root = 2.0 - power
    size = abs(error) ** (1.0 / root) + abs(rate * time_scale)
    if size == 0.0:
        return 0.0

    def slope(_t: float, state: Array) -> list[float]:
        return [state[1], float(finite_time_feedback(state[0], state[1], power, 1.0))]

    def on_curve(_t: float, state: Array) -> float:
        x, w = state
        p = x + _signed_power(w, root) / root
        return float(abs(p) - ON_CURVE * (abs(x) + abs(w) ** root))

    on_curve.terminal = True  # type: ignore[attr-defined]
    # The integration has a start of size 1. By homogeneity, a start of size r takes r^(1 - a) times as long.
    start = np.array([error / size**root, rate * time_scale / size])
    t, w = 0.0, float(start[1])
    if on_curve(0.0, start) > 0.0:
        solution = solve_ivp(slope, (0.0, LONGEST), start, "RK45", events=on_curve, rtol=1e-8, atol=1e-12)
        t, w = float(solution.t[-1]), float(solution.y[1, -1])
    return time_scale * size ** (1.0 - power) * (t + abs(w) ** (1.0 - power) / (1.0 - power))


def _signed_power(value: ArrayLike, power: float) -> Array:
    signed: Array = np.sign(value) * np.abs(value) ** power
    return signed


@dataclass(frozen=True)
class FiniteTimeParams(ReferenceParams):
    """Parameters of :class:`FiniteTimeController`; sums may contain `roll` and `pitch` of the IMU's body."""

    power: float = param(0.7, "a of the feedback: less is sooner and rougher, 1 would be linear", low=0.3, high=0.95)
    time_scale: float = param(0.1, "of the feedback: settling times are in proportion", unit="s", low=1e-3, high=10.0)
    swing_angle: dict[str, str] = param(
        {}, "of a walker: foot that carries, to the sum that is the angle of the swinging leg from it"
    )
    phase: dict[str, str] = param({}, "of a walker: foot that carries, to the sum that says how far the step is")
    phase_middle: float = param(0.0, "phase in the middle of the step", unit="rad", low=-3.0, high=3.0)
    swing_linear: float = param(-2.0, "b of the constraint angle = b p + c p^3, p the phase from its middle")
    swing_cubic: float = param(0.0, "c of the constraint", unit="1/rad^2")
    least_step: float = param(0.1, "time after a touch-down before which another is none", unit="s", low=0.0, high=10.0)


class FiniteTimeController(StepTracking):
    """Controller that makes output errors reach zero and stay there, after a time that depends on their initial values.

    If the phase of a walker's step is an angle of its stance leg, the constraint holds before the next touchdown, for
    any disturbance of the last one. The return map then has one dimension: only the motion along the constraint remains
    (:mod:`bipedsim_studies.stability.zero_dynamics`).
    """

    Params = FiniteTimeParams
    who = "finite_time"

    def __init__(self, robot: Robot, params: FiniteTimeParams, dt: float) -> None:
        if params.mode == "walk":
            raise ConfigError(
                "'walk' is for computed_torque, sliding and pfl; after impacts this feedback asks for more than a foot "
                "can do. Walkers of its own are made by swing_angle and phase",
                "finite_time: mode",
            )
        super().__init__(robot, params, dt)
        self._power, self._scale = params.power, params.time_scale
        names = (*robot.joint_names, *TILT)
        self._walk(self._per_foot(robot, params.swing_angle, names, "swing_angle"), params.least_step)
        self._phase = self._per_foot(robot, params.phase, names, "phase")
        if len(self._swing) != len(self._phase) or len(self._swing) not in (0, 2):
            raise ConfigError(
                "they belong together, with a sum for each of two feet; there are "
                f"{len(self._swing)} angles and {len(self._phase)} phases",
                "finite_time: swing_angle and phase",
            )
        self._middle = params.phase_middle
        path = Polynomial([0.0, params.swing_linear, 0.0, params.swing_cubic])
        self._path = (path, path.deriv(1), path.deriv(2))

    def wanted(self, error: Array, rate: Array, acceleration: Array) -> Array:
        """Return the acceleration of the target plus :func:`finite_time_feedback`."""
        return acceleration + finite_time_feedback(error, rate, self._power, self._scale)

    def _swing_task(self, observation: Observation) -> tuple[Task, float]:
        nu = self._robot.nu
        sums = np.stack([self._swing[self._stance.index], self._phase[self._stance.index]])
        tilt, tilt_rows, tilt_bias = self._dynamics.tilt()
        angle, phase = sums[:, :nu] @ observation.joint_position + sums[:, nu:] @ tilt
        rows, bias = sums[:, :nu] @ self._joints + sums[:, nu:] @ tilt_rows, sums[:, nu:] @ tilt_bias
        velocity = rows @ self._dynamics.v
        value, slope, bend = (float(curve(phase - self._middle)) for curve in self._path)
        row = rows[:1] - slope * rows[1:]
        drift = bias[:1] - slope * bias[1:] - bend * velocity[1:] ** 2
        error = np.array([angle - value])
        return Task(row, drift, self.wanted(error, row @ self._dynamics.v, np.zeros(1))), float(error[0])
