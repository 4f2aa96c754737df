"""Pull a foot sideways under several loads until it slips, and fit the friction coefficient (section V.C)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import MARK_COLOUR, Check, Figure, Series, body, label, study

PAIRS = {"plastic foot of Hoap-2 on the force plate": 0.13, "robot shoe on the force plate": 0.45}
"""Pairs of surfaces in the paper, and their coefficients of static friction."""
LOADS = (0.0, 5.0, 10.0, 20.0, 40.0)
"""Additional masses on the block [kg]."""
DYNAMIC = 0.8
"""Ratio of dynamic to static friction; the paper gives none, and any value below 1 shows the slip."""
RAMP = ((0.0, 0.3, 0.8), (0.0, 0.95, 1.05))
"""Times [s] and pull over mu m g at these times; close to the slip, it grows slowly by 2e-4 per step."""


def loaded_block(friction: float, load: float) -> Robot:
    """Return the block with an additional ``load`` [kg] at its CoM and the static ``friction`` coefficient."""
    robot = body("foot_block")
    block = robot.model.inertias[1]
    loaded = robot.with_inertia(1, block + pin.Inertia(load, block.lever, np.zeros((3, 3))))
    soles = tuple(replace(s, friction_static=friction, friction_dynamic=DYNAMIC * friction) for s in robot.soles)
    return replace(loaded, soles=soles)


def pull_until_slip(friction: float, load: float) -> Series:
    """Pull the loaded block sideways, in the plane of its sole, with a force that grows along ``RAMP``.

    Returns:
        Series with t [s], pull, tangential and normal ground reaction force [N], and whether the foot slides. It ends
        well after the slip.
    """
    robot = loaded_block(friction, load)
    sim = Simulator(robot)
    sim.reset()

    def rows() -> Iterator[dict[str, float]]:
        while sim.t < RAMP[0][-1]:
            force = friction * robot.weight * float(np.interp(sim.t, *RAMP))
            sim.push(np.array([0.0, force, 0.0, 0.0, 0.0, 0.0]))
            sim.step(np.zeros(0))
            x, y, z = sim.contact.wrench[0, :3]
            slides = sim.contact.sliding[0]
            yield {"t": sim.t, "pull": force, "tangential": np.hypot(x, y), "normal": z, "slides": slides}

    return Series.of(rows())


def slip(pull: Series) -> int:
    """Return the row of the first step in which the foot slides."""
    return int(np.argmax(pull.slides))


def at_slip(pulls: list[Series]) -> tuple[Array, Array]:
    """Return normal force and pull [N] of all runs at the slip."""
    normal, force = np.array([(p.normal[slip(p)], p.pull[slip(p)]) for p in pulls]).T
    return normal, force


class Fit(NamedTuple):
    """Line fitted to the forces at the slip: friction coefficient, force without load [N] and r^2."""

    slope: float
    offset: float
    r_squared: float


def fit(pulls: list[Series]) -> Fit:
    """Return the least-squares line of the pull at the slip over the normal force."""
    normal, force = at_slip(pulls)
    slope, offset = np.polyfit(normal, force, 1)
    residuals = force - slope * normal - offset
    return Fit(float(slope), float(offset), float(1.0 - residuals @ residuals / np.square(force - force.mean()).sum()))


def checks(pulls: dict[float, list[Series]]) -> Iterator[Check]:
    """Yield the checks of section V.C."""
    for mu, of_mu in pulls.items():
        normal, force = at_slip(of_mu)
        friction_error = max(np.abs(p.tangential - p.pull)[: slip(p)].max() for p in of_mu)
        line = fit(of_mu)
        error = np.abs(force / (mu * normal) - 1.0).max()
        yield Check.at_most(f"mu {mu:g}: |pull at the slip / (mu f_z) - 1|", error, 1e-3)
        yield Check.at_most(f"mu {mu:g}: |friction - pull| before the slip", friction_error, 1e-6, "N")
        yield Check.near(f"mu {mu:g}: coefficient by regression", line.slope, mu, 1e-3 * mu)
        yield Check.near(f"mu {mu:g}: r^2", line.r_squared, 1.0, 1e-6)


def measure(progress: bool = False) -> dict[float, list[Series]]:
    """Pull each pair of surfaces under each load."""
    return {mu: [pull_until_slip(mu, load) for load in LOADS] for mu in PAIRS.values()}


def draw(figure: Figure, pulls: dict[float, list[Series]]) -> None:
    """Draw one pull of each pair over time, and the fitted lines."""
    axes = figure.subplots(1, 3)
    for ax, (pair, mu) in zip(axes, PAIRS.items(), strict=False):
        p = pulls[mu][-1]
        slips = p.t[slip(p)]
        ax.plot(p.t, p.pull, color=TOTAL_COLOUR, linewidth=0.9, linestyle="--", label="pull")
        ax.plot(p.t, p.tangential, color=FOOT_COLOURS[0], label="friction |f_t|")
        ax.axhline(mu * p.normal[-1], color=LIMIT_COLOUR, linewidth=0.8, label="mu f_z")
        ax.axvline(slips, color=MARK_COLOUR, linewidth=0.8)
        ax.annotate("slips", (slips, 0.2 * p.pull[-1]), xytext=(-4, 0), textcoords="offset points", ha="right")
        label(ax, f"mu = {mu:g}, {p.normal[-1]:.0f} N\n{pair}", y="force [N]", legend="upper left", time="time [s]")
    for colour, of_mu in zip(FOOT_COLOURS, pulls.values(), strict=False):
        line = fit(of_mu)
        normal, force = at_slip(of_mu)
        name = f"{line.slope:.5f} f_z {line.offset:+.1e} N,  r$^2$ = {line.r_squared:.6f}"
        axes[2].plot(normal, force, "o", color=colour, markersize=4)
        axes[2].plot(normal, line.slope * normal + line.offset, color=colour, label=name)
    title = "pull at the slip over the load\nand its regression"
    label(axes[2], title, "normal force f_z [N]", "pull at the slip [N]", "upper left")


case = study(measure, checks, draw, (13.0, 4.2))
