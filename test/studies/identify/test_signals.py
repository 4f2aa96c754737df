"""Signals of recordings: smoothing, noise, predictions, and recordings that cannot be used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_allclose

from bipedsim.config.run import RunConfig
from bipedsim.errors import RecordingError
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.recording.recording import Recording
from bipedsim.runs.runner import run
from bipedsim_studies.gap.external import COLUMNS, external_forces
from bipedsim_studies.identify.signals import GANTRY, HANN, NEEDED, PAST, RATE, TAPS, Signals, predicted, signals_of


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("biped14")


@pytest.fixture(scope="module")
def squat() -> Recording:
    return run(RunConfig(scenario="squat", duration=6.0, hardware="realistic", seed=4))[0]


@pytest.fixture(scope="module")
def signals(squat: Recording, robot: Robot) -> Signals:
    return signals_of(squat, robot)


def test_derivatives_of_a_slow_sine_are_exact_to_the_second_order_of_the_window(squat: Recording, robot: Robot) -> None:
    omega = 2.0 * np.pi
    sine = np.sin(omega * squat.t)[:, None] * np.ones(robot.nu)
    slow = signals_of(replace(squat, joint_velocity=sine), robot)
    middle = slow.t - 0.5e-3
    assert_allclose(slow.v[:, 0], np.sin(omega * middle), atol=3e-3)
    assert_allclose(slow.a[:, 0], omega * np.cos(omega * middle), atol=3e-3 * omega)


def test_the_noise_of_the_sensors_is_found_in_the_motion(robot: Robot) -> None:
    """Two runs of the same motion, with four times the noise of the gyroscope."""
    levels = []
    for level in (0.005, 0.02):
        quiet = run(RunConfig(scenario="squat", duration=4.0, hardware={"gyro_noise": level}, seed=1))[0]
        levels.append(signals_of(quiet, robot).noise[3:6])
    assert_allclose(levels[1] / levels[0], 4.0, rtol=0.15)


def test_the_noise_of_near_rows_is_correlated_as_the_windows_say(squat: Recording, robot: Robot) -> None:
    """The judge is white noise that passes through the windows: some signals as they are, some differentiated."""
    rng, n = np.random.default_rng(1), 20_000
    t = 1e-3 * np.arange(n)
    still = squat.rows(np.zeros(n, dtype=np.int64))
    noise = replace(
        still,
        t=t,
        joint_velocity=rng.normal(size=(n, robot.nu)),
        ankle_wrench=rng.normal(size=(n, 2, 6)),
    )
    through = signals_of(noise, robot)

    def correlations(rows: Array) -> Array:
        smooth = sliding_window_view(rows, TAPS, axis=0) @ HANN
        return np.array([np.mean(smooth[lag:] * smooth[: len(smooth) - lag]) for lag in range(9)])

    for rows, column in ((through.wrench.reshape(len(through), -1), -1), (through.a, 6)):
        found = correlations(rows)
        expected = np.append(through.correlation[:, column], np.zeros(9))[:9]
        assert_allclose(found / found[0], expected, atol=0.06)
    assert_allclose(np.std(sliding_window_view(through.a, TAPS, axis=0) @ HANN), through.noise[6], rtol=0.05)


def test_a_prediction_of_a_periodic_motion_is_near_it(signals: Signals) -> None:
    guess = predicted(signals)
    rows = slice(guess.begin, None)
    knee = 3
    error = signals.q[rows, knee] - guess.q[rows, knee]
    assert np.std(error) < 0.3 * np.std(signals.q[rows, knee])


@pytest.mark.parametrize("rows", [1, 4])
def test_the_noise_behind_the_windows_is_right_for_slow_sensors(rows: int, squat: Recording, robot: Robot) -> None:
    """The judge is white noise that passes through the windows; each measurement is in some rows."""
    rng, n = np.random.default_rng(2), 40_000
    still = squat.rows(np.zeros(n, dtype=np.int64))
    measured = rng.normal(0.0, 2.0, still.ankle_wrench.shape)[rows * (np.arange(n) // rows)]
    noisy = replace(still, t=1e-3 * np.arange(n), ankle_wrench=still.ankle_wrench + measured)
    signals = signals_of(noisy, robot)
    behind = np.tensordot(sliding_window_view(signals.wrench, TAPS, axis=0), HANN, axes=1)
    assert_allclose(behind.reshape(len(behind), -1).std(axis=0), signals.noise[-12:], rtol=0.15)


@pytest.mark.parametrize("rate", [100, 120, 125, 270])
def test_the_rows_are_at_the_rate_for_any_rate_of_the_recording(rate: int, robot: Robot) -> None:
    """The stamps of a real recording scatter."""
    recording = run(RunConfig(scenario="squat", duration=6.0, hardware="realistic", seed=4))[0]
    rng, times = np.random.default_rng(rate), np.arange(0.0, 5.9, 1.0 / rate)
    rows = recording.rows(np.round(1e3 * times).astype(np.int64))
    signals = signals_of(replace(rows, t=times + rng.uniform(0.0, 1e-5, times.shape)), robot)
    assert_allclose(signals.t - signals.t[0], np.arange(len(signals)) / RATE, atol=0.51 / rate)
    assert len(signals) > 5.6 * RATE


def test_a_prediction_does_not_depend_on_what_it_predicts(signals: Signals) -> None:
    """A disturbance of one row hardly changes its prediction, which uses older rows, but those of later rows."""
    row, disturbance = len(signals) - 30, 1.0
    q = signals.q.copy()
    q[row] += disturbance
    change = np.abs(predicted(replace(signals, q=q)).q - predicted(signals).q).max(axis=1)
    youngest = round(PAST[0] * RATE)
    assert change[row - 5 : row + youngest].max() < 0.2 * change[row + youngest :].max()


def test_a_foot_that_stands_unloaded_is_not_in_the_air(squat: Recording, robot: Robot) -> None:
    wrench = squat.ankle_wrench.copy()
    wrench[:, 0] = 1e-6
    assert not signals_of(replace(squat, ankle_wrench=wrench), robot).airborne.any()


def test_all_that_is_wrong_with_a_recording_is_told_at_once(squat: Recording, robot: Robot) -> None:
    wrench = squat.ankle_wrench.copy()
    wrench[100:120] = np.nan
    t = squat.t.copy()
    t[3000:] += 0.5
    effort = squat.joint_effort.copy()
    effort[:5] = np.nan
    with pytest.raises(RecordingError) as caught:
        signals_of(replace(squat, t=t, ankle_wrench=wrench, joint_effort=effort), robot, "walk.npz")
    assert len(caught.value.faults) == 3
    assert all(fault.place == "walk.npz" for fault in caught.value.faults)


def test_a_push_of_an_object_does_not_matter(squat: Recording, robot: Robot) -> None:
    objects = {"ball": np.zeros((len(squat), 13))}
    push = {**REQUESTED, "body": "ball"}
    assert len(signals_of(replace(squat, objects=objects, pushes=(), run={"pushes": [push]}), robot)) > 0


def test_feet_in_another_order_are_the_same_feet(squat: Recording, robot: Robot, signals: Signals) -> None:
    turned = replace(squat, feet=squat.feet[::-1], ankle_wrench=squat.ankle_wrench[:, ::-1])
    other = signals_of(turned, robot)
    assert np.array_equal(other.wrench, signals.wrench)
    assert np.array_equal(other.noise, signals.noise)
    with pytest.raises(RecordingError):
        signals_of(replace(squat, feet=("left", "third")), robot)


@pytest.mark.parametrize("name", NEEDED)
def test_a_recording_without_a_needed_column_is_refused(name: str, squat: Recording, robot: Robot) -> None:
    with pytest.raises(RecordingError):
        signals_of(replace(squat, **{name: np.full_like(getattr(squat, name), np.nan)}), robot)


@pytest.mark.parametrize("name", sorted({*COLUMNS} - {GANTRY}))
def test_rows_in_which_something_else_touches_the_robot_are_refused(name: str, squat: Recording, robot: Robot) -> None:
    forces = np.full(getattr(squat, name).shape, np.nan)
    forces[:1500] = 1.0
    touched = replace(squat, **{name: forces})
    with pytest.raises(RecordingError):
        signals_of(touched, robot)
    assert len(signals_of(touched.rows(slice(1500, None)), robot)) > 0


@pytest.mark.parametrize("name", COLUMNS)
def test_a_force_of_zero_does_not_act(name: str, squat: Recording, robot: Robot) -> None:
    """Such as a slack rope, or the root while another body is in contact."""
    slack = replace(squat, **{name: np.zeros_like(getattr(squat, name))})
    assert list(external_forces(slack)) == []
    assert not signals_of(slack, robot).held.any()


def test_a_robot_in_a_gantry_is_held_also_if_nobody_says_so(robot: Robot, squat: Recording) -> None:
    hanging = run(RunConfig(scenario="hang", controller="posture", hardware="realistic", duration=4.0))[0]
    measured = replace(hanging, gantry_force=np.full_like(hanging.gantry_force, np.nan))
    for recording in (hanging, measured):
        assert signals_of(recording, robot).held.all()
    assert not signals_of(squat, robot).held.any()


def test_the_feet_of_a_robot_that_walks_carry_it(robot: Robot) -> None:
    walk = run(RunConfig(scenario="walk", controller="zmp", hardware="realistic", duration=4.0))[0]
    assert not signals_of(walk, robot).held.any()


REQUESTED = {"t": 0.9, "after": 0.1, "duration": 0.2, "wrench": [5.0, 0.0, 0.0, 0.0, 0.0, 0.0], "body": ""}


@pytest.mark.parametrize("pushed_by", ["plan", "request"])
def test_a_push_is_refused_while_it_lasts(pushed_by: str, squat: Recording, robot: Robot) -> None:
    pushed = replace(squat, pushes=((1.0, 1.2),), run={})
    if pushed_by == "request":
        pushed = replace(squat, pushes=(), run={"pushes": [REQUESTED]})
    with pytest.raises(RecordingError):
        signals_of(pushed, robot)
    assert len(signals_of(pushed.rows(pushed.t > 1.2), robot)) > 0


def test_a_recording_that_is_too_short_or_too_slow_is_refused(squat: Recording, robot: Robot) -> None:
    for part in (squat.rows(slice(0, 900)), squat.rows(slice(None, None, 20))):
        with pytest.raises(RecordingError):
            signals_of(part, robot)


def test_a_push_ends_with_the_next_one_and_one_without_force_is_none(squat: Recording, robot: Robot) -> None:
    """As the page of ``view`` pushes: until a wrench of zero."""
    none = {**REQUESTED, "t": 1.1, "wrench": [0.0] * 6}
    endless = {**REQUESTED, "duration": 1e300}
    assert list(external_forces(replace(squat, run={"pushes": [none]}))) == []
    (text,) = external_forces(replace(squat, run={"pushes": [endless, none]}))
    assert text.endswith("from t = 1.000 to 1.200 s")
    planned = replace(squat, pushes=((1.0, 1.2),), run={"pushes": [{**REQUESTED, "body": "ball"}]})
    planned.objects = {"ball": np.zeros((len(squat), 13))}
    assert list(external_forces(planned)) == []
