"""A launch whose robot uses a vendor's topics."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from refusals import refusal

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("cyclonedds", reason="cyclonedds is not installed (pip install 'bipedsim[unitree]')")

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_USAGE, UnknownNameError
from bipedsim_ros.bringup import plan
from bipedsim_ros.bringup.checks import check_names

SPEAKS = {"robot": "g1", "controller": "unitree"}


def test_the_node_of_an_interface_takes_the_place_of_a_controller() -> None:
    bringup = plan(SPEAKS, interface_params={"unitree.domain": 3, "network": "subnet"})
    check_names(bringup)
    sim, speaks = bringup.nodes
    assert (sim.executable, speaks.executable) == ("sim_node", "unitree_node")
    assert sim.parameters["timeout_mode"] == "hold", "the vendor's drives keep the last command"
    assert speaks.parameters == {"robot": "g1", "priority": 50, "domain": 3, "network": "subnet"}


def test_a_gantry_reaches_simulator_and_interface(tmp_path: Path) -> None:
    sim, speaks = plan({**SPEAKS, "scenario": "hang"}).nodes
    assert sim.parameters["gantry"] == speaks.parameters["gantry"] == "{clearance: 0.1, speed: 0.05}"
    scenario = tmp_path / "hung.yaml"
    scenario.write_text("gantry: {lower_at: 2}\n")
    sim, speaks = plan({**SPEAKS, "scenario": str(scenario)}).nodes
    assert sim.parameters["gantry"] == speaks.parameters["gantry"] == "{clearance: 0.1, lower_at: 2.0, speed: 0.05}"
    scenario.write_text("gantry: yes please\n")
    with refusal(place="gantry", value="yes please"):
        plan({"scenario": str(scenario)})


def test_what_is_given_wins(tmp_path: Path) -> None:
    bringup = plan(SPEAKS, interface_params={"priority": 7})
    assert bringup.nodes[1].parameters["priority"] == 7
    file = tmp_path / "mine.yaml"
    file.write_text("/**/sim_node: {ros__parameters: {timeout_mode: zero}}\n")
    with_file = plan({**SPEAKS, "params_file": str(file), "namespace": "r1"})
    assert "timeout_mode" not in with_file.nodes[0].parameters
    assert [node.namespace for node in with_file.nodes] == ["/r1", "/r1"]


def test_programs_with_a_clock_of_their_own_keep_no_lock_step() -> None:
    with refusal(place="clock", value="lock_step"):
        plan({**SPEAKS, "clock": "lock_step"})


def test_parameters_without_an_interface_and_unknown_interfaces_are_refused() -> None:
    with refusal(place="parameters of an interface: domain"):
        plan({}, interface_params={"domain": 1})
    with refusal(UnknownNameError, kind="controller", meant="unitree"):
        plan({"controller": "unitre"})


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "cyclonedds" else found(name))
    with refusal(place="interface", value="unitree"):
        plan(SPEAKS)


def test_all_that_the_node_would_refuse_is_told_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ["domain=500", "remote=[1 jump]", "begin=Z", "stick_speed=[0, 1, 1]"]
    options = [word for pair in wrong for word in ("--set", f"unitree.{pair}")]
    assert main(["up", "--robot", "biped14", "--controller", "unitree", *options]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert all(word in said for word in ("joints l_hip_yaw, ", "domain = 500", "'Z'"))
    assert main(["up", "--robot", "g1", "--controller", "unitree", *options[2:4], *options[6:]]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert all(word in said for word in ("remote = 'jump'", "stick_speed = [0.0, 1.0, 1.0] must be above 0"))
