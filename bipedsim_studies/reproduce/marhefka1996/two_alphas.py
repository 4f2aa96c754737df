"""Use different alphas for compression and restitution (section 6, which leaves it to further work)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.marhefka1996 import closed_form
from bipedsim_studies.reproduce.marhefka1996.impact import ImpactRun, PointContact, impact, out, run, simulator

RATIOS = (0.0, 0.5, 1.0, 2.0, 4.0)
ALPHA_V = (0.05, 0.2, 0.5, 1.0, 2.0)
MASS, STIFFNESS, ALPHA = 25.0, 50e3, 0.5
DEPTH, PULL, STEP = 0.02, -10e3, 1e-4
"""From rest at this depth [m], the mass is pulled off by this force [N], in steps of this duration [s]."""


def contact(ratio: float) -> PointContact:
    """Return the contact with an alpha ``ratio``."""
    return PointContact(MASS, STIFFNESS, ALPHA, alpha_ratio=ratio)


def restitution(ratio: float, alpha_v: float) -> float:
    """Return the coefficient of restitution in the simulator."""
    v = alpha_v / ALPHA
    return impact(contact(ratio), v).leaves / v


def pulled_off(ratio: float) -> ImpactRun:
    """Pull the mass out of the ground and return the run."""
    return run(simulator(contact(ratio), STEP), DEPTH, 0.0, out, lambda _t, _depth, _speed: PULL)


class TwoAlphasResult(NamedTuple):
    """Coefficients of restitution by ratio and alpha v, and the pulled run of each ratio."""

    restitution: dict[tuple[float, float], float]
    pulled: dict[float, ImpactRun]


def measure(progress: bool = False) -> TwoAlphasResult:
    """Simulate impacts and pulls with several ratios."""
    coefficients = {(ratio, alpha_v): restitution(ratio, alpha_v) for ratio, alpha_v in product(RATIOS, ALPHA_V)}
    return TwoAlphasResult(coefficients, {ratio: pulled_off(ratio) for ratio in RATIOS})


def checks(result: TwoAlphasResult) -> Iterator[Check]:
    """Yield the checks of restitution and pulls."""
    e = result.restitution
    errors = [abs(entry - closed_form.restitution(alpha_v, ratio)) for (ratio, alpha_v), entry in e.items()]
    rising = [np.diff([e[ratio, alpha_v] for ratio in RATIOS]).max() for alpha_v in ALPHA_V]
    yield Check.at_most("|e - closed form with two alphas|", max(errors), 1e-6)
    yield Check.at_most("e falls with the ratio, smallest step", max(rising), -1e-4)
    for ratio, entry in result.pulled.items():
        yield Check.at_least(f"pulled off, ratio {ratio:g}: smallest force", entry.force.min(), 0.0, "N")
        unclipped = contact(ratio).law(entry.depth, entry.speed).min()
        name = f"pulled off, ratio {ratio:g}: smallest force of eq. 6"
        # Without damping during restitution, no force can hold the mass.
        yield Check.at_least(name, unclipped, 0.0, "N") if ratio == 0.0 else Check.at_most(name, unclipped, -1.0, "N")


def draw(figure: Figure, result: TwoAlphasResult) -> None:
    """Draw restitution over alpha v, and the forces of the pulls."""
    restitution_ax, force_ax = figure.subplots(1, 2)
    x = np.linspace(1e-3, ALPHA_V[-1], 200)
    for colour, (ratio, pull) in zip(FOOT_COLOURS, result.pulled.items(), strict=False):
        restitution_ax.plot(x, [closed_form.restitution(a, ratio) for a in x], color=colour, label=f"ratio {ratio:g}")
        restitution_ax.plot(
            ALPHA_V, [result.restitution[ratio, a] for a in ALPHA_V], "o", color=TOTAL_COLOUR, markersize=2.5
        )
        force_ax.plot(1e3 * pull.midway, pull.force, color=colour)
        law = contact(ratio).law(pull.depth, pull.speed)
        force_ax.plot(1e3 * pull.depth, law, color=colour, linewidth=0.7, linestyle="--")
    force_ax.axhline(0.0, color=LIMIT_COLOUR, linewidth=0.8)
    label(restitution_ax, "lines: closed form; dots: simulated", "alpha v", "coefficient of restitution", "best")
    title = f"pulled off by {-PULL / 1e3:g} kN, in the same colours\ndashed: eq. 6, which would hold the mass"
    label(force_ax, title, "penetration [mm]", "force of the ground [N]")


case = study(measure, checks, draw, (11.0, 4.5))
