"""Compute the energy after impacts without friction (section 3.2.2), for each law and random states of a biped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from bipedsim.config import ProgressBar
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.impacts import IMPACT_LAWS, NoImpactOutcomeError
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import Z, mechanics, of_soles

ROBOT = "biped14"
PROBLEMS = 120
MOST_CONTACTS = 4
TILT = 0.3
"""Standard deviation of the trunk's orientation about each axis [rad]."""
FALL, SWAY = -1.0, 0.3
"""Vertical velocity of the trunk [m/s], and standard deviation of all velocities about it [m/s, rad/s]."""
RESTITUTION = np.linspace(0.0, 1.0, 11)
LIMIT = 1e-9


@dataclass(frozen=True, eq=False)
class ImpactSample:
    """Simultaneous impact of some vertices of a biped's soles.

    Attributes:
        M: (nv, nv) mass matrix.
        J: (m, nv) Jacobian of the vertical velocities of the vertices.
        v: (nv,) velocity before the impact.
        restitution: (m,) a coefficient of restitution for each contact.
    """

    M: Array
    J: Array
    v: Array
    restitution: Array

    @property
    def before(self) -> float:
        """Kinetic energy before the impact [J]."""
        return 0.5 * float(self.v @ self.M @ self.v)

    def after(self, law: str, e: ArrayLike) -> list[float]:
        """Return the energy of each outcome over the energy before; empty if the law has no outcome."""
        try:
            result = IMPACT_LAWS[law](self.M, self.J, self.v, e)
        except NoImpactOutcomeError:
            return []
        return [0.5 * float(outcome.v_after @ self.M @ outcome.v_after) / self.before for outcome in result.outcomes]


def problems(count: int = PROBLEMS) -> list[ImpactSample]:
    """Return random states of the robot in contact at 1 to ``MOST_CONTACTS`` adjacent vertices."""
    robot = load_robot(ROBOT)
    vertices = of_soles(robot)
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(count):
        q = robot.q_nominal.copy()
        q[robot.idx_q] = rng.uniform(robot.position_lower, robot.position_upper)
        attitude = pin.exp3(TILT * rng.standard_normal(3))
        q[3:7] = pin.Quaternion(attitude).coeffs()
        v = SWAY * rng.standard_normal(robot.model.nv)
        v[:3] += FALL * attitude[2]
        # Adjacent vertices are chosen, so that the samples include whole soles with linearly dependent rows.
        chosen = (rng.integers(len(vertices)) + np.arange(rng.integers(1, MOST_CONTACTS + 1))) % len(vertices)
        state = mechanics(robot, q, v, [vertices[i] for i in chosen])
        samples.append(ImpactSample(state.M, state.rows[:, Z], v, rng.uniform(size=len(chosen))))
    return samples


@dataclass(frozen=True, eq=False)
class EnergyResult:
    """Kinetic energies after impacts, over the energy before.

    Attributes:
        over_e: By law: for each sample and each e, the energies of all outcomes. Plastic laws have e = 0 only.
        unequal: By law with a coefficient per contact: for each sample with independent rows, the highest energy of an
            outcome.
        none: By law: the number of impacts without an outcome.
    """

    over_e: dict[str, list[list[list[float]]]] = field(default_factory=dict)
    unequal: dict[str, list[float]] = field(default_factory=dict)
    none: dict[str, int] = field(default_factory=dict)


def measure(progress: bool = False) -> EnergyResult:
    """Apply each law to each impact."""
    samples = problems()
    result = EnergyResult()
    for law, entry in IMPACT_LAWS.items():
        es = RESTITUTION if entry.restitution != "none" else RESTITUTION[:1]
        rows = ProgressBar(samples, desc=law, unit="impact", disable=not progress)
        result.over_e[law] = [[sample.after(law, e) for e in es] for sample in rows]
        result.none[law] = sum(not outcomes for row in result.over_e[law] for outcomes in row)
        if entry.restitution == "each":
            # Newton's coefficients contradict each other where the rows of the contacts are dependent.
            independent = [sample for sample in samples if np.linalg.matrix_rank(sample.J) == len(sample.J)]
            result.unequal[law] = [max(sample.after(law, sample.restitution), default=np.nan) for sample in independent]
    return result


def checks(result: EnergyResult) -> Iterator[Check]:
    """Yield the largest energy gain of each law, and the comparison with the closed form of Moreau's law."""
    for law, ratios in result.over_e.items():
        rise = max(ratio - 1.0 for row in ratios for outcomes in row for ratio in outcomes)
        yield Check.at_most(f"{law}: energy after / before - 1, at most", rise, LIMIT)
    moreau = np.array(result.over_e["moreau"])[..., 0]
    plastic = moreau[:, :1]
    closed = plastic + np.square(RESTITUTION) * (1.0 - plastic)
    yield Check.at_most("moreau: |energy - (plastic + e^2 of what that loses)|", np.abs(moreau - closed).max(), LIMIT)
    lotstedt = np.array(result.over_e["lotstedt"])[:, 0]
    yield Check.at_most("lotstedt: |energy - that of moreau at e = 0|", np.abs(lotstedt - plastic).max(), LIMIT)
    yield Check.shown("han_gilmore: impacts without outcome", result.none["han_gilmore"])
    poisson = float(np.nanmax(result.unequal["pfeiffer_glocker"])) - 1.0
    yield Check.at_most("pfeiffer_glocker, an e for each contact: energy after / before - 1, at most", poisson, LIMIT)
    for law in ("haug", "han_gilmore"):
        highest = np.array(result.unequal[law])
        gaining = float(np.sum(highest > 1.0 + LIMIT))
        yield Check.shown(f"{law}, an e for each contact: impacts that gain energy, of {len(highest)}", gaining)
        yield Check.shown("... energy after / before - 1, at most", float(np.nanmax(highest)) - 1.0)


def draw(figure: Figure, result: EnergyResult) -> None:
    """Draw the energy over e.

    Each impact is a line and its further outcomes are dots. Plastic laws are drawn sorted.
    """
    axes = figure.subplots(2, 3, sharey=True)
    for k, (ax, (law, ratios)) in enumerate(zip(axes.ravel(), result.over_e.items(), strict=True)):
        if len(ratios[0]) == 1:
            ax.plot(np.sort([row[0][0] for row in ratios]), ".", color=FOOT_COLOURS[k], markersize=4)
            label(ax, f"{law} (plastic only)", x="impacts, sorted")
        else:
            for row in ratios:
                first = [outcomes[0] if outcomes else np.nan for outcomes in row]
                ax.plot(RESTITUTION, first, color=FOOT_COLOURS[k], linewidth=0.6, alpha=0.5)
            further = [
                (e, ratio) for row in ratios for e, of_e in zip(RESTITUTION, row, strict=True) for ratio in of_e[1:]
            ]
            if further:
                ax.plot(*np.array(further).T, ".", color="#222222", markersize=2, label="further outcomes")
                ax.legend(loc="lower right")
            label(ax, law, x="restitution e, the same at all contacts")
        ax.axhline(1.0, color=LIMIT_COLOUR, linewidth=1.0, linestyle="--")
        ax.set_ylim(top=1.02)
    for ax in axes[:, 0]:
        ax.set_ylabel("energy after / before")


case = study(measure, checks, draw, (12.5, 7.0))
