"""Compile times are measured, and nested compilations count once."""

from __future__ import annotations

import time

from numba import njit

from bipedsim.numerics.compile_time import compile_seconds


def test_compiling_is_counted_once_and_running_never() -> None:
    @njit
    def inner(x: float) -> float:
        return x + 1.0

    @njit
    def outer(x: float) -> float:
        return inner(x) * 2.0

    before, begun = compile_seconds(), time.perf_counter()
    assert outer(1.0) == 4.0
    spent, took = compile_seconds() - before, time.perf_counter() - begun
    assert 0.0 < spent <= took
    assert outer(2.0) == 6.0
    assert compile_seconds() - before == spent
