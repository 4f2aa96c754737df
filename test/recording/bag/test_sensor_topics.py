"""Additional IMUs and contact switches in a bag: which topic is which sensor, and the row of each message."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording_support import header, joint_state, serialise, topic

from bipedsim.recording import Recording, load_recording
from bipedsim.recording.bag import BagWriter, segments
from bipedsim.recording.schema import JOINT_STATES, SENSORS, USER_TOPICS

JOINTS, IMU, BOOL = "sensor_msgs/msg/JointState", "sensor_msgs/msg/Imu", "std_msgs/msg/Bool"
MS, US, SECOND = 1_000_000, 1000, 1_000_000_000
START = 1_700_000_000 * SECOND
ROWS = 40
SWITCH = "/left_switch/closed"


def state(i: int) -> tuple[str, str, bytes]:
    return JOINT_STATES, JOINTS, joint_state(i * MS, ["hip"], [i], [0.0], [0.0])


def switch(closed: bool, name: str = SWITCH) -> tuple[str, str, bytes]:
    return name, BOOL, serialise(BOOL, data=closed)


def imu(i: int, name: str) -> tuple[str, str, bytes]:
    xyzw = dict(zip("xyzw", (0.0, 0.6, 0.0, 0.8), strict=True))
    spin, force = ({axis: float(k + i) for k, axis in enumerate("xyz")} for i in (i, 10 * i))
    fields: dict[str, Any] = {"orientation": xyzw, "angular_velocity": spin, "linear_acceleration": force}
    return name, IMU, serialise(IMU, header=header(i * MS), **fields)


def recorded(
    path: Path,
    messages: list[tuple[int, int, tuple[str, str, bytes]]],
    custom: dict[str, str] | None = None,
    alone: bool = False,
    machines: dict[str, str] | None = None,
) -> Recording:
    """Return the recording of a bag of messages, each with its times of reception and of sending [ns].

    With ``alone``, each message is read on its own. ``machines`` are those of the publishers of each topic.
    """
    bag = BagWriter(path, custom or {})
    channels: dict[str, int] = {}
    for arrived, sent, (name, kind, data) in sorted(messages, key=lambda each: each[0]):
        if name not in channels:
            channels[name] = bag.add_topic(replace(topic(name, kind), machine=(machines or {}).get(name, "")))
        bag.add_message(channels[name], START + arrived, START + sent, data)
        if alone:
            bag.flush()
    bag.close()
    return load_recording(path)


def closed_in(i: int) -> bool:
    """Return a state that no shift by a row leaves unchanged."""
    return (i * i // 3) % 2 == 0


EXPECTED = [float(closed_in(i)) for i in range(ROWS)]


def run_of(late: int, clock: int = 0, first: int = 0, begin: int = 0) -> list[tuple[int, int, tuple[str, str, bytes]]]:
    """Return a run with a switch before the joint states of each row.

    Args:
        late: Time from the reception of joint states to that of their switch [ns].
        clock: What the clock of the switch's publisher is ahead [ns].
        first: First row. begin: Time of its joint states [ns].
    """
    messages = []
    for i in range(first, ROWS):
        at = begin + (i - first) * MS
        messages.append((at + 60 * US, at, state(i)))
        messages.append((at + 60 * US + late, at - 20 * US + clock, switch(closed_in(i))))
    return messages


@pytest.mark.parametrize("rows", [7, 1 << 13])
@pytest.mark.parametrize("late", [-15 * US, 0, 40 * US])
def test_a_switch_belongs_to_the_joint_states_that_are_sent_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int, rows: int
) -> None:
    """Also if both are received in the other order, and at the end of a block of rows."""
    monkeypatch.setattr(segments, "ROWS", rows)
    run = recorded(tmp_path / "bag", run_of(late))
    assert run.switch_names == ("left_switch",)
    assert run.contact_switches[:, 0].tolist() == EXPECTED


@pytest.mark.parametrize("clock", [-SECOND, 3 * MS, 60 * SECOND])
def test_of_a_publisher_with_another_clock_the_reception_counts(tmp_path: Path, clock: int) -> None:
    run = recorded(tmp_path / "bag", run_of(-15 * US, clock))
    assert run.contact_switches[:, 0].tolist() == EXPECTED


def test_a_busy_machine_has_no_other_clock(tmp_path: Path) -> None:
    """Most switches are received long after their joint states: their latencies differ, the clocks do not."""
    messages = run_of(-15 * US)
    for n in range(1, len(messages), 2):
        arrived, sent, message = messages[n]
        messages[n] = arrived + (2 * MS if n % 7 else 0), sent, message
    assert recorded(tmp_path / "bag", messages).contact_switches[:, 0].tolist() == EXPECTED


@pytest.mark.parametrize("machines", [{JOINT_STATES: "a", SWITCH: "a"}, {JOINT_STATES: "a", SWITCH: "b"}])
def test_publishers_on_one_machine_have_one_clock(tmp_path: Path, machines: dict[str, str]) -> None:
    """Every switch is received late. On one machine the recorder was busy; on two, the clocks differ."""
    one = len({*machines.values()}) == 1
    messages = run_of(3 * MS) if one else run_of(-15 * US, clock=-3 * MS)
    assert recorded(tmp_path / "bag", messages, machines=machines).contact_switches[:, 0].tolist() == EXPECTED


def test_the_first_switch_after_a_reset_is_in_the_first_row(tmp_path: Path) -> None:
    """It is received before the joint states with which time jumps back."""
    before, after = run_of(-15 * US), run_of(-15 * US, begin=SECOND)
    run = recorded(tmp_path / "bag", [*before, *after])
    assert len(run) == ROWS
    assert run.contact_switches[:, 0].tolist() == EXPECTED
    assert load_recording(tmp_path / "bag", segment=0).contact_switches[:, 0].tolist() == EXPECTED


@pytest.mark.parametrize("gap", [segments.NEAR_NS // 3, segments.NEAR_NS + 20 * US, 2 * segments.NEAR_NS])
def test_rows_far_apart_in_a_bag_keep_their_switches(tmp_path: Path, gap: int) -> None:
    """At the second gap, joint states are assigned to a segment just before their switch is received."""
    messages = []
    for i in range(ROWS):
        messages += [(i * gap + 60 * US, i * gap, state(i))]
        messages += [(i * gap + 100 * US, i * gap - 20 * US, switch(closed_in(i)))]
    run = recorded(tmp_path / "bag", messages, alone=True)
    assert run.contact_switches[:, 0].tolist() == EXPECTED


def test_a_row_without_a_message_has_no_value(tmp_path: Path) -> None:
    lost = [entry for n, entry in enumerate(run_of(-15 * US)) if n != 2 * 5 + 1]
    closed = recorded(tmp_path / "bag", lost).contact_switches[:, 0]
    assert np.flatnonzero(np.isnan(closed)).tolist() == [5]
    assert np.delete(closed, 5).tolist() == EXPECTED[:5] + EXPECTED[6:]


def test_a_state_that_is_repeated_at_the_start_has_one_row(tmp_path: Path) -> None:
    again = [(at - SECOND, sent - SECOND, message) for at, sent, message in run_of(-15 * US)[:2]]
    assert recorded(tmp_path / "bag", [*again, *run_of(-15 * US)]).contact_switches[:, 0].tolist() == EXPECTED


def test_imus_are_found_by_their_stamps(tmp_path: Path) -> None:
    messages = run_of(-15 * US)
    for i in range(ROWS):
        at = (ROWS - i) * MS
        messages += [(at, at, imu(i, "/shank/data")), (at, at, imu(2 * i, "/imu/data"))]
    run = recorded(tmp_path / "bag", messages)
    assert run.imu_names == ("shank",)
    expected = [[0.0, 0.6, 0.0, 0.8, i, i + 1, i + 2, 10 * i, 10 * i + 1, 10 * i + 2] for i in range(ROWS)]
    np.testing.assert_array_equal(run.imus[:, 0], expected)
    np.testing.assert_array_equal(run.imu_angular_velocity[::2, 0], np.arange(0, ROWS, 2))


def test_the_recorder_knows_names_and_order(tmp_path: Path) -> None:
    names = {"second": "/one/data", "switch": "/toe", "first": "/a/b/c", "absent": "/absent/data"}
    messages = run_of(-15 * US)
    messages += [(0, 0, each) for each in (imu(0, "/one/data"), imu(3, "/a/b/c"), switch(True, "/toe"))]
    messages.append((0, 0, imu(0, "/of_somebody/data")))
    run = recorded(tmp_path / "bag", messages, {SENSORS: json.dumps(names)})
    assert (run.imu_names, run.switch_names) == (("second", "first"), ("switch",))
    assert run.imus[3, 1, 4] == 3.0


@pytest.mark.parametrize("foreign", ["[1]", "3", "null", "{", '{"a": 5}', "[" * 100_000])
def test_foreign_names_are_noted_and_the_default_names_used(tmp_path: Path, foreign: str) -> None:
    run = recorded(tmp_path / "bag", run_of(-15 * US), {SENSORS: foreign})
    assert run.switch_names == ("left_switch",)
    assert run.contact_switches[:, 0].tolist() == EXPECTED
    valid = recorded(tmp_path / "valid", run_of(-15 * US), {SENSORS: "{}"})
    assert valid.switch_names == ()
    assert len(run.notes) == len(valid.notes) + 1


def test_topics_of_ones_own_nodes_stay_readouts(tmp_path: Path) -> None:
    messages = run_of(-15 * US)
    messages += [(at, at, switch(True, "/mine/closed")) for at in range(0, ROWS * MS, MS)]
    run = recorded(tmp_path / "bag", messages, {USER_TOPICS: "/mine/closed"})
    assert run.switch_names == ("left_switch",)
    assert "/mine/closed" in run.readouts


def test_columns_that_are_not_read_take_no_memory(tmp_path: Path) -> None:
    recorded(tmp_path / "bag", run_of(-15 * US))
    from bipedsim.recording.bag import BagRows

    for _, rows in BagRows(tmp_path / "bag", ["joint_position"]):
        assert (rows.switch_names, rows.contact_switches.size) == ((), 0)
