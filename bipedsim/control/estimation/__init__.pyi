from .estimator import Estimator, EstimatorParams

__all__ = ["Estimator", "EstimatorParams"]
