"""The controller alone, for a running robot. The plan equals that of a launch with simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from refusals import refusal

from bipedsim.errors import UnknownNameError
from bipedsim_ros.bringup.bringup import plan
from bipedsim_ros.bringup.robot_bringup import plan_robot


def test_controller_and_recorder_are_those_of_a_bring_up_with_simulator(tmp_path: Path) -> None:
    given: dict[str, Any] = {"robot": "talos", "rate": 500.0, "record": str(tmp_path / "run")}
    words = {"mode": "squat"}
    nodes = {node.executable: node for node in plan(given, words).nodes}
    recorder, controller = plan_robot(given, words).nodes
    assert controller == nodes["controller_node"]
    # A robot continues after a launch ends, so the recorder does not wait for its end.
    told = dict(nodes["recorder_node"].parameters)
    assert told.pop("await_end") > 0.0
    assert recorder == replace(nodes["recorder_node"], parameters=told)


def test_what_only_a_simulator_knows_is_refused() -> None:
    with refusal(UnknownNameError, name="contact_model"):
        plan_robot({"contact_model": "lcp"})
    with refusal(place="controller", value="none"):
        plan_robot({"controller": "none"})
    with refusal(place="scenario", value="push"):
        plan_robot({"scenario": "push"})


def test_a_scenario_that_is_only_words_works_on_a_robot() -> None:
    controller, commander = plan_robot({"scenario": "walk", "clock": "lock_step"}).nodes
    assert controller.parameters["controller"] == "zmp"
    assert controller.parameters["cmd_vel_period"] == 0.1
    assert commander.executable == "commander_node"
