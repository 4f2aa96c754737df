"""Reports of a node for exceptions that bipedsim does not raise."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from ros_support import PATIENCE_S

from bipedsim.errors import EXIT_FAILED

pytestmark = pytest.mark.ros

NODE = """
import sys
from bipedsim.control import construct
from bipedsim_ros.nodes import run_node

def make():
    return construct(lambda robot, params, dt: {}["kp"], None, None, 1e-3)

sys.exit(run_node(make, sys.argv[1:]))
"""


@pytest.mark.parametrize("level", ["info", "debug"])
def test_what_a_controller_raises_is_whole_where_everything_is_asked_for(ros_env: dict[str, str], level: str) -> None:
    command = [sys.executable, "-c", NODE, "--ros-args", "--log-level", level]
    ended = subprocess.run(command, env=ros_env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == EXIT_FAILED
    told = ended.stdout + ended.stderr
    said = "make: what the controller __main__:make.<locals>.<lambda> raised, from its own code on"
    assert f"{said} (with what called it: log_level debug):\n" in told
    assert told.count("KeyError: 'kp'") == (2 if level == "debug" else 1)
    assert ("node_main.py" in told) == (level == "debug")
