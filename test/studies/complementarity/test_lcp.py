"""Lemke's method compared with enumeration and theory; a failure is never reported as a solution."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refusal

from bipedsim.numerics import Array
from bipedsim.numerics.lcp.basis import LcpWork, judge
from bipedsim.numerics.lcp.lemke import LIMIT, solve_work
from bipedsim_studies.complementarity.enumeration import all_solutions
from bipedsim_studies.complementarity.lcp import LcpResult, natural_residual, scaled_residual, solve_lcp


def is_among(z: Array, solutions: Array) -> bool:
    return any(np.abs(z - other).max() <= 1e-7 * (1.0 + np.abs(other).max()) for other in solutions)


def p_matrix(rng: np.random.Generator, size: int) -> Array:
    """Return a positive definite matrix that is not symmetric."""
    root, skew = rng.normal(size=(2, size, size))
    return root @ root.T + (skew - skew.T) + 0.1 * np.eye(size)


def test_thousand_feasible_problems_with_dependent_constraints() -> None:
    """A = G G^T of rank at most six, b in its range plus slack: every one has a solution."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(1000):
        size, rank = int(rng.integers(1, 17)), int(rng.integers(1, 7))
        G = rng.normal(size=(size, rank))
        if size > 1:
            G[-1] = G[0]
        mass = 10.0 ** rng.uniform(-3, 3)
        b = G @ rng.normal(size=rank) * 9.81 + rng.uniform(0.0, 1.0, size) * (rng.random(size) < 0.5)
        result = solve_lcp(G @ G.T / mass, b)
        assert result.status == "solved"
        assert result.residual == scaled_residual(G @ G.T / mass, b, result.z)
        assert np.array_equal(result.w, G @ G.T / mass @ result.z + b)
        worst = max(worst, result.residual, natural_residual(G @ G.T / mass, b, result.z))
    assert worst < 1e-9


def test_p_matrices_have_one_solution_and_lemke_finds_it() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        size = int(rng.integers(1, 8))
        M, q = p_matrix(rng, size), rng.normal(size=size)
        found = all_solutions(M, q)
        assert found.count == 1
        assert not found.continuum
        result = solve_lcp(M, q)
        assert result.status == "solved"
        np.testing.assert_allclose(result.z, found.z[0], rtol=1e-7, atol=1e-9)


def test_semidefinite_matrices_are_solved_or_proved_infeasible() -> None:
    """Copositive-plus: a ray and an empty enumeration are the same statement."""
    rng = np.random.default_rng(5)
    rays = families = 0
    for _ in range(300):
        size = int(rng.integers(1, 8))
        root = rng.normal(size=(size, int(rng.integers(1, size + 1))))
        M, q = root @ root.T, rng.normal(size=size)
        found, result = all_solutions(M, q), solve_lcp(M, q)
        assert result.status == ("solved" if found.count else "ray")
        rays += result.status == "ray"
        for z in found.z:
            # One of M z and w for all solutions, however many there are.
            np.testing.assert_allclose(M @ z, M @ result.z, atol=1e-7 * (1.0 + np.abs(M @ z).max()))
        families += found.continuum
    assert rays > 20
    M = np.ones((3, 3))
    assert all_solutions(M, -np.ones(3)).continuum
    assert solve_lcp(M, -np.ones(3)).status == "solved"


def test_general_matrices_never_get_a_wrong_answer() -> None:
    rng = np.random.default_rng(6)
    counts = {0: 0, 1: 0, 2: 0}
    for _ in range(400):
        size = int(rng.integers(1, 7))
        M, q = rng.normal(size=(size, size)), rng.normal(size=size)
        found, result = all_solutions(M, q), solve_lcp(M, q)
        counts[min(found.count, 2)] += 1
        for z in found.z:
            assert scaled_residual(M, q, z) < 1e-9
        if result.status == "solved":
            assert is_among(result.z, found.z)
        else:
            assert result.status == "ray"
            assert np.isnan(result.z).all()
    assert min(counts.values()) > 30


@pytest.mark.parametrize(
    ("M", "q", "solutions"),
    [
        ([[-1.0]], [-1.0], []),
        ([[-1.0]], [1.0], [[0.0], [1.0]]),
        ([[0.0]], [1.0], [[0.0]]),
        ([[2.0, 1.0], [0.0, 2.0]], [-1.0, -2.0], [[0.0, 1.0]]),
        ([[-1.0, 0.0], [0.0, -1.0]], [1.0, 1.0], [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),
    ],
)
def test_problems_solved_by_hand(M: list[list[float]], q: list[float], solutions: list[list[float]]) -> None:
    found = all_solutions(M, q)
    assert not found.continuum
    assert found.count == len(solutions)
    for row, wanted in zip(sorted(found.z.tolist()), solutions, strict=True):
        assert row == pytest.approx(wanted)
    result = solve_lcp(M, q)
    assert result.status == ("solved" if solutions else "ray")


def test_a_problem_on_which_pivoting_without_a_rule_cycles() -> None:
    """Kostreva 1979: Lemke's method cycles with the rule of the lowest index."""
    M, q = [[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]], [-1.0, -1.0, -1.0]
    result = solve_lcp(M, q)
    assert result.status == "solved"
    np.testing.assert_allclose(result.z, np.full(3, 1.0 / 3.0), rtol=1e-14)


def test_the_residual_has_no_unit() -> None:
    rng = np.random.default_rng(7)
    M, q = p_matrix(rng, 6), rng.normal(size=6)
    z = solve_lcp(M, q).z + 1e-4
    rows, columns, unit = 2.0 ** rng.integers(-20, 20, 6), 2.0 ** rng.integers(-20, 20, 6), 2.0**-7
    same = scaled_residual(rows[:, None] * M * columns, rows * q * unit, z / columns * unit)
    assert 0.2 < same / scaled_residual(M, q, z) < 5.0
    result = solve_lcp(rows[:, None] * M * columns, rows * q * unit)
    np.testing.assert_allclose(result.z * columns / unit + 1e-4, z, rtol=1e-9)


def test_a_wrong_basis_is_never_reported_as_solved() -> None:
    """The residual decides: a first estimate with z = (1/2, 0) and w = (0, -1/2) is rejected. No pivot is allowed."""
    work = LcpWork.of_size(2)
    work.M[...], work.q[...], work.basis[...] = [[2.0, 1.0], [1.0, 2.0]], [-1.0, -1.0], [True, False]
    assert judge(work, 2) == 0.5
    assert solve_work(work, 0, True) == LIMIT
    assert work.residual[0] == np.inf


def test_the_limit_of_pivots_is_reported() -> None:
    result = solve_lcp(np.eye(5), -np.ones(5), pivots=1)
    assert isinstance(result, LcpResult)
    assert result.status == "limit"


def test_errors_name_what_is_wrong() -> None:
    with refusal(place="shapes of M and q"):
        solve_lcp(np.eye(2), np.ones(3))
    with refusal(place="M[0, 1]", value=np.nan):
        solve_lcp([[1.0, np.nan], [0.0, 1.0]], [1.0, 1.0])
    with refusal(place="n", value=17):
        all_solutions(np.eye(17), np.ones(17))
    with refusal(place="shape of probes"):
        all_solutions(np.eye(2), np.ones(2), probes=np.ones((1, 3)))


def test_an_empty_problem_is_solved() -> None:
    assert solve_lcp(np.zeros((0, 0)), np.zeros(0)).status == "solved"
