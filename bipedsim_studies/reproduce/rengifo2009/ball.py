"""Let a ball reach the ground at v_i, for three values of k_p (eq. 3 and 4, Fig. 4 and 5).

In contact z'' = -k_p z - k_v min(0, z'), for any mass. The ball falls overdamped to its lowest point. The ascent is not
damped, so it is a quarter of a cosine back to z = 0. With k_p = 0 the ball stays at the depth |v_i| / k_v.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim.view import FOOT_COLOURS, LIMIT_COLOUR
from bipedsim_studies.reproduce.common import Check, Figure, Series, body, label, steps, study

K_V = 5000.0
K_P = (0.0, 1.0, 5.0)
SPEED = 1.0
"""Impact speed of the ball [m/s]; the paper gives none."""
MASSES = (0.3, 30.0)
H = 1e-3
DURATION = 2.0
G = 9.81


def drop(k_p: float, mass: float, duration: float = DURATION, h: float = H) -> Series:
    """Let the ball reach the ground at ``SPEED``, and simulate ``duration`` [s].

    Returns:
        Series with t [s], height of the contact point after each step [m], and mean force over the step [N].
    """
    params = {"k_p": k_p, "k_v": K_V, "epsilon": 0.0}
    sim = Simulator(body("ball", mass), contact="feedback_linearised", physics_dt=h, contact_params=params)
    start = np.array([0.0, 0.2, 0.0]), np.array([0.0, -SPEED, 0.0])
    return Series.of(
        {"t": sim.t, "height": sim.q[1] - 0.2, "force": sim.contact.wrench[0, 2]}
        for _ in steps(sim, duration, start=start)
    )


@dataclass(frozen=True)
class BallSolution:
    """Closed form of a contact until the ball returns to z = 0.

    Attributes:
        k_p: Parameter [1/s^2].
        slow, fast: Rates of the overdamped fall [1/s].
        lowest_t, lowest: Time [s] and height [m] of the lowest point.
    """

    k_p: float
    slow: float
    fast: float
    lowest_t: float
    lowest: float

    @classmethod
    def of(cls, k_p: float) -> BallSolution:
        """Return the solution for ``k_p``."""
        root = np.sqrt(0.25 * K_V**2 - k_p)
        fast = 0.5 * K_V + root
        # The product of both rates is k_p. Their difference would lose digits.
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
        """Time at which the ball returns to z = 0 [s]."""
        return np.inf if self.k_p == 0.0 else self.lowest_t + 0.5 * np.pi / np.sqrt(self.k_p)

    def height(self, t: Array) -> Array:
        """Return z(t) [m] until :attr:`back`."""
        fall = np.asarray(self._fall(self.slow, self.fast, t))
        if self.k_p == 0.0:
            return fall
        rise = self.lowest * np.cos(np.sqrt(self.k_p) * (t - self.lowest_t))
        return np.where(t <= self.lowest_t, fall, rise)


Falls = dict[tuple[float, float], Series]


def measure(progress: bool = False) -> Falls:
    """Drop balls of both masses for each of ``K_P``."""
    return {(k_p, mass): drop(k_p, mass) for k_p in K_P for mass in MASSES}


def checks(falls: Falls) -> Iterator[Check]:
    """Yield the checks of heights and forces."""
    light, heavy = MASSES
    for k_p in K_P:
        exact = BallSolution.of(k_p)
        fall = falls[k_p, light]
        before_return = fall.t < exact.back
        error = np.abs(fall.height[before_return] - exact.height(fall.t[before_return])).max()
        yield Check.at_most(f"k_p = {k_p:g}: |height - closed form|", 1e6 * error, 1e-3, "um")
        if k_p == 0.0:
            yield Check.near("k_p = 0: penetration at rest", -1e6 * fall.height[-1], 1e6 * SPEED / K_V, 1e-3, "um")
        else:
            highest = 1e6 * np.abs(fall.height[fall.t > exact.back]).max(initial=0.0)
            yield Check.at_most(f"k_p = {k_p:g}: |height| once back at z = 0", highest, 0.1, "um")
            yield Check.shown(f"k_p = {k_p:g}: back at z = 0 after", exact.back, "s")
        mass_effect = np.abs(fall.height - falls[k_p, heavy].height).max()
        yield Check.at_most(
            f"k_p = {k_p:g}: difference of heights at 100 times the mass", 1e6 * mass_effect, 1e-6, "um"
        )
        yield Check.near(f"k_p = {k_p:g}: force at rest / m g", fall.force[-1] / (light * G), 1.0, 1e-3)
    yield from impact_checks()


def impact_checks() -> Iterator[Check]:
    """Yield the checks of the force at impact, m (g + k_v |v_i|), from the mean force over two short first steps."""
    mass = MASSES[0]
    at_once = mass * (G + K_V * SPEED)
    h = np.array([2e-6, 1e-6])
    mean = np.array([drop(0.0, mass, step, step).force[0] for step in h])
    exact = mass * (G + SPEED * -np.expm1(-K_V * h) / h)
    # The mean over a step is smaller by a term linear in h, which the difference of two steps eliminates.
    first = 2.0 * mean[1] - mean[0]
    yield Check.at_most(
        "|mean force over the first 1 us / closed form - 1|", float(abs(mean[1] / exact[1] - 1.0)), 1e-9
    )
    yield Check.near("force at impact / m (g + k_v |v_i|)", first / at_once, 1.0, 1e-4)


def draw(figure: Figure, falls: Falls) -> None:
    """Draw heights and forces as in Fig. 4 and 5, and the first 1.5 ms."""
    axes = figure.subplots(1, 3)
    for k_p, style, colour in zip(K_P, ("--", "-", ":"), FOOT_COLOURS, strict=False):
        fall, early = falls[k_p, MASSES[0]], drop(k_p, MASSES[0], 1.5e-3, 1e-5)
        look: dict[str, Any] = {"linestyle": style, "color": colour, "label": f"k_p = {k_p:g}, k_v = {K_V:g}"}
        axes[0].plot(fall.t, 1e3 * fall.height, **look)
        axes[1].plot(1e3 * early.t, 1e3 * early.height, **look)
        axes[2].plot(1e3 * early.t, early.force, **look)
    exact = 1e3 * BallSolution.of(0.0).height(early.t)
    axes[1].plot(1e3 * early.t, exact, color=LIMIT_COLOUR, linewidth=0.6, label="closed form, k_p = 0")
    since = "time since the ball arrived"
    label(axes[0], "height: k_p brings the ball back", y="height [mm]", legend="best", time=f"{since} [s]")
    label(axes[1], "height, the first moments", legend="best", time=f"{since} [ms]")
    label(axes[2], "force of the ground on the ball", y="force [N]", legend="best", time=f"{since} [ms]")


case = study(measure, checks, draw, (13.0, 4.0))
