"""Parameters of a controller that change while a run without ROS lasts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from bipedsim.analysis import RunSummary, gather, summary_lines
from bipedsim.cli.main import main
from bipedsim.config import ParameterChange, RunConfig
from bipedsim.errors import ConfigError
from bipedsim.recording import load_recording
from bipedsim.runs import Push, Scenario, get_scenario, prepare, rerun, run

SETTINGS = RunConfig(robot="biped14", controller="posture", duration=0.3)
CHANGES = (ParameterChange(0.1, "stiffness", 20.0), ParameterChange(0.2, "damping", 0.2))
SCENARIO = Scenario(changes=CHANGES, pushes=(Push(0.05, 0.1, (30.0, 0.0, 0.0)),))


def test_a_recorded_run_is_repeated_to_the_bit_with_and_without_its_controller(tmp_path: Path) -> None:
    recording, summary = run(prepare(SETTINGS, SCENARIO))
    recording.save(tmp_path / "run.npz")
    loaded = load_recording(tmp_path / "run.npz")
    assert loaded.changes == CHANGES
    assert [entry["name"] for entry in summary["parameter_changes"]] == ["stiffness", "damping"]
    assert gather(tmp_path / "run.npz", RunSummary).figures()["parameter_changes"] == summary["parameter_changes"]
    assert rerun(loaded).first is None
    again, _ = run(prepare(SETTINGS, replace(SCENARIO, changes=loaded.changes)))
    without, _ = run(prepare(SETTINGS, replace(SCENARIO, changes=())))
    differs = np.any(recording.joint_command != without.joint_command, axis=1)
    assert recording.joint_command.tobytes() == again.joint_command.tobytes()
    assert recording.joint_position.tobytes() == again.joint_position.tobytes()
    # The row at 0.101 s is the first whose command was computed after the change at 0.1 s.
    assert recording.t[np.argmax(differs)] == pytest.approx(0.101)


def test_changes_in_a_scenario_file(tmp_path: Path) -> None:
    file = tmp_path / "tuned.yaml"
    file.write_text("controller: posture\nchanges: [{at: 0.1, name: stiffness, value: 20}]\n", encoding="utf-8")
    prepared = prepare(replace(SETTINGS, scenario=str(file)))
    assert prepared.scenario.changes == (ParameterChange(0.1, "stiffness", 20),)
    file.write_text("controller: posture\nchanges: [{at: 0.1, name: squat_depth, value: 0.1}]\n", encoding="utf-8")
    with pytest.raises(ConfigError):
        prepare(replace(SETTINGS, scenario=str(file)))


def test_a_scenario_refuses_changes_of_the_drives_and_repeats_those_of_the_controller(tmp_path: Path) -> None:
    """A recording contains both."""
    recording, _ = run(prepare(SETTINGS, SCENARIO))
    of_drives = ParameterChange(0.1, "drive_stiffness.l_knee", 400.0, "drives")
    changes = (*recording.changes, of_drives)
    with refusal(value=of_drives.name):
        prepare(SETTINGS, replace(SCENARIO, changes=changes))
    file = tmp_path / "tuned.yaml"
    file.write_text("controller: posture\nchanges: [{name: stiffness, value: 20, of: drives}]\n", encoding="utf-8")
    with refusal(place=f"{file}: changes", value="stiffness"):
        get_scenario(str(file))
    own = tuple(change for change in changes if change.of == "controller")
    again, _ = run(prepare(SETTINGS, replace(SCENARIO, changes=own)))
    assert recording.joint_command.tobytes() == again.joint_command.tobytes()


def test_the_summary_lists_the_changes_of_each_owner() -> None:
    changes = [vars(CHANGES[0]), {"at": 0.2, "name": "drive_damping.l_knee", "value": 3.0, "of": "drives"}]
    lines = [line for line in summary_lines({"robot": "r", "parameter_changes": changes}) if "from 0." in line]
    assert ["drives" in line for line in lines] == [False, True]
    # Older recordings contain no owner.
    changes = [{"at": 0.1, "name": "stiffness", "value": 20.0}]
    assert sum("stiffness" in line for line in summary_lines({"robot": "r", "parameter_changes": changes})) == 1


def test_a_figure_shows_name_and_value_of_a_change(tmp_path: Path) -> None:
    recording, _ = run(prepare(SETTINGS, SCENARIO))
    recording.save(tmp_path / "run.npz")
    assert main(["plot", str(tmp_path / "run.npz"), "-o", str(tmp_path / "run.html")]) == 0
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert str(CHANGES[0]) in page
    assert str(CHANGES[1]) in page
