"""Gains of a controller change while it runs, by parameters of its node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bipedsim.control import make_controller
from bipedsim.control.posture.posture import PostureController, PostureParams
from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim.sim import Simulator

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from ros_support import RosWorld
from std_msgs.msg import Float64MultiArray

ROBOT = load_robot("biped14")


def test_a_tuned_controller_is_one_with_these_gains() -> None:
    """Other parameters stay, and a refused change leaves all as it was."""
    params = PostureParams()
    changed = replace(params, stiffness=1.5 * params.stiffness, damping=0.5 * params.damping, kp={"l_knee": 900.0})
    tuned, fresh = (PostureController(ROBOT, p, 1e-3) for p in (params, changed))
    observation = Simulator(ROBOT).reset()
    for controller in (tuned, fresh):
        controller.reset(observation)
    observation.joint_position += 0.01
    assert not np.array_equal(tuned.update(observation).tau_joint, fresh.update(observation).tau_joint)
    tuned.tune(changed)
    expected = fresh.update(observation).tau_joint.copy()
    np.testing.assert_array_equal(tuned.update(observation).tau_joint, expected)
    with pytest.raises(ConfigError):
        tuned.tune(replace(params, kd={"l_knee": -1.0}))
    np.testing.assert_array_equal(tuned.update(observation).tau_joint, expected)


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


def test_only_gains_can_change() -> None:
    live = {name for name, field in PostureParams.__dataclass_fields__.items() if field.metadata["live"]}
    assert live == {"kp", "kd", "damping", "stiffness"}
    assert hasattr(make_controller("posture", ROBOT), "tune")
