"""Bodies with known solutions, under every contact model: exact, except for the compliance of each model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from motion_support import Bookkeeper, Judge, Motion
from physics_support import BOX_URDF, G, box_robot, pose_on, rectangle, regular_polygon
from theory import MODELS, run, simulator, theory

from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.runs.scenario import SCENARIOS
from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)
H = 1e-3

pytestmark = pytest.mark.parametrize("model", MODELS)

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


def plane(angle: float, direction: float) -> Ground:
    """Return a plane that falls by ``angle`` towards the heading ``direction`` [rad], its axes turned at will."""
    axis = np.array([-np.sin(direction), np.cos(direction), 0.0])
    turned = pin.exp3(angle * axis) @ pin.utils.rotate("z", 0.7)
    return Ground.plane(np.array([0.3, -0.2, 0.5]), turned)


def velocity_of(sim: Simulator) -> np.ndarray:
    """Return the velocity (3,) of a body in the world."""
    return np.asarray(pin.XYZQUATToSE3(sim.q).rotation @ sim.v[:3])


def quadruped(folder: Path, vertices: list[list[float]]) -> Robot:
    """Return a rigid body of 12 kg on four feet at the corners of 0.5 m x 0.3 m, the CoM off the middle."""
    corners = {"front_left": (0.3, 0.15), "rear_left": (-0.2, 0.15), "rear_right": (-0.2, -0.15)}
    corners["front_right"] = (0.3, -0.15)
    (folder / "box.urdf").write_text(BOX_URDF.format(mass=12.0, height=0.3, ixx=0.3, iyy=0.5, izz=0.6))
    feet = "".join(FOOT_YAML.format(name=name, x=x, y=y, vertices=vertices) for name, (x, y) in corners.items())
    (folder / "quadruped.yaml").write_text(QUADRUPED_YAML.format(feet=feet))
    return load_robot(folder / "quadruped.yaml")


def balanced_run(sim: Simulator, duration: float, ground: Ground | None = None) -> float:
    """Run [s] and return the largest error of the momentum balance of a step, relative to the weight."""
    judge = Judge(sim, Bookkeeper(sim.robot, ground, sim.physics_dt))
    run(sim, duration)
    return judge.balance / sim.robot.weight


@pytest.mark.parametrize("direction", sampled([0.4, -2.9, 2.0, -1.1], keep=2))
def test_slopes_in_any_direction_stick_or_slide_down_the_steepest_line(
    folder: Path, model: str, direction: float
) -> None:
    """The normal is not world z, and the axes of the ground and of the box are turned against the slope.

    Sliding friction is mu_d N. The impulse of N comes from gravity and from the motion of the box along the normal.
    """
    expected = theory(model)
    downhill = np.array([np.cos(direction), np.sin(direction), 0.0])
    grip = expected.grip
    for factor in (0.999 * grip, 1.01):
        angle = np.arctan(0.5 * factor)
        ground = plane(angle, direction)
        normal = ground.patches[0].rotation_world_patch[:, 2]
        # A body that rings after it was put down has slipped at a vertex. It sticks again only if both coefficients are
        # equal.
        dynamic = 0.4 if factor > 1.0 or expected.rigid else 0.5
        box = box_robot(folder, rectangle(0.3, 0.2), mu_s=0.5, mu_d=dynamic)
        sim = simulator(box, model, ground)
        sim.reset(pose_on(ground))
        assert balanced_run(sim, 0.3, ground) < 1e-9
        if factor < 1.0 and not expected.rigid:
            run(sim, expected.rest)
        start, before, passed = sim.q[:3].copy(), velocity_of(sim), sim.t
        assert balanced_run(sim, 0.2, ground) < 1e-9
        moved, passed = sim.q[:3] - start, sim.t - passed
        if factor < 1.0:
            assert np.linalg.norm(moved) < expected.creep
            assert not sim.contact.sliding[0]
            continue
        assert sim.contact.sliding[0]
        line = np.cos(angle) * downhill - [0.0, 0.0, np.sin(angle)]
        gained = velocity_of(sim) - before
        pressed = G * np.cos(angle) * passed + gained @ normal
        slid = gained - (gained @ normal) * normal
        # A body that is put down at zero depth may still oscillate about its static depth.
        assert abs(moved @ normal) < 2.0 * expected.depth(2.0 * G / 4) + 1e-10
        # Where the box turns, the slip of its corners is aslant, and where its corners broke away one by one, its own.
        aside = np.linalg.norm(before - (before @ line) * line - (before @ normal) * normal)
        aslant = (abs(sim.v[5]) * np.hypot(0.15, 0.1) + aside) / np.linalg.norm(before)
        along = (G * np.sin(angle) * passed - 0.4 * pressed) * line
        np.testing.assert_allclose(slid, along, atol=(1e-9 + aslant) * 0.4 * pressed)
        assert aslant < 1e-2


def test_sliding_box_stops_where_friction_ends_its_energy(folder: Path, model: str) -> None:
    expected = theory(model)
    robot = box_robot(folder, rectangle(0.3, 0.2), mu_s=0.4, mu_d=0.4)
    speed = 5.0
    heading = np.array([0.8, 0.6])
    exact = speed**2 / (2 * 0.4 * G)
    errors = []
    for h in (1e-3, 5e-4, 2.5e-4):
        sim = simulator(robot, model, physics_dt=h)
        run(sim, expected.rest if not expected.rigid else 0.0)
        sim.reset(sim.q.copy(), v=np.array([*speed * heading, 0, 0, 0, 0]))
        start = sim.q.copy()
        run(sim, 1.4 if expected.rigid else 1.7)
        assert not sim.contact.sliding[0]
        np.testing.assert_allclose(sim.v, 0.0, atol=expected.creep)
        errors.append(exact - float(np.linalg.norm(sim.q[:2] - start[:2])))
    print(f"\n{model}: {errors}")
    assert np.abs(errors).max() < 1e-3 * exact
    if expected.rigid:
        # Semi-implicit: the first step brakes before it moves, v h / 2 short in all.
        assert errors[0] == pytest.approx(speed * 1e-3 / 2, rel=0.02)
        assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.02)
        assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.02)


def test_spinning_disc_stops_in_the_time_of_coulomb_torsion(folder: Path, model: str) -> None:
    radius, inertia, spin = 0.15, 0.03, 5.0
    disc = regular_polygon(64, radius)
    robot = box_robot(folder, disc, height=0.01, inertia=(0.02, 0.02, inertia), mu_s=0.4, mu_d=0.4)
    expected = theory(model)
    sim = simulator(robot, model)
    if not expected.rigid:
        run(sim, expected.rest)
    sim.reset(sim.q.copy(), v=np.array([0, 0, 0, 0, 0, spin]))
    stop = inertia * spin / (0.4 * 2.0 * G * radius)
    run(sim, 0.9 * stop)
    assert sim.contact.sliding[0]
    braked = (spin - sim.v[5]) / (spin * sim.t / stop)
    assert braked == pytest.approx(1.0, abs=1e-3)
    # Below mu g / k_v the rest of a slip decays as in the theory of a compliant foot.
    run(sim, 0.11 * stop + (H if expected.rigid else 0.1))
    assert not sim.contact.sliding[0]
    assert sim.v[5] == pytest.approx(0.0, abs=expected.creep / radius)


@pytest.mark.parametrize("over", [False, True])
def test_box_tips_over_its_edge_at_the_right_push(folder: Path, model: str, over: bool) -> None:
    """At m g l / h. On compliant feet the push grows slowly."""
    expected = theory(model)
    height, half = 0.1, 0.05
    tilt = expected.depth(0.5 * 2.0 * G) / (2.0 * half)
    share = 1.001 if over else expected.tip
    sim = simulator(box_robot(folder, rectangle(2 * half, 0.2), height=height, mu_s=0.9, mu_d=0.9), model)
    if not expected.rigid:
        run(sim, expected.rest)
    force = share * 2.0 * G * half / height
    ramp, after = (1, 100) if expected.rigid else (500, 300)
    for step in range(ramp + after):
        now = min((step + 1) / ramp, 1.0) * force
        sim.push(np.array([now, 0, 0, 0, now * height, 0]))
        sim.advance(NOTHING)
        if step == 0 and expected.rigid:
            assert sim.contact.clamped[0] == (0b1001 if over else 0b1111)
    assert (2.0 * sim.q[4] > 1e-5 + 2.0 * tilt) == over
    assert sim.contact.cop[0, 0] == pytest.approx(min(share, 1.0) * half, rel=1e-9 + 2.0 * tilt * height / half)


@pytest.mark.parametrize("vertices", [[[0.0, 0.0]], [[0.0, 0.1], [0.0, -0.1]]], ids=["point", "blade"])
def test_foot_without_area_falls_as_an_inverted_pendulum(folder: Path, model: str, vertices: list[list[float]]) -> None:
    """theta = theta_0 cosh(lambda t) about a foot that neither moves nor pulls, lambda^2 = m g l / (I + m l^2)."""
    expected = theory(model)
    mass, length, inertia = 2.0, 0.4, 0.05
    robot = box_robot(folder, vertices, mass=mass, height=length, inertia=(inertia, inertia, 0.02))
    sim = simulator(robot, model)
    tilt, depth = 1e-4, expected.depth(mass * G / len(vertices))
    start = pin.SE3(pin.utils.rotate("y", tilt), np.array([0.0, 0.0, -depth]))
    sim.reset(pin.SE3ToXYZQUAT(start))
    assert balanced_run(sim, 0.6) < 1e-9
    rate = np.sqrt(mass * G * length / (inertia + mass * length**2))
    angle = 2.0 * np.arctan2(sim.q[4], sim.q[6])
    # Semi-implicit Euler is h lambda / 2 ahead in the first step, and first order from there on.
    assert angle == pytest.approx(tilt * np.cosh(rate * sim.t), rel=rate * H)
    sideways = mass * length * rate**2 * angle
    np.testing.assert_allclose(sim.q[:3], start.translation, atol=1e-10 + expected.give(sideways))
    assert not sim.contact.sliding[0]


@pytest.mark.long
@pytest.mark.parametrize("vertices", sampled([[[0.0, 0.0]], rectangle(0.06, 0.04)]), ids=["points", "polygons"])
def test_quadruped_stands_though_the_forces_of_rigid_feet_are_indeterminate(
    folder: Path, model: str, vertices: list[list[float]]
) -> None:
    expected = theory(model)
    robot = quadruped(folder, vertices)
    sim = simulator(robot, model)
    sim.reset(robot.q_nominal)
    assert balanced_run(sim, 0.3) < 1e-9
    if not expected.rigid:
        run(sim, expected.rest)
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=expected.force)
    assert (sim.contact.wrench[:, 2] >= 0.0).all()
    np.testing.assert_allclose(sim.v, 0.0, atol=expected.creep)
    # Each foot has at most half of the load.
    np.testing.assert_allclose(sim.q, robot.q_nominal, atol=1e-9 + expected.depth(0.5 * robot.weight))
    assert sim.contact.unresolved == 0


@pytest.mark.long
def test_falling_quadruped_comes_to_rest_on_its_feet(folder: Path, model: str) -> None:
    expected = theory(model)
    robot = quadruped(folder, [[0.0, 0.0]])
    sim = simulator(robot, model)
    q = pin.integrate(robot.model, robot.q_nominal, np.array([0.0, 0.0, 0.1, 0.1, 0.05, 0.0]))
    sim.reset(q, np.array([0.3, 0.2, 0.0, 0.0, 0.0, 0.5]))
    assert balanced_run(sim, 1.5) < 1e-9
    if not expected.rigid:
        run(sim, expected.rest)
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-6)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-6)
    np.testing.assert_allclose(sim.q[3:5], 0.0, atol=1e-5 + expected.depth(0.5 * robot.weight) / 0.3)


def test_left_and_right_foot_may_differ(model: str) -> None:
    """One foot is a hexagon, the other a narrow rectangle with another friction.

    Each follows its own shape and friction.
    """
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
    assert contact.clamped.tolist() == [2**6 - 1, 2**4 - 1]
    assert contact.unresolved == 0
    if not theory(model).rigid:
        return  # Within a step it moves, and its margins are of another instant than its wrench.
    for k, sole in enumerate(robot.soles):
        assert contact.cop_margin[k] == pytest.approx(sole.margin(contact.cop[k]))
        f = contact.wrench[k]
        assert contact.friction_used[k] == pytest.approx(np.hypot(f[0], f[1]) / (sole.friction_static * f[2]))
