"""Compare the one-dimensional return map on a virtual constraint with the whole closed loop (sections 4.3 and 5.2).

Without a transient, the squared rate of the stance leg after a step is an affine function of the square before it. The
slope of this function is the squared fraction of angular momentum that remains after a touchdown. With the controller
``finite_time`` in the loop, two of the three multipliers of the simulator's return map vanish. The third one is the
multiplier of the reduced map.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial

from bipedsim.model import ROBOTS, load_robot
from bipedsim.numerics import Array
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.stability import ReducedMap, StraightLegs, VirtualConstraint, WalkerGait, fixed_point, jacobian

SLOPE = 0.01
"""Slope of the ground [rad]."""
PATH = Polynomial([0.0, -3.0, 0.0, 37.8])
"""theta_2 over theta_1, as in ``finite_time`` of the robot compass."""
POWER, TIME_SCALE = 0.7, 0.1
"""Exponent and time scale [s] of the feedback, the defaults of the controller."""
H = 4e-3
"""Physics step of the whole loop [s]."""
RATES = np.linspace(-0.30, -0.232, 18)
"""Rates before a touchdown at which the map is evaluated [rad/s]."""


@dataclass(frozen=True)
class ZeroDynamicsResult:
    """Reduced map and closed loop.

    Attributes:
        after: (n,) rates after a step from ``RATES`` [rad/s].
        rate, multiplier: Fixed point of the reduced map [rad/s] and its multiplier.
        affine: (n - 1,) slopes of the squared rates, without a transient.
        left: Squared fraction of the angular momentum that remains after a touchdown.
        loop: (3,) magnitudes of the closed loop's multipliers, in decreasing order.
        loop_reduced: Multiplier of the reduced map at the fixed point of the closed loop.
    """

    after: Array
    rate: float
    multiplier: float
    affine: Array
    left: float
    loop: Array
    loop_reduced: float


def measure(_progress: bool = False) -> ZeroDynamicsResult:
    """Return the reduced map, its limit without a transient, and the multipliers of the closed loop."""
    constraint = VirtualConstraint(StraightLegs.of_robot(load_robot("compass"), SLOPE), PATH)
    reduced, limit = ReducedMap(constraint, POWER, TIME_SCALE), ReducedMap(constraint)
    point = fixed_point(reduced, np.array([-0.235]), tolerance=1e-8)
    squares = np.array([limit(np.array([rate])).xi[0] ** 2 for rate in RATES])
    start = constraint.walker.heel_strike(constraint.before_strike(-1.0))
    start_file = str(ROBOTS["compass"].parent / "gait.yaml")
    loop = WalkerGait("compass", controller="finite_time", slope=SLOPE, physics_dt=H, start=start_file, settle=1).map()
    values = np.linalg.eigvals(jacobian(loop, loop.centre, 1e-3))
    loop_rate = loop.centre[[loop.names.index("left_pitch'")]]
    return ZeroDynamicsResult(
        after=np.array([float(reduced(np.array([rate])).xi[0]) for rate in RATES]),
        rate=float(point.xi[0]),
        multiplier=float(jacobian(reduced, point.xi, 1e-4)[0, 0]),
        affine=np.diff(squares) / np.diff(RATES**2),
        left=(constraint.momentum(start) / constraint.inertia(constraint.touch_down)) ** 2,
        loop=np.sort(np.abs(values))[::-1],
        loop_reduced=float(jacobian(reduced, loop_rate, 1e-4)[0, 0]),
    )


def checks(result: ZeroDynamicsResult) -> Iterator[Check]:
    """Yield the checks of the maps against theory."""
    yield Check.at_most(
        "no transient: |slope of the squares - share that a strike leaves|", np.ptp(result.affine), 1e-6
    )
    yield Check.near("... that slope", float(result.affine.mean()), result.left, 1e-6)
    yield Check.shown("rate of the stance leg before a touch-down", result.rate, "rad/s")
    yield Check.near("multiplier of the reduced map", result.multiplier, 0.847, 1e-3)
    yield Check.near("largest multiplier of the whole loop", float(result.loop[0]), result.loop_reduced, 0.02)
    yield Check.at_most("... the other two", float(result.loop[1:].max()), 1e-3)


def draw(figure: Figure, result: ZeroDynamicsResult) -> None:
    """Draw the reduced map and the diagonal."""
    ax = figure.add_subplot()
    ax.plot(RATES, result.after, label="reduced map")
    ax.plot(RATES, RATES, color="#777777", linestyle="--", linewidth=0.9, label="the same again")
    ax.plot(result.rate, result.rate, "o", label=f"gait, slope {result.multiplier:.3f}")
    label(ax, x="rate of the stance leg before a touch-down [rad/s]", y="before the next one [rad/s]", legend="best")


case = study(measure, checks, draw, (6.5, 5.0))
