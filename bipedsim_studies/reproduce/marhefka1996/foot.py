"""Place a foot, load it, and lift it (Fig. 8).

The paper gives m, alpha, k, K_p and the desired velocity. The foot hits the ground at 2 m/s, and the target ends 0.1 m
below it. The paper does not give the load, its end, gravity, or the start of the rising target.

This case uses a load of 1000 N for 1 s after the placement, and no separate gravity. The target is the integral of the
desired velocity, so it rises from 0.1 m below the ground.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import MARK_COLOUR, Check, Figure, label, study
from bipedsim_studies.reproduce.marhefka1996.impact import ImpactRun, PointContact, run, simulator

CONTACT = PointContact(mass=25.0, stiffness=50e3, alpha=0.5)
GAIN = 20e3
"""Gain K_p of eq. 24 [N/m]."""
SPEED = 2.0
"""Desired velocity at the impact, and final desired velocity out of the ground [m/s]."""
PLACED, LIFTED, END = 0.1, 1.1, 1.3
"""End of the placement, start of the lift, and end of the run [s]."""
LOAD = 1000.0
"""Load on the foot between placement and lift [N]."""
REST = LOAD / CONTACT.stiffness
DECAY = 1.5 * CONTACT.alpha * LOAD / (2.0 * CONTACT.mass)
"""Decay rate of the linearised oscillation about ``REST`` [1/s], with damping 3/2 alpha k x_0 = 3/2 alpha LOAD."""
STEP = 1e-4
SMALL = (0.5, 0.9)
"""Interval in which the oscillation is small enough for the linear comparison [s]."""


def target(t: float) -> float:
    """Return the desired position below the ground [m], the integral of the desired velocity since the impact."""
    placing = min(t, PLACED)
    return SPEED * (placing - 0.5 * placing**2 / PLACED) - SPEED * max(t - LIFTED, 0.0)


def drive(t: float, depth: float, _speed: float) -> float:
    """Return the force of the machine on the foot [N]: eq. 24, or the load between placement and lift."""
    if PLACED <= t < LIFTED:
        return LOAD
    return GAIN * (target(t) - depth)


def place(h: float = STEP) -> ImpactRun:
    """Place, load and lift the foot in steps of ``h`` [s]."""
    last = END - 0.5 * h
    return run(simulator(CONTACT, h), 0.0, SPEED, lambda t, _depth, _speed: t > last, drive)


def measure(progress: bool = False) -> tuple[ImpactRun, ImpactRun]:
    """Simulate the foot in steps of ``STEP`` and of half of it."""
    return place(), place(0.5 * STEP)


def decay(run: ImpactRun) -> float:
    """Return the decay rate [1/s] of the envelope while the oscillation is small."""
    small = (run.t > SMALL[0]) & (run.t < SMALL[1])
    away = run.depth[small] - REST
    ringing = np.sqrt(CONTACT.rate**2 - DECAY**2)
    envelope = np.hypot(away, (run.speed[small] + DECAY * away) / ringing)
    return -float(np.polyfit(run.t[small], np.log(envelope), 1)[0])


def jump(run: ImpactRun) -> float:
    """Return the largest change of the force between two steps [N]."""
    return float(np.abs(np.diff(run.force, prepend=0.0)).max())


def checks(runs: tuple[ImpactRun, ImpactRun]) -> Iterator[Check]:
    """Yield the checks of the foot."""
    coarse, finer = runs
    final_depth = coarse.depth[np.argmax(coarse.t > LIFTED - 0.5 * STEP)]
    lift = coarse.t[np.flatnonzero(coarse.depth > 0.0)[-1]]
    halved = "largest change of the force in a step, over that in half the step"
    yield Check.at_least("smallest force", coarse.force.min(), 0.0, "N")
    yield Check.near(halved, jump(coarse) / jump(finer), 2.0, 0.1)
    yield Check.near("depth at the end of the support", final_depth, REST, 1e-6, "m")
    yield Check.near("decay of the envelope, linearised 3/2 alpha W / 2 m", decay(coarse), DECAY, 0.01 * DECAY, "1/s")
    yield Check.shown("largest force", coarse.force.max(), "N")
    yield Check.at_most("foot off the ground after the lift", lift - LIFTED, END - LIFTED - STEP, "s")


def draw(figure: Figure, runs: tuple[ImpactRun, ImpactRun]) -> None:
    """Draw Fig. 8: position, velocity and force over time."""
    run = runs[0]
    position, velocity, force = figure.subplots(3, 1, sharex=True)
    targets = np.array([target(t) for t in run.t])
    rate = np.gradient(targets, run.t)
    for ax, own, desired in ((position, run.depth, targets), (velocity, run.speed, rate)):
        ax.plot(run.t, own, color=FOOT_COLOURS[0], label="foot")
        ax.plot(run.t, desired, color=TOTAL_COLOUR, linewidth=0.9, linestyle="--", label="desired")
    position.axhline(REST, color=LIMIT_COLOUR, linewidth=0.8, label="load / k")
    force.plot(run.t[1:], run.force, color=FOOT_COLOURS[0], label="ground on the foot")
    force.axhline(LOAD, color=LIMIT_COLOUR, linewidth=0.8, label="load")
    phases = "placement until 0.1 s, weight bearing, lifting from 1.1 s"
    label(position, phases, y="position, down [m]", legend="upper right")
    label(velocity, y="velocity, down [m/s]", legend="upper right")
    label(force, time="time [s]", y="force [N]", legend="upper right")
    for ax in (position, velocity, force):
        for t in (PLACED, LIFTED):
            ax.axvline(t, color=MARK_COLOUR, linewidth=0.8)


case = study(measure, checks, draw, (8.0, 8.0))
