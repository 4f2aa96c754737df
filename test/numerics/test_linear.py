"""The small dense solves against numpy: full rank, dependent rows, equations that contradict each other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from bipedsim.numerics import Array, cholesky, linear

SIZES, SEEDS = st.integers(1, 8), st.integers(0, 2**32 - 1)
fast = settings(max_examples=30, deadline=None)


def _system(n: int, rank: int, seed: int) -> tuple[Array, Array]:
    """Return a symmetric matrix (n, n), positive semi-definite of this rank, and any vector."""
    generator = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(generator.normal(size=(n, n)))
    values = np.append(generator.uniform(0.5, 2.0, rank), np.zeros(n - rank))
    return (axes * values) @ axes.T, generator.normal(size=n)


def _room(n: int) -> tuple[Array, Array]:
    return np.zeros((n, n)), np.zeros(n)


@given(SIZES, st.integers(0, 8), SEEDS)
@fast
def test_a_matrix_is_eliminated_once_for_many_right_sides(n: int, rank: int, seed: int) -> None:
    A, b = _system(n, min(rank, n), seed)
    generator = np.random.default_rng(seed)
    rows, columns = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    factors = A.copy()
    found = linear.eliminate(factors, n, rows, columns)
    for right in (b, A @ b, generator.normal(size=n)):
        x, expected, work = np.zeros(n), np.zeros(n), A.copy()
        order = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        assert linear.solve_dense(work, right.copy(), n, expected, *order) == found
        linear.solve_eliminated(factors, right.copy(), n, found, x, rows, columns)
        np.testing.assert_array_equal(x, expected)


@given(SIZES, SEEDS)
@fast
def test_positive_definite_equations(n: int, seed: int) -> None:
    A, b = _system(n, n, seed)
    (L, x), expected = _room(n), np.linalg.solve(A, b)
    assert linear.solve_cholesky(np.tril(A), b, n, L, x)
    assert_allclose(x, expected, atol=1e-12)
    assert_allclose(1.0 / np.diag(L), np.diag(np.linalg.cholesky(A)), atol=1e-12)
    assert not linear.is_doubtful(A, n, L)
    assert cholesky.solve_positive_definite(np.triu(A), b)
    assert_allclose(b, expected, atol=1e-12)


@given(SIZES, st.data(), SEEDS)
@fast
def test_of_many_solutions_the_least_one(n: int, data: st.DataObject, seed: int) -> None:
    A, free = _system(n, data.draw(st.integers(1, n)), seed)
    b, expected = A @ free, np.linalg.pinv(A, rcond=1e-8) @ A @ free
    (L, x), work = _room(n), np.zeros((n, n))
    assert linear.solve_singular(A.copy(), b, n, L, x, np.zeros(n), np.zeros(n))
    # Where A is zero, each refinement magnifies the rounding of b by the inverse of the shift.
    rounding = linear.REFINEMENTS * np.finfo(float).eps / linear.SHIFT
    assert_allclose(x, expected, atol=rounding * max(1.0, float(np.abs(b).max())))
    assert_allclose(A @ x, b, atol=1e-12)
    linear.solve_least_norm(A, b, n, L, work, x)
    assert_allclose(x, expected, atol=1e-8)


@given(st.integers(2, 12), st.data(), SEEDS)
@fast
def test_equations_that_contradict_each_other_are_told(n: int, data: st.DataObject, seed: int) -> None:
    A, free = _system(n, data.draw(st.integers(1, n - 1)), seed)
    outside = np.linalg.eigh(A)[1][:, 0]
    (L, x), b = _room(n), A @ free
    b += data.draw(st.sampled_from([1e-9, 1e-3, 1.0])) * np.abs(b).max() * outside
    assert not linear.solve_singular(A.copy(), b, n, L, x, np.zeros(n), np.zeros(n))


@given(SIZES, st.data(), SEEDS)
@fast
def test_of_no_solution_the_nearest_one(n: int, data: st.DataObject, seed: int) -> None:
    A, b = _system(n, data.draw(st.integers(1, n)), seed)
    (V, x), work = _room(n), np.zeros((n, n))
    linear.solve_pseudo_inverse(np.tril(A), b, n, V, work, x)
    assert_allclose(x, np.linalg.pinv(A, rcond=1e-8) @ b, atol=1e-10)


@given(SIZES, st.data(), SEEDS)
@fast
def test_elimination_finds_rank_and_a_solution(n: int, data: st.DataObject, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rank = data.draw(st.integers(1, n))
    A = generator.normal(size=(n, rank)) @ generator.normal(size=(rank, n))
    b, x = A @ generator.normal(size=n), np.zeros(n)
    rows, columns = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    assert linear.solve_dense(A.copy(), b.copy(), n, x, rows, columns) == rank
    assert_allclose(A @ x, b, atol=1e-9 * max(1.0, float(np.abs(x).max())))


def test_a_small_pivot_that_may_be_rounding_is_doubtful() -> None:
    A = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-6]])
    L, x = _room(2)
    assert linear.solve_cholesky(A, np.ones(2), 2, L, x)
    assert linear.is_doubtful(A, 2, L)
    assert not linear.solve_cholesky(np.ones((2, 2)), np.ones(2), 2, L, x)


@given(SIZES, SEEDS)
@fast
def test_a_factor_serves_many_right_sides(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    # Rows in no order: the largest entries are not on the diagonal.
    A = (generator.normal(size=(n, n)) + 5.0 * np.eye(n))[generator.permutation(n)]
    factor, order = A.copy(), np.zeros(n, dtype=np.int64)
    assert linear.factor_pivoted(factor, n, order)
    for _ in range(2):
        b, x = generator.normal(size=n), np.zeros(n)
        expected = np.linalg.solve(A, b)
        linear.solve_factored(factor, n, order, b, x)
        assert_allclose(x, expected, atol=1e-10)
    assert not linear.factor_pivoted(np.zeros((n, n)), n, order)


@settings(max_examples=200, deadline=None)
@given(n=st.integers(1, 24), stiff=st.sampled_from([1.0, 1e7]), seed=st.integers(0, 2**32 - 1))
def test_elimination_from_the_end_solves_unsymmetric_equations(n: int, stiff: float, seed: int) -> None:
    """Small pivots on the diagonal are exchanged; the residual is of the size of rounding."""
    rng = np.random.default_rng(seed)
    A = np.eye(n) + stiff * rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.5)
    A[rng.random(n) < 0.3, :] *= 1e-3
    np.fill_diagonal(A, np.diag(A) * (rng.random(n) < 0.7))
    if np.linalg.cond(A) > 1e10:
        return
    b, x, order, factors = rng.normal(size=n), np.zeros(n), np.zeros(n, dtype=np.int64), A.copy()
    first = b.copy()
    assert linear.factor_from_end(factors, 0, n, order, order.copy(), order.copy(), first) > 0
    linear.solve_second_factor(factors, 0, n, first, x)
    assert np.abs(A @ x - b).max() < 1e-9 * np.abs(A).max() * max(np.abs(x).max(), 1.0)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_elimination_from_the_end_does_not_fill_a_tree(above: list[int], seed: int) -> None:
    """Node i + 1 hangs at an earlier node; entries exist only between a node and its ancestors."""
    parents = [-1] + [a % (i + 1) for i, a in enumerate(above)]
    n, rng = len(parents), np.random.default_rng(seed)
    A = np.diag(10.0 * n + rng.random(n))
    for i in range(n):
        j = parents[i]
        while j >= 0:
            A[i, j], A[j, i] = rng.normal(size=2)
            j = parents[j]
    empty, order = A == 0.0, np.zeros(n, dtype=np.int64)
    assert linear.factor_from_end(A, 0, n, order, order.copy(), order.copy(), np.zeros(n)) > 0
    assert (A[empty] == 0.0).all()


def test_elimination_from_the_end_tells_a_singular_matrix() -> None:
    order = np.zeros(2, dtype=np.int64)
    assert (
        linear.factor_from_end(np.array([[1.0, 2.0], [2.0, 4.0]]), 0, 2, order, order.copy(), order.copy(), np.zeros(2))
        == 0
    )
