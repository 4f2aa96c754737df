"""sim_node with real hardware: the controller gets sensor measurements, and the ground truth stays exact."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from ros_support import RosWorld
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from bipedsim.model import load_robot
from bipedsim.sim.simulator import Simulator

pytestmark = pytest.mark.ros

TICKS = 40
HARDWARE = "{preset: realistic, mass_scale: 1.1, force_bias: 50.0}"


def stamp(message: JointState | Imu | WrenchStamped | Odometry) -> int:
    return round(1e3 * (message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec))


def xyz(vector: object) -> list[float]:
    return [getattr(vector, axis) for axis in "xyz"]


@pytest.mark.long
def test_robot_topics_are_measured_and_ground_truth_is_true(ros: RosWorld) -> None:
    """The measurements equal, to the bit, those of a simulator of the same seed after its first reset, as in a run
    without ROS.
    """
    heard = {
        topic: ros.collect(kind, topic)
        for topic, kind in {
            "/joint_states": JointState,
            "/imu/data": Imu,
            "/left_foot_ft/wrench": WrenchStamped,
            "/left_foot/wrench": WrenchStamped,
            "/ground_truth/odom": Odometry,
        }.items()
    }
    commands = ros.node.create_publisher(Float64MultiArray, "/effort_controller/commands", 1)
    node = ros.start("sim_node", hardware=HARDWARE, seed=3, clock="as_fast_as_possible", duration=(TICKS + 0.5) * 1e-3)
    # The physics waits for the first command, and everybody hears the first state before.
    ros.until(lambda: all(heard.values()), "a state on every topic")
    ros.connected(commands)
    while node.process.poll() is None:
        commands.publish(Float64MultiArray(data=[0.0] * 14))
        ros.spin(lambda: node.process.poll() is not None, 0.5)
    assert ros.ended(node) == 0, node.output
    joints, imu, ankle, sole, odometry = ({stamp(m): m for m in messages} for messages in heard.values())
    robot = load_robot("biped14")
    sim = Simulator(robot, hardware=HARDWARE, seed=3)
    sim.reset()
    for tick in range(1, TICKS + 1):
        observation = sim.step(np.zeros(robot.nu))
        np.testing.assert_array_equal(joints[tick].position, observation.joint_position)
        np.testing.assert_array_equal(joints[tick].velocity, observation.joint_velocity)
        np.testing.assert_array_equal(xyz(imu[tick].angular_velocity), observation.imu_angular_velocity)
        np.testing.assert_array_equal(xyz(ankle[tick].wrench.force), observation.foot_wrench[0, :3])
        np.testing.assert_array_equal(xyz(sole[tick].wrench.force), sim.contact.wrench[0, :3])
        np.testing.assert_array_equal(xyz(odometry[tick].pose.pose.position), sim.q[:3])
    assert np.abs(observation.joint_velocity - sim.v[robot.idx_v]).max() > 1e-3
