"""Distance and speed of creeping soles. Swings and landings do not count as creep."""

from __future__ import annotations

import numpy as np
import pytest
from recording_support import standing

from bipedsim.analysis.feet import creep_rate, lifts, sole_drift


def test_a_foot_that_swings_does_not_creep_and_one_that_slides_does() -> None:
    run = standing(201)
    assert creep_rate(run, 0.0) == 0.0
    # The right foot is in the air from row 50 on, and lands 0.3 m ahead in row 100.
    run.wrench[50:100, 1, 2] = 0.0
    run.sole_poses[:, 1, 0] = np.interp(np.arange(201), [49, 100], [0.0, 0.3])
    assert creep_rate(run, 0.0) == 0.0
    assert lifts(run, 0.0)
    assert sole_drift(run, 0.0) == pytest.approx(0.3)
    run.sole_poses[:, 0, 0] = 1e-4 * np.arange(201)
    assert creep_rate(run, 0.0) == pytest.approx(0.1)
    run.wrench[:] = 0.0
    assert creep_rate(run, 0.0) is None
