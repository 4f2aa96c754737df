"""Standing on one leg and kicking with the other: the path of the foot from point to point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bipedsim.config import param
from bipedsim.numerics import Array, kernel, quintic

POINTS = 7
"""Points of a route: on the ground, raised, still raised, drawn back, swung ahead, back again, on the ground."""
_RAISE, _DRAW, _RETURN, _LOWER = 0.8, 0.6, 0.8, 0.8
"""Durations of the other parts of the route [s]."""


@dataclass(frozen=True)
class KickParams:
    """A kick from standing on one leg."""

    kick_foot: str = param(
        "none", "foot that kicks once, from standing on the other", choices=("none", "left", "right")
    )
    kick_at: float = param(
        1.0, "start of the weight shift to the other foot, since the start of the run", unit="s", low=0.0, high=1e4
    )
    kick_hold: float = param(5.0, "time on one leg before the kick", unit="s", low=0.1, high=1e4)
    kick_height: float = param(0.05, "height of the kicking foot", unit="m", low=0.0, high=0.5)
    kick_back: float = param(0.15, "backward displacement of the foot before the kick", unit="m", low=0.0, high=0.5)
    kick_ahead: float = param(0.3, "forward displacement of the foot in the kick", unit="m", low=0.0, high=0.5)
    kick_time: float = param(0.3, "time of the forward swing", unit="s", low=0.1, high=10.0)


def route_of(params: KickParams) -> Array:
    """Return the route (POINTS, 4) of the kicking foot.

    A row is the time since lift-off [s] and the displacement from the position at lift-off [m], ahead, to the left and
    up.
    """
    up = params.kick_height
    parts = (
        (_RAISE, 0.0, up),
        (params.kick_hold, 0.0, up),
        (_DRAW, -params.kick_back, up),
        (params.kick_time, params.kick_ahead, up),
        (_RETURN, 0.0, up),
        (_LOWER, 0.0, 0.0),
    )
    route = np.zeros((POINTS, 4))
    for i, (duration, ahead, height) in enumerate(parts, 1):
        route[i] = route[i - 1, 0] + duration, ahead, 0.0, height
    return route


@kernel
def along_route(route: Array, t: float, p: Array, v: Array, a: Array) -> None:
    """Fill the first three components of displacement, velocity and acceleration at ``t`` [s].

    The path consists of quintics from rest to rest between the points of ``route`` (POINTS, 4), see :func:`route_of`.
    After the last one the foot stays at the last point.
    """
    i = 0
    while i < route.shape[0] - 2 and t >= route[i + 1, 0]:
        i += 1
    x, rate, bend = quintic(t - route[i, 0], route[i + 1, 0] - route[i, 0])
    for k in range(3):
        distance = route[i + 1, 1 + k] - route[i, 1 + k]
        p[k] = route[i, 1 + k] + x * distance
        v[k] = rate * distance
        a[k] = bend * distance
