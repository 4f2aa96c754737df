"""Figures that catch a wrong contact model, on three robots and for every model."""

from __future__ import annotations

import numpy as np
import pytest
from motion_support import Bookkeeper, Motion
from physics_support import SELECTION_MODELS

from bipedsim.contact.base import ContactResult
from bipedsim.model import load_robot
from bipedsim.runs.scenario import SCENARIOS
from bipedsim.sim.simulator import Simulator

FACE = 9

pytestmark = [
    pytest.mark.parametrize("model", SELECTION_MODELS),
    pytest.mark.parametrize("name", ["biped14", "talos", "g1"]),
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


def test_quiet_standing_changes_nothing(name: str, model: str) -> None:
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS["stand"], model)
    start = motion.sim.ground_truth().pose_world_sole.copy()
    for _ in range(3000):
        contact = motion.step()
        check_cones(contact)
    assert contact.state_changes == 0
    assert contact.unresolved == 0
    assert contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-6)
    assert np.abs(motion.sim.ground_truth().pose_world_sole - start).max() < 1e-9


def test_squats_balance_momentum_and_keep_the_feet(name: str, model: str) -> None:
    """Five squats of 1 s: at most 12 changes of state, 0.1 N at every step, and feet that do not drift."""
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS["squat"], model)
    sim, book = motion.sim, Bookkeeper(robot)
    start = sim.ground_truth().pose_world_sole.copy()
    worst = 0.0
    for _ in range(5000):
        q, v = sim.q.copy(), sim.v.copy()
        contact = motion.step()
        check_cones(contact)
        worst = max(worst, book.force_error(q, v, sim.v, contact))
    drift = np.abs(sim.ground_truth().pose_world_sole - start)[:, :3].max()
    print(f"\n{name} {model}: {contact.state_changes} changes, balance {worst:.1e} N, drift {drift:.1e} m")
    assert contact.state_changes <= 12
    assert contact.unresolved == 0
    assert worst < 0.1
    assert drift < 1e-5


def test_drop_ends_on_the_ground_and_never_adds_energy(name: str, model: str) -> None:
    """A drop of 5 cm, feet not level: no vertex 0.1 mm deep, no impact that adds kinetic energy, momentum balanced."""
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS["drop"], model, tilt=0.02)
    sim, book = motion.sim, Bookkeeper(robot)
    worst, deepest, gain, hits = 0.0, 0.0, -np.inf, 0
    for _ in range(1500):
        q, v = sim.q.copy(), sim.v.copy()
        tau = motion.torque()
        contact = motion.step(tau)
        check_cones(contact)
        worst = max(worst, book.force_error(q, v, sim.v, contact))
        deepest = min(deepest, float(sole_heights(sim).min()))
        if (contact.impulse[:, 2] > 0.0).any():
            after, free = book.kinetic(q, v, sim.v, tau)
            gain = max(gain, after - free)
            hits += contact.wrench[:, 2].sum() > 3.0 * robot.weight
    print(
        f"\n{name} {model}: {-deepest:.1e} m deep, gain {gain:.1e} J, balance {worst:.1e} N, {hits} impacts, "
        f"{contact.state_changes} changes, {contact.unresolved} unresolved"
    )
    assert hits > 0
    assert worst < 0.1
    assert deepest > -1e-4
    assert gain < 1e-9
    assert contact.mode.tolist() == [FACE, FACE]


def test_feet_do_not_creep_under_a_steady_push(name: str, model: str) -> None:
    """50 N sideways for 3 s. It acts at the height of the soles: at the waist it would tip the lighter robots."""
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS["stand"], model)
    start = motion.sim.ground_truth().pose_world_sole.copy()
    motion.sim.push(np.array([0.0, 50.0, 0.0, 50.0 * robot.q_nominal[2], 0.0, 0.0]))
    for _ in range(3000):
        contact = motion.step()
        assert not contact.sliding.any()
    creep = np.abs(motion.sim.ground_truth().pose_world_sole - start)[:, :2].max()
    print(f"\n{name} {model}: {creep:.1e} m")
    assert contact.wrench[:, 1].sum() == pytest.approx(-50.0, abs=1.0)
    assert creep < 1e-7
