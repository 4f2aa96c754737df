"""Eq. 5 to 9: a brick that slides down a ramp and is stopped by friction.

Above v_s = (g / k_v)(mu cos a - sin a) friction is mu m g cos a and the brick slows down steadily; below, its velocity
dies off as exp(-k_v t), without a jump of the force, which ends at m g sin a.

The paper's brick is a point: eq. 5 has no moments. Here its centre of mass is put into the plane of its sole, so that
the four vertices carry the same. A brick with a height beside it shows what the printed saturation does there: normal
forces balance the moment of a friction that is cut off, and the brick hops. Ours are solved for again, and it slides.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.reproduce.common import Check, Outcome, at_most, near, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

ROBOT = Path(__file__).parents[2] / "bodies" / "brick" / "robot.yaml"
ANGLE = 0.35
"""Of the ramp [rad]; mu cos a > sin a."""
SPEED = 0.5
"""At the start, down the ramp [m/s]."""
K_V = (50.0, 250.0)
H = 1e-3
DURATION = 0.6
G = 9.81


def flat_brick() -> Robot:
    """Return the brick with its centre of mass in the plane of its sole."""
    robot = load_robot(ROBOT)
    brick = robot.model.inertias[1]
    lever = robot.soles[0].placement_joint_sole.translation
    return robot.with_inertia(1, pin.Inertia(brick.mass, lever, brick.inertia))


@dataclass(frozen=True, eq=False)
class Slide:
    """One slide.

    Attributes:
        t, x, v, friction: (n,) time [s], way and velocity down the ramp [m, m/s], friction up the ramp [N].
        normal: (n, N) of the vertices [N].
    """

    t: Array
    x: Array
    v: Array
    friction: Array
    normal: Array


def slide(robot: Robot, k_v: float, printed: bool = False) -> Slide:
    """Let the brick go down the ramp at ``SPEED``, by the model as it is printed or by ours."""
    ground = Ground.slope(ANGLE)
    params = {"k_p": 0.0, "k_v": k_v, "epsilon": 0.0, **({"resolves": 0} if printed else {})}
    sim = Simulator(robot, ground, "feedback_linearised", physics_dt=H, contact_params=params)
    q = ground.place(robot.q_nominal)
    sim.reset(q, np.array([-SPEED, 0.0, 0.0, 0.0, 0.0, 0.0]))
    axis = pin.XYZQUATToSE3(q).rotation[:, 0]
    rows, normal = [], []
    for _ in range(round(DURATION / H)):
        contact = sim.advance(np.zeros(0))
        velocity = pin.XYZQUATToSE3(sim.q).rotation @ sim.v[:3]
        rows.append((sim.t, -axis @ (sim.q[:3] - q[:3]), -axis @ velocity, contact.impulse[0, 0] / H))
        normal.append(contact.vertex_forces[0, :, 2].copy())
    t, x, v, friction = np.array(rows).T
    return Slide(t, x, v, friction, np.array(normal))


@dataclass(frozen=True)
class Exact:
    """Closed form of eq. 5 with eq. 9.

    Attributes:
        k_v: Parameter [1/s].
        slow: v_s [m/s].
        deceleration: Above it [m/s^2].
        change: When the velocity is v_s [s].
    """

    k_v: float
    slow: float
    deceleration: float
    change: float

    @classmethod
    def of(cls, k_v: float, mu: float) -> Exact:
        """Return the solution for friction ``mu``."""
        deceleration = G * (mu * np.cos(ANGLE) - np.sin(ANGLE))
        slow = deceleration / k_v
        return cls(k_v, slow, deceleration, (SPEED - slow) / deceleration)

    def velocity(self, t: Array) -> Array:
        """Return v(t) [m/s]."""
        late = self.slow * np.exp(-self.k_v * np.maximum(t - self.change, 0.0))
        return np.where(t < self.change, SPEED - self.deceleration * t, late)

    def way(self, t: Array) -> Array:
        """Return x(t) [m]."""
        until = np.minimum(t, self.change)
        early = SPEED * until - 0.5 * self.deceleration * until**2
        return early - self.slow / self.k_v * np.expm1(-self.k_v * np.maximum(t - self.change, 0.0))


def checks(slides: dict[float, Slide], high: Slide, printed: Slide) -> tuple[Check, ...]:
    """Return the figures."""
    robot = load_robot(ROBOT)
    mu, mass = robot.soles[0].friction_dynamic, robot.mass
    found: list[Check] = []
    for k_v, run in slides.items():
        exact = Exact.of(k_v, mu)
        label = f"k_v = {k_v:g}"
        above = (run.t < exact.change) & (run.t > H)
        deceleration = -np.diff(run.v[above]) / H
        found += [
            at_most(f"{label}: |position - closed form|", 1e6 * np.abs(run.x - exact.way(run.t)).max(), 1.0, "um"),
            near(f"{label}: deceleration above v_s", deceleration.mean(), exact.deceleration, 1e-9, "m/s^2"),
            at_most(f"{label}: |velocity - closed form|", np.abs(run.v - exact.velocity(run.t)).max(), 1e-5, "m/s"),
            near(f"{label}: friction at the end", run.friction[-1], mass * G * np.sin(ANGLE), 1e-3, "N"),
            shown(f"{label}: v_s", exact.slow, "m/s"),
        ]
    exact = Exact.of(K_V[-1], mu)
    hops = int(np.sum((printed.normal == 0.0).all(axis=1)))
    return (
        *found,
        at_most("with a height: |position - closed form|", 1e6 * np.abs(high.x - exact.way(high.t)).max(), 10.0, "um"),
        shown("with a height, printed saturation: stops further by", 1e3 * (printed.x[-1] - high.x[-1]), "mm"),
        shown("with a height, printed saturation: steps in the air", hops),
    )


def draw(figure: Figure, slides: dict[float, Slide], printed: Slide) -> None:
    """Draw velocity, friction and the error of the position."""
    robot = load_robot(ROBOT)
    mu, mass = robot.soles[0].friction_dynamic, robot.mass
    axes = figure.subplots(1, 3)
    for k, (k_v, run) in enumerate(slides.items()):
        exact = Exact.of(k_v, mu)
        look = {"color": FOOT_COLOURS[k], "label": f"k_v = {k_v:g}"}
        axes[0].plot(run.t, run.v, **look)
        axes[0].axhline(exact.slow, color=FOOT_COLOURS[k], linewidth=0.6, linestyle=":")
        axes[1].plot(run.t, run.friction, **look)
        axes[2].plot(run.t, 1e9 * np.abs(run.x - exact.way(run.t)), **look)
    for ax, values in zip(axes, (printed.v, printed.friction), strict=False):
        ax.plot(printed.t, values, "--", color=FOOT_COLOURS[2], linewidth=0.8, label="with a height, as printed")
    for force, name in ((mu * np.cos(ANGLE), "mu m g cos a"), (np.sin(ANGLE), "m g sin a")):
        axes[1].axhline(mass * G * force, color=LIMIT_COLOUR, linewidth=0.6)
        axes[1].annotate(name, (DURATION, mass * G * force), xytext=(0, 3), textcoords="offset points", ha="right")
    axes[0].set_ylabel("velocity down the ramp [m/s]")
    axes[1].set_ylabel("friction [N]")
    axes[2].set_ylabel("|position - closed form| [nm]")
    titles = ("velocity, v_s dotted", "friction has no jump", "position against the closed form")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, pad=3)
        ax.set_xlabel("time [s]")
        ax.legend()


def measure() -> tuple[dict[float, Slide], Slide, Slide]:
    """Slide the paper's brick for every ``K_V``, and one with a height for the last of them, by ours and as printed."""
    robot, high = flat_brick(), load_robot(ROBOT)
    slides = {k_v: slide(robot, k_v) for k_v in K_V}
    return slides, slide(high, K_V[-1]), slide(high, K_V[-1], printed=True)


def case(progress: bool) -> Outcome:
    """Run eq. 5 to 9."""
    slides, high, printed = measure()
    return Outcome(checks(slides, high, printed), lambda figure: draw(figure, slides, printed), (13.0, 4.0))
