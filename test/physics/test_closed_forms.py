"""Rigid bodies with a known answer, under every contact model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from motion_support import Bookkeeper, Motion
from physics_support import BOX_URDF, SELECTION_MODELS, G, box_robot, pose_on, rectangle, regular_polygon, slope

from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.runs.scenario import SCENARIOS
from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)
H = 1e-3

pytestmark = pytest.mark.parametrize("model", SELECTION_MODELS)

QUADRUPED_YAML = """name: quadruped
description: a rigid body on four feet
urdf: box.urdf
joints: []
feet:
{feet}
imu: {{frame: body}}
"""

FOOT_YAML = """  {name}:
    frame: body
    placement: {{xyz: [{x}, {y}, 0.0]}}
    vertices: {vertices}
    friction_static: 0.6
    friction_dynamic: 0.5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bodies")


@pytest.fixture(scope="module")
def box(folder: Path) -> Robot:
    return box_robot(folder, rectangle(0.3, 0.2))


def run(sim: Simulator, steps: int) -> None:
    for _ in range(steps):
        sim.step(NOTHING)


def plane(angle: float, direction: float) -> Ground:
    """Return a plane that falls by ``angle`` towards the heading ``direction`` [rad], its axes turned at will."""
    axis = np.array([-np.sin(direction), np.cos(direction), 0.0])
    turned = pin.exp3(angle * axis) @ pin.utils.rotate("z", 0.7)
    return Ground.plane(np.array([0.3, -0.2, 0.5]), turned)


def quadruped(folder: Path, vertices: list[list[float]]) -> Robot:
    """Return a rigid body of 12 kg on four feet at the corners of 0.5 m x 0.3 m, the CoM off the middle."""
    corners = {"front_left": (0.3, 0.15), "rear_left": (-0.2, 0.15), "rear_right": (-0.2, -0.15)}
    corners["front_right"] = (0.3, -0.15)
    (folder / "box.urdf").write_text(BOX_URDF.format(mass=12.0, height=0.3, ixx=0.3, iyy=0.5, izz=0.6))
    feet = "".join(FOOT_YAML.format(name=name, x=x, y=y, vertices=vertices) for name, (x, y) in corners.items())
    (folder / "quadruped.yaml").write_text(QUADRUPED_YAML.format(feet=feet))
    return load_robot(folder / "quadruped.yaml")


def balanced_run(sim: Simulator, steps: int, ground: Ground | None = None) -> float:
    """Run and return the largest error of the momentum balance of a step, relative to the weight."""
    book = Bookkeeper(sim.robot, ground, sim.physics_dt)
    worst = 0.0
    for _ in range(steps):
        q, v = sim.q.copy(), sim.v.copy()
        sim.step(np.zeros(sim.robot.nu))
        worst = max(worst, book.force_error(q, v, sim.v, sim.contact))
    return worst / sim.robot.weight


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64])
def test_any_convex_sole_carries_its_load(folder: Path, model: str, n: int) -> None:
    vertices = {1: [[0.0, 0.0]], 2: [[0.1, 0.0], [-0.1, 0.0]]}.get(n) or regular_polygon(n, 0.1)
    sim = Simulator(box_robot(folder, vertices, height=0.0), contact=model)
    run(sim, 100)
    assert sim.contact.wrench[0, 2] == pytest.approx(2.0 * G)
    assert sim.contact.clamped[0] == 2 ** min(n, 63) - 1
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)


def test_ramp_sticks_below_the_angle_of_static_friction(box: Robot, model: str) -> None:
    ground = slope(np.arctan(0.4999))
    sim = Simulator(box, ground, contact=model)
    sim.reset(pose_on(ground))
    run(sim, 2000)
    assert not sim.contact.sliding[0]
    np.testing.assert_allclose(sim.q[:3], 0.0, atol=1e-12)
    assert sim.contact.friction_used[0] == pytest.approx(0.4999 / 0.5)


def test_ramp_slides_above_it_with_dynamic_friction(box: Robot, model: str) -> None:
    angle = np.arctan(0.5001)
    ground = slope(angle)
    sim = Simulator(box, ground, contact=model)
    sim.reset(pose_on(ground))
    run(sim, 500)
    assert sim.contact.sliding[0]
    expected = G * (np.sin(angle) - 0.4 * np.cos(angle))
    assert sim.v[0] / sim.t == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(sim.v[1:], 0.0, atol=1e-12)
    fx, fy, fz = sim.contact.wrench[0, :3]
    assert np.hypot(fx, fy) == pytest.approx(0.4 * fz, rel=1e-12)


@pytest.mark.parametrize("direction", [0.4, 2.0, -1.1, -2.9])
def test_slopes_in_any_direction_stick_or_slide_down_the_steepest_line(
    box: Robot, model: str, direction: float
) -> None:
    """The normal is not world z, and the axes of the ground and of the box are turned against the slope."""
    downhill = np.array([np.cos(direction), np.sin(direction), 0.0])
    for factor in (0.999, 1.01):
        angle = np.arctan(0.5 * factor)
        ground = plane(angle, direction)
        sim = Simulator(box, ground, contact=model)
        start = pose_on(ground)
        sim.reset(start)
        error = balanced_run(sim, 400, ground)
        assert error < 1e-9
        moved = sim.q[:3] - start[:3]
        if factor < 1.0:
            assert np.linalg.norm(moved) < 1e-12
            continue
        line = np.cos(angle) * downhill - [0.0, 0.0, np.sin(angle)]
        velocity = pin.XYZQUATToSE3(sim.q).rotation @ sim.v[:3]
        expected = G * (np.sin(angle) - 0.4 * np.cos(angle)) * sim.t
        np.testing.assert_allclose(velocity, expected * line, atol=1e-6 * expected)
        assert abs(moved @ ground.patches[0].rotation_world_patch[:, 2]) < 1e-10


def test_sliding_box_stops_where_friction_ends_its_energy(folder: Path, model: str) -> None:
    robot = box_robot(folder, rectangle(0.3, 0.2), mu_s=0.4, mu_d=0.4)
    speed = 5.0
    exact = speed**2 / (2 * 0.4 * G)
    errors = []
    for h in (1e-3, 5e-4, 2.5e-4):
        sim = Simulator(robot, contact=model, physics_dt=h)
        sim.reset(v=np.array([0.8 * speed, 0.6 * speed, 0, 0, 0, 0]))
        run(sim, round(1.3 / h))
        assert not sim.contact.sliding[0]
        np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)
        errors.append(exact - float(np.linalg.norm(sim.q[:2])))
    assert abs(errors[0]) < 1e-3 * exact
    # Semi-implicit: the first step brakes before it moves, v h / 2 short in all.
    assert errors[0] == pytest.approx(speed * 1e-3 / 2, rel=0.02)
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.02)


def test_spinning_disc_stops_in_the_time_of_coulomb_torsion(folder: Path, model: str) -> None:
    radius, inertia, spin = 0.15, 0.03, 5.0
    disc = regular_polygon(64, radius)
    robot = box_robot(folder, disc, height=0.01, inertia=(0.02, 0.02, inertia), mu_s=0.4, mu_d=0.4)
    sim = Simulator(robot, contact=model)
    sim.reset(v=np.array([0, 0, 0, 0, 0, spin]))
    expected = inertia * spin / (0.4 * 2.0 * G * radius)
    run(sim, int(0.99 * expected / H))
    assert sim.contact.sliding[0]
    run(sim, int(0.02 * expected / H) + 1)
    assert not sim.contact.sliding[0]
    assert sim.v[5] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("share", [0.999, 1.001])
def test_box_tips_over_its_edge_at_the_right_push(folder: Path, model: str, share: float) -> None:
    height, half = 0.1, 0.05
    sim = Simulator(box_robot(folder, rectangle(2 * half, 0.2), height=height, mu_s=0.9, mu_d=0.9), contact=model)
    force = share * 2.0 * G * half / height
    sim.push(np.array([force, 0, 0, 0, force * height, 0]))
    sim.step(NOTHING)
    front_edge = 8
    assert sim.contact.mode[0] == (9 if share < 1 else front_edge)
    run(sim, 100)
    assert (sim.q[4] > 1e-5) == (share > 1)
    assert sim.contact.cop[0, 0] == pytest.approx(min(share, 1.0) * half, rel=1e-9)


@pytest.mark.parametrize("vertices", [[[0.0, 0.0]], [[0.0, 0.1], [0.0, -0.1]]], ids=["point", "blade"])
def test_foot_without_area_falls_as_an_inverted_pendulum(folder: Path, model: str, vertices: list[list[float]]) -> None:
    """theta = theta_0 cosh(lambda t) about a foot that neither moves nor pulls, lambda^2 = m g l / (I + m l^2)."""
    mass, length, inertia = 2.0, 0.4, 0.05
    robot = box_robot(folder, vertices, mass=mass, height=length, inertia=(inertia, inertia, 0.02))
    sim = Simulator(robot, contact=model)
    tilt = 1e-4
    sim.reset(pin.SE3ToXYZQUAT(pin.SE3(pin.utils.rotate("y", tilt), np.zeros(3))))
    assert balanced_run(sim, 600) < 1e-9
    rate = np.sqrt(mass * G * length / (inertia + mass * length**2))
    angle = 2.0 * np.arctan2(sim.q[4], sim.q[6])
    # Semi-implicit Euler is h lambda / 2 ahead in the first step, and first order from there on.
    assert angle == pytest.approx(tilt * np.cosh(rate * sim.t), rel=rate * H)
    np.testing.assert_allclose(sim.q[:3], 0.0, atol=1e-10)
    assert not sim.contact.sliding[0]


@pytest.mark.parametrize("vertices", [[[0.0, 0.0]], rectangle(0.06, 0.04)], ids=["points", "polygons"])
def test_rigid_quadruped_stands_though_its_forces_are_indeterminate(
    folder: Path, model: str, vertices: list[list[float]]
) -> None:
    robot = quadruped(folder, vertices)
    sim = Simulator(robot, contact=model)
    sim.reset(robot.q_nominal)
    assert balanced_run(sim, 300) < 1e-9
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-9)
    assert (sim.contact.wrench[:, 2] >= 0.0).all()
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-9)
    np.testing.assert_allclose(sim.q, robot.q_nominal, atol=1e-9)
    assert sim.contact.unresolved == 0


def test_falling_quadruped_comes_to_rest_on_its_feet(folder: Path, model: str) -> None:
    robot = quadruped(folder, [[0.0, 0.0]])
    sim = Simulator(robot, contact=model)
    q = pin.integrate(robot.model, robot.q_nominal, np.array([0.0, 0.0, 0.1, 0.1, 0.05, 0.0]))
    sim.reset(q, np.array([0.3, 0.2, 0.0, 0.0, 0.0, 0.5]))
    assert balanced_run(sim, 1500) < 1e-9
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-6)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-6)
    np.testing.assert_allclose(sim.q[3:5], 0.0, atol=1e-5)


def test_left_and_right_foot_may_differ(model: str) -> None:
    """A hexagon beside a narrow rectangle of other friction: each is judged by its own shape and friction."""
    plain = load_robot("biped14")
    hexagon = np.array([0.04, 0.0]) + np.array(regular_polygon(6, 1.0)) * [0.12, 0.07]
    left = dataclasses.replace(plain.soles[0], vertices=hexagon, friction_static=0.7, friction_dynamic=0.6)
    right = dataclasses.replace(plain.soles[1], vertices=np.array([0.03, 0.0]) + rectangle(0.2, 0.06))
    robot = dataclasses.replace(plain, soles=(left, right))
    motion = Motion(robot, SCENARIOS["squat"], model)
    book = Bookkeeper(robot)
    for _ in range(2000):
        q, v = motion.sim.q.copy(), motion.sim.v.copy()
        contact = motion.step()
        assert book.force_error(q, v, motion.sim.v, contact) < 1e-9 * robot.weight
    assert contact.mode.tolist() == [13, 9]
    assert contact.state_changes == 0
    for k, sole in enumerate(robot.soles):
        assert contact.cop_margin[k] == pytest.approx(sole.margin(contact.cop[k]))
        f = contact.wrench[k]
        assert contact.friction_used[k] == pytest.approx(np.hypot(f[0], f[1]) / (sole.friction_static * f[2]))
