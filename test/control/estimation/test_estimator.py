"""The estimator compared with true motions, and properties that hold for any measurements."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from docs_support import rows, section
from estimation_support import DT, MEASURED, Log, look, perform, record, with_noise
from hypothesis import given, settings, strategies as st
from marks import sampled
from paths import ROOT
from physics_support import special_robot, standing_torque
from refusals import refusal

from bipedsim.control.estimation.estimator import Estimator, EstimatorParams
from bipedsim.errors import MeasurementError
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.sim.io import Observation
from bipedsim.sim.simulator import Simulator

loaded = lru_cache(load_robot)


@lru_cache
def walk() -> Log:
    """Return a walk of ten metres and a stop."""
    return perform(loaded("biped14"), "zmp", {}, 18.0, lambda t: (0.7 if 1.0 < t < 15.5 else 0.0, 0.0, 0.0))


@lru_cache
def squat(name: str, **simulator: Any) -> Log:
    return perform(loaded(name), "posture", {"mode": "squat"}, 1.2, **simulator)


def norm(rows: Any) -> Any:
    return np.linalg.norm(rows, axis=-1)


@pytest.mark.long
def test_ideal_sensors_follow_ten_metres_to_a_third_of_a_millimetre() -> None:
    log = walk()
    assert log.q[-1, 0] > 9.5
    seen = look(log)
    assert norm(seen.position).max() < 3e-4
    # The robot's own velocities jump at every landing, between two measurements.
    assert norm(seen.turn).max() < 1e-4
    assert np.quantile(norm(seen.rate), 0.99) < 1e-9
    assert norm(seen.rate).max() < 1e-4
    assert norm(seen.velocity).max() < 2e-3


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled([1, 2]))
def test_real_sensors_follow_ten_metres_to_five_millimetres(seed: int) -> None:
    """The bounds are 30 mm and 0.5 degrees plus the IMU's bias."""
    log = walk()
    seen = look(with_noise(log, seed))
    assert norm(seen.position).max() < 5e-3
    assert norm(seen.turn).max() < 0.003 * np.sqrt(2.0) + 1e-3
    # Without the delay, the remaining error is the noise that a controller sees.
    noise = look(with_noise(log, seed, measurement_delay=0.0)).velocity[200:]
    assert noise.std(axis=0).max() < 3e-3
    assert np.abs(noise).max() < 1e-2


@pytest.mark.long
def test_tilt_of_the_imu_is_not_taken_for_a_slope() -> None:
    """A pitch error of 3 mrad sinks the estimate by 3 mm per metre unless it assumes level ground."""
    log = walk()
    tilted = dict(log.measured)
    off = pin.Quaternion(pin.exp3(np.array([0.0, 0.003, 0.0])))
    tilted["imu_orientation"] = np.array([(off * pin.Quaternion(x)).coeffs() for x in tilted["imu_orientation"]])
    tilted_log = replace(log, measured=tilted)
    assert np.abs(look(tilted_log).position[:, 2]).max() < 2e-3
    way = log.q[-1, 0] - log.q[0, 0]
    assert look(tilted_log, level_slope=0.0).position[-1, 2] == pytest.approx(-0.003 * way, rel=0.05)


def test_a_slope_is_climbed() -> None:
    slope = Ground.slope(np.radians(3.0))
    log = perform(loaded("biped14"), "zmp", {}, 4.5, lambda t: (0.3 if t > 1.2 else 0.0, 0.0, 0.0), ground=slope)
    assert log.q[-1, 2] - log.q[1200, 2] > 0.02
    assert norm(look(log).position).max() < 1e-4


@pytest.mark.parametrize("name", ["talos", "g1", "icub"])
def test_robots_whose_imu_sits_anywhere_squat(name: str) -> None:
    log = squat(name)
    seen = look(log)
    assert norm(seen.position).max() < 1e-4
    assert norm(seen.velocity).max() < 2e-3
    assert seen.contact.all()
    # Feet at rest have no inertial force to compensate.
    rest = slice(5, None)
    assert np.abs(seen.wrench[rest] - log.wrench[rest]).max() < 0.5


def test_the_imu_may_sit_on_any_link() -> None:
    """An IMU on the shank measures another motion than one on the trunk, but the estimate of the base is the same."""
    robot = loaded("biped14")
    shank = robot.model.getJointId("r_knee")
    placement = pin.SE3(pin.exp3(np.array([0.4, -0.9, 0.3])), np.array([0.03, -0.02, -0.2]))
    elsewhere = replace(robot, imu_joint_id=shank, placement_joint_imu=placement)
    log = perform(elsewhere, "posture", {"mode": "squat"}, 1.0)
    seen = look(log)
    assert norm(log.measured["imu_angular_velocity"]).max() > 0.1
    assert norm(seen.position).max() < 1e-4
    assert norm(seen.rate).max() < 1e-9
    assert norm(seen.velocity).max() < 2e-3


@pytest.mark.long
def test_the_order_of_the_feet_does_not_matter() -> None:
    log = walk().part(0, 4000)
    robot = log.robot
    swapped = replace(
        robot,
        soles=robot.soles[::-1],
        ankle_joint_ids=robot.ankle_joint_ids[::-1],
        placement_joint_ankle=robot.placement_joint_ankle[::-1],
    )
    measured = {**log.measured, "foot_wrench": log.measured["foot_wrench"][:, ::-1].copy()}
    seen, other = look(log), look(replace(log, robot=swapped, measured=measured, wrench=log.wrench[:, ::-1]))
    np.testing.assert_array_equal(other.contact[:, ::-1], seen.contact)
    np.testing.assert_allclose(other.q, seen.q, atol=1e-5)
    np.testing.assert_allclose(other.wrench[:, ::-1], seen.wrench)


@settings(max_examples=10)
@given(st.tuples(*[st.floats(-5.0, 5.0)] * 3), st.floats(-3.1, 3.1), st.floats(-3.1, 3.1))
def test_the_world_may_lie_anywhere(origin: tuple[float, float, float], yaw: float, imu_yaw: float) -> None:
    """The same motion from another pose, with an IMU with another north, is the same motion elsewhere."""
    log = with_noise(squat("biped14").part(0, 300), 3)
    turn = pin.utils.rotate("z", imu_yaw)
    measured = dict(log.measured)
    measured["imu_orientation"] = np.array(
        [pin.Quaternion(turn @ pin.Quaternion(x).matrix()).coeffs() for x in measured["imu_orientation"]]
    )
    moved = pin.SE3(pin.utils.rotate("z", yaw), np.array(origin))
    there = np.array([pin.SE3ToXYZQUAT(moved * pin.XYZQUATToSE3(q[:7])) for q in log.q])
    seen, other = look(log), look(replace(log, measured=measured, q=np.hstack([there, log.q[:, 7:]])))
    for a, b in zip(seen.q[::20], other.q[::20], strict=True):
        expected, found = moved * pin.XYZQUATToSE3(a[:7]), pin.XYZQUATToSE3(b[:7])
        np.testing.assert_allclose(found.homogeneous, expected.homogeneous, atol=1e-9)
    np.testing.assert_allclose(other.v, seen.v, atol=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(-3.1, 3.1))
def test_without_a_pose_the_feet_stand_about_the_origin(seed: int, yaw: float) -> None:
    robot = loaded("biped14")
    rng = np.random.default_rng(seed)
    observation = Observation.zeros(robot.nu, 2)
    observation.joint_position[:] = robot.posture + 0.3 * rng.normal(size=robot.nu)
    orientation = pin.utils.rotate("z", yaw) @ pin.exp3(0.2 * rng.normal(size=3))
    observation.imu_orientation[:] = pin.Quaternion(orientation).coeffs()
    q = Estimator(robot, EstimatorParams(), DT).reset(observation).q
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    soles = [data.oMi[s.joint_id].act(s.placement_joint_sole) for s in robot.soles]
    centres = [m.act(np.append(s.centre, 0.0)) for m, s in zip(soles, robot.soles, strict=True)]
    np.testing.assert_allclose(np.mean(centres, axis=0), 0.0, atol=1e-12)
    imu = data.oMi[robot.imu_joint_id].rotation @ robot.placement_joint_imu.rotation
    np.testing.assert_allclose(imu, orientation, atol=1e-12)


def test_feet_that_roll_over_their_toes_turn_about_them() -> None:
    """The robot falls forwards about the toes, and its estimate with it, until the feet leave the ground."""
    log = perform(loaded("biped14"), "posture", {"mode": "toe_fall"}, 3.6)
    assert norm(pin.log3(pin.Quaternion(log.q[-1, 3:7]).matrix())) > 0.5
    assert norm(look(log).position).max() < 1e-4


def test_a_ball_rolls_by_its_circumference() -> None:
    robot = special_robot("ball_3d")
    sim = Simulator(robot)
    v = np.array([0.4, 0.2, 0.0, -1.0, 2.0, 0.0])
    log = record(sim, 2.0, lambda _: np.zeros(0), sim.reset(v=v))
    assert norm(log.q[-1, :2] - log.q[0, :2]) > 0.8
    assert norm(look(log).position).max() < 2e-3


def test_a_jump_is_bridged_by_the_imu() -> None:
    log = perform(loaded("biped14"), "posture", {"mode": "jump"}, 2.0)
    seen = look(log)
    flight = (log.wrench[:, :, 2] == 0.0).all(axis=1)
    assert flight.sum() > 100
    # Airborne feet that are pulled up and stretched again do not count as feet on the ground.
    late = np.convolve(flight, np.ones(10))[: len(flight)] > 9.5
    assert not seen.contact[late].any()
    # Positions of a step on the ground go with the velocity at its end, not in its middle as the estimator takes it.
    assert norm(seen.position).max() < 5e-4 + 0.5 * DT * np.abs(log.v[:, :3]).max()


def standing(robot: Robot, ticks: int) -> Log:
    """Return a robot that does not move at all."""
    sim = Simulator(robot)
    log = record(sim, 0.01, lambda _: standing_torque(robot)).part(10, 11)
    measured = {name: np.repeat(values, ticks, axis=0) for name, values in log.measured.items()}
    q, v, wrench = (np.repeat(values, ticks, axis=0) for values in (log.q, log.v, log.wrench))
    return Log(robot, DT * np.arange(ticks), measured, q, v, wrench)


@pytest.mark.long
def test_noise_makes_a_standing_robot_neither_wander_nor_slide() -> None:
    log = with_noise(standing(loaded("biped14"), 30000), 4, accelerometer_bias=0.1)
    seen = look(log)
    assert norm(seen.position).max() < 3e-3
    assert seen.velocity[1000:].std(axis=0).max() < 3e-3
    assert np.abs(seen.velocity[1000:].mean(axis=0)).max() < 1e-4


def test_the_same_measurements_give_the_same_bits() -> None:
    log = with_noise(squat("biped14").part(0, 400), 5)
    first, second = look(log), look(log)
    np.testing.assert_array_equal(first.q, second.q)
    np.testing.assert_array_equal(first.v, second.v)


@given(
    st.lists(st.tuples(st.floats(-0.02, 0.2), st.integers(1, 8)), min_size=1, max_size=15),
    st.sampled_from([0.0, 0.003, 0.005]),
)
@settings(max_examples=30)
def test_contact_needs_a_force_that_lasts(forces: list[tuple[float, int]], debounce: float) -> None:
    """The reference is the rule in plain Python, foot by foot: on above 6 % of the weight, off below 3 %."""
    robot = loaded("biped14")
    log = standing(robot, 2)
    params = EstimatorParams(debounce=debounce)
    estimator = Estimator(robot, params, DT)
    estimator.reset(log.observation(0))
    # In the axes of the ankle, which are those of the sole, a force along z changes the normal force by as much.
    flat = robot.soles[0].placement_joint_sole.rotation.T @ robot.placement_joint_ankle[0].rotation
    np.testing.assert_allclose(flat, np.eye(3), atol=1e-12)
    carried = log.wrench[0, 0, 2]
    ticks = max(1, round(debounce / DT))
    expected, run, tick = True, 0, 0
    for share, length in forces:
        for _ in range(length):
            tick += 1
            observation = log.observation(1).copy()
            observation.t = tick * DT
            observation.foot_wrench[0, 2] += share * robot.weight - carried
            estimate = estimator.update(observation)
            assert estimate.contact[1]
            if expected:
                assert estimate.normal_force[0] == pytest.approx(share * robot.weight, abs=1e-6)
            felt = estimate.normal_force[0] / robot.weight
            run = run + 1 if (felt < 0.03 if expected else felt > 0.06) else 0
            if run >= ticks:
                expected, run = not expected, 0
            assert estimate.contact[0] == expected


@pytest.mark.parametrize(
    "name",
    [name for name in MEASURED if name != "joint_effort"],
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_measurements_that_are_none_are_bridged_and_counted(name: str, bad: float) -> None:
    log = squat("biped14").part(0, 1000)
    measured = {key: values.copy() for key, values in log.measured.items()}
    for i in (300, 500, 501, 502, 503, 504, 800):
        measured[name][i].flat[-1] = bad
    with pytest.warns(UserWarning, match=f"{name}.*is not finite") as caught:
        seen = look(replace(log, measured=measured))
    assert len(caught) == 1
    assert seen.faults == 7
    assert all(np.isfinite(values).all() for values in (seen.q, seen.v, seen.wrench))
    # Held joints are late by up to 5 ms, at 0.3 m/s of the squat.
    assert norm(seen.position).max() < 2e-3
    assert norm(seen.position[-1]) < 5e-4
    assert seen.contact.all()


def test_an_estimate_starts_from_good_measurements_only() -> None:
    robot = loaded("biped14")
    observation = Observation.zeros(robot.nu, 2)
    observation.imu_orientation[:] = 0.0
    with refusal(MeasurementError, place="estimator: imu_orientation"):
        Estimator(robot, EstimatorParams(), DT).reset(observation)


def test_every_start_warns_of_its_first_fault() -> None:
    log = squat("biped14")
    estimator = Estimator(log.robot, EstimatorParams(), DT)
    for _ in range(2):
        estimator.reset(log.observation(0))
        with pytest.warns(UserWarning, match="further faults are only counted"):
            estimator.update(log.observation(900))
        estimator.update(log.observation(0))
        assert estimator.estimate.faults == 2


def test_an_estimate_may_start_from_a_robot_in_motion() -> None:
    """In the middle of a squat, the kinematics of both feet give the vertical velocity of the base."""
    log = squat("biped14")
    fastest = int(np.argmax(norm(log.v[:, :3])))
    assert norm(log.v[fastest, :3]) > 0.15
    estimate = Estimator(log.robot, EstimatorParams(), DT).reset(log.observation(fastest))
    np.testing.assert_allclose(estimate.v[:3], log.v[fastest, :3], atol=2e-3)


def test_the_same_stamp_again_changes_nothing() -> None:
    log = squat("biped14")
    estimator = Estimator(log.robot, EstimatorParams(), DT)
    estimator.reset(log.observation(0))
    for i in range(1, 200):
        before = estimator.update(log.observation(i)).q.copy()
        np.testing.assert_array_equal(estimator.update(log.observation(i)).q, before)
    assert estimator.estimate.faults == 0


@pytest.mark.parametrize("jump", [-100.0, -0.0105, 0.5, 1e4])
def test_after_a_jump_of_time_the_robot_is_where_it_was_and_finds_its_velocity_anew(jump: float) -> None:
    log = squat("biped14")
    t = log.t + np.where(np.arange(len(log.t)) < 700, 0.0, jump)
    with pytest.warns(UserWarning, match="time went on by"):
        seen = look(replace(log, t=t))
    assert seen.faults == 1
    # A tick's way at 0.3 m/s is lost.
    assert norm(seen.position[-1]) < 5e-4
    assert norm(seen.velocity[750:]).max() < 2e-3


def test_ticks_that_are_left_out_do_no_harm() -> None:
    log = squat("biped14")
    rng = np.random.default_rng(6)
    kept = np.flatnonzero(rng.random(len(log.t)) < 0.6)
    fewer = replace(
        log,
        t=log.t[kept],
        measured={name: values[kept] for name, values in log.measured.items()},
        q=log.q[kept],
        v=log.v[kept],
        wrench=log.wrench[kept],
    )
    seen = look(fewer)
    assert seen.faults == 0
    assert norm(seen.position).max() < 2e-4


@pytest.mark.parametrize("name", ["block", "double_pendulum"])
def test_robots_that_do_not_walk_are_refused(name: str) -> None:
    with refusal(place=f"estimator: {name}"):
        Estimator(special_robot(name), EstimatorParams(), DT)


def test_joints_that_are_not_measured_are_named() -> None:
    robot = loaded("biped14")
    passive = replace(robot, joint_names=robot.joint_names[:-1], idx_q=robot.idx_q[:-1], idx_v=robot.idx_v[:-1])
    with refusal(place="estimator: r_ankle_roll"):
        Estimator(passive, EstimatorParams(), DT)


@pytest.mark.parametrize(
    ("params", "dt", "key", "value"),
    [
        ({"contact_on": 0.02}, DT, "contact_off", 0.03),
        ({}, 0.0, "dt", 0.0),
        ({"largest_gap": 0.001}, 0.001, "largest_gap", 0.001),
    ],
)
def test_parameters_that_do_not_fit_are_refused(params: dict[str, float], dt: float, key: str, value: float) -> None:
    with refusal(place=f"estimator: {key}", value=value):
        Estimator(loaded("biped14"), EstimatorParams(**params), dt)


def test_the_table_of_parameters_is_that_of_the_code() -> None:
    page = ROOT / "docs" / "estimation.md"
    head, *table = rows(section(page.read_text(encoding="utf-8"), "Parameters"))
    assert head == ["name", "default", "unit", "meaning"]
    declared = [[f"`{entry.name}`", entry.default, entry.metadata["unit"]] for entry in fields(EstimatorParams)]
    assert [[name, float(default), unit] for name, default, unit, _ in table] == declared
