"""Find the step of a three-link biped that minimises 1/2 integral of u^T u, and compare it with a drawn step (eq. 58).

The stance foot is a pivot in the dynamics. Constraint h_1 says that the touchdown maps the end of the step to its
beginning, h_2 sets the step length, and the duration is given. A direct and an indirect method must agree. The
simulator then walks on the result: swing leg and trunk follow the stance leg as in the optimal step.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Chebyshev
from scipy.integrate import cumulative_trapezoid, solve_ivp
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from bipedsim.numerics import Array
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.optimal import Extremal, OptimalTrajectory, Problem, collocated, extremal
from bipedsim_studies.reproduce.common import MARK_COLOUR, Axes, Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.three_links import EngineMotion, PhasePortrait, engine, figure_of
from bipedsim_studies.stability import LinkConstraint, ThreeLinks

END = 0.2
"""Angle of the stance leg at a touchdown [rad]: the steps are 0.36 m long."""
DURATION = 0.6
"""Duration of a step [s]."""
UNIT = 100.0
"""Unit of the torques in the optimisation [N.m], chosen so that all variables have a similar size."""
LANDING = (0.5, 0.0)
"""Rates of swing leg and trunk before a touchdown of the drawn step, over the rate of the stance leg."""
LEANS = (0.055, 0.2)
"""Range of the trunk's tilt at a touchdown of the drawn step [rad]; more forward tilt shortens the duration."""
INTERVALS = (8, 16, 32)
AGREE = (1e-3, 1e-4, 1e-5)
"""Relative tolerance of the direct method's cost for each number of intervals, against the indirect method."""
DURATIONS = np.array([0.45, 0.5, 0.55, 0.65, 0.7, 0.75, 0.8])
"""Further durations of a step [s]."""
NEAR = 0.003
"""Difference of the step durations from which the price of time is computed [s]."""
DEGREE = 30
"""Degree of the paths over the angle of the stance leg."""
ENGINE_STEPS, ENGINE_TIME = 8, 8.0


def walker() -> ThreeLinks:
    """Return the biped without a spring."""
    return ThreeLinks.of_robot(body("three_links"))


def problem(links: ThreeLinks, duration: float) -> Problem:
    """Return the problem of a step of ``duration`` [s]; h_1 is the touchdown and h_2 the step length."""

    def ends(first: Array, last: Array) -> Array:
        phi, rate = links.heel_strike(last[:3], last[3:])
        return np.concatenate([first[:3] - phi, first[3:] - rate, [last[0] - END, last[1] + END]])

    return Problem(6, 2, 8, duration, lambda x, u: links.flow(x, UNIT * u), ends)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class ConstraintStep:
    """Step on a constraint of :meth:`LinkConstraint.repeating`, with its portrait, level and duration."""

    constraint: LinkConstraint
    portrait: PhasePortrait
    level: float
    duration: float

    @classmethod
    def leaning(cls, links: ThreeLinks, lean: float) -> ConstraintStep:
        """Return the step whose trunk tilts forwards by ``lean`` [rad] at touchdowns."""
        constraint = LinkConstraint.repeating(links, END, LANDING, lean, 0.0)
        portrait = PhasePortrait((-END, END), constraint.inertia, constraint.moment)
        strike = links.momentum(*links.heel_strike(constraint.posture(END), constraint.slopes(END)))
        remaining = (strike / float(portrait.inertia(END))) ** 2
        level = remaining * float(portrait.work(END)) / (1.0 - remaining)
        return cls(constraint, portrait, level, portrait.time(-END, END, level, False))

    @classmethod
    def lasting(cls, links: ThreeLinks, duration: float) -> ConstraintStep:
        """Return the step of ``duration`` [s]."""
        lean = brentq(lambda lean: cls.leaning(links, lean).duration - duration, *LEANS, xtol=1e-12)
        return cls.leaning(links, float(lean))

    def trajectory(self) -> OptimalTrajectory:
        """Return the step over time, with its torques in ``UNIT``."""
        angle = np.linspace(-END, END, 801)
        rate = self.portrait.rate(angle, self.level)
        pairs = zip(angle, rate, strict=True)
        x = np.array([[*self.constraint.posture(a), *(r * self.constraint.slopes(a))] for a, r in pairs]).T
        u = np.array([self.constraint.torque(0.0, each[:3], each[3:]) for each in x.T]).T / UNIT
        t = cumulative_trapezoid(1.0 / rate, angle, initial=0.0)
        t *= self.duration / t[-1]
        return OptimalTrajectory(t, x, u, float(CubicSpline(t, 0.5 * np.square(u).sum(axis=0)).integrate(0.0, t[-1])))


@dataclass(frozen=True, eq=False)
class OptimalStepResult:
    """Optimal steps and the walk of the simulator.

    Attributes:
        links: The biped.
        drawn: The step that was not optimised.
        direct: Steps by collocation, with the numbers of ``INTERVALS``.
        best: Step by the necessary conditions of optimality.
        others: Steps by the necessary conditions, for ``DURATIONS``.
        price: Difference quotient of the cost over the duration, from two steps by collocation [1/s].
        free: (6,) final state under the torques of ``best``, from its initial state by another integrator.
        walk: Walk of the simulator.
        constraint: Constraint of this walk.
    """

    links: ThreeLinks
    drawn: OptimalTrajectory
    direct: tuple[OptimalTrajectory, ...]
    best: Extremal
    others: tuple[Extremal, ...]
    price: float
    free: Array
    walk: EngineMotion
    constraint: LinkConstraint

    @property
    def engine_steps(self) -> list[tuple[float, float]]:
        """Duration [s] and cost in ``UNIT`` of each step of the simulator between touchdowns."""
        walk = self.walk
        strikes = np.flatnonzero(np.diff(walk.angle) < -END)
        effort = 0.5 * np.square(walk.torque / UNIT).sum(axis=1)
        step = float(walk.t[1] - walk.t[0])
        return [
            (float(walk.t[last] - walk.t[first]), step * float(effort[first + 1 : last + 1].sum()))
            for first, last in itertools.pairwise(strikes)
        ]


def measure(_progress: bool = False) -> OptimalStepResult:
    """Optimise the steps, and simulate the walk."""
    links = walker()
    drawn = ConstraintStep.lasting(links, DURATION).trajectory()
    step = problem(links, DURATION)
    direct = tuple(collocated(step, drawn, count) for count in INTERVALS)
    best = extremal(step, direct[1])
    others = {}
    for times in (DURATIONS[DURATIONS < DURATION][::-1], DURATIONS[DURATIONS > DURATION]):
        neighbour: OptimalTrajectory = best
        for duration in times:
            stretched = OptimalTrajectory(
                neighbour.t * duration / neighbour.t[-1], neighbour.x, neighbour.u, neighbour.cost
            )
            other_problem = problem(links, float(duration))
            neighbour = others[duration] = extremal(other_problem, collocated(other_problem, stretched, INTERVALS[1]))
    sides = [collocated(problem(links, DURATION + side), best, INTERVALS[-1]).cost for side in (-NEAR, NEAR)]
    u = CubicSpline(best.t, best.u, axis=1)
    final_state = solve_ivp(
        lambda t, x: links.flow(x[:, None], UNIT * u(t)[:, None])[:, 0],
        (0.0, DURATION),
        best.x[:, 0],
        "LSODA",
        rtol=1e-10,
        atol=1e-12,
    ).y[:, -1]
    paths = [Chebyshev.fit(best.x[0], best.x[k], DEGREE) for k in (1, 2)]
    constraint = LinkConstraint(links, paths)
    walk = engine(constraint, float(best.x[0, 0]), float(best.x[3, 0]), ENGINE_TIME, ENGINE_STEPS)
    price = (sides[1] - sides[0]) / (2.0 * NEAR)
    return OptimalStepResult(
        links, drawn, direct, best, tuple(others[each] for each in DURATIONS), price, final_state, walk, constraint
    )


def checks(result: OptimalStepResult) -> Iterator[Check]:
    """Yield the checks of both methods, of the price of time, and of the simulator."""
    best, links = result.best, result.links
    square = UNIT**2
    for trajectory, count, limit in zip(result.direct, INTERVALS, AGREE, strict=True):
        name = f"direct, {count} intervals: cost / that of the indirect method - 1"
        yield Check.near(name, trajectory.cost / best.cost - 1.0, 0.0, limit)
    yield Check.shown("cost of a step, 1/2 integral of u^T u", square * best.cost, "N^2.m^2.s")
    yield Check.shown("... of the drawn step", square * result.drawn.cost, "N^2.m^2.s")
    yield Check.at_most("cost / that of the drawn step", best.cost / result.drawn.cost, 0.2)
    yield Check.at_most("range of H over the step / H", np.ptp(best.hamiltonian) / abs(best.hamiltonian[0]), 1e-6)
    yield Check.near("price of time: H / difference of two direct steps", best.hamiltonian[0] / result.price, 1.0, 1e-3)
    posture, rate = links.heel_strike(result.free[:3], result.free[3:])
    start_error = np.concatenate([posture, rate]) - best.x[:, 0]
    yield Check.at_most("|torques played by another integrator: next start - start|", np.abs(start_error).max(), 1e-4)
    yield Check.shown("largest torque", UNIT * np.abs(best.u).max(), "N.m")
    force = forces(links, best)
    yield Check.at_least("least normal force", force[:, 1].min(), 0.5 * 9.81 * links.masses.sum(), "N")
    yield Check.at_most("friction needed", np.abs(force[:, 0] / force[:, 1]).max(), 0.45)
    yield Check.shown("swinging foot: deepest, where it passes the other", 1e3 * depth(links, best), "mm")
    times, costs = np.array(result.engine_steps).T
    yield Check.equal("engine: touch-downs", len(result.walk.landings), ENGINE_STEPS)
    yield Check.near("engine: time of its last step", times[-1], DURATION, 0.02 * DURATION, "s")
    yield Check.near("engine: cost of its last step / the optimum", costs[-1] / best.cost, 1.0, 0.05)


def forces(links: ThreeLinks, motion: OptimalTrajectory) -> Array:
    """Return the ground reaction forces (k, 2), forwards and upwards [N]."""
    change = links.flow(motion.x, UNIT * motion.u)[3:]
    rows = zip(motion.x.T, change.T, strict=True)
    return np.array([links.ground_force(x[:3], x[3:], np.real(each)) for x, each in rows])


def depth(links: ThreeLinks, motion: OptimalTrajectory) -> float:
    """Return the largest depth of the swing foot below the ground [m]."""
    return -links.length * float((np.cos(motion.x[0]) - np.cos(motion.x[1])).min())


def draw(figure: Figure, result: OptimalStepResult) -> None:
    """Draw both steps, their torques and paths, and the cost over the duration."""
    links, best, drawn = result.links, result.best, result.drawn
    grid = figure.add_gridspec(2, 3, width_ratios=[0.9, 1.0, 1.0])
    for row, (motion, name) in enumerate(((drawn, "drawn"), (best, "optimal"))):
        ax = figure.add_subplot(grid[row, 0])
        draw_step(ax, links, motion)
        label(ax, f"{name}: {UNIT**2 * motion.cost:.0f} N²m²s", aspect="equal", ylim=(-0.05, 1.6))
    torques, paths, price, along = (figure.add_subplot(grid[at]) for at in ((0, 1), (1, 1), (0, 2), (1, 2)))
    names = ("on the stance leg", "on the swinging leg")
    for k, name in enumerate(names):
        nodes, colour = result.direct[1], FOOT_COLOURS[k]
        torques.plot(best.t, UNIT * best.u[k], label=name, color=colour)
        torques.plot(nodes.t, UNIT * nodes.u[k], "o", markersize=4, markerfacecolor="white", color=colour)
        torques.plot(drawn.t, UNIT * drawn.u[k], ":", color=colour)
    label(torques, "torques: line indirect, circles direct, dotted drawn", time="time [s]", y="[N m]", legend="best")
    for k, (name, colour) in enumerate((("swinging leg", FOOT_COLOURS[1]), ("trunk", TOTAL_COLOUR)), 1):
        paths.plot(best.x[0], best.x[k], color=colour, label=name)
        paths.plot(drawn.x[0], drawn.x[k], ":", color=colour)
    label(paths, "angles over that of the stance leg", x="stance leg [rad]", y="[rad]", legend="best")
    draw_price(price, result)
    walk = result.walk
    along.plot(walk.angle, walk.rate, color=FOOT_COLOURS[2], linewidth=0.9, label=f"engine, {ENGINE_STEPS} steps")
    along.plot(best.x[0], best.x[3], "--", color=LIMIT_COLOUR, label="optimal step")
    label(along, "the engine walks on it", x="stance leg [rad]", y="rate [rad/s]", legend="best")


def draw_step(ax: Axes, links: ThreeLinks, motion: OptimalTrajectory) -> None:
    """Draw postures at equal time intervals."""
    rows = np.searchsorted(motion.t, np.linspace(0.0, motion.t[-1], 7)).clip(0, len(motion.t) - 1)
    for row in rows:
        figure_of(ax, links, motion.x[:3, row], 0.0, row in rows[[0, -1]])
    ax.axhline(0.0, color=MARK_COLOUR, linewidth=1.0)
    ax.set(xticks=[], yticks=[], frame_on=False)


def draw_price(ax: Axes, result: OptimalStepResult) -> None:
    """Draw the cost over the duration of a step, with H as its slope."""
    steps = sorted((*result.others, result.best), key=lambda step: step.t[-1])
    square = UNIT**2
    times, costs = np.array([[step.t[-1], square * step.cost] for step in steps]).T
    ax.plot(times, costs, "o", color=FOOT_COLOURS[0], label="optimal steps")
    for step in steps:
        side = np.array([-0.02, 0.02])
        at, slope = step.t[-1], square * step.hamiltonian[0]
        ax.plot(at + side, square * step.cost + slope * side, color=LIMIT_COLOUR, linewidth=1.4)
    ax.plot([], [], color=LIMIT_COLOUR, label="slope H")
    label(ax, "cost over the time of a step", x="time of a step [s]", y="[N²m²s]", legend="best")


case = study(measure, checks, draw, (15.0, 8.0))
