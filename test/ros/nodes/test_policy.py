"""A policy as a node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from policy_support import Recurrent, deployment, write
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import time_of

from bipedsim.config import RunConfig
from bipedsim.recording import load_recording
from bipedsim.runs.runner import run

pytestmark = pytest.mark.ros


def test_lock_step_has_the_bits_of_one_process(ros: RosWorld, tmp_path: Path) -> None:
    """With a memory, and an action so large that it moves the robot."""
    Recurrent(51, 14).save(tmp_path / "policy.onnx")
    file = str(write(tmp_path / "deploy.yaml", deployment(action={"scale": 0.1})))
    states = ros.collect(JointState, "/joint_states")
    sim = ros.start("sim_node", clock="lock_step", duration=0.2)
    ros.until(lambda: states, "the state at t = 0, so that this test is connected before time begins")
    ros.start("controller_node", controller="policy", lock_step=True, policy__file=file)
    assert ros.ended(sim) == 0
    ros.until(lambda: time_of(states[-1]) >= 0.2, "the last state")
    stepped = np.array([state.position for state in states if time_of(state) > 0.0])
    recording, _ = run(RunConfig(controller="policy", controller_params={"file": file}, duration=0.2))
    np.testing.assert_array_equal(stepped, recording.joint_position)
    assert np.ptp(stepped, axis=0).max() > 0.02


@pytest.mark.long
def test_a_bring_up_in_lock_step_has_the_bits_of_one_process(ros_env: dict[str, str], tmp_path: Path) -> None:
    """With the velocities of a scenario on /cmd_vel, which the network sees, and from the bag."""
    Recurrent(51, 14).save(tmp_path / "policy.onnx")
    file = str(write(tmp_path / "deploy.yaml", deployment(action={"scale": 0.1})))
    scenario = tmp_path / "ahead.yaml"
    scenario.write_text(yaml.safe_dump({"duration": 0.3, "velocity": [{"at": 0.1, "vx": 0.4}]}))
    command = [sys.executable, "-m", "bipedsim.cli.main", "up", "--controller", "policy", "--set", f"file={file}"]
    command += ["--scenario", str(scenario), "--clock", "lock_step"]
    command += ["--duration", "0.3", "--record", str(tmp_path / "up")]
    done = subprocess.run(command, cwd=tmp_path, env=ros_env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    alone, _ = run(RunConfig(controller="policy", controller_params={"file": file}, scenario=str(scenario)))
    bag = load_recording(tmp_path / "up")
    # The bag begins at t = 0, a tick before a run in one process does; its times are whole nanoseconds.
    last = slice(-alone.t.size, None)
    np.testing.assert_array_equal(np.rint(1e9 * bag.t[last]), np.rint(1e9 * alone.t))
    for name in ("joint_position", "joint_command", "wrench", "imu_angular_velocity"):
        np.testing.assert_array_equal(getattr(bag, name)[last], getattr(alone, name))
    still, _ = run(RunConfig(controller="policy", controller_params={"file": file}, duration=0.3))
    assert (still.joint_position != alone.joint_position).any(), "the velocity is seen"
