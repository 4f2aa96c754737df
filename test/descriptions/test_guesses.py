"""Parameters of walking for a robot of another size: those of a similar robot, by Froude's number."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.descriptions.guesses import scaled_gait


@pytest.mark.parametrize("sole", [0.24, 0.1, 0.05])
@pytest.mark.parametrize("size", [0.25, 0.5, 2.0])
@pytest.mark.parametrize("g", [9.81, 1.62])
def test_a_similar_robot_walks_alike(sole: float, size: float, g: float) -> None:
    """Lengths scale with the size; speeds scale with the square root of size times gravity. Two digits are shown."""
    one, other = scaled_gait(0.8, 0.75, sole, 9.81), scaled_gait(0.8 * size, 0.75 * size, sole * size, g)
    for name in ("com_height", "step_height"):
        assert other[name] == pytest.approx(size * one[name], rel=0.08)
    for name in ("max_forward", "max_sideways"):
        assert other[name] == pytest.approx(np.sqrt(size * g / 9.81) * one[name], rel=0.08)


def test_a_robot_with_short_soles_walks_slower() -> None:
    speeds = [scaled_gait(0.8, 0.75, sole, 9.81)["max_forward"] for sole in (0.05, 0.1, 0.3, 0.4)]
    assert speeds[1] == pytest.approx(2.0 * speeds[0], rel=0.06)
    assert speeds[1] < speeds[2] == speeds[3]
