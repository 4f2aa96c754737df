"""Where a foot must land when the robot was pushed harder than the foot on the ground can answer.

The DCM runs away from the ZMP, so that an error d of it has grown to d e^(omega T) when the foot lands after T. The ZMP
at the edge of the sole, a way r from where it was planned, takes r (e^(omega T) - 1) from it. What is left, the next
foot must make up for: it lands that much further, and so does all that follows (Koolen, de Boer, Rebula, Goswami and
Pratt, "Capturability-based analysis and control of legged locomotion, part 1", 2012; Englsberger et al. 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bipedsim.config import param
from bipedsim.numerics import Array, reach

LEAST_ERROR = 0.02
"""Error of the DCM [m] up to which no landing is moved, whatever it may grow to."""
_TRUST = 0.8
"""Share of the way to the edge that is counted on: the ZMP follows with a delay."""
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
        0.75, "share of single support after which the foot lands where it is bound for", low=0.0, high=0.95
    )
    catch_time: float = param(
        0.35, "time of a step by which a robot that stands catches itself; 0: it stays", unit="s", low=0.0, high=2.0
    )


def landing_shift(error: Array, zmp: Array, hull: Array, omega: float, left: float) -> Array:
    """Return by how much (2,) [m] a foot must land further.

    Args:
        error: (2,) of the DCM [m].
        zmp: (2,) as planned, inside the hull [m].
        hull: (n, 2) polygon of support, counter-clockwise [m].
        omega: Of the pendulum [1/s].
        left: Time until the foot lands [s].
    """
    size = math.hypot(*error)
    room = _TRUST * reach(hull, zmp, error)
    grown = math.exp(omega * left)
    lacking = max(0.0, size * grown - room * (grown - 1.0))
    return np.asarray(lacking / size * error) if size > 0.0 else np.zeros(2)


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
