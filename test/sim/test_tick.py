"""Contact results over several physics steps."""

from __future__ import annotations

from typing import cast

import numpy as np

from bipedsim.contact import ContactResult
from bipedsim.sim import Simulation
from bipedsim.sim.tick import Tick


def test_a_tick_sums_its_own_steps_and_none_of_the_tick_before() -> None:
    step = ContactResult.empty(2, 4)
    tick, nobody = Tick(step, np.zeros(6), 2), cast(Simulation, None)

    def take(loads: tuple[float, float], margins: tuple[float, float], used: tuple[float, float]) -> ContactResult:
        """Let the left foot carry loads [N.s] in turn, its CoP at 1 m and at 2 m; the right one is in the air."""
        tick.begin_tick(nobody)
        for i in range(2):
            step.impulse[0, 2], step.wrench[0, 2] = loads[i], 1000.0 * loads[i]
            step.cop[0] = (i + 1.0, 0.0) if loads[i] else np.nan
            step.cop_margin[0], step.friction_used[0] = margins[i], used[i]
            step.mode[0] = i
            tick.after_step(nobody)
        return tick.result

    first = take((3.0, 1.0), (0.05, 0.01), (0.2, 0.9))
    assert (first.impulse[0, 2], first.wrench[0, 2]) == (4.0, 2000.0)
    np.testing.assert_allclose(first.cop[0], [1.25, 0.0])
    assert (first.cop_margin[0], first.friction_used[0], first.mode[0]) == (0.01, 0.9, 1)
    assert np.isnan(first.cop[1]).all()
    second = take((1.0, 1.0), (0.04, 0.03), (0.1, 0.3))
    assert (second.impulse[0, 2], second.cop_margin[0], second.friction_used[0]) == (2.0, 0.03, 0.3)
    # The worst is not the last.
    third = take((1.0, 1.0), (0.01, 0.04), (0.9, 0.2))
    assert (third.cop_margin[0], third.friction_used[0]) == (0.01, 0.9)
    air = take((0.0, 0.0), (np.nan, np.nan), (np.nan, np.nan))
    for name in ("cop", "cop_margin", "friction_used"):
        assert np.isnan(getattr(air, name)).all(), name
    assert not air.impulse.any()
