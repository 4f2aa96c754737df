"""Kernels called from Python as from within a step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from bipedsim.numerics import Array, box, call, entry, kernel


class Pair(NamedTuple):
    one: Array
    weight: float


@kernel
def of_one(pair):
    pair.one[0] += 1.0
    return pair.weight * pair.one[0]


@kernel
def of_two(pair, a):
    return of_one(pair) + a


@kernel
def of_three(pair, a, b):
    return of_one(pair) + a + b


@kernel
def of_four(pair, a, b, c):
    return of_one(pair) + a + b + c


@kernel
def of_five(pair, a, b, c, d):
    return of_one(pair) + a + b + c + d


class Step(NamedTuple):
    pair: Pair


@entry
def step(boxed):
    return of_two(boxed.arrays.pair, 1.0)


@pytest.mark.parametrize(("kernel", "n"), [(of_one, 0), (of_two, 1), (of_three, 2), (of_four, 3), (of_five, 4)])
def test_numbers_and_arrays_arrive_and_what_is_written_stays(kernel: Any, n: int) -> None:
    pair = Pair(np.array([10.0]), 0.5)
    more = [1.0, 20.0, 300.0, 4000.0][:n]
    assert call(kernel, pair, *more) == 5.5 + sum(more)
    assert pair.one[0] == 11.0


def test_a_kernel_of_a_step_is_the_same_one_from_python() -> None:
    pair = Pair(np.array([10.0]), 0.5)
    assert step(box(Step(pair))) == 6.5
    assert call(of_two, pair, 1.0) == 7.0
    # None where both were compiled by an earlier run.
    assert len(of_two.signatures) <= 1, of_two.signatures
