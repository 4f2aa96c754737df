"""Array operations of every tick."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from bipedsim.numerics import is_finite, scalar_type


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


@pytest.mark.parametrize("scalar", [np.float64, np.int64, np.bool_, np.uint8])
def test_the_scalar_type_of_an_array_type_is_known_for_every_numpy(scalar: type) -> None:
    """numpy 2.5 made NDArray an alias of the typing module, with the scalar as its only argument."""
    of_numpy_2_4 = np.ndarray[tuple[Any, ...], np.dtype[scalar]]  # type: ignore[valid-type]
    assert scalar_type(NDArray[scalar]) is scalar
    assert scalar_type(of_numpy_2_4) is scalar
