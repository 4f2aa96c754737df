"""The noise of a signal, from the signal itself."""

from __future__ import annotations

import numpy as np
import scipy  # it imports its submodules at their first use

from bipedsim.numerics import Array

KEPT = 0.9
"""Fraction of the third differences that is used. The largest ones belong to impacts."""
_TRUNCATED = 0.6230
"""Mean square of a standard normal number whose magnitude is below its 90 % quantile."""
_GAIN = 20.0
"""Sum of the squared coefficients 1, 3, 3, 1 of a third difference."""
_FEWEST = 10
SLOWER = 1.5
"""Rows per measurement from which a sensor counts as slower than the rows."""
_LEAST_REST = 0.1
"""Least share of the variance of noise that counts as left by a regression."""


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


def unshaken_noise(signal: Array, efforts: Array) -> Array:
    """Return the :func:`noise` (m,) of accelerometers and force sensors, without the motion that follows torques.

    A controller turns noise into torques, which shake the robot. These sensors measure the motion, and so do models
    that know the torques. The part of ``signal`` that follows the efforts of its row and the one before is removed. It
    stays if the sensor is slower than the rows, if values are missing, or if there are few rows.

    Args:
        signal: (n, m) measurements.
        efforts: (n, k) measured torques; joints with missing values are left out.
    """
    known = efforts[:, np.isfinite(efforts).all(axis=0)]
    causes = np.hstack([known[1:], known[:-1]])
    comparable = np.isfinite(signal).all() and rows_per_value(signal).max() < SLOWER
    if not comparable or not 0 < 2 * causes.shape[1] < len(causes) - 3:
        return noise(signal)
    differences, effects = np.diff(causes, 3, axis=0), np.diff(signal[1:], 3, axis=0)
    both = np.hstack([differences, effects])
    scale = np.median(np.abs(both), axis=0)
    size = np.linalg.norm(both[:, scale > 0.0] / scale[scale > 0.0], axis=1)
    usual = size <= np.quantile(size, KEPT)
    follows = np.linalg.lstsq(differences[usual], effects[usual])[0]
    return noise(signal[1:] - causes @ follows) / np.sqrt(max(1.0 - _removed(differences), _LEAST_REST))


def _removed(differences: Array) -> float:
    """Return the share of the variance of white noise that a regression on third ``differences`` (n, k) removes."""
    basis = scipy.linalg.orth(differences)
    # The covariance of third differences of noise is D D^T, with the operator D of the differences.
    transposed = np.diff(np.pad(basis, ((3, 3), (0, 0))), 3, axis=0)
    return float(np.sum(transposed**2)) / (_GAIN * len(differences))


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
