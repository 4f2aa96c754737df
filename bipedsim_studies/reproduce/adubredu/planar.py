"""A rigid body in the x-z plane, thrown onto the floor: its contact points, a run, and the laws that the run must obey.

The laws are written out here from the body's geometry, apart from the engine: they judge its answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.model import Robot
from bipedsim.numerics import Array, Flags
from bipedsim.sim import Simulator
from bipedsim_studies.reproduce.common import Check

RESTITUTION = 0.5
STEP = 0.01
"""Restitution of the paper's bodies, and its time step [s]."""
GAMMA = 1e-6
"""Share of a position error that a step removes: nearly none, as the paper corrects no positions."""
REST_SPEED = 0.01
"""Landings slower than this do not bounce [m/s]."""
RESIDUAL = 1e-9
"""Largest violation of the complementarity conditions [m/s]."""
GRAVITY = 9.81


@dataclass(frozen=True, eq=False)
class Points:
    """Mass and contact points of a body with q = (x, z, pitch), the pitch about y, its CoM at the origin of its frame.

    Attributes:
        mass, inertia: [kg], [kg.m^2].
        corners: (N, 2) points (x, z) in the body [m]. radius: Of a ball around them [m].
        friction: Coulomb coefficient.
    """

    mass: float
    inertia: float
    corners: Array
    radius: float
    friction: float

    @classmethod
    def of_robot(cls, robot: Robot) -> Points:
        """Return the contact points of a planar robot, foot by foot."""
        inertia = robot.model.inertias[3]
        corners = np.vstack([sole.vertices_joint[:, [0, 2]] for sole in robot.soles])
        sole = robot.soles[0]
        return cls(inertia.mass, inertia.inertia[1, 1], corners, sole.radius, sole.friction_dynamic)

    @property
    def masses(self) -> Array:
        """(3,) diagonal of the mass matrix."""
        return np.array([self.mass, self.mass, self.inertia])

    def arms(self, q: Array) -> Array:
        """Return the contact points (..., N, 2) from the CoM, in the world [m]."""
        c, s = np.cos(q[..., 2, None]), np.sin(q[..., 2, None])
        x, z = self.corners.T
        return np.stack([c * x + s * z, c * z - s * x - self.radius], axis=-1)

    def heights(self, q: Array) -> Array:
        """Return the heights (..., N) of the contact points above the floor [m]."""
        return np.asarray(q[..., 1, None] + self.arms(q)[..., 1])

    def velocities(self, q: Array, v: Array) -> Array:
        """Return the velocities (..., N, 2) of the material points that are at the contact points [m/s]."""
        r = self.arms(q)
        turn = v[..., 2, None]
        return np.stack([v[..., 0, None] + turn * r[..., 1], v[..., 1, None] - turn * r[..., 0]], axis=-1)

    def kinetic(self, v: Array) -> Array:
        """Return the kinetic energy (...,) [J]."""
        return np.asarray(0.5 * np.square(v) @ self.masses)


@dataclass(frozen=True, eq=False)
class Throw:
    """A run of n steps.

    Attributes:
        points: The body.
        restitution: e of its contacts. step: Duration of a step [s].
        t: (n + 1,) [s]. q, v: (n + 1, 3) state at these times, (x, z, pitch).
        impulses: (n, N, 2) of the floor on the contact points over each step, (x, z) [N.s].
        unresolved: Steps without a solution.
    """

    points: Points
    restitution: float
    step: float
    t: Array
    q: Array
    v: Array
    impulses: Array
    unresolved: int

    @property
    def free(self) -> Array:
        """(n, 3) velocities after each step if there were no floor."""
        return self.v[:-1] - np.array([0.0, GRAVITY * self.step, 0.0])

    @property
    def wanted(self) -> Array:
        """(n, N) normal velocity below which a contact point may not be after each step [m/s].

        Eq. 4 of the paper: a point that arrives leaves at e times its speed; all others, and all where e is 0, may at
        most reach the floor.
        """
        before, q = self.points.velocities(self.q, self.v)[:-1, :, 1], self.q[:-1]
        height = self.points.heights(q)
        arrives = height + self.step * self.points.velocities(q, self.free)[..., 1] <= 0.0
        bounces = arrives & (-before > REST_SPEED) & (self.restitution > 0.0)
        return np.where(bounces, -self.restitution * before, -height / self.step)

    @property
    def bounces(self) -> Flags:
        """(n,) whether some point arrived in the step and was thrown back."""
        return np.asarray((self.wanted > REST_SPEED * self.restitution).any(axis=1) & self.impulses[..., 1].any(axis=1))

    def residual(self) -> float:
        """Return the largest violation of Signorini's and Coulomb's conditions [m/s], impulses over mass."""
        after = self.points.velocities(self.q[:-1], self.v[1:])
        slack = after[..., 1] - self.wanted
        drag, push = np.moveaxis(self.impulses / self.points.mass, -1, 0)
        slip = after[..., 0]
        spare = self.points.friction * push - np.abs(drag)
        violations = (
            -push,
            -slack,
            np.minimum(push, slack),
            -spare,
            # A point that slides has no friction to spare, and it points backwards.
            np.where(push > 0.0, np.minimum(spare, np.abs(slip)), 0.0),
            np.where(np.abs(slip) > RESIDUAL, drag * np.sign(slip), 0.0),
        )
        return float(max(v.max() for v in violations))

    def gain(self) -> float:
        """Return the most kinetic energy that contact added in any step [J]: never more than rounding."""
        return float((self.points.kinetic(self.v[1:]) - self.points.kinetic(self.free)).max())

    def rise(self) -> float:
        """Return the largest rise of kinetic and potential energy in any step [J]."""
        total = self.points.kinetic(self.v) + self.points.mass * GRAVITY * self.q[:, 1]
        return float(np.diff(total).max())

    def newton(self) -> float:
        """Return the largest |M (v+ - v_free) - J^T impulse| / M of any step [m/s, rad/s]."""
        r = self.points.arms(self.q[:-1])
        x, z = self.impulses[..., 0], self.impulses[..., 1]
        turning = (r[..., 1] * x - r[..., 0] * z).sum(axis=1)
        change = np.column_stack([x.sum(axis=1), z.sum(axis=1), turning]) / self.points.masses
        return float(np.abs(self.v[1:] - self.free - change).max())


def throw(
    robot: Robot, q: Array, v: Array, duration: float, restitution: float = RESTITUTION, step: float = STEP
) -> Throw:
    """Throw a planar body with the contact model ``lcp``."""
    sim = simulator(robot, restitution, step)
    sim.reset(q, v)
    return record(sim, duration, restitution)


def simulator(robot: Robot, restitution: float = RESTITUTION, step: float = STEP) -> Simulator:
    """Return a planar body on the floor under the contact model ``lcp``."""
    params = {"restitution": restitution, "gamma": GAMMA, "rest_speed": REST_SPEED}
    # The paper's time stepping has no events: a gap is closed within the step.
    return Simulator(robot, contact="lcp", physics_dt=step, contact_params=params, events=False)


def record(sim: Simulator, duration: float, restitution: float = RESTITUTION) -> Throw:
    """Return what a planar body does from now on for ``duration`` [s]."""
    robot = sim.robot
    points = Points.of_robot(robot)
    n = round(duration / sim.physics_dt)
    states, speeds, impulses = [sim.q.copy()], [sim.v.copy()], np.zeros((n, len(points.corners), 2))
    nothing = np.zeros(robot.nu)
    for i in range(n):
        contact = sim.advance(nothing)
        states.append(sim.q.copy())
        speeds.append(sim.v.copy())
        impulses[i] = contact.vertex_forces.reshape(-1, 3)[:, [0, 2]] * sim.physics_dt
    t: Array = sim.physics_dt * np.arange(n + 1, dtype=np.float64)
    q, v = np.array(states), np.array(speeds)
    return Throw(points, restitution, sim.physics_dt, t, q, v, impulses, sim.contact.unresolved)


def lawful(run: Throw, name: str = "") -> tuple[Check, ...]:
    """Return the checks that hold for every throw."""
    return (
        Check.at_most(f"{name}complementarity residual of any step", run.residual(), RESIDUAL, "m/s"),
        Check.at_most(f"{name}|v+ - v_free - M^-1 J^T impulse|", run.newton(), 1e-9, "m/s"),
        Check.at_most(f"{name}energy that contact adds in any step", run.gain(), 1e-12, "J"),
        Check.at_most(f"{name}steps without a solution", run.unresolved, 0),
    )
