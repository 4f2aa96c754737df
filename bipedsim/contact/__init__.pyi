from .base import UNRESOLVED, CompiledModel, ContactModel, ContactResult, Promises
from .models import CONTACT_MODELS, contact_params, make_contact_model
from .modes import (
    RECOVERY,
    FootMode,
    Rows,
    Sliding,
    clamped_range,
    constraints,
    distance_outside,
    mode_masks,
    mode_name,
    target_height_velocity,
)
from .parts import Parts, Sums, add_part, begin_parts, end_parts
from .selection.candidate import centre_of_pressure
from .time_stepping.cone_problem import ConeProblem
from .time_stepping.points import find_parts, solve_points
from .vertices import mode_of
from .write_result import for_kernels, to_sole, write_mode, write_pressure

__all__ = [
    "CONTACT_MODELS",
    "RECOVERY",
    "UNRESOLVED",
    "CompiledModel",
    "ConeProblem",
    "ContactModel",
    "ContactResult",
    "FootMode",
    "Parts",
    "Promises",
    "Rows",
    "Sliding",
    "Sums",
    "add_part",
    "begin_parts",
    "centre_of_pressure",
    "clamped_range",
    "constraints",
    "contact_params",
    "distance_outside",
    "end_parts",
    "find_parts",
    "for_kernels",
    "make_contact_model",
    "mode_masks",
    "mode_name",
    "mode_of",
    "solve_points",
    "target_height_velocity",
    "to_sole",
    "write_mode",
    "write_pressure",
]
