"""The launch file with the real launch: nodes start, time passes, and all of them end cleanly."""

from __future__ import annotations

import os
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("launch_testing", reason="launch_testing is not installed; it comes with a ROS 2 installation")
pytest.importorskip("launch_ros", reason="launch_ros is not installed; it comes with a ROS 2 installation")

import launch_testing
import rclpy
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_testing.actions import ReadyToTest
from rclpy.executors import SingleThreadedExecutor
from ros_domains import Domain
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from launch import LaunchDescription

try:
    SHARE = Path(get_package_share_directory("bipedsim"))
except PackageNotFoundError:
    pytest.skip("bipedsim is not installed as a ROS package: colcon build, or pip install .", allow_module_level=True)

PATIENCE_S = 240.0
DOMAIN = Domain()
FOLDER = tempfile.TemporaryDirectory(prefix="bipedsim_launch_")
RUN = Path(FOLDER.name) / "run"


@pytest.mark.launch_test
def generate_test_description() -> LaunchDescription:
    """Start the launch file as a user does."""
    os.environ.update(DOMAIN.environment())
    source = PythonLaunchDescriptionSource(str(SHARE / "launch" / "sim.launch.py"))
    arguments = {"clock": "lock_step", "record": str(RUN), "rate": "500"}
    return LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments.items()), ReadyToTest()])


class TestRunning(unittest.TestCase):
    """While the nodes run: launch_testing wants them to outlive these tests."""

    def setUp(self) -> None:
        self.context = rclpy.Context()
        self.context.init()
        self.node = rclpy.create_node("launch_test", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)

    def tearDown(self) -> None:
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def test_controller_and_simulator_talk(self, proc_output: Any) -> None:
        states: list[JointState] = []
        commands: list[Float64MultiArray] = []
        self.node.create_subscription(JointState, "/joint_states", states.append, 1000)
        self.node.create_subscription(Float64MultiArray, "/effort_controller/commands", commands.append, 1000)
        end = time.monotonic() + PATIENCE_S
        while not (states and commands and states[-1].header.stamp.sec >= 1):
            self.executor.spin_once(timeout_sec=0.05)
            assert time.monotonic() < end, "the simulated time did not reach 1 s"
        assert len(commands[-1].data) == len(states[-1].name)
        proc_output.assertWaitFor("500 Hz lock_step", timeout=PATIENCE_S, stream="stderr")


@launch_testing.post_shutdown_test()
class TestAfterwards(unittest.TestCase):
    """After everything has ended."""

    def test_all_ended_cleanly(self, proc_info: Any) -> None:
        launch_testing.asserts.assertExitCodes(proc_info)

    def test_the_bag_is_complete(self) -> None:
        from bipedsim.recording import load_recording

        recording = load_recording(RUN)
        assert recording.t[-1] >= 1.0
        assert recording.robot == "biped14"
