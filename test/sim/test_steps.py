"""Steps with an impact: no trace of a rejected attempt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from physics_support import SELECTION_MODELS, box_robot, regular_polygon
from refusals import refusal

from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_landing_that_leaves_three_of_four_vertices_has_an_answer(model: str, tmp_path: Path) -> None:
    """Table I has no set for the three. Their impulse adds no energy and leaves no violation.

    A prism is almost level on the ground, with some vertices a micrometre above it, as at the end of a fall.
    """
    robot = box_robot(tmp_path, regular_polygon(8, 0.15), height=0.05)
    sim = Simulator(robot, contact=model)
    corners = np.array(robot.soles[0].vertices)
    data = robot.model.createData()
    rng = np.random.default_rng(0)
    landed = 0
    for _ in range(300):
        tilt = pin.exp3(np.array([*(2e-5 * rng.normal(size=2)), rng.uniform(-3.0, 3.0)]))
        place = [0.0, 0.0, rng.uniform(-1e-6, 1e-6) - (corners @ tilt[2, :2]).min()]
        q = pin.SE3ToXYZQUAT(pin.SE3(tilt, np.array(place)))
        sim.reset(q, np.array([*(0.3 * rng.normal(size=2)), -0.03 * rng.random(), *(0.3 * rng.normal(size=3))]))
        before = pin.computeMechanicalEnergy(robot.model, data, sim.q, sim.v)
        for _ in range(4):
            sim.advance(NOTHING)
            energy = pin.computeMechanicalEnergy(robot.model, data, sim.q, sim.v)
            # The integration error is of second order in the step.
            assert energy < before + 1e-6
            before = energy
            landed += bool(sim.contact.impact.any())
    assert landed > 100
    assert sim.contact.unresolved == 0


def test_arrays_that_compiled_code_would_misread_are_refused(tmp_path: Path) -> None:
    sim = Simulator(box_robot(tmp_path, regular_polygon(4, 0.15), height=0.05))
    v = sim.v
    for wrong in (np.zeros(6, dtype=np.float32), np.zeros((6, 2))[:, 0], np.zeros(5)):
        sim.v = wrong
        with refusal(place="v"):
            sim.advance(NOTHING)
    sim.v = v.copy()
    sim.advance(NOTHING)
    assert sim.contact.steps == 1
