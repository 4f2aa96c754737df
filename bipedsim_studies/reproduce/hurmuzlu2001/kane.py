"""Show impacts of Kane's double pendulum that gain energy, or in which friction gains energy (section 3.3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.impacts import IMPACT_LAWS, Friction, ImpactResult
from bipedsim_studies.reproduce.common import Axes, Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z, mechanics, of_frames

NEWTON, POISSON, GAUSS, MOREAU = "han_gilmore", "pfeiffer_glocker", "lotstedt", "moreau"
REVERSING = (20.0, 30.0, -0.1, -0.2)
"""Angles of both rods from the vertical [deg] and rates [rad/s]; the slip reverses when the rod rebounds."""
PLASTIC = (30.0, 40.0, 0.1, -0.2)
"""State in which the slip also reverses in a plastic impact."""
FRICTIONS = np.linspace(0.0, 1.0, 41)
RESTITUTION = (0.0, 0.5, 0.7, 1.0)
LIMIT = 1e-9


class Pendulum:
    """Double pendulum as its lower end hits the ground: M, normal and tangential row, and velocity before."""

    def __init__(self, state: tuple[float, float, float, float]) -> None:
        robot = body("double_pendulum")
        upper, lower = np.radians(state[:2])
        self.v = np.array([state[2], state[3] - state[2]])
        self.angles = float(upper), float(lower)
        state_at_impact = mechanics(robot, [upper, lower - upper], self.v, of_frames(robot, ["tip"]))
        self.M, self.J, self.G = state_at_impact.M, state_at_impact.rows[:, Z], state_at_impact.rows[:, X]
        self.energy = 0.5 * float(self.v @ self.M @ self.v)
        rows = np.vstack([self.J, self.G])
        self.w, self.slip = (float(x) for x in rows @ self.v)
        self.D: Array = rows @ np.linalg.solve(self.M, rows.T)

    def strike(self, law: str, e: float, mu: float, of_slip: float = 0.0) -> PendulumImpact:
        """Return the impact by a law, with tangential restitution ``of_slip`` if the law supports it."""
        result = IMPACT_LAWS[law](self.M, self.J, self.v, e, Friction(self.G, mu, of_slip))
        return PendulumImpact(self, result, mu)

    def newton(self, e: float, mu: float) -> list[Array]:
        """Return all impulses (normal, tangential) of Newton's law with Coulomb friction at the final slip."""
        impulses = []
        stuck = np.linalg.solve(self.D, [-(1.0 + e) * self.w, -self.slip]).astype(np.float64)
        if stuck[0] > 0.0 and abs(stuck[1]) <= mu * stuck[0]:
            impulses.append(stuck)
        for sign in (1.0, -1.0):
            cone = np.array([1.0, -sign * mu])
            normal = -(1.0 + e) * self.w / (self.D[0] @ cone)
            if normal > 0.0 and sign * (self.slip + normal * (self.D[1] @ cone)) > 0.0:
                impulses.append(normal * cone)
        return impulses


@dataclass(frozen=True, eq=False)
class PendulumImpact:
    """Impact of the pendulum, with its energies over the kinetic energy before."""

    pendulum: Pendulum
    result: ImpactResult
    mu: float

    @property
    def rise(self) -> float:
        """Change of the kinetic energy, over the energy before."""
        return self.result.energy_change / self.pendulum.energy

    @property
    def impulse(self) -> Array:
        """(normal, tangential) impulse [N.s]."""
        return np.array([self.result.impulse[0], self.result.tangential_impulse[0]])

    @property
    def after(self) -> Array:
        """(normal velocity, slip) after the impact [m/s]."""
        return np.array([(self.pendulum.J @ self.result.v_after)[0], (self.pendulum.G @ self.result.v_after)[0]])

    @property
    def work(self) -> Array:
        """Work (of the normal impulse, of friction) over the energy before.

        It is the impulse times the mean of the velocities before and after.
        """
        before = np.array([self.pendulum.w, self.pendulum.slip])
        relative_work: Array = 0.5 * self.impulse * (before + self.after) / self.pendulum.energy
        return relative_work


@dataclass(frozen=True, eq=False)
class KaneResult:
    """Impacts over the friction coefficient.

    Attributes:
        newton, poisson: By e, from the state ``REVERSING``.
        gauss: Plastic impacts from the state ``PLASTIC``.
        moreau: By e, from the state ``REVERSING``, with tangential restitution e.
        normal: By e, from the state ``REVERSING``, without tangential restitution.
    """

    newton: dict[float, list[PendulumImpact]]
    poisson: dict[float, list[PendulumImpact]]
    gauss: list[PendulumImpact]
    moreau: dict[float, list[PendulumImpact]]
    normal: dict[float, list[PendulumImpact]]


def measure(_progress: bool = False) -> KaneResult:
    """Compute the impacts of all laws."""
    reversing, plastic = Pendulum(REVERSING), Pendulum(PLASTIC)

    def over_friction(law: str, of_slip: float = 0.0) -> dict[float, list[PendulumImpact]]:
        return {e: [reversing.strike(law, e, float(mu), of_slip * e) for mu in FRICTIONS] for e in RESTITUTION}

    gauss = [plastic.strike(GAUSS, 0.0, float(mu)) for mu in FRICTIONS]
    moreau = over_friction(MOREAU, 1.0), over_friction(MOREAU)
    return KaneResult(over_friction(NEWTON), over_friction(POISSON), gauss, *moreau)


def closed_form_error(result: KaneResult) -> float:
    """Return the largest error of the final velocities (normal, slip) against Newton's law in closed form [m/s]."""
    worst = 0.0
    for e, blows in result.newton.items():
        for blow in blows:
            pendulum = blow.pendulum
            closed_forms = [np.array([pendulum.w, pendulum.slip]) + pendulum.D @ x for x in pendulum.newton(e, blow.mu)]
            worst = max(worst, min(float(np.abs(blow.after - closed_form).max()) for closed_form in closed_forms))
    return worst


def checks(result: KaneResult) -> Iterator[Check]:
    """Yield the checks of the energies of section 3.3.2."""
    newton = [blow for blows in result.newton.values() for blow in blows]
    poisson = [blow for blows in result.poisson.values() for blow in blows]
    moreau = [blow for blows in result.moreau.values() for blow in blows]
    normal = [blow for blows in result.normal.values() for blow in blows]
    every = newton + poisson + result.gauss + moreau + normal
    gaining = [blow for blow in newton if blow.rise > LIMIT]
    driven = max(result.gauss, key=lambda blow: float(blow.work[1]))
    sliding = [blow for blow in result.gauss if abs(blow.after[1]) > LIMIT]
    eq_40 = [abs(float(blow.impulse @ blow.after)) / blow.pendulum.energy for blow in result.gauss]
    velocity_changes = [blow.result.v_after - blow.pendulum.v for blow in result.gauss]
    loss_errors = [
        abs(blow.rise + 0.5 * float(dv @ blow.pendulum.M @ dv) / blow.pendulum.energy)
        for blow, dv in zip(result.gauss, velocity_changes, strict=True)
    ]
    rebound = [abs(blow.after[0] - blow.mu * abs(blow.after[1])) for blow in sliding]
    yield Check.at_most(
        "Newton with friction: |velocities after - closed form|", closed_form_error(result), LIMIT, "m/s"
    )
    yield Check.at_least(
        "Newton: energy after / before - 1 at mu = 0.25, e = 0.7", at(result.newton[0.7], 0.25).rise, 0.05
    )
    yield Check.at_least("Newton: the same at mu = 1, e = 1", at(result.newton[1.0], 1.0).rise, 5.0)
    yield Check.equal(
        "Newton: impacts that gain energy though friction takes some", sum(b.work[1] <= 0.0 for b in gaining), 0
    )
    yield Check.equal(
        "Newton: impacts that gain energy though slip does not stop or reverse", sum(map(keeps_on, gaining)), 0
    )
    yield Check.at_most("Poisson: energy after / before - 1", max(blow.rise for blow in poisson), LIMIT)
    yield Check.at_most("Moreau, the slip's restitution e too: energy after / before - 1", most(moreau), LIMIT)
    yield Check.at_least("... with none of the slip's: the same, at most", most(normal), 0.1)
    yield Check.at_most("Lötstedt: energy after / before - 1", max(blow.rise for blow in result.gauss), LIMIT)
    yield Check.at_most("Lötstedt: |impulse . velocity after| / energy, eq. 40", max(eq_40), LIMIT)
    yield Check.at_most("Lötstedt: |loss - |v+ - v-|_M^2 / 2| / energy", max(loss_errors), LIMIT)
    yield Check.at_least("Lötstedt: work of friction over the energy before, at most", float(driven.work[1]), 0.1)
    yield Check.at_most("Lötstedt: |rebound - mu slip| where it slides", max(rebound), LIMIT, "m/s")
    yield Check.at_most(
        "every law: |rise - work of both impulses|", max(abs(b.rise - b.work.sum()) for b in every), LIMIT
    )


def most(blows: list[PendulumImpact]) -> float:
    """Return the largest relative gain of energy."""
    return max(blow.rise for blow in blows)


def at(blows: list[PendulumImpact], mu: float) -> PendulumImpact:
    """Return the impact at the friction coefficient ``mu``."""
    return blows[int(np.argmin(np.abs(FRICTIONS - mu)))]


def keeps_on(blow: PendulumImpact) -> bool:
    """Return whether the end still slides in its initial direction."""
    return bool(blow.after[1] * blow.pendulum.slip > LIMIT * blow.pendulum.slip**2)


def draw_pendulum(ax: Axes, state: tuple[float, float, float, float]) -> None:
    """Draw the rods at the impact."""
    upper, lower = np.radians(state[:2])
    knee = np.array([-np.sin(upper), -np.cos(upper)])
    tip = knee + np.array([-np.sin(lower), -np.cos(lower)])
    ax.plot(*np.array([(0.0, 0.0), knee, tip]).T, color="#222222", linewidth=2.5, marker="o", markersize=5)
    ax.axhline(tip[1], color="#777777", linewidth=1.5)
    pendulum = Pendulum(state)
    arrow = 1.2 * np.array([pendulum.slip, pendulum.w])
    look = {"arrowstyle": "->", "color": LIMIT_COLOUR, "linewidth": 1.5}
    ax.annotate("", xy=tuple(tip), xytext=tuple(tip - arrow), arrowprops=look)
    label(
        ax,
        f"{state[0]:g}° and {state[1]:g}°,\n{state[2]:g} and {state[3]:g} rad/s",
        x="x [m]; arrow: velocity of the end",
        y="z [m]",
        xlim=(-1.45, 0.25),
        ylim=(tip[1] - 0.15, 0.15),
        aspect="equal",
    )


def draw(figure: Figure, result: KaneResult) -> None:
    """Draw the energies over the friction coefficient."""
    axes = figure.subplots(1, 4, width_ratios=[0.75, 1.1, 1.1, 1.1])
    draw_pendulum(axes[0], REVERSING)
    for ax, blows, title in (
        (axes[1], result.newton, "Newton (han_gilmore)"),
        (axes[2], result.poisson, "Poisson (pfeiffer_glocker)"),
    ):
        for k, (e, of_e) in enumerate(blows.items()):
            ax.plot(FRICTIONS, [1.0 + blow.rise for blow in of_e], color=FOOT_COLOURS[k], label=f"e = {e:g}")
        ax.axhline(1.0, color=LIMIT_COLOUR, linewidth=1.0, linestyle="--")
        label(
            ax,
            title,
            x="friction mu",
            y="energy after / before",
            legend="upper left" if blows is result.newton else "lower right",
        )
    axes[1].set_ylim(0.0, None)
    axes[2].set_ylim(0.0, 1.05)
    ax = axes[3]
    ax.plot(FRICTIONS, [blow.rise for blow in result.gauss], color=FOOT_COLOURS[0], label="change of energy")
    ax.plot(FRICTIONS, [blow.work[1] for blow in result.gauss], color=FOOT_COLOURS[1], label="work of friction")
    ax.plot(
        FRICTIONS, [blow.work[0] for blow in result.gauss], color=FOOT_COLOURS[2], label="work of the normal impulse"
    )
    ax.axhline(0.0, color=LIMIT_COLOUR, linewidth=1.0, linestyle="--")
    label(
        ax,
        f"lotstedt, {PLASTIC[0]:g}° and {PLASTIC[1]:g}°",
        x="friction mu",
        y="over the energy before",
        legend="lower left",
    )


case = study(measure, checks, draw, (14.0, 4.4))
