"""Requests of a live page to the nodes, on real nodes in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from geometry_msgs.msg import Twist
from rcl_interfaces.srv import DescribeParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from ros_support import RosWorld

from bipedsim.model import drive_gains, load_robot
from bipedsim_ros.live.remote import CONTROLLER, SIM, STANDING, Answer, LiveParameter, Remote
from bipedsim_ros.wire import relative, requested, topics

pytestmark = pytest.mark.ros
ROBOT = load_robot("biped14")


@dataclass
class Walker:
    """A node that takes velocities, and the page that sends them."""

    remote: Remote
    executor: SingleThreadedExecutor
    heard: list[float] = field(default_factory=list)

    def until(self, holds: Callable[[], bool], act: Callable[[], None] = lambda: None) -> None:
        end = time.monotonic() + 240.0
        while not holds():
            assert time.monotonic() < end, "it never happens"
            act()
            self.executor.spin_once(0.01)


@pytest.fixture
def walker(ros_env: dict[str, str]) -> Iterator[Walker]:
    context = rclpy.Context()
    context.init()
    page, robot = (Node(name, context=context, enable_rosout=False) for name in ("page", "robot"))
    executor = SingleThreadedExecutor(context=context)
    for node in (page, robot):
        executor.add_node(node)
    made = Walker(Remote(page, lambda answer: None), executor)
    velocity = topics.VELOCITY
    robot.create_subscription(
        Twist, relative(velocity.name), lambda message: made.heard.append(message.linear.x), requested(velocity)
    )
    made.until(lambda: made.remote.steerable)
    yield made
    executor.shutdown()
    for node in (page, robot):
        node.destroy_node()
    context.try_shutdown()


def test_a_velocity_is_repeated_until_another_one_is_asked_for(walker: Walker) -> None:
    """A controller stops when it receives no message for a while, so one message gives only a step or two."""
    remote = walker.remote
    remote.look()
    remote.steer((0.25, 0.0, 0.0))
    walker.until(lambda: len(walker.heard) >= 3, remote.look)
    assert walker.heard == [0.25] * len(walker.heard)
    remote.steer((0.5, 0.0, 0.0))

    def look() -> None:
        # The next message is due at any time.
        remote._due = 0.0
        remote.look()

    walker.until(lambda: walker.heard.count(0.5) > 2 * STANDING, look)


def test_rest_is_said_some_times_and_then_no_more(walker: Walker) -> None:
    """Other nodes can then steer. An earlier command is not sent again."""
    remote = walker.remote
    remote.steer((0.25, 0.0, 0.0))
    remote.look()
    remote.steer((0.0, 0.0, 0.0))
    for k in range(4 * STANDING):
        # The next message is due at any time.
        remote._due = 0.0
        remote.look()
        walker.until(lambda k=k: len(walker.heard) > min(k + 1, STANDING))
    remote.steer((0.125, 0.0, 0.0))
    walker.until(lambda: 0.125 in walker.heard, remote.look)
    assert walker.heard[: STANDING + 2] == [0.25, *[0.0] * STANDING, 0.125]


def test_who_closes_the_page_leaves_a_robot_that_stands(walker: Walker) -> None:
    remote = walker.remote
    remote.steer((0.25, 0.0, 0.0))
    walker.until(lambda: 0.25 in walker.heard, remote.look)
    remote.stand()
    # No page is open any more.
    walker.until(lambda: walker.heard[-1] == 0.0)


def test_gains_of_the_drives_are_listed_with_their_range(ros: RosWorld) -> None:
    ros.start("sim_node", **{"drive_damping.l_knee": 7.0})
    found: list[list[LiveParameter]] = []
    remote = Remote(ros.node, lambda answer: None)
    ros.until(lambda: remote.read_live(found.append, SIM, ("drive_stiffness", "drive_damping")), "the services")
    ros.until(lambda: (remote.look(), found)[1], "the list of parameters")
    listed = {each.name: each.value for each in found[0]}
    kp, kd = drive_gains(ROBOT, 1e-3)
    expected = {f"drive_stiffness.{joint}": value for joint, value in zip(ROBOT.joint_names, kp, strict=True)}
    expected |= {f"drive_damping.{joint}": value for joint, value in zip(ROBOT.joint_names, kd, strict=True)}
    assert listed == {**expected, "drive_damping.l_knee": 7.0}
    assert {each.low for each in found[0]} == {0.0}


def test_changes_and_restarts_of_a_node_are_seen_without_a_request(ros: RosWorld) -> None:
    node = ros.start("sim_node", start="hold_position")
    remote = Remote(ros.node, lambda answer: None)
    ros.until(lambda: remote.start_of(SIM), "the node")
    ros.until(remote._set[SIM].service_is_ready, "its services")
    first = remote.start_of(SIM)
    assert not remote.changed(SIM)
    remote.change("gain", "drive_damping.l_knee", 6.0)
    seen: list[bool] = []

    def look() -> None:
        remote.look()
        if remote.changed(SIM):
            seen.append(True)

    ros.until(lambda: (look(), seen)[1], "the change")
    assert not remote.changed(SIM)
    assert remote.start_of(SIM) == first
    node.stop()
    ros.until(lambda: not remote.start_of(SIM), "the end of the node")
    ros.start("sim_node", start="hold_position")
    ros.until(lambda: remote.start_of(SIM), "the node again")
    assert remote.start_of(SIM) != first


def test_live_parameters_of_a_controller_are_listed_and_changed(ros: RosWorld) -> None:
    gains = {"posture.kp.l_knee": 100.0, "posture.kp.r_knee": 200.0}
    ros.start("controller_node", controller="posture", **gains)
    answers: list[Answer] = []
    found: list[list[LiveParameter]] = []
    remote = Remote(ros.node, answers.append)

    def listed() -> dict[str, LiveParameter]:
        found.clear()
        ros.until(lambda: remote.read_live(found.append), "the services of the node")
        ros.until(lambda: (remote.look(), found)[1], "the list of parameters")
        return {each.name: each for each in found[0]}

    first = listed()
    assert set(first) == {"posture.stiffness", "posture.damping", *gains}
    assert {name: first[name].value for name in gains} == gains
    # Other programs find each parameter by the name in its description.
    client = ros.node.create_client(DescribeParameters, "controller_node/describe_parameters")
    described = client.call_async(DescribeParameters.Request(names=list(gains)))
    ros.until(described.done, "the descriptions")
    assert [each.name for each in described.result().descriptors] == list(gains)
    assert (first["posture.stiffness"].low, first["posture.stiffness"].high) == (0.0, 1000.0)
    for value, good in ((20.0, True), (-5.0, False)):
        answers.clear()
        remote.change("gain", "posture.stiffness", value, of=CONTROLLER)
        ros.until(lambda: (remote.look(), answers)[1], "an answer")
        assert [answer.good for answer in answers] == [good]
    assert listed()["posture.stiffness"].value == 20.0
