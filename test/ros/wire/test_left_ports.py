"""Ports of shared memory that killed processes have left are removed, and no others."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ros_domains import APART, Domain

from bipedsim_ros.wire.left_ports import FOLDER, remove_left_ports
from bipedsim_ros.wire.network import CHOOSING, network_environment


def test_ports_at_which_nobody_listens_are_removed(tmp_path: Path) -> None:
    def make(name: str, *more: str, age: float = 60.0) -> None:
        for file in (name, *(f"{name}_{kind}" for kind in more), f"sem.{name}_mutex"):
            (tmp_path / file).touch()
            os.utime(tmp_path / file, (0.0, (tmp_path / file).stat().st_mtime - age))

    make("fastrtps_port7000")
    make("fastrtps_port7001", "el")
    make("fastdds_port7002", "sl")
    make("fastrtps_port7003", "el")
    make("fastrtps_port7004", age=0.0)
    make("fastrtps_0123456789abcdef")
    with (tmp_path / "fastrtps_port7003_el").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert remove_left_ports(tmp_path) == ["fastdds_port7002", "fastrtps_port7000", "fastrtps_port7001"]
    assert sorted(file.name for file in tmp_path.iterdir() if not file.name.startswith("sem.")) == [
        "fastrtps_0123456789abcdef",
        "fastrtps_port7003",
        "fastrtps_port7003_el",
        "fastrtps_port7004",
    ]
    assert len(list(tmp_path.glob("sem.*"))) == 3


LISTENER = """
import time
import rclpy
rclpy.init()
node = rclpy.create_node("listener")
print("up", flush=True)
time.sleep(600.0)
"""


def ports_of(pid: int) -> set[str]:
    """Return the shared-memory ports of a process: those whose lock files it has open."""
    files = [Path(os.readlink(link)) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return {file.name.removesuffix("_el") for file in files if file.match(f"{FOLDER}/*_port*_el")}


@pytest.mark.ros
@pytest.mark.skipif(not FOLDER.exists(), reason="not a system with shared memory in files")
def test_of_real_nodes_those_that_live_keep_theirs() -> None:
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    domain = Domain()
    env = {name: value for name, value in domain.environment().items() if name not in (*APART, *CHOOSING)}
    env |= network_environment("localhost", {})
    command, nodes = [sys.executable, "-c", LISTENER], []
    try:
        for _ in range(2):
            nodes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
            assert nodes[-1].stdout is not None
            assert nodes[-1].stdout.readline() == "up\n"
        lives, dies = (ports_of(node.pid) for node in nodes)
        assert lives
        assert dies
        nodes[1].kill()
        nodes[1].wait()
        for port in lives | dies:
            os.utime(FOLDER / port, (0.0, 0.0))
        removed = set(remove_left_ports())
        # Any other program of ours that starts in this moment removes those of the dead, too.
        assert not lives & removed
        assert all((FOLDER / port).exists() for port in lives)
        assert not any((FOLDER / port).exists() for port in dies)
    finally:
        for node in nodes:
            node.kill()
            node.communicate()
        domain.release()
