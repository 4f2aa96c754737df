"""The walker of the paper by itself: two equations of motion, instantaneous heel strikes, steps from event to event.

What the engine's walker is held against. Angles are those of the paper: theta_1 of the stance leg from the normal of
the slope, theta_2 of the swinging leg from the stance leg, counter-clockwise for a walk to the right; a state is
(theta_1, theta_1', theta_2, theta_2') [rad, rad/s] just after a heel strike. The equations are written in the absolute
angles A of the stance leg and B of the other, in which their terms are short: eq. 8 to 10 in other coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from bipedsim.controllers.pfl import swing_curve

Array = NDArray[np.float64]

HIP, LEG, INERTIA = 1.0, 0.5, 0.02
"""Masses [kg], inertia of a leg about its centre of mass [kg.m^2]."""
LENGTH, CENTRE = 1.0, 0.5
"""Length of a leg, and its centre of mass below the hip [m]."""
GRAVITY, SLOPE = 1.0, 0.01
"""[m/s^2], [rad]."""
KP, SWING_TIME, TARGET = 100.0, 1.0, 0.28564
"""K_p [1/s^2]; K_d = 2 sqrt(K_p). Time [s] and end [rad] of a swing."""
APART = -0.05
"""Legs pass through the ground until theta_1 is below this [rad]."""
LONGEST = 20.0
"""A step that takes longer [s] is a fall."""

Torque = Callable[[float, Array], float]


class Stride(NamedTuple):
    """One step.

    Attributes:
        duration: [s].
        mid_speed: theta_1' when the stance leg is normal to the slope [rad/s], NaN if it begins beyond.
        after: (4,) state after the heel strike.
        path: (n, 4) states on the way.
    """

    duration: float
    mid_speed: float
    after: Array
    path: Array


def equations(a: float, b: float, da: float, db: float) -> tuple[Array, Array]:
    """Return M (2, 2) and N (2,) of M (A'', B'') + N = (-u, u), u the torque of the hip on the swinging leg."""
    coupling = LEG * CENTRE * LENGTH
    M = np.array(
        [
            [INERTIA + LEG * (LENGTH - CENTRE) ** 2 + (HIP + LEG) * LENGTH**2, -coupling * np.cos(a - b)],
            [-coupling * np.cos(a - b), INERTIA + LEG * CENTRE**2],
        ]
    )
    above = (HIP + LEG) * LENGTH + LEG * (LENGTH - CENTRE)
    N = np.array(
        [
            -coupling * np.sin(a - b) * db**2 - GRAVITY * above * np.sin(a - SLOPE),
            coupling * np.sin(a - b) * da**2 + GRAVITY * LEG * CENTRE * np.sin(b - SLOPE),
        ]
    )
    return M, N


def heel_strike(state: Array) -> Array:
    """Return the state after a plastic impact of the swinging foot, which becomes the stance foot: M dv = J^T p.

    Coordinates are the place of the hip and both angles; the other foot leaves without an impulse.
    """
    a, da, relative, d_relative = state
    angles = np.array([a, a + relative])
    M = np.diag([HIP, HIP, INERTIA, INERTIA])
    for column, angle in enumerate(angles, 2):
        J = np.zeros((2, 4))
        J[:, :2] = np.eye(2)
        J[:, column] = CENTRE * np.array([np.cos(angle), np.sin(angle)])
        M += LEG * J.T @ J
    foot = np.zeros((2, 4))
    foot[:, :2] = np.eye(2)
    foot[:, 3] = LENGTH * np.array([np.cos(angles[1]), np.sin(angles[1])])
    hip = -da * LENGTH * np.array([np.cos(a), np.sin(a)])
    before = np.array([*hip, da, da + d_relative])
    after = before - np.linalg.solve(M, foot.T @ np.linalg.solve(foot @ np.linalg.solve(M, foot.T), foot @ before))
    return np.array([a + relative, after[3], -relative, after[2] - after[3]])


def pfl(state: Array) -> Torque:
    """Return the torque of eq. 12 to 15 for the step that begins with ``state``."""
    curve = swing_curve(state[2], state[3], TARGET, SWING_TIME)
    derivatives = curve, np.polyder(curve), np.polyder(curve, 2)

    def torque(t: float, z: Array) -> float:
        y, dy, ddy = (np.polyval(c, min(t, SWING_TIME)) for c in derivatives)
        wanted = ddy - KP * (z[2] - y) - 2.0 * np.sqrt(KP) * (z[3] - dy)
        M, N = equations(z[0], z[0] + z[2], z[1], z[1] + z[3])
        relative = np.linalg.solve(M.T, [-1.0, 1.0])
        return float((wanted + relative @ N) / (relative @ [-1.0, 1.0]))

    return torque


def stride(state: Array, torque: Torque | None = None) -> Stride:
    """Return the step that begins with ``state`` (4,), without a motor where there is no ``torque``.

    Raises:
        ArithmeticError: The walker falls.
    """

    def rate(t: float, z: Array) -> list[float]:
        M, N = equations(z[0], z[0] + z[2], z[1], z[1] + z[3])
        u = 0.0 if torque is None else torque(t, z)
        ddA, ddB = np.linalg.solve(M, np.array([-u, u]) - N)
        return [z[1], ddA, z[3], ddB - ddA]

    def lands(_t: float, z: Array) -> float:
        return float(z[2] + 2.0 * z[0]) if z[0] < APART else 1.0

    def passes(_t: float, z: Array) -> float:
        return float(z[0])

    lands.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(rate, (0.0, LONGEST), state, events=(lands, passes), rtol=1e-9, atol=1e-10)
    if not len(found.t_events[0]):
        raise ArithmeticError(f"the walker falls from the state {state.tolist()}")
    mid = found.y_events[1]
    return Stride(float(found.t[-1]), float(mid[0][1]) if len(mid) else np.nan, heel_strike(found.y[:, -1]), found.y.T)


def strides(state: Array, count: int, controlled: bool) -> list[Stride]:
    """Return ``count`` steps from ``state``."""
    found: list[Stride] = []
    for _ in range(count):
        found.append(stride(state, pfl(state) if controlled else None))
        state = found[-1].after
    return found
