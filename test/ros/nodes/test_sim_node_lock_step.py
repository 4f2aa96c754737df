"""sim_node in lock step: the same bits every run, and the torques that act when commands come or stay away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from ros_support import RosWorld, new_world
from sensor_msgs.msg import JointState
from sim_node_support import Commander, moving, statistics, time_of
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

from bipedsim.model import load_robot

pytestmark = pytest.mark.ros


def efforts(states: list[JointState]) -> np.ndarray:
    return np.array([state.effort for state in states])


def lock_step_run(world: RosWorld, controller: str) -> list[JointState]:
    states = world.collect(JointState, "/joint_states")
    sim = world.start("sim_node", clock="lock_step", duration=0.4)
    world.until(lambda: states, "the state at t = 0, so that this test is connected before time begins")
    world.start("controller_node", controller=controller)
    assert world.ended(sim) == 0
    world.until(lambda: time_of(states[-1]) >= 0.4, "the last state")
    return states


@pytest.mark.parametrize("controller", ["posture", pytest.param("user_controllers:Feedback", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_lock_step_is_bit_identical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, controller: str) -> None:
    runs = []
    for i in range(2):
        world = new_world(tmp_path / str(i), monkeypatch)
        try:
            states = lock_step_run(world, controller)
        finally:
            world.close()
        # The state at t = 0 is repeated until the first answer.
        stepped = [state for state in states if time_of(state) > 0.0]
        assert [round(time_of(state) * 1000) for state in stepped] == list(range(1, 401))
        runs.append([(s.position.tobytes(), s.velocity.tobytes(), s.effort.tobytes()) for s in stepped])
    assert runs[0] == runs[1]


@pytest.mark.long
def test_lock_step_counts_commands_that_never_come(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros)
    stats = ros.folder / "stats.json"
    sim = ros.start(
        "sim_node",
        clock="lock_step",
        duration=0.05,
        lock_step_timeout=0.001,
        command_timeout=9.0,
        stats_file=str(stats),
    )
    commander.send([0.0] * 14, moving(states))
    assert ros.ended(sim) == 0
    counted = statistics(stats)
    assert counted["ticks"] == 50
    assert counted["missed_commands"] == 50
    assert counted["commands_received"] == 1
    assert counted["state"] == "finished"


@pytest.mark.long
def test_pushes_and_services_do_not_make_lock_step_skip_commands(ros: RosWorld) -> None:
    push = ros.node.create_publisher(WrenchStamped, "/push", 100)
    stats = ros.folder / "stats.json"
    sim = ros.start("sim_node", clock="lock_step", duration=1.0, stats_file=str(stats))
    ros.connected(push)
    ros.node.create_timer(0.002, lambda: push.publish(WrenchStamped()))
    ros.start("controller_node", controller="user_controllers:Rest")
    assert ros.call(SetBool, "/sim_node/pause", data=True).success
    assert ros.call(SetBool, "/sim_node/pause", data=False).success
    assert ros.ended(sim) == 0
    counted = statistics(stats)
    assert counted["missed_commands"] == 0
    assert counted["ticks"] == 1000


@pytest.mark.long
def test_all_that_a_tick_tells_is_out_before_its_answer(ros: RosWorld) -> None:
    """A node that answers may read the ground truth. Here, each command waits for it."""
    states, truth = ros.collect(JointState, "/joint_states"), ros.collect(Odometry, "/ground_truth/odom")
    commander = Commander(ros)
    stats = ros.folder / "stats.json"
    sim = ros.start("sim_node", clock="lock_step", duration=0.02, stats_file=str(stats))
    commander.send([0.0] * 14, moving(states))
    for ms in range(1, 21):
        ros.until(lambda t=1e-3 * ms - 1e-6: time_of(truth[-1]) > t, "the truth of a state without its answer")
        assert time_of(states[-1]) == pytest.approx(1e-3 * ms), "no further state came before the answer"
        commander.publisher.publish(Float64MultiArray(data=[0.0] * 14))
    assert ros.ended(sim) == 0
    assert statistics(stats)["missed_commands"] == 0


@pytest.mark.long
@pytest.mark.parametrize("mode", ["hold", "zero", "damping", "stiff"])
def test_what_the_joints_do_when_commands_stay_away(ros: RosWorld, mode: str) -> None:
    robot = load_robot("biped14")
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros)
    ros.start(
        "sim_node", clock="lock_step", lock_step_timeout=0.001, duration=0.08, command_timeout=0.03, timeout_mode=mode
    )
    tau = np.linspace(-3.0, 3.0, 14)
    commander.send(tau.tolist(), moving(states))
    ros.until(lambda: time_of(states[-1]) >= 0.08, "the last state")
    stepped = [state for state in states if time_of(state) > 0.0]
    assert len(stepped) == 80
    applied = efforts(stepped)
    # The command came at t = 0 and is 30 ms old when the tick from 30 to 31 ms begins: the last one that it drives.
    np.testing.assert_array_equal(applied[:31], np.tile(tau, (31, 1)))
    positions = np.array([state.position for state in stepped])
    velocities = np.array([state.velocity for state in stepped])
    kd = robot.effort_limit / robot.velocity_limit
    spring = 10.0 * robot.effort_limit * (positions[30] - positions[30:-1])
    expected = {
        "hold": np.tile(tau, (49, 1)),
        "zero": np.zeros((49, 14)),
        "damping": -kd * velocities[30:-1],
        "stiff": spring - kd * velocities[30:-1],
    }[mode]
    np.testing.assert_array_equal(applied[31:], np.clip(expected, -robot.effort_limit, robot.effort_limit))


@pytest.mark.long
def test_torques_stay_within_the_effort_limits(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros)
    ros.start("sim_node", clock="lock_step", lock_step_timeout=0.001, duration=0.003)
    commander.send([1e6, -1e6] * 7, moving(states))
    ros.until(lambda: states and time_of(states[-1]) >= 0.003, "the last state")
    limit = load_robot("biped14").effort_limit
    np.testing.assert_array_equal(states[-1].effort, limit * np.tile([1.0, -1.0], 7))
