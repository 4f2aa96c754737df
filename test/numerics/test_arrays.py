"""What is asked of an array in every tick."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from bipedsim.numerics import is_finite


@given(arrays(np.float64, st.integers(0, 20)))
def test_finite_is_what_numpy_calls_so_entry_by_entry(values: np.ndarray) -> None:
    assert is_finite(values) == np.isfinite(values).all()


@pytest.mark.parametrize("values", [[1e200, -1e200], [1.7e308] * 3])
def test_numbers_whose_sums_are_none_are_finite(values: list[float]) -> None:
    assert is_finite(np.array(values))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_one_entry_spoils_all(wrong: float) -> None:
    for place in range(5):
        values = np.full(5, 1e200)
        values[place] = wrong
        assert not is_finite(values)
