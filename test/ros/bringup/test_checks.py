"""Errors of a launch are found before its nodes start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_USAGE, ConfigError
from bipedsim_ros.bringup import plan, plan_robot
from bipedsim_ros.bringup.checks import check_names


@pytest.mark.parametrize(
    ("given", "words", "contact", "value"),
    [
        ({}, {"squat_deep": 1.0}, {}, "squat_deep"),
        ({}, {"squat_depth": "deep"}, {}, "deep"),
        ({}, {"kp.l_knee": "high"}, {}, "high"),
        ({}, {"kp.l_knee": 100}, {}, None),
        ({"controller": "user_controllers:Echo"}, {"gain": 11.0}, {}, 11.0),
        ({"controller": "user_controllers:Ecco"}, {}, {}, "Ecco"),
        ({"contact_model": "ncp"}, {}, {"gama": 1.0}, "gama"),
        ({"robot": "biped15"}, {}, {}, "biped15"),
        ({"ground": "stares"}, {}, {}, "stares"),
        ({"hardware": "reallistic"}, {}, {}, "reallistic"),
        ({"hardware": "{encoder_bitz: 12}"}, {}, {}, "encoder_bitz"),
        ({"robot": "g1", "scenario": "walk", "hardware": "realistic"}, {}, {"gamma": 0.1}, None),
    ],
)
def test_names_are_checked(given: Any, words: Any, contact: Any, value: Any) -> None:
    bringup = plan(given, words, contact)
    if value is None:
        check_names(bringup)
        return
    with pytest.raises(ConfigError) as error:
        check_names(bringup)
    assert getattr(error.value, "name", error.value.value) == value


def test_the_start_and_the_faults_of_a_scenario_are_checked(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text("faults: [{part: drives, does: scaled, amount: 0, joint: l_kne}]\nposture: croch\n")
    with pytest.raises(ConfigError) as error:
        check_names(plan({"scenario": str(scenario)}))
    assert {getattr(one, "name", one.value) for one in error.value.faults} == {"l_kne", "croch"}


def test_all_that_is_wrong_is_told_at_once_by_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    wrong = ["--set", "squat_deep=1"]
    assert main(["up", *wrong, "--set", "one_step.gama=1", "--ground", "stares"]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert "3 errors" in said
    assert all(word in said for word in ("squat_deep", "gama", "stares"))
    assert main(["control", *wrong]) == EXIT_USAGE
    assert "squat_deep" in capsys.readouterr().err


def test_a_file_may_say_another_robot(tmp_path: Path) -> None:
    """Only the nodes combine the file with the options."""
    file = tmp_path / "mine.yaml"
    file.write_text("controller_node: {ros__parameters: {robot: talos}}")
    check_names(plan({"params_file": str(file)}, {"squat_deep": 1.0}))


def test_a_controller_for_a_robot_is_checked_without_a_simulator() -> None:
    check_names(plan_robot({"robot": "talos", "controller": "zmp"}))
    check_names(plan_robot({"controller": "none", "record": "nowhere"}))
