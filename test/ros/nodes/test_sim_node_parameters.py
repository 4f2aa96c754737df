"""Parameters of sim_node: described, guarded while it runs, and refused with a message when they are wrong."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, SetParameters
from ros_support import NodeUnderTest, RosWorld
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

pytestmark = pytest.mark.ros


def test_parameters_are_described_and_guarded(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    commands = ros.node.create_publisher(Float64MultiArray, "/effort_controller/commands", 1)
    ros.start("sim_node", timeout_mode="zero")
    described = ros.call(DescribeParameters, "/sim_node/describe_parameters", names=["rate", "timeout_mode"])
    rate, mode = described.descriptors
    assert rate.read_only
    assert "[Hz]" in rate.description
    assert rate.floating_point_range[0].from_value == 1.0
    assert not mode.read_only
    assert "damping" in mode.additional_constraints

    def put(name: str, value: str) -> Any:
        text = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value)
        return ros.call(
            SetParameters, "/sim_node/set_parameters", parameters=[Parameter(name=name, value=text)]
        ).results[0]

    ros.connected(commands)
    commands.publish(Float64MultiArray(data=[0.0] * 14))
    ros.until(lambda: states and states[-1].header.stamp.nanosec > 300_000_000, "some time without commands")
    assert not any(any(state.effort) for state in states)
    assert put("timeout_mode", "stiff").successful
    ros.until(lambda: any(states[-1].effort), "torques of joints that are held")
    refused = put("timeout_mode", "stif")
    assert not refused.successful
    assert "did you mean 'stiff'" in refused.reason
    assert not put("robot", "g1").successful


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"robot": "biped15"}, "unknown robot 'biped15'; did you mean 'biped14'?"),
        ({"robot": "/nowhere/robot.yaml"}, "/nowhere/robot.yaml"),
        ({"clock": "fast"}, "unknown clock 'fast'"),
        ({"contact_model": "magic"}, "'magic'"),
        ({"rate": 0.1}, "rate = 0.1 Hz is below its minimum 1.0 Hz"),
        ({"rate": 700.0}, "must be a whole multiple of physics_dt"),
        ({"rate": "fast"}, "rate = 'fast' must be a finite number"),
        ({"rte": 1000.0}, "unknown parameter 'rte'; did you mean 'rate'?"),
        ({"one_step.gamm": 0.1}, "unknown parameter 'one_step.gamm'"),
        ({"pushes": ["1.0 2.0"]}, "pushes[0] = '1.0 2.0' must be 'start duration fx fy fz [body [frame]]'"),
        ({"pushes": ["1.0 2.0 1 2 3 tail"]}, "pushes[0] = '1.0 2.0 1 2 3 tail' names no frame of the robot"),
        ({"ft_sign": 0.5}, "ft_sign = 0.5 must be 1 or -1"),
        ({"cpu_affinity": 1}, "cpu_affinity = 1 must be a text; in quotes it is one: '1' in a file"),
        ({"cpu_affinity": "first"}, "cpu_affinity = 'first' must be auto, any, or numbers of cores"),
    ],
)
def test_bad_parameters_end_the_node_with_a_message(ros: RosWorld, parameters: dict[str, Any], said: str) -> None:
    sim = ros.start("sim_node", **parameters)
    assert sim.wait() == 2
    assert said in sim.output
    assert "Traceback" not in sim.output


def test_all_faults_of_the_parameters_are_told_at_once(ros: RosWorld) -> None:
    sim = ros.start("sim_node", cpu_affinity="first", ft_sign=0.5, real_time_factor=0.5, clock="lock_step")
    assert sim.wait() == 2
    for said in ("cpu_affinity = 'first'", "ft_sign = 0.5", "real_time_factor = 0.5 needs clock"):
        assert said in sim.output


def test_an_integer_will_do_for_a_float(ros: RosWorld) -> None:
    sim = ros.start("sim_node", rate=500, start="immediately", duration=1, clock="as_fast_as_possible")
    assert ros.ended(sim) == 0


@pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="one core is everybody's, or no Linux"
)
def test_each_loop_runs_on_the_core_that_it_is_given(ros: RosWorld) -> None:
    first, *_, last = sorted(os.sched_getaffinity(0))
    sim = ros.start("sim_node", cpu_affinity=str(first), clock="lock_step")
    controller = ros.start("controller_node", cpu_affinity=str(last), lock_step=True)
    for node, core in ((sim, first), (controller, last)):
        ros.until(partial(_says, node, f"on core {core} (cpu_affinity = {core})"), "a core is taken")
        # Linux reports the properties of the thread of the loop and of the threads that receive messages.
        tasks = Path(f"/proc/{node.process.pid}/task")
        names = {int(task.name): (task / "comm").read_text() for task in tasks.iterdir()}
        there = {thread for thread in names if os.sched_getaffinity(thread) == {core}}
        assert node.process.pid in there
        assert any(names[thread].startswith("dds.") for thread in there)


def _says(node: NodeUnderTest, text: str) -> bool:
    return text in node.output
