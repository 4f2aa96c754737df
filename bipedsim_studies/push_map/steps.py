"""Compute the largest push that steps can recover from: N-step capturability of the linear inverted pendulum.

The DCM is xi = c + c'/omega, and its counterpart is eta = c - c'/omega. Between two touch-downs, they obey
xi' = omega (xi - p) and eta' = -omega (eta - p). The ZMP p is in the stance sole. For every motion of p until the
touch-down, a constant ZMP in the same sole has the same effect on xi. For given step times, foot positions and DCM are
therefore linearly related. The largest push after which the DCM ends inside the last sole is the solution of a linear
programme. The step times are searched on a grid. T. Koolen, T. de Boer, J. Rebula, A. Goswami, J. Pratt,
"Capturability-based analysis and control of legged locomotion, part 1" (2012), derive closed forms for point feet and
identical steps.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bipedsim.config import param
from bipedsim.dynamics import edge_lines
from bipedsim.numerics import Array, reach

_LATER = (1.0, 1.5, 2.25, 3.4)
"""Step times that are tried, relative to the shortest one."""
_SIDES = 12
"""Number of sides of the polygon that approximates a circle."""
_TIMES = 5
"""Number of durations that are tried for the current step."""


@dataclass(frozen=True)
class StepLimits:
    """Limits of the steps that the bound assumes to be possible."""

    quickest: float = param(0.15, "minimum duration of a step, and until an airborne foot lands", unit="s", low=1e-6)
    speed: float = param(2.0, "maximum mean horizontal speed of a foot", unit="m/s", low=1e-6)
    most: int = param(2, "maximum number of steps", low=0)


class PrePushState(NamedTuple):
    """State of a robot just before a push, in a frame with x along its heading.

    Attributes:
        soles: Outlines of both soles relative to their centres, (N, 2) each [m].
        feet: (2, 2) centres of both feet [m].
        carries: For each foot, whether it carries load.
        com, dcm: (2,) centre of mass and divergent component of motion [m].
        narrow: Minimum lateral distance between the centres of the feet at a touch-down [m].
        away: Maximum horizontal distance of a loaded foot from the CoM [m].
    """

    soles: tuple[Array, Array]
    feet: Array
    carries: tuple[bool, bool]
    com: Array
    dcm: Array
    narrow: float
    away: float


def capture_bound(
    stride: PrePushState, omega: float, angle: float, duration: float, limits: StepLimits, hull: Array
) -> float:
    """Return the largest J / (m omega) [m] towards ``angle`` [rad] from which the robot can be brought to rest.

    The robot uses fixed feet or up to ``limits.most`` steps. Its CoM height is constant, and its angular momentum is
    zero, so hip and arm motions can exceed the bound. The feet never cross.

    Args:
        stride: State of the robot before the push.
        omega: sqrt(g / z) [1/s].
        angle: Direction of the push, from the heading to the left [rad].
        duration: Duration of the push with constant force [s].
        limits: Limits of the steps.
        hull: (n, 2) support polygon, counter-clockwise [m].
    """
    direction = np.array([math.cos(angle), math.sin(angle)])
    # A force over a finite time moves the DCM less than an instantaneous impulse.
    spread = (1.0 - math.exp(-omega * duration)) / (omega * duration)
    best = reach(hull, stride.dcm, direction) / spread
    swings = [k for k in (0, 1) if not stride.carries[k]] or [0, 1]
    longest = limits.quickest * _LATER[-1]
    for swing in swings:
        first = np.linspace(max(limits.quickest, duration), longest, _TIMES)
        for steps in range(1, limits.most + 1):
            later_times = [limits.quickest * factor for factor in _LATER]
            for times in itertools.product(first, *[later_times] * (steps - 1)):
                best = max(best, _largest(stride, omega, direction * spread, swing, times, limits.speed))
    return best


def _largest(
    stride: PrePushState, omega: float, dcm_shift: Array, swing: int, times: tuple[float, ...], speed: float
) -> float:
    """Return the largest push, as in :func:`capture_bound`, for alternate steps that start with foot ``swing``.

    The variables are the size of the push, and for each step its ZMP and its foot position, both (2,).
    """
    import scipy

    count = len(times)
    size = 1 + 4 * count
    rows: list[Array] = []
    upper_bounds: list[float] = []

    def point(value: Array) -> Array:
        return np.column_stack([np.zeros((2, size)), value])

    def variable(index: int) -> Array:
        selector = np.zeros((2, size + 1))
        selector[:, index : index + 2] = np.eye(2)
        return selector

    def within(normals: Array, bounds: Array, point: Array) -> None:
        """Add the constraint normals @ point <= bounds. ``point`` (2, size + 1) has coefficients and a constant."""
        rows.extend(normals @ point[:, :-1])
        upper_bounds.extend(bounds - normals @ point[:, -1])

    angles = 2.0 * math.pi * np.arange(_SIDES) / _SIDES
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    stance, lift_off = point(stride.feet[1 - swing]), point(stride.feet[swing])
    side = 1.0 if stride.feet[swing, 1] > stride.feet[1 - swing, 1] else -1.0
    xi, eta = point(stride.dcm), point(2.0 * stride.com - stride.dcm)
    xi[:, 0] = dcm_shift
    # A velocity change shifts DCM and its counterpart by the same distance in opposite directions.
    eta[:, 0] = -dcm_shift
    foot = swing
    for k, time in enumerate(times):
        sole = edge_lines(stride.soles[1 - foot])
        zmp, landing = variable(1 + 4 * k), variable(3 + 4 * k)
        within(sole[:, :2], sole[:, 2], zmp - stance)
        grown, decayed = math.exp(omega * time), math.exp(-omega * time)
        xi, eta = zmp + grown * (xi - zmp), zmp + decayed * (eta - zmp)
        com = 0.5 * (xi + eta)
        within(circle, np.full(_SIDES, speed * time), landing - lift_off)
        within(np.array([[0.0, -side]]), np.array([-stride.narrow]), landing - stance)
        for standing in (landing, stance):
            within(circle, np.full(_SIDES, stride.away), com - standing)
        lift_off, stance = stance, landing
        foot, side = 1 - foot, -side
    sole = edge_lines(stride.soles[1 - foot])
    within(sole[:, :2], sole[:, 2], xi - stance)
    cost = np.zeros(size)
    cost[0] = -1.0
    bounds = [(0.0, None), *[(None, None)] * (size - 1)]
    solution = scipy.optimize.linprog(cost, np.array(rows), np.array(upper_bounds), bounds=bounds)
    return float(solution.x[0]) if solution.success else 0.0
