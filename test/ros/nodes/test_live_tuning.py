"""Gains of a controller change while it runs, by parameters of its node."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import moving, time_of
from std_srvs.srv import SetBool

from bipedsim.control.posture.posture import PostureController, PostureParams
from bipedsim.model import load_robot
from bipedsim.sim import Simulator


@pytest.mark.ros
def test_a_change_acts_at_the_logged_time_with_the_bits_of_one_process(ros: RosWorld) -> None:
    """In lock step. The change comes in a pause, so that the run does not end before it."""
    states = ros.collect(JointState, "/joint_states")
    ros.start("sim_node", clock="lock_step", posture="", drop_height=0.01)
    node = ros.start("controller_node", controller="posture", lock_step=True)
    ros.until(moving(states), "steps")
    assert ros.call(SetBool, "/sim_node/pause", data=True).success

    def put(name: str, value: float) -> bool:
        wanted = Parameter(name=name, value=ParameterValue(type=3, double_value=value))
        (result,) = ros.call(SetParameters, "/controller_node/set_parameters", parameters=[wanted]).results
        return bool(result.successful)

    assert put("posture.stiffness", 20.0)
    assert not put("posture.stiffness", -1.0)
    assert not put("posture.squat_depth", 0.1), "it is part of a motion that is planned at the start"
    assert ros.call(SetBool, "/sim_node/pause", data=False).success
    ros.until(lambda: (said := re.search("parameters from t = ([0-9.]+) s", node.output)) and said, "the log")
    tuned_at = float(re.findall("parameters from t = ([0-9.]+) s", node.output)[0])
    ros.until(lambda: time_of(states[-1]) > tuned_at + 0.2, "states after the change")
    measured = {round(time_of(state), 6): np.array(state.position) for state in states}
    robot, params = load_robot("biped14"), PostureParams()
    sim, controller = Simulator(robot), PostureController(robot, params, 1e-3)
    q = sim.q.copy()
    q[2] += 0.01
    observation = sim.reset(q)
    controller.reset(observation)
    while sim.t < tuned_at + 0.2:
        if round(sim.t, 6) == tuned_at:
            controller.tune(replace(params, stiffness=20.0))
        observation = sim.step(controller.update(observation))
        np.testing.assert_array_equal(observation.joint_position, measured[round(sim.t, 6)])
