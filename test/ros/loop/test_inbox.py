"""The thread beside a loop goes on, whatever one callback meets."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from rcl_interfaces.msg import Log
from ros_support import RosWorld
from std_srvs.srv import Trigger

from bipedsim_ros.loop.inbox import Background

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
