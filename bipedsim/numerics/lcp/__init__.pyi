from .basis import LcpWork as LcpWork, residual_work as residual_work, scale_work as scale_work
from .directions import pyramid as pyramid
from .lemke import SOLVED as SOLVED, TOLERANCE as TOLERANCE, solve as solve, solve_work as solve_work
