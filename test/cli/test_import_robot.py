"""``bipedsim import`` and ``bipedsim describe`` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from description_support import small_urdf

from bipedsim import load_run
from bipedsim.cli.main import main
from bipedsim.descriptions.notes import DOUBTS, GUESSED, TITLES
from bipedsim.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from bipedsim.model import load_robot
from bipedsim.runs import WalkTrial


def test_import_then_describe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.urdf").write_text(small_urdf())
    folder = tmp_path / "made"
    assert main(["import", str(tmp_path / "small.urdf"), "--output", str(folder), "--no-walk"]) == EXIT_OK
    printed = capsys.readouterr().out
    assert f"## {TITLES[GUESSED]}" in (folder / "report.md").read_text()
    assert len(printed.splitlines()) < 30, "short: the rest is in the report"
    assert f"{TITLES[GUESSED]}:" in printed
    assert f"bipedsim run --robot {folder / 'robot.yaml'}" in printed
    assert {path.name for path in folder.iterdir()} == {"robot.yaml", "report.md", "robot.png"}
    assert main(["import", str(tmp_path / "small.urdf"), "--output", str(folder)]) == EXIT_USAGE
    assert "--replace" in capsys.readouterr().err

    picture = tmp_path / "small.png"
    assert main(["describe", str(folder), "--plot", str(picture)]) == EXIT_OK
    assert "## Soles" in capsys.readouterr().out
    assert picture.is_file()
    assert main(["describe", str(folder), "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out) == {"robot": str(folder), "loads": True, "doubts": []}


def test_what_does_not_load_is_told_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.urdf").write_text(small_urdf())
    assert main(["import", str(tmp_path / "small.urdf"), "-o", str(tmp_path / "made"), "--no-walk"]) == EXIT_OK
    path = tmp_path / "made" / "robot.yaml"
    path.write_text(path.read_text() + "gravity: -1.0\nroot: hanging\n")
    capsys.readouterr()
    assert main(["describe", str(path)]) == EXIT_FAILED
    printed = capsys.readouterr().out
    assert "gravity = -1.0" in printed
    assert "unknown root 'hanging'" in printed


def test_a_robot_that_does_not_load_yet_is_written_with_the_command_that_checks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stiff = '<limit lower="1.9" upper="2" effort="60" velocity="8"/>'
    (tmp_path / "small.urdf").write_text(small_urdf(limit=stiff, knee=stiff))
    assert main(["import", str(tmp_path / "small.urdf"), "-o", str(tmp_path / "made")]) == EXIT_FAILED
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"bipedsim describe {tmp_path / 'made' / 'robot.yaml'}"
    assert not any(line.startswith("bipedsim run") for line in printed)


def test_a_scenario_selects_the_start_pose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pose = tmp_path / "pose.yaml"
    pose.write_text(".*_knee: 0.6\n.*_hip_pitch: -0.3\n.*_ankle_pitch: -0.3\n")
    scenario = tmp_path / "crouched.yaml"
    scenario.write_text("posture: ./pose.yaml")
    run = tmp_path / "run.npz"
    assert main(["run", "--scenario", str(scenario), "--duration", "0.01", "--output", str(run)]) == EXIT_OK
    recording = load_run(run)
    assert recording.joint_position[0, recording.joint_names.index("l_knee")] == pytest.approx(0.6, abs=0.05)
    capsys.readouterr()
    scenario.write_text("posture: croch")
    assert main(["run", "--scenario", str(scenario), "--duration", "0.01"]) == EXIT_USAGE
    assert "unknown posture 'croch'" in capsys.readouterr().err


def trials(*walked: bool) -> list[WalkTrial]:
    """Return trials of a robot that walks more slowly each time."""
    return [
        WalkTrial({"max_forward": 0.1 * (4 - i), "com_height": 0.6}, 0.3, 5.5 if success else 1.0, 20.0, not success)
        for i, success in enumerate(walked)
    ]


@pytest.mark.parametrize("walked", [(True,), (False, True), (False, False)])
def test_trial_walks_choose_the_parameters_of_zmp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walked: tuple[bool, ...]
) -> None:
    (tmp_path / "small.urdf").write_text(small_urdf())
    folder, firsts = tmp_path / "made", []
    results = trials(*walked)

    def find(robot: Path, params: dict[str, float], progress: bool) -> list[WalkTrial]:
        assert robot == folder / "robot.yaml"
        firsts.append(params)
        return results

    monkeypatch.setattr("bipedsim.runs.find_walk", find)
    assert main(["import", str(tmp_path / "small.urdf"), "-o", str(folder)]) == EXIT_OK
    written = yaml.safe_load((folder / "robot.yaml").read_text())["controllers"]["zmp"]
    assert written == (results[-1].params if walked[-1] else firsts[0])
    report = (folder / "report.md").read_text()
    notes = {title: report.partition(f"## {title}")[2].partition("\n## ")[0] for title in TITLES.values()}
    assert str(results[-1].speed) in notes[TITLES[GUESSED]] or not walked[-1]
    assert (str(results[-1]) in notes[TITLES[DOUBTS]]) != walked[-1]
    assert all(str(trial) in report for trial in results if not trial.walked)
    load_robot(folder / "robot.yaml")
