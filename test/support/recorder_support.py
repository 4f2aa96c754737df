"""recorder_node in a separate process, and its publishers."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from geometry_msgs.msg import PointStamped, WrenchStamped
from nav_msgs.msg import Odometry
from nursery import Child, nursery
from sensor_msgs.msg import Imu, JointState

from bipedsim.recording.bag.reader import Bag

TOPICS: dict[str, Any] = {
    "/joint_states": JointState,
    "/imu/data": Imu,
    "/left_foot/wrench": WrenchStamped,
    "/right_foot/wrench": WrenchStamped,
    "/left_foot/cop": PointStamped,
    "/ground_truth/odom": Odometry,
}
# Longer than any test publishes, so that messages that a busy reader misses are sent again.
DEPTH = 5000
PATIENCE = 240.0


class RecorderProcess:
    """recorder_node as a child; ``with`` ends it.

    Args:
        env: Its environment.
        output: Folder of its bag.
        parameters: More parameters, ``name:=value``.
        ready: Whether to wait for its first line.
        program: Whether to start a program, whose environment also applies to its imports, instead of a fork.
    """

    def __init__(
        self, env: Mapping[str, str], output: Path, *parameters: str, ready: bool = True, program: bool = False
    ) -> None:
        arguments = ["--ros-args", "-p", f"output:={output}"]
        for parameter in parameters:
            arguments += ["-p", parameter]
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        self.stdout, self._stderr = (os.fdopen(end, encoding="utf-8") for end in (out, err))
        self._ends: tuple[int, ...] = (to_out, to_err)
        self.process: Child | subprocess.Popen[bytes]
        if program:
            command = [sys.executable, "-m", "bipedsim_ros.nodes.recorder_node", *arguments]
            self.process = subprocess.Popen(command, stdout=to_out, stderr=to_err, env=dict(env))
        else:
            pipes = (Path(f"/proc/{os.getpid()}/fd/{end}") for end in self._ends)
            self.process = nursery().start("recorder_node", arguments, env, *pipes)
        self.first_line = ""
        while ready and not self.first_line and self.process.poll() is None:
            if select.select([self.stdout], [], [], 0.05)[0]:
                self.first_line = self.stdout.readline()

    def __enter__(self) -> RecorderProcess:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self._let_go()
        self.stdout.close()
        self._stderr.close()

    def finish(self, *signals: int) -> tuple[int, str, str]:
        """Send signals, wait for the end, and return exit code, output and errors."""
        for number in signals:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._let_go()
        return code, self.stdout.read(), self._stderr.read()

    def _let_go(self) -> None:
        """Close our copies of the ends that it writes to, after which the pipes have an end."""
        for end in self._ends:
            os.close(end)
        self._ends = ()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.005)


def publishers_of(node: Any, topics: dict[str, Any], qos: Any = DEPTH) -> dict[str, Any]:
    """Return publishers that a recorder has matched."""
    result = {name: node.create_publisher(cls, name, qos) for name, cls in topics.items()}
    wait_for(lambda: all(p.get_subscription_count() for p in result.values()), "the recorder's subscriptions")
    return result


def message_of(cls: Any, tick: int) -> Any:
    message = cls()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(tick * 1_000_000, 1_000_000_000)
    if cls is JointState:
        message.name = [f"joint_{i}" for i in range(26)]
        message.position = [float(tick)] * 26
    return message


def publish(publishers: dict[str, Any], ticks: range, period: float = 1e-3) -> None:
    """Publish a message a tick on every topic, about every ``period`` seconds."""
    start = time.monotonic()
    for i, tick in enumerate(ticks):
        for name, publisher in publishers.items():
            publisher.publish(message_of(TOPICS[name], tick))
        time.sleep(max(0.0, start + i * period - time.monotonic()))


def ticks_in(bag: Bag, topic: str) -> list[int]:
    stamps = (struct.unpack_from("<iI", message.data, 4) for message in bag.messages.get(topic, []))
    return [round(sec * 1000 + nanosec / 1e6) for sec, nanosec in stamps]


def counts_of(line: str) -> dict[str, int]:
    return {key: int(value) for key, _, value in (word.partition("=") for word in line.split() if "=" in word)}
