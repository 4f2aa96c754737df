"""Vertices carried over when the support changes its shape."""

from __future__ import annotations

import numpy as np
from footing_support import SOLE

from bipedsim.ground.support import carry_vertices, same_polygon
from bipedsim.numerics.polygons import MERGE


def test_same_polygon() -> None:
    other = SOLE.copy()
    assert same_polygon(SOLE, 4, other, 4)
    other[2, 1] += 0.9 * MERGE
    assert same_polygon(SOLE, 4, other, 4)
    other[2, 1] += 0.2 * MERGE
    assert not same_polygon(SOLE, 4, other, 4)
    assert not same_polygon(SOLE, 4, SOLE, 3)


def test_vertices_that_continue() -> None:
    cut = np.array([[0.1, 0.05], [-0.02, 0.05], [-0.05, 0.02], [-0.05, -0.05], [0.1, -0.05]])
    origin = np.full(5, 7)
    carry_vertices(SOLE, 4, cut, 5, origin)
    assert origin.tolist() == [0, -1, -1, -1, 3]
