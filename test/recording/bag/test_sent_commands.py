"""Commands of a controller in the bag of a robot, which does not report what its drives were asked for."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from recording_support import STORE, T0, joint_state, labelled, serialise, topic, write_bag

from bipedsim.errors import IncompleteWarning, OmittedWarning
from bipedsim.model import load_robot
from bipedsim.recording import Recording, load_recording
from bipedsim.recording.bag import segments
from bipedsim.recording.bag.reader import BagWriter
from bipedsim.recording.schema import RUN

ROBOT = load_robot("biped14")
NAMES = [*reversed(ROBOT.joint_names[1:]), "gripper", ROBOT.joint_names[0]]
"""Joints of the recorded robot: in another order than ours, and one more."""
TORQUE, IMPEDANCE, ROW = "/effort_controller/commands", "/impedance_controller/commands", "/joint_states"
BLOCKS = ("position", "velocity", "effort", "stiffness", "damping")
PERIOD = 0.01

Message = tuple[str, str, bytes]


def row(k: int) -> Message:
    return ROW, "sensor_msgs/msg/JointState", joint_state(round(1e9 * PERIOD * k), NAMES, *np.zeros((3, len(NAMES))))


def torque(values: object) -> Message:
    return TORQUE, "std_msgs/msg/Float64MultiArray", labelled((), np.asarray(values, dtype=float).ravel().tolist())


def impedance(blocks: tuple[str, ...], values: object) -> Message:
    """Return a message with two dimensions, whose first label names the blocks, or with an empty layout."""
    labels = (",".join(blocks), "joint") if blocks else ()
    dimension = STORE.types["std_msgs/msg/MultiArrayDimension"]
    layout = STORE.types["std_msgs/msg/MultiArrayLayout"]([dimension(label, 1, 1) for label in labels], 0)
    message = STORE.types["std_msgs/msg/Float64MultiArray"](layout, np.asarray(values, dtype=float).ravel())
    kind = "std_msgs/msg/Float64MultiArray"
    return IMPEDANCE, kind, bytes(STORE.serialize_cdr(message, kind))


def read(path: Path, messages: list[Message], robot: str = ROBOT.name) -> Recording:
    bag = write_bag(path, messages, {"robot": robot})
    # The recorder declares all topics of a simulator before it knows whether there is one.
    bag.add_topic(topic(RUN, "std_msgs/msg/String"))
    bag.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteWarning)
        warnings.simplefilter("ignore", OmittedWarning)
        return load_recording(path).in_order(ROBOT.joint_names)


@settings(max_examples=30, deadline=None)
@given(
    events=st.lists(st.sampled_from([ROW, ROW, ROW, TORQUE, IMPEDANCE]), min_size=1, max_size=60),
    rows=st.sampled_from([1, 3, 8192]),
    seed=st.integers(0, 1000),
)
def test_each_row_has_the_command_that_was_sent_last_before_it(
    tmp_path_factory: pytest.TempPathFactory, events: list[str], rows: int, seed: int
) -> None:
    """The judge goes through the messages one by one, as a drive does."""
    rng = np.random.default_rng(seed)
    messages: list[Message] = [row(0)]
    torques, setpoints = [np.full(ROBOT.nu, np.nan)], [np.full((ROBOT.nu, 6), np.nan)]
    kind, sent, sent_at = "", np.zeros(0), 0.0
    for event in events:
        now = PERIOD * (len(torques) - 1)
        if event == ROW:
            held = kind == TORQUE and PERIOD * len(torques) - sent_at < 0.05 + 1e-9
            torques.append(sent if held else torques[0])
            setpoints.append(sent if kind == IMPEDANCE else setpoints[0])
            messages.append(row(len(torques) - 1))
        elif event == TORQUE:
            kind, sent, sent_at = TORQUE, rng.normal(size=ROBOT.nu), now
            messages.append(torque(sent))
        else:
            values = rng.uniform(0.0, 1.0, size=(5, ROBOT.nu))
            kind, sent = IMPEDANCE, np.vstack([values, ROBOT.effort_limit]).T
            messages.append(impedance(BLOCKS if seed % 2 else (), values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "ROWS", rows)
        recording = read(tmp_path_factory.mktemp("commands") / "bag", messages)
    np.testing.assert_array_equal(recording.joint_command, torques)
    np.testing.assert_array_equal(recording.setpoint, setpoints)


def test_blocks_that_an_impedance_lacks_are_zero(tmp_path: Path) -> None:
    values = np.arange(2.0 * ROBOT.nu).reshape(2, -1)
    recording = read(tmp_path / "bag", [row(0), impedance(("damping", "effort"), values), row(1)])
    zero = np.zeros(ROBOT.nu)
    expected = np.stack([zero, zero, values[1], zero, values[0], ROBOT.effort_limit], axis=1)
    np.testing.assert_array_equal(recording.setpoint[1], expected)


def test_a_reset_ends_the_last_command(tmp_path: Path) -> None:
    first = [row(0), torque(np.ones(ROBOT.nu)), impedance((), np.ones(5 * ROBOT.nu)), *map(row, range(1, 100))]
    recording = read(tmp_path / "bag", [*first, *map(row, range(3))])
    assert len(recording) == 3
    assert np.isnan(recording.setpoint).all()


@pytest.mark.parametrize("name", ["joint_command", "setpoint"])
def test_what_the_drives_report_counts_more_than_what_was_sent(tmp_path: Path, name: str) -> None:
    run = RUN, "std_msgs/msg/String", serialise("std_msgs/msg/String", data=json.dumps({"control_dt": PERIOD}))
    sent = [torque(np.ones(ROBOT.nu)), row(1), impedance((), np.ones(5 * ROBOT.nu)), row(2)]
    recording = read(tmp_path / "bag", [run, row(0), *sent])
    assert np.isnan(getattr(recording, name)).all()


def test_messages_that_fit_no_robot_are_counted(tmp_path: Path) -> None:
    other = [torque(np.ones(3)), row(1), torque(np.ones(3)), row(2)]
    recording = read(tmp_path / "size", [row(0), *other])
    assert np.isnan(recording.joint_command).all()
    assert any(note.startswith(f"{TORQUE}: 2 of 2 messages left out") for note in recording.notes)
    write_bag(tmp_path / "unknown", [row(0), torque(np.ones(ROBOT.nu)), row(1)]).close()
    with pytest.warns(IncompleteWarning):
        recording = load_recording(tmp_path / "unknown")
    assert np.isnan(recording.joint_command).all()
    assert any(note.startswith(f"{TORQUE}: 1 of 1 messages left out") for note in recording.notes)


@pytest.mark.parametrize(
    ("offset_ms", "by_sending"),
    [pytest.param(0.0, True, id="one clock"), pytest.param(-30.0, False, id="a clock that is late")],
)
@pytest.mark.parametrize("rows", [7, 8192])
def test_messages_that_overtake_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset_ms: float, by_sending: bool, rows: int
) -> None:
    """The recorder receives some commands before the joint states that they answer, or after the next ones.

    The order of sending tells the truth, unless the controller's clock is another one.
    """
    rng, n = np.random.default_rng(3), 60
    sent: list[tuple[float, float, Message]] = []
    for k in range(n):
        at = 1e3 * PERIOD * k
        sent.append((at, at + rng.uniform(0.1, 0.5), row(k)))
        late = rng.choice([0.2, 9.5], p=[0.8, 0.2])
        sent.append((at + 1.0 + offset_ms, at + 1.0 + late, torque(np.full(ROBOT.nu, float(k)))))
    bag = BagWriter(tmp_path / "bag", {"robot": ROBOT.name})
    channels = {name: bag.add_topic(topic(name, kind)) for _, _, (name, kind, _) in sent[:2]}
    for at, received, (name, _, data) in sorted(sent, key=lambda message: message[1]):
        bag.add_message(channels[name], T0 + round(1e6 * received), T0 + round(1e6 * at), data)
    bag.flush()
    bag.close()
    monkeypatch.setattr(segments, "ROWS", rows)
    found = load_recording(tmp_path / "bag").in_order(ROBOT.joint_names).joint_command[1:, 0]
    right = found == np.arange(n - 1.0)
    assert right.all() == by_sending
    assert right.mean() > 0.7


def test_without_times_of_sending_those_of_reception_count(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag", {"robot": ROBOT.name})
    channels = {name: bag.add_topic(topic(name, kind)) for name, kind, _ in (row(0), torque([0.0]))}
    for k in range(40):
        for at, message in ((10.0 * k, row(k)), (10.0 * k + 1.0, torque(np.full(ROBOT.nu, float(k))))):
            bag.add_message(channels[message[0]], T0 + round(1e6 * at), 0, message[2])
    bag.flush()
    bag.close()
    found = load_recording(tmp_path / "bag").in_order(ROBOT.joint_names).joint_command[1:, 0]
    np.testing.assert_array_equal(found, np.arange(39.0))


def test_slow_joint_states_have_commands_too(tmp_path: Path) -> None:
    states = [(ROW, row(0)[1], joint_state(round(1e8 * k), NAMES, *np.zeros((3, len(NAMES))))) for k in range(8)]
    messages = [part for k, state in enumerate(states) for part in (state, torque(np.full(ROBOT.nu, float(k))))]
    np.testing.assert_array_equal(read(tmp_path / "bag", messages).joint_command[1:, 0], np.arange(7.0))


@pytest.mark.parametrize(
    ("blocks", "unfit"),
    [
        (("position", " velocity", " effort", "stiffness ", "damping"), 0),
        ((), 0),
        (("position", "velocity", "effort", "stiffness", "damp"), 1),
        (("position", "velocity", "effort", "position", "damping"), 1),
    ],
)
def test_blocks_have_names_as_for_the_simulator(tmp_path: Path, blocks: tuple[str, ...], unfit: int) -> None:
    """The judge is the reader of the simulator, which accepts or refuses the same message."""
    from bipedsim_ros.wire.joint_commands import ImpedanceReader

    values = np.arange(5.0 * ROBOT.nu)
    message = impedance(blocks, values)
    setpoint = np.zeros((6, ROBOT.nu))
    setpoint[5] = ROBOT.effort_limit
    assert (ImpedanceReader(ROBOT.joint_names).read(message[2], setpoint) is None) == (not unfit)
    recording = read(tmp_path / "bag", [row(0), message, row(1)])
    assert sum(note.startswith(f"{IMPEDANCE}: 1 of 1 messages left out") for note in recording.notes) == unfit
    if not unfit:
        np.testing.assert_array_equal(recording.setpoint[1], setpoint.T)


def test_a_message_that_a_drive_refuses_leaves_the_one_before(tmp_path: Path) -> None:
    sound, broken, negative = np.ones(5 * ROBOT.nu), np.ones(5 * ROBOT.nu), np.ones(5 * ROBOT.nu)
    broken[3], negative[4 * ROBOT.nu] = np.nan, -1.0
    other = list(BLOCKS[::-1])
    messages = [
        impedance(BLOCKS, sound),
        row(1),
        impedance(BLOCKS, broken),
        row(2),
        impedance(BLOCKS, negative),
        row(3),
    ]
    recording = read(tmp_path / "bag", [row(0), *messages, impedance(tuple(other), 2.0 * sound), row(4)])
    np.testing.assert_array_equal(recording.setpoint[1:4, :, :5], 1.0)
    assert any(note.startswith(f"{IMPEDANCE}: 1 of 4 messages left out: they name damping") for note in recording.notes)


def test_a_command_long_before_the_first_row_does_not_act(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag", {"robot": ROBOT.name})
    channels = {name: bag.add_topic(topic(name, kind)) for name, kind, _ in (row(0), torque([0.0]))}
    times = [(0.0, torque(np.ones(ROBOT.nu))), *((10_000.0 + 10.0 * k, row(k)) for k in range(5))]
    for at, message in times:
        bag.add_message(channels[message[0]], T0 + round(1e6 * at), T0 + round(1e6 * at), message[2])
    bag.flush()
    bag.close()
    assert np.isnan(load_recording(tmp_path / "bag").joint_command).all()


def test_what_the_drives_report_is_not_replaced_without_a_run(tmp_path: Path) -> None:
    reported = ("/sim_node/command", "sensor_msgs/msg/JointState")
    states = [
        (*reported, joint_state(round(1e9 * PERIOD * k), NAMES, [], [], np.full(len(NAMES), 7.0))) for k in range(3)
    ]
    sent = [torque(np.ones(ROBOT.nu)), row(1), torque(np.ones(ROBOT.nu)), row(2)]
    recording = read(tmp_path / "bag", [row(0), states[0], *sent, *states[1:]])
    np.testing.assert_array_equal(recording.joint_command, 7.0)


def test_another_type_on_the_topic_of_commands_is_noted(tmp_path: Path) -> None:
    other = (TORQUE, "std_msgs/msg/String", serialise("std_msgs/msg/String", data="go"))
    recording = read(tmp_path / "bag", [row(0), other, row(1)])
    assert np.isnan(recording.joint_command).all()
    assert any(TORQUE in note for note in recording.notes)
