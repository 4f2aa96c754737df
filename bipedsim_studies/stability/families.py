"""Make the maps of one gait for different slopes, or for different physics steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bipedsim.errors import ConfigError
from bipedsim.numerics import Array
from bipedsim_studies.stability.gait import WalkerGait
from bipedsim_studies.stability.return_map import ReturnMap


@dataclass(eq=False)
class SlopeFamily:
    """Make the maps of a gait on different slopes, each from a state of the previous one; for :mod:`.continuation`.

    Args:
        gait: The gait, on a slope.
        last: Its map there, and a state near the fixed point.
    """

    gait: WalkerGait
    last: tuple[ReturnMap, Array]

    def __call__(self, slope: float, near: Array | None) -> ReturnMap:
        """Return the map for a slope [rad]; ``near`` (n,) are coordinates near its orbit."""
        start = self.last if near is None else (self.last[0], near)
        map = replace(self.gait, ground=None, slope=slope).map(start)
        same_coordinates(self.last[0], map)
        self.last = (map, start[1])
        return map


@dataclass(eq=False)
class StepFamily:
    """Make the maps of a gait for different physics steps; for :func:`.newton.limit`.

    The control period does not change.

    Args:
        gait: The gait.
        last: One of its maps, and a state near the fixed point.
    """

    gait: WalkerGait
    last: tuple[ReturnMap, Array]

    def __call__(self, physics_dt: float) -> ReturnMap:
        """Return the map for a physics step [s]."""
        if physics_dt == self.gait.physics_dt:
            return self.last[0]
        map = replace(self.gait, physics_dt=physics_dt).map()
        same_coordinates(self.last[0], map)
        return map


def same_coordinates(a: ReturnMap, b: ReturnMap) -> None:
    """Raise a ConfigError if two maps have different coordinates and can therefore not be compared."""
    if a.names != b.names:
        now, before = ", ".join(b.names), ", ".join(a.names)
        raise ConfigError(f"the feet carry in another way than before: coordinates {now} instead of {before}")
