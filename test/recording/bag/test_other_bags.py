"""Bags of other robots: names, stamps and joints that are not ours."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from other_bag_support import IMU, JOINTS, WRENCH, write_messages
from recording_support import NS, header, joint_state, labelled, serialise, wrench, write_bag
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.errors import ConfigError, IncompleteWarning, RecordingError, UnknownNameError
from bipedsim.model import load_robot
from bipedsim.numerics import Array, Integers
from bipedsim.recording import load_recording, read_blocks
from bipedsim.recording.bag import nearest, segments
from bipedsim.recording.bag.nearest import NearestStamps
from bipedsim.recording.bag.reader import Bag

MS = NS // 1000
TORQUES = "/effort_controller/commands"
BIPED = load_robot("biped14")
Messages = list[tuple[int, str, str, bytes]]


def states(stamps: Integers, topic: str = "/joint_states", names: tuple[str, ...] = ("knee",)) -> Messages:
    """Return joint states in which each position is the stamp in seconds, plus the index of its joint."""
    zeros = np.zeros(len(names))
    return [
        (int(t), topic, JOINTS, joint_state(int(t), list(names), np.arange(len(names)) + t / NS, zeros, zeros))
        for t in stamps
    ]


def imu(stamps: Integers, topic: str = "/imu/data") -> Messages:
    """Return messages of an IMU whose angular velocity about x is the stamp in seconds."""
    return [
        (int(t), topic, IMU, serialise(IMU, header=header(int(t)), angular_velocity={"x": t / NS, "y": 0.0, "z": 0.0}))
        for t in stamps
    ]


def forces(stamps: Integers, topic: str = "/left_foot_ft/wrench") -> Messages:
    return [(int(t), topic, WRENCH, wrench(int(t), [t / NS, 0, 0, 0, 0, 0])) for t in stamps]


GRID = np.arange(400) * MS
"""Stamps of joint states, 1000 a second [ns]."""


def measured(path: Path, messages: Messages) -> Array:
    """Return the angular velocity (n,) about x of each row."""
    return np.asarray(load_recording(write_messages(path, messages)).imu_angular_velocity[:, 0])


# Names


def test_renamed_topics_are_read_as_if_they_had_these_names(tmp_path: Path) -> None:
    ours = [*states(GRID), *imu(GRID), *forces(GRID)]
    names = {"/joint_states": "/r1/joint_states", "/imu/data": "/r1/imu", "/left_foot_ft/wrench": "/ankle/ft"}
    theirs = [(t, names[topic], kind, data) for t, topic, kind, data in ours]
    own = load_recording(write_messages(tmp_path / "own", ours))
    remap = {"/r1/*": "/*", "/r1/imu": "/imu/data", "/ankle/ft": "/left_foot_ft/wrench"}
    other = write_messages(tmp_path / "other", theirs)
    blocks = [rows for _, rows in read_blocks(other, remap=remap)]
    for read in (load_recording(other, remap=remap), blocks[0]):
        assert read.feet == own.feet == ("left",)
        for name in ("t", "joint_position", "imu_angular_velocity", "ankle_wrench"):
            np.testing.assert_array_equal(getattr(read, name), getattr(own, name))
    assert len(blocks) == 1


def test_an_entry_of_a_topic_counts_before_the_first_entry_with_an_asterisk(tmp_path: Path) -> None:
    path = write_messages(tmp_path / "bag", [*states(GRID, "/a/b/x"), *imu(GRID, "/a/c/y"), *imu(GRID, "/d/x")])
    bag = Bag(path, {"/a/b/*": "/joint_*", "/a/*": "/second/*", "/a/c/y": "/exact"})
    assert set(bag.types) == {"/joint_x", "/exact", "/d/x"}
    assert bag.expected("/exact") == len(GRID) == len(bag.messages["/exact"])


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("old", ["/imuu", "/robot2/*"])
def test_a_name_that_the_bag_does_not_have_is_an_error(old: str, finished: bool, tmp_path: Path) -> None:
    new = "/imu/*" if old.endswith("*") else "/imu/data"
    messages = [(topic, kind, data) for _, topic, kind, data in [*states(GRID), *imu(GRID[::2], "/imu")]]
    writer = write_bag(tmp_path / "bag", messages)
    (writer.close if finished else writer.release)()
    topics = ("/imu (sensor_msgs/msg/Imu, 200)", "/joint_states (sensor_msgs/msg/JointState, 400)")
    with refusal(UnknownNameError, place=f"{tmp_path / 'bag'}: remap", name=old, choices=topics):
        load_recording(tmp_path / "bag", remap={old: new})


def test_a_finished_bag_is_checked_before_it_is_read(tmp_path: Path) -> None:
    path = write_messages(tmp_path / "bag", states(GRID))
    with refusal(UnknownNameError, name="/imu"):
        Bag(path, {"/imu": "/imu/data"})


def test_two_topics_of_one_name_are_an_error(tmp_path: Path) -> None:
    path = write_messages(tmp_path / "bag", [*states(GRID), *states(GRID, "/r1/joint_states")])
    with refusal(ConfigError, place=f"{path}: remap", value=["/joint_states", "/r1/joint_states"]):
        Bag(path, {"/r1/*": "/*"})
    assert set(Bag(path, {"/r1/*": "/*", "/joint_states": "/unused"}).types) == {"/joint_states", "/unused"}


@pytest.mark.parametrize("remap", [{"imu": "/imu/data"}, {"/imu": "imu"}, {"/imu*": "/imu"}, {"/*/imu": "/imu/*"}])
def test_names_begin_with_a_slash_and_both_or_none_end_with_an_asterisk(remap: dict[str, str], tmp_path: Path) -> None:
    path = write_messages(tmp_path / "bag", states(GRID))
    with refusal(ConfigError, place="remap"):
        Bag(path, remap)


def test_a_topic_without_the_numbers_of_its_new_name_is_an_error(tmp_path: Path) -> None:
    path = write_messages(tmp_path / "bag", [*states(GRID), *imu(GRID, "/imu")])
    with refusal(RecordingError, place=f"{path}: /left_foot_ft/wrench", value=IMU):
        load_recording(path, remap={"/imu": "/left_foot_ft/wrench"})


def test_sensors_without_a_known_name_are_named_once_a_user_renames_topics(tmp_path: Path) -> None:
    messages = [*states(GRID), *imu(GRID, "/chest"), *imu(GRID, "/imu"), *forces(GRID, "/wrist")]
    messages.append((0, "/text", "std_msgs/msg/String", serialise("std_msgs/msg/String", data="hello")))
    path = write_messages(tmp_path / "bag", messages)
    notes = load_recording(path, remap={"/imu": "/imu/data"}).notes
    assert [[name in note for name in ("/chest", "/imu", "/wrist", "/text")] for note in notes if "/wrist" in note] == [
        [True, False, True, False]
    ]
    assert not any("/wrist" in note for note in load_recording(path).notes)


def test_commands_and_feet_without_a_known_name_are_named(tmp_path: Path) -> None:
    numbers = "std_msgs/msg/Float64MultiArray"
    messages = [*states(GRID), *forces(GRID, "/l"), *forces(GRID, "/r")]
    messages.append((0, "/cmd", numbers, labelled([], [1.0])))
    path = write_messages(tmp_path / "bag", messages)
    remap = {"/l": "/left_foot_ft/wrench", "/r": "/rigth_foot_ft/wrench"}
    notes = load_recording(path, remap=remap, robot="biped14").notes
    assert [("/cmd" in note, "rigth" in note) for note in notes if "/cmd" in note or "rigth" in note] == [
        (True, False),
        (False, True),
    ]


def test_a_table_has_no_topics_to_rename(tmp_path: Path) -> None:
    load_recording(write_messages(tmp_path / "bag", states(GRID))).save(tmp_path / "run.npz")
    with refusal(RecordingError, place=str(tmp_path / "run.npz")):
        load_recording(tmp_path / "run.npz", remap={"/imu": "/imu/data"})


@pytest.mark.parametrize("topic", ["/arm/state", "/r1/joint_states"])
def test_the_error_about_absent_joint_states_has_the_command_that_reads_them(
    topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_messages(tmp_path / "bag of July", states(GRID, topic))
    with refusal(RecordingError, place=f"{path}: /joint_states") as caught:
        load_recording(path)
    command = str(caught.value).partition("bipedsim ")[2]
    assert main(shlex.split(command)) == 0
    np.testing.assert_array_equal(load_recording("run.npz").joint_position[:, 0], GRID / NS)


# Stamps


def expected_values(rows: Integers, stamps: Integers, window: float) -> Array:
    """Return the nearest stamp [s] of each row by comparing all; NaN if it is farther than the window [ns]."""
    distance = np.abs(rows[:, None] - stamps)
    values = stamps[np.argmin(distance, axis=1)] / NS
    return np.where(distance.min(axis=1) <= window, values, np.nan)


@pytest.mark.parametrize("rows", [segments.ROWS, 7])
@pytest.mark.parametrize(
    ("rate", "begin", "jitter"), [(1000, 0.3, 0.3), (500, 3.2, 0.4), (200, 1.1, 1.0), (2500, 0.13, 0.05)]
)
def test_each_row_has_the_message_with_the_nearest_stamp(
    rate: int, begin: float, jitter: float, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "ROWS", rows)
    n = int(0.3 * rate)
    late = np.random.default_rng(rate).uniform(0.0, jitter, n)
    stamps = np.rint(MS * (begin + late + np.arange(n) * 1000.0 / rate)).astype(np.int64)
    found = measured(tmp_path / "bag", [*states(GRID), *imu(stamps)])
    period = max(MS, NS / rate)
    inside = (stamps[0] <= GRID) & (stamps[-1] >= GRID)
    np.testing.assert_array_equal(found[inside], expected_values(GRID, stamps, np.inf)[inside])
    far = np.abs(GRID[:, None] - stamps).min(axis=1) > 0.8 * period
    assert far.any()
    assert np.isnan(found[far]).all()
    notes = [note for note in load_recording(tmp_path / "bag").notes if "/imu/data" in note]
    largest = np.abs(GRID / NS - found)[np.isfinite(found)].max()
    assert len(notes) == 1
    assert f"at most {1e3 * largest:.3g} ms away" in notes[0]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 10_000), min_size=2, max_size=40, unique=True),
    st.lists(st.integers(0, 10_000), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_no_message_is_nearer_than_the_one_of_a_row(rows: list[int], stamps: list[int], random: object) -> None:
    random.shuffle(stamps)  # type: ignore[attr-defined]
    at, stamp = np.sort(np.array(rows)), np.array(stamps)
    search = NearestStamps()
    window = search.window("/x", stamp, at, held=True)
    if window is None:
        return
    found, messages = search.assign("/x", stamp, at)
    distance = np.abs(at[:, None] - stamp)
    assert found.tolist() == np.flatnonzero(distance.min(axis=1) <= window).tolist()
    np.testing.assert_array_equal(distance[found, messages], distance.min(axis=1)[found])


def test_a_lost_message_stays_empty_if_the_stamps_are_those_of_the_joint_states(tmp_path: Path) -> None:
    kept = np.delete(GRID, [50, 51, 120, 399])
    found = measured(tmp_path / "bag", [*states(GRID), *imu(kept)])
    np.testing.assert_array_equal(found, np.where(np.isin(GRID, kept), GRID / NS, np.nan))


def test_a_lost_message_stays_empty_with_other_stamps(tmp_path: Path) -> None:
    kept = np.delete(GRID + MS // 10, [50, 51, 120])
    found = measured(tmp_path / "bag", [*states(GRID), *imu(kept)])
    assert np.flatnonzero(np.isnan(found)).tolist() == [50, 51, 120]


@pytest.mark.parametrize("late", [0, MS // 5])
def test_a_slow_sensor_is_held_and_a_slow_estimate_is_not(late: int, tmp_path: Path) -> None:
    """Both have a message for every fourth row. An estimate answers its row."""
    kind = "nav_msgs/msg/Odometry"
    estimates = [
        (int(t), "/odom", kind, serialise(kind, header=header(int(t)), child_frame_id="base_link"))
        for t in GRID[::4] + late
    ]
    recording = load_recording(write_messages(tmp_path / "bag", [*states(GRID), *imu(GRID[::4]), *estimates]))
    assert np.flatnonzero(np.isfinite(recording.odometry[:, 0])).tolist() == list(range(0, 400, 4))
    found = recording.imu_angular_velocity[:, 0]
    np.testing.assert_array_equal(found[::4], GRID[::4] / NS)
    np.testing.assert_allclose(found[:-3], GRID[:-3] / NS, atol=2e-3)
    assert np.isfinite(found[:-1]).all()


def test_a_sensor_that_starts_late_is_empty_before(tmp_path: Path) -> None:
    found = measured(tmp_path / "bag", [*states(GRID), *imu(GRID[200:] + MS // 3)])
    assert np.isnan(found[:200]).all()
    np.testing.assert_array_equal(found[200:], (GRID[200:] + MS // 3) / NS)


def test_a_sensor_with_another_clock_is_reported(tmp_path: Path) -> None:
    stamped = [(t, topic, kind, data) for t, topic, kind, data in imu(GRID + 50 * NS)]
    messages = [*states(GRID), *((t - 50 * NS, topic, kind, data) for t, topic, kind, data in stamped)]
    path = write_messages(tmp_path / "bag", messages)
    with pytest.warns(IncompleteWarning):
        recording = load_recording(path)
    assert np.isnan(recording.imu_angular_velocity).all()
    assert sum("/imu/data" in note for note in recording.notes) == 1


def test_resets_divide_messages_with_other_stamps_too(tmp_path: Path) -> None:
    first = [*states(GRID), *imu(GRID + MS // 5)]
    second = [(t + NS, topic, kind, data) for t, topic, kind, data in [*states(GRID[:100]), *imu(GRID[:100] + MS // 4)]]
    path = write_messages(tmp_path / "bag", [*first, *second])
    for segment, stretch, late in ((0, GRID, MS // 5), (1, GRID[:100], MS // 4)):
        found = load_recording(path, segment).imu_angular_velocity[:, 0]
        np.testing.assert_array_equal(found, (stretch + late) / NS)


# Joints and commands

OTHER = (*reversed(BIPED.joint_names), "elbow")
"""Joints of another robot, which has those of biped14 and one more."""


def test_an_export_with_a_robot_keeps_all_joints_and_says_which_are_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_messages(tmp_path / "bag", states(GRID, names=OTHER))
    for suffix in (".npz", ".csv"):
        output = tmp_path / f"run{suffix}"
        assert main(["export", str(path), "--robot", "biped14", "-o", str(output)]) == 0
        ordered = load_recording(output, robot="biped14").in_order(BIPED.joint_names)
        index = [OTHER.index(name) for name in BIPED.joint_names]
        np.testing.assert_array_equal(ordered.joint_position, np.array(index) + GRID[:, None] / NS)
        shown = capsys.readouterr().out
        assert suffix == ".csv" or "not used: elbow" in shown
    recording = load_recording(tmp_path / "run.npz")
    assert (recording.robot, recording.robot_source) == ("biped14", "biped14")
    assert recording.weight == BIPED.weight
    assert main(["export", str(path), "-o", str(tmp_path / "run.npz")]) == 2, "a recording is not overwritten"


def test_a_joint_that_the_bag_does_not_have_is_an_error_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_messages(tmp_path / "bag", states(GRID, names=OTHER[2:]))
    assert main(["export", str(path), "--robot", "biped14", "-o", str(tmp_path / "run.npz")]) == 2
    assert all(name in capsys.readouterr().err for name in OTHER[:1])
    assert not (tmp_path / "run.npz").exists()
    with refusal(RecordingError, place=f"joints {OTHER[1]}, {OTHER[0]}"):
        load_recording(path).in_order(BIPED.joint_names)


def test_a_robot_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    path = write_messages(tmp_path / "bag", states(GRID))
    load_recording(path).save(tmp_path / "run.npz")
    for recording in (path, tmp_path / "run.npz"):
        with refusal(ConfigError):
            load_recording(recording, robot="no_such_robot")


@pytest.mark.parametrize("named", [True, False])
def test_torque_commands_belong_to_the_joint_of_their_name_or_else_of_their_position(
    named: bool, tmp_path: Path
) -> None:
    """A command is in force from the next row on, with its joint's number."""
    order = tuple(reversed(OTHER)) if named else BIPED.joint_names
    numbers = [float(BIPED.joint_names.index(name)) if name in BIPED.joint_names else 99.0 for name in order]
    messages = states(GRID, names=OTHER)
    for t in GRID:
        data = (
            joint_state(int(t), list(order), [], [], np.array(numbers) + t / MS)
            if named
            else labelled((), (np.array(numbers) + t / MS).tolist())
        )
        messages.append((int(t) + MS // 2, "/cmd", JOINTS if named else "std_msgs/msg/Float64MultiArray", data))
    path = write_messages(tmp_path / "bag", messages)
    recording = load_recording(path, remap={"/cmd": TORQUES}, robot="biped14")
    found = recording.in_order(BIPED.joint_names).joint_command
    np.testing.assert_array_equal(found[1:], np.arange(BIPED.nu) + GRID[:-1, None] / MS)
    assert any(TORQUES in note for note in recording.notes) != named, "the order of numbers without names is reported"


def test_commands_without_a_joint_of_the_robot_are_left_out_and_counted(tmp_path: Path) -> None:
    messages = states(GRID, names=OTHER)
    order = list(BIPED.joint_names[1:])
    messages += [(int(t) + 1, "/cmd", JOINTS, joint_state(int(t), order, [], [], np.ones(len(order)))) for t in GRID]
    path = write_messages(tmp_path / "bag", messages)
    with pytest.warns(IncompleteWarning):
        recording = load_recording(path, remap={"/cmd": TORQUES}, robot="biped14")
    assert np.isnan(recording.joint_command).all()
    assert any(TORQUES in note and f"{len(GRID)}" in note for note in recording.notes)


def test_reported_commands_are_matched_by_the_names_of_their_joints(tmp_path: Path) -> None:
    names = ("knee", "hip", "ankle")
    reported = [
        (int(t), "/applied", JOINTS, joint_state(int(t), ["ankle", "spare", "knee"], [], [], [3.0, 4.0, 1.0]))
        for t in GRID
    ]
    path = write_messages(tmp_path / "bag", [*states(GRID, names=names), *reported])
    recording = load_recording(path, remap={"/applied": "/sim_node/command"})
    np.testing.assert_array_equal(recording.joint_command, np.tile([1.0, np.nan, 3.0], (len(GRID), 1)))


@pytest.mark.parametrize("texts", [["/imu"], ["imu:=/imu/data"], ["/imu:=x"], ["/a:=/b", "/a:=/c"]])
def test_the_option_takes_pairs_of_topics(texts: list[str], tmp_path: Path) -> None:
    path = write_messages(tmp_path / "bag", states(GRID))
    assert main(["export", str(path), "-o", str(tmp_path / "run.npz"), "--remap", *texts]) == 2
    assert not (tmp_path / "run.npz").exists()


@pytest.mark.parametrize("stop", [[], ["--to", "0.1"]])
def test_the_notes_of_a_bag_are_printed_by_each_export(
    stop: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "ROWS", 50)
    path = write_messages(tmp_path / "bag", [*states(GRID), *imu(GRID + MS // 5)])
    for name in ("run.npz", "run.csv"):
        assert main(["export", str(path), "-o", str(tmp_path / name), *stop]) == 0
        assert nearest.JOINT_STATES in capsys.readouterr().out
