"""Nodes and a reader that the campaign starts, and what it records of each process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bipedsim_ros.bringup.processes import ros_arguments

SIM, CONTROLLER, RECORDER, ECHO = "sim_node", "controller_node", "recorder_node", "echo"
READY = {SIM: ", contact ", CONTROLLER: " joints) at ", RECORDER: "recording ", ECHO: "ready"}
"""Text in the log of each process from which on it takes part. A start that compiles takes long, and much memory."""
SETTLED_S = 30.0
"""Time after this from which on the memory of a process is expected to stay constant [s]."""
END_S = 60.0
"""Time in which a node must end after SIGINT [s]; a recorder writes its index."""


@dataclass
class Life:
    """One process from its start to its end.

    Attributes:
        name: Node, or echo.
        process: The process.
        log: Its output.
        begun: Time of the start [s].
        ready: Time at which it was first seen to take part [s]; None before.
        sizes: Time since then [s], private memory [MB] and resident memory [MB] of samples.
        code: Exit code; None while it runs.
        fault: What was wrong at its end.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    begun: float = field(default_factory=time.monotonic)
    ready: float | None = None
    sizes: list[tuple[float, float, float]] = field(default_factory=list)
    code: int | None = None
    fault: str = ""

    @classmethod
    def start(cls, name: str, parameters: Mapping[str, Any], log: Path) -> Life:
        """Start a node with parameters, or the echo, whose output is as long as the run and is not kept."""
        command = [sys.executable, "-m", "bipedsim_ros.nodes.start", name, *ros_arguments(parameters=dict(parameters))]
        if name == ECHO:
            command = [sys.executable, str(Path(__file__).with_name("echo.py"))]
        with open(os.devnull, "wb") if name == ECHO else log.open("wb") as out, log.open("ab") as err:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        return cls(name, process, log)

    def text(self) -> str:
        """Return its output."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def is_ready(self) -> bool:
        """Whether the process takes part."""
        return READY[self.name] in self.text()

    def sample(self) -> None:
        """Store the memory of a process that takes part."""
        if self.ready is None and self.is_ready:
            self.ready = time.monotonic()
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return  # It has ended.
        numbers = {name: int(kb) / 1024 for name, kb in re.findall(r"^(RssAnon|VmRSS):\s*(\d+) kB", status, re.M)}
        if self.ready is not None and len(numbers) == 2:
            self.sizes.append((time.monotonic() - self.ready, numbers["RssAnon"], numbers["VmRSS"]))

    def growth(self, column: int) -> float | None:
        """Return the growth since :data:`SETTLED_S` [MB]; None for a shorter life."""
        settled = [sizes[column] for sizes in self.sizes if sizes[0] >= SETTLED_S]
        return max(settled) - settled[0] if settled else None

    def end(self) -> None:
        """End the process as Ctrl-C does."""
        self.sample()
        code = self.process.poll()
        if code is not None:
            self.fault = f"ended by itself with code {code}"
        else:
            self.process.send_signal(signal.SIGINT)
            try:
                code = self.process.wait(END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                code = self.process.wait()
                self.fault = f"had not ended {END_S:g} s after SIGINT"
        self.code = code
        if code and not self.fault:
            self.fault = f"exit code {code}"
        if "Traceback (most recent call last)" in self.text():
            self.fault = f"{self.fault}; a traceback".removeprefix("; ")
