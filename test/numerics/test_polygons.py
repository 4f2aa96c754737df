"""Convex polygons in preallocated arrays against scipy and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import ConvexHull

from bipedsim.numerics import Array, polygons

SEEDS = st.integers(0, 2**32 - 1)
fast = settings(max_examples=40, deadline=None)


def _area(points: Array) -> float:
    x, y = points.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def _hull_of(points: Array) -> Array:
    """Return the corners of the hull, counter-clockwise from the least x, by the kernel."""
    room = points.copy()
    return room[: polygons.convex_hull(room, len(room), np.zeros((len(room) + 1, 2)))]


@given(st.integers(3, 20), SEEDS)
@fast
def test_the_hull_is_that_of_scipy(n: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(n, 2))
    expected = points[ConvexHull(points).vertices]
    expected = np.roll(expected, -int(expected[:, 0].argmin()), axis=0)
    assert_array_equal(_hull_of(points), expected)


@given(SEEDS, st.floats(-1.0, 1.0), st.floats(0.0, 2.0 * np.pi))
@fast
def test_a_cut_leaves_the_points_on_one_side(seed: int, offset: float, angle: float) -> None:
    generator = np.random.default_rng(seed)
    whole = _hull_of(generator.normal(size=(8, 2)))
    normal = np.array([np.cos(angle), np.sin(angle)])
    out = np.zeros((len(whole) + 1, 2))
    part = out[: polygons.cut(whole, len(whole), whole @ normal - offset, out)]
    assert (part @ normal >= offset - 2.0 * polygons.MERGE).all()
    other = np.zeros_like(out)
    rest = other[: polygons.cut(whole, len(whole), offset - whole @ normal, other)]
    assert _area(part) + _area(rest) == pytest.approx(_area(whole), abs=1e-5)


@given(st.integers(4, 12), SEEDS)
@fast
def test_simplifying_drops_the_corners_that_cut_off_least(n: int, seed: int) -> None:
    whole = _hull_of(np.random.default_rng(seed).normal(size=(n, 2)))
    room = whole.copy()
    count = polygons.simplify(room, len(room), max(len(room) - 1, 3))
    without = [np.delete(whole, i, axis=0) for i in range(len(whole))]
    expected = max(without, key=_area) if len(whole) > 3 else whole
    assert _area(room[:count]) == pytest.approx(_area(expected), abs=1e-12)


def test_vertices_in_line_are_dropped_and_the_rest_keep_their_order() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 1.0], [1.0, 1.0 + 1e-7], [0.0, 1.0]])
    assert polygons.drop_straight(points, 6) == 4
    assert_array_equal(points[:4], [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    line = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    assert polygons.drop_straight(line, 3) == 0


def test_parts_of_a_blade_span_from_its_first_to_its_last_point() -> None:
    points = np.array([[0.0, 0.0], [1.0, 1.0], [-2.0, -2.0], [3.0, 3.0]])
    assert polygons.span(points, 4, 2, np.zeros((4, 2))) == 2
    assert_array_equal(points[:2], [[-2.0, -2.0], [3.0, 3.0]])
    assert polygons.span(points, 4, 1, np.zeros((4, 2))) == 1


def test_a_polygon_begins_with_the_first_vertex_of_the_sole_that_it_has() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    polygons.start_as(points, 3, np.array([[9.0, 9.0], [1.0, 1.0], [1.0, 0.0]]), 3, np.zeros((3, 2)))
    assert_array_equal(points, [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])


@given(SEEDS)
@fast
def test_gaps_are_distances(seed: int) -> None:
    a, b = np.random.default_rng(seed).normal(size=(2, 4, 2))
    assert_allclose(polygons.gap(a, 1, b, 2), np.linalg.norm(a[1] - b[2]), rtol=1e-14)
