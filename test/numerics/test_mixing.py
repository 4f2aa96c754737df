"""Fixed points by Anderson's mixing: linear maps end after as many turns as they have dimensions, others sooner too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bipedsim.numerics import Array, Mixing, forget_turns, mix, zeros_of


def turns_to(g: object, x: Array, depth: int, within: float, most: int = 200) -> tuple[int, Array]:
    """Return after how many turns g(x) = x ``within``, and where."""
    memory = zeros_of(Mixing, {"X": len(x), "M": depth})
    forget_turns(memory)
    for turn in range(most):
        f = g(x) - x  # type: ignore[operator]
        if np.abs(f).max() <= within:
            return turn, x
        mix(memory, x, f)
    return most, x


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(0.1, 3.0))
def test_a_linear_map_is_solved_in_as_many_turns_as_it_has_dimensions(n: int, seed: int, size: float) -> None:
    """Also one that plain turns would leave."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    A *= size / np.abs(np.linalg.eigvals(A)).max()
    rest = np.linalg.svd(np.eye(n) - A, compute_uv=False)
    if rest[-1] < 0.05 * rest[0]:
        return
    b = rng.normal(size=n)
    turns, x = turns_to(lambda x: A @ x + b, rng.normal(size=n), n, 1e-7)
    assert turns <= n + 3
    assert x == pytest.approx(np.linalg.solve(np.eye(n) - A, b), abs=1e-5)


def test_a_plain_turn_is_what_the_first_one_is_and_the_first_after_all_was_forgotten() -> None:
    memory = zeros_of(Mixing, {"X": 2, "M": 3})
    for _ in range(2):
        forget_turns(memory)
        x = np.array([1.0, 2.0])
        mix(memory, x, np.array([0.5, -1.0]))
        assert x.tolist() == [1.5, 1.0]
        mix(memory, x, np.array([0.1, 0.3]))


@pytest.mark.parametrize("depth", [2, 3])
def test_a_map_that_is_not_linear_takes_fewer_turns_than_plain_ones(depth: int) -> None:
    def g(x: Array) -> Array:
        return np.array([0.9 * np.cos(x[1]), 0.8 * np.sin(x[0]) + 0.3, 0.7 * np.tanh(x[0] * x[1]) - 0.2])

    plain, x = 0, np.zeros(3)
    while np.abs(g(x) - x).max() > 1e-10:
        x, plain = g(x), plain + 1
    turns, found = turns_to(g, np.zeros(3), depth, 1e-10)
    assert turns < 0.7 * plain
    assert found == pytest.approx(x, abs=1e-9)


def test_a_turn_that_says_what_is_known_already_is_left_out() -> None:
    """The unknowns are identical, so all changes are parallel and only the newest one adds information."""
    alone, (x,) = turns_to(np.cos, np.array([0.0]), 1, 1e-12)
    turns, found = turns_to(np.cos, np.zeros(3), 3, 1e-12)
    assert turns == alone
    assert found == pytest.approx([x, x, x], abs=1e-12)
    assert np.cos(x) == pytest.approx(x, abs=1e-12)
