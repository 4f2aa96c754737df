"""Show that the coefficient of restitution depends only on alpha times the impact velocity (Fig. 3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from bipedsim.config import ProgressBar
from bipedsim.view import FOOT_COLOURS, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.marhefka1996 import closed_form
from bipedsim_studies.reproduce.marhefka1996.impact import PointContact, impact

EXPECTED = {0.01: 0.990099, 0.05: 0.952370, 0.1: 0.909016, 0.2: 0.832870, 0.5: 0.662962, 1.0: 0.487741, 2.0: 0.306897}
"""Coefficient of restitution by alpha times velocity, from eq. 19 at x = 0."""
CONTACTS = tuple(
    PointContact(mass, stiffness, alpha, exponent)
    for mass, stiffness, alpha, exponent in product((1.0, 100.0), (1e4, 1e6), (0.2, 0.5), (1.0, 1.5, 2.0))
)
"""Contacts that must all have these coefficients: m [kg], k [N/m^n], alpha [s/m] and n."""
FIG3_ALPHAS = (0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
FIG3_SPEEDS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
"""The paper's range is not legible; these speeds reach alpha v = 2.5."""


def measured(contact: PointContact, alpha_v: float) -> float:
    """Return the simulated coefficient of restitution at ``alpha_v``."""
    v = alpha_v / contact.alpha
    return impact(contact, v).leaves / v


Coefficients = dict[tuple[PointContact, float], float]


def measure(progress: bool = False) -> Coefficients:
    """Simulate each contact at each alpha v, and return the coefficients."""
    every = ProgressBar([*product(CONTACTS, EXPECTED)], desc="impacts", unit="impact", disable=not progress)
    return {(contact, alpha_v): measured(contact, alpha_v) for contact, alpha_v in every}


def checks(coefficients: Coefficients) -> Iterator[Check]:
    """Yield the coefficient with the largest error for each alpha v, and the largest error of all."""
    for alpha_v, expected in EXPECTED.items():
        of_it = [e for (_, x), e in coefficients.items() if x == alpha_v]
        furthest = max(of_it, key=lambda e: abs(e - closed_form.restitution(alpha_v)))
        yield Check.near(f"e at alpha v = {alpha_v:g}, furthest of {len(of_it)}", furthest, expected, 1e-6)
    exact = [abs(e - closed_form.restitution(x)) for (_, x), e in coefficients.items()]
    yield Check.at_most("|e - eq. 19| over all", max(exact), 1e-7)


def draw(figure: Figure, coefficients: Coefficients) -> None:
    """Draw Fig. 3: the closed form, and simulated impacts of 1 kg."""
    ax = figure.subplots()
    v = np.linspace(1e-3, FIG3_SPEEDS[-1], 200)
    for k, alpha in enumerate(FIG3_ALPHAS):
        colour = FOOT_COLOURS[k % len(FOOT_COLOURS)]
        ax.plot(v, [closed_form.restitution(alpha * x) for x in v], color=colour)
        e = [measured(PointContact(alpha=alpha), alpha * x) for x in FIG3_SPEEDS]
        ax.plot(FIG3_SPEEDS, e, "o", color=TOTAL_COLOUR, markersize=2.5)
        ax.annotate(f"{alpha:g}", (v[-1], e[-1]), xytext=(4, -3), textcoords="offset points", color=colour)
    title = "alpha [s/m] at the lines: eq. 19; dots: simulated"
    label(ax, title, "velocity of the impact [m/s]", "coefficient of restitution")


case = study(measure, checks, draw, (8.0, 5.5))
