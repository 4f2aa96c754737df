"""The difference between the errors of two models, with an interval that respects that neighbours are correlated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bipedsim.numerics import Array

BLOCK = 1.0
"""Minimum length of a block of windows [s]; a block is also at least as long as the horizon."""
FEWEST = 4
"""Minimum number of blocks for an interval."""
NO_INTERVAL = (
    f"[-]: no interval; it needs {FEWEST} blocks as long as the horizon and {BLOCK:g} s. Use a longer recording"
)
"""Meaning of a mean without an interval in the tables."""
LEVEL = 0.95
"""Probability that an interval contains the true difference."""


@dataclass(frozen=True)
class DifferenceInterval:
    """Store a mean with its interval of 95 %; the interval is NaN if there are too few blocks."""

    mean: float
    low: float
    high: float

    @property
    def lacks_interval(self) -> bool:
        """Whether there is a mean, but no interval."""
        return math.isfinite(self.mean) and not math.isfinite(self.low)

    @property
    def excludes_zero(self) -> bool:
        """Whether the models differ."""
        return self.low > 0.0 or self.high < 0.0

    def __str__(self) -> str:
        if not math.isfinite(self.mean):
            return "-"
        limits = "-" if self.lacks_interval else f"{self.low:.2g}, {self.high:.2g}"
        return f"{self.mean:.2g} [{limits}]"


def window_errors(errors: Array) -> Array:
    """Return the rms (W,) of the channels of errors (W, m) in each window; NaN without any channel."""
    valid = np.isfinite(errors)
    counts = valid.sum(axis=1)
    squares = np.where(valid, errors, 0.0) ** 2
    means = np.divide(squares.sum(axis=1), counts, out=np.full(len(errors), np.nan), where=counts > 0)
    result: Array = np.sqrt(means)
    return result


def difference(times: Array, first: Array, second: Array, horizon: float) -> DifferenceInterval:
    """Return the mean difference ``second`` minus ``first`` of two models' errors.

    Consecutive windows form blocks. The interval is Student's, of the means of the blocks. Windows that
    fill less than half of a last block belong to the one before.

    Args:
        times: (W,) starts of the windows that both models have predicted [s].
        first, second: (W, m) errors of the channels.
        horizon: Time over which they were predicted [s].
    """
    from scipy.stats import t as student

    change = window_errors(second) - window_errors(first)
    valid = np.isfinite(change)
    if not valid.any():
        return DifferenceInterval(math.nan, math.nan, math.nan)
    since = (times[valid] - times[valid][0]) / max(BLOCK, horizon)
    block = np.minimum(since.astype(np.int64), max(int(since[-1] + 0.5) - 1, 0))
    means = np.array([change[valid][block == i].mean() for i in np.unique(block)])
    mean = float(means.mean())
    if len(means) < FEWEST:
        return DifferenceInterval(mean, math.nan, math.nan)
    half = float(student.ppf(0.5 + 0.5 * LEVEL, len(means) - 1) * means.std(ddof=1) / math.sqrt(len(means)))
    return DifferenceInterval(mean, mean - half, mean + half)
