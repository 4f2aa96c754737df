"""A headless run, tick by tick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.control.controllers import make_controller
from bipedsim.errors import ConfigError
from bipedsim.recording import load_recording
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
        np.testing.assert_array_equal(run.command, expected)
        run.step()


def test_what_was_simulated_before_the_controller_raised_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its exception goes on to whoever wrote it; with Ctrl-C the same is left."""
    file = tmp_path / "run.npz"
    with pytest.raises(RuntimeError, match="this controller crashes"):
        main(["run", "--controller", "user_controllers:Crash", "--duration", "1", "--output", str(file)])
    out, err = capsys.readouterr()
    assert "but the controller was stopped at t = 0.051 s: its update raised RuntimeError: this controller" in out
    assert "ended by an error at t = 0.051 s; the figures and files are of what was simulated until then" in err
    assert len(load_recording(file)) == 51


def test_parameters_may_have_the_name_of_their_class_before_them_as_in_ros() -> None:
    params, contact = {"posture.mode": "squat", "squat_depth": 0.02}, {"one_step.gamma": 0.2}
    settings = RunConfig(controller="posture", controller_params=params, contact_params=contact)
    run = Run(prepare(settings))
    assert run.sim.contact_params == {"gamma": 0.2}
    with pytest.raises(ConfigError, match=r"unknown parameter 'pfl\.mode'"):
        prepare(RunConfig(controller="posture", controller_params={"pfl.mode": "squat"}))
