"""Fig. 9: the weight goes from both feet to the left one, until the right foot rests on its edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bipedsim.analysis import world_wrench
from bipedsim.contact import clamped_range
from bipedsim.control import make_controller
from bipedsim.model import load_robot
from bipedsim.runs import get_scenario
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.reproduce.common import (
    Check,
    Outcome,
    Trace,
    at_least,
    at_most,
    draw_modes,
    equal,
    near,
    simulate,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROBOT = "talos"
DELAY, PERIOD, DURATION = 0.5, 8.0, 8.0
"""Standing before the sway, twice the time that it takes, and the whole run [s]."""
FRICTION = 0.45


def trace(progress: bool = False) -> Trace:
    """Simulate the hip sway of a full-size humanoid."""
    robot = load_robot(ROBOT)
    sim = Simulator(robot)
    params = {**get_scenario("shift").controller_params, "squat_delay": DELAY, "sway_period": PERIOD}
    return simulate(sim, make_controller("posture", robot, params, sim.control_dt), DURATION, "fig9", progress)


def checks(run: Trace) -> tuple[Check, ...]:
    """Return the figures of Fig. 9."""
    recording = run.recording
    robot = load_robot(ROBOT)
    force = world_wrench(recording.wrench, recording.sole_poses)[0]
    total = force.sum(axis=1)
    g = robot.weight / robot.mass
    edges = [clamped_range(int(mode), robot.soles[1].n_vertices)[1] == 2 for mode in np.unique(recording.mode[:, 1])]
    last = force[recording.t > DURATION - 0.5]
    push = np.abs(last[:, 0, 1]).mean()
    friction = max(max(s.friction_static, s.friction_dynamic) for s in robot.soles)
    return (
        near("coefficient of friction", friction, FRICTION, 1e-12),
        at_most(
            "|sum f_z - m (g + a_z)|, any step",
            np.abs(total[:, 2] - robot.mass * (g + run.a_com[:, 2])).max(),
            0.1,
            "N",
        ),
        at_most("|sum f_y - m a_y|, any step", np.abs(total[:, 1] - robot.mass * run.a_com[:, 1]).max(), 0.1, "N"),
        at_most("|f_y left + f_y right| at rest, over either", np.abs(last[:, :, 1].sum(axis=1)).max() / push, 0.02),
        near("share of the left foot at the start", force[100, 0, 2] / robot.weight, 0.5, 0.06),
        at_least("share of the left foot at rest", last[:, 0, 2].min() / robot.weight, 0.95),
        equal("right foot rests on an edge", float(any(edges)), 1.0),
        at_most("state changes", run.summary["state_changes"], 30),
        equal("unresolved steps", run.summary["unresolved_steps"], 0),
        at_most("largest |f_t| / (mu f_z)", np.nanmax(recording.friction_used), 1.0),
    )


def draw(figure: Figure, run: Trace) -> None:
    """Draw the forces of both feet along y, x and z, as in the paper, and the modes."""
    recording = run.recording
    t = recording.t
    force = world_wrench(recording.wrench, recording.sole_poses)[0]
    axes = figure.subplots(4, 1, sharex=True, height_ratios=[1.0, 1.0, 1.6, 0.6])
    names = ("sideways  f_y [N]  (left is positive)", "forward  f_x [N]", "vertical  f_z [N]")
    for ax, i, name in zip(axes, (1, 0, 2), names, strict=False):
        for k, foot in enumerate(recording.feet):
            ax.plot(t, force[:, k, i], color=FOOT_COLOURS[k], label=f"{foot} foot")
        ax.set_title(name, pad=3)
    axes[0].plot(t, force[:, :, 1].sum(axis=1), color=TOTAL_COLOUR, linewidth=0.8, linestyle=":", label="sum = m a_y")
    axes[2].plot(
        t, force[:, :, 2].sum(axis=1), color=TOTAL_COLOUR, linewidth=0.8, linestyle=":", label="sum = m (g + a_z)"
    )
    axes[2].axhline(0.95 * recording.weight, color=LIMIT_COLOUR, linestyle="--", linewidth=0.8, label="95 % of m g")
    axes[0].legend(ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    axes[2].legend(ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    looks = [{"color": FOOT_COLOURS[k], "linestyle": ("-", (0, (5, 3)))[k], "linewidth": 1.6} for k in range(2)]
    draw_modes(axes[3], t, recording.mode, len(recording.sole_vertices[0]), looks)
    axes[3].set_title("contact mode", pad=3)
    turned = t[np.flatnonzero(np.diff(recording.mode[:, 1]))[0] + 1]
    for ax in axes:
        ax.axvline(turned, color="#777777", linewidth=0.8)
    axes[2].annotate(
        "right foot turns\nonto its inner edge",
        (turned, 0.55 * recording.weight),
        xytext=(6, 0),
        textcoords="offset points",
    )
    axes[3].set_xlabel("time [s]")
    axes[3].set_xlim(0.0, DURATION)


def case(progress: bool) -> Outcome:
    """Run Fig. 9."""
    run = trace(progress)
    return Outcome(checks(run), lambda figure: draw(figure, run), (9.5, 8.5))
