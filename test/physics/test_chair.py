"""A rigid chair on four points slides and spins: forces on its legs are indeterminate, its motion is not."""

from __future__ import annotations

import numpy as np
import pytest
from physics_support import G, rigid_body

from bipedsim.sim.simulator import Simulator

LEGS = [np.array([[x, y]]) for x in (-0.2, 0.2) for y in (-0.25, 0.15)]
STATES = 1000


@pytest.mark.long
@pytest.mark.parametrize("states", [20, pytest.param(STATES, marks=pytest.mark.slow)])
def test_one_step_and_exact_slide_alike_and_resolve_every_step(states: int) -> None:
    rng = np.random.default_rng(0)
    chair = rigid_body(LEGS, 5.0, [0.02, -0.03, 0.25], [0.2, 0.25, 0.3], 0.3)
    exact = Simulator(chair, contact="exact")
    searching = Simulator(chair, contact="one_step", contact_params={"candidates": 100})
    default = Simulator(chair, contact="one_step")
    for _ in range(states):
        v = np.array([*rng.normal(size=2), 0.0, 0.0, 0.0, 5.0 * rng.normal()])
        ends = []
        for sim in (exact, searching, default):
            sim.reset(np.eye(7)[6], v)
            while np.abs(sim.v).max() > 1e-9:
                sim.advance(np.zeros(0))
                assert sim.t < 5.0
            assert sim.contact.unresolved == 0
            ends.append(np.append(sim.q, sim.t))
        np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)
        # In the stopping step, single vertices may share the load differently, so the stop may take one more step. The
        # difference is at most the distance of that step.
        np.testing.assert_allclose(ends[2][:7], ends[0][:7], atol=0.3 * G * 1e-3**2)
