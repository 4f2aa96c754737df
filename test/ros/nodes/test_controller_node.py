"""controller_node against a robot that the test plays: measurements in, commands out, and no simulator anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Pose, PoseStamped, Quaternion, Twist, Vector3, WrenchStamped
from nav_msgs.msg import Odometry, Path as NavPath
from rclpy.serialization import serialize_message
from ros_support import RosWorld
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64, Float64MultiArray, Header
from user_controllers import EchoScan

from bipedsim.control.controllers import make_controller
from bipedsim.control.stop import StopKind
from bipedsim.model import load_robot
from bipedsim.sim.io import Observation
from bipedsim.sim.scan_frame import scan_points
from bipedsim_ros.nodes.duplicate_nodes import COMING
from bipedsim_ros.wire.conversions import HeightScanWriter
from bipedsim_ros.wire.endpoints import profile
from bipedsim_ros.wire.topics import FALLEN

pytestmark = pytest.mark.ros

ROBOT = load_robot("biped14")
ECHO = "user_controllers:Echo"


class PlayedRobot:
    """The messages of a real robot, one state at a time, and the commands of the controller."""

    def __init__(self, world: RosWorld) -> None:
        self.world = world
        node = world.node
        self.states = node.create_publisher(JointState, "/joint_states", 10)
        self.imu = node.create_publisher(Imu, "/imu/data", 10)
        self.feet = [node.create_publisher(WrenchStamped, f"/{sole.name}_foot_ft/wrench", 10) for sole in ROBOT.soles]
        self.commands = world.collect(Float64MultiArray, "/effort_controller/commands")
        self.observation = Observation.zeros(ROBOT.nu, len(ROBOT.soles))
        self.upright = 1.0
        self.publish_scan: Callable[[], None] = lambda: None
        rng = np.random.default_rng(1)
        self.observation.joint_position[:] = ROBOT.posture + 0.01 * rng.normal(size=ROBOT.nu)
        self.observation.joint_velocity[:] = 0.1 * rng.normal(size=ROBOT.nu)
        self.observation.imu_linear_acceleration[:] = (0.1, -0.2, 9.81)
        self.observation.foot_wrench[:, 2] = 0.5 * ROBOT.weight

    def publish(
        self, t_ms: int, names: Any = ROBOT.joint_names, sensors: bool = True, imu: bool = True, **fields: Any
    ) -> None:
        """Publish one state with the joints in the order of ``names``; ``fields`` replace joint arrays."""
        o = self.observation
        for publisher in (self.states, self.imu, *self.feet):
            self.world.connected(publisher)
        stamp = {"sec": t_ms // 1000, "nanosec": t_ms % 1000 * 1_000_000}
        if sensors:
            message = Imu()
            message.orientation.w = self.upright
            a = message.linear_acceleration
            a.x, a.y, a.z = o.imu_linear_acceleration.tolist()
            if imu:
                self.imu.publish(message)
            for publisher, wrench in zip(self.feet, o.foot_wrench, strict=True):
                foot = WrenchStamped()
                foot.wrench.force.z = float(wrench[2])
                publisher.publish(foot)
            self.publish_scan()
        order = [ROBOT.joint_names.index(name) for name in names]
        values = {
            "position": o.joint_position[order].tolist(),
            "velocity": o.joint_velocity[order].tolist(),
            "effort": o.joint_effort[order].tolist(),
            **fields,
        }
        state = JointState(name=list(names), **values)
        state.header.stamp.sec, state.header.stamp.nanosec = stamp["sec"], stamp["nanosec"]
        self.states.publish(state)

    def answer(self, t_ms: int, **options: Any) -> np.ndarray:
        """Publish a state and return the command that answers it.

        A state that went out before all subscriptions were connected is published again; the same stamp is no new
        state.
        """
        count = len(self.commands)
        for _ in range(30):
            self.publish(t_ms, **options)
            self.world.spin(lambda: len(self.commands) > count, 2.0)
            if len(self.commands) > count:
                break
        assert len(self.commands) > count, f"no command answers the state at {t_ms} ms"
        self.world.spin(lambda: False, 0.1)
        return np.array(self.commands[-1].data)

    def answer_only(self, t_ms: int) -> None:
        """Publish a state without an IMU, and wait for the command."""
        count = len(self.commands)
        self.publish(t_ms, imu=False)
        self.world.until(lambda: len(self.commands) > count, "the answer to a state")


@pytest.fixture
def robot(ros: RosWorld) -> PlayedRobot:
    return PlayedRobot(ros)


@pytest.mark.long
def test_commands_are_those_of_the_controller(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node")
    controller = make_controller("posture", ROBOT, None, 1e-3)
    controller.reset(robot.observation)
    for t_ms in (0, 1, 2):
        robot.observation.t = 1e-3 * t_ms
        expected = controller.update(robot.observation).tau_joint.copy()
        np.testing.assert_array_equal(robot.answer(t_ms), expected)


@pytest.mark.long
def test_joints_are_matched_by_name(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node", controller=ECHO)
    straight = robot.answer(0)
    np.testing.assert_array_equal(straight[3:], robot.observation.joint_position[3:])
    np.testing.assert_array_equal(robot.answer(1, names=ROBOT.joint_names[::-1]), straight)


@pytest.mark.long
def test_commands_follow_the_order_that_the_robot_asks_for(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node", controller=ECHO, joints=list(ROBOT.joint_names[::-1]))
    np.testing.assert_array_equal(robot.answer(0)[:-3], robot.observation.joint_position[:2:-1])


@pytest.mark.long
def test_sensors_reach_the_controller_and_the_sign_turns_the_feet(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node", controller=ECHO, ft_sign=-1.0, Echo__gain=2.0)
    resets, imu, foot = robot.answer(0)[:3]
    assert resets == 2.0
    assert imu == pytest.approx(2.0 * 9.81)
    assert foot == pytest.approx(-ROBOT.weight)


@pytest.mark.long
def test_the_points_of_a_height_scan_are_in_the_frame_of_the_base(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node", controller="user_controllers:EchoScan")
    publisher = ros.node.create_publisher(Float64MultiArray, "/height_scan", 10)
    ros.connected(publisher)
    scan = Observation.zeros(0, 0)
    scan.height_scan = np.array([0.8, 0.9, 1.0])
    up = ROBOT.placement_joint_imu.rotation[:, 2]
    # A scan before the node has found this publisher is lost, so it is repeated with the state.
    robot.publish_scan = lambda: publisher.publish(HeightScanWriter(EchoScan.height_points).write(scan))
    expected = scan_points(EchoScan.height_points, scan.height_scan, up)
    np.testing.assert_allclose(robot.answer(0)[:9], expected.ravel(), atol=1e-12)
    scan.height_scan[:] = 0.7, 0.6, 0.5
    expected = scan_points(EchoScan.height_points, scan.height_scan, up)
    # The scan may arrive after the next state.
    robot.answer(1)
    np.testing.assert_allclose(robot.answer(2)[:9], expected.ravel(), atol=1e-12)


@pytest.mark.long
def test_time_that_runs_back_resets_the_controller(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node", controller=ECHO)
    assert robot.answer(5)[0] == 1.0
    assert robot.answer(6)[0] == 1.0
    assert robot.answer(0)[0] == 2.0


@pytest.mark.long
def test_a_repeated_state_gets_the_same_command_and_no_update(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node", controller=ECHO)
    first = robot.answer(0)
    robot.observation.joint_position += 1.0
    np.testing.assert_array_equal(robot.answer(0), first)
    np.testing.assert_allclose(robot.answer(1)[3:], first[3:] + 1.0)


@pytest.mark.long
def test_what_the_controller_shows_of_a_repeated_state_is_repeated(ros: RosWorld, robot: PlayedRobot) -> None:
    """A recorder that missed the debug signals of the first state receives them with the repeated state."""
    early = ros.collect(Float64, "/controller/steps")
    ros.start("controller_node", controller="user_controllers:Steered")
    command = robot.answer(0)
    ros.until(lambda: early, "the readout")
    late = ros.collect(Float64, "/controller/steps")
    ros.until(lambda: ros.node.count_subscribers("/controller/steps") == 2, "the second listener")
    np.testing.assert_array_equal(robot.answer(0), command)
    ros.until(lambda: late, "the readout once more")
    assert late[0].data == early[0].data == 0.0
    assert len(late) < len(early) <= len(robot.commands), "one with each answer, and none for a listener alone"
    heard = len(late)
    robot.answer(5)
    robot.answer(5)
    assert len(late) == heard, "between two periods nothing was told, so there is nothing to repeat"


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"names": ROBOT.joint_names[1:]}, "/joint_states lacks l_hip_yaw"),
        ({"velocity": []}, "not finite"),
        ({"position": [float("nan")] * 14}, "not finite"),
    ],
)
def test_incomplete_states_get_no_command(
    ros: RosWorld, robot: PlayedRobot, options: dict[str, Any], said: str
) -> None:
    node = ros.start("controller_node", controller=ECHO)
    robot.answer(0)
    count = len(robot.commands)
    robot.publish(1, **options)
    ros.until(lambda: said in node.output, "a warning that says what is missing")
    robot.answer(2)
    assert len(robot.commands) == count + 1


@pytest.mark.long
def test_effort_may_be_missing(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node", controller=ECHO)
    assert np.isfinite(robot.answer(0, effort=[])).all()


@pytest.mark.long
def test_sensors_may_be_absent_if_so_asked(ros: RosWorld, robot: PlayedRobot) -> None:
    """A missing sensor is NaN and makes a torque NaN. Then the guard takes over."""
    node = ros.start("controller_node", controller=ECHO, wait_for_sensors=False)
    damped = robot.answer(0, sensors=False)
    assert "its torque of l_hip_roll is nan" in node.output
    np.testing.assert_allclose(damped, damping(robot.observation), rtol=1e-12)


@pytest.mark.long
def test_the_controller_waits_for_sensors_and_says_so(ros: RosWorld, robot: PlayedRobot) -> None:
    node = ros.start("controller_node", controller=ECHO)

    def told() -> bool:
        robot.publish(0, sensors=False)
        return "waiting for a first message on /imu/data, /left_foot_ft/wrench" in node.output

    ros.until(told, "a warning that names the topics")
    assert not robot.commands


@pytest.mark.long
def test_a_robot_that_is_not_up_is_waited_for_and_named(ros: RosWorld) -> None:
    node = ros.start("controller_node", controller=ECHO)
    said = "waiting for /joint_states, which no node publishes yet: a simulator may still be compiling; else"
    ros.until(lambda: said in node.output, "a line with the topic")
    assert "WARN" not in node.output
    assert node.stop() == 0
    assert node.output.count("waiting for") == 1
    assert "no updates; no joint states came" in node.output
    assert "nan" not in node.output


@pytest.mark.long
def test_a_simulator_that_is_about_to_come_is_waited_for_and_nobody_told_to_start_one(ros: RosWorld) -> None:
    simulator = rclpy.create_node("sim_node", context=ros.context, enable_rosout=False)
    node = ros.start("controller_node", controller=ECHO)
    ros.until(lambda: "which no node publishes yet" in node.output, "why it waits")
    assert COMING in node.output
    assert "bipedsim up" not in node.output
    simulator.destroy_node()


@pytest.mark.long
def test_who_waits_for_long_is_told_why(ros: RosWorld) -> None:
    """A simulator that starts for the first time compiles for minutes: nothing to warn of."""
    node = ros.start("controller_node", controller="user_controllers:Restless")
    ros.until(lambda: "which no node publishes: a simulator may still be compiling; else" in node.output, "a warning")
    assert "[WARN]" in node.output
    warned = node.output.count("[WARN]")
    simulator = rclpy.create_node("sim_node", context=ros.context, enable_rosout=False)
    said = f" s: {COMING}"
    ros.until(lambda: node.output.count(said) > 1, "why it takes so long")
    assert node.output.partition(said)[2].count("[WARN]") == 0
    assert warned
    publisher = ros.node.create_publisher(JointState, "/joint_states", 1)
    ros.until(lambda: "whose publisher is silent" in node.output, "who is silent")
    ros.node.destroy_publisher(publisher)
    simulator.destroy_node()


@pytest.mark.long
def test_what_cannot_be_used_is_told_and_survived(ros: RosWorld, robot: PlayedRobot) -> None:
    """A first state from which no controller starts, messages cut short, an IMU that stops, joint states that stop."""
    diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
    node = ros.start("controller_node", controller="user_controllers:Picky", rate=20.0)

    def told(said: str, *levels: bytes) -> None:
        ros.until(lambda: said in node.output, said)
        ros.until(
            lambda: not levels or any(one.status[0].level in levels for one in diagnostics[-1:]),
            f"the level after {said!r}",
        )

    robot.upright = float("nan")
    refused = "no command: picky: cannot start from imu_orientation; it starts with the next state that will do"

    def refuses() -> bool:
        robot.publish(0)
        return refused in node.output

    ros.until(refuses, refused)
    assert "[WARN]" in node.output
    told("picky: reset at t = 0 s")
    assert "UserWarning" not in node.output, "it goes by the log, and not past it"
    robot.upright = 1.0
    robot.answer(50)
    cut = bytes(serialize_message(JointState(name=list(ROBOT.joint_names), position=[0.0] * ROBOT.nu)))[:100]
    robot.states.publish(cut)
    told("it ends within name, after 100 bytes")
    robot.imu.publish(bytes(serialize_message(Imu()))[:40])
    for t_ms in range(100, 2000, 50):
        robot.answer_only(t_ms)
    told("message on /imu/data dropped")
    told("joint states: the last message stands in; does that sensor still run?", DiagnosticStatus.WARN)
    assert "nothing on /imu/data for the last " in node.output
    robot.answer(2000)
    told("messages on /imu/data again")
    told("no message on /joint_states for 2 s, after t = 2.000 s", DiagnosticStatus.STALE)
    robot.answer(2050)
    told("messages on /joint_states again, at t = 2.050 s")
    (status,) = diagnostics[-1].status
    dropped = {v.key: v.value for v in status.values if v.key.startswith("dropped")}
    assert dropped["dropped./joint_states unreadable"] == "1"
    assert dropped["dropped./imu/data unreadable"] == "1"
    assert int(dropped["dropped./joint_states start"]) >= 1


def damping(observation: Observation) -> np.ndarray:
    """Return the damping torques of the joints of a fallen robot."""
    return np.asarray(-ROBOT.effort_limit * observation.joint_velocity / ROBOT.velocity_limit)


@pytest.mark.long
def test_torques_that_are_not_finite_are_never_sent(ros: RosWorld, robot: PlayedRobot) -> None:
    diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
    fallen = ros.collect(Bool, FALLEN.name, profile(FALLEN.offered))
    ros.start("controller_node", controller="user_controllers:NotFinite")
    np.testing.assert_allclose(robot.answer(0), damping(robot.observation), rtol=1e-12)

    def stopped(status: DiagnosticStatus) -> bool:
        values = {pair.key: pair.value for pair in status.values}
        is_kind = StopKind.read(values.get("gave_up_kind")) is StopKind.NOT_FINITE
        return is_kind and status.level == DiagnosticStatus.ERROR

    ros.until(lambda: any(stopped(s) for a in diagnostics for s in a.status), "a fall in the diagnostics")
    ros.until(lambda: [m.data for m in fallen[-1:]] == [True], "the fall on its topic")


@pytest.mark.long
def test_steers_and_shows_what_the_controller_has(ros: RosWorld, robot: PlayedRobot) -> None:
    """The inputs are velocity and footsteps; the outputs are debug signals, estimate and falls.

    A controller without them has no such topics.
    """
    velocity = ros.node.create_publisher(Twist, "/cmd_vel", 10)
    path = ros.node.create_publisher(NavPath, "/footsteps", 10)
    shown = {name: ros.collect(Float64, f"/controller/{name}") for name in ("vx", "vy", "wz", "steps", "yaw")}
    odometry = ros.collect(Odometry, "/odom")
    fallen = ros.collect(Bool, FALLEN.name, profile(FALLEN.offered))
    node = ros.start("controller_node", controller="user_controllers:Steered")
    for publisher in (velocity, path):
        ros.connected(publisher)

    def steer(t_ms: int, vx: float, wz: float) -> np.ndarray:
        velocity.publish(Twist(linear=Vector3(x=vx, y=0.1), angular=Vector3(z=wz)))
        velocity.wait_for_all_acked()
        return robot.answer(t_ms)

    ahead = steer(0, 0.3, -0.2)
    np.testing.assert_allclose(ahead, 0.3 * robot.observation.joint_position)
    ros.until(lambda: shown["vx"] and odometry and fallen, "a message on every topic")
    assert [shown[name][-1].data for name in ("vx", "vy", "wz")] == [0.3, 0.1, -0.2]
    assert fallen[-1].data is False
    np.testing.assert_array_equal(steer(500, float("nan"), 0.0), ahead)
    assert "message on /cmd_vel dropped: it is not finite" in node.output
    np.testing.assert_array_equal(robot.answer(509), ahead)
    assert not robot.answer(510).any(), "half a second after the last command; they are looked for at 100 Hz"
    assert "no message on /cmd_vel for 0.5 s: it counts as zero" in node.output
    steps = [PoseStamped(pose=Pose(orientation=Quaternion(z=np.sin(0.1 * k), w=np.cos(0.1 * k)))) for k in range(4)]
    for frame in ("map", "feet"):
        path.publish(NavPath(header=Header(frame_id=frame), poses=steps))
        path.wait_for_all_acked()
        robot.answer(520 if frame == "map" else 530)
    assert "message on /footsteps dropped: its frame is 'map', it must be 'feet'" in node.output
    ros.until(lambda: shown["steps"] and shown["steps"][-1].data == 4.0, "the footsteps")
    assert shown["yaw"][-1].data == pytest.approx(0.6)
    assert [m.data for m in shown["steps"]] == [0.0, 0.0, 0.0, 0.0, 4.0], "one message for each 10 ms"
    at = {round(1000 * m.pose.pose.position.x): m for m in odometry}
    assert sorted(at) == [0, 500, 510, 520, 530]
    assert (at[500].header.stamp.nanosec, at[500].child_frame_id) == (500_000_000, "base_link")
    assert at[0].twist.twist.linear.x == 0.3
    np.testing.assert_allclose(steer(540, 0.3, 10.0), damping(robot.observation), rtol=1e-12)
    ros.until(lambda: fallen[-1].data is True, "the fall")
    assert "/cmd_vel comes again" in node.output
    robot.answer(0)
    ros.until(lambda: fallen[-1].data is False, "that the reset ends it")


@pytest.mark.long
def test_footsteps_that_cannot_be_taken_do_not_end_the_controller(ros: RosWorld, robot: PlayedRobot) -> None:
    path = ros.node.create_publisher(NavPath, "/footsteps", 10)
    node = ros.start("controller_node", controller="user_controllers:Steered")
    ros.connected(path)
    robot.answer(0)
    far = PoseStamped(pose=Pose(orientation=Quaternion(w=1.0)))
    far.pose.position.x = 5.0
    path.publish(NavPath(poses=[far]))
    path.wait_for_all_acked()
    assert np.isfinite(robot.answer(10)).all()
    assert "message on /footsteps dropped: 5 m are too far" in node.output


@pytest.mark.long
def test_a_wrong_rate_is_noticed(ros: RosWorld, robot: PlayedRobot) -> None:
    node = ros.start("controller_node", controller=ECHO)
    robot.answer(0)
    robot.answer(5)
    ros.until(lambda: "came 0.005000 s apart, but rate = 1000 Hz" in node.output, "a warning about the rate")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"controller": "postur"}, "unknown controller 'postur'; did you mean 'posture'?"),
        ({"controller": "no.such.module:Thing"}, "controller = 'no.such.module:Thing' cannot be imported"),
        ({"controller": "user_controllers:Ecko"}, "did you mean 'Echo'?"),
        ({"robot": "biped15"}, "unknown robot 'biped15'"),
        ({"joints": ["l_knee"]}, "must hold every joint of biped14 once"),
        ({"posture.squat_depth": -1.0}, "squat_depth = -1.0 m is below its minimum"),
        ({"posture.squat_deep": 0.1}, "unknown parameter 'posture.squat_deep'"),
        ({"posture.kp.l_elbow": 10.0}, "l_elbow"),
        ({"ft_sign": 0.0}, "ft_sign = 0.0 must be 1 or -1"),
    ],
)
def test_bad_parameters_end_the_node_with_a_message(ros: RosWorld, parameters: dict[str, Any], said: str) -> None:
    node = ros.start("controller_node", **parameters)
    assert node.wait() == 2
    assert said in node.output
    assert "Traceback" not in node.output


@pytest.mark.long
def test_gains_per_joint_are_parameters(ros: RosWorld, robot: PlayedRobot) -> None:
    ros.start("controller_node", **{"posture.kp": {"l_knee": 1234.0}})
    controller = make_controller("posture", ROBOT, {"kp": {"l_knee": 1234.0}}, 1e-3)
    controller.reset(robot.observation)
    robot.observation.t = 0.0
    np.testing.assert_array_equal(robot.answer(0), controller.update(robot.observation).tau_joint)


def test_interrupt_ends_the_node_cleanly(ros: RosWorld, robot: PlayedRobot) -> None:
    node = ros.start("controller_node", controller=ECHO)
    robot.answer(0)
    assert node.stop() == 0
    assert "Traceback" not in node.output


@pytest.mark.long
def test_two_robots_are_told_once_while_none_says_anything(ros: RosWorld) -> None:
    publishers = [ros.node.create_publisher(JointState, "/joint_states", 10) for _ in range(2)]
    diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
    node = ros.start("controller_node", controller=ECHO)
    said = "2 nodes publish /joint_states (test, test): another robot or controller is on ROS domain"
    ros.until(lambda: said in node.output, "the other robot")
    count = len(diagnostics)
    ros.until(lambda: len(diagnostics) > count + 1, "another look")
    assert node.output.count(said) == 1
    for publisher in publishers:
        ros.node.destroy_publisher(publisher)
