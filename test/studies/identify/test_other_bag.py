"""A bag of another robot leads to the numbers of a recording of ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from other_bag_support import REMAP, Clock, write_other_bag
from refusals import refusal

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import RecordingError
from bipedsim.model import Robot, load_robot
from bipedsim.recording import Recording, load_recording
from bipedsim.runs.runner import run
from bipedsim_studies.gap import predict_recording
from bipedsim_studies.identify.signals import measured_rows, signals_of

CLOCKS = {
    "imu": Clock(500.0, 0.00031, 0.0003),
    "left": Clock(250.0, 0.0007, 0.0008),
    "right": Clock(250.0, 0.0019, 0.0008),
}
"""None of these times is that of joint states."""


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture(scope="module")
def own() -> Recording:
    """Return the measurements of a squat without noise, so that only the clocks make a difference."""
    recording = run(RunConfig(scenario="squat", duration=5.0, hardware={"coulomb_friction": {".*_knee": 2.5}}))[0]
    truths = ("base_pose", "wrench", "cop", "cop_world", "sole_poses", "odometry", "impact", "joint_command")
    return replace(recording, **{name: np.full_like(getattr(recording, name), np.nan) for name in truths}, run={})


@pytest.fixture(scope="module")
def other(own: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bag of another robot with the measurements of the run, and two more joints."""
    joints = ["neck", *reversed(own.joint_names), "left_elbow"]
    return write_other_bag(tmp_path_factory.mktemp("bags") / "other", own, CLOCKS, joints=joints)


def rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.ci
def test_the_smoothed_signals_differ_by_less_than_the_robot_moves_in_a_tenth_of_the_distance(
    own: Recording, other: Path, robot: Robot
) -> None:
    """A message is up to 1 ms (IMU) or 2.4 ms (wrench) from its row, before and after it, so that the window of 50 ms
    averages nearly all of it out."""
    recording, notes = measured_rows(load_recording(other, remap=REMAP), robot)
    assert len(notes) == 1
    first = int(np.searchsorted(own.t, recording.t[0] - 1e-6))
    ours = own.rows(slice(first, first + len(recording)))
    found, expected = (signals_of(each, robot) for each in (recording, ours))
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.effort, expected.effort)
    for name, rate, late in (
        ("gyro", "gyro_rate", 1e-4),
        ("accelerometer", "accelerometer_rate", 1e-4),
        ("wrench", "wrench_rate", 3e-4),
    ):
        difference = rms(getattr(found, name) - getattr(expected, name))
        assert 0.0 < difference < late * rms(getattr(expected, rate)), name


@pytest.mark.filterwarnings("ignore:estimator")
def test_predictions_have_the_errors_of_our_recording(own: Recording, other: Path, robot: Robot) -> None:
    models = {"model": {"coulomb_friction": {".*_knee": 2.5}}}
    (ours,), _ = predict_recording(own, robot, models)
    (theirs,), notes = predict_recording(load_recording(other, remap=REMAP), robot, models)
    for name in ("joint position", "joint velocity"):
        common = [np.isin(first.starts, second.starts) for first, second in ((ours, theirs), (theirs, ours))]
        first, second = (rms(gap.errors[name][rows][:, :3]) for gap, rows in zip((ours, theirs), common, strict=True))
        assert second == pytest.approx(first, rel=0.02), name
    assert any("neck" in note and "left_elbow" in note for note in notes)


def test_the_friction_is_that_of_our_recording(
    own: Recording, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remap = [f"{old}:={new}" for old, new in REMAP.items()]
    exported = tmp_path / "other.npz"
    assert main(["export", str(other), "--robot", "biped14", "--remap", *remap, "-o", str(exported)]) == 0
    own.save(tmp_path / "own.npz")
    found = []
    for path in (tmp_path / "own.npz", exported):
        capsys.readouterr()
        assert main(["identify", str(path), "--json"]) in (0, 3)
        found.append(json.loads(capsys.readouterr().out))
    ours, theirs = ({(each["kind"], each["of"]): each for each in one["parameters"]} for one in found)
    for knee in ("l_knee", "r_knee"):
        first, second = (one["coulomb_friction", knee] for one in (ours, theirs))
        assert second["value"] == pytest.approx(first["value"], abs=max(first["half_width"], second["half_width"]))
    notes = found[1]["notes"]
    assert any("left_elbow" in note for note in notes)
    assert sum("/imu/data" in note for note in notes) == 1


def test_a_joint_that_the_bag_lacks_is_named(own: Recording, tmp_path: Path, robot: Robot) -> None:
    joints = [name for name in own.joint_names if name != "l_knee"]
    recording = load_recording(
        write_other_bag(tmp_path / "bag", own.rows(slice(200)), CLOCKS, joints=joints), remap=REMAP
    )
    with refusal(RecordingError, place="bag: joints l_knee"):
        measured_rows(recording, robot, "bag")
    with refusal(RecordingError, place="joints l_knee"):
        predict_recording(recording, robot, {"model": "ideal"})


def test_only_rows_at_begin_and_end_are_left_out(own: Recording, robot: Robot) -> None:
    """A signal without any value does not count, and a gap in between stays."""
    recording = own.rows(np.arange(2000))
    recording.imu_angular_velocity[:30] = np.nan
    recording.ankle_wrench[1990:, 0] = np.nan
    recording.ankle_wrench[:, 1, 3] = np.nan
    recording.imu_linear_acceleration[1000] = np.nan
    rows, notes = measured_rows(recording, robot)
    np.testing.assert_array_equal(rows.t, recording.t[30:1990])
    assert len(notes) == 1
    assert measured_rows(own, robot) == (own, ())
