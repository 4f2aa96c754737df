"""Impedances over topics: the same bits as in one process, few messages, positions by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from ros_support import RosWorld
from sensor_msgs.msg import JointState
from sim_node_support import Commander, moving, statistics, time_of
from std_msgs.msg import Float64MultiArray

from bipedsim.config import RunConfig
from bipedsim.model import load_robot
from bipedsim.runs.runner import run

pytestmark = pytest.mark.ros
STIFF = "user_controllers:Stiff"


def test_lock_step_has_the_bits_of_one_process(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    sim = ros.start("sim_node", clock="lock_step", duration=0.3)
    ros.until(lambda: states, "the state at t = 0, so that this test is connected before time begins")
    ros.start("controller_node", controller=STIFF, lock_step=True)
    assert ros.ended(sim) == 0
    ros.until(lambda: time_of(states[-1]) >= 0.3, "the last state")
    stepped = np.array([state.position for state in states if time_of(state) > 0.0])
    recording, _ = run(RunConfig(controller=STIFF, duration=0.3))
    np.testing.assert_array_equal(stepped, recording.joint_position)


@pytest.mark.long
def test_a_controller_at_50_hz_sends_50_messages_a_second(ros: RosWorld) -> None:
    impedances = ros.collect(Float64MultiArray, "/impedance_controller/commands")
    torques = ros.collect(Float64MultiArray, "/effort_controller/commands")
    stats = ros.folder / "stats.json"
    # The simulation is slow, so that the controller waits for less than a timeout on a busy machine.
    sim = ros.start("sim_node", duration=0.4, real_time_factor=0.1, stats_file=str(stats))
    # The simulator and this test.
    controller = ros.start("controller_node", controller=STIFF, wait_for_listeners=2)
    assert ros.ended(sim) == 0
    assert controller.stop() == 0
    counted = statistics(stats)
    said = re.search(r"(\d+) updates", controller.output)
    assert said is not None, controller.output
    updates = int(said[1])
    # Fewer where the machine was too busy.
    assert 0 < updates <= 21, "every 20 ms"
    ros.until(lambda: len(impedances) >= updates, "a message for each update")
    # The first state is repeated, and answered each time, until the simulation begins.
    assert len(impedances) < updates + 10
    assert not torques
    assert counted["commands_dropped"] == 0


@pytest.mark.long
def test_positions_sent_by_hand_are_reached(ros: RosWorld) -> None:
    """As far as the drives are stiff: the robot stands."""
    robot = load_robot("biped14")
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros, topic="/forward_position_controller/commands")
    sim = ros.start("sim_node", clock="as_fast_as_possible", duration=0.5, command_timeout=100.0)
    goal = robot.posture * 1.1
    commander.send(goal.tolist(), moving(states))
    assert ros.ended(sim) == 0
    ros.until(lambda: time_of(states[-1]) >= 0.5, "the last state")
    began, ended = (np.abs(np.array(state.position) - goal).max() for state in (states[0], states[-1]))
    assert ended < 0.5 * began
