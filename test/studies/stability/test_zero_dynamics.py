"""Return maps on a virtual constraint: one dimension, in closed form, compared with the closed loop."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from paths import ROBOTS
from refusals import refusal

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim_studies.stability.gait import WalkerGait
from bipedsim_studies.stability.maps import NoReturnError
from bipedsim_studies.stability.newton import fixed_point, jacobian
from bipedsim_studies.stability.straight_legs import StraightLegs
from bipedsim_studies.stability.zero_dynamics import ReducedMap, VirtualConstraint

START = ROBOTS / "compass" / "gait.yaml"
POWER, TIME_SCALE = 0.7, 0.1
"""The defaults of the controller."""


@pytest.fixture(scope="module")
def constraint() -> VirtualConstraint:
    return VirtualConstraint(StraightLegs.of_robot(load_robot("compass"), 0.01), Polynomial([0.0, -3.0, 0.0, 37.8]))


def slope(map: ReducedMap, xi: np.ndarray) -> float:
    return float(jacobian(map, xi, 1e-4)[0, 0])


def test_the_foot_lands_where_both_legs_are_alike(constraint: VirtualConstraint) -> None:
    """-3 a + 37.8 a^3 = -2 a."""
    assert constraint.touch_down == pytest.approx(-np.sqrt(1.0 / 37.8))
    state = constraint.before_strike(-0.2)
    assert state[2] == pytest.approx(-2.0 * state[0])
    np.testing.assert_allclose(constraint.error(state), 0.0, atol=1e-12)


def test_gravity_alone_changes_the_angular_momentum(constraint: VirtualConstraint) -> None:
    """The hip torque is in neither sum of the equations of motion."""
    walker = constraint.walker
    state = np.array([0.1, -0.3, -0.25, 0.4])
    h, rates = 1e-6, {}
    for u in (0.0, 3.0):
        M, N = walker.equations(state[0], state[0] + state[2], state[1], state[1] + state[3])
        a, b = np.linalg.solve(M, np.array([-u, u]) - N)
        moved = state + h * np.array([state[1], a, state[3], b - a])
        rates[u] = (constraint.momentum(moved) - constraint.momentum(state)) / h
    error, _ = constraint.error(state)
    for rate in rates.values():
        assert rate == pytest.approx(constraint.moment(0.1, error), abs=1e-5)


def test_angle_momentum_and_error_are_a_state(constraint: VirtualConstraint) -> None:
    state = constraint.state(0.1, -0.4, 0.02, -0.1)
    assert constraint.momentum(state) == pytest.approx(-0.4)
    np.testing.assert_allclose(constraint.error(state), [0.02, -0.1], atol=1e-12)


def test_squares_of_momenta_make_the_map_a_line(constraint: VirtualConstraint) -> None:
    """Without a transient, rate^2 is affine in rate^2 one step before, and its slope is the fraction that an impact
    leaves.
    """
    map = ReducedMap(constraint)
    rates = np.array([-0.235, -0.25, -0.28])
    squares = np.array([map(np.array([rate])).xi[0] ** 2 for rate in rates])
    slopes = np.diff(squares) / np.diff(rates**2)
    start = constraint.walker.heel_strike(constraint.before_strike(-1.0))
    lost = constraint.momentum(start) / constraint.inertia(constraint.touch_down)
    np.testing.assert_allclose(slopes, lost**2, rtol=1e-7)


def test_a_faster_feedback_comes_nearer_to_the_zero_dynamics(constraint: VirtualConstraint) -> None:
    rate = np.array([-0.235])
    limit = ReducedMap(constraint)(rate).xi[0]
    off = [abs(ReducedMap(constraint, POWER, scale)(rate).xi[0] - limit) for scale in (0.2, 0.1, 0.05)]
    assert off[0] > 2.0 * off[1] > 4.0 * off[2]
    assert off[0] < 1e-5


def test_the_whole_loop_has_one_multiplier_and_it_is_that_of_the_reduced_map(constraint: VirtualConstraint) -> None:
    """Engine, contact and controller have three coordinates. Two of them decay within a step."""
    gait = WalkerGait("compass", controller="finite_time", slope=0.01, physics_dt=4e-3, start=str(START), settle=1)
    map = gait.map()
    reduced = ReducedMap(constraint, POWER, TIME_SCALE)
    values = np.linalg.eigvals(jacobian(map, map.centre, 1e-3))
    values = values[np.argsort(-np.abs(values))]
    here = map.centre[[map.names.index("left_pitch'")]]
    assert values[0] == pytest.approx(slope(reduced, here), abs=0.02)
    assert np.abs(values[1:]).max() < 1e-3


def test_the_reduced_gait_is_stable_and_steeper_slopes_make_it_faster() -> None:
    rates = []
    for angle in (0.01, 0.012):
        walker = StraightLegs.of_robot(load_robot("compass"), angle)
        map = ReducedMap(VirtualConstraint(walker, Polynomial([0.0, -3.0, 0.0, 37.8])))
        point = fixed_point(map, np.array([-0.24]), tolerance=1e-8)
        assert 0.0 < slope(map, point.xi) < 1.0
        rates.append(-point.xi[0])
    assert rates[1] > rates[0]


def test_steps_that_do_not_come_back_say_so(constraint: VirtualConstraint) -> None:
    with refusal(NoReturnError, place="theta_1'"):
        ReducedMap(constraint)(np.array([-0.1]))
    with refusal(NoReturnError, place="time scale", value=3.0):
        ReducedMap(constraint, POWER, 3.0)(np.array([-0.24]))
    with pytest.raises(ConfigError) as caught:
        VirtualConstraint(constraint.walker, Polynomial([0.0, -2.0, 0.0, -1.0]))

    assert caught.value.place.startswith("path ")
