"""The operation budget of the solvers of a step: truncated solves are counted, and their results stay valid."""

from __future__ import annotations

import numpy as np
import pytest

from bipedsim.contact import CONTACT_MODELS
from bipedsim.model import load_robot
from bipedsim.numerics import STEP_BUDGET
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator, steps

CRATE = ObjectConfig(name="crate", shape="box", mass=5.0, size=(0.3, 0.3, 0.3), position=(0.4, 0.0, 0.16))


def falling(model: str) -> Simulator:
    """Return a robot that falls over a crate."""
    sim = Simulator(load_robot("biped14"), contact=model, objects=[CRATE])
    q, v = sim.q.copy(), np.zeros(sim.robot.model.nv)
    q[2] += 0.05
    v[0], v[4] = 1.0, 2.0
    sim.reset(q, v)
    return sim


@pytest.mark.parametrize("model", CONTACT_MODELS)
def test_a_step_without_any_budget_ends_and_counts_as_unresolved(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some sweeps are always made: no body penetrates the ground, and the base is no faster than in free fall."""
    monkeypatch.setattr(steps, "STEP_BUDGET", 0)
    sim = falling(model)
    begun = fastest = float(np.abs(sim.v).max())
    for _ in range(800):
        sim.advance(np.zeros(sim.robot.nu))
        fastest = max(fastest, float(np.abs(sim.v[:3]).max()))
    assert sim.contact.unresolved > 0
    assert sim.reactions.touching is not None
    assert max(sim.reactions.touching.depths(sim.q).values(), default=0.0) < 5e-3
    # Down from 0.8 m.
    assert fastest < begun + np.sqrt(2.0 * 9.81 * 1.0)


@pytest.mark.parametrize("model", CONTACT_MODELS)
def test_standing_takes_a_fiftieth_of_the_budget(model: str) -> None:
    sim = Simulator(load_robot("biped14"), contact=model)
    robot = sim.robot
    most = 0
    for _ in range(100):
        q, v = sim.q[robot.idx_q], sim.v[robot.idx_v]
        sim.advance(600.0 * (robot.q_nominal[robot.idx_q] - q) - 20.0 * v)
        most = max(most, sim.operations)
    assert sim.contact.unresolved == 0
    assert most < STEP_BUDGET // 50


def test_the_budget_of_a_step_is_no_state() -> None:
    """A step does not depend on the operations of the step before."""
    sim = falling("ncp")
    for _ in range(200):
        sim.advance(np.zeros(sim.robot.nu))
    state = sim.snapshot()
    sim.advance(np.zeros(sim.robot.nu))
    q, took = sim.q.copy(), sim.operations
    sim.restore(state)
    sim.advance(np.zeros(sim.robot.nu))
    assert sim.operations == took
    np.testing.assert_array_equal(sim.q, q)
