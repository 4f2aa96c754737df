"""Compute the paper's walker from event to event, under PFL or passive, as a reference for the simulated walker.

:mod:`bipedsim_studies.stability.straight_legs` defines its angles.
"""

from __future__ import annotations

import numpy as np

from bipedsim.control.output import swing_curve
from bipedsim.numerics import Array
from bipedsim_studies.stability import StraightLegs, Stride, Torque

SLOPE = 0.01
"""Slope of the ground [rad]."""
WALKER = StraightLegs(hip=1.0, leg=0.5, inertia=0.02, length=1.0, centre=0.5, gravity=1.0, slope=SLOPE)
KP, SWING_TIME, TARGET = 100.0, 1.0, 0.28564
"""K_p [1/s^2] with K_d = 2 sqrt(K_p), duration [s] of a swing and its final angle [rad]."""


def pfl(state: Array) -> Torque:
    """Return the torque of eq. 12 to 15 for the step that begins with ``state``."""
    curve = swing_curve(state[2], state[3], TARGET, SWING_TIME)
    derivatives = curve, np.polyder(curve), np.polyder(curve, 2)

    def torque(t: float, z: Array) -> float:
        y, dy, ddy = (np.polyval(c, min(t, SWING_TIME)) for c in derivatives)
        desired = ddy - KP * (z[2] - y) - 2.0 * np.sqrt(KP) * (z[3] - dy)
        M, N = WALKER.equations(z[0], z[0] + z[2], z[1], z[1] + z[3])
        relative = np.linalg.solve(M.T, [-1.0, 1.0])
        return float((desired + relative @ N) / (relative @ [-1.0, 1.0]))

    return torque


def strides(state: Array, count: int, controlled: bool) -> list[Stride]:
    """Return ``count`` steps from ``state``.

    Raises:
        NoReturnError: The walker falls.
    """
    sequence: list[Stride] = []
    for _ in range(count):
        sequence.append(WALKER.stride(state, pfl(state) if controlled else None))
        state = sequence[-1].after
    return sequence
