"""Compare a mass on a spring with a biped of three links on the same kind of spring (Fig. 2 to 4).

Joint moments tie the swing leg and the trunk to the stance leg (:class:`LinkConstraint`). The stance leg turns on a
spring, as the mass does. Both systems have two static equilibria, about which the motions of kinds A and B oscillate.
Motion C passes over the top: the mass returns, and the biped reaches the ground, where an impact and the switching of
the legs start the next step.

The motion of both systems follows by quadrature. The quantity s^2 / 2 minus the integral of G I is constant. Here s is
the angular momentum about the pivot, G the moment about it, and I = s over the rate. The quadrature is compared with
the equations of three free links under the joint moments, and with the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import Chebyshev
from scipy.optimize import brentq

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.impacts import IMPACT_LAWS, Friction
from bipedsim_studies.reproduce.common import MARK_COLOUR, Axes, Check, Figure, body, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z, mechanics, of_soles
from bipedsim_studies.stability import LinkConstraint, NoReturnError, ThreeLinks

END = 0.25
"""Angle of the stance leg at a touchdown [rad]: the steps are 0.45 m long."""
PIVOT = 720.0
"""Stiffness of the spring [N.m/rad]. It almost supports the leg, so the trunk's motion is decisive."""
LANDING, LEAN, SWAY = (0.5, -0.6), 0.0, 0.45
"""Parameters of the joint paths, see :meth:`LinkConstraint.repeating`."""
PENDULUM_SPRING = 0.9 * 9.81
"""Stiffness of the pendulum's spring [N.m/rad]: 0.9 m g l."""
STEPS, BEGIN = 10, 1.35
"""Number of steps, and the rate before the first touchdown over the rate of the periodic gait."""
INSIDE, OVER = 0.7, 1.25
"""Energies of the drawn motions above the bottom of the well, as fractions.

For kinds A and B, the reference is the energy at which the motion leaves the well. For kind C, it is the energy at rest
on the top.
"""
STEP = 5e-4
"""Time step of the simulator [s]."""
SWINGS = 1.1
"""Duration of oscillating motions, in periods."""
LONGEST = 20.0
"""Time after which a step counts as impossible [s], because passing the top takes ever longer near the limit."""


class PhasePortrait:
    """Motion with one degree of freedom between two angles, by quadrature.

    Args:
        ends: The two angles [rad].
        inertia: I as a function of the angle [kg.m^2].
        moment: G as a function of the angle [N.m].
    """

    def __init__(
        self, ends: tuple[float, float], inertia: Callable[[float], float], moment: Callable[[float], float]
    ) -> None:
        def interpolated(function: Callable[[float], float]) -> Chebyshev:
            return Chebyshev.interpolate(lambda x: np.array([function(float(each)) for each in x]), 60, domain=ends)

        self.ends = ends
        self.inertia = interpolated(inertia)
        self.moment = interpolated(moment)
        self.work: Chebyshev = (self.inertia * self.moment).integ(lbnd=ends[0])

    @property
    def equilibria(self) -> Array:
        """Angles at which the moment is zero [rad]."""
        roots = np.asarray(self.moment.roots(), dtype=np.complex128)
        inside = (np.abs(roots.imag) < 1e-9) & (roots.real > self.ends[0]) & (roots.real < self.ends[1])
        return np.sort(roots.real[inside])

    def level(self, angle: float, rate: float) -> float:
        """Return the constant of the motion: s^2 / 2 minus the work since the first end."""
        return 0.5 * (float(self.inertia(angle)) * rate) ** 2 - float(self.work(angle))

    def rate(self, angle: Array, level: float) -> Array:
        """Return the rates [rad/s] at angles (n,); NaN at angles that the motion does not reach."""
        square = level + self.work(angle)
        return np.sqrt(2.0 * np.where(square >= 0.0, square, np.nan)) / self.inertia(angle)

    def turns(self, inside: float, outward: float, level: float) -> float:
        """Return the angle between ``inside`` and ``outward`` [rad] at which the motion turns back."""
        return float(brentq(lambda angle: level + self.work(angle), inside, outward, xtol=1e-14))

    def time(self, first: float, last: float, level: float, turns: bool) -> float:
        """Return the time [s] between two angles; the motion ``turns`` back at both of them or at neither.

        With angle = middle + half sin(x), the integrand stays finite at the turning points.
        """
        nodes, weights = np.polynomial.legendre.leggauss(400)
        middle, half = 0.5 * (first + last), 0.5 * (last - first)
        x = 0.5 * math.pi * nodes if turns else nodes
        angle, scale = (middle + half * np.sin(x), 0.5 * math.pi * np.cos(x)) if turns else (middle + half * x, 1.0)
        return abs(half) * float(weights @ (scale / self.rate(angle, level)))


def pendulum_portrait(spring: float) -> PhasePortrait:
    """Return the portrait of the body ``spring_pendulum`` on a ``spring`` [N.m/rad]."""
    mass = body("spring_pendulum").model.inertias[1]
    inertia = mass.mass * mass.lever[2] ** 2 + float(mass.inertia[1, 1])
    weight = mass.mass * 9.81 * mass.lever[2]
    return PhasePortrait((-2.0, 2.0), lambda _: inertia, lambda angle: weight * math.sin(angle) - spring * angle)


def biped() -> LinkConstraint:
    """Return the biped on its spring, constrained by its joint moments."""
    walker = replace(ThreeLinks.of_robot(body("three_links")), pivot=PIVOT)
    return LinkConstraint.repeating(walker, END, LANDING, LEAN, SWAY)


@dataclass(frozen=True)
class MotionKind:
    """A motion: name of its kind, initial angle [rad], initial rate [rad/s] and period [s]."""

    name: str
    angle: float
    rate: float
    period: float


def kinds(portrait: PhasePortrait, returns: bool) -> list[MotionKind]:
    """Return a motion of kinds A and B, and one of kind C if it ``returns`` as in a pendulum."""
    left_well, top, right_well = portrait.equilibria
    low, high = portrait.ends
    motions = []
    for name, well, outward in (("A", left_well, low), ("B", right_well, high), ("C", right_well, high)):
        bottom = -float(portrait.work(well))
        rims = -portrait.work(np.array([top, outward])) - bottom
        level = bottom + (OVER * float(rims[0]) if name == "C" else INSIDE * float(rims.min()))
        rate = float(portrait.rate(np.array([well]), level)[0])
        if name != "C":
            turns = [portrait.turns(well, end, level) for end in (top, outward)]
        elif returns:
            turns = [portrait.turns(left_well, low, level), portrait.turns(right_well, high, level)]
        else:
            continue
        motions.append(MotionKind(name, float(well), rate, 2.0 * portrait.time(turns[0], turns[1], level, True)))
    return motions


@dataclass(frozen=True, eq=False)
class EngineMotion:
    """Motion computed by the simulator.

    Attributes:
        t: (n,) times [s].
        angle, rate: (n,) angle and rate of the stance leg or the rod [rad, rad/s].
        posture: (n, nq) configurations.
        landings: Rates of the stance leg before the touchdowns [rad/s].
        force: (n, 2) ground reaction force on the stance foot, forwards and upwards [N].
        torque: (n, 2) torques of the trunk on stance leg and swing leg, or (n, 1) torque of the spring [N.m].
    """

    t: Array
    angle: Array
    rate: Array
    posture: Array
    landings: Array
    force: Array
    torque: Array

    @property
    def period(self) -> float:
        """Time between the first two upward passages through the initial angle [s], by linear interpolation."""
        x = self.angle - self.angle[0]
        rows = np.flatnonzero((x[:-1] < 0.0) & (x[1:] >= 0.0))
        times = self.t[rows] - x[rows] * (self.t[rows + 1] - self.t[rows]) / (x[rows + 1] - x[rows])
        return float(times[0] - self.t[0]) if len(times) else math.nan


def swing(kind: MotionKind, spring: float) -> EngineMotion:
    """Simulate the pendulum for slightly more than a period."""
    sim = Simulator(body("spring_pendulum"), physics_dt=STEP)
    sim.reset(np.array([kind.angle]), np.array([kind.rate]))
    rows = [(0.0, kind.angle, kind.rate)]
    for _ in range(round(SWINGS * kind.period / STEP)):
        # A torque is constant in a step. At the angle at its middle, the spring gives no energy, to second order.
        sim.advance(np.array([-spring * (sim.q[0] + 0.5 * STEP * sim.v[0])]))
        rows.append((sim.t, float(sim.q[0]), float(sim.v[0])))
    t, angle, rate = np.array(rows).T
    return EngineMotion(t, angle, rate, angle[:, None], np.zeros(0), np.zeros((len(t), 2)), -spring * angle[:, None])


def robot_state(robot: Robot, walker: ThreeLinks, phi: Array, rate: Array, stance: int = 0) -> tuple[Array, Array]:
    """Return (q, v) of the robot standing at the origin on its left foot (``stance`` 0) or its right foot (1)."""
    hip = walker.length * np.array([math.sin(phi[0]), math.cos(phi[0])])
    speed = walker.length * rate[0] * np.array([math.cos(phi[0]), -math.sin(phi[0])])
    legs = [0, 1] if stance == 0 else [1, 0]
    return np.array([*hip, phi[2], *(phi[legs] - phi[2])]), np.array([*speed, rate[2], *(rate[legs] - rate[2])])


def link_state(q: Array, v: Array, stance: int) -> tuple[Array, Array]:
    """Return phi and phi' (3,) of the robot on its left foot (``stance`` 0) or its right foot (1)."""
    order = [3 + stance, 4 - stance]
    return np.array([*(q[order] + q[2]), q[2]]), np.array([*(v[order] + v[2]), v[2]])


def engine(constraint: LinkConstraint, angle: float, rate: float, duration: float, landings: int) -> EngineMotion:
    """Simulate the biped from a state on the constraint, for a duration [s] or a number of touchdowns."""
    robot, walker = body("three_links"), constraint.walker
    sim = Simulator(robot, physics_dt=STEP)
    sim.reset(*robot_state(robot, walker, constraint.posture(angle), rate * constraint.slopes(angle)))
    legs, stance = ("left_leg", "right_leg"), 0
    rates = list[float]()
    rows = [(0.0, angle, rate, sim.q.copy(), np.zeros(2), np.zeros(2))]
    while sim.t < duration and len(rates) < landings:
        phi, dphi = link_state(sim.q, sim.v, stance)
        u = constraint.torque(sim.t, phi, dphi)
        # The robot has no spring, so an external wrench applies the moment of the spring.
        sim.push(np.array([0.0, 0.0, 0.0, 0.0, -walker.pivot * phi[0], 0.0]), legs[stance], STEP)
        result = sim.advance(u if stance == 0 else u[::-1])
        if phi[0] > 0.5 * END and result.wrench[1 - stance, Z] > 0.0:
            rates.append(float(dphi[0]))
            stance = 1 - stance
        phi, dphi = link_state(sim.q, sim.v, stance)
        rows.append((sim.t, phi[0], dphi[0], sim.q.copy(), result.wrench[stance, [X, Z]].copy(), u))
    t, angles, speeds, postures, forces, torques = (np.array(column) for column in zip(*rows, strict=True))
    return EngineMotion(t, angles, speeds, postures, np.array(rates), forces, torques)


def by_events(constraint: LinkConstraint, rate: float) -> Array:
    """Return the rates (n,) of the stance leg before touchdowns [rad/s], from free links under the joint moments."""
    walker = constraint.walker
    before = [rate]
    for _ in range(STEPS):
        phi, dphi = walker.heel_strike(constraint.posture(END), before[-1] * constraint.slopes(END))
        before.append(float(walker.step(phi, dphi, constraint.torque, LONGEST).rate[-1, 0]))
    return np.array(before)


def free_period(constraint: LinkConstraint, kind: MotionKind) -> float:
    """Return the period of a motion of kind A or B [s], from free links under the joint moments."""
    step = constraint.walker.step(
        constraint.posture(kind.angle), kind.rate * constraint.slopes(kind.angle), constraint.torque, kind.period
    )
    # The angle still missing to a whole period is divided by the rate at the end.
    return kind.period + float((kind.angle - step.phi[-1, 0]) / step.rate[-1, 0])


def slowest(constraint: LinkConstraint) -> float:
    """Return the rate before a touchdown between turning back and a further step [rad/s], by bisection."""
    stops, walks = 0.1, 0.4
    walker = constraint.walker
    while walks - stops > 1e-6:
        middle = 0.5 * (stops + walks)
        phi, dphi = walker.heel_strike(constraint.posture(END), middle * constraint.slopes(END))
        try:
            lands = walker.step(phi, dphi, constraint.torque, LONGEST).lands
        except NoReturnError:
            lands = False
        stops, walks = (stops, middle) if lands else (middle, walks)
    return walks


def strike_by_law(constraint: LinkConstraint, rate: float) -> tuple[Array, Array]:
    """Return phi' (3,) after a touchdown by the law of Pfeiffer and Glocker, and the impulses (2,) of both feet [N.s].

    Both feet are in contact, and the law decides whether the rear foot leaves the ground.
    """
    robot, walker = body("three_links"), constraint.walker
    q, v = robot_state(robot, walker, constraint.posture(END), rate * constraint.slopes(END))
    state = mechanics(robot, q, v, of_soles(robot))
    friction = Friction(state.rows[:, X], robot.soles[0].friction_static)
    impact = IMPACT_LAWS["pfeiffer_glocker"](state.M, state.rows[:, Z], v, 0.0, friction)
    return link_state(q, impact.v_after, 1)[1], impact.impulse


@dataclass(frozen=True, eq=False)
class ThreeLinksResult:
    """Motions of the mass and of the biped.

    Attributes:
        pendulum: Portrait of the mass on its spring.
        swung: Motions of the mass by the simulator, with their kinds.
        constraint, portrait: Constraint and portrait of the biped.
        swings: Motions A and B of the biped by the simulator, with their kinds and their periods by free links [s].
        slowest: Rate before a touchdown between turning back and a further step [rad/s].
        events: (n,) rates before touchdowns by free links [rad/s].
        walk: The same walk by the simulator.
    """

    pendulum: PhasePortrait
    swung: tuple[tuple[MotionKind, EngineMotion], ...]
    constraint: LinkConstraint
    portrait: PhasePortrait
    swings: tuple[tuple[MotionKind, EngineMotion, float], ...]
    slowest: float
    events: Array
    walk: EngineMotion

    @property
    def strike(self) -> float:
        """Angular momentum after a touchdown over the rate of the stance leg before it [kg.m^2]."""
        constraint = self.constraint
        after = constraint.walker.heel_strike(constraint.posture(END), constraint.slopes(END))
        return constraint.walker.momentum(*after)

    @property
    def affine(self) -> tuple[float, float]:
        """(a, b): the squared rate before a touchdown is a times the square before the previous one, plus b."""
        portrait = self.portrait
        last = float(portrait.inertia(END))
        return (self.strike / last) ** 2, 2.0 * float(portrait.work(END)) / last**2

    @property
    def gait(self) -> float:
        """Rate before a touchdown in the periodic gait [rad/s]."""
        a, b = self.affine
        return math.sqrt(b / (1.0 - a))

    def mapped(self, rate: float, steps: int) -> Array:
        """Return ``rate`` before a touchdown and the rates before the next ones (steps + 1,) [rad/s], by quadrature."""
        a, b = self.affine
        rates = [rate]
        for _ in range(steps):
            rates.append(math.sqrt(a * rates[-1] ** 2 + b))
        return np.array(rates)


def measure(_progress: bool = False) -> ThreeLinksResult:
    """Compute the motions of the mass and of the biped."""
    pendulum = pendulum_portrait(PENDULUM_SPRING)
    constraint = biped()
    portrait = PhasePortrait((-END, END), constraint.inertia, constraint.moment)
    swings = [
        (kind, engine(constraint, kind.angle, kind.rate, SWINGS * kind.period, 1), free_period(constraint, kind))
        for kind in kinds(portrait, False)
    ]
    result = ThreeLinksResult(
        pendulum=pendulum,
        swung=tuple((kind, swing(kind, PENDULUM_SPRING)) for kind in kinds(pendulum, True)),
        constraint=constraint,
        portrait=portrait,
        swings=tuple(swings),
        slowest=slowest(constraint),
        events=np.zeros(0),
        walk=swings[0][1],
    )
    first = BEGIN * result.gait
    after = constraint.walker.heel_strike(constraint.posture(END), first * constraint.slopes(END))[1]
    walk = engine(constraint, -END, float(after[0]), LONGEST, STEPS)
    return replace(result, events=by_events(constraint, first), walk=walk)


def checks(result: ThreeLinksResult) -> Iterator[Check]:
    """Yield the checks of periods, the limits between the kinds, the steps and the touchdown."""
    constraint, portrait = result.constraint, result.portrait
    for kind, motion in result.swung:
        yield Check.near(f"mass, kind {kind.name}: period, engine", motion.period, kind.period, 1e-3 * kind.period, "s")
    yield Check.equal("biped: static equilibria of its one degree of freedom", len(portrait.equilibria), 3)
    for kind, motion, link_period in result.swings:
        name = f"biped, kind {kind.name}"
        yield Check.near(
            f"{name}: period, three free links under the joint moments", link_period, kind.period, 1e-7, "s"
        )
        yield Check.near("... engine", motion.period, kind.period, 1e-3 * kind.period, "s")
        yield Check.equal("... touch-downs", len(motion.landings), 0)
    top = math.sqrt(-2.0 * float(portrait.work(portrait.equilibria[1]))) / result.strike
    yield Check.near("rate before a touch-down between kinds A and C", result.slowest, top, 1e-5, "rad/s")
    expected = result.mapped(result.events[0], STEPS)
    error = float(np.abs(result.events - expected).max())
    yield Check.at_most("|rates before touch-downs, free links - quadrature|", error, 1e-8, "rad/s")
    yield Check.shown("closed orbit: rate before a touch-down", result.gait, "rad/s")
    yield Check.shown("... share of its distance in squares that a step leaves", result.affine[0])
    walk = result.walk
    yield Check.equal("engine: touch-downs", len(walk.landings), STEPS)
    walk_error = float(np.abs(walk.landings / expected[1:] - 1.0).max())
    yield Check.at_most("engine: |rate before a touch-down / quadrature - 1|", walk_error, 0.02)
    by_law, impulse = strike_by_law(constraint, result.gait)
    by_momenta = constraint.walker.heel_strike(constraint.posture(END), result.gait * constraint.slopes(END))[1]
    yield Check.at_most("touch-down: |pfeiffer_glocker - momenta|", float(np.abs(by_law - by_momenta).max()), 1e-9)
    yield Check.at_most("... impulse of the foot behind", abs(float(impulse[0])), 1e-9, "N.s")
    ratio = by_momenta / by_momenta[0] - constraint.slopes(-END)
    yield Check.at_most("... |rates after it - those on the constraint|", float(np.abs(ratio).max()), 1e-9)
    yield Check.at_least("engine: least normal force", float(walk.force[1:, 1].min()), 100.0, "N")


def figure_of(ax: Axes, walker: ThreeLinks, phi: Array, at: float, firm: bool) -> None:
    """Draw the biped with its stance foot at ``at`` [m], faintly unless ``firm``."""
    hip = np.array([at + walker.length * math.sin(phi[0]), walker.length * math.cos(phi[0])])
    foot = hip - walker.length * np.array([math.sin(phi[1]), math.cos(phi[1])])
    head = hip + 2.0 * walker.trunk_centre * np.array([math.sin(phi[2]), math.cos(phi[2])])
    for (first, last), colour, width in (
        ((np.array([at, 0.0]), hip), FOOT_COLOURS[0], 1.8),
        ((foot, hip), FOOT_COLOURS[1], 1.4),
        ((hip, head), TOTAL_COLOUR, 2.4),
    ):
        ax.plot(*zip(first, last, strict=True), color=colour, linewidth=width, alpha=1.0 if firm else 0.35)


COLOURS = {"A": FOOT_COLOURS[0], "B": FOOT_COLOURS[1], "C": FOOT_COLOURS[2]}


def draw_orbits(ax: Axes, portrait: PhasePortrait, shares: Array, mirrored: bool) -> None:
    """Draw the levels of a portrait in grey, and the separatrix between the kinds."""
    angle = np.linspace(*portrait.ends, 8001)
    top = -float(portrait.work(portrait.equilibria[1]))
    bottom = -float(portrait.work(portrait.equilibria).max())
    for level in bottom + shares * (top - bottom):
        rate = portrait.rate(angle, level)
        for sign in (1.0, -1.0) if mirrored else (1.0,):
            ax.plot(angle, sign * rate, color="#BBBBBB", linewidth=0.7)
    edge = portrait.rate(angle, top + 1e-9)
    for sign in (1.0, -1.0) if mirrored else (1.0,):
        ax.plot(angle, sign * edge, "--", color=MARK_COLOUR, linewidth=1.1)
    ax.plot(portrait.equilibria[[0, 2]], [0.0, 0.0], "o", color=TOTAL_COLOUR, markersize=4)
    ax.plot(portrait.equilibria[1], 0.0, "o", markerfacecolor="white", markeredgecolor=TOTAL_COLOUR, markersize=5)


def draw(figure: Figure, result: ThreeLinksResult) -> None:
    """Draw Fig. 2, Fig. 3 and all parts of Fig. 4."""
    walker, portrait = result.constraint.walker, result.portrait
    grid = figure.add_gridspec(2, 12, height_ratios=[1.0, 1.15])
    mass = figure.add_subplot(grid[0, :4])
    stills = [figure.add_subplot(grid[0, columns]) for columns in (slice(4, 6), slice(6, 8), slice(8, 12))]
    kinds_of, steps, returns = (figure.add_subplot(grid[1, at : at + 4]) for at in (0, 4, 8))
    draw_orbits(mass, result.pendulum, np.array([0.35, 2.0, 4.0, 7.0]), True)
    for kind, motion in result.swung:
        mass.plot(motion.angle, motion.rate, color=COLOURS[kind.name], label=kind.name)
    label(mass, "Fig. 2: a mass on a spring", x="angle [rad]", y="rate [rad/s]", legend="upper right")
    for ax, (kind, motion, _) in zip(stills, result.swings, strict=False):
        for row in np.linspace(0, np.searchsorted(motion.t, 0.5 * kind.period), 5).astype(int):
            phi = link_state(motion.posture[row], motion.posture[row], 0)[0]
            figure_of(ax, walker, phi, 0.0, row == 0)
        label(ax, f"Fig. 3: {kind.name}", aspect="equal", xlim=(-0.65, 0.65))
    draw_walk(stills[2], result)
    for ax in stills:
        ax.axhline(0.0, color=MARK_COLOUR, linewidth=1.0)
        ax.set(ylim=(-0.05, 1.65), xticks=[], yticks=[], frame_on=False)
    draw_orbits(kinds_of, portrait, np.array([0.15, 1.4, 2.0, 3.0]), True)
    for kind, motion, _ in result.swings:
        kinds_of.plot(motion.angle, motion.rate, color=COLOURS[kind.name])
        kinds_of.text(kind.angle, 0.09, kind.name, color=COLOURS[kind.name], ha="center", fontweight="bold")
    last = np.flatnonzero(np.diff(result.walk.angle) < -END)
    final = slice(last[-2] + 1, last[-1] + 1)
    kinds_of.plot(result.walk.angle[final], result.walk.rate[final], color=COLOURS["C"])
    kinds_of.text(0.0, 0.27, "C", color=COLOURS["C"], ha="center", fontweight="bold")
    for ax in (kinds_of, steps):
        for end in (-END, END):
            ax.axvline(end, color=LIMIT_COLOUR, linestyle="--", linewidth=0.9)
    label(kinds_of, "Fig. 4a: biped, contact at the red lines", x="stance leg [rad]", y="rate [rad/s]")
    draw_steps(steps, result)
    draw_map(returns, result)


def draw_walk(ax: Axes, result: ThreeLinksResult) -> None:
    """Draw the last two steps of the walk; the colour of a foot depends on its role as stance or swing foot."""
    walk, walker = result.walk, result.constraint.walker
    strikes = np.flatnonzero(np.diff(walk.angle) < -END)
    at = 0.0
    for number, (begin, end) in enumerate(zip(strikes[-3:-1] + 1, strikes[-2:], strict=True)):
        stance = (len(strikes) - 2 + number) % 2
        for row in np.linspace(begin, end, 6).astype(int):
            phi = link_state(walk.posture[row], walk.posture[row], stance)[0]
            figure_of(ax, walker, phi, at, row in (begin, end))
        at += 2.0 * walker.length * math.sin(END)
    label(ax, "Fig. 3: C, two steps", aspect="equal")


def draw_steps(ax: Axes, result: ThreeLinksResult) -> None:
    """Draw steps of the simulator towards the closed orbit."""
    portrait, walk = result.portrait, result.walk
    strikes = np.concatenate([[-1], np.flatnonzero(np.diff(walk.angle) < -END)])
    for begin, end in zip(strikes[:4] + 1, strikes[1:5], strict=True):
        ax.plot(walk.angle[begin : end + 1], walk.rate[begin : end + 1], color=COLOURS["C"], linewidth=1.0)
        ax.plot(walk.angle[end : end + 2], walk.rate[end : end + 2], ":", color=MARK_COLOUR, linewidth=1.0)
    angle = np.linspace(*portrait.ends, 401)
    cycle = portrait.rate(angle, 0.5 * (result.strike * result.gait) ** 2)
    ax.plot(angle, cycle, color=LIMIT_COLOUR, label="closed orbit, quadrature", linewidth=1.6)
    ax.plot(angle[[-1, 0]], cycle[[-1, 0]], ":", color=LIMIT_COLOUR)
    for at, name in ((-1, "1"), (0, "2")):
        ax.annotate(name, (angle[at], cycle[at]), textcoords="offset points", xytext=(5, 6), color=LIMIT_COLOUR)
    label(ax, "Fig. 4b, c: impact and switching, 1 to 2", x="stance leg [rad]", y="rate [rad/s]", legend="upper center")


def draw_map(ax: Axes, result: ThreeLinksResult) -> None:
    """Draw the return map."""
    line = np.linspace(result.slowest, BEGIN * result.gait, 100)
    a, b = result.affine
    rates = np.concatenate([result.events[:1], result.walk.landings])
    ax.plot(line, np.sqrt(a * line**2 + b), color=FOOT_COLOURS[0], label="quadrature")
    ax.plot(line, line, "--", color=MARK_COLOUR, linewidth=0.8)
    stairs = np.repeat(rates, 2)
    ax.plot(stairs[:-1], stairs[1:], color=MARK_COLOUR, linewidth=0.8)
    ax.plot(rates[:-1], rates[1:], "o", color=COLOURS["C"], markersize=4, label="$p_i$, engine")
    ax.plot(result.gait, result.gait, "o", color=LIMIT_COLOUR, markersize=6, label="$p_e$")
    x, y = "rate before a touch-down [rad/s]", "before the next [rad/s]"
    label(ax, "Fig. 4d: return map", x=x, y=y, legend="upper left")


case = study(measure, checks, draw, (14.0, 8.5))
