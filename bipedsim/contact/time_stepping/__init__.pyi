from .cone_problem import ConeProblem
from .cone_solver import solve_cones
from .lcp import Lcp
from .ncp import Ncp

__all__ = ["ConeProblem", "Lcp", "Ncp", "solve_cones"]
