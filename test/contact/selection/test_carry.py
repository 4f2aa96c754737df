"""Modes carried over when the support changes its shape."""

from __future__ import annotations

import numpy as np
import pytest
from footing_support import BLADE, POINT, SOLE
from physics_support import regular_polygon

from bipedsim.contact.modes import face_mode
from bipedsim.contact.selection.carry import carry_mode
from bipedsim.ground.support import CARRY


@pytest.mark.parametrize("polygon", [POINT, BLADE, SOLE, np.array(regular_polygon(7, 0.1))], ids=len)
def test_modes_of_the_same_polygon_stay(polygon: np.ndarray) -> None:
    n = len(polygon)
    modes = range(face_mode(n) + 1)
    assert [carry_mode(mode, polygon, n, polygon, n) for mode in modes] == list(modes)
    nowhere = np.zeros((1, 2))
    assert all(carry_mode(mode, polygon, n, nowhere, 0) == 0 for mode in modes)


def test_modes_across_a_border() -> None:
    # The heel, vertices 1 and 2, is cut off: the toe edge (3, 0) becomes (4, 0) of five vertices.
    cut = np.array([[0.1, 0.05], [-0.02, 0.05], [-0.05, 0.02], [-0.05, -0.05], [0.1, -0.05]])
    expected = {0: 0, 1: 1, 2: 0, 3: 0, 4: 5, 5: 6, 6: 0, 7: 9, 8: 10, 9: 11}
    assert {mode: carry_mode(mode, SOLE, 4, cut, 5) for mode in range(10)} == expected
    # And back: edges grow, the cut itself is no edge of the sole.
    expected = {0: 0, 1: 1, 2: 0, 3: 0, 4: 0, 5: 4, 6: 5, 7: 0, 8: 0, 9: 7, 10: 8, 11: 9}
    assert {mode: carry_mode(mode, cut, 5, SOLE, 4) for mode in range(12)} == expected


def test_modes_of_smaller_soles_and_points_that_moved() -> None:
    assert carry_mode(9, SOLE, 4, BLADE, 2) == 3
    assert carry_mode(9, SOLE, 4, POINT, 1) == 1
    assert carry_mode(3, BLADE, 2, SOLE, 4) == 9
    shifted = SOLE + np.array([0.9 * CARRY, 0.0])
    assert [carry_mode(mode, SOLE, 4, shifted, 4) for mode in range(10)] == list(range(10))
    shifted = SOLE + np.array([1.1 * CARRY, 0.0])
    assert [carry_mode(mode, SOLE, 4, shifted, 4) for mode in (1, 2, 6, 8, 9)] == [0, 0, 0, 0, 9]
