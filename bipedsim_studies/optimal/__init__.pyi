from .collocation import NoOptimumError as NoOptimumError, collocated as collocated
from .indirect_method import Extremal as Extremal, extremal as extremal
from .problem import OptimalTrajectory as OptimalTrajectory, Problem as Problem
