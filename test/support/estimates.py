"""Estimates that come from no recording."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.parameters import Parameters


def estimate_with(parameters: Parameters, values: Array, covariance: Array, errors: Array | None = None) -> Estimate:
    """Return an estimate with these values (p,), their covariance (p, p) and the errors of the equations."""
    without_drift = np.zeros(len(parameters))
    return Estimate(
        parameters, values, covariance, {}, True, np.zeros(0) if errors is None else errors, without_drift, ()
    )
