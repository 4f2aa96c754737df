"""A headless run, tick by tick."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.config.run import RunConfig
from bipedsim.control.controllers import make_controller
from bipedsim.runs.runner import Run, prepare


@pytest.mark.parametrize("controller", ["posture", "pfl"])
def test_a_run_begins_with_a_controller_that_has_answered_nothing_yet(controller: str) -> None:
    """Its kernels were loaded by an answer before, which is forgotten."""
    prepared = prepare(RunConfig(controller=controller))
    run, fresh = Run(prepared), make_controller(controller, prepared.robot)
    fresh.reset(run.observation)
    for _ in range(3):
        run.control()
        limit = prepared.robot.effort_limit
        expected = np.clip(fresh.update(run.observation).tau_joint, -limit, limit)
        np.testing.assert_array_equal(run.tau_joint, expected)
        run.step()
