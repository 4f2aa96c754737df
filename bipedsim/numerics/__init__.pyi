from .arrays import (
    Array as Array,
    Flags as Flags,
    Indices as Indices,
    Integers as Integers,
    is_finite as is_finite,
    scalar_type as scalar_type,
    true_runs as true_runs,
)
from .blend import quintic as quintic
from .blocks import (
    Blocks as Blocks,
    begin_matrix as begin_matrix,
    link_blocks as link_blocks,
    order_blocks as order_blocks,
    solve_blocks as solve_blocks,
    unlink_blocks as unlink_blocks,
)
from .boxing import Box as Box, box as box
from .budget import STEP_BUDGET as STEP_BUDGET, unlimited as unlimited
from .byte_copies import Kept as Kept, copy_rows as copy_rows, keep as keep, kept as kept, put_back as put_back
from .calls import call as call
from .cholesky import solve_positive_definite as solve_positive_definite
from .compile_time import compile_seconds as compile_seconds
from .hull import clamp as clamp, margin as margin, move_inside as move_inside, reach as reach, to_edge as to_edge
from .jit import (
    announced as announced,
    compile_silently as compile_silently,
    entry as entry,
    kernel as kernel,
    on_compiling as on_compiling,
    ready as ready,
)
from .kernel_cache import (
    compiled_with as compiled_with,
    finish_shipped as finish_shipped,
    stored_kernels as stored_kernels,
    why_not_shipped as why_not_shipped,
)
from .linear import (
    eliminate as eliminate,
    factor_pivoted as factor_pivoted,
    is_doubtful as is_doubtful,
    solve_cholesky as solve_cholesky,
    solve_dense as solve_dense,
    solve_eliminated as solve_eliminated,
    solve_factored as solve_factored,
    solve_least_norm as solve_least_norm,
    solve_pseudo_inverse as solve_pseudo_inverse,
    solve_singular as solve_singular,
)
from .mixing import Mixing as Mixing, forget_turns as forget_turns, mix as mix
from .native import NativeCall as NativeCall, call_native as call_native, native_call as native_call
from .polygons import (
    MERGE as MERGE,
    convex_hull as convex_hull,
    copy_points as copy_points,
    cut as cut,
    drop_straight as drop_straight,
    gap as gap,
    hull_corners as hull_corners,
    simplify as simplify,
    span as span,
    start_as as start_as,
)
from .processor import PORTABLE as PORTABLE
from .spatial import (
    Three as Three,
    Vector as Vector,
    accumulate as accumulate,
    act as act,
    add_wrench as add_wrench,
    assign as assign,
    cross as cross,
    dot as dot,
    exp3 as exp3,
    from_quaternion as from_quaternion,
    minus as minus,
    mul as mul,
    mul_t as mul_t,
    point_acceleration as point_acceleration,
    point_velocity as point_velocity,
    product as product,
    rotation_error as rotation_error,
    to_quaternion as to_quaternion,
    turn as turn,
    turn_axes as turn_axes,
    turn_quaternion as turn_quaternion,
)
from .zeros import zeros_of as zeros_of
