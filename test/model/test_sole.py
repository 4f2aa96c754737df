"""Sole: valid soles, and distances to the edge compared with brute force."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refusal
from scipy.spatial import ConvexHull, QhullError

from bipedsim.errors import ConfigError
from bipedsim.model.sole import SHORTEST_EDGE, Sole, checked_polygon

coordinate = st.floats(-0.2, 0.2, allow_nan=False)


def sole(vertices: object, placement: pin.SE3 | None = None) -> Sole:
    polygon = checked_polygon(vertices, "vertices")
    return Sole("left", "l_sole", 1, placement or pin.SE3.Identity(), polygon, 0.5, 0.4)


@st.composite
def polygons(draw: st.DrawFn) -> np.ndarray:
    """Strictly convex counter-clockwise polygons, by the hull of random points."""
    points = draw(arrays(np.float64, st.tuples(st.integers(3, 12), st.just(2)), elements=coordinate))
    try:
        hull = points[ConvexHull(points).vertices]
    except QhullError:
        assume(False)
    try:
        return checked_polygon(hull, "hull")
    except ConfigError:
        assume(False)
        raise


def boundary(vertices: np.ndarray, n: int = 400) -> np.ndarray:
    s = np.linspace(0.0, 1.0, n)[:, None]
    return np.vstack([a + s * (b - a) for a, b in zip(vertices, np.roll(vertices, -1, axis=0), strict=True)])


@settings(deadline=None)
@given(polygons(), arrays(np.float64, 2, elements=coordinate))
def test_margin_is_the_distance_to_the_boundary(vertices: np.ndarray, point: np.ndarray) -> None:
    margin = sole(vertices).margin(point)
    samples = boundary(vertices)
    distance = np.hypot(*(samples - point).T).min()
    spacing = max(np.hypot(*(np.roll(vertices, -1, axis=0) - vertices).T)) / 399
    assert abs(margin) <= distance + 1e-12
    assert abs(margin) >= distance - spacing
    edges = np.roll(vertices, -1, axis=0) - vertices
    offset = point - vertices
    inside = (edges[:, 0] * offset[:, 1] - edges[:, 1] * offset[:, 0] >= 0.0).all()
    assert (margin >= 0.0) == inside or abs(margin) < 1e-12


@settings(deadline=None)
@given(polygons(), arrays(np.float64, st.tuples(st.integers(3, 12), st.just(1)), elements=st.floats(0.0, 1.0)))
def test_convex_combinations_of_the_vertices_are_inside(vertices: np.ndarray, weights: np.ndarray) -> None:
    weights = np.resize(weights, (len(vertices), 1)) + 1e-3
    assert sole(vertices).contains((weights * vertices).sum(axis=0) / weights.sum())


@settings(deadline=None)
@given(polygons(), st.integers(0, 11))
def test_either_way_round_is_the_same_sole(vertices: np.ndarray, first: int) -> None:
    turned = np.roll(vertices[::-1], first, axis=0)
    result = checked_polygon(turned, "vertices")
    assert np.array_equal(result[0], turned[0])
    start = int(np.flatnonzero((vertices == result[0]).all(axis=1))[0])
    assert np.array_equal(result, np.roll(vertices, -start, axis=0))


def test_margin_of_many_points_at_once_and_of_nothing() -> None:
    square = sole([[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]])
    points = np.array([[0.0, 0.0], [0.1, 0.0], [0.2, 0.2], [np.nan, np.nan]])
    assert square.margin(points)[:3] == pytest.approx([0.1, 0.0, -np.hypot(0.1, 0.1)], abs=1e-15)
    assert np.isnan(square.margin(points)[3])
    assert square.contains(points).tolist() == [True, True, False, False]
    assert square.margin([0.05, 0.0]) == pytest.approx(0.05)
    assert square.contains([0.1 + 0.5e-9, 0.0])
    assert not square.contains([0.1 + 2e-9, 0.0])


def test_point_and_blade_have_no_inside() -> None:
    point, blade = sole([[0.02, 0.0]]), sole([[0.1, 0.0], [-0.1, 0.0]])
    assert point.contains([0.02, 0.0])
    assert point.margin([0.02, 0.03]) == pytest.approx(-0.03)
    assert blade.contains([0.05, 0.0])
    assert blade.margin([0.05, 0.01]) == pytest.approx(-0.01)
    assert blade.margin([0.14, 0.03]) == pytest.approx(-0.05)


def test_vertices_in_the_joint_frame_follow_the_placement() -> None:
    placement = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2), np.array([0.0, 0.0, -0.1]))
    turned = sole([[0.1, 0.0], [0.0, 0.05], [-0.1, 0.0]], placement)
    assert turned.vertices_joint == pytest.approx(np.array([[0, 0.1, -0.1], [-0.05, 0, -0.1], [0, -0.1, -0.1]]))
    assert turned.centre == pytest.approx([0.0, 0.05 / 3])


@pytest.mark.parametrize(
    ("vertices", "place"),
    [
        ("square", ""),
        ([[0.1, 0.0, 0.0]], ""),
        ([0.1, 0.2], ""),
        ([], ""),
        ([[0.1, 0.1], [0.1]], ""),
        ([[0.1, float("nan")]], ""),
        ([[0.1, 0.1], [0.1, 0.1]], "[0]"),
        ([[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [-0.1, -0.1 + SHORTEST_EDGE / 2]], "[2]"),
        ([[0.1, 0.0], [0.0, 0.0], [-0.1, 0.0]], "[1]"),
        ([[0.1, 0.1], [0.0, 0.1], [-0.1, 0.1], [0.0, -0.1]], "[1]"),
        ([[0.1, 0.1], [0.0, 0.02], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]], "[1]"),
        ([[0.1, 0.1], [-0.1, -0.1], [-0.1, 0.1], [0.1, -0.1]], "[1]"),
        ([[np.cos(a), np.sin(a)] for a in 0.8 * np.pi * np.arange(5)], ""),
        ([[np.cos(a), np.sin(a)] for a in 2.0 * np.pi * np.arange(65) / 65], ": number"),
    ],
)
def test_what_is_no_sole_is_refused(vertices: object, place: str) -> None:
    with refusal(place=f"robot.yaml: feet.left.vertices{place}"):
        checked_polygon(vertices, "robot.yaml: feet.left.vertices")
