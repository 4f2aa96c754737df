"""What a controller tells, on topics that a test plays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from user_controllers import EchoParams, Steered

from bipedsim.control import Guard
from bipedsim.model import load_robot
from bipedsim.sim import Observation
from bipedsim_ros.loop import controller_outputs
from bipedsim_ros.wire import topics

ROBOT = load_robot("biped14")
MS = 1_000_000


def test_a_fall_is_told_once_and_so_is_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, and on change: twice over."""
    fallen: list[bool] = []

    def publisher(_node: Any, topic: Any, **_more: Any) -> Any:
        told = topic is topics.FALLEN
        return SimpleNamespace(publish=lambda message: fallen.append(message.data) if told else None)

    monkeypatch.setattr(controller_outputs, "publisher", publisher)
    guard = Guard(Steered(ROBOT, EchoParams(), 1e-3), ROBOT)
    node: Any = None
    outputs = controller_outputs.ControllerOutputs(node, guard)
    standing = Observation.zeros(ROBOT.nu, len(ROBOT.soles))
    assert fallen == [False]
    for lap in range(2):
        guard.reset(standing)
        for tick in range(30):
            if tick == 10:
                guard.steer((0.0, 0.0, 10.0))
            guard.update(standing)
            outputs.publish(tick * MS)
        assert fallen == [False, True] * (lap + 1)
