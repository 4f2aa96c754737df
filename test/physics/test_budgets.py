"""Bipeds under every contact model: statistics that detect a wrong model."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from motion_support import Bookkeeper, Judge, Motion
from theory import MODELS, theory

from bipedsim.contact.base import ContactResult
from bipedsim.model import Robot, load_robot
from bipedsim.runs.scenario import SCENARIOS
from bipedsim.sim.simulator import Simulator

H = 1e-3

pytestmark = [
    pytest.mark.parametrize(
        ("name", "model"),
        [
            # Every model on one robot each time; the other robots in `make test-all`.
            pytest.param(name, model, marks=[] if name == "biped14" else [pytest.mark.slow])
            for name in ("biped14", "talos", "g1")
            for model in MODELS
        ],
    ),
]


def sole_heights(sim: Simulator) -> np.ndarray:
    """Return the heights of all sole vertices [m]."""
    heights = []
    for pose, sole in zip(sim.ground_truth().pose_world_sole, sim.robot.soles, strict=True):
        x, y, z, w = pose[3:]
        heights.append(pose[2] + sole.vertices @ [2.0 * (x * z - w * y), 2.0 * (y * z + w * x)])
    return np.concatenate(heights)


def check_cones(contact: ContactResult) -> None:
    """|f_t| <= mu f_z, f_z >= 0, and the CoP inside the sole."""
    assert (contact.impulse[:, 2] >= 0.0).all()
    assert (np.nan_to_num(contact.friction_used) <= 1.0 + 1e-9).all()
    assert (np.nan_to_num(contact.cop_margin) >= -2e-6).all()


def on_all_vertices(contact: ContactResult, robot: Robot) -> bool:
    return [2**sole.n_vertices - 1 for sole in robot.soles] == contact.clamped.tolist()


@pytest.mark.parametrize(("scenario", "duration"), [("stand", 1.5), ("squat", 4.0)])
def test_standing_and_squats_balance_momentum_and_keep_the_feet(
    name: str, model: str, scenario: str, duration: float
) -> None:
    """Momentum is balanced in every step; after the first second feet stay where they are, and no contact changes."""
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS[scenario], model)
    sim, book, expected = motion.sim, Bookkeeper(robot), theory(model)
    worst = 0.0
    depth = expected.depth(0.25 * robot.weight)
    for step in range(round(duration / H)):
        q, v = sim.q.copy(), sim.v.copy()
        contact = motion.step()
        check_cones(contact)
        worst = max(worst, book.force_error(q, v, sim.v, contact))
        if step == 999 or (step == 0 and expected.rigid):
            start = sim.ground_truth().pose_world_sole.copy()
            changes = contact.state_changes
    poses = sim.ground_truth().pose_world_sole
    drift = np.abs(poses[:, :2] - start[:, :2]).max()
    print(f"\n{name} {model}: {contact.state_changes} changes, balance {worst:.1e} N, drift {drift:.1e} m")
    assert not motion.fallen
    assert contact.unresolved == 0
    assert contact.state_changes == changes
    assert on_all_vertices(contact, robot)
    assert worst < 1e-6 * robot.weight
    assert drift < expected.drift
    assert (poses[:, 2] > -max(2.0 * depth, 1e-4)).all()
    if scenario == "stand":
        assert contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-6 if expected.rigid else 1e-4)


@pytest.mark.long
def test_drop_ends_on_the_ground_and_never_adds_energy(name: str, model: str) -> None:
    """A drop of 5 cm, with tilted feet, so that one vertex touches down first and gets deepest.

    The contact never returns more kinetic energy than it took. A contact without energy storage takes energy in every
    step.
    """
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS["drop"], model, tilt=0.02)
    sim, expected = motion.sim, theory(model)
    judge = Judge(sim, Bookkeeper(robot))
    gain, given, hits = -np.inf, 0.0, 0
    heights, deepest, fastest = sole_heights(sim), 0.0, 0.0
    for _ in range(1500):
        judge.tau = motion.torque()
        contact = motion.step(judge.tau)
        check_cones(contact)
        before, heights = heights, sole_heights(sim)
        deepest = min(deepest, float(heights.min()))
        if (before > 0.0).any():
            fastest = max(fastest, float((before - heights)[before > 0.0].max()) / H)
        if (contact.impulse[:, 2] > 0.0).any():
            given += sum(judge.gains)
            gain = max(gain, max(judge.gains) if expected.rigid else given)
            hits += contact.wrench[:, 2].sum() > 3.0 * robot.weight
        judge.gains.clear()
    print(
        f"\n{name} {model}: {-deepest:.1e} m deep, gain {gain:.1e} J, balance {judge.balance:.1e} N, {hits} impacts, "
        f"{contact.state_changes} changes, {contact.unresolved} unresolved"
    )
    assert hits > 0
    assert judge.balance < 1e-6 * robot.weight
    assert -deepest < max(expected.landing(robot.mass, fastest), 1e-4)
    assert gain < 1e-9
    assert heights.max() < 1e-6


@pytest.mark.long
def test_feet_do_not_creep_under_a_steady_push(name: str, model: str) -> None:
    """A lateral push of 50 N for 2 s at the height of the soles. At the waist it would tip the lighter robots.

    A foot of g1 first rolls over its edge, and may slip in the step in which it lands again.
    """
    robot = load_robot(name)
    motion, expected = Motion(robot, SCENARIOS["stand"], model), theory(model)
    data = robot.model.createData()
    start = motion.sim.ground_truth().pose_world_sole.copy()
    # Sudden for rigid feet. Compliant ones that have no depth yet carry nothing sideways.
    begin, growth = (0, 1) if expected.rigid else (500, 200)
    sideways, landed = [], False
    for step in range(begin + 2000):
        pushed = 50.0 * min(max(step - begin + 1, 0) / growth, 1.0)
        motion.sim.push(np.array([0.0, pushed, 0.0, pushed * robot.q_nominal[2], 0.0, 0.0]))
        contact = motion.step()
        if step >= begin:
            assert not contact.sliding[~contact.impact.any(axis=1)].any()
            landed = landed or bool(contact.impact.any())
        else:
            start = motion.sim.ground_truth().pose_world_sole.copy()
        if step >= begin + 1000:
            sideways.append(contact.impulse[:, 1].sum() / H)
        else:
            settled = motion.sim.ground_truth().pose_world_sole.copy()
            pin.centerOfMass(robot.model, data, motion.sim.q, motion.sim.v)
            before = data.vcom[0].copy()
    pin.centerOfMass(robot.model, data, motion.sim.q, motion.sim.v)
    swayed = robot.mass * (data.vcom[0] - before)[1] / (H * len(sideways))
    poses = motion.sim.ground_truth().pose_world_sole
    moved, creep = np.abs(poses - start)[:, :2].max(), np.abs(poses - settled)[:, :2].max()
    print(f"\n{name} {model}: {moved:.1e} m, {creep:.1e} m of them in the last second")
    # The ground takes the push, except for the part that makes the robot sway.
    assert np.mean(sideways) == pytest.approx(swayed - 50.0, abs=0.05)
    assert moved < expected.give(50.0) + (1e-6 if landed else 1e-7)
    assert creep < expected.give(1.0) + 1e-7
