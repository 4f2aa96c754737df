"""The order of the joints in commands, as nodes ask for it."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from ros_support import RosWorld

from bipedsim.model import load_robot

pytestmark = pytest.mark.ros


def test_both_nodes_tell_the_joints_and_keep_them(ros: RosWorld) -> None:
    names = list(load_robot("parallel_ankles").joint_names)
    ros.start("sim_node", robot="parallel_ankles")
    for node in ("/sim_node", "/effort_controller"):
        (value,) = ros.call(GetParameters, f"{node}/get_parameters", names=["joints"]).values
        assert value.string_array_value == names
        other = Parameter(name="joints", value=ParameterValue(type=9, string_array_value=names[::-1]))
        (result,) = ros.call(SetParameters, f"{node}/set_parameters", parameters=[other]).results
        assert not result.successful


def test_a_controller_manager_has_the_name_for_itself(ros: RosWorld) -> None:
    ros.start("sim_node", command_interface="topic_based")
    ros.call(GetParameters, "/sim_node/get_parameters", names=["joints"])
    assert "effort_controller" not in ros.node.get_node_names()
