"""sim_node in a process of its own, seen from outside over DDS: topics, clocks, commands, services, refusals."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, SetParameters
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_support import ALL, RosWorld, new_world
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from bipedsim.robot import load_robot

pytestmark = pytest.mark.ros

COMMANDS = "/effort_controller/commands"
RELIABLE, BEST_EFFORT = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT
VOLATILE, LATCHED = DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL
TOPICS: dict[str, tuple[Any, str, ReliabilityPolicy, DurabilityPolicy]] = {
    "/clock": (Clock, "", BEST_EFFORT, VOLATILE),
    "/joint_states": (JointState, "base_link", RELIABLE, VOLATILE),
    "/imu/data": (Imu, "imu_link", RELIABLE, VOLATILE),
    "/left_foot_ft/wrench": (WrenchStamped, "l_ankle", RELIABLE, VOLATILE),
    "/right_foot_ft/wrench": (WrenchStamped, "r_ankle", RELIABLE, VOLATILE),
    "/left_foot/wrench": (WrenchStamped, "l_sole", RELIABLE, VOLATILE),
    "/right_foot/wrench": (WrenchStamped, "r_sole", RELIABLE, VOLATILE),
    "/left_foot/cop": (PointStamped, "l_sole", RELIABLE, VOLATILE),
    "/right_foot/cop": (PointStamped, "r_sole", RELIABLE, VOLATILE),
    "/left_foot/contact": (Float64MultiArray, "", RELIABLE, VOLATILE),
    "/right_foot/contact": (Float64MultiArray, "", RELIABLE, VOLATILE),
    "/left_foot/contact_mode": (String, "", RELIABLE, LATCHED),
    "/right_foot/contact_mode": (String, "", RELIABLE, LATCHED),
    "/cop": (PointStamped, "odom", RELIABLE, VOLATILE),
    "/ground_truth/odom": (Odometry, "odom", RELIABLE, VOLATILE),
    "/robot_description": (String, "", RELIABLE, LATCHED),
    "/diagnostics": (DiagnosticArray, "", RELIABLE, VOLATILE),
}


def time_of(message: Any) -> float:
    return float(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec)


def moving(states: list[JointState]) -> Callable[[], bool]:
    """Return whether the physics has begun, as a condition to wait for."""
    return lambda: bool(states) and time_of(states[-1]) > 0.0


def efforts(states: list[JointState]) -> np.ndarray:
    return np.array([state.effort for state in states])


def statistics(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


class Commander:
    """Publishes commands from the test."""

    def __init__(self, world: RosWorld, qos: Any = 1) -> None:
        self.world = world
        self.publisher = world.node.create_publisher(Float64MultiArray, COMMANDS, qos)

    def send(self, tau: list[float], taken: Callable[[], Any]) -> None:
        """Send a command until ``taken`` holds.

        The subscription is best effort: it may know of the publisher later than the other way round, and loses what
        came before.
        """
        self.world.connected(self.publisher)
        while not taken():
            self.publisher.publish(Float64MultiArray(data=tau))
            self.world.spin(taken, 5.0)


def test_every_topic_has_its_type_qos_and_frame(ros: RosWorld) -> None:
    latched = QoSProfile(depth=1, durability=LATCHED)
    best_effort = QoSProfile(depth=10, reliability=BEST_EFFORT)
    heard = {}
    for topic, (kind, _, reliability, durability) in TOPICS.items():
        qos = latched if durability == LATCHED else best_effort if reliability == BEST_EFFORT else ALL
        heard[topic] = ros.collect(kind, topic, qos)
    ros.start("sim_node", start="immediately", rate=100.0, physics_dt=0.01)
    ros.until(lambda: all(heard.values()), "a message on every topic")
    for topic, (kind, frame, reliability, durability) in TOPICS.items():
        (info,) = ros.node.get_publishers_info_by_topic(topic)
        assert info.topic_type == f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}", topic
        assert info.qos_profile.reliability == reliability, topic
        assert info.qos_profile.durability == durability, topic
        if frame:
            assert heard[topic][0].header.frame_id == frame, topic
    assert heard["/ground_truth/odom"][0].child_frame_id == "base_link"
    assert heard["/robot_description"][0].data == load_robot("biped14").urdf_xml
    assert heard["/joint_states"][0].name == list(load_robot("biped14").joint_names)
    names = {status.name for status in heard["/diagnostics"][0].status}
    assert names == {"bipedsim: loop", "bipedsim: commands", "bipedsim: contact"}
    for topic in (COMMANDS, "/push"):
        (info,) = ros.node.get_subscriptions_info_by_topic(topic)
        assert info.node_name == "sim_node"


@pytest.mark.parametrize("reliability", [RELIABLE, BEST_EFFORT])
def test_commands_are_taken_from_reliable_and_best_effort_publishers(
    ros: RosWorld,
    reliability: ReliabilityPolicy,
) -> None:
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros, QoSProfile(depth=1, reliability=reliability))
    ros.start("sim_node", rate=100.0, physics_dt=0.01)
    commander.send([0.0] * 14, moving(states))


def lock_step_run(world: RosWorld, controller: str) -> list[JointState]:
    states = world.collect(JointState, "/joint_states")
    sim = world.start("sim_node", clock="lock_step", duration=0.4, lock_step_timeout=30.0)
    world.until(lambda: states, "the state at t = 0, so that this test is connected before time begins")
    world.start("controller_node", controller=controller)
    assert world.ended(sim) == 0
    world.until(lambda: time_of(states[-1]) >= 0.4, "the last state")
    return states


@pytest.mark.parametrize("controller", ["posture", "user_controllers:Feedback"])
def test_lock_step_is_bit_identical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, controller: str) -> None:
    runs = []
    for i in range(2):
        world = new_world(tmp_path / str(i), monkeypatch)
        try:
            states = lock_step_run(world, controller)
        finally:
            world.close()
        # The state at t = 0 is repeated until somebody answers.
        stepped = [state for state in states if time_of(state) > 0.0]
        assert [round(time_of(state) * 1000) for state in stepped] == list(range(1, 401))
        runs.append([(s.position.tobytes(), s.velocity.tobytes(), s.effort.tobytes()) for s in stepped])
    assert runs[0] == runs[1]


def test_lock_step_takes_every_answer_to_the_first_state_before_time_begins(ros: RosWorld) -> None:
    """The state at t = 0 is repeated; a second answer to it must not count for the state that follows."""
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros)
    ros.start("sim_node", clock="lock_step", lock_step_timeout=30.0)
    ros.until(lambda: states, "the state at t = 0")
    commander.send([1.0] * 14, lambda: commander.publisher.get_subscription_count() > 0)
    for tau in (1.0, 2.0):
        commander.publisher.publish(Float64MultiArray(data=[tau] * 14))
        ros.spin(lambda: False, 0.03)
    ros.until(moving(states), "the first step")
    ros.spin(lambda: False, 0.5)
    stepped = [state for state in states if time_of(state) > 0.0]
    assert [time_of(state) for state in stepped] == [pytest.approx(1e-3)]
    np.testing.assert_array_equal(stepped[0].effort, np.full(14, 2.0))


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


def test_torques_stay_within_the_effort_limits(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros)
    ros.start("sim_node", clock="lock_step", lock_step_timeout=0.001, duration=0.003)
    commander.send([1e6, -1e6] * 7, moving(states))
    ros.until(lambda: states and time_of(states[-1]) >= 0.003, "the last state")
    limit = load_robot("biped14").effort_limit
    np.testing.assert_array_equal(states[-1].effort, limit * np.tile([1.0, -1.0], 7))


def test_bad_commands_are_dropped_counted_and_named(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
    commander = Commander(ros, 10)
    sim = ros.start("sim_node", rate=100.0, physics_dt=0.01)

    def dropped() -> int:
        statuses = [s for array in diagnostics for s in array.status if s.name == "bipedsim: commands"]
        return max((int(v.value) for s in statuses for v in s.values if v.key == "commands_dropped"), default=0)

    for i, bad in enumerate([[1.0], [float("nan")] * 14, [1.0] * 13 + [float("inf")]]):
        commander.send(bad, lambda n=i: dropped() == n + 1)
    assert all(time_of(state) == 0.0 for state in states), "a bad command started the physics"
    commander.send([0.0] * 14, moving(states))
    warnings = [line for line in sim.output.splitlines() if "dropped" in line]
    assert len(warnings) <= 2, "the warning is throttled"
    assert "it has 1 values, expected 14 (l_hip_yaw, " in warnings[0]


def test_physics_waits_for_the_first_command_unless_told_not_to(ros: RosWorld) -> None:
    stats = ros.folder / "stats.json"
    sim = ros.start("sim_node", clock="as_fast_as_possible", start="immediately", duration=0.2, stats_file=str(stats))
    assert ros.ended(sim) == 0
    counted = statistics(stats)
    assert counted["duration_s"] == 0.2
    assert counted["ticks"] == 200
    assert counted["missed_commands"] == 0, "nobody had promised any"


def test_physics_waits_for_a_recorder_if_so_asked(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros)
    sim = ros.start("sim_node", wait_for_recorder=True)
    commander.send([0.0] * 14, lambda: "starting without" in sim.output)
    assert "nobody listens to /imu/data, /left_foot_ft/wrench" in sim.output
    ros.until(moving(states), "the start after the wait")


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


def test_a_push_moves_the_base(ros: RosWorld) -> None:
    truth = ros.collect(Odometry, "/ground_truth/odom")
    push = ros.node.create_publisher(WrenchStamped, "/push", 10)
    sim = ros.start("sim_node", start="immediately", rate=200.0, physics_dt=0.005)
    ros.connected(push)
    assert ros.call(SetBool, "/sim_node/pause", data=True).success
    nowhere = WrenchStamped()
    nowhere.header.frame_id = "tail"
    push.publish(nowhere)
    ros.until(lambda: "no frame 'tail'" in sim.output, "a warning about the unknown frame")
    message = WrenchStamped()
    message.wrench.force.y = 400.0
    push.publish(message)
    # Messages and services come by different ways: step until the push is there.
    before = len(truth)

    def moved() -> bool:
        assert ros.call(Trigger, "/sim_node/step").success
        return len(truth) > before and truth[-1].twist.twist.linear.y > 0.02

    ros.until(moved, "sideways velocity")


def test_scheduled_push_acts_at_its_time(ros: RosWorld) -> None:
    states = ros.collect(Odometry, "/ground_truth/odom")
    ros.start(
        "sim_node", clock="as_fast_as_possible", start="immediately", duration=0.02, pushes=["0.01 0.005 0 500 0"]
    )
    ros.until(lambda: states and time_of(states[-1]) >= 0.02, "the last state")
    speed = {round(time_of(m) * 1000): m.twist.twist.linear.y for m in states}
    assert abs(speed[10]) < 1e-3
    assert speed[11] > 1e-3
    assert speed[15] > speed[11]


def test_divergence_is_reported_and_reset_mends_it(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
    push = ros.node.create_publisher(WrenchStamped, "/push", 10)
    sim = ros.start("sim_node", start="immediately")
    ros.connected(push)
    message = WrenchStamped()
    message.wrench.force.x = 1e15
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
    sim = ros.start("sim_node", start="immediately", duration=1.0, pushes=["0.01 1.0 1e15 0 0"], stats_file=str(stats))
    assert ros.ended(sim) == 1
    assert statistics(stats)["state"] == "diverged"
    assert "diverged" in statistics(stats)["error"]
    assert "Traceback" not in sim.output


def test_parameters_are_described_and_guarded(ros: RosWorld) -> None:
    ros.start("sim_node")
    described = ros.call(DescribeParameters, "/sim_node/describe_parameters", names=["rate", "timeout_mode"])
    rate, mode = described.descriptors
    assert rate.read_only
    assert "[Hz]" in rate.description
    assert rate.floating_point_range[0].from_value == 1.0
    assert not mode.read_only
    assert "damping" in mode.additional_constraints

    def put(name: str, value: str) -> Any:
        text = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value)
        return ros.call(
            SetParameters, "/sim_node/set_parameters", parameters=[Parameter(name=name, value=text)]
        ).results[0]

    assert put("timeout_mode", "stiff").successful
    refused = put("timeout_mode", "stif")
    assert not refused.successful
    assert "did you mean 'stiff'" in refused.reason
    assert not put("robot", "g1").successful


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"robot": "biped15"}, "unknown robot 'biped15'; did you mean 'biped14'?"),
        ({"robot": "/nowhere/robot.yaml"}, "/nowhere/robot.yaml"),
        ({"clock": "fast"}, "unknown clock 'fast'"),
        ({"contact_model": "magic"}, "'magic'"),
        ({"rate": 0.1}, "rate = 0.1 Hz is below its minimum 1.0 Hz"),
        ({"rate": 700.0}, "must be a whole multiple of physics_dt"),
        ({"rate": "fast"}, "rate = 'fast' must be of type float"),
        ({"rte": 1000.0}, "unknown parameter 'rte'; did you mean 'rate'?"),
        ({"one_step.gamm": 0.1}, "unknown parameter 'one_step.gamm'"),
        ({"pushes": ["1.0 2.0"]}, "pushes: '1.0 2.0' must be 'start duration fx fy fz [body]'"),
        ({"pushes": ["1.0 2.0 1 2 3 tail"]}, "no frame 'tail'"),
        ({"ft_sign": 0.5}, "ft_sign = 0.5 must be 1 or -1"),
    ],
)
def test_bad_parameters_end_the_node_with_a_message(ros: RosWorld, parameters: dict[str, Any], said: str) -> None:
    sim = ros.start("sim_node", **parameters)
    assert sim.wait() == 2
    assert said in sim.output
    assert "Traceback" not in sim.output


def test_an_integer_will_do_for_a_float(ros: RosWorld) -> None:
    sim = ros.start("sim_node", rate=500, start="immediately", duration=1, clock="as_fast_as_possible")
    assert ros.ended(sim) == 0


def test_two_interrupts_end_the_node_cleanly(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    stats = ros.folder / "stats.json"
    sim = ros.start("sim_node", start="immediately", stats_file=str(stats))
    ros.until(moving(states), "time moving")
    sim.process.send_signal(signal.SIGINT)
    sim.process.send_signal(signal.SIGINT)
    assert sim.wait() == 0
    assert statistics(stats)["ticks"] > 0
    assert "Traceback" not in sim.output


def test_an_interrupt_while_starting_ends_the_node_too(ros: RosWorld) -> None:
    sim = ros.start("sim_node")
    ros.until(lambda: sim.output, "a first line of output, before or after which the node may be ready")
    sim.process.send_signal(signal.SIGINT)
    assert sim.wait() == 0
    assert "Traceback" not in sim.output
