"""Nodes that end before they are ready, and together with the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from ros_support import PATIENCE_S, RosWorld

from bipedsim_ros.bringup.bringup import NodeProcess
from bipedsim_ros.bringup.processes import Child
from bipedsim_ros.nodes import PARENT

pytestmark = pytest.mark.ros

# Sends the signal while rclpy is being imported, in every process that finds this on its path.
AMID_IMPORTS = """
import os, sys

class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == "rclpy.node":
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Sender())
"""


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_amid_the_imports_ends_a_node_without_a_word(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "sitecustomize.py").write_text(AMID_IMPORTS.format(number=int(number)))
    command = [sys.executable, "-m", "bipedsim_ros.nodes.start", "commander_node"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_its_first_line_ends_a_node_of_a_bringup_without_a_word(
    tmp_path: Path, number: signal.Signals
) -> None:
    """While Python starts, which answers with a fatal error; others of the process that starts it are not held back."""
    (tmp_path / "sitecustomize.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})")
    said: list[str] = []
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    child = Child(NodeProcess("commander_node"), tmp_path / "none.yaml", said.append, env)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    end = time.monotonic() + PATIENCE_S
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert (child.stop(lambda: True), said) == (0, [])


@pytest.mark.parametrize(
    ("name", "module", "arguments"),
    [
        ("commander_node", "bipedsim_ros.nodes.start", ["commander_node"]),
        ("bare_there", "bipedsim_ros.bench.bare", ["there", "--robot", "biped14"]),
    ],
)
def test_a_node_ends_with_the_process_that_started_it(
    ros: RosWorld, name: str, module: str, arguments: list[str]
) -> None:
    """A killed launch cannot end its nodes, so recorder and controller would run forever."""
    starter = (
        "import os, subprocess, sys\n"
        f"env = {{**os.environ, {PARENT!r}: str(os.getpid())}}\n"
        f"subprocess.Popen([sys.executable, '-m', {module!r}, *{arguments!r}], env=env).wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", starter], env=ros.env, stderr=subprocess.PIPE, text=True) as parent:
        ros.until(lambda: name in ros.node.get_node_names(), "the node")
        parent.kill()
        # The node holds the other end of the pipe, so this returns when it has ended. The graph of another process is
        # not asked: it can keep the name of a node whose last message it handles after its participant ended.
        parent.communicate(timeout=PATIENCE_S)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "ready", "compiled"),
    [
        (
            "sim_node",
            "a step takes",
            "the simulation of biped14, as `bipedsim warmup` does ahead of time, about a minute, once",
        ),
        ("controller_node", "posture for biped14", "controller posture, up to 40 s on an idle machine, once"),
    ],
)
def test_a_node_speaks_of_compiling_where_it_compiles(
    ros: RosWorld, tmp_path: Path, name: str, ready: str, compiled: str
) -> None:
    first = ros.start(name)
    ros.until(lambda: ready in first.output, "its kernels")
    first.stop()
    again = ros.start(name)
    ros.until(lambda: ready in again.output, "its kernels, from the cache")
    again.stop()
    assert "loading" in again.output
    assert "compil" not in again.output
    # A separate process, because the cache folder is read when numba is imported.
    command = [sys.executable, "-m", "bipedsim_ros.nodes.start", name]
    env = {**ros.env, "NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as new:
        assert new.stdout is not None
        said = next((line for line in new.stdout if "compil" in line), "nothing")
        new.terminate()
    assert said.startswith(f"compiling the kernels of {compiled}")
