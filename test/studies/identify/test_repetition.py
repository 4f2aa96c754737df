"""Which part of the residuals repeats with the motion, and the intervals that follow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bipedsim.config.run import RunConfig
from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.runs.runner import run
from bipedsim_studies.identify import Signals, repetition, signals_of
from bipedsim_studies.identify.repetition import LANDMARKS, SIMILAR, repeated_shares, similarity

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
    features = similarity(signals, slice(None))
    assert_allclose(features @ features.T, exact(signals), atol=1e-6)
    longer = cyclic(squat, 5 * LANDMARKS + 7, 20.7)
    features = similarity(longer, slice(None))
    assert features.shape[1] <= LANDMARKS + 1
    assert_allclose(features @ features.T, exact(longer), atol=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
def test_the_share_of_residuals_that_repeats_is_found(squat: Signals, share: float) -> None:
    """The judge is how the residuals were made: of a function of the state, and of smoothed white noise."""
    signals, rng, n = cyclic(squat, 1500, 25.0), np.random.default_rng(5), 20
    features = similarity(signals, slice(None))
    function = features @ rng.normal(size=(features.shape[1], n))
    window = np.hanning(APART + 1)[1:-1]
    noise = np.stack([np.convolve(each, window, "valid") for each in rng.normal(size=(n, 1500 + len(window) - 1))], 1)
    noise /= np.linalg.norm(window)
    residuals = np.sqrt(share) * function + np.sqrt(1.0 - share) * noise
    used = rng.random(residuals.shape) < 0.8
    residuals *= np.logspace(-2.0, 2.0, n)
    assert repeated_shares(np.where(used, residuals, 1e6), used, features, APART) == pytest.approx(share, abs=0.06)
    # A joint that hardly moves does not count.
    used[:, 0] = np.arange(1500) < repetition.FEWEST - 1
    assert repeated_shares(residuals, used, features, APART) == pytest.approx(share, abs=0.06)


def test_the_share_is_the_least_squares_fit_of_all_pairs_that_are_far_apart(squat: Signals) -> None:
    rng, signals = np.random.default_rng(6), cyclic(squat, 120, 3.3)
    used = rng.random((120, 3)) < 0.7
    residuals = np.where(used, np.sin(7.0 * signals.q[:, :3]) + rng.normal(size=(120, 3)), 0.0)
    similar = exact(signals)
    sizes = np.sqrt((residuals**2).sum(axis=0) / used.sum(axis=0))
    products = squares = 0.0
    for i in range(120):
        for j in range(120):
            for e in range(3):
                if abs(i - j) >= APART and used[i, e] and used[j, e]:
                    products += similar[i, j] * residuals[i, e] * residuals[j, e] / sizes[e] ** 2
                    squares += similar[i, j] ** 2
    found = repeated_shares(residuals, used, similarity(signals, slice(None)), APART)
    assert found == pytest.approx(products / squares, rel=1e-6)


def test_nothing_repeats_in_a_recording_without_similar_states(squat: Signals) -> None:
    rng = np.random.default_rng(7)
    once = cyclic(squat, 200, 0.45)
    for residuals in (rng.normal(size=(200, 4)), np.zeros((200, 4))):
        used = np.ones_like(residuals, dtype=bool)
        assert repeated_shares(residuals, used, similarity(once, slice(None)), APART) < 0.2
        assert repeated_shares(residuals, ~used, similarity(once, slice(None)), APART) == 0.0
