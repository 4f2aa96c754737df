from .motions import Postures
from .references import JointReference, ReferenceParams, Wave
from .static_support import StaticSupport
from .steps import Gait

__all__ = ["Gait", "JointReference", "Postures", "ReferenceParams", "StaticSupport", "Wave"]
