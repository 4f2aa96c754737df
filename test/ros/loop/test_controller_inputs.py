"""Inputs of a controller on simulated topics: due and outdated messages, and the effect of a reset."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from user_controllers import EchoParams, Steered

from bipedsim.control import Guard
from bipedsim.model import load_robot
from bipedsim.sim import Observation
from bipedsim_ros.loop.controller_inputs import ControllerInputs
from bipedsim_ros.wire import TwistWriter, topics

ROBOT = load_robot("biped14")
MS = 1_000_000


class Played:
    """An inbox that the test fills, and the controller that it steers."""

    def __init__(self, timeout: float = 0.0, period: float = 0.0, first: bool = False) -> None:
        self.queues: dict[str, deque[bytes]] = {}
        self.told: list[str] = []
        self.coming: float | None = None
        self.guard = Guard(Steered(ROBOT, EchoParams(), 1e-3), ROBOT)
        inbox: Any = self
        self.inputs = ControllerInputs(inbox, self.guard, timeout, period, first, self.told.append, self._asked)

    def _asked(self) -> bool:
        """Return whether to end a wait; the next messages arrive meanwhile."""
        if self.coming is not None:
            self.send(self.coming)
            self.coming = None
        return False

    def subscribe(self, topic: Any) -> str:
        self.queues[topic.name] = deque()
        return str(topic.name)

    def take_from(self, name: str) -> bytes | None:
        queue = self.queues[name]
        return queue.popleft() if queue else None

    def send(self, vx: float) -> None:
        self.queues[topics.VELOCITY.name].append(TwistWriter().write((vx, 0.0, 0.0)))

    def at(self, t_ms: int) -> float:
        """Receive all messages up to ``t_ms`` [ms]; return the velocity that the controller uses."""
        self.inputs.take(t_ms * MS)
        self.inputs.deliver(t_ms * MS)
        return self.guard.readouts["vx"]

    def reset(self) -> None:
        self.guard.reset(Observation.zeros(ROBOT.nu, len(ROBOT.soles)))
        self.inputs.restart()


def test_a_velocity_grows_old_and_a_reset_forgets_it() -> None:
    played = Played(timeout=0.5)
    played.send(0.3)
    assert [played.at(t) for t in (0, 500, 510, 1000)] == [0.3, 0.3, 0.0, 0.0]
    played.send(0.4)
    assert played.at(1010) == 0.4
    played.reset()
    assert [played.at(t) for t in (0, 10, 700)] == [0.0] * 3
    played.send(0.4)
    assert played.at(710) == 0.4


def test_each_velocity_of_a_schedule_is_waited_for_after_a_reset_too() -> None:
    """In lock step a command acts on the same tick in every run, however late it comes."""
    played = Played(period=0.1)
    for _lap in range(2):
        assert played.inputs.missing == topics.VELOCITY.name
        played.send(0.1)
        seen = [played.at(0)]
        assert not played.inputs.missing
        for period in range(1, 4):
            seen.append(played.at(100 * period - 1))
            played.coming = 0.1 + period
            seen.append(played.at(100 * period))
        assert seen == [0.1, 0.1, 1.1, 1.1, 2.1, 2.1, 3.1]
        assert not played.told
        played.reset()


def test_a_first_velocity_is_waited_for_and_the_others_are_not() -> None:
    """In real time the loop does not wait for a late message, but the simulation does not start before a schedule
    arrives.
    """
    played = Played(first=True)
    for _lap in range(2):
        assert played.inputs.missing == topics.VELOCITY.name
        played.send(0.2)
        assert played.at(0) == 0.2
        assert not played.inputs.missing
        assert [played.at(t) for t in (100, 200)] == [0.2, 0.2]
        assert not played.told
        played.reset()
    assert not Played().inputs.missing


def test_a_velocity_that_never_comes_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bipedsim_ros.loop.controller_inputs._PATIENCE_S", 0.01)
    played = Played(period=0.1)
    played.send(0.1)
    assert [played.at(t) for t in (0, 100, 110, 120, 130)] == [0.1] * 5
    assert len(played.told) == 1
    assert "was due, and did not come" in played.told[0]
