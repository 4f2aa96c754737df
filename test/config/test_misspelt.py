"""A misspelt key is an error that suggests the right one, at any place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from paths import ROOT
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_USAGE, UnknownNameError
from bipedsim.model import ROBOTS
from bipedsim.runs.scenario import Scenario
from bipedsim.runs.scenario_host import controller_params_for

MEANT = "did you mean '{}'?"


def refused(capsys: pytest.CaptureFixture[str], meant: str, *options: str) -> str:
    assert main(["run", "--duration", "0.01", *options]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert MEANT.format(meant) in said
    return said


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("controller_params: {modee: steps}", "mode"),
        ("controller: zmp\ncontroller_params: {step_hight: 0.05}", "step_height"),
        ("drop_hight: 0.1", "drop_height"),
        ("hardware: {preset: realistic, gyro_noize: 0.1}", "gyro_noise"),
        ("velocity: [{at: 1.0, vxx: 0.1}]", "vx"),
        ("ground: flt", "flat"),
    ],
)
def test_in_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, meant: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    refused(capsys, meant, "--scenario", str(path))


def test_a_scenario_may_serve_another_controller_but_not_with_words_that_its_own_lacks() -> None:
    scenario = Scenario(name="mine", controller="posture", controller_params={"mode": "stand", "ramp": 0.5})
    assert controller_params_for(scenario, "posture") == scenario.controller_params
    assert "mode" not in controller_params_for(scenario, "zmp")
    wrong = Scenario(name="mine", controller="posture", controller_params={"modee": "stand"})
    for controller in ("posture", "zmp", "user_controllers:Rest"):
        with refusal(UnknownNameError, place="scenario 'mine': controller_params", name="modee"):
            controller_params_for(wrong, controller)


@pytest.mark.parametrize(
    ("change", "meant"),
    [({"controllers": {"postur": {"ramp": 1.0}}}, "posture"), ({"controllers": {"posture": {"rmp": 1.0}}}, "ramp")],
)
def test_in_a_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], meant: str) -> None:
    source = ROBOTS["biped14"]
    config = yaml.safe_load(source.read_text(encoding="utf-8")) | change
    config["urdf"] = str(source.parent / config["urdf"])
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(config))
    refused(capsys, meant, "--robot", str(path))


@pytest.mark.parametrize(
    ("options", "meant"),
    [(("--set", "modee=squat"), "mode"), (("--hardware", "{gyro_noize: 0.1}"), "gyro_noise")],
)
def test_on_the_command_line(capsys: pytest.CaptureFixture[str], options: tuple[str, ...], meant: str) -> None:
    refused(capsys, meant, *options)


@pytest.mark.long
@pytest.mark.ros
def test_in_what_a_node_is_given(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    env = request.getfixturevalue("ros").env
    path = tmp_path / "params.yaml"
    path.write_text("sim_node:\n  ros__parameters:\n    timeout_mod: zero\n")
    for given, meant in ((["-p", "physcs_dt:=0.001"], "physics_dt"), (["--params-file", str(path)], "timeout_mode")):
        command = [sys.executable, "-m", "bipedsim_ros.nodes.sim_node", "--ros-args", *given]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == EXIT_USAGE
        assert MEANT.format(meant) in done.stderr


def test_in_a_bring_up(tmp_path: Path) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    from bipedsim_ros.bringup.bringup import plan

    path = tmp_path / "params.yaml"
    path.write_text("sim_nod: {ros__parameters: {rate: 500.0}}\nmy_node: {ros__parameters: {rate: 1.0}}\n")
    with refusal(UnknownNameError, kind="node", name="sim_nod", meant="sim_node"):
        plan({"params_file": str(path)})
    path.write_text("/robot/sim_node: {ros__parameters: {rate: 500.0}}\n/**: {ros__parameters: {seed: 1}}\n")
    assert plan({"params_file": str(path)}).nodes
    with refusal(UnknownNameError, kind="parameter", meant="robot"):
        plan({"robto": "talos"})
