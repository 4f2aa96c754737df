"""Measure the nodes and a bare ping-pong alternately, in processes of a few seconds in a separate ROS domain."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bipedsim.errors import BipedSimError, ConfigError
from bipedsim_ros.bringup import environment, ros_arguments, start_session
from bipedsim_ros.wire import free_domain

CLOCKS = ("real_time", "lock_step")
BARE, HELPED, OURS = "bare", "helped", "ours"
# The first run compiles kernels, on a slow machine in two processes at the same time.
_PATIENCE_S = 1200.0
_END_S = 15.0


@dataclass(frozen=True)
class Settings:
    """Settings of the measurement.

    Attributes:
        robot, controller: Arguments of the nodes.
        blocks: Number of measurements of each program under each clock.
        seconds: Simulated time of each measurement [s]; a round takes 1 ms of it.
        priority: Real-time priority of all processes under the real-time clock, as in a launch. In lock step, it only
            makes the simulator keep the cores awake.
    """

    robot: str = "biped14"
    controller: str = "posture"
    blocks: int = 5
    seconds: float = 3.0
    priority: int = 50


class LoopBench:
    """Measures the programs alternately.

    Args:
        settings: Settings of the measurement.
        tick: Called after each of the ``pieces``.
        env: Environment of the processes; by default that of this process, with an unused ROS domain.

    Raises:
        ConfigError: ROS_DOMAIN_ID is not a number.
    """

    def __init__(self, settings: Settings, tick: Callable[[str], None], env: Mapping[str, str] | None = None) -> None:
        self._settings, self._tick = settings, tick
        self._programs: dict[str, Callable[[str], dict[str, float]]] = {
            BARE: self._bare,
            HELPED: partial(self._bare, helped=True),
            OURS: self._ours,
        }
        self._env = _separate_domain() if env is None else env

    def report(self) -> dict[str, Any]:
        """Return lists of p50, p99 [us] and rounds/s of each block, for each clock and program.

        Raises:
            BipedSimError: A process failed; the message contains its output.
        """
        blocks: dict[str, dict[str, list[dict[str, float]]]] = {
            clock: {program: [] for program in self._programs} for clock in CLOCKS
        }
        for _ in range(self._settings.blocks):
            for clock, measured in blocks.items():
                for program, run in self._programs.items():
                    measured[program].append(run(clock))
                    self._tick(f"{clock}: {program}")
        return {"settings": vars(self._settings), "blocks": blocks}

    @property
    def pieces(self) -> int:
        """Number of runs in a report."""
        return len(CLOCKS) * len(self._programs) * self._settings.blocks

    def _priority(self, clock: str) -> int:
        # A process that never sleeps must not preempt the others.
        return self._settings.priority if clock == "real_time" else 0

    def _bare(self, clock: str, helped: bool = False) -> dict[str, float]:
        s = self._settings
        options = ["--robot", s.robot, "--priority", str(self._priority(clock)), *["--helped"] * helped]
        rate = "1000" if clock == "real_time" else "0"
        module = "bipedsim_ros.bench.bare"
        answering = self._start([module, "there", *options])
        asking = self._start([module, "here", *options, "--rate", rate, "--rounds", str(round(1000 * s.seconds))])
        printed = self._finish(asking, answering)
        try:
            values = json.loads(printed.strip().splitlines()[-1])
        except (IndexError, ValueError) as error:
            raise BipedSimError(f"it ended without a result; it said: {printed.strip()}", "bare ping-pong") from error
        return _metrics(values["round_trip_us"], values["per_s"])

    def _ours(self, clock: str) -> dict[str, float]:
        s = self._settings
        with tempfile.TemporaryDirectory(prefix="bipedsim-bench-") as folder:
            file = Path(folder, "statistics.json")
            simulator = {"robot": s.robot, "clock": clock, "duration": s.seconds, "stats_file": str(file)}
            controller = {"robot": s.robot, "controller": s.controller, "lock_step": clock == "lock_step"}
            # As in a launch: in lock step the simulator keeps the cores awake, and no process has real-time priority.
            answering = self._node("controller_node", {**controller, "priority": self._priority(clock)})
            printed = self._finish(self._node("sim_node", {**simulator, "priority": s.priority}), answering)
            try:
                values = json.loads(file.read_text())
            except (OSError, ValueError) as error:
                raise BipedSimError(f"it left no statistics; it said: {printed.strip()}", "sim_node") from error
        if not values["ticks"] or values["round_trip_us"]["p50"] is None:
            raise BipedSimError(f"no command came; it said: {printed.strip()}", "sim_node")
        return _metrics(values["round_trip_us"], values["real_time_factor"] * values["rate_hz"])

    def _node(self, name: str, parameters: dict[str, Any]) -> subprocess.Popen[str]:
        return self._start(["bipedsim_ros.nodes.start", name, *ros_arguments(parameters=parameters)])

    def _start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        return start_session([sys.executable, "-m", *command], self._env)

    @staticmethod
    def _finish(first: subprocess.Popen[str], other: subprocess.Popen[str]) -> str:
        """Wait for ``first``, end the other process, and return the output of the first."""
        try:
            printed, _ = first.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise BipedSimError(f"no end after {_PATIENCE_S:g} s: {first.args!r}") from error
        finally:
            for process in (first, other):
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                try:
                    process.communicate(timeout=_END_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
        return printed


def _separate_domain() -> dict[str, str]:
    env = environment("localhost")
    domain = env.get("ROS_DOMAIN_ID") or "0"
    if not domain.isdecimal():
        raise ConfigError("is no number", "ROS_DOMAIN_ID", domain)
    return {**env, "ROS_DOMAIN_ID": str(free_domain(int(domain)))}


def _metrics(round_trip_us: dict[str, float], per_s: float) -> dict[str, float]:
    return {"p50_us": round_trip_us["p50"], "p99_us": round_trip_us["p99"], "per_s": per_s}
