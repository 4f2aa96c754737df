"""The loop among surroundings that a test plays, on a clock of their own: what ends the wait for a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from bipedsim.model import load_robot
from bipedsim.runs import FaultSchedule, PushSchedule
from bipedsim.sim import Simulator
from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.sim_loop import SimLoop
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.loop.sim_statistics import Statistics
from bipedsim_ros.wire.conversions import CommandWriter

ROBOT = load_robot("biped14")
SOUND = CommandWriter(ROBOT.nu).write(np.zeros(ROBOT.nu))
US = 1000


class Surroundings:
    """Inbox, publishers and clock at once; each look at the clock takes a microsecond.

    Attributes:
        events: What the waits bring in turn: after how long [us], and whether it is a command or a wake-up.
    """

    def __init__(self, events: list[tuple[int, bool]]) -> None:
        self.events = events
        self.now = 0
        self.ground: list[int] = []
        self.on_wake: Callable[[], None] = lambda: None
        self._message: bytes | None = None

    def clock(self) -> int:
        self.now += US
        return self.now

    def wait(self, timeout_ns: int) -> bool:
        if not self.events or self.events[0][0] * US > timeout_ns:
            self.now += timeout_ns
            return False
        after, is_command = self.events.pop(0)
        self.now += after * US
        if not is_command:
            self.on_wake()
        self._message = SOUND if is_command else None
        return is_command

    def take(self) -> bytes | None:
        message, self._message = self._message, None
        return message

    def wake(self) -> None: ...

    def publish_sensors(self, _observation: Any) -> int:
        return self.now

    def publish_run(self, _said: Any) -> None: ...

    def publish_ground(self) -> None:
        self.ground.append(self.now)


def a_loop(
    events: list[tuple[int, bool]], log: Callable[[str], Any] = pytest.fail, **params: Any
) -> tuple[Surroundings, Statistics, SimLoop]:
    """Return what simulates ticks of a millisecond, two of them if nothing else is said."""
    played: Any = Surroundings(events)
    settings = SimParams(**{"start": "immediately", "duration": 0.002, "priority": 0, **params})
    statistics = Statistics(ROBOT.name, "one_step", settings.clock, settings.rate)
    commands = Commands(ROBOT, settings, lambda _text: None)
    sim = Simulator(ROBOT)
    loop = SimLoop(
        sim,
        settings,
        PushSchedule(()),
        FaultSchedule((), ROBOT, sim.control_dt, 0),
        played,
        commands,
        played,
        statistics,
        log,
        played.clock,
    )
    return played, statistics, loop


def run(events: list[tuple[int, bool]], pushes: bool = False, **more: Any) -> tuple[Surroundings, Statistics]:
    """Simulate them."""
    played, statistics, loop = a_loop(events, **more)
    if pushes:
        played.on_wake = lambda: loop.post(lambda: loop.push(np.zeros(6), "", 0.1), pytest.fail)
    loop.run(lambda: None)
    return played, statistics


@pytest.mark.parametrize("clock", ["real_time", "lock_step"])
@pytest.mark.parametrize("pushes", [False, True])
def test_a_wake_up_does_not_end_the_wait_for_a_command(clock: str, pushes: bool) -> None:
    wake, command = (50, False), (100, True)
    played, statistics = run([wake, wake, command, wake, command], pushes, clock=clock)
    assert played.events == []
    assert statistics.missed_commands == 0
    assert statistics.round_trip.count == 2
    # Each was in hand when it came.
    assert statistics.round_trip.maximum_ns < 300 * US


def test_a_command_that_does_not_come_is_a_miss() -> None:
    _, statistics = run([(50, True)], clock="real_time")
    assert (statistics.ticks, statistics.missed_commands, statistics.round_trip.count) == (2, 1, 1)


def test_a_robot_that_nobody_commands_any_more_falls_for_want_of_commands() -> None:
    said_of_joints: list[str] = []
    _, statistics = run([(50, True)] * 50, log=said_of_joints.append, duration=1.0, command_timeout=0.05)
    assert statistics.outcome["fell_at_s"] > 0.2
    said = statistics.outcome["verdict"]
    begun = float(said.partition("no commands from ")[2].split()[0])
    assert begun == pytest.approx(0.1, abs=0.01), said


def test_who_asks_when_the_loop_has_ended_is_answered() -> None:
    """A service that comes while the node ends would hold it up for as long as an answer is waited for."""
    _, _, loop = a_loop([], clock="real_time")
    loop.run(lambda: None)
    assert loop.ask(loop.pause) == (False, "the simulation has ended")


def test_a_reset_waits_half_a_second_at_most_for_commands_that_never_end() -> None:
    """Whoever calls it is answered within a second, also if it comes upon the start, which waits as long."""
    played, _, loop = a_loop([(20_000, True)] * 100, clock="real_time")
    before = played.now
    loop.reset()
    assert 200_000 * US < played.now - before < 500_000 * US
