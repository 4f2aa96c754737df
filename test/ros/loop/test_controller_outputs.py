"""Outputs of a controller on simulated topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

import numpy as np
from rclpy.serialization import deserialize_message
from std_msgs.msg import Float64MultiArray
from user_controllers import EchoParams, Steered

from bipedsim.control import Guard
from bipedsim.model import load_robot
from bipedsim.sim import Observation
from bipedsim_ros.loop import changes_publisher, controller_outputs
from bipedsim_ros.wire import topics

ROBOT = load_robot("biped14")
MS = 1_000_000


def test_a_fall_is_told_once_and_so_is_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, and on change: twice over."""
    fallen: list[bool] = []

    def publisher(_node: Any, topic: Any, **_more: Any) -> Any:
        told = topic is topics.FALLEN
        return SimpleNamespace(
            publish=lambda message: fallen.append(message.data) if told else None, get_subscription_count=lambda: 0
        )

    for module in (controller_outputs, changes_publisher):
        monkeypatch.setattr(module, "publisher", publisher)
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


class _Sink:
    """A publisher that stores its messages; ``heard`` states whether it has a subscriber."""

    def __init__(self) -> None:
        self.heard, self.sent = True, []

    def get_subscription_count(self) -> int:
        return int(self.heard)

    def publish(self, message: Any) -> None:
        self.sent.append(message)


def test_a_plan_goes_out_as_numbers_and_as_a_path_on_change_while_somebody_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sinks: dict[str, _Sink] = {}

    def publisher(_node: Any, topic: Any, name: str = "", **_more: Any) -> Any:
        return sinks.setdefault(topic.name + name, _Sink())

    for module in (controller_outputs, changes_publisher):
        monkeypatch.setattr(module, "publisher", publisher)
    readouts = {"margin": 1.0, "plan_com_x": 0.5, "plan_step_1_x": np.nan, "plan_step_1_y": 0.1, "plan_step_1_yaw": 0.4}
    controller = Steered(ROBOT, EchoParams(), 1e-3)
    monkeypatch.setattr(controller, "readouts", readouts, raising=False)
    node: Any = None
    outputs = controller_outputs.ControllerOutputs(node, Guard(controller, ROBOT))
    numbers, steps = sinks[topics.PLAN.name], sinks[topics.PLANNED_STEPS.name]
    assert [name for name in sinks if name.startswith(topics.READOUTS.name)] == [topics.READOUTS.name + "margin"]
    for k, x in enumerate([np.nan, 0.3, 0.3, 0.4]):
        readouts["plan_step_1_x"] = x
        outputs.publish(10 * k * MS)
    said = [deserialize_message(data, Float64MultiArray) for data in numbers.sent]
    assert said[0].layout.dim[0].label == "t,plan_com_x,plan_step_1_x,plan_step_1_y,plan_step_1_yaw"
    told = [list(one.data[:3]) for one in said[1:]]
    np.testing.assert_array_equal(told, [[0.01, 0.5, 0.3], [0.02, 0.5, 0.3], [0.03, 0.5, 0.4]])
    assert [len(path.poses) for path in steps.sent] == [0, 1, 1]
    pose = steps.sent[-1].poses[0].pose
    assert (pose.position.x, pose.position.y, pose.position.z) == (0.4, 0.1, 0.0)
    assert 2.0 * np.arctan2(pose.orientation.z, pose.orientation.w) == pytest.approx(0.4)
    numbers.heard = steps.heard = False
    readouts["plan_step_1_x"] = 0.7
    outputs.publish(50 * MS)
    assert (len(numbers.sent), len(steps.sent)) == (4, 3)


def test_viewers_are_told_all_readouts_in_one_message_thirty_times_a_second_while_one_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sinks: dict[str, _Sink] = {}
    for module in (controller_outputs, changes_publisher):
        monkeypatch.setattr(
            module,
            "publisher",
            lambda _node, topic, name="", **_: sinks.setdefault(topic.name + name, _Sink()),
        )
    clock = SimpleNamespace(now=0)
    monkeypatch.setattr(controller_outputs, "time", SimpleNamespace(monotonic_ns=lambda: clock.now))
    readouts = {"margin": 1.0, "plan_com_x": 0.5}
    controller = Steered(ROBOT, EchoParams(), 1e-3)
    monkeypatch.setattr(controller, "readouts", readouts, raising=False)
    node: Any = None
    outputs = controller_outputs.ControllerOutputs(node, Guard(controller, ROBOT))
    shown = sinks[topics.READOUTS_SHOWN.name]
    for tick in range(1000):
        # Slow motion: a tick is 5 ms of the wall clock.
        clock.now += 5 * MS
        readouts["margin"] = float(tick)
        outputs.publish(tick * MS)
    said = [deserialize_message(data, Float64MultiArray) for data in shown.sent]
    assert {one.layout.dim[0].label for one in said} == {"t,margin,plan_com_x"}
    assert len(said) == pytest.approx(5 * 30, abs=10)
    for one in said:
        assert (one.data[0], one.data[2]) == (pytest.approx(1e-3 * one.data[1]), 0.5), "what holds now, and its time"
    shown.heard = False
    clock.now += 1000 * MS
    outputs.publish(MS)
    assert len(shown.sent) == len(said)
