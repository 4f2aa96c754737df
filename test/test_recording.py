"""Recordings: from runs, bags and files, and into tables and pictures."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording_support import NS, STORE, T0, contact, header, joint_state, point, serialise, standing, wrench, write_bag

from bipedsim.errors import RecordingError, UnknownNameError
from bipedsim.plotting import FACE_COLOUR, FOOT_COLOURS, LIMIT_COLOUR, PANELS, TOTAL_COLOUR, plot
from bipedsim.recording import COLUMNS, Recording, export_csv
from bipedsim.robot import load_robot
from bipedsim.ros_messages import columns
from bipedsim.simulator import Simulator

WRENCH, JOINTS = "geometry_msgs/msg/WrenchStamped", "sensor_msgs/msg/JointState"
POINT, MULTI = "geometry_msgs/msg/PointStamped", "std_msgs/msg/Float64MultiArray"
MS = 1_000_000
numbers = st.floats(allow_nan=False, width=64)


def same(a: Recording, b: Recording) -> None:
    """Assert that two recordings are equal, NaN included."""
    for f in fields(Recording):
        left, right = getattr(a, f.name), getattr(b, f.name)
        if isinstance(left, np.ndarray) or f.name == "weight":
            np.testing.assert_array_equal(left, right, err_msg=f.name)
        elif f.name == "sole_vertices":
            assert len(left) == len(right)
            for one, other in zip(left, right, strict=True):
                np.testing.assert_array_equal(one, other)
        else:
            assert left == right, f.name


# --- decoding -------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.text("ab_é", max_size=9), numbers), max_size=5), st.booleans(), st.text("xyz/", max_size=9)
)
def test_joint_states_decode_whatever_the_names_do_to_the_alignment(
    joints: list[tuple[str, float]], with_velocity: bool, frame: str
) -> None:
    names, position = [n for n, _ in joints], [v for _, v in joints]
    velocity = [2 * v for v in position] if with_velocity else []
    arrays = {"position": position, "velocity": velocity, "effort": []}
    values: dict[str, Any] = {k: np.asarray(v, dtype=np.float64) for k, v in arrays.items()}
    messages = [serialise(JOINTS, header=header(i * MS, frame), name=names, **values) for i in range(3)]
    table = columns(messages, JOINTS)
    assert table.labels == tuple(names)
    np.testing.assert_array_equal(table.stamp, [0, MS, 2 * MS])
    np.testing.assert_array_equal(table.values["position"], [position] * 3)
    np.testing.assert_array_equal(table.values["velocity"], [velocity] * 3)
    assert table.values["effort"].shape == (3, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["l_sole", "r_foot", "a_longer_frame"]), numbers, st.integers(0, 2**31 - 1)),
        min_size=1,
    )
)
def test_messages_of_different_layout_keep_their_places(rows: list[tuple[str, float, int]]) -> None:
    table = columns([wrench(t * NS + t % NS, [v, 1, 2, 3, 4, 5], frame) for frame, v, t in rows], WRENCH)
    np.testing.assert_array_equal(table.values["wrench"][:, 0], [v for _, v, _ in rows])
    np.testing.assert_array_equal(table.values["wrench"][:, 5], 5.0)
    np.testing.assert_array_equal(table.stamp, [t * NS + t % NS for _, _, t in rows])


def test_equal_sizes_do_not_hide_different_layouts() -> None:
    # One value each, but the second is of another field.
    rows = [joint_state(i * MS, ["a"], [i + 1.0], [], []) for i in range(3)]
    rows[1] = joint_state(MS, ["a"], [], [], [2.0])
    assert len({len(row) for row in rows}) == 1
    table = columns(rows, JOINTS)
    np.testing.assert_array_equal(table.values["position"][:, 0], [1, np.nan, 3])
    np.testing.assert_array_equal(table.stamp, [0, MS, 2 * MS])


def test_odometry_and_imu_decode_as_rosbags_wrote_them() -> None:
    position = {"x": 1.0, "y": 2.0, "z": 3.0}
    turn = {"x": 0.1, "y": 0.2, "z": 0.3, "w": 0.9}
    pose = {"pose": {"position": position, "orientation": turn}}
    twist = {"twist": {"linear": position, "angular": {"x": 4.0, "y": 5.0, "z": 6.0}}}
    kind = "nav_msgs/msg/Odometry"
    raw = serialise(kind, header=header(7), child_frame_id="base_link", pose=pose, twist=twist)
    odometry = columns([raw], kind)
    np.testing.assert_array_equal(odometry.values["pose"], [[1, 2, 3, 0.1, 0.2, 0.3, 0.9]])
    np.testing.assert_array_equal(odometry.values["twist"], [[1, 2, 3, 4, 5, 6]])
    kind = "sensor_msgs/msg/Imu"
    raw = serialise(
        kind,
        header=header(7),
        orientation=turn,
        angular_velocity=position,
        linear_acceleration={"x": 0.0, "y": 0.0, "z": 9.81},
    )
    imu = columns([raw], kind)
    np.testing.assert_array_equal(imu.values["orientation"], [[0.1, 0.2, 0.3, 0.9]])
    np.testing.assert_array_equal(imu.values["angular_velocity"], [[1, 2, 3]])
    np.testing.assert_array_equal(imu.values["linear_acceleration"], [[0, 0, 9.81]])


def test_big_endian_messages_decode_too() -> None:
    raw = wrench(5 * NS + 7, [1, 2, 3, 4, 5, 6])
    message = STORE.deserialize_cdr(raw, WRENCH)
    turned = bytes(STORE.serialize_cdr(message, WRENCH, little_endian=False))
    assert turned != raw
    table = columns([raw, turned], WRENCH)
    np.testing.assert_array_equal(table.values["wrench"], [[1, 2, 3, 4, 5, 6]] * 2)
    np.testing.assert_array_equal(table.stamp, [5 * NS + 7] * 2)


def test_undecodable_messages_are_named() -> None:
    with pytest.raises(RecordingError, match=r"std_msgs/msg/Header are not decoded; known: geometry_msgs"):
        columns([b""], "std_msgs/msg/Header")
    raw = wrench(0, [1, 2, 3, 4, 5, 6])
    with pytest.raises(RecordingError, match="encapsulation"):
        columns([b"\x00\x03" + raw[2:]], WRENCH)
    with pytest.raises(RecordingError, match="damaged"):
        columns([raw + bytes(8)], WRENCH)
    for size in range(4, len(raw), 5):
        with pytest.raises(RecordingError, match=r"short|damaged"):
            columns([raw[:size]], WRENCH)


# --- bags -----------------------------------------------------------------------------------------------------------


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
    r = Recording.load(tmp_path / "bag")
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
    write_bag(tmp_path / "bag", messages)
    r = Recording.load(tmp_path / "bag")
    assert np.isnan(r.wrench[:20]).all()
    assert (r.mode[:20] == -1).all()
    np.testing.assert_array_equal(r.wrench[20:, 0, 2], np.arange(20, 50))
    assert "recovered 240 whole messages" in r.notes[0]


def test_a_reset_starts_another_stretch(tmp_path: Path) -> None:
    late = [m for m in bag_messages(range(60)) if m[0] != "/cop"]
    write_bag(tmp_path / "bag", [*late, *bag_messages(range(1, 31)), *bag_messages(range(11))]).close()
    last = Recording.load(tmp_path / "bag")
    assert len(last) == 11
    assert "time jumps back 2 times" in last.notes[0]
    first = Recording.load(tmp_path / "bag", segment=0)
    assert len(first) == 60
    np.testing.assert_array_equal(first.wrench[:, 0, 2], np.arange(60))
    assert np.isnan(first.cop_world).all()
    middle = Recording.load(tmp_path / "bag", segment=1)
    np.testing.assert_array_equal(middle.wrench[:, 0, 2], np.arange(1, 31))
    np.testing.assert_array_equal(middle.cop_world[:, 1], np.arange(1, 31))
    np.testing.assert_array_equal(Recording.load(tmp_path / "bag", segment=-2).joint_position, middle.joint_position)
    with pytest.raises(RecordingError, match="no stretch 3"):
        Recording.load(tmp_path / "bag", segment=3)


def test_wall_clock_stamps_of_a_robot_start_at_zero(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(10), t0=T0 + 123)).close()
    r = Recording.load(tmp_path / "bag")
    np.testing.assert_allclose(r.t, np.arange(10) * 1e-3, atol=1e-12)
    np.testing.assert_array_equal(r.wrench[:, 0, 2], np.arange(10))


def test_the_robot_named_in_the_bag_brings_soles_limits_and_sole_poses(tmp_path: Path) -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot)
    q = robot.q_nominal
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
    write_bag(tmp_path / "bag", messages, {"robot": "biped14", "feet": "left,right"}).close()
    r = Recording.load(tmp_path / "bag")
    assert r.feet == ("left", "right")
    assert r.weight == pytest.approx(robot.weight)
    np.testing.assert_array_equal(r.effort_limit, robot.effort_limit[::-1])
    np.testing.assert_array_equal(r.sole_vertices[1], robot.soles[1].vertices)
    sim.reset()
    np.testing.assert_allclose(r.sole_poses[0], sim.ground_truth().pose_world_sole, atol=1e-12)


def test_an_unknown_robot_is_a_note_and_no_error(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(3)), {"robot": "marvin"}).close()
    r = Recording.load(tmp_path / "bag")
    assert r.robot == "marvin"
    assert "unknown robot 'marvin'" in r.notes[0]
    assert r.sole_vertices[0].shape == (0, 2)


def test_the_robot_description_names_the_robot(tmp_path: Path) -> None:
    description = serialise("std_msgs/msg/String", data='<robot name="biped14"/>')
    messages = [("/robot_description", "std_msgs/msg/String", description), *bag_messages(range(3))]
    write_bag(tmp_path / "bag", messages).close()
    assert Recording.load(tmp_path / "bag").robot == "biped14"


def test_a_bag_is_found_in_the_folder_of_its_run_and_as_a_file(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", bag_messages(range(5))).close()
    for path in (tmp_path, tmp_path / "bag", tmp_path / "bag" / "bag_0.mcap"):
        assert len(Recording.load(path)) == 5


def test_a_bag_without_joint_states_says_what_it_has(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", [("/cop", POINT, point(0, [0, 0, 0]))]).close()
    with pytest.raises(RecordingError, match=r"no messages on /joint_states; found /cop \(1\)"):
        Recording.load(tmp_path / "bag")


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_headless_run_is_collected_row_by_row() -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot)
    observation = sim.reset()
    builder = Recording.Builder(robot, capacity=3)
    rows = []
    for i in range(20):
        observation = sim.step(np.full(robot.nu, 0.1 * i))
        truth = sim.ground_truth()
        builder.append(sim.t, observation, sim.contact, sim.q, truth.cop_world, truth.pose_world_sole)
        kept = observation.copy()
        rows.append((sim.t, kept, sim.contact.wrench.copy(), sim.contact.mode.copy(), sim.q.copy(), truth))
    r = builder.build()
    assert len(r) == len(builder) == 20
    for i, (t, observed, forces, mode, q, truth) in enumerate(rows):
        assert r.t[i] == t
        np.testing.assert_array_equal(r.joint_velocity[i], observed.joint_velocity)
        np.testing.assert_array_equal(r.joint_position[i], observed.joint_position)
        np.testing.assert_array_equal(r.joint_effort[i], observed.joint_effort)
        np.testing.assert_array_equal(r.imu_linear_acceleration[i], observed.imu_linear_acceleration)
        np.testing.assert_array_equal(r.ankle_wrench[i], observed.foot_wrench)
        np.testing.assert_array_equal(r.wrench[i], forces)
        np.testing.assert_array_equal(r.mode[i], mode)
        np.testing.assert_array_equal(r.base_pose[i], q[:7])
        np.testing.assert_array_equal(r.sole_poses[i], truth.pose_world_sole)
        np.testing.assert_array_equal(r.cop_world[i], truth.cop_world)
    assert r.weight == pytest.approx(robot.weight)
    assert r.feet == tuple(sole.name for sole in robot.soles)
    assert r.robot == "biped14"


def test_save_and_load_lose_nothing(tmp_path: Path) -> None:
    r = standing(7)
    r.notes = ("half of it is missing",)
    r.about = {"scenario": "stand", "ground": "flat"}
    r.cop[3] = np.nan
    r.save(tmp_path / "new" / "run.npz")
    same(Recording.load(tmp_path / "new" / "run.npz"), r)


def test_a_run_of_before_it_said_what_it_was_still_loads(tmp_path: Path) -> None:
    r = standing(7)
    r.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as data:
        arrays = dict(data)
    header = json.loads(str(arrays.pop("header")))
    del header["about"]
    np.savez(tmp_path / "old.npz", header=np.array(json.dumps(header)), **arrays)
    same(Recording.load(tmp_path / "old.npz"), r)


def test_every_column_is_an_attribute_with_its_shape() -> None:
    r = Recording.empty(4, ["a", "b", "c"], ["l", "r"])
    sizes = {"": (), "joint": (3,), "foot": (2,)}
    for name, column in COLUMNS.items():
        inner = (len(column.components),) if len(column.components) > 1 else ()
        assert getattr(r, name).shape == (4, *sizes[column.per], *inner)
    assert {f.name for f in fields(Recording)} > set(COLUMNS)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("run.npz", b"", "damaged|not a run"),
        ("run.npz", b"PK\x03\x04broken", "damaged|not a run"),
        ("run.npz", b"hello", "damaged|not a run"),
        ("run.txt", b"hello", "not an MCAP file"),
        ("absent.npz", None, "no such file"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, name: str, content: bytes | None, complaint: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordingError, match=complaint) as caught:
        Recording.load(tmp_path / name)
    assert name in str(caught.value)


def test_a_foreign_npz_says_what_it_holds(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", apples=np.zeros(3))
    with pytest.raises(RecordingError, match="it holds apples"):
        Recording.load(tmp_path / "x.npz")


def test_a_truncated_npz_is_no_recording(tmp_path: Path) -> None:
    standing(500).save(tmp_path / "run.npz")
    raw = (tmp_path / "run.npz").read_bytes()
    (tmp_path / "run.npz").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(RecordingError, match=r"run\.npz"):
        Recording.load(tmp_path / "run.npz")


# --- tables ---------------------------------------------------------------------------------------------------------


def test_the_table_holds_every_number_under_its_name_and_unit(tmp_path: Path) -> None:
    r = standing(4500)
    r.cop[7, 1] = np.nan
    r.sliding[8, 0] = True
    r.export_csv(tmp_path / "sub" / "run.csv")
    with (tmp_path / "sub" / "run.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    head, body = rows[0], rows[1:]
    assert len(body) == 4500
    assert len(set(head)) == len(head)
    column = {name: [row[i] for row in body] for i, name in enumerate(head)}
    np.testing.assert_allclose(np.array(column["t[s]"], float), r.t, rtol=1e-8)
    np.testing.assert_allclose(np.array(column["l_knee_joint_effort[N.m]"], float), r.joint_effort[:, 0], rtol=1e-8)
    np.testing.assert_allclose(np.array(column["left_foot_wrench_ty[N.m]"], float), r.wrench[:, 0, 4], rtol=1e-8)
    np.testing.assert_allclose(np.array(column["right_foot_sole_poses_y[m]"], float), r.sole_poses[:, 1, 1], rtol=1e-8)
    assert set(column["left_foot_mode"]) == {"9"}
    assert column["left_foot_sliding"][7:10] == ["0", "1", "0"]
    assert column["right_foot_cop_x[m]"][6:8] == ["0", ""]
    # Nothing of an IMU was recorded.
    assert not [name for name in head if "imu" in name]


def test_export_reports_progress_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export_csv(standing(4100), tmp_path / "run.csv", progress=True)
    assert "4100 of 4100 rows (100 %)\n" in capsys.readouterr().err
    export_csv(standing(100), tmp_path / "run.csv")
    assert capsys.readouterr().err == ""


def test_a_table_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match=r"run\.csv: cannot be written"):
        export_csv(standing(3), tmp_path / "file" / "run.csv")


# --- pictures -------------------------------------------------------------------------------------------------------


def shows(path: Path, colour: str) -> bool:
    """Return whether a picture has pixels of ``colour``; lines are thinned by antialiasing, areas are not."""
    from matplotlib.colors import to_rgb
    from matplotlib.image import imread

    distance = np.abs(imread(path)[:, :, :3] - np.array(to_rgb(colour))).max(axis=2)
    return int((distance < (0.01 if colour == FACE_COLOUR else 0.3)).sum()) >= 20


@pytest.mark.parametrize(
    ("panels", "colours"),
    [
        (["forces"], {TOTAL_COLOUR, FOOT_COLOURS[0], FOOT_COLOURS[1], LIMIT_COLOUR}),
        (["cop"], {TOTAL_COLOUR, FOOT_COLOURS[0], FOOT_COLOURS[1]}),
        (["modes"], {FACE_COLOUR}),
        (["torques"], {TOTAL_COLOUR, FOOT_COLOURS[0], FOOT_COLOURS[1], LIMIT_COLOUR}),
        (PANELS, {TOTAL_COLOUR, FOOT_COLOURS[0], FACE_COLOUR, LIMIT_COLOUR}),
    ],
)
def test_every_panel_draws_what_it_is_for(tmp_path: Path, panels: list[str], colours: set[str]) -> None:
    r = standing(2000)
    absent = {LIMIT_COLOUR, FACE_COLOUR} - colours
    r.wrench[:, 0, :2] = 20 * np.sin(r.t)[:, None]
    r.wrench[:, 1, :3] += 20 * np.cos(3 * r.t)[:, None]
    r.wrench[:, :, 3:] += np.array([2.0, 3.0, 0.0]) * np.sin(5 * r.t)[:, None, None]
    plot(r, tmp_path / "run.png", panels)
    assert {c for c in (*colours, *absent) if shows(tmp_path / "run.png", c)} == colours


def test_a_recording_of_nothing_but_joints_still_draws(tmp_path: Path) -> None:
    r = Recording.empty(100, ["a", "b"], ["left"])
    r.t[:] = np.arange(100) * 1e-3
    r.joint_effort[:] = 1.0
    plot(r, tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_pictures_of_nothing_and_unknown_panels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown panel 'force'; did you mean 'forces'"):
        plot(standing(10), tmp_path / "x.png", ["force"])
    with pytest.raises(RecordingError, match="no rows"):
        plot(standing(0), tmp_path / "x.png")
    with pytest.raises(RecordingError, match=r"x\.doc: the picture cannot be written"):
        plot(standing(10), tmp_path / "x.doc")


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, bipedsim.plotting, bipedsim.recording; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_store_of_the_tests_is_jazzy() -> None:
    assert STORE.hash_rihs01(JOINTS) == "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e"
