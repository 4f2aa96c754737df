"""Simulate a point mass that hits the ground, until it leaves the ground."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pinocchio as pin

from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim_studies.reproduce.common import Series, body

RESOLUTION = 0.001
"""Substep times the rate of the contact. Errors scale with its power 4, or 5/2 if n is not an integer."""
SUBSTEPS = 100_000
NOTHING = np.zeros(0)


@dataclass(frozen=True)
class PointContact:
    """Mass and its contact with the ground.

    Attributes:
        mass: m [kg].
        stiffness: k [N/m^n].
        alpha: Damping [s/m].
        exponent: n.
        alpha_ratio: alpha during restitution over alpha during compression.
    """

    mass: float = 1.0
    stiffness: float = 10e3
    alpha: float = 0.5
    exponent: float = 1.0
    alpha_ratio: float = 1.0

    @property
    def rate(self) -> float:
        """Angular frequency of the undamped mass on the spring for n = 1 [rad/s]."""
        return float(np.sqrt(self.stiffness / self.mass))

    def law(self, depth: Array, speed: Array) -> Array:
        """Return the force of eq. 6 and 7 [N]; it is negative where it would hold the mass."""
        alpha = np.where(speed >= 0.0, self.alpha, self.alpha * self.alpha_ratio)
        return np.asarray(self.stiffness * np.maximum(depth, 0.0) ** self.exponent * (1.0 + 1.5 * alpha * speed))


@lru_cache
def _body(mass: float) -> Robot:
    """Return the point mass of ``mass`` [kg] without gravity, which the paper omits."""
    robot = body("mass", mass)
    model = pin.Model(robot.model)
    model.gravity.linear = np.zeros(3)
    return replace(robot, model=model)


def simulator(contact: PointContact, h: float, resolution: float = RESOLUTION) -> Simulator:
    """Return a simulator with the mass of ``contact`` at rest on the surface, in steps of ``h`` [s]."""
    params = {
        "stiffness": contact.stiffness,
        "exponent": contact.exponent,
        "alpha": contact.alpha,
        "alpha_ratio": contact.alpha_ratio,
        "resolution": resolution,
        "max_substeps": SUBSTEPS,
    }
    return Simulator(_body(contact.mass), contact="nonlinear_damping", physics_dt=h, contact_params=params)


class ImpactRun(Series):
    """Run of the mass, with positive values downwards as in the paper.

    It contains t (n,) [s], depth (n,) below the surface [m] and speed (n,) into the ground [m/s]. The initial state is
    in row 0. It also contains the mean ground reaction force (n - 1,) over each step [N].
    """

    @property
    def leaves(self) -> float:
        """Final speed out of the ground [m/s]."""
        return -float(self.speed[-1])

    @property
    def midway(self) -> Array:
        """(n - 1,) depth that corresponds to ``force`` [m]."""
        return np.asarray(0.5 * (self.depth[:-1] + self.depth[1:]))


def run(
    sim: Simulator,
    depth: float,
    speed: float,
    until: Callable[[float, float, float], bool],
    pull: Callable[[float, float, float], float] | None = None,
) -> ImpactRun:
    """Move the mass from ``depth`` [m] and ``speed`` [m/s] until ``until(t, depth, speed)``.

    Args:
        sim: From :func:`simulator`.
        depth, speed: Initial state.
        until: Ends the run.
        pull: Force into the ground at (t, depth, speed) [N], constant during a step; none by default.
    """
    sim.reset(np.array([-depth]), np.array([-speed]))

    def rows() -> Iterator[dict[str, float]]:
        state, force = (0.0, depth, speed), 0.0
        while True:
            yield dict(zip(("t", "depth", "speed", "force"), (*state, force), strict=True))
            if until(*state):
                return
            if pull is not None:
                sim.push(np.array([0.0, 0.0, -pull(*state), 0.0, 0.0, 0.0]))
            force = float(sim.advance(NOTHING).wrench[0, 2])
            state = (sim.t, -float(sim.q[0]), -float(sim.v[0]))

    motion = ImpactRun.of(rows())
    motion["force"] = motion.force[1:]
    return motion


def out(t: float, depth: float, speed: float) -> bool:
    """Return whether the mass has left the ground."""
    return speed < 0.0 and depth <= 0.0


def impact(contact: PointContact, v_start: float, h: float = 1e-3, resolution: float = RESOLUTION) -> ImpactRun:
    """Let the mass hit the ground at ``v_start`` [m/s], and return the run until it leaves the ground."""
    return run(simulator(contact, h, resolution), 0.0, v_start, out)
