"""A limit to what the solvers of one step may take, as a count of operations: never as a time.

All solvers that iterate share one array (1,), subtract what they take, and stop where nothing is left. So the same
steps follow on every machine, however slow it is.
"""

from __future__ import annotations

import numpy as np

from bipedsim.numerics.arrays import Integers

STEP_BUDGET = 20_000_000
"""Operations, multiplications mostly, that all solves of one step may take."""
UNLIMITED = 2**62
"""A budget that is never used up; each solver still has its own limit of iterations."""


def unlimited() -> Integers:
    """Return a budget (1,) that is never used up."""
    return np.full(1, UNLIMITED)
