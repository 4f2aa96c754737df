"""Throw a rigid body in the x-z plane onto the floor, and check the run against the laws of contact.

The laws are written here from the body's geometry, independently of the simulator, to validate its results.
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
"""Restitution of the paper's bodies, and the paper's time step [s]."""
GAMMA = 1e-6
"""Fraction of a position error that a step removes: almost none, as in the paper."""
REST_SPEED = 0.01
"""Impact speed below which a body does not bounce [m/s]."""
RESIDUAL = 1e-9
"""Largest accepted violation of the complementarity conditions [m/s]."""
GRAVITY = 9.81


@dataclass(frozen=True, eq=False)
class Points:
    """Mass and contact points of a body with q = (x, z, pitch) and the CoM at the origin of its frame.

    The pitch is about y.

    Attributes:
        mass, inertia: Mass [kg] and moment of inertia [kg.m^2].
        corners: (N, 2) points (x, z) in the body frame [m].
        radius: Radius of a ball around the points [m].
        friction: Coulomb coefficient.
    """

    mass: float
    inertia: float
    corners: Array
    radius: float
    friction: float

    @classmethod
    def of_robot(cls, robot: Robot) -> Points:
        """Return mass and contact points of a planar robot, foot by foot."""
        inertia = robot.model.inertias[3]
        corners = np.vstack([sole.vertices_joint[:, [0, 2]] for sole in robot.soles])
        sole = robot.soles[0]
        return cls(inertia.mass, inertia.inertia[1, 1], corners, sole.radius, sole.friction_dynamic)

    @property
    def masses(self) -> Array:
        """(3,) diagonal of the mass matrix."""
        return np.array([self.mass, self.mass, self.inertia])

    def arms(self, q: Array) -> Array:
        """Return the contact points (..., N, 2) relative to the CoM, in the world [m]."""
        c, s = np.cos(q[..., 2, None]), np.sin(q[..., 2, None])
        x, z = self.corners.T
        return np.stack([c * x + s * z, c * z - s * x - self.radius], axis=-1)

    def heights(self, q: Array) -> Array:
        """Return the heights (..., N) of the contact points above the floor [m]."""
        return np.asarray(q[..., 1, None] + self.arms(q)[..., 1])

    def velocities(self, q: Array, v: Array) -> Array:
        """Return the velocities (..., N, 2) of the material points at the contact points [m/s]."""
        r = self.arms(q)
        turn = v[..., 2, None]
        return np.stack([v[..., 0, None] + turn * r[..., 1], v[..., 1, None] - turn * r[..., 0]], axis=-1)

    def kinetic(self, v: Array) -> Array:
        """Return the kinetic energy (...,) [J]."""
        return np.asarray(0.5 * np.square(v) @ self.masses)


@dataclass(frozen=True, eq=False)
class Throw:
    """Run of n steps.

    Attributes:
        points: Mass and contact points of the body.
        restitution: Restitution e of its contacts.
        step: Duration of a step [s].
        t: (n + 1,) times [s].
        q, v: (n + 1, 3) states at these times, (x, z, pitch).
        impulses: (n, N, 2) impulses of the floor on the contact points in each step, (x, z) [N.s].
        unresolved: Number of steps without a solution.
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
        """(n, 3) velocities after each step without the floor."""
        return self.v[:-1] - np.array([0.0, GRAVITY * self.step, 0.0])

    @property
    def wanted(self) -> Array:
        """(n, N) minimum normal velocity of each contact point after each step [m/s].

        By eq. 4 of the paper, a point that hits the floor leaves it at e times its speed. All other points, and all
        points with e = 0, may at most reach the floor.
        """
        before, q = self.points.velocities(self.q, self.v)[:-1, :, 1], self.q[:-1]
        height = self.points.heights(q)
        arrives = height + self.step * self.points.velocities(q, self.free)[..., 1] <= 0.0
        bounces = arrives & (-before > REST_SPEED) & (self.restitution > 0.0)
        return np.where(bounces, -self.restitution * before, -height / self.step)

    @property
    def bounces(self) -> Flags:
        """(n,) whether at least one point bounces in the step."""
        return np.asarray((self.wanted > REST_SPEED * self.restitution).any(axis=1) & self.impulses[..., 1].any(axis=1))

    def residual(self) -> float:
        """Return the largest violation of Signorini's and Coulomb's conditions [m/s], with impulses over mass."""
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
            # A sliding point has the full friction, which opposes the slip.
            np.where(push > 0.0, np.minimum(spare, np.abs(slip)), 0.0),
            np.where(np.abs(slip) > RESIDUAL, drag * np.sign(slip), 0.0),
        )
        return float(max(v.max() for v in violations))

    def gain(self) -> float:
        """Return the largest kinetic energy that contact adds in a step [J]; it must not exceed rounding."""
        return float((self.points.kinetic(self.v[1:]) - self.points.kinetic(self.free)).max())

    def rise(self) -> float:
        """Return the largest increase of kinetic plus potential energy in a step [J]."""
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
    """Throw a planar body, with the contact model ``lcp``."""
    sim = simulator(robot, restitution, step)
    sim.reset(q, v)
    return record(sim, duration, restitution)


def simulator(robot: Robot, restitution: float = RESTITUTION, step: float = STEP) -> Simulator:
    """Return a simulator of a planar body on the floor, with the contact model ``lcp``."""
    params = {"restitution": restitution, "gamma": GAMMA, "rest_speed": REST_SPEED}
    # The paper's time stepping has no events: a gap closes within the step.
    return Simulator(robot, contact="lcp", physics_dt=step, contact_params=params, events=False)


def record(sim: Simulator, duration: float, restitution: float = RESTITUTION) -> Throw:
    """Record the motion of a planar body for the next ``duration`` [s]."""
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
    """Return the checks that every throw must pass."""
    return (
        Check.at_most(f"{name}complementarity residual of any step", run.residual(), RESIDUAL, "m/s"),
        Check.at_most(f"{name}|v+ - v_free - M^-1 J^T impulse|", run.newton(), 1e-9, "m/s"),
        Check.at_most(f"{name}energy that contact adds in any step", run.gain(), 1e-12, "J"),
        Check.at_most(f"{name}steps without a solution", run.unresolved, 0),
    )
