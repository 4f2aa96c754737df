"""`bipedsim check-robot` on live graphs over DDS: the simulator passes, a robot with faults of the graph does not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_support import RosWorld
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from bipedsim.model import load_robot
from bipedsim_ros.contract.robot_contract import robot_contract
from bipedsim_ros.wire.endpoints import qos_words

pytestmark = pytest.mark.ros

ROBOT = load_robot("biped14")
CONTRACT = robot_contract(ROBOT)


def bipedsim(world: RosWorld, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bipedsim.cli.main", *arguments]
    return subprocess.Popen(command, env=world.env, stdout=subprocess.PIPE, text=True)


class Checker:
    """``bipedsim check-robot`` as a process."""

    def __init__(self, world: RosWorld, *arguments: str) -> None:
        self.world = world
        self._process = bipedsim(world, "check-robot", *arguments, "--json")

    def answer(self, meanwhile: Any = lambda: None) -> tuple[int, dict[str, Any]]:
        """Spin, calling ``meanwhile``, until the checker has ended; return its exit code and output."""

        def ended() -> bool:
            meanwhile()
            return self._process.poll() is not None

        self.world.until(ended, "an answer of check-robot")
        out, _ = self._process.communicate()
        return self._process.returncode, json.loads(out)


@pytest.mark.slow
def test_the_simulator_under_a_controller_keeps_the_contract(ros: RosWorld) -> None:
    ros.start("sim_node", clock="lock_step")
    control = bipedsim(ros, "control", "--robot", "biped14")
    try:
        states = ros.collect(JointState, "/joint_states")
        ros.until(lambda: states and states[-1].header.stamp.sec >= 1, "a robot that stands still")
        code, answer = Checker(ros, "biped14", "--duration", "1").answer(states.clear)
        # The QoS profiles of the contract are those of controller_node.
        for topic in (*CONTRACT.sensors, CONTRACT.commands):
            ends = ros.node.get_subscriptions_info_by_topic(topic.name)
            if topic is CONTRACT.commands:
                ends = ros.node.get_publishers_info_by_topic(topic.name)
            (profile,) = [qos_words(end.qos_profile) for end in ends if end.node_name == "controller_node"]
            expected = topic.controller
            assert (profile.reliability, profile.durability) == (expected.reliability, expected.durability)
    finally:
        control.send_signal(signal.SIGINT)
        assert control.wait(60.0) == 0
    assert [f for f in answer["findings"] if f["verdict"] in ("differs", "missing")] == []
    assert code == 0
    checked = {(f["topic"], f["check"]) for f in answer["findings"] if f["verdict"] == "ok"}
    assert {("/right_foot_ft/wrench", "sum of loads"), ("/imu/data", "attitude"), ("/imu/data", "age")} <= checked
    commands = {check for topic, check in checked if topic == "/effort_controller/commands"}
    assert {"listeners", "QoS", "round trip", "effort"} <= commands


@pytest.mark.long
def test_faults_of_a_graph_are_found(ros: RosWorld) -> None:
    best_effort = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    latched = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node = ros.node
    states = node.create_publisher(JointState, "/joint_states", best_effort)
    node.create_publisher(Imu, "/torso/imu", 10)
    node.create_publisher(PoseStamped, "/left_foot_ft/wrench", 10)
    node.create_publisher(WrenchStamped, "/right_foot_ft/wrench", 10)
    node.create_subscription(Float64MultiArray, "/effort_controller/commands", lambda _message: None, latched)
    message = JointState(name=list(ROBOT.joint_names))
    message.position = ROBOT.posture.tolist()
    message.velocity = [0.0] * ROBOT.nu
    ticks = 0

    def publish() -> None:
        nonlocal ticks
        ticks += 1
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(ticks * 10_000_000, 1_000_000_000)
        states.publish(message)

    code, answer = Checker(ros, "biped14", "--duration", "1", "--rate", "100").answer(publish)
    assert code == 1
    wrong = {(f["topic"], f["check"]): f for f in answer["findings"] if f["verdict"] in ("differs", "missing")}
    assert set(wrong) == {
        ("/joint_states", "QoS"),
        ("/imu/data", "topic"),
        ("/left_foot_ft/wrench", "type"),
        ("/right_foot_ft/wrench", "messages"),
        ("/effort_controller/commands", "QoS"),
    }
    assert "best_effort is offered" in wrong["/joint_states", "QoS"]["found"]
    assert "--remap /imu/data:=/torso/imu" in wrong["/imu/data", "topic"]["todo"]
    assert wrong["/left_foot_ft/wrench", "type"]["found"] == "geometry_msgs/msg/PoseStamped"


@pytest.mark.long
def test_that_no_robot_is_up_is_told_once(ros: RosWorld) -> None:
    checker = bipedsim(ros, "check-robot", "biped14")
    ros.until(lambda: checker.poll() is not None, "the end of check-robot")
    out, _ = checker.communicate()
    assert checker.returncode == 1
    assert out.count("/joint_states") == out.count("/right_foot_ft/wrench") == 1
    assert "no robot is up: no node publishes /joint_states, /imu/data, " in out
    assert "bipedsim up" in out
    assert "ROS_DOMAIN_ID" in out


@pytest.mark.long
def test_a_simulator_that_holds_the_start_is_named_once(ros: RosWorld) -> None:
    ros.start("sim_node", clock="lock_step")
    states = ros.collect(JointState, "/joint_states")
    ros.until(lambda: states, "a simulator")
    checker = bipedsim(ros, "check-robot", "biped14", "--duration", "2")
    ros.until(lambda: checker.poll() is not None, "the end of check-robot")
    out, _ = checker.communicate()
    assert checker.returncode == 1
    assert "time stands at 0 s" in out
    assert "start a controller (bipedsim control)" in out
    assert "differs" not in out


@pytest.mark.slow
def test_a_robot_in_a_namespace_that_takes_impedances_alone(ros: RosWorld) -> None:
    node = ros.node
    states = node.create_publisher(JointState, "/r1/joint_states", 10)
    commands = node.create_publisher(Float64MultiArray, "/r1/impedance_controller/commands", 10)
    node.create_subscription(Float64MultiArray, "/r1/impedance_controller/commands", lambda _message: None, 10)
    message = JointState(name=list(ROBOT.joint_names), position=ROBOT.posture.tolist(), velocity=[0.0] * ROBOT.nu)
    ticks = 0

    def publish() -> None:
        nonlocal ticks
        ticks += 1
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(ticks * 10_000_000, 1_000_000_000)
        states.publish(message)
        commands.publish(Float64MultiArray(data=[0.0] * (5 * ROBOT.nu)))

    options = ("--duration", "1", "--rate", "100", "--namespace", "r1")
    _, answer = Checker(ros, "biped14", *options).answer(publish)
    (told,) = [f for f in answer["findings"] if f["topic"] == "/r1/effort_controller/commands"]
    assert "--takes impedance" in told["todo"]
    _, answer = Checker(ros, "biped14", *options, "--takes", "impedance").answer(publish)
    found = {f["check"]: f["verdict"] for f in answer["findings"] if "impedance" in f["topic"]}
    assert found["listeners"] == found["size"] == found["QoS"] == "ok"
    assert found["effort"] == "not checked"


def test_a_wrong_argument_is_explained(capfd: pytest.CaptureFixture[str]) -> None:
    from bipedsim.cli.main import main

    assert main(["check-robot", "biped14", "--remap", "/imu:=/torso/imu"]) == 2
    assert "it has /joint_states, /imu/data" in capfd.readouterr().err
