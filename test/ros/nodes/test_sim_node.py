"""sim_node in a process of its own, seen from outside over DDS: topics, commands, and when it starts and ends."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_support import ALL, RosWorld
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, PointCloud2, PointField
from sim_node_support import COMMANDS, Commander, moving, statistics, time_of
from std_msgs.msg import Float64MultiArray, String

from bipedsim.model import load_robot
from bipedsim.sim import scan_grid
from bipedsim.sim.simulator import Simulator
from bipedsim_ros.wire import topics

pytestmark = pytest.mark.ros

RELIABLE, BEST_EFFORT = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT
VOLATILE, LATCHED = DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL
ANY = QoSProfile(depth=10, reliability=BEST_EFFORT)
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
    "/sim_node/run": (String, "", RELIABLE, LATCHED),
    "/sim_node/command": (JointState, "base_link", RELIABLE, VOLATILE),
    "/diagnostics": (DiagnosticArray, "", RELIABLE, VOLATILE),
}


def dropped(diagnostics: list[DiagnosticArray]) -> int:
    """Return how many commands were dropped so far."""
    statuses = [s for array in diagnostics for s in array.status if s.name == "bipedsim: commands"]
    return max((int(v.value) for s in statuses for v in s.values if v.key == "commands_dropped"), default=0)


def test_every_topic_has_its_type_qos_and_frame(ros: RosWorld) -> None:
    latched = QoSProfile(depth=1, durability=LATCHED)
    heard = {}
    for topic, (kind, _, reliability, durability) in TOPICS.items():
        qos = latched if durability == LATCHED else ANY if reliability == BEST_EFFORT else ALL
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
    assert names == {f"bipedsim: {part}" for part in ("loop", "commands", "contact", "physics", "robot")}
    for topic in (COMMANDS, "/push"):
        (info,) = ros.node.get_subscriptions_info_by_topic(topic)
        assert info.node_name == "sim_node"


def test_a_run_begins_in_the_pose_that_is_asked_for(ros: RosWorld, tmp_path: Path) -> None:
    pose = tmp_path / "pose.yaml"
    pose.write_text(".*_knee: 0.6\n.*_hip_pitch: -0.3\n.*_ankle_pitch: -0.3\n")
    states = ros.collect(JointState, "/joint_states")
    ros.start("sim_node", posture=str(pose))
    ros.until(lambda: bool(states), "a joint state")
    at = dict(zip(states[0].name, states[0].position, strict=True))
    assert at["l_knee"] == pytest.approx(0.6)
    assert at["r_hip_pitch"] == pytest.approx(-0.3)


@pytest.mark.long
@pytest.mark.parametrize("reliability", [RELIABLE, BEST_EFFORT])
def test_commands_are_taken_from_reliable_and_best_effort_publishers(
    ros: RosWorld,
    reliability: ReliabilityPolicy,
) -> None:
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros, QoSProfile(depth=1, reliability=reliability))
    ros.start("sim_node", rate=100.0, physics_dt=0.01)
    commander.send([0.0] * 14, moving(states))


@pytest.mark.long
def test_bad_commands_are_dropped_counted_and_named(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
    commander = Commander(ros, 10)
    stats = ros.folder / "stats.json"
    sim = ros.start("sim_node", rate=100.0, physics_dt=0.01, stats_file=str(stats))

    for i, bad in enumerate([[1.0], [float("nan")] * 14, [1.0] * 13 + [float("inf")]]):
        commander.send(bad, lambda n=i: dropped(diagnostics) == n + 1)
    assert all(time_of(state) == 0.0 for state in states), "a bad command started the physics"
    commander.send([0.0] * 14, moving(states))
    warnings = [line for line in sim.output.splitlines() if "dropped" in line]
    assert len(warnings) == 2, "the first of each kind is told, the rest is throttled"
    assert "it has 1 values, expected 14 (l_hip_yaw, " in warnings[0]
    assert "it is not finite: l_hip_yaw = nan" in warnings[1]
    # Then the controller dies, and another one comes.
    ros.until(lambda: "no command for 0.2 s, after t = 0" in sim.output, "the timeout")
    silent = [DiagnosticStatus.WARN, "no command for"]

    def judged() -> bool:
        last = next(s for s in diagnostics[-1].status if s.name == "bipedsim: commands")
        return [last.level, last.message[:14]] == silent

    ros.until(judged, "a warning in the diagnostics")
    commander.send([0.0] * 14, lambda: "commands again at t = " in sim.output)
    assert sim.stop() == 0
    counted = statistics(stats)
    assert counted["commands_dropped_by_kind"].keys() == {"size", "not_finite"}
    (begin, end), *_ = counted["command_silences_s"]
    assert 0.0 <= begin < end - 0.2 < counted["duration_s"]
    assert counted["command_silences_wall_s"][0] > 0.0
    assert counted["command_silences_ticks"][0] == 20, "0.2 s at 100 Hz"


def test_physics_waits_for_the_first_command_unless_told_not_to(ros: RosWorld) -> None:
    stats = ros.folder / "stats.json"
    sim = ros.start("sim_node", clock="as_fast_as_possible", start="immediately", duration=0.2, stats_file=str(stats))
    assert ros.ended(sim) == 0
    counted = statistics(stats)
    assert counted["duration_s"] == 0.2
    assert counted["ticks"] == 200
    assert counted["missed_commands"] == 0, "nobody had promised any"


@pytest.mark.long
def test_bodies_and_stops_are_told_of_while_they_carry(ros: RosWorld) -> None:
    """A robot falls without torques. Each message agrees with the simulator at its time."""
    robot = load_robot("biped14")
    sim, expected = Simulator(robot), {"/body_contacts": {}, "/joint_stops": {}}
    before = dict.fromkeys(expected, False)
    for _ in range(1500):
        sim.step(np.zeros(robot.nu))
        truth = sim.ground_truth()
        bodies = np.concatenate([truth.base_contact, truth.link_contact.ravel()])
        for topic, values in {"/body_contacts": bodies, "/joint_stops": truth.stop_torque}.items():
            says = not np.isnan(values).all()
            if says or before[topic]:
                expected[topic][sim.t] = values.copy()
            before[topic] = says
    heard: dict[str, list[Any]] = {topic: ros.collect(Float64MultiArray, topic) for topic in expected}
    # Time stays at t = 0 until both nodes know each other, which can take seconds. Then the torque is zero.
    commander = Commander(ros)
    node = ros.start("sim_node", clock="as_fast_as_possible", timeout_mode="zero", duration=1.5)
    for subscription in ros.node.subscriptions:
        ros.connected(subscription)
    commander.send([0.0] * robot.nu, lambda: heard["/body_contacts"])
    assert ros.ended(node) == 0, node.output
    for topic, rows in expected.items():
        last = max(rows)
        ros.until(lambda: heard[topic] and heard[topic][-1].data[0] == last, f"the last of {topic}")  # noqa: B023
        assert len(heard[topic]) > 20
        for message in heard[topic]:
            np.testing.assert_array_equal(message.data[1:], rows[message.data[0]])
    labels = heard["/body_contacts"][0].layout.dim[0].label.split(",")
    assert labels[:5] == ["t", "base_contact_fx", "base_contact_fy", "base_contact_fz", "l_hip_yaw_link_contact_fx"]
    assert heard["/joint_stops"][0].layout.dim[0].label.split(",") == [
        "t",
        *(f"{joint}_stop_torque" for joint in robot.joint_names),
    ]


@pytest.mark.slow
def test_physics_waits_for_a_recorder_if_so_asked(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    commander = Commander(ros)
    sim = ros.start("sim_node", wait_for_recorder=True)
    commander.send([0.0] * 14, lambda: "starting without" in sim.output)
    assert "no node listens to /imu/data, /left_foot_ft/wrench" in sim.output
    ros.until(moving(states), "the start after the wait")


@pytest.mark.long
def test_who_waited_for_a_topic_has_the_first_state_on_it_too(ros: RosWorld) -> None:
    """A recorder discovers the topics one after the other. A run begins with the state at t = 0 on each of them."""
    late = "/ground_truth/odom"
    for topic in TOPICS.keys() - {late}:
        ros.collect(TOPICS[topic][0], topic, ANY)
    diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
    commander = Commander(ros)
    sim = ros.start("sim_node", wait_for_recorder=True)
    ros.until(lambda: all(ros.node.count_publishers(topic) for topic in TOPICS), "all topics")
    # Commands are taken in turn: bad ones that are counted show that good ones between them have been taken, too.
    for count in range(3):
        commander.publisher.publish(Float64MultiArray(data=[0.0] * 14))
        ros.spin(lambda: False, 0.05)
        commander.send([float("nan")] * 14, lambda: dropped(diagnostics) > count)  # noqa: B023
    odometry = ros.collect(Odometry, late)
    commander.send([0.0] * 14, lambda: len(odometry) > 10)
    assert time_of(odometry[0]) == 0.0
    assert "starting without" not in sim.output


@pytest.mark.long
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


@pytest.mark.long
def test_a_controller_that_still_starts_is_named_while_time_is_held(ros: RosWorld) -> None:
    sim = ros.start("sim_node")
    ros.until(lambda: "no controller publishes yet" in sim.output, "why time is held")
    controller = rclpy.create_node("controller_node", context=ros.node.context)
    ros.until(lambda: "controller_node is still starting" in sim.output, "the controller that starts")
    controller.destroy_node()


@pytest.mark.long
def test_a_second_robot_in_the_graph_is_named(ros: RosWorld, tmp_path: Path) -> None:
    other = ros.node.create_publisher(JointState, "/joint_states", 10)
    stats = tmp_path / "stats.json"
    node = ros.start("sim_node", stats_file=str(stats))
    said = f"2 nodes publish /joint_states ({', '.join(sorted([ros.node.get_name(), 'sim_node']))})"
    ros.until(lambda: said in node.output, "the other robot's name")
    assert f"on ROS domain {ros.node.context.get_domain_id()}; give one of them a namespace or a" in node.output
    assert node.stop() == 0
    (warning,) = statistics(stats)["warnings"]
    assert warning.startswith(said)
    ros.node.destroy_publisher(other)


@pytest.mark.long
def test_a_robot_alone_is_not_warned_of(ros: RosWorld) -> None:
    states = ros.collect(JointState, "/joint_states")
    node = ros.start("sim_node", start="immediately")
    ros.until(lambda: states and time_of(states[-1]) > 2.5, "two reports")
    assert "nodes publish" not in node.output
    assert "/tf" not in node.output


@pytest.mark.long
@pytest.mark.skipif(topics.HAS_TF, reason="tf2_msgs is installed: there is a /tf")
def test_who_listens_to_tf_is_told_that_there_is_none(ros: RosWorld) -> None:
    """The type of /tf is not there either: any listener on the topic is one."""
    ros.node.create_subscription(JointState, "/tf", lambda _message: None, 10)
    node = ros.start("sim_node")
    ros.until(lambda: "a node listens to /tf, which is not there: tf2_msgs is not installed" in node.output, "a word")


def test_heights_are_published_when_asked_for(ros: RosWorld) -> None:
    scans = ros.collect(Float64MultiArray, "/height_scan", ALL)
    ros.start("sim_node", start="immediately", height_scan=[0.4, 0.2, 0.1], ground="slope", rate=100.0)
    ros.until(lambda: len(scans) > 5, "heights")
    x, y, height = np.reshape(scans[0].data, (-1, 3)).T
    np.testing.assert_allclose(np.column_stack([x, y]), scan_grid((0.4, 0.2), 0.1, True), atol=1e-12)
    # The robot stands on a slope of 3 degrees that rises ahead of it.
    np.testing.assert_allclose(height[:5] - height[4], np.tan(np.deg2rad(3.0)) * (x[4] - x[:5]), atol=1e-3)


def test_points_of_the_ground_are_published_as_a_cloud(ros: RosWorld) -> None:
    """In the world, by the true pose of the base, they are on the slope; the slope is too short for the last ones."""
    clouds = ros.collect(PointCloud2, "/height_scan/points", ALL)
    poses = ros.collect(Odometry, "/ground_truth/odom", ALL)
    region = "[[-2.0, -1.0], [0.25, -1.0], [0.25, 1.0], [-2.0, 1.0]]"
    ground = f"{{patches: [{{rpy: [0.0, -0.1, 0.0], region: {region}}}]}}"
    ros.start("sim_node", start="immediately", height_scan=[0.8, 0.4, 0.1], ground=ground, rate=100.0)
    ros.until(lambda: len(clouds) > 20 and len(poses) > 20, "clouds")
    by_time = {time_of(message): message.pose.pose for message in poses}
    both = [(cloud, by_time[time_of(cloud)]) for cloud in clouds if time_of(cloud) in by_time]
    assert both
    for cloud, pose in both:
        assert cloud.header.frame_id == "base_link"
        assert [(f.name, f.offset, f.datatype, f.count) for f in cloud.fields] == [
            (name, 4 * i, PointField.FLOAT32, 1) for i, name in enumerate("xyz")
        ]
        assert (cloud.height, cloud.width, cloud.point_step, cloud.row_step) == (1, 45, 12, 540)
        assert not cloud.is_dense
        assert not cloud.is_bigendian
        points = np.frombuffer(bytes(cloud.data), np.float32).reshape(-1, 3).astype(float)
        p, o = pose.position, pose.orientation
        base = pin.XYZQUATToSE3(np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w]))
        world = points @ base.rotation.T + base.translation
        seen = np.isfinite(world).all(axis=1)
        assert 25 <= seen.sum() <= 40
        np.testing.assert_allclose(world[seen, 2], np.tan(0.1) * world[seen, 0], atol=1e-5)


def test_forces_at_vertices_are_published_when_asked_for_and_add_up(ros: RosWorld) -> None:
    wrenches = ros.collect(WrenchStamped, "/left_foot/wrench", ALL)
    forces = ros.collect(Float64MultiArray, "/left_foot/vertex_forces", ALL)
    ros.start("sim_node", start="immediately", contact_model="lcp", vertex_forces=True, rate=100.0, physics_dt=0.01)
    ros.until(lambda: len(forces) > 5 and len(wrenches) > 5, "forces")
    assert forces[0].layout.dim[0].label.startswith("t,v0_fx,v0_fy,v0_fz,v1_fx")
    by_time = {round(time_of(message), 6): message.wrench.force for message in wrenches}
    both = [(one.data, by_time[round(one.data[0], 6)]) for one in forces if round(one.data[0], 6) in by_time]
    assert both
    for numbers, whole in both:
        summed = np.reshape(numbers[1:], (4, 3)).sum(axis=0)
        np.testing.assert_allclose(summed, [whole.x, whole.y, whole.z], atol=1e-6)
