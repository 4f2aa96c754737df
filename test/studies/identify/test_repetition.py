"""Which part of the residuals repeats with the motion, and the intervals that follow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

from bipedsim.config.run import RunConfig
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.runs.runner import run
from bipedsim_studies.identify import Signals, estimate, parameters_of, repetition, signals_of
from bipedsim_studies.identify.repetition import LANDMARKS, SIMILAR, repeated_shares, state_features

APART = 12


def cyclic(base: Signals, n: int, cycles: float) -> Signals:
    """Return signals of ``n`` rows whose joints go round an ellipse in the plane of position and velocity."""
    angle = np.linspace(0.0, 2.0 * np.pi * cycles, n)[:, None] + np.linspace(0.0, 1.0, base.q.shape[1])
    return replace(base, t=np.arange(n) / 50.0, q=0.3 * np.sin(angle), v=0.9 * np.cos(angle))


@pytest.fixture(scope="module")
def squat() -> Signals:
    recording = run(RunConfig(scenario="squat", controller="posture", hardware="realistic", duration=3.0))[0]
    return signals_of(recording, load_robot("biped14"))


def exact(signals: Signals) -> Array:
    """Return the similarities of all pairs of states, by brute force."""
    centred = signals.q - signals.q.mean(axis=0)
    states = np.hstack([centred / np.sqrt(np.mean(centred**2)), signals.v / np.sqrt(np.mean(signals.v**2))])
    squares = np.sum((states[:, None] - states[None]) ** 2, axis=2)
    return np.asarray(np.exp(-squares / squares.mean() / SIMILAR))


def test_similarities_are_a_gaussian_of_the_distance(squat: Signals) -> None:
    signals = cyclic(squat, LANDMARKS, 4.3)
    features = state_features(signals, slice(None))
    assert_allclose(features @ features.T, exact(signals), atol=1e-6)
    longer = cyclic(squat, 5 * LANDMARKS + 7, 20.7)
    features = state_features(longer, slice(None))
    assert features.shape[1] <= LANDMARKS + 1
    assert_allclose(features @ features.T, exact(longer), atol=1e-3)


@pytest.mark.parametrize(("whole", "model"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.8), (0.2, 0.7), (1.0, 0.0)])
def test_the_shares_of_residuals_that_repeat_are_found(squat: Signals, whole: float, model: float) -> None:
    """The judge is how the residuals were made: of a function of the state, and of smoothed white noise."""
    signals, rng, n = cyclic(squat, 1500, 25.0), np.random.default_rng(5), 40
    features = state_features(signals, slice(None))
    of_model = np.linspace(0.0, 1.0, n)
    share = whole + model * of_model
    function = features @ rng.normal(size=(features.shape[1], n))
    window = np.hanning(APART + 1)[1:-1]
    noise = np.stack([np.convolve(each, window, "valid") for each in rng.normal(size=(n, 1500 + len(window) - 1))], 1)
    noise /= np.linalg.norm(window)
    residuals = np.sqrt(share) * function + np.sqrt(1.0 - share) * noise
    used = rng.random(residuals.shape) < 0.8
    residuals = np.where(used, residuals * np.logspace(-2.0, 2.0, n), 1e6)
    # A joint that hardly moves does not count.
    used[:, n // 2] = np.arange(1500) < repetition.FEWEST - 1
    found = repeated_shares(residuals, used, features, APART, of_model)
    assert found[0] == pytest.approx(whole, abs=0.06)
    assert found[0] + found[1] == pytest.approx(whole + model, abs=0.1)


def test_the_shares_are_the_least_squares_fit_of_all_pairs_that_are_far_apart(squat: Signals) -> None:
    rng, signals = np.random.default_rng(6), cyclic(squat, 120, 3.3)
    used = rng.random((120, 3)) < 0.7
    residuals = np.where(used, np.sin(7.0 * signals.q[:, :3]) + rng.normal(size=(120, 3)), 0.0)
    similar, of_model = exact(signals), np.array([0.1, 0.5, 0.9])
    sizes = np.sqrt((residuals**2).sum(axis=0) / used.sum(axis=0))
    causes, products = [], []
    for i in range(120):
        for j in range(120):
            for e in range(3):
                if abs(i - j) >= APART and used[i, e] and used[j, e]:
                    causes.append([similar[i, j], similar[i, j] * of_model[e]])
                    products.append(residuals[i, e] * residuals[j, e] / sizes[e] ** 2)
    expected, _ = optimize.nnls(np.array(causes), np.array(products), maxiter=100)
    found = repeated_shares(residuals, used, state_features(signals, slice(None)), APART, of_model)
    assert found.max() > 0.1
    assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


def test_nothing_repeats_in_a_recording_without_similar_states(squat: Signals) -> None:
    rng = np.random.default_rng(7)
    once = cyclic(squat, 200, 0.45)
    of_model = np.full(4, 0.5)
    for residuals in (rng.normal(size=(200, 4)), np.zeros((200, 4))):
        used = np.ones_like(residuals, dtype=bool)
        assert repeated_shares(residuals, used, state_features(once, slice(None)), APART, of_model).max() < 0.2
        assert not repeated_shares(residuals, ~used, state_features(once, slice(None)), APART, of_model).any()


@pytest.mark.slow
def test_more_cycles_do_not_average_an_error_of_the_model_out() -> None:
    """A torque over the angle of a knee, and the width of its friction. White noise would give 0.7 of it."""
    robot = load_robot("biped14")
    knee = robot.joint_names.index("r_knee")
    friction = parameters_of(robot).at["coulomb_friction"][knee, 0]
    long = run(RunConfig(scenario="squat", controller="posture", hardware="realistic", duration=20.0))[0]
    long.joint_effort[:, knee] += 4.0 * np.sin(40.0 * long.joint_position[:, knee])
    deviations = []
    for rows in (slice(10000), slice(None)):
        result = estimate(robot, [signals_of(long.rows(rows), robot)])
        deviations.append(result.deviation[friction])
        assert result.repeated[1] > 0.08
    assert deviations[1] > 0.85 * deviations[0]
