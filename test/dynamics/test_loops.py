"""Loops in a step, against dense equations with pinocchio's constraint Jacobian, and pinocchio's own dynamics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from loop_support import bias, linkage, with_loops
from physics_support import special_robot
from theory import MODELS, THEORY, Theory

from bipedsim.dynamics.loops import Loops
from bipedsim.ground.ground import Ground
from bipedsim.model import CONNECT, WELD, LoopEquations, Robot, load_robot, standing_torque
from bipedsim.numerics import Array
from bipedsim.sim.simulator import Simulator

H = 1e-3
VELOCITY_LEVEL = [name for name in MODELS if THEORY.get(name, Theory()).rigid]
_BIPED = load_robot("biped14")
_PARALLEL = load_robot("parallel_ankles")


def mass_matrix(robot: Robot, q: Array) -> Array:
    data = robot.model.createData()
    pin.crba(robot.model, data, q)
    return np.asarray(np.triu(data.M) + np.triu(data.M, 1).T)


def feet_jacobian(robot: Robot, q: Array) -> Array:
    """Return J (6K, nv) of the sole origins, in world axes."""
    data, rows = robot.model.createData(), []
    pin.computeJointJacobians(robot.model, data, q)
    for sole in robot.soles:
        origin = data.oMi[sole.joint_id].act(sole.placement_joint_sole.translation)
        world = pin.getJointJacobian(robot.model, data, sole.joint_id, pin.WORLD)
        rows += [world[:3] - pin.skew(origin) @ world[3:], world[3:]]
    return np.vstack(rows)


def posed(robot: Robot, rng: np.random.Generator, spread: float) -> Array:
    """Return a posture near standing, with the base placed so that the feet are on the ground."""
    return robot.settle(robot.posture + spread * rng.uniform(-1.0, 1.0, robot.nu))


def forces(robot: Robot, q: Array, v: Array, tau: Array) -> Array:
    f = -pin.nonLinearEffects(robot.model, robot.model.createData(), q, v) - robot.joint_damping * v
    f[robot.idx_v] += tau
    return np.asarray(f)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 3),
    kind=st.sampled_from([CONNECT, WELD]),
    model=st.sampled_from(VELOCITY_LEVEL),
)
def test_a_step_of_random_chains_is_what_dense_equations_say(seed: int, count: int, kind: str, model: str) -> None:
    """For any contact impulse, M v+ = M v + h f + J^T p + G^T l and G v+ = -h/2 G' v."""
    rng = np.random.default_rng(seed)
    q = posed(_BIPED, rng, 0.2)
    robot = with_loops(_BIPED, q, seed, count, kind)
    # The posture is a random one, which may put the side of a foot into the ground.
    sim = Simulator(robot, contact=model, events=False, hardware={"body_contact": False})
    G = LoopEquations(robot.model, robot.loops).at(q)[1]
    v, tau = 0.5 * rng.normal(size=robot.model.nv), rng.normal(0.0, 20.0, robot.nu)
    v -= np.linalg.pinv(G) @ (G @ v)
    sim.reset(q, v)
    sim.advance(tau)
    if not (sim.contact.impulse[:, 2] > 0.0).any():
        return
    M, J = mass_matrix(robot, q) + H * np.diag(robot.joint_damping), feet_jacobian(robot, q)
    entries = [6 * k + i for k, loop in enumerate(robot.loops) for i in range(loop.size)]
    held = sim.loop_impulse.ravel()[entries]
    left = M @ (sim.v - v) - H * forces(robot, q, v, tau) - J.T @ sim.contact.impulse.ravel()
    left -= sim.stop_impulse
    scale = np.abs(held).max() + 1.0
    np.testing.assert_allclose(left, G.T @ held, atol=1e-9 * scale)
    np.testing.assert_allclose(G @ sim.v, -0.5 * H * bias(robot, q, v), atol=2e-7)
    assert LoopEquations(robot.model, robot.loops).gaps(sim.q).max() < 1e-12


@pytest.mark.parametrize("model", VELOCITY_LEVEL)
def test_feet_that_hold_and_loops_are_solved_together(model: str) -> None:
    """Both feet flat and at rest, torques that move nothing: all rows at once, by least squares."""
    robot = _PARALLEL
    sim = Simulator(robot, contact=model, events=False)
    rng = np.random.default_rng(5)
    tau = standing_torque(robot) + rng.normal(0.0, 3.0, robot.nu)
    q, v = sim.q.copy(), np.zeros(robot.model.nv)
    sim.advance(tau)
    rows = np.vstack([LoopEquations(robot.model, robot.loops).at(q)[1], feet_jacobian(robot, q)])
    M = mass_matrix(robot, q) + H * np.diag(robot.joint_damping)
    n, nv = rows.shape
    kkt = np.block([[M, -rows.T], [rows, np.zeros((n, n))]])
    expected = np.linalg.lstsq(kkt, np.append(H * forces(robot, q, v, tau), np.zeros(n)), rcond=1e-12)[0]
    assert np.abs(expected[:nv]).max() > 1e-3
    np.testing.assert_allclose(sim.v, expected[:nv], atol=1e-9)
    np.testing.assert_allclose(sim.loop_impulse[:, :3].ravel(), expected[nv : nv + 12], atol=1e-9)
    np.testing.assert_allclose(sim.contact.impulse.ravel(), expected[nv + 12 :], atol=1e-8)


def test_for_small_steps_it_is_the_dynamics_of_pinocchio() -> None:
    """pin.constraintDynamics of the loops, in the air: accelerations and forces."""
    robot = _PARALLEL
    model, rng = robot.model, np.random.default_rng(3)
    q = posed(robot, rng, 0.1)
    q[2] += 1.0
    equations = LoopEquations(model, robot.loops)
    v = rng.normal(size=model.nv)
    G = equations.at(q)[1]
    v -= np.linalg.pinv(G) @ (G @ v)
    tau = rng.normal(0.0, 20.0, robot.nu)
    data = model.createData()
    full = np.zeros(model.nv)
    full[robot.idx_v] = tau
    full -= robot.joint_damping * v
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in robot.loops:
        (one, two), (place, other) = loop.joints, loop.placements
        constraint = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, one, place, two, other, pin.LOCAL)
        models.append(constraint)
        datas.append(constraint.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    prox = pin.ProximalSettings(1e-14, 1e-14, 1e-12, 50)
    expected = pin.constraintDynamics(model, data, q, v, full, models, datas, prox)
    found = []
    for h in (1e-4, 5e-5):
        sim = Simulator(robot, physics_dt=h, events=False)
        sim.reset(q, v - 0.5 * h * expected)
        before = sim.v.copy()
        sim.advance(tau)
        # Velocities are those of half a step ago.
        found.append((sim.dynamics.acceleration.copy()[6:], -sim.loop_impulse[:, :3] / h, before))
    forces_ = np.array([d.contact_force.linear for d in datas])
    errors = [np.abs(a - expected[6:]).max() for a, _, _ in found]
    assert errors[0] < 0.05 * np.abs(expected[6:]).max()
    assert errors[1] < 0.6 * errors[0]
    off = [np.abs(f - forces_).max() for _, f, _ in found]
    assert off[0] < 0.05 * np.abs(forces_).max()
    assert off[1] < 0.6 * off[0]


def test_rows_are_pinocchio_s_and_leave_out_what_both_bodies_share() -> None:
    rng = np.random.default_rng(1)
    q = posed(_PARALLEL, rng, 0.2)
    sim = Simulator(_PARALLEL)
    sim.reset(q, rng.normal(size=_PARALLEL.model.nv))
    sim.advance(np.zeros(_PARALLEL.nu))
    loops = sim.dynamics.loops
    expected = LoopEquations(_PARALLEL.model, _PARALLEL.loops).at(q)[1]
    np.testing.assert_allclose(loops.rows, expected, atol=1e-12)
    shared = [_PARALLEL.model.joints[_PARALLEL.model.getJointId(f"{s}_knee")].idx_v for s in "lr"]
    assert not loops.rows[:, :6].any()
    assert not loops.rows[:, shared].any()
    assert Loops.of_robot((), _BIPED.model).rows.shape == (0, _BIPED.model.nv)


def test_a_loop_that_says_nothing_new_is_met_once() -> None:
    """A planar linkage held in all of space, and held twice, moves as one that is held once."""
    arm = special_robot("arm")
    q = np.array([0.4, -1.1])
    robot = with_loops(arm, q, 4, 1, CONNECT)
    twice = replace(robot, loops=(*robot.loops, *robot.loops))
    sims = [Simulator(one, Ground.plane(np.array([0.0, 0.0, -9.0]), np.eye(3))) for one in (robot, twice)]
    for sim in sims:
        sim.reset(q)
        for _ in range(50):
            sim.advance(np.array([3.0, -1.0]))
    np.testing.assert_allclose(sims[1].q, sims[0].q, atol=1e-12)
    total: Any = sims[1].loop_impulse.sum(axis=0)
    np.testing.assert_allclose(total, sims[0].loop_impulse.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("model", ["one_step", "ncp"])
@pytest.mark.parametrize("ground", [1.81, 1.83, 1.86, 1.9])
def test_after_a_landing_the_velocity_follows_the_loop(tmp_path: Path, model: str, ground: float) -> None:
    """It is that of the end of the step then: G v = 0 there, far below h / 2 of the loop's own acceleration."""
    robot = linkage(tmp_path)
    sim = Simulator(robot, Ground.flat(ground), contact=model, hardware={"body_contact": False})
    sim.reset(robot.settle([1.3]))
    for _ in range(400):
        sim.advance(np.zeros(1))
        if sim.stepper.landed > 0.0:
            break
    assert sim.stepper.landed > 0.0
    rate = LoopEquations(robot.model, robot.loops).at(sim.q)[1] @ sim.v
    assert np.abs(sim.v).max() > 1e-5
    assert np.abs(rate).max() < 1e-3 * H * float(sim.v @ sim.v)
