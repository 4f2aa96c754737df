from .cone_admm import onto_cone as onto_cone
from .cone_problem import (
    ConeProblem as ConeProblem,
    fill_velocities as fill_velocities,
    floor_mobilities as floor_mobilities,
    measure as measure,
)
from .cone_solver import solve_cones as solve_cones
from .lcp import Lcp as Lcp
from .ncp import Ncp as Ncp
