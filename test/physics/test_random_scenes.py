"""In any combination of features, no kernel reads beyond the end of an array.

``make test-bounds`` runs many of these scenes with every index checked. Without checks, the tests find errors, values
that are not finite, and differences after a restore.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scene_support import random_scene

SCENES = int(os.environ.get("BIPEDSIM_SCENES", "12"))
TICKS = 40


@pytest.mark.parametrize("number", range(SCENES))
def test_a_random_scene_stays_finite_and_goes_on_alike_after_a_restore(number: int) -> None:
    scene = random_scene(number)
    print(scene.described)
    run, sim = scene.run, scene.run.sim
    for _ in range(TICKS):
        run.control()
        run.step()
    ends = []
    begun, command = sim.snapshot(), run.command.copy()
    for _ in range(2):
        sim.restore(begun)
        for _ in range(TICKS // 2):
            sim.step(command)
        objects = np.zeros(0) if sim.objects is None else sim.objects.states().ravel()
        ends.append(np.concatenate([sim.q, sim.v, objects]))
    assert np.isfinite(ends).all()
    np.testing.assert_array_equal(*ends)
