"""Suggested motions: their promises, compared with recordings of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from estimates import estimate_with

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.model import load_robot
from bipedsim.recording.recording import Recording
from bipedsim.runs import prepare, run
from bipedsim.runs.scenario import read_scenario
from bipedsim_studies.identify import estimate, parameters_of, signals_of, suggest
from bipedsim_studies.identify.lacking import Lacking

HIDDEN = {"preset": "realistic", "coulomb_friction": {".*_knee": 2.5}, "armature": 0.12}
SLOW = suggest.MOTIONS["squat 0.03 m in 1.2 s"]
MOTIONS = {"squat": SLOW, "walk": suggest.MOTIONS["walk 0.3 m/s"], "fall": suggest.MOTIONS["sway 90% in 2 s"]}


def squat(seconds: float) -> Recording:
    recording, _ = run(RunConfig(scenario="squat", hardware=HIDDEN, duration=seconds))
    return recording


@pytest.mark.slow
def test_a_motion_brings_what_the_suggestion_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is the estimate from both recordings, of the robot and not of its identified copy."""
    monkeypatch.setattr(suggest, "MOTIONS", MOTIONS)
    robot = load_robot("biped14")
    known = signals_of(squat(10.0), robot)
    before = estimate(robot, [known])
    hardware = {**HIDDEN, "coulomb_friction": {".*_knee": 2.3}}
    ranked = suggest.suggestions(robot, before, hardware, known.lacking)
    assert [each.name for each in ranked] == ["walk", "squat", "fall"]
    assert ranked[-1].result is None
    for each in ranked[:2]:
        promised = each.result
        assert promised is not None
        scenario = suggest.from_mapping(suggest.Scenario, each.scenario, each.name)
        recording, _ = run(prepare(RunConfig(hardware=HIDDEN, duration=suggest.DURATION, seed=5), scenario))
        after = estimate(robot, [known, signals_of(recording, robot)])
        ratio = np.log(promised.deviation / after.deviation)
        assert abs(np.median(ratio)) < 0.15
        assert np.mean(np.abs(ratio) < np.log(2.0)) > 0.9


@pytest.mark.long
def test_the_command_writes_the_scenario_of_the_best_motion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggest, "MOTIONS", MOTIONS)
    squat(4.0).save(tmp_path / "squat.npz")
    words = ["identify", str(tmp_path / "squat.npz"), "--suggest", str(tmp_path / "next.yaml"), "--json"]
    assert main(words) in (0, 3)
    said: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["suggestions"]
    assert said[0]["motion"] == "walk"
    assert (said[-1]["motion"], said[-1]["identified"]) == ("fall", None)
    assert said[0]["identified"] >= said[1]["identified"]
    scenario = read_scenario(tmp_path / "next.yaml")
    assert (scenario.controller, scenario.velocity[0].vx) == ("zmp", 0.3)


def test_without_a_motion_that_succeeds_no_file_is_written(tmp_path: Path) -> None:
    failed = suggest.Suggestion("fall", {"duration": 1.0}, None, "it falls")
    assert suggest.write_suggestion(tmp_path / "next.yaml", failed, "biped14")
    assert not list(tmp_path.iterdir())


def test_a_motion_whose_controller_gives_up_is_no_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    """The robot does not fall before the end of the run."""
    robot = load_robot("biped14")
    p = parameters_of(robot)
    known = estimate_with(p, p.start, np.diag(p.spread**2))

    def stopped(*_: Any) -> tuple[Recording, dict[str, Any]]:
        recording, summary = run(RunConfig(scenario="squat", duration=2.5))
        recording.gave_up_at, recording.gave_up_why = 2.4, "a torque is not finite"
        return recording, summary

    monkeypatch.setattr(suggest, "run", stopped)
    monkeypatch.setattr(suggest, "MOTIONS", {"squat": SLOW})
    lacking = signals_of(squat(2.5), robot).lacking
    (only,) = suggest.suggestions(robot, known, {}, lacking)
    assert only.result is None
    assert "2.4 s" in only.why


def test_a_motion_is_of_no_use_for_what_no_sensor_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A joint without a sensor of its effort keeps its intervals; the other joints do not."""
    monkeypatch.setattr(suggest, "MOTIONS", {"squat": SLOW})
    monkeypatch.setattr(suggest, "DURATION", 3.0)
    robot = load_robot("biped14")
    p = parameters_of(robot)
    before = estimate_with(p, p.start, np.diag(p.spread**2), np.full(robot.model.nv + 12, 0.05))
    knees = [robot.joint_names.index(name) for name in ("l_knee", "r_knee")]
    efforts = np.zeros(robot.nu, dtype=bool)
    efforts[knees[0]] = True
    (only,) = suggest.suggestions(robot, before, {}, Lacking(efforts, np.zeros((2, 6), dtype=bool)))
    assert only.result is not None
    left, right = p.at["coulomb_friction"][knees, 0]
    shrinks = only.result.deviation / before.deviation
    assert shrinks[left] > 0.99
    assert shrinks[right] < 0.5
