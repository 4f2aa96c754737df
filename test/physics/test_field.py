"""Bodies on height fields: as on the same planes, continuous across edges, without energy from contact."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from physics_support import G, box_robot, rectangle, special_robot
from theory import MODELS, run, simulator, theory

from bipedsim.contact.modes import RECOVERY
from bipedsim.errors import ConfigError
from bipedsim.ground import Ground, HeightField, make_ground
from bipedsim.ground.terrains import FieldGrid
from bipedsim.model import Robot, load_robot
from bipedsim.objects import ObjectConfig
from bipedsim.sim.simulator import Simulator

MASS, HEIGHT = 2.0, 0.05
INERTIA = MASS / 12.0 * np.array([0.1**2 + 0.1**2, 0.2**2 + 0.1**2, 0.2**2 + 0.1**2])
POINTS = np.array([[x, y, 0.0] for x in np.linspace(-0.1, 0.1, 101) for y in np.linspace(-0.05, 0.05, 26)])
GRID = FieldGrid.of_size((4.0, 2.0), 0.05)


def of_height(z: np.ndarray) -> Ground:
    return Ground(field=HeightField(z, GRID.cell))


def rough(amplitude: float, seed: int = 0) -> Ground:
    """Return random heights at every point of a grid of 0.1 m."""
    shape = {"min_height": -amplitude, "max_height": amplitude, "step": 0.0, "downsampled_scale": 0.1}
    return make_ground({"field": {"cell": 0.1, "size": [4.0, 4.0], "seed": seed, "random_uniform": shape}}, "rough")


@pytest.fixture(scope="module")
def brick(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return box_robot(tmp_path_factory.mktemp("brick"), rectangle(0.2, 0.1), MASS, HEIGHT, tuple(INERTIA), 0.6, 0.6)


def pose(sim: Simulator) -> pin.SE3:
    return pin.XYZQUATToSE3(sim.q)


def depth(sim: Simulator) -> float:
    """Return how deep the sole is in the ground at most [m], by a grid of its points."""
    return float(sim.ground.depth(POINTS @ pose(sim).rotation.T + pose(sim).translation, 0.005).max())


def energy(sim: Simulator) -> float:
    arm = np.array([0.0, 0.0, HEIGHT])
    velocity, spin = sim.v[:3] + np.cross(sim.v[3:], arm), sim.v[3:]
    kinetic = 0.5 * MASS * velocity @ velocity + 0.5 * spin @ (INERTIA * spin)
    return float(kinetic + MASS * G * pose(sim).act(arm)[2])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("angle", [0.0, 0.25])
def test_a_plane_as_a_field_is_the_plane(brick: Robot, model: str, angle: float) -> None:
    """A brick falls on a corner, tips over and slides or rests: all as on the plane, up to rounding."""
    sims = [simulator(brick, model, g) for g in (of_height(math.tan(angle) * GRID.x), Ground.slope(angle))]
    for sim in sims:
        R = pin.rpy.rpyToMatrix(0.1, 0.2 - angle, 0.4)
        sim.reset(pin.SE3ToXYZQUAT(pin.SE3(R, np.array([0.13, 0.02, 0.15 + 0.13 * math.tan(angle)]))))
    for _ in range(800):
        for sim in sims:
            sim.advance(np.zeros(0))
        # Iterative solvers amplify rounding at impacts.
        np.testing.assert_allclose(sims[0].q, sims[1].q, atol=1e-6)
    assert sims[0].contact.impulse[0, 2] > 0.0


@pytest.mark.parametrize("name", ["biped14", pytest.param("talos", marks=pytest.mark.slow)])
def test_a_robot_falls_as_on_the_plane(name: str) -> None:
    """Feet and bodies of a robot without torques; the bodies touch triangles of one plane."""
    robot = load_robot(name)
    slope = 0.1
    sims = [Simulator(robot, g, "lcp") for g in (of_height(slope * GRID.x), Ground.slope(math.atan(slope)))]
    for sim in sims:
        sim.reset(sim.ground.place(robot.q_nominal))
    for k in range(900):
        for sim in sims:
            sim.advance(np.zeros(robot.nu))
        # From the first joint limit on, contacts and limits in turn amplify rounding.
        np.testing.assert_allclose(sims[0].q, sims[1].q, atol=1e-12 if k < 200 else 1e-2)
    assert sims[0].q[2] < 0.5 * robot.q_nominal[2]


@pytest.mark.parametrize("model", MODELS)
def test_a_brick_in_a_valley_lies_as_between_two_planes(brick: Robot, model: str) -> None:
    """It touches both planes with its edges and lies level, half its length times the slope above the bottom."""
    promised = theory(model)
    sim = simulator(brick, model, of_height(0.2 * abs(GRID.x)))
    sim.reset(np.array([0.0, 0.0, 0.06, 0.0, 0.0, 0.0, 1.0]))
    run(sim, 1.0 + 2.0 * promised.rest)
    sink = promised.depth(0.5 * MASS * G)
    assert sim.q[2] == pytest.approx(0.02, abs=2.0 * sink + 2e-5)
    assert pose(sim).rotation[2, 2] == pytest.approx(1.0, abs=1e-6)
    force = sim.dynamics.ground_axes[0] @ sim.contact.impulse[0, :3] / sim.physics_dt
    np.testing.assert_allclose(force, [0.0, 0.0, MASS * G], atol=max(promised.force, 1e-6) * MASS * G)


@pytest.mark.long
@pytest.mark.parametrize("model", ["exact", "one_step", "lcp", "ncp"])
@pytest.mark.parametrize("seed", range(3))
def test_a_brick_comes_to_rest_on_rough_ground(brick: Robot, model: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sim = simulator(brick, model, rough(0.02, seed))
    turn = pin.exp3(np.array([*rng.uniform(-0.2, 0.2, 2), 0.0])) @ pin.exp3(
        np.array([0.0, 0.0, rng.uniform(-3.0, 3.0)])
    )
    sim.reset(pin.SE3ToXYZQUAT(pin.SE3(turn, np.array([*rng.uniform(-1.0, 1.0, 2), 0.1]))), rng.uniform(-0.4, 0.4, 6))
    deepest = 0.0
    # It may rock for seconds.
    for k in range(5000):
        sim.advance(np.zeros(0))
        if k < 1000:
            deepest = max(deepest, depth(sim))
    assert deepest < 2e-3
    assert np.abs(sim.v).max() < 1e-9
    assert abs(depth(sim)) < 2e-5
    force = sim.dynamics.ground_axes[0] @ sim.contact.impulse[0, :3] / sim.physics_dt
    np.testing.assert_allclose(force, [0.0, 0.0, MASS * G], atol=1e-6 * MASS * G)


@pytest.mark.parametrize("model", ["exact", "one_step"])
def test_sliding_across_edges_is_continuous(brick: Robot, model: str) -> None:
    """The plane under a brick that slides over tops and valleys turns, and never jumps in height."""
    sim = simulator(brick, model, of_height(0.01 * np.sin(4.0 * GRID.x) + 0.002 * np.cos(9.0 * GRID.y)))
    sim.reset(np.array([-1.0, 0.0, 0.02, 0.0, 0.0, 0.0, 1.0]), np.array([2.5, 0.1, 0.0, 0.0, 0.0, 0.0]))
    run(sim, 0.1)
    before, q, deepest = sim.dynamics.ground_axes[0][:, 2].copy(), sim.q.copy(), 0.0
    while np.linalg.norm(sim.v[:3]) > 0.05:
        sim.advance(np.zeros(0))
        normal = sim.dynamics.ground_axes[0][:, 2]
        # Neighbouring triangles differ by up to 0.012 in slope.
        assert np.linalg.norm(normal - before) < 0.03
        assert np.abs(sim.q - q)[:3].max() < 2.6e-3
        before, q, deepest = normal.copy(), sim.q.copy(), max(deepest, depth(sim))
    assert sim.q[0] > -0.6
    assert deepest < 5e-4


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(
    model=st.sampled_from(["exact", "one_step"]),
    seed=st.integers(0, 50),
    where=st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)),
    turned=st.tuples(st.floats(-0.25, 0.25), st.floats(-0.25, 0.25), st.floats(-3.0, 3.0)),
    speed=st.tuples(*[st.floats(-0.4, 0.4)] * 6),
)
def test_contact_gives_no_energy(
    brick: Robot,
    model: str,
    seed: int,
    where: tuple[float, float],
    turned: tuple[float, float, float],
    speed: tuple[float, ...],
) -> None:
    """As :func:`test_several_planes.test_contact_gives_no_energy`, on random triangles."""
    sim = simulator(brick, model, rough(0.02, seed))
    R = pin.exp3(np.array([turned[0], turned[1], 0.0])) @ pin.exp3(np.array([0.0, 0.0, turned[2]]))
    sim.reset(pin.SE3ToXYZQUAT(pin.SE3(R, np.array([*where, 0.1]))), np.array(speed))
    before = energy(sim)
    for _ in range(1000):
        sim.advance(np.zeros(0))
        after = energy(sim)
        spin = 0.5 * np.linalg.norm(sim.v[3:]) * sim.physics_dt * MASS * G * 0.1
        assert after - before <= RECOVERY * max(sim.contact.impulse[0, 2], 0.0) + 2e-4 + spin, sim.t
        before = after


@pytest.mark.long
@pytest.mark.parametrize("shape", ["ridge", "valley"])
@pytest.mark.parametrize("model", ["one_step", "exact"])
def test_a_ball_keeps_its_distance_from_edges(model: str, shape: str) -> None:
    """The centre of a ball of 0.2 m follows the curve at this distance from a bent plane, round about a ridge."""
    sign = -1.0 if shape == "ridge" else 1.0
    ball, slope, radius = special_robot("ball"), 0.1, 0.2
    sim = Simulator(ball, of_height(sign * slope * abs(GRID.x)), contact=model)
    rise = radius * math.hypot(1.0, slope)
    sim.reset(np.array([-0.3, rise - sign * slope * -0.3, 0.0]), np.array([1.4, -sign * 1.4 * slope, 0.0]))
    for _ in range(600):
        sim.advance(np.zeros(0))
        x, z = sim.q[:2]
        nearest = min(math.hypot(x - u, z - sign * slope * abs(u)) for u in np.linspace(x - 0.1, x + 0.1, 4001))
        assert nearest == pytest.approx(radius, abs=3e-4)
    assert sim.q[0] > 0.1 or shape == "valley"


def test_objects_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Simulator(load_robot("biped14"), rough(0.01), objects=(ObjectConfig(),))
    assert caught.value.place == "objects"


STEP = 0.05
"""Height of the step of :func:`riser` [m]."""


def riser(slope: float) -> Ground:
    """Return a floor, a riser of this slope from x = 0 on, and a platform of height ``STEP``."""
    x = 0.01 * np.arange(-60, 61)
    heights = np.clip(slope * x, 0.0, STEP)
    return Ground(field=HeightField(np.repeat(heights[:, None], 121, axis=1), 0.01))


def oblique(slope: float, angle: float) -> Ground:
    """Return :func:`riser`, turned about z by ``angle`` relative to the grid and to a brick along x."""
    x, y = np.meshgrid(*[0.01 * np.arange(-60, 61)] * 2, indexing="ij")
    rise = slope * (math.cos(angle) * x + math.sin(angle) * y)
    return Ground(field=HeightField(np.clip(rise, 0.0, STEP), 0.01))


def peak(slope: float) -> Ground:
    """Return a floor with a single higher grid point, at the origin, 5 cm from the next ones."""
    heights = np.zeros((41, 41))
    heights[20, 20] = 0.05 * slope
    return Ground(field=HeightField(heights, 0.05))


def ridge(slope: float, angle: float) -> Ground:
    """Return a floor with a ridge of height ``STEP`` through the origin, at ``angle`` from the y axis."""
    x, y = np.meshgrid(*[0.01 * np.arange(-60, 61)] * 2, indexing="ij")
    away = abs(math.cos(angle) * x + math.sin(angle) * y)
    return Ground(field=HeightField(np.maximum(STEP - slope * away, 0.0), 0.01))


def check_carried(sim: Simulator, top: float) -> None:
    """Check that a level brick 1 mm above ``top`` falls onto it, stays there, and has its weight carried."""
    sim.reset(np.array([0.0, 0.0, top + 1e-3, 0.0, 0.0, 0.0, 1.0]))
    dt, impulse = sim.physics_dt, 0.0
    for _ in range(200):
        sim.advance(np.zeros(0))
        assert sim.q[2] > top - 2e-3
        impulse += float(sim.dynamics.ground_axes[0][2] @ sim.contact.impulse[0, :3])
    rises = pose(sim).rotation[2] @ (sim.v[:3] + np.cross(sim.v[3:], [0.0, 0.0, HEIGHT]))
    assert impulse == pytest.approx(MASS * (G * 200 * dt + rises), rel=1e-3)
    assert impulse == pytest.approx(MASS * G * 200 * dt, rel=0.02)
    assert sim.q[2] == pytest.approx(top, abs=2e-3)


@pytest.mark.parametrize("model", ["one_step", "exact", "lcp", "ncp"])
@pytest.mark.parametrize("slope", [0.5, 0.72, 0.8, 1.0, 1.5, 3.0])
def test_a_peak_under_the_middle_of_a_sole_carries_it(brick: Robot, model: str, slope: float) -> None:
    """The faces of the sole may be too steep to rest on, and all triangles around the peak risers."""
    check_carried(simulator(brick, model, peak(slope)), 0.05 * slope)


@pytest.mark.parametrize("angle", [0.0, 0.4, 0.5 * math.pi])
@pytest.mark.parametrize("slope", [0.5, 0.8, 3.0])
def test_a_ridge_under_the_middle_of_a_sole_carries_it(brick: Robot, slope: float, angle: float) -> None:
    check_carried(simulator(brick, "one_step", ridge(slope, angle)), STEP)


def test_a_brick_rests_on_two_parallel_ridges(brick: Robot) -> None:
    """Steep ridges carry a brick as the plane through them does: without tilt and at rest."""
    heights = np.zeros((121, 121))
    heights[[55, 65]] = STEP
    sim = simulator(brick, "one_step", Ground(field=HeightField(heights, 0.01)))
    sim.reset(np.array([0.0, 0.0, STEP + 0.005, *pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.03, 0.3)).coeffs()]))
    run(sim, 2.0)
    assert np.abs(sim.v).max() < 1e-9
    assert sim.q[2] == pytest.approx(STEP, abs=2e-5)
    assert pose(sim).rotation[2, 2] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("slope", [1.0, 5.0])
@pytest.mark.parametrize("angle", [0.2, 0.9])
def test_a_riser_that_is_not_parallel_to_the_sole_stops_a_brick(brick: Robot, slope: float, angle: float) -> None:
    """The brick meets it with a vertex. A corner of the field may enter its border between two points, up to 5 mm."""
    sim = simulator(brick, "one_step", oblique(slope, angle))
    sim.reset(np.array([-0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.array([1.5, 0.0, 0.0, 0.0, 0.0, 0.0]))
    before = energy(sim)
    for _ in range(600):
        height = sim.q[2]
        sim.advance(np.zeros(0))
        after = energy(sim)
        assert after - before <= RECOVERY * max(sim.contact.impulse[0, 2], 0.0) + 2e-3
        assert depth(sim) < 5e-3
        assert abs(sim.q[2] - height) < 1e-3
        before = after
    assert np.abs(sim.v).max() < 1e-3
    assert pose(sim).rotation[2, 2] > 0.98
    assert sim.q[2] < 0.2 * STEP


@pytest.mark.parametrize("model", ["one_step", "exact", "lcp"])
@pytest.mark.parametrize("slope", [1.0, 5.0])
def test_a_riser_stops_a_brick(brick: Robot, model: str, slope: float) -> None:
    """A brick that slides into a step stays in front of it, and no energy comes from the contact."""
    sim = simulator(brick, model, riser(slope))
    sim.reset(np.array([-0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.array([1.5, 0.0, 0.0, 0.0, 0.0, 0.0]))
    before, deepest, fastest = energy(sim), 0.0, 0.0
    for _ in range(600):
        sim.advance(np.zeros(0))
        after = energy(sim)
        assert after - before <= RECOVERY * max(sim.contact.impulse[0, 2], 0.0) + 2e-3
        before, deepest, fastest = after, max(deepest, depth(sim)), max(fastest, sim.q[2])
    assert deepest < 2e-3
    assert sim.q[0] + 0.1 < STEP / slope
    assert fastest < STEP


@pytest.mark.parametrize("model", ["one_step", "lcp"])
def test_a_riser_stops_a_brick_as_in_mujoco(brick: Robot, model: str) -> None:
    """The brick ends in front of the step, where MuJoCo has it on the same height field."""
    mujoco = pytest.importorskip("mujoco")
    slope, start, speed = 2.0, -0.2, 1.5
    ground = riser(slope)
    assert ground.field is not None
    elevation = " ".join(f"{z:.9g}" for z in ground.field.heights.T.ravel())
    xml = f"""<mujoco><option timestep="0.0002"/><asset><hfield name="h" nrow="121" ncol="121" size="0.6 0.6 {STEP} 0.1"
        elevation="{elevation}"/></asset><worldbody><geom type="hfield" hfield="h" friction="0.6" condim="3"/>
        <body name="brick" pos="{start} 0 {HEIGHT}"><freejoint/>
        <inertial pos="0 0 0" mass="{MASS}" diaginertia="{INERTIA[0]} {INERTIA[1]} {INERTIA[2]}"/>
        <geom type="box" size="0.1 0.05 {HEIGHT}" friction="0.6" condim="3"/></body></worldbody></mujoco>"""
    m = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(m)
    d.qvel[0] = speed
    sim = simulator(brick, model, ground)
    sim.reset(np.array([start, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.0]))
    run(sim, 1.0)
    while d.time < 1.0:
        mujoco.mj_step(m, d)
    assert np.abs(sim.v).max() < 0.01
    assert sim.q[0] == pytest.approx(d.qpos[0], abs=0.01)
