"""``bipedsim gap``: predictions of walks and squats whose hardware is known, judged as if a robot had measured them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bipedsim.cli.main import main
from bipedsim.config.run import RunConfig
from bipedsim.errors import RecordingError, UnknownNameError
from bipedsim.model import Robot, load_robot
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.sim import Command, Simulator
from bipedsim_studies.gap.floor import noise, rms, rows_per_value, unshaken_noise
from bipedsim_studies.gap.models import make_model
from bipedsim_studies.gap.paired import DifferenceInterval, difference
from bipedsim_studies.gap.predict import HORIZONS, Gap, measure_gap
from bipedsim_studies.gap.recorded import CommandSource, RobotRun, robot_run
from bipedsim_studies.gap.report import WHERE, predicted_curve, rms_of_channels, worst_joints
from bipedsim_studies.gap.signals import QUANTITIES

MS_10, MS_50, MS_200, MS_1000 = range(4)
JOINTS, SPEEDS = "joint position", "joint velocity"
FRICTION = {"preset": "ideal", "viscous_friction": 3.0, "command_delay": 0.003, "measurement_delay": 0.001}


def recorded(**settings: Any) -> Recording:
    recording = run(RunConfig(robot="biped14", **{"scenario": "walk", "controller": "zmp", **settings}))[0]
    # Nothing that a robot could not measure may influence a prediction.
    truths = ("base_pose", "wrench", "cop", "cop_world", "sole_poses", "odometry", "impact")
    return replace(recording, **{name: np.full_like(getattr(recording, name), np.nan) for name in truths}, run={})


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture(scope="module")
def ideal(robot: Robot) -> RobotRun:
    return robot_run(recorded(duration=4.0), robot)


@pytest.fixture(scope="module")
def realistic(robot: Robot) -> RobotRun:
    return robot_run(recorded(duration=6.0, hardware="realistic", seed=2), robot)


@pytest.fixture(scope="module")
def gap_of_realistic(realistic: RobotRun, robot: Robot) -> Gap:
    return gap(realistic, robot, "realistic")


def gap(measured: RobotRun, robot: Robot, hardware: Any) -> Gap:
    return measure_gap(measured, make_model(hardware, robot, measured, "model"))


def error(result: Gap, name: str, horizon: int) -> float:
    return rms(result.errors[name][:, horizon])


def held(result: Gap, name: str, horizon: int) -> float:
    return rms(result.trivial["held"][name][:, horizon])


def worse(first: Gap, second: Gap, name: str, horizon: int) -> DifferenceInterval:
    """Return by how much the second model is worse."""
    times, i, j = np.intersect1d(first.starts, second.starts, return_indices=True)
    return difference(times, first.errors[name][i, horizon], second.errors[name][j, horizon], HORIZONS[horizon])


def test_the_exact_model_predicts_an_ideal_walk_as_well_as_its_start_is_known(ideal: RobotRun, robot: Robot) -> None:
    exact = gap(ideal, robot, "ideal")
    # The estimator finds the base within micrometres here, and an error of the walk grows by three in 200 ms.
    assert error(exact, JOINTS, MS_50) < 1e-4
    assert error(exact, "attitude", MS_200) < 1e-3
    for name in QUANTITIES:
        assert error(exact, name, MS_200) < 0.2 * held(exact, name, MS_200)
    assert rms(exact.floor[JOINTS]) < 1e-6, "ideal sensors have no noise"


@pytest.mark.ci
def test_the_right_hardware_predicts_to_about_the_noise_and_better_than_the_simple_rules(
    gap_of_realistic: Gap,
) -> None:
    right = gap_of_realistic
    assert rms(right.floor[SPEEDS]) == pytest.approx(0.02, rel=0.1)
    assert rms(right.floor["gyro"]) == pytest.approx(0.005, rel=0.1)
    assert rms(right.floor["accelerometer"]) == pytest.approx(0.05, rel=0.15)
    assert rms(right.floor["ankle force"]) == pytest.approx(3.0, rel=0.15)
    assert error(right, SPEEDS, MS_50) < 2.0 * 0.02
    assert error(right, "gyro", MS_50) < 2.5 * 0.005
    # A loaded foot does not fall onto the ground after the start: 1 % of the weight is 7 N.
    assert error(right, "ankle force", MS_10) < 15.0
    for name in QUANTITIES:
        assert error(right, name, MS_200) < 0.5 * held(right, name, MS_200)
    moving = rms(right.trivial["constant velocity"][JOINTS][:, MS_200])
    assert error(right, JOINTS, MS_200) < 0.2 * moving


@pytest.mark.parametrize(
    "wrong",
    [{"mass_scale": 1.1}, {"viscous_friction": 3.0}, {"coulomb_friction": 4.0}, {"command_delay": 0.006}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_wrong_hardware_is_worse_with_certainty(
    realistic: RobotRun, gap_of_realistic: Gap, robot: Robot, wrong: dict[str, float]
) -> None:
    other = gap(realistic, robot, {"preset": "realistic", **wrong})
    interval = worse(gap_of_realistic, other, SPEEDS, MS_50)
    assert interval.low > 0.0
    back = worse(other, gap_of_realistic, SPEEDS, MS_50)
    assert back.high < 0.0
    assert back.mean == pytest.approx(-interval.mean)


@pytest.mark.parametrize("joint", ["l_knee", "r_hip_roll"])
def test_the_channels_tell_in_which_joint_the_model_is_wrong(
    realistic: RobotRun, gap_of_realistic: Gap, robot: Robot, joint: str
) -> None:
    wrong = gap(realistic, robot, {"preset": "realistic", "viscous_friction": {joint: 8.0}})
    right = rms_of_channels(gap_of_realistic)[SPEEDS]
    ratio = {name: values[MS_50] / right[name][MS_50] for name, values in rms_of_channels(wrong)[SPEEDS].items()}
    assert max(ratio, key=lambda name: ratio[name]) == joint
    for name in QUANTITIES:
        squares = np.square([values[MS_50] for values in rms_of_channels(wrong)[name].values()])
        assert np.sqrt(squares.mean()) == pytest.approx(error(wrong, name, MS_50), rel=1e-9)


def test_the_curves_show_the_joint_in_which_the_model_is_wrong(
    realistic: RobotRun, gap_of_realistic: Gap, robot: Robot
) -> None:
    wrong = gap(realistic, robot, {"preset": "realistic", "viscous_friction": {"r_knee": 8.0}})
    joint = robot.joint_names.index("r_knee")
    assert worst_joints(wrong)[0] == joint
    t, measured, predicted = predicted_curve(wrong, joint)
    within = np.isfinite(t)
    assert np.mean(within) > 0.9
    np.testing.assert_allclose((t - wrong.starts)[within], WHERE, atol=2.0 * realistic.dt)
    at = np.searchsorted(realistic.t, t[within])
    np.testing.assert_array_equal(measured[within], realistic.position[at, joint])
    _, same, right = predicted_curve(gap_of_realistic, joint)
    np.testing.assert_array_equal(same, measured)
    assert np.nanmax(np.abs(right - measured)) < 0.1 * np.nanmax(np.abs(predicted - measured))
    # With too much friction, the predicted joint stays behind.
    moved = measured - realistic.position[np.searchsorted(realistic.t, wrong.starts), joint]
    assert np.nansum(moved * (measured - predicted)) > 0.5 * np.nansum(np.abs(moved * (measured - predicted)))


def test_the_curves_are_as_late_as_the_measurements(robot: Robot) -> None:
    measured = robot_run(recorded(duration=2.0, hardware=FRICTION), robot)
    model = make_model(FRICTION, robot, measured, "model")
    assert model.late == 1
    result = measure_gap(measured, model)
    t, _, _ = predicted_curve(result, 0)
    within = np.isfinite(t)
    np.testing.assert_allclose((t - result.starts)[within], WHERE + measured.dt, atol=1e-9)


@pytest.mark.parametrize(
    ("foot", "number", "quantity", "channel"),
    [(1, 0, "ankle force", "right x"), (0, 2, "ankle force", "left z"), (0, 4, "ankle torque", "left y")],
)
def test_the_channels_of_feet_have_their_foot_and_axis(
    ideal: RobotRun, robot: Robot, foot: int, number: int, quantity: str, channel: str
) -> None:
    """Half-way through the run one number of one ankle sensor becomes wrong."""
    wrench = ideal.wrench.copy()
    wrench[len(wrench) // 2 :, foot, number] += 400.0
    errors = rms_of_channels(gap(replace(ideal, wrench=wrench), robot, "ideal"))[quantity]
    assert max(errors, key=lambda name: errors[name][MS_10]) == channel


def test_a_window_has_the_same_bits_whatever_came_before_it(realistic: RobotRun, robot: Robot) -> None:
    first, again = (gap(realistic, robot, "realistic") for _ in range(2))
    for name in QUANTITIES:
        np.testing.assert_array_equal(first.errors[name], again.errors[name])
    # A model that has simulated other windows before gives the same.
    model = make_model("realistic", robot, realistic, "model")
    model.sim.step(np.full(robot.nu, 5.0))
    used = measure_gap(realistic, model)
    np.testing.assert_array_equal(used.errors[JOINTS], first.errors[JOINTS])


def test_measured_torques_replace_commands_without_delay_and_limits(robot: Robot) -> None:
    recording = recorded(duration=4.0, hardware=FRICTION)
    commands = robot_run(recording, robot)
    recording.joint_command = np.full_like(recording.joint_command, np.nan)
    efforts = robot_run(recording, robot)
    assert (commands.source, efforts.source) == (CommandSource.COMMAND, CommandSource.EFFORT)
    assert efforts.notes
    by_command, by_effort = gap(commands, robot, FRICTION), gap(efforts, robot, FRICTION)
    assert error(by_effort, JOINTS, MS_200) == pytest.approx(error(by_command, JOINTS, MS_200), rel=0.1)
    # The delay of the commands matters: without it in the model, the prediction is worse.
    undelayed = gap(commands, robot, {**FRICTION, "command_delay": 0.0})
    assert error(undelayed, SPEEDS, MS_50) > 5.0 * error(by_command, SPEEDS, MS_50)


def test_impedances_are_followed_and_stabilise_long_predictions(robot: Robot) -> None:
    sim = Simulator(robot, hardware="realistic", seed=5)
    builder = Recording.Builder(robot, 3000)
    stiffness, damping = np.full(robot.nu, 2000.0), np.full(robot.nu, 40.0)
    sway = np.array(["pitch" in name and "hip" in name for name in robot.joint_names], dtype=float)
    for tick in range(3000):
        target = robot.posture + 0.03 * np.sin(2 * np.pi * 0.7e-3 * tick) * sway
        observation = sim.step(Command(np.zeros(robot.nu), target, stiffness=stiffness, damping=damping))
        builder.append(sim.t, observation, sim.contact, sim.ground_truth(), sim.command)
    measured = robot_run(builder.build(), robot)
    assert measured.source is CommandSource.SETPOINT
    right, soft = gap(measured, robot, "realistic"), gap(measured, robot, {"preset": "realistic", "torque_gain": 0.8})
    for horizon in (MS_200, MS_1000):
        assert error(right, JOINTS, horizon) < 0.2 * held(right, JOINTS, horizon)
        assert error(right, JOINTS, horizon) < 0.5 * error(soft, JOINTS, horizon)


def test_offsets_of_the_sensors_belong_to_the_model(robot: Robot) -> None:
    offsets = {
        "encoder_offset": {"l_knee": 0.03},
        "gyro_offset": [0.0, 0.05, 0.0],
        "foot_wrench_offset": {"left": [0.0, 0.0, 30.0, 0.0, 2.0, 0.0]},
        "imu_rotation": [0.02, 0.0, 0.0],
        "measurement_delay": 0.002,
    }
    measured = robot_run(recorded(duration=4.0, scenario="squat", controller="posture", hardware=offsets), robot)
    right, none = gap(measured, robot, offsets), gap(measured, robot, "ideal")
    for name in (JOINTS, "gyro", "attitude", "ankle force"):
        assert error(right, name, MS_50) < 0.2 * error(none, name, MS_50)


def test_measurements_that_arrive_late_are_those_of_earlier_ticks(robot: Robot) -> None:
    late = {"measurement_delay": 0.003}
    measured = robot_run(recorded(duration=4.0, hardware=late), robot)
    right = gap(measured, robot, late)
    assert error(right, JOINTS, MS_10) < 1e-4
    assert error(right, JOINTS, MS_200) < 0.05 * held(right, JOINTS, MS_200)


def test_lost_rows_cost_only_the_windows_that_contain_them(ideal: RobotRun, robot: Robot) -> None:
    torque = ideal.torque.copy()
    torque[2000:2010] = np.nan
    whole, holed = gap(ideal, robot, "ideal"), gap(replace(ideal, torque=torque), robot, "ideal")
    assert sum(holed.skipped.values()) > sum(whole.skipped.values())
    _, i, j = np.intersect1d(whole.starts, holed.starts, return_indices=True)
    later = holed.starts[j] > 2.1
    np.testing.assert_array_equal(holed.errors[JOINTS][j[later]], whole.errors[JOINTS][i[later]])
    spanning = (holed.starts > 1.85) & (holed.starts < 1.98)
    assert np.isnan(holed.errors[JOINTS][spanning, MS_200]).all()
    assert np.isfinite(holed.errors[JOINTS][spanning, MS_10]).all()


@pytest.mark.filterwarnings("ignore:estimator")
def test_an_imu_at_half_the_rate_is_enough(realistic: RobotRun, gap_of_realistic: Gap, robot: Robot) -> None:
    names = ("orientation", "gyro", "accelerometer")
    slower = {name: getattr(realistic, name).copy() for name in names}
    for values in slower.values():
        values[1::2] = np.nan
    half = gap(replace(realistic, **slower), robot, "realistic")
    assert len(half.starts) == len(gap_of_realistic.starts)
    assert error(half, JOINTS, MS_200) < 2.0 * error(gap_of_realistic, JOINTS, MS_200)
    assert np.isfinite(error(half, "gyro", MS_200))


def test_a_recording_without_sensors_or_torques_is_refused(ideal: RobotRun, robot: Robot) -> None:
    with pytest.raises(RecordingError):
        gap(replace(ideal, gyro=np.full_like(ideal.gyro, np.nan)), robot, "ideal")
    empty = Recording.empty(100, robot.joint_names, [sole.name for sole in robot.soles])
    empty.t = 1e-3 * np.arange(100)
    with pytest.raises(RecordingError):
        robot_run(empty, robot)


def test_the_noise_is_that_of_a_moving_signal_with_impacts() -> None:
    t = np.arange(20_000) * 1e-3
    random = np.random.default_rng(0)
    clean = np.column_stack([np.sin(2 * np.pi * 2.0 * t), np.cos(2 * np.pi * 5.0 * t)])
    clean[::500] += 10.0
    noisy = clean + random.normal(0.0, [0.01, 0.2], clean.shape)
    assert noise(noisy) == pytest.approx([0.01, 0.2], rel=0.05)
    assert (noise(clean) < 1e-5).all()
    assert np.isnan(noise(clean[:5])).all()


def test_motion_that_follows_torques_is_no_noise() -> None:
    """The judge is how the signal was made: of noise, and of a much larger motion due to the torques of two rows."""
    n, random = 5000, np.random.default_rng(1)
    efforts = random.normal(size=(n, 3))
    before = np.vstack([efforts[:1], efforts[:-1]])
    motion = efforts @ random.normal(size=(3, 2)) + before @ random.normal(size=(3, 2))
    motion += np.sin(np.arange(n) * 1e-2)[:, None]
    motion[::500] += 300.0
    signal = motion + random.normal(0.0, [0.02, 0.1], (n, 2))
    assert unshaken_noise(signal, efforts) == pytest.approx([0.02, 0.1], rel=0.05)
    unmeasured = np.column_stack([efforts, np.full(n, np.nan)])
    assert unshaken_noise(signal, unmeasured) == pytest.approx([0.02, 0.1], rel=0.05)
    # Nothing is removed without efforts, in few rows, with missing values, and from a slow sensor.
    slow = signal[2 * (np.arange(n) // 2)]
    missing = signal.copy()
    missing[7, 0] = np.nan
    for values, torques in (
        (signal, efforts[:, :0]),
        (signal[:12], efforts[:12]),
        (missing, efforts),
        (slow, efforts),
        (signal[:3], efforts[:3]),
    ):
        np.testing.assert_array_equal(unshaken_noise(values, torques), noise(values))


@pytest.mark.parametrize("rows", [2, 4, 10])
def test_the_noise_of_a_slow_sensor_is_that_of_its_measurements(rows: int) -> None:
    """A mean over rows reduces it as if it were larger by the square root of the rows of a measurement."""
    t = np.arange(20_000) * 1e-3
    random = np.random.default_rng(rows)
    noisy = (np.sin(2 * np.pi * t) + random.normal(0.0, 0.3, t.shape))[:, None]
    signal = noisy[rows * (np.arange(len(t)) // rows)]
    signal[7] = np.nan
    assert noise(signal) == pytest.approx([0.3], rel=0.05)
    assert rows_per_value(signal) == pytest.approx([rows], rel=0.01)
    means = (
        (signal - np.sin(2 * np.pi * t)[rows * (np.arange(len(t)) // rows), None])[100:].reshape(-1, 100).mean(axis=1)
    )
    assert means.std() == pytest.approx(0.3 * np.sqrt(rows / 100.0), rel=0.15)


def test_a_signal_that_hardly_changes_has_one_row_per_value() -> None:
    signal = np.zeros((1000, 2))
    signal[500:] = 1.0
    signal[:, 1] = np.nan
    assert rows_per_value(signal).tolist() == [1.0, 1.0]
    assert noise(signal)[0] == 0.0


def test_windows_in_a_short_last_block_count_as_much_as_others() -> None:
    times = 0.05 * np.arange(83)
    second = np.ones((83, 1))
    second[80:] = 5.0
    mean = difference(times, np.zeros((83, 1)), second, 0.2).mean
    assert mean == pytest.approx(second.mean(), rel=0.05)


def test_the_interval_contains_the_mean_of_correlated_windows() -> None:
    random, hits, draws = np.random.default_rng(1), 0, 400
    times = 0.05 * np.arange(600)
    for _ in range(draws):
        shared = np.repeat(random.normal(0.0, 1.0, 75), 8)
        interval = difference(times, np.full((600, 1), 10.0), (10.3 + shared)[:, None], 0.2)
        hits += interval.low < 0.3 < interval.high
    assert 0.90 < hits / draws < 0.99


def test_few_blocks_give_no_interval() -> None:
    times = 0.05 * np.arange(30)
    interval = difference(times, np.ones((30, 2)), np.full((30, 2), 2.0), 1.0)
    assert interval.mean == pytest.approx(1.0)
    assert np.isnan(interval.low)
    assert interval.lacks_interval
    assert not interval.excludes_zero


def test_the_command_prints_a_table_and_json_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "walk.npz"
    recorded(duration=2.0).save(path)
    words = ["gap", str(path), "--robot", "biped14", "--against", "{mass_scale: 1.2}"]
    assert main([*words, "--plot", str(tmp_path / "gap.png")]) == 0
    assert len(capsys.readouterr().out.splitlines()) > len(QUANTITIES)
    assert (tmp_path / "gap.png").stat().st_size > 10_000
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["rms"][SPEEDS]["model"][MS_50] < result["rms"][SPEEDS]["against"][MS_50]
    assert result["difference"][SPEEDS][MS_50]["mean"] > 0.0
    assert main(["gap", str(path), "--robot", "biped14", "--against", "exact", "--to", "1.2"]) == 0


def test_wrong_input_ends_with_code_2(tmp_path: Path, ideal: RobotRun, robot: Robot) -> None:
    path = tmp_path / "walk.npz"
    recorded(duration=0.2).save(path)
    assert main(["gap", str(path), "--robot", "biped14"]) == 2
    with pytest.raises(UnknownNameError):
        make_model("exakt", robot, ideal, "model")
