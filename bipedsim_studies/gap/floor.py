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
    """Return the standard deviation (m,) of white noise in the measurements of the channels of ``signal`` (n, m).

    A third difference removes smooth motion. Its smallest 90 % are free of impacts. Missing values are left out, and
    so are repeated ones (:func:`rows_per_value`). Channels with too few values have NaN.
    """
    result = np.full(signal.shape[1], np.nan)
    for j in range(signal.shape[1]):
        values = np.sort(np.abs(np.diff(_measured(signal[:, j]), 3)))
        kept = values[: int(KEPT * len(values))]
        if len(kept) >= _FEWEST:
            result[j] = np.sqrt(np.mean(kept**2) / _TRUNCATED / _GAIN)
    return result


def rows_per_value(signal: Array) -> Array:
    """Return how many rows each measurement of the channels (m,) of ``signal`` (n, m) has, on average.

    A sensor that is slower than the rows has the same value in several of them. A mean over rows reduces its noise
    less, as if the noise were larger by the square root of this number.
    """
    finite = np.isfinite(signal).sum(axis=0)
    return np.array([max(n, 1) / max(len(_measured(x)), 1) for n, x in zip(finite, signal.T, strict=True)])


def _measured(channel: Array) -> Array:
    """Return the values of a channel (n,) that are finite and differ from the one before; all if hardly any do."""
    values = channel[np.isfinite(channel)]
    changed = values[np.concatenate([[True], np.diff(values) != 0.0])] if len(values) else values
    return changed if len(changed) > 2 * _FEWEST else values


def rms(values: Array) -> float:
    """Return the root mean square of the finite values; NaN if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(finite**2))) if len(finite) else float("nan")
