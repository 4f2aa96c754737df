"""Distant patches: the code leaves out a patch only if nothing can reach it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from footing_support import Foot
from hypothesis import given, settings, strategies as st

from bipedsim.ground import Ground, GroundArrays, Patch, PlacedSole, bridge, tiles
from bipedsim.model import load_robot, start_configuration
from bipedsim.objects import ObjectConfig
from bipedsim.sim import Simulator

GROUND = tiles(0.03, 0.15, 12, 8, start=-0.8, seed=3, tilt=0.08)


def slabs() -> Ground:
    """Return patches of one tilted plane. Each has its own axes; no two have the same origin or direction."""
    lean, half = pin.exp3(np.array([0.05, -0.04, 0.0])), 0.18
    region = np.array([[-half, -half], [half, -half], [half, half], [-half, half]])
    patches = []
    for i, j in np.ndindex(9, 7):
        at = lean @ np.array([0.24 * (i - 4), 0.24 * (j - 3), 0.0])
        patches.append(Patch(at, lean @ pin.exp3(np.array([0.0, 0.0, 0.3 * i - 0.5 * j])), region=region))
    return Ground(tuple(patches))


SLABS = slabs()


@dataclass(frozen=True, eq=False)
class AllNear(Ground):
    """A ground on which every patch counts as near."""

    def arrays(self) -> GroundArrays:
        found = super().arrays()
        found.circle[:, 2] += 1e3
        found.plane_circle[:, 2] += 1e3
        return found


@cache
def feet() -> tuple[Foot, Foot]:
    """Return a foot that leaves patches out and one that looks at all; to make them takes longer than to ask them."""
    return Foot(GROUND), Foot(AllNear(GROUND.patches))


@settings(max_examples=200, deadline=None)
@given(
    at=st.tuples(st.floats(-1.3, 1.3), st.floats(-1.0, 1.0), st.floats(-0.02, 0.3)),
    turn=st.tuples(st.floats(-0.4, 0.4), st.floats(-0.4, 0.4), st.floats(-3.0, 3.0)),
    present=st.integers(-1, len(GROUND.patches) - 1),
)
def test_a_foot_finds_what_it_finds_when_all_patches_are_looked_at(
    at: tuple[float, float, float], turn: tuple[float, float, float], present: int
) -> None:
    R = pin.exp3(np.array([turn[0], turn[1], 0.0])) @ pin.exp3(np.array([0.0, 0.0, turn[2]]))
    found = []
    for foot in feet():
        patch = foot.patch(at, present, R)
        polygon = foot.support(at, patch, R)
        foot.work.width[0] = float(np.ptp(foot.vertices, axis=0).max())
        sole = PlacedSole(R, np.array(at), foot.vertices, foot.n)
        *faces, count = bridge(sole, patch, -1, np.array([0.0, 0.0, 1.0]), foot.ground, foot.work, foot.out)
        found.append((patch, polygon.tolist(), faces, foot.out[:count].tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("patches", [GROUND, SLABS], ids=["tiles", "slabs"])
@pytest.mark.parametrize("name", [pytest.param("g1", marks=pytest.mark.slow), "biped14"])
def test_a_robot_falls_to_the_bit_as_when_all_patches_are_looked_at(name: str, patches: Ground) -> None:
    robot = load_robot(name)
    ends = []
    for ground in (patches, AllNear(patches.patches)):
        sim = Simulator(robot, ground)
        sim.reset(ground.place(start_configuration(robot), -0.1, 0.05))
        touched = False
        for _ in range(900):
            sim.step(np.zeros(robot.nu))
            touched = touched or bool(sim.body_impulse.any())
        assert touched, "something else than the soles has to touch"
        ends.append((sim.q.tobytes(), sim.v.tobytes(), sim.contact.wrench.tobytes()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("patches", [GROUND, SLABS], ids=["tiles", "slabs"])
def test_objects_fall_to_the_bit_as_when_all_patches_are_looked_at(patches: Ground) -> None:
    objects = [
        ObjectConfig(name="ball", shape="ball", mass=0.5, radius=0.1, position=(0.5, 0.2, 0.3)),
        ObjectConfig(
            name="box", shape="box", mass=1.0, size=(0.2, 0.25, 0.1), position=(-0.4, 0.3, 0.3), rpy=(1, 0, 0)
        ),
        ObjectConfig(name="can", shape="cylinder", mass=1.0, radius=0.06, length=0.2, position=(0.4, -0.4, 0.3)),
    ]
    robot = load_robot("biped14")
    ends = []
    for ground in (patches, AllNear(patches.patches)):
        sim = Simulator(robot, ground, objects=objects)
        sim.reset()
        for _ in range(700):
            sim.step(np.zeros(robot.nu))
        assert sim.objects is not None
        states = sim.objects.states()
        assert np.abs(states[:, 2]).max() < 0.25, "they have come down"
        ends.append(states.tobytes())
    assert ends[0] == ends[1]
