"""Rules of the architecture that a reader could break without noticing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from house_support import imports
from paths import ROOT

OF_ROS = ("rclpy", "launch", "launch_ros", "ament_index_python", "rosidl_runtime_py", "builtin_interfaces", "tf2_ros")




def of_ros(module: str) -> bool:
    top = module.split(".")[0]
    return top in OF_ROS or top.endswith(("_msgs", "_srvs", "_interfaces"))


@pytest.mark.parametrize("path", sorted(ROOT.glob("bipedsim/**/*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_physics_never_imports_ros(path: Path) -> None:
    assert [name for name in imports(path) if of_ros(name)] == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("bipedsim/**/*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_command_line_knows_the_nodes(path: Path) -> None:
    nodes = [name for name in imports(path) if name.split(".")[0] == "bipedsim_ros"]
    assert nodes == [] or path.name == "commands.py"


def test_a_ros_import_would_be_found() -> None:
    assert list(filter(of_ros, imports(ROOT / "bipedsim_ros" / "sim_node.py")))
    assert of_ros("sensor_msgs.msg")
    assert not of_ros("numpy.linalg")


@pytest.mark.parametrize("path", sorted(ROOT.glob("bipedsim*/**/*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_holds_two_ideas(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 420


def loaded_by(module: str) -> set[str]:
    """Return the modules of bipedsim that importing ``module`` loads, found out in a fresh process."""
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('bipedsim')))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_the_controller_node_knows_no_simulator() -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    loaded = loaded_by("bipedsim_ros.nodes.controller_node")
    assert "bipedsim.control.posture.posture" in loaded
    assert [
        name for name in loaded if name.startswith(("bipedsim.sim.simulator", "bipedsim.contact", "bipedsim.ground"))
    ] == []


def test_help_needs_no_ros() -> None:
    """``bipedsim up --help`` and the launch file read a table that loads neither nodes nor simulator."""
    loaded = loaded_by("bipedsim_ros.bringup.bringup")
    assert "bipedsim.sim.simulator" not in loaded
    assert "bipedsim_ros.nodes.sim_node" not in loaded
