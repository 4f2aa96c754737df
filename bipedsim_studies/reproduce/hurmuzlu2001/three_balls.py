"""Apply each impact law to three balls in a row, over the restitution and the middle mass (Fig. 9 and 10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, TOTAL_COLOUR
from bipedsim_studies.impacts import IMPACT_LAWS, ImpactResult
from bipedsim_studies.reproduce.common import Axes, Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, mechanics, of_frames

BEFORE = (1.0, 0.0, 0.0)
THIRDS, REBOUND, TEXTBOOK = (1 / 3, 1 / 3, 1 / 3), (-1 / 3, 2 / 3, 2 / 3), (0.0, 0.0, 1.0)
FIG_10: tuple[tuple[str, float, tuple[tuple[float, float, float], ...]], ...] = (
    ("han_gilmore", 1.0, (REBOUND, TEXTBOOK)),
    ("pfeiffer_glocker", 1.0, (REBOUND,)),
    ("pfeiffer_glocker", 0.0, (THIRDS,)),
    ("van_der_schaft_schumacher", 0.0, (THIRDS,)),
    ("moreau", 0.0, (THIRDS,)),
    ("moreau", 1.0, (REBOUND,)),
    ("lotstedt", 0.0, (THIRDS,)),
    ("haug", 1.0, (REBOUND,)),
    ("haug", 0.0, (THIRDS,)),
)
"""Law, restitution and velocities after the impact [m/s]. Pfeiffer and Glocker's e = 0 is eq. 29, not Fig. 10."""
RESTITUTION = np.linspace(0.0, 1.0, 41)
RATIOS = np.geomspace(0.1, 10.0, 121)
"""Mass of the middle ball over the mass of each other ball."""
LIMIT = 1e-9
SAME = 1e-12
"""Closing velocity [m/s] below which two balls no longer approach each other."""


@dataclass(frozen=True, eq=False)
class Cradle:
    """Mass matrix and gap Jacobian of the three balls.

    Attributes:
        M: (3, 3) mass matrix from the model.
        J: (2, 3) Jacobian of the gaps between neighbours.
        masses: (3,) masses [kg].
    """

    M: Array
    J: Array
    masses: Array

    def hit(self, law: str, e: ArrayLike = 0.0) -> ImpactResult:
        """Return the impact of ball 1 on the others by an impact law."""
        return IMPACT_LAWS[law](self.M, self.J, BEFORE, e)

    def energy(self, v: ArrayLike) -> float:
        """Return the kinetic energy at v (3,) over the energy before the impact."""
        return float(self.masses @ np.square(v) / (self.masses @ np.square(BEFORE)))

    def together(self, e: float) -> Array:
        """Return v (3,) after a two-body impact of ball 1 with balls 2 and 3 as one body."""
        first, others = self.masses[0], self.masses[1:].sum()
        return np.array([first - e * others, first * (1.0 + e), first * (1.0 + e)]) / (first + others)

    def in_turn(self) -> Array:
        """Return v (3,) after sequential elastic impacts of two balls, until no pair approaches."""
        v = np.array(BEFORE)
        while (closing := np.flatnonzero(np.diff(v) < -SAME)).size:
            pair = slice(closing[0], closing[0] + 2)
            v[pair] = 2.0 * (self.masses[pair] @ v[pair]) / self.masses[pair].sum() - v[pair]
        return v


def cradle(ratio: float = 1.0) -> Cradle:
    """Return the balls from the robot's model, with the middle mass ``ratio`` times the mass of its neighbours."""
    robot = body("three_balls")
    model = robot.model
    middle = model.inertias[2]
    model.inertias[2] = pin.Inertia(ratio * middle.mass, middle.lever, ratio * middle.inertia)
    points = of_frames(robot, ("front_1", "rear_2", "front_2", "rear_3"))
    state = mechanics(robot, robot.q_nominal, BEFORE, points)
    J = np.array([state.rows[1, X] - state.rows[0, X], state.rows[3, X] - state.rows[2, X]])
    return Cradle(state.M, J, np.array([body.mass for body in model.inertias[1:]]))


def outcomes(balls: Cradle, law: str, e: float) -> Array:
    """Return the velocities (n, 3) of all outcomes of a law."""
    return np.array([outcome.v_after for outcome in balls.hit(law, e).outcomes])


def able(law: str) -> Array:
    """Return the coefficients of restitution that a law accepts."""
    return RESTITUTION if IMPACT_LAWS[law].restitution != "none" else RESTITUTION[:1]


@dataclass(frozen=True, eq=False)
class ThreeBallsResult:
    """Outcomes of the impacts.

    Attributes:
        over_e: By law: (e, outcomes) for equal masses.
        over_ratio: By law: (mass ratio, outcomes) at the largest e of the law.
    """

    over_e: dict[str, list[tuple[float, Array]]]
    over_ratio: dict[str, list[tuple[float, Array]]]


def measure(_progress: bool = False) -> ThreeBallsResult:
    """Apply each law to the impacts of all mass ratios."""
    equal_masses, balls = cradle(), [cradle(ratio) for ratio in RATIOS]
    over_e = {law: [(float(e), outcomes(equal_masses, law, e)) for e in able(law)] for law in IMPACT_LAWS}
    over_ratio = {
        law: [(float(r), outcomes(each, law, able(law)[-1])) for r, each in zip(RATIOS, balls, strict=True)]
        for law in IMPACT_LAWS
    }
    return ThreeBallsResult(over_e, over_ratio)


def apart(result: Array, expected: Array) -> float:
    """Return the largest distance [m/s] of an expected outcome (3,) from the nearest computed outcome."""
    return float(max(np.abs(result - outcome).max(axis=1).min() for outcome in np.atleast_2d(expected)))


def checks(result: ThreeBallsResult) -> Iterator[Check]:
    """Yield the checks of Fig. 10 and of the sweeps."""
    balls = cradle()
    for law, e, expected in FIG_10:
        velocities = outcomes(balls, law, e)
        yield Check.equal(f"{law}, e = {e:g}: outcomes", len(velocities), len(expected))
        yield Check.at_most(f"{law}, e = {e:g}: |v - Fig. 10|", apart(velocities, np.array(expected)), LIMIT, "m/s")
    together_error = max(apart(v, balls.together(e)) for each in result.over_e.values() for e, v in each)
    energy_gain = max(balls.energy(v) - 1.0 for each in result.over_e.values() for _, all_v in each for v in all_v)
    yield Check.at_most(
        "0 <= e <= 1: |v - two-body impact with 2 and 3 as one|, every law", together_error, LIMIT, "m/s"
    )
    yield Check.at_most("0 <= e <= 1: energy after / before - 1, every law", energy_gain, LIMIT)
    swept = [(cradle(ratio), ratio) for ratio in RATIOS]
    errors, momentum_error, energy_error, turns = 0.0, 0.0, 0.0, 0.0
    for law, each in result.over_ratio.items():
        for (balls, _), (_, velocities) in zip(swept, each, strict=True):
            e = float(able(law)[-1])
            errors = max(errors, apart(velocities, balls.together(e)))
            momentum_error = max(momentum_error, float(np.abs((velocities - BEFORE) @ balls.masses).max()))
            if e == 1.0:
                energy_error = max(energy_error, *(abs(balls.energy(v) - 1.0) for v in velocities))
            if law == "han_gilmore":
                turns = max(turns, apart(velocities, balls.in_turn()))
    yield Check.at_most(
        "mass ratio 0.1 to 10: |v - two-body impact with 2 and 3 as one|, every law", errors, LIMIT, "m/s"
    )
    yield Check.at_most("mass ratio 0.1 to 10: |v - impacts of two balls in turn|, han_gilmore", turns, LIMIT, "m/s")
    yield Check.at_most("mass ratio 0.1 to 10: |change of momentum|", momentum_error, LIMIT, "N.s")
    yield Check.at_most("mass ratio 0.1 to 10: |energy after / before - 1| at e = 1", energy_error, LIMIT)
    yield Check.shown(
        "most outcomes of han_gilmore over the mass ratio", max(len(v) for _, v in result.over_ratio["han_gilmore"])
    )


def curves(ax: Axes, swept: list[tuple[float, Array]]) -> None:
    """Draw the velocities of the three balls.

    The first outcome is a line and the others are dots. A law with a single e is drawn by symbols.
    """
    for ball in range(3):
        look: dict[str, Any] = {"color": FOOT_COLOURS[ball]}
        x, first = [x for x, _ in swept], [v[0, ball] for _, v in swept]
        label = f"ball {ball + 1}"
        if len(swept) == 1:
            ax.plot(x, first, ("o", "s", "^")[ball], fillstyle="none", markersize=5 + 3 * ball, label=label, **look)
            continue
        ax.plot(x, first, linewidth=(1.6, 3.2, 1.2)[ball], linestyle=("-", "-", "--")[ball], label=label, **look)
        further = np.array([(x, row[ball]) for x, v in swept for row in v[1:]]).reshape(-1, 2)
        if len(further):
            ax.plot(*further.T, ("o", "s", "^")[ball], markersize=2.2, label=f"{label}, impacts in turn", **look)


def draw(figure: Figure, result: ThreeBallsResult) -> None:
    """Draw velocities over e for each law, energy over e, and velocities over the mass ratio for two laws."""
    axes = figure.subplots(3, 3)
    for ax, (law, swept) in zip(axes[:2].ravel(), result.over_e.items(), strict=True):
        curves(ax, swept)
        label(
            ax,
            f"{law}{' (plastic only)' if len(swept) == 1 else ''}",
            x="restitution e",
            y="v after [m/s]",
            xlim=(-0.04, 1.04),
            ylim=(-0.45, 1.35),
        )
    axes[0, 0].legend(loc="upper left")
    axes[1, 2].legend(loc="upper left", fontsize=7, ncols=2)
    ax = axes[2, 0]
    balls = cradle()
    for k, (law, swept) in enumerate(result.over_e.items()):
        e = [x for x, v in swept for _ in v]
        ratio = [balls.energy(row) for _, v in swept for row in v]
        look: dict[str, Any] = {"linewidth": 6.5 - 1.2 * k}
        if len(swept) == 1:
            look = {"linestyle": "none", "marker": ("x", "+")[k % 2], "markersize": 9}
        elif len(ratio) > len(swept):
            look = {"linestyle": "none", "marker": ".", "markersize": 4}
        ax.plot(e, ratio, color=FOOT_COLOURS[k], label=law, **look)
    ax.plot(
        RESTITUTION, (1.0 + 2.0 * RESTITUTION**2) / 3.0, color=TOTAL_COLOUR, linewidth=0.7, label="(1 + 2 e$^2$) / 3"
    )
    label(ax, "energy after / before", x="restitution e", y="energy ratio")
    ax.legend(loc="upper left", fontsize=7)
    for ax, law in zip(axes[2, 1:], ("pfeiffer_glocker", "han_gilmore"), strict=True):
        curves(ax, result.over_ratio[law])
        label(ax, f"{law}, e = 1", x="mass of the middle ball over the others", y="v after [m/s]", xscale="log")


case = study(measure, checks, draw, (12.5, 9.5))
