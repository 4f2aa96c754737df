"""Contact forces of free bodies that begin inside another body, and how they separate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from object_support import world

DEEP = 8e-3


@pytest.mark.parametrize("h", [1e-3, 2e-4, 5e-5])
@pytest.mark.parametrize("keys", [{"shape": "ball", "radius": 0.1}, {"shape": "box", "size": (0.2, 0.2, 0.2)}])
def test_a_body_that_begins_in_the_ground_is_not_thrown_out_of_it(keys: dict[str, Any], h: float) -> None:
    """It rises to the surface and stays there at any step size. It is never above a twentieth of its initial depth."""
    w = world(keys | {"position": (0.0, 0.0, 0.1 - DEEP)}, h=h)
    heights = []
    for _ in range(round(0.4 / h)):
        assert not w.step()
        heights.append(float(w.bodies.position[0, 2]) - 0.1)
    assert max(heights) < 0.05 * DEEP
    assert heights[-1] > -1e-2 * DEEP
    assert np.abs(w.bodies.v).max() < 1e-2
