"""sim_node while it runs: paused, stepped, reset, pushed, and diverged."""

from __future__ import annotations

import json
import os
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import Commander, statistics, time_of
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from bipedsim.model import load_robot
from bipedsim.sim import LARGEST_PUSH

pytestmark = pytest.mark.ros

CPU_LATENCY = Path("/dev/cpu_dma_latency")


def test_pause_step_resume_reset(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    sim = ros.start("sim_node", start="immediately", rate=500.0)
    ros.until(lambda: states, "a state")
    refused = ros.call(Trigger, "/sim_node/step")
    assert not refused.success
    assert "paused" in refused.message
    assert ros.call(SetBool, "/sim_node/pause", data=True).success
    before = ros.call(Trigger, "/sim_node/step")
    assert before.success
    after = ros.call(Trigger, "/sim_node/step")
    t = [float(answer.message.split()[2]) for answer in (before, after)]
    assert t[1] - t[0] == pytest.approx(0.002, abs=1e-9)
    ros.until(lambda: time_of(states[-1]) == pytest.approx(t[1], abs=1e-9), "the state after the step")
    assert ros.call(SetBool, "/sim_node/pause", data=False).success
    ros.until(lambda: time_of(states[-1]) > t[1] + 0.01, "time moving again")
    assert ros.call(SetBool, "/sim_node/pause", data=True).success
    assert ros.call(Trigger, "/sim_node/reset").success
    ros.until(lambda: time_of(states[-1]) < t[0], "time going back")
    count = next(i for i in range(len(states) - 1, 0, -1) if time_of(states[i]) < time_of(states[i - 1]))
    zero = [state for state in states[count:] if time_of(state) == 0.0]
    np.testing.assert_array_equal(zero[-1].position, load_robot("biped14").posture)
    assert sim.stop(signal.SIGTERM) == 0


@pytest.mark.long
def test_a_gantry_lowers_and_lets_go_and_its_force_is_on_a_topic(ros: RosWorld) -> None:
    forces = ros.collect(Float64MultiArray, "/gantry")
    said = ros.collect(String, "/sim_node/run")
    sim = ros.start("sim_node", clock="as_fast_as_possible", start="immediately", gantry="{clearance: 0.2}")
    ros.until(lambda: forces, "the force of the gantry")
    assert forces[0].layout.dim[0].label == "t,gantry_force_fx,gantry_force_fy,gantry_force_fz"
    assert 0.5 < forces[-1].data[3] / load_robot("biped14").weight < 1.5
    assert ros.call(Trigger, "/sim_node/lower").success
    assert ros.call(Trigger, "/sim_node/release").success
    ros.until(lambda: np.isnan(forces[-1].data[3]), "that it has let go")
    refused = ros.call(Trigger, "/sim_node/lower")
    assert not refused.success
    assert "lift the robot first" in refused.message
    told = [json.loads(one.data) for one in said]
    assert [one["gantry_action"]["action"] for one in told if "gantry_action" in one] == ["lower", "release"]
    assert sim.stop(signal.SIGTERM) == 0


def test_a_push_moves_the_base(ros: RosWorld) -> None:
    truth = ros.collect(Odometry, "/ground_truth/odom")
    push = ros.node.create_publisher(WrenchStamped, "/push", 10)
    stats = ros.folder / "stats.json"
    sim = ros.start("sim_node", start="immediately", rate=200.0, physics_dt=0.005, stats_file=str(stats))
    ros.connected(push)
    assert ros.call(SetBool, "/sim_node/pause", data=True).success
    nowhere = WrenchStamped()
    nowhere.header.frame_id = "tail"
    push.publish(nowhere)
    ros.until(lambda: "no frame or object 'tail'" in sim.output, "a warning about the unknown frame")
    push.publish(bytes(serialize_message(WrenchStamped()))[:20])
    ros.until(lambda: "its 20 bytes cannot be decoded" in sim.output, "that a message could not be read")
    for force, said in ((1e300, "is beyond 1e+09 N, N.m"), (float("nan"), "is not finite")):
        push.publish(WrenchStamped(wrench=Wrench(force=Vector3(x=force))))
        ros.until(lambda said=said: said in sim.output, said)
    message = WrenchStamped()
    message.wrench.force.y = 400.0
    push.publish(message)
    # Messages and services come by different ways: step until the push is there.
    before = len(truth)

    def moved() -> bool:
        assert ros.call(Trigger, "/sim_node/step").success
        return len(truth) > before and truth[-1].twist.twist.linear.y > 0.02

    ros.until(moved, "sideways velocity")
    assert sim.stop() == 0
    counted = statistics(stats)["pushes_dropped_by_kind"]
    assert counted == {"frame": 1, "unreadable": 1, "refused": 1, "not_finite": 1}


@pytest.mark.long
def test_a_reset_works_while_commands_keep_coming(ros: RosWorld) -> None:
    """A controller with its own clock sends all the time. A file that cannot be written does not end a service."""
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros)
    blocked = ros.folder / "file"
    blocked.write_text("no folder")
    sim = ros.start("sim_node", rate=200.0, physics_dt=0.005, stats_file=str(blocked / "stats.json"))
    ros.connected(commander.publisher)
    ros.node.create_timer(0.02, lambda: commander.publisher.publish(Float64MultiArray(data=[0.0] * 14)))
    ros.until(lambda: states and time_of(states[-1]) > 0.5, "time moving")
    answer = ros.call(Trigger, "/sim_node/reset")
    assert answer.success, answer.message

    def goes_on() -> bool:
        times = [time_of(state) for state in states]
        return times[-1] > 0.0 and any(later < before for before, later in pairwise(times))

    ros.until(goes_on, "time moving again")
    ros.until(lambda: "stats.json' cannot be written: File exists" in sim.output, "why there are no statistics")
    assert ros.call(Trigger, "/sim_node/reset").success, "services are still served"
    assert "dropped: it answers a state from before the reset" in sim.output
    assert sim.stop() == 1
    assert "Traceback" not in sim.output


def test_scheduled_push_acts_at_its_time(ros: RosWorld) -> None:
    states = ros.collect(Odometry, "/ground_truth/odom")
    commander = Commander(ros)
    ros.start("sim_node", clock="as_fast_as_possible", duration=0.02, pushes=["0.01 0.005 0 500 0"])
    ros.until(lambda: states, "the state at t = 0, so that this test is connected before time begins")
    commander.send([0.0] * 14, lambda: time_of(states[-1]) > 0.0)
    ros.until(lambda: states and time_of(states[-1]) >= 0.02, "the last state")
    speed = {round(time_of(m) * 1000): m.twist.twist.linear.y for m in states}
    assert abs(speed[10]) < 1e-3
    assert speed[11] > 1e-3
    assert speed[15] > speed[11]


@pytest.mark.long
def test_divergence_is_reported_and_reset_mends_it(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
    push = ros.node.create_publisher(WrenchStamped, "/push", 10)
    sim = ros.start("sim_node", start="immediately")
    ros.connected(push)
    message = WrenchStamped()
    message.wrench.force.x = LARGEST_PUSH
    push.publish(message)

    def diverged() -> bool:
        levels = [s.level for array in diagnostics[-1:] for s in array.status if s.name == "bipedsim: loop"]
        return levels == [DiagnosticStatus.ERROR]

    ros.until(diverged, "an error in the diagnostics")
    assert "diverged at t = " in sim.output
    refused = ros.call(SetBool, "/sim_node/pause", data=False)
    assert not refused.success
    assert "reset" in refused.message
    count = len(states)
    assert ros.call(Trigger, "/sim_node/reset").success
    ros.until(lambda: len(states) > count + 10 and time_of(states[-1]) > 0.0, "time moving again")


def test_divergence_ends_a_run_with_a_duration(ros: RosWorld) -> None:
    stats = ros.folder / "stats.json"
    sim = ros.start("sim_node", start="immediately", duration=1.0, pushes=["0.01 1.0 1e9 0 0"], stats_file=str(stats))
    assert ros.ended(sim) == 1
    assert statistics(stats)["state"] == "diverged"
    assert "diverged" in statistics(stats)["error"]
    assert "Traceback" not in sim.output


@pytest.mark.long
@pytest.mark.skipif(not os.access(CPU_LATENCY, os.W_OK), reason="cores may not be kept awake here")
@pytest.mark.parametrize("priority", [50, 0])
def test_cores_stay_awake_while_time_runs_and_only_then(ros: RosWorld, priority: int) -> None:
    states = ros.collect(JointState, "/joint_states")
    sim = ros.start("sim_node", rate=500.0, priority=priority)
    ros.until(lambda: states, "the state that is repeated before the first command")

    def awake() -> bool:
        return CPU_LATENCY in [link.resolve() for link in Path(f"/proc/{sim.process.pid}/fd").iterdir()]

    assert not awake(), "it waits"
    Commander(ros).send([0.0] * 14, lambda: time_of(states[-1]) > 0.0)
    assert awake() == (priority > 0)
    assert ros.call(SetBool, "/sim_node/pause", data=True).success
    assert not awake()
    assert ros.call(SetBool, "/sim_node/pause", data=False).success
    assert awake() == (priority > 0)
