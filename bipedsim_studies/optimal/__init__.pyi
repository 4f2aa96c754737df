from .collocation import NoOptimumError, collocated
from .extremal import Extremal, extremal
from .problem import Problem, Trajectory

__all__ = ["Extremal", "NoOptimumError", "Problem", "Trajectory", "collocated", "extremal"]
