"""Parameters that are declared live change while a controller runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bipedsim.config import ParameterChange, RunConfig, parse_changes
from bipedsim.control import Guard, Tuning, find_controller
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.runs import get_scenario, prepare, run
from bipedsim.sim import Simulator

ROBOT = load_robot("biped14")
CHANGES: dict[str, dict[str, Any]] = {
    "posture": {"stiffness": 20.0, "damping": 0.1, "kp": {"l_knee": 900.0}, "kd": {"r_knee": 9.0}},
    "computed_torque": {"frequency": 7.0, "damping_ratio": 0.5},
    "sliding": {"slope": 5.0, "reach": 10.0, "layer": 1.0},
    "pfl": {"kp": 50.0, "kd": 3.0},
    "zmp": {
        "dcm_gain": 2.0,
        "height_stiffness": 60.0,
        "height_damping": 15.0,
        "stance_damping": 30.0,
        "swing_stiffness": 300.0,
        "swing_damping": 35.0,
        "swing_turn_stiffness": 900.0,
        "swing_turn_damping": 60.0,
        "base_stiffness": 150.0,
        "base_damping": 20.0,
        "posture_stiffness": 60.0,
        "posture_damping": 15.0,
    },
}
REFUSED = {"posture": {"kd": {"l_knee": -1.0}}, "sliding": {"reach": 1000.0}}


@pytest.mark.parametrize("name", CHANGES)
def test_a_tuned_controller_is_one_with_these_gains(name: str) -> None:
    _, cls = find_controller(name)
    params = cls.Params()
    live = {field for field, declared in cls.Params.__dataclass_fields__.items() if declared.metadata["live"]}
    assert live == set(CHANGES[name])
    changed = replace(params, **CHANGES[name])
    tuned, fresh = (cls(ROBOT, p, 1e-3) for p in (params, changed))
    observation = Simulator(ROBOT).reset()
    for controller in (tuned, fresh):
        controller.reset(observation)
    observation.joint_position += 0.01
    observation.joint_velocity += 0.02
    assert not np.array_equal(tuned.update(observation).tau_joint, fresh.update(observation).tau_joint)
    tuned.tune(changed)
    expected = fresh.update(observation).tau_joint.copy()
    np.testing.assert_array_equal(tuned.update(observation).tau_joint, expected)
    if name in REFUSED:
        with pytest.raises(ConfigError):
            tuned.tune(replace(params, **REFUSED[name]))
        np.testing.assert_array_equal(tuned.update(observation).tau_joint, expected)


@cache
def walked(name: str = "", at_start: bool = True) -> np.ndarray:
    """Return the joint angles of a walk whose controller has another gain: from its start, or by a change at t = 0."""
    value = CHANGES["zmp"].get(name)
    params, changes = {}, ()
    if name and at_start:
        params = {name: value}
    elif name:
        changes = (ParameterChange(0.0, name, value),)
    scenario = replace(get_scenario("walk"), controller_params=params, changes=changes, duration=3.0)
    return run(prepare(RunConfig(), scenario))[0].joint_position


QUICK = ("dcm_gain", "swing_stiffness", "base_damping")
"""Gains whose walks CI has time for; those of the other tasks are read in the same way."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in QUICK else pytest.mark.slow) for name in CHANGES["zmp"]],
)
def test_each_gain_of_a_walk_takes_effect(name: str) -> None:
    """The walks differ a little, because the inertia of the swing leg is computed with the gains of the start."""
    difference = np.abs(walked(name) - walked()).max()
    assert difference > 1e-6
    assert np.abs(walked(name, at_start=False) - walked(name)).max() < 0.01 * difference


def hosted(name: str = "posture") -> tuple[Guard, Any]:
    _, cls = find_controller(name)
    params = cls.Params()
    return Guard(cls(ROBOT, params, 1e-3), ROBOT), params


def test_changes_apply_when_they_are_due_and_are_listed() -> None:
    guard, params = hosted()
    scheduled = [ParameterChange(0.2, "kp.l_knee", 700.0), ParameterChange(0.1, "stiffness", 20.0)]
    tuning = Tuning(guard.tune, params, scheduled)
    assert not tuning.due(0.099)
    assert tuning.due(0.1) == [ParameterChange(0.1, "stiffness", 20.0)]
    assert tuning.set(0.15, {"damping": 0.2, "stiffness": 20.0}) == [ParameterChange(0.15, "damping", 0.2)]
    assert tuning.due(5.0) == [ParameterChange(5.0, "kp.l_knee", 700.0)]
    assert [change.name for change in tuning.applied] == ["stiffness", "damping", "kp.l_knee"]
    assert {change.name for change in tuning.restart(0.0)} == {"stiffness", "damping", "kp.l_knee"}
    assert all(change.at == 0.0 for change in tuning.applied)
    assert not tuning.due(1.0), "the schedule brings nothing new"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("posture", ("squat_depth", 0.1)),
        ("posture", ("stifness", 20.0)),
        ("posture", ("stiffness", -1.0)),
        ("posture", ("stiffness", "stiff")),
        ("zmp", ("step_height", 0.1)),
    ],
)
def test_a_change_that_cannot_be_is_refused_before_the_run(name: str, change: tuple[str, Any]) -> None:
    _, cls = find_controller(name)
    guard, params = hosted() if name == "posture" else (hosted()[0], cls.Params())
    with pytest.raises(ConfigError):
        Tuning(guard.tune, params, [ParameterChange(1.0, *change)])


def test_a_refused_change_leaves_the_parameters_alone() -> None:
    guard, params = hosted("sliding")
    tuning = Tuning(guard.tune, params)
    with pytest.raises(ConfigError):
        tuning.set(0.0, {"reach": 1000.0})
    assert tuning.applied == []
    assert tuning.set(0.1, {"slope": 5.0}) == [ParameterChange(0.1, "slope", 5.0)]


def test_texts_of_changes_lose_nothing() -> None:
    changes = (ParameterChange(1.0 / 3.0, "kp.l_knee", 1e-3 / 7.0), ParameterChange(2.0, "mode", "a b"))
    changes += (ParameterChange(3.0, "on", True),)
    assert parse_changes([change.text() for change in changes]) == changes
    for wrong in ("stiffness 20", "1.0 stiffness", "x stiffness 20", "-1 stiffness 20"):
        with pytest.raises(ConfigError):
            parse_changes([wrong])


def test_a_schedule_counts_dates_from_the_first_one() -> None:
    guard, params = hosted()
    tuning = Tuning(guard.tune, params, [ParameterChange(1.0, "stiffness", 20.0)])
    date = 1.7e9
    tuning.restart(date)
    assert not tuning.due(date + 0.999)
    assert [change.name for change in tuning.due(date + 1.0)] == ["stiffness"]
