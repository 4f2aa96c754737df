"""Both methods of optimal control against closed forms of linear systems, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad_vec
from scipy.linalg import expm

from bipedsim_studies.optimal import NoOptimumError, OptimalTrajectory, Problem, collocated, extremal

T = 1.5
START, GOAL = np.array([0.2, -0.1]), np.array([1.0, 0.3])


def linear(A: np.ndarray, goal: np.ndarray = GOAL, duration: float = T) -> Problem:
    """Return the way of x' = A x + (0, u) from one point to another."""
    return Problem(
        2,
        1,
        4,
        duration,
        lambda x, u: A @ x + np.vstack([0.0 * u, u]),
        lambda first, last: np.concatenate([first - START, last - goal]),
    )


def straight(problem: Problem) -> OptimalTrajectory:
    """Return an initial estimate that satisfies only the end conditions."""
    t = np.linspace(0.0, problem.duration, 5)
    x = START[:, None] + (GOAL - START)[:, None] * t / problem.duration
    return OptimalTrajectory(t, x, np.zeros((problem.controls, 5)), 0.0)


def least(A: np.ndarray, goal: np.ndarray = GOAL, duration: float = T, start: np.ndarray = START) -> float:
    """Return the least cost by the Gramian of the system."""
    B = np.array([[0.0], [1.0]])
    gramian = quad_vec(lambda s: expm(A * s) @ B @ B.T @ expm(A * s).T, 0.0, duration)[0]
    lack = goal - expm(A * duration) @ start
    return float(0.5 * lack @ np.linalg.solve(gramian, lack))


@pytest.mark.ci
@pytest.mark.parametrize("pull", [0.0, 4.0, -9.0], ids=["double integrator", "falls", "swings"])
def test_linear_systems_cost_what_their_gramian_says(pull: float) -> None:
    problem = linear(np.array([[0.0, 1.0], [pull, 0.0]]))
    expected = least(np.array([[0.0, 1.0], [pull, 0.0]]))
    direct = collocated(problem, straight(problem), 24)
    assert direct.cost == pytest.approx(expected, rel=1e-4)
    best = extremal(problem, direct)
    assert best.cost == pytest.approx(expected, rel=1e-6)
    assert_allclose(best.x[:, [0, -1]].T, [START, GOAL], atol=1e-8)
    assert np.ptp(best.hamiltonian) < 1e-6 * np.abs(best.hamiltonian).max()


def test_a_cart_from_rest_to_rest_has_the_torque_of_the_books() -> None:
    """u = 6 d (1 - 2 t / T) / T^2 at the cost 6 d^2 / T^3."""
    problem = Problem(
        2,
        1,
        4,
        T,
        lambda x, u: np.vstack([x[1:], u]),
        lambda first, last: np.concatenate([first, last - np.array([2.0, 0.0])]),
    )
    guess = OptimalTrajectory(np.array([0.0, T]), np.array([[0.0, 2.0], [1.0, 1.0]]), np.zeros((1, 2)), 0.0)
    direct = collocated(problem, guess, 12)
    # The programme ends where the cost, which is flat there, changes by less than 1e-10.
    for found, off in ((direct, 1e-4), (extremal(problem, direct), 1e-8)):
        assert found.cost == pytest.approx(24.0 / T**3, rel=1e-8)
        assert_allclose(found.u[0], 12.0 * (1.0 - 2.0 * found.t / T) / T**2, atol=off)


def test_multipliers_are_prices() -> None:
    """H is the cost of an additional second, and lambda the cost of a smaller error at start and goal."""
    A = np.array([[0.0, 1.0], [4.0, 0.0]])
    problem = linear(A)
    best = extremal(problem, collocated(problem, straight(problem), 16))
    h = 1e-4
    by_time = (least(A, duration=T + h) - least(A, duration=T - h)) / (2.0 * h)
    assert best.hamiltonian.mean() == pytest.approx(by_time, rel=1e-5)
    for k in range(2):
        side = h * np.eye(2)[k]
        # g = x(T) - goal: a goal further on is a g that is less by as much.
        by_goal = (least(A, GOAL + side) - least(A, GOAL - side)) / (2.0 * h)
        assert best.multipliers[2 + k] == pytest.approx(-by_goal, rel=1e-5)
        by_start = (least(A, start=START + side) - least(A, start=START - side)) / (2.0 * h)
        assert best.multipliers[k] == pytest.approx(-by_start, rel=1e-5)


def test_slopes_are_those_of_differences() -> None:
    problem = Problem(
        2,
        2,
        2,
        1.0,
        lambda x, u: np.vstack([np.sin(x[0]) * x[1] + u[0], x[0] ** 2 * u[1]]),
        lambda first, last: np.array([first[0] * last[1], np.cos(last[0])]),
    )
    rng = np.random.default_rng(1)
    x, u = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    A, B = problem.slopes(x, u)
    F, L = problem.end_slopes(x[:, 0], x[:, 1])
    h = 1e-6
    for j in range(2):
        side = h * np.eye(2)[:, [j]]
        assert_allclose(A[:, j], (problem.flow(x + side, u) - problem.flow(x - side, u)) / (2 * h), atol=1e-8)
        assert_allclose(B[:, j], (problem.flow(x, u + side) - problem.flow(x, u - side)) / (2 * h), atol=1e-8)
        s, (a, b) = side[:, 0], x[:, :2].T
        assert_allclose(F[:, j], (problem.ends(a + s, b) - problem.ends(a - s, b)) / (2 * h), atol=1e-8)
        assert_allclose(L[:, j], (problem.ends(a, b + s) - problem.ends(a, b - s)) / (2 * h), atol=1e-8)


def test_ends_that_no_motion_has_are_an_error() -> None:
    problem = Problem(
        2,
        1,
        5,
        T,
        lambda x, u: np.vstack([x[1:], u]),
        lambda first, last: np.concatenate([first, last, last[:1] - 1.0]),
    )
    with pytest.raises(NoOptimumError):
        collocated(problem, straight(problem), 8)
