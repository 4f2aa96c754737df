"""The nonlinear complementarity model against closed forms and constraint selection, and by its own residual."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from marks import sampled
from motion_support import Bookkeeper, Judge, Motion
from physics_support import BOX_URDF, G, box_robot, pose_on, rectangle, regular_polygon, slope, special_robot
from refusals import refusal

from bipedsim.contact.time_stepping.ncp import Ncp
from bipedsim.ground.ground import Ground
from bipedsim.model import Robot, load_robot
from bipedsim.runs.scenario import SCENARIOS
from bipedsim.sim.simulator import Simulator

H = 1e-3
NOTHING = np.zeros(0)
TOLERANCE = 1e-8
MU = 0.5

CHAIR_YAML = """name: chair
description: a rigid body on four legs of eight vertices each
urdf: box.urdf
joints: []
feet:
{feet}
imu: {{frame: body}}
"""
LEG_YAML = """  leg_{i}:
    frame: body
    placement: {{xyz: [{x}, {y}, 0.0]}}
    vertices: {vertices}
    friction_static: 0.6
    friction_dynamic: 0.5
"""


def model_of(sim: Simulator) -> Ncp:
    model = sim.solver
    assert isinstance(model, Ncp)
    return model


def simulated(robot: Robot, ground: Ground | None = None, h: float = H, **params: float) -> Simulator:
    return Simulator(robot, ground, contact="ncp", physics_dt=h, contact_params=params)


def run(sim: Simulator, steps: int) -> None:
    """Step without torques; every step has to be solved."""
    for _ in range(steps):
        sim.advance(NOTHING)
        assert model_of(sim).residual <= TOLERANCE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bodies")


@pytest.fixture(scope="module")
def box(folder: Path) -> Robot:
    return box_robot(folder, rectangle(0.3, 0.2), mu_s=MU, mu_d=MU)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64])
def test_a_box_at_rest_stays_there(folder: Path, n: int) -> None:
    vertices = {1: [[0.0, 0.0]], 2: [[0.1, 0.0], [-0.1, 0.0]]}.get(n) or regular_polygon(n, 0.1)
    sim = simulated(box_robot(folder, vertices, height=0.0))
    run(sim, 200)
    contact = sim.contact
    assert contact.wrench[0, 2] == pytest.approx(2.0 * G, rel=1e-9)
    assert contact.clamped[0] == 2 ** min(n, 63) - 1
    np.testing.assert_allclose(contact.vertex_forces[0, :n, 2], 2.0 * G / n, rtol=1e-4)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)
    assert contact.unresolved == 0


def test_a_box_sticks_below_the_cone_and_slides_beyond_it(box: Robot) -> None:
    for factor, slides in ((0.9999, False), (1.0001, True)):
        ground = slope(np.arctan(factor * MU))
        sim = simulated(box, ground)
        sim.reset(pose_on(ground))
        run(sim, 300)
        assert sim.contact.sliding[0] == slides
        assert sim.contact.unresolved == 0
        if not slides:
            np.testing.assert_allclose(sim.q[:3], 0.0, atol=1e-12)


def test_friction_falls_to_the_dynamic_coefficient_in_the_step_that_slips(folder: Path) -> None:
    robot = box_robot(folder, rectangle(0.3, 0.2), mu_s=0.5, mu_d=0.4)
    angle = np.arctan(0.5001)
    ground = slope(angle)
    sim = simulated(robot, ground)
    sim.reset(pose_on(ground))
    run(sim, 300)
    assert sim.v[0] / sim.t == pytest.approx(G * (np.sin(angle) - 0.4 * np.cos(angle)), rel=1e-9)
    assert sim.contact.friction_used[0] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("heading", 2.0 * np.pi * (np.arange(16) + 0.3) / 16)
def test_the_cone_is_round(box: Robot, heading: float) -> None:
    """The friction opposes the slip with |f_t| = mu f_n in any direction. A pyramid would be wrong by up to 29 %."""
    direction = np.array([np.cos(heading), np.sin(heading)])
    sim = simulated(box)
    sim.reset(v=np.array([*(3.0 * direction), 0.0, 0.0, 0.0, 0.0]))
    run(sim, 1)
    fx, fy, fz = sim.contact.wrench[0, :3]
    assert np.hypot(fx, fy) == pytest.approx(MU * fz, rel=1e-6)
    np.testing.assert_allclose([fx, fy], -MU * fz * direction, atol=1e-6 * fz)
    run(sim, 400)
    np.testing.assert_allclose(sim.v[:2], (3.0 - MU * G * sim.t) * direction, atol=1e-8)


def test_a_sliding_box_stops(box: Robot) -> None:
    sim = simulated(box)
    sim.reset(v=np.array([0.8, 0.6, 0.0, 0.0, 0.0, 0.0]))
    run(sim, 400)
    assert not sim.contact.sliding[0]
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)
    # Semi-implicit: the first step brakes before it moves, v h / 2 short in all.
    assert np.linalg.norm(sim.q[:2]) == pytest.approx(1.0 / (2.0 * MU * G) - 0.5 * H, abs=2e-6)


def test_a_ball_rolls_down_a_slope() -> None:
    angle = 0.2
    ground = Ground.slope(-angle)
    sim = simulated(special_robot("ball"), ground)
    axes = ground.patches[0].rotation_world_patch
    sim.reset(np.array([*(0.2 * axes[[0, 2], 2]), 0.0]))
    run(sim, 500)
    assert np.linalg.norm(sim.v[:2]) == pytest.approx(5.0 / 7.0 * G * np.sin(angle) * sim.t, rel=1e-9)


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 1.0])
def test_a_block_bounces_with_newtons_coefficient(box: Robot, coefficient: float) -> None:
    """The block bounces in the step of the impact, with the speed that it has at the ground."""
    sim = simulated(box, restitution=coefficient)
    sim.reset(np.array([0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0]))
    fall = np.sqrt(2.0 * 0.2 / G)
    steps = int(fall / H)
    run(sim, steps)
    assert not sim.contact.impact.any()
    run(sim, 1)
    speed = G * fall
    assert sim.contact.impact[0, 2] == pytest.approx((1.0 + coefficient) * 2.0 * speed, rel=1e-9)
    left = (steps + 1) * H - fall
    if coefficient == 0.0:
        np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)
        return
    assert sim.v[2] == pytest.approx(coefficient * speed - G * left, rel=1e-9)
    assert sim.q[2] == pytest.approx((coefficient * speed - 0.5 * G * left) * left, abs=1e-12)
    if coefficient < 1.0:
        run(sim, 1250)
        np.testing.assert_allclose(sim.v, 0.0, atol=1e-12)


def test_a_flat_landing_is_an_impact_and_weight_ever_after(box: Robot) -> None:
    sim = simulated(box)
    sim.reset(np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0]))
    total = 0.0
    for _ in range(200):
        run(sim, 1)
        contact = sim.contact
        total += contact.impact[0, 2]
        if not contact.impact.any():
            weight = 2.0 * G if contact.mode[0] else 0.0
            np.testing.assert_allclose(contact.wrench[0], [0, 0, weight, 0, 0, 0], atol=1e-8)
    assert total == pytest.approx(2.0 * np.sqrt(2.0 * G * 0.05), rel=1e-9)


@pytest.mark.parametrize("n", [3, 4, 8])
def test_thrown_boxes_never_gain_energy(folder: Path, n: int) -> None:
    """The comparison is with the same step without contact.

    Only height differences in the landing step may add energy.
    """
    robot = box_robot(folder, regular_polygon(n, 0.15))
    corners = np.column_stack([robot.soles[0].vertices, np.zeros(n)])
    rng = np.random.default_rng(n)
    sim = simulated(robot)
    judge = Judge(sim, Bookkeeper(robot))
    for _ in range(6):
        pose = pin.SE3(pin.exp3(np.array([*rng.uniform(-0.5, 0.5, 2), 0.3])), np.zeros(3))
        pose.translation[2] = 0.02 - (corners @ pose.rotation.T)[:, 2].min()
        linear = pose.rotation.T @ np.array([*rng.uniform(-1, 1, 2), rng.uniform(-2, 0)])
        sim.reset(pin.SE3ToXYZQUAT(pose), np.array([*linear, *rng.uniform(-3, 3, 3)]))
        for _ in range(400):
            run(sim, 1)
            assert max(judge.gains) <= 1e-9
            assert (sim.contact.vertex_forces[0, :, 2] >= 0.0).all()
            judge.gains.clear()


@pytest.mark.parametrize("name", ["biped14", "talos"])
def test_a_sticking_stance_carries_what_constraint_selection_says(name: str) -> None:
    """Both find the only pair of wrenches that holds both faces still.

    The comparison is from the same states, step by step.
    """
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS["squat"], "exact")
    other = simulated(robot)
    worst = 0.0
    for i in range(1500):
        tau = motion.torque()
        other.q, other.v = motion.sim.q.copy(), motion.sim.v.copy()
        theirs = motion.step(tau)
        mine = other.advance(tau)
        # Selection and the model return to their own anchors. The comparison begins when both have reached them.
        if i >= 5:
            worst = max(worst, float(np.abs(mine.wrench - theirs.wrench).max()))
    assert worst < 1e-3 * robot.weight


@pytest.mark.long
@pytest.mark.parametrize(("name", "scenario", "seconds"), sampled([
    ("biped14", "squat", 5.0), ("biped14", "push", 3.0), ("biped14", "toe_fall", 3.0), ("biped14", "drop", 1.0),
    ("biped14", "jump", 2.5), ("talos", "drop", 1.0),
    ("biped14", "stand", 10.0), ("talos", "stand", 10.0), ("talos", "squat", 5.0),
], keep=6))  # fmt: skip
def test_every_step_of_a_motion_is_solved(name: str, scenario: str, seconds: float) -> None:
    """The residual of every step, the momentum balance, feet that stay, and no energy from contact."""
    robot = load_robot(name)
    motion = Motion(robot, SCENARIOS[scenario], "ncp")
    sim = motion.sim
    judge = Judge(sim, Bookkeeper(robot))
    still = scenario in ("stand", "squat")
    start = sim.ground_truth().pose_world_sole.copy()
    worst = 0.0
    for _ in range(round(seconds / H)):
        judge.tau = motion.torque()
        motion.step(judge.tau)
        worst = max(worst, model_of(sim).residual)
        if motion.fallen:
            break
    assert worst <= TOLERANCE
    assert sim.contact.unresolved == 0
    if scenario != "push":
        assert max(judge.gains) < 1e-6
    if scenario != "toe_fall":
        assert not motion.fallen
        assert sim.q[2] > 0.8 * robot.q_nominal[2]
    if still:
        assert np.abs(sim.ground_truth().pose_world_sole[:, :3] - start[:, :3]).max() < 1e-5
        assert sim.contact.state_changes == 0


def chair(folder: Path) -> Robot:
    vertices = regular_polygon(8, 0.03)
    legs = [(0.3, 0.15), (-0.2, 0.15), (-0.2, -0.15), (0.3, -0.15)]
    feet = "".join(LEG_YAML.format(i=i, x=x, y=y, vertices=vertices) for i, (x, y) in enumerate(legs))
    (folder / "box.urdf").write_text(BOX_URDF.format(mass=12.0, height=0.3, ixx=0.3, iyy=0.5, izz=0.6))
    (folder / "chair.yaml").write_text(CHAIR_YAML.format(feet=feet))
    return load_robot(folder / "chair.yaml")


def test_a_chair_of_32_vertices_stands_and_lands(folder: Path) -> None:
    """Of 96 forces only six combinations matter. The rest is free and bounded, and no leg pulls."""
    robot = chair(folder)
    sim = simulated(robot)
    run(sim, 300)
    np.testing.assert_allclose(sim.q, robot.q_nominal, atol=1e-9)
    assert sim.contact.wrench[:, 2].sum() == pytest.approx(robot.weight, rel=1e-9)
    sim.reset(pin.integrate(robot.model, robot.q_nominal, np.array([0.0, 0.0, 0.1, 0.1, 0.05, 0.0])), 0.3 * np.ones(6))
    for _ in range(1500):
        sim.advance(NOTHING)
        assert (sim.contact.vertex_forces[:, :, 2] >= -1e-6).all()
    # The page states how rare a step above the tolerance is, and that its impulses are the best found.
    assert sim.contact.unresolved <= 1
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-6)
    assert np.abs(sim.contact.vertex_forces).max() < robot.weight


@pytest.mark.long
def test_a_planar_robot_has_rows_that_nothing_moves() -> None:
    """Its Delassus matrix has zero rows: the feet cannot leave the plane, and no force acts across it."""
    robot = special_robot("block")
    sim = simulated(robot)
    rng = np.random.default_rng(1)
    judge = Judge(sim, Bookkeeper(robot))
    for _ in range(6):
        sim.reset(np.array([0.0, rng.uniform(0.3, 0.6), rng.uniform(-3, 3)]), rng.uniform(-2.0, 2.0, 3))
        for _ in range(1500):
            run(sim, 1)
            assert max(judge.gains) <= 1e-9
            judge.gains.clear()
            np.testing.assert_allclose(sim.contact.impulse[:, 1], 0.0, atol=1e-9)
        quarters = sim.q[2] / (0.5 * np.pi)
        assert quarters == pytest.approx(round(quarters), abs=1e-6)


def test_what_is_not_solved_is_counted_and_finite(box: Robot) -> None:
    sim = simulated(box, iterations=1)
    sim.reset(np.array([0.0, 0.0, 0.1, 0.2, 0.1, 0.0, 0.97]), np.array([1.0, 0.5, -1.0, 3.0, 2.0, 1.0]))
    for _ in range(300):
        sim.advance(NOTHING)
        assert np.isfinite(sim.contact.impulse).all()
        assert np.isfinite(model_of(sim).residual)
    assert sim.contact.unresolved > 0
    assert model_of(sim).residual > TOLERANCE


@pytest.mark.parametrize("scenario", ["drop", "squat"])
def test_a_snapshot_repeats_every_bit(scenario: str) -> None:
    motion = Motion(load_robot("talos"), SCENARIOS[scenario], "ncp", tilt=0.02 if scenario == "drop" else 0.0)
    sim = motion.sim
    for _ in range(105):
        motion.step()
    snapshot = sim.snapshot()
    torques, seen = [], []
    for _ in range(100):
        torques.append(motion.torque())
        seen.append((motion.step(torques[-1]).vertex_forces.copy(), sim.v.copy(), model_of(sim).residual))
    sim.restore(snapshot)
    for tau, (forces, v, residual) in zip(torques, seen, strict=True):
        np.testing.assert_array_equal(sim.advance(tau).vertex_forces, forces)
        np.testing.assert_array_equal(sim.v, v)
        assert model_of(sim).residual == residual
    again = Motion(load_robot("talos"), SCENARIOS[scenario], "ncp", tilt=0.02 if scenario == "drop" else 0.0)
    for _ in range(205):
        again.step()
    np.testing.assert_array_equal(again.sim.v, v)


def test_parameters_out_of_range_are_named(box: Robot) -> None:
    with refusal(place="contact model ncp: restitution", value=1.5):
        simulated(box, restitution=1.5)


def test_restitution_belongs_to_vertices_that_arrive(folder: Path) -> None:
    """A standing box with e = 1 does not hop."""
    robot = box_robot(folder, rectangle(0.3, 0.2))
    sim = simulated(robot, restitution=1.0)
    run(sim, 500)
    np.testing.assert_allclose(sim.q[2], 0.0, atol=1e-9)


def test_feet_on_different_friction_each_have_their_cone(folder: Path) -> None:
    """biped14 with one foot on ice: its friction stays in the small cone."""
    robot = load_robot("biped14")
    left = replace(robot.soles[0], friction_static=0.02, friction_dynamic=0.02)
    motion = Motion(replace(robot, soles=(left, robot.soles[1])), SCENARIOS["sway"], "ncp")
    for _ in range(1500):
        wrench = motion.step().wrench
        assert np.hypot(*wrench[0, :2]) <= 0.02 * wrench[0, 2] * (1.0 + 1e-6) + 1e-9
        assert model_of(motion.sim).residual <= TOLERANCE
