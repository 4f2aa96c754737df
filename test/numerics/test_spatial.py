"""Each kernel of spatial algebra, compared with its definition in a line of numpy."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from bipedsim.numerics import Array, spatial

SEEDS = st.integers(0, 2**32 - 1)
fast = settings(max_examples=30, deadline=None)


def _vectors(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def _rotation(seed: int) -> Array:
    return np.ascontiguousarray(Rotation.random(random_state=seed).as_matrix())


def _pose(seed: int) -> tuple[pin.SE3, Array]:
    placement = pin.SE3(_rotation(seed), _vectors(seed, 3))
    return placement, np.append(placement.rotation.T.ravel(), placement.translation)


@given(SEEDS)
@fast
def test_products_are_those_of_numpy(seed: int) -> None:
    A, B = _vectors(seed, 2, 3, 3)
    a, b, out = _vectors(seed, 3, 3)
    assert_allclose(spatial.minus(a, b), a - b, atol=0.0)
    assert_allclose(spatial.dot(a, b), a @ b, atol=1e-14)
    assert_allclose(spatial.cross(a, b), np.cross(a, b), atol=1e-14)
    assert_allclose(spatial.mul(A, b), A @ b, atol=1e-14)
    assert_allclose(spatial.mul_t(A, b), A.T @ b, atol=1e-14)
    before = out.copy()
    spatial.accumulate(out, spatial.mul(A, b))
    assert_allclose(out, before + A @ b, atol=1e-14)
    spatial.assign(out, spatial.cross(a, b))
    assert_allclose(out, np.cross(a, b), atol=1e-14)
    spatial.product(A, B, out := np.empty((3, 3)))
    assert_allclose(out, A @ B, atol=1e-14)


@given(SEEDS, st.sampled_from([0.0, 1e-6, 1.0, 10.0]))
@fast
def test_a_quaternion_is_turned_in_its_own_axes(seed: int, size: float) -> None:
    begun, phi, out = Rotation.random(random_state=seed), size * _vectors(seed, 3), np.empty(4)
    spatial.turn_quaternion(begun.as_quat(), phi, out)
    assert_allclose(Rotation.from_quat(out).as_matrix(), (begun * Rotation.from_rotvec(phi)).as_matrix(), atol=1e-14)
    assert_allclose(out @ out, 1.0, atol=1e-15)


@given(SEEDS)
@fast
def test_a_pose_takes_points_vectors_and_axes_along(seed: int) -> None:
    placement, pose = _pose(seed)
    r, R = _vectors(seed + 1, 3), _rotation(seed + 1)
    assert_allclose(spatial.act(pose, r), placement.act(r), atol=1e-14)
    assert_allclose(spatial.turn(pose, r), placement.rotation @ r, atol=1e-14)
    spatial.turn_axes(pose, R, out := np.empty((3, 3)))
    assert_allclose(out, placement.rotation @ R, atol=1e-14)


@given(SEEDS)
@fast
def test_a_point_moves_as_pinocchio_says(seed: int) -> None:
    twist, acceleration = _vectors(seed, 2, 6)
    r = _vectors(seed + 1, 3)
    at = pin.SE3(np.eye(3), r)
    u, a = at.actInv(pin.Motion(twist)), at.actInv(pin.Motion(acceleration))
    assert_allclose(spatial.point_velocity(twist, r), u.linear, atol=1e-13)
    classical = a.linear + np.cross(u.angular, u.linear)
    assert_allclose(spatial.point_acceleration(twist, acceleration, r), classical, atol=1e-13)


@given(SEEDS)
@fast
def test_a_force_at_a_point_is_a_wrench_at_the_origin(seed: int) -> None:
    f, r = _vectors(seed, 2, 3)
    wrench = _vectors(seed + 1, 6)
    expected = wrench + np.append(f, np.cross(r, f))
    spatial.add_wrench(wrench, f, r)
    assert_allclose(wrench, expected, atol=1e-14)


@given(SEEDS, st.sampled_from([1e-7, 1e-3, 0.1, 1.0, 3.0]))
@fast
def test_the_exponential_and_its_first_order_inverse(seed: int, angle: float) -> None:
    phi = _vectors(seed, 3)
    phi *= angle / np.linalg.norm(phi)
    R = _rotation(seed)
    spatial.exp3(phi, 0.5, out := np.empty((3, 3)))
    assert_allclose(out, Rotation.from_rotvec(0.5 * phi).as_matrix(), atol=1e-14)
    # Exactly: the axis, as long as the sine of the angle.
    error = spatial.rotation_error(R, np.ascontiguousarray(out @ R))
    assert_allclose(error, phi / angle * np.sin(0.5 * angle), atol=1e-14)


@given(SEEDS)
@fast
def test_quaternions_there_and_back(seed: int) -> None:
    R = _rotation(seed)
    spatial.to_quaternion(R, quaternion := np.empty(4))
    assert_allclose(quaternion, Rotation.from_matrix(R).as_quat(canonical=True), atol=1e-13)
    spatial.from_quaternion(quaternion, out := np.empty((3, 3)))
    assert_allclose(out, R, atol=1e-14)
