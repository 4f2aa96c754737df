"""The nearest inertia that a body can have, against chance and against itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bipedsim.model import inertia_problem, nearest_inertia

ENTRY = st.floats(-1.0, 1.0)


def symmetric(values: list[float]) -> np.ndarray:
    xx, xy, xz, yy, yz, zz = values
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def of_points(rng: np.random.Generator, scale: float) -> np.ndarray:
    """Return the inertia of point masses: one that a body can have."""
    points = scale * rng.normal(size=(6, 3))
    points -= points.mean(axis=0)
    return np.asarray(sum(p @ p * np.eye(3) - np.outer(p, p) for p in points))


@given(st.lists(ENTRY, min_size=6, max_size=6))
def test_what_is_mended_is_possible_and_nothing_possible_is_nearer(values: list[float]) -> None:
    wanted = symmetric(values)
    found = nearest_inertia(wanted)
    if np.abs(wanted).max() < 1e-6:
        return
    assert not inertia_problem(1.0, found)
    assert np.linalg.eigvalsh(found)[0] >= 0.0
    away = float(np.linalg.norm(found - wanted))
    rng = np.random.default_rng(0)
    for _ in range(40):
        other = of_points(rng, rng.uniform(0.0, 0.5))
        # Also from the answer on: no possible direction leads nearer, up to the least extent of a body.
        for candidate in (other, found + 1e-2 * other):
            assert np.linalg.norm(candidate - wanted) >= away - 5e-3 * np.linalg.norm(wanted)


def test_what_is_possible_stays() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        inertia = of_points(rng, 0.3)
        np.testing.assert_allclose(nearest_inertia(inertia), inertia, atol=1e-12)


def test_published_inertias() -> None:
    """A principal moment of nothing between two others, as of a vendor's foot."""
    found = nearest_inertia(np.diag([7.6e-19, 0.001, 0.002]))
    moments = np.linalg.eigvalsh(found)
    assert moments[0] > 1e-6
    assert moments[0] + moments[1] == pytest.approx(moments[2], rel=1e-2)
