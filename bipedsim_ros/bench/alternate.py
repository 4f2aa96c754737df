"""Our nodes and a bare ping-pong by turns: processes of a few seconds, in a ROS domain of their own."""

from __future__ import annotations

import json
import os
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
from bipedsim_ros.bringup import environment
from bipedsim_ros.nodes import PARENT
from bipedsim_ros.wire import free_domain

CLOCKS = ("real_time", "lock_step")
BARE, HELPED, OURS = "bare", "helped", "ours"
# A first run compiles kernels, on a slow machine beside others.
_PATIENCE_S = 1200.0
_END_S = 15.0


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        robot, controller: Of our nodes.
        blocks: How often each of the two is measured under each clock.
        seconds: Of simulated time, hence rounds / 1000, in each.
        priority: Of all processes in real time, as of the nodes; that of a simulator in lock step keeps cores awake.
    """

    robot: str = "biped14"
    controller: str = "posture"
    blocks: int = 5
    seconds: float = 3.0
    priority: int = 50


class LoopBench:
    """Measures.

    Args:
        settings: What.
        tick: Called after each of the ``pieces``.
        env: Of the processes; by default this one's, in a ROS domain in which nobody else is.

    Raises:
        ConfigError: ROS_DOMAIN_ID is no number.
    """

    def __init__(self, settings: Settings, tick: Callable[[str], None], env: Mapping[str, str] | None = None) -> None:
        self._settings, self._tick = settings, tick
        self._players: dict[str, Callable[[str], dict[str, float]]] = {
            BARE: self._bare,
            HELPED: partial(self._bare, helped=True),
            OURS: self._ours,
        }
        self._env = {**(_apart() if env is None else env), PARENT: str(os.getpid())}

    def report(self) -> dict[str, Any]:
        """Return for each clock what each block took: ``bare``, ``helped``, ``ours``, lists of p50, p99 [us], rounds/s.

        Raises:
            BipedSimError: A process failed; holds what it said.
        """
        blocks: dict[str, dict[str, list[dict[str, float]]]] = {
            clock: {who: [] for who in self._players} for clock in CLOCKS
        }
        for _ in range(self._settings.blocks):
            for clock, found in blocks.items():
                for who, play in self._players.items():
                    found[who].append(play(clock))
                    self._tick(f"{clock}: {who}")
        return {"settings": vars(self._settings), "blocks": blocks}

    @property
    def pieces(self) -> int:
        """How many runs a report is made of."""
        return len(CLOCKS) * len(self._players) * self._settings.blocks

    def _priority(self, clock: str) -> int:
        # Who never sleeps must leave the others room.
        return self._settings.priority if clock == "real_time" else 0

    def _bare(self, clock: str, helped: bool = False) -> dict[str, float]:
        s = self._settings
        given = ["--robot", s.robot, "--priority", str(self._priority(clock)), *["--helped"] * helped]
        rate = "1000" if clock == "real_time" else "0"
        module = "bipedsim_ros.bench.bare"
        there = self._start([module, "there", *given])
        here = self._start([module, "here", *given, "--rate", rate, "--rounds", str(round(1000 * s.seconds))])
        printed = self._finish(here, there)
        try:
            values = json.loads(printed.strip().splitlines()[-1])
        except (IndexError, ValueError) as error:
            raise BipedSimError(f"the bare ping-pong ended without a result; it said: {printed.strip()}") from error
        return _figures(values["round_trip_us"], values["per_s"])

    def _ours(self, clock: str) -> dict[str, float]:
        s = self._settings
        with tempfile.TemporaryDirectory(prefix="bipedsim-bench-") as folder:
            file = Path(folder, "statistics.json")
            simulator = {"robot": s.robot, "clock": clock, "duration": s.seconds, "stats_file": file}
            controller = {"robot": s.robot, "controller": s.controller, "lock_step": clock == "lock_step"}
            # As a bring-up starts them: in lock step the simulator keeps the cores awake, and nobody is urgent.
            asks = self._node("controller_node", {**controller, "priority": self._priority(clock)})
            printed = self._finish(self._node("sim_node", {**simulator, "priority": s.priority}), asks)
            try:
                values = json.loads(file.read_text())
            except (OSError, ValueError) as error:
                raise BipedSimError(f"sim_node left no statistics; it said: {printed.strip()}") from error
        if not values["ticks"] or values["round_trip_us"]["p50"] is None:
            raise BipedSimError(f"no command came to sim_node; it said: {printed.strip()}")
        return _figures(values["round_trip_us"], values["real_time_factor"] * values["rate_hz"])

    def _node(self, name: str, parameters: dict[str, Any]) -> subprocess.Popen[str]:
        given: list[str] = []
        for key, value in parameters.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            given += ["-p", f"{key}:={text}"]
        return self._start(["bipedsim_ros.nodes.start", name, "--ros-args", *given])

    def _start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    @staticmethod
    def _finish(first: subprocess.Popen[str], other: subprocess.Popen[str]) -> str:
        """Wait for ``first``, end the other one, and return what the first has said."""
        try:
            printed, _ = first.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise BipedSimError(f"no end after {_PATIENCE_S:g} s: {first.args!r}") from error
        finally:
            for one in (first, other):
                if one.poll() is None:
                    one.send_signal(signal.SIGINT)
                try:
                    one.communicate(timeout=_END_S)
                except subprocess.TimeoutExpired:
                    one.kill()
                    one.communicate()
        return printed


def _apart() -> dict[str, str]:
    env = environment("localhost")
    domain = env.get("ROS_DOMAIN_ID") or "0"
    if not domain.isdecimal():
        raise ConfigError(f"ROS_DOMAIN_ID = {domain!r} is no number")
    return {**env, "ROS_DOMAIN_ID": str(free_domain(int(domain)))}


def _figures(round_trip_us: dict[str, float], per_s: float) -> dict[str, float]:
    return {"p50_us": round_trip_us["p50"], "p99_us": round_trip_us["p99"], "per_s": per_s}
