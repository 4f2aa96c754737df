"""The support phase of a planar biped: inverse dynamics, joint torques, and local optimality."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose

from bipedsim.control.output import PlanarWalk
from bipedsim.model import load_robot
from bipedsim_studies.reproduce.hurmuzlu2001.adaptive_walk import GAIT
from bipedsim_studies.reproduce.hurmuzlu2001.mechanics import mechanics, of_soles
from bipedsim_studies.reproduce.hurmuzlu2001.optimal_support import (
    BEGINS,
    FINE,
    NEAR,
    ROOM,
    SCUFF,
    Splines,
    StanceLeg,
    SupportMotion,
    improved,
    reference,
)

ROBOT = load_robot("planar_biped")


@lru_cache
def walk() -> PlanarWalk:
    return PlanarWalk(ROBOT, GAIT, "test")


@pytest.mark.parametrize("stance", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_torques_accelerate_the_robot_on_its_foot_as_its_joints_were_to_be(seed: int, stance: int) -> None:
    rng = np.random.default_rng(seed)
    joints, rates, bends = 0.3 * rng.normal(size=6), rng.normal(size=6), 5.0 * rng.normal(size=6)
    q, v, u, force, heights, ahead = StanceLeg(ROBOT, stance).at(joints, rates, bends)
    points = mechanics(ROBOT, q, v, of_soles(ROBOT))
    foot, other = slice(2 * stance, 2 * stance + 2), slice(2 - 2 * stance, 4 - 2 * stance)
    assert_allclose(points.position[foot][:, 2], 0.0, atol=1e-12)
    assert_allclose(points.position[foot].mean(axis=0)[0], 0.0, atol=1e-12)
    assert_allclose(heights, points.position[other][:, 2])
    assert (points.rows[other] @ v)[:, 0].mean() == pytest.approx(ahead, abs=1e-12)
    J, drift = points.rows[foot].reshape(-1, 9), points.drift[foot].ravel()
    assert_allclose(J @ v, 0.0, atol=1e-12)
    free = np.linalg.solve(points.M, np.concatenate([np.zeros(3), u]) - points.nle - ROBOT.joint_damping * v)
    held = np.linalg.solve(points.M, J.T)
    impulse = -np.linalg.pinv(J @ held, 1e-9) @ (J @ free + drift)
    assert_allclose((free + held @ impulse)[3:], bends, atol=1e-7)
    at_points = impulse.reshape(2, 3)
    assert_allclose(at_points.sum(axis=0)[[0, 2]], force[:2], atol=1e-7)
    # About +y: an upward force in front of mid-foot has a negative moment.
    assert -(points.position[foot][:, 0] @ at_points[:, 2]) == pytest.approx(force[2], abs=1e-7)


def test_energy_is_that_of_bodies_and_rotors() -> None:
    rng = np.random.default_rng(4)
    q, v = rng.normal(size=9), rng.normal(size=9)
    points = mechanics(ROBOT, q, v, of_soles(ROBOT))
    potential = pin.computePotentialEnergy(ROBOT.model, ROBOT.model.createData(), q)
    assert StanceLeg(ROBOT, 0).energy(q, v) == pytest.approx(0.5 * v @ points.M @ v + potential)


def test_what_is_added_vanishes_at_the_ends_with_two_derivatives() -> None:
    splines = Splines(0.45, 8)
    weights = np.random.default_rng(0).normal(size=6 * splines.count)
    assert splines.count == 8
    h = 1e-5
    t = np.array([0.0, 0.2, 0.2 - h, 0.2 + h, 0.45])
    angles, rates, bends = splines.at(t, weights)
    for rows in (angles, rates, bends):
        assert_allclose(rows[[0, -1]], 0.0, atol=1e-9)
        assert np.abs(rows[1]).max() > 1e-3
    assert_allclose((angles[3] - angles[2]) / (2.0 * h), rates[1], rtol=1e-6, atol=1e-6)
    assert_allclose((rates[3] - rates[2]) / (2.0 * h), bends[1], rtol=1e-6, atol=1e-4)


def test_nothing_near_the_optimum_needs_less_torque() -> None:
    splines, weights = improved(ROBOT, walk(), BEGINS[0], 5)
    t = np.linspace(0.0, GAIT.step_duration, FINE)
    stance = int(np.argmax(walk().share(BEGINS[0] + 0.2)))
    support, known = StanceLeg(ROBOT, stance), reference(walk(), BEGINS[0], t)

    def moved(weights: np.ndarray) -> SupportMotion:
        return support.along(t, *(a + b for a, b in zip(known, splines.at(t, weights), strict=True)))

    best, drawn = moved(weights), moved(np.zeros_like(weights))
    assert best.torque_cost < 0.75 * drawn.torque_cost
    assert np.abs(best.cop).max() < ROOM + 1e-3
    # Lower feet need less torque, so only motions with the same foot height are compared.
    rng, tried = np.random.default_rng(1), 0
    for _ in range(150):
        near = moved(weights + 0.02 * rng.normal(size=len(weights)))
        if near.heights.min(axis=1).sum() >= drawn.heights.min(axis=1).sum():
            tried += 1
            assert near.torque_cost > best.torque_cost
    assert tried > 10


def test_nothing_near_the_cheapest_needs_less_energy() -> None:
    """The alternatives scuff no more, lift the feet as high, and have the centre of pressure as far inside."""
    splines, weights = improved(ROBOT, walk(), BEGINS[0], 5, of_energy=True)
    t = np.linspace(0.0, GAIT.step_duration, FINE)
    stance = int(np.argmax(walk().share(BEGINS[0] + 0.2)))
    support, known = StanceLeg(ROBOT, stance), reference(walk(), BEGINS[0], t)

    def moved(weights: np.ndarray) -> SupportMotion:
        return support.along(t, *(a + b for a, b in zip(known, splines.at(t, weights), strict=True)))

    best, drawn = moved(weights), moved(np.zeros_like(weights))
    assert best.energy < 0.75 * drawn.energy
    low = drawn.heights.min(axis=1) < NEAR
    fastest = np.abs(best.ahead - drawn.ahead)[low].max()
    # Between the instants of the programme it may be a little more.
    assert fastest < SCUFF + 0.02
    rng, tried = np.random.default_rng(1), 0
    for _ in range(500):
        near = moved(weights + 0.01 * rng.normal(size=len(weights)))
        scuffs = np.abs(near.ahead - drawn.ahead)[low].max() > fastest
        if not scuffs and near.heights.min(axis=1).sum() >= best.heights.min(axis=1).sum():
            tried += 1
            assert near.energy > best.energy
    assert tried > 5
