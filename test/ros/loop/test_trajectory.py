"""Trajectories between waypoints: properties of splines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import quad
from scipy.interpolate import BPoly

pytest.importorskip("rclpy", reason="rclpy is not installed")

from bipedsim.numerics import Array
from bipedsim_ros.loop.trajectory import Trajectory
from bipedsim_ros.wire import Waypoints

T = np.array([0.3, 0.5, 1.1])


def points(order: int, start: float | None = None, seed: int = 0) -> Waypoints:
    """Waypoints of joints 2 and 0 with so many derivatives."""
    q, v, a = np.random.default_rng(seed).normal(size=(3, 3, 2))
    return Waypoints(start, np.array([2, 0]), T, q, v if order > 0 else None, a if order > 1 else None)


def at(trajectory: Trajectory, t: float) -> tuple[Array, Array]:
    trajectory.go(t)
    return trajectory.position.copy(), trajectory.velocity.copy()


@pytest.mark.parametrize("order", [0, 1, 2])
@given(seed=st.integers(0, 1000))
def test_it_goes_through_the_waypoints_without_a_jump(order: int, seed: int) -> None:
    given_points, begin, speed = points(order, None, seed), np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6])
    path = Trajectory(given_points, 5.0, begin, speed)
    eps = 1e-9
    np.testing.assert_allclose(at(path, 5.0)[0], begin, atol=1e-12)
    if order:
        np.testing.assert_allclose(at(path, 5.0)[1][[2, 0]], speed[[2, 0]], atol=1e-12)
    for i, t in enumerate(5.0 + T[:-1]):
        for side in (-eps, eps):
            q, v = at(path, t + side)
            np.testing.assert_allclose(q[[2, 0]], given_points.position[i], atol=1e-6)
            assert (q[1], v[1]) == (0.2, 0.0)
            if given_points.velocity is not None:
                np.testing.assert_allclose(v[[2, 0]], given_points.velocity[i], atol=1e-5)
    q, v = at(path, 99.0)
    np.testing.assert_array_equal(q[[2, 0]], given_points.position[-1])
    assert not v.any()


@pytest.mark.parametrize("order", [0, 1, 2])
def test_its_velocity_is_that_of_its_position(order: int) -> None:
    def speed(t: float) -> float:
        return float(at(path, t)[1][0])

    path = Trajectory(points(order), 0.0, np.zeros(3), np.zeros(3))
    before, after = at(path, 0.35)[0][0], at(path, 0.45)[0][0]
    assert quad(speed, 0.35, 0.45)[0] == pytest.approx(after - before, abs=1e-9)


@pytest.mark.parametrize("order", [0, 1, 2])
@given(seed=st.integers(0, 1000), t=st.floats(0.0, T[-1], exclude_max=True))
def test_between_waypoints_it_is_the_polynomial_of_scipy(order: int, seed: int, t: float) -> None:
    waypoints = points(order, None, seed)
    begin, speed = np.random.default_rng(seed + 1).normal(size=(2, 3))
    columns = [c for c in (waypoints.position, waypoints.velocity, waypoints.acceleration) if c is not None]
    first = [begin[waypoints.joints], speed[waypoints.joints], np.zeros(2)]
    rows = [first[: len(columns)], *zip(*columns, strict=True)]
    expected = BPoly.from_derivatives([0.0, *T], [np.array(row) for row in rows])
    q, v = at(Trajectory(waypoints, 0.0, begin, speed), t)
    np.testing.assert_allclose(q[waypoints.joints], expected(t), atol=1e-12)
    np.testing.assert_allclose(v[waypoints.joints], expected.derivative()(t), atol=1e-11)


def test_what_is_over_when_it_begins_is_left_out() -> None:
    late = points(0, start=4.6)
    path = Trajectory(late, 5.0, np.zeros(3), np.zeros(3))
    halfway = 0.5 * (5.0 + 4.6 + T[1])
    np.testing.assert_allclose(at(path, halfway)[0][[2, 0]], 0.5 * late.position[1])
    over = Trajectory(points(1, start=1.0), 5.0, np.zeros(3), np.ones(3))
    q, v = at(over, 5.0)
    np.testing.assert_array_equal(q[[2, 0]], points(1).position[-1])
    assert not v.any()
