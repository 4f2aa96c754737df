"""Polygons of support against scipy's hulls and a quadratic programme."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull

from bipedsim.model.sole import Sole
from bipedsim.numerics import Array
from bipedsim.numerics.hull import clamp, margin, move_inside
from bipedsim.numerics.polygons import hull_corners

coordinates = st.floats(-0.6, 0.6)
angles = st.floats(-3.2, 3.2)
SIZE = np.array([[-0.1, -0.06], [0.14, -0.06], [0.14, 0.06], [-0.1, 0.06]])


def hull_of(points: Array) -> Array:
    """Return the corners that the kernel finds."""
    out = np.full((len(points) + 1, 2), np.nan)
    return out[: hull_corners(np.array(points), len(points), 1e-9, out)]


def rectangle(x: float, y: float, yaw: float) -> Array:
    """Return the corners (4, 2) of a foot."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([x, y]) + SIZE @ np.array([[c, s], [-s, c]])


def edges(hull: Array) -> tuple[Array, Array]:
    """Return the normals (n, 2) to the inside and their offsets: inside is normals @ x >= offsets."""
    ahead = np.roll(hull, -1, axis=0) - hull
    normals = np.column_stack([-ahead[:, 1], ahead[:, 0]]) / np.linalg.norm(ahead, axis=1)[:, None]
    return normals, np.einsum("ij,ij->i", normals, hull)


def nearest(hull: Array, inset: float, point: Array) -> Array:
    """Return the point of the inset polygon next to ``point``: non-negative least squares on the dual."""
    normals, offsets = edges(hull)
    short = offsets + inset - normals @ point
    # Least norm of the step s under N s >= short (Lawson and Hanson, least distance programming).
    system = np.vstack([normals.T, short])
    solution = lsq_linear(system, np.array([0.0, 0.0, 1.0]), bounds=(0.0, np.inf), method="bvls", tol=1e-15).x
    residual = system @ solution - np.array([0.0, 0.0, 1.0])
    return point - residual[:2] / residual[2]


@st.composite
def supports(draw: st.DrawFn) -> Array:
    """One foot, or two side by side, level or turned."""
    left = rectangle(0.0, 0.1, draw(angles))
    if draw(st.booleans()):
        return left
    return np.vstack([left, rectangle(draw(coordinates), -0.1 - draw(st.floats(0.0, 0.3)), draw(angles))])


@given(st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=16))
def test_hull_is_scipys(points: list[tuple[float, float]]) -> None:
    cloud = np.round(np.array(points), 4)
    if np.linalg.matrix_rank(cloud - cloud[0], tol=1e-6) < 2:
        return
    found = hull_of(cloud)
    expected = cloud[ConvexHull(cloud).vertices]
    start = np.lexsort((expected[:, 1], expected[:, 0]))[0]
    # Both go round counter-clockwise; ours begins at the least x. Points on an edge may be corners of scipy's.
    area = [0.5 * (h[:, 0] @ np.roll(h[:, 1], -1) - h[:, 1] @ np.roll(h[:, 0], -1)) for h in (found, expected)]
    assert area[0] == pytest.approx(area[1], abs=1e-11)
    assert found[0].tolist() == expected[start].tolist()
    assert {tuple(corner) for corner in found} <= {tuple(corner) for corner in cloud}
    normals, offsets = edges(found)
    assert (cloud @ normals.T - offsets).min() > -1e-9
    assert len(np.unique(found, axis=0)) == len(found)


@given(supports(), st.floats(-1.0, 1.0), st.integers(0, 4))
def test_corners_in_line_do_not_confuse_the_hull(points: Array, off: float, times: int) -> None:
    """Feet abreast have edges in line up to rounding, and corners may come twice."""
    left = rectangle(0.0, 0.1, 0.0)
    for size in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7):
        feet = np.vstack([left, rectangle(size * off, -0.1, size * off), left[:times]])
        found = hull_of(feet)
        assert len(np.unique(found, axis=0)) == len(found)
        normals, offsets = edges(found)
        assert (feet @ normals.T - offsets).min() > -1e-9
        assert margin(found, len(found), 0.02, 0.1) == pytest.approx(0.06, abs=1e-6)
    twice = np.vstack([points, points[::-1], points.mean(axis=0)])
    assert hull_of(twice).tolist() == hull_of(points).tolist()


def test_points_and_lines_are_hulls_of_one_and_two_corners() -> None:
    point = np.full((5, 2), 0.3)
    assert hull_of(point).tolist() == [[0.3, 0.3]]
    line = np.array([0.25, 0.5]) + np.array([0.5, 0.0, 1.0, 0.25, 1.0])[:, None] * np.array([0.5, 0.125])
    assert hull_of(line).tolist() == [[0.25, 0.5], [0.75, 0.625]]
    for hull in (hull_of(point), hull_of(line)):
        assert margin(hull, len(hull), 0.8, 0.9) == pytest.approx(-np.hypot(*([0.8, 0.9] - hull[-1])))
        anywhere = np.array([1.0, -2.0])
        assert clamp(hull, len(hull), 0.003, anywhere)
        assert anywhere == pytest.approx(hull.mean(axis=0))


@given(supports(), coordinates, coordinates)
def test_margin_is_that_of_a_sole(points: Array, x: float, y: float) -> None:
    hull = hull_of(points)
    sole = Sole("s", "s", 1, None, hull, 1.0, 1.0)  # type: ignore[arg-type]
    assert margin(hull, len(hull), x, y) == pytest.approx(sole.margin([x, y]), abs=1e-12)


@given(supports(), st.integers(1, 8), coordinates, coordinates)
def test_moving_inside_ends_there_and_goes_no_further(points: Array, most: int, x: float, y: float) -> None:
    hull = hull_of(points[:most])
    moved = np.array([x, y])
    move_inside(hull, len(hull), moved)
    way = np.hypot(*(moved - [x, y]))
    assert way == pytest.approx(max(0.0, -margin(hull, len(hull), x, y)), abs=1e-12)
    assert margin(hull, len(hull), *moved) > -1e-12


@given(supports(), coordinates, coordinates, st.sampled_from([0.0, 0.003, 0.02]))
def test_clamp_gives_the_nearest_point_inside(points: Array, x: float, y: float, inset: float) -> None:
    hull, point = hull_of(points), np.array([x, y])
    moved = point.copy()
    normals, offsets = edges(hull)
    inside = (normals @ point - offsets - inset).min()
    if abs(inside) < 1e-9:
        return
    assert clamp(hull, len(hull), inset, moved) == (inside < 0.0)
    assert (normals @ moved - offsets - inset).min() > -1e-12
    expected = point if inside > 0.0 else nearest(hull, inset, point)
    assert np.abs(moved - expected).max() < 1e-9


@given(coordinates, coordinates, st.floats(0.061, 1.0))
def test_a_foot_narrower_than_two_insets_holds_its_middle(x: float, y: float, inset: float) -> None:
    hull, point = hull_of(SIZE), np.array([x, y])
    assert clamp(hull, 4, inset, point)
    assert point == pytest.approx(SIZE.mean(axis=0))
