"""Array types of any shape (docstrings give the shapes), and two short tests of arrays."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Array of real numbers."""

Integers = NDArray[np.int64]
"""Array of integers."""

Indices = NDArray[np.intp]
"""Array of indices of other arrays."""

Flags = NDArray[np.bool_]
"""Array of booleans."""


def scalar_type(kind: Any) -> Any:
    """Return the scalar type of an array type, such as ``np.float64`` of :data:`Array`.

    The argument of ``NDArray`` is the scalar type itself since numpy 2.5 (with Python 3.12), and before it a dtype.
    """
    *_, last = get_args(kind)
    return next(iter(get_args(last)), last)


def is_finite(values: Array) -> bool:
    """Return whether all of ``values`` (n,) are finite.

    The sum is not finite if a value is not finite. For some dozens of entries the sum takes a third of the time of
    numpy's test of each value.
    """
    return math.isfinite(sum(values.tolist())) or bool(np.isfinite(values).all())


def true_runs(flags: Flags) -> list[tuple[int, int]]:
    """Return first row, and row after the last, of each run of true values in ``flags`` (n,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8))).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
