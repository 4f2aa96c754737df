"""The contract checker: a good robot passes.

For each injected fault, it names the topic, the check and the solution.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from contract_support import COMMANDS, CONTRACT, IMU, JOINTS, LEFT, RIGHT, ROBOT, ROWS, PlayedRobot, good_robot
from paths import ROOT
from recording_support import write_bag

from bipedsim.cli.main import main
from bipedsim.recording.bag.reader import Qos
from bipedsim_ros.contract.check import check
from bipedsim_ros.contract.evidence import Endpoint, Evidence, TopicEvidence
from bipedsim_ros.contract.finding import DIFFERS, NOT_CHECKED, OK, Finding, table
from bipedsim_ros.wire import NO_NAME

Plant = Callable[[PlayedRobot], None]


def problems(robot: PlayedRobot, state: str = "standing") -> dict[tuple[str, str], str]:
    """Return (topic, check) of all problems, and the advice."""
    found = check(CONTRACT, robot.evidence(), state)
    return {(f.topic, f.check): f.todo for f in found if f.verdict not in (OK, NOT_CHECKED)}


def scaled(topic: str, key: str, factor: float | list[float]) -> Plant:
    def plant(robot: PlayedRobot) -> None:
        robot.streams[topic].values[key] *= factor

    return plant


def exchanged(topic: str, key: str, order: list[int]) -> Plant:
    def plant(robot: PlayedRobot) -> None:
        robot.streams[topic].values[key] = robot.streams[topic].values[key][:, order]

    return plant


def changed(topic: str, **attributes: object) -> Plant:
    def plant(robot: PlayedRobot) -> None:
        for name, value in attributes.items():
            setattr(robot.streams[topic], name, value)

    return plant


def names_exchanged(robot: PlayedRobot) -> None:
    names = robot.streams[JOINTS].names
    i, j = names.index("l_ankle_pitch"), names.index("l_ankle_roll")
    names[i], names[j] = names[j], names[i]


def joint_renamed(robot: PlayedRobot) -> None:
    robot.streams[JOINTS].names[3] = "left_knee"


def both_feet(factor: float) -> Plant:
    def plant(robot: PlayedRobot) -> None:
        scaled(LEFT, "wrench", factor)(robot)
        scaled(RIGHT, "wrench", factor)(robot)

    return plant


def one_nan(robot: PlayedRobot) -> None:
    robot.streams[JOINTS].values["velocity"][50, 2] = np.nan


def imu_elsewhere(robot: PlayedRobot) -> None:
    robot.streams.pop(IMU)
    robot.others["/torso/imu"] = "sensor_msgs/msg/Imu"


def half_rate(robot: PlayedRobot) -> None:
    stamps = robot.streams[LEFT].stamps
    robot.streams[LEFT].stamps = stamps[0] + 2 * (stamps - stamps[0])


def every_tenth_lost(robot: PlayedRobot) -> None:
    stream = robot.streams[IMU]
    kept = np.arange(len(stream.stamps)) % 10 != 9
    stream.stamps, stream.sent = stream.stamps[kept], stream.sent[kept]
    stream.values = {key: value[kept] for key, value in stream.values.items()}


def clock_jumps_back(robot: PlayedRobot) -> None:
    robot.streams[JOINTS].stamps[100:] -= 3_000_000


def stale(robot: PlayedRobot) -> None:
    for stream in robot.streams.values():
        stream.stamps = stream.stamps - 40_000_000


def held(robot: PlayedRobot) -> None:
    for topic in (JOINTS, IMU, LEFT, RIGHT):
        robot.streams[topic].stamps[:] = robot.streams[topic].stamps[0]


def two_publishers(robot: PlayedRobot) -> None:
    robot.streams[JOINTS].publishers.append(Endpoint("/joint_state_publisher", Qos()))


def unstamped_imu(robot: PlayedRobot) -> None:
    robot.streams[IMU].stamps[:] = 0


def nobody_listens(robot: PlayedRobot) -> None:
    robot.streams[COMMANDS].subscriptions.clear()


def effort_controller_in_another_order(robot: PlayedRobot) -> None:
    robot.command_joints = ROBOT.joint_names[::-1]


def no_orientation(robot: PlayedRobot) -> None:
    robot.streams[IMU].values["orientation_covariance"][:, 0] = -1.0


def silent(node: str) -> Plant:
    def plant(robot: PlayedRobot) -> None:
        stream = robot.streams[LEFT]
        stream.publishers = [Endpoint(node, Qos())]
        stream.stamps, stream.sent = stream.stamps[:0], stream.sent[:0]
        stream.values = {key: value[:0] for key, value in stream.values.items()}

    return plant


SWAPPED = [1, 0, *range(2, ROBOT.nu)]
LATCHED = [Endpoint("/robot", Qos("reliable", "transient_local"))]
FAULTS: dict[str, tuple[Plant, dict[tuple[str, str], str]]] = {
    "topic missing": (lambda robot: robot.streams.pop(RIGHT) and None, {(RIGHT, "topic"): "start its driver"}),
    "topic elsewhere": (imu_elsewhere, {(IMU, "topic"): "--remap /imu/data:=/torso/imu"}),
    "type": (
        changed(IMU, msgtype="std_msgs/msg/Float64MultiArray", values={"data": np.zeros((ROWS, 3))}),
        {(IMU, "type"): "never meet"},
    ),
    "best-effort joint states": (
        changed(JOINTS, publishers=[Endpoint("/robot", Qos("best_effort"))]),
        {(JOINTS, "QoS"): "receive nothing"},
    ),
    "latched commands wanted": (changed(COMMANDS, subscriptions=LATCHED), {(COMMANDS, "QoS"): "subscription"}),
    "two publishers": (two_publishers, {(JOINTS, "publishers"): "all but the robot's"}),
    "nobody listens": (nobody_listens, {(COMMANDS, "listeners"): "activate"}),
    "silent": (silent("/robot"), {(LEFT, "messages"): "is its driver active"}),
    "silent in a bag": (silent(""), {(LEFT, "messages"): "is its driver active"}),
    "silent, not discovered": (silent(NO_NAME), {(LEFT, "messages"): "discovery is not complete, check again in 15 s"}),
    "frame": (changed(LEFT, frame="leg_left_6_link"), {(LEFT, "frame"): "frame_id"}),
    "rate": (half_rate, {(LEFT, "rate"): "rate:=500", (LEFT, "latency"): "", (LEFT, "age"): ""}),
    "losses": (every_tenth_lost, {(IMU, "gaps"): "network"}),
    "clock jumps back": (clock_jumps_back, {(JOINTS, "stamps"): "resets the controller"}),
    "stale stamps": (stale, {(topic, "latency"): "synchronise" for topic in (JOINTS, IMU, LEFT, RIGHT)}),
    "held at one stamp": (held, {(topic, "stamps"): "start a controller" for topic in (JOINTS, IMU, LEFT, RIGHT)}),
    "no stamps": (unstamped_imu, {(IMU, "stamps"): "header.stamp", (IMU, "age"): "same clock"}),
    "joint renamed": (joint_renamed, {(JOINTS, "names"): "left_knee"}),
    "names exchanged": (names_exchanged, {(JOINTS, "posture"): "exchanged", (COMMANDS, "order"): "parameter joints"}),
    "NaN": (one_nan, {(JOINTS, "finite"): "state interfaces"}),
    "degrees": (
        lambda robot: scaled(JOINTS, "velocity", 180 / np.pi)(robot) or scaled(JOINTS, "position", 180 / np.pi)(robot),
        {(JOINTS, "positions"): "degrees"},
    ),
    "degrees per second": (scaled(JOINTS, "velocity", 180 / np.pi), {(JOINTS, "velocities"): "degrees per second"}),
    "gravity and not specific force": (scaled(IMU, "linear_acceleration", -1.0), {(IMU, "gravity sign"): "+g upwards"}),
    "units of g": (scaled(IMU, "linear_acceleration", 1 / 9.81), {(IMU, "gravity"): "multiply by 9.81"}),
    "gravity taken out": (scaled(IMU, "linear_acceleration", 0.0), {(IMU, "gravity"): "taken out"}),
    "axes of the IMU": (exchanged(IMU, "linear_acceleration", [2, 1, 0]), {(IMU, "gravity sign"): "mounting"}),
    "quaternion w x y z": (exchanged(IMU, "orientation", [3, 0, 1, 2]), {(IMU, "attitude"): "w x y z"}),
    "no orientation": (no_orientation, {(IMU, "orientation"): "estimate"}),
    "wrench of the foot": (both_feet(-1.0), {(RIGHT, "sum of loads"): "ft_sign:=-1.0"}),
    "one foot turned": (scaled(LEFT, "wrench", -1.0), {(RIGHT, "sum of loads"): "one foot"}),
    "kilograms": (both_feet(1 / 9.81), {(RIGHT, "sum of loads"): "newtons"}),
    "unloaded": (both_feet(0.0), {(RIGHT, "sum of loads"): "hanging"}),
    "torques in N.cm": (scaled(LEFT, "wrench", [1, 1, 1, 100, 100, 100]), {(LEFT, "CoP"): "torques"}),
    "order of the commands": (
        exchanged(COMMANDS, "data", SWAPPED),
        {(COMMANDS, "order"): "parameter joints"},
    ),
    "order of the effort controller": (
        effort_controller_in_another_order,
        {(COMMANDS, "joints"): "parameter joints"},
    ),
    "efforts turned": (scaled(JOINTS, "effort", -1.0), {(COMMANDS, "effort sign"): "driver"}),
    "commands too short": (exchanged(COMMANDS, "data", [0, 1, 2]), {(COMMANDS, "size"): "compare the joints"}),
}


def test_a_good_robot_passes_every_check() -> None:
    found = check(CONTRACT, good_robot().evidence(), "standing")
    assert {f.verdict for f in found} == {OK}
    assert {(JOINTS, "velocities"), (IMU, "attitude"), (RIGHT, "CoP"), (COMMANDS, "effort")} <= {
        (f.topic, f.check) for f in found
    }


def test_what_the_sensors_are_to_bear_is_the_robot_without_what_hangs_below_them() -> None:
    """The expected load is the whole robot, except for the two links behind the last joints."""
    robot = good_robot()
    for foot in (LEFT, RIGHT):
        scaled(foot, "wrench", 1.5)(robot)
    (load,) = [f for f in check(CONTRACT, robot.evidence(), "standing") if f.check == "sum of loads"]
    below = 9.81 * sum(ROBOT.model.inertias[joint].mass for joint in ROBOT.ankle_joint_ids)
    assert float(load.expected.split()[0]) == pytest.approx(ROBOT.weight - below, abs=0.06)


def test_the_round_trip_is_of_the_states_that_were_answered_in_time() -> None:
    """Every fourth state gets no command of its own: three quarters are answered, after 250 us."""
    robot = good_robot()
    commands = robot.streams[COMMANDS]
    answered = np.arange(len(commands.stamps)) % 4 != 3
    commands.sent = robot.streams[JOINTS].sent + 250_000
    commands.stamps, commands.sent = commands.stamps[answered], commands.sent[answered]
    commands.values = {name: values[answered] for name, values in commands.values.items()}
    (trip,) = [f for f in check(CONTRACT, robot.evidence(), "standing") if f.check == "round trip"]
    assert trip.verdict == OK
    share, words = trip.found.split("%", 1)
    assert float(share) == pytest.approx(75.0, abs=0.5)
    assert "of the states were answered before the next one came, these after 250 us" in words
    assert trip.expected.startswith("at least 50% of as many states as there are commands")


@pytest.mark.parametrize(("bunch", "verdict"), [(1, OK), (3, DIFFERS)])
def test_commands_that_come_several_at_once_differ(bunch: int, verdict: str) -> None:
    """All of them come, three in every third period."""
    robot = good_robot()
    commands = robot.streams[COMMANDS]
    late = np.arange(len(commands.stamps)) % bunch
    commands.sent = robot.streams[JOINTS].sent + 250_000 + (bunch - 1 - late) * 1_000_000
    (trip,) = [f for f in check(CONTRACT, robot.evidence(), "standing") if f.check == "round trip"]
    assert (trip.verdict, trip.expected) == (verdict, "at least 50% of the states")
    assert bool(trip.todo) == (verdict == DIFFERS)


def test_numbers_say_what_is_expected_where_they_are_right() -> None:
    found = check(CONTRACT, good_robot().evidence(), "standing")
    text = table(found, "a robot")
    assert re.search(r"ok +sum of loads +\d+\.\d N \(left .*\); expected \d+\.\d N within 10%, the weight above", text)
    assert re.search(r"ok +rate +1000\.0 Hz; expected 1000 Hz", text)
    assert "ok          type            geometry_msgs/msg/WrenchStamped\n" in text


def test_findings_are_counted_at_the_end() -> None:
    one = Finding("/a", "rate", DIFFERS, "1 Hz")
    assert table([one], "a robot").endswith("\n1 differs")
    assert table([one, one, Finding("/a", "type", OK, "x")], "a robot").endswith("\n1 ok, 2 differ")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_nothing_else(fault: str) -> None:
    plant, expected = FAULTS[fault]
    robot = good_robot()
    plant(robot)
    found = problems(robot)
    assert set(found) == set(expected)
    for where, words in expected.items():
        assert words in found[where]


def test_every_check_is_documented() -> None:
    page = (ROOT / "docs" / "other_robot.md").read_text(encoding="utf-8")
    named = {name for line in page.splitlines() if line.startswith("|") for name in line.split("|")[1].split(",")}
    checks = {f.check for f in check(CONTRACT, good_robot().evidence(), "standing")}
    checks |= {name for _, expected in FAULTS.values() for _, name in expected}
    assert checks <= {name.strip() for name in named}


def test_a_hanging_robot_is_not_asked_for_its_weight() -> None:
    robot = good_robot()
    both_feet(0.0)(robot)
    assert problems(robot, "hanging") == {}


def test_a_bag_is_read_like_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot = good_robot()
    scaled(LEFT, "wrench", -1.0)(robot)
    rows: list[tuple[str, str, bytes]] = []
    encoded = {name: seen.messages for name, seen in robot.evidence().topics.items()}
    for i in range(len(encoded[JOINTS])):
        rows += [(name, robot.streams[name].msgtype, encoded[name][i]) for name in encoded]
    run = tmp_path / "run"
    write_bag(run / "bag", rows).close()
    assert main(["check-robot", "biped14", "--bag", str(run / "bag"), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert not answer["ok"]
    wrong = {(f["topic"], f["check"]) for f in answer["findings"] if f["verdict"] == "differs"}
    assert (RIGHT, "sum of loads") in wrong
    assert main(["check-robot", "biped14", "--bag", str(run), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"] == answer["findings"], "the folder of the run is as good"
    assert main(["check-robot", "biped14", "--bag", str(tmp_path)]) == 2
    assert f"name one of the runs in it: {run}" in capsys.readouterr().err
    assert main(["check-robot", "biped14", "--bag", str(tmp_path / "nothing")]) == 2
    file = next((run / "bag").glob("*.mcap"))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert main(["check-robot", "biped14", "--bag", str(run)]) == 3, "what differs may be the damage's doing"
    assert "the file ends at byte" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--begin", "--duration"])
@pytest.mark.parametrize("value", ["inf", "nan"])
def test_a_time_without_end_is_refused(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-robot", "biped14", "--bag", "bag", option, value]) == 2
    assert f"error: {option} {value} must be" in capsys.readouterr().err


def test_a_graph_with_any_part_of_a_robot_is_not_empty() -> None:
    end = (Endpoint("driver", CONTRACT.joints.controller),)
    empty = {CONTRACT.joints.found_as: TopicEvidence((CONTRACT.joints.msgtype,), (), end)}
    graphs = [
        (Evidence("live", True, {}), True),
        (Evidence("live", True, empty, {"/rosout": "rcl_interfaces/msg/Log"}), True),
        (Evidence("bag", False, {}), False),
        (Evidence("live", True, {}, {"/torso/imu": CONTRACT.imu.msgtype}), False),
        (Evidence("live", True, {CONTRACT.imu.found_as: TopicEvidence((), end, ())}), False),
        (Evidence("live", True, {CONTRACT.commands.found_as: TopicEvidence((), (), end)}), False),
    ]
    for evidence, nobody in graphs:
        assert evidence.no_robot(CONTRACT) == nobody, evidence
