from .basis import LcpWork, residual_work, scale_work
from .directions import pyramid
from .lemke import SOLVED, TOLERANCE, solve, solve_work

__all__ = ["SOLVED", "TOLERANCE", "LcpWork", "pyramid", "residual_work", "scale_work", "solve", "solve_work"]
