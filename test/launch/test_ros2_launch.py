"""`ros2 launch` as a user types it: arguments are listed, a run ends by itself, a wrong argument is explained."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros is not installed; it comes with a ROS 2 installation")

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from ros_support import new_environment

from bipedsim.recording import Recording
from bipedsim_ros.bringup import argument_names

ROS2 = shutil.which("ros2")
if ROS2 is None:
    pytest.skip("the command ros2 is not installed; it comes with a ROS 2 installation", allow_module_level=True)
try:
    get_package_share_directory("bipedsim")
except PackageNotFoundError:
    pytest.skip("bipedsim is not installed as a ROS package: colcon build, or pip install .", allow_module_level=True)

pytestmark = [pytest.mark.ros, pytest.mark.launch_test]


def ros2_launch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The installed package is under test and not the checkout.
    env = {name: value for name, value in new_environment().items() if name != "PYTHONPATH"}
    command = [str(ROS2), "launch", "bipedsim", "sim.launch.py", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_all_arguments_are_listed(tmp_path: Path) -> None:
    shown = ros2_launch(tmp_path, "--show-args")
    assert shown.returncode == 0, shown.stderr
    for name in argument_names():
        assert f"'{name}':" in shown.stdout


def test_a_run_with_a_duration_ends_by_itself(tmp_path: Path) -> None:
    done = ros2_launch(tmp_path, "clock:=lock_step", "duration:=2.0", "record:=runs/one")
    assert done.returncode == 0, done.stdout + done.stderr
    recording = Recording.load(tmp_path / "runs" / "one")
    assert [round(t * 1000) for t in recording.t if t > 0.0] == list(range(1, 2001))


def test_a_wrong_argument_is_explained(tmp_path: Path) -> None:
    refused = ros2_launch(tmp_path, "clock:=slow")
    assert refused.returncode != 0
    assert "unknown clock 'slow'" in refused.stdout + refused.stderr
