"""Let a brick slide down a ramp until friction stops it (eq. 5 to 9).

Above v_s = (g / k_v)(mu cos a - sin a), friction is mu m g cos a and the deceleration is constant. Below, the velocity
decays as exp(-k_v t). The force has no jump and ends at m g sin a.

The paper's brick is a point, because eq. 5 has no moments. Here its centre of mass is in the plane of its sole, so the
four vertices carry equal forces. A second brick has a height and shows the effect of the printed saturation. There the
normal forces balance the moment of a friction force that is then limited, and the brick hops. The simulator solves for
the normal forces again, and the brick slides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, Series, body, label, steps, study

ANGLE = 0.35
"""Slope of the ramp [rad]; mu cos a > sin a."""
SPEED = 0.5
"""Initial speed down the ramp [m/s]."""
K_V = (50.0, 250.0)
H = 1e-3
DURATION = 0.6
G = 9.81


def flat_brick() -> Robot:
    """Return the brick with its centre of mass in the plane of its sole."""
    robot = body("brick")
    brick = robot.model.inertias[1]
    lever = robot.soles[0].placement_joint_sole.translation
    return robot.with_inertia(1, pin.Inertia(brick.mass, lever, brick.inertia))


def slide(robot: Robot, k_v: float, printed: bool = False) -> Series:
    """Let the brick slide down the ramp at ``SPEED``, with the model as ``printed`` or as implemented.

    Returns:
        Series with t [s], position x and velocity v down the ramp [m, m/s], friction up the ramp [N], and normal force
        (n, N) of the vertices [N].
    """
    ground = Ground.slope(ANGLE)
    params = {"k_p": 0.0, "k_v": k_v, "epsilon": 0.0, **({"resolves": 0} if printed else {})}
    sim = Simulator(robot, ground, "feedback_linearised", physics_dt=H, contact_params=params)
    q = ground.place(robot.q_nominal)
    axis = pin.XYZQUATToSE3(q).rotation[:, 0]
    return Series.of(
        {
            "t": sim.t,
            "x": -axis @ (sim.q[:3] - q[:3]),
            "v": -axis @ (pin.XYZQUATToSE3(sim.q).rotation @ sim.v[:3]),
            "friction": sim.contact.impulse[0, 0] / H,
            "normal": sim.contact.vertex_forces[0, :, 2],
        }
        for _ in steps(sim, DURATION, start=(q, np.array([-SPEED, 0.0, 0.0, 0.0, 0.0, 0.0])))
    )


class Slides(NamedTuple):
    """The paper's brick for each of ``K_V``, and a brick with a height for the last of them, solved and as printed."""

    flat: dict[float, Series]
    high: Series
    printed: Series


def measure(progress: bool = False) -> Slides:
    """Simulate all bricks."""
    flat, high = flat_brick(), body("brick")
    return Slides({k_v: slide(flat, k_v) for k_v in K_V}, slide(high, K_V[-1]), slide(high, K_V[-1], printed=True))


@dataclass(frozen=True)
class BrickSolution:
    """Closed form of eq. 5 with eq. 9.

    Attributes:
        k_v: Parameter [1/s].
        slow: v_s [m/s].
        deceleration: Deceleration above v_s [m/s^2].
        change: Time at which the velocity reaches v_s [s].
    """

    k_v: float
    slow: float
    deceleration: float
    change: float

    @classmethod
    def of(cls, k_v: float, mu: float) -> BrickSolution:
        """Return the solution for the friction coefficient ``mu``."""
        deceleration = G * (mu * np.cos(ANGLE) - np.sin(ANGLE))
        slow = deceleration / k_v
        return cls(k_v, slow, deceleration, (SPEED - slow) / deceleration)

    def velocity(self, t: Array) -> Array:
        """Return v(t) [m/s]."""
        decaying = self.slow * np.exp(-self.k_v * np.maximum(t - self.change, 0.0))
        return np.where(t < self.change, SPEED - self.deceleration * t, decaying)

    def way(self, t: Array) -> Array:
        """Return x(t) [m]."""
        until = np.minimum(t, self.change)
        early = SPEED * until - 0.5 * self.deceleration * until**2
        return early - self.slow / self.k_v * np.expm1(-self.k_v * np.maximum(t - self.change, 0.0))


def checks(slides: Slides) -> Iterator[Check]:
    """Yield the checks of the slides."""
    robot = body("brick")
    mu, mass = robot.soles[0].friction_dynamic, robot.mass
    for k_v, run in slides.flat.items():
        exact = BrickSolution.of(k_v, mu)
        name = f"k_v = {k_v:g}"
        above = (run.t < exact.change) & (run.t > H)
        deceleration = -np.diff(run.v[above]) / H
        yield Check.at_most(
            f"{name}: |position - closed form|", 1e6 * np.abs(run.x - exact.way(run.t)).max(), 1.0, "um"
        )
        yield Check.near(f"{name}: deceleration above v_s", deceleration.mean(), exact.deceleration, 1e-9, "m/s^2")
        yield Check.at_most(
            f"{name}: |velocity - closed form|", np.abs(run.v - exact.velocity(run.t)).max(), 1e-5, "m/s"
        )
        yield Check.near(f"{name}: friction at the end", run.friction[-1], mass * G * np.sin(ANGLE), 1e-3, "N")
        yield Check.shown(f"{name}: v_s", exact.slow, "m/s")
    _, high, printed = slides
    position_error = np.abs(high.x - exact.way(high.t)).max()
    hops = int(np.sum((printed.normal == 0.0).all(axis=1)))
    yield Check.at_most("with a height: |position - closed form|", 1e6 * position_error, 10.0, "um")
    yield Check.shown("with a height, printed saturation: stops further by", 1e3 * (printed.x[-1] - high.x[-1]), "mm")
    yield Check.shown("with a height, printed saturation: steps in the air", hops)


def draw(figure: Figure, slides: Slides) -> None:
    """Draw velocity, friction and the position error."""
    robot = body("brick")
    mu, mass = robot.soles[0].friction_dynamic, robot.mass
    axes = figure.subplots(1, 3)
    for colour, (k_v, run) in zip(FOOT_COLOURS, slides.flat.items(), strict=False):
        exact = BrickSolution.of(k_v, mu)
        error = 1e9 * np.abs(run.x - exact.way(run.t))
        for ax, values in zip(axes, (run.v, run.friction, error), strict=True):
            ax.plot(run.t, values, color=colour, label=f"k_v = {k_v:g}")
        axes[0].axhline(exact.slow, color=colour, linewidth=0.6, linestyle=":")
    printed = slides.printed
    for ax, values in zip(axes, (printed.v, printed.friction), strict=False):
        ax.plot(printed.t, values, "--", color=FOOT_COLOURS[2], linewidth=0.8, label="with a height, as printed")
    for force, name in ((mu * np.cos(ANGLE), "mu m g cos a"), (np.sin(ANGLE), "m g sin a")):
        axes[1].axhline(mass * G * force, color=LIMIT_COLOUR, linewidth=0.6)
        axes[1].annotate(name, (DURATION, mass * G * force), xytext=(0, 3), textcoords="offset points", ha="right")
    label(axes[0], "velocity, v_s dotted", y="velocity down the ramp [m/s]", legend="best", time="time [s]")
    label(axes[1], "friction has no jump", y="friction [N]", legend="best", time="time [s]")
    deviation = "|position - closed form| [nm]"
    label(axes[2], "position against the closed form", y=deviation, legend="best", time="time [s]")


case = study(measure, checks, draw, (13.0, 4.0))
