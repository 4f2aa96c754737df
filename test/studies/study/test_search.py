"""The search for the boundary between success and failure, on steps at known positions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from bipedsim_studies.study.search import threshold


@given(st.floats(0.0101, 90.0), st.floats(0.01, 0.3))
def test_the_bracket_holds_the_edge_to_the_tolerance(edge: float, tolerance: float) -> None:
    asked: list[float] = []

    def survives(value: float) -> bool:
        asked.append(value)
        return value <= edge

    found = threshold(survives, guess=1.0, tolerance=tolerance, limit=100.0)
    # The search starts at 1 % of the estimate. Smaller values count as zero.
    assert 0.0 < found.survived <= edge < found.failed
    assert found.failed - found.survived <= tolerance * found.failed
    assert found.trials == len(asked) == len(set(asked))
    assert {found.survived, found.failed} <= set(asked)


def test_what_never_fails_ends_at_the_limit_and_what_always_does_at_nothing() -> None:
    found = threshold(lambda _: True, guess=0.2, tolerance=0.02, limit=2.0)
    assert (found.survived, found.failed) == (2.0, math.inf)
    found = threshold(lambda _: False, guess=0.2, tolerance=0.02, limit=2.0)
    assert found.survived == 0.0
    assert 0.0 < found.failed <= 0.002
    assert threshold(lambda _: True, guess=5.0, tolerance=0.02, limit=2.0).survived == pytest.approx(2.0)
