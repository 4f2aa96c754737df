"""Kick a ball of 0.04 kg by the force of a hip torque of 30 to 100 N.m at 1 m, for one step (table I, figure 2).

The paper's kick has no leg. The velocities of its table result from a force tau / l on the ball alone, for one step
without gravity, in the direction of 0.24 rad. The ball is therefore pushed by this force and a force that cancels its
weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.adubredu.planar import (
    GRAVITY,
    RESTITUTION,
    STEP,
    Points,
    Throw,
    lawful,
    record,
    simulator,
)
from bipedsim_studies.reproduce.common import Check, Figure, body, study

TABLE = {
    30.0: (7.29, 1.78),
    40.0: (9.71, 2.38),
    50.0: (12.14, 2.97),
    60.0: (14.57, 3.57),
    70.0: (17.00, 4.16),
    80.0: (19.43, 4.75),
    90.0: (21.86, 5.35),
    100.0: (24.28, 5.94),
}
"""Table I: from torque [N.m] to velocity (x, z) of the ball [m/s]."""
ROUNDING = 0.01
"""Tolerance for the table [m/s]."""
MASS = 0.04
LENGTH = 1.0
"""Length of the leg [m]."""
ANGLE = 0.24
"""Direction of the kick above the floor [rad], common to all velocities of the table."""
DURATION = 4.0


def force_of(torque: float) -> Array:
    """Return the force (2,) of the foot on the ball, (x, z) [N]."""
    return torque / LENGTH * np.array([np.cos(ANGLE), np.sin(ANGLE)])


def kick(torque: float) -> Throw:
    """Kick the ball that rests on the floor, and return its motion after the step of the kick."""
    ball = body("ball", MASS)
    sim = simulator(ball)
    sim.reset()
    x, z = force_of(torque)
    sim.push(np.array([x, 0.0, z + ball.weight, 0.0, 0.0, 0.0]), body="ball", duration=STEP)
    sim.advance(np.zeros(0))
    return record(sim, DURATION)


class Bounce(NamedTuple):
    """Bounce: its time [s], its position [m], and the highest position of the ball before it [m]."""

    t: float
    x: float
    top: float


def parabolas(velocity: Array, points: Points) -> Iterator[Bounce]:
    """Yield the bounces, in closed form, of a ball that leaves the floor with ``velocity`` (2,).

    The friction impulse makes the ball roll at once, by 2/7 of the slip. It is limited to mu (1 + e) times the downward
    speed.
    """
    speed, up = velocity
    rim = t = x = 0.0
    while True:
        duration = 2.0 * up / GRAVITY
        t, x = t + duration, x + speed * duration
        yield Bounce(t, x, points.radius + 0.5 * up**2 / GRAVITY)
        limit = points.friction * (1.0 + RESTITUTION) * up
        drag = float(np.clip(2.0 / 7.0 * (speed - rim), -limit, limit))
        speed, rim, up = speed - drag, rim + 2.5 * drag, RESTITUTION * up


def first_flight(run: Throw) -> tuple[Bounce, Bounce]:
    """Return the first bounce of a run, timed from the kick, and the first bounce in closed form."""
    i = int(np.flatnonzero(run.bounces)[0])
    # The ball moves for one step before the recording starts.
    first_bounce = Bounce(float(run.t[i] + run.step), float(run.q[i, 0]), float(run.q[: i + 1, 1].max()))
    return first_bounce, next(parabolas(run.v[0, :2], run.points))


def measure(_progress: bool = False) -> dict[float, Throw]:
    """Kick the ball with each torque of the table."""
    return {torque: kick(torque) for torque in TABLE}


def checks(runs: dict[float, Throw]) -> Iterator[Check]:
    """Yield the checks of table I and of the motion after the kick."""
    for torque, run in runs.items():
        for axis, speed, expected in zip("xz", run.v[0, :2], TABLE[torque], strict=True):
            yield Check.near(f"{torque:g} N.m: v_{axis} after the kick", float(speed), expected, ROUNDING, "m/s")
    flights = [first_flight(run) for run in runs.values()]
    distance_errors = [abs(a.x - b.x) / run.v[0, 0] for (a, b), run in zip(flights, runs.values(), strict=True)]
    height_errors = [abs(a.top - b.top) / run.v[0, 1] for (a, b), run in zip(flights, runs.values(), strict=True)]
    rolls = [abs(run.v[-1, 0] - 5.0 / 7.0 * run.v[0, 0]) for run in runs.values()]
    residual = max(run.residual() for run in runs.values())
    yield Check.shown("gravity in the step of the kick, which the table leaves out", GRAVITY * STEP, "m/s")
    yield Check.at_most(
        "where it first lands against the parabola, over v_x, within 2 dt", float(max(distance_errors)), 2.0 * STEP, "s"
    )
    yield Check.at_most(
        "how high it first flies against the parabola, over v_z, within dt", float(max(height_errors)), STEP, "s"
    )
    yield Check.at_most("|speed at the end - 5/7 v_x|, rolling", float(max(rolls)), 1e-9, "m/s")
    yield Check.at_most("complementarity residual of any step of any kick", residual, 1e-9, "m/s")
    yield from lawful(runs[max(runs)], f"{max(runs):g} N.m: ")[1:]


def draw(figure: Figure, runs: dict[float, Throw]) -> None:
    """Draw the path of each kick as in figure 2, with the parabolas."""
    for ax, (torque, run) in zip(figure.subplots(4, 2, sharex=True, sharey=True).flat, runs.items(), strict=True):
        x, z = run.q[:, 0], run.q[:, 1] - run.points.radius
        ax.plot(x, z, color=FOOT_COLOURS[0], label="engine, lcp, dt = 10 ms")
        start, flown, top = 0.0, 0.0, 0.0
        for bounce, _ in zip(parabolas(run.v[0, :2], run.points), range(5), strict=False):
            top = bounce.top - run.points.radius
            fraction = np.linspace(0.0, 1.0, 60)
            label = "closed form" if flown == 0.0 else None
            path = start + fraction * (bounce.x - start), 4.0 * top * fraction * (1.0 - fraction)
            ax.plot(*path, color=LIMIT_COLOUR, linewidth=0.8, linestyle="--", label=label)
            start, flown = bounce.x, bounce.t
        struck = np.flatnonzero(run.bounces)
        ax.plot(x[struck], z[struck], "o", color=FOOT_COLOURS[1], markersize=2.5, label="bounce")
        ax.axhline(0.0, color=TOTAL_COLOUR, linewidth=0.8)
        ax.set_title(f"{torque:g} N.m: {run.v[0, 0]:.2f}, {run.v[0, 1]:.2f} m/s")
        ax.label_outer()
    for ax in figure.axes[-2:]:
        ax.set_xlabel("x [m]")
    for ax in figure.axes[::2]:
        ax.set_ylabel("height [m]")
    figure.axes[0].legend()


case = study(measure, checks, draw, (11.0, 8.5))
