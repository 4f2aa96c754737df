"""Let an arm with masses wrong by 30 % adapt them while it tracks a path (section 5.2.1, adaptive control).

The control law is that of Slotine and Li. With the error e, define s = e' + slope e and the reference rates
v_r = q_d' - slope e. The torques are M v_r' + C v_r + g with the estimated masses, minus K s. The estimates change by
-gain Y^T s, where Y contains these dynamics per unit of each estimate.

Then V = s^T M s / 2 + |estimate - truth|^2 / (2 gain) decreases at the rate s^T K s, for any true masses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import mass_matrix

BELIEF = 0.7
"""Initial estimate of the mass and inertia of each link, over the true value."""
SLOPE, K, GAIN = 5.0, 3.0, 2.0
"""Slope of s [1/s], feedback gain [N.m.s/rad] and adaptation gain."""
MIDDLE, SWING, RATE = np.array([0.8, -1.2]), np.array([0.3, 0.4]), np.array([2.0, 3.0])
"""Mean [rad], amplitude [rad] and angular frequency [rad/s] of the sines that the joints track."""
DURATION, LAST = 10.0, 6.0
STEP = 1e-3
"""Time step of the simulator and of the control law [s]."""


def desired(t: float) -> tuple[Array, Array, Array]:
    """Return the desired position, velocity and acceleration of the joints."""
    s, c = np.sin(RATE * t), np.cos(RATE * t)
    return MIDDLE + SWING * s, SWING * RATE * c, -SWING * RATE**2 * s


class AdaptiveLaw:
    """Adaptive control law of the robot ``arm``."""

    def __init__(self) -> None:
        self.robot = body("arm")
        self.model, self.data = self.robot.model, self.robot.model.createData()
        self._links = np.array([inertia.toDynamicParameters() for inertia in list(self.model.inertias)[1:]])

    def _dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """Return M a + C v + g (2, 2) with one column per link; it is linear in the link's inertia."""
        regressor = pin.computeJointTorqueRegressor(self.model, self.data, q, v, a)
        return np.column_stack([regressor[:, 10 * k : 10 * k + 10] @ link for k, link in enumerate(self._links)])

    def by_link(self, q: Array, v: Array, v_r: Array, a_r: Array) -> Array:
        """Return Y (2, 2) of M a_r + C(q, v) v_r + g.

        C(q, v) v_r is bilinear and symmetric, so it is a quarter of the terms of v + v_r minus those of v - v_r.
        """
        zeros = np.zeros(2)
        dynamics: Array = self._dynamics(q, zeros, a_r)
        dynamics = dynamics + 0.25 * (self._dynamics(q, v + v_r, zeros) - self._dynamics(q, v - v_r, zeros))
        return dynamics

    def __call__(self, t: float, q: Array, v: Array, belief: Array) -> tuple[Array, Array, Array]:
        """Return torques (2,) [N.m], rate of change of the estimate (2,) [1/s], and s (2,)."""
        position, speed, acceleration = desired(t)
        e, de = q - position, v - speed
        s = de + SLOPE * e
        Y = self.by_link(q, v, speed - SLOPE * e, acceleration - SLOPE * de)
        return Y @ belief - K * s, -GAIN * Y.T @ s, s


@dataclass(frozen=True, eq=False)
class ArmRun:
    """A run: times t (n,) [s], joints q (n, 2) [rad], estimates ``belief`` (n, 2) over the truth."""

    t: Array
    q: Array
    belief: Array

    @property
    def error(self) -> Array:
        """(n, 2) tracking errors of the joints [rad]."""
        return self.q - np.array([desired(t)[0] for t in self.t])

    @property
    def late(self) -> float:
        """Largest tracking error after ``LAST`` seconds [rad]."""
        return float(np.abs(self.error[self.t > LAST]).max())


def by_engine(adapts: bool) -> ArmRun:
    """Return a run of the simulator, with adapting or constant estimates."""
    law, belief = AdaptiveLaw(), np.full(2, BELIEF)
    sim = Simulator(law.robot, physics_dt=STEP)
    sim.reset(*desired(0.0)[:2])
    rows = []
    for k in range(round(DURATION / STEP)):
        tau, change, _ = law(k * STEP, sim.q, sim.v, belief)
        sim.advance(tau)
        belief = belief + adapts * STEP * change
        rows.append((sim.q.copy(), belief))
    q, beliefs = (np.array(column) for column in zip(*rows, strict=True))
    times: Array = STEP * np.arange(1, len(q) + 1, dtype=np.float64)
    return ArmRun(times, q, beliefs)


def by_integration(t: Array) -> tuple[ArmRun, Array, Array]:
    """Return the run integrated in continuous time at t (n,), V (n,) [J], and the integral of s^T K s (n,) [J]."""
    law = AdaptiveLaw()

    def rate(time: float, y: Array) -> Array:
        q, v, belief = y[:2], y[2:4], y[4:6]
        tau, change, s = law(time, q, v, belief)
        return np.concatenate([v, pin.aba(law.model, law.data, q, v, tau), change, [K * s @ s]])

    q, v, _ = desired(0.0)
    y = np.concatenate([q, v, np.full(2, BELIEF), [0.0]])
    rows = solve_ivp(rate, (0.0, DURATION), y, "DOP853", t_eval=t, rtol=1e-9, atol=1e-11).y.T
    values = []
    for time, row in zip(t, rows, strict=True):
        s = law(float(time), row[:2], row[2:4], row[4:6])[2]
        pin.crba(law.model, law.data, row[:2])
        M = mass_matrix(law.data)
        values.append(0.5 * s @ M @ s + 0.5 * np.square(row[4:6] - 1.0).sum() / GAIN)
    return ArmRun(t, rows[:, :2], rows[:, 4:6]), np.array(values), rows[:, 6]


@dataclass(frozen=True, eq=False)
class AdaptiveResult:
    """Runs of the simulator, the continuous run, and its V and dissipated part of V (n,) [J]."""

    adaptive: ArmRun
    fixed: ArmRun
    smooth: ArmRun
    value: Array
    taken: Array


def measure(_progress: bool = False) -> AdaptiveResult:
    """Compute all three runs."""
    adaptive = by_engine(True)
    return AdaptiveResult(adaptive, by_engine(False), *by_integration(adaptive.t))


def checks(result: AdaptiveResult) -> Iterator[Check]:
    """Yield the checks of errors, estimates and the Lyapunov function."""
    adaptive, smooth = result.adaptive, result.smooth
    balance = result.value + result.taken - 0.5 * 2.0 * (1.0 - BELIEF) ** 2 / GAIN
    yield Check.at_most("engine: |belief - truth| at the end", float(np.abs(adaptive.belief[-1] - 1.0).max()), 1e-3)
    yield Check.at_most(f"engine: largest error after {LAST:g} s", adaptive.late, 1e-3, "rad")
    yield Check.at_least("... that of beliefs that stay, over it", result.fixed.late / adaptive.late, 100.0)
    apart = float(np.abs(adaptive.q - smooth.q).max())
    yield Check.at_most("|engine - the same without steps|, joints", apart, 1e-3, "rad")
    yield Check.at_most("without steps: rise of V from row to row", float(np.diff(result.value).max()), 1e-9, "J")
    yield Check.at_most("... |V(0) - V - what s^T K s took|", float(np.abs(balance).max()), 1e-6, "J")
    yield Check.at_most("... |belief - truth| at the end", float(np.abs(smooth.belief[-1] - 1.0).max()), 1e-3)


def draw(figure: Figure, result: AdaptiveResult) -> None:
    """Draw errors, estimates and V over time."""
    above, middle, below = figure.subplots(3, 1, sharex=True)
    for k, name in enumerate(("shoulder", "elbow")):
        above.plot(
            result.adaptive.t, 1e3 * result.adaptive.error[:, k], color=FOOT_COLOURS[k], label=f"{name}, adaptive"
        )
        above.plot(result.fixed.t, 1e3 * result.fixed.error[:, k], ":", color=FOOT_COLOURS[k], label=f"{name}, fixed")
        middle.plot(result.adaptive.t, result.adaptive.belief[:, k], color=FOOT_COLOURS[k], label=("upper", "lower")[k])
    middle.axhline(1.0, color=LIMIT_COLOUR, linewidth=0.8, linestyle="--")
    label(above, "error of the joints, engine", y="[mrad]", legend="above")
    label(middle, "believed over true inertia of the links", legend="above")
    below.semilogy(result.smooth.t, result.value, color=FOOT_COLOURS[0])
    label(below, "V, without steps", time="time [s]", y="[J]")


case = study(measure, checks, draw, (10.0, 7.5))
