"""Commands as replies: which of them ends a round trip, which is lost or stale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from drives_support import knee_goal

from bipedsim.model import load_robot
from bipedsim.runs import FaultSchedule, Rollout
from bipedsim.runs.faults import Fault
from bipedsim.sim import Simulator
from bipedsim_ros.loop.commands import Commands
from bipedsim_ros.loop.realtime import Histogram
from bipedsim_ros.loop.replies import Replies
from bipedsim_ros.loop.sim_params import SimParams
from bipedsim_ros.wire import CommandWriter, topics

pytestmark = pytest.mark.ros

ROBOT = load_robot("biped14")
VALID = CommandWriter(ROBOT.nu).write(np.zeros(ROBOT.nu))


class _Link:
    """Replace inbox and clock: received messages, and a time that the test sets.

    Attributes:
        arrived: Messages in order.
        now: Time [ns].
    """

    def __init__(self, *faults: Fault) -> None:
        self.arrived: list[bytes] = []
        self.now = 0
        sim = Simulator(ROBOT)
        self.rollout = Rollout(sim, (), FaultSchedule(faults, ROBOT, sim.control_dt, 0))
        self.rollout.begin("", 0.0)
        self.commands = Commands(ROBOT, SimParams(), lambda _text: None)
        self.round_trip = Histogram()
        inbox: Any = self
        self.replies = Replies(inbox, self.commands, self.rollout, self.round_trip, lambda: self.now)
        self.replies.running = True

    def take_any(self) -> Any:
        return (topics.COMMANDS, self.arrived.pop(0)) if self.arrived else None

    def wait(self, timeout_ns: int) -> bool:
        self.now += min(timeout_ns, 1_000_000)
        return bool(self.arrived)

    @property
    def trips(self) -> list[float]:
        """Longest round trip [us]; empty before the first."""
        longest = self.round_trip.summary_us()["max"]
        return [] if np.isnan(longest) else [longest]


def test_the_first_valid_command_ends_the_round_trip() -> None:
    link = _Link()
    link.replies.published(0)
    link.replies.answered = False
    link.arrived, link.now = [b"unreadable"], 100_000
    link.replies.receive()
    assert not link.replies.answered
    assert link.trips == []
    for at in (300_000, 500_000):
        link.arrived, link.now = [VALID], at
        link.replies.receive()
    assert link.replies.answered
    assert link.trips == [pytest.approx(300.0, rel=0.1)]
    assert link.commands.received == 2


def test_measurements_without_a_reply_are_those_that_a_command_answers() -> None:
    link = _Link()
    link.replies.published(0)
    link.replies.answered = False
    link.replies.published(1_000_000)
    link.arrived, link.now = [VALID], 1_500_000
    link.replies.receive()
    assert link.trips == [pytest.approx(1500.0, rel=0.1)]


@pytest.mark.parametrize("running", [True, False])
def test_a_fault_loses_commands_of_a_running_simulation(running: bool) -> None:
    """A lost command is none that the loop has to wait for."""
    link = _Link(Fault(part="commands", does="lost", duration=1.0))
    link.replies.running = running
    link.arrived = [VALID]
    assert link.replies.take()
    assert link.commands.received == (not running)
    assert link.rollout.faults.lost_commands == running


@pytest.mark.parametrize("lost", [True, False])
def test_a_goal_is_a_command_that_answers_the_state_and_that_a_fault_may_lose(lost: bool) -> None:
    link = _Link(*[Fault(part="commands", does="lost", duration=1.0)] * lost)
    link.replies.answered = False
    goal = knee_goal()
    assert link.replies.follow(goal) == link.replies.answered == link.commands.follows_goal == (not lost)
    assert link.commands.received == link.commands.started == (not lost)
    assert link.rollout.faults.lost_commands == lost
    assert goal.end is None


def test_commands_of_before_a_reset_are_dropped_until_there_is_silence() -> None:
    link = _Link()
    link.arrived = [VALID] * 3
    link.replies.drain(link.replies.drop_stale, lambda: False)
    assert link.commands.drops.by_kind == {"stale": 3}
    assert link.commands.received == 0
    assert link.now < 400_000_000, "it does not wait for the time limit"
    link.arrived = [VALID]
    link.replies.drain(link.replies.drop_stale, lambda: True)
    assert len(link.arrived) == 1, "a node that ends waits for nothing"
