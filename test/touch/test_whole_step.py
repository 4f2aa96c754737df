"""A step with all contacts in one compiled call has the same bits as the same step in several calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bipedsim.model import load_robot
from bipedsim.numerics import Array
from bipedsim.sim import Simulator


def never(*arguments: Any) -> int:
    raise AssertionError("a step in one call does not call Dynamics.touch")


def fall(name: str, hardware: dict[str, Any], effort: float, several: bool) -> tuple[list[Array], dict[str, int]]:
    """Return states, forces and counts of a fall, and the number of calls of each method.

    The torques are random signs times the share ``effort`` of their limits.
    """
    robot, rng = load_robot(name), np.random.default_rng(0)
    sim = Simulator(robot, hardware=hardware)
    touching = sim.reactions.touching
    assert touching is not None
    calls = {"touch": 0, "ask": 0, "add_stops": 0}
    if several:
        # A search in Python, even an empty one, needs several calls.
        touching.finders.append(lambda contacts: None)
        touch, solve, add_stops = sim.dynamics.touch, touching.solve, touching.add_stops

        def count(name: str, call: Any) -> Any:
            def counted(*arguments: Any) -> Any:
                calls[name] += 1
                return call(*arguments)

            return counted

        sim.dynamics.touch = count("touch", touch)  # type: ignore[method-assign]
        touching.solve = lambda ask: solve(count("ask", ask))  # type: ignore[method-assign]
        touching.add_stops = count("add_stops", add_stops)  # type: ignore[method-assign]
    else:
        sim.dynamics.touch = never  # type: ignore[method-assign]
    sim.reset()
    sim.push(np.array([0.3, 0.1, 0.0, 0.0, 0.0, 0.0]) * robot.weight, duration=0.2)
    states = []
    for _ in range(1500):
        sim.advance(effort * robot.effort_limit * rng.choice([-1.0, 1.0], robot.nu))
        counts = *sim.solver.result.counters, sim.operations
        states.append(np.concatenate([sim.q, sim.v, sim.body_impulse.ravel(), sim.stop_impulse, counts]))
    return states, calls


@pytest.mark.parametrize(
    ("name", "hardware", "effort", "used"),
    [
        ("biped14", {}, 0.0, ()),
        ("biped14", {"body_restitution": 0.4, "stop_restitution": 0.3}, 0.0, ("ask",)),
        # Light joints pass limits that were not near at the beginning of the step.
        ("g1", {}, 1.0, ("add_stops",)),
    ],
)
def test_a_fall_has_the_same_bits_in_one_call_and_in_several(
    name: str, hardware: dict[str, Any], effort: float, used: tuple[str, ...]
) -> None:
    whole, _ = fall(name, hardware, effort, several=False)
    parts, calls = fall(name, hardware, effort, several=True)
    assert calls.pop("touch") > 100
    assert tuple(call for call, count in calls.items() if count) == used
    np.testing.assert_array_equal(whole, parts)
