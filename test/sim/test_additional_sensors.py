"""Further IMUs and contact switches: theory of their values, their errors, and that they change nothing else."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from additional_sensors_support import instrumented
from physics_support import G, standing_torque

from bipedsim.model import Robot, load_robot
from bipedsim.sim import Observation, Simulator

DELAYED = {"preset": "realistic", "measurement_delay": 0.003}
OWN = ("joint_position", "joint_velocity", "imu_orientation", "imu_angular_velocity", "imu_linear_acceleration")


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    return instrumented(tmp_path)


def flail(sim: Simulator, ticks: int, seed: int = 0) -> list[Observation]:
    """Return the observations of a robot that moves its legs at random."""
    rng = np.random.default_rng(seed)
    torques = 0.2 * sim.robot.effort_limit * rng.standard_normal((ticks, sim.robot.nu))
    return [sim.step(torque).copy() for torque in torques]


def test_an_imu_of_a_moving_leg_measures_the_motion_of_its_frame(robot: Robot) -> None:
    """Orientation, spin, and specific force R^T (p'' - g), with p the frame's origin, from pinocchio's poses."""
    h = 1e-4
    sim = Simulator(robot, physics_dt=h)
    q = robot.q_nominal.copy()
    q[2] += 3.0
    sim.reset(q, 0.8 * np.random.default_rng(1).normal(size=robot.model.nv))
    data = robot.model.createData()
    poses, measured = [], []
    for _ in range(40):
        measured.append(sim.step(2.0 * np.ones(robot.nu)).imus.copy())
        pin.framesForwardKinematics(robot.model, data, sim.q)
        poses.append([pin.SE3(data.oMf[robot.model.getFrameId(imu.frame)]) for imu in robot.imus])
    for m in range(len(robot.imus)):
        for i in range(5, 35):
            before, now, after = (poses[k][m] for k in (i - 1, i, i + 1))
            np.testing.assert_allclose(pin.Quaternion(measured[i][m, :4]).matrix(), now.rotation, atol=1e-9)
            spin = pin.log3(before.rotation.T @ after.rotation) / (2.0 * h)
            np.testing.assert_allclose(measured[i][m, 4:7], spin, atol=0.02)
            acceleration = (after.translation - 2.0 * now.translation + before.translation) / h**2
            expected = now.rotation.T @ (acceleration + np.array([0.0, 0.0, G]))
            size = max(1.0, float(np.linalg.norm(expected)))
            np.testing.assert_allclose(measured[i][m, 7:], expected, atol=0.05 * size)


def test_an_imu_measures_the_classical_acceleration_of_pinocchio(robot: Robot) -> None:
    sim = Simulator(robot)
    sim.reset(None, 0.3 * np.random.default_rng(2).normal(size=robot.model.nv))
    data = robot.model.createData()
    for _ in range(20):
        measured = sim.step(3.0 * np.ones(robot.nu)).imus
        pin.forwardKinematics(robot.model, data, sim.q, sim.v, sim.dynamics.acceleration)
        for imu, row in zip(robot.imus, measured, strict=True):
            frame = robot.model.getFrameId(imu.frame)
            pose = pin.updateFramePlacement(robot.model, data, frame)
            acceleration = pin.getFrameClassicalAcceleration(robot.model, data, frame, pin.LOCAL).linear
            twist = pin.getFrameVelocity(robot.model, data, frame, pin.LOCAL)
            expected = acceleration - pose.rotation.T @ robot.model.gravity.linear
            np.testing.assert_allclose(row[7:], expected, atol=1e-9 * max(1.0, float(np.linalg.norm(expected))))
            np.testing.assert_allclose(row[4:7], twist.angular, atol=1e-12)


@pytest.mark.parametrize("control_dt", [0.001, 0.004])
def test_a_switch_is_closed_while_its_sole_carries_more_than_its_threshold(tmp_path: Path, control_dt: float) -> None:
    """Also if the switches have another order than the feet."""
    switch = {"type": "contact_switch", "threshold": 30.0}
    robot = instrumented(tmp_path, {"a": {**switch, "foot": "right"}, "b": {**switch, "foot": "left"}})
    sim = Simulator(robot, control_dt=control_dt)
    feet = [sole.name for sole in robot.soles]
    states = []
    for i in range(300):
        observation = sim.step(0.3 * robot.effort_limit * np.sin(0.02 * i))
        loads = [sim.contact.wrench[feet.index(each.foot), 2] for each in robot.contact_switches]
        closed = [float(fz > each.threshold) for fz, each in zip(loads, robot.contact_switches, strict=True)]
        assert observation.contact_switches.tolist() == closed
        states.append(closed)
    assert all({*column} == {0.0, 1.0} for column in zip(*states, strict=True)), "both states of both switches"


def test_switches_are_open_at_the_start_and_closed_while_the_robot_stands(robot: Robot) -> None:
    sim = Simulator(robot)
    assert sim.reset().contact_switches.tolist() == [0.0, 0.0]
    assert sim.step(standing_torque(robot)).contact_switches.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("hardware", ["ideal", DELAYED], ids=str)
def test_further_sensors_change_no_bit_of_the_others(robot: Robot, hardware: Any) -> None:
    plain, more = (Simulator(each, hardware=hardware, seed=4) for each in (load_robot("biped14"), robot))
    for was, now in zip(flail(plain, 50), flail(more, 50), strict=True):
        for name in (*OWN, "joint_effort", "foot_wrench"):
            assert getattr(was, name).tobytes() == getattr(now, name).tobytes(), name
        assert (was.imus.size, was.contact_switches.size) == (0, 0)


def test_noise_is_that_of_the_main_imu_with_numbers_of_its_own(robot: Robot) -> None:
    """The errors of gyro and accelerometer: biases within their bounds, noise of the deviation, none shared."""
    noise = {"gyro_noise": 0.01, "gyro_bias": 0.2, "accelerometer_noise": 0.1, "accelerometer_bias": 2.0}
    n = 3000
    sim, ideal = (Simulator(robot, hardware=each, seed=1) for each in (noise, "ideal"))
    sim.reset()
    truth = ideal.reset()
    errors = np.zeros((n, 3, 6))
    for i in range(n):
        seen = sim.sensors.measure(sim, np.zeros(robot.model.nv))
        main = np.concatenate([seen.imu_angular_velocity, seen.imu_linear_acceleration])
        true_main = np.concatenate([truth.imu_angular_velocity, truth.imu_linear_acceleration])
        errors[i] = np.vstack([main - true_main, seen.imus[:, 4:] - truth.imus[:, 4:]])
    bias, deviation = errors.mean(axis=0), errors.std(axis=0)
    assert (np.abs(bias) < np.repeat([0.2, 2.0], 3) + 0.01).all()
    np.testing.assert_allclose(deviation, np.tile(np.repeat([0.01, 0.1], 3), (3, 1)), rtol=0.06)
    assert len(np.unique(bias.round(6))) == bias.size
    correlation = np.corrcoef(errors.reshape(n, -1).T) - np.eye(18)
    assert np.abs(correlation).max() < 5.0 / np.sqrt(n)


def test_every_reset_draws_other_errors_and_a_seed_repeats_them(robot: Robot) -> None:
    sim = Simulator(robot, hardware=DELAYED, seed=7)
    first, second = ([o.imus.tobytes() for o in (sim.reset().copy(), *flail(sim, 20))] for _ in range(2))
    assert not {*first} & {*second}
    sim.reset(seed=7)
    again = Simulator(robot, hardware=DELAYED, seed=7)
    assert [o.imus.tobytes() for o in flail(sim, 20)] == [o.imus.tobytes() for o in flail(again, 20)]


def test_all_sensors_have_the_same_delay(robot: Robot) -> None:
    """Three ticks of 1 ms, before which the sensors report the state at the reset."""
    late = Simulator(robot, hardware={"measurement_delay": 0.003})
    now = Simulator(robot)
    seen, true = ([sim.reset().copy(), *flail(sim, 60)] for sim in (late, now))
    for i, observation in enumerate(seen):
        expected = true[max(0, i - 3)]
        np.testing.assert_allclose(observation.imus, expected.imus, atol=1e-12)
        assert observation.contact_switches.tolist() == expected.contact_switches.tolist()
    assert len({tuple(o.contact_switches) for o in seen}) > 1


def test_the_mounting_and_the_offsets_of_the_hardware_are_those_of_the_main_imu(robot: Robot) -> None:
    hardware = {"imu_rotation": [0.0, 0.2, 0.0], "gyro_offset": [0.1, 0.0, 0.0], "accelerometer_offset": [1.0, 0, 0]}
    plain, turned = Simulator(robot).reset(), Simulator(robot, hardware=hardware).reset()
    assert plain.imus.tobytes() == turned.imus.tobytes()
    assert np.abs(plain.imu_angular_velocity - turned.imu_angular_velocity).max() == pytest.approx(0.1)


@pytest.mark.parametrize("hardware", ["ideal", DELAYED], ids=str)
def test_snapshots_and_copies_repeat_every_bit(robot: Robot, hardware: Any) -> None:
    sim = Simulator(robot, hardware=hardware, seed=2)
    flail(sim, 30)
    middle, copy = sim.snapshot(), pickle.loads(pickle.dumps(sim))
    last = sim.sensors.observation.copy()
    future = [(o.imus.tobytes(), o.contact_switches.tobytes()) for o in flail(sim, 30, seed=1)]
    restored = sim.restore(middle)
    assert (restored.imus.tobytes(), restored.contact_switches.tobytes()) == (
        last.imus.tobytes(),
        last.contact_switches.tobytes(),
    )
    for each in (sim, copy):
        assert [(o.imus.tobytes(), o.contact_switches.tobytes()) for o in flail(each, 30, seed=1)] == future


def test_an_observation_is_copied_with_all_its_sensors(robot: Robot) -> None:
    sim = Simulator(robot)
    seen = flail(sim, 5)[-1]
    taken = Observation.of_robot(robot).take(seen)
    assert taken.imus.tobytes() == seen.imus.tobytes()
    seen.imus[:] = 0.0
    assert (taken.imus != 0.0).any()
    assert Observation.of_robot(robot).imus[:, :4].tolist() == [[0.0, 0.0, 0.0, 1.0]] * 2
