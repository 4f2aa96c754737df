"""The messages that a loop receives itself. Its thread continues after a failed callback."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from rcl_interfaces.msg import Log
from rclpy.serialization import deserialize_message
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from bipedsim_ros.loop.inbox import Background, Inbox
from bipedsim_ros.wire import topics

pytestmark = pytest.mark.ros


def test_an_exception_ends_no_service_and_is_told(ros: RosWorld) -> None:
    log = ros.collect(Log, "/rosout")
    node = rclpy.create_node("beside", context=ros.context)

    def fail() -> Any:
        raise ZeroDivisionError("one of ours")

    node.create_service(Trigger, "~/works", lambda _request, response: response)
    background, done = Background(node), threading.Event()
    background.start()
    try:
        background.submit(fail)
        background.submit(done.set)
        assert done.wait(10.0)
        assert ros.call(Trigger, "/beside/works") is not None
        said = "a message or service was not served: ZeroDivisionError: one of ours"
        ros.until(lambda: any(said in entry.msg for entry in log), said)
    finally:
        background.stop()
        node.destroy_node()


def test_what_is_served_beside_the_loop_gives_way_to_it(ros: RosWorld) -> None:
    if subprocess.run(["chrt", "-f", "7", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no right to a real-time priority here")
    node = rclpy.create_node("beside", context=ros.context)
    background, done, found = Background(node), threading.Event(), list[tuple[int, int]]()

    def look() -> None:
        found.append((os.sched_getscheduler(0), os.sched_getparam(0).sched_priority))
        done.set()

    def loop() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(8))
        background.start()

    before = sys.getswitchinterval()
    try:
        # In a thread of its own, as this one shall not be urgent.
        urgent = threading.Thread(target=loop)
        urgent.start()
        urgent.join()
        background.submit(look)
        assert done.wait(10.0)
        assert found == [(os.SCHED_FIFO, 4)]
        # A tenth of a tick for a thread that waits for Python.
        assert sys.getswitchinterval() == pytest.approx(1e-4)
    finally:
        background.stop()
        node.destroy_node()
        sys.setswitchinterval(before)


def test_a_loop_that_was_busy_takes_the_newest_state_alone(ros: RosWorld) -> None:
    """A controller that answers the earlier states would be late for all following ones."""
    node = rclpy.create_node("busy", context=ros.context)
    inbox = Inbox(node, topics.JOINT_STATES)
    publisher = ros.node.create_publisher(JointState, topics.JOINT_STATES.name, 10)
    try:
        ros.connected(publisher)
        for second in range(5):
            message = JointState()
            message.header.stamp.sec = second
            publisher.publish(message)
        assert publisher.wait_for_all_acked()
        taken = []
        while (data := inbox.take()) is not None:
            taken.append(deserialize_message(data, JointState).header.stamp.sec)
        assert taken == [4]
    finally:
        node.destroy_node()
