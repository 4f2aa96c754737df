"""Fig. 4 to 7: force over depth and over time, and the energy that an impact costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.view import FOOT_COLOURS
from bipedsim_studies.reproduce.common import Check, Outcome, at_least, at_most, near
from bipedsim_studies.reproduce.marhefka1996 import closed_form
from bipedsim_studies.reproduce.marhefka1996.impact import Contact, Run, impact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP = 0.01
"""Step times the rate of the spring. Areas are sums over steps; errors cancel, as the force ends where it begins."""
FASTEST = 10.0
"""alpha v of an impact that leaves at 2 / (3 alpha) but for 2e-6 of it."""


@dataclass(frozen=True, eq=False)
class Loop:
    """One impact.

    Attributes:
        contact: What hits what.
        v_start: At this velocity [m/s].
        run: What happened.
    """

    contact: Contact
    v_start: float
    run: Run

    @property
    def area(self) -> float:
        """Area within the loop, eq. 23 [J]: mean force of each step times its way."""
        return float(self.run.force @ np.diff(self.run.depth))

    @property
    def lost(self) -> float:
        """Kinetic energy lost [J]."""
        return 0.5 * self.contact.mass * (self.v_start**2 - self.run.leaves**2)

    @property
    def impulse(self) -> float:
        """Of the ground on the mass [N.s]."""
        return float(self.run.force @ np.diff(self.run.t))

    @property
    def restitution(self) -> float:
        """Coefficient of restitution."""
        return self.run.leaves / self.v_start


def loop(contact: Contact, v_start: float) -> Loop:
    """Return the impact in steps fine enough for its area."""
    return Loop(contact, v_start, impact(contact, v_start, STEP / contact.rate))


def measure() -> dict[str, dict[float, Loop]]:
    """Return the impacts of each figure by what varies in it."""
    return {
        "Fig. 4": {a: loop(Contact(1.0, 10e3, a), 1.0) for a in (0.01, 0.2, 0.4, 0.6)},
        "Fig. 5": {k: loop(Contact(50.0, k, 0.5), 1.0) for k in (10e3, 30e3, 50e3, 70e3)},
        "Fig. 7": {m: loop(Contact(m, 25e3, 0.5), 0.5) for m in (1.0, 10.0, 100.0)},
    }


def checks(loops: dict[str, dict[float, Loop]], fastest: Loop) -> tuple[Check, ...]:
    """Return the figures: energies, forces, and how they depend on alpha, k and m."""
    every = [one for figure in loops.values() for one in figure.values()]
    alphas, stiffnesses, masses = ([*figure.values()] for figure in loops.values())
    deepest = [one.run.depth.max() for one in alphas]
    per_mass = [one.area / one.contact.mass for one in masses]
    worst = max(abs(one.area / one.lost - 1.0) for one in every)
    push = max(abs(one.impulse / (one.contact.mass * (one.v_start + one.run.leaves)) - 1.0) for one in every)
    exact = max(abs(one.restitution - closed_form.restitution(one.contact.alpha * one.v_start)) for one in every)
    limit = fastest.run.leaves * 1.5 * fastest.contact.alpha
    return (
        at_most("|area of the loop / energy lost - 1|", worst, 1e-6),
        at_most("|sum of the forces / m (v_i + v_o) - 1|", push, 1e-9),
        at_most("|e - eq. 19|", exact, 1e-6),
        at_least("smallest force", min(float(one.run.force.min()) for one in every), 0.0, "N"),
        at_least("Fig. 4: areas grow with alpha, smallest step", min(np.diff([one.area for one in alphas])), 1e-3, "J"),
        at_most("Fig. 4: depths fall with alpha, smallest step", max(np.diff(deepest)), -1e-6, "m"),
        at_most("Fig. 5: spread of the areas over k", _spread([one.area for one in stiffnesses]), 1e-6),
        at_most("Fig. 7: spread of the areas over m, per mass", _spread(per_mass), 1e-6),
        near(f"speed out over 2 / (3 alpha) at alpha v = {FASTEST:g}", limit, 1.0, 5e-6),
    )


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / min(values)


def draw(figure: Figure, loops: dict[str, dict[float, Loop]]) -> None:
    """Draw Fig. 4, 5, 6 and 7."""
    axes = figure.subplots(2, 2).ravel()
    titles = (
        "Fig. 4: alpha [s/m] varies; m = 1 kg, k = 10 kN/m, 1 m/s",
        "Fig. 5: k [N/m] varies; m = 50 kg, alpha = 0.5 s/m, 1 m/s",
        "Fig. 6: the same over time",
        "Fig. 7: m [kg] varies; k = 25 kN/m, alpha = 0.5 s/m, 0.5 m/s",
    )
    for ax, title, name in zip(axes, titles, ("Fig. 4", "Fig. 5", "Fig. 5", "Fig. 7"), strict=True):
        over_time = title.startswith("Fig. 6")
        for colour, (value, one) in zip(FOOT_COLOURS, loops[name].items(), strict=False):
            x = 0.5 * (one.run.t[:-1] + one.run.t[1:]) if over_time else 1e3 * one.run.midway
            ax.plot(x, one.run.force, color=colour, label=f"{value:g}")
        ax.set_title(title, pad=3)
        ax.set_xlabel("time [s]" if over_time else "penetration [mm]")
        ax.set_ylabel("force of the ground [N]")
        ax.legend(loc="upper right" if over_time else "upper left")


def case(progress: bool) -> Outcome:
    """Run Fig. 4 to 7."""
    loops = measure()
    fastest = loop(Contact(1.0, 10e3, 0.5), FASTEST / 0.5)
    return Outcome(checks(loops, fastest), lambda figure: draw(figure, loops), (11.0, 7.5))
