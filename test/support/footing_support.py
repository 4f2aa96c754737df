"""A sole over a ground, and the soles and grounds that several tests of the footing stand on."""

from __future__ import annotations

from typing import Any

import numpy as np
from physics_support import rectangle

from bipedsim.ground import support as footing
from bipedsim.ground.ground import Ground

SOLE = np.array(rectangle(0.2, 0.1))
BLADE = np.array([[0.1, 0.0], [-0.1, 0.0]])
POINT = np.array([[0.02, 0.01]])
STAIRS = Ground.stairs(rise=0.15, run=0.3, steps=3, start=0.5)


class Foot:
    """One sole over one ground."""

    def __init__(self, ground: Ground, vertices: Any = SOLE, radius: float = 0.0) -> None:
        self.ground = ground.arrays()
        self.vertices = np.array(vertices, dtype=np.float64)
        self.n = len(self.vertices)
        self.radius = radius
        self.work = footing.make_work(self.ground, self.n)
        self.out = np.full((footing.polygon_capacity(self.ground, self.n), 2), np.nan)

    def patch(self, position: Any, present: int = -1, rotation: Any = None) -> int:
        R = np.eye(3) if rotation is None else np.array(rotation)
        p = np.array(position, dtype=np.float64)
        return int(footing.choose_patch(R, p, self.vertices, self.n, self.radius, present, self.ground, self.work))

    def support(self, position: Any, patch: int, rotation: Any = None) -> np.ndarray:
        R = np.eye(3) if rotation is None else np.array(rotation)
        p = np.array(position, dtype=np.float64)
        count = footing.support_polygon(R, p, self.vertices, self.n, patch, self.ground, self.work, self.out)
        return self.out[:count].copy()


def region(x0: float, x1: float, y0: float, y1: float) -> np.ndarray:
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
