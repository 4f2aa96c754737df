"""Throw a ball forwards without spin; it bounces, and friction spins it up until it rolls (section III-B)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.adubredu.planar import GRAVITY, STEP, Throw, lawful, throw
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study

if TYPE_CHECKING:
    from matplotlib.patches import Wedge

START = np.array([0.0, 1.2, 0.0])
SPEED = 8.0
"""Initial (x, z, pitch) [m, rad] and forward speed [m/s]; the paper gives none. The first bounce slides."""
DURATION = 2.2
EARLY = 4
"""Bounces compared with the closed form. The speeds of later ones are of the size of one step's gravity."""


def measure(_progress: bool = False) -> Throw:
    """Throw the ball."""
    return throw(body("ball"), START, np.array([SPEED, 0.0, 0.0]), DURATION)


def coulomb(run: Throw) -> Array:
    """Return the friction (n,) that makes the ball roll at once, limited to mu times the normal impulse [N.s].

    To roll, a solid sphere needs an impulse of 2/7 m times its slip.
    """
    slip = run.points.velocities(run.q[:-1], run.free)[:, 0, 0]
    limit = run.points.friction * run.impulses[:, 0, 1]
    return np.asarray(-np.clip(2.0 / 7.0 * run.points.mass * slip, -limit, limit))


def checks(run: Throw) -> Iterator[Check]:
    """Yield the checks of the bouncing ball."""
    struck = np.flatnonzero(run.bounces)
    arrival, rebound = -run.v[struck, 1], run.v[struck + 1, 1]
    first = np.sqrt(2.0 * GRAVITY * (START[1] - run.points.radius))
    closed = first * run.restitution ** np.arange(1, EARLY + 1)
    friction = np.abs(run.impulses[:, 0, 0] - coulomb(run)).max()
    radius, e = run.points.radius, run.restitution
    # After an impact at speed a, the ball rises by e a dt in the same step.
    # The total energy then rises by at most m (g dt e a - (1 - e^2) a^2 / 2).
    hop = 0.5 * run.points.mass * (GRAVITY * STEP * e) ** 2 / (1.0 - e**2)
    yield Check.at_least("bounces", len(struck), EARLY)
    yield Check.at_most(
        "|speed after / before a bounce - e|", float(np.abs(rebound / arrival - run.restitution).max()), 1e-9
    )
    yield Check.at_most(
        f"first {EARLY} rebounds against e^k sqrt(2 g h), within 2 g dt",
        float(np.abs(rebound[:EARLY] - closed).max()),
        2.0 * GRAVITY * STEP,
        "m/s",
    )
    yield Check.at_most("|friction - Coulomb's| of any step", float(friction), 1e-9, "N.s")
    yield Check.at_least("share of mu that the first bounce takes", _used(run, int(struck[0])), 1.0 - 1e-9)
    yield Check.at_most("share of mu that the second bounce takes", _used(run, int(struck[1])), 1.0 - 1e-3)
    yield Check.near("speed at the end, 5/7 of that at the start", float(run.v[-1, 0]), 5.0 / 7.0 * SPEED, 1e-9, "m/s")
    yield Check.at_most("|v - r w| at the end", float(abs(run.v[-1, 0] - radius * run.v[-1, 2])), 1e-9, "m/s")
    yield Check.at_most("|height - radius| at the end", float(abs(run.q[-1, 1] - radius)), 1e-9, "m")
    yield Check.at_most("rise of the total energy in any step, m (g dt e)^2 / (2 (1 - e^2))", run.rise(), hop, "J")
    yield from lawful(run)


def _used(run: Throw, i: int) -> float:
    drag, push = run.impulses[i, 0]
    return float(abs(drag) / (run.points.friction * push))


def draw(figure: Figure, run: Throw) -> None:
    """Draw the path, and the speeds over time."""
    above, left, right = figure.subplot_mosaic("pp;bs", height_ratios=[0.45, 1.0]).values()
    above.plot(run.q[:, 0], run.q[:, 1], color=FOOT_COLOURS[0], label="centre")
    for i in range(0, len(run.t), 12):
        above.add_patch(_disc(run.q[i], run.points.radius))
    above.axhline(0.0, color=TOTAL_COLOUR)
    label(above, "path of the ball; the spoke turns with it", x="x [m]", y="z [m]", aspect="equal")
    left.plot(run.t, run.v[:, 1], color=FOOT_COLOURS[0], label="dz/dt")
    rebounds = np.flatnonzero(run.bounces)
    left.plot(run.t[rebounds + 1], run.v[rebounds + 1, 1], "o", color=FOOT_COLOURS[1], markersize=4, label="rebound")
    first = np.sqrt(2.0 * GRAVITY * (START[1] - run.points.radius))
    closed = first * run.restitution ** np.arange(1, len(rebounds) + 1)
    left.plot(run.t[rebounds + 1], closed, "_", color=LIMIT_COLOUR, markersize=11, label="e$^k$ sqrt(2 g h)")
    left.set_ylabel("speed upwards [m/s]")
    right.plot(run.t, run.v[:, 0], color=FOOT_COLOURS[0], label="v")
    right.plot(run.t, run.points.radius * run.v[:, 2], color=FOOT_COLOURS[1], label="r w")
    right.axhline(5.0 / 7.0 * SPEED, color=LIMIT_COLOUR, linewidth=0.8, linestyle="--", label="5/7 of the first speed")
    right.set_ylabel("speed forwards [m/s]")
    for ax in (left, right):
        label(ax, time="time [s]", legend="best")


def _disc(q: Array, radius: float) -> Wedge:
    """Return the outline of the ball at ``q`` with a spoke."""
    from matplotlib.patches import Wedge

    turned = 90.0 - float(np.degrees(q[2]))
    return Wedge((q[0], q[1]), radius, turned, turned + 359.9, fill=False, color="#777777", linewidth=0.6)


case = study(measure, checks, draw, (11.0, 5.5))
