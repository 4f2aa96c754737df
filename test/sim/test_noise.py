"""Sensors' errors: their statistics, their bounds, and that a seed decides every bit of them."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import chi2, kstest

from bipedsim.errors import ConfigError
from bipedsim.model import NoiseParams
from bipedsim.sim.io import Observation
from bipedsim.sim.noise import Noise, Offsets

NU, FEET = 4, 2
REALISTIC = NoiseParams(
    velocity_noise=0.02,
    gyro_noise=0.005,
    accelerometer_noise=0.05,
    attitude_noise=0.001,
    yaw_noise=0.002,
    force_noise=3.0,
    torque_noise=0.1,
)
BIASED = NoiseParams(
    gyro_bias=0.01, accelerometer_bias=0.1, attitude_bias=0.003, yaw_bias=0.02, force_bias=2.0, torque_bias=0.5
)


def truth(seed: int = 0) -> Observation:
    """Return an observation of a robot in some attitude."""
    rng = np.random.Generator(np.random.Philox(seed))
    observation = Observation.zeros(NU, FEET)
    for name in (f.name for f in dataclasses.fields(Observation) if f.name != "t"):
        array = getattr(observation, name)
        array[...] = rng.standard_normal(array.shape)
    q = observation.imu_orientation
    q *= np.copysign(1.0, q[3]) / np.linalg.norm(q)
    return observation


def rotation(quaternion: np.ndarray) -> np.ndarray:
    return np.asarray(pin.Quaternion(quaternion).matrix())


def attitude_error(ideal: Observation, real: Observation) -> tuple[np.ndarray, float]:
    """Return the small rotation from the ideal attitude to the real one: tilt (2,) and yaw, in world axes."""
    e = pin.log3(rotation(real.imu_orientation) @ rotation(ideal.imu_orientation).T)
    return e[:2], float(e[2])


def flat(observation: Observation) -> np.ndarray:
    names = [f.name for f in dataclasses.fields(Observation) if f.name != "t"]
    return np.concatenate([getattr(observation, name).ravel() for name in names])


def test_noise_is_white_and_as_large_as_said() -> None:
    """Of n numbers, the sum of squares over the variance is chi-square with n degrees; means and neighbours vanish."""
    ideal = truth()
    noise = Noise(REALISTIC, ideal, 1e-3, seed=1)
    noise.reset()
    errors: dict[str, list[np.ndarray]] = {
        key: [] for key in ("speed", "gyro", "linear", "force", "torque", "tilt", "yaw")
    }
    n = 4000
    for _ in range(n):
        real = noise.measure()
        tilt, yaw = attitude_error(ideal, real)
        wrench = real.foot_wrench - ideal.foot_wrench
        errors["speed"].append((real.joint_velocity - ideal.joint_velocity) / REALISTIC.velocity_noise)
        errors["gyro"].append((real.imu_angular_velocity - ideal.imu_angular_velocity) / REALISTIC.gyro_noise)
        errors["linear"].append(
            (real.imu_linear_acceleration - ideal.imu_linear_acceleration) / REALISTIC.accelerometer_noise
        )
        errors["force"].append(wrench[:, :3].ravel() / REALISTIC.force_noise)
        errors["torque"].append(wrench[:, 3:].ravel() / REALISTIC.torque_noise)
        errors["tilt"].append(tilt / REALISTIC.attitude_noise)
        errors["yaw"].append(np.array([yaw / REALISTIC.yaw_noise]))
        np.testing.assert_array_equal(real.joint_position, ideal.joint_position)
        np.testing.assert_array_equal(real.joint_effort, ideal.joint_effort)
    everything = np.hstack([np.array(rows) for rows in errors.values()])
    low, high = chi2.ppf([1e-5, 1.0 - 1e-5], n)
    squares = (everything**2).sum(axis=0)
    assert ((low < squares) & (squares < high)).all()
    assert np.abs(everything.mean(axis=0)).max() < 4.5 / np.sqrt(n)
    between = np.corrcoef(everything.T) - np.eye(everything.shape[1])
    assert np.abs(between).max() < 5.0 / np.sqrt(n)
    neighbours = (everything[1:] * everything[:-1]).mean(axis=0)
    assert np.abs(neighbours).max() < 4.5 / np.sqrt(n)
    assert kstest(everything[:, 0], "norm").pvalue > 1e-3


def test_biases_stay_till_reset_within_their_bounds_and_fill_them() -> None:
    ideal = truth()
    noise = Noise(BIASED, ideal, 1e-3, seed=3)
    drawn = []
    for _ in range(300):
        noise.reset()
        real = noise.measure()
        tilt, yaw = attitude_error(ideal, real)
        wrench = real.foot_wrench - ideal.foot_wrench
        row = np.concatenate(
            [
                (real.imu_angular_velocity - ideal.imu_angular_velocity) / BIASED.gyro_bias,
                (real.imu_linear_acceleration - ideal.imu_linear_acceleration) / BIASED.accelerometer_bias,
                wrench[:, :3].ravel() / BIASED.force_bias,
                wrench[:, 3:].ravel() / BIASED.torque_bias,
                [yaw / BIASED.yaw_bias],
            ]
        )
        # A vector of three such biases, less its vertical part.
        assert np.linalg.norm(tilt) <= np.sqrt(3.0) * BIASED.attitude_bias
        first = flat(real)
        np.testing.assert_array_equal(flat(noise.measure()), first)
        drawn.append(row)
    drawn = np.array(drawn)
    assert np.abs(drawn).max() <= 1.0 + 1e-4
    assert (np.abs(drawn).max(axis=0) > 0.97).all()
    assert kstest(drawn[:, 0], "uniform", (-1.0, 2.0)).pvalue > 1e-3


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), resolution=st.sampled_from([1e-4, 3e-3, 0.1]))
def test_encoders_are_right_to_half_their_resolution_and_yaw_is_true(seed: int, resolution: float) -> None:
    """Tilt errors alone leave the yaw of any attitude, even of an IMU on its side, as it is."""
    ideal = truth(seed)
    params = NoiseParams(encoder_resolution=resolution, attitude_noise=1e-3, attitude_bias=3e-3)
    noise = Noise(params, ideal, 1e-3, seed)
    noise.reset()
    real = noise.measure(first=True)
    error = real.joint_position - ideal.joint_position
    assert np.abs(error).max() <= 0.5 * resolution * (1.0 + 1e-9)
    counts = real.joint_position / resolution
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    tilt, yaw = attitude_error(ideal, real)
    assert abs(yaw) < 1e-12
    assert np.linalg.norm(tilt) > 1e-6
    assert np.linalg.norm(real.imu_orientation) == pytest.approx(1.0, abs=1e-12)
    assert real.imu_orientation[3] >= 0.0


@pytest.mark.parametrize("ticks", [0, 1, 7])
def test_measurements_are_exactly_n_ticks_old(ticks: int) -> None:
    ideal = truth()
    noise = Noise(NoiseParams(measurement_delay=ticks * 1e-3), ideal, 1e-3, seed=0)
    noise.reset()
    start = flat(ideal)
    sent = []
    assert noise.delay == pytest.approx(ticks * 1e-3)
    np.testing.assert_allclose(flat(noise.measure(first=True)), start, atol=1e-15)
    for tick in range(20):
        ideal.t = tick * 1e-3
        new = truth(tick + 1)
        for f in dataclasses.fields(Observation):
            if f.name != "t":
                getattr(ideal, f.name)[...] = getattr(new, f.name)
        sent.append(flat(ideal))
        real = noise.measure()
        assert real.t == ideal.t
        np.testing.assert_allclose(flat(real), sent[tick - ticks] if tick >= ticks else start, atol=1e-15)


def bits(seed: int, resets: int = 1, ticks: int = 40, params: NoiseParams = REALISTIC) -> str:
    noise = Noise(params, truth(), 1e-3, seed)
    for _ in range(resets):
        noise.reset()
    return hashlib.sha256(b"".join(flat(noise.measure()).tobytes() for _ in range(ticks))).hexdigest()


@pytest.mark.long
def test_a_seed_decides_every_bit_in_every_process() -> None:
    here = [bits(5), bits(5, resets=2), bits(6)]
    assert len(set(here)) == 3
    code = "import test_noise as t; print(t.bits(5), t.bits(5, resets=2), t.bits(6))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=__file__.rpartition("/")[0]
    )
    assert run.stdout.split() == here


def test_a_seed_at_reset_is_a_new_simulators_seed() -> None:
    noise = Noise(REALISTIC, truth(), 1e-3, seed=9)
    noise.reset()
    noise.measure()
    noise.reset(seed=5)
    real = hashlib.sha256(b"".join(flat(noise.measure()).tobytes() for _ in range(40))).hexdigest()
    assert real == bits(5)


def test_a_channel_that_is_switched_off_leaves_the_others_as_they_were() -> None:
    ideal = truth()
    quiet = dataclasses.replace(REALISTIC, velocity_noise=0.0, attitude_noise=0.0, torque_noise=0.0)
    for params in (REALISTIC, quiet):
        noise = Noise(params, ideal, 1e-3, seed=4)
        noise.reset()
        for _ in range(20):
            real = noise.measure()
        if params is REALISTIC:
            gyro, force = real.imu_angular_velocity.copy(), real.foot_wrench[:, :3].copy()
    np.testing.assert_array_equal(real.joint_velocity, ideal.joint_velocity)
    np.testing.assert_array_equal(real.imu_angular_velocity, gyro)
    np.testing.assert_array_equal(real.foot_wrench[:, :3], force)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(ConfigError) as caught:
        Noise(REALISTIC, truth(), 1e-3, seed)  # type: ignore[arg-type]
    assert (caught.value.place, caught.value.value) == ("seed", seed)


def test_offsets_are_the_same_after_every_reset_and_add_to_biases() -> None:
    ideal = truth()
    rng = np.random.default_rng(2)
    offsets = Offsets(rng.normal(size=NU), rng.normal(size=3), rng.normal(size=3), rng.normal(size=(FEET, 6)))
    fixed, biased, both = (
        Noise(params, ideal, 1e-3, seed=3, offsets=part)
        for params, part in ((NoiseParams(), offsets), (BIASED, None), (BIASED, offsets))
    )
    for _ in range(3):
        for noise in (fixed, biased, both):
            noise.reset()
            noise.measure(first=True)
        for name, added in (
            ("joint_position", offsets.position),
            ("joint_velocity", 0.0),
            ("joint_effort", 0.0),
            ("imu_orientation", 0.0),
            ("imu_angular_velocity", offsets.gyro),
            ("imu_linear_acceleration", offsets.accelerometer),
            ("foot_wrench", offsets.wrench),
        ):
            true, drawn = getattr(ideal, name), getattr(biased.observation, name)
            np.testing.assert_allclose(getattr(fixed.observation, name), true + added, atol=1e-14)
            np.testing.assert_allclose(getattr(both.observation, name), drawn + added, atol=1e-14)


def test_an_encoder_counts_from_its_offset() -> None:
    """A resolution rounds the position that the encoder sees."""
    ideal, resolution = truth(), 0.1
    offsets = Offsets(np.full(NU, 0.04), np.zeros(3), np.zeros(3), np.zeros((FEET, 6)))
    noise = Noise(NoiseParams(encoder_resolution=resolution), ideal, 1e-3, 0, offsets)
    noise.reset()
    measured = noise.measure(first=True).joint_position
    np.testing.assert_allclose(measured, resolution * np.rint((ideal.joint_position + 0.04) / resolution), atol=1e-15)
