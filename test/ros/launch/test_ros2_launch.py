"""`ros2 launch` as a user types it: arguments are listed, a run ends by itself, a wrong argument is explained."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros is not installed; it comes with a ROS 2 installation")

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from paths import ROOT
from ros_domains import Domain

from bipedsim.recording import load_recording
from bipedsim.recording.bag.reader import Bag
from bipedsim_ros.bringup.bringup import argument_names
from bipedsim_ros.bringup.robot_bringup import ROBOT_ARGUMENTS

ROS2 = shutil.which("ros2")
if ROS2 is None:
    pytest.skip("the command ros2 is not installed; it comes with a ROS 2 installation", allow_module_level=True)
try:
    get_package_share_directory("bipedsim")
except PackageNotFoundError:
    pytest.skip("bipedsim is not installed as a ROS package: colcon build, or pip install .", allow_module_level=True)

pytestmark = [pytest.mark.ros, pytest.mark.launch_test]
DOMAIN = Domain()
PATIENCE_S = 240.0


def environment() -> dict[str, str]:
    # The installed package is under test and not the checkout. A ROS 2 installation is itself on this path.
    others = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and Path(entry) != ROOT]
    return {**DOMAIN.environment(), "PYTHONPATH": os.pathsep.join(others)}


def ros2_launch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROS2), "launch", "bipedsim", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize(("file", "names"), [("sim", argument_names()), ("robot", ROBOT_ARGUMENTS)])
def test_all_arguments_are_listed(tmp_path: Path, file: str, names: Sequence[str]) -> None:
    shown = ros2_launch(tmp_path, f"{file}.launch.py", "--show-args")
    assert shown.returncode == 0, shown.stderr
    assert re.findall(r"^    '(\w+)':", shown.stdout, re.MULTILINE) == list(names)


def test_the_controller_alone_serves_a_robot_that_is_up(tmp_path: Path) -> None:
    env = environment()
    robot = [sys.executable, "-m", "bipedsim_ros.nodes.sim_node", "--ros-args"]
    for parameter in ("clock:=lock_step", "rate:=500.0", "physics_dt:=0.002", "duration:=2.0"):
        robot += ["-p", parameter]
    with subprocess.Popen(robot, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as up:
        command = [str(ROS2), "launch", "bipedsim", "robot.launch.py", "rate:=500", "record:=runs/robot"]
        with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as control:
            try:
                _, said = up.communicate(timeout=PATIENCE_S)
            finally:  # or the two would wait for each other forever
                up.kill()
                control.send_signal(signal.SIGINT)
            shown, _ = control.communicate(timeout=PATIENCE_S)
    assert up.returncode == 0, said
    assert control.returncode == 0, shown
    recording = load_recording(tmp_path / "runs" / "robot")
    assert recording.t[-1] == 2.0
    assert recording.joint_effort[-1].any()


def test_a_run_with_a_duration_ends_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    done = ros2_launch(tmp_path, "sim.launch.py", "clock:=lock_step", "duration:=2.0", "record:=runs/one")
    assert done.returncode == 0, done.stdout + done.stderr
    recording = load_recording(tmp_path / "runs" / "one")
    assert [round(t * 1000) for t in recording.t if t > 0.0] == list(range(1, 2001))
    assert not list(temporary.glob("*_node_*.yaml")), "files of parameters go with the launch"


def test_a_run_that_is_interrupted_leaves_a_whole_bag(tmp_path: Path) -> None:
    """Ctrl-C reaches all nodes and the launch program at once. The counters of the simulator come last."""
    command = [str(ROS2), "launch", "bipedsim", "sim.launch.py", "rate:=500", "physics_dt:=0.002", "record:=runs/one"]
    out = tmp_path / "output.txt"
    with out.open("w", encoding="utf-8") as file:
        up = subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stdout=file, stderr=file, start_new_session=True
        )
    try:
        bag = tmp_path / "runs" / "one" / "bag"
        end = time.monotonic() + PATIENCE_S
        while not (list(bag.glob("*.mcap")) and len(Bag(bag).messages.get("/joint_states", ())) > 200):
            assert up.poll() is None, out.read_text(encoding="utf-8")
            assert time.monotonic() < end, out.read_text(encoding="utf-8")
            time.sleep(0.2)
        os.killpg(up.pid, signal.SIGINT)
        assert up.wait(PATIENCE_S) == 0, out.read_text(encoding="utf-8")
    finally:
        if up.poll() is None:
            os.killpg(up.pid, signal.SIGKILL)
    assert load_recording(tmp_path / "runs" / "one").statistics["verdict"]


def test_a_wrong_argument_is_explained(tmp_path: Path) -> None:
    refused = ros2_launch(tmp_path, "sim.launch.py", "clock:=slow")
    assert refused.returncode != 0
    assert "unknown clock 'slow'" in refused.stdout + refused.stderr


def test_a_misspelt_argument_is_refused(tmp_path: Path) -> None:
    refused = ros2_launch(tmp_path, "sim.launch.py", "robto:=talos")
    assert refused.returncode != 0
    assert "did you mean 'robot'?" in refused.stdout + refused.stderr
