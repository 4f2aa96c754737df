"""Equations in blocks against numpy, and which blocks the elimination fills."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bipedsim.numerics import (
    Array,
    Blocks,
    begin_matrix,
    box,
    entry,
    link_blocks,
    order_blocks,
    solve_blocks,
    unlink_blocks,
)


@entry
def _order(boxed: Any, links: Array) -> int:
    s = boxed.arrays
    unlink_blocks(s)
    for n in range(links.shape[0]):
        link_blocks(s, links[n, 0], links[n, 1])
    order_blocks(s)
    return begin_matrix(s)


@entry
def _solve(boxed: Any, b: Array, x: Array) -> int:
    return solve_blocks(boxed.arrays, b, x)


def system(sizes: list[int], links: list[tuple[int, int]]) -> tuple[Blocks, Any, int]:
    """Return linked blocks of these sizes, and the number of entries that may be full."""
    s = Blocks.of_sizes(np.cumsum([0, *sizes]))
    s.used[0] = len(sizes)
    boxed = box(s)
    return s, boxed, _order(boxed, np.array(links, dtype=np.int64).reshape(-1, 2))


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([1, 3, 6, 6, 6, 11]), min_size=1, max_size=9),
    share=st.floats(0.0, 0.6),
    stiff=st.sampled_from([1.0, 1e6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_solution_is_that_of_the_dense_matrix(sizes: list[int], share: float, stiff: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = len(sizes)
    links = [(i, j) for i in range(count) for j in range(i + 1) if i == j or rng.random() < share]
    s, boxed, _ = system(sizes, links)
    begin = s.begin
    A = np.eye(begin[-1])
    for i, j in links:
        one, two = slice(begin[i], begin[i + 1]), slice(begin[j], begin[j + 1])
        # Contacts between two bodies: positive semi-definite, except for friction.
        rows = np.zeros((2, begin[-1]))
        rows[:, one], rows[:, two] = rng.normal(size=(2, sizes[i])), rng.normal(size=(2, sizes[j]))
        A += stiff * rows.T @ np.array([[1.0, 0.3], [0.0, 1.0]]) @ rows
    s.A[:] = A
    b, x = rng.normal(size=len(A)), np.zeros(len(A))
    assert _solve(boxed, b.copy(), x) > 0
    assert np.abs(A @ x - b).max() < 1e-8 * np.abs(A).max() * max(np.abs(x).max(), 1.0)


def test_a_chain_of_bodies_does_not_fill() -> None:
    """Only the blocks of neighbours are cleared, in any order of the bodies."""
    rng = np.random.default_rng(0)
    bodies = [int(i) for i in rng.permutation(20)]
    _, _, entries = system([6] * 20, list(pairwise(bodies)))
    assert entries == 36 * (20 + 2 * 19)


def test_the_block_with_the_most_rows_is_last_and_others_without_links_are_left_out() -> None:
    """A robot with four objects in contact with it, and one elsewhere."""
    s, _, _ = system([30, 6, 6, 6, 6, 6], [(0, i) for i in range(1, 5)])
    assert s.ordered[0] == 5
    assert s.order[4] == 0
    assert 5 not in s.order[:5]


@pytest.mark.parametrize("pivot", [0.0, 1.0])
def test_a_singular_block_is_reported(pivot: float) -> None:
    s, boxed, _ = system([1, 1], [(0, 0), (1, 1)])
    s.A[1, 1] = pivot
    assert (_solve(boxed, np.ones(2), np.zeros(2)) == 0) == (pivot == 0.0)
