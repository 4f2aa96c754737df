"""Throw a spinning block, which tumbles until it rests on one of its faces (section III)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bipedsim.view import FOOT_COLOURS, TOTAL_COLOUR
from bipedsim_studies.reproduce.adubredu.planar import GRAVITY, Throw, lawful, throw
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study

SIDE = 0.4
START = np.array([0.0, 1.2, 0.5])
VELOCITY = np.array([2.0, 0.0, 5.0])
"""Initial (x, z, pitch) and their rates [m, rad, s]; the paper gives none."""
DURATION = 3.0


def measure(_progress: bool = False) -> Throw:
    """Throw the block."""
    return throw(body("block"), START, VELOCITY, DURATION)


def checks(run: Throw) -> Iterator[Check]:
    """Yield the checks of the tumbling block."""
    quarters = run.q[-1, 2] / (0.5 * np.pi)
    tilt = abs(quarters - round(quarters)) * 0.5 * np.pi
    lowest = run.points.heights(run.q).min()
    yield Check.at_least("bounces", int(run.bounces.sum()), 3)
    yield Check.shown("quarter turns until it lies", float(quarters))
    yield Check.at_most("tilt of the lowest face at the end", float(tilt), 1e-6, "rad")
    yield Check.at_most("|height - side / 2| at the end", float(abs(run.q[-1, 1] - 0.5 * SIDE)), 1e-6, "m")
    yield Check.at_most("speed at the end", float(np.abs(run.v[-1]).max()), 1e-6, "m/s, rad/s")
    yield Check.shown("rise of the total energy in any step", run.rise(), "J")
    # A corner that rotates by w dt leaves its tangent by side / sqrt(2) (w dt)^2 / 2.
    yield Check.at_most("deepest corner", float(max(-lowest, 0.0)), 0.5 * SIDE / np.sqrt(2.0) * _turn(run) ** 2, "m")
    yield from lawful(run)


def _turn(run: Throw) -> float:
    """Return the largest rotation of the block in a step [rad]."""
    return float(np.abs(run.v[:, 2]).max() * run.step)


def draw(figure: Figure, run: Throw) -> None:
    """Draw the block along its path, and its energy over time."""
    from matplotlib.patches import Polygon

    above, below = figure.subplots(2, 1, height_ratios=[1.6, 1.0])
    corners = run.q[:, None, :2] + run.points.arms(run.q)
    order = np.argsort(np.arctan2(run.points.corners[:, 1], run.points.corners[:, 0]))
    for i in [*range(0, len(run.t), 7), len(run.t) - 1]:
        shade = 0.25 + 0.75 * i / len(run.t)
        above.add_patch(Polygon(corners[i, order], fill=False, color=FOOT_COLOURS[0], alpha=shade, linewidth=0.9))
    above.plot(*corners[:, 0].T, color=FOOT_COLOURS[1], linewidth=0.7, label="one corner")
    above.plot(run.q[:, 0], run.q[:, 1], color=TOTAL_COLOUR, linewidth=0.8, linestyle="--", label="centre")
    above.axhline(0.0, color=TOTAL_COLOUR)
    label(above, x="x [m]", y="z [m]", legend="best", aspect="equal")
    kinetic = run.points.kinetic(run.v)
    potential = run.points.mass * GRAVITY * (run.q[:, 1] - 0.5 * SIDE)
    below.plot(run.t, kinetic + potential, color=TOTAL_COLOUR, label="total")
    below.plot(run.t, kinetic, color=FOOT_COLOURS[0], label="kinetic")
    below.plot(run.t, potential, color=FOOT_COLOURS[1], label="potential")
    label(below, time="time [s]", y="energy [J]", legend="best")


case = study(measure, checks, draw, (10.0, 7.5))
