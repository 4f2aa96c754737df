"""Drives that take the commands of messages, without nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time

from bipedsim.model import load_robot
from bipedsim.sim import Observation
from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.loop.sim_statistics import Statistics
from bipedsim_ros.wire.joint_commands import CommandWriter

ROBOT = load_robot("biped14")
DT = 0.01


class Drives:
    """Commands on their way to drives that ask for one each 10 ms, on a wall clock of the test's own."""

    def __init__(self, **params: Any) -> None:
        self.told: list[str] = []
        self.wall = 100.0
        self.commands = Commands(ROBOT, replace(SimParams(), **params), self.told.append, lambda: self.wall)
        self.state = Observation.zeros(ROBOT.nu, 2)
        self.state.joint_velocity[:] = 1.0
        self.ticks = 0
        self.seen = np.zeros(0)

    @property
    def t(self) -> float:
        return round(self.ticks * DT, 9)

    def send(self, tau: float = 1.0, n: int = ROBOT.nu) -> bool:
        return self.commands.accept(CommandWriter(n).write(np.full(n, tau)), self.t)

    def run(self, ticks: int, wall: float = DT) -> np.ndarray:
        """Take so many ticks, each of ``wall`` seconds, and return the last torques."""
        for _ in range(ticks):
            tau = self.commands.command(self.state, self.t)
            self.ticks += 1
            self.wall += wall
        return tau

    def diagnostics(self) -> tuple[bytes, str]:
        commands = self.commands
        statistics = Statistics("biped14", "one_step", "real_time", 1.0 / DT, t=self.t)
        statistics.commands_received = commands.received
        statistics.commands_dropped_by_kind = commands.drops.by_kind
        statistics.silence = commands.silence
        status = statistics.diagnostics(Time()).status[1]
        return status.level, status.message
