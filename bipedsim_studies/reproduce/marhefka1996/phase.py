"""Eq. 19 and Fig. 2: penetration and velocity of a mass that hits the ground."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import Check, Outcome, at_least, at_most, shown
from bipedsim_studies.reproduce.marhefka1996.closed_form import deepest, lost, penetration
from bipedsim_studies.reproduce.marhefka1996.impact import Contact, Run, impact, out, run, simulator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MASSES = (1.0, 10.0, 100.0)
STIFFNESSES = (10e3, 40e3, 70e3)
ALPHAS = (0.01, 0.1, 0.3, 0.6)
SPEEDS = (0.5, 4.0)
"""Of the impacts that are held against eq. 19 [kg], [N/m], [s/m], [m/s]; n = 1."""
EXPONENTS = (1.5, 2.0)
"""Of four more, m = 10 kg, k = 40 kN/m^n, alpha = 0.3 s/m."""
SHALLOW = 0.01
"""Share of the deepest penetration above which only eq. 13 is looked at."""
FIG2 = Contact(mass=50.0, stiffness=50e3, alpha=0.4)
FIG2_SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0)
LIMIT = 2.0 / (3.0 * FIG2.alpha)
"""Speed out of the ground at which spring and damper of Fig. 2 cancel, eq. 22 [m/s]."""
PULLED = (0.05, 0.1, 0.15)
"""Depths from which the mass of Fig. 2 is pulled off [m]."""
PULL = -40e3
"""Force that does it [N]."""
FASTER = 1.5
"""Speed out of the ground over the limit at which the pull ends."""


def distance(contact: Contact, v_start: float, found: Run) -> tuple[float, float]:
    """Return how far a run is from eq. 19: in depth over the deepest one, and in what eq. 13 keeps, over its start.

    Depth as a function of velocity rises like a root, so that it says nothing of the last ``SHALLOW`` of it.
    """
    depth = deepest(contact, v_start)
    x, v = found.depth, found.speed
    rate, power = 1.5 * contact.alpha, contact.exponent + 1.0
    kept = contact.stiffness * rate**2 / (power * contact.mass) * np.maximum(x, 0.0) ** power + lost(rate * v)
    below = x > SHALLOW * depth
    expected = penetration(contact, v_start, v[below])
    return float(np.abs(x[below] - expected).max()) / depth, float(np.abs(kept / lost(rate * v_start) - 1.0).max())


def pulled_off(depth: float) -> Run:
    """Pull the mass of Fig. 2 out of the ground, from rest at ``depth`` [m], and let it go above 2 / (3 alpha)."""

    def pull(_t: float, _depth: float, speed: float) -> float:
        return PULL if speed > -FASTER * LIMIT else 0.0

    return run(simulator(FIG2, 2e-4), depth, 0.0, out, pull)


def free_part(found: Run) -> Run:
    """Return the part of a pulled run after the pull."""
    first = int(np.argmax(found.speed <= -FASTER * LIMIT))
    return Run(found.t[first:], found.depth[first:], found.speed[first:], found.force[first:])


def measure(progress: bool = False) -> dict[tuple[Contact, float], tuple[float, float]]:
    """Return the distances from eq. 19 of all impacts."""
    contacts = [Contact(m, k, alpha) for m, k, alpha in product(MASSES, STIFFNESSES, ALPHAS)]
    contacts += [Contact(10.0, 40e3, 0.3, n) for n in EXPONENTS]
    every = tqdm([*product(contacts, SPEEDS)], desc="impacts", disable=not progress, leave=False)
    return {(contact, v): distance(contact, v, impact(contact, v)) for contact, v in every}


def checks(distances: dict[tuple[Contact, float], tuple[float, float]], pulled: list[Run]) -> tuple[Check, ...]:
    """Return the figures of eq. 19 and of Fig. 2."""
    depth, kept = np.array([*distances.values()]).T
    free = [free_part(p) for p in pulled]
    return (
        shown("impacts held against eq. 19", len(distances)),
        at_most("|penetration - eq. 19| over the deepest one", float(depth.max()), 1e-6),
        at_most("|what eq. 13 keeps / its value at the start - 1|", float(kept.max()), 1e-6),
        at_least("pulled off: speed / (2 / 3 alpha) after the pull", min(-p.speed[0] for p in free) / LIMIT, 1.0),
        at_most("pulled off: |force| from there on", max(float(np.abs(p.force).max()) for p in free), 0.0, "N"),
        at_most("pulled off: change of speed from there on", max(float(np.ptp(p.speed)) for p in free), 0.0, "m/s"),
    )


def draw(figure: Figure, impacts: list[Run], pulled: list[Run]) -> None:
    """Draw Fig. 2: contours of the closed form, and what the engine did along them."""
    ax = figure.subplots()
    for k, (v_start, found) in enumerate(zip(FIG2_SPEEDS, impacts, strict=True)):
        v = np.linspace(v_start, found.speed[-1], 400)
        label = "eq. 19" if k == 0 else None
        ax.plot(penetration(FIG2, v_start, v), v, color=FOOT_COLOURS[0], linewidth=0.9, label=label)
        label = "simulated" if k == 0 else None
        few = slice(None, None, max(1, len(found.t) // 25))
        ax.plot(found.depth[few], found.speed[few], "o", color=TOTAL_COLOUR, markersize=2.5, label=label)
    for k, found in enumerate(pulled):
        free = free_part(found)
        v = np.linspace(free.speed[0], -LIMIT - 1e-3, 400)
        label = "eq. 19 where it would hold the mass" if k == 0 else None
        x = penetration(FIG2, free.speed[0], v, free.depth[0])
        ax.plot(x, v, color=FOOT_COLOURS[1], linewidth=0.9, linestyle="--", label=label)
        label = "simulated: pulled off, then let go" if k == 0 else None
        few = slice(None, None, 4)
        ax.plot(found.depth[few], found.speed[few], "s", color=FOOT_COLOURS[1], markersize=2.2, label=label)
    ax.axhline(-LIMIT, color=LIMIT_COLOUR, linewidth=0.8, label="-2 / (3 alpha)")
    ax.set_xlim(left=0.0)
    ax.set_xlabel("penetration [m]")
    ax.set_ylabel("velocity into the ground [m/s]")
    ax.set_title("m = 50 kg, k = 50 kN/m, n = 1, alpha = 0.4 s/m", pad=3)
    ax.legend(loc="upper right")


def case(progress: bool) -> Outcome:
    """Run the impacts of eq. 19, and those of Fig. 2."""
    distances = measure(progress)
    impacts = [impact(FIG2, v) for v in FIG2_SPEEDS]
    pulled = [pulled_off(depth) for depth in PULLED]
    return Outcome(checks(distances, pulled), lambda figure: draw(figure, impacts, pulled), (8.0, 6.0))
