"""The walker of three links: its equations against pinocchio's, its touch-downs against momenta and impact laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose

from bipedsim.errors import ConfigError
from bipedsim.model import load_robot
from bipedsim_studies.reproduce.common import body
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z, mechanics, of_soles
from bipedsim_studies.reproduce.hurmuzlu2001.three_links import END, biped, link_state, robot_state
from bipedsim_studies.stability import LinkConstraint, ThreeLinks

ROBOT = body("three_links")
WALKER = ThreeLinks.of_robot(ROBOT)
S = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])


def state(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return phi, phi' and torques."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.6, 0.6, 3), rng.normal(size=3), 30.0 * rng.normal(size=2)


@pytest.mark.parametrize("stance", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_accelerations_and_forces_are_those_of_the_robot_on_its_foot(seed: int, stance: int) -> None:
    phi, rate, u = state(seed)
    q, v = robot_state(ROBOT, WALKER, phi, rate, stance)
    points = mechanics(ROBOT, q, v, of_soles(ROBOT))
    assert_allclose(points.position[stance], 0.0, atol=1e-12)
    assert_allclose(points.rows[stance] @ v, 0.0, atol=1e-12)
    J, drift = points.rows[stance][[X, Z]], points.drift[stance][[X, Z]]
    drives = np.zeros(5)
    drives[[3 + stance, 4 - stance]] = u
    whole = np.block([[points.M, -J.T], [J, np.zeros((2, 2))]])
    solved = np.linalg.solve(whole, np.concatenate([drives - points.nle, -drift]))
    acceleration = WALKER.acceleration(phi, rate, u)
    assert_allclose(acceleration, link_state(q, solved[:5], stance)[1], atol=1e-9)
    assert_allclose(WALKER.ground_force(phi, rate, acceleration), solved[5:], atol=1e-8)


def test_energy_and_momentum_are_those_of_the_robot() -> None:
    for seed in range(5):
        phi, rate, _ = state(seed)
        q, v = robot_state(ROBOT, WALKER, phi, rate)
        data = ROBOT.model.createData()
        energy = pin.computeKineticEnergy(ROBOT.model, data, q, v) + pin.computePotentialEnergy(ROBOT.model, data, q)
        assert WALKER.energy(phi, rate) == pytest.approx(energy, abs=1e-9)
        pin.computeCentroidalMomentum(ROBOT.model, data, q, v)
        about = data.hg.angular + np.cross(data.com[0], data.hg.linear)
        assert WALKER.momentum(phi, rate) == pytest.approx(about[1], abs=1e-10)
        weight = np.cross(data.com[0], [0.0, 0.0, -ROBOT.weight])
        assert WALKER.moment(phi) == pytest.approx(weight[1], abs=1e-9)


def test_many_states_at_once_change_as_one_after_the_other() -> None:
    walker = replace(WALKER, pivot=300.0)
    states = [state(seed) for seed in range(4)]
    x = np.array([[*phi, *rate] for phi, rate, _ in states]).T
    u = np.array([torque for *_, torque in states]).T
    one_by_one = [np.append(rate, walker.acceleration(phi, rate, torque)) for phi, rate, torque in states]
    assert_allclose(walker.flow(x, u).T, one_by_one, atol=1e-10)


def test_the_spring_at_the_pivot_keeps_the_energy() -> None:
    walker = replace(WALKER, pivot=700.0)
    phi, rate = np.array([-0.1, 0.05, 0.1]), np.array([0.3, -0.2, 0.1])
    swung = walker.step(phi, rate, lambda _t, _phi, _rate: np.zeros(2), 0.25)
    assert np.ptp([walker.energy(*each) for each in zip(swung.phi, swung.rate, strict=True)]) < 1e-8
    assert np.ptp(swung.phi[:, 0]) > 0.04
    # Gravity and spring are all that changes the angular momentum.
    momenta = [walker.momentum(*each) for each in zip(swung.phi, swung.rate, strict=True)]
    moments = [walker.moment(each) for each in swung.phi]
    assert np.trapezoid(moments, swung.t) == pytest.approx(momenta[-1] - momenta[0], abs=1e-2 * np.ptp(momenta))
    assert walker.moment(phi) == pytest.approx(WALKER.moment(phi) + 70.0)


def test_a_touch_down_stops_the_foot_and_keeps_all_else_that_it_has_no_impulse_for() -> None:
    for seed in range(5):
        phi, rate, _ = state(seed)
        phi[:2] = 0.2, -0.2
        q, v = robot_state(ROBOT, WALKER, phi, rate)
        points = mechanics(ROBOT, q, v, of_soles(ROBOT))
        J = points.rows[1][[X, Z]]
        whole = np.block([[points.M, -J.T], [J, np.zeros((2, 2))]])
        after = np.linalg.solve(whole, np.concatenate([points.M @ v, np.zeros(2)]))[:5]
        landed, new = WALKER.heel_strike(phi, rate)
        assert_allclose(landed, phi[[1, 0, 2]])
        assert_allclose(new, link_state(q, after, 1)[1], atol=1e-10)


def test_a_repeating_constraint_is_where_a_touch_down_leaves_the_walker() -> None:
    constraint = biped()
    before, rates = constraint.posture(END), 0.7 * constraint.slopes(END)
    after, new = constraint.walker.heel_strike(before, rates)
    assert_allclose(after, constraint.posture(-END), atol=1e-12)
    assert_allclose(new / new[0], constraint.slopes(-END), atol=1e-12)
    assert_allclose(before[:2], [END, -END], atol=1e-12)


@pytest.mark.ci
def test_joint_moments_hold_the_constraint_and_lead_back_to_it() -> None:
    constraint: LinkConstraint = biped()
    off = np.array([0.0, 0.02, -0.03])
    start = constraint.posture(-0.2) + off
    found = constraint.walker.step(start, 0.8 * constraint.slopes(-0.2), constraint.torque, 0.2)
    errors = found.phi[:, 1:] - [constraint.posture(angle)[1:] for angle in found.phi[:, 0]]
    # Critically damped: (1 + w t) exp(-w t).
    expected = off[1:] * (np.exp(-30.0 * found.t) * (1.0 + 30.0 * found.t))[:, None]
    assert_allclose(errors, expected, atol=1e-8)


def test_other_robots_are_refused() -> None:
    with pytest.raises(ConfigError):
        ThreeLinks.of_robot(load_robot("compass"))
