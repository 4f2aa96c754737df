"""A few scenes of the benchmark of free objects, which checks every step."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from benchmark_modules import benchmark

from bipedsim.numerics import STEP_BUDGET


@pytest.fixture(scope="module")
def scenes() -> ModuleType:
    """Return the benchmark."""
    return benchmark("object_scenes")


@pytest.mark.parametrize("number", [4, 8, 9, 10])
def test_a_random_scene_keeps_its_balances_and_is_repeated_to_the_bit(scenes: ModuleType, number: int) -> None:
    found = scenes.run(number, seed=0, seconds=0.4, slowest=np.inf)
    assert not found.faults
    assert found.unresolved == 0


@pytest.mark.parametrize("number", [46, 89])
def test_impacts_of_many_objects_take_a_small_part_of_the_budget(scenes: ModuleType, number: int) -> None:
    """All bodies in contact used to be one impact problem with up to 21 pairs.

    Steps of these scenes then took 60 ms.
    """
    world = scenes.world_of(scenes.scene(number, 0))
    most = 0
    for _ in range(1000):
        assert not world.step()
        most = max(most, world.operations)
    assert 0 < most < STEP_BUDGET // 6
    assert world.unresolved == 0
