"""Scheduled pushes: effect on the named body, and pushes that overlap a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bipedsim.model import load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.runs.pushes import Push, PushSchedule
from bipedsim.sim import Simulator

G = 9.81
BALL = ObjectConfig(name="ball", shape="ball", mass=3.0, radius=0.1, position=(4.0, 0.0, 2.0))


@pytest.mark.parametrize(
    ("keys", "gained"),
    [
        ({"force": (6.0, -3.0, 0.0)}, (6.0 * 0.02 / 3.0, -3.0 * 0.02 / 3.0)),
        ({"force_over_weight": (0.5, 0.0, 0.0)}, (0.5 * G * 0.02, 0.0)),
        ({"impulse_over_mass": (0.4, 0.2, 0.0)}, (0.4, 0.2)),
    ],
)
def test_a_push_of_an_object_is_in_its_own_weight_and_mass(keys: dict[str, Any], gained: tuple[float, float]) -> None:
    """The change of its velocity in flight: force times duration over its mass, and not over that of the robot."""
    robot = load_robot("biped14")
    sim = Simulator(robot, objects=[BALL])
    push = Push(at=0.003, duration=0.02, body="ball", **keys).for_robot(robot, [BALL])
    sim.add(PushSchedule([push]))
    sim.reset()
    for _ in range(30):
        sim.step(np.zeros(robot.nu))
    assert sim.objects is not None
    np.testing.assert_allclose(sim.objects.twists()[0, :2], gained, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ticks", [9, 10, 11, 15, 40])
def test_a_snapshot_forgets_no_push_and_repeats_none(ticks: int) -> None:
    """Taken before the push, in the tick in which it begins, while it acts, and after it: the same bits follow."""
    robot = load_robot("biped14")
    sim = Simulator(robot)
    sim.add(PushSchedule([Push(at=0.01, duration=0.02, force=(30.0, 10.0, 0.0))]))

    def go_on(steps: int) -> bytes:
        for _ in range(steps):
            sim.step(-5.0 * sim.v[robot.idx_v])
        return sim.q.tobytes() + sim.v.tobytes()

    sim.reset()
    go_on(ticks)
    snapshot = sim.snapshot()
    expected = go_on(45 - ticks)
    sim.restore(snapshot)
    assert go_on(45 - ticks) == expected
    # A simulation without the push goes elsewhere.
    alone = Simulator(robot)
    for _ in range(45):
        alone.step(-5.0 * alone.v[robot.idx_v])
    assert alone.v.tobytes() != sim.v.tobytes()
