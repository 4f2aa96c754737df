"""Limit the work of the solvers in one physics step.

The limit is a number of operations and not a time, so that every machine computes the same step. All iterative solvers
share one array (1,). Each subtracts the operations that it needs and stops when none are left.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.arrays import Integers

STEP_BUDGET = 6_000_000
"""Operations, mostly multiplications, that all solvers may use in one step."""
UNLIMITED = 2**62
"""A budget that is never used up; each solver still has its own limit of iterations."""


def unlimited() -> Integers:
    """Return a budget (1,) that is never used up."""
    return np.full(1, UNLIMITED)
