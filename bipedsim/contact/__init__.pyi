from .base import CompiledModel, ContactModel, ContactResult
from .models import CONTACT_MODELS, make_contact_model
from .modes import FootMode, Rows, Sliding, clamped_range, constraints, mode_masks, mode_name

__all__ = [
    "CONTACT_MODELS",
    "CompiledModel",
    "ContactModel",
    "ContactResult",
    "FootMode",
    "Rows",
    "Sliding",
    "clamped_range",
    "constraints",
    "make_contact_model",
    "mode_masks",
    "mode_name",
]
