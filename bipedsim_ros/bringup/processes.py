"""Run the processes of a launch: prefix their output, and end them cleanly if possible, else by force."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bipedsim_ros.bringup.bringup import NodeProcess, executable_of
from bipedsim_ros.nodes import ENDING, PARENT
from bipedsim_ros.wire import network_environment

_STARTER = "bipedsim_ros.nodes.start"

# Time for a node to finish after each signal [s]; the recorder needs time to write its index.
ESCALATION = ((signal.SIGINT, 10.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0))


def ros_arguments(
    namespace: str = "",
    remappings: Iterable[tuple[str, str]] = (),
    parameters: Mapping[str, Any] | None = None,
    params_files: Sequence[Path] = (),
) -> list[str]:
    """Return the arguments of ROS for a node: its namespace, names of topics, and parameters, which override files."""
    names = [("__ns", namespace)] if namespace else []
    arguments = [part for old, new in (*names, *remappings) for part in ("-r", f"{old}:={new}")]
    # JSON quotes texts, so that ROS does not read them as numbers.
    values = [part for name, value in (parameters or {}).items() for part in ("-p", f"{name}:={json.dumps(value)}")]
    files = [part for path in params_files for part in ("--params-file", str(path))]
    return ["--ros-args", *arguments, *files, *values]


def environment(network: str = "") -> dict[str, str]:
    """Return the environment for nodes: that of this process, the network, and variables that ROS wheels do not set."""
    result = {**os.environ, **network_environment(network, os.environ)}
    result.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    result["PYTHONUNBUFFERED"] = "1"
    # A second BLAS thread does not speed up vectors of 30 numbers, but would occupy the controller's core.
    result.setdefault("OMP_NUM_THREADS", "1")
    return result


def start_session(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a node in its own session, which ends with this process; read its output from ``stdout``."""
    return subprocess.Popen(
        command,
        env={**env, PARENT: str(os.getpid())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


class Child:
    """A running node.

    Args:
        node: The node to start.
        params_file: Parameters of the node, which override ``node.params_files``.
        show: Called in a thread with each line of output, without the line end.
        env: Environment of the process.
    """

    def __init__(
        self, node: NodeProcess, params_file: Path, show: Callable[[str], None], env: Mapping[str, str]
    ) -> None:
        self.name = node.executable
        self.optional = node.optional
        self.ready = threading.Event()
        self._ready_line = node.ready
        self._show = show
        program = executable_of(node.package, node.executable) if node.package != "bipedsim" else None
        started = [sys.executable, "-m", _STARTER, node.executable] if program is None else [str(program)]
        command = [*node.prefix, *started, *node.arguments, *ros_arguments(node.namespace, node.remappings)]
        if node.log_level:
            command += ["--log-level", node.log_level]
        for path in (*node.params_files, params_file):
            command += ["--params-file", str(path)]
        # A signal during the start of Python would cause a fatal error. It is blocked until _STARTER handles it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, () if program else ENDING)
        try:
            # The node has its own session. Ctrl-C therefore reaches only this process, which ends the nodes in order.
            self._process = start_session(command, env)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._reader = threading.Thread(target=self._read, name=f"output of {self.name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text = line.rstrip("\n")
            self._show(f"[{self.name}] {text}")
            if self._ready_line and text.startswith(self._ready_line):
                self.ready.set()

    def poll(self) -> int | None:
        """Return the exit code, or None while the node runs; negative for the number of the signal that killed it."""
        return self._process.poll()

    def wait_ready(self, timeout: float) -> bool:
        """Wait for the line that reports that the node is ready; return False if it has ended or is too slow."""
        if not self._ready_line:
            return True
        end = time.monotonic() + timeout
        while not self.ready.wait(0.05):
            if self.poll() is not None or time.monotonic() > end:
                return False
        return True

    def send(self, number: int) -> None:
        """Send a signal to the node, if it still runs."""
        if self.poll() is None:
            self._process.send_signal(number)

    def stop(self, hurry: Callable[[], bool]) -> int:
        """End the node with increasingly strong signals; return its exit code. ``hurry`` requests SIGKILL at once."""
        for number, patience in ESCALATION:
            if self.poll() is not None:
                break
            if hurry() and number != signal.SIGKILL:
                continue
            self.send(number)
            end = time.monotonic() + patience
            while self.poll() is None and time.monotonic() < end and (number == signal.SIGKILL or not hurry()):
                time.sleep(0.02)
        code = self._process.wait()
        self._reader.join(timeout=1.0)
        return code


def describe_exit(code: int) -> str:
    """Describe an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
