"""Section 6: another alpha on the way out than on the way in, which the paper leaves to further work."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import Check, Outcome, at_least, at_most
from bipedsim_studies.reproduce.marhefka1996 import closed_form
from bipedsim_studies.reproduce.marhefka1996.impact import Contact, Run, impact, out, run, simulator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIOS = (0.0, 0.5, 1.0, 2.0, 4.0)
ALPHA_V = (0.05, 0.2, 0.5, 1.0, 2.0)
MASS, STIFFNESS, ALPHA = 25.0, 50e3, 0.5
DEPTH, PULL, STEP = 0.02, -10e3, 1e-4
"""The mass is pulled off by this force from rest at this depth [m], [N], in such steps [s]."""


def contact(ratio: float) -> Contact:
    """Return the contact of this case."""
    return Contact(MASS, STIFFNESS, ALPHA, alpha_ratio=ratio)


def restitution(ratio: float, alpha_v: float) -> float:
    """Return the coefficient of restitution that the engine finds."""
    v = alpha_v / ALPHA
    return impact(contact(ratio), v).leaves / v


def pulled_off(ratio: float) -> Run:
    """Pull the mass out of the ground."""
    return run(simulator(contact(ratio), STEP), DEPTH, 0.0, out, lambda _t, _depth, _speed: PULL)


def unclipped(ratio: float, found: Run) -> float:
    """Return the least force that the law without its bound gives at the states of a run [N]."""
    return float(contact(ratio).law(found.depth, found.speed).min())


def checks(found: dict[tuple[float, float], float], pulled: dict[float, Run]) -> tuple[Check, ...]:
    """Return the figures."""
    errors = [abs(e - closed_form.restitution(alpha_v, ratio)) for (ratio, alpha_v), e in found.items()]
    rising = [np.diff([found[ratio, alpha_v] for ratio in RATIOS]).max() for alpha_v in ALPHA_V]
    figures: list[Check] = [
        at_most("|e - closed form with two alphas|", max(errors), 1e-6),
        at_most("e falls with the ratio, smallest step", max(rising), -1e-4),
    ]
    for ratio, one in pulled.items():
        figures.append(at_least(f"pulled off, ratio {ratio:g}: smallest force", float(one.force.min()), 0.0, "N"))
        least = unclipped(ratio, one)
        name = f"pulled off, ratio {ratio:g}: smallest force of eq. 6"
        # Without damping on the way out there is nothing that could hold the mass.
        figures.append(at_least(name, least, 0.0, "N") if ratio == 0.0 else at_most(name, least, -1.0, "N"))
    return tuple(figures)


def draw(figure: Figure, found: dict[tuple[float, float], float], pulled: dict[float, Run]) -> None:
    """Draw restitution over alpha v, and the forces of the pulls."""
    left, right = figure.subplots(1, 2)
    x = np.linspace(1e-3, ALPHA_V[-1], 200)
    for colour, ratio in zip(FOOT_COLOURS, RATIOS, strict=False):
        left.plot(x, [closed_form.restitution(a, ratio) for a in x], color=colour, label=f"ratio {ratio:g}")
        left.plot(ALPHA_V, [found[ratio, a] for a in ALPHA_V], "o", color=TOTAL_COLOUR, markersize=2.5)
        one = pulled[ratio]
        right.plot(1e3 * one.midway, one.force, color=colour, label=f"ratio {ratio:g}")
        law = contact(ratio).law(one.depth, one.speed)
        right.plot(1e3 * one.depth, law, color=colour, linewidth=0.7, linestyle="--")
    left.set_title("lines: closed form; dots: simulated", pad=3)
    left.set_xlabel("alpha v")
    left.set_ylabel("coefficient of restitution")
    left.legend()
    right.axhline(0.0, color=LIMIT_COLOUR, linewidth=0.8)
    right.set_title(
        f"pulled off by {-PULL / 1e3:g} kN, in the same colours\ndashed: eq. 6, which would hold the mass", pad=3
    )
    right.set_xlabel("penetration [mm]")
    right.set_ylabel("force of the ground [N]")


def case(progress: bool) -> Outcome:
    """Run impacts and pulls with several ratios."""
    found = {(ratio, alpha_v): restitution(ratio, alpha_v) for ratio, alpha_v in product(RATIOS, ALPHA_V)}
    pulled = {ratio: pulled_off(ratio) for ratio in RATIOS}
    return Outcome(checks(found, pulled), lambda figure: draw(figure, found, pulled), (11.0, 4.5))
