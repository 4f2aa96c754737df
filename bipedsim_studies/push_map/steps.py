"""The hardest push that steps can catch at all: N-step capturability of the linear inverted pendulum.

Between two touch-downs the DCM xi = c + c'/omega and its mirror image eta = c - c'/omega obey xi' = omega (xi - p),
eta' = -omega (eta - p), with the ZMP p in the sole that stands. What p does to xi until the foot lands, some constant
ZMP in the same sole does, too. So for given times of the steps, their places and the DCM are linear in each other, and
the largest push after which the DCM ends inside the last sole is the solution of a linear programme; the times are
searched on a grid. T. Koolen, T. de Boer, J. Rebula, A. Goswami, J. Pratt, "Capturability-based analysis and control of
legged locomotion, part 1" (2012), have closed forms for feet that are points and steps that are alike.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bipedsim.dynamics import edge_lines
from bipedsim.numerics import Array, reach

_LATER = (1.0, 1.5, 2.25, 3.4)
"""Times of a step that are tried, over the shortest one."""
_SIDES = 12
"""Of the polygon around a circle."""
_TIMES = 5
"""Times that are tried of the step under way."""


@dataclass(frozen=True)
class StepLimits:
    """What steps the bound takes to be possible.

    Attributes:
        quickest: Shortest time of a step, and until a foot in the air is down [s].
        speed: Mean speed of a foot over the ground, at most [m/s].
        most: Steps at most.
    """

    quickest: float = 0.15
    speed: float = 2.0
    most: int = 2


class Stride(NamedTuple):
    """A robot about to be pushed, in axes with x along its heading.

    Attributes:
        soles: Of both feet about their centres, (N, 2) each [m].
        feet: (2, 2) centres of both [m].
        carries: Of each, whether it bears weight.
        com, dcm: (2,) [m].
        narrow: Least distance of feet that land side by side, centre to centre [m].
        away: Largest distance over the ground of a foot that bears weight from the CoM [m].
    """

    soles: tuple[Array, Array]
    feet: Array
    carries: tuple[bool, bool]
    com: Array
    dcm: Array
    narrow: float
    away: float


def capture_bound(
    stride: Stride, omega: float, angle: float, duration: float, limits: StepLimits, hull: Array
) -> float:
    """Return the largest J / (m omega) [m] towards ``angle`` [rad] from which the robot can be brought to rest.

    By feet that stay, or by up to ``limits.most`` steps, with the CoM at its height and no angular momentum: what hips
    and arms do comes on top. No foot crosses the other one.

    Args:
        stride: How it walks.
        omega: sqrt(g / z) [1/s].
        angle: From the heading to the left.
        duration: Of the push, an even force [s].
        limits: What steps are possible.
        hull: (n, 2) polygon of support, counter-clockwise [m].
    """
    way = np.array([math.cos(angle), math.sin(angle)])
    # A force that lasts does less to the DCM than it would at once.
    spread = (1.0 - math.exp(-omega * duration)) / (omega * duration)
    best = reach(hull, stride.dcm, way) / spread
    swings = [k for k in (0, 1) if not stride.carries[k]] or [0, 1]
    longest = limits.quickest * _LATER[-1]
    for swing in swings:
        first = np.linspace(max(limits.quickest, duration), longest, _TIMES)
        for steps in range(1, limits.most + 1):
            later = [limits.quickest * share for share in _LATER]
            for times in itertools.product(first, *[later] * (steps - 1)):
                best = max(best, _largest(stride, omega, way * spread, swing, times, limits.speed))
    return best


def _largest(stride: Stride, omega: float, way: Array, swing: int, times: tuple[float, ...], speed: float) -> float:
    """Return the largest push (as :func:`capture_bound`) that steps of ``swing`` and the other foot in turn catch.

    Variables are the size of the push, then of each step its ZMP, and where it ends, both (2,).
    """
    import scipy

    count = len(times)
    size = 1 + 4 * count
    rows: list[Array] = []
    most: list[float] = []

    def point(value: Array) -> Array:
        return np.column_stack([np.zeros((2, size)), value])

    def variable(at: int) -> Array:
        found = np.zeros((2, size + 1))
        found[:, at : at + 2] = np.eye(2)
        return found

    def within(normals: Array, bounds: Array, of: Array) -> None:
        """Demand normals @ of <= bounds, ``of`` (2, size + 1) the coefficients of a point and its constant."""
        rows.extend(normals @ of[:, :-1])
        most.extend(bounds - normals @ of[:, -1])

    turn = 2.0 * math.pi * np.arange(_SIDES) / _SIDES
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    stands, lifted = point(stride.feet[1 - swing]), point(stride.feet[swing])
    side = 1.0 if stride.feet[swing, 1] > stride.feet[1 - swing, 1] else -1.0
    xi, eta = point(stride.dcm), point(2.0 * stride.com - stride.dcm)
    xi[:, 0] = way
    # Half of the change of the velocity goes each way.
    eta[:, 0] = -way
    foot = swing
    for k, time in enumerate(times):
        sole = edge_lines(stride.soles[1 - foot])
        zmp, land = variable(1 + 4 * k), variable(3 + 4 * k)
        within(sole[:, :2], sole[:, 2], zmp - stands)
        grown, decayed = math.exp(omega * time), math.exp(-omega * time)
        xi, eta = zmp + grown * (xi - zmp), zmp + decayed * (eta - zmp)
        com = 0.5 * (xi + eta)
        within(circle, np.full(_SIDES, speed * time), land - lifted)
        within(np.array([[0.0, -side]]), np.array([-stride.narrow]), land - stands)
        for standing in (land, stands):
            within(circle, np.full(_SIDES, stride.away), com - standing)
        lifted, stands = stands, land
        foot, side = 1 - foot, -side
    sole = edge_lines(stride.soles[1 - foot])
    within(sole[:, :2], sole[:, 2], xi - stands)
    cost = np.zeros(size)
    cost[0] = -1.0
    bounds = [(0.0, None), *[(None, None)] * (size - 1)]
    found = scipy.optimize.linprog(cost, np.array(rows), np.array(most), bounds=bounds)
    return float(found.x[0]) if found.success else 0.0
