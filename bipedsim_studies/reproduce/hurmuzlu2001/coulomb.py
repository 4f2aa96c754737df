"""Compare Coulomb's LCP (eq. 30 to 37) with the closed form on a sliding rod: one solution, none or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bipedsim.config import ProgressBar
from bipedsim.numerics import Array, Integers
from bipedsim.view import LIMIT_COLOUR
from bipedsim_studies.complementarity import (
    ComplementarityError,
    CoulombContacts,
    CoulombOutcome as Solved,
    planar_coulomb_lcp,
    solve_coulomb,
)
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z, mechanics, of_soles

SPINS = (0.0, 4.0)
"""Angular velocity of the rod [rad/s]. At 0 the end is always pressed down; at 4 it lifts off beyond 38 degrees."""
SLIP = -1.0
"""Velocity of the lower end [m/s]. The rod tilts towards +x, so friction pushes the end under the rod."""
ANGLES = np.radians(np.linspace(1.0, 89.0, 67))
FRICTIONS = np.linspace(0.05, 4.0, 60)
STEEP = np.radians(np.linspace(15.0, 80.0, 27))
"""Angles at which the boundary is searched by bisection."""
BISECTIONS = 50
LIMIT = 1e-9
ROUNDING = 1e-9
"""Relative distance from a boundary below which rounding decides the verdict."""
PRESSED, LIFTED, NONE, SEVERAL = range(4)
REGIONS = ("one: slides under load", "one: lifts off", "no solution", "several")
COLOURS = ("#DCEBF5", "#DFF1E8", "#F2B8B0", "#F6DDA8")


def rod_state(angle: float, slip: float, spin: float) -> tuple[Array, Array]:
    """Return q (7,) and v (6,) of a rod that tilts towards +x while its lower end slides.

    Args:
        angle: Angle between rod and ground [rad].
        slip: Velocity of the lower end [m/s].
        spin: Rate of ``angle`` [rad/s].
    """
    lean = pin.utils.rotate("y", 0.5 * np.pi - angle)
    axis = lean[:, 2]
    omega = np.array([0.0, -spin, 0.0])
    # The body frame of the rod is at its centre, 1 m from the end.
    middle = np.array([slip, 0.0, 0.0]) + np.cross(omega, axis)
    q = np.concatenate([axis, pin.Quaternion(lean).coeffs()])
    return q, np.concatenate([lean.T @ middle, lean.T @ omega])


@dataclass(frozen=True)
class RodProperties:
    """Properties for the closed form: mass [kg], half-length [m], central inertia [kg.m^2] and g [m/s^2]."""

    mass: float
    half: float
    inertia: float
    g: float

    @property
    def kappa(self) -> float:
        """m l^2 / I, 3 for a slender rod."""
        return self.mass * self.half**2 / self.inertia

    def stiffness(self, angle: Array | float, mu: Array | float) -> Array:
        """Return m A: mass times the normal acceleration of the end per unit of normal force, with its friction."""
        cosine, sine = np.cos(angle), np.sin(angle)
        return np.asarray(1.0 + self.kappa * cosine * (cosine + np.sign(SLIP) * mu * sine))

    def free(self, angle: Array | float, spin: float) -> Array:
        """Return b: the normal acceleration of the end without contact force [m/s^2]."""
        return np.asarray(self.half * spin**2 * np.sin(angle) - self.g)

    def boundary(self, angle: Array | float) -> Array:
        """Return the friction coefficient at which A = 0."""
        return np.asarray((1.0 + self.kappa * np.cos(angle) ** 2) / (self.kappa * np.cos(angle) * np.sin(angle)))

    def region(self, angle: float, mu: float, spin: float) -> int:
        """Return the region in the closed form: ``PRESSED``, ``LIFTED``, ``NONE`` or ``SEVERAL``."""
        if self.stiffness(angle, mu) < 0.0:
            return NONE if self.free(angle, spin) < 0.0 else SEVERAL
        return PRESSED if self.free(angle, spin) < 0.0 else LIFTED

    @property
    def least_friction(self) -> tuple[float, float]:
        """Smallest friction coefficient with a paradox, and its angle [rad]."""
        return 2.0 * np.sqrt(1.0 + self.kappa) / self.kappa, float(np.arctan(np.sqrt(1.0 + self.kappa)))


class SlidingRod:
    """Set up the LCP of the robot ``rod`` at one angle and angular velocity, for any friction coefficient."""

    def __init__(self, angle: float, spin: float, slip: float = SLIP) -> None:
        robot = body("rod")
        q, v = rod_state(angle, slip, spin)
        self._state = mechanics(robot, q, v, of_soles(robot))
        self._slip = float((self._state.rows[0] @ v)[X])

    def solve(self, mu: float) -> Solved:
        """Solve eq. 37 with the friction coefficient ``mu``."""
        state = self._state
        contacts = CoulombContacts(state.rows[:, Z], state.rows[:, [X]], np.array(mu))
        slip = [[self._slip]]
        drift = state.drift
        return solve_coulomb(planar_coulomb_lcp(state.M, -state.nle, contacts, slip, drift[:, Z], drift[:, [X]]))


def region_of(result: Solved) -> int:
    """Return the region of a verdict of the LCP.

    It is -1 for any other verdict, and if the LCP gives an answer although its verdict is not unique.
    """
    if result.verdict == "unique":
        return PRESSED if result.answer.normal[0] > 0.0 else LIFTED
    try:
        _ = result.answer
    except ComplementarityError:
        return {"none": NONE, "several": SEVERAL}.get(result.verdict, -1)
    return -1


def rod() -> RodProperties:
    """Return the properties of the robot ``rod``."""
    robot = body("rod")
    bar = robot.model.inertias[1]
    half = float(np.linalg.norm(robot.soles[0].vertices_joint[0] - bar.lever))
    return RodProperties(robot.mass, half, float(bar.inertia[1, 1]), float(-robot.model.gravity.linear[2]))


@dataclass(frozen=True, eq=False)
class CoulombResult:
    """Measurements of the case.

    Attributes:
        regions: Regions from the LCP by angular velocity, each (angles, frictions).
        force_error: Largest relative error of the normal force where the solution is unique.
        edge: (STEEP,) friction coefficient at which the verdict changes, by bisection.
    """

    regions: dict[float, Integers]
    force_error: float
    edge: Array


def measure(progress: bool = False) -> CoulombResult:
    """Solve the LCP on the grid and find the boundary of its verdicts by bisection."""
    exact_rod = rod()
    regions: dict[float, Integers] = {}
    worst = 0.0
    for spin in SPINS:
        regions[spin] = np.zeros((len(ANGLES), len(FRICTIONS)), dtype=np.int64)
        rows = ProgressBar(ANGLES, desc=f"coulomb, {spin:g} rad/s", unit="angle", disable=not progress)
        for i, angle in enumerate(rows):
            sliding = SlidingRod(float(angle), spin)
            for j, mu in enumerate(FRICTIONS):
                outcome = sliding.solve(float(mu))
                regions[spin][i, j] = region_of(outcome)
                if outcome.verdict == "unique":
                    exact = max(
                        0.0, float(-exact_rod.mass * exact_rod.free(angle, spin) / exact_rod.stiffness(angle, mu))
                    )
                    worst = max(worst, abs(outcome.answer.normal[0] - exact) / (exact_rod.mass * exact_rod.g + exact))
    edge = np.zeros(len(STEEP))
    for i, angle in enumerate(STEEP):
        sliding = SlidingRod(float(angle), 0.0)
        low, high = 0.0, 20.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if sliding.solve(middle).verdict == "unique" else (low, middle)
        edge[i] = 0.5 * (low + high)
    return CoulombResult(regions, worst, edge)


def checks(result: CoulombResult) -> Iterator[Check]:
    """Yield the checks of eq. 37."""
    thin = rod()
    for spin, regions in result.regions.items():
        wrong = skipped = 0
        for i, angle in enumerate(ANGLES):
            for j, mu in enumerate(FRICTIONS):
                margin = min(abs(float(thin.stiffness(angle, mu))), abs(float(thin.free(angle, spin))) / thin.g)
                skipped += margin < ROUNDING
                wrong += margin >= ROUNDING and regions[i, j] != thin.region(float(angle), float(mu), spin)
        yield Check.equal(f"{spin:g} rad/s: verdicts off the closed form", wrong, 0)
        yield Check.shown(f"... of states, those within rounding of a boundary ({regions.size} in all)", skipped)
        counted = Counter(regions.ravel().tolist())
        yield from [Check.shown(f"... {name}", counted[k]) for k, name in enumerate(REGIONS)]
    smallest, angle = thin.least_friction
    slid = SlidingRod(angle, 0.0)
    yield Check.at_most("relative error of the normal force where it is unique", result.force_error, LIMIT)
    yield Check.at_most("|friction at which solutions end - closed form|, relative", edge_error(result), LIMIT)
    yield Check.near("least friction with a paradox, by the closed form", smallest, 4.0 / 3.0, LIMIT)
    yield Check.equal(
        "its verdict just below: unique", float(slid.solve(smallest * (1.0 - ROUNDING)).verdict == "unique"), 1
    )
    yield Check.equal(
        "its verdict just above: none", float(slid.solve(smallest * (1.0 + ROUNDING)).verdict == "none"), 1
    )


def edge_error(result: CoulombResult) -> float:
    """Return the largest relative error of the boundary from bisection."""
    exact = rod().boundary(STEEP)
    return float(np.abs(result.edge / exact - 1.0).max())


def draw(figure: Figure, result: CoulombResult) -> None:
    """Draw the verdicts over angle and friction, and the boundaries of the closed form."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    thin = rod()
    axes = figure.subplots(1, len(SPINS), sharey=True)
    degrees, fine = np.degrees(ANGLES), np.radians(np.linspace(5.0, 88.0, 400))
    for ax, (spin, regions) in zip(axes, result.regions.items(), strict=True):
        colours = ListedColormap(list(COLOURS))
        ax.pcolormesh(degrees, FRICTIONS, regions.T, cmap=colours, vmin=-0.5, vmax=3.5, shading="nearest")
        ax.plot(np.degrees(fine), thin.boundary(fine), color=LIMIT_COLOUR, linewidth=1.4, label="closed form, A = 0")
        if thin.half * spin**2 > thin.g:
            lift_angle = np.degrees(np.arcsin(thin.g / (thin.half * spin**2)))
            ax.axvline(lift_angle, color="#222222", linewidth=1.2, linestyle="--", label="closed form, b = 0")
        if spin == 0.0:
            ax.plot(np.degrees(STEEP), result.edge, "o", color="#222222", markersize=3, label="bisection of the LCP")
        smallest, angle = thin.least_friction
        ax.plot(np.degrees(angle), smallest, "*", color="#222222", markersize=9)
        ax.annotate(f"mu = {smallest:.4f}", (np.degrees(angle), smallest), xytext=(6, -12), textcoords="offset points")
        label(
            ax,
            f"rod turning at {spin:g} rad/s, end slides at {-SLIP:g} m/s under it",
            x="angle between rod and ground [deg]",
            xlim=(degrees[0], degrees[-1]),
            ylim=(FRICTIONS[0], FRICTIONS[-1]),
        )
        ax.grid(False)
    axes[0].set_ylabel("friction mu")
    handles, labels = axes[0].get_legend_handles_labels()
    more_handles, names = axes[-1].get_legend_handles_labels()
    handles += [handle for handle, name in zip(more_handles, names, strict=True) if name not in labels]
    labels += [name for name in names if name not in labels]
    patches = [Patch(facecolor=colour, edgecolor="#999999") for colour in COLOURS]
    figure.legend(patches + handles, [*REGIONS, *labels], loc="outside lower center", ncols=4)


case = study(measure, checks, draw, (12.0, 5.8))
