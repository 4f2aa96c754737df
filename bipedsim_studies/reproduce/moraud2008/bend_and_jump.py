"""Fig. 8: time per step of exact and one-step selection while a robot bends and jumps, for feet of 4 to 32 vertices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bipedsim.control import make_controller
from bipedsim.dynamics import Dynamics
from bipedsim.model import Robot, load_robot
from bipedsim.runs import get_scenario
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS
from bipedsim_studies.reproduce.common import Check, Outcome, at_least, at_most, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

ROBOT = "talos"
VERTICES = (4, 8, 16, 32)
MODELS = ("one_step", "exact")
DURATION = 2.5
ROUNDING = 0.025
"""Radius [m] of the rounded corners of a sole with more than four vertices."""


def rounded_rectangle(rectangle: Array, n: int) -> Array:
    """Return n vertices (n, 2) of a rectangle (4, 2), sides along the axes, with arcs of n / 4 vertices for corners."""
    if n == len(rectangle):
        return rectangle
    low, high = rectangle.min(axis=0), rectangle.max(axis=0)
    centres = [(high[0], high[1]), (low[0], high[1]), (low[0], low[1]), (high[0], low[1])]
    middle = 0.5 * (low + high)
    corners = []
    for quarter, centre in enumerate(centres):
        centre = centre - ROUNDING * np.sign(centre - middle)
        angles = 0.5 * np.pi * (quarter + np.linspace(0.0, 1.0, n // 4))
        corners.append(centre + ROUNDING * np.column_stack([np.cos(angles), np.sin(angles)]))
    return np.vstack(corners)


def on_feet_of(robot: Robot, n: int) -> Robot:
    """Return the robot on soles of ``n`` vertices inscribed in its own."""
    soles = tuple(replace(sole, vertices=rounded_rectangle(sole.vertices, n)) for sole in robot.soles)
    return replace(robot, soles=soles)


@dataclass(frozen=True, eq=False)
class Cost:
    """What the steps of one jump cost.

    Attributes:
        t: (n,) [s].
        projected: (n,) processor time of each step [s], the dynamics projected once.
        recomputed: (n,) the same with the dynamics computed anew for every candidate, as in the paper.
        candidates: (n,) sets of modes that were solved for.
        air: (n,) whether both feet were in the air.
        unresolved: Steps that ended without a violation-free state.
    """

    t: Array
    projected: Array
    recomputed: Array
    candidates: NDArray[np.int64]
    air: NDArray[np.bool_]
    unresolved: int


def measure(model: str, n: int, progress: bool = False) -> Cost:
    """Let the robot jump on feet of ``n`` vertices and time every step of the simulator, without the controller."""
    robot = on_feet_of(load_robot(ROBOT), n)
    sim = Simulator(robot, contact=model)
    controller = make_controller("posture", robot, get_scenario("jump").controller_params, sim.control_dt)
    dynamics = Dynamics(robot, sim.ground, sim.physics_dt)
    sim.warm_up()
    observation = sim.reset()
    controller.reset(observation)
    dynamics.project(sim.q, sim.v, np.zeros(robot.nu))
    ticks = round(DURATION / sim.control_dt)
    times: Array = np.zeros((ticks, 2))
    candidates = np.zeros(ticks, dtype=np.int64)
    air = np.zeros(ticks, dtype=np.bool_)
    before = sim.contact.candidates
    for tick in tqdm(range(ticks), desc=f"fig8 {model} {n}", unit="tick", disable=not progress, leave=False):
        tau = np.clip(controller.update(observation).tau_joint, -robot.effort_limit, robot.effort_limit)
        q, v = sim.q.copy(), sim.v.copy()
        started = time.thread_time()
        observation = sim.step(tau)
        times[tick, 0] = time.thread_time()
        candidates[tick] = sim.contact.candidates - before
        # Not read: what counts is the time that one more evaluation of the dynamics takes.
        for _ in range(candidates[tick] - 1):
            dynamics.project(q, v, tau)
        times[tick, 1] = time.thread_time()
        times[tick] -= started
        before = sim.contact.candidates
        air[tick] = bool((sim.contact.mode == 0).all())
    t: Array = sim.control_dt * np.arange(1.0, ticks + 1.0)
    return Cost(t, times[:, 0], times[:, 1], candidates, air, sim.contact.unresolved)


def measure_all(progress: bool = False, vertices: Sequence[int] = VERTICES) -> dict[tuple[str, int], Cost]:
    """Measure every model on every sole."""
    return {(model, n): measure(model, n, progress) for n in vertices for model in MODELS}


def mean_time(times: Array, candidates: NDArray[np.int64]) -> float:
    """Return the mean time of a step [s] with the median of all steps of as many candidates in the place of each.

    What interrupts take from a step now and then would otherwise outweigh the rare steps of many candidates.
    """
    return float(sum((candidates == c).mean() * np.median(times[candidates == c]) for c in np.unique(candidates)))


def longest(cost: Cost) -> float:
    """Return the time [s] of the steps with most candidates, the dynamics recomputed: the median of them."""
    return float(np.median(cost.recomputed[cost.candidates == cost.candidates.max()]))


def ratio(costs: dict[tuple[str, int], Cost], n: int, times: str) -> float:
    """Return how much longer a mean step takes with exact than with one-step selection on soles of ``n`` vertices."""
    exact, one = (mean_time(getattr(costs[m, n], times), costs[m, n].candidates) for m in ("exact", "one_step"))
    return exact / one


def checks(costs: dict[tuple[str, int], Cost]) -> tuple[Check, ...]:
    """Return the figures of Fig. 8; times are shown and not judged: they depend on the machine and its other users."""
    found: list[Check] = []
    for n in sorted({n for _, n in costs}):
        one, exact = costs["one_step", n], costs["exact", n]
        found += [
            at_least(f"N = {n}: time in the air", float(exact.air.mean() * DURATION), 0.1, "s"),
            at_most(f"N = {n}: candidates per step, one-step", one.candidates.mean(), 1.1),
            at_most(f"N = {n}: most candidates in a step, one-step", one.candidates.max(), 5),
            at_least(f"N = {n}: most candidates in a step, exact", exact.candidates.max(), one.candidates.max()),
            shown(f"N = {n}: candidates per step, exact", exact.candidates.mean()),
            shown(f"N = {n}: unresolved steps, one-step", one.unresolved),
            shown(f"N = {n}: unresolved steps, exact", exact.unresolved),
            shown(f"N = {n}: median step, one-step", 1e6 * float(np.median(one.projected)), "us"),
            shown(f"N = {n}: longest step, one-step, recomputed", 1e6 * longest(one), "us"),
            shown(f"N = {n}: longest step, exact, recomputed", 1e6 * longest(exact), "us"),
            shown(f"N = {n}: mean step, exact over one-step, projected", ratio(costs, n, "projected")),
            shown(f"N = {n}: mean step, exact over one-step, recomputed", ratio(costs, n, "recomputed")),
        ]
    return tuple(found)


def draw(figure: Figure, costs: dict[tuple[str, int], Cost]) -> None:
    """Draw the time of every step during the jump, as in the paper, projected above and recomputed below."""
    vertices = sorted({n for _, n in costs})
    axes = figure.subplots(3, len(vertices), sharex=True, sharey="row", height_ratios=[1.0, 1.0, 0.8], squeeze=False)
    top = 0.0
    for column, n in zip(axes.T, vertices, strict=True):
        for model, colour in zip(reversed(MODELS), (FOOT_COLOURS[1], FOOT_COLOURS[2]), strict=True):
            cost = costs[model, n]
            for ax, times in ((column[0], cost.projected), (column[1], cost.recomputed)):
                ax.plot(cost.t, 1e6 * times, color=colour, linewidth=0.7, label=model)
                top = max(top, 1e6 * float(times.max()))
            column[2].plot(cost.t, cost.candidates, color=colour, linewidth=0.8, label=model)
        flight = costs["exact", n].t[costs["exact", n].air]
        for ax in column:
            ax.axvspan(flight.min(), flight.max(), color="#777777", alpha=0.15, linewidth=0)
        column[0].set_title(
            f"{n} vertices\nexact / one-step: {ratio(costs, n, 'projected'):.3f} projected,\n"
            f"{ratio(costs, n, 'recomputed'):.3f} recomputed",
            pad=3,
        )
        column[2].set_xlabel("time [s]")
    axes[0, 0].set_ylabel("processor time per step [us]\ndynamics projected once")
    axes[1, 0].set_ylabel("processor time per step [us]\ndynamics anew per candidate")
    axes[2, 0].set_ylabel("candidates per step")
    for ax in axes[:2, 0]:
        ax.set_yscale("log")
        ax.set_ylim(10.0, 3.0 * top)
    axes[2, 0].set_ylim(0.0, max(cost.candidates.max() for cost in costs.values()) + 1)
    axes[2, 0].set_xlim(0.0, DURATION)
    axes[2, 0].legend(loc="upper left")
    axes[2, 0].annotate("flight", (flight.mean(), 1.0), (flight.mean(), 12.0), ha="center", fontsize=8)


def case(progress: bool) -> Outcome:
    """Run Fig. 8."""
    costs = measure_all(progress)
    return Outcome(checks(costs), lambda figure: draw(figure, costs), (13.0, 7.5))
