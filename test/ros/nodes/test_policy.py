"""A policy as a node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from policy_support import Recurrent, deployment, write
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import time_of

from bipedsim.config import RunConfig
from bipedsim.runs.runner import run

pytestmark = pytest.mark.ros


def test_lock_step_has_the_bits_of_one_process(ros: RosWorld, tmp_path: Path) -> None:
    """With a memory, and an action so large that it moves the robot."""
    Recurrent(51, 14).save(tmp_path / "policy.onnx")
    file = str(write(tmp_path / "deploy.yaml", deployment(action={"scale": 0.1})))
    states = ros.collect(JointState, "/joint_states")
    sim = ros.start("sim_node", clock="lock_step", duration=0.2, lock_step_timeout=30.0)
    ros.until(lambda: states, "the state at t = 0, so that this test is connected before time begins")
    ros.start("controller_node", controller="policy", lock_step=True, policy__file=file)
    assert ros.ended(sim) == 0
    ros.until(lambda: time_of(states[-1]) >= 0.2, "the last state")
    stepped = np.array([state.position for state in states if time_of(state) > 0.0])
    recording, _ = run(RunConfig(controller="policy", controller_params={"file": file}, duration=0.2))
    np.testing.assert_array_equal(stepped, recording.joint_position)
    assert np.ptp(stepped, axis=0).max() > 0.02
