"""Shared memory that killed processes have left is removed, and no other."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from ros_domains import APART, Domain
from socket_support import memory_of

from bipedsim_ros.wire.network import CHOOSING, DISCOVERY_RANGE
from bipedsim_ros.wire.shared_memory import FOLDER, remove_left_memory


def test_memory_that_nobody_holds_is_removed(tmp_path: Path) -> None:
    def make(name: str, *more: str, age: float = 60.0) -> None:
        for file in (name, *(f"{name}_{kind}" for kind in more), f"sem.{name}_mutex"):
            (tmp_path / file).touch()
            os.utime(tmp_path / file, (0.0, (tmp_path / file).stat().st_mtime - age))

    make("fastrtps_port7000")
    make("fastrtps_port7001", "el")
    make("fastdds_port7002", "sl")
    make("fastrtps_port7003", "el")
    make("fastrtps_port7004", age=0.0)
    make("fastrtps_0123456789abcdef", "el")
    make("fastrtps_123456789abcdef0", "el")
    make("fastrtps_notes")
    held = ("fastrtps_port7003_el", "fastrtps_123456789abcdef0_el")
    with ExitStack() as stack:
        for name in held:
            fcntl.flock(stack.enter_context((tmp_path / name).open("rb")), fcntl.LOCK_EX)
        assert remove_left_memory(tmp_path) == [
            "fastdds_port7002",
            "fastrtps_0123456789abcdef",
            "fastrtps_port7000",
            "fastrtps_port7001",
        ]
    assert sorted(file.name for file in tmp_path.iterdir() if not file.name.startswith("sem.")) == [
        "fastrtps_123456789abcdef0",
        "fastrtps_123456789abcdef0_el",
        "fastrtps_notes",
        "fastrtps_port7003",
        "fastrtps_port7003_el",
        "fastrtps_port7004",
    ]
    assert len(list(tmp_path.glob("sem.*"))) == 4


def test_a_port_that_a_publisher_still_has_mapped_stays(tmp_path: Path) -> None:
    """Fast DDS removes it by its name later, when another node may have made a port of this name."""
    port = tmp_path / "fastrtps_port7000"
    port.write_bytes(bytes(4096))
    os.utime(port, (0.0, 0.0))
    code = f"""
import mmap
with open({str(port)!r}, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    print("mapped", flush=True)
    input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as publisher:
        assert publisher.stdout is not None
        assert publisher.stdout.readline() == "mapped\n"
        assert remove_left_memory(tmp_path) == []
        publisher.communicate("\n")
    assert port.exists()
    assert remove_left_memory(tmp_path) == [port.name]


LISTENER = """
import time
import rclpy
rclpy.init()
node = rclpy.create_node("listener")
print("up", flush=True)
time.sleep(600.0)
"""


def files_of(names: set[str]) -> set[tuple[str, int]]:
    """Return the present files of ports and segments, by name and inode."""
    return {(name, (FOLDER / name).stat().st_ino) for name in names if (FOLDER / name).exists()}


def mapped_by(pid: int) -> set[str]:
    """Return the ports that a process has mapped."""
    text = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    return {name for line in text.splitlines() for name in [Path(line.split()[-1]).name] if "_port" in name}


@pytest.mark.ros
@pytest.mark.skipif(not FOLDER.exists(), reason="not a system with shared memory in files")
def test_a_node_that_starts_removes_what_a_killed_one_left_and_nothing_of_those_that_live(tmp_path: Path) -> None:
    """The node is started by hand, in the network of the environment."""
    pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
    from recorder_support import RecorderProcess

    domain = Domain()
    env = {name: value for name, value in domain.environment().items() if name not in (*APART, *CHOOSING)}
    env |= {DISCOVERY_RANGE: "LOCALHOST"}
    command, nodes = [sys.executable, "-c", LISTENER], []
    try:
        for _ in range(2):
            nodes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
            assert nodes[-1].stdout is not None
            assert nodes[-1].stdout.readline() == "up\n"
        lives, dies = (memory_of(node.pid) for node in nodes)
        for names in (lives, dies):
            assert {"port" in name for name in names} == {True, False}
        nodes[1].kill()
        nodes[1].wait()
        # The living node notices that the port is dead when it sends its next announcement.
        end = time.monotonic() + 60.0
        while dies & mapped_by(nodes[0].pid) and time.monotonic() < end:
            time.sleep(0.1)
        for name in lives:
            os.utime(FOLDER / name, (0.0, 0.0))
        for name in dies:
            # Fast DDS, or a node of another test, may have removed it meanwhile.
            with suppress(FileNotFoundError):
                os.utime(FOLDER / name, (0.0, 0.0))
        living, dead = files_of(lives), files_of(dies)
        with RecorderProcess(env, tmp_path / "bag", "topics:=['/left_foot/cop']", program=True) as recorder:
            assert recorder.first_line
            # The new node, or a sender, may have made a port of the same name.
            assert not dead & files_of(dies)
            assert files_of(lives) == living
    finally:
        for node in nodes:
            node.kill()
            node.communicate()
        domain.release()
