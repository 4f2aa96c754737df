from .estimator import Estimator as Estimator, EstimatorParams as EstimatorParams
