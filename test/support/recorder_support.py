"""recorder_node in a process of its own, and what is published for it."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from geometry_msgs.msg import PointStamped, WrenchStamped
from nav_msgs.msg import Odometry
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
# Longer than any test publishes: what a reader misses on a busy machine is sent again.
DEPTH = 5000
PATIENCE = 240.0


class RecorderProcess:
    """recorder_node as a child; ``with`` ends it."""

    def __init__(self, env: Mapping[str, str], output: Path, *parameters: str, ready: bool = True) -> None:
        command = [sys.executable, "-m", "bipedsim_ros.nodes.recorder_node", "--ros-args", "-p", f"output:={output}"]
        for parameter in parameters:
            command += ["-p", parameter]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=dict(env))
        self.first_line = ""
        if ready:
            assert self.process.stdout is not None
            self.first_line = self.process.stdout.readline()

    def __enter__(self) -> RecorderProcess:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def finish(self, *signals: int) -> tuple[int, str, str]:
        for number in signals:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


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
