"""Footholds on a map of the ground: positions where a sole is on one plane, and swing paths without collision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bipedsim.config import param
from bipedsim.control.walking.swing import height
from bipedsim.ground import Ground, GroundArrays, surface
from bipedsim.model import Sole
from bipedsim.numerics import Array, kernel, quintic


@dataclass(frozen=True)
class TerrainParams:
    """Parameters of walking on a map of the ground."""

    terrain: str = param(
        "", "map of the ground, a name or file as for `--ground`; empty: the controller reacts to contacts only"
    )
    foothold_margin: float = param(0.015, "minimum distance of a sole to edges of the map", unit="m", low=0.0, high=0.2)
    foothold_search: float = param(
        0.3, "largest longitudinal shift of a landing to a foothold", unit="m", low=0.0, high=1.0
    )
    climb_most: float = param(0.2, "highest step up or down, from foot to foot", unit="m", low=0.0, high=1.0)
    climb_height: float = param(
        0.0,
        "height of the CoM over the soles with a map of several planes; 0: `com_height`",
        unit="m",
        low=0.0,
        high=3.0,
    )
    climb_time: float = param(4.0, "extension of single support per metre up or down", unit="s/m", low=0.0, high=20.0)


_FINE = 0.01
"""Resolution of the search for footholds [m]."""
_GRID = (8, 5)
"""Number of points of a sole, ahead and to the left, that are looked up in the map."""
_FLAT = 0.002
"""Largest difference of the ground from the plane of a foothold [m]."""
_ONWARD = 0.04
"""Minimum displacement [m] of a foot commanded to go ahead; otherwise steps could stay on the same tread forever."""
_LEVEL = 0.01
"""Rise [m] up to which a foot swings as on level ground."""
_CLEAR = 0.015
"""Minimum height of the sole over the map during the swing [m]."""
_RAISE, _HIGHEST = 0.02, 0.1
"""Increment by which a swing is raised until it is free of collisions, and the maximum [m]."""
_SAMPLES = 24
"""Number of times at which the path of a foot is looked up in the map."""
_UP = np.array([0.15, 0.98, 0.45, 0.6])
_DOWN = np.array([0.02, 0.72, 0.25, 0.45])
"""Windows of steps up and down: see :class:`bipedsim.control.walking.swing.SwingStep`."""


class MapFoothold(NamedTuple):
    """A possible position of a touchdown, or the obstacle if there is none.

    Attributes:
        offset: Distance from the desired position, along the direction of the foot [m]; NaN for no foothold.
        patch: Patch of the foothold or of the obstacle; -1 for none.
        rise: Height relative to the other foot [m].
    """

    offset: float
    patch: int
    rise: float


@kernel
def _patch_under(ground, x, y, yaw, sole):  # type: ignore[no-untyped-def]
    """Return the patch under all of a sole at (x, y) with heading ``yaw``, between its corners; -1 for none."""
    low, high = sole
    _, patch = surface(ground, x, y)
    if patch < 0:
        return -1
    n = ground.rotation[patch, :, 2]
    p = ground.point[patch]
    c, s = math.cos(yaw), math.sin(yaw)
    for i in range(_GRID[0]):
        ahead = low[0] + (high[0] - low[0]) * i / (_GRID[0] - 1)
        for j in range(_GRID[1]):
            left = low[1] + (high[1] - low[1]) * j / (_GRID[1] - 1)
            px, py = x + c * ahead - s * left, y + s * ahead + c * left
            z, other_patch = surface(ground, px, py)
            plane = p[2] - (n[0] * (px - p[0]) + n[1] * (py - p[1])) / n[2]
            if other_patch < 0 or abs(z - plane) > _FLAT:
                return -1
    return patch


@kernel
def _find(ground, x, y, yaw, sole, reach, base, most):  # type: ignore[no-untyped-def]
    """Return offset, patch and rise of the nearest foothold; see :meth:`Terrain.foothold`."""
    c, s = math.cos(yaw), math.sin(yaw)
    blocked = -1
    steep = 0.0
    nearest = math.nan
    for k in range(2 * int(max(abs(reach[0]), abs(reach[1])) / _FINE) + 2):
        away = _FINE * ((k + 1) // 2) * (1.0 if k % 2 else -1.0)
        if not reach[0] <= away <= reach[1]:
            continue
        px, py = x + c * away, y + s * away
        patch = _patch_under(ground, px, py, yaw, sole)
        if patch < 0:
            continue
        rise = surface(ground, px, py)[0] - base
        if abs(rise) <= most:
            return away, patch, rise
        if not abs(nearest) <= abs(away):
            nearest, blocked, steep = away, patch, rise
    return math.nan, blocked, steep


@kernel
def _clears(ground, start, land, yaw, sole, window, top):  # type: ignore[no-untyped-def]
    """Return whether a sole swings without collision from ``start`` to ``land`` (3,), with its apex at ``top`` [m]."""
    low, high = sole
    c, s = math.cos(yaw), math.sin(yaw)
    for i in range(1, _SAMPLES):
        t = i / _SAMPLES
        x = quintic(t - window[0], window[1] - window[0])[0]
        z = height(t, 1.0, start[2], top, land[2], window[2], window[3])[0]
        # The clearance is zero at both ends, where the sole leaves and reaches its own plane.
        clear = min(_CLEAR, 0.5 * abs(z - start[2]), 0.5 * abs(z - land[2]))
        for j in range(_GRID[0]):
            ahead = low[0] + (high[0] - low[0]) * j / (_GRID[0] - 1)
            for k in range(2):
                left = low[1] if k == 0 else high[1]
                px = start[0] + x * (land[0] - start[0]) + c * ahead - s * left
                py = start[1] + x * (land[1] - start[1]) + s * ahead + c * left
                ground_height, patch = surface(ground, px, py)
                if patch >= 0 and ground_height > z - clear:
                    return False
    return True


class Terrain:
    """A map of the ground, in a frame in which the robot starts at the origin, as in a simulator.

    Args:
        ground: The map.
        soles: Soles of the robot.
        params: See :class:`TerrainParams`.
        step_height: Rise of the swing foot over level ground [m].
    """

    def __init__(self, ground: Ground, soles: Sequence[Sole], params: TerrainParams, step_height: float) -> None:
        self._ground: GroundArrays = ground.arrays()
        self._names = dict(enumerate(patch.name for patch in ground.patches))
        self._params = params
        self._step_height = step_height
        self._bare = [(s.vertices.min(axis=0) - s.centre, s.vertices.max(axis=0) - s.centre) for s in soles]
        margin = params.foothold_margin
        self._grown = [(low - margin, high + margin) for low, high in self._bare]

    def height(self, point: Array) -> float:
        """Return the height [m] of the map at ``point`` (2,) or (3,), NaN where there is no ground."""
        return float(surface(self._ground, float(point[0]), float(point[1]))[0])

    def normal(self, point: Array) -> Array:
        """Return the normal (3,) of the map at ``point`` (2,) [m], upright where there is no ground."""
        patch = surface(self._ground, float(point[0]), float(point[1]))[1]
        return self._ground.rotation[patch, :, 2] if patch >= 0 else np.array([0.0, 0.0, 1.0])

    def foothold(
        self, foot: int, at: tuple[float, float, float], own: Array, other: Array, onward: float, longest: float
    ) -> MapFoothold:
        """Find the foothold nearest to the desired position of a foot, ahead of it or behind.

        Args:
            foot: Index of the foot.
            at: Desired x, y [m] and yaw [rad].
            own, other: (2,) present positions of this foot and of the other one [m].
            onward: Commanded displacement ahead [m], negative backwards; the foot moves at least a little that way.
            longest: Largest step length [m], from the other foot.
        """
        x, y, yaw = at
        c, s = math.cos(yaw), math.sin(yaw)
        ahead = c * (x - other[0]) + s * (y - other[1])
        moved = c * (x - own[0]) + s * (y - own[1])
        search = self._params.foothold_search
        back, forth = max(-search, -longest - ahead), min(search, longest - ahead)
        if onward > _FINE:
            back = max(back, _ONWARD - moved)
        elif onward < -_FINE:
            forth = min(forth, -_ONWARD - moved)
        base = self.height(other)
        base = base if base == base else 0.0
        return MapFoothold(
            *_find(self._ground, x, y, yaw, self._grown[foot], np.array([back, forth]), base, self._params.climb_most)
        )

    def why_not(self, foothold: MapFoothold) -> str:
        """Return why :meth:`foothold` has found no foothold, for messages."""
        if foothold.patch < 0:
            return (
                f"the map has no place for a sole with {1e3 * self._params.foothold_margin:.3g} mm to spare within a "
                "step (a gap, or treads that are too short); a smaller foothold_margin or a longer step may help"
            )
        direction = "up" if foothold.rise > 0.0 else "down"
        name = self._names.get(foothold.patch, "field")
        return (
            f"{name!r} is {abs(foothold.rise):.3g} m {direction} from the foot that stands, "
            f"and climb_most is {self._params.climb_most:g} m"
        )

    def extra_time(self, start: float, stance: float, land: float) -> float:
        """Return the extra time [s] of a step from ``start`` to ``land``, with the stance foot at ``stance`` [m]."""
        climb = max(abs(land - stance), 0.5 * abs(land - start), abs(start - stance))
        return self._params.climb_time * climb if climb > _LEVEL else 0.0

    def window(self, start: float, land: float, level: Array) -> Array:
        """Return the window (4,) of a step between two heights [m]; ``level`` is the window on level ground."""
        if abs(land - start) <= _LEVEL:
            return level
        return _UP if land > start else _DOWN

    def lift(self, foot: int, start: Array, land: Array, yaw: float, window: Array) -> float:
        """Return the extra height [m] that keeps a swing from ``start`` to ``land`` (3,) free of collisions."""
        shift = self.height(land) - land[2]
        shift = shift if shift == shift else 0.0
        up = np.array([0.0, 0.0, shift])
        top = max(start[2], land[2]) + shift + self._step_height
        extra = 0.0
        while extra < _HIGHEST and not _clears(
            self._ground, start + up, land + up, yaw, self._bare[foot], window, top + extra
        ):
            extra += _RAISE
        return extra
