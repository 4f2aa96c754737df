"""Services of sim_node that start, push, move and step, and the clients in examples/requests."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from recorder_support import RecorderProcess
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import time_of
from std_msgs.msg import String
from std_srvs.srv import SetBool

from bipedsim.model import load_robot
from bipedsim.recording import load_recording
from bipedsim.runs import rerun

pytestmark = pytest.mark.ros

EXAMPLES = ROOT / "examples" / "requests"
BALL = '{"name": "ball", "shape": "ball", "mass": 3.0, "radius": 0.1, "position": [3.0, 0.0, 0.11]}'
FREE = {"start": "immediately", "objects": [BALL], "rate": 500.0}


def ask(ros: RosWorld, service: str, *fields: tuple[str, Any]) -> tuple[bool, str]:
    """Call a service of sim_node with fields as parameters; return its answer."""
    parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in fields]
    result = ros.call(SetParametersAtomically, f"/sim_node/{service}", parameters=parameters).result
    return result.successful, result.reason


def paused(ros: RosWorld) -> list[JointState]:
    """Pause the simulation, and return a list of all its joint states from then on."""
    states = ros.collect(JointState, "/joint_states")
    ros.until(lambda: states, "a state")
    assert ros.call(SetBool, "/sim_node/pause", data=True).success
    return states


def run_example(ros: RosWorld, name: str) -> str:
    client = ros.start(EXAMPLES / f"{name}.py")
    assert ros.ended(client) == 0, client.output
    return client.output


def test_the_examples_start_step_push_and_move(ros: RosWorld) -> None:
    events = ros.collect(String, "/sim_node/run")
    balls = ros.collect(Odometry, "/objects/ball")
    ros.start("sim_node", **FREE)
    states = paused(ros)
    run_example(ros, "start")
    ros.until(lambda: time_of(states[-1]) == 0.0, "the start")
    names = load_robot("biped14").joint_names
    angles = dict(zip(states[-1].name, states[-1].position, strict=True))
    assert [angles[joint] for joint in ("l_knee", "r_knee", "l_hip_pitch")] == pytest.approx([0.6, 0.6, -0.3])
    assert sum(abs(angles[joint]) > 1e-12 for joint in names) == 6
    ros.until(lambda: balls and balls[-1].pose.pose.position.x == pytest.approx(1.0), "the ball")
    assert balls[-1].twist.twist.linear.x == pytest.approx(-0.2)
    run_example(ros, "steps")
    ros.until(lambda: time_of(states[-1]) == pytest.approx(0.2), "100 ticks")
    run_example(ros, "move")
    ros.until(lambda: balls[-1].pose.pose.position.x == pytest.approx(2.0), "the ball elsewhere")
    assert ros.call(SetBool, "/sim_node/pause", data=False).success
    run_example(ros, "push")
    ros.until(lambda: any("push" in json.loads(event.data) for event in events), "the push")
    (push,) = [json.loads(event.data)["push"] for event in events if "push" in json.loads(event.data)]
    assert (push["point"], push["ramp"], push["duration"]) == ([0.0, 0.0, 0.2], 0.05, 0.2)
    run_example(ros, "several")
    ros.until(lambda: balls[-1].pose.pose.position.y == pytest.approx(2.0), "the ball at the side")


REFUSED = {
    "no such service field": ("push", [("wrench", [1.0] * 6), ("strength", 3.0)]),
    "no wrench": ("push", [("body", "l_knee")]),
    "five numbers": ("push", [("wrench", [1.0] * 5)]),
    "no such body": ("push", [("wrench", [1.0] * 6), ("body", "tail")]),
    "a long ramp": ("push", [("wrench", [1.0] * 6), ("ramp", 0.2)]),
    "twice": ("push", [("wrench", [1.0] * 6), ("wrench", [2.0] * 6)]),
    "no such object": ("move", [("objects.box", [0.0, 2.0, 0.5, 0.0, 0.0, 0.0, 1.0])]),
    "in the ground": ("move", [("objects.ball", [0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0])]),
    "no rotation": ("move", [("objects.ball", [0.0, 2.0, 0.5, 0.0, 0.0, 0.0, 0.0])]),
    "no such joint": ("start", [("positions.tail", 0.1)]),
    "beyond its limit": ("start", [("positions.l_knee", 9.0)]),
    "no such posture": ("start", [("posture", "flying")]),
    "no ticks": ("steps", [("ticks", 0)]),
    "no whole ticks": ("steps", [("ticks", 1.5)]),
    "no text": ("list", [("push", 1.0)]),
    "no yaml": ("list", [("push", "{wrench: [")]),
    "nothing": ("list", []),
    "no such request": ("list", [("fly", "{height: 1}")]),
    "the second is wrong": (
        "list",
        [
            ("move", "{objects: {ball: [0, 2, 0.5, 0, 0, 0, 1]}}"),
            ("push", "{wrench: [1, 0, 0, 0, 0, 0]}"),
            ("push", "{wrench: [1, 0, 0, 0, 0, 0], body: tail}"),
        ],
    ),
    "two that overlap": (
        "list",
        [("start", "{}"), ("move", "{objects: {ball: [0, 0, 0.9, 0, 0, 0, 1]}}")],
    ),
}


def test_what_cannot_be_is_refused_and_changes_nothing(ros: RosWorld) -> None:
    events = ros.collect(String, "/sim_node/run")
    balls = ros.collect(Odometry, "/objects/ball")
    ros.start("sim_node", **FREE)
    states = paused(ros)
    assert ask(ros, "steps", ("ticks", 3))[0]
    ros.until(lambda: events and balls, "the start")
    ros.spin(lambda: False, 0.5)
    t, ball, known = time_of(states[-1]), balls[-1].pose.pose.position, len(events)
    for name, (service, fields) in REFUSED.items():
        done, reason = ask(ros, service, *fields)
        assert not done, name
        assert reason, name
    ros.spin(lambda: False, 0.5)
    assert (time_of(states[-1]), balls[-1].pose.pose.position, len(events)) == (t, ball, known)
    assert ask(ros, "steps", ("ticks", 2))[0], "the simulation lives"


def test_steps_need_a_pause(ros: RosWorld) -> None:
    ros.start("sim_node", **FREE)
    states = ros.collect(JointState, "/joint_states")
    ros.until(lambda: states, "a state")
    assert not ask(ros, "steps", ("ticks", 2))[0]


def test_a_replay_repeats_starts_moves_and_pushes_to_the_bit(ros: RosWorld, tmp_path: Path) -> None:
    with RecorderProcess(ros.env, tmp_path / "bag", "robot:=biped14", "topics:=['+/objects/*']") as recorder:
        sim = ros.start("sim_node", clock="lock_step", wait_for_recorder=True, **{**FREE, "rate": 1000.0})
        ros.start("controller_node", controller="posture", lock_step=True, wait_for_listeners=2)
        states = ros.collect(JointState, "/joint_states")
        ros.until(lambda: states and time_of(states[-1]) > 0.05, "steps")
        bent = {"hip_pitch": -0.1, "knee": 0.2, "ankle_pitch": -0.1}
        start = [(f"positions.{side}_{joint}", angle) for side in "lr" for joint, angle in bent.items()]
        assert ask(ros, "start", *start, ("objects.ball", [0.6, 0.0, 0.11, 0.0, 0.0, 0.0, 1.0]))[0]
        ros.until(lambda: 0.02 < time_of(states[-1]) < 0.05, "steps after the start")
        rolling = [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        moved, reason = ask(ros, "move", ("objects.ball", [0.5, 0.09, 0.11, 0.0, 0.0, 0.0, 1.0, *rolling]))
        assert moved, reason
        requests = [
            ("push", "{wrench: [0, 40, 0, 0, 0, 0], point: [0, 0, 0.1], duration: 0.1, ramp: 0.03}"),
            ("push", "{wrench: [0, 0, 3, 0, 0, 0.1], body: ball, duration: 0.2, ramp: 0.1}"),
        ]
        assert ask(ros, "list", *requests)[0]
        ros.until(lambda: time_of(states[-1]) > 1.0, "the ball at the robot")
        assert ros.call(SetBool, "/sim_node/pause", data=True).success
        sim.stop()
        recorder.finish(signal.SIGINT)
    recorded = load_recording(tmp_path / "bag")
    assert len(recorded.run["moves"]) == 2
    assert len(recorded.run["pushes"]) == 2
    again = rerun(recorded)
    assert len(again.simulated) > 900
    assert "object_ball" in again.compared
    assert again.first is None
    ball = recorded.objects["ball"]
    assert np.nanmin(ball[:, 7]) < -0.9
