"""Contacts of a robot with closed chains: what its bodies do after a step is what their contacts were solved for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from loop_support import CRANK, TOP, linkage

from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator


@pytest.mark.parametrize("speed", [3.0, -20.0])
def test_a_ball_that_a_linkage_hits_leaves_with_its_speed(tmp_path: Path, speed: float) -> None:
    """A smooth plastic impact on the end of the crank while the chain turns: both have one velocity along its way."""
    angle, radius, step = 0.5, 0.05, 1e-4
    bodies = {"rod": [{"kind": "sphere", "radius": radius}], "crank": [], "rocker": [], "ceiling": []}
    robot = linkage(tmp_path, gravity=0.0, bodies=bodies)
    # How the end of the crank moves where that turns by 1 rad/s.
    moves = np.array([-CRANK * np.cos(angle), 0.0, CRANK * np.sin(angle)])
    normal = np.sign(speed) * moves / CRANK
    end = np.array([-CRANK * np.sin(angle), 0.0, TOP - CRANK * np.cos(angle)])
    place = tuple(end + 2.0 * radius * normal)
    ball = ObjectConfig(name="ball", shape="ball", radius=radius, mass=0.5, friction_static=0.0, position=place)
    sim = Simulator(robot, objects=[ball], hardware={"body_friction": 0.0})
    rates = (robot.settle([angle + step]) - robot.settle([angle - step])) / (2.0 * step)
    sim.reset(robot.settle([angle]), speed * rates)
    sim.advance(np.zeros(1))
    assert sim.objects is not None
    after = float(sim.objects.twists()[0, :3] @ normal)
    assert 0.2 * abs(speed) * CRANK < after < abs(speed) * CRANK
    assert after == pytest.approx(sim.v[0] * moves @ normal, abs=1e-10)
