from .anchors import Anchors as Anchors, carry_anchors as carry_anchors, drift_correction as drift_correction
from .base import (
    STEPS as STEPS,
    UNRESOLVED as UNRESOLVED,
    CompiledModel as CompiledModel,
    ContactModel as ContactModel,
    ContactResult as ContactResult,
    Promises as Promises,
)
from .models import (
    CONTACT_MODELS as CONTACT_MODELS,
    contact_params as contact_params,
    make_contact_model as make_contact_model,
)
from .modes import (
    RECOVERY as RECOVERY,
    FootMode as FootMode,
    ModeRows as ModeRows,
    Sliding as Sliding,
    clamped_range as clamped_range,
    constraints as constraints,
    distance_outside as distance_outside,
    mode_masks as mode_masks,
    mode_name as mode_name,
    mode_parts as mode_parts,
    target_height_velocity as target_height_velocity,
)
from .parts import (
    Parts as Parts,
    Sums as Sums,
    add_part as add_part,
    begin_parts as begin_parts,
    end_parts as end_parts,
)
from .selection.candidate import centre_of_pressure as centre_of_pressure
from .time_stepping.cone_newton import POLISHED as POLISHED
from .time_stepping.cone_problem import ConeProblem as ConeProblem
from .time_stepping.point_rows import (
    PointRows as PointRows,
    add_body as add_body,
    add_impulse as add_impulse,
    fill_root as fill_root,
    prepare_points as prepare_points,
    velocity_at as velocity_at,
)
from .time_stepping.points import solve_points as solve_points
from .vertices import (
    VertexContacts as VertexContacts,
    VertexModel as VertexModel,
    begin_vertices as begin_vertices,
    carry_rows as carry_rows,
    mode_of as mode_of,
    write_vertices as write_vertices,
)
from .write_result import (
    for_kernels as for_kernels,
    to_sole as to_sole,
    write_mode as write_mode,
    write_pressure as write_pressure,
)
