"""Properties that hold under every contact model, each as exactly as the theory of the model says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from motion_support import Bookkeeper, Judge
from physics_support import G, box_robot, pose_on, rectangle, regular_polygon, slope, special_robot
from theory import MODELS, run, simulator, theory

from bipedsim.ground.ground import Ground
from bipedsim.ground.patch import Patch
from bipedsim.model import Robot
from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)
H = 1e-3
MASS = 2.0
MU = 0.45
pytestmark = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    folder = tmp_path_factory.mktemp("box")
    return box_robot(folder, rectangle(0.3, 0.2), mass=MASS, mu_s=MU, mu_d=MU)


def lowest(sim: Simulator) -> float:
    """Return the height [m] of the lowest vertex of a body that is one sole."""
    pose = pin.XYZQUATToSE3(sim.q)
    vertices = np.column_stack([sim.robot.soles[0].vertices, np.zeros(sim.robot.soles[0].n_vertices)])
    return float((vertices @ pose.rotation.T + pose.translation)[:, 2].min())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 64])
def test_a_body_rests_on_its_weight(model: str, n: int, tmp_path: Path) -> None:
    vertices = {1: [[0.0, 0.0]], 2: [[0.1, 0.0], [-0.1, 0.0]]}.get(n) or regular_polygon(n, 0.1)
    sim = simulator(box_robot(tmp_path, vertices, mass=MASS, height=0.0), model)
    expected = theory(model)
    run(sim, expected.rest)
    contact = sim.contact
    assert contact.wrench[0, 2] == pytest.approx(MASS * G, rel=expected.force)
    np.testing.assert_allclose(contact.wrench[0, [0, 1, 3, 4, 5]], 0.0, atol=1e-7 * MASS * G)
    np.testing.assert_allclose(contact.cop[0], 0.0, atol=1e-9)
    depth = expected.depth(MASS * G / n)
    assert -lowest(sim) == pytest.approx(depth, rel=0.02, abs=1e-9)
    assert contact.clamped[0] == 2 ** min(n, 63) - 1
    assert not contact.sliding[0]
    assert contact.unresolved == 0
    if contact.vertex_forces.size:
        np.testing.assert_allclose(contact.vertex_forces[0].sum(axis=0), contact.wrench[0, :3], atol=1e-9 * MASS * G)
        assert (contact.vertex_forces[0, :, 2] >= 0.0).all()


def test_a_box_on_a_slope_sticks_below_friction(box: Robot, model: str) -> None:
    expected = theory(model)
    grip = expected.grip
    ground = slope(np.arctan(grip * MU))
    sim = simulator(box, model, ground)
    sim.reset(pose_on(ground))
    run(sim, expected.rest)
    start = pin.XYZQUATToSE3(sim.q).translation
    run(sim, 1.0)
    along = ground.patches[0].rotation_world_patch[:, :2].T @ (sim.q[:3] - start)
    assert not sim.contact.sliding[0]
    assert np.linalg.norm(along) < expected.creep
    assert sim.contact.friction_used[0] == pytest.approx(grip, rel=max(expected.force, 1e-6))


@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_what_sticks_meets_static_friction_and_what_slides_dynamic(model: str, tmp_path: Path, speed: float) -> None:
    """A pull between both, put on slowly: springs would overshoot."""
    mu_static, mu_dynamic, pull = 0.5, 0.3, 0.4
    robot = box_robot(tmp_path, rectangle(0.3, 0.2), mass=MASS, mu_s=mu_static, mu_d=mu_dynamic)
    sim = simulator(robot, model)
    run(sim, theory(model).rest)
    sim.reset(sim.q.copy(), np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.0]))
    for step in range(600):
        sim.push(np.array([pull * MASS * G * min(step / 200.0, 1.0), 0.0, 0.0, 0.0, 0.0, 0.0]))
        sim.advance(NOTHING)
        if step == 400:
            before = sim.v[0]
    gained = (sim.v[0] - before) / (199 * H)
    assert gained == pytest.approx((pull - mu_dynamic) * G if speed else 0.0, rel=2e-3, abs=1e-5)
    assert sim.contact.sliding[0] == (speed > 0.0)


@pytest.mark.long
@settings(max_examples=6)
@given(
    roll=st.floats(-0.6, 0.6),
    pitch=st.floats(-0.6, 0.6),
    spin=st.floats(-3.0, 3.0),
    speed=st.floats(-2.0, 2.0),
)
def test_a_thrown_box_gains_no_energy_and_is_never_pulled(
    box: Robot, model: str, roll: float, pitch: float, spin: float, speed: float
) -> None:
    """Energy is compared from flight to flight, where no spring of a contact holds any; forces in every step."""
    sim = simulator(box, model)
    pose = pin.SE3(pin.rpy.rpyToMatrix(roll, pitch, 0.0), np.array([0.0, 0.0, 0.25]))
    sim.reset(pin.SE3ToXYZQUAT(pose), np.array([speed, 0.0, 0.0, 0.0, spin, 0.0]))
    judge = Judge(sim, Bookkeeper(box))
    data = box.model.createData()
    before, landed = np.inf, False
    for _ in range(800):
        contact = sim.advance(NOTHING)
        fx, fy, fz = contact.impulse[0, :3]
        assert fz >= 0.0
        assert np.hypot(fx, fy) <= MU * fz * (1.0 + 1e-9) + 1e-15
        assert judge.balance < 1e-7 * MASS * G
        if fz > 0.0 or contact.mode[0] != 0:
            landed = True
            continue
        energy = pin.computeMechanicalEnergy(box.model, data, sim.q, sim.v)
        # Flight is of first order: a step may gain m (g h)^2 / 2 and as much by the spin.
        assert not landed or energy < before + 1e-4 * MASS * G
        before, landed = energy, False
    assert np.isfinite(sim.q).all()


@pytest.mark.parametrize("speed", [0.1, 1.0])
def test_a_landing_goes_as_deep_as_the_model_says_and_ends_at_rest(box: Robot, model: str, speed: float) -> None:
    sim = simulator(box, model)
    sim.reset(np.array([0.0, 0.0, 1e-4, 0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, -speed, 0.0, 0.0, 0.0]))
    deepest = 0.0
    expected = theory(model)
    for _ in range(round(max(expected.rest, 2.0) / H)):
        sim.advance(NOTHING)
        deepest = max(deepest, -lowest(sim))
    arrival = np.hypot(speed, np.sqrt(2.0 * G * 1e-4))
    assert deepest < max(expected.landing(MASS / 4, arrival), 2.0 * expected.depth(MASS * G / 4)) + 1e-9
    assert sim.contact.wrench[0, 2] == pytest.approx(MASS * G, rel=expected.force)


def test_a_ball_rolls_down_a_slope_by_five_sevenths(model: str) -> None:
    angle = 0.2
    ground = slope(angle)
    sim = simulator(special_robot("ball"), model, ground)
    normal = ground.patches[0].rotation_world_patch[:, 2]
    depth = theory(model).depth(0.3 * G * np.cos(angle))
    sim.reset(np.array([(0.2 - depth) * normal[0], (0.2 - depth) * normal[2], 0.0]))
    run(sim, 0.5)
    speed = np.hypot(sim.v[0], sim.v[1])
    assert speed == pytest.approx(5.0 / 7.0 * G * np.sin(angle) * sim.t, rel=1e-3)
    assert sim.v[2] * 0.2 == pytest.approx(speed, rel=1e-3)


def over_a_nose(box: Robot, model: str, overhang: float) -> Simulator:
    """Return a box half a metre above the floor on a table that ends ``overhang`` [m] before its centre."""
    region = np.array([[-2.0, -1.0], [0.0, -1.0], [0.0, 1.0], [-2.0, 1.0]])
    ground = Ground((Patch(name="floor"), Patch(np.array([0.0, 0.0, 0.5]), region=region, name="table")))
    sim = simulator(box, model, ground)
    sim.reset(np.array([overhang, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0]))
    return sim


def test_a_box_over_a_nose_tips_when_its_centre_is_beyond_it(box: Robot, model: str) -> None:
    """The supported part of the sole ends at the nose of the table, and so does the CoP."""
    for overhang in (-0.02, 0.02):
        sim = over_a_nose(box, model, overhang)
        for _ in range(150):
            contact = sim.advance(NOTHING)
            if contact.wrench[0, 2] > 0.0:
                assert contact.cop[0, 0] <= -overhang + 1e-4
        tilt = 2.0 * sim.q[4]
        assert tilt > 0.02 if overhang > 0.0 else abs(tilt) < 1e-3


def test_a_box_over_a_nose_sticks_under_a_pull(box: Robot, model: str) -> None:
    """A compliant sole gives way by micrometres, so the part of it that the nose supports becomes another polygon."""
    expected = theory(model)
    sim = over_a_nose(box, model, -0.05)
    run(sim, expected.rest)
    pull = 0.3 * expected.grip * MU * MASS * G * np.array([0.8, 0.6])
    for step in range(1000):
        if step == 500:
            start = sim.q.copy()
        sim.push(np.array([*min(step / 200.0, 1.0) * pull, 0.0, 0.0, 0.0, 0.0]))
        contact = sim.advance(NOTHING)
        assert not contact.sliding[0]
    assert np.linalg.norm(sim.q[:2] - start[:2]) < expected.creep
    assert contact.impulse[0, :2] / H == pytest.approx(-pull, rel=1e-6)


def test_the_same_run_gives_the_same_bits_and_so_does_a_restored_one(box: Robot, model: str) -> None:
    def thrown() -> Simulator:
        sim = simulator(box, model)
        pose = pin.SE3(pin.rpy.rpyToMatrix(0.2, 0.3, 0.0), np.array([0.0, 0.0, 0.1]))
        sim.reset(pin.SE3ToXYZQUAT(pose), np.array([1.0, 0.2, 0.0, 0.0, 0.0, 1.0]))
        return sim

    sim, twin = thrown(), thrown()
    for step in range(600):
        if step == 250:
            kept = sim.snapshot()
        sim.step(NOTHING)
        twin.step(NOTHING)
        assert (sim.q == twin.q).all()
        np.testing.assert_array_equal(sim.contact.wrench, twin.contact.wrench)
    sim.restore(kept)
    for _ in range(350):
        sim.step(NOTHING)
    np.testing.assert_array_equal(sim.q, twin.q)
    for name, array in sim.contact.arrays().items():
        np.testing.assert_array_equal(array, twin.contact.arrays()[name], err_msg=name)


def test_a_tick_of_several_steps_keeps_every_impulse(box: Robot, model: str) -> None:
    fine = simulator(box, model)
    coarse = simulator(box, model, control_dt=4e-3)
    start = np.array([0.0, 0.0, 0.02, 0.0, 0.0, 0.0, 1.0])
    fine.reset(start)
    coarse.reset(start)
    for _ in range(50):
        impulse = np.zeros(6)
        for _ in range(4):
            impulse += fine.advance(NOTHING).impulse[0]
        contact = coarse.advance(NOTHING)
        np.testing.assert_allclose(contact.impulse[0], impulse, atol=1e-15)
        if contact.vertex_forces.size:
            total = contact.vertex_forces[0].sum(axis=0) * coarse.control_dt
            np.testing.assert_allclose(total, impulse[:3], atol=1e-12)
    np.testing.assert_array_equal(fine.q, coarse.q)
