"""controller_node with the additional IMUs and contact switches of a robot that this test plays."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from additional_sensors_support import write_robot
from geometry_msgs.msg import WrenchStamped
from ros_support import RosWorld
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray

from bipedsim.model import load_robot

pytestmark = pytest.mark.ros


@pytest.mark.long
def test_the_controller_gets_all_sensors_and_waits_for_the_first_message_of_each(ros: RosWorld) -> None:
    path = write_robot(ros.folder)
    robot = load_robot(path)
    commands = ros.collect(Float64MultiArray, "/effort_controller/commands")
    make = ros.node.create_publisher
    states = make(JointState, "/joint_states", 10)
    main = [
        make(Imu, "/imu/data", 10),
        *(make(WrenchStamped, f"/{foot}_foot_ft/wrench", 10) for foot in ("left", "right")),
    ]
    imus = [make(Imu, imu.topic, 10) for imu in robot.imus]
    switches = [make(Bool, switch.topic, 10) for switch in robot.contact_switches]
    node = ros.start("controller_node", robot=str(path), controller="user_controllers:EchoSensors")
    for publisher in (states, *main, *imus, *switches):
        ros.connected(publisher)
    values = np.arange(1.0, 11.0)

    def publish(t_ms: int, closed: list[bool]) -> None:
        for publisher in main:
            publisher.publish(publisher.msg_type())
        for i, publisher in enumerate(imus):
            message = Imu()
            x = (values + 100.0 * i).tolist()
            q, w, a = message.orientation, message.angular_velocity, message.linear_acceleration
            q.x, q.y, q.z, q.w, w.x, w.y, w.z, a.x, a.y, a.z = x
            publisher.publish(message)
        for publisher, state in zip(switches, closed, strict=False):
            publisher.publish(Bool(data=state))
        state = JointState(name=list(robot.joint_names), position=[0.0] * robot.nu, velocity=[0.0] * robot.nu)
        state.header.stamp.nanosec = t_ms * 1_000_000
        states.publish(state)

    def waits() -> bool:
        publish(0, [True])
        ros.spin(lambda: False, 0.05)
        return robot.contact_switches[1].topic in node.output

    ros.until(waits, "the warning about the second switch")
    assert robot.contact_switches[0].topic not in node.output
    assert commands == []
    for t_ms, closed in ((1, [True, False]), (2, [False, True])):

        def answered(t_ms: int = t_ms, closed: list[bool] = closed) -> bool:
            count = len(commands)
            publish(t_ms, closed)
            ros.spin(lambda: len(commands) > count, 2.0)
            return len(commands) > count

        ros.until(answered, f"an answer to the state at {t_ms} ms")
        np.testing.assert_array_equal(commands[-1].data[:12], [*(values + 100.0), *map(float, closed)])


@pytest.mark.long
def test_a_sensor_without_a_message_is_nan(ros: RosWorld) -> None:
    """If the node does not wait for sensors. A torque from NaN then stops the controller."""
    path = write_robot(ros.folder)
    robot = load_robot(path)
    states = ros.node.create_publisher(JointState, "/joint_states", 10)
    ros.collect(Float64MultiArray, "/effort_controller/commands")
    parameters = {"robot": str(path), "controller": "user_controllers:EchoSensors", "wait_for_sensors": False}
    node = ros.start("controller_node", **parameters)
    ros.connected(states)
    state = JointState(name=list(robot.joint_names), position=[0.0] * robot.nu, velocity=[0.0] * robot.nu)

    def stopped() -> bool:
        states.publish(state)
        ros.spin(lambda: False, 0.05)
        return "is nan" in node.output

    ros.until(stopped, "the stop of the controller")


@pytest.mark.long
def test_a_topic_with_another_meaning_ends_the_node(ros: RosWorld) -> None:
    path = write_robot(ros.folder, {"a": {"type": "imu", "frame": "l_shank", "topic": "/joint_states"}})
    node = ros.start("controller_node", robot=str(path))
    assert ros.ended(node) == 2
    assert "sensors.a.topic" in node.output
