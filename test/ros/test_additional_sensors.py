"""Further IMUs and contact switches over ROS: real nodes, a bag, and the same run without nodes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from additional_sensors_support import write_robot
from paths import LOCK_STEP
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.config import RunConfig
from bipedsim.model import load_robot
from bipedsim.recording import COLUMNS, Recording, load_recording
from bipedsim.recording.bag import MACHINE, Bag
from bipedsim.recording.schema import JOINT_STATES
from bipedsim.runs import rerun, run
from bipedsim_ros.wire.topics import of_sensors

COMMANDS = "/effort_controller/commands"
CONTROLLER = "user_controllers:FeelsAll"
DURATION = 0.4
FAULTS = """
description: late IMUs, and switches that are lost at random
faults:
  - {part: imus, does: late, amount: 0.02, at: 0.1}
  - {part: switches, does: lost, share: 0.3}
"""


def run_of(robot: Path, scenario: str = "stand") -> Recording:
    """Return a run without nodes, in which the switches of the robot open and close."""
    settings = {"robot": str(robot), "controller": CONTROLLER, "hardware": "realistic", "scenario": scenario}
    return run(RunConfig(**settings, duration=DURATION, seed=3))[0]


def by_nodes(folder: Path, robot: Path, env: dict[str, str], more: Sequence[str] = ()) -> Recording:
    """Return the bag of the same run with nodes."""
    arguments = ["--robot", str(robot), "--controller", CONTROLLER, "--duration", str(DURATION), *LOCK_STEP]
    arguments += ["--hardware", "realistic", "--seed", "3", "--record", str(folder / "run"), *more]
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600.0)
    assert done.returncode == 0, done.stdout + done.stderr
    return load_recording(folder / "run")


def same_bits(recording: Recording, bag: Recording) -> list[str]:
    """Return the columns in which the rows of both differ."""
    ticks = [np.rint(1e3 * one.t).astype(int) for one in (recording, bag)]
    common, ours, theirs = np.intersect1d(*ticks, return_indices=True)
    assert len(common) >= round(1e3 * DURATION) - 1
    # Poses of soles are computed, a bag rounds times, and headless runs do not estimate.
    names = [name for name in COLUMNS if name not in ("t", "sole_poses", "odometry")]
    return [name for name in names if getattr(recording, name)[ours].tobytes() != getattr(bag, name)[theirs].tobytes()]


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    return write_robot(tmp_path)


@pytest.mark.long
@pytest.mark.ros
def test_a_bag_holds_what_a_run_without_nodes_does(tmp_path: Path, robot: Path, ros_env: dict[str, str]) -> None:
    """All torques depend on the additional sensors, so that the controller node has received each of them."""
    recording = run_of(robot)
    assert all({*column} == {0.0, 1.0} for column in recording.contact_switches.T.tolist())
    bag = by_nodes(tmp_path, robot, ros_env)
    assert (bag.imu_names, bag.switch_names) == (("shank_imu", "sole_imu"), ("left_switch", "right_switch"))
    assert same_bits(recording, bag) == []
    assert bag.notes == ()
    # The machine decides to which row a switch belongs.
    topics = Bag(tmp_path / "run").channel_metadata
    machine, *others = (topics[name][MACHINE] for name in (JOINT_STATES, "/left_switch/closed", COMMANDS))
    assert machine
    assert others == 2 * [machine]
    assert not bag.readouts


@pytest.mark.long
@pytest.mark.ros
def test_faults_act_the_same_with_nodes(tmp_path: Path, robot: Path, ros_env: dict[str, str]) -> None:
    scenario = tmp_path / "faults.yaml"
    scenario.write_text(FAULTS, encoding="utf-8")
    recording = run_of(robot, str(scenario))
    assert "joint_effort" in same_bits(run_of(robot), recording)
    bag = by_nodes(tmp_path, robot, ros_env, ["--scenario", str(scenario)])
    # The topics hold what reached the controller; the torques that followed are the same.
    assert {*same_bits(recording, bag)} <= {"imus", "contact_switches"}
    missing = np.isnan(bag.contact_switches).any(axis=1)
    assert 0.2 < missing.mean() < 0.4


def test_a_run_comes_back_from_its_files(tmp_path: Path, robot: Path) -> None:
    recording = run_of(robot)
    recording.save(tmp_path / "run.npz")
    assert main(["export", str(tmp_path / "run.npz"), "--format", "mcap"]) == 0
    for file in (tmp_path / "run.npz", tmp_path / "run.mcap"):
        back = load_recording(file)
        assert (back.imu_names, back.switch_names) == (recording.imu_names, recording.switch_names)
        assert back.imus.tobytes() == recording.imus.tobytes()
        assert back.contact_switches.tobytes() == recording.contact_switches.tobytes()


def test_a_run_whose_robot_is_unknown_has_the_default_topics(tmp_path: Path, robot: Path) -> None:
    recording = run_of(robot).rows(slice(0, 50))
    recording.robot, recording.about, recording.run = "nobody", {}, {}
    recording.save(tmp_path / "other.npz")
    assert main(["export", str(tmp_path / "other.npz"), "--format", "mcap"]) == 0
    back = load_recording(tmp_path / "other.mcap")
    assert back.imus.tobytes() == recording.imus.tobytes()
    assert back.contact_switches.tobytes() == recording.contact_switches.tobytes()


def test_a_run_is_simulated_again(robot: Path) -> None:
    recording = run_of(robot)
    again = rerun(recording)
    assert again.first is None
    assert {"imus", "contact_switches"} <= {*again.compared}
    recording.imus[50, 1, 4] += 1e-12
    first = rerun(recording).first
    assert first is not None
    assert (first.t, first.column, first.which) == (recording.t[50], "imus", "sole_imu wx[rad/s]")


@pytest.mark.parametrize("topic", ["/joint_states", "/left_foot/wrench", "/objects/ball", "/controller/margin"])
def test_a_topic_with_another_meaning_is_refused(tmp_path: Path, topic: str) -> None:
    robot = load_robot(write_robot(tmp_path, {"a": {"type": "imu", "frame": "l_shank", "topic": topic}}))
    with refusal(place="sensors.a.topic", value=topic):
        of_sensors(robot)
