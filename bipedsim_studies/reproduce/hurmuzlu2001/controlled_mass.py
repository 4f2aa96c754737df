"""Let a mass track a sine across a constraint, and show its invariant sets and discontinuity (Fig. 11, 13, eq. 41).

The closed loop m e'' + k1 e' + k2 e = lambda over x >= 0 is a linear oscillator with a wall. Each segment between
events therefore has a closed form. Fig. 13 shows a point that moves into a corner. Its final velocity jumps where the
initial position crosses the line into the edge, except if the angle is 180 degrees divided by an even number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, time_axis
from bipedsim_studies.complementarity import Motion, Rebound, System, Terms, motion
from bipedsim_studies.reproduce.common import Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import between_stops

K1, K2, RATE = 8.0, 64.0, 2.0
"""Gains of eq. 41 [N.s/m], [N/m], and angular frequency of the sine [rad/s]. The robot ``mass`` has 1 kg."""
RESTITUTION = 0.6
REST_SPEED = 1e-7
SETS = {"unconstrained": (0.3, 0.2), "impacts, rest, flight": (0.05, 0.2), "constrained": (-0.3, 0.2)}
"""Mean A and amplitude B [m] of the target, by the invariant set in which the motion ends."""
START = 0.4
PERIODS = 4
EVENTS = 8
"""Number of impacts that are compared with the closed form one by one."""
ANGLES = (math.pi / 2.0, 1.1)
"""Angles of the corners [rad]: a right angle, and one at which the final velocity is discontinuous."""


def target(mean: float, swing: float, t: float) -> Array:
    """Return x_d and its first two derivatives."""
    s, c = math.sin(RATE * t), math.cos(RATE * t)
    return np.array([mean + swing * s, swing * RATE * c, -swing * RATE**2 * s])


def controlled(mean: float, swing: float) -> System:
    """Return the closed loop of eq. 41, in which the control law cancels the weight of the robot ``mass``."""
    robot = body("mass")

    def forces(t: float, q: Array, v: Array) -> Array:
        position, speed, acceleration = target(mean, swing, t)
        return np.array([acceleration + 9.81 - K1 * (v[0] - speed) - K2 * (q[0] - position)])

    return between_stops(robot, [[1.0]], [0.0], forces)


class ClosedForm:
    """Closed form x = x_d + e with e'' + K1 e' + K2 e = 0 between events."""

    def __init__(self, mean: float, swing: float) -> None:
        self.mean, self.swing = mean, swing
        self.decay, self.w = 0.5 * K1, math.sqrt(K2 - 0.25 * K1**2)

    def at(self, t: float, start: float, x: float, v: float) -> tuple[float, float]:
        """Return position and velocity at t, from position x and velocity v at ``start``."""
        target_now, target_start = target(self.mean, self.swing, t), target(self.mean, self.swing, start)
        e, de, elapsed = x - target_start[0], v - target_start[1], t - start
        decay, c, s = math.exp(-self.decay * elapsed), math.cos(self.w * elapsed), math.sin(self.w * elapsed)
        b = (de + self.decay * e) / self.w
        deviation = decay * (e * c + b * s)
        return target_now[0] + deviation, target_now[1] - self.decay * deviation + decay * self.w * (b * c - e * s)

    def impacts(self, count: int) -> Array:
        """Return the first times (count,) at which the mass hits x = 0, starting from rest at ``START``."""
        times: list[float] = []
        t, x, v = 0.0, START, 0.0
        while len(times) < count:
            step = min(1e-3, 0.25 * v / 10.0) if v > 0.0 and x == 0.0 else 1e-3
            before = t + step
            while self.at(before + step, t, x, v)[0] > 0.0:
                before += step
            meets = brentq(lambda end, t=t, x=x, v=v: self.at(end, t, x, v)[0], before, before + step, xtol=1e-15)
            v = -RESTITUTION * self.at(meets, t, x, v)[1]
            t, x = float(meets), 0.0
            times.append(t)
        return np.array(times)

    def rests(self) -> tuple[float, float]:
        """Return the interval [s] of one period in which the control law presses the mass on the constraint.

        The condition is x_d'' + K1 x_d' + K2 x_d < 0.
        """
        a = K2 * self.swing - self.swing * RATE**2
        b = K1 * RATE * self.swing
        size, lag = math.hypot(a, b), math.atan2(b, a)
        angle = math.asin(-K2 * self.mean / size)
        return (math.pi - angle - lag) / RATE, (2.0 * math.pi + angle - lag) / RATE


def corner(angle: float, offset: float, e: float = 1.0) -> Motion:
    """Return the motion of a point into a corner of two walls, ``offset`` [m] away from the line into its edge.

    The floor is z = 0, and the other wall rises from the edge at the ``angle`` [rad]. Only the walls exert forces.
    """
    J = np.array([[0.0, 1.0], [math.sin(angle), -math.cos(angle)]])
    middle = np.array([math.cos(0.5 * angle), math.sin(0.5 * angle)])
    across = np.array([-middle[1], middle[0]])

    def terms(_t: float, q: Array, _v: Array) -> Terms:
        return Terms(np.eye(2), np.zeros(2), J, np.zeros(2), J @ q)

    return motion(terms, middle + offset * across, -middle, 2.0, rebound=Rebound(e))


@dataclass(frozen=True, eq=False)
class ControlledMassResult:
    """Motions by invariant set, and final velocities of points in corners.

    Attributes:
        runs: Motions by the name of the set.
        offsets: (n,) initial offsets from the line into the edge [m].
        leaving: Final velocities (n, 2) [m/s], by the angle of the corner.
        paths: Motions in the corner that is not a right angle, two on either side of the edge.
    """

    runs: dict[str, Motion]
    offsets: Array
    leaving: dict[float, Array]
    paths: list[Motion]


def measure(_progress: bool = False) -> ControlledMassResult:
    """Compute all motions."""
    duration = PERIODS * 2.0 * math.pi / RATE
    runs = {}
    for name, (mean, swing) in SETS.items():
        rebound = Rebound(RESTITUTION, REST_SPEED)
        runs[name] = motion(controlled(mean, swing), [START], [0.0], duration, rebound=rebound)
    offsets = np.concatenate([-np.geomspace(0.2, 1e-6, 12), np.geomspace(1e-6, 0.2, 12)])
    leaving = {angle: np.array([corner(angle, float(offset)).v[-1] for offset in offsets]) for angle in ANGLES}
    paths = [corner(ANGLES[1], offset) for offset in (-0.1, -0.01, 0.01, 0.1)]
    return ControlledMassResult(runs, offsets, leaving, paths)


def folded(angle: float, offset: float) -> Array:
    """Return the final velocity (2,) in a corner by reflection at one wall after the other."""
    J = np.array([[0.0, 1.0], [math.sin(angle), -math.cos(angle)]])
    middle = np.array([math.cos(0.5 * angle), math.sin(0.5 * angle)])
    q, v = middle + offset * np.array([-middle[1], middle[0]]), -middle
    while True:
        closing = J @ v
        times = [-float(J[i] @ q) / closing[i] if closing[i] < -1e-12 else math.inf for i in range(2)]
        wall = int(np.argmin(times))
        if times[wall] == math.inf:
            return np.asarray(v)
        q = q + times[wall] * v
        v = v - 2.0 * closing[wall] * J[wall]


def checks(result: ControlledMassResult) -> Iterator[Check]:
    """Yield the checks of the invariant sets and of the corners."""
    period = 2.0 * math.pi / RATE
    unconstrained = result.runs["unconstrained"]
    last_period = unconstrained.t > (PERIODS - 1) * period
    targets = np.array([target(*SETS["unconstrained"], t)[0] for t in unconstrained.t[last_period]])
    yield Check.equal("unconstrained: impacts", len(unconstrained.impacts), 0)
    yield Check.at_most(
        "... |x - x_d| in the last period", float(np.abs(unconstrained.q[last_period, 0] - targets).max()), 1e-9, "m"
    )
    name = "impacts, rest, flight"
    mixed, closed_form = result.runs[name], ClosedForm(*SETS[name])
    yield Check.at_most(
        f"impacts: |first {EVENTS} - closed form|",
        float(np.abs(mixed.times[:EVENTS] - closed_form.impacts(EVENTS)).max()),
        1e-8,
        "s",
    )
    _, leaves = closed_form.rests()
    phases = opening_times(mixed) % period
    yield Check.at_most(
        "... |instants at which it leaves - closed form|", float(np.abs(phases - leaves % period).max()), 1e-6, "s"
    )
    yield Check.equal("... times that it leaves", len(phases), PERIODS)
    strikes = [int(((mixed.times >= k * period) & (mixed.times < (k + 1) * period)).sum()) for k in (2, 3)]
    yield Check.equal("... impacts of a period as in the one before", strikes[1], strikes[0])
    pressed = result.runs["constrained"]
    last_period = pressed.t > (PERIODS - 1) * period
    mean, swing = SETS["constrained"]
    force = np.array([-target(mean, swing, t) @ (K2, K1, 1.0) for t in pressed.t[last_period]])
    yield Check.at_most(
        "constrained: |x| in the last period", float(np.abs(pressed.q[last_period, 0]).max()), 1e-9, "m"
    )
    yield Check.at_most(
        "... |force - closed form|", float(np.abs(pressed.force[last_period, 0] - force).max()), 1e-6, "N"
    )
    for angle, speeds in result.leaving.items():
        hand_speeds = np.array([folded(angle, float(offset)) for offset in result.offsets])
        degrees = math.degrees(angle)
        yield Check.at_most(
            f"corner of {degrees:.0f}°: |velocity after - mirrors|",
            float(np.abs(speeds - hand_speeds).max()),
            1e-9,
            "m/s",
        )
        gap = float(np.linalg.norm(jump(result.offsets, speeds)))
        if angle == ANGLES[0]:
            yield Check.at_most("... jump across the edge", gap, 1e-9, "m/s")
        else:
            yield Check.near(
                "... jump across the edge, 2 |sin(3 angle)|", gap, 2.0 * abs(math.sin(3.0 * angle)), 1e-9, "m/s"
            )


def jump(offsets: Array, speeds: Array) -> Array:
    """Return the difference of the final velocities between the two offsets that are nearest to zero."""
    middle = len(offsets) // 2
    return np.asarray(speeds[middle] - speeds[middle - 1])


def opening_times(result: Motion) -> Array:
    """Return the times (n,) at which a resting contact opens [s]."""
    pressed = result.force[:, 0] > 0.0
    rows = np.flatnonzero(pressed[:-1] & ~pressed[1:])
    return np.asarray(result.t[rows + 1])


def draw(figure: Figure, result: ControlledMassResult) -> None:
    """Draw the three sets over time and in the phase plane, and the corner."""
    grid = figure.subplots(3, 2, width_ratios=[1.7, 1.0])
    for (left_ax, right_ax), (name, run) in zip(grid[:, :2], result.runs.items(), strict=True):
        left_ax.plot(run.t, run.q[:, 0], color=FOOT_COLOURS[0], label="x")
        left_ax.plot(run.t, [target(*SETS[name], t)[0] for t in run.t], "--", color=LIMIT_COLOUR, label="x_d")
        left_ax.axhline(0.0, color="#777777", linewidth=0.8)
        label(left_ax, name, y="x [m]", legend="above")
        if name != "constrained":
            right_ax.plot(run.q[:, 0], run.v[:, 0], color=FOOT_COLOURS[0], linewidth=0.8)
            label(right_ax, y="dx/dt [m/s]", x="x [m]")
    time_axis(*grid[:, 0])
    ax = grid[2, 1]
    for k, path in enumerate(result.paths):
        ax.plot(*path.q.T, color=FOOT_COLOURS[k // 2], linewidth=1.0)
    wall = np.array([math.cos(ANGLES[1]), math.sin(ANGLES[1])])
    ax.plot([1.3, 0.0, 1.3 * wall[0]], [0.0, 0.0, 1.3 * wall[1]], color="#222222", linewidth=1.5)
    label(ax, f"Fig. 13: a corner of {math.degrees(ANGLES[1]):.0f}°", x="x [m]", y="z [m]", aspect="equal")


case = study(measure, checks, draw, (12.0, 9.0))
