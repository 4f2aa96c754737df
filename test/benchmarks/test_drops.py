"""Drops of the benchmark that once went wrong."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pinocchio as pin
import pytest
from paths import ROOT


@pytest.fixture(scope="module")
def drops() -> ModuleType:
    """Return the benchmark."""
    spec = importlib.util.spec_from_file_location("drops", ROOT / "benchmarks" / "drops.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["drops"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("model", "number"),
    [("one_step", 51), ("feedback_linearised", 1168), ("feedback_linearised", 718), ("feedback_linearised", 1139)],
)
def test_no_drop_makes_energy(drops: ModuleType, model: str, number: int) -> None:
    """They had made up to 315 000 J of 14 J: sets of modes, or equations of forces, that were next to singular."""
    sim, _ = drops.let_go(model, number)
    robot = sim.robot.model
    data = robot.createData()
    energies = []
    for _ in range(400):
        energies.append(pin.computeMechanicalEnergy(robot, data, sim.q, sim.v))
        sim.advance(np.zeros(0))
    rises = np.diff(energies)
    # What springs hold, which vertices in the ground may get back, is no more than went in.
    assert rises.max() < (1e-3 if model == "one_step" else 0.01 * energies[0])
    assert max(energies) < energies[0] + 1e-3


@pytest.mark.parametrize(("model", "number"), [("one_step", 337), ("exact", 337), ("exact", 5111), ("exact", 1642)])
def test_what_no_set_of_modes_answers_has_the_friction_of_single_vertices(
    drops: ModuleType, model: str, number: int
) -> None:
    """These drops had unresolved steps with forces that were off by up to 34 times the weight."""
    done = drops.drop(model, number, 0.4)
    assert done.unresolved == 0
    assert done.pointwise > 0
    assert len(done.errors) >= done.pointwise
    assert max(done.errors) < 1e-4
    assert not done.beyond


def test_the_judge_of_forces_knows_coulomb(drops: ModuleType) -> None:
    """A brick that slides: what brakes it is right, and what is beside that by 3 %, pulls or lets it sink is not."""
    sim, _ = drops.let_go("one_step", 3)
    p = sim._dynamics.projection
    while not sim.contact.sliding.any() or sim._dynamics.landing.lifted[0]:
        sim.advance(drops.NOTHING)
    right = sim.contact.impulse.copy()
    load = right[:, 2].max()
    assert drops.force_error(p, right, drops.STEP) < 1e-6 * load
    more_friction = right + 0.03 * right * [1, 1, 0, 0, 0, 0]
    for wrong in (more_friction, -right, 0.9 * right):
        assert drops.force_error(p, wrong, drops.STEP) > 0.01 * load


def test_a_vertex_out_of_reach_does_not_blur_an_impact(drops: ModuleType) -> None:
    """Residuals of ncp were beside the speed that a vertex left out of an impact, 1 km up, would need to come down."""
    done = drops.drop("ncp", 1193, 0.2)
    assert "contact_work_J" not in done.beyond
    done = drops.drop("ncp", 122, 0.4)
    assert "friction_excess_N" not in done.beyond


def test_a_spring_that_is_left_and_met_again_gives_what_it_took(drops: ModuleType) -> None:
    """In drop 1139 a vertex rises out of the ground so fast that it has no force for a while, 5 mm deep."""
    done = drops.drop("nonlinear_damping", 1139, 0.1)
    assert "contact_work_J" not in done.beyond
