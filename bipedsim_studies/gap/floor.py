"""The noise of a signal, from the signal itself."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array

KEPT = 0.9
"""Fraction of the third differences that is used. The largest ones belong to impacts."""
_TRUNCATED = 0.6230
"""Mean square of a standard normal number whose magnitude is below its 90 % quantile."""
_GAIN = 20.0
"""Sum of the squared coefficients 1, 3, 3, 1 of a third difference."""
_FEWEST = 10


def noise(signal: Array) -> Array:
    """Return the standard deviation (m,) of white noise in the channels of ``signal`` (n, m).

    A third difference removes smooth motion. Its smallest 90 % are free of impacts. Missing values are left
    out. Channels with too few values have NaN.
    """
    result = np.full(signal.shape[1], np.nan)
    for j in range(signal.shape[1]):
        values = np.sort(np.abs(np.diff(signal[np.isfinite(signal[:, j]), j], 3)))
        kept = values[: int(KEPT * len(values))]
        if len(kept) >= _FEWEST:
            result[j] = np.sqrt(np.mean(kept**2) / _TRUNCATED / _GAIN)
    return result


def rms(values: Array) -> float:
    """Return the root mean square of the finite values; NaN if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if len(finite) else float("nan")
