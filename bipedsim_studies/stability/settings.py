"""Define the settings of ``bipedsim poincare``, which are the keys of its settings file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bipedsim.config import RunConfig, like, param
from bipedsim.errors import ConfigError
from bipedsim_studies.stability.gait import WalkerGait
from bipedsim_studies.study import time_limit


@dataclass(frozen=True)
class PoincareSettings(WalkerGait):
    """Settings of a gait, and of the analyses of its return map."""

    refine: int = param(0, "halve the physics step N times and extrapolate", low=0)
    slopes: tuple[float, ...] = param((), "follow the gait over slopes: first, last, number", unit="rad")
    basin: int | None = param(None, "follow this many random starts around the fixed point", low=1)
    width: tuple[float, ...] = param((0.1,), "half width of the box of starts, of all or of each coordinate", low=1e-9)
    seed: int = like(RunConfig, "seed", doc="seed of the starts")
    time_limit: float = time_limit("start")

    def problems(self) -> Iterator[ConfigError]:
        """Yield inconsistencies of the slopes."""
        if self.slopes and not (
            len(self.slopes) == 3 and self.slopes[2] in range(2, 10**6) and self.slopes[0] != self.slopes[1]
        ):
            yield ConfigError("must be two different slopes and a whole number of at least 2", "slopes", self.slopes)

    def slope_values(self) -> list[float]:
        """Return the slopes over which the gait is followed [rad]; empty if there are none."""
        if not self.slopes:
            return []
        first, last, count = self.slopes
        return [float(slope) for slope in np.linspace(first, last, int(count))]
