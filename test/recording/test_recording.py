"""Recordings collected from runs, saved and loaded again, and files that are none."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording_support import standing
from refusals import refusal

from bipedsim.errors import DamagedError, RecordingError
from bipedsim.model import load_robot
from bipedsim.recording import load_recording
from bipedsim.recording.recording import Recording, joined
from bipedsim.recording.schema import COLUMNS
from bipedsim.sim.simulator import Simulator


def same(a: Recording, b: Recording) -> None:
    """Assert that two recordings are equal, NaN included."""
    for f in fields(Recording):
        left, right = getattr(a, f.name), getattr(b, f.name)
        if isinstance(left, (np.ndarray, float)):
            np.testing.assert_array_equal(left, right, err_msg=f.name)
        elif f.name == "readouts":
            assert list(left) == list(right)
            for name, values in left.items():
                np.testing.assert_array_equal(values, right[name])
        elif f.name == "sole_vertices":
            assert len(left) == len(right)
            for one, other in zip(left, right, strict=True):
                np.testing.assert_array_equal(one, other)
        else:
            assert left == right, f.name


def test_a_headless_run_is_collected_row_by_row() -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot)
    observation = sim.reset()
    builder = Recording.Builder(robot, capacity=3)
    rows = []
    for i in range(20):
        builder.note({"tick": i, **({"late": i} if i > 10 else {})})
        observation = sim.step(np.full(robot.nu, 0.1 * i))
        truth = sim.ground_truth()
        builder.append(sim.t, observation, sim.contact, truth, sim.command)
        kept = observation.copy()
        rows.append((sim.t, kept, sim.contact.wrench.copy(), sim.contact.mode.copy(), sim.q.copy(), truth))
    r = builder.build()
    assert len(r) == len(builder) == 20
    np.testing.assert_array_equal(r.readouts["tick"], [*range(1, 20), np.nan])
    np.testing.assert_array_equal(r.readouts["late"], [*[np.nan] * 10, *range(11, 20), np.nan])
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


def test_rows_hold_what_their_sources_did_whichever_arrays_these_are() -> None:
    robot = load_robot("biped14")
    sim = Simulator(robot)
    whole, changing = Recording.Builder(robot, capacity=4), Recording.Builder(robot, capacity=4)
    kept = []
    for i in range(24):
        observation = sim.step(np.full(robot.nu, 0.1 * i))
        truth = sim.ground_truth()
        whole.append(sim.t, observation, sim.contact, truth, sim.command)
        # The same arrays, then a new one in every row, then the same ones again, of another layout and type.
        other = observation
        if 6 <= i < 12:
            other = observation.copy()
        elif 12 <= i < 18:
            other = replace(observation, foot_wrench=np.asfortranarray(observation.foot_wrench))
        elif i >= 18:
            other = replace(observation, joint_effort=observation.joint_effort.astype(np.float32).astype(object))
        if 8 <= i < 10:
            truth = replace(truth, gantry_force=np.full(3, float(i)))
        kept.append(other)
        changing.append(sim.t, other, sim.contact, truth, sim.command)
        observation.joint_velocity[:] = np.nan  # nothing is read later
    a, b = whole.build(), changing.build()
    np.testing.assert_array_equal(b.gantry_force[:, 0], [*[np.nan] * 8, 8.0, 9.0, *[np.nan] * 14])
    np.testing.assert_array_equal(b.joint_effort[18:], a.joint_effort[18:].astype(np.float32))
    b.gantry_force, b.joint_effort = a.gantry_force, a.joint_effort
    same(a, b)
    assert np.isfinite(b.joint_velocity).all()


def test_save_and_load_lose_nothing(tmp_path: Path) -> None:
    r = standing(7)
    r.notes = ("half of it is missing",)
    r.about = {"scenario": "stand", "ground": "flat"}
    r.cop[3] = np.nan
    r.readouts = {"zmp_margin": np.arange(7.0), "odometry": np.full(7, np.nan)}
    r.gave_up_at, r.gave_up_why, r.gave_up_kind = 0.004, "it leans", "tilted"
    r.pushes = ((0.001, 0.003), (0.005, 0.006))
    r.save(tmp_path / "new" / "run.npz")
    same(load_recording(tmp_path / "new" / "run.npz"), r)


def test_a_run_of_before_it_said_what_it_was_still_loads(tmp_path: Path) -> None:
    r = standing(7)
    r.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as data:
        arrays = dict(data)
    header = json.loads(str(arrays.pop("header")))
    del arrays["header_crc"]
    for later in ("about", "readouts", "gave_up_at", "gave_up_kind", "pushes"):
        del header[later]
    np.savez(tmp_path / "old.npz", header=np.array(json.dumps(header)), **arrays)
    same(load_recording(tmp_path / "old.npz"), r)


def test_every_column_is_an_attribute_with_its_shape() -> None:
    r = Recording.empty(4, ["a", "b", "c"], ["l", "r"], imu_names=["i"], switch_names=["s", "t"])
    sizes = {"": (), "joint": (3,), "foot": (2,), "imu": (1,), "switch": (2,)}
    for name, column in COLUMNS.items():
        inner = (len(column.components),) if len(column.components) > 1 else ()
        assert getattr(r, name).shape == (4, *sizes[column.per], *inner)
    assert {f.name for f in fields(Recording)} > set(COLUMNS)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("run.npz", b"", DamagedError),
        ("run.npz", b"PK\x03\x04broken", DamagedError),
        ("run.npz", b"hello", DamagedError),
        ("run.txt", b"hello", RecordingError),
        ("absent.npz", None, RecordingError),
    ],
)
def test_unreadable_files_are_named(
    tmp_path: Path, name: str, content: bytes | None, error: type[RecordingError]
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with refusal(error, place=tmp_path / name):
        load_recording(tmp_path / name)


def test_a_foreign_npz_says_what_it_holds(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", apples=np.zeros(3))
    with refusal(RecordingError, place=tmp_path / "x.npz"):
        load_recording(tmp_path / "x.npz")


def test_a_truncated_npz_is_no_recording(tmp_path: Path) -> None:
    standing(500).save(tmp_path / "run.npz")
    raw = (tmp_path / "run.npz").read_bytes()
    (tmp_path / "run.npz").write_bytes(raw[: len(raw) // 2])
    with refusal(DamagedError, place=tmp_path / "run.npz"):
        load_recording(tmp_path / "run.npz")


def test_joints_are_found_by_name() -> None:
    r = standing(3)
    r.joint_position[:] = [1.0, 2.0, 3.0]
    turned = r.in_order(["torso", "l_knee"])
    assert turned.joint_names == ("torso", "l_knee")
    np.testing.assert_array_equal(turned.joint_position, [[3.0, 1.0]] * 3)
    np.testing.assert_array_equal(turned.effort_limit, [np.nan, 10.0])
    with refusal(RecordingError, place="joints head"):
        r.in_order(["l_knee", "head"])
    # Not a single joint: the recording is of another robot, which is the fault, and not each of its joints.
    with refusal(RecordingError, place=""):
        r.in_order(["head", "tail"])


def test_a_run_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.npz"
    standing(7).save(path)

    def full(*_args: Any, **_arrays: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with refusal(RecordingError, place=path, cause=OSError):
        standing(8).save(path)
    assert len(load_recording(path)) == 7
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.npz"]


def test_a_run_in_parts_was_stopped_when_the_first_of_them_says() -> None:
    parts = [standing(3) for _ in range(3)]
    parts[1].gave_up_at, parts[1].gave_up_why, parts[1].gave_up_kind = 0.004, "it leans", "tilted"
    parts[2].gave_up_at, parts[2].gave_up_why = 0.007, "it leans more"
    whole = joined(parts)
    assert len(whole) == 9
    assert (whole.gave_up_at, whole.gave_up_why, whole.gave_up_kind) == (0.004, "it leans", "tilted")
    assert np.isnan(joined(parts[:1]).gave_up_at)


def test_what_a_builder_refuses_is_in_no_row() -> None:
    """Invalid values are sensors of another robot, a single number, and a debug signal that is a string.

    They change no row.
    """
    sim, other = Simulator(load_robot("biped14")), Simulator(load_robot("g1"))
    builders = [Recording.Builder(sim.robot, 4) for _ in range(2)]
    rest, foreign = np.zeros(sim.robot.nu), other.step(np.zeros(other.robot.nu))
    for tick in range(9):
        observation = sim.step(rest)
        for builder in builders:
            if builder is builders[0] and tick % 2:
                single = replace(observation, joint_velocity=np.array([9.0]))
                number = replace(observation, joint_position=np.float64(9.0))
                for refused, error in ((foreign, ValueError), (single, ValueError), (number, ValueError)):
                    with pytest.raises(error):
                        builder.append(99.0, refused, sim.contact, sim.ground_truth(), sim.command)
                for readouts, columns, error in (
                    ({"good": 9.0, "bad": "word"}, {}, ValueError),
                    ({"good": 9.0}, {"odometry": np.zeros(3)}, ValueError),
                    ({"good": 9.0}, {"odometry": np.zeros(7), "nowhere": np.zeros(1)}, AttributeError),
                    ({"new": [1.0, 2.0]}, {}, ValueError),
                ):
                    with pytest.raises(error):
                        builder.note(readouts, **columns)  # type: ignore[arg-type]
            builder.append(sim.t, observation, sim.contact, sim.ground_truth(), sim.command)
            builder.note({"good": float(tick)}, odometry=np.full(7, float(tick)))
    spoilt, clean = (builder.build() for builder in builders)
    assert spoilt.readouts.keys() == clean.readouts.keys() == {"good"}
    np.testing.assert_array_equal(spoilt.readouts["good"], clean.readouts["good"])
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(spoilt, name), getattr(clean, name), err_msg=name)
