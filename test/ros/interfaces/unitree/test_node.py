"""unitree_node over both kinds of DDS: a robot on ROS topics, and a program on Unitree's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("cyclonedds", reason="cyclonedds is not installed (pip install 'bipedsim[unitree]')")

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import uint8
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from diagnostic_msgs.msg import DiagnosticArray
from ros_support import NodeUnderTest, RosWorld
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from unitree_support import Program

from bipedsim_ros.bringup.bringup import plan
from bipedsim_ros.interfaces.unitree import idl
from bipedsim_ros.interfaces.unitree.machine import machine_files
from bipedsim_ros.interfaces.unitree.remote import BUTTONS

pytestmark = pytest.mark.ros
MOTORS = machine_files()[0].motors
START, A = BUTTONS.index("start"), BUTTONS.index("A")


@dataclass
class WrongCommand(IdlStruct, typename="unitree_go.msg.dds_.LowCmd_"):
    """The command type of another machine."""

    level_flag: uint8


@dataclass
class OtherCommand(IdlStruct, typename="unitree_hg.msg.dds_.LowCmd_"):
    """A command type of another SDK version, with the same name but another size."""

    mode_pr: uint8
    mode_machine: uint8


class Robot:
    """A robot on ROS topics with its own joint order, and its vendor bridge."""

    def __init__(self, ros: RosWorld, **parameters: Any) -> None:
        self._ros = ros
        self._states = ros.node.create_publisher(JointState, "/joint_states", 10)
        self._imu = ros.node.create_publisher(Imu, "/imu/data", 10)
        self.commands = ros.collect(Float64MultiArray, "/impedance_controller/commands")
        self.diagnostics = ros.collect(DiagnosticArray, "/diagnostics")
        domain = int(ros.env["ROS_DOMAIN_ID"])
        self.node: NodeUnderTest = ros.start("unitree_node", robot="g1", domain=domain, **parameters)
        ros.connected(self._states)
        ros.connected(self._imu)
        self.program = Program(domain)
        self.measure(0)

    def measure(self, ms: int, effort: float = 1.5, joints: int = 29) -> None:
        """Publish the measurements at a time: position k / 100 of the k-th motor, and the same effort for all."""
        imu = Imu()
        imu.orientation.w, imu.linear_acceleration.z = 1.0, 9.81
        self._imu.publish(imu)
        names = MOTORS[::-1][:joints]
        position = [MOTORS.index(name) / 100 for name in names]
        state = JointState(name=names, position=position, velocity=[0.0] * joints, effort=[effort] * joints)
        state.header.stamp.nanosec = ms * 1_000_000
        self._states.publish(state)

    def dropped(self, kind: str) -> int:
        """Return the number of dropped messages of a kind, as the node reports it."""
        values = {pair.key: pair.value for array in self.diagnostics for pair in array.status[0].values}
        return int(values.get(f"dropped.{kind}", 0))


def test_a_program_waits_for_states_frees_the_joints_and_drives_them(ros: RosWorld) -> None:
    robot = Robot(ros, remote=["0 start", "0.1 ly=0.5"])
    program = robot.program

    def measured(state: Any) -> bool:
        robot.measure(0)
        return bool(state["motor_state"]["q"][28] > 0.0 and state["imu_state"]["accelerometer"][2] > 9.0)

    state = program.until(measured, "a state with the measurements", send=False)
    np.testing.assert_allclose(state["motor_state"]["q"][:29], np.arange(29) / 100, rtol=1e-6)
    np.testing.assert_allclose(state["motor_state"]["tau_est"][:29], 1.5)
    assert state["imu_state"]["accelerometer"].tolist() == pytest.approx([0.0, 0.0, 9.81])
    assert state["mode_machine"] == 5

    # deploy_real.py: free joints until START, while the robot's time stands; its clock goes on.
    program.command.values["mode_machine"] = state["mode_machine"]
    pressed = program.until(program.pressed(START), "START of the script, which begins with the first command")
    program.until(lambda s: s["tick"] > pressed["tick"] + 50, "that the clock goes on")
    half = np.float32(0.5).tobytes()
    program.until(lambda s: s["wireless_remote"][20:24].tobytes() == half, "the stick of the script")
    ros.until(lambda: "time stays at t = 0" in robot.node.output, "that it says so")
    assert not robot.commands
    remote = ros.node.create_publisher(String, "/remote", 1)
    ros.connected(remote)
    remote.publish(String(data="gantry=lower"))
    ros.until(lambda: "begin with --scenario hang" in robot.node.output, "that there is no gantry")

    motors = program.command.values["motor_cmd"]
    for k, name in enumerate(("q", "dq", "tau", "kp", "kd")):
        motors[name] = 100 * k + np.arange(35)

    def driven() -> bool:
        program.send()
        return bool(robot.commands)

    ros.until(driven, "a command on the ROS topic")
    data = np.array(robot.commands[0].data).reshape(5, 29)
    np.testing.assert_array_equal(data, 100.0 * np.arange(5)[:, None] + np.arange(29))
    assert robot.commands[0].layout.dim[0].label == "position,velocity,effort,stiffness,damping"

    # The clock follows that of the robot, once it runs.
    ticks = [int(program.until(lambda s: True, "a state")["tick"])]
    robot.measure(400)
    program.until(lambda s: s["tick"] >= ticks[0] + 400, "the robot's own time", send=False)


def test_states_come_at_their_rate_in_the_robots_time(ros: RosWorld) -> None:
    """However often it measures: a hundred per second, of a robot that measures every millisecond."""
    robot = Robot(ros, state_rate=100.0)
    robot.program.state()
    ticks: set[int] = set()
    measured = count(1)

    def advanced() -> bool:
        # A message may be lost on a busy machine, so the robot measures until enough of its time was seen.
        robot.measure(next(measured))
        time.sleep(0.005)
        ticks.update(robot.program.ticks())
        return bool(ticks) and max(ticks) - min(ticks) >= 90

    ros.until(advanced, "a state 90 ms after the first one")
    # The first few are of the time that stood.
    assert len([tick for tick in ticks if tick > max(ticks) - 90]) <= 10


@pytest.mark.long
def test_where_the_robots_time_begins_anew_its_program_begins_anew(ros: RosWorld) -> None:
    """After a reset of the simulator: the clock goes on, and free joints begin nothing."""
    robot = Robot(ros)
    program = robot.program
    program.command.values["mode_machine"] = program.state()["mode_machine"]
    motors = program.command.values["motor_cmd"]
    sent = 0

    def received() -> int:
        values = {pair.key: pair.value for array in robot.diagnostics[-1:] for pair in array.status[0].values}
        return int(values.get("commands", 0))

    def passed() -> list[Any]:
        return [np.array(command.data).reshape(5, 29) for command in robot.commands]

    def sent_until(condition: Callable[[], Any], what: str) -> None:
        """Send commands numbered by their first position, until a condition holds."""

        def again() -> bool:
            nonlocal sent
            sent += 1
            motors["q"][0] = sent
            program.send()
            return bool(condition())

        ros.until(again, what)

    def measured(effort: float) -> Callable[[Any], bool]:
        return lambda state: bool(state["motor_state"]["tau_est"][0] == effort)

    motors["kp"] = 50.0
    sent_until(lambda: robot.commands, "a command on the ROS topic")
    # None that drives a joint is under way when time begins anew.
    ros.until(lambda: passed()[-1][0, 0] == sent, "the last of these commands")
    robot.measure(400, effort=2.5)
    before = int(program.until(measured(2.5), "the robot's own time", send=False)["tick"])
    assert before > 400
    # A message with a repeated time starts nothing. The next one is dropped and counted, so the test knows that it was
    # read.
    robot.measure(400)
    robot.measure(401, joints=28)
    ros.until(lambda: robot.dropped("joints"), "that the message behind the repeated one was read")
    motors["kp"], freed = 0.0, sent
    sent_until(lambda: passed()[-1][0, 0] > freed, "a command that frees the joints in the middle of the run")
    robot.measure(0, effort=3.5)
    after = int(program.until(measured(3.5), "that time has begun anew", send=False)["tick"])
    assert after > before
    program.until(lambda s: s["tick"] > after + 50, "that its clock goes on while time stands", send=False)
    # As deploy_real.py has it until START: the joints are free.
    motors["kp"] = 0.0
    driving = sent
    sent_until(lambda: received() > driving + 3, "commands that were received")
    motors["kp"] = 50.0
    free = range(driving + 1, sent + 1)
    sent_until(lambda: passed()[-1][0, 0] > free[-1], "a command on the ROS topic again")
    assert not [number for command in passed() if (number := int(command[0, 0])) in free]


@pytest.mark.long
def test_what_is_wrong_is_told_counted_and_never_passed_on(ros: RosWorld) -> None:
    robot = Robot(ros)
    program = robot.program
    program.command.values["mode_machine"] = program.state()["mode_machine"]
    program.command.values["motor_cmd"]["kp"] = 50.0
    sound = program.command.serialized()
    damaged = bytes([*sound[:60], sound[60] ^ 1, *sound[61:]])
    strange = DataWriter(program.participant, Topic(program.participant, "rt/lowcmd", WrongCommand))
    strange.write(WrongCommand(0xFF))
    other = DataWriter(program.participant, Topic(program.participant, "rt/lowcmd", OtherCommand))
    other.write(OtherCommand(0, 5))
    another = DataWriter(program.participant, Topic(program.participant, "rt/lowstate", idl.TYPES["unitree_hg"][1]))

    def told() -> bool:
        program.send(damaged)
        return robot.dropped("crc") > 1

    ros.until(told, "that commands with a wrong checksum are counted")
    values = program.command.values
    machine = int(values["mode_machine"])
    wrong: dict[str, bytes] = {}
    for kind, name, value in (("mode_pr", "mode_pr", 1), ("mode_machine", "mode_machine", machine + 1)):
        right, values[name] = int(values[name]), value
        wrong[kind], values[name] = program.command.serialized(), right
    for kind, name, number in (("mode", "mode", 5), ("negative", "kd", -1.0), ("not_finite", "q", np.nan)):
        right, values["motor_cmd"][name][3] = values["motor_cmd"][name][3].item(), number
        wrong[kind], values["motor_cmd"][name][3] = program.command.serialized(), right
    assert program.command.serialized() == sound

    for kind, data in wrong.items():

        def counted(kind: str = kind, data: bytes = data) -> bool:
            program.send(data)
            return robot.dropped(kind) > 1

        ros.until(counted, f"that commands with a wrong {kind} are counted")
    assert "rods" in robot.node.output, "why motors A and B are refused"
    ros.until(lambda: "unitree_go.msg.dds_.LowCmd_" in robot.node.output, "that the wrong type is told")
    ros.until(lambda: "1 on rt/lowcmd not heard" in robot.node.output, "that a type of another size is told")
    ros.until(lambda: "2 robots publish rt/lowstate" in robot.node.output, "that another robot is told")
    assert another is not None
    assert "fill in msg.crc" in robot.node.output
    assert "which this g1 does not take" in robot.node.output
    assert not robot.commands


def test_time_may_wait_for_a_button_and_the_first_new_command_behind_it(ros: RosWorld) -> None:
    robot = Robot(ros, begin="A")
    program = robot.program
    remote = ros.node.create_publisher(String, "/remote", 1)
    ros.connected(remote)
    program.command.values["mode_machine"] = program.state()["mode_machine"]
    motors = program.command.values["motor_cmd"]
    motors["kp"], motors["q"] = 50.0, 0.25
    first = program.state()["tick"]
    program.until(lambda s: s["tick"] > first + 100, "the default position is held")
    remote.publish(String(data="A"))
    pressed = program.until(program.pressed(A), "A")
    program.until(lambda s: s["tick"] > pressed["tick"] + 100, "more of the robot's time with the same command")
    assert not robot.commands, "what was asked for before the button is no answer to it"
    motors["q"] = 0.5

    def begun() -> bool:
        program.send()
        return bool(robot.commands)

    ros.until(begun, "the first command of the policy")
    assert robot.commands[0].data[0] == 0.5


def test_in_a_gantry_free_joints_begin_time_and_the_operator_has_words(ros: RosWorld) -> None:
    asked: list[str] = []
    for action in ("lower", "release", "lift"):
        ros.node.create_service(
            Trigger, f"sim_node/{action}", lambda _request, response, action=action: (asked.append(action), response)[1]
        )
    robot = Robot(ros, gantry="hang", remote=["0.2 gantry=lower", "0.4 gantry=release A"])
    program = robot.program
    program.command.values["mode_machine"] = program.state()["mode_machine"]

    def begun() -> bool:
        program.send()
        return bool(robot.commands)

    ros.until(begun, "free joints, passed on")
    assert not any(robot.commands[0].data)
    ros.until(lambda: asked == ["lower", "release"], "what the script asked of the gantry")


def test_the_motion_switcher_answers_as_the_vendors_example_asks(ros: RosWorld) -> None:
    robot = Robot(ros)
    participant = robot.program.participant
    name = "rt/api/motion_switcher"
    requests = DataWriter(participant, Topic(participant, f"{name}/request", idl.Request))
    responses = DataReader(participant, Topic(participant, f"{name}/response", idl.Response))
    said = []
    ros.until(lambda: requests.get_matched_subscriptions() and responses.get_matched_publications(), "the service")
    for number, api in enumerate((1001, 1003, 1001)):
        header = idl.RequestHeader(idl.RequestIdentity(number, api), idl.RequestLease(0), idl.RequestPolicy(0, False))
        answers: list[Any] = []

        def answered(header: Any = header, answers: list[Any] = answers, number: int = number) -> bool:
            # The request is repeated, because the service may send the first answers before it has discovered the
            # reader.
            requests.write(idl.Request(header, "{}", []))
            answers += [one for one in responses.take(10) if one.header.identity.id == number]
            return bool(answers)

        ros.until(answered, f"an answer to {api}")
        assert answers[0].header.identity == idl.RequestIdentity(number, api)
        said.append((answers[0].header.status.code, answers[0].data))
    assert [code for code, _ in said] == [0, 0, 0]
    assert json.loads(said[0][1])["name"] == "ai"
    assert json.loads(said[2][1])["name"] == ""


@pytest.mark.long
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_program_moves_a_simulated_robot(ros: RosWorld, factor: float) -> None:
    """In slowed time, too."""
    domain = int(ros.env["ROS_DOMAIN_ID"])
    bringup = plan(
        {"robot": "g1", "controller": "unitree", "duration": 0.3, "real_time_factor": factor},
        interface_params={"domain": domain},
    )
    assert [node.executable for node in bringup.nodes] == ["sim_node", "unitree_node"]
    states = ros.collect(JointState, "/joint_states")
    simulator, bridge = bringup.nodes
    sim = ros.start(simulator.executable, rate_check="off", **simulator.parameters)
    speaks = ros.start(bridge.executable, **bridge.parameters)
    program = Program(domain)
    state = program.until(lambda s: s["imu_state"]["accelerometer"][2] > 9.0, "a robot that stands", send=False)
    elbow = MOTORS.index("left_elbow_joint")
    motors = program.command.values["motor_cmd"]
    program.command.values["mode_machine"] = state["mode_machine"]
    motors["q"], motors["kp"], motors["kd"] = state["motor_state"]["q"], 100.0, 2.0
    motors["q"][elbow] += 0.3
    program.until(lambda s: s["motor_state"]["q"][elbow] > state["motor_state"]["q"][elbow] + 0.2, "that it moves")
    assert ros.ended(sim) == 0
    assert speaks.process.poll() is None
    knee = states[-1].name.index("left_knee_joint")
    assert states[-1].position[knee] == pytest.approx(float(state["motor_state"]["q"][3]), abs=0.15)
