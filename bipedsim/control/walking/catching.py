"""Position and time of the next touchdown after a push that the stance foot alone cannot balance.

The DCM diverges from the ZMP: an error d has grown to d e^(omega T) when the foot touches down after T. A ZMP at the
edge of the sole, at a distance r from its planned position, reduces the error by r (e^(omega T) - 1). The next foothold
compensates for the remaining error. It and all later ones are shifted by the same amount (Koolen, de Boer, Rebula,
Goswami and Pratt, "Capturability-based analysis and control of legged locomotion, part 1", 2012; Englsberger et al.
2015).

If that is too far, or the other foot is in the way, a different step time helps. Then e^(omega T) is traded against the
position (Khadiv, Herzog, Moosavian and Righetti, "Walking control based on step timing adaptation", 2020, eq. (15)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import daqp
import numpy as np

from bipedsim.config import param
from bipedsim.numerics import Array, clamp, reach

LEAST_ERROR = 0.02
"""Error of the DCM [m] up to which a touchdown is never moved, however large the error may grow."""
_TRUST = 0.8
"""Share of the distance to the edge that the ZMP can use, because the ZMP follows with a delay."""
_PLACE, _TIME = 3e-2, 1e-3
"""Weights [1], [m^2] of changes of position and time, relative to the remaining offset of the DCM [m^2]."""
_STANDS = 0.95
"""Share of the distance to the edge, with both feet on the ground, beyond which a standing robot steps."""


@dataclass(frozen=True)
class CatchParams:
    """Parameters of steps that deviate from their plan after a push."""

    catch_most: float = param(
        0.5, "largest change of a landing position; 0: steps stay as planned", unit="m", low=0.0, high=1.0
    )
    catch_least: float = param(
        0.02, "change of a landing position below which the plan is not adapted", unit="m", low=1e-3, high=1.0
    )
    catch_until: float = param(
        0.9, "fraction of single support after which the landing position is fixed", low=0.0, high=0.95
    )
    catch_quickest: float = param(0.15, "minimum time for the descent of a foot", unit="s", low=0.05, high=2.0)
    catch_longer: float = param(0.1, "maximum extension of a step in time", unit="s", low=0.0, high=2.0)
    catch_speed: float = param(
        2.0, "mean horizontal speed of a foot towards a new landing position", unit="m/s", low=0.1, high=10.0
    )
    catch_time: float = param(
        0.35, "time of a recovery step from standing; 0: no recovery steps", unit="s", low=0.0, high=2.0
    )


class PlannedLanding(NamedTuple):
    """Position of a touchdown over the ground (2,) [m], and time until then [s]."""

    place: Array
    left: float


class CatchStep(NamedTuple):
    """Data of the current step that determine its best touchdown.

    Attributes:
        xi: (2,) measured DCM [m].
        planned: (2,) planned DCM of the present [m].
        end: (2,) planned DCM at touchdown [m].
        land: (2,) planned position of the touchdown [m].
        hull: (n, 2) support polygon, counter-clockwise [m].
        stance: (2,) position of the stance foot [m].
        axes: (2, 2) rows: ahead, and from the stance foot to the other one.
        low, high: (2,) limits of the touchdown in these axes [m].
        foot: (2,) present position of the swing foot [m].
        left: Remaining time until the planned touchdown [s].
        soonest, latest: Limits of the remaining time [s].
    """

    xi: Array
    planned: Array
    end: Array
    land: Array
    hull: Array
    stance: Array
    axes: Array
    low: Array
    high: Array
    foot: Array
    left: float
    soonest: float
    latest: float


def best_landing(step: CatchStep, omega: float, params: CatchParams) -> PlannedLanding:
    """Return the best position and time of the swing foot's touchdown.

    With a constant ZMP p, the DCM at touchdown is p + (xi - p) s. It is linear in s = e^(omega T), and so is its offset
    b from the touchdown u. A quadratic programme (daqp) finds (u, s) within their limits such that b is closest to the
    planned offset. Every change of position and time has a small cost.

    Args:
        step: The current step.
        omega: sqrt(g / z) of the pendulum [1/s].
        params: Speed limit of the swing foot.
    """
    grown = math.exp(omega * step.left)
    # This constant ZMP has the same effect as the planned one until touchdown.
    mean = (step.end - grown * step.planned) / (1.0 - grown)
    p = mean + _TRUST * (_inside(step.hull, mean + (step.xi - step.planned) * grown / (grown - 1.0)) - mean)
    axes, stance = step.axes, step.stance
    rate = axes @ (step.xi - p)
    # The touchdown that keeps the planned offset is origin + rate s, in the axes of the stance foot.
    origin = axes @ (p - stance - (step.end - step.land))
    land, foot = axes @ (step.land - stance), axes @ (step.foot - stance)
    longest = math.exp(omega * max(step.left, step.latest))
    place, s = land, grown
    fastest = step.left
    for _ in range(2):
        fastest = min(step.left, max(step.soonest, float(np.hypot(*(place - foot))) / params.catch_speed))
        bounds = math.exp(omega * fastest), longest
        place, s = _solve(origin, rate, land, grown, step.low, step.high, bounds)
    return PlannedLanding(stance + place @ axes, math.log(s) / omega)


def _inside(hull: Array, point: Array) -> Array:
    """Clamp ``point`` (2,) to the hull, in place."""
    clamp(hull, len(hull), 0.0, point)
    return point


def _solve(
    origin: Array, rate: Array, land: Array, grown: float, low: Array, high: Array, times: tuple[float, float]
) -> tuple[Array, float]:
    """Return (u, s) that minimise |origin + rate s - u|^2 + small |u - land|^2 + small (s / grown - 1)^2."""
    H = np.diag([1.0 + _PLACE, 1.0 + _PLACE, float(rate @ rate) + _TIME / grown**2])
    H[:2, 2] = H[2, :2] = -rate
    f = np.array([*(-origin - _PLACE * land), float(rate @ origin) - _TIME / grown])
    upper, lower = np.array([*high, times[1]]), np.array([*low, times[0]])
    x, _, flag, _ = daqp.solve(H, f, np.eye(3), upper, lower, np.zeros(3, dtype=np.int32))
    if flag < 1:
        return land, grown
    return x[:2], float(x[2])


def must_step(error: Array, zmp: Array, hull: Array, heading: float) -> bool:
    """Return whether standing feet cannot balance the DCM's error, and a step ahead or back would help.

    After a push to the side, the robot would have to cross its feet or to lift the loaded foot.

    Args:
        error: (2,) error of the DCM [m].
        zmp: (2,) planned ZMP [m].
        hull: (n, 2) support polygon, counter-clockwise [m].
        heading: Direction of x of the robot [rad].
    """
    c, s = math.cos(heading), math.sin(heading)
    ahead, aside = c * error[0] + s * error[1], c * error[1] - s * error[0]
    return abs(ahead) > abs(aside) and math.hypot(*error) > _STANDS * reach(hull, zmp, error)
