"""Bodies on several planes at once: on a tile's edge and the floor, in a valley, over a bar, on tilted tiles.

The references are statics, the work of the contacts, and the height of the ground under a fine grid of the sole.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from physics_support import G, box_robot, rectangle
from theory import MODELS, run, simulator, theory

from bipedsim.contact.modes import RECOVERY
from bipedsim.ground import Ground, Patch, tiles
from bipedsim.model import Robot
from bipedsim.sim.simulator import Simulator

MASS, HEIGHT = 2.0, 0.05
INERTIA = MASS / 12.0 * np.array([0.1**2 + 0.1**2, 0.2**2 + 0.1**2, 0.2**2 + 0.1**2])
STEEP = 0.2
GRID = np.array([[x, y, 0.0] for x in np.linspace(-0.1, 0.1, 2001) for y in (-0.05, 0.0, 0.05)])


def slab(x: float, length: float, z: float) -> Patch:
    """Return a level strip of a length along x, from ``x`` on [m]."""
    return Patch(np.array([x, 0.0, z]), region=np.array([[0.0, -0.5], [length, -0.5], [length, 0.5], [0.0, 0.5]]))


TILE = Ground((Patch(), slab(0.02, 0.5, 0.02)))
BAR = Ground((Patch(), slab(-0.01, 0.02, 0.03)))
VALLEY = Ground((*Ground.slope(STEEP).patches, *Ground.slope(-STEEP).patches))
GROUNDS = {"tile": (TILE, 0.0), "bar": (BAR, 0.02), "valley": (VALLEY, 0.0)}


@pytest.fixture(scope="module")
def brick(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return box_robot(tmp_path_factory.mktemp("brick"), rectangle(0.2, 0.1), MASS, HEIGHT, tuple(INERTIA), 0.6, 0.6)


def pose(sim: Simulator) -> pin.SE3:
    return pin.XYZQUATToSE3(sim.q)


def depth(sim: Simulator) -> float:
    """Return how deep the sole is in the ground at most [m], by a grid of its points."""
    where = pose(sim)
    return float(sim.ground.depth(GRID @ where.rotation.T + where.translation, 0.005).max())


def energy(sim: Simulator) -> float:
    """Return kinetic and potential energy [J]."""
    arm = np.array([0.0, 0.0, HEIGHT])
    velocity, spin = sim.v[:3] + np.cross(sim.v[3:], arm), sim.v[3:]
    kinetic = 0.5 * MASS * velocity @ velocity + 0.5 * spin @ (INERTIA * spin)
    return float(kinetic + MASS * G * pose(sim).act(arm)[2])


@pytest.mark.parametrize("name", GROUNDS)
@pytest.mark.parametrize("model", MODELS)
def test_a_brick_across_two_planes_lies_still(brick: Robot, model: str, name: str) -> None:
    promised = theory(model)
    ground, x = GROUNDS[name]
    sim = simulator(brick, model, ground)
    sim.reset(np.array([x, 0.0, 0.06, 0.0, 0.0, 0.0, 1.0]))
    run(sim, 1.0 + 2.0 * promised.rest)
    q, modes, changes = sim.q.copy(), sim.contact.mode.copy(), sim.contact.state_changes
    forces = []
    for _ in range(300):
        sim.advance(np.zeros(0))
        forces.append(sim.dynamics.ground_axes[0] @ sim.contact.impulse[0, :3] / sim.physics_dt)
    weight = np.array([0.0, 0.0, MASS * G])
    np.testing.assert_allclose(forces, np.tile(weight, (300, 1)), atol=max(promised.force, 1e-6) * MASS * G)
    assert np.array_equal(sim.contact.mode, modes)
    assert sim.contact.state_changes == changes
    assert np.abs(sim.q - q).max() <= max(promised.creep, 1e-9)
    sink = promised.depth(0.5 * MASS * G)
    assert depth(sim) <= 2.0 * sink + 2e-5
    # It is in contact with both planes, and the centre of pressure is below the centre of mass.
    where = pose(sim)
    points = GRID @ where.rotation.T + where.translation
    for patch in ground.patches:
        alone = Ground((patch,))
        assert abs(alone.depth(points, 0.005).max()) <= 2.0 * sink + 2e-5
    down = where.rotation.T @ np.array([0.0, 0.0, -1.0])
    below = np.array([0.0, 0.0, HEIGHT]) - HEIGHT / down[2] * down
    # Springs bear below the plane of the sole, where friction has an arm.
    np.testing.assert_allclose(sim.contact.cop[0], below[:2], atol=1e-6 + 0.2 * sink)


@pytest.mark.long
@pytest.mark.parametrize("heading", [0.0, 90.0, 180.0, 270.0])
@pytest.mark.parametrize("model", ["exact", "one_step", "lcp", "ncp"])
def test_the_second_plane_is_landed_on(brick: Robot, model: str, heading: float) -> None:
    """The brick falls flat on the tile, tips over its edge, and its heel lands on the floor without going into it."""
    sim = simulator(brick, model, TILE)
    ahead = 0.0 if heading % 180.0 == 0.0 else 0.01
    turned = pin.rpy.rpyToMatrix(0.0, 0.0, np.deg2rad(heading))
    sim.reset(pin.SE3ToXYZQUAT(pin.SE3(turned, np.array([ahead, 0.0, 0.03]))))
    deepest = 0.0
    for _ in range(400):
        sim.advance(np.zeros(0))
        deepest = max(deepest, depth(sim))
    assert deepest < 1e-4
    assert pose(sim).rotation[2, 2] < np.cos(0.07), "its heel is down"


@pytest.mark.parametrize("model", ["exact", "one_step", "lcp", "ncp"])
def test_both_planes_are_landed_on_in_one_step(brick: Robot, model: str) -> None:
    """A brick that lay across them is lifted, its heel 0.1 mm more than its toes, and falls by 0.4 mm a step."""
    sim = simulator(brick, model, TILE)
    sim.reset(np.array([0.0, 0.0, 0.06, 0.0, 0.0, 0.0, 1.0]))
    run(sim, 1.0)
    lay, fall = sim.q.copy(), np.zeros(6)
    fall[:3] = pose(sim).rotation.T @ [0.0, 0.0, -0.4]
    lifted = pose(sim) * pin.SE3(pin.utils.rotate("y", 8e-4), np.zeros(3))
    lifted.translation[2] += 3e-4
    sim.reset(pin.SE3ToXYZQUAT(lifted), fall)
    deepest = 0.0
    for _ in range(20):
        sim.advance(np.zeros(0))
        deepest = max(deepest, depth(sim))
    assert deepest < 5e-5
    assert np.abs(sim.q - lay).max() < 1e-3


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(
    model=st.sampled_from(["exact", "one_step"]),
    name=st.sampled_from([*GROUNDS, "tiles"]),
    where=st.tuples(st.floats(-0.1, 0.1), st.floats(-0.1, 0.1)),
    turned=st.tuples(st.floats(-0.25, 0.25), st.floats(-0.25, 0.25), st.floats(-3.0, 3.0)),
    speed=st.tuples(*[st.floats(-0.4, 0.4)] * 6),
)
def test_contact_gives_no_energy(
    brick: Robot,
    model: str,
    name: str,
    where: tuple[float, float],
    turned: tuple[float, float, float],
    speed: tuple[float, ...],
) -> None:
    """No step adds more energy than the recovery of depth at its limited speed. In a valley, the body comes to rest.

    On a bar and on the edges of tiles it may rock for seconds. A landing after a rotation about an edge has a relative
    energy error of order h w.
    """
    ground = tiles(0.02, 0.13, 8, 8, start=-0.5, seed=3, tilt=0.05) if name == "tiles" else GROUNDS[name][0]
    sim = simulator(brick, model, ground)
    R = pin.exp3(np.array([turned[0], turned[1], 0.0])) @ pin.exp3(np.array([0.0, 0.0, turned[2]]))
    sim.reset(pin.SE3ToXYZQUAT(pin.SE3(R, np.array([*where, 0.1]))), np.array(speed))
    before = energy(sim)
    for _ in range(1500):
        sim.advance(np.zeros(0))
        after = energy(sim)
        spin = 0.5 * np.linalg.norm(sim.v[3:]) * sim.physics_dt * MASS * G * 0.1
        assert after - before <= RECOVERY * max(sim.contact.impulse[0, 2], 0.0) + 2e-4 + spin, sim.t
        before = after
    assert name != "valley" or np.abs(sim.v).max() < 0.05
