from .cone_problem import ConeProblem, fill_velocities
from .cone_solver import solve_cones
from .lcp import Lcp
from .ncp import Ncp

__all__ = ["ConeProblem", "Lcp", "Ncp", "fill_velocities", "solve_cones"]
