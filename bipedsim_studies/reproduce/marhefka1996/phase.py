"""Compare penetration and velocity of a mass that hits the ground with eq. 19 (Fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from bipedsim.config import ProgressBar
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.marhefka1996.closed_form import deepest, lost, penetration
from bipedsim_studies.reproduce.marhefka1996.impact import ImpactRun, PointContact, impact, out, run, simulator

MASSES = (1.0, 10.0, 100.0)
STIFFNESSES = (10e3, 40e3, 70e3)
ALPHAS = (0.01, 0.1, 0.3, 0.6)
SPEEDS = (0.5, 4.0)
"""Parameters of the impacts that are compared with eq. 19 [kg], [N/m], [s/m], [m/s]; n = 1."""
EXPONENTS = (1.5, 2.0)
"""Exponents of four further impacts with m = 10 kg, k = 40 kN/m^n and alpha = 0.3 s/m."""
SHALLOW = 0.01
"""Fraction of the maximum penetration below which only eq. 13 is checked."""
FIG2 = PointContact(mass=50.0, stiffness=50e3, alpha=0.4)
FIG2_SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0)
LIMIT = 2.0 / (3.0 * FIG2.alpha)
"""Speed out of the ground at which spring and damper of Fig. 2 cancel by eq. 22 [m/s]."""
PULLED = (0.05, 0.1, 0.15)
"""Initial depths of the mass of Fig. 2 that is pulled off [m]."""
PULL = -40e3
"""Pulling force [N]."""
FASTER = 1.5
"""Speed out of the ground over ``LIMIT`` at which the pull ends."""


def distance(contact: PointContact, v_start: float, result: ImpactRun) -> tuple[float, float]:
    """Return the errors of a run: of the depth over its maximum, and of the constant of eq. 13 over its initial value.

    The depth as a function of velocity rises like a square root, so it is not compared below ``SHALLOW``.
    """
    depth = deepest(contact, v_start)
    x, v = result.depth, result.speed
    rate, power = 1.5 * contact.alpha, contact.exponent + 1.0
    constant = contact.stiffness * rate**2 / (power * contact.mass) * np.maximum(x, 0.0) ** power + lost(rate * v)
    below = x > SHALLOW * depth
    expected = penetration(contact, v_start, v[below])
    return float(np.abs(x[below] - expected).max()) / depth, float(np.abs(constant / lost(rate * v_start) - 1.0).max())


def pulled_off(depth: float) -> ImpactRun:
    """Pull the mass of Fig. 2 from rest at ``depth`` [m], and release it at ``FASTER`` times the limit speed."""

    def pull(_t: float, _depth: float, speed: float) -> float:
        return PULL if speed > -FASTER * LIMIT else 0.0

    return run(simulator(FIG2, 2e-4), depth, 0.0, out, pull)


def free_part(result: ImpactRun) -> ImpactRun:
    """Return the part of a pulled run after the pull."""
    first = int(np.argmax(result.speed <= -FASTER * LIMIT))
    return result.since(first)


class PhaseResult(NamedTuple):
    """Errors of impacts against eq. 19 from :func:`distance`, the impacts of Fig. 2, and the pulled runs."""

    distances: list[tuple[float, float]]
    impacts: list[ImpactRun]
    pulled: list[ImpactRun]


def measure(progress: bool = False) -> PhaseResult:
    """Simulate the impacts of eq. 19 and of Fig. 2."""
    contacts = [PointContact(m, k, alpha) for m, k, alpha in product(MASSES, STIFFNESSES, ALPHAS)]
    contacts += [PointContact(10.0, 40e3, 0.3, n) for n in EXPONENTS]
    every = ProgressBar([*product(contacts, SPEEDS)], desc="impacts", unit="impact", disable=not progress)
    distances = [distance(contact, v, impact(contact, v)) for contact, v in every]
    return PhaseResult(distances, [impact(FIG2, v) for v in FIG2_SPEEDS], [pulled_off(depth) for depth in PULLED])


def checks(result: PhaseResult) -> Iterator[Check]:
    """Yield the checks of eq. 19 and Fig. 2."""
    depth, constants = np.array(result.distances).T
    released = [free_part(p) for p in result.pulled]
    slowest = min(-p.speed[0] for p in released) / LIMIT
    yield Check.shown("impacts held against eq. 19", len(depth))
    yield Check.at_most("|penetration - eq. 19| over the deepest one", float(depth.max()), 1e-6)
    yield Check.at_most("|what eq. 13 keeps / its value at the start - 1|", float(constants.max()), 1e-6)
    yield Check.at_least("pulled off: speed / (2 / 3 alpha) after the pull", slowest, 1.0)
    yield Check.at_most(
        "pulled off: |force| from there on", max(float(np.abs(p.force).max()) for p in released), 0.0, "N"
    )
    yield Check.at_most(
        "pulled off: change of speed from there on", max(float(np.ptp(p.speed)) for p in released), 0.0, "m/s"
    )


def draw(figure: Figure, result: PhaseResult) -> None:
    """Draw Fig. 2: contours of the closed form, and the simulated points."""
    ax = figure.subplots()
    first, second = FOOT_COLOURS[:2]
    for k, (v_start, trajectory) in enumerate(zip(FIG2_SPEEDS, result.impacts, strict=True)):
        v = np.linspace(v_start, trajectory.speed[-1], 400)
        few = slice(None, None, max(1, len(trajectory.t) // 25))
        ax.plot(penetration(FIG2, v_start, v), v, label=None if k else "eq. 19", color=first, linewidth=0.9)
        name = None if k else "simulated"
        ax.plot(trajectory.depth[few], trajectory.speed[few], "o", color=TOTAL_COLOUR, markersize=2.5, label=name)
    for k, trajectory in enumerate(result.pulled):
        released = free_part(trajectory)
        v = np.linspace(released.speed[0], -LIMIT - 1e-3, 400)
        x = penetration(FIG2, released.speed[0], v, released.depth[0])
        name = None if k else "eq. 19 where it would hold the mass"
        ax.plot(x, v, "--", color=second, linewidth=0.9, label=name)
        name = None if k else "simulated: pulled off, then let go"
        ax.plot(trajectory.depth[::4], trajectory.speed[::4], "s", color=second, markersize=2.2, label=name)
    ax.axhline(-LIMIT, color=LIMIT_COLOUR, linewidth=0.8, label="-2 / (3 alpha)")
    ax.set_xlim(left=0.0)
    title = "m = 50 kg, k = 50 kN/m, n = 1, alpha = 0.4 s/m"
    label(ax, title, "penetration [m]", "velocity into the ground [m/s]", "upper right")


case = study(measure, checks, draw, (8.0, 6.0))
