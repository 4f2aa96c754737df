"""Compute contact forces and acceleration of a chair with four legs (eq. 13 to 16).

The forces are not unique, but the acceleration is. Gauss' principle gives the same acceleration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS
from bipedsim_studies.complementarity import (
    NormalForces,
    all_solutions,
    gauss_principle,
    normal_force_lcp,
    normal_forces,
)
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import Mechanics, Z, mechanics, of_soles

SITTER = 60.0
"""Mass whose weight acts at a point of the seat in the figure [kg]."""
ACROSS = np.linspace(-0.3, 0.3, 61)
"""Positions x of this point along the line y = x / 3 [m]."""
MAP = np.linspace(-0.3, 0.3, 61)
LOADS = 200
SPREAD = np.array([20.0, 20.0, 200.0, 30.0, 30.0, 10.0])
"""Standard deviation of random loads on the seat: force [N] and moment [N.m]."""
LIMIT = 1e-9


@dataclass(frozen=True, eq=False)
class Chair:
    """Chair at rest on the ground.

    Attributes:
        state: M, nle and the rows of the four feet.
        J: (4, 6) gradients of the gaps.
        weight: Weight of the chair [N].
    """

    state: Mechanics
    J: Array
    weight: float

    def under(self, load: Array) -> LoadedChair:
        """Return forces and acceleration under a ``load`` (6,) on the seat frame [N, N.m], by all methods."""
        problem = self.state.M, load - self.state.nle, self.J, self.state.drift[:, Z]
        A, b = normal_force_lcp(*problem)
        solutions = all_solutions(A, b, probes=np.eye(len(b)))
        mass = self.state.M
        each = np.array([np.linalg.solve(mass, problem[1] + self.J.T @ force) for force in solutions.z])
        return LoadedChair(normal_forces(*problem), gauss_principle(*problem), solutions.z, each, solutions.continuum)


@dataclass(frozen=True, eq=False)
class LoadedChair:
    """Chair under one load.

    Attributes:
        lcp, gauss: Solutions of eq. 13 and of eq. 16.
        forces: (n, 4) solutions of eq. 13 by enumeration [N]; of a continuum, its extreme points for each leg.
        accelerations: (n, 6) acceleration of each solution.
        continuum: Whether the forces are not unique.
    """

    lcp: NormalForces
    gauss: NormalForces
    forces: Array
    accelerations: Array
    continuum: bool

    @property
    def size(self) -> float:
        """Scale of the acceleration for relative errors [m/s^2, rad/s^2]."""
        return 1.0 + float(np.abs(self.lcp.acceleration).max())

    @property
    def disagreement(self) -> float:
        """Largest relative difference of an acceleration from the solution of eq. 13."""
        accelerations = np.vstack([self.gauss.acceleration, self.accelerations])
        return float(np.abs(accelerations - self.lcp.acceleration).max()) / self.size

    @property
    def ranges(self) -> Array:
        """(4, 2) minimum and maximum force of each leg [N]."""
        return np.column_stack([self.forces.min(axis=0), self.forces.max(axis=0)])


def chair() -> Chair:
    """Return the chair at rest."""
    robot = body("chair")
    state = mechanics(robot, robot.q_nominal, np.zeros(robot.model.nv), of_soles(robot))
    return Chair(state, state.rows[:, Z], robot.weight)


def closed_ranges(J: Array, force: Array) -> Array:
    """Return minimum and maximum forces (4, 2) of all f + s n >= 0, where n is the internal force of the feet.

    Args:
        J: (4, nv) gradients of the gaps, of rank 3 as for a chair.
        force: (4,) one solution [N].
    """
    n = np.linalg.svd(J.T)[2][-1]
    bounds = -force / n
    low, high = bounds[n > 0.0].max(), bounds[n < 0.0].min()
    ends = np.column_stack([force + low * n, force + high * n])
    return np.sort(ends, axis=1)


def sitting(x: float, y: float) -> Array:
    """Return the load (6,) due to the weight of ``SITTER`` at (x, y) [m] on the seat."""
    force = np.array([0.0, 0.0, -9.81 * SITTER])
    return np.concatenate([force, np.cross([x, y, 0.0], force)])


@dataclass(frozen=True, eq=False)
class ChairResult:
    """Chair under all loads.

    Attributes:
        alone: Chair under its own weight.
        random: Chair under random loads.
        across: Chair with the load along ``ACROSS``.
        tipping: (n, n) angular acceleration [rad/s^2] over the position (y, x) of the load.
        width: (n, n) largest range of a leg's force [N] over the same positions; NaN where the chair tips.
    """

    alone: LoadedChair
    random: list[LoadedChair]
    across: list[LoadedChair]
    tipping: Array
    width: Array


def measure(_progress: bool = False) -> ChairResult:
    """Compute the chair under all loads."""
    seat = chair()
    rng = np.random.default_rng(0)
    random = [seat.under(SPREAD * rng.standard_normal(6)) for _ in range(LOADS)]
    across = [seat.under(sitting(x, x / 3.0)) for x in ACROSS]
    tipping, width = np.zeros((len(MAP), len(MAP))), np.full((len(MAP), len(MAP)), np.nan)
    for j, y in enumerate(MAP):
        for i, x in enumerate(MAP):
            h = sitting(x, y) - seat.state.nle
            answer = normal_forces(seat.state.M, h, seat.J, seat.state.drift[:, Z])
            tipping[j, i] = np.linalg.norm(answer.acceleration[3:])
            if np.abs(answer.gap_acceleration).max() < LIMIT:
                width[j, i] = np.ptp(closed_ranges(seat.J, answer.force), axis=1).max()
    return ChairResult(seat.under(np.zeros(6)), random, across, tipping, width)


def ranges_error(loaded: list[LoadedChair], J: Array) -> float:
    """Return the largest difference [N] between enumerated ranges and the closed form, where all feet rest."""
    error = 0.0
    for loaded_chair in loaded:
        if loaded_chair.continuum:
            error = max(error, float(np.abs(loaded_chair.ranges - closed_ranges(J, loaded_chair.lcp.force)).max()))
    return error


def checks(result: ChairResult) -> Iterator[Check]:
    """Yield the checks of eq. 13 to 16."""
    seat = chair()
    alone, random = result.alone, result.random
    yield Check.equal("rank of the four gaps' gradients", float(np.linalg.matrix_rank(seat.J)), 3)
    yield Check.equal("at rest: forces found not to be unique", float(alone.continuum), 1)
    yield Check.at_most(
        "at rest: difference of eq. 13, eq. 16 and every enumerated solution in acceleration", alone.disagreement, LIMIT
    )
    yield Check.at_most("at rest: |acceleration|", float(np.abs(alone.lcp.acceleration).max()), LIMIT, "m/s^2")
    yield Check.near("at rest: sum of the forces", float(alone.lcp.force.sum()), seat.weight, LIMIT * seat.weight, "N")
    for name, (low, high) in zip(("front left", "rear left", "rear right", "front right"), alone.ranges, strict=True):
        yield Check.shown(f"at rest: least force of leg {name}", low, "N")
        yield Check.shown("... greatest", high, "N")
    non_unique = [load_case for load_case in random if load_case.continuum]
    resting = [bool(np.abs(load_case.lcp.gap_acceleration).max() <= LIMIT * load_case.size) for load_case in random]
    wrong = [load_case.continuum != all_feet for load_case, all_feet in zip(random, resting, strict=True)]
    unloaded = [load_case for load_case in random if not load_case.lcp.force.any()]
    sum_errors = [load_case.gauss.force.sum() - load_case.lcp.force.sum() for load_case in random]
    yield Check.at_most(
        "at rest: |range of a leg - closed form|", ranges_error([alone], seat.J) / seat.weight, LIMIT, "m g"
    )
    yield Check.at_most(
        f"{LOADS} random loads: relative difference of accelerations",
        max(entry.disagreement for entry in random),
        LIMIT,
    )
    yield Check.at_most("... |range of a leg - closed form|", ranges_error(random, seat.J) / seat.weight, LIMIT, "m g")
    yield Check.at_most(
        "... difference of the sum of the forces", float(np.abs(sum_errors).max()) / seat.weight, LIMIT, "m g"
    )
    yield Check.equal("... all feet stay but forces unique, or the reverse", sum(wrong), 0)
    yield Check.shown("... forces not unique", len(non_unique))
    yield Check.shown("... the chair tips over one or two legs", LOADS - len(non_unique) - len(unloaded))
    yield Check.shown("... it leaves the ground", len(unloaded))


def draw(figure: Figure, result: ChairResult) -> None:
    """Draw the range of each leg's force over the position of the load, and the positions where the chair tips."""
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
    columns = left.get_subplotspec().subgridspec(2, 2)
    left.remove()
    panels = [figure.add_subplot(columns[k]) for k in (1, 0, 2, 3)]
    names = ("front left", "rear left", "rear right", "front right")
    ranges = np.array([each.ranges for each in result.across])
    for k, (ax, name) in enumerate(zip(panels, names, strict=True)):
        low, high = ranges[:, k].T
        ax.fill_between(ACROSS, low, high, color=FOOT_COLOURS[0], alpha=0.25, linewidth=0, label="range, enumerated")
        ax.plot(ACROSS, [e.lcp.force[k] for e in result.across], color=FOOT_COLOURS[1], linewidth=1.0, label="Lemke")
        look: dict[str, Any] = {"color": FOOT_COLOURS[2], "linewidth": 1.0, "linestyle": "--"}
        ax.plot(ACROSS, [e.gauss.force[k] for e in result.across], label="Gauss", **look)
        label(ax, name, x="x of the load, y = x / 3 [m]", y="force [N]", ylim=(-20.0, 1.05 * ranges.max()))
    panels[1].legend(loc="upper right")
    extent = (MAP[0], MAP[-1], MAP[0], MAP[-1])
    width = right.imshow(result.width, origin="lower", extent=extent, cmap="Blues", vmin=0.0)
    contours = right.contour(MAP, MAP, result.tipping, levels=[0.01, 20, 40], colors=FOOT_COLOURS[1], linewidths=0.9)
    right.clabel(contours, fontsize=7, fmt="%g rad/s$^2$")
    right.plot(ACROSS, ACROSS / 3.0, color="#777777", linewidth=0.8, linestyle=":")
    feet = chair().state.position
    right.plot(feet[:, 0], feet[:, 1], "s", color="#222222", markersize=5)
    figure.colorbar(width, ax=right, shrink=0.7, label="range of a leg's force [N]")
    right.grid(False)
    label(right, "blue: forces not unique; lines: the chair tips", x="x of the load [m]", y="y of the load [m]")


case = study(measure, checks, draw, (13.5, 5.6))
