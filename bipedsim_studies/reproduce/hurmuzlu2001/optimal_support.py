"""Optimise the support phase of a planar biped for less torque or energy (section 5.2.1).

On one flat foot, ``planar_biped`` has as many actuators as degrees of freedom, so a motion determines its torques.
Splines are added to the joint paths of a gait that was not optimised. They leave the ends of the phase unchanged, so
the walk continues as before.

The cost is 1/2 integral of u^T u (eq. 58), or the integral of the sum of |u q'|, the energy of actuators that do not
regenerate. The constraints are:

- The centre of pressure stays inside the foot.
- The swing foot stays at least as high as before, and does not move faster close to the ground.
- The knees stay bent.

The problem is solved by sequential quadratic programming with the Gauss-Newton approximation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import daqp
import numpy as np
import pinocchio as pin
from scipy.integrate import simpson
from scipy.interpolate import BSpline

from bipedsim.control.output import PlanarWalk
from bipedsim.errors import BipedSimError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR, TOTAL_COLOUR
from bipedsim_studies.planar import AdaptiveWalk
from bipedsim_studies.reproduce.common import MARK_COLOUR, Axes, Check, Figure, label, steps, study
from bipedsim_studies.reproduce.hurmuzlu2001.adaptive_walk import GAIT, GROUPS, draw_posture
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z

ROBOT = "planar_biped"
BEGINS = (1.8, 2.4)
"""Start of the third and the fourth step on one foot, after the start of the walk [s]."""
NODES, FINE = 46, 91
"""Number of time points in a support phase for the optimisation, and for its evaluation."""
SHAPES = (8, 12)
"""Splines per joint: for the optimum, and a larger number for comparison, which the energy optimum also uses."""
ROOM = 0.06
"""Largest distance of the centre of pressure from mid-foot [m]: 6 cm inside the edges."""
FRICTION, PRESSED = 0.3, 0.6
"""Maximum friction coefficient, and minimum normal force over the weight."""
LEAST_KNEE = 0.15
"""Minimum flexion of the knees [rad]."""
ROUNDING = 1e-6
"""Tolerance of the swing foot's height [m], so that it touches down at the same time as before."""
NEAR, SCUFF = 5e-3, 0.05
"""Below this height [m], the forward velocity of the swing foot may change by at most this value [m/s]."""
DAMPING = 1e-6
"""Damping of the steps after Levenberg, with torques in units of 300 N.m [1/rad^2]."""
ITERATIONS, SETTLED = 60, 1e-4
SMALL_POWER, LITTLE_TORQUE = 5.0, 0.03
"""Smoothing of the energy, sqrt(power^2 + 5^2) [W], and weight of the torques, as many motions cost the same."""
DELAY, DURATION = 0.1, 3.6
"""Standing time before the walk, and duration of the run [s]."""
MIRRORED = [3, 4, 5, 0, 1, 2]
"""Indices of the joints with left and right leg exchanged."""
FLAT = [0, 2, 4]
"""Components of a spatial velocity in the plane: x, z and pitch."""


@dataclass(frozen=True, eq=False)
class SupportMotion:
    """Support phase at n time points.

    Attributes:
        t: (n,) times [s].
        q, v: (n, 9) configurations and velocities.
        u: (n, 6) joint torques [N.m].
        force: (n, 3) ground reaction on the foot: forward and upward force [N], and moment about mid-foot [N.m].
        heights: (n, 2) heights of toe and heel of the swing foot [m].
        ahead: (n,) forward velocity of the middle of the swing foot [m/s].
    """

    t: Array
    q: Array
    v: Array
    u: Array
    force: Array
    heights: Array
    ahead: Array

    @property
    def cop(self) -> Array:
        """(n,) centre of pressure, forwards from mid-foot [m]."""
        ahead: Array = -self.force[:, 2] / self.force[:, 1]
        return ahead

    @property
    def torque_cost(self) -> float:
        """1/2 integral of u^T u [N^2.m^2.s]."""
        return float(simpson(0.5 * np.square(self.u).sum(axis=1), x=self.t))

    @property
    def energy(self) -> float:
        """Integral of the sum of |u q'| [J]."""
        return float(simpson(np.abs(self.power).sum(axis=1), x=self.t))

    @property
    def power(self) -> Array:
        """(n, 6) powers of the joints [W]."""
        power: Array = self.u * self.v[:, 3:]
        return power


class StanceLeg:
    """Planar biped on one flat foot that rests at the origin.

    Args:
        robot: The biped.
        stance: Index of the stance foot.
    """

    def __init__(self, robot: Robot, stance: int) -> None:
        self._robot, self._data = robot, robot.model.createData()
        self.stance = stance
        self._foot, self._other = robot.soles[stance], robot.soles[1 - stance]
        self._middle = pin.SE3(np.eye(3), self._foot.vertices_joint.mean(axis=0))
        self._other_middle = pin.SE3(np.eye(3), self._other.vertices_joint.mean(axis=0))
        self._leg = slice(3 + 3 * stance, 6 + 3 * stance)

    def _mid_foot(self) -> tuple[Array, Array]:
        """Return the velocity rows (3, 9) of mid-foot, and their drift (3,)."""
        model, data, axes = self._robot.model, self._data, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        joint = self._foot.joint_id
        rows = pin.getFrameJacobian(model, data, joint, self._middle, axes)[FLAT]
        drift = pin.getFrameClassicalAcceleration(model, data, joint, self._middle, axes).vector[FLAT]
        return rows, drift

    def at(self, joints: Array, rates: Array, bends: Array) -> tuple[Array, Array, Array, Array, Array, float]:
        """Return q (9,), v (9,), torques (6,), ground reaction (3,), and the swing foot's heights (2,) and velocity.

        Args:
            joints, rates, bends: Angles (6,) [rad], velocities and accelerations of the joints.
        """
        model, data = self._robot.model, self._data
        q, v, a, still = np.zeros(9), np.zeros(9), np.zeros(9), np.zeros(9)
        q[3:] = joints
        q[2] = -q[self._leg].sum()
        pin.forwardKinematics(model, data, q)
        foot = (data.oMi[self._foot.joint_id] * self._middle).translation
        q[:2] = -foot[[X, Z]]
        pin.computeJointJacobians(model, data, q)
        heights = np.array([data.oMi[self._other.joint_id].act(x)[Z] for x in self._other.vertices_joint])
        rows, _ = self._mid_foot()
        v[3:] = rates
        v[:3] = -np.linalg.solve(rows[:, :3], rows[:, 3:] @ rates)
        pin.forwardKinematics(model, data, q, v, still)
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        swings = pin.getFrameVelocity(model, data, self._other.joint_id, self._other_middle, world)
        _, drift = self._mid_foot()
        a[3:] = bends
        a[:3] = -np.linalg.solve(rows[:, :3], drift + rows[:, 3:] @ bends)
        forces = pin.rnea(model, data, q, v, a) + self._robot.joint_damping * v
        ground = np.linalg.solve(rows[:, :3].T, forces[:3])
        return q, v, forces[3:] - rows[:, 3:].T @ ground, ground, heights, float(swings.linear[X])

    def along(self, t: Array, joints: Array, rates: Array, bends: Array) -> SupportMotion:
        """Return the motion at t (n,) with the joint paths (n, 6)."""
        states = [self.at(*values) for values in zip(joints, rates, bends, strict=True)]
        return SupportMotion(t, *(np.array(column) for column in zip(*states, strict=True)))

    def energy(self, q: Array, v: Array) -> float:
        """Return the kinetic and potential energy [J], including the energy of the rotors."""
        model, data = self._robot.model, self._data
        rotors = 0.5 * float(np.asarray(model.armature) @ np.square(v))
        bodies = model.copy()
        bodies.armature = np.zeros(model.nv)
        data = bodies.createData()
        kinetic = pin.computeKineticEnergy(bodies, data, q, v)
        return float(kinetic + pin.computePotentialEnergy(bodies, data, q)) + rotors


class NoSupportError(BipedSimError):
    """The optimisation of a support phase failed."""


class Splines:
    """Splines on six joints that vanish with two derivatives at the start and the end of an interval.

    Args:
        duration: Length of the interval [s].
        count: Splines per joint.
    """

    def __init__(self, duration: float, count: int) -> None:
        inner = np.linspace(0.0, duration, count + 2)
        knots = np.concatenate([np.zeros(5), inner, np.full(5, duration)])
        self._curves = BSpline(knots, np.eye(len(knots) - 6), 5)
        self.count = len(knots) - 12

    def at(self, t: Array, weights: Array) -> list[Array]:
        """Return the angles, rates and accelerations (n, 6) of the splines with ``weights`` (count * 6,)."""
        return [self._curves(t, k)[:, 3:-3] @ weights.reshape(self.count, 6) for k in range(3)]


def reference(walk: PlanarWalk, begin: float, t: Array) -> list[Array]:
    """Return the angles, rates and accelerations (n, 6) of the walk from ``begin`` [s] on."""
    return [np.array(rows) for rows in zip(*(walk.at(begin + time) for time in t), strict=True)]


def improved(
    robot: Robot, walk: PlanarWalk, begin: float, count: int, of_energy: bool = False
) -> tuple[Splines, Array]:
    """Return splines and weights that minimise the cost of the support phase at ``begin`` [s].

    Args:
        robot, walk: The biped and its gait.
        begin: Start of the support phase [s].
        count: Splines per joint.
        of_energy: Whether the cost is the energy instead of the squared torques. Each quadratic programme then contains
            the squared powers over the magnitudes of the previous powers.

    Raises:
        NoSupportError: The iteration does not converge.
    """
    duration = GAIT.step_duration
    t = np.linspace(0.0, duration, NODES)
    stance = int(np.argmax(walk.share(begin + 0.5 * duration)))
    support, splines, paths = StanceLeg(robot, stance), Splines(duration, count), reference(walk, begin, t)
    original = support.along(t, *paths)
    floor = original.heights.min(axis=1) - ROUNDING
    near_ground = floor < NEAR

    def motion(weights: Array) -> SupportMotion:
        return support.along(t, *(a + b for a, b in zip(paths, splines.at(t, weights), strict=True)))

    def terms(share: Array, weights: Array) -> tuple[Array, Array]:
        """Return the residuals of the cost, and the constraints, which must not be negative."""
        trial = motion(weights)
        faster = (trial.ahead - original.ahead)[near_ground]
        lifted, bent = trial.heights - floor[:, None], trial.q[:, [4, 7]] - LEAST_KNEE
        ahead, up = trial.force[:, 0], trial.force[:, 1]
        forces = [FRICTION * up - ahead, FRICTION * up + ahead, up - PRESSED * robot.weight]
        distances = [ROOM - trial.cop, ROOM + trial.cop, lifted.ravel(), bent.ravel(), SCUFF - faster, SCUFF + faster]
        bounds = np.concatenate([*(10.0 * each for each in distances), *(each / robot.weight for each in forces)])
        if of_energy:
            return np.concatenate([(share * trial.power).ravel(), LITTLE_TORQUE * trial.u.ravel()]) / 10.0, bounds
        return trial.u.ravel() / 300.0, bounds

    weights = np.zeros(6 * splines.count)
    for _ in range(ITERATIONS):
        share = (np.square(motion(weights).power) + SMALL_POWER**2) ** -0.25
        step = _programme(partial(terms, share), weights)
        weights = weights + step
        if np.abs(step).max() < SETTLED:
            return splines, weights
    cost = "energy" if of_energy else "torque"
    raise NoSupportError(f"no support phase of less {cost}: the last step was {np.abs(step).max():.2g} rad")


def _programme(terms: Callable[[Array], tuple[Array, Array]], weights: Array) -> Array:
    """Return the Gauss-Newton step within the linearised constraints."""
    h = 1e-6
    aimed, bounds = terms(weights)
    sides = [terms(weights + h * unit) for unit in np.eye(len(weights))]
    rows = np.array([(side[0] - aimed) / h for side in sides]).T
    slopes = np.array([(side[1] - bounds) / h for side in sides]).T
    square, slope = rows.T @ rows + DAMPING * np.eye(len(weights)), rows.T @ aimed
    no_limit = np.full(len(bounds), 1e30)
    kinds = np.zeros(len(bounds), dtype=np.intc)
    step, _, status, _ = daqp.solve(square, slope, np.ascontiguousarray(slopes), no_limit, -bounds, kinds)
    if status != 1:
        raise NoSupportError(f"no step towards a better support phase: the programme ends with {status}")
    return np.asarray(step)


class ImprovedWalk:
    """Walk in which some support phases have splines added.

    Args:
        walk: The original walk.
        added: Splines and weights by the start of the support phase [s].
    """

    def __init__(self, walk: PlanarWalk, added: dict[float, tuple[Splines, Array]]) -> None:
        self._walk, self._added = walk, added

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return angles (6,) [rad], velocities and accelerations ``t`` [s] after the start."""
        original = self._walk.at(t)
        for begin, (splines, weights) in self._added.items():
            if begin < t < begin + GAIT.step_duration:
                added = splines.at(np.array([t - begin]), weights)
                return original[0] + added[0][0], original[1] + added[1][0], original[2] + added[2][0]
        return original

    def share(self, t: float) -> Array:
        """Return the desired fraction of the weight on each foot (2,)."""
        return self._walk.share(t)

    def coming(self, t: float) -> Flags:
        """Return which feet (2,) swing and may touch down."""
        return self._walk.coming(t)


@dataclass(frozen=True, eq=False)
class EngineCosts:
    """Measurements in both support phases: torque cost [N^2.m^2.s], energy [J] and largest joint error [rad]."""

    torque_cost: float
    energy: float
    error: float


def engine(robot: Robot, walk: PlanarWalk | ImprovedWalk, name: str, progress: bool) -> EngineCosts:
    """Let the biped walk by computed torque in the simulator, and measure both support phases."""
    sim = Simulator(robot)
    controller = AdaptiveWalk(robot, walk, GROUPS, np.ones(len(GROUPS)), sim.control_dt, delay=DELAY, adapts=False)
    rows = [
        (observation.t, sim.effort.copy(), sim.effort * sim.v[3:], controller.readouts["tracking_error"])
        for observation in steps(sim, DURATION, controller, label=name, progress=progress)
    ]
    t, u, power, error = (np.array(column) for column in zip(*rows, strict=True))
    torque_cost = energy = 0.0
    for begin in BEGINS:
        within = (t > DELAY + begin) & (t <= DELAY + begin + GAIT.step_duration)
        torque_cost += 0.5 * float(np.square(u[within]).sum()) * sim.control_dt / len(BEGINS)
        energy += float(np.abs(power[within]).sum()) * sim.control_dt / len(BEGINS)
    return EngineCosts(torque_cost, energy, float(error.max()))


@dataclass(frozen=True, eq=False)
class OptimalSupportResult:
    """Support phases: original, least torque, least torque with more splines, and least energy.

    Attributes:
        robot: The biped.
        support: The biped on its stance foot.
        drawn, best, finer, cheapest: The four support phases.
        drawn_walk, best_walk, cheapest_walk: Measurements of the simulator in three of them.
    """

    robot: Robot
    support: StanceLeg
    drawn: SupportMotion
    best: SupportMotion
    finer: SupportMotion
    cheapest: SupportMotion
    drawn_walk: EngineCosts
    best_walk: EngineCosts
    cheapest_walk: EngineCosts


def measure(progress: bool = False) -> OptimalSupportResult:
    """Optimise the support phase, and walk with and without the splines."""
    robot = load_robot(ROBOT)
    walk = PlanarWalk(robot, GAIT, "optimal support")
    begin = BEGINS[0]
    t = np.linspace(0.0, GAIT.step_duration, FINE)
    support = StanceLeg(robot, int(np.argmax(walk.share(begin + 0.5 * GAIT.step_duration))))
    paths = reference(walk, begin, t)

    def added(splines: Splines, weights: Array) -> SupportMotion:
        return support.along(t, *(a + b for a, b in zip(paths, splines.at(t, weights), strict=True)))

    def better(splines: Splines, weights: Array) -> ImprovedWalk:
        mirrored = weights.reshape(-1, 6)[:, MIRRORED].ravel()
        return ImprovedWalk(walk, dict(zip(BEGINS, ((splines, weights), (splines, mirrored)), strict=True)))

    best, finer = (improved(robot, walk, begin, count) for count in SHAPES)
    cheapest = improved(robot, walk, begin, SHAPES[1], of_energy=True)
    return OptimalSupportResult(
        robot=robot,
        support=support,
        drawn=support.along(t, *paths),
        best=added(*best),
        finer=added(*finer),
        cheapest=added(*cheapest),
        drawn_walk=engine(robot, walk, "drawn", progress),
        best_walk=engine(robot, better(*best), "least torque", progress),
        cheapest_walk=engine(robot, better(*cheapest), "least energy", progress),
    )


def checks(result: OptimalSupportResult) -> Iterator[Check]:
    """Yield the checks of costs, constraints and simulated walks."""
    drawn, best, cheapest = result.drawn, result.best, result.cheapest
    yield Check.shown("1/2 integral of u^T u on one foot, drawn", drawn.torque_cost, "N^2.m^2.s")
    yield Check.shown("... least", best.torque_cost, "N^2.m^2.s")
    yield Check.at_most("... least over drawn", best.torque_cost / drawn.torque_cost, 0.7)
    yield Check.near("... of more splines over least", result.finer.torque_cost / best.torque_cost, 1.0, 0.02)
    weight_times_length = result.robot.weight * GAIT.step_length
    yield Check.shown("energy |u q'| over weight and way, drawn", drawn.energy / weight_times_length)
    yield Check.shown("... of the least torque", best.energy / weight_times_length)
    yield Check.shown("... least", cheapest.energy / weight_times_length)
    yield Check.at_most("... least over drawn", cheapest.energy / drawn.energy, 0.6)
    walks = (
        ("drawn", drawn, result.drawn_walk),
        ("least torque", best, result.best_walk),
        ("least energy", cheapest, result.cheapest_walk),
    )
    for name, motion, walked in walks:
        work = float(simpson(motion.power.sum(axis=1), x=motion.t))
        ends = [result.support.energy(motion.q[row], motion.v[row]) for row in (0, -1)]
        yield Check.at_most(f"{name}: |work of the drives - energy gained|", abs(work - ends[1] + ends[0]), 0.01, "J")
        yield Check.at_most("... |centre of pressure from mid-foot|", np.abs(motion.cop).max(), ROOM + 1e-3, "m")
        yield Check.near("... engine: torques over the plan's", walked.torque_cost / motion.torque_cost, 1.0, 0.05)
        yield Check.near("... engine: energy over the plan's", walked.energy / motion.energy, 1.0, 0.05)
        yield Check.at_most("... engine: largest error of a joint", walked.error, 0.01, "rad")


def draw(figure: Figure, result: OptimalSupportResult) -> None:
    """Draw postures, torques, powers and the centre of pressure of three support phases."""
    grid = figure.add_gridspec(3, 3)
    motions = (
        ("drawn", result.drawn, ":"),
        ("least torque", result.best, "-"),
        ("least energy", result.cheapest, "--"),
    )
    for row, (name, motion, _) in enumerate(motions):
        ax = figure.add_subplot(grid[row, 0])
        draw_phase(ax, result, motion)
        title = f"{name}: {motion.torque_cost:.0f} N²m²s, {motion.energy:.0f} J"
        label(ax, title, aspect="equal", ylim=(-0.05, 1.5))
    stance = slice(0, 3) if result.support.stance == 0 else slice(3, 6)
    swing = slice(3, 6) if stance.start == 0 else slice(0, 3)
    for row, (name, motion, _) in enumerate(motions):
        ax = figure.add_subplot(grid[row, 1])
        for leg, style in ((stance, "-"), (swing, ":")):
            for k, joint in enumerate(("hip", "knee", "ankle")):
                of = joint if leg is stance else None
                ax.plot(motion.t, motion.u[:, leg][:, k], style, color=FOOT_COLOURS[k], label=of)
        label(ax, f"{name}: torques [N m]; dotted: swinging leg", time="time [s]", legend="best" if row == 0 else "")
    axes = [figure.add_subplot(grid[row, 2]) for row in range(3)]
    for name, motion, style in motions:
        half = 0.5 * np.square(motion.u).sum(axis=1)
        axes[0].plot(motion.t, half, style, color=TOTAL_COLOUR, label=name)
        axes[1].plot(motion.t, np.abs(motion.power).sum(axis=1), style, color=TOTAL_COLOUR)
        axes[2].plot(motion.t, 1e3 * motion.cop, style, color=TOTAL_COLOUR)
    for side in (-1.0, 1.0):
        axes[2].axhline(1e3 * side * ROOM, color=LIMIT_COLOUR, linestyle="-.", linewidth=0.9)
    label(axes[0], "half the squares of the torques [N²m²]", time="time [s]", legend="best")
    label(axes[1], "sum of the sizes of the powers [W]", time="time [s]")
    label(axes[2], "centre of pressure from mid-foot [mm]", time="time [s]")


def draw_phase(ax: Axes, result: OptimalSupportResult, motion: SupportMotion) -> None:
    """Draw postures at equal time intervals."""
    for row in np.linspace(0, len(motion.t) - 1, 6).astype(int):
        draw_posture(ax, result.robot, motion.q[row], 1.0 if row in (0, len(motion.t) - 1) else 0.4)
    ax.axhline(0.0, color=MARK_COLOUR, linewidth=1.0)


case = study(measure, checks, draw, (15.0, 11.0))
