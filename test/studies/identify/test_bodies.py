"""Bodies of ten numbers: every choice is physically possible, and the derivative is that of the body."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim_studies.identify.bodies import body, body_and_slope

THIGH = load_robot("biped14").model.inertias[4]
NUMBERS = st.lists(st.floats(-1.0, 1.0), min_size=10, max_size=10).map(np.array)


@given(NUMBERS)
def test_every_choice_of_numbers_is_a_rigid_body(numbers: Array) -> None:
    inertia = body(THIGH, numbers)
    pseudo = pin.PseudoInertia.FromInertia(inertia).toMatrix()
    assert inertia.mass > 0.0
    assert np.linalg.eigvalsh(pseudo).min() > 0.0, "mass, first and second moments of a distribution of mass"


def test_zeros_are_the_description() -> None:
    assert_allclose(
        body(THIGH, np.zeros(10)).toDynamicParameters(), THIGH.toDynamicParameters(), rtol=1e-12, atol=1e-14
    )


@given(NUMBERS)
def test_mass_and_centre_of_mass_are_what_the_numbers_say(numbers: Array) -> None:
    inertia = body(THIGH, numbers)
    assert_allclose(np.log(inertia.mass / THIGH.mass), numbers[0], atol=1e-12)
    assert_allclose(inertia.lever - THIGH.lever, numbers[1:4], atol=1e-12)


def test_a_strained_body_has_the_second_moments_of_its_strained_points() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(50, 3)) * [0.1, 0.2, 0.3]
    points -= points.mean(axis=0)
    second = points.T @ points
    cloud = pin.Inertia(50.0, np.zeros(3), np.trace(second) * np.eye(3) - second)
    _, axes = np.linalg.eigh(second)
    # Twice the logarithm of the extension along the principal axes of the cloud.
    strain = (axes * (2.0 * np.log([1.1, 0.8, 1.3]))) @ axes.T
    moved = points @ (axes * [1.1, 0.8, 1.3]) @ axes.T
    numbers = np.array([0, 0, 0, 0, *np.diag(strain), strain[0, 1], strain[0, 2], strain[1, 2]])
    expected = np.trace(moved.T @ moved) * np.eye(3) - moved.T @ moved
    assert_allclose(body(cloud, numbers).inertia, expected, rtol=1e-9, atol=1e-12)


def test_the_slope_predicts_a_small_change() -> None:
    rng = np.random.default_rng(2)
    numbers, change = rng.uniform(-0.3, 0.3, 10), 1e-4 * rng.uniform(-1.0, 1.0, 10)
    inertia, slope = body_and_slope(THIGH, numbers)
    moved = body(THIGH, numbers + change).toDynamicParameters() - inertia.toDynamicParameters()
    assert_allclose(moved, slope @ change, atol=1e-6 * np.abs(slope).max())
