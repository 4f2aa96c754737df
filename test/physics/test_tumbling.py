"""Boxes that tumble onto soles with any number of vertices: no pulling force, no energy gain, no penetration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from motion_support import Bookkeeper, Judge
from physics_support import SELECTION_MODELS, box_robot, regular_polygon, special_robot

from bipedsim.contact.modes import RECOVERY
from bipedsim.model import Robot
from bipedsim.sim.simulator import Simulator

H = 1e-3
MASS = 2.0
DROPS = 12


@pytest.mark.long
@pytest.mark.parametrize("n", sampled([3, 16, 8, 64], keep=2))
@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_contact_pushes_and_takes_energy(tmp_path_factory: pytest.TempPathFactory, model: str, n: int) -> None:
    """The kinetic energy with contact is compared with that of the same step without, as in Moreau's plastic impact.

    If all sets of Table I have violations, a vertex may fall through the ground. Only the recovery from that, at no
    more than RECOVERY, may add energy.
    """
    robot = box_robot(tmp_path_factory.mktemp("box"), regular_polygon(n, 0.15), mass=MASS)
    corners = np.column_stack([robot.soles[0].vertices, np.zeros(n)])
    rng = np.random.default_rng(n)
    sim = Simulator(robot, contact=model)
    judge, seen = Judge(sim, Bookkeeper(robot)), 0
    for _ in range(DROPS):
        pose = pin.SE3(pin.exp3(np.array([*rng.uniform(-0.5, 0.5, 2), 0.3])), np.zeros(3))
        pose.translation[2] = 0.02 - (corners @ pose.rotation.T)[:, 2].min()
        linear = pose.rotation.T @ np.array([*rng.uniform(-1, 1, 2), rng.uniform(-2, 0)])
        sim.reset(pin.SE3ToXYZQUAT(pose), np.array([*linear, *rng.uniform(-3, 3, 3)]))
        for _ in range(500):
            q, before = sim.q, sim.contact.unresolved
            contact = sim.advance(NOTHING)
            gain, seen = max(judge.gains[seen:]), len(judge.gains)
            assert contact.impulse[0, 2] >= 0.0
            deepest = (corners @ pin.XYZQUATToSE3(q).rotation.T)[:, 2].min() + q[2]
            assert deepest > -5e-4
            sound = contact.unresolved == before and deepest > -1e-9
            assert gain <= (1e-12 if sound else 0.5 * MASS * RECOVERY**2)


SIDE = 0.4
NOTHING = np.zeros(0)


def tumbles(robot: Robot, model: str, drops: int, duration: float) -> Iterator[Simulator]:
    """Throw the block repeatedly, check every step, and yield the block when it is at rest."""
    half = 0.5 * SIDE
    corners = np.array([[half, half], [half, -half], [-half, half], [-half, -half]])
    rng = np.random.default_rng(1)
    sim = Simulator(robot, contact=model)
    judge, seen = Judge(sim, Bookkeeper(robot)), 0
    for _ in range(drops):
        pitch, height = rng.uniform(-np.pi, np.pi), rng.uniform(0.3, 0.6)
        sim.reset(np.array([0.0, height, pitch]), np.array([*rng.uniform(-2, [2, 0]), rng.uniform(-6, 6)]))
        for _ in range(round(duration / H)):
            contact = sim.advance(NOTHING)
            assert max(judge.gains[seen:]) <= 1e-12
            seen = len(judge.gains)
            assert (contact.impulse[:, 2] >= 0.0).all()
            deepest = (corners @ [-np.sin(sim.q[2]), np.cos(sim.q[2])]).min() + sim.q[1]
            assert deepest > -1e-6
        yield sim


@pytest.mark.long
@pytest.mark.parametrize("drops", sampled([5, DROPS]))
@pytest.mark.parametrize("model", ["one_step", "exact"])
def test_a_block_in_the_plane_comes_to_rest_on_a_face(model: str, drops: int) -> None:
    """The four corners are the ends of two line feet, so two of four faces are edges and two are pairs of corners."""
    unresolved = 0
    for sim in tumbles(special_robot("block"), model, drops, duration=2.5):
        quarters = sim.q[2] / (0.5 * np.pi)
        assert quarters == pytest.approx(round(quarters), abs=1e-9)
        assert sim.q[1] == pytest.approx(0.5 * SIDE, abs=1e-9)
        np.testing.assert_allclose(sim.v, 0.0, atol=1e-9)
        unresolved += sim.contact.unresolved
    assert unresolved <= drops // 2


@pytest.mark.parametrize("drops", sampled([10, 30]))
@pytest.mark.parametrize("model", ["one_step", "exact"])
def test_soles_that_share_a_corner_do_not_press_against_each_other(model: str, drops: int) -> None:
    """A face more per side: every corner is there twice, and the torque of an edge can be had without any load."""
    block = special_robot("block")
    bottom, top = block.soles
    turned = pin.SE3(pin.utils.rotate("y", -0.5 * np.pi), np.zeros(3))
    right = replace(bottom, name="right", placement_joint_sole=turned * bottom.placement_joint_sole)
    left = replace(top, name="left", placement_joint_sole=turned * top.placement_joint_sole)
    robot = replace(
        block,
        soles=(bottom, right, top, left),
        ankle_joint_ids=(bottom.joint_id,) * 4,
        placement_joint_ankle=(pin.SE3.Identity(),) * 4,
    )
    for sim in tumbles(robot, model, drops, duration=0.4):
        assert abs(sim.v).max() < 20.0
