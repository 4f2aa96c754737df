"""Steps that are solved in sub-steps report the sum over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from bipedsim.contact import ContactResult
from bipedsim.contact.parts import Parts, add_part, begin_parts, end_parts
from bipedsim.dynamics import Projection
from bipedsim.model import load_robot
from bipedsim.numerics import call
from bipedsim.sim.simulator import Simulator


def test_a_landing_sums_its_own_parts_and_none_of_the_landing_before() -> None:
    robot = load_robot("biped14")
    result = ContactResult.empty(2, 4)
    projection = Projection.of_soles(robot.soles)
    projection.mu_static[:] = 1.0
    projection.rotation[:] = np.eye(3)
    sums = Parts(projection, result).sums

    def land(*pushes: tuple[float, float, float]) -> ContactResult:
        """Let the left foot push for a share of the step [N.s], with its CoP at x [m]; the right one is in the air."""
        call(begin_parts, sums)
        for share, push, x in pushes:
            result.impulse[0, 2] = result.wrench[0, 2] = push
            result.cop[0] = x, 0.0
            result.cop[1] = np.nan
            call(add_part, sums, share, False)
        assert call(end_parts, sums)
        return result

    # (0.25 4 0.1 + 0.75 4 (-0.02)) / 4 m
    first = land((0.25, 4.0, 0.1), (0.75, 4.0, -0.02))
    assert first.impulse[0, 2] == first.wrench[0, 2] == 4.0
    np.testing.assert_allclose(first.cop[0], [0.01, 0.0], atol=1e-15)
    second = land((0.5, 2.0, 0.05), (0.5, 2.0, 0.03))
    assert second.impulse[0, 2] == second.wrench[0, 2] == 2.0
    np.testing.assert_allclose(second.cop[0], [0.04, 0.0], atol=1e-15)
    assert np.isnan(second.cop[1]).all()
    assert not second.impulse[1].any()


@pytest.mark.parametrize("model", ["one_step", "ncp", "lcp"])
def test_a_landing_that_is_tried_again_begins_as_if_it_had_not_been_tried(model: str) -> None:
    """The feet touch down corner after corner. One of the landings has a solution only at the second attempt."""
    robot = load_robot("biped14")
    sim = Simulator(robot, contact=model)
    q = pin.integrate(robot.model, robot.q_nominal, np.eye(robot.model.nv)[3:5].T @ [0.04, 0.03])
    q[2] += 0.03
    sim.reset(q)
    impact, begun, again = sim.dynamics.impact, [], 0

    def noted(*args: Any) -> float:
        begun.append(sim.solver.state())
        return impact(*args)

    sim.dynamics.impact = noted  # type: ignore[method-assign]
    for tick in range(110):
        begun.clear()
        sim.advance(np.zeros(robot.nu))
        assert sim.contact.steps == tick + 1
        for state in begun[1:]:
            again += 1
            for name, values in begun[0].items():
                np.testing.assert_array_equal(state[name], values, err_msg=name)
    assert again >= 1
