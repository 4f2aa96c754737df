"""Active joint limits compared with brute force: all sets of limits and contact, each by dense equations."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from physics_support import special_robot
from theory import MODELS, THEORY, Theory

from bipedsim.dynamics.stops import stopped_joints
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.numerics import Array
from bipedsim.sim.simulator import Simulator

H = 1e-3
VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]


class Case(NamedTuple):
    """An arm near its joint limits, with its tip without friction near the ground.

    gaps: (2,) distance of the joints to their limits at the ``sides`` +-1; gap: of the tip.
    """

    q: Array
    v: Array
    tau: Array
    gaps: Array
    sides: Array
    gap: float


def limited(arm: Robot, case: Case) -> Robot:
    model = pin.Model(arm.model)
    lower, upper = case.q - 9.0, case.q + 9.0
    for j in range(2):
        if case.sides[j] > 0:
            upper[j] = case.q[j] + case.gaps[j]
        else:
            lower[j] = case.q[j] - case.gaps[j]
    model.lowerPositionLimit, model.upperPositionLimit = lower, upper
    return replace(arm, model=model, position_lower=lower, position_upper=upper, q_nominal=case.q)


def brute_force(arm: Robot, case: Case) -> list[Array]:
    """Return (v+, impulses of joints and tip) of all sets that fulfil every condition."""
    model, data = arm.model, arm.model.createData()
    M = np.triu(pin.crba(model, data, case.q)) + np.triu(data.M, 1).T
    f = case.tau - pin.nonLinearEffects(model, data, case.q, case.v)
    pin.forwardKinematics(model, data, case.q)
    pin.computeJointJacobians(model, data, case.q)
    sole = arm.soles[0]
    point = data.oMi[sole.joint_id].act(sole.vertices_joint[0])
    world = pin.getJointJacobian(model, data, sole.joint_id, pin.WORLD)
    tip = (world[:3] - pin.skew(point) @ world[3:])[2]
    # Each row is a way that must not get longer than its gap.
    rows = np.vstack([np.diag(case.sides), -tip])
    gaps = np.append(case.gaps, case.gap)
    found = []
    for active in itertools.product([False, True], repeat=3):
        n = np.flatnonzero(active)
        G = rows[n]
        kkt = np.block([[M, G.T], [G, np.zeros((len(n), len(n)))]])
        if np.linalg.matrix_rank(kkt) < len(kkt):
            continue
        x = np.linalg.solve(kkt, np.concatenate([M @ case.v + H * f, gaps[n] / H]))
        impulse = np.zeros(3)
        impulse[n] = x[2:]
        if (H * rows @ x[:2] <= gaps + 1e-12).all() and (impulse >= -1e-10).all():
            found.append(np.concatenate([x[:2], -case.sides * impulse[:2], [impulse[2]]]))
    return found


def cases(count: int, seed: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        q = np.array([rng.uniform(-1.2, 1.2), rng.uniform(-2.5, 2.5)])
        sides = rng.choice([-1.0, 1.0], 2)
        gaps = rng.choice([0.0, 1.0], 2) * rng.uniform(0.0, 2e-3, 2)
        gap = rng.choice([0.0, 1.0]) * rng.uniform(0.0, 1e-3)
        made.append(Case(q, rng.normal(0.0, 2.0, 2), rng.normal(0.0, 60.0, 2), gaps, sides, gap))
    return made


@pytest.mark.long
@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_stops_and_ground_are_what_brute_force_finds(model: str) -> None:
    """The steps have no landings. Except for friction, the solution is unique, and every model finds it."""
    arm = special_robot("arm")
    several = 0
    for case in cases(80, 3):
        expected = brute_force(arm, case)
        assert len(expected) >= 1
        np.testing.assert_allclose([x[:2] for x in expected], [expected[0][:2]] * len(expected), atol=1e-9)
        data = arm.model.createData()
        pin.forwardKinematics(arm.model, data, case.q)
        height = data.oMi[arm.soles[0].joint_id].act(arm.soles[0].vertices_joint[0])[2]
        ground = Ground.plane(np.array([0.0, 0.0, height - case.gap]), np.eye(3))
        sim = Simulator(limited(arm, case), ground, model, events=False)
        sim.reset(case.q, case.v)
        sim.advance(case.tau)
        got = np.concatenate([sim.v, sim.stop_impulse, [sim.contact.impulse[0, 2]]])
        several += np.count_nonzero(got[2:]) > 1
        # Three paths end at the same time in a robot with two degrees of freedom. The distribution of the load is open,
        # but the motion is not.
        nearest = min(expected, key=lambda x: float(np.abs(got - x).max()))
        np.testing.assert_allclose(got, nearest, atol=2e-8, err_msg=str(case))
        # Two stops hold all of the arm: the ground cannot move it, to rounding, which `lcp` and `ncp` count.
        assert sim.contact.unresolved == 0 or sim.stop_impulse.all()
    assert several > 8


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), number=st.integers(1, 4), model=st.sampled_from(VELOCITY_LEVEL))
def test_every_stop_pushes_or_is_left_alone(seed: int, number: int, model: str) -> None:
    """A robot on its feet with some joints at their limits: complementarity of each limit, and no violation."""
    robot = _BIPED
    rng = np.random.default_rng(seed)
    chosen = rng.choice(robot.nu, number, replace=False)
    side = rng.choice([-1, 1], number)
    gap = rng.choice([0.0, 1e-6, 5e-4], number)
    lower, upper = robot.model.lowerPositionLimit.copy(), robot.model.upperPositionLimit.copy()
    at = robot.idx_q[chosen]
    q = robot.q_nominal
    upper[at[side > 0]] = (q[at] + gap)[side > 0]
    lower[at[side < 0]] = (q[at] - gap)[side < 0]
    model_ = pin.Model(robot.model)
    model_.lowerPositionLimit, model_.upperPositionLimit = lower, upper
    sim = Simulator(replace(robot, model=model_), contact=model, events=False)
    sim.advance(standing := rng.normal(0.0, 30.0, robot.nu))
    sim.reset(q, 0.3 * rng.normal(size=robot.model.nv))
    sim.advance(standing)
    reached = sim.q[at]
    room = np.where(side > 0, upper[at] - reached, reached - lower[at])
    inward = -side * sim.stop_impulse[robot.idx_v[chosen]]
    assert (room > -1e-11).all()
    if sim.contact.unresolved == 0:
        assert (inward > -1e-12).all()
        assert np.abs(room * inward).max() < 1e-12, "only what is at its limit carries"
    others = np.setdiff1d(np.arange(robot.nu), chosen)
    assert not sim.stop_impulse[robot.idx_v[others]].any()


_BIPED = load_robot("biped14")


def test_joints_without_limits_have_no_stops() -> None:
    """Passive joints of planar robots turn freely. Drives, and passive joints with limits in the URDF, stop."""
    planar = special_robot("planar_biped")
    names = [planar.model.names[i] for i in stopped_joints(planar)]
    assert set(names) == set(planar.joint_names)
    assert len(stopped_joints(_BIPED)) == _BIPED.nu
    model = pin.Model(_BIPED.model)
    lower, upper = model.lowerPositionLimit.copy(), model.upperPositionLimit.copy()
    lower[_BIPED.idx_q[0]], upper[_BIPED.idx_q[0]] = -np.inf, np.inf
    model.lowerPositionLimit, model.upperPositionLimit = lower, upper
    assert len(stopped_joints(replace(_BIPED, model=model))) == _BIPED.nu - 1
