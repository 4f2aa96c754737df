"""Trial walks that choose the parameters of zmp for a new robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bipedsim.analysis import FallKind
from bipedsim.control.walking.zmp import ZmpController
from bipedsim.errors import ConfigError
from bipedsim.model import ROBOTS
from bipedsim.runs import WalkTrial, find_walk, walk_trial
from bipedsim.runs.trial_walks import ANKLE_SHARE, GENTLER

TALOS = str(ROBOTS["talos"])
PARAMS = {"com_height": 0.775, "max_forward": 0.4, "step_height": 0.05}


def outcomes(monkeypatch: pytest.MonkeyPatch, *walked: bool, weak: bool = False) -> list[Mapping[str, float]]:
    """Replace the simulation by outcomes; return the list that receives the parameters of each trial."""
    tried: list[Mapping[str, float]] = []

    def trial(robot: str, params: Mapping[str, float], label: str = "") -> WalkTrial:
        tried.append(params)
        success = walked[min(len(tried), len(walked)) - 1]
        return WalkTrial(params, 0.9 * params["max_forward"], 5.5 if success else 1.0, 20.0, not success)

    monkeypatch.setattr("bipedsim.runs.trial_walks.walk_trial", trial)
    monkeypatch.setattr("bipedsim.runs.trial_walks.ankles_limit_soles", lambda robot, share: weak)
    return tried


def test_a_robot_that_walks_keeps_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = outcomes(monkeypatch, True, weak=True)
    trials = find_walk(TALOS, PARAMS)
    assert [trial.walked for trial in trials] == [True]
    assert tried == [PARAMS]


def test_after_a_fall_weak_ankles_use_less_of_the_sole_at_the_same_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = outcomes(monkeypatch, False, True, weak=True)
    assert find_walk(TALOS, PARAMS)[-1].walked
    assert tried[1] == {**PARAMS, "ankle_share": ANKLE_SHARE}


def test_further_trials_are_slower_with_quicker_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = outcomes(monkeypatch, False)
    trials = find_walk(TALOS, PARAMS)
    assert not any(trial.walked for trial in trials)
    assert len(tried) == 1 + len(GENTLER)
    speeds = [params["max_forward"] for params in tried]
    assert speeds == sorted(speeds, reverse=True)
    steps = [params["single_support"] for params in tried[1:]]
    assert steps == sorted(steps, reverse=True)
    assert all(params["com_height"] == PARAMS["com_height"] for params in tried)


def test_a_slow_walk_is_no_success() -> None:
    slow = WalkTrial(PARAMS, 0.3, 0.5, 7.0)
    assert not slow.walked
    assert str(slow) != str(WalkTrial(PARAMS, 0.3, 5.5, 7.0))


@pytest.mark.long
def test_a_trial_is_a_walk_in_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bipedsim.runs.trial_walks.DISTANCE", 3.0)
    trial = walk_trial(TALOS, PARAMS)
    assert trial.walked
    assert trial.distance == pytest.approx(1.1 * 3.0, abs=0.3)
    assert trial.speed == pytest.approx(0.9 * PARAMS["max_forward"])


@pytest.mark.long
def test_a_trial_ends_when_the_controller_gives_up_and_has_the_reason_of_the_fall() -> None:
    trial = walk_trial(TALOS, {**PARAMS, "friction": 1e-3, "stance_weight": 0.0})
    assert trial.stop
    assert trial.reason is not None
    assert trial.reason.kind is FallKind.SLIP
    assert not trial.walked
    assert trial.seconds < 10.0


def test_parameters_that_zmp_refuses_are_an_error_and_no_fall() -> None:
    trial = walk_trial(TALOS, {**PARAMS, "edge": 0.2})
    assert trial.error
    assert not trial.fell
    assert not trial.walked


def test_ankles_are_asked_only_after_a_failure_and_may_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = outcomes(monkeypatch, False)

    def refuse(robot: object, share: float) -> bool:
        assert len(tried) == 1
        raise ConfigError("nothing is left")

    monkeypatch.setattr("bipedsim.runs.trial_walks.ankles_limit_soles", refuse)
    find_walk(TALOS, PARAMS)
    assert len(tried) == 1 + len(GENTLER)
    assert not any("ankle_share" in params for params in tried)


def test_an_exception_of_the_controller_is_a_failed_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    update = ZmpController.update

    def failing(self: Any, observation: Any) -> Any:
        if observation.t > 0.05:
            raise np.linalg.LinAlgError("Singular matrix")
        return update(self, observation)

    monkeypatch.setattr(ZmpController, "update", failing)
    trials = find_walk(TALOS, PARAMS)
    assert len(trials) > 1
    for trial in trials:
        assert "LinAlgError" in trial.stop
        assert 0.0 < trial.seconds < 0.1
        assert not any((trial.fell, trial.error, trial.walked))


@pytest.mark.parametrize("value", ["nan", "gave up"])
def test_a_stop_is_no_fall(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    update = ZmpController.update

    def failing(self: Any, observation: Any) -> Any:
        command = update(self, observation)
        if value == "nan":
            command.tau_joint[0] = np.nan
        else:
            self.fallen = True
        return command

    monkeypatch.setattr(ZmpController, "update", failing)
    trial = walk_trial(TALOS, PARAMS)
    assert trial.stop
    assert not any((trial.fell, trial.error, trial.walked))
