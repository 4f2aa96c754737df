"""Steps as a task of a real executor: feedback for each, other requests between them, and cancellation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from rclpy.executors import SingleThreadedExecutor
from ros_support import RosWorld
from std_srvs.srv import Trigger

from bipedsim_ros.nodes.simulate_steps import simulate_steps

pytestmark = pytest.mark.ros


@pytest.fixture
def executor(ros: RosWorld) -> Iterator[Any]:
    """A second executor with a node that serves /steps."""
    node = rclpy.create_node("steps", context=ros.context, enable_rosout=False)
    made = SingleThreadedExecutor(context=ros.context)
    made.add_node(node)
    yield made
    made.shutdown()
    node.destroy_node()


def test_each_step_is_told_and_the_executor_does_not_wait_between_them(executor: Any) -> None:
    taken: list[int] = []
    told: list[tuple[int, int]] = []
    task = executor.create_task(
        simulate_steps(40, lambda: taken.append(1), lambda *one: told.append(one), lambda: False, executor)
    )
    spins = 0
    while not task.done():
        # As sim_node spins: an executor that waits for events between steps would need 20 s.
        executor.spin_once(timeout_sec=0.5)
        spins += 1
    assert task.result() == 40 == len(taken)
    assert told == [(k, 40 - k) for k in range(1, 41)]
    assert spins < 40 * 5


def test_others_are_served_between_steps_and_one_may_cancel_them(ros: RosWorld, executor: Any) -> None:
    calls: list[int] = []

    def cancel(_request: Any, response: Any) -> Any:
        calls.append(len(taken))
        response.success = True
        return response

    taken: list[int] = []
    executor.get_nodes()[0].create_service(Trigger, "/cancel", cancel)
    client = ros.node.create_client(Trigger, "/cancel")
    count = 10**9
    task = executor.create_task(
        simulate_steps(count, lambda: taken.append(1), lambda *_: None, lambda: bool(calls), executor)
    )
    asked: list[Any] = []

    def cancelled() -> bool:
        executor.spin_once(timeout_sec=0.1)
        if not asked and taken and client.service_is_ready():
            asked.append(client.call_async(Trigger.Request()))
        return task.done()

    ros.until(cancelled, "an end of the steps")
    assert 0 < calls[0] <= task.result() == len(taken) < count
