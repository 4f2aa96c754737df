"""Time the steps of exact and one-step selection while a robot jumps, for feet of 4 to 32 vertices (Fig. 8)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bipedsim.config import ProgressBar
from bipedsim.control import make_controller
from bipedsim.dynamics import Dynamics
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.runs import get_scenario
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS
from bipedsim_studies.reproduce.common import MARK_COLOUR, Check, Figure, Series, label, study

ROBOT = "talos"
VERTICES = (4, 8, 16, 32)
MODELS = ("one_step", "exact")
DURATION = 2.5
ROUNDING = 0.025
"""Radius [m] of the rounded corners of a sole with more than four vertices."""


def rounded_rectangle(rectangle: Array, n: int) -> Array:
    """Return n vertices (n, 2) of an axis-aligned rectangle (4, 2) with arcs of n / 4 vertices as corners."""
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
    """Return the robot with soles of ``n`` vertices, inscribed in its original soles."""
    soles = tuple(replace(sole, vertices=rounded_rectangle(sole.vertices, n)) for sole in robot.soles)
    return replace(robot, soles=soles)


def measure(model: str, n: int, progress: bool = False) -> Series:
    """Let the robot jump on feet of ``n`` vertices, and time each simulator step without the controller.

    Returns:
        Series with t [s] and the processor time of each step [s]. ``projected`` is the time with one projection of the
        dynamics. ``recomputed`` includes a new projection for each candidate, as in the paper. ``candidates`` counts
        the sets of modes that were solved. ``air`` says whether both feet were airborne. ``unresolved`` counts all
        steps so far that ended with violations.
    """
    robot = on_feet_of(load_robot(ROBOT), n)
    # As in the paper, each step has one solve even if a vertex touches down. No search follows if one-step selection
    # does not converge.
    params = {"candidates": 0} if model == "one_step" else {}
    sim = Simulator(robot, contact=model, contact_params=params, events=False)
    controller = make_controller("posture", robot, get_scenario("jump").controller_params, sim.control_dt)
    dynamics = Dynamics(robot, sim.ground, sim.physics_dt)
    sim.warm_up()
    observation = sim.reset()
    controller.reset(observation)
    dynamics.project(sim.q, sim.v, np.zeros(robot.nu))

    def tick() -> dict[str, float]:
        nonlocal observation
        tau = np.clip(controller.update(observation).tau_joint, -robot.effort_limit, robot.effort_limit)
        q, v, before = sim.q.copy(), sim.v.copy(), sim.contact.candidates
        started = time.thread_time()
        observation = sim.step(tau)
        projected = time.thread_time() - started
        candidates = sim.contact.candidates - before
        # The results are not used: only the time of each further evaluation of the dynamics matters.
        for _ in range(candidates - 1):
            dynamics.project(q, v, tau)
        times = {"t": sim.t, "projected": projected, "recomputed": time.thread_time() - started}
        in_air = bool((sim.contact.mode == 0).all())
        return times | {"candidates": candidates, "air": in_air, "unresolved": sim.contact.unresolved}

    ticks = range(round(DURATION / sim.control_dt))
    return Series.of(tick() for _ in ProgressBar(ticks, desc=f"fig8 {model} {n}", unit="tick", disable=not progress))


Costs = dict[tuple[str, int], Series]


def measure_all(progress: bool = False, vertices: Sequence[int] = VERTICES) -> Costs:
    """Measure each model on each sole."""
    return {(model, n): measure(model, n, progress) for n in vertices for model in MODELS}


def mean_time(times: Array, candidates: Array) -> float:
    """Return the mean time of a step [s], where each step counts with the median time for its number of candidates.

    Otherwise, occasional interrupts would outweigh the rare steps with many candidates.
    """
    return float(sum((candidates == c).mean() * np.median(times[candidates == c]) for c in np.unique(candidates)))


def longest(cost: Series) -> float:
    """Return the median time [s] of the steps with the most candidates, with recomputed dynamics."""
    return float(np.median(cost.recomputed[cost.candidates == cost.candidates.max()]))


def ratio(costs: Costs, n: int, times: str) -> float:
    """Return the mean time of a step with exact selection over one-step selection, on soles of ``n`` vertices."""
    exact, one_step = (mean_time(costs[m, n][times], costs[m, n].candidates) for m in ("exact", "one_step"))
    return exact / one_step


def checks(costs: Costs) -> Iterator[Check]:
    """Yield the checks of Fig. 8; times have no requirement, because they depend on the machine and its load."""
    for n in sorted({n for _, n in costs}):
        one_step, exact = costs["one_step", n], costs["exact", n]
        max_candidates = one_step.candidates.max()
        yield Check.at_least(f"N = {n}: time in the air", float(exact.air.mean() * DURATION), 0.1, "s")
        yield Check.at_most(f"N = {n}: candidates per step, one-step", one_step.candidates.mean(), 1.1)
        yield Check.at_most(f"N = {n}: most candidates in a step, one-step", max_candidates, 5)
        yield Check.at_least(f"N = {n}: most candidates in a step, exact", exact.candidates.max(), max_candidates)
        yield Check.shown(f"N = {n}: candidates per step, exact", exact.candidates.mean())
        yield Check.shown(f"N = {n}: unresolved steps, one-step", one_step.unresolved[-1])
        yield Check.shown(f"N = {n}: unresolved steps, exact", exact.unresolved[-1])
        yield Check.shown(f"N = {n}: median step, one-step", 1e6 * float(np.median(one_step.projected)), "us")
        yield Check.shown(f"N = {n}: longest step, one-step, recomputed", 1e6 * longest(one_step), "us")
        yield Check.shown(f"N = {n}: longest step, exact, recomputed", 1e6 * longest(exact), "us")
        for times in ("projected", "recomputed"):
            yield Check.shown(f"N = {n}: mean step, exact over one-step, {times}", ratio(costs, n, times))


def draw(figure: Figure, costs: Costs) -> None:
    """Draw the time of each step during the jump as in the paper: projected above, recomputed below."""
    vertices = sorted({n for _, n in costs})
    axes = figure.subplots(3, len(vertices), sharex=True, sharey="row", height_ratios=[1.0, 1.0, 0.8], squeeze=False)
    for column, n in zip(axes.T, vertices, strict=True):
        for model, colour in zip(reversed(MODELS), (FOOT_COLOURS[1], FOOT_COLOURS[2]), strict=True):
            cost = costs[model, n]
            for ax, times in zip(column, (cost.projected, cost.recomputed), strict=False):
                ax.plot(cost.t, 1e6 * times, color=colour, linewidth=0.7, label=model)
            column[2].plot(cost.t, cost.candidates, color=colour, linewidth=0.8, label=model)
        flight = costs["exact", n].t[costs["exact", n].air]
        for ax in column:
            ax.axvspan(flight.min(), flight.max(), color=MARK_COLOUR, alpha=0.15, linewidth=0)
        once, anew = ratio(costs, n, "projected"), ratio(costs, n, "recomputed")
        label(column[0], f"{n} vertices\nexact / one-step: {once:.3f} projected,\n{anew:.3f} recomputed")
        label(column[2], time="time [s]")
    top = 1e6 * max(float(cost.recomputed.max()) for cost in costs.values())
    for ax, how in zip(axes[:, 0], ("projected once", "anew per candidate"), strict=False):
        label(ax, y=f"processor time per step [us]\ndynamics {how}", yscale="log", ylim=(10.0, 3.0 * top))
    max_candidates = max(cost.candidates.max() for cost in costs.values())
    label(
        axes[2, 0], y="candidates per step", legend="upper left", xlim=(0.0, DURATION), ylim=(0.0, max_candidates + 1)
    )
    axes[2, 0].annotate("flight", (flight.mean(), 1.0), (flight.mean(), 12.0), ha="center", fontsize=8)


case = study(measure_all, checks, draw, (13.0, 7.5))
