"""The compiled Lemke method on problems of contact: dependent rows, hard cases, warm starts, the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bipedsim.numerics import Array, call
from bipedsim.numerics.lcp.basis import LcpWork
from bipedsim.numerics.lcp.directions import pyramid
from bipedsim.numerics.lcp.lemke import SOLVED, solve_work
from bipedsim_studies.complementarity.enumeration import all_solutions
from bipedsim_studies.complementarity.lcp import natural_residual, scaled_residual, solve_lcp

Problem = tuple[Array, Array]

HARD = Path(__file__).parent / "hard_lcps.npz"


def foot_problem(rng: np.random.Generator, *, feet: int, vertices: int, sides: int, planar: bool) -> Problem:
    """Return the problem of one step of ``feet`` on random joints, with redundant vertices.

    Feet of a planar robot do not leave their plane, which gives zero rows and columns. Sometimes two feet are
    identical.
    """
    nv = int(rng.integers(3, 20))
    root = rng.normal(size=(nv, nv))
    mass = root @ root.T + 10.0 ** rng.uniform(-4.0, 0.0) * np.eye(nv)
    J = rng.normal(size=(6 * feet, nv))
    if planar:
        for row in (1, 3, 5):
            J[row::6] = 0.0
    if feet == 2 and rng.random() < 0.3:
        J[6:] = J[:6]
    rows = []
    for foot in range(feet):
        for angle in 2.0 * np.pi * np.arange(vertices) / vertices:
            x, y = 0.1 * np.cos(angle), 0.05 * np.sin(angle)
            at = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, -y], [0.0, 1.0, 0.0, 0.0, 0.0, x], [0.0, 0.0, 1.0, y, -x, 0.0]])
            rows.append(at @ J[6 * foot : 6 * foot + 6])
    count = len(rows)
    along = np.vstack([[row[2] for row in rows], *(pyramid(sides) @ row[:2] for row in rows)])
    slips = count * (sides + 1)
    M, q = np.zeros((slips + count, slips + count)), np.zeros(slips + count)
    M[:slips, :slips] = along @ np.linalg.solve(mass, along.T)
    ones = np.kron(np.eye(count), np.ones((sides, 1)))
    M[count:slips, slips:] = ones
    M[slips:, :count] = np.diag(rng.uniform(0.0, 1.2, count))
    M[slips:, count:slips] = -ones.T
    q[:slips] = along @ rng.normal(size=nv) * 10.0 ** rng.uniform(-4.0, 1.0)
    q[:count] += rng.uniform(0.0, 1.0, count) * (rng.random(count) < 0.3)
    return M, q


def random_problem(rng: np.random.Generator) -> Problem:
    return foot_problem(
        rng,
        feet=int(rng.integers(1, 3)),
        vertices=int(rng.choice([1, 2, 3, 4, 4, 6])),
        sides=int(rng.choice([4, 4, 6, 8])),
        planar=bool(rng.random() < 0.3),
    )


def worked(M: Array, q: Array, work: LcpWork | None = None, basis: Array | None = None) -> LcpWork:
    """Solve in a work space of exactly this size, from ``basis`` if it is given."""
    work = work or LcpWork.of_size(q.size)
    work.M[...], work.q[...] = M, q
    if basis is not None:
        work.basis[...] = basis
    assert call(solve_work, work, 50 + 20 * q.size, basis is not None) == SOLVED
    return work


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_problems_of_feet_with_dependent_vertices_are_solved(count: int) -> None:
    rng = np.random.default_rng(21)
    worst = 0.0
    for _ in range(count):
        M, q = random_problem(rng)
        result = solve_lcp(M, q)
        assert result.status == "solved"
        assert result.z.min() >= -1e-9 * np.abs(result.z).max()
        worst = max(worst, result.residual, natural_residual(M, q, result.z) / max(np.abs(q).max(), 1e-300))
    assert worst < 1e-9


def hard_cases() -> list[tuple[str, Problem]]:
    with np.load(HARD) as data:
        names = sorted({name.split(".")[0] for name in data.files})
        return [(name, (data[f"{name}.M"], data[f"{name}.q"])) for name in names]


@pytest.mark.long
@pytest.mark.parametrize(("name", "problem"), hard_cases(), ids=[name for name, _ in hard_cases()])
def test_hard_cases_of_a_random_search(name: str, problem: Problem) -> None:
    """Each case made some version of the method fail: by rounding in degenerate rows, by a ray, or by a cycle.

    ``landing`` is a step of biped14. ``noise`` has errors of 1e-13 in dependent rows. ``scales`` has rows and columns
    in units up to 1e8 apart. ``ties`` has numbers rounded to tenths.
    """
    M, q = problem
    result = solve_lcp(M, q)
    assert result.status == "solved", (result.status, result.residual)
    assert scaled_residual(M, q, result.z) < 1e-9
    assert natural_residual(M, q, result.z) < 1e-6 * (1.0 + np.abs(result.z).max())


@pytest.mark.long
@pytest.mark.parametrize(("vertices", "count"), [(1, 30), pytest.param(2, 3, marks=pytest.mark.slow)])
def test_small_problems_agree_with_enumeration(vertices: int, count: int) -> None:
    rng = np.random.default_rng(22)
    for _ in range(count):
        M, q = foot_problem(rng, feet=1, vertices=vertices, sides=4, planar=bool(rng.random() < 0.3))
        # Velocities at the contacts; the impulses behind them are not unique.
        velocity = np.array(M)
        velocity[:, 5 * vertices :] = 0.0
        ends = all_solutions(M, q, probes=velocity).z @ velocity.T
        ours = velocity @ solve_lcp(M, q).z
        assert np.abs(ends - ours).max(axis=1).min() < 1e-7 * (1.0 + np.abs(ours).max())


def test_the_basis_of_the_last_step_holds_in_the_next() -> None:
    """A problem nearby is solved without a pivot, as the path would have solved it."""
    rng = np.random.default_rng(23)
    held = 0
    for _ in range(100):
        M, q = random_problem(rng)
        before = worked(M, q)
        basis = before.basis.copy()
        q = q * (1.0 + 1e-9 * rng.normal())
        warm = worked(M, q, basis=basis)
        cold = worked(M, q)
        held += warm.pivots[0] == 0
        scale = np.abs(cold.z).max()
        np.testing.assert_allclose(M @ warm.z, M @ cold.z, atol=1e-8 * (1.0 + np.abs(M @ cold.z).max() + scale))
    assert held >= 95


def test_a_basis_that_does_not_hold_costs_nothing_but_time() -> None:
    rng = np.random.default_rng(24)
    for _ in range(100):
        M, q = random_problem(rng)
        cold = worked(M, q)
        guess = rng.random(q.size) < 0.3
        warm = worked(M, q, basis=guess)
        assert warm.residual[0] < 1e-9
        if not np.array_equal(warm.basis, guess):
            np.testing.assert_array_equal(warm.z, cold.z)


def test_the_same_problem_gives_the_same_bits_whatever_was_solved_before() -> None:
    rng = np.random.default_rng(25)
    problems = [foot_problem(rng, feet=2, vertices=4, sides=4, planar=False) for _ in range(20)]
    fresh = [worked(M, q).z.copy() for M, q in problems]
    work = LcpWork.of_size(48)
    for order in (range(20), reversed(range(20))):
        for i in order:
            assert worked(*problems[i], work).z.tobytes() == fresh[i].tobytes()
