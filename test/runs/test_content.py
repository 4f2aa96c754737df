"""Content hash of a run: a change of any of these files changes it, and the file is named."""

from __future__ import annotations

import importlib
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from bipedsim.config import OWN, RunConfig, changes
from bipedsim.errors import BipedSimError
from bipedsim.runs import run_content

CONTROLLER = """
import numpy as np
from bipedsim.sim import Command
import content_gains

class Mine:
    def __init__(self, robot, params, dt):
        self.nu = robot.nu
    def reset(self, observation):
        pass
    def update(self, observation):
        return Command(np.zeros(self.nu))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(Path(str(files("bipedsim") / "robots" / "biped14")), tmp_path / "mine")
    urdf = tmp_path / "mine" / "robot.urdf"
    mesh = '<collision><geometry><mesh filename="foot.stl"/></geometry></collision>'
    text = urdf.read_text()
    urdf.write_text(text.replace("</link>", f"{mesh}</link>", 1))
    (tmp_path / "mine" / "foot.stl").write_bytes(b"solid")
    (tmp_path / "mine" / "seen.stl").write_bytes(b"solid")
    (tmp_path / "content_mine.py").write_text(CONTROLLER)
    (tmp_path / "content_gains.py").write_text("GAIN = 1\n")
    (tmp_path / "ground.yaml").write_text("flat: {friction_static: 0.4}\n")
    (tmp_path / "hard.yaml").write_text("{mass_scale: 1.1}\n")
    (tmp_path / "scenario.yaml").write_text("{controller: posture, ground: ground.yaml, hardware: hard.yaml}\n")
    (tmp_path / "policy.yaml").write_text("network: nets/net.onnx\n")
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "net.onnx").write_bytes(b"weights")
    (tmp_path / "node.py").write_text("print()\n")
    (tmp_path / "other.yaml").write_text("a: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN: dict[str, Any] = {
    "robot": "mine/robot.yaml",
    "controller": "content_mine:Mine",
    "scenario": "scenario.yaml",
    "controller_params": {"file": "policy.yaml", "command": "python3 node.py --fast"},
}
USED = (
    *("mine/robot.yaml", "mine/robot.urdf", "mine/foot.stl", "ground.yaml", "hard.yaml"),
    *("content_mine.py", "content_gains.py"),
    *("scenario.yaml", "policy.yaml", "nets/net.onnx", "node.py"),
)


def content(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the content of the run in a process that has not loaded its controller."""
    for name in ("content_mine", "content_gains"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return run_content(vars(RunConfig(**RUN)).items())


@pytest.mark.parametrize("name", USED)
def test_every_file_that_a_run_comes_from_counts(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(monkeypatch)
    path = folder / name
    path.write_bytes(path.read_bytes() + b"\n")
    differ = changes(before, content(monkeypatch))
    assert len(differ) == 1
    assert path.stem in differ[0]


@pytest.mark.parametrize("name", ["other.yaml", "mine/seen.stl"])
def test_no_other_file_does(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(monkeypatch)
    (folder / name).write_bytes(b"changed")
    assert content(monkeypatch) == before


@pytest.mark.parametrize("ground", ["{force_plates: [{model: ./other.yaml}]}", {"file": "./other.yaml"}])
def test_a_ground_of_the_command_line_brings_its_files(ground: Any, folder: Path) -> None:
    assert "./other.yaml" in run_content([("ground", ground)])


@pytest.mark.parametrize("direct", [True, False])
def test_a_scene_brings_its_files(folder: Path, direct: bool) -> None:
    (folder / "maps").mkdir()
    (folder / "maps" / "hills.png").write_bytes(b"image")
    (folder / "maps" / "assets").mkdir()
    (folder / "maps" / "assets" / "stones.bin").write_bytes(b"heights")
    (folder / "maps" / "assets" / "ridge.png").write_bytes(b"the folder of the main file is that of its parts")
    (folder / "maps" / "part.xml").write_text(
        '<mujoco><asset><hfield file="hills.png"/><hfield file="ridge.png"/></asset></mujoco>'
    )
    scene = '<compiler meshdir="assets"/><asset><hfield file="stones.bin"/></asset><include file="part.xml"/>'
    (folder / "maps" / "scene.xml").write_text(f"<mujoco>{scene}</mujoco>")
    path = "maps/scene.xml"
    content = run_content([("ground", path if direct else {"mjcf": {"file": path}})])
    assert {"part.xml", "hills.png", "assets/stones.bin", "assets/ridge.png"} <= set(content)
    assert ("ground maps/scene.xml" if direct else path) in content


@pytest.mark.parametrize("name", ["heights.npy", "heights.png", "heights.tif"])
def test_a_ground_of_heights_is_a_file(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\x89heights")
    assert f"ground {name}" in run_content([("ground", name)])


def test_a_robot_has_the_same_content_wherever_it_is(folder: Path) -> None:
    def of(robot: str) -> set[str]:
        return {one for name, one in run_content([("robot", robot)]).items() if name.startswith("robot ")}

    shutil.copytree(folder / "mine", folder / "copy")
    assert of("mine/robot.yaml") == of("copy") != of("biped14")


@pytest.mark.parametrize("name", ["controller", "contact_model"])
def test_a_class_of_another_distribution_counts_though_its_name_says_no_module(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "content_mine", raising=False)
    cls = importlib.import_module("content_mine").Mine
    monkeypatch.setattr("bipedsim.runs.content.find_controller", lambda named: (named, cls))
    monkeypatch.setattr("bipedsim.runs.content.CONTACT_MODELS", {"mine": cls})
    assert {"content_mine", "content_gains"} <= set(run_content([(name, "mine")]))


def test_own_names_bring_their_files_and_the_simulator_counts(folder: Path) -> None:
    found = run_content(vars(RunConfig(robot="biped14", scenario="walk", ground="stairs")).items())
    assert {OWN, "scenario walk", "ground stairs", "robot biped14: robot.yaml"} <= set(found)


@pytest.mark.parametrize("part", [("robot", "no_such"), ("controller", "no_such"), ("ground", "no_such")])
def test_what_is_not_there_is_told(part: tuple[str, str]) -> None:
    with pytest.raises(BipedSimError):
        run_content([part])
