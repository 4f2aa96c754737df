"""Estimates that come from no recording."""

from __future__ import annotations

import numpy as np

from bipedsim.numerics import Array
from bipedsim_studies.identify.estimation import Estimate
from bipedsim_studies.identify.parameters import Parameters
from bipedsim_studies.identify.unknowns import Unknowns


def estimate_with(
    parameters: Parameters,
    values: Array,
    covariance: Array,
    errors: Array | None = None,
) -> Estimate:
    """Return an estimate without drift.

    Args:
        parameters: The parameters.
        values: (p,) the estimates.
        covariance: (p, p).
        errors: (R,) standard deviations of the errors of the equations; none by default.
    """
    model_errors = np.zeros(0) if errors is None else errors
    return Estimate(Unknowns.of(parameters, 1), values, covariance, {}, True, model_errors, np.zeros(2))
