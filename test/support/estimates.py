"""Estimates that come from no recording."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.parameters import Parameters


def estimate_with(
    parameters: Parameters,
    values: Array,
    covariance: Array,
    errors: Array | None = None,
    recordings: int = 1,
) -> Estimate:
    """Return an estimate without drift.

    Args:
        parameters: The parameters.
        values: (p,) the estimates.
        covariance: (p, p).
        errors: (R,) standard deviations of the errors of the equations; none by default.
        recordings: Number of recordings with these values.
    """
    model_errors = np.zeros(0) if errors is None else errors
    drift = np.zeros(len(parameters))
    return Estimate(parameters, values, covariance, {}, True, model_errors, drift, (values,) * recordings)
