"""The planar biped of nine degrees of freedom: model, standing, and landings."""

from __future__ import annotations

import anthropometry
import numpy as np
import pinocchio as pin
import pytest
from anthropometry import HIP_HOUSING_MASS, HIP_HOUSING_RADIUS, sphere
from numpy.testing import assert_allclose
from physics_support import G
from reproduce_support import outcome

from bipedsim.control.controllers import make_controller
from bipedsim.model import Robot, load_robot
from bipedsim.sim.simulator import Simulator
from bipedsim_studies.reproduce.hurmuzlu2001.foot_strike import FootStrikeResult, measure
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import X, Z


@pytest.fixture(scope="module")
def biped() -> Robot:
    return load_robot("planar_biped")


@pytest.fixture(scope="module")
def landed() -> FootStrikeResult:
    return measure()


def test_its_urdf_is_what_the_tables_give(biped: Robot) -> None:
    assert biped.urdf_path.read_text(encoding="utf-8") == anthropometry.planar_biped()


def test_it_has_nine_degrees_of_freedom_six_drives_and_four_points(biped: Robot) -> None:
    assert (biped.model.nq, biped.model.nv, biped.nu) == (9, 9, 6)
    assert [sole.n_vertices for sole in biped.soles] == [2, 2]
    assert biped.mass == pytest.approx(70.0)


def test_it_is_biped14_in_a_plane(biped: Robot) -> None:
    """The whole body about its hips and a leg about its hip, where biped14's two upper housings do not pitch along."""
    other = load_robot("biped14")
    data, q = other.model.createData(), pin.neutral(other.model)
    flat, straight = biped.model.createData(), np.zeros(9)
    com = pin.centerOfMass(other.model, data, q) - data.oMi[1].translation
    assert_allclose(pin.centerOfMass(biped.model, flat, straight)[[X, Z]], com[[X, Z]], atol=1e-9)
    pin.crba(biped.model, flat, straight)
    pin.crba(other.model, data, q)
    assert flat.M[2, 2] == pytest.approx(data.M[4, 4], rel=1e-8)
    hip, pitch = biped.idx_v[0], other.idx_v[other.joint_names.index("l_hip_pitch")]
    housings = 2.0 * sphere(HIP_HOUSING_MASS, HIP_HOUSING_RADIUS, (0.0, 0.0, 0.0)).inertia[1, 1]
    assert flat.M[hip, hip] == pytest.approx(data.M[pitch, pitch] + housings, rel=1e-8)


def test_it_is_placed_with_its_weight_over_its_feet(biped: Robot) -> None:
    data = biped.model.createData()
    com = pin.centerOfMass(biped.model, data, biped.q_nominal)
    points = np.array([data.oMi[sole.joint_id].act(vertex) for sole in biped.soles for vertex in sole.vertices_joint])
    assert_allclose(points[:, Z], 0.0, atol=1e-12)
    assert_allclose(points[:2, X], points[2:, X], atol=1e-12)
    assert com[X] == pytest.approx(points[:, X].mean(), abs=1e-12)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["computed_torque", "finite_time"])
def test_it_stands_and_comes_back_when_pushed(biped: Robot, name: str) -> None:
    sim = Simulator(biped)
    observation = sim.reset()
    controller = make_controller(name, biped, {})
    controller.reset(observation)
    for k in range(700):
        if k == 100:
            sim.push(np.array([20.0, 0.0, 0.0, 0.0, 0.0, 0.0]), "base_link", 0.1)
        observation = sim.step(controller.update(observation).tau_joint)
    assert sim.contact.state_changes == 0
    assert_allclose(sim.contact.wrench[:, Z].sum(), biped.mass * G, rtol=1e-3)
    assert_allclose(sim.q, biped.q_nominal, atol=1e-3)


def test_a_landing_foot_is_three_points_and_lets_the_toe_behind_go(landed: FootStrikeResult) -> None:
    """Signorini's and Coulomb's laws at each of the three points, after the impact that Pfeiffer and Glocker give."""
    strike, result = landed.strike, landed.laws["pfeiffer_glocker, friction"]
    assert_allclose(strike.state.position[[0, 2, 3], Z], 0.0, atol=1e-10)
    assert strike.state.position[1, Z] > 0.05
    after, slip = strike.normal @ result.v_after, strike.tangential @ result.v_after
    assert (after > -1e-12).all()
    assert (result.impulse > -1e-12).all()
    assert_allclose(after * result.impulse, 0.0, atol=1e-12)
    mu = strike.robot.soles[0].friction_static
    assert (np.abs(result.tangential_impulse) <= mu * result.impulse + 1e-12).all()
    assert_allclose(slip[1:], 0.0, atol=1e-12)
    momentum = strike.state.M @ (result.v_after - strike.v)
    both = strike.normal.T @ result.impulse + strike.tangential.T @ result.tangential_impulse
    assert_allclose(momentum, both, atol=1e-9)
    assert after[0] == pytest.approx(0.141, abs=1e-3)


def test_contact_models_land_the_foot_as_the_law_does() -> None:
    assert all(check.ok for check in outcome("hurmuzlu2001", "foot_strike").checks)
