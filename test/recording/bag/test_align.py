"""Recordings out of bags: topics put together by their stamps, resets, and the robot that a bag names."""

from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from recording_support import STORE, T0, contact, header, joint_state, point, serialise, topic, wrench, write_bag
from refusals import refusal

from bipedsim.analysis import RunSummary, controller_figures, gather
from bipedsim.cli.main import main
from bipedsim.config import ParameterChange
from bipedsim.errors import EXIT_INCOMPLETE, IncompleteWarning, RecordingError
from bipedsim.model import load_robot
from bipedsim.recording import COLUMNS, joined, load_recording
from bipedsim.recording.bag import align, mcap, segments
from bipedsim.recording.bag.reader import Bag, BagWriter
from bipedsim.recording.schema import CHANGES, RUN
from bipedsim.sim.simulator import Simulator

WRENCH, JOINTS = "geometry_msgs/msg/WrenchStamped", "sensor_msgs/msg/JointState"
POINT, MULTI = "geometry_msgs/msg/PointStamped", "std_msgs/msg/Float64MultiArray"
MS = 1_000_000


def bag_messages(ticks: range, t0: int = 0, names: list[str] | None = None) -> list[tuple[str, str, bytes]]:
    """Return a simulator's topics for ``ticks``, the joint states in the middle as sim_node has them."""
    result = []
    for i in ticks:
        t = t0 + i * MS
        result += [
            ("/left_foot_ft/wrench", WRENCH, wrench(t, [0, 0, 10 * i, 0, 0, 0], "l_ankle")),
            ("/joint_states", JOINTS, joint_state(t, names or ["l_knee", "r_knee"], [i, -i], [0, 1], [2, 3])),
            ("/left_foot/wrench", WRENCH, wrench(t, [0, 0, i, 0, 0, 0])),
            ("/left_foot/cop", POINT, point(t, [i, np.nan, 0])),
            ("/left_foot/contact", MULTI, contact([t * 1e-9, 9, 15, 1, 0.06, 0.5, 4, 0, 0, 2.5, 0, 0, 0])),
            ("/cop", POINT, point(t, [0, i, 0])),
        ]
    return result


def test_topics_are_put_together_by_their_stamps(tmp_path: Path) -> None:
    messages = bag_messages(range(100))
    lost = messages.index(("/left_foot/wrench", WRENCH, wrench(40 * MS, [0, 0, 40, 0, 0, 0])))
    also_lost = messages.index(("/cop", POINT, point(60 * MS, [0, 60, 0])))
    write_bag(tmp_path / "bag", [m for i, m in enumerate(messages) if i not in (lost, also_lost)]).close()
    r = load_recording(tmp_path / "bag")
    np.testing.assert_allclose(r.t, np.arange(100) * 1e-3)
    np.testing.assert_array_equal(r.joint_position[:, 0], np.arange(100))
    np.testing.assert_array_equal(r.ankle_wrench[:, 0, 2], 10.0 * np.arange(100))
    present = np.delete(np.arange(100), 40)
    np.testing.assert_array_equal(r.wrench[present, 0, 2], present)
    assert np.isnan(r.wrench[40]).all()
    present = np.delete(np.arange(100), 60)
    np.testing.assert_array_equal(r.cop_world[present, 1], present)
    assert np.isnan(r.cop_world[60]).all()
    assert r.feet == ("left",)
    assert (r.mode == 9).all()
    assert (r.clamped == 15).all()
    assert r.sliding.all()
    np.testing.assert_array_equal(r.friction_used, 0.5)
    assert (r.n_vertices == 4).all()
    np.testing.assert_array_equal(r.impact[:, 0], np.tile([0.0, 0.0, 2.5, 0.0, 0.0, 0.0], (100, 1)))
    np.testing.assert_array_equal(r.cop[:, 0, 0], np.arange(100))
    assert np.isnan(r.cop[:, 0, 1]).all()


def test_a_topic_out_of_step_does_not_shift_the_others(tmp_path: Path) -> None:
    # The recorder matched the foot's topic 20 ticks after the joint states.
    messages = [m for m in bag_messages(range(50)) if not m[0].startswith("/left_foot/")]
    messages += [m for m in bag_messages(range(20, 50)) if m[0].startswith("/left_foot/")]
    write_bag(tmp_path / "bag", messages).release()
    r = load_recording(tmp_path / "bag")
    assert np.isnan(r.wrench[:20]).all()
    assert (r.mode[:20] == -1).all()
    np.testing.assert_array_equal(r.wrench[20:, 0, 2], np.arange(20, 50))
    assert "recovered 240 whole messages" in r.notes[0]


@pytest.mark.parametrize(("duration", "missing"), [(0.060, 11), (0.049, 0), (None, 0)])
def test_rows_that_are_missing_at_the_end_are_counted(tmp_path: Path, duration: float | None, missing: int) -> None:
    """The last joint states are of 0.049 s. The statistics of the simulator contain the duration."""

    def said(**values: object) -> tuple[str, str, bytes]:
        return RUN, "std_msgs/msg/String", serialise("std_msgs/msg/String", data=json.dumps(values))

    end = [] if duration is None else [said(statistics={"duration_s": duration})]
    write_bag(tmp_path / "bag", [said(control_dt=1e-3), *bag_messages(range(50)), *end]).close()
    recording = load_recording(tmp_path / "bag")
    counts = [tuple(map(int, re.findall(r"\d+", note))) for note in recording.notes if "rows are missing" in note]
    assert counts == ([(missing, 50 + missing)] if missing else [])


def test_a_reset_starts_another_stretch(tmp_path: Path) -> None:
    late = [m for m in bag_messages(range(60)) if m[0] != "/cop"]
    write_bag(tmp_path / "bag", [*late, *bag_messages(range(1, 31)), *bag_messages(range(11))]).close()
    last = load_recording(tmp_path / "bag")
    assert len(last) == 11
    assert "time jumps back 2 times (reset); this is the last of 3" in last.notes[0]
    first = load_recording(tmp_path / "bag", segment=0)
    assert len(first) == 60
    np.testing.assert_array_equal(first.wrench[:, 0, 2], np.arange(60))
    assert np.isnan(first.cop_world).all()
    middle = load_recording(tmp_path / "bag", segment=1)
    np.testing.assert_array_equal(middle.wrench[:, 0, 2], np.arange(1, 31))
    np.testing.assert_array_equal(middle.cop_world[:, 1], np.arange(1, 31))
    np.testing.assert_array_equal(load_recording(tmp_path / "bag", segment=-2).joint_position, middle.joint_position)
    with refusal(RecordingError, place=f"{tmp_path / 'bag'}: segment 3"):
        load_recording(tmp_path / "bag", segment=3)


def test_what_a_controller_tells_goes_to_the_row_that_it_answered(tmp_path: Path) -> None:
    """Debug signals and falls have no stamp. They belong to the last joint states before them, in the same segment."""
    messages: list[tuple[str, str, bytes]] = []
    for stretch, ticks in enumerate((range(30), range(20))):
        messages.append(("/fallen", "std_msgs/msg/Bool", serialise("std_msgs/msg/Bool", data=False)))
        for i in ticks:
            state = joint_state(i * MS, ["l_knee"], [i], [0], [0])
            # The state at t = 0 is repeated.
            messages += [("/joint_states", JOINTS, state)] * (3 if i == 0 else 1)
            if i % 10 == 5:
                value = serialise("std_msgs/msg/Float64", data=100.0 * stretch + i)
                messages.append(("/controller/zmp_margin", "std_msgs/msg/Float64", value))
                pose = {"pose": {"position": {"x": float(i)}}}
                kind, frame = "nav_msgs/msg/Odometry", "base_link"
                estimate = serialise(kind, header=header(i * MS), child_frame_id=frame, pose=pose)
                messages.append(("/odom", kind, estimate))
            if (stretch, i) == (1, 12):
                messages.append(("/fallen", "std_msgs/msg/Bool", serialise("std_msgs/msg/Bool", data=True)))
    write_bag(tmp_path / "bag", messages).close()
    for stretch, told in ((0, {5: 5.0, 15: 15.0, 25: 25.0}), (1, {5: 105.0, 15: 115.0})):
        r = load_recording(tmp_path / "bag", segment=stretch)
        margin = r.readouts["zmp_margin"]
        assert {i: margin[i] for i in np.flatnonzero(np.isfinite(margin))} == told
        assert np.flatnonzero(np.isfinite(r.odometry[:, 0])).tolist() == list(told)
        assert [r.odometry[i, 0] for i in told] == [float(i) for i in told]
    assert r.gave_up_at == pytest.approx(0.012)
    assert np.isnan(load_recording(tmp_path / "bag", segment=0).gave_up_at)


def diagnostics(**values: str) -> tuple[str, str, bytes]:
    """Return a message of the node of a controller."""
    pairs = [MESSAGES["KeyValue"](key=key, value=value) for key, value in values.items()]
    status = MESSAGES["DiagnosticStatus"](level=2, name="controller", message="", hardware_id="", values=pairs)
    kind = "diagnostic_msgs/msg/DiagnosticArray"
    return "/diagnostics", kind, serialise(kind, header=header(T0), status=[status])


MESSAGES = {name: STORE.types[f"diagnostic_msgs/msg/{name}"] for name in ("KeyValue", "DiagnosticStatus")}


@pytest.mark.parametrize("t0", [0, T0 + 123])
def test_why_and_when_a_controller_was_stopped_is_what_its_node_says(
    tmp_path: Path, t0: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """/fallen is late by some ticks. The stop before a reset, repeated once a second, belongs to its segment."""
    true = ("/fallen", "std_msgs/msg/Bool", serialise("std_msgs/msg/Bool", data=True))
    # The second is of an older version, which reports no kind.
    kinds: tuple[dict[str, str], ...] = ({"gave_up_kind": "tilted"}, {})
    stops = [
        diagnostics(updates="9", gave_up_at_s=str((t0 + at * MS) / 1e9), gave_up_why=f"it leans in {k}", **kinds[k])
        for k, at in enumerate((25, 12))
    ]
    messages: list[tuple[str, str, bytes]] = []
    for stretch, ticks in enumerate((range(30), range(20))):
        for i in ticks:
            state = joint_state(t0 + i * MS, ["l_knee"], [i], [0], [0])
            messages.append(("/joint_states", JOINTS, state))
            if (stretch, i) in ((0, 27), (1, 14)):
                messages += [stops[0], true, stops[stretch]]
    messages += [diagnostics(updates="9", gave_up_at_s="None", gave_up_why=""), diagnostics(updates="9")]
    write_bag(tmp_path / "bag", messages).close()
    for stretch, at in enumerate((25, 12)):
        r = load_recording(tmp_path / "bag", segment=stretch)
        assert (r.gave_up_at, r.gave_up_why) == (r.t[at], f"it leans in {stretch}")
        assert r.gave_up_kind == kinds[stretch].get("gave_up_kind")
    assert main(["summary", str(tmp_path / "bag")]) == 0
    assert "controller stopped at t = 0.012 s: it leans in 1" in capsys.readouterr().out


def test_a_bag_full_of_holes_says_how_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lost messages are reported. A fall during a gap does not get the time of a row long before it."""
    rows = [*range(20), *range(490, 505)]
    fallen = ("/fallen", "std_msgs/msg/Bool", serialise("std_msgs/msg/Bool", data=True))
    for name, falls, custom in (("hole", 250, {"lost": "9", "dropped": "1"}), ("end", 800, {"lost": "0"})):
        bag = BagWriter(tmp_path / name, {"robot": "twofoot", **custom})
        states, told = (bag.add_topic(topic(*of)) for of in (("/joint_states", JOINTS), fallen[:2]))
        for i in sorted([*rows, falls]):
            message = (told, fallen[2]) if i == falls else (states, joint_state(i * MS, ["l_knee"], [i], [0], [0]))
            bag.add_message(message[0], T0 + i * MS, T0 + i * MS, message[1], i)
        bag.close()
        assert main(["summary", str(tmp_path / name)]) == EXIT_INCOMPLETE
        out, err = capsys.readouterr()
        assert "note: 470 of 505 rows are missing" in out
        assert "470 of 505 rows are missing" in err
        assert ("9 lost and 1 dropped" in out) == (name == "hole")
        with pytest.warns(IncompleteWarning):
            assert load_recording(tmp_path / name).gave_up_at == pytest.approx(1e-3 * falls)


def test_what_arrives_with_its_joint_states_belongs_to_them(tmp_path: Path) -> None:
    """A recorder's clock may be coarse. After it was set back, its time stands still until it has caught up."""
    bag = BagWriter(tmp_path / "bag")
    number = "std_msgs/msg/Float64"
    joints, margin = bag.add_topic(topic("/joint_states", JOINTS)), bag.add_topic(topic("/controller/margin", number))
    for i in range(20):
        bag.add_message(joints, T0 + i, T0 + i, joint_state(i * MS, ["a"], [i], [0], [0]))
        bag.add_message(margin, T0 + i, T0 + i, serialise(number, data=float(i)))
    bag.close()
    np.testing.assert_array_equal(load_recording(tmp_path / "bag").readouts["margin"], np.arange(20.0))


def test_a_recorders_clock_that_is_set_back_moves_no_readout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the clock has caught up, unstamped messages do not belong to any of the earlier rows."""
    monkeypatch.setattr(mcap, "BLOCK", 1)
    bag = BagWriter(tmp_path / "bag")
    number = "std_msgs/msg/Float64"
    joints, margin = bag.add_topic(topic("/joint_states", JOINTS)), bag.add_topic(topic("/controller/margin", number))
    for i in range(60):
        at = T0 + (i if i < 30 else i - 10) * MS
        bag.add_message(joints, at, at, joint_state(i * MS, ["a"], [i], [0], [0]))
        bag.add_message(margin, at, at, serialise(number, data=float(i)))
        bag.flush()
    bag.close()
    told = load_recording(tmp_path / "bag").readouts["margin"]
    np.testing.assert_array_equal(told[:29], np.arange(29.0))
    np.testing.assert_array_equal(told[41:], np.arange(41.0, 60.0))


def test_wall_clock_stamps_of_a_robot_start_at_zero(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(10), t0=T0 + 123)).close()
    r = load_recording(tmp_path / "bag")
    np.testing.assert_allclose(r.t, np.arange(10) * 1e-3, atol=1e-12)
    np.testing.assert_array_equal(r.wrench[:, 0, 2], np.arange(10))


def test_a_fall_by_the_wall_clock_of_a_robot_counts_from_the_first_row(tmp_path: Path) -> None:
    messages = bag_messages(range(20), t0=T0 + 123)
    at = next(i for i, m in enumerate(messages) if m[0] == "/joint_states" and i > 6 * 12)
    messages.insert(at + 1, ("/fallen", "std_msgs/msg/Bool", serialise("std_msgs/msg/Bool", data=True)))
    write_bag(tmp_path / "bag", messages).close()
    assert load_recording(tmp_path / "bag").gave_up_at == pytest.approx(0.012, abs=1e-9)


def test_the_robot_named_in_the_bag_brings_soles_limits_and_sole_poses(tmp_path: Path) -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot)
    q = robot.q_nominal.copy()
    # The same attitude, by the other of its two quaternions.
    q[3:7] *= -1.0
    pose = {"position": dict(zip("xyz", q[:3], strict=True)), "orientation": dict(zip("xyzw", q[3:7], strict=True))}
    kind = "nav_msgs/msg/Odometry"
    odometry = serialise(kind, header=header(0), child_frame_id="base_link", pose={"pose": pose})
    names = list(reversed(robot.joint_names))
    zeros = np.zeros(robot.nu)
    messages = [
        ("/joint_states", JOINTS, joint_state(0, names, q[robot.idx_q][::-1], zeros, zeros)),
        ("/ground_truth/odom", kind, odometry),
        ("/right_foot/wrench", WRENCH, wrench(0, [0] * 6)),
        ("/left_foot/wrench", WRENCH, wrench(0, [0] * 6)),
    ]
    write_bag(tmp_path / "other", messages, {"robot": "biped14", "feet": "right,left"}).close()
    assert load_recording(tmp_path / "other").feet == ("right", "left")
    write_bag(tmp_path / "bag", messages, {"robot": "biped14", "feet": "left,right"}).close()
    r = load_recording(tmp_path / "bag")
    assert r.feet == ("left", "right")
    assert r.weight == pytest.approx(robot.weight)
    np.testing.assert_array_equal(r.effort_limit, robot.effort_limit[::-1])
    np.testing.assert_array_equal(r.sole_vertices[1], robot.soles[1].vertices)
    sim.reset()
    np.testing.assert_allclose(r.sole_poses[0], sim.ground_truth().pose_world_sole, atol=1e-12)


def test_where_the_soles_of_a_planar_robot_are_no_bag_knows(tmp_path: Path) -> None:
    """The joints of its base have no drives and are on no topic."""
    robot = load_robot("planar_biped")
    zeros = np.zeros(robot.nu)
    messages = [("/joint_states", JOINTS, joint_state(0, list(robot.joint_names), robot.posture, zeros, zeros))]
    messages += [(f"/{foot}_foot/wrench", WRENCH, wrench(0, [0] * 6)) for foot in ("left", "right")]
    write_bag(tmp_path / "bag", messages, {"robot": robot.name, "feet": "left,right"}).close()
    r = load_recording(tmp_path / "bag")
    assert r.weight == pytest.approx(robot.weight)
    assert np.isnan(r.sole_poses).all()


def test_an_unknown_robot_is_a_note_and_no_error(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(3)), {"robot": "marvin"}).close()
    r = load_recording(tmp_path / "bag")
    assert r.robot == "marvin"
    assert "unknown robot 'marvin'" in r.notes[0]
    assert r.sole_vertices[0].shape == (0, 2)


def test_the_robot_description_names_the_robot(tmp_path: Path) -> None:
    description = serialise("std_msgs/msg/String", data='<robot name="biped14"/>')
    messages = [("/robot_description", "std_msgs/msg/String", description), *bag_messages(range(3))]
    write_bag(tmp_path / "bag", messages).close()
    assert load_recording(tmp_path / "bag").robot == "biped14"


def test_a_bag_is_found_in_the_folder_of_its_run_and_as_a_file(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(5))).close()
    for path in (tmp_path, tmp_path / "bag", tmp_path / "bag" / "bag_0.mcap"):
        assert len(load_recording(path)) == 5
        assert len(Bag(path).messages["/joint_states"]) == 5


def test_of_a_folder_of_runs_those_that_can_be_read_are_named(tmp_path: Path) -> None:
    for name in ("pushed", "first"):
        write_bag(tmp_path / name / "bag", bag_messages(range(5))).close()
    (tmp_path / "pictures").mkdir()
    (tmp_path / "walk.npz").touch()
    bags = f"name one of the runs in it: {tmp_path / 'first'}, {tmp_path / 'pushed'}"
    with pytest.raises(RecordingError) as caught:
        load_recording(tmp_path)
    assert str(caught.value).endswith(f"{bags}, {tmp_path / 'walk.npz'}")
    with pytest.raises(RecordingError) as caught:
        Bag(tmp_path)
    assert str(caught.value).endswith(bags)
    with refusal(RecordingError, place=tmp_path / "pictures"):
        load_recording(tmp_path / "pictures")


def test_a_bag_without_joint_states_says_what_it_has(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", [("/cop", POINT, point(0, [0, 0, 0]))]).close()
    with refusal(RecordingError, place=f"{tmp_path / 'bag'}: /joint_states"):
        load_recording(tmp_path / "bag")


def test_a_stamp_out_of_order_is_no_reset(tmp_path: Path) -> None:
    """One IMU message stamped 1 us before its predecessor used to remove the IMU data of all earlier rows."""
    kind = "sensor_msgs/msg/Imu"
    messages = bag_messages(range(100))
    for i in range(100):
        stamp = i * MS - (1000 + MS if i == 90 else 0)
        raw = serialise(kind, header=header(stamp, "imu"), angular_velocity={"x": float(i), "y": 0.0, "z": 0.0})
        messages.insert(7 * i, ("/imu/data", kind, raw))
    write_bag(tmp_path / "bag", messages).close()
    rates = load_recording(tmp_path / "bag").imu_angular_velocity[:, 0]
    np.testing.assert_array_equal(np.delete(rates, 90), np.delete(np.arange(100.0), 90))
    assert np.isnan(rates[90])


def test_a_topic_that_a_reset_ends_does_not_reach_beyond_it(tmp_path: Path) -> None:
    """/odom was sent only before the reset. It has a single segment, which used to be taken for the last one."""
    kind, messages = "nav_msgs/msg/Odometry", []
    for stretch, ticks in enumerate((50, 30)):
        for message in bag_messages(range(ticks)):
            messages.append(message)
            if message[0] == "/joint_states" and stretch == 0:
                stamp = load_stamp(message[2])
                if stamp == 30 * MS:
                    # Out of order, near the reset.
                    early = serialise(kind, header=header(stamp - MS - 1000), child_frame_id="base_link")
                    messages.append(("/odom", kind, early))
                messages.append(("/odom", kind, serialise(kind, header=header(stamp), child_frame_id="base_link")))
    write_bag(tmp_path / "bag", messages).close()
    assert np.isnan(load_recording(tmp_path / "bag").odometry).all()
    assert np.isfinite(load_recording(tmp_path / "bag", segment=0).odometry).all()


def load_stamp(raw: bytes) -> int:
    sec, nanosec = struct.unpack_from("<iI", raw, 4)
    return int(sec * 1_000_000_000 + nanosec)


@pytest.mark.parametrize("lag", [0, 13])
def test_rows_come_out_the_same_however_they_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lag: int) -> None:
    """Blocks of a few rows, a recorder's clock of seconds, topics that come late and resets at any place."""
    messages = [*bag_messages(range(80)), *bag_messages(range(45)), *bag_messages(range(120))]
    for i in range(len(messages), 0, -7):
        number = "std_msgs/msg/Float64"
        messages.insert(i, ("/controller/margin", number, serialise(number, data=float(i))))
    messages = [m for i, m in enumerate(messages) if i % 17]
    places = [i + lag * (m[0] == "/cop") for i, m in enumerate(messages)]
    messages = [messages[i] for i in np.argsort(places, kind="stable")]
    bag = BagWriter(tmp_path / "bag")
    channels: dict[str, int] = {}
    for i, (name, msgtype, data) in enumerate(messages):
        if name not in channels:
            channels[name] = bag.add_topic(topic(name, msgtype))
        at = T0 + i * 40 * MS
        bag.add_message(channels[name], at, at, data)
        if i % 25 == 0:
            bag.flush()
    bag.close()
    whole = [load_recording(tmp_path / "bag", segment=k) for k in range(3)]
    monkeypatch.setattr(mcap, "BLOCK", 1)
    monkeypatch.setattr(segments, "ROWS", 5)
    monkeypatch.setattr(segments, "LATE_NS", 4_000_000_000)
    blocks = [number for number, _ in align.BagRows(tmp_path / "bag")]
    assert len(blocks) > 20
    for k, one in enumerate(whole):
        again = load_recording(tmp_path / "bag", segment=k)
        assert len(again) == len(one) > 40
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(again, name), getattr(one, name), err_msg=name)
        assert np.isfinite(one.readouts["margin"]).sum() > 30
        np.testing.assert_array_equal(again.readouts["margin"], one.readouts["margin"])
        # The exceptions are the messages dropped above, and the lag at the end of the segment.
        assert np.isfinite(one.cop_world[:, 1]).sum() > 0.9 * len(one)


def test_what_comes_too_late_for_its_row_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcap, "BLOCK", 1)
    monkeypatch.setattr(segments, "ROWS", 1)
    bag = BagWriter(tmp_path / "bag")
    joints, cop = bag.add_topic(topic("/joint_states", JOINTS)), bag.add_topic(topic("/cop", POINT))
    for i in range(60):
        at = T0 + i * 1000 * MS
        bag.add_message(joints, at, at, joint_state(i * MS, ["a"], [i], [0], [0]))
        bag.add_message(cop, at, at, point((i if i != 50 else 3) * MS, [i, 0, 0]))
        bag.flush()
    bag.close()
    with pytest.warns(IncompleteWarning, match="1 messages arrived more than 10 s after their row"):
        r = load_recording(tmp_path / "bag")
    assert any("1 messages arrived more than 10 s" in note for note in r.notes)
    np.testing.assert_array_equal(r.cop_world[:50, 0], np.arange(50))


def test_a_message_that_is_damaged_in_a_whole_bag_costs_its_row_alone(tmp_path: Path) -> None:
    messages = bag_messages(range(20))
    at = messages.index(("/cop", POINT, point(7 * MS, [0, 7, 0])))
    messages[at] = ("/cop", POINT, messages[at][2][:-9])
    write_bag(tmp_path / "bag", messages).close()
    with pytest.warns(IncompleteWarning, match="/cop: 1 of 20 messages left out: .* cut short or damaged"):
        r = load_recording(tmp_path / "bag")
    assert np.flatnonzero(np.isnan(r.cop_world[:, 1])).tolist() == [7]


def test_joint_states_of_other_joints_are_left_out_and_told(tmp_path: Path) -> None:
    messages = bag_messages(range(20))
    states = [i for i, message in enumerate(messages) if message[0] == "/joint_states"]
    for tick in (4, 5, 9):
        strange = joint_state(tick * MS, ["wheel"], [1.0], [0.0], [0.0])
        messages[states[tick]] = (*messages[states[tick]][:2], strange)
    write_bag(tmp_path / "bag", messages).close()
    with pytest.warns(IncompleteWarning, match="/joint_states: 3 of 20 messages left out: they name wheel, and"):
        r = load_recording(tmp_path / "bag")
    assert np.flatnonzero(np.isnan(r.joint_position).any(axis=1)).tolist() == [4, 5, 9]


def test_ankle_wrenches_are_those_of_the_ground_on_the_foot(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(5)), {"ft_sign": "-1"}).close()
    r = load_recording(tmp_path / "bag")
    np.testing.assert_array_equal(r.ankle_wrench[:, 0, 2], -10.0 * np.arange(5))


def test_what_the_simulator_counted_is_read_and_missed_where_it_is_not(tmp_path: Path) -> None:
    kind = "std_msgs/msg/String"
    run = (RUN, kind, serialise(kind, data='{"seed": 1}'))
    counted = (RUN, kind, serialise(kind, data='{"statistics": {"ticks": 7, "fell_at_s": 0.02}}'))
    for said, expected in (([run, counted], {"ticks": 7, "fell_at_s": 0.02}), ([run], None), ([], {})):
        shutil.rmtree(tmp_path / "bag", ignore_errors=True)
        write_bag(tmp_path / "bag", [*said[:1], *bag_messages(range(50)), *said[1:]]).close()
        figures = gather(tmp_path / "bag", RunSummary, RunSummary.COLUMNS)
        assert figures.figures().get("fell_at_s") == (expected or {}).get("fell_at_s")
        assert any("lacks the statistics" in note for note in figures.notes) == (expected is None)
        whole = load_recording(tmp_path / "bag")
        assert (whole.statistics, whole.run) == (expected, {"seed": 1, "pushes": []} if said else {})


def test_a_bag_says_what_ran(tmp_path: Path) -> None:
    kind = "std_msgs/msg/String"
    told = [{"contact_model": "ncp", "about": {"scenario": "stairs", "ground": "low_stairs"}}, {"push": {"t": 0.0}}]
    said = [(RUN, kind, serialise(kind, data=json.dumps(one))) for one in told]
    custom = {"robot": "biped14", "controller": "zmp"}
    write_bag(tmp_path / "bag", [*said, *bag_messages(range(50))], custom).close()
    expected = {**custom, "scenario": "stairs", "contact_model": "ncp", "ground": "low_stairs"}
    assert {**load_recording(tmp_path / "bag").about, "robot": "biped14"} == expected
    write_bag(tmp_path / "others", bag_messages(range(50))).close()
    assert load_recording(tmp_path / "others").about == {}


def test_the_topic_of_a_changed_parameter_tells_its_owner(tmp_path: Path) -> None:
    """A controller may have a parameter with the name of a gain of the drives."""
    kind, name = "std_msgs/msg/String", "drive_stiffness.l_knee"
    entries = {of: {"stamp": k * 10 * MS, "name": name, "value": 1.0} for k, of in enumerate(CHANGES.values(), start=1)}
    said = [(topic, kind, serialise(kind, data=json.dumps(entries[of]))) for topic, of in CHANGES.items()]
    write_bag(tmp_path / "bag", [*said, *bag_messages(range(50))], {"robot": "r"}).close()
    run = load_recording(tmp_path / "bag")
    assert [(change.at, change.of) for change in run.changes] == [(0.01, "controller"), (0.02, "drives")]
    run.save(tmp_path / "run.npz")
    assert load_recording(tmp_path / "run.npz").changes == run.changes
    assert not set(run.changes) ^ {ParameterChange(**entry) for entry in controller_figures(run)["parameter_changes"]}


def test_columns_that_nobody_wants_take_no_memory_and_the_others_are_the_same(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(50)), {"robot": "r"}).close()
    whole = load_recording(tmp_path / "bag")
    ((_, some),) = align.BagRows(tmp_path / "bag", ("wrench", "joint_velocity"))
    some = joined([some, some]).rows(np.arange(50))
    for name in ("t", "wrench", "joint_velocity"):
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name))
    assert some.joint_effort.strides[0] == some.mode.strides[0] == 0
    assert np.isnan(some.joint_effort).all()


@pytest.mark.parametrize("rows", [7, 1 << 15])
def test_a_part_of_a_run_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(50)), {"robot": "r"}).close()
    whole = load_recording(tmp_path / "bag")
    whole.save(tmp_path / "run.npz")
    monkeypatch.setattr(segments, "ROWS", rows)
    for path in (tmp_path / "bag", tmp_path / "run.npz"):
        part = load_recording(path, start=0.0095, stop=0.030)
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[10:31], err_msg=name)
        assert len(load_recording(path, start=0.04)) == 10
        with refusal(RecordingError, place=f"{path}: from 7 s"):
            load_recording(path, start=7.0)


def test_how_much_memory_a_run_takes_is_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(50))).close()
    monkeypatch.setattr(align, "MUCH", 1000)
    load_recording(tmp_path / "bag")
    assert "all columns of 50 rows take 0.0 GB of memory; --from and --to read a part" in capsys.readouterr().err
    monkeypatch.setattr(align.BagRows, "expected_rows", 10**12)
    with refusal(RecordingError, place=tmp_path / "bag"):
        load_recording(tmp_path / "bag")
    assert len(load_recording(tmp_path / "bag", start=0.0, stop=0.01)) == 11


def test_what_a_run_was_is_read_for_the_stretch_it_began_or_said_to_be_unreadable(tmp_path: Path) -> None:
    kind = "std_msgs/msg/String"

    def said(text: str) -> tuple[str, str, bytes]:
        return (RUN, kind, serialise(kind, data=text))

    runs = [
        [said('{"seed": 1}'), *bag_messages(range(50)), said('{"push": {"t": 0.1}}')],
        [said('{"seed": 2}'), *bag_messages(range(50))],
        [
            said('{"seed": 3}'),
            *bag_messages(range(50)),
            said('{"push": {"t": 0.2}}'),
            said('{"gantry_action": "lift"}'),
        ],
    ]
    write_bag(tmp_path / "bag", [*runs[0], *runs[1], *runs[2]]).close()
    expected: list[dict[str, object]] = [
        {"seed": 1, "pushes": [{"t": 0.1}]},
        {"seed": 2, "pushes": []},
        {"seed": 3, "pushes": [{"t": 0.2}], "gantry_actions": ["lift"]},
    ]
    for k in range(3):
        assert load_recording(tmp_path / "bag", k).run == load_recording(tmp_path / "bag", k - 3).run == expected[k]
    write_bag(tmp_path / "bad", [said("{seed"), *runs[1]]).close()
    with pytest.warns(IncompleteWarning, match="the run cannot be simulated again"):
        assert load_recording(tmp_path / "bad").run == {}


def test_of_messages_with_the_same_stamp_the_last_one_counts(tmp_path: Path) -> None:
    """As of a state that is repeated, and of a sensor that sends it corrected."""
    messages = bag_messages(range(10))
    again = [
        ("/joint_states", JOINTS, joint_state(4 * MS, ["l_knee", "r_knee"], [40, -40], [0, 1], [2, 3])),
        ("/cop", POINT, point(4 * MS, [0, 44, 0])),
    ]
    at = messages.index(("/cop", POINT, point(4 * MS, [0, 4, 0]))) + 1
    write_bag(tmp_path / "bag", [*messages[:at], *again, *messages[at:]]).close()
    r = load_recording(tmp_path / "bag")
    assert len(r) == 10
    np.testing.assert_array_equal(r.joint_position[:, 0], [0, 1, 2, 3, 40, 5, 6, 7, 8, 9])
    np.testing.assert_array_equal(r.cop_world[:, 1], [0, 1, 2, 3, 44, 5, 6, 7, 8, 9])
