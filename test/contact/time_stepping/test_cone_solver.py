"""Both solvers of point contacts on random states, compared with the laws and third-party solvers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from reference_contact import Step
from reference_vertices import onto_cone, solve_vertices

from bipedsim.contact.models import make_contact_model
from bipedsim.contact.time_stepping.cone_admm import onto_cone as compiled_onto_cone
from bipedsim.contact.time_stepping.cone_newton import POLISHED_PART, begin_with_guess
from bipedsim.contact.time_stepping.cone_problem import LEAVES, SLIPS, STICKS, ConeProblem, clear_open_points
from bipedsim.contact.time_stepping.cone_solver import PROXIMAL, solve_cones
from bipedsim.contact.time_stepping.ncp import Ncp
from bipedsim.dynamics.step import Dynamics
from bipedsim.ground.ground import Ground
from bipedsim.model import load_robot
from bipedsim.numerics import call

H = 1e-3
TOLERANCE = 1e-8


def random_steps(name: str, count: int) -> list[Step]:
    """Return steps from random states near the nominal one, feet near the ground, thrown about."""
    robot = load_robot(name)
    dynamics = Dynamics(robot, Ground.flat(), H)
    rng = np.random.default_rng(4)
    steps = []
    for _ in range(count):
        turn = np.concatenate([[0.0, 0.0, rng.uniform(-2e-4, 1e-4)], 1e-3 * rng.normal(size=robot.model.nv - 3)])
        q = pin.integrate(robot.model, robot.q_nominal, turn)
        v = rng.choice([0.05, 0.5]) * rng.normal(size=robot.model.nv)
        v[2] -= rng.choice([0.0, 0.5])
        projection = copy.deepcopy(dynamics.project(q, v, rng.normal(size=robot.nu)))
        steps.append(Step.fresh(projection, robot.soles, H))
    return steps


def point_velocities(step: Step, impulse: np.ndarray, k: int) -> np.ndarray:
    """Return the velocities (N, 3) of the vertices of foot ``k`` beyond the wanted ones, under ``impulse`` (K, 6)."""
    w = (step.projection.w_free + step.projection.G @ impulse.ravel())[6 * k : 6 * k + 6]
    return w[:3] + np.cross(w[3:], step.arms(k)) - step.wanted(k)


@pytest.fixture(scope="module", params=["biped14", "talos"])
def random_solved(request: pytest.FixtureRequest) -> tuple[list[Step], list[Any]]:
    """Return random steps and their solutions by the model without a warm start; mu is mu_s = mu_d."""
    steps = random_steps(request.param, 150)
    solved = []
    for step in steps:
        step.projection.mu_dynamic[:] = step.projection.mu_static
        model = make_contact_model("ncp", step.projection, H)
        solved.append((copy.deepcopy(model.solve(step.projection)), model.residual))  # type: ignore[attr-defined]
    return steps, solved


def test_random_steps_obey_signorini_and_coulomb(random_solved: tuple[list[Step], list[Any]]) -> None:
    """The laws themselves, vertex by vertex; among all friction of the cone theirs dissipates most."""
    sliding = 0
    for step, (result, residual) in zip(*random_solved, strict=True):
        assert residual <= TOLERANCE
        assert result.unresolved == 0
        for k in range(2):
            f = H * result.vertex_forces[k]
            u = point_velocities(step, result.impulse, k)
            mu = step.projection.mu_static[k]
            largest = np.abs(f).max() + 1e-12
            assert (f[:, 2] >= -1e-7 * largest).all()
            assert (u[:, 2] >= -1e-7).all()
            assert (np.abs(f[:, 2] * u[:, 2]) <= 1e-6 * largest).all()
            friction = np.linalg.norm(f[:, :2], axis=1)
            slip = np.linalg.norm(u[:, :2], axis=1)
            assert (friction <= mu * f[:, 2] + 1e-7 * largest).all()
            power = np.einsum("ij,ij->i", f[:, :2], u[:, :2])
            np.testing.assert_allclose(power, -mu * f[:, 2] * slip, atol=1e-6 * largest)
            sliding += int(((slip > 1e-3) & (f[:, 2] > 1e-3 * largest)).sum())
    assert sliding > 50


def test_parts_of_a_step_have_the_answer_of_a_whole_one(random_solved: tuple[list[Step], list[Any]]) -> None:
    """Newton steps that end early, from an estimate, are cheaper.

    The velocities are the same unless friction has several solutions.
    """
    several = 0
    for step, (result, _) in zip(*random_solved, strict=True):
        p = step.projection
        model = make_contact_model("ncp", p, H)
        p.parted[0] = True
        impulse = model.solve(p).impulse
        p.parted[0] = False
        assert model.residual <= TOLERANCE  # type: ignore[attr-defined]
        several += bool(np.abs(p.G @ (impulse - result.impulse).ravel()).max() > 1e-7)
    assert several <= 0.05 * len(random_solved[0])


@pytest.mark.long
def test_random_steps_agree_with_admm_in_numpy(random_solved: tuple[list[Step], list[Any]]) -> None:
    """The velocities are the same. With Coulomb friction a few steps have several solutions; then the other one must be
    valid as well.

    The reference applies De Saxcé's correction undamped. It cycles in at least a third of these steps.
    """
    steps, solved = random_solved
    judged = solve_vertices(steps, np.array([step.projection.mu_static for step in steps]))
    sharp = np.flatnonzero(judged.residual <= 1e-9)
    assert len(sharp) >= 75
    several = 0
    for i in sharp:
        p, wrench = steps[i].projection, judged.wrench[i]
        if np.abs(p.G @ (solved[i][0].impulse - wrench).ravel()).max() < 1e-6:
            continue
        several += 1
        model = make_contact_model("ncp", p, H)
        assert isinstance(model, Ncp)
        model.arrays.friction.warm[...] = judged.force[i].reshape(2, -1, 3)
        again = model.solve(p).impulse
        assert model.residual <= TOLERANCE
        assert np.abs(p.G @ (again - wrench).ravel()).max() < 1e-6
    assert several <= 0.1 * len(sharp)


def test_pinocchio_calls_the_same_impulses_a_solution() -> None:
    """Pinocchio's ADMM on the vertices of biped14 without a warm start: a third-party solver with the same velocities.

    It converges in most of these steps, and in a few of them to another solution.
    """
    solver_type = getattr(pin, "ADMMConstraintSolver", None)
    if solver_type is None:
        pytest.skip("this pinocchio has no ADMM solver in Python")
    robot = load_robot("biped14")
    free = pin.Model(robot.model)
    differences = []
    for step in random_steps("biped14", 60):
        p = step.projection
        p.mu_dynamic[:] = p.mu_static
        impulse = make_contact_model("ncp", p, H).solve(p).impulse.copy()
        J, g, mu = [], [], []
        for k in range(2):
            for arm, wanted in zip(step.arms(k), step.wanted(k), strict=True):
                row = np.zeros((3, 12))
                row[:, 6 * k : 6 * k + 3] = np.eye(3)
                row[:, 6 * k + 3 : 6 * k + 6] = -pin.skew(arm)
                J.append(row)
                g.append(row @ p.w_free - wanted)
                mu.append(p.mu_static[k])
        rows = np.vstack(J)
        models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for m in mu:
            contact = pin.PointContactConstraintModel(free, 1)
            contact.setFriction(m)
            models.append(pin.ConstraintModel(contact))
            datas.append(models[-1].createData())
        settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
        settings.max_iterations = 5000
        settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = 1e-10
        settings.relative_feasibility_tol = settings.relative_complementarity_tol = 1e-10
        delassus = pin.DelassusOperatorDense(rows @ p.G @ rows.T)
        solver_type(len(rows)).solve(delassus, np.concatenate(g), models, datas, settings, result)
        theirs = rows.T @ np.asarray(result.retrieveConstraintImpulses())
        if result.converged:
            differences.append(np.abs(p.G @ (theirs - impulse.ravel())).max())
    assert len(differences) >= 50
    assert np.quantile(differences, 0.9) < 1e-6


def test_cones_of_the_two_solvers_are_the_same() -> None:
    """The compiled projection on the cone against the one in NumPy."""
    rng = np.random.default_rng(0)
    for mu in (0.0, 0.3, 1.5):
        points = rng.normal(size=(200, 3))
        # Along the axis, where the cone of mu = 0 has its only line.
        points[:10, :2] = 0.0
        expected = onto_cone(points, np.full(200, mu))
        for point, wanted in zip(points, expected, strict=True):
            compiled_onto_cone(point, mu)
            np.testing.assert_allclose(point, wanted, atol=1e-14)


def two_points(rng: np.random.Generator, apart: float) -> tuple[ConeProblem, np.ndarray, np.ndarray]:
    """Return two points of one rigid body as separate feet, with G and J.

    Their required velocities along the line between them differ by ``apart`` [m/s], so they cannot both stick.
    """
    arms = rng.uniform(-0.15, 0.15, (2, 3))
    mass, inertia = rng.uniform(0.5, 10.0), rng.uniform(0.001, 0.1, 3)
    inverse = np.diag(np.concatenate([np.full(3, 1.0 / mass), 1.0 / inertia]))
    J = np.vstack([np.hstack([np.eye(3), -pin.skew(arm)]) for arm in arms])
    q = ConeProblem.of_feet(2, 2, TOLERANCE, 5000)
    q.points[0] = 2
    q.foot[:] = 0, 1
    q.arm[:] = arms
    q.mu[:] = rng.uniform(0.3, 1.5)
    q.mobility[:] = np.trace((J @ inverse @ J.T).reshape(2, 3, 2, 3)[[0, 1], :, [0, 1]], axis1=1, axis2=2) / 3.0
    along = (arms[1] - arms[0]) / np.linalg.norm(arms[1] - arms[0])
    # It rests under its weight, which both points share.
    w = np.concatenate([[0.0, 0.0, -9.81 * H], 1e-3 * rng.normal(size=3)])
    q.g[:] = (J @ w).reshape(2, 3) + np.outer([0.0, apart], along * [1.0, 1.0, 0.0])
    q.scale[0] = 100.0 * H
    return q, np.tile(inverse, (2, 2)), J @ inverse @ J.T


@pytest.mark.long
def test_points_that_cannot_all_stick_strain_until_one_slips() -> None:
    """Two soles of one body must return to positions a nanometre farther apart. The reference is Coulomb's law.

    Earlier versions of Newton's method and ADMM stopped at the tolerance in some of these problems.
    """
    rng = np.random.default_rng(0)
    strained = 0
    for _ in range(300):
        q, G, D = two_points(rng, rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-8.0, -7.0))
        assert call(solve_cones, G, q)
        u = (D @ q.f.ravel()).reshape(2, 3) + q.g
        limit = q.mu * q.f[:, 2]
        friction, slip = np.linalg.norm(q.f[:, :2], axis=1), np.linalg.norm(u[:, :2], axis=1)
        assert (q.f[:, 2] >= 0.0).all()
        assert (u[:, 2] >= -2.0 * TOLERANCE * q.scale[0]).all()
        assert (friction <= limit * (1.0 + 1e-12)).all()
        # A slipping point has its full friction, opposite to the slip.
        slips = slip > 2.0 * TOLERANCE * q.scale[0]
        np.testing.assert_allclose(friction[slips], limit[slips], rtol=1e-6)
        strained += int((slips & (limit > 0.0)).sum() == 1)
    assert strained > 50


def test_a_right_guess_is_the_answer_and_a_wrong_one_does_no_harm() -> None:
    """Two bodies on a point each, below their centres: their impulses are closed forms."""
    rng = np.random.default_rng(2)
    did = set()
    for _ in range(60):
        q = ConeProblem.of_feet(2, 2, TOLERANCE, 5000)
        mass, q.points[0], q.foot[:], q.enough[0], q.scale[0] = rng.uniform(0.5, 10.0, 2), 2, (0, 1), POLISHED_PART, 0.1
        q.mu[:], q.mobility[:] = rng.uniform(0.3, 1.5, 2), 1.0 / mass
        q.g[:] = np.column_stack([rng.normal(size=(2, 2)) * rng.choice([0.01, 1.0], (2, 1)), rng.normal(size=2)])
        load = mass * np.maximum(-q.g[:, 2], 0.0)
        speed = np.linalg.norm(q.g[:, :2], axis=1)
        # The friction that stops the slip, or the full friction of the load.
        friction = np.minimum(mass * speed, q.mu * load)
        expected = np.column_stack([-q.g[:, :2] * (friction / speed)[:, None], load])
        right = np.where(load == 0.0, LEAVES, np.where(mass * speed > q.mu * load, SLIPS, STICKS))
        G = np.diag(np.repeat(1.0 / mass, 6))
        q.guess[:] = right
        call(begin_with_guess, G, q, PROXIMAL)
        np.testing.assert_allclose(q.f, expected, rtol=1e-11, atol=1e-11)
        q.guess[:] = np.where(right == LEAVES, STICKS, LEAVES)
        q.f[:] = expected
        call(begin_with_guess, G, q, PROXIMAL)
        np.testing.assert_array_equal(q.f, expected)
        did |= set(right.tolist())
    assert did == {LEAVES, STICKS, SLIPS}


def test_a_point_that_leaves_carries_nothing() -> None:
    """The force is exactly zero. Newton's method used to leave 1e-50 N or less, so that a distant foot pushed."""
    rng = np.random.default_rng(1)
    left = 0
    for _ in range(50):
        q, G, D = two_points(rng, 0.0)
        q.g[1, 2] = 0.5
        q.f[1] = [0.0, 0.0, 1.0]
        assert call(solve_cones, G, q)
        u = (D @ q.f.ravel()).reshape(2, 3) + q.g
        if u[1, 2] > 1e-3:
            left += 1
            assert (q.f[1] == 0.0).all()
    assert left > 25


@pytest.mark.parametrize("enough", [0.0, POLISHED_PART])
def test_what_a_solve_that_ends_early_leaves_on_a_point_that_leaves_is_cleared(enough: float) -> None:
    """This is the limit: a point that separates no faster than its own impulse moves it has a valid impulse."""
    q = ConeProblem.of_feet(2, 3, TOLERANCE, 100)
    q.points[0], q.enough[0], q.scale[0], q.mobility[:] = 3, enough, 0.5, 2.0
    # Without a reserve in the residual, only forces that change a speed by less than rounding are cleared.
    left = 0.1 * max(enough, float(np.finfo(np.float64).eps))
    q.f[:, 2] = [left, left, 1e-3]
    q.u[:, 2] = [1e-3, 0.0, 1e-3]
    before = q.f.copy()
    call(clear_open_points, q)
    assert (q.f[0] == 0.0).all()
    np.testing.assert_array_equal(q.f[1:], before[1:])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_a_problem_takes_half_of_the_budget_at_most(share: float) -> None:
    """A solve that is cut short returns the best result so far. Any other solve is unchanged to the bit."""
    rng = np.random.default_rng(1)
    cut = 0
    for _ in range(30):
        q, G, _ = two_points(rng, 10.0 ** rng.uniform(-8.0, -7.0))
        begun = q.f.copy()
        before = int(q.budget[0])
        assert call(solve_cones, G, q)
        took, alone = before - int(q.budget[0]), q.f.copy()
        assert took > 0
        given = int(share * 2.0 * took) + 2
        q.budget[0], q.f[:] = given, begun
        solved = call(solve_cones, G, q)
        assert np.isfinite(q.f).all()
        assert int(q.budget[0]) >= given // 2
        if share == 1.0:
            assert solved
            np.testing.assert_array_equal(q.f, alone)
        cut += not solved
        assert solved == (q.residual[0] <= TOLERANCE)
    assert (cut > 0) == (share < 1.0)
