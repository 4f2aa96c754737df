"""States whose loaded feet rest on the ground."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from bipedsim.model import foot_poses, load_robot
from bipedsim_studies.gap.footing import Footing


def test_resting_feet_are_flat_on_the_ground_and_still_and_little_else_changes() -> None:
    robot = load_robot("biped14")
    model, random = robot.model, np.random.default_rng(3)
    error = random.normal(0.0, 1e-4, model.nv)
    error[:6] = [5e-3, 0.0, -2e-3, 2e-3, -3e-3, 1e-3]
    q, v = pin.integrate(model, robot.q_nominal, error), random.normal(0.0, 0.01, model.nv)
    settled, still = Footing(robot).settled(q, v, np.array([True, True]))
    data = model.createData()
    pin.forwardKinematics(model, data, settled, still)
    for sole, pose in zip(robot.soles, foot_poses(robot, settled).values(), strict=True):
        assert abs(pose.translation[2]) < 1e-6
        assert np.abs(pose.rotation[:2, 2]).max() < 1e-6
        assert np.abs(sole.placement_joint_sole.actInv(data.v[sole.joint_id]).vector).max() < 1e-4
    assert np.abs(settled[robot.idx_q] - q[robot.idx_q]).max() < 5e-4
    np.testing.assert_allclose(settled[:2], q[:2], atol=5e-3)


def test_a_foot_that_swings_or_rolls_stays() -> None:
    robot = load_robot("biped14")
    model, random = robot.model, np.random.default_rng(4)
    q, v = pin.integrate(model, robot.q_nominal, np.full(model.nv, 1e-3)), random.normal(0.0, 0.01, model.nv)
    footing = Footing(robot)
    in_air = footing.settled(q, v, np.array([False, False]))
    assert (in_air[0] == q).all()
    assert (in_air[1] == v).all()
    rolling = pin.integrate(model, q, np.concatenate([np.zeros(4), [0.1], np.zeros(model.nv - 5)]))
    assert (footing.settled(rolling, v, np.array([True, True]))[0] == rolling).all()
