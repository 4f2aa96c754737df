from .base import CompiledModel, ContactModel, ContactResult, Promises
from .models import CONTACT_MODELS, make_contact_model
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
)
from .parts import Parts
from .selection.candidate import centre_of_pressure
from .write_result import for_kernels

__all__ = [
    "CONTACT_MODELS",
    "RECOVERY",
    "CompiledModel",
    "ContactModel",
    "ContactResult",
    "FootMode",
    "Parts",
    "Promises",
    "Rows",
    "Sliding",
    "centre_of_pressure",
    "clamped_range",
    "constraints",
    "distance_outside",
    "for_kernels",
    "make_contact_model",
    "mode_masks",
    "mode_name",
]
