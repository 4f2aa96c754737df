"""Drives that take the commands of messages, without nodes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint, MultiDOFJointTrajectory

from bipedsim.model import load_robot
from bipedsim.sim import Observation
from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.loop.sim_statistics import Statistics
from bipedsim_ros.loop.tracking import Tracking
from bipedsim_ros.wire import Goal, read_goal
from bipedsim_ros.wire.joint_commands import CommandWriter

ROBOT = load_robot("biped14")
DT = 0.01


def knee_goal(*, path: Any = (), end: Any = (), time: float = 0.0, start: int = 0) -> Tracking:
    """Return a goal that moves the left knee to 1 rad within 1 s, with tolerances as (position, velocity) by joint."""

    def tolerances(limits: Any) -> list[Any]:
        return [
            SimpleNamespace(name=ROBOT.joint_names[joint], position=position, velocity=velocity, acceleration=0.0)
            for joint, (position, velocity) in dict(limits).items()
        ]

    points = [JointTrajectoryPoint(positions=[1.0], time_from_start=Duration(sec=1))]
    message = JointTrajectory(joint_names=["l_knee"], points=points)
    message.header.stamp.sec = start
    goal = read_goal(
        SimpleNamespace(
            trajectory=message,
            multi_dof_trajectory=MultiDOFJointTrajectory(),
            path_tolerance=tolerances(path),
            component_path_tolerance=[],
            goal_tolerance=tolerances(end),
            component_goal_tolerance=[],
            goal_time_tolerance=Duration(sec=int(time), nanosec=round(time % 1.0 * 1e9)),
        ),
        ROBOT.joint_names,
    )
    assert isinstance(goal, Goal), goal
    return Tracking(goal, ROBOT.joint_names)


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
