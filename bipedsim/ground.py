"""The ground: a plane with its contact axes (t1, t2, n), normal last."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


def _world_axes() -> NDArray[np.float64]:
    return np.eye(3)


@dataclass(frozen=True, eq=False)
class Ground:
    """A plane in the world.

    Attributes:
        point_world: (3,) a point of the plane [m].
        rotation_world_ground: (3, 3), columns t1, t2, n of the plane in world axes.
    """

    point_world: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    rotation_world_ground: NDArray[np.float64] = field(default_factory=_world_axes)

    @classmethod
    def flat(cls, height: float = 0.0) -> Ground:
        """Return the horizontal plane at ``height`` [m]."""
        return cls(point_world=np.array([0.0, 0.0, float(height)]))
