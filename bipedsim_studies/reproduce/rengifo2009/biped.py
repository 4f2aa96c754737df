"""Simulate five steps of the biped, and compare vertices and forces without and with epsilon (Fig. 11 to 14).

With epsilon = 0, a vertex at rest has no penetration. The motion of the robot lifts it, its force drops to zero, and it
falls back. These false impacts are counted in single support on the right foot, in the second half of each phase. The
first half contains rebounds of true impacts, of this foot and of the one that lifts off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pinocchio as pin

from bipedsim.control import make_controller
from bipedsim.control.posture import Gait
from bipedsim.model import load_robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, time_axis
from bipedsim_studies.reproduce.common import MARK_COLOUR, Check, Figure, Series, label, steps, study

ROBOT = "biped14"
K_P, K_V = 500.0, 250.0
EPSILONS = (0.0, 1e-6)
GAIT = Gait(n_steps=5, step_length=0.2, step_height=0.05, step_duration=2.5, step_shift=0.4, touch_down_speed=0.02)
"""The paper does not give its joint trajectories. These steps are slow, so that rebounds decay within them."""
H, CONTROL = 2.5e-4, 1e-3
STANDING = 3.0
"""Time after the last step [s]; a vertex above its resting depth descends only as exp(-k_p / k_v t)."""
LEFT, RIGHT = 0, 1


def walk(epsilon: float, progress: bool = False) -> Series:
    """Simulate five steps with the penetration ``epsilon`` [m].

    Returns:
        Series with one row per tick: t [s], height (n, 2, 4) of the vertices [m], mean normal force (n, 2, 4) on each
        over the tick [N], pose of the base (n, 7), and vertical error |sum f - m (g + a)| of the CoM [N].
    """
    robot = load_robot(ROBOT)
    params = {"k_p": K_P, "k_v": K_V, "epsilon": epsilon}
    sim = Simulator(robot, contact="feedback_linearised", physics_dt=H, control_dt=CONTROL, contact_params=params)
    controller = make_controller("posture", robot, {"mode": "steps", **asdict(GAIT)}, CONTROL)
    data = robot.model.createData()
    vertices = [np.column_stack([sole.vertices, np.zeros(sole.n_vertices)]) for sole in robot.soles]

    def rows() -> Iterator[dict[str, Array | float]]:
        speed = 0.0
        duration = GAIT.ends[-1] + STANDING
        for _ in steps(sim, duration, controller, label=f"epsilon = {epsilon:g}", progress=progress):
            poses = [pin.XYZQUATToSE3(pose) for pose in sim.ground_truth().pose_world_sole]
            height = np.array([(v @ p.rotation.T + p.translation)[:, 2] for v, p in zip(vertices, poses, strict=True)])
            force = sim.contact.vertex_forces[:, :, 2]
            pin.centerOfMass(robot.model, data, sim.q, sim.v)
            rate, speed = (data.vcom[0][2] - speed) / CONTROL, data.vcom[0][2]
            # The copy is contiguous, because numpy adds strided arrays in a different order.
            error = abs(force.copy().sum() - robot.weight - robot.mass * rate)
            yield {"t": sim.t, "height": height, "force": force, "base": sim.q[:7], "error": error}

    return Series.of(rows())


def alone(t: Array, step: int, share: float) -> Flags:
    """Return the rows of ``t`` in the last ``share`` of the single support during ``step``."""
    begin, end = GAIT.ends[2 * step + 1], GAIT.ends[2 * step + 2]
    return np.asarray((t > end - share * (end - begin)) & (t < end))


def false_impacts(run: Series, share: float) -> int:
    """Return how often the force of a right-foot vertex drops to zero in single support on this foot.

    Args:
        run: The walk.
        share: Fraction of each single support that is evaluated, at its end.
    """
    zero = run.force[:, RIGHT] == 0.0
    drops = (zero[1:] & ~zero[:-1]).sum(axis=1)
    return int(sum(drops[alone(run.t[1:], step, share)].sum() for step in range(1, GAIT.n_steps, 2)))


def steps_taken(run: Series) -> int:
    """Return how many times a foot rises to half the step height."""
    lifted = run.height.min(axis=2) > 0.5 * GAIT.step_height
    return int((lifted[1:] & ~lifted[:-1]).sum())


Runs = dict[float, Series]


def measure(progress: bool = False) -> Runs:
    """Simulate the walk with each epsilon."""
    return {epsilon: walk(epsilon, progress) for epsilon in EPSILONS}


def checks(runs: Runs) -> Iterator[Check]:
    """Yield the checks of Fig. 11 to 14."""
    distance = (GAIT.n_steps - 1) * GAIT.step_length
    for epsilon, run in runs.items():
        name = f"epsilon = {epsilon:g} m"
        depth = -1e6 * run.height[-1].mean()
        impacts = false_impacts(run, 0.5)
        depth_name = f"{name}: mean depth at the end"
        yield Check.equal(f"{name}: steps", steps_taken(run), GAIT.n_steps)
        yield Check.near(f"{name}: way of the base", run.base[-1, 0] - run.base[0, 0], distance, 0.02 * distance, "m")
        yield Check.at_most(f"{name}: |sum f_z - m (g + a_z)|, mean", run.error.mean(), 0.1, "N")
        yield (
            Check.near(depth_name, depth, 1e6 * epsilon, 0.1, "um") if epsilon else Check.shown(depth_name, depth, "um")
        )
        yield Check.shown(f"{name}: deepest vertex", -1e3 * run.height.min(), "mm")
        yield Check.shown(f"{name}: drops to zero, right foot alone, all", false_impacts(run, 1.0))
        yield (
            Check.equal(f"{name}: false impacts", impacts, 0)
            if epsilon
            else Check.at_least(f"{name}: false impacts", impacts, 5)
        )


def draw(figure: Figure, runs: Runs) -> None:
    """Draw heights of both feet, and heights and forces of the right foot around its first single support."""
    without, with_epsilon = (runs[epsilon] for epsilon in EPSILONS)
    axes = figure.subplots(4, 1)
    for foot, style in ((RIGHT, "-"), (LEFT, ":")):
        axes[0].plot(without.t, 1e3 * without.height[:, foot], color=FOOT_COLOURS[foot], linestyle=style, linewidth=0.8)
    begin, end = GAIT.ends[2] - 0.1, GAIT.ends[5] + 0.1
    rows = (without.t > begin) & (without.t < end)
    t = without.t[rows]
    single = GAIT.ends[3:5]
    for ax, values in zip(axes[1:], (1e3 * without.height, without.force, with_epsilon.force), strict=True):
        for vertex in range(4):
            look: dict[str, Any] = {"color": FOOT_COLOURS[vertex], "linewidth": 0.8, "label": f"vertex {vertex}"}
            ax.plot(t, values[rows, RIGHT, vertex], **look)
        ax.axvspan(*single, color=MARK_COLOUR, alpha=0.08, linewidth=0)
        ax.axvspan(single.mean(), single[1], color=MARK_COLOUR, alpha=0.1, linewidth=0)
        ax.set_xlim(begin, end)
    for ax in axes[2:]:
        ax.set_ylim(-10.0, 450.0)
    label(axes[0], "Fig. 11: heights of all vertices [mm], right foot solid", xlim=(0.0, without.t[-1]))
    heights = "Fig. 12: heights of the right foot after its first impact, epsilon = 0 [mm]"
    label(axes[1], heights, ylim=(-0.3, 0.3))
    label(axes[2], "Fig. 13: normal forces, epsilon = 0 [N]", legend="above")
    label(axes[3], f"Fig. 14: normal forces, epsilon = {EPSILONS[1]:g} m [N]")
    time_axis(*axes)


case = study(measure, checks, draw, (10.0, 10.0))
