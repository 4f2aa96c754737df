"""Section V.C: a foot under several loads is pulled sideways until it slips; the coefficient from a regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.model import Robot, load_robot
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import Check, Outcome, at_most, near

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

BLOCK = Path(__file__).parents[2] / "bodies" / "foot_block" / "robot.yaml"
PAIRS = {"plastic foot of Hoap-2 on the force plate": 0.13, "robot shoe on the force plate": 0.45}
"""Pairs of surfaces of the paper and their coefficients of static friction."""
LOADS = (0.0, 5.0, 10.0, 20.0, 40.0)
"""Masses put on the block [kg]."""
DYNAMIC = 0.8
"""Dynamic over static friction; the paper gives none, any value below 1 shows the slip."""
RAMP = ((0.0, 0.3, 0.8), (0.0, 0.95, 1.05))
"""Times [s] and pull over mu m g at them: slowly where the foot must slip, by 2e-4 a step."""


def loaded_block(friction: float, load: float) -> Robot:
    """Return the block with ``load`` [kg] on its CoM and the coefficient of static ``friction``."""
    robot = load_robot(BLOCK)
    block = robot.model.inertias[1]
    loaded = robot.with_inertia(1, block + pin.Inertia(load, block.lever, np.zeros((3, 3))))
    soles = tuple(replace(s, friction_static=friction, friction_dynamic=DYNAMIC * friction) for s in robot.soles)
    return replace(loaded, soles=soles)


@dataclass(frozen=True, eq=False)
class Pull:
    """One pull, in the plane of the sole, from 0 until well after the slip.

    Attributes:
        t, pull, tangential, normal: (n,) time [s], pull, and what the ground gave [N].
        slip: Row of the first step in which the foot slid.
    """

    t: Array
    pull: Array
    tangential: Array
    normal: Array
    slip: int


def pull_until_slip(friction: float, load: float) -> Pull:
    """Pull the loaded block sideways with a force that grows along ``RAMP``."""
    robot = loaded_block(friction, load)
    sim = Simulator(robot)
    sim.reset()
    tau = np.zeros(0)
    rows: list[tuple[float, float, float, float]] = []
    slip = -1
    while sim.t < RAMP[0][-1]:
        force = friction * robot.weight * float(np.interp(sim.t, *RAMP))
        sim.push(np.array([0.0, force, 0.0, 0.0, 0.0, 0.0]))
        sim.step(tau)
        wrench = sim.contact.wrench[0]
        rows.append((sim.t, force, float(np.hypot(wrench[0], wrench[1])), float(wrench[2])))
        if slip < 0 and sim.contact.sliding[0]:
            slip = len(rows) - 1
    t, pull, tangential, normal = np.array(rows).T
    return Pull(t, pull, tangential, normal, slip)


@dataclass(frozen=True)
class Fit:
    """A straight line through the forces at the slip, by least squares.

    Attributes:
        slope, offset: Coefficient of friction, force without load [N].
        r_squared: Share of the variance that it explains.
    """

    slope: float
    offset: float
    r_squared: float


def fit(pulls: list[Pull]) -> Fit:
    """Return the linear regression of the pull at the slip over the normal force."""
    normal = np.array([p.normal[p.slip] for p in pulls])
    force = np.array([p.pull[p.slip] for p in pulls])
    slope, offset = np.polyfit(normal, force, 1)
    rest = force - slope * normal - offset
    return Fit(float(slope), float(offset), float(1.0 - rest @ rest / np.square(force - force.mean()).sum()))


def checks(pulls: dict[float, list[Pull]]) -> tuple[Check, ...]:
    """Return the figures of section V.C."""
    found: list[Check] = []
    for mu, of_mu in pulls.items():
        errors = [p.pull[p.slip] / (mu * p.normal[p.slip]) - 1.0 for p in of_mu]
        kept = [np.abs(p.tangential[: p.slip] - p.pull[: p.slip]).max() for p in of_mu]
        line = fit(of_mu)
        found += [
            at_most(f"mu {mu:g}: |pull at the slip / (mu f_z) - 1|", float(np.abs(errors).max()), 1e-3),
            at_most(f"mu {mu:g}: |friction - pull| before the slip", float(max(kept)), 1e-6, "N"),
            near(f"mu {mu:g}: coefficient by regression", line.slope, mu, 1e-3 * mu),
            near(f"mu {mu:g}: r^2", line.r_squared, 1.0, 1e-6),
        ]
    return tuple(found)


def measure() -> dict[float, list[Pull]]:
    """Pull every pair of surfaces under every load."""
    return {mu: [pull_until_slip(mu, load) for load in LOADS] for mu in PAIRS.values()}


def draw(figure: Figure, pulls: dict[float, list[Pull]]) -> None:
    """Draw one pull of each pair over time, and the regression."""
    axes = figure.subplots(1, 3)
    for ax, (pair, mu) in zip(axes, PAIRS.items(), strict=False):
        p = pulls[mu][-1]
        ax.plot(p.t, p.pull, color=TOTAL_COLOUR, linewidth=0.9, linestyle="--", label="pull")
        ax.plot(p.t, p.tangential, color=FOOT_COLOURS[0], label="friction |f_t|")
        ax.axhline(mu * p.normal[-1], color=LIMIT_COLOUR, linewidth=0.8, label="mu f_z")
        ax.axvline(p.t[p.slip], color="#777777", linewidth=0.8)
        ax.annotate("slips", (p.t[p.slip], 0.2 * p.pull[-1]), xytext=(-4, 0), textcoords="offset points", ha="right")
        ax.set_title(f"mu = {mu:g}, {p.normal[-1]:.0f} N\n{pair}", pad=3)
        ax.set_xlabel("time [s]")
        ax.set_ylabel("force [N]")
        ax.legend(loc="upper left")
    ax = axes[2]
    for k, of_mu in enumerate(pulls.values()):
        line = fit(of_mu)
        normal = np.array([p.normal[p.slip] for p in of_mu])
        ax.plot(normal, [p.pull[p.slip] for p in of_mu], "o", color=FOOT_COLOURS[k], markersize=4)
        label = f"{line.slope:.5f} f_z {line.offset:+.1e} N,  r$^2$ = {line.r_squared:.6f}"
        ax.plot(normal, line.slope * normal + line.offset, color=FOOT_COLOURS[k], label=label)
    ax.set_title("pull at the slip over the load\nand its regression", pad=3)
    ax.set_xlabel("normal force f_z [N]")
    ax.set_ylabel("pull at the slip [N]")
    ax.legend(loc="upper left")


def case(progress: bool) -> Outcome:
    """Run section V.C."""
    pulls = measure()
    return Outcome(checks(pulls), lambda figure: draw(figure, pulls), (13.0, 4.2))
