"""Shift the weight from both feet to the left one until the right foot rests on its edge (Fig. 9)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bipedsim.analysis import world_wrench
from bipedsim.contact import clamped_range
from bipedsim.control import make_controller
from bipedsim.model import load_robot
from bipedsim.runs import get_scenario
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import (
    MARK_COLOUR,
    Check,
    Figure,
    Trace,
    draw_modes,
    foot_looks,
    label,
    simulate,
    study,
)

ROBOT = "talos"
DELAY, PERIOD, DURATION = 0.5, 8.0, 8.0
"""Standing time before the sway, twice the duration of the sway, and duration of the run [s]."""
FRICTION = 0.45


def trace(progress: bool = False) -> Trace:
    """Simulate the hip sway of a full-size humanoid."""
    robot = load_robot(ROBOT)
    sim = Simulator(robot)
    params = {**get_scenario("shift").controller_params, "squat_delay": DELAY, "sway_period": PERIOD}
    return simulate(sim, make_controller("posture", robot, params, sim.control_dt), DURATION, "fig9", progress)


def checks(run: Trace) -> Iterator[Check]:
    """Yield the checks of Fig. 9."""
    recording = run.recording
    robot = load_robot(ROBOT)
    force = world_wrench(recording.wrench, recording.sole_poses)[0]
    inertial = robot.mass * (run.a_com + np.array([0.0, 0.0, robot.weight / robot.mass]))
    errors = np.abs(force.sum(axis=1) - inertial).max(axis=0)
    edges = [clamped_range(int(mode), robot.soles[1].n_vertices)[1] == 2 for mode in np.unique(recording.mode[:, 1])]
    resting = force[recording.t > DURATION - 0.5]
    push = np.abs(resting[:, 0, 1]).mean()
    friction = max(max(s.friction_static, s.friction_dynamic) for s in robot.soles)
    yield Check.near("coefficient of friction", friction, FRICTION, 1e-12)
    yield Check.at_most("|sum f_z - m (g + a_z)|, any step", errors[2], 0.1, "N")
    yield Check.at_most("|sum f_y - m a_y|, any step", errors[1], 0.1, "N")
    yield Check.at_most(
        "|f_y left + f_y right| at rest, over either", np.abs(resting[:, :, 1].sum(axis=1)).max() / push, 0.02
    )
    yield Check.near("share of the left foot at the start", force[100, 0, 2] / robot.weight, 0.5, 0.06)
    yield Check.at_least("share of the left foot at rest", resting[:, 0, 2].min() / robot.weight, 0.95)
    yield Check.equal("right foot rests on an edge", float(any(edges)), 1.0)
    yield Check.at_most("state changes", run.summary["state_changes"], 30)
    yield Check.equal("unresolved steps", run.summary["unresolved_steps"], 0)
    yield Check.at_most("largest |f_t| / (mu f_z)", np.nanmax(recording.friction_used), 1.0)


def draw(figure: Figure, run: Trace) -> None:
    """Draw the forces of both feet along y, x and z as in the paper, and the modes."""
    recording = run.recording
    t = recording.t
    force = world_wrench(recording.wrench, recording.sole_poses)[0]
    axes = figure.subplots(4, 1, sharex=True, height_ratios=[1.0, 1.0, 1.6, 0.6])
    for ax, i in zip(axes, (1, 0, 2), strict=False):
        for k, foot in enumerate(recording.feet):
            ax.plot(t, force[:, k, i], color=FOOT_COLOURS[k], label=f"{foot} foot")
    for ax, i, name in ((axes[0], 1, "sum = m a_y"), (axes[2], 2, "sum = m (g + a_z)")):
        ax.plot(t, force[:, :, i].sum(axis=1), color=TOTAL_COLOUR, linewidth=0.8, linestyle=":", label=name)
    axes[2].axhline(0.95 * recording.weight, color=LIMIT_COLOUR, linestyle="--", linewidth=0.8, label="95 % of m g")
    draw_modes(axes[3], t, recording.mode, len(recording.sole_vertices[0]), foot_looks(1.6))
    label(axes[0], "sideways  f_y [N]  (left is positive)", legend="above")
    label(axes[1], "forward  f_x [N]")
    label(axes[2], "vertical  f_z [N]", legend="above")
    label(axes[3], "contact mode", time="time [s]", xlim=(0.0, DURATION))
    turn_time = t[np.flatnonzero(np.diff(recording.mode[:, 1]))[0] + 1]
    for ax in axes:
        ax.axvline(turn_time, color=MARK_COLOUR, linewidth=0.8)
    position = (turn_time, 0.55 * recording.weight)
    axes[2].annotate("right foot turns\nonto its inner edge", position, xytext=(6, 0), textcoords="offset points")


case = study(trace, checks, draw, (9.5, 8.5))
