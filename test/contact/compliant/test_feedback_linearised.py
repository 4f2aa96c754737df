"""Feedback-linearised penalty contact: the pseudo-inverse, the motion that it imposes, and its saturations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from motion_support import Motion
from physics_support import G, box_robot, pose_on, rectangle, regular_polygon, slope

from bipedsim.contact.models import make_contact_model
from bipedsim.dynamics.projection import Projection
from bipedsim.model import Robot, load_robot
from bipedsim.runs.scenario import SCENARIOS
from bipedsim.sim.simulator import Simulator

NOTHING = np.zeros(0)
MU = 10.0
"""So much that friction is not saturated."""


def touching_projection(feet: int, n: int, seed: int, together: bool) -> tuple[Projection, np.ndarray]:
    """Return feet on the ground in a random state, and the (3 feet n, 6 feet) map from their twists to vertices.

    Args:
        feet, n: Number of feet, and of vertices of each.
        seed: Of the state.
        together: Whether all feet are parts of one rigid body, so that G has rank 6.
    """
    rng = np.random.default_rng(seed)
    robot = load_robot("biped14")
    soles = tuple(robot.soles[0] for _ in range(feet))
    p = Projection.of_soles(soles, n)
    p.mu_static[:] = p.mu_dynamic[:] = MU
    p.n_vertices[:] = n
    maps = np.zeros((3 * feet * n, 6 * feet))
    places = rng.normal(size=(feet, 3)) * [1.0, 1.0, 0.0]
    for k in range(feet):
        turned = pin.utils.rotate("z", rng.uniform(-3.0, 3.0))
        p.rotation[k] = turned
        p.position[k] = places[k]
        p.vertices[k, :n] = np.array({1: [[0.0, 0.0]], 2: [[0.1, 0.02], [-0.1, 0.0]]}.get(n, regular_polygon(n, 0.1)))
        p.offsets[k, :n] = np.column_stack([p.vertices[k, :n], np.zeros(n)]) @ turned.T
        p.position[k, 2] = -rng.uniform(0.0, 1e-4)
        for i in range(n):
            rows = slice(3 * (k * n + i), 3 * (k * n + i) + 3)
            maps[rows, 6 * k : 6 * k + 3] = np.eye(3)
            maps[rows, 6 * k + 3 : 6 * k + 6] = -pin.skew(p.offsets[k, i])
    if together:
        J = np.vstack([np.block([[np.eye(3), -pin.skew(x)], [np.zeros((3, 3)), np.eye(3)]]) for x in places])
    else:
        J = np.eye(6 * feet) + rng.uniform(-0.1, 0.1, size=(6 * feet, 6 * feet))
    inertia = rng.normal(size=(J.shape[1], J.shape[1]))
    p.G[:] = J @ np.linalg.inv(inertia @ inertia.T + np.eye(len(inertia))) @ J.T
    # Random motion of all feet together, or of each foot. The random heights require motions that one rigid body cannot
    # make.
    p.w_before[:] = 3.0 * J @ rng.normal(size=J.shape[1])
    p.bias[:] = J @ rng.normal(size=J.shape[1])
    p.w_free[:] = p.w_before + 1e-6 * J @ (rng.normal(size=J.shape[1]) + 50.0)
    return p, maps


@pytest.mark.long
@settings(max_examples=60)
@given(
    feet=st.integers(1, 3),
    n=st.sampled_from([1, 2, 3, 4, 9]),
    seed=st.integers(0, 2**32 - 1),
    together=st.booleans(),
)
def test_forces_are_those_of_the_pseudo_inverse(feet: int, n: int, seed: int, together: bool) -> None:
    """Eq. 16 to 19 with numpy's pseudo-inverse of all vertices, over a step too short for anything to move."""
    h, k_p, k_v = 1e-10, 500.0, 250.0
    p, maps = touching_projection(feet, n, seed, together)
    p.w_free[:] = p.w_before + (p.w_free - p.w_before) * h / 1e-6
    model = make_contact_model("feedback_linearised", p, h, {"k_p": k_p, "k_v": k_v, "epsilon": 0.0, "resolves": 0})
    forces = model.solve(p).vertex_forces[:, :n].reshape(-1, 3)
    velocity = (maps @ p.w_before).reshape(-1, 3)
    height = np.repeat(p.position[:, 2], n)
    wanted = -k_v * velocity
    wanted[:, 2] = -k_v * np.minimum(0.0, velocity[:, 2]) - k_p * height
    spin = np.repeat(p.w_before.reshape(-1, 6)[:, 3:], n, axis=0)
    arms = p.offsets[:, :n].reshape(-1, 3)
    free = (maps @ ((p.w_free - p.w_before) / h + p.bias)).reshape(-1, 3) + np.cross(spin, np.cross(spin, arms))
    A = maps @ p.G @ maps.T
    expected = (np.linalg.pinv(A, rcond=1e-10) @ (wanted - free).reshape(-1)).reshape(-1, 3)
    expected[:, 2] = np.maximum(expected[:, 2], 0.0)
    size = np.hypot(expected[:, 0], expected[:, 1])
    limit = MU * expected[:, 2]
    share = np.where(size > limit, limit / np.maximum(size, 1e-300), 1.0)
    expected[:, :2] *= share[:, None]
    np.testing.assert_allclose(forces, expected, atol=1e-5 * np.abs(expected).max() + 1e-9)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return box_robot(tmp_path_factory.mktemp("box"), rectangle(0.3, 0.2), mu_s=0.5, mu_d=0.5)


def test_depth_and_slip_die_off_as_the_parameters_say_whatever_the_mass(tmp_path: Path) -> None:
    """A box is released below the surface and pushed: z'' = -k_p (z + epsilon) while it rises, x' ~ exp(-k_v t)."""
    k_p, k_v, epsilon, depth, speed = 500.0, 250.0, 1e-4, 1e-3, 1e-3
    t = 0.02
    for mass in (0.5, 50.0):
        robot = box_robot(tmp_path, rectangle(0.3, 0.2), mass=mass, inertia=(mass / 100,) * 3)
        params = {"k_p": k_p, "k_v": k_v, "epsilon": epsilon}
        sim = Simulator(robot, contact="feedback_linearised", contact_params=params)
        start = robot.q_nominal.copy()
        start[2] -= depth
        sim.reset(start, np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.0]))
        for _ in range(round(t / 1e-3)):
            sim.advance(NOTHING)
        risen = (depth - epsilon) * np.cos(np.sqrt(k_p) * t)
        assert -sim.q[2] - epsilon == pytest.approx(risen, rel=1e-6)
        assert sim.v[0] == pytest.approx(speed * np.exp(-k_v * t), rel=1e-4)


def test_a_sliding_box_hops_as_printed_and_does_not_with_normal_forces_solved_for_again(box: Robot) -> None:
    ground = slope(np.arctan(0.6))
    lost = {}
    for resolves in (0, 20):
        sim = Simulator(box, ground, "feedback_linearised", contact_params={"resolves": resolves})
        sim.reset(pose_on(ground), np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0]))
        lost[resolves] = 0
        for _ in range(300):
            contact = sim.advance(NOTHING)
            lost[resolves] += int((contact.vertex_forces[0, :, 2] == 0.0).sum())
    assert lost[0] > 100
    assert lost[20] == 0
    # The CoP is where the moment of friction wants it: mu h downhill of the CoM, of a slide along +x.
    assert contact.cop[0, 0] == pytest.approx(0.5 * 0.1, rel=1e-3)
    assert sim.v[0] - 0.5 == pytest.approx(0.3 * G * (np.sin(np.arctan(0.6)) - 0.5 * np.cos(np.arctan(0.6))), rel=1e-3)


def test_epsilon_ends_false_impacts_of_a_standing_robot() -> None:
    """Without it, vertices at z = 0 leave whenever a load changes (section V)."""
    changes = {}
    for epsilon in (0.0, 5e-5):
        params = {"epsilon": epsilon}
        motion = Motion(load_robot("biped14"), SCENARIOS["squat"], "feedback_linearised", contact_params=params)
        for _ in range(2000):
            contact = motion.step()
        changes[epsilon] = contact.state_changes
    assert changes[0.0] >= 2
    assert changes[5e-5] == 0


@pytest.mark.parametrize("corner", [(0.7, 0.7), (-0.9, 0.6), (0.3, -0.95)])
def test_a_body_rests_with_its_centre_near_a_corner(corner: tuple[float, float], tmp_path: Path) -> None:
    """The minimum-norm forces would pull at the opposite corner. The other corners support the body without it."""
    vertices = np.array(rectangle(0.3, 0.2)) - np.array(corner) * [0.15, 0.1]
    sim = Simulator(box_robot(tmp_path, vertices.tolist()), contact="feedback_linearised")
    for _ in range(4000):
        contact = sim.advance(NOTHING)
    np.testing.assert_allclose(sim.v, 0.0, atol=1e-6)
    np.testing.assert_allclose(contact.cop[0], 0.0, atol=1e-6)
    assert contact.wrench[0, 2] == pytest.approx(2.0 * G, rel=1e-6)
    assert 0.0 <= -sim.q[2] < 1e-4


def test_neighbouring_vertices_of_a_disc_do_not_push_against_each_other(tmp_path: Path) -> None:
    """Three of 64 vertices span a triangle 1 mm wide.

    A moment about its long side would otherwise pull at the middle one.
    """
    radius, mass = 0.3, 2.0
    robot = box_robot(
        tmp_path, regular_polygon(64, radius), mass=mass, height=0.15, inertia=(0.036, 0.045, 0.054), mu_s=0.5, mu_d=0.5
    )
    rim = np.column_stack([robot.soles[0].vertices, np.zeros(64)])
    data = robot.model.createData()
    rng = np.random.default_rng(0)
    sim = Simulator(robot, contact="feedback_linearised")
    for _ in range(12):
        turn = pin.exp3(rng.uniform(-0.8, 0.8, 3))
        height = 0.005 - (rim @ turn.T)[:, 2].min()
        velocity = turn.T @ rng.uniform(-2.0, 2.0, 3)
        sim.reset(pin.SE3ToXYZQUAT(pin.SE3(turn, np.array([0.0, 0.0, height]))), np.array([*velocity, 0.0, 0.0, 0.0]))
        start = pin.computeMechanicalEnergy(robot.model, data, sim.q, sim.v)
        for _ in range(300):
            sim.advance(NOTHING)
            energy = pin.computeMechanicalEnergy(robot.model, data, sim.q, sim.v)
            assert energy < start + 0.03 * mass * G * radius


@pytest.mark.parametrize(("speed", "spin"), [((0.6, 0.2), 3.0), ((0.3, 0.0), 6.0)])
def test_every_vertex_of_a_sole_that_slides_and_spins_brakes_its_own_slip(
    box: Robot, speed: tuple[float, float], spin: float
) -> None:
    """Each point follows Coulomb's law. The final position is known from ``ncp``, which solves for friction alone."""
    yaw = {}
    for model in ("feedback_linearised", "ncp"):
        sim = Simulator(box, contact=model)
        sim.reset(box.q_nominal, np.array([*speed, 0.0, 0.0, 0.0, spin]))
        corners = np.column_stack([box.soles[0].vertices, np.zeros(4)])
        for _ in range(300):
            turned = pin.XYZQUATToSE3(sim.q).rotation
            slip = (turned @ (sim.v[:3, None] + np.cross(sim.v[3:], corners).T)).T[:, :2]
            force = sim.advance(NOTHING).vertex_forces[0]
            fast = (np.linalg.norm(slip, axis=1) > 0.25) & (force[:, 2] > 0.0)
            braked = -np.sum(force[fast, :2] * slip[fast], axis=1) / np.linalg.norm(slip[fast], axis=1)
            # Within the millisecond a vertex turns by a few degrees about its slip.
            assert (braked > np.cos(np.radians(5.0)) * 0.5 * force[fast, 2]).all()
        yaw[model] = pin.rpy.matrixToRpy(pin.XYZQUATToSE3(sim.q).rotation)[2]
        assert np.linalg.norm(sim.v) < 1e-2
    assert yaw["feedback_linearised"] == pytest.approx(yaw["ncp"], rel=0.03)


def test_bricks_of_any_shape_land_at_any_friction(tmp_path: Path) -> None:
    """Every step finds friction that goes with its normal forces, and the deepest vertex stays near v / k_v."""
    k_v = 250.0
    for seed in (0, 1, 29, 45, 86, 102, 103, 104):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 13))
        angles = 2.0 * np.pi * (np.arange(n) + rng.uniform(-0.3, 0.3, n)) / n
        x, y, height = *rng.uniform(0.05, 0.3, 2), rng.uniform(0.02, 0.3)
        vertices = np.column_stack([x * np.cos(angles), y * np.sin(angles)])
        mass, mu = 10.0 ** rng.uniform(-0.5, 1.5), rng.uniform(0.2, 2.0)
        inertia = mass / 3.0 * np.array([y * y + height**2, x * x + height**2, x * x + y * y])
        robot = box_robot(tmp_path, vertices.tolist(), mass, height, inertia.tolist(), mu_s=mu, mu_d=0.7 * mu)
        sim = Simulator(robot, contact="feedback_linearised")
        turned = pin.exp3(rng.uniform(-0.5, 0.5, 3))
        corners = np.column_stack([vertices, np.zeros(n)])
        start = pin.SE3(turned, np.array([0.0, 0.0, 0.01 - (corners @ turned.T)[:, 2].min()]))
        sim.reset(pin.SE3ToXYZQUAT(start), np.concatenate([rng.uniform(-2.0, 2.0, 3), rng.uniform(-6.0, 6.0, 3)]))
        fastest = 0.0
        for _ in range(300):
            pose = pin.XYZQUATToSE3(sim.q)
            if pose.rotation[2, 2] < 0.2:
                break
            moving = (pose.rotation @ (sim.v[:3, None] + np.cross(sim.v[3:], corners).T)).T
            fastest = max(fastest, -moving[:, 2].min())
            assert (corners @ pose.rotation.T)[:, 2].min() + pose.translation[2] > -1.5 * fastest / k_v
            assert sim.advance(NOTHING).unresolved == 0
