"""A launch is rejected before it starts any node if another robot is in its ROS domain."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from ros_support import RosWorld
from sensor_msgs.msg import JointState

from bipedsim.cli.main import main
from bipedsim.errors import EXIT_USAGE
from bipedsim_ros.bringup import alone
from bipedsim_ros.bringup.alone import looking_for_robots
from bipedsim_ros.nodes.duplicate_nodes import robots_beside

pytestmark = pytest.mark.ros


@pytest.mark.long
def test_another_robot_is_named_with_the_way_out(
    ros: RosWorld, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Test domains have their own ports, which do not show other robots. With static peers, discovery does not depend on
    # ports.
    monkeypatch.setenv("ROS_STATIC_PEERS", "127.0.0.1")
    ros.node.create_publisher(JointState, "/joint_states", 10)
    assert main(["up", "--duration", "1", "--record", str(tmp_path / "run")]) == EXIT_USAGE
    out, err = capfd.readouterr()
    domain = ros.node.context.get_domain_id()
    assert f"another robot or simulation is in ROS domain {domain} (test). End it, give this one a namespace" in err
    assert "ROS_DOMAIN_ID=" in err.partition("choose")[2]
    assert (out, err.count("\n")) == ("", 1)
    assert not (tmp_path / "run").exists()


def test_a_machine_too_busy_to_tell_is_told(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(alone, "_PATIENCE_S", 0.01)
    with looking_for_robots({**os.environ, "ROS_DOMAIN_ID": "7", "ROS_STATIC_PEERS": "127.0.0.1"}) as refuse_others:
        refuse_others()
    assert "search for other robots in ROS domain 7 did not end within" in capfd.readouterr().err


def test_a_simulator_that_compiles_yet_is_a_robot(ros: RosWorld) -> None:
    assert robots_beside(ros.node) == []
    other = rclpy.create_node("sim_node", context=ros.context, enable_rosout=False)
    ros.until(lambda: robots_beside(ros.node) == ["sim_node"], "the other simulator")
    other.destroy_node()
