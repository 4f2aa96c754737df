"""A point mass on the ground, as the engine moves it: the contact, the run, and impacts until the mass leaves."""

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
"""Substep times the rate of the contact. Where n is no integer, errors go with its power 5/2, else with its power 4."""
SUBSTEPS = 100_000
NOTHING = np.zeros(0)


@dataclass(frozen=True)
class Contact:
    """A mass and what it hits.

    Attributes:
        mass: m [kg].
        stiffness: k [N/m^n].
        alpha: Damping [s/m].
        exponent: n.
        alpha_ratio: alpha of the way out over that of the way in.
    """

    mass: float = 1.0
    stiffness: float = 10e3
    alpha: float = 0.5
    exponent: float = 1.0
    alpha_ratio: float = 1.0

    @property
    def rate(self) -> float:
        """Angular frequency of the mass on the spring without damping, for n = 1 [rad/s]."""
        return float(np.sqrt(self.stiffness / self.mass))

    def law(self, depth: Array, speed: Array) -> Array:
        """Return the force of eq. 6 and 7 [N], negative where it would hold the mass."""
        alpha = np.where(speed >= 0.0, self.alpha, self.alpha * self.alpha_ratio)
        return np.asarray(self.stiffness * np.maximum(depth, 0.0) ** self.exponent * (1.0 + 1.5 * alpha * speed))


@lru_cache
def _body(mass: float) -> Robot:
    """Return the point mass of ``mass`` [kg] without gravity, which the paper leaves out."""
    robot = body("mass", mass)
    model = pin.Model(robot.model)
    model.gravity.linear = np.zeros(3)
    return replace(robot, model=model)


def simulator(contact: Contact, h: float, resolution: float = RESOLUTION) -> Simulator:
    """Return the mass of ``contact``, at rest on the surface, in steps of ``h`` [s]."""
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
    """A run of the mass; down is positive, as in the paper.

    It holds t (n,) [s], depth (n,) below the surface [m], speed (n,) into the ground [m/s], the start in row 0, and the
    mean force (n - 1,) of the ground over each step [N].
    """

    @property
    def leaves(self) -> float:
        """Speed out of the ground at the end [m/s]."""
        return -float(self.speed[-1])

    @property
    def midway(self) -> Array:
        """(n - 1,) depth that belongs to ``force`` [m]."""
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
        depth, speed: Where it starts.
        until: Ends the run.
        pull: Force into the ground at (t, depth, speed) [N], held for a step; none by default.
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
    """Tell whether the mass has left the ground."""
    return speed < 0.0 and depth <= 0.0


def impact(contact: Contact, v_start: float, h: float = 1e-3, resolution: float = RESOLUTION) -> ImpactRun:
    """Let the mass hit the ground at ``v_start`` [m/s] and return the run until it has left."""
    return run(simulator(contact, h, resolution), 0.0, v_start, out)
