"""Tests that start nodes are isolated from each other, from other suites, and from other users' robots."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from ros_domains import APART, Domain
from ros_support import RosWorld

from bipedsim_ros.wire.domains import FIRST, LAST, STANDARD_BASE, in_use, ports

pytestmark = pytest.mark.ros

CLAIM = """
import sys
from ros_domains import Domain
domain = Domain(int(sys.argv[1]))
print(domain.id, flush=True)
sys.stdin.read()
"""

FOREIGN = """
import sys
import rclpy
rclpy.init()
node = rclpy.create_node("foreign_" + sys.argv[1])
while sys.argv[2] not in node.get_node_names():
    rclpy.spin_once(node, timeout_sec=0.05)
print(*sorted(node.get_node_names()), flush=True)
sys.stdin.read()
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(ros_env: dict[str, str]) -> Iterator[Start]:
    """Return a function that starts a script with arguments; the processes end with the test."""
    started: list[subprocess.Popen[str]] = []

    def start_script(script: str, *arguments: object, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, *map(str, arguments)]
        process = subprocess.Popen(
            command, env=env or ros_env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        started.append(process)
        return process

    yield start_script
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    """Return the next line of a script."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def as_everybody(domain: int) -> dict[str, str]:
    """Return the environment of a program outside the tests."""
    return {**{k: v for k, v in os.environ.items() if k not in APART}, "ROS_DOMAIN_ID": str(domain)}


def test_parallel_suites_have_domains_of_their_own(start: Start) -> None:
    mine = [Domain(7) for _ in range(3)]
    theirs = [int(said(start(CLAIM, 7))) for _ in range(3)]
    found = [domain.id for domain in mine] + theirs
    assert len(set(found)) == 6
    assert all(FIRST <= domain <= LAST for domain in found)
    for domain in mine:
        domain.release()


def test_a_domain_is_free_again_however_its_holder_ended(start: Start) -> None:
    holder = start(CLAIM, 50)
    domain = int(said(holder))
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    again = Domain(domain)
    assert again.id == domain
    again.release()


def test_a_domain_in_which_somebody_listens_is_left_out() -> None:
    quiet = Domain(80)
    quiet.release()
    multicast, _, unicast, *_ = ports(quiet.id, STANDARD_BASE)
    for port in (multicast, unicast):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
            listener.bind(("127.0.0.1", port))
            assert in_use(quiet.id)
            other = Domain(quiet.id)
            assert other.id != quiet.id
            other.release()


def test_a_graph_that_is_up_is_left_out(start: Start) -> None:
    """A participant of this machine's DDS, as any program makes it, listens on the ports that are looked at."""
    free = Domain(20)
    free.release()
    foreign = start(FOREIGN, "a", "foreign_a", env=as_everybody(free.id))
    assert said(foreign) == "foreign_a"
    mine = Domain(free.id)
    assert mine.id != free.id
    mine.release()


def test_a_graph_that_comes_up_later_in_the_same_domain_is_not_met(ros: RosWorld, start: Start) -> None:
    """Two foreign nodes meet each other, so there was time to meet; neither sees the test, nor the test them."""
    env = as_everybody(int(ros.env["ROS_DOMAIN_ID"]))
    inner = start(FOREIGN, "inner", "test", env=ros.env)
    foreign = [start(FOREIGN, "a", "foreign_b", env=env), start(FOREIGN, "b", "foreign_a", env=env)]
    ros.until(lambda: "foreign_inner" in ros.node.get_node_names(), "the node of the same world")
    assert said(inner) == "foreign_inner test"
    assert {said(process) for process in foreign} == {"foreign_a foreign_b"}
    ros.spin(lambda: False, 0.5)
    assert not {"foreign_a", "foreign_b"} & set(ros.node.get_node_names())
