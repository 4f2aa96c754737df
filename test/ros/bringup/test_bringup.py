"""The plan of a launch, and `bipedsim up` with real nodes: success, failure and interrupts."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from children_support import children_of
from marks import sampled
from paths import LOCK_STEP, ROOT
from physics_support import SUMMARY_KEYS
from refusals import refusal

from bipedsim.analysis import RunSummary, gather
from bipedsim.cli import SAME_WISH
from bipedsim.cli.commands import make_parser
from bipedsim.config import to_json
from bipedsim.contact.models import CONTACT_MODELS
from bipedsim.errors import ConfigError, UnknownNameError
from bipedsim.model import load_robot
from bipedsim.recording import load_recording
from bipedsim.recording.bag.reader import BagWriter, Topic
from bipedsim.runs.replay import rerun
from bipedsim_ros.bringup import bringup
from bipedsim_ros.bringup.bringup import (
    Arguments,
    BringUp,
    argument_help,
    argument_names,
    from_text,
    plan,
)
from bipedsim_ros.bringup.robot_bringup import only_of_nodes, plan_robot
from bipedsim_ros.bringup.runner import BringUpOutcome, conclude, discard_empty

PATIENCE_S = 240.0


def names(bringup: Any) -> list[str]:
    return [node.executable for node in bringup.nodes]


def test_simulator_and_controller_by_default() -> None:
    bringup = plan({})
    assert names(bringup) == ["sim_node", "controller_node"]
    assert all(node.parameters == {} for node in bringup.nodes), "what is not given is left to the nodes"
    assert bringup.run_folder is None


def test_the_recorder_comes_first_and_must_be_ready(tmp_path: Path) -> None:
    bringup = plan({"record": str(tmp_path / "run"), "robot": "talos_legs"})
    assert names(bringup) == ["recorder_node", "sim_node", "controller_node"]
    recorder, sim, controller = bringup.nodes
    assert recorder.ready
    assert not sim.ready
    named = {"robot": "talos_legs", "controller": "posture"}
    assert recorder.parameters == {"output": str(tmp_path / "run" / "bag"), **named, "priority": 25, "await_end": 5.0}
    assert sim.parameters == {"robot": "talos_legs", "wait_for_recorder": True}
    assert controller.parameters == {"robot": "talos_legs", "wait_for_listeners": 2}


def test_the_recorder_is_polite_and_the_loop_urgent(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("/**: {ros__parameters: {priority: 20}}")
    recorder, sim, controller = plan({"record": str(tmp_path / "run"), "params_file": str(file)}).nodes
    assert recorder.prefix[0] == "nice"
    assert sim.prefix == controller.prefix == ()
    assert "priority" not in {*sim.parameters, *controller.parameters}, "they have that of the file"
    assert recorder.parameters["priority"] == 10, "after the loop, before everything else"
    given = {"clock": "as_fast_as_possible", "record": str(tmp_path / "fast")}
    recorder, _, controller = plan(given).nodes
    assert controller.parameters["priority"] == 0, "where no wall clock is kept, nobody is pushed aside"
    assert "priority" not in recorder.parameters


def test_every_argument_reaches_a_node() -> None:
    given = {"ground": "stairs", "clock": "lock_step", "rate": 500.0, "physics_dt": 0.002, "duration": 2.0}
    given |= {"contact_model": "ncp", "hardware": "realistic", "seed": 3}
    sim, controller = plan(given).nodes
    assert sim.parameters == given
    assert controller.parameters == {"rate": 500.0, "priority": 0, "lock_step": True}


def state_publisher(prefix: Path) -> str:
    """Install a replacement of robot_state_publisher, and return the prefix for the environment variable."""
    return installed("robot_state_publisher", prefix)


def installed(package: str, prefix: Path) -> str:
    """Install a replacement of a package's program, and return the prefix for the environment variable."""
    marker = prefix / "share" / "ament_index" / "resource_index" / "packages" / package
    program = prefix / "lib" / package / package
    for path in (marker, program):
        path.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    program.write_text("#!/bin/sh\necho started with \"$*\"\ntrap 'exit 0' INT\nwhile :; do sleep 0.1; done\n")
    program.chmod(0o755)
    return f"{prefix.parent}{os.pathsep}{prefix}"


def test_robot_state_publisher_is_started_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert names(plan({})) == ["sim_node", "controller_node"]
    with refusal(place="robot_state_publisher", value="on"):
        plan({"robot_state_publisher": "on"})
    monkeypatch.setenv("AMENT_PREFIX_PATH", state_publisher(tmp_path / "ros"))
    node = plan({"robot": "parallel_ankles"}).nodes[-1]
    assert (node.package, node.executable) == ("robot_state_publisher", "robot_state_publisher")
    assert node.parameters["use_sim_time"] is True
    assert node.parameters["robot_description"] == load_robot("parallel_ankles").urdf_xml
    assert ("/tf", "tf") in node.remappings, "its absolute names go into the namespace of the robot"
    assert names(plan({"robot_state_publisher": "off"})) == ["sim_node", "controller_node"]
    assert names(plan_robot({})) == ["controller_node"], "a robot has its own"
    file = tmp_path / "params.yaml"
    file.write_text("sim_node: {ros__parameters: {robot: talos_legs}}")
    assert "talos" in plan({"params_file": str(file)}).nodes[-1].parameters["robot_description"]


def test_rviz_shows_what_is_up_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With our configuration, in simulated time, and with the names of the robot's namespace."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    with refusal(place="rviz", value=True):
        plan({"rviz": True})
    prefixes = installed("rviz2", tmp_path / "ros")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{prefixes}{os.pathsep}{sys.prefix}")
    node = plan({"rviz": True}).nodes[-1]
    assert (node.package, node.executable, node.optional, node.parameters) == (
        "rviz2",
        "rviz2",
        True,
        {"use_sim_time": True},
    )
    assert (node.arguments[0], Path(node.arguments[1]).name, node.remappings) == ("-d", "bipedsim.rviz", ())
    config = Path(node.arguments[1]).resolve()
    assert config.read_bytes() == (ROOT / "config" / "bipedsim.rviz").read_bytes()
    moved = dict(plan({"rviz": True, "namespace": "r1"}).nodes[-1].remappings)
    assert moved["/left_foot/wrench"] == "/r1/left_foot/wrench"
    assert all(new == f"/r1{old}" for old, new in moved.items())
    assert {"/tf", "/tf_static", "/clock", "/robot_description", "/plan/footsteps"} <= set(moved)


def test_rviz_gets_the_configuration_of_the_checkout_where_the_prefix_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editable installation has no such file in its prefix; without a checkout the refusal names the folders."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("AMENT_PREFIX_PATH", installed("rviz2", tmp_path / "ros"))
    monkeypatch.setattr(bringup, "__file__", str(ROOT / "bipedsim_ros" / "bringup" / "bringup.py"))
    assert plan({"rviz": True}).nodes[-1].arguments == ("-d", str(ROOT / "config" / "bipedsim.rviz"))
    monkeypatch.setattr(bringup, "__file__", str(tmp_path / "bipedsim_ros" / "bringup" / "bringup.py"))
    with refusal(place="rviz"):
        plan({"rviz": True})


def test_log_level_and_remappings_are_those_of_all_nodes() -> None:
    nodes = plan({"log_level": "warn", "remap": "/imu/data:=/torso/imu, cop:=zmp"}).nodes
    assert {node.log_level for node in nodes} == {"warn"}
    assert {node.remappings for node in nodes} == {(("/imu/data", "/torso/imu"), ("cop", "zmp"))}
    with refusal(place="remap", value=":=/a /b"):
        plan({"remap": ":=/a /b"})
    with refusal(place="remap", value="/cop"):
        plan({"remap": "/cop:=/zmp", "namespace": "r1"})
    with refusal(UnknownNameError, kind="log_level"):
        plan({"log_level": "loud"})


@pytest.mark.slow
@pytest.mark.ros
def test_names_log_level_and_state_publisher_reach_the_processes(ros_env: dict[str, str], tmp_path: Path) -> None:
    """The controller receives the sensors of the remapped robot, INFO is not logged, and the node of the other package
    runs.
    """
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", *LOCK_STEP, "--duration", "0.2"]
    command += ["--remap", "imu/data:=/torso/imu joint_states:=limbs", "--log-level", "warn", "--namespace", "r1"]
    env = {**ros_env, "AMENT_PREFIX_PATH": f"{sys.prefix}{os.pathsep}{state_publisher(tmp_path / 'ros')}"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "biped14 stood 0.2 s" in done.stdout
    assert "[INFO]" not in done.stdout + done.stderr
    assert "[robot_state_publisher] started with --ros-args -r __ns:=/r1 -r imu/data:=/torso/imu" in done.stdout
    assert "-r /tf:=tf -r /tf_static:=tf_static -r /clock:=clock" in done.stdout


def test_your_own_controller_is_started_by_you() -> None:
    assert names(plan({"controller": "none"})) == ["sim_node"]
    with refusal(place="parameters of the controller: kp"):
        plan({"controller": "none"}, {"kp": 1.0})


def test_parameters_of_controller_and_contact_go_under_their_names(tmp_path: Path) -> None:
    sim, controller = plan(
        {"controller": "my.package:Walk"}, {"height": 0.8}, {"gamma": 0.1}, stats_file=tmp_path / "s.json"
    ).nodes
    assert sim.parameters == {"one_step.gamma": 0.1, "stats_file": str(tmp_path / "s.json")}
    stop = str(tmp_path / "controller.json")
    assert controller.parameters == {"controller": "my.package:Walk", "Walk.height": 0.8, "stats_file": stop}


def test_scenario_tells_the_controller_and_pushes() -> None:
    sim, controller = plan({"scenario": "push"}, {"squat_depth": 0.02}).nodes
    assert controller.parameters == {"posture.mode": "stand", "posture.squat_depth": 0.02}
    (push,) = sim.parameters["pushes"]
    assert float(push.split()[3]) == pytest.approx(0.1 * load_robot("biped14").weight, rel=1e-5)
    assert plan({"scenario": "drop"}).nodes[0].parameters == {"title": "drop", "drop_height": 0.05}
    with refusal(UnknownNameError, kind="scenario"):
        plan({"scenario": "fly"})


def test_scheduled_changes_of_parameters_need_a_controller(tmp_path: Path) -> None:
    file = tmp_path / "tuned.yaml"
    file.write_text("changes: [{at: 1.5, name: stiffness, value: 20.0}]\n", encoding="utf-8")
    controller = plan({"scenario": str(file)}).nodes[1]
    assert controller.parameters["changes"] == ["1.5 stiffness 20.0"]
    with pytest.raises(ConfigError):
        plan({"scenario": str(file), "controller": "none"})


def test_a_scenario_decides_what_is_not_given(tmp_path: Path) -> None:
    """Ground, controller and hardware; and a commander walks, waited for where runs are to repeat."""
    sim, controller, commander = plan({"scenario": "tiles", "record": str(tmp_path / "run")}).nodes[1:]
    assert (sim.parameters["ground"], controller.parameters["controller"]) == ("tiles", "zmp")
    assert not {"cmd_vel_period", "lock_step"} & set(controller.parameters)
    assert controller.parameters["wait_for_velocity"]
    assert commander.executable == "commander_node"
    assert commander.parameters == {"schedule": ["1.0 0.2 0.0 0.0", "18.0 0.0 0.0 0.0"], "wait_for_listeners": 2}
    sim, controller, _ = plan({"scenario": "tiles", "ground": "flat", "clock": "lock_step"}).nodes
    assert sim.parameters["ground"] == "flat"
    assert controller.parameters["cmd_vel_period"] == pytest.approx(0.1)
    assert controller.parameters["lock_step"]
    assert names(plan({"scenario": "walk", "controller": "none"})) == ["sim_node", "commander_node"]
    with refusal(place="scenario 'walk'"):
        plan({"scenario": "walk", "controller": "posture"})
    path = tmp_path / "mine.yaml"
    path.write_text("hardware: {preset: realistic, command_delay: 0.003}\ncontroller_params: {n_steps: 3}")
    sim, controller = plan({"scenario": str(path)}).nodes
    assert sim.parameters == {"title": str(path), "hardware": "{preset: realistic, command_delay: 0.003}"}
    assert controller.parameters == {"posture.n_steps": 3}
    path.write_text("ground: {flat: {friction_static: 0.2}}")
    assert plan({"scenario": str(path)}).nodes[0].parameters["ground"] == "{flat: {friction_static: 0.2}}"


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"clock": "slow"}, {"kind": "clock", "name": "slow"}),
        ({"contact_model": "lpc"}, {"name": "lpc", "meant": "lcp"}),
        ({"rte": 1.0}, {"name": "rte", "meant": "rate"}),
        ({"rate": -1.0}, {"place": "bring-up: rate", "value": -1.0}),
        ({"duration": -1.0}, {"place": "bring-up: duration", "value": -1.0}),
        ({"params_file": "/nowhere.yaml"}, {"place": "params_file", "value": "/nowhere.yaml"}),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], fields: dict[str, Any]) -> None:
    with refusal(**fields):
        plan(given)


def test_a_folder_with_a_bag_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with refusal(place="record", value=str(tmp_path)):
        plan({"record": str(tmp_path)})


def test_launch_arguments_are_text() -> None:
    assert from_text({"rate": "500", "robot": "g1", "clock": ""}) == {"rate": 500.0, "robot": "g1"}
    with refusal(place="bring-up: rate", value="fast"):
        from_text({"rate": "fast"})
    with pytest.raises(UnknownNameError):
        from_text({"rte": "500"})


# Where robot_state_publisher is installed, the launch package is, too.
@pytest.mark.parametrize("name", sorted({*argument_names()} - {"robot_state_publisher"}))
def test_every_argument_is_explained_and_an_option(name: str) -> None:
    assert len(argument_help(name)) > 5
    option = f"--{name.replace('_', '-')}"
    kind = get_type_hints(Arguments)[name]
    args = make_parser().parse_args(["up", option, *["1"] * (kind is not bool)])
    assert getattr(args, name) == kind("1")


def test_a_switch_is_true_or_false() -> None:
    assert from_text({"view": "True"}) == {"view": True}
    assert from_text({"view": "false"}) == {"view": False}
    assert from_text({"view": ""}) == {}
    with refusal(place="bring-up: view", value="yes"):
        from_text({"view": "yes"})


def test_a_page_is_a_node_beside_the_others_that_nobody_waits_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bringup, "check_page", lambda: None)
    nodes = plan({"view": True, "namespace": "r1"}).nodes
    assert [(node.executable, node.optional) for node in nodes[-2:]] == [
        ("controller_node", False),
        ("view_node", True),
    ]
    assert nodes[-1].namespace == "/r1"
    assert [node.executable for node in plan_robot({"view": True}).nodes] == ["controller_node", "view_node"]
    assert "view_node" not in [node.executable for node in plan({"view": False}).nodes]
    assert nodes[-1].parameters == {"browser": True}
    file = tmp_path / "mine.yaml"
    file.write_text("view_node: {ros__parameters: {browser: false}}")
    for planned in (plan, plan_robot):
        assert planned({"view": True, "params_file": str(file)}).nodes[-1].parameters == {}, "as the file says"


def test_a_page_that_cannot_be_shown_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with refusal(place="viser"):
        plan({"view": True})


def test_the_help_lists_every_contact_model() -> None:
    for name in CONTACT_MODELS:
        assert name in argument_help("contact_model")


@pytest.mark.parametrize("name", CONTACT_MODELS)
def test_contact_parameters_go_to_the_model_that_was_chosen(name: str) -> None:
    assert plan({"contact_model": name}, None, {"x": 1.0}).nodes[0].parameters[f"{name}.x"] == 1.0


def test_parameters_may_have_the_name_of_their_class_before_them_as_in_ros() -> None:
    given = {"controller": "zmp", "contact_model": "lcp"}
    sim, controller = plan(given, {"zmp.com_height": 0.9, "step_height": 0.05}, {"lcp.compliance": 1e-9}).nodes
    assert {"zmp.com_height", "zmp.step_height"} <= controller.parameters.keys()
    assert "lcp.compliance" in sim.parameters


def recorded(folder: Path, **counts: int) -> Path:
    """Leave a bag with so many messages on each topic in the folder of a run, and return the folder."""
    with contextlib.closing(BagWriter(folder / "bag")) as bag:
        for topic, count in counts.items():
            number = bag.add_topic(Topic(f"/{topic}", "std_msgs/msg/Empty", "", ""))
            for k in range(count):
                bag.add_message(number, k + 1, k + 1, b"\x00\x01\x00\x00", k)
    return folder


def concluded(folder: Path | None, failed: str = "", **statistics: Any) -> None:
    conclude(BringUp(Arguments(), (), folder), BringUpOutcome(1 if failed else 0, statistics, failed))


@pytest.mark.parametrize(
    ("counts", "statistics", "kept"),
    [
        ({"diagnostics": 3}, {}, False),
        ({}, {}, False),
        # A simulator that was killed reports nothing, but its bag may.
        ({"joint_states": 5}, {}, True),
        # Held at t = 0, it repeats one state.
        ({"joint_states": 5}, {"ticks": 0, "state": "waiting"}, False),
    ],
)
def test_a_run_that_never_began_leaves_no_bag(
    tmp_path: Path, counts: dict[str, int], statistics: dict[str, Any], kept: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path / "run", **counts)
    concluded(folder, **statistics)
    assert (folder / "bag").exists() == kept
    assert ("bag: removed, because" in capsys.readouterr().err) != kept
    if not kept:
        assert plan({"record": str(folder)}).run_folder == folder


def test_a_bag_of_a_robot_that_sent_anything_is_kept(tmp_path: Path) -> None:
    imu = recorded(tmp_path / "imu", imu=1, diagnostics=4, joint_states=0)
    assert not discard_empty(imu, only_of_nodes)
    assert (imu / "bag").is_dir()
    assert discard_empty(recorded(tmp_path / "silent", diagnostics=4, fallen=1, joint_states=0), only_of_nodes)
    assert not discard_empty(tmp_path / "nothing", only_of_nodes)


COUNTED = {"robot": "biped14", "ticks": 1000, "duration_s": 1.0, "rate_hz": 1000.0, "missed_commands": 553}


def test_a_controller_that_ended_is_not_called_slow(capsys: pytest.CaptureFixture[str]) -> None:
    counted = COUNTED | {"round_trip_us": {"p50": 812.4, "p99": 2500.0, "p999": None, "max": 9e3}}
    concluded(None, **counted)
    advice = capsys.readouterr().err
    assert "55.3% of the ticks got no new command in time: a tick has 1000 us" in advice
    assert "from state to command it took 812 us (p50) and 2500 us (p99)" in advice
    concluded(None, failed="controller_node ended (exit code 1)", **counted)
    printed = capsys.readouterr()
    assert "in time" not in printed.err
    assert "44.7% in time (553 missed" in printed.out


def test_a_controller_that_was_silent_is_not_called_slow_either(capsys: pytest.CaptureFixture[str]) -> None:
    counted = COUNTED | {"duration_s": 20.0, "ticks": 20_000, "missed_commands": 11_650}
    concluded(None, **counted, command_silences_s=[[4.26, 15.86]], round_trip_us={})
    advice = capsys.readouterr()
    assert "no commands came from 4.26 to 15.86 s" in advice.err
    assert "busy" not in advice.err
    assert "from 4.26 to 15.86 s" in advice.out


def test_in_lock_step_what_ended_the_wait_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A controller that is too slow misses every second state. The advice names the first silence."""
    silences = [[0.002 * k, 0.002 * k + 0.001] for k in range(100)]
    concluded(None, **COUNTED, clock="lock_step", command_silences_s=silences, round_trip_us={})
    advice = capsys.readouterr().err
    assert "no commands came from 0 to 0.001 s" in advice
    assert "sim_node waited for lock_step_timeout of wall time" in advice
    assert "command_timeout and timeout_mode for the torques" in advice
    assert "--clock lock_step" not in advice, "it is"


def test_another_robot_is_told_below_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    concluded(None, **COUNTED, round_trip_us={}, warnings=["2 nodes publish /joint_states"])
    printed = capsys.readouterr()
    assert "warning: 2 nodes publish /joint_states\n" in printed.err
    assert "nodes publish" not in printed.out


@pytest.mark.parametrize(
    ("dropped", "said"),
    [({}, "none came; expected on /robot_joint_commands"), ({"names": 2}, "no valid one came; expected on")],
)
def test_a_run_without_commands_is_not_called_in_time(
    dropped: dict[str, int], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The drives can hold a robot without limit, so a forgotten controller manager looks like a good run."""
    counted = COUNTED | {"missed_commands": 0, "command_topics": ["/robot_joint_commands"], "round_trip_us": {}}
    counted |= {"commands_dropped_by_kind": dropped, "commands_dropped": sum(dropped.values())}
    concluded(None, **counted, commands_received=0)
    printed = capsys.readouterr()
    assert said in printed.out
    assert f"warning: commands: {said}" in printed.err
    assert "in time" not in printed.out
    concluded(None, **counted, commands_received=1)
    printed = capsys.readouterr()
    assert "100.0% in time" in printed.out
    assert "expected on" not in printed.out + printed.err


def test_commands_of_which_none_was_sound_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = {"ticks": 0, "state": "waiting", "commands_received": 0, "commands_dropped_by_kind": {"not_finite": 57}}
    concluded(None, **nothing, command_topics=["/r1/robot_joint_commands"])
    said = capsys.readouterr().err
    assert "57 commands arrived, all invalid (57 not_finite)" in said
    assert "for a command on /r1/robot_joint_commands;" in said


class Up:
    """`bipedsim up` as a user starts it."""

    def __init__(self, folder: Path, env: dict[str, str], *arguments: str) -> None:
        command = [sys.executable, "-m", "bipedsim.cli.main", "up", *arguments]
        self._log = folder / "up.txt"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT)

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)

    def children(self) -> list[int]:
        """Return the started processes that still run."""
        return children_of(self.process.pid)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.long
@pytest.mark.ros
def test_a_recorded_run_leaves_bag_summary_and_picture(tmp_path: Path, ros_env: dict[str, str]) -> None:
    (tmp_path / "pushed.yaml").write_text("pushes: [{at: 0.3, duration: 0.05, force: [10.0, 5.0, 0.0]}]")
    arguments = (*LOCK_STEP, "--duration", "1.0", "--record", "runs/one", "--scenario", "pushed.yaml")
    up = Up(tmp_path, ros_env, *arguments)
    assert up.wait() == 0, up.output
    folder = tmp_path / "runs" / "one"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary.keys() >= SUMMARY_KEYS
    assert summary["robot"] == "biped14"
    assert summary["duration_s"] == 1.0
    assert summary["state_changes"] == 0
    assert summary["fz_mean_over_mg"] == pytest.approx(1.0, abs=1e-3)
    assert summary["cop_inside_fraction"] == 1.0
    assert summary["missed_commands"] == 0
    assert summary["round_trip_us"]["p50"] > 0.0
    assert (folder / "forces.png").stat().st_size > 10_000
    assert (folder / "bag" / "metadata.yaml").is_file()
    told = json.loads(to_json(gather(folder, RunSummary, RunSummary.COLUMNS).figures()))
    assert told == summary, "the bag holds what the simulator counted"
    assert (summary["fell_at_s"], summary["verdict"][:5]) == (None, "stood")
    recording = load_recording(folder)
    assert [round(t * 1000) for t in recording.t if t > 0.0] == list(range(1, 1001)), "every tick, from the first one"
    about = {"scenario": "pushed", "controller": "posture", "ground": "flat", "contact_model": "one_step"}
    assert {name: recording.about[name] for name in about} == about
    again = rerun(recording)
    assert (again.first, len(again.simulated), again.notes) == (None, 1000, ()), "a bag holds all that it takes"
    for name in ("recorder_node", "sim_node", "controller_node"):
        assert f"[{name}]" in up.output
    assert "drawing" in up.output
    assert "100.0% in time (0 missed)" in up.output
    # In lock_step nothing is late, and nothing was estimated: such rows are left out.
    assert "None" not in up.output
    assert "lateness_us" not in up.output
    second = Up(tmp_path, ros_env, *arguments)
    assert second.wait() == 2
    assert "already contains a bag" in second.output


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    sampled(
        [
            (
                (*LOCK_STEP, "--controller", "user_controllers:Crash"),
                1,
                "but the controller was stopped at t = 0.051 s: its update raised RuntimeError: this controller",
            ),
            (
                (*LOCK_STEP, "--controller", "user_controllers:NotFinite", "--duration", "0.5"),
                1,
                "but the controller was stopped at t = 0.000 s: its torque of l_hip_yaw is nan",
            ),
            (("--clock", "slow"), 2, "unknown clock 'slow'"),
            (("--params-file", "nowhere.yaml"), 2, "params_file = 'nowhere.yaml'"),
            (("--set", "squat_deep=1", "--set", "one_step.gama=1"), 2, "unknown parameter 'squat_deep'; did you mean"),
            (("--params-file", "other.yaml"), 2, "sim_node ended (exit code 2)"),
        ],
        keep=5,
    ),
)
def test_failures_end_the_bringup_and_are_named(
    tmp_path: Path, ros_env: dict[str, str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "other.yaml").write_text("sim_node: {ros__parameters: {robot: biped15}}")
    up = Up(tmp_path, ros_env, "--duration", "30", *arguments)
    assert up.wait() == code, up.output
    started = code == 1 or "other.yaml" in arguments
    assert ("_node]" in up.output) == started, "what is wrong is found before"
    assert not re.search(r'File ".*_node\.py"', up.output), "frames of the controller alone"
    assert said in up.output.splitlines()[-1] if "ended" in said else said in up.output


@pytest.mark.long
@pytest.mark.ros
def test_a_command_of_another_size_is_told_once(tmp_path: Path, ros_env: dict[str, str]) -> None:
    """The consequence, that no command arrived on any topic, is not reported in addition."""
    up = Up(tmp_path, ros_env, *LOCK_STEP, "--duration", "1", "--controller", "user_controllers:WrongShape")
    assert up.wait() == 2, up.output
    (told,) = (line for line in up.output.splitlines() if "shape (3,)" in line)
    assert "stopped at t = 0.000 s: its update returned tau_joint of shape (3,); it must return Command(" in told
    assert "bipedsim up: controller_node ended (exit code 2); no tick was simulated\n" in up.output
    assert "was held for" not in up.output


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.parametrize(
    ("arguments", "code"),
    sampled([(("user_controllers:Crash",), 1), (("user_controllers:Steered", "--scenario", "leaning.yaml"), 0)]),
)
def test_a_bag_says_why_and_when_its_controller_was_stopped(
    tmp_path: Path, ros_env: dict[str, str], arguments: tuple[str, ...], code: int
) -> None:
    """The bag and the summary next to it report the same, whether the node ended or continued."""
    (tmp_path / "leaning.yaml").write_text("pushes: [{at: 0.1, duration: 0.2, force: [400.0, 0.0, 0.0]}]")
    up = Up(tmp_path, ros_env, *LOCK_STEP, "--duration", "1.5", "--record", "run", "--controller", *arguments)
    assert up.wait() == code, up.output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["gave_up_why"]
    told = gather(tmp_path / "run" / "bag", RunSummary, RunSummary.COLUMNS).figures()
    # Rows have their stamps times 1e-9, which is another number in the last bit.
    assert told["gave_up_at_s"] == pytest.approx(summary["gave_up_at_s"], abs=1e-9)
    assert told["gave_up_why"] == summary["gave_up_why"]


@pytest.mark.long
@pytest.mark.ros
@pytest.mark.parametrize(("duration", "code"), sampled([("100", 130), ("0", 0)]))
def test_an_interrupt_ends_all_nodes(tmp_path: Path, ros_env: dict[str, str], duration: str, code: int) -> None:
    up = Up(tmp_path, ros_env, "--duration", duration, "--record", "run")
    end = time.monotonic() + PATIENCE_S
    while "1000 Hz real_time" not in up.output and time.monotonic() < end and up.process.poll() is None:
        time.sleep(0.05)
    children = up.children()
    assert len(children) == 3
    for pid in children:
        inherited = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert f"ROS_DOMAIN_ID={ros_env['ROS_DOMAIN_ID']}".encode() in inherited
    # Two signals are one request: `timeout -s INT` signals the process and its group.
    for number in (signal.SIGINT, signal.SIGTERM):
        up.process.send_signal(number)
    assert up.wait() == code, up.output
    assert not any(alive(pid) for pid in children)
    assert "killed" not in up.output.partition("Interrupt again to kill them")[2]
    assert "Traceback" not in up.output
    said = [line for line in up.output.splitlines() if line.startswith("[")]
    assert said[-1].startswith("[recorder_node]"), "it began first and ends last"
    # Whether it came before the first tick or after it, nothing half done stays.
    simulated = "interrupted before the first tick" not in up.output
    assert (tmp_path / "run" / "bag" / "metadata.yaml").is_file() == simulated


@pytest.mark.long
@pytest.mark.ros
def test_an_interrupt_before_the_first_tick_is_told_as_one(tmp_path: Path, ros_env: dict[str, str]) -> None:
    """As soon as a node is there: the simulator still loads."""
    up = Up(tmp_path, ros_env, "--duration", "5", "--record", "run")
    end = time.monotonic() + PATIENCE_S
    while "[recorder_node] recording" not in up.output and time.monotonic() < end and up.process.poll() is None:
        time.sleep(0.01)
    up.process.send_signal(signal.SIGINT)
    assert up.wait() == 130, up.output
    assert "bipedsim up: interrupted before the first tick" in up.output
    assert "no statistics" not in up.output
    assert "lacks the statistics" not in up.output
    assert not (tmp_path / "run").exists()


@pytest.mark.long
@pytest.mark.ros
def test_an_interrupt_that_comes_again_kills_and_says_what_is_lost(tmp_path: Path, ros_env: dict[str, str]) -> None:
    up = Up(tmp_path, ros_env, "--record", "run")
    end = time.monotonic() + PATIENCE_S
    # Figures and a bag that holds some of the run.
    while "1000 Hz real_time" not in up.output and time.monotonic() < end and up.process.poll() is None:
        time.sleep(0.05)
    children = up.children()
    (sim,) = (pid for pid in children if b"sim_node" in Path(f"/proc/{pid}/cmdline").read_bytes())
    # A node that does not answer.
    os.kill(sim, signal.SIGSTOP)
    first = time.monotonic()
    while up.process.poll() is None and "interrupted again" not in up.output and time.monotonic() < end:
        up.process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert time.monotonic() - first > SAME_WISH, "until then it is the same wish"
    assert up.wait() == 130, up.output
    assert not any(alive(pid) for pid in children)
    _, _, said = up.output.partition("interrupted again: ")
    assert said.startswith("sim_node, controller_node, recorder_node killed at once; lost: the statistics of")
    assert "the last 0.1 s of the recording" in said
    assert "bipedsim up: sim_node, controller_node, recorder_node killed at the second interrupt" in said
    assert "Traceback" not in up.output


@pytest.mark.long
@pytest.mark.ros
def test_a_simulator_that_nobody_commands_says_what_it_waits_for(tmp_path: Path, ros_env: dict[str, str]) -> None:
    up = Up(tmp_path, ros_env, "--controller", "none", "--record", "run")
    end = time.monotonic() + PATIENCE_S
    while "t = 0 is held until" not in up.output and time.monotonic() < end and up.process.poll() is None:
        time.sleep(0.05)
    assert "this runs until Ctrl-C" in up.output
    kinds = "/effort_controller/commands, /impedance_controller/commands, /forward_position_controller/commands or "
    assert f"until the first command on {kinds}" in up.output
    up.process.send_signal(signal.SIGINT)
    assert up.wait() == 0, up.output
    assert f"sim_node waited at t = 0 for a command on {kinds}/joint_trajectory_controller/" in up.output
    assert "no command arrived" in up.output
    assert not (tmp_path / "run").exists()


@pytest.mark.long
@pytest.mark.ros
def test_what_is_given_wins_over_the_file(tmp_path: Path, ros_env: dict[str, str]) -> None:
    text = "sim_node:\n  ros__parameters:\n    rate: 200.0\n    start: immediately\n    clock: as_fast_as_possible\n"
    (tmp_path / "my.yaml").write_text(text)
    up = Up(tmp_path, ros_env, "--duration", "0.5", "--params-file", "my.yaml", "--rate", "500", "--controller", "none")
    assert up.wait() == 0, up.output
    assert "500 Hz as_fast_as_possible" in up.output
