"""The contract of additional IMUs and contact switches: a good robot passes, and each fault is found at its topic."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from additional_sensors_support import instrumented, write_robot
from contract_support import LEFT, RIGHT, PlayedRobot, good_robot
from refusals import refusal
from ros_support import RosWorld
from sensor_msgs.msg import JointState

from bipedsim.model import load_robot
from bipedsim_ros.contract.check import check
from bipedsim_ros.contract.finding import NOT_CHECKED, OK
from bipedsim_ros.contract.robot_contract import Contract, robot_contract
from bipedsim_ros.wire.endpoints import qos_words

IMU, SOLE_IMU, SWITCH, OTHER_SWITCH = "/shank_imu/data", "/right/sole/imu", "/left_switch/closed", "/right/sole/loaded"


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    return robot_contract(instrumented(tmp_path_factory.mktemp("robot")))


def problems(contract: Contract, robot: PlayedRobot, state: str = "standing") -> set[tuple[str, str]]:
    """Return topic and check of all problems."""
    return {(f.topic, f.check) for f in check(contract, robot.evidence(), state) if f.verdict not in (OK, NOT_CHECKED)}


def verdict(contract: Contract, robot: PlayedRobot, state: str, topic: str, name: str) -> str:
    """Return the verdict of one check."""
    (found,) = [f.verdict for f in check(contract, robot.evidence(), state) if (f.topic, f.check) == (topic, name)]
    return found


def set_values(topic: str, key: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[PlayedRobot], None]:
    def plant(robot: PlayedRobot) -> None:
        robot.streams[topic].values[key] = change(robot.streams[topic].values[key])

    return plant


def set_attribute(topic: str, name: str, value: object) -> Callable[[PlayedRobot], None]:
    return lambda robot: setattr(robot.streams[topic], name, value)


def half(robot: PlayedRobot) -> None:
    stream = robot.streams[SWITCH]
    stream.stamps, stream.sent, stream.values = (
        stream.stamps[::2],
        stream.sent[::2],
        {"data": stream.values["data"][::2]},
    )


def slow_imu(robot: PlayedRobot) -> None:
    stamps = robot.streams[IMU].stamps
    robot.streams[IMU].stamps = stamps[0] + 2 * (stamps - stamps[0])


def test_a_good_robot_passes_with_all_that_is_expected_checked(contract: Contract) -> None:
    robot = good_robot(contract)
    assert problems(contract, robot) == set()
    passed = {(f.topic, f.check) for f in check(contract, robot.evidence(), "standing") if f.verdict == OK}
    for topic in (IMU, SOLE_IMU):
        assert {(topic, name) for name in ("type", "QoS", "frame", "rate", "age", "gravity sign", "attitude")} <= passed
    for topic in (SWITCH, OTHER_SWITCH):
        assert {(topic, name) for name in ("type", "QoS", "rate", "state")} <= passed


def test_a_robot_without_further_sensors_has_no_such_topics() -> None:
    contract = robot_contract(load_robot("biped14"))
    assert (contract.imus, contract.switches) == ((), ())
    assert contract.measured == contract.sensors


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (lambda robot: robot.streams.pop(IMU), {(IMU, "topic")}),
        (lambda robot: robot.streams.pop(SWITCH), {(SWITCH, "topic")}),
        (set_attribute(SOLE_IMU, "frame", "l_sole"), {(SOLE_IMU, "frame")}),
        (set_values(IMU, "linear_acceleration", lambda a: -a), {(IMU, "gravity sign")}),
        (set_values(SOLE_IMU, "linear_acceleration", lambda a: a / 9.81), {(SOLE_IMU, "gravity")}),
        (set_values(IMU, "orientation", lambda q: q[:, [3, 0, 1, 2]]), {(IMU, "attitude")}),
        (slow_imu, {(IMU, "rate"), (IMU, "age")}),
        (set_values(SWITCH, "data", lambda closed: ~closed), {(SWITCH, "state")}),
        (half, {(SWITCH, "rate")}),
    ],
    ids=["no imu", "no switch", "frame", "sign", "unit", "order", "rate of imu", "inverted", "rate of switch"],
)
def test_each_fault_is_found_at_its_topic(
    contract: Contract, plant: Callable[[PlayedRobot], object], expected: set[tuple[str, str]]
) -> None:
    robot = good_robot(contract)
    plant(robot)
    # Latency of the slow IMU follows from its stamps.
    assert {one for one in problems(contract, robot) if one[1] != "latency"} == expected


def test_a_switch_is_judged_by_the_load_of_its_sole(contract: Contract) -> None:
    """All weight on the left foot: the right switch must be open, also if it is near the ground."""
    robot = good_robot(contract)
    left, right = robot.streams[LEFT].values["wrench"], robot.streams[RIGHT].values["wrench"]
    weight_of_foot = 0.5 * contract.robot.weight - left[0, 2]
    robot.streams[LEFT].values["wrench"] = 2.0 * left + [0, 0, weight_of_foot, 0, 0, 0]
    robot.streams[RIGHT].values["wrench"] = 0.0 * right + [0, 0, -weight_of_foot, 0, 0, 0]
    assert (OTHER_SWITCH, "state") in problems(contract, robot)
    robot.streams[OTHER_SWITCH].values["data"][:] = False
    assert not {one for one in problems(contract, robot) if one[1] == "state"}


def test_without_wrenches_a_standing_robot_closes_its_switches(contract: Contract) -> None:
    robot = good_robot(contract)
    robot.streams.pop(LEFT)
    assert verdict(contract, robot, "standing", SWITCH, "state") == OK
    robot.streams[SWITCH].values["data"][:] = False
    assert (SWITCH, "state") in problems(contract, robot)


def test_a_hanging_robot_opens_its_switches(contract: Contract) -> None:
    robot = good_robot(contract)
    assert {(SWITCH, "state"), (OTHER_SWITCH, "state")} <= problems(contract, robot, "hanging")
    for topic in (SWITCH, OTHER_SWITCH):
        robot.streams[topic].values["data"][:] = False
    assert problems(contract, robot, "hanging") == set()


def test_while_a_robot_moves_its_wrenches_judge_the_switches(contract: Contract) -> None:
    robot = good_robot(contract)
    robot.streams[LEFT].values["wrench"][75:] = 0.0
    robot.streams[SWITCH].values["data"][75:] = False
    assert problems(contract, robot, "moving") == set()
    assert verdict(contract, robot, "moving", SWITCH, "state") == OK
    robot.streams[SWITCH].values["data"][:] = ~robot.streams[SWITCH].values["data"]
    assert problems(contract, robot, "moving") == {(SWITCH, "state")}
    robot.streams[LEFT].values["wrench"][:] = 0.0
    assert verdict(contract, robot, "moving", SWITCH, "state") == NOT_CHECKED


def test_a_load_near_the_threshold_is_no_verdict(tmp_path: Path) -> None:
    near = {"left_switch": {"type": "contact_switch", "foot": "left", "threshold": 300.0}}
    contract = robot_contract(instrumented(tmp_path, near))
    robot = good_robot(contract)
    assert verdict(contract, robot, "standing", SWITCH, "state") == NOT_CHECKED


def test_topics_of_the_sensors_are_remapped(contract: Contract) -> None:
    found = robot_contract(contract.robot, remappings={IMU: "/x/imu", SWITCH: "/x/toe"})
    assert (found.imus[0].found_as, found.switches[0].found_as) == ("/x/imu", "/x/toe")
    with refusal():
        robot_contract(load_robot("biped14"), remappings={IMU: "/x/imu"})


@pytest.mark.slow
@pytest.mark.ros
def test_the_simulator_keeps_the_contract_over_dds(tmp_path: Path, ros: RosWorld) -> None:
    """Live topics of a robot that stands; the profiles of the contract are those of controller_node."""
    path = write_robot(tmp_path)
    contract = robot_contract(load_robot(path))
    ros.start("sim_node", robot=str(path), clock="lock_step")
    ros.start("controller_node", robot=str(path))
    states = ros.collect(JointState, "/joint_states")
    ros.until(lambda: states and states[-1].header.stamp.sec >= 1, "a robot that stands")
    command = [sys.executable, "-m", "bipedsim.cli.main", "check-robot", str(path), "--duration", "1", "--json"]
    process = subprocess.Popen(command, env=ros.env, stdout=subprocess.PIPE, text=True)
    try:
        for topic in (*contract.imus, *contract.switches):
            ends = ros.node.get_subscriptions_info_by_topic(topic.name)
            (profile,) = [qos_words(end.qos_profile) for end in ends if end.node_name == "controller_node"]
            expected = topic.controller
            assert (profile.reliability, profile.durability) == (expected.reliability, expected.durability)

        def ended() -> bool:
            states.clear()
            return process.poll() is not None

        ros.until(ended, "an answer of check-robot")
    finally:
        process.kill()
        out, _ = process.communicate()
    findings = json.loads(out)["findings"]
    assert [f for f in findings if f["verdict"] in ("differs", "missing")] == []
    passed = {(f["topic"], f["check"]) for f in findings if f["verdict"] == OK}
    assert {(IMU, "attitude"), (SOLE_IMU, "frame"), (SWITCH, "state"), (OTHER_SWITCH, "rate")} <= passed
