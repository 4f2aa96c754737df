from .blend import quintic
from .cholesky import solve_positive_definite
from .hull import clamp, hull_corners, margin
from .jit import box, control_entry, control_kernel, entry, inlined_kernel, kernel
from .linear import is_doubtful, solve_cholesky, solve_dense, solve_least_norm, solve_pseudo_inverse, solve_singular
from .polygons import MERGE, convex_hull, copy_points, cut, drop_straight, gap, simplify, span, start_as
from .spatial import to_quaternion

__all__ = [
    "MERGE",
    "box",
    "clamp",
    "control_entry",
    "control_kernel",
    "convex_hull",
    "copy_points",
    "cut",
    "drop_straight",
    "entry",
    "gap",
    "hull_corners",
    "inlined_kernel",
    "is_doubtful",
    "kernel",
    "margin",
    "quintic",
    "simplify",
    "solve_cholesky",
    "solve_dense",
    "solve_least_norm",
    "solve_positive_definite",
    "solve_pseudo_inverse",
    "solve_singular",
    "span",
    "start_as",
    "to_quaternion",
]
