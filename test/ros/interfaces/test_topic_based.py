"""A controller manager of ros2_control over topics, as its hardware interface would send and receive."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import statistics, time_of
from std_msgs.msg import String

from bipedsim.errors import ConfigError
from bipedsim.model import ROBOTS, drive_gains, load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator
from bipedsim_ros.bringup.bringup import plan
from bipedsim_ros.interfaces.ros2_control import write_ros2_control

ROBOT = load_robot("biped14")
GAINS = drive_gains(ROBOT, 1e-3)
NAN = [math.nan] * ROBOT.nu


class HardwareInterface:
    """JointStateTopicSystem of ros-controls with a threshold of -1, for joints with all three interfaces.

    A controller of positions is active; the commands that no controller has claimed are NaN.
    """

    def __init__(self, world: RosWorld, goal: Callable[[float], Array]) -> None:
        self.node, self.goal, self.sent = world.node, goal, 0
        self.publisher = self.node.create_publisher(JointState, "/robot_joint_commands", 1)
        self.node.create_subscription(JointState, "/joint_states", self.update, 1)

    def update(self, state: JointState) -> None:
        position = self.goal(time_of(state)).tolist()
        message = JointState(name=ROBOT.joint_names, position=position, velocity=NAN, effort=NAN)
        message.header.stamp = self.node.get_clock().now().to_msg()
        self.publisher.publish(message)
        self.sent += 1


def sway(t: float) -> Array:
    # A stamp has whole nanoseconds.
    return ROBOT.posture * (1.0 + 0.1 * math.sin(6.0 * round(t, 6)))


@pytest.mark.ros
def test_lock_step_has_the_bits_of_one_process(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    hardware = HardwareInterface(ros, sway)
    node = ros.start("sim_node", clock="lock_step", command_interface="topic_based", duration=0.2)
    assert ros.ended(node) == 0
    ros.until(lambda: time_of(states[-1]) >= 0.2, "the last state")
    stepped = np.array([state.position for state in states if time_of(state) > 0.0])
    assert hardware.sent >= len(stepped) == 200
    sim = Simulator(ROBOT)
    observation = sim.reset()
    expected = []
    for _ in range(200):
        position, nothing = sway(observation.t), np.zeros(ROBOT.nu)
        observation = sim.step(np.array([position, nothing, nothing, *GAINS, ROBOT.effort_limit]))
        expected.append(observation.joint_position.copy())
    np.testing.assert_array_equal(stepped, expected)


@pytest.mark.ros
def test_it_stands_until_the_first_command(ros: RosWorld) -> None:
    """The hardware interface sends nothing while its commands equal the states, as at the start."""
    stats = ros.folder / "stats.json"
    states = ros.collect(JointState, "/joint_states")
    node = ros.start(
        "sim_node",
        clock="as_fast_as_possible",
        command_interface="topic_based",
        start="hold_position",
        duration=1.0,
        stats_file=str(stats),
    )
    assert ros.ended(node) == 0
    ros.until(lambda: time_of(states[-1]) >= 1.0, "the last state")
    counted = statistics(stats)
    assert counted["commands_received"] == counted["missed_commands"] == counted["command_timeouts"] == 0
    np.testing.assert_allclose(states[-1].position, ROBOT.posture, atol=0.05)


@pytest.mark.ros
def test_the_description_has_the_element(ros: RosWorld) -> None:
    """A controller manager takes its joints from /robot_description only."""
    heard = ros.collect(String, "/robot_description", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    ros.start("sim_node", command_interface="topic_based", duration=0.2)
    ros.until(lambda: heard, "the description")
    system = ElementTree.fromstring(heard[0].data).find("ros2_control")
    assert system is not None
    assert [joint.get("name") for joint in system.iter("joint")] == list(ROBOT.joint_names)


def test_the_bring_up_selects_it(tmp_path: Path) -> None:
    (node,) = (node for node in plan({"controller": "topic_based"}).nodes if node.executable == "sim_node")
    assert node.parameters["command_interface"] == "topic_based"
    assert node.parameters["start"] == "hold_position"
    assert ("joint_states", "robot_joint_states") in node.remappings
    mine = tmp_path / "mine.yaml"
    mine.write_text("sim_node: {ros__parameters: {start: wait_for_command}}")
    bringup = plan({"controller": "topic_based", "params_file": str(mine), "clock": "lock_step"})
    assert all(node.parameters.get("start") != "hold_position" for node in bringup.nodes)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_files_describe_the_robot(name: str, tmp_path: Path) -> None:
    robot = load_robot(name)
    urdf, parameters = write_ros2_control(robot, tmp_path / "new")
    system = ElementTree.parse(urdf).getroot().find("ros2_control")
    assert system is not None
    assert system.get("type") == "system"
    joints = {joint.get("name"): joint for joint in system.iter("joint")}
    assert tuple(joints) == robot.joint_names
    for j, joint in enumerate(joints.values()):
        initial = joint.findtext("state_interface[@name='position']/param[@name='initial_value']")
        assert float(initial or "nan") == pytest.approx(robot.posture[j], abs=1e-11)
        for kind in ("command", "state"):
            assert [one.get("name") for one in joint.iter(f"{kind}_interface")] == ["position", "velocity", "effort"]
        limits = (
            (robot.position_lower[j], robot.position_upper[j]),
            (-robot.velocity_limit[j], robot.velocity_limit[j]),
            (-robot.effort_limit[j], robot.effort_limit[j]),
        )
        for one, bounds in zip(joint.iter("command_interface"), limits, strict=True):
            written = {param.get("name"): float(param.text or "nan") for param in one.iter("param")}
            finite = {name: value for name, value in zip(("min", "max"), bounds, strict=True) if np.isfinite(value)}
            assert written == pytest.approx(finite, abs=1e-11)
    content = yaml.safe_load(parameters.read_text())
    for controller in ("joint_trajectory_controller", "effort_controller"):
        assert content[controller]["ros__parameters"]["joints"] == list(robot.joint_names)
        assert controller in content["controller_manager"]["ros__parameters"]


def test_a_urdf_with_the_element_is_refused(tmp_path: Path) -> None:
    urdf, _ = write_ros2_control(ROBOT, tmp_path)
    twice = load_robot("biped14")
    object.__setattr__(twice, "urdf_xml", urdf.read_text())
    with pytest.raises(ConfigError) as refused:
        write_ros2_control(twice, tmp_path / "other")
    assert refused.value.place == "robot"
    assert str(refused.value.value) == str(twice.urdf_path)
    assert "controllers.yaml" in str(refused.value)
