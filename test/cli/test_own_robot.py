"""A third-party robot and ground: a command that reads a recording finds their files from any working directory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from refusals import check_fields, refusal

from bipedsim.analysis import robot_of
from bipedsim.cli.main import main
from bipedsim.errors import EXIT_USAGE
from bipedsim.model import ROBOTS
from bipedsim.recording import load_recording


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run an unregistered robot from one folder and record into another; return the latter, which is the current
    folder.
    """
    home, away = tmp_path / "home", tmp_path / "away"
    shutil.copytree(ROBOTS["biped14"].parent, home / "mine")
    file = home / "mine" / "robot.yaml"
    file.write_text(file.read_text().replace("name: biped14", "name: nobody_knows"))
    away.mkdir()
    monkeypatch.chdir(home)
    (home / "ramp.yaml").write_text("slope: {angle_deg: 2}")
    words = ["run", "--robot", "mine/robot.yaml", "--ground", "ramp.yaml", "--duration", "0.3"]
    assert main([*words, "--record", "../away/run.npz"]) == 0
    (home / "ramp.yaml").unlink()
    monkeypatch.chdir(away)
    return away


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ["margins", "run.npz"],
        ["replay", "run.npz"],
        ["animate", "run.npz", "-o", "strip.png"],
        ["view", "run.npz", "--html", "run.html"],
        ["plot", "run.npz", "-o", "com.png", "--panels", "com"],
    ],
    ids=lambda words: words[0],
)
def test_commands_find_the_robot_of_a_recording(
    elsewhere: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    said = capsys.readouterr()
    assert "nobody_knows'" not in said.out + said.err  # no output is missing because of it


def test_an_export_has_what_follows_from_the_robot(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "run.npz", "-o", "run.trc"]) == 0
    assert "left out" not in capsys.readouterr().out


def test_a_bag_of_a_run_knows_its_robot(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "run.npz", "-o", "run.mcap"]) == 0
    assert "without the robot" not in capsys.readouterr().out
    assert robot_of(load_recording(elsewhere / "run.mcap")).name == "nobody_knows"


def test_a_robot_that_is_gone_is_told_by_its_file(elsewhere: Path) -> None:
    shutil.rmtree(elsewhere.parent / "home")
    with refusal(place="the robot of the recording") as caught:
        robot_of(load_recording(elsewhere / "run.npz"))
    check_fields(caught.value.__cause__, place=elsewhere.parent / "home" / "mine" / "robot.yaml")


@pytest.mark.parametrize("given", ["biped14", str(ROBOTS["biped14"])])
def test_a_recording_holds_the_name_of_an_installed_robot(tmp_path: Path, given: str) -> None:
    assert main(["run", "--robot", given, "--duration", "0.01", "--record", str(tmp_path / "run.npz")]) == 0
    with np.load(tmp_path / "run.npz") as file:
        header = json.loads(str(file["header"]))
    # The path would be that of this installation.
    assert header["run"]["robot"] == "biped14"


@pytest.mark.parametrize("suffix", [".urdf", ".xml", ".URDF"])
def test_a_description_in_the_place_of_a_robot_is_told_to_be_imported(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"mine{suffix}"
    path.write_text("<robot/>")
    assert main(["run", "--robot", str(path), "--duration", "0.1"]) == EXIT_USAGE
    assert f"`bipedsim import {path}` writes a folder with a robot.yaml" in capsys.readouterr().err
