from .base import ContactModel, ContactResult, Projection, edge_lines
from .models import CONTACT_MODELS, make_contact_model
from .modes import clamped_range, constraints, mode_masks, mode_name

__all__ = [
    "CONTACT_MODELS",
    "ContactModel",
    "ContactResult",
    "Projection",
    "clamped_range",
    "constraints",
    "edge_lines",
    "make_contact_model",
    "mode_masks",
    "mode_name",
]
