"""Fig. 8: a foot is placed, bears weight and is lifted.

The paper gives m, alpha, k and K_p, the desired velocity, and that the foot meets the ground at 2 m/s while the target
ends 0.1 m below it. It leaves open the load, when it ends, gravity, and from where the target rises. Here: 1000 N from
the end of the placement for 1 s, no gravity (a load is a load), and the target is the integral of the desired velocity,
so that it rises from 0.1 m below the ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import Check, Outcome, at_least, at_most, near, shown
from bipedsim_studies.reproduce.marhefka1996.impact import Contact, Run, run, simulator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

CONTACT = Contact(mass=25.0, stiffness=50e3, alpha=0.5)
GAIN = 20e3
"""K_p of eq. 24 [N/m]."""
SPEED = 2.0
"""Desired velocity at the impact, and out of the ground in the end [m/s]."""
PLACED, LIFTED, END = 0.1, 1.1, 1.3
"""When the foot is placed, when it is lifted, and the end [s]."""
LOAD = 1000.0
"""Weight on the foot in between [N]."""
REST = LOAD / CONTACT.stiffness
DECAY = 1.5 * CONTACT.alpha * LOAD / (2.0 * CONTACT.mass)
"""Rate of the linearised oscillation about ``REST`` [1/s]: damping 3/2 alpha k x_0 = 3/2 alpha LOAD."""
STEP = 1e-4
SMALL = (0.5, 0.9)
"""When the oscillation is small enough to be held against the linear one [s]."""


def target(t: float) -> float:
    """Return the desired position below the ground [m]: the desired velocity from the impact on, integrated."""
    placing = min(t, PLACED)
    return SPEED * (placing - 0.5 * placing**2 / PLACED) - SPEED * max(t - LIFTED, 0.0)


def drive(t: float, depth: float, _speed: float) -> float:
    """Return the force of the machine on the foot [N]: eq. 24, and the load in between."""
    if PLACED <= t < LIFTED:
        return LOAD
    return GAIN * (target(t) - depth)


def measure(h: float = STEP) -> Run:
    """Place, load and lift the foot in steps of ``h`` [s]."""
    last = END - 0.5 * h
    return run(simulator(CONTACT, h), 0.0, SPEED, lambda t, _depth, _speed: t > last, drive)


@dataclass(frozen=True)
class Figures:
    """What Fig. 8 shows, in numbers.

    Attributes:
        decay: Rate of the envelope while the oscillation is small [1/s].
        rest: Depth at the end of the support [m].
        jump: Largest change of the force from a step to the next [N].
        weakest: Smallest force [N].
        highest: Largest force [N].
        lift: When the foot left the ground for good [s].
    """

    decay: float
    rest: float
    jump: float
    weakest: float
    highest: float
    lift: float


def figures(found: Run) -> Figures:
    """Return the figures of a run."""
    small = (found.t > SMALL[0]) & (found.t < SMALL[1])
    away = found.depth[small] - REST
    ringing = np.sqrt(CONTACT.rate**2 - DECAY**2)
    envelope = np.hypot(away, (found.speed[small] + DECAY * away) / ringing)
    touching = np.flatnonzero(found.depth > 0.0)
    return Figures(
        decay=-float(np.polyfit(found.t[small], np.log(envelope), 1)[0]),
        rest=float(found.depth[np.argmax(found.t > LIFTED - 0.5 * STEP)]),
        jump=float(np.abs(np.diff(found.force, prepend=0.0)).max()),
        weakest=float(found.force.min()),
        highest=float(found.force.max()),
        lift=float(found.t[touching[-1]]),
    )


def checks(found: Run, finer: Run) -> tuple[Check, ...]:
    """Return the figures to meet; ``finer`` is the same in half the steps."""
    a, b = figures(found), figures(finer)
    return (
        at_least("smallest force", a.weakest, 0.0, "N"),
        near("largest change of the force in a step, over that in half the step", a.jump / b.jump, 2.0, 0.1),
        near("depth at the end of the support", a.rest, REST, 1e-6, "m"),
        near("decay of the envelope, linearised 3/2 alpha W / 2 m", a.decay, DECAY, 0.01 * DECAY, "1/s"),
        shown("largest force", a.highest, "N"),
        at_most("foot off the ground after the lift", a.lift - LIFTED, END - LIFTED - STEP, "s"),
    )


def draw(figure: Figure, found: Run) -> None:
    """Draw Fig. 8: position, velocity and force over time."""
    position, velocity, force = figure.subplots(3, 1, sharex=True)
    wanted = np.array([target(t) for t in found.t])
    position.plot(found.t, found.depth, color=FOOT_COLOURS[0], label="foot")
    position.plot(found.t, wanted, color=TOTAL_COLOUR, linewidth=0.9, linestyle="--", label="desired")
    position.axhline(REST, color=LIMIT_COLOUR, linewidth=0.8, label="load / k")
    position.set_ylabel("position, down [m]")
    velocity.plot(found.t, found.speed, color=FOOT_COLOURS[0], label="foot")
    rate = np.gradient(wanted, found.t)
    velocity.plot(found.t, rate, color=TOTAL_COLOUR, linewidth=0.9, linestyle="--", label="desired")
    velocity.set_ylabel("velocity, down [m/s]")
    force.plot(found.t[1:], found.force, color=FOOT_COLOURS[0], label="ground on the foot")
    force.axhline(LOAD, color=LIMIT_COLOUR, linewidth=0.8, label="load")
    force.set_ylabel("force [N]")
    force.set_xlabel("time [s]")
    for ax in (position, velocity, force):
        ax.legend(loc="upper right")
        for t in (PLACED, LIFTED):
            ax.axvline(t, color="#777777", linewidth=0.8)
    position.set_title("placement until 0.1 s, weight bearing, lifting from 1.1 s", pad=3)


def case(progress: bool) -> Outcome:
    """Run Fig. 8."""
    found = measure()
    return Outcome(checks(found, measure(0.5 * STEP)), lambda figure: draw(figure, found), (8.0, 8.0))
