"""Estimates of hidden parameters from recordings with realistic noise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from benchmark_modules import benchmark
from estimates import estimate_with
from numpy.testing import assert_allclose
from scipy import optimize, stats

from bipedsim.cli.main import main
from bipedsim.config import yaml_value
from bipedsim.config.run import RunConfig
from bipedsim.errors import EXIT_USAGE
from bipedsim.model import PRESETS, Robot, body_links, joint_values, load_robot, perturbed, read_hardware
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim.sim import Command, Observation, trunk_joint
from bipedsim_studies.gap import noise
from bipedsim_studies.identify import estimation, unknowns
from bipedsim_studies.identify.bodies import body
from bipedsim_studies.identify.delay import command_delay
from bipedsim_studies.identify.estimation import Estimate, estimate, with_more
from bipedsim_studies.identify.lacking import Lacking
from bipedsim_studies.identify.noise import channel_noise, sensor_noise
from bipedsim_studies.identify.overlay import Measured, overlay, samples
from bipedsim_studies.identify.parameters import OF_JOINTS, parameters_of
from bipedsim_studies.identify.signals import signals_of
from bipedsim_studies.identify.unknowns import DRIFTING, Unknowns

_DRAWS = benchmark("identify_draws")
hidden, truth = _DRAWS.hidden, _DRAWS.truth


def recordings(hardware: dict[str, Any], seconds: float, scenarios: tuple[str, ...]) -> list[Recording]:
    """Return recordings with noise of their own."""
    controllers = {"walk": "zmp"}
    return [
        run(
            RunConfig(
                scenario=name,
                controller=controllers.get(name, "posture"),
                hardware=hardware,
                duration=seconds,
                seed=seed,
            )
        )[0]
        for seed, name in enumerate(scenarios)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_intervals_contain_what_was_hidden(seed: int) -> None:
    robot = load_robot("biped14")
    hardware = hidden(robot, seed)
    runs = recordings(hardware, 10.0, ("squat", "sway", "walk"))
    result = estimate(robot, [signals_of(each, robot) for each in runs])
    assert result.converged
    p = result.parameters
    true = [truth(robot, hardware, *key) for key in zip(p.kinds, p.owners, p.components, strict=True)]
    known = np.array([x is not None for x in true])
    error = np.abs(result.values - np.array([np.nan if x is None else x for x in true]))
    inside = error <= result.half_width
    told = result.identified & known
    assert told.sum() >= 25
    assert np.mean(inside[told]) >= 0.85
    learnt = known & (result.deviation < 0.5 * p.spread)
    assert np.mean(inside[learnt]) >= 0.9
    dry = p.at["coulomb_friction"].ravel()
    assert result.identified[dry].sum() >= 6
    assert np.all(error[dry][result.identified[dry]] < 0.15)


class Sines:
    """Move all joints in sines of different frequencies."""

    def __init__(self, robot: Robot, params: object, dt: float) -> None:
        self._start, self._dt = robot.q_nominal[robot.idx_q], dt
        self._frequency = 0.7 + 0.11 * np.arange(robot.nu)
        self._amplitude = 0.15 * np.where(np.arange(robot.nu) % 2, -1.0, 1.0)
        self.readouts: dict[str, float] = {}

    def reset(self, observation: Observation) -> None:
        self._t = 0.0

    def update(self, observation: Observation) -> Command:
        self._t += self._dt
        wanted = self._start + self._amplitude * (1.0 - np.cos(2.0 * np.pi * self._frequency * self._t))
        return Command(300.0 * (wanted - observation.joint_position) - 8.0 * observation.joint_velocity)


@pytest.mark.long
@pytest.mark.filterwarnings("error")
def test_a_robot_that_hangs_at_rest_shows_nothing() -> None:
    robot = load_robot("biped14")
    at_rest = run(RunConfig(scenario="hang", controller="posture", duration=4.0))[0]
    result = estimate(robot, [signals_of(at_rest, robot)])
    assert not result.identified.any()
    assert np.isfinite(result.values).all()


@pytest.mark.slow
def test_a_robot_that_hangs_shows_its_drives_and_legs() -> None:
    """The force of the gantry is not measured, so the mass of the trunk stays unknown. Some joints reach a limit."""
    robot = load_robot("biped14")
    hardware = hidden(robot, 5)
    config = RunConfig(scenario="hang", controller=f"{__name__}:Sines", hardware=hardware, duration=15.0)
    signals = signals_of(run(config)[0], robot)
    assert signals.held.all()
    result = estimate(robot, [signals])
    p = result.parameters
    true = [truth(robot, hardware, *key) for key in zip(p.kinds, p.owners, p.components, strict=True)]
    known = np.array([x is not None for x in true]) & result.identified
    error = np.abs(result.values - np.array([np.nan if x is None else x for x in true]))
    assert np.mean(error[known] <= result.half_width[known]) >= 0.9
    friction = p.at["coulomb_friction"].ravel()
    assert result.identified[friction].sum() >= 4
    assert np.all(error[friction][result.identified[friction]] < 0.15)
    trunk = body_links(robot.model)[trunk_joint(robot)]
    assert not result.identified[[i for i in p.at["mass"].ravel() if p.owners[i] == trunk]].any()


@pytest.mark.slow
def test_intervals_hold_with_eight_times_the_noise() -> None:
    """It moves the robot through its controller. With the derivatives as instruments, 12 % of the intervals miss."""
    robot = load_robot("biped14")
    hardware = hidden(robot, 1)
    levels = {"velocity_noise": 0.16, "gyro_noise": 0.04, "accelerometer_noise": 0.4}
    noisy = {**hardware, **levels, "force_noise": 24.0, "torque_noise": 0.8}
    runs = recordings(noisy, 10.0, ("squat", "sway", "walk"))
    result = estimate(robot, [signals_of(each, robot) for each in runs])
    p = result.parameters
    true = [truth(robot, hardware, *key) for key in zip(p.kinds, p.owners, p.components, strict=True)]
    known = np.array([x is not None for x in true]) & (result.deviation < 0.5 * p.spread)
    error = np.abs(result.values - np.array([np.nan if x is None else x for x in true]))
    assert known.sum() >= 50
    assert np.mean(error[known] <= result.half_width[known]) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_offsets_that_change_between_recordings_make_no_interval_wrong(seed: int) -> None:
    """With common offsets, 14 % of the intervals of all other numbers miss the truth, by up to five half widths."""
    robot = load_robot("biped14")
    hardware = hidden(robot, seed)
    largest = {"force_bias": 2.0, "torque_bias": 0.1, "accelerometer_bias": 0.04}
    runs = recordings({**hardware, **largest}, 10.0, ("squat", "sway", "walk"))
    result = estimate(robot, [signals_of(each, robot) for each in runs])
    p = result.parameters
    drifting = result.unknowns.drift > 0.0
    assert {p.kinds[i] for i in np.flatnonzero(drifting)} == set(DRIFTING)
    true = [truth(robot, hardware, *key) for key in zip(p.kinds, p.owners, p.components, strict=True)]
    told = result.identified & ~drifting & np.array([x is not None for x in true])
    error = np.abs(result.values - np.array([np.nan if x is None else x for x in true]))
    assert told.sum() >= 50
    assert np.mean(error[told] <= result.half_width[told]) >= 0.9
    # The biases are drawn from uniform distributions.
    for kind, bias in zip(DRIFTING, largest.values(), strict=True):
        assert result.unknowns.drift[p.at[kind]].max() == pytest.approx(bias / np.sqrt(3.0), rel=0.6), kind


@pytest.mark.slow
def test_where_offsets_do_not_change_their_drift_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_robot("biped14")
    still = {"preset": "realistic", "force_bias": 0.0, "torque_bias": 0.0, "accelerometer_bias": 0.0}
    parts = [signals_of(each, robot) for each in recordings(still, 4.0, ("squat", "sway"))]
    result = estimate(robot, parts)
    assert not estimate(robot, parts[:1]).unknowns.drift.any(), "a recording alone cannot tell offset and drift apart"
    monkeypatch.setattr(unknowns, "DRIFTING", ())
    wider = result.deviation / estimate(robot, parts).deviation
    assert wider[result.unknowns.drift > 0.0].max() < 1.3
    assert np.median(wider) < 1.01


@pytest.mark.long
def test_intervals_are_right_for_white_noise_and_descriptions_as_wrong_as_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The judge is one walk with other noise and another description in each draw. Residuals do not count here."""
    monkeypatch.setattr(estimation, "_newey_west", lambda scores, _: np.zeros((scores.shape[1], scores.shape[1])))
    monkeypatch.setattr(estimation, "repeated_shares", lambda *_: np.zeros(2))
    robot, rng = load_robot("biped14"), np.random.default_rng(3)
    p, (walk,) = parameters_of(robot), recordings({}, 3.5, ("walk",))
    levels = {
        "joint_velocity": 0.02,
        "imu_angular_velocity": 0.005,
        "imu_linear_acceleration": 0.05,
        "ankle_wrench": np.array([3.0] * 3 + [0.1] * 3),
    }
    errors, forces = [], []
    for _ in range(8):
        noise: dict[str, Any] = {
            name: getattr(walk, name) + level * rng.normal(size=getattr(walk, name).shape)
            for name, level in levels.items()
        }
        start = np.where(p.positive, p.start, p.start + p.spread * rng.normal(size=len(p)))
        result = estimate(robot, [signals_of(replace(walk, **noise), robot)], parameters=replace(p, start=start))
        # Friction is zero here, and cannot be negative.
        learnt = (result.deviation < 0.5 * p.spread) & ~p.positive
        assert learnt.sum() > 50
        error = (result.values - p.start) / result.deviation
        errors.append(error[learnt])
        forces.append(error[p.at["force_offset"]])
    assert 0.8 < np.sqrt(np.mean(np.concatenate(errors) ** 2)) < 1.15
    # The noise of forces is correlated in near rows, that of accelerations has the other sign there.
    assert 0.7 < np.sqrt(np.mean(np.square(forces))) < 1.35


@pytest.mark.slow
def test_dry_friction_of_the_knees_is_found_in_a_squat() -> None:
    robot = load_robot("biped14")
    hardware = hidden(robot, 7)
    (squat,) = recordings(hardware, 8.0, ("squat",))
    result = estimate(robot, [signals_of(squat, robot)])
    p = result.parameters
    for name in ("l_knee", "r_knee"):
        i = next(i for i in p.at["coulomb_friction"].ravel() if p.owners[i] == name)
        assert abs(result.values[i] - hardware["coulomb_friction"][name]) < 3.0 * result.deviation[i]
        assert result.deviation[i] < 0.2 * p.spread[i]
    yaw = next(i for i in p.at["armature"].ravel() if p.owners[i] == "l_hip_yaw")
    assert not result.identified[yaw], "a joint that does not move tells nothing of its rotor"
    again = estimate(robot, [signals_of(squat, robot)])
    assert np.array_equal(again.values, result.values)
    assert np.array_equal(again.covariance, result.covariance)


@pytest.mark.long
def test_an_estimate_that_still_moves_has_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_robot("biped14")
    (squat,) = recordings({"preset": "realistic"}, 4.0, ("squat",))
    signals = [signals_of(squat, robot)]
    assert estimate(robot, signals).converged
    monkeypatch.setattr(estimation, "CONVERGED", 1e-12)
    assert not estimate(robot, signals).converged


@pytest.mark.long
def test_a_recording_without_noise_has_finite_results() -> None:
    """Joints at rest then have no signal at all, and their instruments depend on each other."""
    robot = load_robot("biped14")
    (squat,) = recordings({}, 4.0, ("squat",))
    result = estimate(robot, [signals_of(squat, robot)])
    assert np.isfinite(result.values).all()
    assert np.isfinite(result.deviation).all()
    assert (result.deviation > 0.0).all()
    assert set(result.unexplained) < set(robot.joint_names)


def test_the_hardware_file_says_what_the_estimate_says() -> None:
    robot = load_robot("biped14")
    p, rng = parameters_of(robot), np.random.default_rng(6)
    values = p.start + p.spread * rng.uniform(0.1, 0.5, len(p))
    result = estimate_with(p, values, np.diag(p.spread**2))
    measured = Measured([], 0.003, {"gyro_noise": 0.007, "force_noise": 2.0})
    params = read_hardware(yaml.safe_load(overlay(robot, result, measured)), robot)
    plant = perturbed(robot, params)
    for joint, columns in zip(p.bodies, p.of_body, strict=True):
        expected = body(robot.model.inertias[joint], values[columns])
        assert_allclose(plant.model.inertias[joint].toDynamicParameters(), expected.toDynamicParameters(), rtol=1e-4)
    assert_allclose(plant.model.armature[robot.idx_v], values[p.at["armature"][:, 0]], rtol=1e-5)
    for kind in OF_JOINTS[1:]:
        assert_allclose(joint_values(robot, getattr(params, kind)), values[p.at[kind][:, 0]], rtol=1e-5)
    for kind in ("accelerometer_offset", "imu_rotation"):
        assert_allclose(getattr(params, kind), values[p.at[kind][0]], rtol=1e-5)
    offsets = np.hstack([p.at["force_offset"], p.at["moment_offset"]])
    assert_allclose([params.foot_wrench_offset[sole.name] for sole in robot.soles], values[offsets], rtol=1e-5)
    assert (params.command_delay, params.gyro_noise, params.force_noise) == (0.003, 0.007, 2.0)


def test_samples_are_robots_with_the_distribution_of_the_estimate() -> None:
    """Numbers that are known only together stay together: here the sum of two frictions."""
    robot = load_robot("biped14")
    p = parameters_of(robot)
    values, covariance = p.start + 0.5 * p.spread, np.diag(0.01 * p.spread**2)
    first, second = p.at["viscous_friction"][:2, 0]
    values[[first, second]] = 5.0
    covariance[np.ix_([first, second], [first, second])] = [[0.25, -0.2499], [-0.2499, 0.25]]
    values[p.at["coulomb_friction"][0]] = 0.001
    covariance[p.at["coulomb_friction"][0], p.at["coulomb_friction"][0]] = 1.0
    result = estimate_with(p, values, covariance)
    texts = list(samples(robot, result, Measured([], None, {}), 200))
    assert texts[:5] == list(samples(robot, result, Measured([], None, {}), 5))
    drawn = [read_hardware(yaml.safe_load(text), robot) for text in texts]
    for params in drawn[:20]:
        perturbed(robot, params)  # raises an error if a body is impossible
    frictions = np.array([joint_values(robot, params.viscous_friction)[:2] for params in drawn])
    assert stats.kstest((frictions[:, 0] - 5.0) / 0.5, "norm").pvalue > 1e-3
    assert np.abs(frictions.sum(axis=1) - 10.0).max() < 0.1
    dry = np.array([joint_values(robot, params.coulomb_friction)[0] for params in drawn])
    assert dry.min() == 0.0
    assert 0.4 < np.mean(dry == 0.0) < 0.6
    gains = np.array([joint_values(robot, params.torque_gain) for params in drawn])
    expected = values[p.at["torque_gain"][:, 0]]
    assert (
        stats.kstest(((gains - expected) / (0.1 * p.spread[p.at["torque_gain"][:, 0]])).ravel(), "norm").pvalue > 1e-3
    )


def test_noise_of_the_sensors_is_that_of_the_hardware() -> None:
    said = PRESETS["realistic"]
    found = sensor_noise(recordings({"preset": "realistic"}, 4.0, ("squat", "walk")), load_robot("biped14"))
    assert set(found) == {"velocity_noise", "gyro_noise", "accelerometer_noise", "force_noise", "torque_noise"}
    for name, value in found.items():
        assert value == pytest.approx(said[name], rel=0.1), name
    # Without delays a torque follows the noise of the tick before.
    undelayed = {"preset": "realistic", "command_delay": 0.0, "measurement_delay": 0.0}
    for name, value in sensor_noise(recordings(undelayed, 4.0, ("squat",)), load_robot("biped14")).items():
        assert value == pytest.approx(said[name], rel=0.15), name
    (squat,) = recordings({"preset": "realistic"}, 2.0, ("squat",))
    squat.imu_angular_velocity[:] = 0.1
    squat.ankle_wrench[:, :, [0, 1, 3, 4, 5]] = 0.0
    cells = sensor_noise([squat], load_robot("biped14"))
    assert set(cells) == {"velocity_noise", "accelerometer_noise", "force_noise"}
    assert cells["force_noise"] == pytest.approx(said["force_noise"], rel=0.1)


@pytest.mark.parametrize(("name", "controller", "within"), [("squat", "posture", 0.1), ("walk", "zmp", 0.35)])
def test_motion_that_follows_torques_is_no_noise(name: str, controller: str, within: float) -> None:
    """A controller shakes the robot: its ankle sensors measure a motion up to 15 times larger than their noise."""
    robot, said = load_robot("talos"), PRESETS["realistic"]
    settings = RunConfig(robot="talos", scenario=name, controller=controller, hardware="realistic", duration=4.0)
    recording = run(settings)[0]
    lacking = Lacking.of(recording, robot)
    shaken = noise(recording.ankle_wrench.reshape(len(recording), -1))
    found = channel_noise(recording, lacking)
    wrenches = found["ankle_wrench"].reshape(2, 6)
    assert_allclose(found["imu_linear_acceleration"], said["accelerometer_noise"], rtol=within)
    assert_allclose(wrenches[:, :3], said["force_noise"], rtol=within)
    if name == "squat":
        assert_allclose(wrenches[:, 3:], said["torque_noise"], rtol=within)
        assert shaken.reshape(2, 6)[:, 4].min() > 5.0 * wrenches[:, 4].max()
    noisy = signals_of(recording, robot).noise
    assert_allclose(noisy[-12:] / noisy[-12], found["ankle_wrench"] / found["ankle_wrench"][0])


def test_noise_is_that_of_the_joints_and_feet_of_the_robot() -> None:
    """A bag may have more: a gripper without efforts, and a foot of a name that the robot does not have."""
    (squat,) = recordings({"preset": "realistic"}, 2.0, ("squat",))
    robot = load_robot("biped14")
    n = len(squat)
    more = {
        name: np.concatenate([getattr(squat, name), np.full((n, 1), np.nan)], axis=1)
        for name in ("joint_position", "joint_velocity", "joint_effort", "joint_command", "stop_torque")
    }
    other = replace(
        squat,
        joint_names=(*squat.joint_names, "gripper"),
        effort_limit=np.append(squat.effort_limit, np.nan),
        link_contact=np.full((n, robot.nu + 1, 3), np.nan),
        setpoint=np.full((n, robot.nu + 1, 6), np.nan),
        **more,
    )
    assert sensor_noise([other], robot) == pytest.approx(sensor_noise([squat], robot))


def test_noise_does_not_shrink_with_the_number_of_joints() -> None:
    """Short recordings of independent noise, of which a regression on the efforts explains a part."""
    (squat,) = recordings({"preset": "realistic"}, 2.0, ("squat",))
    robot, rng = load_robot("biped14"), np.random.default_rng(4)
    short, n = squat.rows(slice(0, 150)), 150
    found = []
    for _ in range(40):
        short.joint_effort = rng.normal(size=(n, robot.nu))
        short.imu_linear_acceleration = rng.normal(0.0, 0.05, (n, 3))
        short.ankle_wrench = rng.normal(0.0, [3.0] * 3 + [0.1] * 3, (n, 2, 6))
        found.append(sensor_noise([short], robot))
    for name, true in (("accelerometer_noise", 0.05), ("force_noise", 3.0), ("torque_noise", 0.1)):
        assert np.mean([each[name] for each in found]) == pytest.approx(true, rel=0.05), name


@pytest.mark.parametrize(("recordings", "size"), [(2, 3.0), (1, 3.0 / np.sqrt(2.0))])
def test_sensors_of_the_samples_drift_as_those_of_the_recordings(recordings: int, size: float) -> None:
    """The offset in a single recording contains its drift, so that the next one differs by two drifts."""
    robot = load_robot("biped14")
    p = parameters_of(robot)
    own = Unknowns.of(p, recordings)
    deviation = np.where(np.isin(own.offsets, p.at["force_offset"]), size, 0.0)
    drifts = np.zeros(own.recordings * len(own.offsets))
    numbers, covariance = np.concatenate([p.start, drifts]), np.diag(np.append(np.full(len(p), 1e-12), drifts))
    covariance[p.at["force_offset"].ravel(), p.at["force_offset"].ravel()] = 1.0
    result = Estimate(replace(own, deviation=deviation), numbers, covariance, {}, True, np.zeros(0), np.zeros(2))
    texts = samples(robot, result, Measured([], None, {}), 60)
    drawn = [read_hardware(yaml.safe_load(text), robot).foot_wrench_offset for text in texts]
    offsets = np.array([list(each.values()) for each in drawn])
    # The standard deviation of 360 numbers is known to 4 %.
    assert offsets[:, :, :3].std() == pytest.approx(np.sqrt(10.0), rel=0.12)
    assert np.abs(offsets[:, :, 3:]).max() < 1e-4


def test_small_numbers_stay_numbers_in_the_samples() -> None:
    """YAML reads 2e-05 as a text, unless it is read as our files are."""
    robot = load_robot("biped14")
    p = parameters_of(robot)
    values = p.start.copy()
    values[p.at["armature"][0]] = 2e-05
    result = estimate_with(p, values, np.diag(1e-30 * p.spread**2))
    (text,) = samples(robot, result, Measured([], None, {}), 1)
    armature = read_hardware(yaml_value(text), robot).armature
    assert isinstance(armature, dict)
    assert armature[robot.joint_names[0]] == pytest.approx(2e-05)


@pytest.mark.long
def test_more_data_never_widen_an_interval() -> None:
    """The judge is a robot at rest: its recording says little, and its covariance is only an estimate.

    Offsets are an exception, because those of the next recording may be others.
    """
    robot = load_robot("biped14")
    (stand, squat) = recordings({"preset": "realistic"}, 4.0, ("stand", "squat"))
    before = estimate(robot, [signals_of(squat, robot)])
    steady = ~np.isin(before.parameters.kinds, DRIFTING)
    for wide in (1e-4, 1.0, 2.0):
        known = replace(before, all_covariance=wide * before.covariance)
        after = with_more(robot, known, signals_of(stand, robot))
        assert np.isfinite(after.deviation).all()
        limit = np.minimum(known.deviation, known.parameters.spread) * (1.0 + 1e-6)
        assert (after.deviation <= limit)[steady].all()
        assert (after.deviation <= known.parameters.spread * (1.0 + 1e-6)).all()
        # Two offsets that scatter by the expected drift do not show their mean any better.
        drift = unknowns.EXPECTED * known.parameters.spread
        assert (after.deviation > 0.99 * np.sqrt(1.0 / (2.0 / drift**2 + 1.0 / known.parameters.spread**2)))[
            ~steady
        ].all()


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.004])
def test_the_delay_of_commands_is_found(delay: float) -> None:
    hardware = {"preset": "realistic", "command_delay": delay}
    (walk,) = recordings(hardware, 3.0, ("walk",))
    found = command_delay(walk)
    assert found is not None
    # The measurements are 1 ms old.
    assert abs(found[0] - (delay + 0.001)) < 3e-4
    assert found[1] > 0.9
    # A robot's controller begins after the recording, loses a command, and leaves one joint out.
    walk.joint_command[:500] = walk.joint_command[2500] = walk.joint_command[:, 0] = np.nan
    assert command_delay(walk) == pytest.approx(found, abs=2e-4)
    walk.joint_command[::90] = np.nan
    assert command_delay(walk) is None


@pytest.mark.parametrize(("delay", "gain"), [(0.002, 0.8), (0.002, 1.3), (0.03, 0.4), (0.06, 1.0), (0.1, 1.0)])
def test_a_delay_does_not_depend_on_gains_and_is_none_beyond_the_search(delay: float, gain: float) -> None:
    recording = Recording.empty(5000, ("knee", "hip"), ["left"], "")
    recording.t = 1e-3 * np.arange(5000)
    motion = 2.0 * np.pi * np.array([1.0, 0.8])
    recording.joint_command = np.sin(motion * recording.t[:, None])
    recording.joint_effort = np.array([gain, 1.0]) * np.sin(motion * (recording.t[:, None] - delay))
    found = command_delay(recording)
    if delay > 0.05:
        assert found is None
    else:
        assert found == pytest.approx((delay, 1.0), abs=1e-4)


def test_at_a_limit_the_other_numbers_are_the_best_for_it() -> None:
    """The judge is a solver for least squares with limits."""
    p = parameters_of(load_robot("biped14"))
    rng, own = np.random.default_rng(3), Unknowns.of(p, 1)
    shown = np.concatenate([p.at[kind].ravel() for kind in ("viscous_friction", "coulomb_friction", "torque_offset")])
    slope = np.zeros((200, len(p)))
    slope[:, shown] = (rng.normal(size=(200, 5)) @ rng.normal(size=(5, len(shown)))) + 0.3 * rng.normal(
        size=(200, len(shown))
    )
    true = p.start.copy()
    true[shown] += p.spread[shown] * rng.normal(size=len(shown))
    sums = estimation._Sums(len(p), 1)
    sums.zj = sums.zz = slope.T @ slope
    sums.zr = slope.T @ (slope @ (p.start - true))
    step, _ = sums.solved(own, p.start)
    wanted = np.vstack([slope, np.diag(1.0 / p.spread)])
    measured = np.concatenate([slope @ true, p.start / p.spread])
    best = optimize.lsq_linear(
        wanted, measured, (np.where(p.positive, 0.0, -np.inf), np.full(len(p), np.inf)), tol=1e-14
    )
    assert (best.active_mask[p.at["viscous_friction"].ravel()] != 0).sum() >= 3
    assert_allclose((p.start + step) / p.spread, best.x / p.spread, atol=1e-4)


def test_a_light_drive_is_not_identified_within_half_of_its_inertia() -> None:
    p = parameters_of(load_robot("biped14"))
    deviation = 1e-9 * p.spread
    joint = p.at["armature"][0, 0]
    values = p.start.copy()
    values[joint], deviation[joint] = 0.0036, 0.0009
    assert not estimate_with(p, values, np.diag(deviation**2)).identified[joint]


@pytest.mark.long
def test_the_command_writes_hardware_that_other_commands_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (squat,) = recordings(hidden(load_robot("biped14"), 5), 6.0, ("squat",))
    squat.save(tmp_path / "squat.npz")
    output, figure = tmp_path / "identified.yaml", tmp_path / "identified.png"
    words = ["identify", str(tmp_path / "squat.npz"), "-o", str(output), "--plot", str(figure), "--json"]
    code = main([*words, "--samples", "3"])
    assert code in (0, 3)
    files = [tmp_path / "identified_samples" / f"0{k}.yaml" for k in (1, 2, 3)]
    frictions = [read_hardware(str(file), load_robot("biped14")).coulomb_friction for file in files]
    assert len({friction["l_knee"] for friction in frictions if isinstance(friction, dict)}) == 3
    rows = json.loads(capsys.readouterr().out)["parameters"]
    params = read_hardware(str(output), load_robot("biped14"))
    knee = next(row for row in rows if (row["kind"], row["of"]) == ("coulomb_friction", "l_knee"))
    assert isinstance(params.coulomb_friction, dict)
    assert abs(params.coulomb_friction["l_knee"] - knee["value"]) < 1e-5
    assert figure.stat().st_size > 10_000
    assert main(["replay", str(tmp_path / "squat.npz"), "--hardware", str(output), "--json"]) == 0


def test_a_recording_that_cannot_be_used_is_wrong_input(tmp_path: Path) -> None:
    (short,) = recordings({}, 0.5, ("squat",))
    short.save(tmp_path / "short.npz")
    assert main(["identify", str(tmp_path / "short.npz")]) == EXIT_USAGE


@pytest.mark.long
def test_all_recordings_count_for_the_delay_and_the_printed_commands_name_the_robot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The longer recording has no commands. The robot is not the default one of the other commands."""
    for name, scenario, seconds in (("long", "squat", 5.0), ("short", "sway", 4.0)):
        settings = RunConfig(robot="talos", scenario=scenario, hardware="realistic", duration=seconds)
        recording, _ = run(settings)
        if name == "long":
            recording.joint_command[:] = np.nan
        recording.save(tmp_path / f"{name}.npz")
    words = ["identify", str(tmp_path / "long.npz"), str(tmp_path / "short.npz"), "-o", str(tmp_path / "mine.yaml")]
    assert main([*words, "--samples", "1"]) in (0, 3)
    printed = capsys.readouterr().out
    assert read_hardware(str(tmp_path / "mine.yaml"), load_robot("talos")).command_delay == pytest.approx(
        0.002, abs=3e-4
    )
    commands = [line.partition("with: ")[2] for line in printed.splitlines() if line.startswith("wrote ")]
    assert len(commands) == 2
    assert all("--robot talos" in command for command in commands)


@pytest.mark.parametrize(
    ("number", "output", "place"),
    [("-1", ["-o", "mine.yaml"], "--samples"), ("2", [], "--samples"), ("3", ["-o", "mine.yaml"], "mine_samples")],
)
def test_samples_need_a_new_folder_beside_the_output(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: str,
    output: list[str],
    place: str,
) -> None:
    """The command ends before it reads a recording."""
    monkeypatch.chdir(tmp_path)
    Path("mine_samples").mkdir()
    assert main(["identify", "absent.npz", *output, "--samples", number]) == EXIT_USAGE
    assert f"error: {place}" in capsys.readouterr().err
