"""Gains of a controller change while it runs, by parameters of its node."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from ros_support import RosWorld
from std_msgs.msg import Float64MultiArray


@pytest.mark.ros
def test_a_change_acts_from_the_next_state_on(ros: RosWorld) -> None:
    commands = ros.collect(Float64MultiArray, "/effort_controller/commands")
    ros.start("sim_node", start="immediately", clock="real_time", real_time_factor=0.2)
    node = ros.start("controller_node", controller="posture")
    ros.until(lambda: commands, "a first command")

    def put(name: str, value: float) -> bool:
        wanted = Parameter(name=name, value=ParameterValue(type=3, double_value=value))
        (result,) = ros.call(SetParameters, "/controller_node/set_parameters", parameters=[wanted]).results
        return bool(result.successful)

    assert put("posture.stiffness", 20.0)
    assert not put("posture.stiffness", -1.0)
    assert not put("posture.squat_depth", 0.1), "it is part of a motion that is planned at the start"
    ros.until(lambda: "the controller has its new parameters from t = " in node.output, "the change in the log")
    assert node.output.count("new parameters") == 1
