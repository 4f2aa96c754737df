"""Show the force over depth and time, and the energy lost in an impact (Fig. 4 to 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bipedsim.view import FOOT_COLOURS
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.marhefka1996 import closed_form
from bipedsim_studies.reproduce.marhefka1996.impact import ImpactRun, PointContact, impact

STEP = 0.01
"""Step times the rate of the spring. Areas are sums over steps; errors cancel, as the force ends at its first value."""
FASTEST = 10.0
"""alpha v of an impact whose final speed is 2 / (3 alpha) within a fraction of 2e-6."""


class ForceLoop(NamedTuple):
    """Impact with its contact, its initial velocity [m/s] and its run."""

    contact: PointContact
    v_start: float
    run: ImpactRun

    @property
    def area(self) -> float:
        """Area of the loop by eq. 23 [J]: mean force of each step times its displacement."""
        return float(self.run.force @ np.diff(self.run.depth))

    @property
    def lost(self) -> float:
        """Kinetic energy lost [J]."""
        return 0.5 * self.contact.mass * (self.v_start**2 - self.run.leaves**2)

    @property
    def impulse(self) -> float:
        """Impulse of the ground on the mass [N.s]."""
        return float(self.run.force @ np.diff(self.run.t))

    @property
    def restitution(self) -> float:
        """Coefficient of restitution."""
        return self.run.leaves / self.v_start


def loop(contact: PointContact, v_start: float) -> ForceLoop:
    """Return the impact in steps that are fine enough for its area."""
    return ForceLoop(contact, v_start, impact(contact, v_start, STEP / contact.rate))


class ForceLoops(NamedTuple):
    """Impacts of three figures by the varied parameter: alpha [s/m], k [N/m] and m [kg]; and a very fast impact."""

    alphas: dict[float, ForceLoop]
    stiffnesses: dict[float, ForceLoop]
    masses: dict[float, ForceLoop]
    fastest: ForceLoop


def measure(progress: bool = False) -> ForceLoops:
    """Simulate the impacts of Fig. 4, 5 and 7, and the very fast one."""
    return ForceLoops(
        {a: loop(PointContact(1.0, 10e3, a), 1.0) for a in (0.01, 0.2, 0.4, 0.6)},
        {k: loop(PointContact(50.0, k, 0.5), 1.0) for k in (10e3, 30e3, 50e3, 70e3)},
        {m: loop(PointContact(m, 25e3, 0.5), 0.5) for m in (1.0, 10.0, 100.0)},
        loop(PointContact(1.0, 10e3, 0.5), FASTEST / 0.5),
    )


def checks(loops: ForceLoops) -> Iterator[Check]:
    """Yield the checks of energies and forces, and of their dependence on alpha, k and m."""
    alphas, stiffnesses, masses = ([*figure.values()] for figure in loops[:3])
    every = [*alphas, *stiffnesses, *masses]
    deepest = [force_loop.run.depth.max() for force_loop in alphas]
    worst = max(abs(force_loop.area / force_loop.lost - 1.0) for force_loop in every)
    push = max(
        abs(force_loop.impulse / (force_loop.contact.mass * (force_loop.v_start + force_loop.run.leaves)) - 1.0)
        for force_loop in every
    )
    exact = max(
        abs(force_loop.restitution - closed_form.restitution(force_loop.contact.alpha * force_loop.v_start))
        for force_loop in every
    )
    limit = loops.fastest.run.leaves * 1.5 * loops.fastest.contact.alpha
    per_mass = _spread([force_loop.area / force_loop.contact.mass for force_loop in masses])
    yield Check.at_most("|area of the loop / energy lost - 1|", worst, 1e-6)
    yield Check.at_most("|sum of the forces / m (v_i + v_o) - 1|", push, 1e-9)
    yield Check.at_most("|e - eq. 19|", exact, 1e-6)
    yield Check.at_least("smallest force", min(float(force_loop.run.force.min()) for force_loop in every), 0.0, "N")
    growth = min(np.diff([force_loop.area for force_loop in alphas]))
    yield Check.at_least("Fig. 4: areas grow with alpha, smallest step", growth, 1e-3, "J")
    yield Check.at_most("Fig. 4: depths fall with alpha, smallest step", max(np.diff(deepest)), -1e-6, "m")
    yield Check.at_most(
        "Fig. 5: spread of the areas over k", _spread([force_loop.area for force_loop in stiffnesses]), 1e-6
    )
    yield Check.at_most("Fig. 7: spread of the areas over m, per mass", per_mass, 1e-6)
    yield Check.near(f"speed out over 2 / (3 alpha) at alpha v = {FASTEST:g}", limit, 1.0, 5e-6)


def _spread(values: list[float]) -> float:
    return (max(values) - min(values)) / min(values)


def draw(figure: Figure, loops: ForceLoops) -> None:
    """Draw Fig. 4, 5, 6 and 7."""
    pictures = (
        ("Fig. 4: alpha [s/m] varies; m = 1 kg, k = 10 kN/m, 1 m/s", loops.alphas, False),
        ("Fig. 5: k [N/m] varies; m = 50 kg, alpha = 0.5 s/m, 1 m/s", loops.stiffnesses, False),
        ("Fig. 6: the same over time", loops.stiffnesses, True),
        ("Fig. 7: m [kg] varies; k = 25 kN/m, alpha = 0.5 s/m, 0.5 m/s", loops.masses, False),
    )
    for ax, (title, shown, over_time) in zip(figure.subplots(2, 2).ravel(), pictures, strict=True):
        for colour, (value, force_loop) in zip(FOOT_COLOURS, shown.items(), strict=False):
            x = 0.5 * (force_loop.run.t[:-1] + force_loop.run.t[1:]) if over_time else 1e3 * force_loop.run.midway
            ax.plot(x, force_loop.run.force, color=colour, label=f"{value:g}")
        axis = {"time": "time [s]", "legend": "upper right"} if over_time else {"x": "penetration [mm]"}
        label(ax, title, y="force of the ground [N]", **{"legend": "upper left", **axis})


case = study(measure, checks, draw, (11.0, 7.5))
