"""`bipedsim env`: a Python of another environment, without ROS of its own, takes part in the graph."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from refusals import refusal

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from ros_support import RosWorld
from std_msgs.msg import String

from bipedsim_ros.bringup.env import version_of

NODE = """
import sys, rclpy
from std_msgs.msg import String
rclpy.init()
publisher = rclpy.create_node("other").create_publisher(String, "said", 1)
while not publisher.get_subscription_count():
    pass
publisher.publish(String(data=sys.prefix))
publisher.wait_for_all_acked()
"""
OURS = ("LD_LIBRARY_PATH", "PYTHONPATH", "AMENT_PREFIX_PATH", "_ROS_WHEELS_BOOTSTRAP_COMPLETE")


@pytest.mark.ros
def test_another_environment_speaks_after_eval(ros: RosWorld, tmp_path: Path) -> None:
    venv.create(tmp_path / "other", symlinks=True)
    python = tmp_path / "other" / "bin" / "python"
    bare = {name: value for name, value in ros.env.items() if name not in OURS}
    alone = subprocess.run([python, "-c", "import rclpy"], env=bare, capture_output=True, text=True, check=False)
    assert "No module named 'rclpy'" in alone.stderr
    said = ros.collect(String, "/said")
    command = f'eval "$({sys.executable} -m bipedsim.cli.main env --python {python})" && exec {python} -c "$NODE"'
    with subprocess.Popen(["sh", "-c", command], env={**bare, "NODE": NODE}, stderr=subprocess.PIPE, text=True) as node:
        ros.until(lambda: said or node.poll() is not None, "a word of the other environment")
        assert said, node.communicate()[1]
    assert said[0].data == os.path.realpath(tmp_path / "other")


@pytest.mark.ros
def test_a_python_of_another_version_is_refused_with_what_to_do(ros_env: dict[str, str], tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 2.7\n")
    other.chmod(0o755)
    command = [sys.executable, "-m", "bipedsim.cli.main", "env", "--python", str(other)]
    done = subprocess.run(command, env=ros_env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is Python 2.7" in done.stderr
    assert "make PYTHON=python2.7 setup" in done.stderr
    with refusal(place="--python"):
        version_of(str(tmp_path / "none"))
