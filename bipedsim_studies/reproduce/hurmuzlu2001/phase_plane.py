"""Show the kinds of motion of a compass walker in the phase plane, its impacts, and the return map (Fig. 2 to 4).

The joint moment ties the swing leg of the compass to the stance leg (:mod:`.zero_dynamics`). The walker then has one
degree of freedom, as in these figures of the paper. The reduced motion conserves s^2 / 2 minus the integral of G I,
where s is the angular momentum, so all quantities have a closed form by quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.integrate import cumulative_simpson

from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.zero_dynamics import PATH, SLOPE
from bipedsim_studies.stability import NoReturnError, ReducedMap, StraightLegs, VirtualConstraint, fixed_point

STEPS = 12
BEGIN = -0.33
"""Rate of the stance leg before the first touchdown [rad/s]; it is faster than the periodic gait."""
GRID = 1001


class CompassPortrait:
    """Phase plane of the stance leg on the constraint.

    Attributes:
        angle: (n,) angles from one touchdown to the next [rad], in decreasing order.
        work: (n,) integral of G I from the first angle. At each angle, s^2 / 2 is its initial value plus this integral.
        inertia: (n,) angular momentum over rate [kg.m^2].
        strike: Angular momentum after a touchdown over the rate of the stance leg before it [kg.m^2].
    """

    def __init__(self, constraint: VirtualConstraint) -> None:
        end = constraint.touch_down
        self.angle: Array = np.linspace(-end, end, GRID)
        self.inertia: Array = np.array([constraint.inertia(float(angle)) for angle in self.angle])
        moment = np.array([constraint.moment(float(angle)) for angle in self.angle])
        self.work: Array = -cumulative_simpson(moment * self.inertia, x=-self.angle, initial=0.0)
        self.strike = -constraint.momentum(constraint.walker.heel_strike(constraint.before_strike(-1.0)))

    @property
    def slowest(self) -> float:
        """Rate before a touchdown [rad/s] after which the walker stops at the top, by quadrature."""
        return -math.sqrt(-2.0 * float(self.work.min())) / self.strike

    @property
    def affine(self) -> tuple[float, float]:
        """(a, b): the squared rate before a touchdown is a times the square before the previous one, plus b."""
        return (self.strike / self.inertia[-1]) ** 2, 2.0 * float(self.work[-1]) / float(self.inertia[-1]) ** 2

    @property
    def gait(self) -> float:
        """Rate before a touchdown in the periodic gait [rad/s]."""
        a, b = self.affine
        return -math.sqrt(b / (1.0 - a))

    def orbit(self, half_square: float) -> Array:
        """Return the rates (n,) over ``angle`` for an initial s^2 / 2; NaN at angles that the motion does not reach."""
        square = half_square + self.work
        return -np.sqrt(2.0 * np.where(square >= 0.0, square, np.nan)) / self.inertia


@dataclass(frozen=True, eq=False)
class PhasePlaneResult:
    """Portrait, and results of integration: rates before touchdowns (n,), of the gait, and slowest [rad/s]."""

    portrait: CompassPortrait
    rates: Array
    gait: float
    slowest: float


def slowest(reduced: ReducedMap) -> float:
    """Return the rate between falling back and a further step [rad/s], by bisection."""
    falls, walks = -0.05, BEGIN
    while abs(walks - falls) > 1e-8:
        middle = 0.5 * (falls + walks)
        try:
            reduced(np.array([middle]))
            walks = middle
        except NoReturnError:
            falls = middle
    return walks


def measure(_progress: bool = False) -> PhasePlaneResult:
    """Integrate the steps, and find the periodic gait and the slowest step."""
    constraint = VirtualConstraint(StraightLegs.of_robot(load_robot("compass"), SLOPE), PATH)
    reduced = ReducedMap(constraint)
    rates = [BEGIN]
    for _ in range(STEPS):
        rates.append(float(reduced(np.array([rates[-1]])).xi[0]))
    point = fixed_point(reduced, np.array([BEGIN]), tolerance=1e-9)
    return PhasePlaneResult(CompassPortrait(constraint), np.array(rates), float(point.xi[0]), slowest(reduced))


def checks(result: PhasePlaneResult) -> Iterator[Check]:
    """Yield the checks of the separatrix, the cycle and the return map."""
    portrait = result.portrait
    a, b = portrait.affine
    expected = [BEGIN]
    for _ in range(STEPS):
        expected.append(-math.sqrt(a * expected[-1] ** 2 + b))
    yield Check.near("rate between falling back and walking on", result.slowest, portrait.slowest, 1e-5, "rad/s")
    yield Check.at_most("|rates before touch-downs - quadrature|", float(np.abs(result.rates - expected).max()), 1e-7)
    yield Check.near("closed orbit: rate before a touch-down", result.gait, portrait.gait, 1e-7, "rad/s")
    lacks = result.rates**2 - portrait.gait**2
    ratios = lacks[1:6] / lacks[:5]
    yield Check.at_most("|squares' distance from it, from step to step - a|", float(np.abs(ratios - a).max()), 1e-6)
    yield Check.shown("... a", a)
    yield Check.shown("rate after a touch-down over that before", portrait.strike / float(portrait.inertia[0]))


def draw(figure: Figure, result: PhasePlaneResult) -> None:
    """Draw the kinds of motion, the steps towards the cycle and the return map."""
    kinds, steps, returns = figure.subplots(1, 3)
    portrait = result.portrait
    top = -float(portrait.work.min())
    at_top = int(portrait.work.argmin())
    for share in (0.25, 0.6, 0.9, 1.1, 1.5, 2.2):
        rate = portrait.orbit(share * top)
        for sign in (1.0, -1.0):
            for side in (slice(None, at_top + 1), slice(at_top, None)):
                colour = FOOT_COLOURS[2] if share > 1.0 else FOOT_COLOURS[0] if side.start is None else FOOT_COLOURS[1]
                kinds.plot(portrait.angle[side], sign * rate[side], color=colour, linewidth=1.0)
    edge = portrait.orbit(top * (1.0 + 1e-9))
    kinds.plot(portrait.angle, edge, "--", color=LIMIT_COLOUR, linewidth=1.0)
    kinds.plot(portrait.angle, -edge, "--", color=LIMIT_COLOUR, linewidth=1.0)
    for angle, at, name in ((0.13, 0.0, "A"), (-0.13, 0.0, "B"), (0.0, -0.3, "C")):
        kinds.text(angle, at, name, ha="center", va="center", fontsize="large")
    for before in result.rates[:4]:
        path = portrait.orbit(0.5 * (portrait.strike * before) ** 2)
        steps.plot(portrait.angle, path, color=FOOT_COLOURS[0], linewidth=0.9)
        steps.plot([portrait.angle[-1], portrait.angle[0]], [before, path[0]], ":", color="#777777", linewidth=0.9)
    cycle = portrait.orbit(0.5 * (portrait.strike * portrait.gait) ** 2)
    steps.plot(portrait.angle, cycle, color=LIMIT_COLOUR, label="closed orbit")
    steps.plot([portrait.angle[-1], portrait.angle[0]], [portrait.gait, cycle[0]], ":", color=LIMIT_COLOUR)
    ends = zip((portrait.angle[-1], portrait.angle[0]), (portrait.gait, cycle[0]), ("1", "2"), strict=True)
    for angle, at, name in ends:
        steps.annotate(name, (angle, at), textcoords="offset points", xytext=(0, 6), ha="center")
    label(kinds, "A, B turn back, C reaches the ground", x="$\\theta_1$ [rad]", y="rate [rad/s]")
    label(steps, "steps; dotted: impact and switching", x="$\\theta_1$ [rad]", y="rate [rad/s]", legend="best")
    line = np.linspace(portrait.slowest, BEGIN, 100)
    a, b = portrait.affine
    returns.plot(line, -np.sqrt(a * line**2 + b), color=FOOT_COLOURS[0], label="map")
    returns.plot(line, line, "--", color="#777777", linewidth=0.8)
    stairs = np.repeat(result.rates, 2)
    returns.plot(stairs[:-1], stairs[1:], color=FOOT_COLOURS[1], linewidth=0.9, label="$p_i$")
    returns.plot(result.gait, result.gait, "o", color=LIMIT_COLOUR, label="$p_e$")
    label(returns, "return map", x="rate before a touch-down", y="before the next [rad/s]", legend="best")


case = study(measure, checks, draw, (14.0, 4.8))
