"""A running robot on a page: display in a real browser, effect of its controls, and no cost for other nodes."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("viser", reason="viser is not installed")

from browser_support import Tab, browser
from geometry_msgs.msg import Twist, WrenchStamped
from rclpy.qos import qos_profile_sensor_data
from ros_support import NodeUnderTest, RosWorld
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from bipedsim.model import load_robot
from bipedsim.view.page.figures import BODY_ID, FOOT_ID, TIME_ID
from bipedsim_ros.live.panel import ANSWER_ID, COMMAND_ID, STATUS_ID
from bipedsim_ros.nodes.view_node import READY

pytestmark = pytest.mark.ros

ROBOT = load_robot("biped14")


class Live:
    """A browser that looks at a page which a node serves, both spinning while either is waited for."""

    def __init__(self, ros: RosWorld, tab: Tab) -> None:
        self.ros, self.tab = ros, tab

    def until(self, holds: Callable[[], Any], what: str) -> None:
        """Wait for something in the browser or on the topics."""

        def spun() -> bool:
            self.ros.spin(holds, 0.05)
            return bool(holds())

        self.tab.wait(spun, what)

    def press(self, button: str) -> None:
        """Press a button; in software it draws too slowly for a mouse."""
        self.tab.page.get_by_role("button", name=button, exact=True).dispatch_event("click")

    def put(self, label: str, value: str) -> None:
        """Type into the field behind a label."""
        row = self.tab.page.locator(f"label:has-text('{label}')").locator("xpath=ancestor::*[descendant::input][1]")
        field = row.locator("input").last
        field.fill(value)
        field.press("Enter")

    @property
    def time(self) -> float:
        """The time that the page shows [s]."""
        return float(re.findall(r"[\d.]+", self.tab.text(TIME_ID))[0])

    def answer(self, begin: str) -> Callable[[], bool]:
        """Return a condition: whether the page shows the result of a request."""
        return lambda: self.tab.text(ANSWER_ID).startswith(begin)


def a_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def address_of(ros: RosWorld, node: NodeUnderTest) -> str:
    """Return where the page is, once it is there."""
    ros.until(lambda: READY in node.output, "the page")
    return re.findall(rf"{READY} (\S+):", node.output)[-1]


@pytest.fixture
def look(ros: RosWorld) -> Iterator[Callable[[NodeUnderTest], Live]]:
    """Open the page of a node in a browser."""
    with browser() as opened:
        yield lambda node: Live(ros, opened(address_of(ros, node)))


@pytest.mark.slow
def test_a_walk_is_shown_and_steered_paused_and_pushed(ros: RosWorld, look: Callable[[NodeUnderTest], Live]) -> None:
    clock = ros.collect(Clock, "/clock", qos_profile_sensor_data)
    pushes, run = ros.collect(WrenchStamped, "/push"), ros.collect(String, "/sim_node/run")
    velocities = ros.collect(Twist, "/cmd_vel")
    # The simulation is slow, because a browser that draws in software may not keep up in real time.
    ros.start("sim_node", real_time_factor=0.2)
    ros.start("controller_node", controller="zmp")
    live = look(ros.start("view_node", port=a_port(), frame_rate=10.0))
    live.until(lambda: live.time > 0.1, "a robot that has begun")
    frames = live.tab.frames
    live.until(lambda: live.tab.frames > frames + 20, "frames")
    for sole in ROBOT.soles:
        live.until(lambda name=sole.name: "face" in live.tab.text(f"{FOOT_ID}{name}"), "its contact mode")

    def now() -> float:
        return float(clock[-1].clock.sec + 1e-9 * clock[-1].clock.nanosec)

    live.press("Pause")
    live.until(live.answer("Pause: paused at t ="), "a pause")
    paused = float(re.findall(r"[\d.]+", live.tab.text(ANSWER_ID))[0])
    live.until(lambda: clock and now() == pytest.approx(paused, abs=1e-9), "a clock that stands")
    live.until(lambda: live.time == pytest.approx(paused, abs=6e-4), "its time on the page")
    live.press("One step")
    live.until(lambda: live.time == pytest.approx(paused + 1e-3, abs=1e-9), "a step of a millisecond")
    live.until(lambda: now() == pytest.approx(paused + 1e-3, abs=1e-9), "the same on /clock")
    live.press("Resume")
    live.until(lambda: live.time > paused + 0.1, "time that goes on")

    live.put("Lasts", "0.2")
    live.until(live.answer("Lasts: push_timeout"), "a duration of pushes")
    live.put("Impulse", "3")
    live.press("Push")
    live.until(lambda: pushes, "a push")
    force = pushes[-1].wrench.force
    assert [force.x, force.y, force.z] == pytest.approx([15.0, 0.0, 0.0], abs=0.1), "3 N.s in 0.2 s, ahead"
    live.until(lambda: any('"push"' in one.data and '"duration": 0.2' in one.data for one in run), "it acts so long")

    live.put("Ahead", "0.15")
    live.until(lambda: velocities and velocities[-1].linear.x == pytest.approx(0.15), "a velocity")
    # In a field, keys are text.
    live.tab.page.evaluate("document.activeElement.blur()")
    live.tab.page.keyboard.press("w")
    live.until(lambda: velocities[-1].linear.x == pytest.approx(0.2), "a key")
    count = len(velocities)
    live.until(lambda: len(velocities) > count + 5, "its repetition")

    live.put("Real-time factor", "0.4")
    live.until(live.answer("Real-time factor: real_time_factor = 0.4"), "another pace")
    live.until(lambda: live.tab.text(STATUS_ID).startswith("running"), "how it is")
    # Hidden, but there.
    assert "--contact-model one_step" in live.tab.page.locator(f"#{COMMAND_ID}").text_content(timeout=9e4)
    base = live.tab.page.url.rstrip("/")
    assert not [url for url in live.tab.requests if not url.removeprefix("blob:").startswith(base)]
    assert live.tab.errors == []

    live.tab.page.close()
    ros.until(lambda: velocities[-1].linear.x == 0.0, "a robot that stops when its page goes")


@pytest.mark.long
def test_a_robot_needs_no_simulator_and_is_told_what_it_lacks(
    ros: RosWorld, look: Callable[[NodeUnderTest], Live]
) -> None:
    joints = ros.node.create_publisher(JointState, "/joint_states", 1)
    imu = ros.node.create_publisher(Imu, "/imu/data", 1)
    wrenches = [ros.node.create_publisher(WrenchStamped, f"/{sole.name}_foot_ft/wrench", 1) for sole in ROBOT.soles]
    node = ros.start("view_node", port=a_port(), robot="biped14", frame_rate=10.0)
    state = JointState(name=list(ROBOT.joint_names), position=ROBOT.posture.tolist())
    wrench = WrenchStamped()
    wrench.wrench.force.z = 0.5 * ROBOT.weight - ROBOT.model.inertias[ROBOT.ankle_joint_ids[0]].mass * 9.81

    def publish() -> None:
        # A wall clock, as robots have.
        state.header.stamp.sec += 1 if state.header.stamp.sec else 1_800_000_000
        joints.publish(state)
        imu.publish(Imu())
        for one in wrenches:
            one.publish(wrench)

    def shown() -> bool:
        publish()
        return READY in node.output

    ros.until(shown, "the page of a robot")
    assert "with no simulator" in node.output
    live = look(node)

    def told(text: str) -> Callable[[], bool]:
        def holds() -> bool:
            publish()
            return text in live.tab.page.locator("body").inner_text()

        return holds

    live.until(told("nothing on /odom"), "what it lacks")
    live.until(told("no simulator is up"), "why it cannot be paused")
    assert live.tab.page.get_by_role("button", name="Pause").count() == 0
    assert live.tab.page.get_by_role("button", name="Push").count() == 0
    live.until(told(f"{0.5 * ROBOT.weight:.0f} N"), "its forces")
    live.until(lambda: told("")() and live.time > 1.5, "time from its first message on")
    assert "down" in live.tab.text(f"{FOOT_ID}left")
    assert np.isfinite(live.time)
    assert live.tab.errors == []


@pytest.mark.slow
def test_a_body_is_clicked_and_dragged_and_the_next_run_is_told(
    ros: RosWorld, look: Callable[[NodeUnderTest], Live]
) -> None:
    """Mouse input on the page of a standing robot, with the sliders and menus that keys and fields do not cover."""
    pushes, velocities = ros.collect(WrenchStamped, "/push"), ros.collect(Twist, "/cmd_vel")
    ros.start("sim_node", real_time_factor=0.1)
    ros.start("controller_node")
    live = look(ros.start("view_node", port=a_port(), frame_rate=5.0))
    live.until(lambda: live.time > 0.01, "a robot that stands")
    tab, mouse = live.tab, live.tab.page.mouse
    live.press("Pause")
    live.until(live.answer("Pause: paused at t ="), "a pause")
    joint = ROBOT.model.getJointId("l_hip_pitch")

    def clicked() -> bool:
        mouse.click(*tab.body_at(joint))
        tab.page.wait_for_timeout(200)
        return "l_hip_pitch" in tab.page.locator("body").inner_text()

    live.until(clicked, "the figures of the body that was clicked")
    figures = dict(row.split("\t") for row in tab.text(BODY_ID).splitlines())
    assert figures["joint"] == "l_hip_pitch"
    angle = np.rad2deg(ROBOT.posture[ROBOT.joint_names.index("l_hip_pitch")])
    assert float(figures["position"].split()[0]) == pytest.approx(angle, abs=2.0)

    def dragged() -> bool:
        mouse.up()
        x, y = tab.body_at(joint)
        tab.page.keyboard.down("Control")
        mouse.move(x, y)
        # The body below the mouse is known when the next frame is drawn.
        tab.page.wait_for_timeout(500)
        mouse.down()
        tab.page.wait_for_timeout(300)
        for k in range(1, 6):
            mouse.move(x, y - 8.0 * k)
            tab.page.wait_for_timeout(100)
        live.ros.spin(lambda: len(pushes) > 3, 2.0)
        return len(pushes) > 3

    live.until(dragged, "a push while it is dragged")
    live.until(lambda: pushes[-1].wrench.force.z > 0.1 * ROBOT.weight, "a force up, as it is dragged")
    force, body = pushes[-1].wrench.force, pushes[-1].header.frame_id
    frame = ROBOT.model.frames[ROBOT.model.getFrameId(body)]
    assert frame.parentJoint == joint, "the body that was taken"
    assert np.hypot(force.x, force.y) < force.z
    assert force.z <= 2.0 * ROBOT.weight * (1.0 + 1e-9)

    def told() -> bool:
        force = pushes[-1].wrench.force
        return tab.text(ANSWER_ID) == f"Drag: {np.linalg.norm([force.x, force.y, force.z]):.0f} N on {body}"

    live.until(told, "how hard it is pushed")
    mouse.up()
    tab.page.keyboard.up("Control")
    live.until(lambda: pushes[-1].wrench.force.z == 0.0, "nothing once it is let go")

    for label, most in (("Left", 1.0), ("Turn", 1.0)):
        slider = tab.page.locator(f"label:has-text('{label} [')").locator("xpath=ancestor::*[descendant::input][1]")
        slider.get_by_role("slider").first.press("End")
        live.until(
            lambda most=most, label=label: (
                velocities
                and (velocities[-1].linear.y if label == "Left" else velocities[-1].angular.z) == pytest.approx(most)
            ),
            f"the slider {label}",
        )
    live.press("Stop walking")
    live.until(lambda: velocities[-1].linear.y == velocities[-1].angular.z == 0.0, "a stop")

    tab.page.get_by_text("Next run").dispatch_event("click")
    command = tab.page.locator(f"#{COMMAND_ID}")

    def words_of(command: Any) -> list[str]:
        # It may be folded up.
        return str(command.text_content()).split()

    for label, choice in (("Contact model", "ncp"), ("Hardware", "realistic")):
        # The lists are there, hidden.
        tab.page.locator("[role=option]", has_text=re.compile(f"^{choice}$")).last.dispatch_event("click")
        live.until(lambda choice=choice: choice in words_of(command), f"the {label} of the next run")
    tab.page.get_by_label("Record", exact=True).dispatch_event("click")
    live.until(lambda: "runs/next" in words_of(command), "a record of the next run")
    words = words_of(command)
    assert words[:3] == ["bipedsim", "up", "--view"]
    given = dict(zip(words[3::2], words[4::2], strict=True))
    told = {"--robot": "biped14", "--contact-model": "ncp", "--hardware": "realistic", "--record": "runs/next"}
    assert {name: given.get(name) for name in told} == told
    assert tab.errors == []


@pytest.mark.slow
def test_a_page_waits_and_comes_back(ros: RosWorld, look: Callable[[NodeUnderTest], Live]) -> None:
    node = ros.start("view_node", port=a_port(), frame_rate=10.0)
    said = "the page opens when there is a robot on /joint_states"
    ros.until(lambda: said in node.output, "why there is no page yet")
    sim = ros.start("sim_node", start="immediately", real_time_factor=0.2)
    live = look(node)
    live.until(lambda: live.time > 0.02, "a robot")
    assert "it is back" not in node.output, "it was not there before"
    live.press("Reset")
    live.until(live.answer("Reset: back at t = 0"), "a reset")
    assert sim.stop() == 0
    live.until(lambda: "nothing is up any more" in live.tab.text(STATUS_ID), "nothing")
    live.press("One step")
    live.until(live.answer("One step failed: no node offers sim_node/step"), "why it failed")
    live.until(lambda: "One step failed" in live.tab.page.locator("[role=alert]").last.inner_text(), "a notice")
    ros.start("sim_node", start="immediately", real_time_factor=0.2)
    live.until(lambda: live.time > 0.02 and "nothing is up" not in live.tab.text(STATUS_ID), "the next one")
    ros.until(lambda: "it is back" in node.output, "word of it")
    assert node.output.count(READY) == 1, "the page stays"
