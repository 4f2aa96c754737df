"""Third-party nodes in runs without a launch, over real DDS, and the report of failing nodes."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from bipedsim.config import RunConfig
from bipedsim.errors import BipedSimError
from bipedsim.runs import run

pytestmark = pytest.mark.ros

NODE = "bipedsim_ros.bringup:ExternalNode"
OURS = f"{sys.executable} -m bipedsim_ros.nodes.start controller_node --ros-args -p lock_step:=true"
STRANGER = """
import sys
import rclpy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
rclpy.init()
node = rclpy.create_node("stranger")
commands = node.create_publisher(Float64MultiArray, "/effort_controller/commands", 10)

def answer(state):
    t = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
    if t > 0.0505:
        print("I have had enough")
        {last}
        return
    commands.publish(Float64MultiArray(data=[0.0] * len(state.name)))

node.create_subscription(JointState, "/joint_states", answer, 10)
rclpy.spin(node)
"""


def external(command: str, **params: float) -> dict[str, Any]:
    return {"controller": NODE, "controller_params": {"command": command, **params}}


@pytest.mark.long
@pytest.mark.parametrize("controller", ["posture", "zmp"])
def test_a_node_gives_the_bits_of_its_controller_without_ros(controller: str) -> None:
    """``zmp`` walks: the velocity commands come on /cmd_vel."""
    scenario = {"posture": "push", "zmp": "walk"}[controller]
    settings: dict[str, Any] = {"scenario": scenario, "duration": 1.2, "hardware": "realistic"}
    alone, _ = run(RunConfig(**settings, controller=controller))
    command = f"{OURS} -p controller:={controller} -p cmd_vel_period:=0.1"
    asked, summary = run(RunConfig(**settings, **external(command)))
    assert summary["gave_up_why"] is None
    for name in ("joint_position", "base_pose", "wrench", "joint_command"):
        np.testing.assert_array_equal(getattr(asked, name), getattr(alone, name))


@pytest.mark.long
@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("sys.exit(3)", r"it has ended \(exit code 3\); it said last:\n  I have had enough"),
        ("pass", r"no command within 3 s for the state at t = 0\.\d+ s; it said last:"),
        ("commands.publish(Float64MultiArray(data=[float('nan')] * len(state.name)))", "not finite"),
        ("commands.publish(Float64MultiArray(data=[0.0]))", "it has 1 values, expected 14"),
    ],
)
def test_a_node_that_fails_ends_the_run_with_what_it_said(tmp_path: Path, last: str, said: str) -> None:
    program = tmp_path / "stranger.py"
    program.write_text(STRANGER.format(last=last))
    command = f"{sys.executable} -u {program}"
    # Only the last case waits in vain.
    timeout = {"timeout": 3.0 if last == "pass" else 240.0, "start_timeout": 240.0}
    with pytest.raises(BipedSimError, match=said):
        run(RunConfig(duration=0.2, **external(command, **timeout)))


@pytest.mark.long
def test_what_was_started_is_gone_with_the_run(tmp_path: Path) -> None:
    command = f"{OURS} -p controller:=posture -r __node:=gone_with_{tmp_path.name}"
    run(RunConfig(duration=0.01, **external(command)))
    gc.collect()
    there = subprocess.run(["pgrep", "-f", f"gone_with_{tmp_path.name}"], capture_output=True, text=True, check=False)
    assert there.stdout == ""


@pytest.mark.parametrize(
    ("command", "place"),
    [("  ", "command"), ("no_such_program_at_all", "command"), ("true", "node 'true'")],
)
def test_what_cannot_be_started_is_told(command: str, place: str) -> None:
    with refusal(BipedSimError, place=place):
        run(RunConfig(duration=0.01, **external(command)))
