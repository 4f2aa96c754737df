"""Fit a few numbers to measurements whose sensors are known with the uncertainty of an estimate."""

from __future__ import annotations

import numpy as np
from scipy import stats

from bipedsim.numerics import Array
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.signals import RATE, SMOOTHED

CONFIDENCE = 0.95
"""Probability of an interval. A lower bound is its lower end, and fails with half the remaining probability."""
LEAST = 5
"""Number of independent samples from which a number is estimated."""
INDEPENDENT = RATE * SMOOTHED
"""Rows from one independent sample to the next one, after the first smoothing window."""
_FITS, _TINY = 5, 1e-12


def fitted(
    result: Estimate, columns: Array, measured: Array, slopes: Array, spread: Array
) -> tuple[Array, Array] | None:
    """Return the numbers x for which ``columns`` x is closest to ``measured``, and the half widths of their intervals.

    The errors of the estimate, such as offsets of the sensors, are fitted as well, with their covariance as the
    expectation. The noise is that of the residuals.

    Args:
        result: The estimate.
        columns: (n, m) derivatives with respect to the numbers.
        measured: (n,) values.
        slopes: (n, P) derivatives of ``measured`` with respect to all numbers of the estimate, drifts included.
        spread: (m,) standard deviations of the numbers about 0, as expected before any data.

    Returns:
        Numbers and half widths (m,), or None if there are too few rows.
    """
    n, m = columns.shape
    independent = n / INDEPENDENT
    if independent < max(LEAST, m + 1):
        return None
    involved = np.flatnonzero(np.any(slopes != 0.0, axis=0))
    sizes, axes = np.linalg.eigh(result.all_covariance[np.ix_(involved, involved)])
    errors = -slopes[:, involved] @ (axes * np.sqrt(np.maximum(sizes, 0.0)))
    columns = np.hstack([columns, errors])
    expected = np.diag(np.concatenate([spread**-2.0, np.ones(len(involved))]))
    variance = float(np.var(measured))
    for _ in range(_FITS):
        weight = 1.0 / (INDEPENDENT * max(variance, _TINY))
        covariance = np.linalg.inv(weight * columns.T @ columns + expected)
        solution = covariance @ (weight * columns.T @ measured)
        variance = float(np.mean((measured - columns @ solution) ** 2)) * independent / (independent - m)
    quantile = float(stats.t.isf(0.5 * (1.0 - CONFIDENCE), independent - m))
    return solution[:m], quantile * np.sqrt(np.diag(covariance)[:m])


def quantiles(tests: int, sensors: int, directions: int) -> tuple[float, float]:
    """Return the factors of the standard deviations of the estimate and of the noise for a lower bound.

    The largest one of ``tests`` lower ends is right with the probability of one end of an interval. Half of the
    remaining probability is that of noise, which differs in each row. The other half is that of the estimate, whose
    errors all rows of a sensor share.

    Args:
        tests: Number of lower ends.
        sensors: Number of sensors times recordings, each of which has errors of its own.
        directions: Dimensions of the directions in which an error may raise an end: 1 for a fixed direction, 2 for any
            in a plane.
    """
    left = 0.25 * (1.0 - CONFIDENCE)
    # The distance in a plane has a chi distribution; that along a fixed direction counts to one side.
    of_estimate = np.sqrt(stats.chi2.isf(left / sensors * (2.0 if directions == 1 else 1.0), directions))
    return float(of_estimate), float(stats.norm.isf(left / max(tests, 1)))
