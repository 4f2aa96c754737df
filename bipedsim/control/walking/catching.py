"""Where and when a foot must land when the robot was pushed harder than the foot on the ground can answer.

The DCM runs away from the ZMP, so that an error d of it has grown to d e^(omega T) when the foot lands after T. The ZMP
at the edge of the sole, a way r from where it was planned, takes r (e^(omega T) - 1) from it. What is left, the next
foot must make up for: it lands that much further, and so does all that follows (Koolen, de Boer, Rebula, Goswami and
Pratt, "Capturability-based analysis and control of legged locomotion, part 1", 2012; Englsberger et al. 2015). Where
that is too far, or where the other foot is in the way, time helps: e^(omega T) trades against the place (Khadiv,
Herzog, Moosavian and Righetti, "Walking control based on step timing adaptation", 2020, eq. (15)).
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
"""Error of the DCM [m] up to which no landing is moved, whatever it may grow to."""
_TRUST = 0.8
"""Share of the way to the edge that is counted on: the ZMP follows with a delay."""
_PLACE, _TIME = 3e-2, 1e-3
"""Weights [1], [m^2] of changes of place and time beside the offset of the DCM that is left [m^2]."""
_STANDS = 0.95
"""The same of both feet: where the DCM of a robot that stands is further, it steps."""


@dataclass(frozen=True)
class CatchParams:
    """When and how far a step leaves its plan."""

    catch_most: float = param(
        0.5, "largest change of where a foot lands; 0: steps stay as planned", unit="m", low=0.0, high=1.0
    )
    catch_least: float = param(0.02, "change of where a foot lands that is not worth it", unit="m", low=1e-3, high=1.0)
    catch_until: float = param(
        0.9, "share of single support after which the foot lands where it is bound for", low=0.0, high=0.95
    )
    catch_quickest: float = param(
        0.15, "shortest time in which a foot in the air comes down", unit="s", low=0.05, high=2.0
    )
    catch_longer: float = param(0.1, "by which a step may last longer than as it began", unit="s", low=0.0, high=2.0)
    catch_speed: float = param(
        2.0, "mean speed over the ground at which a foot gets to another landing", unit="m/s", low=0.1, high=10.0
    )
    catch_time: float = param(
        0.35, "time of a step by which a robot that stands catches itself; 0: it stays", unit="s", low=0.0, high=2.0
    )


class Landing(NamedTuple):
    """Where and when a foot lands: over the ground (2,) [m], and the time until then [s]."""

    place: Array
    left: float


class Catch(NamedTuple):
    """A step under way, as far as a landing depends on it.

    Attributes:
        xi: (2,) measured DCM [m]. planned: (2,) as it should be now [m].
        end: (2,) planned when the foot lands [m]. land: (2,) where that is [m].
        hull: (n, 2) polygon of support, counter-clockwise [m].
        stance: (2,) foot that stands [m]. axes: (2, 2) rows: ahead, and from that foot to the other.
        low, high: (2,) bounds of the landing in these axes [m].
        foot: (2,) where the foot in the air is now [m].
        left: Time until it lands as planned [s].
        soonest, latest: Bounds of the same [s].
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


def best_landing(step: Catch, omega: float, params: CatchParams) -> Landing:
    """Return where and when the foot in the air had best land.

    With a ZMP p that stays, the DCM at the landing is p + (xi - p) s, linear in s = e^(omega T), and so is its offset b
    from the landing u. A quadratic programme (daqp) finds the (u, s) within their bounds that leave b nearest to what
    the plan wants, and costs a little for every change of place and time.

    Args:
        step: The step under way.
        omega: Of the pendulum [1/s].
        params: How quickly a foot can be elsewhere.
    """
    grown = math.exp(omega * step.left)
    # The constant ZMP that is worth what the plan has until then.
    mean = (step.end - grown * step.planned) / (1.0 - grown)
    p = mean + _TRUST * (_inside(step.hull, mean + (step.xi - step.planned) * grown / (grown - 1.0)) - mean)
    axes, stance = step.axes, step.stance
    rate = axes @ (step.xi - p)
    # The landing that leaves the planned offset is from + rate s, in axes of the foot that stands.
    origin = axes @ (p - stance - (step.end - step.land))
    land, foot = axes @ (step.land - stance), axes @ (step.foot - stance)
    longest = math.exp(omega * max(step.left, step.latest))
    place, s = land, grown
    fastest = step.left
    for _ in range(2):
        fastest = min(step.left, max(step.soonest, float(np.hypot(*(place - foot))) / params.catch_speed))
        bounds = math.exp(omega * fastest), longest
        place, s = _solve(origin, rate, land, grown, step.low, step.high, bounds)
    return Landing(stance + place @ axes, math.log(s) / omega)


def _inside(hull: Array, point: Array) -> Array:
    """Return ``point`` (2,), moved into the hull if it is outside."""
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
    """Return whether feet that stay are about to be too few, and a step to the ``heading`` [rad] or back would help.

    Pushed to the side, a robot would have to cross its feet, or to lift the one that carries it.

    Args:
        error, zmp, hull: As for :func:`landing_shift`.
        heading: Direction of x of the robot [rad].
    """
    c, s = math.cos(heading), math.sin(heading)
    ahead, aside = c * error[0] + s * error[1], c * error[1] - s * error[0]
    return abs(ahead) > abs(aside) and math.hypot(*error) > _STANDS * reach(hull, zmp, error)
