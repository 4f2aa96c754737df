"""Steps in which something arrives: what is left of a first try that was not taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from physics_support import SELECTION_MODELS, box_robot, regular_polygon

from bipedsim.contact.base import UNRESOLVED
from bipedsim.sim.simulator import Simulator
from bipedsim.sim.steps import Steps

NOTHING = np.zeros(0)


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_landing_that_leaves_three_of_four_vertices_is_a_step_as_a_whole(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Table I has no set for the three: the step has an answer all the same, that of plain time stepping to the bit.

    A prism all but level on the ground, of which some vertices are a micrometre above it, as in the end of a fall.
    """
    steps: list[str] = []
    unsplit, land = Steps._unsplit, Steps._land

    def noted(self: Steps, *args: Any) -> float:
        steps.append("unsplit")
        return unsplit(self, *args)

    def landed(self: Steps, *args: Any) -> float:
        steps.append("landed")
        return land(self, *args)

    monkeypatch.setattr(Steps, "_unsplit", noted)
    monkeypatch.setattr(Steps, "_land", landed)
    robot = box_robot(tmp_path, regular_polygon(8, 0.15), height=0.05)
    sim, plain = Simulator(robot, contact=model), Simulator(robot, contact=model, events=False)
    corners = np.array(robot.soles[0].vertices)
    rng = np.random.default_rng(0)
    whole = resolved = 0
    for _ in range(300):
        tilt = pin.exp3(np.array([*(2e-5 * rng.normal(size=2)), rng.uniform(-3.0, 3.0)]))
        place = [0.0, 0.0, rng.uniform(-1e-6, 1e-6) - (corners @ tilt[2, :2]).min()]
        q = pin.SE3ToXYZQUAT(pin.SE3(tilt, np.array(place)))
        sim.reset(q, np.array([*(0.3 * rng.normal(size=2)), -0.03 * rng.random(), *(0.3 * rng.normal(size=3))]))
        for _ in range(4):
            begun = sim.snapshot()
            steps.clear()
            sim.advance(NOTHING)
            if steps != ["unsplit"]:
                continue
            whole += 1
            plain.restore(begun)
            plain.advance(NOTHING)
            np.testing.assert_array_equal(sim.v, plain.v)
            np.testing.assert_array_equal(sim.q, plain.q)
            kept, wanted = sim.snapshot().contact, plain.snapshot().contact
            for name in kept:
                np.testing.assert_array_equal(kept[name], wanted[name], err_msg=name)
            resolved += sim.contact.unresolved == begun.contact["counters"][UNRESOLVED]
    assert whole > 5
    assert resolved > 0.9 * whole


def test_arrays_that_compiled_code_would_misread_are_refused(tmp_path: Path) -> None:
    sim = Simulator(box_robot(tmp_path, regular_polygon(4, 0.15), height=0.05))
    v = sim.v
    for wrong in (np.zeros(6, dtype=np.float32), np.zeros((6, 2))[:, 0], np.zeros(5)):
        sim.v = wrong
        with pytest.raises(ValueError, match="v has to be an array of 6 numbers of type float64 in one piece"):
            sim.advance(NOTHING)
    sim.v = v.copy()
    sim.advance(NOTHING)
    assert sim.contact.steps == 1
