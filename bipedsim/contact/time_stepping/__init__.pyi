from .cone_admm import onto_cone
from .cone_problem import ConeProblem, fill_velocities, measure
from .cone_solver import solve_cones
from .lcp import Lcp
from .ncp import Ncp

__all__ = ["ConeProblem", "Lcp", "Ncp", "fill_velocities", "measure", "onto_cone", "solve_cones"]
