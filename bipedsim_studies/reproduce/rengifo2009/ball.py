"""Eq. 3 and 4, Fig. 4 and 5: a ball that reaches the ground at v_i, for three values of k_p.

In contact z'' = -k_p z - k_v min(0, z'), whatever the mass: an overdamped fall to the lowest point, then, as nothing
damps what rises, a quarter of a cosine back to z = 0. With k_p = 0 the ball stays at the depth |v_i| / k_v.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from bipedsim.model import Robot, load_robot
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.reproduce.common import Check, Outcome, at_most, near, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

ROBOT = Path(__file__).parents[2] / "bodies" / "ball" / "robot.yaml"
K_V = 5000.0
K_P = (0.0, 1.0, 5.0)
SPEED = 1.0
"""Speed at which the ball arrives [m/s]; the paper names none."""
MASSES = (0.3, 30.0)
H = 1e-3
DURATION = 2.0
G = 9.81


def ball_of(mass: float) -> Robot:
    """Return the ball with another ``mass`` [kg]."""
    robot = load_robot(ROBOT)
    joint = robot.soles[0].joint_id
    ball = robot.model.inertias[joint]
    return robot.with_inertia(joint, pin.Inertia(mass, ball.lever, mass / ball.mass * ball.inertia))


@dataclass(frozen=True, eq=False)
class Fall:
    """One contact, from the moment at which the ball arrives.

    Attributes:
        t, height, force: (n,) time [s], height of the contact point [m] after each step, mean force over it [N].
    """

    t: Array
    height: Array
    force: Array


def drop(k_p: float, mass: float, duration: float = DURATION, h: float = H) -> Fall:
    """Let the ball reach the ground at ``SPEED`` and follow it for ``duration`` [s]."""
    robot = ball_of(mass)
    params = {"k_p": k_p, "k_v": K_V, "epsilon": 0.0}
    sim = Simulator(robot, contact="feedback_linearised", physics_dt=h, contact_params=params)
    sim.reset(np.array([0.0, 0.2, 0.0]), np.array([0.0, -SPEED, 0.0]))
    rows = []
    for _ in range(round(duration / h)):
        contact = sim.advance(np.zeros(0))
        rows.append((sim.t, sim.q[1] - 0.2, contact.wrench[0, 2]))
    t, height, force = np.array(rows).T
    return Fall(t, height, force)


@dataclass(frozen=True)
class Exact:
    """Closed form of a contact until the ball is back at z = 0.

    Attributes:
        k_p: Parameter [1/s^2].
        slow, fast: Rates of the overdamped fall [1/s].
        lowest_t, lowest: When and how deep [s, m].
    """

    k_p: float
    slow: float
    fast: float
    lowest_t: float
    lowest: float

    @classmethod
    def of(cls, k_p: float) -> Exact:
        """Return the solution for ``k_p``."""
        root = np.sqrt(0.25 * K_V**2 - k_p)
        fast = 0.5 * K_V + root
        # The product of both is k_p; the difference would lose its digits.
        slow = k_p / fast
        if k_p == 0.0:
            return cls(k_p, slow, fast, np.inf, -SPEED / K_V)
        t = np.log(fast / slow) / (fast - slow)
        return cls(k_p, slow, fast, t, float(cls._fall(slow, fast, t)))

    @staticmethod
    def _fall(slow: float, fast: float, t: Array | float) -> Array | float:
        return -SPEED / (fast - slow) * (np.exp(-slow * t) - np.exp(-fast * t))

    @property
    def back(self) -> float:
        """When the ball is at z = 0 again [s]."""
        return np.inf if self.k_p == 0.0 else self.lowest_t + 0.5 * np.pi / np.sqrt(self.k_p)

    def height(self, t: Array) -> Array:
        """Return z(t) [m] until :attr:`back`."""
        fall = np.asarray(self._fall(self.slow, self.fast, t))
        if self.k_p == 0.0:
            return fall
        rise = self.lowest * np.cos(np.sqrt(self.k_p) * (t - self.lowest_t))
        return np.where(t <= self.lowest_t, fall, rise)


def checks(falls: dict[tuple[float, float], Fall]) -> tuple[Check, ...]:
    """Return the figures."""
    found: list[Check] = []
    light, heavy = MASSES
    for k_p in K_P:
        exact = Exact.of(k_p)
        fall = falls[k_p, light]
        kept = fall.t < exact.back
        error = np.abs(fall.height[kept] - exact.height(fall.t[kept])).max()
        found.append(at_most(f"k_p = {k_p:g}: |height - closed form|", 1e6 * error, 1e-3, "um"))
        if k_p == 0.0:
            found.append(near("k_p = 0: penetration at rest", -1e6 * fall.height[-1], 1e6 * SPEED / K_V, 1e-3, "um"))
        else:
            after = np.abs(fall.height[fall.t > exact.back])
            highest = 1e6 * after.max(initial=0.0)
            found.append(at_most(f"k_p = {k_p:g}: |height| once back at z = 0", highest, 0.1, "um"))
            found.append(shown(f"k_p = {k_p:g}: back at z = 0 after", exact.back, "s"))
        same = np.abs(fall.height - falls[k_p, heavy].height).max()
        found.append(at_most(f"k_p = {k_p:g}: difference of heights at 100 times the mass", 1e6 * same, 1e-6, "um"))
        found.append(near(f"k_p = {k_p:g}: force at rest / m g", fall.force[-1] / (light * G), 1.0, 1e-3))
    return (*found, *impact_checks())


def impact_checks() -> list[Check]:
    """Return the force at impact, m (g + k_v |v_i|), read from the mean force over ever shorter first steps."""
    mass = MASSES[0]
    at_once = mass * (G + K_V * SPEED)
    h = np.array([2e-6, 1e-6])
    mean = np.array([drop(0.0, mass, step, step).force[0] for step in h])
    exact = mass * (G + SPEED * -np.expm1(-K_V * h) / h)
    # The mean over a step is less by a term in h, which two steps remove.
    first = 2.0 * mean[1] - mean[0]
    return [
        at_most("|mean force over the first 1 us / closed form - 1|", float(abs(mean[1] / exact[1] - 1.0)), 1e-9),
        near("force at impact / m (g + k_v |v_i|)", first / at_once, 1.0, 1e-4),
    ]


def draw(figure: Figure, falls: dict[tuple[float, float], Fall]) -> None:
    """Draw heights and forces as Fig. 4 and 5 do, and the first millisecond."""
    axes = figure.subplots(1, 3)
    styles = ("--", "-", ":")
    early = {k_p: drop(k_p, MASSES[0], 1.5e-3, 1e-5) for k_p in K_P}
    for k_p, style, colour in zip(K_P, styles, FOOT_COLOURS, strict=False):
        fall = falls[k_p, MASSES[0]]
        look = {"linestyle": style, "color": colour}
        label = f"k_p = {k_p:g}, k_v = {K_V:g}"
        axes[0].plot(fall.t, 1e3 * fall.height, label=label, **look)
        axes[1].plot(1e3 * early[k_p].t, 1e3 * early[k_p].height, label=label, **look)
        axes[2].plot(1e3 * early[k_p].t, early[k_p].force, label=label, **look)
    exact = Exact.of(0.0)
    t = early[0.0].t
    axes[1].plot(1e3 * t, 1e3 * exact.height(t), color=LIMIT_COLOUR, linewidth=0.6, label="closed form, k_p = 0")
    for ax, title, unit in zip(
        axes,
        ("height: k_p brings the ball back", "height, the first moments", "force of the ground on the ball"),
        ("s", "ms", "ms"),
        strict=True,
    ):
        ax.set_title(title, pad=3)
        ax.set_xlabel(f"time since the ball arrived [{unit}]")
        ax.legend()
    axes[0].set_ylabel("height [mm]")
    axes[2].set_ylabel("force [N]")


def measure() -> dict[tuple[float, float], Fall]:
    """Drop balls of both masses for every ``K_P``."""
    return {(k_p, mass): drop(k_p, mass) for k_p in K_P for mass in MASSES}


def case(progress: bool) -> Outcome:
    """Run Fig. 4 and 5."""
    falls = measure()
    return Outcome(checks(falls), lambda figure: draw(figure, falls), (13.0, 4.0))
