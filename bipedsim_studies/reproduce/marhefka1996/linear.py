"""Compare the linear spring and damper that the paper rejects with the nonlinear model (Fig. 1, eq. 3 and 4).

The simulator has no linear contact model, so the mass on it is integrated here and compared with eq. 4. Both models are
checked for the paper's objections. These are a force that starts with a jump, a force that pulls at the end, and a
restitution that depends on the mass instead of the speed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.marhefka1996.impact import ImpactRun, PointContact, impact

MASSES, SPEEDS = (10.0, 25.0, 60.0), (0.25, 0.5, 1.0)
"""Masses [kg] and impact speeds [m/s]."""
STIFFNESS, DAMPING, ALPHA = 50e3, 500.0, 0.5
"""Stiffness k [N/m], b of the linear damper [N.s/m], and alpha of the nonlinear model [s/m]."""
DRAWN = (25.0, 1.0)
"""Mass and speed of the drawn curves [kg], [m/s]."""
STEP = 1e-4
"""Time step of the simulator [s]."""


class LinearImpact(NamedTuple):
    """Impact on spring and damper: depth (n,) [m], speed into the ground (n,) [m/s] and force (n,) [N]."""

    depth: Array
    speed: Array
    force: Array


def linear(mass: float, speed: float) -> LinearImpact:
    """Return the impact of ``mass`` [kg] at ``speed`` [m/s], until the mass leaves the ground."""

    def leaves_ground(_t: float, y: Array) -> float:
        return float(y[0])

    leaves_ground.terminal, leaves_ground.direction = True, -1.0  # type: ignore[attr-defined]
    duration = 2.0 * math.pi * math.sqrt(mass / STIFFNESS)
    solution = solve_ivp(
        lambda _t, y: [y[1], -(DAMPING * y[1] + STIFFNESS * y[0]) / mass],
        (0.0, duration),
        [0.0, speed],
        "DOP853",
        events=leaves_ground,
        rtol=1e-12,
        atol=1e-14,
        first_step=1e-3 * duration,
        max_step=1e-2 * duration,
    )
    return LinearImpact(solution.y[0], solution.y[1], DAMPING * solution.y[1] + STIFFNESS * solution.y[0])


def eq_4(mass: float) -> float:
    """Return the coefficient of restitution of spring and damper as printed in eq. 4."""
    return math.exp(-DAMPING * math.pi / math.sqrt(4.0 * mass * STIFFNESS - DAMPING**2))


def until_out(mass: float) -> float:
    """Return the coefficient of restitution of the damped sinusoid between two passages of x = 0."""
    decay = 0.5 * DAMPING / mass
    return math.exp(-decay * math.pi / math.sqrt(STIFFNESS / mass - decay**2))


class LinearResult(NamedTuple):
    """Impacts by mass and speed, on spring and damper and in the simulator."""

    linear: dict[tuple[float, float], LinearImpact]
    engine: dict[tuple[float, float], ImpactRun]

    def restitution(self, mass: float, speed: float) -> tuple[float, float]:
        """Return the coefficients of restitution of both models."""
        return -float(self.linear[mass, speed].speed[-1]) / speed, self.engine[mass, speed].leaves / speed


def measure(_progress: bool = False) -> LinearResult:
    """Compute the impact of each mass at each speed with both models."""
    pairs = list(product(MASSES, SPEEDS))
    engine = {pair: impact(PointContact(pair[0], STIFFNESS, ALPHA), pair[1], STEP) for pair in pairs}
    return LinearResult({pair: linear(*pair) for pair in pairs}, engine)


def checks(result: LinearResult) -> Iterator[Check]:
    """Yield the checks of the paper's objections to spring and damper."""
    e = {pair: result.restitution(*pair) for pair in result.linear}
    by_mass = [np.ptp([e[m, SPEEDS[0]][k] for m in MASSES]) for k in range(2)]
    by_speed = [max(float(np.ptp([e[m, v][k] for v in SPEEDS])) for m in MASSES) for k in range(2)]
    yield Check.at_most("linear: |e - eq. 4|", max(abs(entry[0] - eq_4(m)) for (m, _), entry in e.items()), 1e-9)
    yield Check.at_most(
        "linear: |eq. 4 - the damped sinusoid|", max(abs(eq_4(m) - until_out(m)) for m in MASSES), 1e-12
    )
    yield Check.at_most("linear: e over the speed", by_speed[0], 1e-9)
    yield Check.at_least("linear: e over the mass", float(by_mass[0]), 0.1)
    yield Check.at_least("here: e over the speed", by_speed[1], 0.1)
    yield Check.at_most("here: e over the mass", float(by_mass[1]), 1e-6)
    jumps = [abs(entry.force[0] - DAMPING * v) for (_, v), entry in result.linear.items()]
    pulls = [abs(entry.force.min() - DAMPING * entry.speed[-1]) for entry in result.linear.values()]
    yield Check.at_most("linear: |force at the first touch - b v_i|", max(jumps), 1e-9, "N")
    yield Check.at_most("linear: |most pull - b v_o|", max(pulls), 1e-6, "N")
    yield Check.at_least(
        "here: least force", min(float(entry.force.min()) for entry in result.engine.values()), 0.0, "N"
    )
    first = max(entry.force[0] / entry.force.max() for entry in result.engine.values())
    yield Check.at_most("here: force of the first 0.1 ms over the greatest", float(first), 0.02)


def draw(figure: Figure, result: LinearResult) -> None:
    """Draw the force over depth, and the restitution over speed."""
    left, right = figure.subplots(1, 2)
    linear_impact, engine = result.linear[DRAWN], result.engine[DRAWN]
    left.plot(1e3 * linear_impact.depth, linear_impact.force, color=FOOT_COLOURS[1], label="spring and damper, linear")
    left.plot(1e3 * engine.midway, engine.force, color=FOOT_COLOURS[0], label="nonlinear_damping")
    left.axhline(0.0, color=LIMIT_COLOUR, linewidth=0.8)
    label(left, f"{DRAWN[0]:g} kg at {DRAWN[1]:g} m/s", "penetration [mm]", "force [N]", "upper left")
    for k, m in enumerate(MASSES):
        coefficients = np.array([result.restitution(m, v) for v in SPEEDS])
        right.plot(SPEEDS, coefficients[:, 0], "--o", color=FOOT_COLOURS[k], label=f"linear, {m:g} kg")
        right.plot(
            SPEEDS, coefficients[:, 1], "-s", color=FOOT_COLOURS[k], markersize=9 - 3 * k, label=f"here, {m:g} kg"
        )
    label(right, "", "speed [m/s]", "coefficient of restitution", "above", ylim=(0.0, 1.0))


case = study(measure, checks, draw, (11.0, 4.5))
