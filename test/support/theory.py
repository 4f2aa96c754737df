"""Theoretical accuracy of each contact model: the tolerances of everything in test/physics.

A new entry of ``CONTACT_MODELS`` has the strictest tolerances, those of rigid bodies, until ``THEORY`` states its
limitations and their reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from physics_support import G

from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot
from bipedsim.sim.simulator import Simulator

MODELS = list(CONTACT_MODELS)


@dataclass(frozen=True)
class Theory:
    """Accuracy of a model.

    Attributes:
        rigid: Feet are not compliant: a step ends at the required contact velocity, and contacts store no energy.
        depth: Static depth [m] of a vertex under a load [N].
        landing: Maximum depth [m] of a vertex after the impact of a mass [kg] at a speed [m/s].
        rest: Time [s] until a body is at rest to ``force``, a relative error of its force, and 2 % of ``depth``.
        grip: Fraction of mu up to which a box on a slope sticks.
        tip: Fraction of the push m g l / h up to which a box of 2 kg, h = 0.1 m and l = 0.05 m, stands.
        give: Displacement [m] of a sticking vertex under a tangential force [N].
        creep: Displacement [m] of a sticking body in a second.
        drift: Displacement [m] of a foot of a biped in squats of 3 s.
        same: Effect [m, rad] of rounding on a body that slides, spins and comes to rest.
        params: Parameters for bodies of a few kg, as (name, value).
    """

    rigid: bool = True
    depth: Callable[[float], float] = lambda load: 0.0
    landing: Callable[[float, float], float] = lambda mass, speed: 1e-6 * speed
    rest: float = 1.0
    force: float = 1e-9
    grip: float = 0.999
    tip: float = 0.999
    give: Callable[[float], float] = lambda force: 0.0
    creep: float = 1e-9
    drift: float = 1e-8
    same: float = 1e-7
    params: tuple[tuple[str, float], ...] = ()


# Parameters of feedback_linearised.
K_P, K_V, EPSILON = 500.0, 250.0, 5e-5
# ... and of nonlinear_damping [N/m], its springs and its bristles alike.
STIFFNESS = 1e5


def _sprung_landing(mass: float, speed: float) -> float:
    """Return how deep one spring is when all energy is in it: k x^2 / 2 = m v^2 / 2 + m g x."""
    sag = mass * G / STIFFNESS
    return float(sag + np.sqrt(sag**2 + mass * speed**2 / STIFFNESS))


THEORY = {
    # Vertices of a rigid sole share its load in more than one way. A term of 1e-7 of their mobility prefers the
    # distribution of the last step. Thus a height error of 1e-17 m moves 1e-4 of the load for a step, and friction with
    # it.
    "lcp": Theory(same=1e-5),
    "ncp": Theory(same=1e-5),
    # A vertex in contact moves by x'' = -k_v x' - k_p (x - epsilon) under any load. It rests at epsilon, reached at the
    # rate k_p / k_v (2 per s: 4 s leave 3e-4 of the way). It is v / k_v deeper after a landing. Along the ground k_v
    # alone acts, so that a displaced foot does not return: it creeps by rounding and saturation. A rear edge may be
    # required to rise at k_p epsilon. This takes (I + m h^2) k_p epsilon / (2 l) = 0.01 N.m of the 0.98 N.m that hold a
    # box of 2 kg.
    "feedback_linearised": Theory(
        rigid=False,
        depth=lambda load: EPSILON,
        landing=lambda mass, speed: EPSILON + speed / K_V,
        rest=4.0,
        force=1e-6,
        grip=0.99,
        tip=0.98,
        give=lambda force: EPSILON,
        creep=1e-6,
        drift=1e-6,
    ),
    # Springs at the vertices. Damping is in proportion to the load, small for a light body. With alpha 20, four
    # vertices under a box of 2 kg have a damping ratio of 3/4 alpha g sqrt(m / k) = 0.33. Bristles stick without creep;
    # a pull bends them by f / k. The front edge of a box that is about to tip is d = m g / 2 k deep. Its centre is h d
    # / (2 l) nearer to it: 0.2 % of l, and twice that while it rings.
    "nonlinear_damping": Theory(
        rigid=False,
        depth=lambda load: load / STIFFNESS,
        landing=_sprung_landing,
        rest=2.0,
        force=1e-6,
        grip=0.99,
        tip=0.994,
        give=lambda force: force / STIFFNESS,
        drift=2e-6,
        params=(("alpha", 20.0),),
    ),
}


def theory(model: str) -> Theory:
    """Return the accuracy of a model."""
    return THEORY.get(model, Theory())


def simulator(
    robot: Robot,
    model: str,
    ground: Ground | None = None,
    physics_dt: float = 1e-3,
    control_dt: float | None = None,
) -> Simulator:
    """Return a body of a few kg under ``model``."""
    params = dict(theory(model).params)
    return Simulator(robot, ground, model, physics_dt=physics_dt, control_dt=control_dt, contact_params=params)


def run(sim: Simulator, duration: float) -> None:
    """Let time [s] pass; nothing is actuated."""
    for _ in range(round(duration / sim.physics_dt)):
        sim.advance(np.zeros(sim.robot.nu))
