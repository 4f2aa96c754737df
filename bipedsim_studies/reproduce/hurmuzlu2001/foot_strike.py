"""Let a planar biped set one foot down flat while the other toe is in contact (Fig. 5, eq. 6, section 3.3.2).

Three points collide or rest simultaneously. The case compares the outcome of each impact law with one step of the
simulator's contact models. The time step is so short that only the impact matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import fsolve

from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS
from bipedsim_studies.impacts import IMPACT_LAWS, Friction, ImpactResult
from bipedsim_studies.reproduce.common import Check, Figure, label, study
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import Mechanics, X, Z, mechanics, of_soles

ROBOT = "planar_biped"
POINTS = ("rear toe", "front toe", "front heel")
TOUCHING = (0, 2, 3)
"""Indices of ``POINTS`` among toe and heel of the left (rear) foot, then toe and heel of the right foot."""
STEP, HEEL_PITCH, TRUNK_PITCH = 0.5, 0.35, 0.05
"""Distance of the toes [m], pitch of the rear foot and pitch of the trunk [rad]."""
KNEES = (0.5, 0.2)
"""Flexion of the rear and the front knee [rad]."""
DOWN, FORWARD, TRUNK = 0.3, 0.1, 0.8
"""Downward and forward velocity of the front foot, and forward velocity of the trunk [m/s]."""
MODELS = ("one_step", "exact", "lcp", "ncp")
DT = 1e-6
"""Time step of the simulator [s]; gravity changes the velocities by only 1e-5 m/s."""
LIMIT = 1e-4


@dataclass(frozen=True, eq=False)
class FootStrike:
    """Biped on one toe at the touchdown of its other foot.

    Attributes:
        robot: The biped.
        q, v: (9,) its configuration and velocity.
        state: Mass matrix and rows of the four points.
    """

    robot: Robot
    q: Array
    v: Array
    state: Mechanics

    @property
    def normal(self) -> Array:
        """Rows (3, 9) of the vertical velocities of ``POINTS``."""
        return self.state.rows[list(TOUCHING), Z]

    @property
    def tangential(self) -> Array:
        """Rows (3, 9) of the horizontal velocities of ``POINTS``."""
        return self.state.rows[list(TOUCHING), X]

    def law(self, name: str, friction: bool) -> ImpactResult:
        """Return the plastic impact by an impact law, with or without friction."""
        mu = self.robot.soles[0].friction_static
        cone = Friction(self.tangential, mu) if friction else None
        return IMPACT_LAWS[name](self.state.M, self.normal, self.v, 0.0, cone)

    def engine(self, model: str) -> Array:
        """Return the velocity (9,) after one step of the simulator without torques."""
        sim = Simulator(self.robot, contact=model, physics_dt=DT)
        sim.reset(self.q, self.v)
        sim.step(np.zeros(self.robot.nu))
        return sim.v.copy()

    def energy(self, v: Array) -> float:
        """Return the kinetic energy at v (9,) [J]."""
        return 0.5 * float(v @ self.state.M @ v)


def foot_strike() -> FootStrike:
    """Return the biped with its left toe and its whole right foot in contact, at a flat touchdown."""
    robot = load_robot(ROBOT)
    points = of_soles(robot)

    def configuration(unknown: Array) -> Array:
        height, behind, ahead = unknown
        ankle_behind = HEEL_PITCH - TRUNK_PITCH - behind - KNEES[0]
        ankle_ahead = -TRUNK_PITCH - ahead - KNEES[1]
        legs = (behind, KNEES[0], ankle_behind, ahead, KNEES[1], ankle_ahead)
        return np.array([0.0, height, TRUNK_PITCH, *legs])

    def misses(unknown: Array) -> list[float]:
        positions = mechanics(robot, configuration(unknown), np.zeros(9), points).position
        return [positions[0, Z], positions[2, Z], positions[2, X] - positions[0, X] - STEP]

    q = configuration(fsolve(misses, [0.88, 0.05, -0.4], xtol=1e-13))
    state = mechanics(robot, q, np.zeros(9), points)
    # The rear toe rests, the front foot descends level, and the trunk moves forwards without rotation.
    rows = np.vstack([state.rows[0][[X, Z]], state.rows[2][[X, Z]], state.rows[3][[Z]], np.eye(9)[[0, 2]]])
    v = np.linalg.lstsq(rows, np.array([0.0, 0.0, FORWARD, -DOWN, -DOWN, TRUNK, 0.0]), rcond=None)[0]
    return FootStrike(robot, q, v, mechanics(robot, q, v, points))


@dataclass(frozen=True, eq=False)
class FootStrikeResult:
    """Outcomes of the touchdown.

    Attributes:
        strike: State before the impact.
        laws: Impacts by the law's name, which says whether there is friction.
        engine: Velocities (9,) after the impact, by contact model.
    """

    strike: FootStrike
    laws: dict[str, ImpactResult]
    engine: dict[str, Array]


def measure(_progress: bool = False) -> FootStrikeResult:
    """Compute the touchdown with each impact law and contact model."""
    strike = foot_strike()
    laws = {name: strike.law(name, False) for name in ("haug", "moreau")}
    laws |= {f"{name}, friction": strike.law(name, True) for name in ("pfeiffer_glocker", "lotstedt")}
    return FootStrikeResult(strike, laws, {model: strike.engine(model) for model in MODELS})


def checks(result: FootStrikeResult) -> Iterator[Check]:
    """Yield the impulses and velocities of the three points, and their checks."""
    strike = result.strike
    for name, impact in result.laws.items():
        for point, impulse, after in zip(POINTS, impact.impulse, strike.normal @ impact.v_after, strict=True):
            yield Check.shown(f"{name}: impulse of the {point}", impulse, "N.s")
            yield Check.shown("... and its vertical velocity after it", after, "m/s")
    law = result.laws["pfeiffer_glocker, friction"]
    reference = law.v_after
    pull = result.laws["haug"].impulse[0]
    yield Check.at_most("haug, which holds the rear toe: its impulse, a pull", pull, 0.0, "N.s")
    lifts = float(strike.normal[0] @ reference)
    yield Check.at_least("pfeiffer_glocker: the rear toe lifts", lifts, LIMIT, "m/s")
    for model, v in result.engine.items():
        velocity_error = np.abs(np.vstack([strike.normal, strike.tangential]) @ (v - reference)).max()
        yield Check.at_most(f"{model}: velocity of a point - that of pfeiffer_glocker", velocity_error, LIMIT, "m/s")
        lost = strike.energy(v) - strike.energy(strike.v)
        yield Check.near("... its change of energy", lost, law.energy_change, 1e-3, "J")


def draw(figure: Figure, result: FootStrikeResult) -> None:
    """Draw the posture, and impulses and vertical velocities of the three points for each law."""
    strike = result.strike
    posture, impulses, speeds = figure.subplots(1, 3)
    positions = strike.state.position
    for toe, heel, colour in ((0, 1, FOOT_COLOURS[0]), (2, 3, FOOT_COLOURS[1])):
        posture.plot(positions[[toe, heel], X], positions[[toe, heel], Z], "o-", color=colour)
    posture.plot(strike.q[0], strike.q[1], "s", color="#222222")
    posture.axhline(0.0, color="#888888", linewidth=0.8)
    label(posture, "feet and hip", x="x (m)", y="z (m)", aspect="equal")
    width = 0.8 / len(result.laws)
    centres = np.arange(len(POINTS))
    for k, (name, impact) in enumerate(result.laws.items()):
        bar_positions = centres + (k - 0.5 * (len(result.laws) - 1)) * width
        impulses.bar(bar_positions, impact.impulse, width, color=FOOT_COLOURS[k], label=name)
        speeds.bar(bar_positions, strike.normal @ impact.v_after, width, color=FOOT_COLOURS[k], label=name)
    for ax, quantity in ((impulses, "normal impulse (N s)"), (speeds, "vertical velocity after (m/s)")):
        ax.set_xticks(centres, POINTS)
        ax.set_ylabel(quantity)
        ax.axhline(0.0, color="#222222", linewidth=0.8)
    impulses.legend()


case = study(measure, checks, draw, (13.0, 4.0))
