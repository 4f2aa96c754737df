"""Validity of a solve: a set of modes with nearly singular equations must not affect the step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from motion_support import Bookkeeper, Judge
from physics_support import SELECTION_MODELS, box_robot, regular_polygon, rigid_body
from reference_contact import slips, vertex_shares

from bipedsim.contact import make_contact_model
from bipedsim.contact.modes import RECOVERY, n_modes
from bipedsim.contact.selection.arrays import begin
from bipedsim.contact.selection.candidate import _is_at_rest, is_valid_solution, solve
from bipedsim.contact.selection.exact import Exact
from bipedsim.dynamics import Dynamics, Projection
from bipedsim.ground import Ground
from bipedsim.model import Robot
from bipedsim.numerics import Array, call
from bipedsim.sim.simulator import Simulator

H = 1e-3
NOTHING = np.zeros(0)
DROPS = 60


def gain(robot: Robot, model: str, q: np.ndarray, v: np.ndarray) -> tuple[float, Simulator]:
    """Return the kinetic energy [J] that contact adds in one step or a part of it, and the simulator after it."""
    sim = Simulator(robot, contact=model, physics_dt=H)
    sim.reset(q, v)
    judge = Judge(sim, Bookkeeper(robot, h=H))
    sim.advance(NOTHING)
    return max(judge.gains), sim


@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_a_set_that_breaks_its_own_constraints_is_not_taken(tmp_path: Path, model: str) -> None:
    case: dict[str, Any] = json.loads(Path(__file__).with_name("energy_gain.json").read_text())
    robot = box_robot(tmp_path, case["sole_vertices"], case["mass"], case["com"][2], case["inertia_diag"], 2.0, 2.0)
    added, sim = gain(robot, model, np.array(case["q"]), np.array(case["v"]))
    assert added <= 0.0
    assert np.abs(sim.v).max() < 10.0


def thrown(folder: Path, rng: np.random.Generator) -> tuple[Robot, np.ndarray, np.ndarray]:
    """Return a random body, tilted and thrown onto the ground with a corner of its sole just above it or in it."""
    n = int(rng.integers(3, 12))
    angles = 2.0 * np.pi / n * (np.arange(n) + rng.uniform(0.0, 0.8, n))
    points = rng.uniform(0.05, 0.2) * np.column_stack([np.cos(angles), rng.uniform(0.4, 1.0) * np.sin(angles)])
    vertices: Sequence[Sequence[float]] = points.tolist()
    height, mass = rng.uniform(0.02, 0.4), rng.uniform(0.5, 8.0)
    inertia = mass * rng.uniform(0.03, 0.12, 3) ** 2
    # A body's inertias obey the inequality of the triangle.
    inertia[2] = min(max(inertia[2], abs(inertia[0] - inertia[1]) + 1e-6), inertia[0] + inertia[1])
    mu = rng.uniform(0.1, 2.0)
    robot = box_robot(folder, vertices, mass, height, inertia.tolist(), mu, mu)
    rotation = pin.exp3(np.array([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-3.0, 3.0)]))
    lowest = (np.column_stack([points, np.zeros(n)]) @ rotation.T)[:, 2].min()
    pose = pin.SE3(rotation, np.array([0.0, 0.0, rng.uniform(-2e-4, 1e-3) - lowest]))
    v = np.concatenate([rng.uniform(-1.0, 1.0, 3), rng.uniform(-7.0, 7.0, 3)])
    return robot, pin.SE3ToXYZQUAT(pose), v


@pytest.mark.long
@pytest.mark.parametrize("model", SELECTION_MODELS)
def test_no_drop_gains_energy(tmp_path: Path, model: str) -> None:
    """The tolerance is the energy that raises a corner out of the ground at a speed of RECOVERY."""
    rng = np.random.default_rng(5)
    for _ in range(DROPS):
        robot, q, v = thrown(tmp_path, rng)
        added, sim = gain(robot, model, q, v)
        impulse = sim.contact.impulse[0]
        assert added <= RECOVERY * impulse[2] + 1e-9
        assert impulse[2] >= 0.0
        assert np.hypot(*impulse[:2]) <= robot.soles[0].friction_static * impulse[2] * (1.0 + 1e-9)


def standing(robot: Robot) -> tuple[Dynamics, Exact]:
    """Return the dynamics of a body over flat ground, and its contact model ``exact``."""
    dynamics = Dynamics(robot, Ground.flat(), H)
    model = make_contact_model("exact", dynamics.projection, H)
    assert isinstance(model, Exact)
    return dynamics, model


def after(p: Projection, impulse: Array) -> Array:
    """Return the velocities (K, 6) of the feet after the step."""
    velocity: Array = (p.w_free + p.G @ impulse.ravel()).reshape(-1, 6)
    return velocity


def random_inertia(rng: np.random.Generator, mass: float) -> list[float]:
    inertia: list[float] = (mass * (0.003 + rng.uniform(0.03, 0.1, 3) ** 2)).tolist()
    return inertia


def test_no_set_is_sound_that_gains_more_than_lifting_its_foot_takes() -> None:
    """A set may clamp a vertex high above the ground, so its equations may require any speed.

    The test checks all sets of random states.
    """
    rng = np.random.default_rng(0)
    sound = refused = 0
    for _ in range(30):
        n = int(rng.integers(3, 8))
        ring = np.array(regular_polygon(n, rng.uniform(0.05, 0.2))) * [1.0, rng.uniform(0.4, 1.0)]
        mass, com = rng.uniform(0.5, 8.0), [*(0.01 * rng.normal(size=2)), rng.uniform(0.02, 0.3)]
        robot = rigid_body([ring], mass, com, random_inertia(rng, mass), rng.uniform(0.3, 2.0))
        dynamics, model = standing(robot)
        tilt = pin.exp3(np.array([*rng.uniform(-0.4, 0.4, 2), 0.0]))
        lowest = (ring @ tilt[:, :2].T)[:, 2].min()
        q = pin.SE3ToXYZQUAT(pin.SE3(tilt, np.array([0.0, 0.0, rng.uniform(-2e-4, 5e-4) - lowest])))
        v = np.concatenate([rng.uniform(-1.0, 1.0, 3), rng.uniform(-8.0, 8.0, 3)])
        p, s = dynamics.project(q, v, NOTHING), model.arrays
        call(begin, p, s)
        for mode in range(1, n_modes(n)):
            s.trial.mode[0] = mode
            call(solve, p, s)
            f = s.trial.impulse[0]
            # Kinetic energy after the step less that without contact.
            w = after(p, f)[0]
            gained = 0.5 * f @ (p.w_free + w)
            if call(is_valid_solution, p, s):
                sound += 1
                assert gained <= RECOVERY * max(f[2], 0.0) + 1e-8 * np.abs(f) @ (np.abs(p.w_free) + np.abs(w))
            else:
                refused += 1
    assert sound > 10
    assert refused > 100


def friction_error(p: Projection, model: Exact, k: int, vertices: Array, mu: float) -> float:
    """Return the deviation of the friction of foot ``k`` from Coulomb's law at each vertex, as a fraction of mu f_z.

    Torsion counts over the arm of the farthest vertex.
    """
    r = model.result
    held = vertices[[i for i in range(len(vertices)) if int(r.clamped[k]) >> i & 1]]
    shares = vertex_shares(held, r.cop[k : k + 1])[0]
    at = shares @ held
    c = shares @ np.linalg.norm(held - at, axis=1)
    arms = (held - at) / c if c > 0.0 else 0.0 * held
    w, f = after(p, r.impulse)[k], r.impulse[k]
    V = np.array([w[0] - w[5] * at[1], w[1] + w[5] * at[0], c * w[5]])
    torsion = f[5] - (at[0] * f[1] - at[1] * f[0])
    wanted = -mu * f[2] * slips(shares[None], arms[None], V[None])[1][0] @ V
    farthest = np.linalg.norm(held - at, axis=1).max()
    missed = [f[0] - wanted[0], f[1] - wanted[1], (torsion - c * wanted[2]) / farthest if farthest > 0.0 else 0.0]
    return float(np.abs(missed).max() / (mu * f[2]))


@pytest.mark.long
def test_feet_that_turn_about_a_vertex_have_the_friction_of_all_their_vertices() -> None:
    """The iteration of the slip does not converge there, but Newton's method does; also if two soles of a body are
    coupled.
    """
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(300):
        n, two = int(rng.integers(3, 9)), rng.random() < 0.5
        ring = np.array(regular_polygon(n, 0.1)) * [1.0, rng.uniform(0.3, 1.0)]
        soles = [ring * [0.4, 1.0] + [0.1, 0.0], ring * [0.4, 1.0] - [0.1, 0.0]] if two else [ring]
        every = np.concatenate(soles)
        mass, mu = rng.uniform(0.5, 5.0), rng.uniform(0.2, 1.2)
        com = [*(0.3 * every[rng.integers(n)]), rng.uniform(0.02, 0.1)]
        dynamics, model = standing(rigid_body(soles, mass, com, random_inertia(rng, mass), mu))
        about = every[rng.integers(n)] + rng.choice([0.0, 1e-5, 1e-4, 1e-3, 1e-2]) * rng.normal(size=2)
        spin = rng.uniform(-20.0, 20.0)
        v = np.array([spin * about[1], -spin * about[0], 0.0, 0.0, 0.0, spin])
        work = model.arrays.scratch.best_slip
        work[:] = np.nan
        p = dynamics.project(np.eye(7)[6], v, NOTHING)
        result = model.solve(p)
        assert result.unresolved == 0
        found += not np.isnan(work).all()
        for k in np.flatnonzero(result.sliding & (result.impulse[:, 2] > 0.0)).tolist():
            # The slip of a foot may differ by 1e-9 m/s from the slip that belongs to its friction.
            assert friction_error(p, model, k, soles[k], mu) < 1e-5
    assert found > 10, "how often Newton's method was used"


def two_points(rng: np.random.Generator) -> tuple[Robot, float]:
    """Return a body on two points, and how far these are from each other [m]."""
    length, mass = rng.uniform(0.05, 0.3), rng.uniform(0.5, 5.0)
    com = [rng.uniform(-0.3, 0.3) * length, 0.02 * rng.normal(), rng.uniform(0.05, 0.3)]
    points = [np.array([[x * length, 0.0]]) for x in (-0.5, 0.5)]
    return rigid_body(points, mass, com, random_inertia(rng, mass), rng.uniform(0.2, 1.5)), length


def put_down(rng: np.random.Generator, length: float) -> tuple[Array, Array]:
    """Return a state (q, v) in which one point is up to two millimetres above the ground and reaches it in the step."""
    height = 10.0 ** rng.uniform(-5.5, -2.7)
    tilt = pin.utils.rotate("y", -height / length)
    rate = rng.uniform(1.0, 3.0) * height / H / length
    w = tilt.T @ np.array([2.0 * rng.normal(), rate, 2.0 * rng.normal()])
    drift = tilt.T @ np.array([rng.normal(), rng.normal(), -rng.random()]) * rng.choice([0.1, 1.0])
    v = np.concatenate([drift - np.cross(w, [-0.5 * length, 0.0, 0.0]), w])
    return pin.SE3ToXYZQUAT(pin.SE3(tilt, np.array([0.0, 0.0, 0.5 * height]))), v


@pytest.mark.long
def test_two_points_of_a_body_come_to_rest_where_they_would_with_forces_of_their_own() -> None:
    """The distance of the points along the ground changes a little as one is put down, so both cannot be held exactly.

    At rest they move by less than a micrometre, and deviate by less from the result of ncp.
    """
    rng = np.random.default_rng(0)
    rested = 0
    for i in range(1500):
        if i % 50 == 0:
            robot, length = two_points(rng)
            dynamics, exact = standing(robot)
            ncp = make_contact_model("ncp", dynamics.projection, H)
        exact.reset()
        ncp.reset()
        p = dynamics.project(*put_down(rng, length), NOTHING)
        exact.solve(p)
        trial = exact.arrays.trial
        # Feet whose slip direction drifts faster than that of a solution.
        turning = trial.sliding & (exact.arrays.scratch.drift > 1e-9)
        if trial.pointwise[0] or not (trial.converged[0] and turning.any()):
            continue
        rested += 1
        assert exact.result.unresolved == 0
        ncp.solve(p)
        f, w = exact.result.impulse, after(p, exact.result.impulse)
        assert np.hypot(*w[:, :2].T).max() * H < 1e-6
        assert np.abs(w - after(p, ncp.result.impulse))[:, :2].max() * H < 1e-6
        assert (np.hypot(*f[:, :2].T) <= robot.soles[0].friction_dynamic * f[:, 2] * (1.0 + 1e-9)).all()
        assert 0.5 * f.ravel() @ (p.w_free + w.ravel()) <= RECOVERY * f[:, 2].sum()
    assert rested > 5


@pytest.mark.parametrize(("share", "rests"), [(0.99, True), (1.01, False)])
@pytest.mark.parametrize("torsion", [0.0, 1.0])
def test_a_foot_rests_only_with_a_friction_that_its_vertices_can_have(
    share: float, rests: bool, torsion: float
) -> None:
    """Four vertices under an even load hold mu f_z along the ground, or that times their distance about the middle."""
    mu, radius, load = 0.7, 0.1, 2.0
    robot = rigid_body([np.array(regular_polygon(4, radius))], 3.0, [0.0, 0.0, 0.1], [0.01] * 3, mu)
    dynamics, model = standing(robot)
    p, s = dynamics.project(robot.q_nominal, np.zeros(6), NOTHING), model.arrays
    call(begin, p, s)
    s.trial.mode[0] = n_modes(4) - 1
    call(solve, p, s)
    s.trial.sliding[0], s.scratch.drift[0] = True, 1.0
    s.trial.cop[:] = s.trial.cop_ground[:] = s.trial.w_next[:] = 0.0
    friction = share * mu * load
    s.trial.impulse[0] = [(1.0 - torsion) * friction, 0.0, load, 0.0, 0.0, torsion * friction * radius]
    assert call(_is_at_rest, p, s) == rests


def test_two_points_of_a_body_stick_though_that_is_a_contradiction_in_the_last_digits() -> None:
    """They stick at once, without a search for friction, and with forces of the size of the weight."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        length, mass = rng.uniform(0.1, 0.3), rng.uniform(0.5, 5.0)
        com = [rng.uniform(-0.3, 0.3) * length, 0.0, rng.uniform(0.05, 0.2)]
        points = [np.array([[x * length, 0.0]]) for x in (-0.5, 0.5)]
        dynamics, model = standing(rigid_body(points, mass, com, random_inertia(rng, mass), 0.8))
        tilt = pin.utils.rotate("y", rng.uniform(1e-7, 2e-6) / length)
        model.arrays.trial.mode[:] = 1
        p = dynamics.project(pin.SE3ToXYZQUAT(pin.SE3(tilt, np.array([0.0, 0.0, -1e-6]))), np.zeros(6), NOTHING)
        call(begin, p, model.arrays)
        call(solve, p, model.arrays)
        assert not model.arrays.trial.sliding.any()
        assert np.abs(model.arrays.trial.impulse[:, :3]).max() < 2.0 * mass * 9.81 * H


@pytest.mark.long
def test_an_edge_that_is_loaded_at_one_end_turns_about_it() -> None:
    """If the edge does not turn, its CoP is beyond its end. If only the end is clamped, the other end sinks."""
    rng = np.random.default_rng(2)
    turned = 0
    for _ in range(200):
        robot, length = two_points(rng)
        edge = np.array([[0.5 * length, 0.0], [-0.5 * length, 0.0]])
        mass = robot.mass
        mu = robot.soles[0].friction_dynamic
        body = rigid_body([edge], mass, robot.model.inertias[1].lever, random_inertia(rng, mass), mu)
        dynamics, model = standing(body)
        v = np.concatenate([np.zeros(2), [-0.1 * rng.random()], 0.5 * rng.normal(size=3)])
        p = dynamics.project(np.eye(7)[6], v, NOTHING)
        result = model.solve(p)
        assert result.unresolved == 0
        if result.sliding[0] and result.clamped[0] == 3 and result.impulse[0, 2] > 0.0:
            turned += 1
            # The vertex about which it turns has a slip of 1e-4 of the foot's, known to 1e-9 m/s.
            assert friction_error(p, model, 0, edge, mu) < 1e-3
    assert turned > 20


@pytest.mark.long
def test_what_slid_before_finds_an_answer_that_pushes_where_there_is_one() -> None:
    """With large friction below a high mass, the slip of the last step may lead to a pulling force. All edges of random
    states are tested.

    Without a warm start, the solution follows from the force that would make the foot stick.
    """
    rng = np.random.default_rng(3)
    pushes = 0
    for _ in range(150):
        length, mass = rng.uniform(0.05, 0.2), rng.uniform(0.5, 5.0)
        edge = np.array([[0.5 * length, 0.0], [-0.5 * length, 0.0]])
        com = [rng.uniform(-0.4, 0.4) * length, rng.uniform(-0.1, 0.1), rng.uniform(0.1, 0.3)]
        dynamics, model = standing(rigid_body([edge], mass, com, random_inertia(rng, mass), rng.uniform(1.0, 2.0)))
        v = np.concatenate([0.3 * rng.normal(size=2), [-0.3 * rng.random()], rng.normal(size=3)])
        p, s = dynamics.project(np.eye(7)[6], v, NOTHING), model.arrays
        call(begin, p, s)
        s.trial.mode[0] = 3
        s.result.sliding[0] = True
        call(solve, p, s)
        if not (s.trial.sliding[0] and s.trial.converged[0] and s.trial.impulse[0, 2] > 0.0):
            continue
        for angle in np.linspace(0.0, 2.0 * np.pi, 8):
            s.state.slip[0, :2] = np.cos(angle), np.sin(angle)
            call(solve, p, s)
            assert s.trial.impulse[0, 2] > 0.0
            pushes += 1
    assert pushes > 200
