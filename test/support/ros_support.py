"""Nodes in processes of their own, over real DDS, on a domain of each test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from nursery import Child, nursery
from ros_domains import APART, Domain

os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
# Before the first participant: Fast DDS reads its profiles once in a process.
os.environ.update(APART)
pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy

# Time until a broken test fails; a working one never waits that long.
PATIENCE_S = 240.0
# An answer that has not come by then is lost.
LOST_S = 15.0
# Longer than any test, so that a busy test process loses no message.
ALL = QoSProfile(depth=20_000, reliability=ReliabilityPolicy.RELIABLE)


class NodeUnderTest:
    """A node as a child process, a module of ours or a script, with its output in a file."""

    def __init__(self, module: str | Path, parameters: Mapping[str, Any], env: Mapping[str, str], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        params_file = folder / "parameters.yaml"
        params_file.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(parameters)}}), encoding="utf-8")
        self._log = folder / "output.txt"
        arguments = ["--ros-args", "--params-file", str(params_file)]
        self._log.touch()
        self.process: Child | subprocess.Popen[bytes]
        if isinstance(module, str):
            self.process = nursery().start(module, arguments, env, self._log)
        else:
            with self._log.open("wb") as log:
                command = [sys.executable, str(module), *arguments]
                self.process = subprocess.Popen(command, env=dict(env), stdout=log, stderr=subprocess.STDOUT)

    @property
    def output(self) -> str:
        """Everything the node has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        """Wait for the node to end by itself and return its exit code."""
        return self.process.wait(PATIENCE_S)

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send a signal, wait, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        """End the node without ceremony."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)


class RosWorld:
    """A domain of its own with a node of the test in it, and the nodes that the test starts."""

    def __init__(self, folder: Path, domain: Domain) -> None:
        self.env = domain.environment()
        self.folder = folder
        self._domain = domain
        self._nodes: list[NodeUnderTest] = []
        self.context = rclpy.Context()
        self.context.init(domain_id=domain.id)
        self.node = rclpy.create_node("test", context=self.context, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)

    def start(self, module: str | Path, **parameters: Any) -> NodeUnderTest:
        """Start a node; ``__`` in a parameter's name represents a dot."""
        named = {name.replace("__", "."): value for name, value in parameters.items()}
        if named.get("clock") == "lock_step":
            # On a busy machine an answer may take longer than users want to wait for one that never comes.
            named.setdefault("lock_step_timeout", PATIENCE_S)
        node = NodeUnderTest(module, named, self.env, self.folder / f"{len(self._nodes)}_{Path(module).stem}")
        self._nodes.append(node)
        return node

    def collect(self, message_type: type, topic: str, qos: Any = ALL) -> list[Any]:
        """Return a list to which every message on ``topic`` is appended while the test spins."""
        messages: list[Any] = []
        self.node.create_subscription(message_type, topic, messages.append, qos)
        return messages

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Spin until ``condition`` holds; otherwise fail with ``what`` and the output of all nodes."""
        self.spin(condition, PATIENCE_S)
        if not condition():
            printed = "\n".join(node.output for node in self._nodes)
            pytest.fail(f"never happened: {what}\n{printed}")

    def spin(self, condition: Callable[[], Any], patience: float) -> None:
        """Spin until ``condition`` holds or ``patience`` [s] is at its end."""
        end = time.monotonic() + patience
        while not condition() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.05)

    def connected(self, endpoint: Any) -> None:
        """Wait until a publisher has a subscription or a subscription a publisher."""
        count = getattr(endpoint, "get_subscription_count", None) or endpoint.get_publisher_count
        self.until(lambda: count() > 0, f"a peer on {endpoint.topic_name}")

    def ended(self, node: NodeUnderTest) -> int:
        """Spin until a node has ended, receive its last messages, and return its exit code."""
        self.until(lambda: node.process.poll() is not None, "the end of the node")
        for _ in range(20):
            self._executor.spin_once(timeout_sec=0.01)
        return node.wait()

    def call(self, service_type: Any, name: str, **fields: Any) -> Any:
        """Call a service and return its response."""
        client = self.node.create_client(service_type, name)
        self.until(client.service_is_ready, f"the service {name}")
        future = client.call_async(service_type.Request(**fields))
        self.spin(future.done, LOST_S)
        if not future.done():
            # A server may answer before it has discovered the client's reader. Fast DDS then loses the answer.
            future = client.call_async(service_type.Request(**fields))
        self.until(future.done, f"an answer of {name}")
        self.node.destroy_client(client)
        return future.result()

    def close(self) -> None:
        """End everything."""
        for node in self._nodes:
            node.kill()
        self._executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()
        self._domain.release()


def new_world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> RosWorld:
    """Return a world on a fresh domain; :meth:`RosWorld.close` ends it."""
    domain = Domain()
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain.id))
    return RosWorld(folder, domain)
