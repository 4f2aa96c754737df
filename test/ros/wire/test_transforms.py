"""Transforms on topics that a test plays, as tf2_msgs need not be installed: how often, and again after a reset."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from bipedsim.model import load_robot
from bipedsim_ros.wire import transforms


class Message:
    """What stands for a TFMessage."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms


def test_poses_come_at_their_rate_and_anew_when_time_runs_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[float, float]] = []

    def publish(message: Message) -> None:
        (moving,) = message.transforms
        stamp = moving.header.stamp
        sent.append((stamp.sec + 1e-9 * stamp.nanosec, moving.transform.translation.x))

    def publisher(_node: Any, topic: Any) -> Any:
        return SimpleNamespace(publish=publish if topic is transforms.topics.TF else lambda _message: None)

    monkeypatch.setattr(transforms, "publisher", publisher)
    played: Any = transforms.Transforms(None, load_robot("biped14"), 100.0, Message)
    for lap in range(2):
        for tick in range(35):
            q = np.array([tick + 100.0 * lap, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
            sim: Any = SimpleNamespace(t=1e-3 * tick, q=q)
            played.publish(sim, tick * 1_000_000)
    assert [x for _, x in sent] == [0.0, 10.0, 20.0, 30.0, 100.0, 110.0, 120.0, 130.0]
    assert [round(1e3 * t) for t, _ in sent] == [0, 10, 20, 30] * 2
