"""Let a biped with masses wrong by 30 % adapt them while it stands and walks (section 5.2.1, adaptive control).

The same control law runs three times on ``planar_biped``: with true masses, with constant masses of 70 %, and with
masses of 70 % that it adapts (:mod:`bipedsim_studies.planar.adaptive`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bipedsim.control.output import PlanarGait, PlanarWalk
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.planar import AdaptiveWalk
from bipedsim_studies.reproduce.common import MARK_COLOUR, Axes, Check, Figure, label, steps, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z
from bipedsim_studies.reproduce.hurmuzlu2001.planar_gait import sticks

ROBOT = "planar_biped"
GAIT = PlanarGait(
    n_steps=6, step_length=0.25, step_height=0.05, step_duration=0.45, step_shift=0.15, walk_begin=0.6, walk_drop=0.03
)
"""Gait of the controller's defaults."""
GROUPS = {
    "trunk": ("pitch",),
    "thighs": ("l_hip", "r_hip"),
    "shanks": ("l_knee", "r_knee"),
    "feet": ("l_ankle", "r_ankle"),
}
BELIEF = 0.7
"""Initial estimate of the mass and inertia of each group, over the true value."""
DELAY, BEGIN, END, DURATION = 0.5, 1.1, 4.7, 5.4
"""Start of the walk, first lift-off, last touchdown, and end of the run [s]."""
LATE = 2.9
"""Start of the fourth step [s]."""
FALLEN = 0.5
"""Pitch of the trunk that ends a run [rad]."""
RUNS = {"true masses": (1.0, False), "70 %, kept": (BELIEF, False), "70 %, learned": (BELIEF, True)}
COLOURS = dict(zip(RUNS, (TOTAL_COLOUR, FOOT_COLOURS[1], FOOT_COLOURS[0]), strict=True))


@dataclass(frozen=True, eq=False)
class WalkRun:
    """Walk with one choice of masses.

    Attributes:
        t: (n,) times [s].
        error: (n,) largest tracking error of a joint [rad].
        belief: (n, 4) estimates over the true values.
        q: (n, 9) configurations.
    """

    t: Array
    error: Array
    belief: Array
    q: Array

    def worst(self, begin: float, end: float) -> float:
        """Return the largest error between two times [rad]; for a run that ended before, its last error."""
        within = (self.t >= begin) & (self.t <= end)
        return float(self.error[within].max(initial=self.error[-1] if self.t[-1] < begin else 0.0))


def walk(robot: Robot, belief: float, adapts: bool, name: str, progress: bool) -> WalkRun:
    """Let the biped stand and walk with initial estimates ``belief``, which it adapts or holds."""
    sim = Simulator(robot)
    plan, start = PlanarWalk(robot, GAIT, name), np.full(len(GROUPS), belief)
    controller = AdaptiveWalk(robot, plan, GROUPS, start, sim.control_dt, delay=DELAY, adapts=adapts)
    rows = []
    for observation in steps(sim, DURATION, controller, label=name, progress=progress):
        rows.append((observation.t, controller.readouts["tracking_error"], controller.belief, sim.q.copy()))
        if abs(sim.q[2]) > FALLEN:
            break
    t, error, beliefs, q = (np.array(column) for column in zip(*rows, strict=True))
    return WalkRun(t, error, beliefs, q)


@dataclass(frozen=True, eq=False)
class AdaptiveWalkResult:
    """Biped, and its runs by the names of ``RUNS``."""

    robot: Robot
    runs: dict[str, WalkRun]


def measure(progress: bool = False) -> AdaptiveWalkResult:
    """Compute the three walks."""
    robot = load_robot(ROBOT)
    return AdaptiveWalkResult(robot, {name: walk(robot, *how, name, progress) for name, how in RUNS.items()})


def checks(result: AdaptiveWalkResult) -> Iterator[Check]:
    """Yield the checks of errors and estimates."""
    true, constant, learned = (result.runs[name] for name in RUNS)
    masses = np.array([sum(_mass(result.robot, joint) for joint in joints) for joints in GROUPS.values()])
    yield Check.at_most("true masses: largest error of a joint", true.worst(0.0, DURATION), 5e-3, "rad")
    yield Check.at_least("masses of 70 % that stay: largest error", constant.worst(0.0, DURATION), 0.1, "rad")
    yield Check.shown("masses of 70 % that are learned: largest error, standing", learned.worst(0.0, DELAY), "rad")
    yield Check.shown("... in the first three steps", learned.worst(BEGIN, LATE), "rad")
    late_error = learned.worst(LATE, END)
    yield Check.at_most("... from the fourth step on", late_error, 1.2 * true.worst(LATE, END), "rad")
    distance_error = float(learned.q[-1, X] - true.q[-1, X])
    yield Check.at_most("... |way - that with true masses|", abs(distance_error), 0.02, "m")
    for k, name in enumerate(GROUPS):
        yield Check.near(f"belief in the {name}, over the truth, at the end", learned.belief[-1, k], 1.0, 0.02)
    after_standing = int(np.searchsorted(learned.t, DELAY))
    yield Check.shown("believed weight over the true one, after standing", _share(learned, masses, after_standing))
    yield Check.near("... at the end", _share(learned, masses, -1), 1.0, 5e-3)


def _mass(robot: Robot, joint: str) -> float:
    return float(robot.model.inertias[robot.model.getJointId(joint)].mass)


def _share(run: WalkRun, masses: Array, row: int) -> float:
    return float(run.belief[row] @ masses / masses.sum())


def draw(figure: Figure, result: AdaptiveWalkResult) -> None:
    """Draw the two walks with wrong masses, the errors and the estimates."""
    grid = figure.add_gridspec(2, 2, width_ratios=[1.3, 1.0])
    for row, name in enumerate(list(RUNS)[1:]):
        draw_walk(figure.add_subplot(grid[row, 0]), result, name)
    errors, beliefs = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    for name, run in result.runs.items():
        errors.semilogy(run.t, np.maximum(run.error, 1e-5), color=COLOURS[name], linewidth=1.0, label=name)
    learned = result.runs["70 %, learned"]
    for k, name in enumerate(GROUPS):
        beliefs.plot(learned.t, learned.belief[:, k], color=FOOT_COLOURS[k], label=name)
    beliefs.axhline(1.0, color=LIMIT_COLOUR, linewidth=0.8, linestyle="--")
    for ax in (errors, beliefs):
        ax.axvspan(DELAY, BEGIN, color=MARK_COLOUR, alpha=0.06, linewidth=0)
        ax.axvspan(BEGIN, END, color=MARK_COLOUR, alpha=0.14, linewidth=0)
    label(errors, "largest error of a joint [rad]", legend="above", ylim=(1e-4, 2.0))
    label(beliefs, "believed over true masses", time="time [s]", legend="lower right")


def draw_walk(ax: Axes, result: AdaptiveWalkResult, name: str) -> None:
    """Draw a posture every 0.12 s, and the last one in full strength."""
    run = result.runs[name]
    for t in np.arange(DELAY, run.t[-1], 0.12):
        draw_posture(ax, result.robot, run.q[np.searchsorted(run.t, t)], 0.3)
    draw_posture(ax, result.robot, run.q[-1], 1.0)
    ax.axhline(0.0, color=MARK_COLOUR, linewidth=1.0)
    label(ax, f"masses of {name}, {run.t[-1]:.1f} s", aspect="equal", xlim=(-0.3, 1.7), ylim=(-0.05, 1.5))


def draw_posture(ax: Axes, robot: Robot, q: Array, strength: float) -> None:
    """Draw the trunk and the legs."""
    trunk, *legs = sticks(robot, q)
    ax.plot(trunk[:, X], trunk[:, Z], color=TOTAL_COLOUR, linewidth=1.2, alpha=strength)
    for leg, colour in zip(legs, FOOT_COLOURS, strict=False):
        ax.plot(leg[:, X], leg[:, Z], color=colour, linewidth=1.2, alpha=strength)


case = study(measure, checks, draw, (14.0, 7.0))
