"""Frames of a run: thinning at any rate, velocities of second order, and the duration of pushes and plans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.config import RunConfig
from bipedsim.model import Robot, load_robot
from bipedsim.recording import Recording
from bipedsim.runs import run
from bipedsim.view.page.frames import RATE, Frames, ThinnedFrames, frames_of, pushes_at, read_thinned


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


def moving(robot: Robot, rate: float, seconds: float) -> Recording:
    """Return a recording of a robot that sways."""
    t = np.arange(round(seconds * rate)) / rate
    recording = Recording.empty(len(t), robot.joint_names, [sole.name for sole in robot.soles])
    recording.describe_robot(robot)
    recording.t[:] = t
    direction = np.random.default_rng(5).uniform(-1.0, 1.0, robot.model.nv)
    q = np.array([pin.integrate(robot.model, robot.q_nominal, 0.2 * np.sin(3.0 * time) * direction) for time in t])
    recording.base_pose[:], recording.joint_position[:] = q[:, :7], q[:, robot.idx_q]
    return recording


@pytest.mark.parametrize("rate", [1000.0, 500.0, 333.0, 30.0, 12.0])
@pytest.mark.parametrize("block", [7, 100, 10_000])
def test_a_run_of_any_rate_has_thirty_frames_a_second_at_most(robot: Robot, rate: float, block: int) -> None:
    recording = moving(robot, rate, 1.5)
    thinned = ThinnedFrames()
    for start in range(0, len(recording), block):
        thinned.add(recording.rows(slice(start, start + block)))
    t = thinned.recording.t
    assert t[0] == 0.0
    assert len(t) == pytest.approx(1.5 * min(rate, RATE), abs=1)
    assert np.isin(t, recording.t).all()
    assert np.diff(t).max() < 1.0 / min(rate, RATE) + 1.0 / rate + 1e-9


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_the_last_row_which_nobody_answers_shows_what_the_controller_showed_last(block: int) -> None:
    """100 ms are three frames: the last row is one."""
    recording, _ = run(RunConfig(scenario="walk", duration=0.1))
    assert np.isnan([values[-1] for values in recording.readouts.values()]).all()
    thinned = ThinnedFrames()
    for start in range(0, len(recording), block):
        thinned.add(recording.rows(slice(start, start + block)))
    shown = thinned.recording
    assert shown.t[-1] == recording.t[-1]
    for name, values in recording.readouts.items():
        np.testing.assert_array_equal(shown.readouts[name][-1], values[-2], err_msg=name)
        np.testing.assert_array_equal(shown.readouts[name][:-1], values[np.isin(recording.t, shown.t[:-1])])
    # A signal that ended earlier has no value.
    for values in recording.readouts.values():
        values[-2] = np.nan
    silent = ThinnedFrames()
    silent.add(recording)
    assert np.isnan([values[-1] for values in silent.recording.readouts.values()]).all()


def test_velocities_are_of_second_order(robot: Robot) -> None:
    errors = []
    for rate in (30.0, 60.0):
        frames = frames_of(moving(robot, rate, 1.0), robot)
        direction = np.random.default_rng(5).uniform(-1.0, 1.0, robot.model.nv)
        joints = 0.6 * np.cos(3.0 * frames.t)[:, None] * direction[robot.idx_v]
        errors.append(np.abs(frames.v[1:-1][:, robot.idx_v] - joints[1:-1]).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_between_two_frames_the_robot_is_between_theirs(robot: Robot) -> None:
    frames = frames_of(moving(robot, 30.0, 1.0), robot)
    i, t = 10, 0.5 * (frames.t[10] + frames.t[11])
    q = frames.instant(i, t).q
    np.testing.assert_allclose(q[robot.idx_q], 0.5 * (frames.q[10] + frames.q[11])[robot.idx_q], atol=1e-12)
    np.testing.assert_array_equal(frames.instant(i).q, frames.q[i])


@pytest.mark.parametrize("t", [-1.0, 0.0, 0.0161, 0.0171, 0.5, 99.0])
def test_the_nearest_frame_is_found(robot: Robot, t: float) -> None:
    frames = frames_of(moving(robot, 30.0, 1.0), robot)
    assert frames.nearest(t) == int(np.abs(frames.t - t).argmin())


def test_a_robot_that_does_not_know_where_it_is_stays(robot: Robot) -> None:
    recording = moving(robot, 30.0, 0.5)
    known = recording.base_pose.copy()
    estimated = frames_of(replace(recording, odometry=known, base_pose=np.full_like(known, np.nan)), robot)
    assert estimated.estimated
    np.testing.assert_allclose(estimated.q[:, :7], known)
    lost = replace(recording, base_pose=np.full_like(known, np.nan))
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.1, 0.0))
    lost.imu_orientation[:] = (turn * pin.Quaternion(robot.placement_joint_imu.rotation)).coeffs()
    held = frames_of(lost, robot)
    np.testing.assert_allclose(held.q[:, :3], np.tile(robot.q_nominal[:3], (len(held), 1)))
    np.testing.assert_allclose(held.q[:, 3:7], np.tile(turn.coeffs(), (len(held), 1)), atol=1e-9)
    assert any("base" in note for note in held.notes)


def test_a_controller_that_was_stopped_is_told_with_its_reason_from_then_on(robot: Robot) -> None:
    recording = moving(robot, 10.0, 0.5)
    frames = frames_of(replace(recording, gave_up_at=0.3, gave_up_why="its torque of l_knee is nan"), robot)
    said = "the controller was stopped at t = 0.300 s: its torque of l_knee is nan"
    assert [frames.instant(i).notes for i in range(len(frames))] == [(), (), (), (said,), (said,)]
    # A bag does not know why.
    (told,) = frames_of(replace(recording, gave_up_at=0.3), robot).instant(4).notes
    assert told == "the controller was stopped at t = 0.300 s"


def test_an_object_whose_shape_is_not_in_the_recording_is_left_out_and_told(robot: Robot) -> None:
    recording = moving(robot, 30.0, 0.5)
    state = np.array([1.0, 0.0, 0.1, *np.zeros(3), 1.0, *np.zeros(6)])
    recording.objects.update({name: np.tile(state, (len(recording), 1)) for name in ("ball", "crate")})
    recording.run["objects"] = ['{"name": "ball", "shape": "ball", "mass": 1.0, "radius": 0.1}']
    frames = frames_of(recording, robot)
    assert [one.name for one in frames.objects] == ["ball"]
    told = [note for note in frames.notes if "crate" in note]
    assert len(told) == 1
    assert "ball" not in told[0]


def test_pushes_are_shown_while_they_last() -> None:
    pushes = [
        {"t": 1.0, "after": 0.0005, "duration": 0.1, "body": None, "wrench": [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]},
        {"t": 1.05, "after": 0.0, "duration": 0.2, "body": "l_foot", "wrench": [0.0, 20.0, 0.0, 0.0, 0.0, 0.0]},
    ]
    run_of = {"pushes": pushes}
    assert pushes_at(run_of, 1.0) == ()
    assert pushes_at(run_of, 1.02)[0].force.tolist() == [10.0, 0.0, 0.0]
    assert pushes_at(run_of, 1.06)[0].frame == "l_foot"
    assert pushes_at(run_of, 1.26) == ()
    assert pushes_at({}, 1.0) == ()


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Frames:
    recording, _ = run(RunConfig(scenario="push", duration=4.0))
    path = tmp_path_factory.mktemp("runs") / "push.npz"
    recording.save(path)
    return frames_of(read_thinned(path), load_robot("biped14"))


def test_a_run_shows_its_pushes_and_forces(pushed: Frames, robot: Robot) -> None:
    shown = [frame for frame in map(pushed.instant, range(len(pushed))) if frame.push]
    assert 1 <= len(shown) < len(pushed)
    standing = pushed.instant(10)
    assert standing.wrench is not None
    assert standing.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=0.05)


def test_part_of_a_run_is_read(tmp_path: Path, robot: Robot) -> None:
    path = tmp_path / "sway.npz"
    moving(robot, 100.0, 2.0).save(path)
    t = read_thinned(path, start=0.5, stop=1.0).t
    assert t[0] == pytest.approx(0.5, abs=0.02)
    assert t[-1] <= 1.0
