"""Where the base is and how it moves, from what a robot measures (docs/estimation.md)."""

from __future__ import annotations

from bipedsim.control.estimation.estimator import BaseEstimate, Estimator, EstimatorParams

__all__ = ["BaseEstimate", "Estimator", "EstimatorParams"]
